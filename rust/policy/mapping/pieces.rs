// SPDX-License-Identifier: GPL-2.0

//! What is where: a walk over the ranges of a space in the order of addresses.

use core::ops::Range;

use super::super::range_tree::{
    link,
    NIL, //
};
use super::slot::{
    Mapping,
    Reservation,
    Slot, //
};
use super::{
    Kind,
    Owner,
    Rights, //
};

/// Addresses with the same attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The addresses.
    pub range: Range<u64>,
    /// The reservation in which they lie.
    pub reserved: Option<Kind>,
    /// What is mapped there.
    pub mapped: Option<Mapped>,
}

/// What is mapped at a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Whose memory.
    pub owner: Owner,
    /// Where in that memory the range begins.
    pub offset: u64,
    /// What engines may do.
    pub rights: Rights,
}

impl Mapped {
    /// Returns what a mapping shows from `skip` bytes behind its beginning on.
    pub(super) fn of(mapping: &Mapping, skip: u64) -> Self {
        Self {
            owner: Owner(mapping.owner),
            offset: mapping.offset.saturating_add(skip),
            rights: mapping.rights,
        }
    }
}

/// A walk over what lies in a window. Addresses where nothing is are left out.
pub struct Pieces<'a, T> {
    slots: &'a [Slot<T>],
    /// Where it goes on, and where it ends.
    window: Range<u64>,
    /// The next range outside of reservations, or the reservation in which it is.
    area: u32,
    /// The next mapping in that reservation.
    inner: u32,
}

impl<'a, T> Pieces<'a, T> {
    /// Begins at `area`, the first one that ends in the window or behind it.
    pub(super) fn new(slots: &'a [Slot<T>], window: Range<u64>, area: Option<u32>) -> Self {
        let mut new = Self {
            slots,
            window,
            area: area.unwrap_or(NIL),
            inner: NIL,
        };
        new.enter();
        new
    }

    fn slot(&self, at: u32) -> Option<&'a Slot<T>> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.slots.get(at as usize)
    }

    /// Looks for the next mapping inside of a reservation.
    fn enter(&mut self) {
        let reservation = self.slot(self.area).and_then(Slot::reservation);
        let inner = reservation.and_then(|reservation| {
            let tree = reservation.inner;
            tree.at_or_behind(self.slots, self.window.start)
        });
        self.inner = inner.unwrap_or(NIL);
    }

    /// Goes on to the range behind `area`.
    fn leave(&mut self) {
        self.area = link(self.slots, self.area).map_or(NIL, |area| area.next());
        self.enter();
    }

    /// Makes the piece that ends at `end` or at the end of the window, and goes on behind it.
    fn piece(&mut self, start: u64, end: u64) -> Option<Range<u64>> {
        let range = start.max(self.window.start)..end.min(self.window.end);
        if range.start >= range.end {
            return None;
        }
        self.window.start = range.end;
        Some(range)
    }

    /// Returns the next piece of the mapping `at`.
    fn mapping(&mut self, at: u32, reserved: Option<Kind>) -> Option<Piece> {
        let (area, mapping) = (link(self.slots, at)?, self.slot(at)?.mapping()?);
        let range = self.piece(area.start, area.end)?;
        let skip = range.start.saturating_sub(area.start);
        Some(Piece {
            range,
            reserved,
            mapped: Some(Mapped::of(mapping, skip)),
        })
    }

    /// Returns the next piece of a reservation, if there is one left.
    fn reserved(&mut self, reservation: Reservation, within: Range<u64>) -> Option<Piece> {
        let kind = Some(reservation.kind);
        let inner = link(self.slots, self.inner);
        let until = inner.map_or(within.end, |inner| inner.start);
        if let Some(range) = self.piece(within.start, until) {
            return Some(Piece {
                range,
                reserved: kind,
                mapped: None,
            });
        }
        let at = self.inner;
        self.inner = inner?.next();
        self.mapping(at, kind)
    }
}

impl<T> Iterator for Pieces<'_, T> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        while self.window.start < self.window.end {
            let area = link(self.slots, self.area)?.range();
            let found = match self.slot(self.area)?.reservation() {
                Some(reservation) => self.reserved(reservation, area),
                None => {
                    let found = self.mapping(self.area, None);
                    self.leave();
                    return found;
                }
            };
            if found.is_some() {
                return found;
            }
            self.leave();
        }
        None
    }
}
