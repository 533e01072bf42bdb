// SPDX-License-Identifier: GPL-2.0

//! Cutting and joining: how mappings change under a request that was found good.

use core::borrow::{
    Borrow,
    BorrowMut, //
};
use core::ops::Range;

use super::super::range_tree::{
    link,
    Tree, //
};
use super::slot::{
    Content,
    Mapping,
    Slot, //
};
use super::Space;

impl<S, T> Space<S, T>
where
    S: Borrow<[Slot<T>]> + BorrowMut<[Slot<T>]>,
{
    /// Returns the tree of the mappings in a reservation, or of everything outside.
    pub(super) fn tree(&self, reservation: u32) -> Tree {
        self.reservation(reservation)
            .map_or(self.areas, |reservation| reservation.inner)
    }

    /// Changes that tree.
    pub(super) fn change_tree(
        &mut self,
        reservation: u32,
        what: impl FnOnce(&mut Tree, &mut [Slot<T>]),
    ) {
        let mut tree = self.tree(reservation);
        what(&mut tree, self.slots.all_mut());
        match self.slots.content_mut(reservation) {
            Some(Content::Reservation(reservation)) => reservation.inner = tree,
            _ => self.areas = tree,
        }
    }

    /// Puts a mapping into a slot and into its tree, not into a ring.
    pub(super) fn put(&mut self, range: Range<u64>, mapping: Mapping) -> Option<u32> {
        let reservation = mapping.reservation;
        let slot = Slot::of(range, Content::Mapping(mapping));
        let at = self.slots.put(slot)?;
        self.change_tree(reservation, |tree, slots| tree.insert(slots, at));
        Some(at)
    }

    /// Takes a mapping out of its tree, its ring and its slot.
    pub(super) fn remove(&mut self, reservation: u32, at: u32) {
        self.change_tree(reservation, |tree, slots| tree.remove(slots, at));
        self.slots.leave_ring(at);
        self.slots.take(at);
    }

    /// Cuts the addresses of a mapping down to `range`.
    pub(super) fn cut(&mut self, reservation: u32, at: u32, range: Range<u64>) {
        let skip = self
            .range(at)
            .map_or(0, |old| range.start.saturating_sub(old.start));
        if let Some(Content::Mapping(mapping)) = self.slots.content_mut(at) {
            mapping.offset = mapping.offset.saturating_add(skip);
        }
        self.change_tree(reservation, |tree, slots| tree.resize(slots, at, range));
    }

    /// Removes what mappings of a reservation, or outside of all, show in `range`. Takes one slot at
    /// most.
    pub(super) fn carve(&mut self, reservation: u32, range: &Range<u64>) {
        loop {
            let tree = self.tree(reservation);
            let Some(at) = tree.at_or_behind(self.slots.all(), range.start) else {
                return;
            };
            let Some(old) = self.range(at).filter(|old| old.start < range.end) else {
                return;
            };
            if old.start >= range.start && old.end <= range.end {
                self.remove(reservation, at);
                continue;
            }
            if old.start >= range.start {
                self.cut(reservation, at, range.end..old.end);
                return;
            }
            self.cut(reservation, at, old.start..range.start);
            if old.end > range.end {
                self.put_rest(at, range.end..old.end, range.end.saturating_sub(old.start));
            }
        }
    }

    /// Makes a mapping of the rest of the one at `at`, `skip` bytes behind its beginning.
    fn put_rest(&mut self, at: u32, range: Range<u64>, skip: u64) {
        let Some(&mapping) = self.slots.get(at).and_then(Slot::mapping) else {
            return;
        };
        let rest = Mapping {
            offset: mapping.offset.saturating_add(skip),
            ..mapping
        };
        if let Some(new) = self.put(range, rest) {
            self.slots.join_ring(at, new);
        }
    }

    /// Makes the mapping `at` and those that it continues, or that continue it, one.
    pub(super) fn join(&mut self, reservation: u32, at: u32) {
        let Some(&here) = link(self.slots.all(), at) else {
            return;
        };
        if self.continues(at, here.next()) {
            let end = self.range(here.next()).map_or(here.end, |next| next.end);
            self.remove(reservation, here.next());
            self.cut(reservation, at, here.start..end);
        }
        if self.continues(here.prev(), at) {
            let end = self.range(at).map_or(here.end, |here| here.end);
            let start = self
                .range(here.prev())
                .map_or(here.start, |prev| prev.start);
            self.remove(reservation, at);
            self.cut(reservation, here.prev(), start..end);
        }
    }

    /// Returns whether the mapping `second` shows what follows the mapping `first`, right behind it
    /// and in the same range.
    pub(super) fn continues(&self, first: u32, second: u32) -> bool {
        let slots = self.slots.all();
        let ranges = (link(slots, first), link(slots, second));
        let mapping = |at| self.slots.get(at).and_then(Slot::mapping);
        let (Some(before), Some(behind)) = ranges else {
            return false;
        };
        let (Some(first), Some(second)) = (mapping(first), mapping(second)) else {
            return false;
        };
        let bytes = before.end.saturating_sub(before.start);
        before.end == behind.start
            && first.owner == second.owner
            && first.rights == second.rights
            && first.colour == second.colour
            && first.offset.checked_add(bytes) == Some(second.offset)
    }
}
