// SPDX-License-Identifier: GPL-2.0

//! Which pages are free, and where a run of them is.
//!
//! [`FreeRuns`] owns a bitmap of the pages of a segment and the tree above it
//! ([`super::run_tree`]). Changing a range of bits is followed by summing up the nodes above them
//! ([`super::tree_update`]). Finding a run is one way down the tree.
//!
//! Words and nodes live in memory that the caller lends; nothing here allocates.

use core::borrow::{
    Borrow,
    BorrowMut, //
};
use core::ops::Range;

use super::preference::End;
use super::run_tree::{
    index,
    low_ones,
    View,
    LEAF_PAGES, //
};
use super::tree_update::Nodes;

pub use super::run_tree::MAX_PAGES;

/// Whether pages are free or taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nobody has them.
    Free,
    /// Somebody has them.
    Taken,
}

/// The free pages of one segment.
///
/// # Invariants
///
/// `words` has at least [`FreeRuns::words`]`(pages)` words: one per leaf, then two per node.
/// `leaves` is a power of two with `leaves * 64 >= pages`, bits at and above `pages` are clear,
/// `free` counts the others, and every inner node holds the summary of its children.
pub(super) struct FreeRuns<W> {
    /// Lent memory: bitmap, then nodes.
    words: W,
    /// The number of leaves of the tree.
    leaves: u32,
    /// The number of pages.
    pages: u32,
    /// The number of free pages.
    free: u32,
}

impl<W: Borrow<[u64]> + BorrowMut<[u64]>> FreeRuns<W> {
    /// Returns the number of leaves that `pages` pages take.
    const fn leaves(pages: u32) -> u32 {
        let pages = if pages > MAX_PAGES { MAX_PAGES } else { pages };
        pages.div_ceil(LEAF_PAGES).next_power_of_two()
    }

    /// Returns the number of words to lend for `pages` pages: 3 to 6 bits per page.
    pub(super) const fn words(pages: u32) -> usize {
        index(Self::leaves(pages)).saturating_mul(3)
    }

    /// Creates the map with all pages free, or returns [`None`] if the words do not suffice.
    pub(super) fn new(words: W, pages: u32) -> Option<Self> {
        if pages > MAX_PAGES || words.borrow().len() < Self::words(pages) {
            return None;
        }
        let mut map = Self {
            words,
            leaves: Self::leaves(pages),
            pages,
            free: 0,
        };
        map.words.borrow_mut().fill(0);
        map.mark(0..pages, Mark::Free);
        Some(map)
    }

    /// Returns the number of pages.
    pub(super) fn pages(&self) -> u32 {
        self.pages
    }

    /// Returns the number of free pages.
    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// Returns the length of the longest free run. Constant time.
    pub(super) fn longest(&self) -> u32 {
        self.low().root().longest
    }

