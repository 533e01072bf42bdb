// SPDX-License-Identifier: GPL-2.0

//! Which run of pages to clear.
//!
//! An allocation that needs adjacent pages finds no room although enough pages could be freed,
//! because they are not neighbours. So what is chosen is a window of pages, and everyone with a
//! page in it leaves, also those whose other pages are elsewhere. Of all windows that hold nothing
//! pinned the cheapest is taken.

use core::ops::Range;

use super::eviction::{
    Candidate,
    NoRoom,
    Victim, //
};
use super::heap_sort::heap_sort;

/// One run of pages that an allocation occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// The allocation, with all its pages, wherever they are.
    candidate: Candidate,
    /// First page of the run.
    start: u32,
    /// Page behind the run.
    end: u32,
    /// Its place in the order of last use; larger is more recent.
    recency: u32,
    /// End of the run before this one that belongs to the same allocation, or 0.
    previous_end: u32,
    /// Start of the run behind this one that belongs to the same allocation, or the last number.
    next_start: u32,
}

impl Occupant {
    /// Says that `candidate` occupies `run`; `recency` grows from the one used longest ago.
    pub fn new(candidate: Candidate, run: Range<u32>, recency: u32) -> Self {
        Self {
            candidate,
            start: run.start,
            end: run.end,
            recency,
            previous_end: 0,
            next_start: u32::MAX,
        }
    }
}

/// The run of pages that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// How many pages.
    pub pages: u32,
    /// It begins at a multiple of this many pages, a power of two; 0 is taken as 1.
    pub align: u32,
    /// Where it may be.
    pub within: Range<u32>,
}

/// What emptying a window costs; less is better, earlier fields first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    /// Runs of those that may not leave: must be none.
    tied: u64,
    /// Pages of allocations that work requires.
    required: u64,
    /// Pages of all allocations that leave.
    pages: u64,
    /// Sum of their recencies.
    recency: u64,
}

impl Cost {
    /// Returns the cost of one more allocation.
    fn plus(self, occupant: &Occupant) -> Self {
        let one = Self::of(occupant);
        Self {
            tied: self.tied.saturating_add(one.tied),
            required: self.required.saturating_add(one.required),
            pages: self.pages.saturating_add(one.pages),
            recency: self.recency.saturating_add(one.recency),
        }
    }

    /// Returns the cost without that allocation.
    fn minus(self, occupant: &Occupant) -> Self {
        let one = Self::of(occupant);
        Self {
            tied: self.tied.saturating_sub(one.tied),
            required: self.required.saturating_sub(one.required),
            pages: self.pages.saturating_sub(one.pages),
            recency: self.recency.saturating_sub(one.recency),
        }
    }

    /// Returns what it costs that the allocation of `occupant` leaves.
    fn of(occupant: &Occupant) -> Self {
        let pages = u64::from(occupant.candidate.pages);
        let rank = occupant.candidate.rank;
        Self {
            tied: u64::from(!rank.may_leave()),
            required: if rank.is_required() { pages } else { 0 },
            pages,
            recency: occupant.recency.into(),
        }
    }
}

/// Chooses the window whose emptying costs least.
///
/// The first aim is that nothing required leaves, or as little of it as can be; then that few pages
/// leave; then that they were used long ago; then a low place. Every page inside [`Window::within`]
/// that is not free must belong to one of `occupants`, which come in any order and do not overlap;
/// those that may never leave are pinned ones. An allocation of several runs has one occupant for
/// each, with the same [`Candidate`]. The slice is left sorted for [`victims`].
///
/// With r occupants r log r steps for sorting and 2 r for the search. It suffices to look at
/// windows that begin right behind an occupant or at the beginning: any other can slide down to one
/// of these without meeting anybody new.
///
/// # Errors
///
/// [`NoRoom::Pages`] if every window has something pinned in it.
///
/// Requirement: SEG-14, RES-17, RES-18.
pub fn contiguous(window: &Window, occupants: &mut [Occupant]) -> Result<Range<u32>, NoRoom> {
    sort(occupants);
    let occupants = &*occupants;
    let starts = core::iter::once(window.within.start).chain(occupants.iter().map(|one| one.end));
    let mut slide = Slide {
        entering: occupants.iter(),
        leaving: occupants.iter(),
        start: 0,
        cost: Cost::default(),
    };
    let mut best: Option<(Cost, Range<u32>)> = None;
    let mut lowest = 0;
    for start in starts {
        let Some(place) = place_at(window, start) else {
            continue;
        };
        // An occupant below `within` ends below it, too.
        if place.start < lowest {
            continue;
        }
        lowest = place.start;
        let cost = slide.to(&place);
        let better = best.as_ref().is_none_or(|(least, _)| cost < *least);
        if cost.tied == 0 && better {
            best = Some((cost, place));
        }
    }
    best.map(|(_, place)| place).ok_or(NoRoom::Pages)
}

