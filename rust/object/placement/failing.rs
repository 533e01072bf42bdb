// SPDX-License-Identifier: GPL-2.0

//! Searches and moves that fail because a debug command asks for it (`inject fail`).

/// How many of them are still to fail.
#[derive(Default)]
pub(crate) struct Failing {
    places: u32,
    moves: u32,
}

impl Failing {
    /// Lets the next `count` searches for a place find none; replaces what is left of a count.
    pub(in crate::object) fn set_places(&mut self, count: u32) {
        self.places = count;
    }

    /// Lets the next `count` moves fail; replaces what is left of a count.
    pub(in crate::object) fn set_moves(&mut self, count: u32) {
        self.moves = count;
    }

    /// Returns whether a search would find nothing; the count stays.
    pub(super) fn has_place(&self) -> bool {
        self.places > 0
    }

    /// Returns whether the search that begins finds nothing.
    pub(super) fn takes_place(&mut self) -> bool {
        take(&mut self.places)
    }

    /// Returns whether the move that begins fails.
    pub(super) fn takes_move(&mut self) -> bool {
        take(&mut self.moves)
    }
}

fn take(count: &mut u32) -> bool {
    let left = count.checked_sub(1);
    *count = left.unwrap_or(0);
    left.is_some()
}
