// SPDX-License-Identifier: GPL-2.0

//! Textures: surfaces drawn from random numbers, one motif each, transparent where nothing is.
//!
//! A motif sees a square of 2048 units a side with the origin in the middle, whatever the size of the
//! texture: `u` to the right and `v` downwards go from -1024 to 1023.

use super::palette::{
    mix,
    pixel,
    Palette, //
};
use super::random::Random;
use super::surface::{
    blend,
    Size,
    Surface, //
};

/// Half of a side in units.
const HALF: i32 = 1024;
/// The square of it.
const HALF_SQUARED: i32 = HALF * HALF;

/// What a texture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motif {
    /// A soft light.
    Glow,
    /// Blobs with hard colours inside and soft edges.
    Plasma,
    /// Rings that get narrower to the outside.
    Rings,
    /// Waving threads.
    Ribbons,
    /// Symmetric signs made of dots.
    Glyphs,
    /// Shaded balls.
    Balls,
}

impl Motif {
    /// All motifs, from the background of a picture to its foreground.
    pub(crate) const ALL: [Self; 6] = [
        Self::Glow,
        Self::Plasma,
        Self::Rings,
        Self::Ribbons,
        Self::Glyphs,
        Self::Balls,
    ];
}

/// A texture that is to be drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Texture {
    pub(crate) size: Size,
    pub(crate) motif: Motif,
    /// The two colours that it is made of.
    pub(crate) inks: [u32; 2],
    seed: u64,
}

impl Texture {
    /// Describes the texture with this number.
    pub(crate) fn new(size: Size, motif: Motif, palette: &Palette, random: &mut Random) -> Self {
        Self {
            size,
            motif,
            inks: palette.pair(random),
            seed: random.next(),
        }
    }

    /// Draws the texture.
    pub(crate) fn draw(&self) -> Surface {
        let mut random = Random::new(self.seed);
        match self.motif {
            Motif::Glow => self.shade(|u, v| self.glow(u, v)),
            Motif::Plasma => {
                let phases = [(); 4].map(|()| random.within(0..WAVE));
                self.shade(|u, v| self.plasma(phases, u, v))
            }
            Motif::Ribbons => self.ribbons(&mut random),
            Motif::Rings => {
                let phase = random.within(0..WAVE);
                let width = random.within(9..12);
                self.shade(|u, v| self.rings(phase, width, u, v))
            }
            Motif::Balls => {
                let balls = [(); 5].map(|()| Ball::new(&mut random));
                self.shade(|u, v| self.balls(&balls, u, v))
            }
            Motif::Glyphs => {
                let signs = [(); 16].map(|()| Sign::new(&mut random));
                self.shade(|u, v| self.glyphs(&signs, u, v))
            }
        }
    }

    /// Makes a surface of what `pixel` returns for each place.
    fn shade(&self, pixel: impl Fn(i32, i32) -> u32) -> Surface {
        let mut surface = Surface::new(self.size);
        let columns: Vec<_> = (0..self.size.width)
            .map(|x| coordinate(x, self.size.width))
            .collect();
        for y in 0..self.size.height {
            let v = coordinate(y, self.size.height);
            for (place, &u) in surface.row_mut(y).iter_mut().zip(&columns) {
                *place = pixel(u, v);
            }
        }
        surface
    }

    fn glow(&self, u: i32, v: i32) -> u32 {
        let distance = u * u + v * v;
        if distance >= HALF_SQUARED {
            return 0;
        }
        let light = unsigned(HALF_SQUARED - distance) >> 10;
        let colour = mix(self.inks[0], self.inks[1], unsigned(distance) >> 12);
        pixel(colour, (light * light) >> 13)
    }

    fn plasma(&self, phases: [i32; 4], u: i32, v: i32) -> u32 {
        let height = wave(u / 6 + phases[0])
            + wave(v / 5 + phases[1])
            + wave((u + v) / 9 + phases[2])
            + wave((u * u + v * v) / 4096 + phases[3]);
        let edge = (HALF - u.abs()).min(HALF - v.abs()).min(256);
        let depth = (height - 560).clamp(0, 160) * edge / 256;
        if depth == 0 {
            return 0;
        }
        let colour = mix(self.inks[0], self.inks[1], unsigned(height - 560));
        pixel(colour, unsigned(depth) * 5 / 4)
    }

