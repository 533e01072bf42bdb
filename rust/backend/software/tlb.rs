// SPDX-License-Identifier: GPL-2.0

//! The translations that a node remembers.
//!
//! It keeps what walks through the page tables found, by root and page, until it is told to forget or
//! until there is no room: then the oldest one goes. It never looks whether the tables still say the
//! same. That is what makes a flush necessary, as on real hardware (BCK-10).
//!
//! All memory is taken at the start. A slot is linked twice, by number: in the list of its bucket, and
//! from the oldest to the newest.

use core::ops::Range;

use kernel::prelude::*;

use super::page_table::Found;
use crate::units::{
    GpuVirtualAddress,
    PageSize,
    Place, //
};

/// No slot.
const NONE: u32 = u32::MAX;

/// Which page of which space is translated.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    /// The root of the space.
    root: Place,
    /// The number of the page, among those of its size.
    page: u64,
    /// The size of the page.
    size: PageSize,
}

impl Key {
    /// Returns the key of the page of `size` that holds `address`.
    const fn new(root: Place, address: u64, size: PageSize) -> Self {
        Self {
            root,
            page: address >> size.shift(),
            size,
        }
    }

    /// Returns a number that differs for most keys.
    const fn hash(&self) -> u64 {
        /// An odd number without pattern: the golden ratio.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

        // CAST: widening; `From` is not const.
        let size = self.size.shift() as u64;
        let page = self.page.wrapping_mul(SPREAD);
        (page ^ self.root.offset.wrapping_add(size)).wrapping_mul(SPREAD) >> 32
    }

    /// Returns whether the page has an address in `range`.
    const fn meets(&self, range: &Range<u64>) -> bool {
        let start = self.page << self.size.shift();
        start < range.end && start.saturating_add(self.size.bytes()) > range.start
    }
}

/// A translation and its links.
#[derive(Clone, Copy)]
struct Slot {
    key: Key,
    found: Found,
    /// The next one in the bucket; among free ones, the next free one.
    next: u32,
    /// The one that was added before.
    older: u32,
    /// The one that was added after.
    newer: u32,
}

/// The translations of one node.
pub(super) struct Tlb {
    slots: KVVec<Slot>,
    /// The first slot of each bucket; their number is a power of two.
    buckets: KVVec<u32>,
    /// The first slot that was used and is free again.
    free: u32,
    oldest: u32,
    newest: u32,
    /// How many translations there are.
    live: usize,
    /// How many there can be.
    capacity: usize,
}

