// SPDX-License-Identifier: GPL-2.0

//! Reading and writing ranges of places, stretch by stretch.
//!
//! Every function here answers [`None`] when it meets a place outside of its segment; whoever needs
//! to know before the first byte is written asks [`Memory::contains`].

use super::memory::{
    Memory,
    Stretch, //
};
use crate::units::Place;

/// In which direction a range is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the lowest address on.
    Ascending,
    /// From the highest address on.
    Descending,
}

impl Direction {
    /// Returns the direction in which a destination does not overwrite a source that it overlaps
    /// before it is read; both are addresses as packets name them.
    pub(super) const fn safe(to: u64, from: u64) -> Self {
        if to <= from {
            Direction::Ascending
        } else {
            Direction::Descending
        }
    }
}

impl Memory {
    /// Calls `work` with each stretch of a range, in ascending order.
    fn each(&self, place: Place, bytes: u64, mut work: impl FnMut(Stretch)) -> Option<()> {
        let mut done = 0;
        while done < bytes {
            let stretch = self.stretch(place.forward(done), bytes - done)?;
            work(stretch);
            done += length(stretch);
        }
        Some(())
    }

    /// Fills a range with copies of `pattern`; place and length are multiples of 4.
    pub(super) fn fill(&self, place: Place, bytes: u64, pattern: u32) -> Option<()> {
        // A lone dword at the start is written by itself: the rest is aligned for the fast way.
        let lone = if place.offset % 8 == 0 {
            0
        } else {
            bytes.min(4)
        };
        self.each(place, lone, |stretch| {
            if let Stretch::Memory(window) = stretch {
                let _ = window.write32(0, pattern);
            }
        })?;
        self.each(place.forward(lone), bytes - lone, |stretch| {
            if let Stretch::Memory(window) = stretch {
                window.fill32(pattern);
            }
        })
    }

    /// Sets every byte of a range.
    pub(super) fn poison(&self, place: Place, bytes: u64, byte: u8) -> Option<()> {
        self.each(place, bytes, |stretch| {
            if let Stretch::Memory(window) = stretch {
                window.poison(byte);
            }
        })
    }

    /// Copies `bytes` bytes from `from` to `to`.
    ///
    /// Ranges that overlap come out as if all were read before anything is written, if `direction` is
    /// [`Direction::safe`] for them.
    pub(super) fn copy(
        &self,
        to: Place,
        from: Place,
        bytes: u64,
        direction: Direction,
    ) -> Option<()> {
        match direction {
            Direction::Ascending => self.copy_up(to, from, bytes),
            Direction::Descending => self.copy_down(to, from, bytes),
        }
    }

    /// Copies from the lowest address on.
    fn copy_up(&self, to: Place, from: Place, bytes: u64) -> Option<()> {
        let mut done = 0;
        while done < bytes {
            let target = self.stretch(to.forward(done), bytes - done)?;
            let source = self.stretch(from.forward(done), length(target))?;
            copy(target.first(source.len()), source)?;
            done += length(source);
        }
        Some(())
    }

    /// Copies from the highest address on.
    fn copy_down(&self, to: Place, from: Place, bytes: u64) -> Option<()> {
        let mut left = bytes;
        while left > 0 {
            let target = self.stretch_before(to.forward(left), left)?;
            let source = self.stretch_before(from.forward(left), length(target))?;
            copy(target.last(source.len()), source)?;
            left -= length(source);
        }
        Some(())
    }

    /// Reads a range.
    pub(super) fn read(&self, place: Place, to: &mut [u8]) -> Option<()> {
        let mut rest = to;
        let mut at = place;
        while !rest.is_empty() {
            // CAST: `usize` has 64 bits wherever this driver runs.
            let stretch = self.stretch(at, rest.len() as u64)?;
            let (part, behind) = rest.split_at_mut_checked(stretch.len())?;
            match stretch {
                Stretch::Memory(window) => window.read_into(part)?,
                Stretch::Dummy(_) => part.fill(0),
            }
            rest = behind;
            at = at.forward(length(stretch));
        }
        Some(())
    }

    /// Writes a range.
    pub(super) fn write(&self, place: Place, from: &[u8]) -> Option<()> {
        let mut rest = from;
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.each(place, from.len() as u64, |stretch| {
            if let Some((part, behind)) = rest.split_at_checked(stretch.len()) {
                if let Stretch::Memory(window) = stretch {
                    let _ = window.write_from(part);
                }
                rest = behind;
            }
        })
    }

    /// Continues a CRC-32C over a range.
    pub(super) fn crc32c(&self, place: Place, bytes: u64, seed: u32) -> Option<u32> {
        let mut sum = seed;
        self.each(place, bytes, |stretch| {
            sum = match stretch {
                Stretch::Memory(window) => window.crc32c(sum),
                Stretch::Dummy(bytes) => zeros(sum, bytes),
            };
        })?;
        Some(sum)
    }

    /// Reads the aligned 64-bit word at `place` once, before all later accesses.
    pub(super) fn load(&self, place: Place) -> Option<u64> {
        match self.stretch(place, 8)? {
            Stretch::Memory(window) => window.acquire64(0),
            Stretch::Dummy(_) => Some(0),
        }
    }

    /// Writes the aligned 64-bit word at `place` once, after all earlier accesses.
    pub(super) fn store(&self, place: Place, value: u64) -> Option<()> {
        match self.stretch(place, 8)? {
            Stretch::Memory(window) => window.release64(0, value),
            Stretch::Dummy(_) => Some(()),
        }
    }

    /// Adds to the aligned 64-bit word at `place` in one step; returns the old value.
    pub(super) fn add(&self, place: Place, value: u64) -> Option<u64> {
        match self.stretch(place, 8)? {
            Stretch::Memory(window) => window.fetch_add64(0, value),
            Stretch::Dummy(_) => Some(0),
        }
    }
}

/// Returns the length of a stretch as part of a range.
const fn length(stretch: Stretch) -> u64 {
    // CAST: `usize` has 64 bits wherever this driver runs.
    stretch.len() as u64
}

/// Copies between stretches of the same length.
fn copy(to: Stretch, from: Stretch) -> Option<()> {
    match (to, from) {
        (Stretch::Memory(to), Stretch::Memory(from)) => to.copy_from(&from),
        (Stretch::Memory(to), Stretch::Dummy(_)) => {
            to.zero();
            Some(())
        }
        (Stretch::Dummy(_), _) => Some(()),
    }
}

/// Continues a CRC-32C over so many zero bytes.
pub(super) fn zeros(seed: u32, bytes: usize) -> u32 {
    (0..bytes).fold(seed, |sum, _| {
        (0..8).fold(sum, |sum, _| {
            sum >> 1 ^ (sum & 1).wrapping_neg() & 0x82f6_3b78
        })
    })
}
