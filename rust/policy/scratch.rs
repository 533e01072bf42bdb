// SPDX-License-Identifier: GPL-2.0

//! Ranges of a scratch area.
//!
//! Paging work that goes through addresses needs some for as long as it runs: a source and a
//! destination for a transfer, a destination for a fill, the tables of somebody else while their
//! entries are written. Work runs in the order in which it was decided, so the ranges become free in
//! the order in which they were taken, and the area is a [`Ring`]: the next range begins where the
//! last one ended, or at the start of the area where the rest of it is too short.
//!
//! A range belongs to no piece of work yet while the work that uses it is put together
//! ([`take`](Ring::take)); then it is told with which piece it ends ([`settle`](Ring::settle)), and
//! when that piece is complete it can be had again ([`release`](Ring::release)). Nothing is searched:
//! each step costs as much as the ranges that it is about.

use core::borrow::BorrowMut;

/// What a range is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The root page table of a client.
    Root,
    /// Another page table of a client.
    Table,
    /// Content that is read.
    Source,
    /// Content that is written.
    Destination,
}

/// A part of a block of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// How many pages it has, at least one.
    pub pages: u32,
    /// What it is for.
    pub purpose: Purpose,
}

/// A range in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its first page.
    pub first: u32,
    /// Its length, and what it is for.
    pub part: Part,
    /// Where the ring stood before it; pages that were skipped for it become free with it.
    begin: u32,
    /// With which piece of work it ends; [`None`] while that is put together.
    end: Option<u64>,
}

impl Taken {
    /// A record that is not in use.
    pub const UNUSED: Self = Self {
        first: 0,
        part: Part {
            pages: 0,
            purpose: Purpose::Root,
        },
        begin: 0,
        end: None,
    };
}

/// The ranges of a scratch area.
///
/// # Invariants
///
/// The `count` records from `oldest` on, cyclically, are the ranges in use, in the order in which they
/// were taken. They do not overlap; each begins where the one before it ends, or at page 0.
pub struct Ring<R> {
    /// Pages of the area.
    pages: u32,
    /// Where the last range ended.
    head: u32,
    /// The record of the oldest range.
    oldest: usize,
    /// Ranges in use.
    count: usize,
    /// Room for them.
    records: R,
}

impl<R: BorrowMut<[Taken]>> Ring<R> {
    /// Returns a ring of `pages` pages, all of them free, that keeps its books in `records`, whose
    /// content does not matter.
    pub fn new(pages: u32, records: R) -> Self {
        Self {
            pages,
            head: 0,
            oldest: 0,
            count: 0,
            records,
        }
    }

    /// Returns the pages of the area.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Takes `parts`, side by side in this order; returns the first page of the first one, or [`None`]
    /// if there is no room for them at the moment.
    ///
    /// When everything older has been released there is room for as many pages as the area has, in as
    /// many parts as there are records.
    pub fn take(&mut self, parts: &[Part]) -> Option<u32> {
        let pages = parts
            .iter()
            .try_fold(0_u32, |sum, part| sum.checked_add(part.pages))?;
        let count = self.count.checked_add(parts.len())?;
        if count > self.records.borrow().len() {
            return None;
        }
        let first = self.place(pages)?;
        let mut begin = if self.count == 0 { first } else { self.head };
        let mut next = first;
        for part in parts {
            let index = self.index(self.count);
            *self.records.borrow_mut().get_mut(index)? = Taken {
                first: next,
                part: *part,
                begin,
                end: None,
            };
            self.count = self.count.saturating_add(1);
            next = next.saturating_add(part.pages);
            begin = next;
        }
        self.head = next;
        Some(first)
    }

    /// Notes with which piece of work the ranges end that were taken since the last call.
    pub fn settle(&mut self, work: u64) {
        for age in (0..self.count).rev() {
            let index = self.index(age);
            match self.records.borrow_mut().get_mut(index) {
                Some(taken) if taken.end.is_none() => taken.end = Some(work),
                _ => return,
            }
        }
    }

    /// Gives back the oldest range if it ended with a piece of work not later than `completed`.
    pub fn release(&mut self, completed: u64) -> Option<Taken> {
        let oldest = *self.oldest()?;
        if oldest.end? > completed {
            return None;
        }
        self.oldest = self.index(1);
        self.count = self.count.saturating_sub(1);
        Some(oldest)
    }

