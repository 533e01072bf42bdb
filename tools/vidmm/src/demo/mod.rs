// SPDX-License-Identifier: GPL-2.0

//! `vidmm demo`: more textures than fit, and every pixel right.
//!
//! Textures of several times the size of a segment are drawn by the CPU, written into allocations and
//! laid over a picture by the GPU, so that the driver has to move them in and out all the time. The
//! CPU makes the same picture in its own memory, and the two are compared pixel by pixel.

mod counters;
mod image;
mod neighbour;
mod painter;
mod palette;
mod place;
mod pressure;
mod random;
mod reference;
mod report;
mod scene;
mod sheet;
mod surface;
mod texture;

use std::path::{
    Path,
    PathBuf, //
};
use std::thread;
use std::time::Instant;

use clap::Args;
use indicatif::{
    ProgressBar,
    ProgressFinish,
    ProgressStyle, //
};
use libvidmm::Adapter;

use self::counters::Counters;
use self::neighbour::Neighbour;
use self::painter::{
    Painter,
    Work, //
};
use self::place::Place;
use self::pressure::{
    Pressure,
    Watch, //
};
use self::report::{
    Report,
    Seconds, //
};
use self::scene::Scene;
use self::surface::{
    Size,
    Surface, //
};
use self::texture::Texture;
use crate::failure::{
    open_nonblocking,
    Failure, //
};

/// Paint a picture from more textures than fit the memory of the adapter, and check every pixel.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Textures in total, as a multiple of what the segment holds.
    #[arg(long, value_name = "TIMES", default_value = "3.0", value_parser = multiple)]
    oversubscribe: f64,

    /// Picture in pixels.
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1024x768", value_parser = size)]
    size: Size,

    /// Number that all textures and their places come from.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Segment to use [default: the memory segment with the largest contiguous part].
    #[arg(long, value_name = "ID")]
    segment: Option<u32>,

    /// Part of the segment that another client wants while the second third is painted.
    #[arg(long, value_name = "PART", default_value = "0.25", value_parser = part)]
    neighbour: f64,

    /// Write the picture to a PNG file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

/// Paints a picture on the adapter at `path`.
pub(crate) fn run(path: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let adapter = open_nonblocking(path)?;
    let place = Place::find(&adapter, arguments.segment)?;
    let before = Counters::read(&adapter, path)?;
    let outcome = paint(&adapter, path, &place, arguments)?;
    let after = Counters::read(&adapter, path)?;
    if let Some(file) = &arguments.out {
        image::write(file, &outcome.picture)?;
    }
    let report = report(arguments, &place, &outcome, after.since(&before));
    if arguments.json {
        let text = serde_json::to_string_pretty(&report)
            .map_err(|error| Failure(format!("cannot write JSON: {error}")))?;
        println!("{text}");
    } else {
        print!("{}", report.text());
    }
    match report.complaint() {
        Some(sentence) => Err(Failure(sentence)),
        None => Ok(()),
    }
}

/// What came of a demonstration.
struct Outcome {
    scene: Scene,
    /// The picture that the GPU made.
    picture: Surface,
    differing_pixels: u64,
    first_difference: Option<(u32, u32)>,
    work: Work,
    pressure: Option<Pressure>,
    seconds: Seconds,
}

/// Makes the picture twice, by GPU and CPU, and compares.
fn paint(
    adapter: &Adapter,
    path: &Path,
    place: &Place,
    arguments: &Arguments,
) -> Result<Outcome, Failure> {
    let mut seconds = Seconds::default();
    let watch = Instant::now();
    let (textures, surfaces) = draw(place, arguments);
    let scene = Scene::new(arguments.seed, arguments.size, textures, &surfaces);
    seconds.drawing = watch.elapsed().as_secs_f64();

    let watch = Instant::now();
    let painter = Painter::new(adapter, place, &scene)?;
    painter.upload(&surfaces, &progress("uploading", surfaces.len()))?;
    seconds.uploading = watch.elapsed().as_secs_f64();

    let watch = Instant::now();
    let mut budget = Watch::begin(adapter, place)?;
    let (expected, work) = thread::scope(|scope| {
        let expected = scope.spawn(|| reference::picture(&scene, surfaces));
        let mut visit = Visit::new(path, place, arguments.neighbour);
        let work = painter.paint(&progress("painting", 1), |done| {
            visit.go_on(done)?;
            budget.look()
        });
        seconds.painting = watch.elapsed().as_secs_f64();
        (expected.join(), work)
    });
    let work = work?;
    let pressure = budget.end()?;
    let expected = expected.map_err(|_| Failure("the CPU could not paint".to_owned()))?;

    let watch = Instant::now();
    let picture = painter.read_back()?;
    let (differing_pixels, first_difference) = expected.differences(&picture);
    seconds.comparing = watch.elapsed().as_secs_f64();
    drop(painter);
    Ok(Outcome {
        scene,
        picture,
        differing_pixels,
        first_difference,
        work,
        pressure,
        seconds,
    })
}

