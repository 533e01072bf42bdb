// SPDX-License-Identifier: GPL-2.0

//! Surfaces: pixels in memory, and what the engine does to them, done by the CPU.
//!
//! A pixel is 0xAARRGGBB with premultiplied alpha. [`Surface::fill`] and [`Surface::blend`] compute
//! what the packets FILL and BLEND of the engine are documented to compute, and nothing else: they are
//! what the picture of the GPU is compared with.

/// Bytes of a pixel.
pub(crate) const PIXEL_BYTES: u32 = 4;

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Size {
    /// Returns the number of pixels.
    pub(crate) fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Returns the bytes that the pixels take, rows without gaps.
    pub(crate) fn bytes(self) -> u64 {
        self.pixels() * u64::from(PIXEL_BYTES)
    }

    /// Returns the bytes from row to row.
    pub(crate) fn pitch(self) -> u32 {
        self.width * PIXEL_BYTES
    }
}

/// A rectangle inside a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) size: Size,
}

impl Rectangle {
    /// Returns the byte at which the rectangle begins in a surface of this size.
    pub(crate) fn offset(self, surface: Size) -> u64 {
        let row = u64::from(self.y) * u64::from(surface.pitch());
        row + u64::from(self.x) * u64::from(PIXEL_BYTES)
    }
}

/// A rectangle of pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Surface {
    size: Size,
    pixels: Vec<u32>,
}

impl Surface {
    /// Makes a transparent surface.
    pub(crate) fn new(size: Size) -> Self {
        Self {
            size,
            // CAST: surfaces fit the memory of the program.
            pixels: vec![0; size.pixels() as usize],
        }
    }

    /// Takes over the bytes of a surface, as the engine writes them.
    pub(crate) fn from_bytes(size: Size, bytes: &[u8]) -> Self {
        let pixel = |bytes: &[u8]| match *bytes {
            [b, g, r, a] => u32::from_le_bytes([b, g, r, a]),
            _ => 0,
        };
        Self {
            size,
            pixels: bytes.chunks_exact(4).map(pixel).collect(),
        }
    }

    /// Returns the bytes, as the engine reads them.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.pixels.iter().flat_map(|p| p.to_le_bytes()).collect()
    }

    /// Returns width and height.
    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Returns the pixels, row after row.
    pub(crate) fn pixels(&self) -> &[u32] {
        &self.pixels
    }

    /// Returns row `y`.
    pub(crate) fn row_mut(&mut self, y: u32) -> &mut [u32] {
        let range = self.row_range(0, y, self.size.width);
        &mut self.pixels[range]
    }

    /// Returns where `width` pixels at a place are among all pixels.
    fn row_range(&self, x: u32, y: u32, width: u32) -> std::ops::Range<usize> {
        // CAST: a place in the memory of the program.
        let start = y as usize * self.size.width as usize + x as usize;
        start..start + width as usize
    }

    /// FILL: every pixel of the rectangle becomes `pixel`.
    pub(crate) fn fill(&mut self, rectangle: Rectangle, pixel: u32) {
        for y in rectangle.y..rectangle.y + rectangle.size.height {
            let range = self.row_range(rectangle.x, y, rectangle.size.width);
            self.pixels[range].fill(pixel);
        }
    }

    /// BLEND: lays the rectangle of `source` over this surface at `x`, `y`.
    pub(crate) fn blend(&mut self, x: u32, y: u32, source: &Self, rectangle: Rectangle) {
        for row in 0..rectangle.size.height {
            let width = rectangle.size.width;
            let to = self.row_range(x, y + row, width);
            let from = source.row_range(rectangle.x, rectangle.y + row, width);
            let pixels = self.pixels[to].iter_mut().zip(&source.pixels[from]);
            for (pixel, over) in pixels {
                *pixel = blend(*pixel, *over);
            }
        }
    }

    /// Returns the part of this size with the most to be seen: much that is opaque, much that changes.
    pub(crate) fn richest(&self, size: Size) -> Rectangle {
        let at = |x, y| Rectangle { x, y, size };
        let starts = |whole: u32, part: u32| {
            let last = whole.saturating_sub(part);
            // CAST: a step of at least one.
            (0..=last).step_by((part as usize / 2).max(1))
        };
        let rows = starts(self.size.height, size.height);
        let places = rows.flat_map(|y| starts(self.size.width, size.width).map(move |x| (x, y)));
        let mut best = (0, at(0, 0));
        for (x, y) in places {
            let richness = self.richness(at(x, y));
            if richness > best.0 {
                best = (richness, at(x, y));
            }
        }
        best.1
    }

    /// Weighs what a sixteenth of the pixels of a rectangle shows.
    fn richness(&self, rectangle: Rectangle) -> u32 {
        let mut richness = 0;
        for y in (rectangle.y..rectangle.y + rectangle.size.height).step_by(4) {
            let range = self.row_range(rectangle.x, y, rectangle.size.width);
            let mut before = 0;
            for &pixel in self.pixels[range].iter().step_by(4) {
                let [_, green, _, alpha] = pixel.to_le_bytes();
                richness += u32::from(alpha) + u32::from(green.abs_diff(before));
                before = green;
            }
        }
        richness
    }

    /// Returns the number of pixels that differ, and where the first of them is.
    pub(crate) fn differences(&self, other: &Self) -> (u64, Option<(u32, u32)>) {
        let pairs = self.pixels.iter().zip(&other.pixels);
        let mut differing = (0u64..).zip(pairs).filter(|(_, (a, b))| a != b);
        let Some((first, _)) = differing.next() else {
            return (0, None);
        };
        let width = u64::from(self.size.width);
        // CAST: both are smaller than a side of the surface.
        let place = ((first % width) as u32, (first / width) as u32);
        (1 + differing.count() as u64, Some(place))
    }
}