    /// Returns whether half of the pages and half of the records are free.
    pub fn is_roomy(&self) -> bool {
        let Some(oldest) = self.oldest() else {
            return true;
        };
        let free = match oldest.begin.checked_sub(self.head) {
            Some(between) => between,
            None => {
                let behind = self.pages.saturating_sub(self.head);
                behind.saturating_add(oldest.begin)
            }
        };
        free >= self.pages / 2 && self.count <= self.records.borrow().len() / 2
    }

    /// Returns where `pages` pages can be had.
    fn place(&self, pages: u32) -> Option<u32> {
        let behind = self.pages.checked_sub(self.head)?;
        let Some(oldest) = self.oldest() else {
            let first = if pages <= behind { self.head } else { 0 };
            return (pages <= self.pages).then_some(first);
        };
        match oldest.begin.checked_sub(self.head) {
            // The ring has come round: free is what lies between, nothing if it is full.
            Some(between) => (pages <= between).then_some(self.head),
            None if pages <= behind => Some(self.head),
            None => (pages <= oldest.begin).then_some(0),
        }
    }

    /// Returns the oldest range in use.
    fn oldest(&self) -> Option<&Taken> {
        if self.count == 0 {
            return None;
        }
        self.records.borrow().get(self.oldest)
    }

    /// Returns the index of the record `age` places behind the oldest one.
    fn index(&self, age: usize) -> usize {
        let records = self.records.borrow().len().max(1);
        self.oldest.wrapping_add(age) % records
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_scratch))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    /// An area of 16 pages for up to 6 ranges.
    fn ring() -> Ring<[Taken; 6]> {
        Ring::new(16, [Taken::UNUSED; 6])
    }

    /// A source and a destination of so many pages.
    fn pair(pages: u32) -> [Part; 2] {
        [Purpose::Source, Purpose::Destination].map(|purpose| Part { pages, purpose })
    }

    /// One destination of so many pages.
    fn single(pages: u32) -> [Part; 1] {
        let purpose = Purpose::Destination;
        [Part { pages, purpose }]
    }

    #[test]
    fn parts_lie_side_by_side() {
        let mut ring = ring();
        assert_eq!(ring.take(&pair(3)), Some(0));
        ring.settle(1);
        let source = ring.release(1).unwrap();
        let target = ring.release(1).unwrap();
        assert_eq!((source.first, source.part), (0, pair(3)[0]));
        assert_eq!((target.first, target.part), (3, pair(3)[1]));
        assert_eq!(ring.release(1), None);
    }

    #[test]
    fn ranges_end_with_their_work() {
        let mut ring = ring();
        assert_eq!(ring.take(&single(4)), Some(0));
        assert_eq!(ring.release(u64::MAX), None);
        ring.settle(7);
        assert_eq!(ring.take(&single(4)), Some(4));
        ring.settle(8);
        assert_eq!(ring.release(6), None);
        assert_eq!(ring.release(7).unwrap().first, 0);
        assert_eq!(ring.release(7), None);
        assert_eq!(ring.release(8).unwrap().first, 4);
    }

    #[test]
    fn short_rest_is_skipped_and_comes_back() {
        let mut ring = ring();
        assert_eq!(ring.take(&single(10)), Some(0));
        ring.settle(1);
        assert_eq!(ring.take(&single(2)), Some(10));
        ring.settle(2);
        assert_eq!(ring.take(&single(6)), None);
        assert!(ring.release(1).is_some());
        // Four pages are left at the end, ten at the start.
        assert_eq!(ring.take(&single(6)), Some(0));
        ring.settle(3);
        assert_eq!(ring.take(&single(5)), None);
        assert_eq!(ring.take(&single(4)), Some(6));
        assert_eq!(ring.take(&single(1)), None);
    }

    #[test]
    fn idle_area_has_room_for_all_of_it() {
        let mut ring = ring();
        assert_eq!(ring.take(&single(5)), Some(0));
        ring.settle(1);
        assert!(ring.release(1).is_some());
        assert_eq!(ring.take(&pair(8)), Some(0));
        ring.settle(2);
        assert_eq!(ring.take(&single(1)), None);
        assert!(!ring.is_roomy());
        assert!(ring.release(2).is_some());
        assert!(ring.is_roomy());
        assert_eq!(ring.take(&single(8)), Some(0));
        assert_eq!(ring.take(&single(17)), None);
    }

    #[test]
    fn records_bound_the_ranges() {
        let mut ring = ring();
        for page in [0, 2, 4] {
            assert_eq!(ring.take(&pair(1)), Some(page));
        }
        assert_eq!(ring.take(&single(1)), None);
        assert!(!ring.is_roomy());
        ring.settle(1);
        assert!(ring.release(1).is_some());
        assert_eq!(ring.take(&single(1)), Some(6));
    }
}