impl Tlb {
    /// Returns an empty one with room for `capacity` translations, at least one.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new(capacity: u32) -> Result<Self> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        let capacity = capacity as usize;
        Ok(Self {
            slots: KVVec::with_capacity(capacity, GFP_KERNEL)?,
            buckets: KVVec::from_elem(NONE, capacity.next_power_of_two(), GFP_KERNEL)?,
            free: NONE,
            oldest: NONE,
            newest: NONE,
            live: 0,
            capacity,
        })
    }

    /// Returns the remembered translation of `address`.
    pub(super) fn find(&self, root: Place, address: GpuVirtualAddress) -> Option<Found> {
        [PageSize::Small, PageSize::Large]
            .into_iter()
            .find_map(|size| {
                let number = self.number(Key::new(root, address.0, size))?;
                Some(self.slot(number)?.found)
            })
    }

    /// Remembers a translation that it does not have.
    pub(super) fn insert(&mut self, root: Place, address: GpuVirtualAddress, found: Found) {
        if self.live == self.capacity {
            self.remove(self.oldest);
        }
        let size = match found {
            Found::Page { page, .. } => page,
            Found::Invalid | Found::Zero => PageSize::Small,
        };
        let key = Key::new(root, address.0, size);
        let bucket = self.bucket(key);
        let slot = Slot {
            key,
            found,
            next: self.buckets.get(bucket).copied().unwrap_or(NONE),
            older: self.newest,
            newer: NONE,
        };
        let Some(number) = self.place(slot) else {
            return;
        };
        match self.slot_mut(slot.older) {
            Some(older) => older.newer = number,
            None => self.oldest = number,
        }
        self.newest = number;
        if let Some(first) = self.buckets.get_mut(bucket) {
            *first = number;
        }
        self.live += 1;
    }

    /// Forgets the translations of `range` in the space of `root`.
    pub(super) fn flush(&mut self, root: Place, range: &Range<u64>) {
        let pages = range.end.saturating_sub(range.start) >> PageSize::Small.shift();
        // CAST: `usize` has 64 bits wherever this driver runs.
        if pages < self.live as u64 {
            self.flush_pages(root, range);
        } else {
            self.flush_all(root, range);
        }
    }

    /// Forgets what is there of each page of a short range.
    fn flush_pages(&mut self, root: Place, range: &Range<u64>) {
        for size in [PageSize::Small, PageSize::Large] {
            let first = range.start >> size.shift();
            let last = range.end.saturating_sub(1) >> size.shift();
            for page in first..=last {
                if let Some(number) = self.number(Key { root, page, size }) {
                    self.remove(number);
                }
            }
        }
    }

    /// Forgets what is there of a long range.
    fn flush_all(&mut self, root: Place, range: &Range<u64>) {
        let mut number = self.oldest;
        while let Some(slot) = self.slot(number).copied() {
            if slot.key.root == root && slot.key.meets(range) {
                self.remove(number);
            }
            number = slot.newer;
        }
    }

    /// Returns the slot with this number.
    fn slot(&self, number: u32) -> Option<&Slot> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.slots.get(number as usize)
    }

    /// Returns the slot with this number, to be changed.
    fn slot_mut(&mut self, number: u32) -> Option<&mut Slot> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.slots.get_mut(number as usize)
    }

    /// Returns the index of the bucket of `key`.
    fn bucket(&self, key: Key) -> usize {
        // CAST: `usize` has 64 bits wherever this driver runs.
        key.hash() as usize & self.buckets.len().wrapping_sub(1)
    }

    /// Returns the number of the slot that has `key`.
    fn number(&self, key: Key) -> Option<u32> {
        let mut number = *self.buckets.get(self.bucket(key))?;
        loop {
            let slot = self.slot(number)?;
            if slot.key == key {
                return Some(number);
            }
            number = slot.next;
        }
    }

    /// Puts `slot` where there is room and returns its number.
    fn place(&mut self, slot: Slot) -> Option<u32> {
        let number = self.free;
        if let Some(free) = self.slot_mut(number) {
            let next = free.next;
            *free = slot;
            self.free = next;
            return Some(number);
        }
        let number = u32::try_from(self.slots.len()).ok()?;
        self.slots.push_within_capacity(slot).ok()?;
        Some(number)
    }

    /// Forgets the translation in a slot.
    fn remove(&mut self, number: u32) {
        let Some(slot) = self.slot(number).copied() else {
            return;
        };
        self.leave_bucket(number, slot);
        match self.slot_mut(slot.older) {
            Some(older) => older.newer = slot.newer,
            None => self.oldest = slot.newer,
        }
        match self.slot_mut(slot.newer) {
            Some(newer) => newer.older = slot.older,
            None => self.newest = slot.older,
        }
        let free = self.free;
        if let Some(slot) = self.slot_mut(number) {
            slot.next = free;
        }
        self.free = number;
        self.live -= 1;
    }

    /// Takes a slot out of the list of its bucket.
    fn leave_bucket(&mut self, number: u32, slot: Slot) {
        let bucket = self.bucket(slot.key);
        let Some(first) = self.buckets.get_mut(bucket) else {
            return;
        };
        if *first == number {
            *first = slot.next;
            return;
        }
        let mut before = *first;
        while let Some(other) = self.slot_mut(before) {
            if other.next == number {
                other.next = slot.next;
                return;
            }
            before = other.next;
        }
    }
}

#[cfg(CONFIG_KUNIT)]
#[kernel::macros::kunit_tests(vidmm_backend_tlb)]
mod tests {
    use super::*;
    use crate::{
        backend::page_table::Rights,
        units::SegmentId, //
    };

    /// The root of a space.
    fn root(number: u64) -> Place {
        Place::new(SegmentId::SYSTEM, number << 12)
    }