    /// Looks at the tree from its low end.
    fn low(&self) -> View<'_, false> {
        View::new(self.words.borrow(), self.leaves)
    }

    /// Looks at the tree from its high end.
    fn high(&self) -> View<'_, true> {
        View::new(self.words.borrow(), self.leaves)
    }

    /// Cuts a range to the pages that exist.
    fn clip(&self, range: &Range<u32>) -> Range<u32> {
        range.start.min(self.pages)..range.end.min(self.pages)
    }

    /// Cuts a range to the tree. Pages that do not exist are not free, so a range that reaches to
    /// the last page may as well reach to the end of the tree, where it is made of fewer nodes.
    fn widen(&self, range: &Range<u32>) -> Range<u32> {
        if range.end >= self.pages {
            range.start.min(self.pages)..self.leaves.saturating_mul(LEAF_PAGES)
        } else {
            range.clone()
        }
    }

    /// Returns the number of free pages inside `range`. One step per 64 pages of it.
    pub(super) fn free_in(&self, range: &Range<u32>) -> u32 {
        let range = self.clip(range);
        if range == (0..self.pages) {
            return self.free;
        }
        let words = self.words.borrow().get(leaves_of(&range));
        let words = words.unwrap_or_default().iter();
        let masked = words.zip(masks(&range)).map(|(word, mask)| word & mask);
        masked.fold(0, |sum: u32, bits| sum.wrapping_add(bits.count_ones()))
    }

    /// Returns the length of the longest free run inside `range`. O(log n).
    pub(super) fn longest_in(&self, range: &Range<u32>) -> u32 {
        self.low().survey(self.widen(range)).longest
    }

    /// Returns the run of `need` free pages inside `range` that is nearest to its end `from`.
    /// O(log n).
    pub(super) fn find(&self, range: &Range<u32>, need: u32, from: End) -> Option<Range<u32>> {
        let range = self.widen(range);
        match from {
            End::Low => {
                let start = self.low().first(range, need)?;
                Some(start..start.checked_add(need)?)
            }
            End::High => {
                let view = self.high();
                let start = view.first(view.turn(&range), need)?;
                Some(view.turn(&(start..start.checked_add(need)?)))
            }
        }
    }

    /// As [`find`](Self::find), beginning at a multiple of `align`, a power of two.
    ///
    /// O(log n) for each free run of at least `need` pages which has no room at such a place.
    pub(super) fn find_aligned(
        &self,
        range: &Range<u32>,
        need: u32,
        align: u32,
        from: End,
    ) -> Option<Range<u32>> {
        let mut rest = self.clip(range);
        loop {
            let run = self.find(&rest, need, from)?;
            if run.start & align.wrapping_sub(1) == 0 {
                return Some(run);
            }
            let whole = self.extend(&rest, run, from);
            if let Some(aligned) = align_inside(&whole, need, align, from) {
                return Some(aligned);
            }
            match from {
                End::Low => rest.start = whole.end,
                End::High => rest.end = whole.start,
            }
        }
    }

    /// Extends a free run that [`find`](Self::find) gave as far away from the end `from` as
    /// pages are free inside `range`.
    fn extend(&self, range: &Range<u32>, run: Range<u32>, from: End) -> Range<u32> {
        match from {
            End::Low => {
                let free = self.low().leading(run.start..range.end);
                run.start..run.start.saturating_add(free)
            }
            End::High => {
                let view = self.high();
                let free = view.leading(view.turn(&(range.start..run.end)));
                run.end.saturating_sub(free)..run.end
            }
        }
    }

    /// Returns the first whole free run that begins at or after `range.start`, cut to `range`.
    pub(super) fn first_run(&self, range: &Range<u32>) -> Option<Range<u32>> {
        let range = self.clip(range);
        let page = self.find(&range, 1, End::Low)?;
        Some(self.extend(&range, page, End::Low))
    }

    /// Returns whether `range` is not empty, lies inside the map and is free throughout.
    pub(super) fn is_free(&self, range: &Range<u32>) -> bool {
        let pages = range.end.saturating_sub(range.start);
        pages != 0 && range.end <= self.pages && self.low().leading(range.clone()) == pages
    }

    /// Marks the pages of `range`, which were all marked otherwise. One step per 64 pages, and at
    /// most O(log n) for the nodes above; mostly few of those change.
    pub(super) fn mark(&mut self, range: Range<u32>, mark: Mark) {
        let range = self.clip(&range);
        if range.start >= range.end {
            return;
        }
        let pages = range.end.wrapping_sub(range.start);
        self.free = match mark {
            Mark::Free => self.free.saturating_add(pages),
            Mark::Taken => self.free.saturating_sub(pages),
        };
        let words = self.words.borrow_mut().get_mut(leaves_of(&range));
        for (word, mask) in words.unwrap_or_default().iter_mut().zip(masks(&range)) {
            match mark {
                Mark::Free => *word |= mask,
                Mark::Taken => *word &= !mask,
            }
        }
        self.sum_up(
            range.start / LEAF_PAGES,
            range.end.wrapping_sub(1) / LEAF_PAGES,
        );
    }

    /// Brings the nodes above the leaves `first` to `last` up to date.
    fn sum_up(&mut self, first: u32, last: u32) {
        let words = self.words.borrow_mut();
        if let Some((bits, nodes)) = words.split_at_mut_checked(index(self.leaves)) {
            Nodes::new(bits, nodes).sum_up(first, last);
        }
    }
}

/// Returns which words hold the bits of `range`.
fn leaves_of(range: &Range<u32>) -> Range<usize> {
    index(range.start / LEAF_PAGES)..index(range.end.div_ceil(LEAF_PAGES))
}

/// Returns the bits of `range` in each of those words.
fn masks(range: &Range<u32>) -> impl Iterator<Item = u64> {
    let (start, end) = (range.start, range.end);
    (start / LEAF_PAGES..end.div_ceil(LEAF_PAGES)).map(move |leaf| {
        let base = leaf.wrapping_mul(LEAF_PAGES);
        low_ones(end.wrapping_sub(base)) & !low_ones(start.saturating_sub(base))
    })
}

