// SPDX-License-Identifier: GPL-2.0

//! Which run of pages to clear.
//!
//! An allocation that needs adjacent pages finds no room although enough pages are free or could
//! be freed, because they are not neighbours. So what is chosen is a window of pages, and everyone
//! with a page in it goes away, also those whose other pages are elsewhere: to other pages, if they
//! may move and there are any, or out. Of all windows in which nobody has to stay the cheapest is
//! taken.

use core::ops::Range;

use super::eviction::{
    Candidate,
    NoRoom,
    Rank,
    Victim, //
};
use super::heap_sort::heap_sort;

/// What becomes of an allocation when the place of one of its runs is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It must stay where it is.
    Stays,
    /// It goes to other pages.
    Moves,
    /// There are no other pages for it: it leaves.
    Leaves,
}

/// One run of pages that an allocation occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// The allocation, with all its pages, wherever they are.
    candidate: Candidate,
    /// What becomes of it.
    fate: Fate,
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
    /// Says that `candidate` occupies `run`; `recency` grows from the one used longest ago. All
    /// runs of an allocation have the same fate.
    pub fn new(candidate: Candidate, run: Range<u32>, fate: Fate, recency: u32) -> Self {
        Self {
            candidate,
            fate,
            start: run.start,
            end: run.end,
            recency,
            previous_end: 0,
            next_start: u32::MAX,
        }
    }

    /// Returns an entry of lent memory that is not in use.
    pub fn nobody() -> Self {
        let candidate = Candidate {
            key: 0,
            pages: 0,
            rank: Rank::default(),
        };
        Self::new(candidate, 0..0, Fate::Leaves, 0)
    }

    /// Returns its pages.
    pub fn run(&self) -> Range<u32> {
        self.start..self.end
    }

    /// Returns the number by which the caller knows its allocation.
    pub fn key(&self) -> u64 {
        self.candidate.key
    }

    /// Returns what becomes of it.
    pub fn fate(&self) -> Fate {
        self.fate
    }

    /// Returns it as one that must stay.
    pub(super) fn staying(self) -> Self {
        Self {
            fate: Fate::Stays,
            ..self
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
    /// Runs of those that stay: must be none.
    staying: u64,
    /// The highest rank of those that leave, plus one.
    highest: u32,
    /// Pages of all allocations that leave.
    leaving: u64,
    /// Pages of all allocations that move.
    moving: u64,
    /// Sum of the recencies.
    recency: u64,
}

/// The ranks that can leave; all that cannot count as the last of them.
const RANKS: usize = 256;

/// The sums over those in a window.
struct Sums {
    /// What can be added and subtracted; the highest rank is that of nobody.
    cost: Cost,
    /// How many leave, by rank.
    ranks: [u32; RANKS],
    /// Which of these are not zero, one bit each.
    present: [u64; RANKS / 64],
}

impl Sums {
    /// Of an empty window.
    const fn new() -> Self {
        Self {
            cost: Cost {
                staying: 0,
                highest: 0,
                leaving: 0,
                moving: 0,
                recency: 0,
            },
            ranks: [0; RANKS],
            present: [0; RANKS / 64],
        }
    }

    /// Adds one more allocation.
    fn add(&mut self, one: &Occupant) {
        let pages = u64::from(one.candidate.pages);
        let cost = &mut self.cost;
        cost.recency = cost.recency.saturating_add(one.recency.into());
        match one.fate {
            Fate::Stays => cost.staying = cost.staying.saturating_add(1),
            Fate::Moves => cost.moving = cost.moving.saturating_add(pages),
            Fate::Leaves => {
                cost.leaving = cost.leaving.saturating_add(pages);
                self.count(one.candidate.rank, |count| count.saturating_add(1));
            }
        }
    }

    /// Takes an allocation away that was added.
    fn subtract(&mut self, one: &Occupant) {
        let pages = u64::from(one.candidate.pages);
        let cost = &mut self.cost;
        cost.recency = cost.recency.saturating_sub(one.recency.into());
        match one.fate {
            Fate::Stays => cost.staying = cost.staying.saturating_sub(1),
            Fate::Moves => cost.moving = cost.moving.saturating_sub(pages),
            Fate::Leaves => {
                cost.leaving = cost.leaving.saturating_sub(pages);
                self.count(one.candidate.rank, |count| count.saturating_sub(1));
            }
        }
    }

    /// Changes how many of a rank leave.
    fn count(&mut self, rank: Rank, change: impl Fn(u32) -> u32) {
        let index = rank.order();
        // CAST: below 256.
        let (word, bit) = (index as usize / 64, index % 64);
        // CAST: below 256.
        let (count, word) = (
            self.ranks.get_mut(index as usize),
            self.present.get_mut(word),
        );
        if let (Some(count), Some(word)) = (count, word) {
            *count = change(*count);
            let mask = 1_u64.wrapping_shl(bit);
            *word = if *count == 0 {
                *word & !mask
            } else {
                *word | mask
            };
        }
    }

    /// Returns the cost.
    fn cost(&self) -> Cost {
        let words = (0_u32..).zip(&self.present);
        let highest = words
            .filter_map(|(index, word)| Some(word.checked_ilog2()?.wrapping_add(index * 64)))
            .last();
        Cost {
            highest: highest.map_or(0, |highest| highest.wrapping_add(1)),
            ..self.cost
        }
    }
}

/// Chooses the window whose emptying costs least.
///
/// The first aim is that the ranks of those that leave are low, then that few pages leave, then that few
/// move; then that they were used long ago; then a low place. Every page inside [`Window::within`]
/// that is not free must belong to one of `occupants`, which come in any order and do not overlap.
/// An allocation of several runs has one occupant for each, with the same [`Candidate`]. The slice is left sorted for [`victims`].
///
/// With r occupants r log r steps for sorting and 2 r for the search. It suffices to look at
/// windows that begin right behind an occupant or at the beginning: any other can slide down to one
/// of these without meeting anybody new.
///
/// # Errors
///
/// [`NoRoom::Pages`] if every window has somebody in it who stays.
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
        sums: Sums::new(),
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
        if cost.staying == 0 && better {
            best = Some((cost, place));
        }
    }
    best.map(|(_, place)| place).ok_or(NoRoom::Pages)
}

