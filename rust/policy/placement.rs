// SPDX-License-Identifier: GPL-2.0

//! Handing out the pages of one segment.
//!
//! A [`PagePool`] knows which pages of a segment are free and gives them out as [`Chain`]s. A chain
//! is the memory of one allocation: one run of pages, or several runs in a fixed order. Who needs
//! adjacent pages asks for a run ([`PagePool::take_run`], SEG-15); who does not takes what there is
//! ([`PagePool::take_loose`], SEG-18), in as few runs as possible.
//!
//! Runs are exact: no size is rounded up and nothing is set aside, so an empty pool holds any list
//! of runs whose sum it can hold. They are taken as near to one end as they fit, which keeps the
//! other end in one piece.
//!
//! The list of runs of a chain lies in an array of [`Link`]s, one per page, of which only that of
//! the first page of each run is in use. So a chain is two numbers, however many runs it has, and
//! neither taking nor giving back needs memory.

use core::borrow::{
    Borrow,
    BorrowMut, //
};
use core::ops::Range;

use super::free_runs::{
    FreeRuns,
    Mark, //
};

pub use super::free_runs::MAX_PAGES;
pub use super::preference::{
    check_preference,
    order,
    BadPreference,
    Choice,
    End, //
};

/// Marks the end of a list of runs.
const NO_PAGE: u32 = u32::MAX;

/// The length of a run, kept at its first page, and where the next run of its chain begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Pages of the run.
    pages: u32,
    /// First page of the next run, or [`NO_PAGE`].
    next: u32,
}

impl Link {
    /// A link that is not in use.
    pub const UNUSED: Self = Self {
        pages: 0,
        next: NO_PAGE,
    };
}

impl Default for Link {
    fn default() -> Self {
        Self::UNUSED
    }
}

/// The memory lent to a pool does not suffice, or there are more than [`MAX_PAGES`] pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeMismatch;

/// Some page of the range is not free, or does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken;

/// Pages taken from a [`PagePool`].
///
/// Whoever holds it owns them. It must go back to the pool that it came from, by
/// [`PagePool::give`]; if it is dropped, its pages are never free again.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "pages that are not given back are lost"]
pub struct Chain {
    /// First page of the first run.
    first: u32,
    /// Pages of all runs together.
    pages: u32,
}

impl Chain {
    /// Returns the first page of the first run.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Returns the number of pages.
    pub fn pages(&self) -> u32 {
        self.pages
    }
}

/// The runs of a chain, in order.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    /// The links of the pool.
    links: &'a [Link],
    /// First page of the next run.
    next: u32,
    /// Pages still to come.
    left: u32,
}

impl Iterator for Runs<'_> {
    type Item = Range<u32>;

    fn next(&mut self) -> Option<Range<u32>> {
        if self.left == 0 {
            return None;
        }
        let link = *self.links.get(index(self.next))?;
        let start = self.next;
        self.left = self.left.checked_sub(link.pages)?;
        self.next = link.next;
        Some(start..start.checked_add(link.pages)?)
    }
}

/// A chain in the making.
struct Draft {
    /// First page of the first run.
    first: u32,
    /// First page of the last run.
    last: u32,
    /// Page behind the last run.
    end: u32,
    /// Pages of all runs.
    pages: u32,
}

/// The pages of one segment: which are free, and the runs of each chain.
///
/// It never allocates: `words` and `links` are lent when it is made.
///
/// n is the number of pages, k the number of pages taken or given back, r the number of runs:
///
/// | operation | steps |
/// |---|---|
/// | [`free_pages`](Self::free_pages), [`largest_run`](Self::largest_run) | constant |
/// | [`take_run`](Self::take_run), [`take_at`](Self::take_at) | log n + k / 64 |
/// | [`take_loose`](Self::take_loose), [`give`](Self::give) | r log n + k / 64 |
/// | [`free_within`](Self::free_within), [`largest_within`](Self::largest_within) | log n |
/// | each item of [`runs`](Self::runs) | constant |
/// | each item of [`free_runs`](Self::free_runs) | log n |
///
/// An alignment above one page adds log n for every free run that is long enough but has no room
/// at such a place; runs of twice the alignment always have.
///
/// # Invariants
///
/// `links` has a link for every page. The runs of the chains that were handed out do not overlap,
/// and exactly their pages are taken.
pub struct PagePool<W, L> {
    /// Which pages are free.
    free: FreeRuns<W>,
    /// The runs of the chains.
    links: L,
}