/// Returns the allocations that leave when `place`, chosen by [`contiguous`], is emptied.
///
/// Each comes once. `occupants` are those that [`contiguous`] left sorted. Linear in their number.
pub fn victims<'a>(
    occupants: &'a [Occupant],
    place: &Range<u32>,
) -> impl Iterator<Item = Victim<u64>> + 'a {
    let place = place.clone();
    occupants
        .iter()
        .filter(move |one| one.end > place.start && one.start < place.end)
        .filter(move |one| one.previous_end <= place.start)
        .map(|one| Victim {
            key: one.candidate.key,
            pages: one.candidate.pages,
        })
}

/// Returns the first place at or behind `start` that the window permits.
fn place_at(window: &Window, start: u32) -> Option<Range<u32>> {
    let start = start.max(window.within.start);
    let mask = window.align.max(1).wrapping_sub(1);
    let start = start.checked_add(mask)? & !mask;
    let end = start.checked_add(window.pages)?;
    (end <= window.within.end).then_some(start..end)
}

/// Sorts occupants by place and notes for each where its allocation's neighbouring runs are.
fn sort(occupants: &mut [Occupant]) {
    heap_sort(occupants, |one| (one.candidate.key, one.start));
    let mut rest = &mut *occupants;
    while let [one, tail @ ..] = rest {
        one.next_start = u32::MAX;
        if let Some(next) = tail.first_mut() {
            let same = next.candidate.key == one.candidate.key;
            next.previous_end = if same { one.end } else { 0 };
            one.next_start = if same { next.start } else { u32::MAX };
        }
        rest = tail;
    }
    heap_sort(occupants, |one| one.start);
}

/// A window that slides upwards over sorted occupants and knows the cost of those in it.
struct Slide<'a> {
    /// Those that have not entered yet.
    entering: core::slice::Iter<'a, Occupant>,
    /// Those that have not left yet.
    leaving: core::slice::Iter<'a, Occupant>,
    /// Where the window begins.
    start: u32,
    /// The cost of those in it; an allocation counts once, however many of its runs are in it.
    cost: Cost,
}

impl Slide<'_> {
    /// Slides the window to `place`, which is not below the last one; returns the cost there.
    fn to(&mut self, place: &Range<u32>) -> Cost {
        while let Some(one) = next_if(&mut self.entering, |one| one.start < place.end) {
            let is_first = one.previous_end <= self.start;
            if is_first {
                self.cost = self.cost.plus(one);
            }
        }
        while let Some(one) = next_if(&mut self.leaving, |one| one.end <= place.start) {
            let is_last = one.next_start >= place.end;
            if is_last {
                self.cost = self.cost.minus(one);
            }
        }
        self.start = place.start;
        self.cost
    }
}

