// SPDX-License-Identifier: GPL-2.0

//! A range of addresses after translation: the parts of memory that it consists of.
//!
//! Translation comes before the first access (engine.md, order), so its result is a value: a short list
//! of places, with gaps where the range shows zeros. The functions here do to the list what those of
//! [`access`](super::access) do to one place, and answer [`None`] like them.

use super::{
    access::{
        zeros,
        Direction, //
    },
    memory::Memory, //
};
use crate::units::{
    Place,
    PAGE_BYTES, //
};

/// No translated range is longer than this.
pub(super) const LONGEST: u64 = 64 * 1024;

/// The most parts of a range: one for each page that it can touch.
// CAST: a small constant.
const MOST: usize = (LONGEST / PAGE_BYTES) as usize + 1;

/// A part of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Where it is; [`None`] where it reads as zero and swallows writes.
    pub(super) place: Option<Place>,
    /// How long it is.
    pub(super) bytes: u64,
}

impl Part {
    /// Returns the part from `skip` bytes on, at most `bytes` long.
    fn sub(self, skip: u64, bytes: u64) -> Self {
        Self {
            place: self.place.map(|place| place.forward(skip)),
            bytes: bytes.min(self.bytes.saturating_sub(skip)),
        }
    }
}

/// The parts of a range, in ascending order.
pub(super) struct Parts {
    parts: [Part; MOST],
    used: usize,
}

impl Parts {
    /// Returns a list without parts.
    pub(super) const fn new() -> Self {
        const NOTHING: Part = Part {
            place: None,
            bytes: 0,
        };
        Self {
            parts: [NOTHING; MOST],
            used: 0,
        }
    }

    /// Forgets all parts.
    pub(super) fn clear(&mut self) {
        self.used = 0;
    }

    /// Adds a part; one that continues the last makes it longer. Answers [`None`] if there are too many.
    pub(super) fn push(&mut self, part: Part) -> Option<()> {
        let last = self
            .used
            .checked_sub(1)
            .and_then(|last| self.parts.get_mut(last));
        if let Some(last) = last {
            if last.place.map(|place| place.forward(last.bytes)) == part.place {
                last.bytes = last.bytes.saturating_add(part.bytes);
                return Some(());
            }
        }
        *self.parts.get_mut(self.used)? = part;
        self.used += 1;
        Some(())
    }

    /// Returns the parts.
    fn parts(&self) -> &[Part] {
        self.parts.get(..self.used).unwrap_or(&[])
    }

    /// Returns the only part's place; for ranges that lie in one page.
    pub(super) fn first(&self) -> Option<Part> {
        self.parts().first().copied()
    }

    /// Returns the place of the byte `skip` bytes behind the start, which may be none.
    pub(super) fn place(&self, skip: u64) -> Option<Option<Place>> {
        self.clip(skip, 1).next().map(|part| part.place)
    }

    /// Returns the parts of `bytes` bytes from `skip` on.
    fn clip(&self, skip: u64, bytes: u64) -> impl Iterator<Item = Part> + '_ {
        let (mut skip, mut left) = (skip, bytes);
        self.parts().iter().filter_map(move |part| {
            let skipped = skip.min(part.bytes);
            skip -= skipped;
            let clipped = part.sub(skipped, left);
            left -= clipped.bytes;
            (clipped.bytes > 0).then_some(clipped)
        })
    }
}

impl Memory {
    /// Fills a range with copies of `pattern`.
    pub(super) fn fill_parts(&self, to: &Parts, pattern: u32) -> Option<()> {
        to.parts().iter().try_for_each(|part| match part.place {
            Some(place) => self.fill(place, part.bytes, pattern),
            None => Some(()),
        })
    }

