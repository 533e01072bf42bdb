// SPDX-License-Identifier: GPL-2.0

//! Scenes: which textures there are, and the steps that make a picture of them.
//!
//! A scene has two acts. In the first every texture is laid over the upper part of the picture, and
//! the GPU draws a frame into it, so that what the GPU wrote must be kept when the texture leaves the
//! segment. In the second a detail of every texture, with its frame, is laid into a sheet in the
//! lower part: whatever left has to come back with all that was written.
//!
//! The steps are the only description of the picture. The CPU and the GPU carry out the same ones.

use super::palette::{
    mix,
    pixel,
    Palette, //
};
use super::random::Random;
use super::sheet::Sheet;
use super::surface::{
    Rectangle,
    Size,
    Surface, //
};
use super::texture::{
    Motif,
    Texture, //
};

/// A surface of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The picture.
    Picture,
    /// The texture with this number.
    Texture(usize),
}

/// Something to be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A rectangle gets one colour.
    Fill {
        /// Where.
        target: Target,
        /// Which part of it.
        rectangle: Rectangle,
        /// The premultiplied pixel.
        pixel: u32,
    },
    /// A part of a texture is laid over the picture.
    Blend {
        /// Number of the texture.
        texture: usize,
        /// Which part of it.
        rectangle: Rectangle,
        /// Where its left column comes to lie in the picture.
        x: u32,
        /// Where its upper row comes to lie in the picture.
        y: u32,
    },
}

impl Step {
    /// Returns the texture that the step needs, if any.
    pub(crate) fn texture(&self) -> Option<usize> {
        match *self {
            Self::Fill {
                target: Target::Picture,
                ..
            } => None,
            Self::Fill {
                target: Target::Texture(texture),
                ..
            }
            | Self::Blend { texture, .. } => Some(texture),
        }
    }
}

/// A picture that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) picture: Size,
    pub(crate) textures: Vec<Texture>,
    pub(crate) steps: Vec<Step>,
}

/// Sides of textures in pixels. Each square is a whole number of pages.
const SIDES: [u32; 5] = [256, 320, 384, 448, 512];

/// How many of twenty textures show which motif, in the order of [`Motif::ALL`].
const SHARES: [usize; 6] = [5, 3, 3, 4, 2, 3];

/// Bands of colour in the background.
const BANDS: u32 = 96;

impl Scene {
    /// Makes the scene of a seed from textures, which look like `surfaces`, on a picture of this size.
    pub(crate) fn new(
        seed: u64,
        picture: Size,
        textures: Vec<Texture>,
        surfaces: &[Surface],
    ) -> Self {
        let palette = palette(seed);
        let sheet = Sheet::new(picture, textures.len());
        let details = surfaces.iter().map(|surface| sheet.detail(surface));
        let details: Vec<_> = details.collect();
        let mut steps = background(picture, &palette);
        for (number, (texture, detail)) in textures.iter().zip(&details).enumerate() {
            let mut random = Random::of_part(seed, (1 << 32) | number as u64);
            steps.extend(throw(number, texture.size, sheet.above(), &mut random));
            steps.extend(frame(number, *detail, pixel(texture.inks[0], 255)));
        }
        steps.extend(sheet.background(&palette));
        for (texture, rectangle) in details.into_iter().enumerate() {
            let (x, y) = sheet.place(texture);
            steps.push(Step::Blend {
                texture,
                rectangle,
                x,
                y,
            });
        }
        Self {
            picture,
            textures,
            steps,
        }
    }

    /// Returns the bytes of all textures.
    pub(crate) fn texture_bytes(&self) -> u64 {
        self.textures.iter().map(|t| t.size.bytes()).sum()
    }

    /// Returns the bytes of the largest texture.
    pub(crate) fn largest_texture(&self) -> u64 {
        let bytes = self.textures.iter().map(|t| t.size.bytes());
        bytes.max().unwrap_or(0)
    }
}

/// Returns the palette of a seed.
fn palette(seed: u64) -> Palette {
    Palette::of(&mut Random::of_part(seed, 0))
}

/// Returns the textures of a seed, of at least `bytes` bytes together, the background first.
pub(crate) fn textures(seed: u64, bytes: u64) -> Vec<Texture> {
    let palette = palette(seed);
    let mut random = Random::of_part(seed, 1);
    let mut sizes = Vec::new();
    let mut total = 0;
    while total < bytes || sizes.is_empty() {
        let side = random.pick(&SIDES);
        let size = Size {
            width: side,
            height: side,
        };
        total += size.bytes();
        sizes.push(size);
    }
    let count = sizes.len();
    let texture = |(number, size)| Texture::new(size, motif(number, count), &palette, &mut random);
    sizes.into_iter().enumerate().map(texture).collect()
}

/// Returns the motif of one of `count` textures.
fn motif(number: usize, count: usize) -> Motif {
    let all: usize = SHARES.iter().sum();
    let mut end = 0;
    for (motif, share) in Motif::ALL.into_iter().zip(SHARES) {
        end += share;
        if number * all < end * count {
            return motif;
        }
    }
    Motif::Balls
}