/// Takes the next occupant if it is as `wanted`.
fn next_if<'a>(
    rest: &mut core::slice::Iter<'a, Occupant>,
    wanted: impl FnOnce(&Occupant) -> bool,
) -> Option<&'a Occupant> {
    let one = rest.as_slice().first().filter(|one| wanted(one))?;
    rest.next();
    Some(one)
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_window))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::super::eviction::{
        Bond,
        Need,
        Offer,
        Rank,
        Standing, //
    };
    use super::*;

    /// The ranks of the tests.
    #[derive(Clone, Copy)]
    enum Of {
        Idle,
        Required,
        Pinned,
    }
    use Of::{
        Idle,
        Pinned,
        Required, //
    };

    fn rank(of: Of) -> Rank {
        let idle = Standing {
            bond: Bond::Loose,
            need: Need::Idle,
            offer: Offer::None,
            priority: 3,
        };
        match of {
            Idle => idle.rank(),
            Required => Standing {
                need: Need::Required,
                ..idle
            }
            .rank(),
            Pinned => idle.rank().tied(Bond::Pinned),
        }
    }

    fn candidate(key: u64, pages: u32, of: Of) -> Candidate {
        Candidate {
            key,
            pages,
            rank: rank(of),
        }
    }

    /// An occupant of one run whose recency is its key.
    fn occupant(key: u64, run: Range<u32>, of: Of) -> Occupant {
        let pages = run.end - run.start;
        Occupant::new(candidate(key, pages, of), run, u32::try_from(key).unwrap())
    }

    fn window(pages: u32, align: u32) -> Window {
        Window {
            pages,
            align,
            within: 0..100,
        }
    }

    #[test]
    fn free_window_costs_nothing() {
        let mut occupants = [occupant(1, 0..40, Idle), occupant(2, 60..100, Idle)];
        let place = contiguous(&window(20, 1), &mut occupants).unwrap();
        assert_eq!(place, 40..60);
        assert_eq!(victims(&occupants, &place).count(), 0);
    }

    #[test]
    fn fewest_pages_leave() {
        let mut occupants = [
            occupant(1, 0..40, Idle),
            occupant(2, 60..70, Idle),
            occupant(3, 70..100, Idle),
        ];
        let place = contiguous(&window(30, 1), &mut occupants).unwrap();
        assert_eq!(place, 40..70);
        assert!(victims(&occupants, &place).eq([Victim { key: 2, pages: 10 }]));
    }

    #[test]
    fn required_stay_while_others_suffice() {
        let mut occupants = [
            occupant(1, 0..50, Idle),
            occupant(2, 50..60, Required),
            occupant(3, 60..100, Pinned),
        ];
        assert_eq!(contiguous(&window(10, 1), &mut occupants), Ok(0..10));
        assert_eq!(contiguous(&window(55, 1), &mut occupants), Ok(0..55));
        assert_eq!(
            contiguous(&window(61, 1), &mut occupants),
            Err(NoRoom::Pages)
        );
    }

    #[test]
    fn oldest_of_equal_windows_leaves() {
        let mut occupants = [occupant(9, 0..50, Idle), occupant(3, 50..100, Idle)];
        assert_eq!(contiguous(&window(50, 1), &mut occupants), Ok(50..100));
    }

    #[test]
    fn alignment_is_kept() {
        let mut occupants = [occupant(1, 0..33, Pinned), occupant(2, 63..65, Idle)];
        assert_eq!(contiguous(&window(30, 16), &mut occupants), Ok(48..78));
        assert_eq!(contiguous(&window(16, 16), &mut occupants), Ok(80..96));
    }

    #[test]
    fn scattered_allocation_counts_once() {
        let scattered = candidate(7, 12, Idle);
        let mut occupants = [
            Occupant::new(scattered, 4..8, 0),
            Occupant::new(scattered, 20..24, 0),
            Occupant::new(scattered, 30..34, 0),
            occupant(1, 40..60, Idle),
            occupant(2, 60..100, Pinned),
        ];
        let place = contiguous(&window(40, 1), &mut occupants).unwrap();
        assert_eq!(place, 0..40);
        assert!(victims(&occupants, &place).eq([Victim { key: 7, pages: 12 }]));
    }

    #[test]
    fn occupants_outside_do_not_matter() {
        let mut occupants = [occupant(1, 0..30, Pinned), occupant(2, 90..200, Pinned)];
        let window = Window {
            pages: 10,
            align: 1,
            within: 50..80,
        };
        assert_eq!(contiguous(&window, &mut occupants), Ok(50..60));
    }
}