/// Returns the allocations that go away when `place`, chosen by [`contiguous`], is emptied.
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
    /// The sums over those in it; an allocation counts once, however many of its runs are in it.
    sums: Sums,
}

impl Slide<'_> {
    /// Slides the window to `place`, which is not below the last one; returns the cost there.
    fn to(&mut self, place: &Range<u32>) -> Cost {
        while let Some(one) = next_if(&mut self.entering, |one| one.start < place.end) {
            let is_first = one.previous_end <= self.start;
            if is_first {
                self.sums.add(one);
            }
        }
        while let Some(one) = next_if(&mut self.leaving, |one| one.end <= place.start) {
            let is_last = one.next_start >= place.end;
            if is_last {
                self.sums.subtract(one);
            }
        }
        self.start = place.start;
        self.sums.cost()
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

    fn fate(of: Of) -> Fate {
        match of {
            Pinned => Fate::Stays,
            _ => Fate::Leaves,
        }
    }

    /// An occupant of one run whose recency is its key.
    fn occupant(key: u64, run: Range<u32>, of: Of) -> Occupant {
        let pages = run.end - run.start;
        Occupant::new(
            candidate(key, pages, of),
            run,
            fate(of),
            u32::try_from(key).unwrap(),
        )
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
    fn moving_is_better_than_leaving() {
        let mut occupants = [
            occupant(1, 0..20, Idle),
            Occupant::new(candidate(2, 80, Idle), 20..100, Fate::Moves, 0),
        ];
        assert_eq!(contiguous(&window(20, 1), &mut occupants), Ok(20..40));
    }

    #[test]
    fn lower_rank_leaves_even_if_it_is_larger() {
        let mut occupants = [
            occupant(1, 0..60, Idle),
            occupant(2, 60..80, Required),
            occupant(3, 80..100, Pinned),
        ];
        assert_eq!(contiguous(&window(20, 1), &mut occupants), Ok(0..20));
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
            Occupant::new(scattered, 4..8, Fate::Leaves, 0),
            Occupant::new(scattered, 20..24, Fate::Leaves, 0),
            Occupant::new(scattered, 30..34, Fate::Leaves, 0),
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