    fn rings(&self, phase: i32, width: i32, u: i32, v: i32) -> u32 {
        let distance = u * u + v * v;
        if distance >= HALF_SQUARED {
            return 0;
        }
        let crest = wave((distance >> width) + phase) - 150;
        if crest <= 0 {
            return 0;
        }
        let light = (HALF_SQUARED - distance) >> 12;
        let colour = mix(self.inks[1], self.inks[0], unsigned(distance) >> 12);
        pixel(colour, unsigned(crest * 2 * light.min(200)) >> 8)
    }

    fn balls(&self, balls: &[Ball], u: i32, v: i32) -> u32 {
        let shown = balls.iter().filter_map(|ball| ball.at(u, v));
        shown.fold(0, |below, (shade, alpha)| {
            let lit = mix(0xffffff, self.inks[0], 96 + shade);
            let dark = mix(self.inks[1], 0, 128);
            let colour = mix(lit, dark, shade.saturating_sub(64));
            blend(below, pixel(colour, alpha))
        })
    }

    fn glyphs(&self, signs: &[Sign; 16], u: i32, v: i32) -> u32 {
        // Four signs a side; each has seven places a side, of which the outer ones are empty.
        let (column, row) = (u + HALF, v + HALF);
        // CAST: coordinates are 0 to 2047 here.
        let sign = &signs[((row >> 9) * 4 + (column >> 9)) as usize];
        let (x, y) = ((column & 511) * 7, (row & 511) * 7);
        if !sign.has(x >> 9, y >> 9) {
            return 0;
        }
        let (dx, dy) = ((x & 511) - 256, (y & 511) - 256);
        let inside = 200 * 200 - (dx * dx + dy * dy);
        if inside <= 0 {
            return 0;
        }
        let colour = mix(self.inks[0], self.inks[1], unsigned(row) >> 3);
        pixel(colour, (unsigned(inside) >> 5).min(235))
    }

    /// Threads are drawn column by column, each as a few pixels around its middle.
    fn ribbons(&self, random: &mut Random) -> Surface {
        let mut surface = Surface::new(self.size);
        let middle = random.within(-300..300);
        let [slow, fast] = [random.within(9..14), random.within(4..7)];
        let [first, second] = [(); 2].map(|()| random.within(0..WAVE));
        for thread in 0..12 {
            let colour = mix(self.inks[0], self.inks[1], unsigned(thread) * 23);
            for x in 0..self.size.width {
                let u = coordinate(x, self.size.width);
                let swing = (wave(u / slow + first + thread * 6) - 128) * 3
                    + (wave(u / fast + second - thread * 4) - 128);
                let v = middle + (thread - 6) * 26 + swing;
                let fade = unsigned(HALF - u.abs()).min(256);
                self.thread(&mut surface, x, v, colour, fade);
            }
        }
        surface
    }

    /// Draws one column of a thread with its middle at `v`.
    fn thread(&self, surface: &mut Surface, x: u32, v: i32, colour: u32, fade: u32) {
        let height = i64::from(self.size.height);
        // In sixteenths of a pixel.
        let middle = (i64::from(v) + i64::from(HALF)) * height * 16 / i64::from(2 * HALF);
        for y in (middle / 16 - 2)..=(middle / 16 + 2) {
            let distance = (y * 16 + 8 - middle).unsigned_abs().min(32);
            // CAST: at most 32.
            let alpha = (32 - distance as u32) * 7 * fade / 256;
            match u32::try_from(y) {
                Ok(row) if y < height => {
                    // CAST: a place in a row.
                    let place = &mut surface.row_mut(row)[x as usize];
                    *place = blend(*place, pixel(colour, alpha));
                }
                _ => {}
            }
        }
    }
}

/// A shaded ball.
#[derive(Clone, Copy, Debug)]
struct Ball {
    u: i32,
    v: i32,
    radius: i32,
}

impl Ball {
    fn new(random: &mut Random) -> Self {
        let radius = random.within(70..300);
        let room = HALF - radius;
        Self {
            u: random.within(-room..room),
            v: random.within(-room..room),
            radius,
        }
    }