/// Returns the aligned run of `need` pages inside `whole` that is nearest to its end `from`.
fn align_inside(whole: &Range<u32>, need: u32, align: u32, from: End) -> Option<Range<u32>> {
    let mask = align.wrapping_sub(1);
    let start = match from {
        End::Low => whole.start.checked_add(mask)? & !mask,
        End::High => whole.end.checked_sub(need)? & !mask,
    };
    let end = start.checked_add(need)?;
    (start >= whole.start && end <= whole.end).then_some(start..end)
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_free_runs))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    /// A map of up to 512 pages with all but `taken` free.
    fn map(pages: u32, taken: &[Range<u32>]) -> FreeRuns<[u64; 24]> {
        let mut map = FreeRuns::new([0; 24], pages).unwrap();
        for range in taken {
            map.mark(range.clone(), Mark::Taken);
        }
        map
    }

    #[test]
    fn words_grow_with_the_tree() {
        assert_eq!(FreeRuns::<[u64; 0]>::words(0), 3);
        assert_eq!(FreeRuns::<[u64; 0]>::words(64), 3);
        assert_eq!(FreeRuns::<[u64; 0]>::words(65), 6);
        assert_eq!(FreeRuns::<[u64; 0]>::words(512), 24);
    }

    #[test]
    fn too_few_words_give_nothing() {
        assert!(FreeRuns::new([0; 5], 65).is_none());
        assert!(FreeRuns::new([0; 6], 65).is_some());
        assert!(FreeRuns::new([0; 6], MAX_PAGES + 1).is_none());
    }

    #[test]
    fn pages_beyond_the_end_are_not_free() {
        let map = map(100, &[]);
        assert_eq!(map.free(), 100);
        assert_eq!(map.longest(), 100);
        assert!(map.find(&(0..u32::MAX), 101, End::Low).is_none());
        assert!(!map.is_free(&(99..101)));
    }

    #[test]
    fn run_across_words_is_found() {
        let map = map(512, &[0..60, 200..512]);
        assert_eq!(map.find(&(0..512), 140, End::Low), Some(60..200));
        assert_eq!(map.find(&(0..512), 140, End::High), Some(60..200));
        assert_eq!(map.find(&(0..512), 141, End::Low), None);
        assert_eq!(map.longest(), 140);
    }

    #[test]
    fn search_obeys_its_range() {
        let map = map(512, &[]);
        assert_eq!(map.find(&(70..75), 5, End::Low), Some(70..75));
        assert_eq!(map.find(&(70..75), 6, End::Low), None);
        assert_eq!(map.find(&(3..500), 7, End::High), Some(493..500));
        assert_eq!(map.free_in(&(3..500)), 497);
        assert_eq!(map.free_in(&(5..5)), 0);
    }

    #[test]
    fn free_pages_of_a_range_are_counted() {
        let map = map(512, &[10..20, 60..70, 128..192]);
        assert_eq!(map.free(), 428);
        assert_eq!(map.free_in(&(15..65)), 40);
        assert_eq!(map.free_in(&(128..200)), 8);
        assert_eq!(map.longest_in(&(0..128)), 58);
    }

    #[test]
    fn lowest_and_highest_run_are_told_apart() {
        let map = map(512, &[10..20, 100..500]);
        assert_eq!(map.find(&(0..512), 9, End::Low), Some(0..9));
        assert_eq!(map.find(&(0..512), 9, End::High), Some(503..512));
        assert_eq!(map.find(&(0..512), 13, End::High), Some(87..100));
    }

    #[test]
    fn alignment_skips_runs_without_room() {
        let map = map(512, &[0..1, 30..65, 127..200]);
        let all = 0..512;
        assert_eq!(map.find_aligned(&all, 20, 16, End::Low), Some(80..100));
        assert_eq!(map.find_aligned(&all, 20, 16, End::High), Some(480..500));
        assert_eq!(map.find_aligned(&(0..256), 48, 64, End::Low), None);
        assert_eq!(
            map.find_aligned(&(0..200), 47, 16, End::High),
            Some(80..127)
        );
    }

    #[test]
    fn free_runs_are_walked_in_order() {
        let map = map(300, &[0..3, 64..128, 299..300]);
        assert_eq!(map.first_run(&(0..300)), Some(3..64));
        assert_eq!(map.first_run(&(64..300)), Some(128..299));
        assert_eq!(map.first_run(&(299..300)), None);
    }
}