impl<W, L> PagePool<W, L>
where
    W: Borrow<[u64]> + BorrowMut<[u64]>,
    L: Borrow<[Link]> + BorrowMut<[Link]>,
{
    /// Returns the number of words to lend for `pages` pages.
    pub const fn words(pages: u32) -> usize {
        FreeRuns::<W>::words(pages)
    }

    /// Creates a pool of `pages` pages, all free.
    ///
    /// `words` are at least [`words`](Self::words)`(pages)` of any content, `links` at least
    /// `pages` of any content.
    ///
    /// # Errors
    ///
    /// [`SizeMismatch`] if either is too short or `pages` is above [`MAX_PAGES`].
    pub fn new(words: W, links: L, pages: u32) -> Result<Self, SizeMismatch> {
        if links.borrow().len() < index(pages) {
            return Err(SizeMismatch);
        }
        let free = FreeRuns::new(words, pages).ok_or(SizeMismatch)?;
        Ok(Self { free, links })
    }

    /// Returns the number of pages of the segment.
    pub fn pages(&self) -> u32 {
        self.free.pages()
    }

    /// Returns the number of free pages.
    pub fn free_pages(&self) -> u32 {
        self.free.free()
    }

    /// Returns the length of the longest run of free pages.
    pub fn largest_run(&self) -> u32 {
        self.free.longest()
    }

    /// Returns the number of free pages inside `within`.
    pub fn free_within(&self, within: Range<u32>) -> u32 {
        self.free.free_in(&within)
    }

    /// Returns the length of the longest run of free pages inside `within`.
    pub fn largest_within(&self, within: Range<u32>) -> u32 {
        self.free.longest_in(&within)
    }

    /// Takes one run of exactly `pages` inside `within`, as near to the end `from` as it fits.
    ///
    /// The run begins at a multiple of `align` pages, a power of two; 0 is taken as 1. Returns
    /// [`None`], with nothing changed, if there is no such run or `pages` is 0.
    ///
    /// Requirement: SEG-15.
    pub fn take_run(
        &mut self,
        pages: u32,
        align: u32,
        within: Range<u32>,
        from: End,
    ) -> Option<Chain> {
        if pages == 0 {
            return None;
        }
        let run = self.free.find_aligned(&within, pages, align.max(1), from)?;
        Some(self.claim(run))
    }

    /// Takes `pages` pages inside `within` in no more runs than needed, pages inside `prefer`
    /// first.
    ///
    /// If one run suffices for what is missing, the one nearest to the end `from` is used; if not,
    /// the largest. Returns [`None`], with nothing changed, if fewer pages are free or `pages` is
    /// 0.
    ///
    /// Requirement: SEG-18.
    pub fn take_loose(
        &mut self,
        pages: u32,
        within: Range<u32>,
        prefer: Range<u32>,
        from: End,
    ) -> Option<Chain> {
        if pages == 0 || self.free.free_in(&within) < pages {
            return None;
        }
        let preferred = prefer.start.max(within.start)..prefer.end.min(within.end);
        let mut draft = Draft {
            first: NO_PAGE,
            last: NO_PAGE,
            end: NO_PAGE,
            pages: 0,
        };
        for area in [preferred, within] {
            while draft.pages < pages {
                let missing = pages.saturating_sub(draft.pages);
                let longest = self.free.longest_in(&area);
                if longest == 0 {
                    break;
                }
                let run = self.free.find(&area, longest.min(missing), from)?;
                self.append(&mut draft, run);
            }
        }
        Some(Chain {
            first: draft.first,
            pages: draft.pages,
        })
    }

    /// Takes exactly the pages of `range`.
    ///
    /// # Errors
    ///
    /// [`Taken`], with nothing changed, if not all of them are free pages, or there are none.
    pub fn take_at(&mut self, range: Range<u32>) -> Result<Chain, Taken> {
        if !self.free.is_free(&range) {
            return Err(Taken);
        }
        Ok(self.claim(range))
    }

    /// Gives back pages that were taken from this pool.
    pub fn give(&mut self, chain: Chain) {
        let mut next = chain.first;
        let mut left = chain.pages;
        while left != 0 {
            let Some(link) = self.links.borrow().get(index(next)).copied() else {
                break;
            };
            self.free
                .mark(next..next.saturating_add(link.pages), Mark::Free);
            left = left.saturating_sub(link.pages);
            next = link.next;
        }
    }

    /// Returns the runs of a chain of this pool, in the order in which the allocation uses them.
    pub fn runs(&self, chain: &Chain) -> Runs<'_> {
        Runs {
            links: self.links.borrow(),
            next: chain.first,
            left: chain.pages,
        }
    }

    /// Returns the free runs from the lowest page up, each as long as it is.
    pub fn free_runs(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        let mut from = 0;
        core::iter::from_fn(move || {
            let run = self.free.first_run(&(from..self.pages()))?;
            from = run.end;
            Some(run)
        })
    }

    /// Makes a chain of one free run.
    fn claim(&mut self, run: Range<u32>) -> Chain {
        let chain = Chain {
            first: run.start,
            pages: run.end.saturating_sub(run.start),
        };
        self.set_link(
            run.start,
            Link {
                pages: chain.pages,
                next: NO_PAGE,
            },
        );
        self.free.mark(run, Mark::Taken);
        chain
    }

    /// Takes a free run and puts it at the end of `draft`; joins it to the last one if it can.
    fn append(&mut self, draft: &mut Draft, run: Range<u32>) {
        let pages = run.end.saturating_sub(run.start);
        let last = self.links.borrow_mut().get_mut(index(draft.last));
        match last {
            Some(last) if draft.end == run.start => {
                last.pages = last.pages.saturating_add(pages);
            }
            last => {
                match last {
                    Some(last) => last.next = run.start,
                    None => draft.first = run.start,
                }
                draft.last = run.start;
                let next = NO_PAGE;
                self.set_link(run.start, Link { pages, next });
            }
        }
        draft.end = run.end;
        draft.pages = draft.pages.saturating_add(pages);
        self.free.mark(run, Mark::Taken);
    }

    /// Writes the link of a page.
    fn set_link(&mut self, page: u32, link: Link) {
        if let Some(place) = self.links.borrow_mut().get_mut(index(page)) {
            *place = link;
        }
    }
}