/// When a neighbour is there: for the second third of the painting.
struct Visit<'a> {
    path: &'a Path,
    place: &'a Place,
    bytes: u64,
    neighbour: Option<Neighbour>,
}

impl<'a> Visit<'a> {
    fn new(path: &'a Path, place: &'a Place, part: f64) -> Self {
        Self {
            path,
            place,
            // CAST: a number of bytes far below the precision of the type.
            bytes: (place.capacity as f64 * part) as u64,
            neighbour: None,
        }
    }

    /// Lets the neighbour arrive or leave, as it is time.
    fn go_on(&mut self, done: f64) -> Result<(), Failure> {
        let is_time = (1.0 / 3.0..2.0 / 3.0).contains(&done) && self.bytes > 0;
        match (&self.neighbour, is_time) {
            (None, true) => {
                self.neighbour = Some(Neighbour::arrive(self.path, self.place, self.bytes)?);
            }
            (Some(_), false) => self.neighbour = None,
            _ => {}
        }
        Ok(())
    }
}

/// Draws the textures by the CPU.
fn draw(place: &Place, arguments: &Arguments) -> (Vec<Texture>, Vec<Surface>) {
    // CAST: a number of bytes far below the precision of the type.
    let bytes = (place.capacity as f64 * arguments.oversubscribe) as u64;
    let textures = scene::textures(arguments.seed, bytes);
    let bar = progress("drawing", textures.len());
    let surfaces = textures.iter().map(|texture| {
        bar.inc(1);
        texture.draw()
    });
    let surfaces = surfaces.collect();
    (textures, surfaces)
}

/// Puts the report together.
fn report(arguments: &Arguments, place: &Place, outcome: &Outcome, paging: Counters) -> Report {
    Report {
        seed: arguments.seed,
        picture: report::Picture {
            width: arguments.size.width,
            height: arguments.size.height,
            pixels: arguments.size.pixels(),
            differing_pixels: outcome.differing_pixels,
            first_difference: outcome.first_difference,
        },
        textures: report::Textures {
            count: outcome.scene.textures.len() as u64,
            bytes: outcome.scene.texture_bytes(),
        },
        segment: report::Segment {
            id: place.segment.id,
            kind: place.noun(),
            bytes: place.capacity,
        },
        node: place.node.ordinal,
        work: outcome.work,
        pressure: outcome.pressure,
        paging,
        seconds: outcome.seconds,
    }
}

/// Makes a bar that is seen where standard error is a terminal, and gone when it is dropped.
fn progress(what: &'static str, steps: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("  {msg:<10} {bar:40.cyan/dim} {pos:>4} of {len}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸─");
    let bar = ProgressBar::new(steps as u64).with_style(style);
    bar.set_message(what);
    bar.with_finish(ProgressFinish::AndClear)
}

/// Reads a picture size.
fn size(text: &str) -> Result<Size, String> {
    let sides = text.split_once('x').and_then(|(width, height)| {
        let side = |text: &str| text.parse().ok().filter(|side| (16..=8192).contains(side));
        Some((side(width)?, side(height)?))
    });
    let (width, height) =
        sides.ok_or("two numbers from 16 to 8192 are wanted, for example 1024x768")?;
    Ok(Size { width, height })
}

/// Reads how often the segment is to be filled.
fn multiple(text: &str) -> Result<f64, String> {
    let multiple = text.parse().ok();
    multiple
        .filter(|multiple| (0.0..=64.0).contains(multiple))
        .ok_or_else(|| "a number from 0 to 64 is wanted, for example 3.0".to_owned())
}

/// Reads which part of the segment a neighbour wants.
fn part(text: &str) -> Result<f64, String> {
    let part = text.parse().ok();
    part.filter(|part| (0.0..=1.0).contains(part))
        .ok_or_else(|| "a number from 0 to 1 is wanted, for example 0.25".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_is_not_more_than_all() {
        assert_eq!(part("0.25"), Ok(0.25));
        for wrong in ["", "-0.1", "1.1", "nan"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn size_is_width_and_height() {
        assert_eq!(
            size("640x480"),
            Ok(Size {
                width: 640,
                height: 480,
            })
        );
        for wrong in ["640", "640x", "x480", "0x480", "640x480x3", "640x9000"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn multiple_is_a_number_in_reason() {
        assert_eq!(multiple("2.5"), Ok(2.5));
        for wrong in ["", "-1", "nan", "inf", "65"] {
            assert!(multiple(wrong).is_err(), "{wrong}");
        }
    }
}
