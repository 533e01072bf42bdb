// SPDX-License-Identifier: GPL-2.0

//! Colours: a few palettes that look well together, and how colours are mixed.
//!
//! All arithmetic is on integers, so that a seed gives the same pixels on every machine.

use super::random::Random;

/// Colours of one picture, as 0xRRGGBB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    /// The background, from top to bottom.
    pub(crate) background: [u32; 2],
    /// The colours of the textures.
    pub(crate) inks: [u32; 6],
}

/// All palettes.
const PALETTES: [Palette; 4] = [
    Palette {
        background: [0x0c0f2a, 0x2a1745],
        inks: [0xff5e5b, 0xffb84d, 0x7f5af0, 0x2cb67d, 0x3da9fc, 0xf5f0ff],
    },
    Palette {
        background: [0x031a24, 0x0b3b46],
        inks: [0x00c2d1, 0x2dd4bf, 0xf9c74f, 0xff7b54, 0x7bdff2, 0xf4fff8],
    },
    Palette {
        background: [0x160a1f, 0x400f2c],
        inks: [0xff4d6d, 0xff8500, 0xffd166, 0xc77dff, 0x4cc9f0, 0xfff3e6],
    },
    Palette {
        background: [0x101820, 0x1d2f3f],
        inks: [0xfee715, 0x5bc8af, 0xe85d75, 0x6c8ef5, 0xf2a65a, 0xf7f7ff],
    },
];

impl Palette {
    /// Returns the palette of a seed.
    pub(crate) fn of(random: &mut Random) -> Self {
        random.pick(&PALETTES)
    }

    /// Returns two different inks.
    pub(crate) fn pair(&self, random: &mut Random) -> [u32; 2] {
        let first = random.within(0..6);
        let second = (first + random.within(1..6)) % 6;
        // CAST: both are 0 to 5.
        [self.inks[first as usize], self.inks[second as usize]]
    }
}

/// Returns the colour `part` of 256 on the way from `from` to `to`.
pub(crate) fn mix(from: u32, to: u32, part: u32) -> u32 {
    let part = part.min(256);
    let channel = |shift: u32| {
        let (a, b) = ((from >> shift) & 0xff, (to >> shift) & 0xff);
        ((a * (256 - part) + b * part) >> 8) << shift
    };
    channel(0) | channel(8) | channel(16)
}

/// Returns the premultiplied pixel of a colour and an alpha of at most 255.
pub(crate) fn pixel(colour: u32, alpha: u32) -> u32 {
    let alpha = alpha.min(255);
    let channel = |shift: u32| ((((colour >> shift) & 0xff) * alpha + 127) / 255) << shift;
    (alpha << 24) | channel(0) | channel(8) | channel(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_reaches_both_ends() {
        assert_eq!(mix(0x123456, 0xabcdef, 0), 0x123456);
        assert_eq!(mix(0x123456, 0xabcdef, 256), 0xabcdef);
        assert_eq!(mix(0x000000, 0xffffff, 999), 0xffffff);
    }

    #[test]
    fn no_channel_of_a_pixel_exceeds_its_alpha() {
        let fits = |alpha| pixel(0xffffff, alpha) == alpha * 0x0101_0101;
        assert!((0..=255).all(fits));
        assert_eq!(pixel(0x0080ff, 255), 0xff00_80ff);
    }

    #[test]
    fn pair_has_two_colours() {
        let mut random = Random::new(3);
        let palette = Palette::of(&mut random);

        for _ in 0..100 {
            let [first, second] = palette.pair(&mut random);
            assert_ne!(first, second);
        }
    }
}
