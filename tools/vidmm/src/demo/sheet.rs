// SPDX-License-Identifier: GPL-2.0

//! The sheet in the lower part of a picture, with a detail of every texture.

use super::palette::{
    mix,
    pixel,
    Palette, //
};
use super::scene::{
    Step,
    Target, //
};
use super::surface::{
    Rectangle,
    Size,
    Surface, //
};

/// The lower part of the picture: a row or more of equal squares, one for each texture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sheet {
    picture: Size,
    /// Rows of the picture that the sheet takes.
    height: u32,
    columns: u32,
    /// Distance of two squares.
    pitch: u32,
}

/// Pixels between two squares, and around all of them.
const GAP: u32 = 4;

impl Sheet {
    /// Plans a sheet of `count` squares in about a quarter of the picture.
    pub(super) fn new(picture: Size, count: usize) -> Self {
        // CAST: there are far fewer textures.
        let count = count as u32;
        let width = picture.width.saturating_sub(GAP).max(1);
        let height = picture.height / 4;
        let fits = |pitch: &u32| {
            let columns = (width / pitch).max(1);
            count.div_ceil(columns) * pitch + 2 * GAP <= height
        };
        // The largest squares that fit, but not so small that nothing is left of them.
        let pitch = (GAP + 2..=width.min(256)).rev().find(fits);
        let pitch = pitch.unwrap_or(GAP + 2);
        let columns = (width / pitch).clamp(1, count.max(1));
        let rows = count.div_ceil(columns);
        Self {
            picture,
            height: (rows * pitch + 2 * GAP).min(picture.height / 2),
            columns,
            pitch,
        }
    }

    /// Returns the size of the part above the sheet.
    pub(super) fn above(self) -> Size {
        Size {
            width: self.picture.width,
            height: self.picture.height - self.height,
        }
    }

    /// Fills the sheet with a dark colour.
    pub(super) fn background(self, palette: &Palette) -> Option<Step> {
        (self.height > 0).then(|| Step::Fill {
            target: Target::Picture,
            rectangle: Rectangle {
                x: 0,
                y: self.picture.height - self.height,
                size: Size {
                    width: self.picture.width,
                    height: self.height,
                },
            },
            pixel: pixel(mix(palette.background[0], 0, 128), 255),
        })
    }

    /// Returns the side of a square.
    fn side(self) -> u32 {
        self.pitch - GAP
    }

    /// Returns the part of a texture that its square shows.
    pub(super) fn detail(self, texture: &Surface) -> Rectangle {
        let Size { width, height } = texture.size();
        texture.richest(Size {
            width: self.side().min(width).min(self.picture.width),
            height: self.side().min(height).min(self.picture.height),
        })
    }

    /// Returns where the square with this number lies. In a picture too small for all of them the
    /// last ones lie on top of each other.
    pub(super) fn place(self, number: usize) -> (u32, u32) {
        // CAST: there are far fewer textures.
        let number = number as u32;
        let used = self.columns * self.pitch - GAP;
        let margin = self.picture.width.saturating_sub(used) / 2;
        let x = margin + number % self.columns * self.pitch;
        let y =
            self.picture.height - self.height + 3 * GAP / 2 + number / self.columns * self.pitch;
        (
            x.min(self.picture.width.saturating_sub(self.side())),
            y.min(self.picture.height.saturating_sub(self.side())),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PICTURE: Size = Size {
        width: 1024,
        height: 768,
    };

    #[test]
    fn squares_do_not_overlap() {
        let sheet = Sheet::new(PICTURE, 84);
        let mut places: Vec<_> = (0..84).map(|number| sheet.place(number)).collect();

        places.dedup();
        assert_eq!(places.len(), 84);
        for pair in places.windows(2) {
            let [(x, y), (next_x, next_y)] = [pair[0], pair[1]];
            assert!(next_x >= x + sheet.side() || next_y >= y + sheet.side());
        }
    }

    #[test]
    fn sheet_takes_a_quarter_at_most() {
        for count in [1, 7, 84, 300] {
            let sheet = Sheet::new(PICTURE, count);
            assert!(sheet.above().height >= PICTURE.height * 3 / 4);
        }
    }

    #[test]
    fn few_textures_get_large_squares() {
        assert!(Sheet::new(PICTURE, 4).side() > 150);
    }
}