    /// A page of this size.
    fn page(number: u64, page: PageSize) -> Found {
        Found::Page {
            place: Place::new(SegmentId::SYSTEM, number << 16),
            page,
            rights: Rights::default(),
        }
    }

    /// An address.
    fn at(address: u64) -> GpuVirtualAddress {
        GpuVirtualAddress(address)
    }

    #[test]
    fn spaces_and_sizes_are_kept_apart() -> Result {
        let mut tlb = Tlb::new(8)?;
        tlb.insert(root(1), at(0x1_0000), page(1, PageSize::Small));
        tlb.insert(root(2), at(0x1_0000), Found::Zero);
        tlb.insert(root(1), at(0x2_5000), page(2, PageSize::Large));
        tlb.insert(root(1), at(0x3000), Found::Invalid);
        assert_eq!(
            tlb.find(root(1), at(0x1_0fff)),
            Some(page(1, PageSize::Small))
        );
        assert_eq!(tlb.find(root(1), at(0x1_1000)), None);
        assert_eq!(tlb.find(root(2), at(0x1_0800)), Some(Found::Zero));
        assert_eq!(
            tlb.find(root(1), at(0x2_ffff)),
            Some(page(2, PageSize::Large))
        );
        assert_eq!(tlb.find(root(1), at(0x3_0000)), None);
        assert_eq!(tlb.find(root(1), at(0x3abc)), Some(Found::Invalid));
        assert_eq!(tlb.find(root(3), at(0x3abc)), None);
        Ok(())
    }

    #[test]
    fn oldest_goes_first() -> Result {
        let mut tlb = Tlb::new(4)?;
        for number in 0..6 {
            tlb.insert(root(1), at(number << 12), page(number, PageSize::Small));
        }
        for number in 0..6 {
            let found = (number >= 2).then(|| page(number, PageSize::Small));
            assert_eq!(tlb.find(root(1), at(number << 12)), found);
        }
        // Room in the middle is used before the oldest goes.
        tlb.flush(root(1), &(0x4000..0x5000));
        tlb.insert(root(1), at(0x9000), Found::Zero);
        assert!(tlb.find(root(1), at(0x2000)).is_some());
        tlb.insert(root(1), at(0xa000), Found::Zero);
        assert!(tlb.find(root(1), at(0x2000)).is_none());
        assert!(tlb.find(root(1), at(0x3000)).is_some());
        Ok(())
    }

    #[test]
    fn flush_matches_model() -> Result {
        /// Pages that are translated.
        const PAGES: u64 = 64;

        let mut tlb = Tlb::new(100)?;
        let mut model = [[false; PAGES as usize]; 2];
        let mut state = 1u64;
        let mut below = |end: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % end
        };
        for _ in 0..1000 {
            let (space, page) = (below(2), below(PAGES));
            let known = &mut model[space as usize];
            if below(4) > 0 {
                if !known[page as usize] && tlb.live < 100 {
                    tlb.insert(root(space), at(page << 12), Found::Zero);
                    known[page as usize] = true;
                }
            } else {
                let end = page + below(PAGES - page) + 1;
                let range = match below(8) {
                    0 => 0..u64::MAX,
                    _ => page << 12..end << 12,
                };
                tlb.flush(root(space), &range);
                for page in 0..PAGES {
                    known[page as usize] &= !range.contains(&(page << 12));
                }
            }
            let live = model.iter().flatten().filter(|known| **known).count();
            assert_eq!(tlb.live, live);
            for space in 0..2 {
                for page in 0..PAGES {
                    let found = tlb.find(root(space), at(page << 12)).is_some();
                    assert_eq!(found, model[space as usize][page as usize]);
                }
            }
        }
        Ok(())
    }

    #[test]
    fn short_flush_reaches_large_pages() -> Result {
        let mut tlb = Tlb::new(64)?;
        for number in 0..32 {
            tlb.insert(root(1), at(number << 16), page(number, PageSize::Large));
        }
        tlb.flush(root(1), &(0x5_3000..0x5_4000));
        tlb.flush(root(1), &(0x7_f000..0x8_1000));
        for number in 0..32 {
            let gone = matches!(number, 5 | 7 | 8);
            assert_eq!(tlb.find(root(1), at(number << 16)).is_none(), gone);
        }
        Ok(())
    }
}