    /// Copies a range to another one of the same length, from the end at which `direction` begins.
    pub(super) fn copy_parts(&self, to: &Parts, from: &Parts, direction: Direction) -> Option<()> {
        for (to, from) in Pairs::new(to.parts(), from.parts(), direction) {
            match (to.place, from.place) {
                (Some(to_place), Some(from_place)) => {
                    self.copy(to_place, from_place, to.bytes, direction)?;
                }
                (Some(to_place), None) => self.fill(to_place, to.bytes, 0)?,
                (None, _) => {}
            }
        }
        Some(())
    }

    /// Reads what lies `skip` bytes behind the start of a range.
    pub(super) fn read_parts(&self, from: &Parts, skip: u64, to: &mut [u8]) -> Option<()> {
        let mut rest = to;
        // CAST: `usize` has 64 bits wherever this driver runs.
        for part in from.clip(skip, rest.len() as u64) {
            // CAST: no longer than what is left.
            let (now, behind) = rest.split_at_mut_checked(part.bytes as usize)?;
            match part.place {
                Some(place) => self.read(place, now)?,
                None => now.fill(0),
            }
            rest = behind;
        }
        rest.is_empty().then_some(())
    }

    /// Writes what lies `skip` bytes behind the start of a range.
    pub(super) fn write_parts(&self, to: &Parts, skip: u64, from: &[u8]) -> Option<()> {
        let mut rest = from;
        // CAST: `usize` has 64 bits wherever this driver runs.
        for part in to.clip(skip, rest.len() as u64) {
            // CAST: no longer than what is left.
            let (now, behind) = rest.split_at_checked(part.bytes as usize)?;
            if let Some(place) = part.place {
                self.write(place, now)?;
            }
            rest = behind;
        }
        rest.is_empty().then_some(())
    }

    /// Continues a CRC-32C over a range.
    pub(super) fn crc32c_parts(&self, from: &Parts, seed: u32) -> Option<u32> {
        from.parts()
            .iter()
            .try_fold(seed, |sum, part| match part.place {
                Some(place) => self.crc32c(place, part.bytes, sum),
                // CAST: no longer than a range.
                None => Some(zeros(sum, part.bytes as usize)),
            })
    }
}

/// The parts of two ranges, cut alike, in one direction.
struct Pairs<'a> {
    to: Side<'a>,
    from: Side<'a>,
}

/// What is left of one range.
struct Side<'a> {
    /// Parts that are not begun.
    parts: &'a [Part],
    /// What is left of the one that is.
    part: Part,
    direction: Direction,
}

impl<'a> Side<'a> {
    /// Returns all of a range.
    fn new(parts: &'a [Part], direction: Direction) -> Self {
        Self {
            parts,
            part: Part {
                place: None,
                bytes: 0,
            },
            direction,
        }
    }

    /// Begins the next part if the last one is at its end; returns how much is left of it.
    fn left(&mut self) -> Option<u64> {
        if self.part.bytes == 0 {
            let (part, rest) = match self.direction {
                Direction::Ascending => self.parts.split_first()?,
                Direction::Descending => self.parts.split_last()?,
            };
            (self.part, self.parts) = (*part, rest);
        }
        Some(self.part.bytes)
    }

    /// Takes so much of the part that is begun.
    fn take(&mut self, bytes: u64) -> Part {
        let left = self.part.bytes.saturating_sub(bytes);
        let (taken, rest) = match self.direction {
            Direction::Ascending => (self.part.sub(0, bytes), self.part.sub(bytes, left)),
            Direction::Descending => (self.part.sub(left, bytes), self.part.sub(0, left)),
        };
        self.part = rest;
        taken
    }
}

impl<'a> Pairs<'a> {
    /// Returns the pairs of two ranges of the same length.
    fn new(to: &'a [Part], from: &'a [Part], direction: Direction) -> Self {
        Self {
            to: Side::new(to, direction),
            from: Side::new(from, direction),
        }
    }
}

impl Iterator for Pairs<'_> {
    type Item = (Part, Part);

    fn next(&mut self) -> Option<(Part, Part)> {
        let bytes = self.to.left()?.min(self.from.left()?);
        Some((self.to.take(bytes), self.from.take(bytes)))
    }
}
