// SPDX-License-Identifier: GPL-2.0

//! Files: a surface as PNG.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use super::surface::Surface;
use crate::failure::Failure;

/// Writes an opaque surface to a file.
pub(crate) fn write(path: &Path, surface: &Surface) -> Result<(), Failure> {
    encode(path, surface)
        .map_err(|error| Failure(format!("cannot write {}: {error}", path.display())))
}

fn encode(path: &Path, surface: &Surface) -> Result<(), png::EncodingError> {
    let size = surface.size();
    let file = BufWriter::new(File::create(path)?);
    let mut encoder = png::Encoder::new(file, size.width, size.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header()?;
    let rows: Vec<u8> = surface
        .pixels()
        .iter()
        .flat_map(|pixel| {
            let [blue, green, red, _] = pixel.to_le_bytes();
            [red, green, blue]
        })
        .collect();
    writer.write_image_data(&rows)?;
    writer.finish()
}