/// The formula of BLEND for one pixel: for each of the four bytes
/// `d = min(255, s + (d * (255 - alpha of s) + 127) / 255)`.
pub(crate) fn blend(below: u32, over: u32) -> u32 {
    let rest = 255 - (over >> 24);
    let channel = |shift: u32| {
        let d = (below >> shift) & 0xff;
        let s = (over >> shift) & 0xff;
        (s + (d * rest + 127) / 255).min(255) << shift
    };
    channel(0) | channel(8) | channel(16) | channel(24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opaque_pixel_replaces_what_is_below() {
        assert_eq!(blend(0xff12_3456, 0xffab_cdef), 0xffab_cdef);
    }

    #[test]
    fn transparent_pixel_changes_nothing() {
        assert!((0..=255).all(|d| blend(d * 0x0101_0101, 0) == d * 0x0101_0101));
    }

    #[test]
    fn half_transparent_pixel_is_rounded_to_the_nearest() {
        // 0x40 + (0x80 * 127 + 127) / 255 = 0x40 + 64.
        assert_eq!(blend(0xff80_8080, 0x8040_4040), 0xff80_8080);
        // 1 * 254 + 127 = 381, 381 / 255 = 1.
        assert_eq!(blend(0x0000_0001, 0x0100_0000), 0x0100_0001);
        // 1 * 127 + 127 = 254, 254 / 255 = 0.
        assert_eq!(blend(0x0000_0001, 0x8000_0000), 0x8000_0000);
    }

    #[test]
    fn sum_beyond_a_byte_is_cut() {
        // Not a premultiplied pixel: colour without alpha.
        assert_eq!(blend(0xff80_8080, 0x00ff_0001), 0xffff_8081);
    }

    #[test]
    fn opaque_picture_stays_opaque() {
        let stays = |alpha: u32| blend(0xff00_0000, alpha << 24) >> 24 == 0xff;
        assert!((0..=255).all(stays));
    }

    #[test]
    fn rectangles_touch_nothing_beside_them() {
        let size = Size {
            width: 4,
            height: 3,
        };
        let inner = Rectangle {
            x: 1,
            y: 1,
            size: Size {
                width: 2,
                height: 1,
            },
        };
        let mut below = Surface::new(size);
        let mut over = Surface::new(size);

        over.fill(inner, 0xff00_00ff);
        below.blend(2, 2, &over, inner);

        let mut expected = Surface::new(size);
        expected.pixels[10] = 0xff00_00ff;
        expected.pixels[11] = 0xff00_00ff;
        assert_eq!(below, expected);
        assert_eq!(inner.offset(size), 20);
    }

    #[test]
    fn differences_are_counted_and_the_first_is_named() {
        let size = Size {
            width: 4,
            height: 3,
        };
        let mut other = Surface::new(size);
        other.pixels[6] = 1;
        other.pixels[9] = 1;

        assert_eq!(Surface::new(size).differences(&other), (2, Some((2, 1))));
        assert_eq!(other.differences(&other.clone()), (0, None));
    }

    #[test]
    fn richest_part_is_where_something_is() {
        let size = Size {
            width: 64,
            height: 64,
        };
        let part = Size {
            width: 16,
            height: 16,
        };
        let mut surface = Surface::new(size);
        surface.fill(
            Rectangle {
                x: 40,
                y: 24,
                size: part,
            },
            0xffff_ffff,
        );

        let richest = surface.richest(part);

        assert_eq!((richest.x, richest.y), (40, 24));
        assert_eq!(Surface::new(size).richest(part).x, 0);
    }

    #[test]
    fn bytes_are_little_endian_and_come_back() {
        let size = Size {
            width: 1,
            height: 1,
        };
        let surface = Surface {
            size,
            pixels: vec![0x1122_3344],
        };

        assert_eq!(surface.to_bytes(), [0x44, 0x33, 0x22, 0x11]);
        assert_eq!(Surface::from_bytes(size, &surface.to_bytes()), surface);
    }
}
