// SPDX-License-Identifier: GPL-2.0

//! How the picture of a primary lies in its memory.
//!
//! A primary is made for one picture: lines of pixels, one after the other, each line `pitch` bytes
//! behind the one before it. Whoever asks for one may leave the pitch to us. A picture that would reach
//! beyond its memory is refused when it is asked for, so nobody who shows it has to look again.

/// How the bytes of a pixel lie, by the four-character codes of `drm_fourcc.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The code.
    pub code: u32,
    /// Bytes of a pixel.
    pub bytes: u32,
}

/// The formats that are known, and the bytes of their pixels.
const FORMATS: [(&[u8; 4], u32); 11] = [
    (b"XR24", 4),
    (b"AR24", 4),
    (b"XB24", 4),
    (b"AB24", 4),
    (b"XR30", 4),
    (b"AR30", 4),
    (b"XB30", 4),
    (b"AB30", 4),
    (b"RG16", 2),
    (b"XB4H", 8),
    (b"AB4H", 8),
];

impl Format {
    /// Returns the format with this code.
    pub fn from_code(code: u32) -> Option<Self> {
        FORMATS
            .iter()
            .find(|(name, _)| u32::from_le_bytes(**name) == code)
            .map(|&(_, bytes)| Self { code, bytes })
    }
}

/// A picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Pixels of a line.
    pub width: u32,
    /// Lines.
    pub height: u32,
    /// Bytes from line to line; 0 in what is asked for means as few as possible.
    pub pitch: u32,
    /// How pixels lie.
    pub format: Format,
}

/// Why there is no such picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPicture {
    /// It has no pixels.
    Empty,
    /// Lines overlap, begin at places that are not aligned, or are too long.
    Pitch,
    /// It is larger than its memory.
    Size,
}

impl Picture {
    /// Returns the picture with its pitch if it fits into `bytes` of memory and its lines begin at
    /// multiples of `align`.
    ///
    /// # Errors
    ///
    /// [`BadPicture`].
    pub fn lay_out(self, align: u32, bytes: u64) -> Result<Self, BadPicture> {
        if self.width == 0 || self.height == 0 {
            return Err(BadPicture::Empty);
        }
        let least = self
            .width
            .checked_mul(self.format.bytes)
            .and_then(|line| line.checked_next_multiple_of(align))
            .ok_or(BadPicture::Pitch)?;
        let pitch = match self.pitch {
            0 => least,
            pitch => pitch,
        };
        // Both are multiples of `align`, so an aligned pitch that holds the line is not below `least`.
        if pitch < least || pitch.checked_rem(align) != Some(0) {
            return Err(BadPicture::Pitch);
        }
        let whole = u64::from(pitch).saturating_mul(self.height.into());
        if whole > bytes {
            return Err(BadPicture::Size);
        }
        Ok(Self { pitch, ..self })
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_picture))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    fn wanted(width: u32, height: u32, pitch: u32) -> Picture {
        Picture {
            width,
            height,
            pitch,
            format: Format {
                code: u32::from_le_bytes(*b"XR24"),
                bytes: 4,
            },
        }
    }

    fn pitch(wanted: Picture, bytes: u64) -> Result<u32, BadPicture> {
        wanted.lay_out(64, bytes).map(|picture| picture.pitch)
    }

    #[test]
    fn codes_are_found_and_others_are_not() {
        let code = u32::from_le_bytes(*b"RG16");
        assert_eq!(Format::from_code(code), Some(Format { code, bytes: 2 }));
        assert_eq!(Format::from_code(0), None);
        assert_eq!(Format::from_code(u32::from_le_bytes(*b"rg16")), None);
    }

    #[test]
    fn least_pitch_is_chosen() {
        assert_eq!(pitch(wanted(1, 1, 0), 64), Ok(64));
        assert_eq!(pitch(wanted(16, 1, 0), 64), Ok(64));
        assert_eq!(pitch(wanted(17, 1, 0), 128), Ok(128));
    }

    #[test]
    fn pitch_must_hold_a_line_and_be_aligned() {
        assert_eq!(pitch(wanted(32, 1, 128), 128), Ok(128));
        assert_eq!(pitch(wanted(32, 1, 192), 192), Ok(192));
        for bad in [64, 127, 129, 160] {
            assert_eq!(pitch(wanted(32, 1, bad), 4096), Err(BadPicture::Pitch));
        }
    }

    #[test]
    fn exact_size_fits_and_a_byte_less_does_not() {
        assert_eq!(pitch(wanted(32, 8, 0), 1024), Ok(128));
        assert_eq!(pitch(wanted(32, 8, 0), 1023), Err(BadPicture::Size));
    }

    #[test]
    fn nothing_wraps() {
        let most = u32::MAX;
        let long = wanted(most, 1, 0);
        assert_eq!(pitch(long, u64::MAX), Err(BadPicture::Pitch));
        let longest = wanted(most / 4, 1, 0);
        assert_eq!(pitch(longest, u64::MAX), Err(BadPicture::Pitch));
        let high = wanted(1 << 20, most, 1 << 22);
        assert_eq!(pitch(high, u64::from(most)), Err(BadPicture::Size));
        assert_eq!(pitch(high, u64::MAX), Ok(1 << 22));
    }

    #[test]
    fn no_pixels_are_no_picture() {
        assert_eq!(pitch(wanted(0, 1, 64), 64), Err(BadPicture::Empty));
        assert_eq!(pitch(wanted(1, 0, 64), 64), Err(BadPicture::Empty));
    }
}