/// Returns a page number as an index.
const fn index(page: u32) -> usize {
    // CAST: `usize` has 64 bits wherever this driver runs.
    page as usize
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_placement))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    /// A pool of up to 256 pages.
    type Pool = PagePool<[u64; 12], [Link; 256]>;

    /// All pages there can be.
    const ALL: Range<u32> = 0..u32::MAX;

    /// A pool of `pages` free pages.
    fn pool(pages: u32) -> Pool {
        Pool::new([0; 12], [Link::UNUSED; 256], pages).unwrap()
    }

    /// A pool of `pages` pages of which those in `taken` are gone.
    fn pool_without(pages: u32, taken: &[Range<u32>]) -> Pool {
        let mut pool = pool(pages);
        for range in taken {
            let _gone = pool.take_at(range.clone()).unwrap();
        }
        pool
    }

    #[test]
    fn lent_memory_must_suffice() {
        assert_eq!(Pool::words(256), 12);
        assert!(Pool::new([0; 12], [Link::UNUSED; 256], 256).is_ok());
        assert!(Pool::new([0; 12], [Link::UNUSED; 256], 257).is_err());
        assert!(PagePool::new([0_u64; 11], [Link::UNUSED; 256], 256).is_err());
    }

    #[test]
    fn runs_of_any_length_fill_an_empty_pool() {
        let mut pool = pool(256);
        for pages in [1, 3, 12, 65, 100, 2, 73] {
            let _kept = pool.take_run(pages, 1, ALL, End::Low).unwrap();
        }
        assert_eq!(pool.free_pages(), 0);
        assert_eq!(pool.largest_run(), 0);
        assert!(pool.take_run(1, 1, ALL, End::Low).is_none());
    }

    #[test]
    fn run_is_taken_at_the_wanted_end() {
        let mut pool = pool(256);
        let low = pool.take_run(10, 1, ALL, End::Low).unwrap();
        let high = pool.take_run(10, 1, ALL, End::High).unwrap();
        let aligned = pool.take_run(10, 16, ALL, End::High).unwrap();
        assert_eq!(low.first(), 0);
        assert_eq!(high.first(), 246);
        assert_eq!(aligned.first(), 224);
        assert_eq!(pool.largest_run(), 214);
    }

    #[test]
    fn fragmented_pool_has_no_run_but_loose_pages() {
        let mut pool = pool(64);
        for page in (0..64).step_by(2) {
            let _gone = pool.take_at(page..page + 1).unwrap();
        }
        assert!(pool.take_run(2, 1, ALL, End::Low).is_none());
        let chain = pool.take_loose(16, ALL, ALL, End::Low).unwrap();
        assert_eq!(pool.runs(&chain).count(), 16);
        assert_eq!(pool.free_pages(), 16);
    }

    #[test]
    fn loose_pages_come_in_few_runs() {
        let mut pool = pool_without(256, &[10..20, 50..60, 160..170]);
        let chain = pool.take_loose(120, ALL, ALL, End::Low).unwrap();
        assert!(pool.runs(&chain).eq([60..160, 20..40]));
    }

    #[test]
    fn loose_pages_use_the_nearest_run_that_suffices() {
        let mut pool = pool_without(256, &[10..20, 50..60]);
        let low = pool.take_loose(25, ALL, ALL, End::Low).unwrap();
        let high = pool.take_loose(25, ALL, ALL, End::High).unwrap();
        assert!(pool.runs(&low).eq([20..45]));
        assert!(pool.runs(&high).eq([231..256]));
    }

    #[test]
    fn preferred_pages_go_first() {
        let mut pool = pool(256);
        let chain = pool.take_loose(100, ALL, 200..256, End::Low).unwrap();
        assert!(pool.runs(&chain).eq([200..256, 0..44]));
    }

    #[test]
    fn neighbouring_runs_are_joined() {
        let mut pool = pool(256);
        let chain = pool.take_loose(100, 0..128, 0..64, End::Low).unwrap();
        assert!(pool.runs(&chain).eq([0..100]));
    }

    #[test]
    fn too_few_loose_pages_change_nothing() {
        let mut pool = pool_without(256, &[0..200]);
        assert!(pool.take_loose(57, ALL, ALL, End::Low).is_none());
        assert!(pool.take_loose(20, 0..210, ALL, End::Low).is_none());
        assert_eq!(pool.free_pages(), 56);
    }

    #[test]
    fn given_pages_are_free_again() {
        let mut pool = pool_without(256, &[10..20, 50..60]);
        let chain = pool.take_loose(236, ALL, ALL, End::Low).unwrap();
        assert_eq!(pool.free_pages(), 0);
        pool.give(chain);
        assert!(pool.free_runs().eq([0..10, 20..50, 60..256]));
    }

    #[test]
    fn taken_pages_are_not_taken_again() {
        let mut pool = pool_without(256, &[100..200]);
        assert_eq!(pool.take_at(199..201), Err(Taken));
        assert_eq!(pool.take_at(255..257), Err(Taken));
        assert_eq!(pool.take_at(3..3), Err(Taken));
        assert!(pool.take_at(200..256).is_ok());
    }

    #[test]
    fn nothing_is_no_chain() {
        let mut pool = pool(256);
        assert!(pool.take_run(0, 1, ALL, End::Low).is_none());
        assert!(pool.take_loose(0, ALL, ALL, End::Low).is_none());
    }

    #[test]
    fn ranges_bound_every_answer() {
        let mut pool = pool(256);
        assert_eq!(pool.free_within(250..u32::MAX), 6);
        assert_eq!(pool.largest_within(250..u32::MAX), 6);
        assert!(pool.take_run(7, 1, 250..300, End::Low).is_none());
        assert!(pool.take_run(6, 1, 250..300, End::Low).is_some());
    }
}