/// Covers the picture with bands that go from one colour to the other.
fn background(picture: Size, palette: &Palette) -> Vec<Step> {
    let bands = BANDS.min(picture.height);
    let [top, bottom] = palette.background;
    let band = |number: u32| {
        let start = picture.height * number / bands;
        let end = picture.height * (number + 1) / bands;
        Step::Fill {
            target: Target::Picture,
            rectangle: Rectangle {
                x: 0,
                y: start,
                size: Size {
                    width: picture.width,
                    height: end - start,
                },
            },
            pixel: pixel(mix(top, bottom, 256 * number / bands), 255),
        }
    };
    (0..bands).map(band).collect()
}

/// Lays a whole texture over some place of the upper part; what would lie outside is left out.
fn throw(texture: usize, size: Size, room: Size, random: &mut Random) -> Option<Step> {
    let (x, width) = overlap(size.width, room.width, random)?;
    let (y, height) = overlap(size.height, room.height, random)?;
    Some(Step::Blend {
        texture,
        rectangle: Rectangle {
            x: x.1,
            y: y.1,
            size: Size { width, height },
        },
        x: x.0,
        y: y.0,
    })
}

/// Picks where a texture lies along one side: starts in picture and texture, and the common length.
/// At least half of the texture is inside, unless it is larger than the room.
fn overlap(length: u32, room: u32, random: &mut Random) -> Option<((u32, u32), u32)> {
    let (length, room) = (i32::try_from(length).ok()?, i32::try_from(room).ok()?);
    let start = random.within(-length / 2..(room - length / 2).max(1 - length / 2));
    let end = (start + length).min(room);
    let inside = start.max(0);
    let common = u32::try_from(end - inside)
        .ok()
        .filter(|common| *common > 0)?;
    Some((
        (inside.unsigned_abs(), (inside - start).unsigned_abs()),
        common,
    ))
}

/// Draws four lines into a texture, around a part of it.
fn frame(texture: usize, around: Rectangle, pixel: u32) -> [Step; 4] {
    let Size { width, height } = around.size;
    let line = |x, y, width, height| Step::Fill {
        target: Target::Texture(texture),
        rectangle: Rectangle {
            x: around.x + x,
            y: around.y + y,
            size: Size { width, height },
        },
        pixel,
    };
    [
        line(0, 0, width, 1),
        line(0, height - 1, width, 1),
        line(0, 0, 1, height),
        line(width - 1, 0, 1, height),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_inside(rectangle: Rectangle, size: Size) -> bool {
        let Size { width, height } = rectangle.size;
        width > 0
            && height > 0
            && rectangle.x + width <= size.width
            && rectangle.y + height <= size.height
    }

    fn every_step_is_inside(scene: &Scene) {
        for step in &scene.steps {
            match *step {
                Step::Fill {
                    target, rectangle, ..
                } => {
                    let size = match target {
                        Target::Picture => scene.picture,
                        Target::Texture(texture) => scene.textures[texture].size,
                    };
                    assert!(is_inside(rectangle, size), "{step:?}");
                }
                Step::Blend {
                    texture,
                    rectangle,
                    x,
                    y,
                } => {
                    let size = rectangle.size;
                    assert!(is_inside(rectangle, scene.textures[texture].size));
                    assert!(
                        is_inside(Rectangle { x, y, size }, scene.picture),
                        "{step:?}"
                    );
                }
            }
        }
    }

    fn scene(seed: u64, (width, height): (u32, u32)) -> Scene {
        let textures = textures(seed, 5 << 20);
        let surfaces: Vec<_> = textures.iter().map(Texture::draw).collect();
        Scene::new(seed, Size { width, height }, textures, &surfaces)
    }

    #[test]
    fn steps_stay_inside_their_surfaces() {
        for size in [(1024, 768), (4, 4), (64, 2000), (3000, 16)] {
            every_step_is_inside(&scene(1, size));
            every_step_is_inside(&scene(2, size));
        }
    }

    #[test]
    fn textures_reach_the_size_asked_for_and_little_more() {
        let textures = textures(1, 48 << 20);

        let bytes: u64 = textures.iter().map(|t| t.size.bytes()).sum();
        assert!((48 << 20..49 << 20).contains(&bytes));
        assert!(textures.iter().all(|t| t.size.bytes() % 4096 == 0));
        assert!(Motif::ALL
            .iter()
            .all(|motif| textures.iter().any(|t| t.motif == *motif)));
    }

    #[test]
    fn every_texture_is_used_in_both_acts() {
        let scene = scene(1, (1024, 768));

        for number in 0..scene.textures.len() {
            let is_blend =
                |step: &&Step| matches!(step, Step::Blend { texture, .. } if *texture == number);
            assert_eq!(scene.steps.iter().filter(is_blend).count(), 2);
        }
    }
}