    /// Returns shade (0 is lit, 256 is dark) and alpha of the ball at a place, [`None`] beside it.
    fn at(&self, u: i32, v: i32) -> Option<(u32, u32)> {
        let (du, dv) = (u - self.u, v - self.v);
        let inside = self.radius * self.radius - (du * du + dv * dv);
        if inside <= 0 {
            return None;
        }
        let (lu, lv) = (du + self.radius / 3, dv + self.radius * 2 / 5);
        let from_light = (lu * lu + lv * lv) * 10 / (self.radius * self.radius / 16);
        let alpha = unsigned(inside / self.radius) * 24;
        Some((unsigned(from_light).min(256), alpha.min(240)))
    }
}

/// A symmetric sign of five by five dots.
#[derive(Clone, Copy, Debug)]
struct Sign(u32);

impl Sign {
    /// Makes a sign; six of ten are empty.
    fn new(random: &mut Random) -> Self {
        let dots = random.within(1..1 << 15);
        match random.within(0..10) {
            0..6 => Self(0),
            _ => Self(unsigned(dots)),
        }
    }

    /// Says whether there is a dot at this place, counted from the corner of the margin.
    fn has(self, x: i32, y: i32) -> bool {
        let (x, y) = (x - 1, y - 1);
        let inside = (0..5).contains(&x) && (0..5).contains(&y);
        // The right half mirrors the left one.
        inside && (self.0 >> (y * 3 + x.min(4 - x))) & 1 != 0
    }
}

/// Returns the unit coordinate of a pixel's middle on a side of this length.
fn coordinate(pixel: u32, length: u32) -> i32 {
    let middle = u64::from(2 * pixel + 1) * unsigned(HALF) as u64 / u64::from(length);
    // CAST: below 2048.
    middle as i32 - HALF
}

/// Returns a number that is not negative.
fn unsigned(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// Steps of one wave.
const WAVE: i32 = 256;

/// One wave of a sine, from 0 to 255 with 128 in the middle.
const SINE: [u8; WAVE as usize] = sine();

/// Returns the height of a wave, 0 to 255, at a step.
fn wave(step: i32) -> i32 {
    // CAST: `rem_euclid` gives 0 to 255.
    i32::from(SINE[step.rem_euclid(WAVE) as usize])
}

/// Computes [`SINE`] by the approximation of Bhaskara.
const fn sine() -> [u8; WAVE as usize] {
    let mut table = [0; WAVE as usize];
    let mut step = 0;
    while step < WAVE {
        let part = step % (WAVE / 2) * (WAVE / 2 - step % (WAVE / 2));
        // Half a wave has 128 steps: 5 * 128 * 128 / 4 = 20480.
        let height = 127 * 4 * part / (20480 - part);
        // CAST: the height is at most 127.
        table[step as usize] = if step < WAVE / 2 {
            (128 + height) as u8
        } else {
            (128 - height) as u8
        };
        step += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size {
        width: 64,
        height: 48,
    };

    fn texture(motif: Motif) -> Texture {
        let mut random = Random::new(7);
        let palette = Palette::of(&mut random);
        Texture::new(SIZE, motif, &palette, &mut random)
    }

    #[test]
    fn every_motif_draws_something_and_leaves_room() {
        for motif in Motif::ALL {
            let surface = texture(motif).draw();
            let drawn = surface.pixels().iter().filter(|&&p| p != 0).count();
            assert!(drawn > 0, "{motif:?} is empty");
            assert!(drawn < surface.pixels().len(), "{motif:?} is full");
        }
    }

    #[test]
    fn pixels_are_premultiplied() {
        let premultiplied = |pixel: &u32| {
            let [blue, green, red, alpha] = pixel.to_le_bytes();
            blue.max(green).max(red) <= alpha
        };
        for motif in Motif::ALL {
            let surface = texture(motif).draw();
            assert!(surface.pixels().iter().all(premultiplied), "{motif:?}");
        }
    }

    #[test]
    fn same_description_draws_the_same() {
        for motif in Motif::ALL {
            assert_eq!(texture(motif).draw(), texture(motif).draw());
        }
    }

    #[test]
    fn wave_is_a_sine() {
        assert_eq!(
            (wave(0), wave(64), wave(128), wave(192)),
            (128, 255, 128, 1)
        );
        assert_eq!(wave(-64), wave(192));
    }

    #[test]
    fn signs_are_symmetric() {
        let sign = Sign(0x5a5a);
        for y in 0..7 {
            assert_eq!(sign.has(1, y), sign.has(5, y));
            assert!(!sign.has(0, y) && !sign.has(6, y));
        }
    }
}
