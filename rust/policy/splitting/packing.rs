// SPDX-License-Identifier: GPL-2.0

//! Placing several allocations at once between what must stay.
//!
//! One after the other, each in the place that is best for it, allocations may come to lie such
//! that the next one finds no run although a better order would have left one. So before a buffer is
//! cut, all that may lie anywhere is placed anew, the largest first, and where that leads nowhere the
//! last choices are taken back. Without alignments above a page it matters only who lies in which
//! gap, never in which order, so the search finds a placement if there is one. Since the question is
//! a hard one it ends after [`LOOKS`] steps; then the answer is no, which costs a cut and nothing else.

use super::super::eviction::Fate;
use super::super::heap_sort::heap_sort;
use super::super::placement;
use super::ground::{
    aligned_up,
    Ground,
    Spot, //
};
use super::portion::Item;
use crate::units::SegmentId;

/// Gaps that are looked at before the search is given up.
pub const LOOKS: u32 = 1 << 18;

/// A stretch of pages between those that must stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The segment.
    segment: SegmentId,
    /// The first page that was not given out yet.
    at: u32,
    /// The page behind it.
    end: u32,
}

impl Default for Gap {
    fn default() -> Self {
        Self {
            segment: SegmentId::SYSTEM,
            at: 0,
            end: 0,
        }
    }
}

/// Where the search for one item stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Trial {
    /// Its segment: how many choices come before it.
    choice: usize,
    /// Its gap.
    gap: usize,
    /// Where the gap began before it was put there.
    before: u32,
    /// Where it lies now.
    spot: Option<Spot>,
}

impl Trial {
    /// Returns where it was put.
    pub(super) fn spot(&self) -> Option<Spot> {
        self.spot
    }
}

/// Lists the gaps between those that stay; returns how many there are, or [`None`] if there is not
/// enough room for them.
fn list_gaps(ground: &Ground<'_>, gaps: &mut [Gap]) -> Option<usize> {
    let mut count = 0_usize;
    for segment in ground.segments() {
        let end_of_area = ground.area(segment)?.pages;
        let staying = ground.occupants(segment).iter();
        let mut at = 0;
        let runs = staying
            .filter(|one| one.fate() == Fate::Stays)
            .map(|one| one.run())
            .chain(core::iter::once(end_of_area..end_of_area));
        for run in runs {
            let end = run.start.min(end_of_area);
            if end > at {
                *gaps.get_mut(count)? = Gap { segment, at, end };
                count = count.saturating_add(1);
            }
            at = at.max(run.end);
        }
    }
    Some(count)
}

/// A search for places.
struct Search<'a, 'b> {
    ground: &'a Ground<'b>,
    gaps: &'a mut [Gap],
    /// Steps left.
    looks: u32,
}

/// Finds places for the items whose numbers are in `order`, between those that stay in `ground`.
/// Each item's [`Trial`] says where; whether all have one is the answer. `gaps` is lent.
pub(super) fn pack(
    ground: &Ground<'_>,
    items: &mut [Item],
    order: &mut [u32],
    gaps: &mut [Gap],
) -> bool {
    let Some(count) = list_gaps(ground, gaps) else {
        return false;
    };
    let gaps = gaps.get_mut(..count).unwrap_or_default();
    {
        let items = &*items;
        let size = |index: &u32| {
            items
                .get(to_usize(*index))
                .map_or(0, |item| item.wanted.bytes)
        };
        heap_sort(order, |index| (u64::MAX.wrapping_sub(size(index)), *index));
    }
    let mut search = Search {
        ground,
        gaps,
        looks: LOOKS,
    };
    search.run(items, order)
}

impl Search<'_, '_> {
    /// Puts one after the other, and takes back what leads nowhere.
    fn run(&mut self, items: &mut [Item], order: &[u32]) -> bool {
        let mut depth = 0_usize;
        let mut trial = Trial::default();
        while let Some(index) = order.get(depth) {
            let Some(item) = items.get_mut(to_usize(*index)) else {
                return false;
            };
            if let Some(found) = self.next_place(item, trial) {
                item.trial = found;
                let same = order
                    .get(depth.saturating_add(1))
                    .and_then(|next| items.get(to_usize(*next)))
                    .zip(items.get(to_usize(*index)))
                    .is_some_and(|(next, item)| next.is_like(item));
                depth = depth.saturating_add(1);
                // Equal ones are put in ascending order only.
                trial = if same { found } else { Trial::default() };
                continue;
            }
            if self.looks == 0 {
                return false;
            }
            let Some(back) = depth.checked_sub(1) else {
                return false;
            };
            depth = back;
            trial = order
                .get(depth)
                .and_then(|last| items.get(to_usize(*last)))
                .map_or(Trial::default(), |item| item.trial);
            if let Some(gap) = self.gaps.get_mut(trial.gap) {
                gap.at = trial.before;
            }
            trial.gap = trial.gap.saturating_add(1);
        }
        true
    }

    /// Puts an item in the first gap, from `from` on, in which it has room.
    fn next_place(&mut self, item: &Item, from: Trial) -> Option<Trial> {
        let choices = placement::order(item.wanted.preferred, item.wanted.segments);
        let choices = choices.enumerate().skip(from.choice);
        for (number, choice) in choices {
            let first = if number == from.choice { from.gap } else { 0 };
            for index in first..self.gaps.len() {
                self.looks = self.looks.checked_sub(1)?;
                let gap = *self.gaps.get(index)?;
                if gap.segment != choice.segment || self.is_repeated(item, index) {
                    continue;
                }
                if let Some(page) = self.fits(item, gap) {
                    let area = self.ground.area(gap.segment)?;
                    let end = page.checked_add(area.pages_for(item.wanted.bytes)?)?;
                    self.gaps.get_mut(index)?.at = end;
                    let spot = Spot {
                        segment: gap.segment,
                        page,
                    };
                    return Some(Trial {
                        choice: number,
                        gap: index,
                        before: gap.at,
                        spot: Some(spot),
                    });
                }
            }
        }
        None
    }

    /// Returns the page at which an item would begin in a gap.
    fn fits(&self, item: &Item, gap: Gap) -> Option<u32> {
        let area = self.ground.area(gap.segment)?;
        let page = aligned_up(gap.at, area.pages_for(item.wanted.align)?)?;
        let pages = area.pages_for(item.wanted.bytes)?;
        let inside = page.checked_add(pages)? <= gap.end;
        let within_limit = || {
            area.limit >= area.pages || self.used(gap.segment).saturating_add(pages) <= area.limit
        };
        (inside && within_limit()).then_some(page)
    }

    /// Returns the pages of a segment that are in use, with what has been put there.
    fn used(&self, segment: SegmentId) -> u32 {
        let gaps = self.gaps.iter().filter(|gap| gap.segment == segment);
        let free = gaps.fold(0_u32, |sum, gap| {
            sum.saturating_add(gap.end.saturating_sub(gap.at))
        });
        let area = self.ground.area(segment);
        area.map_or(0, |area| area.pages.saturating_sub(free))
    }

    /// Returns whether a gap offers nothing that another one of the same length did not.
    fn is_repeated(&self, item: &Item, index: usize) -> bool {
        let Some(gap) = self.gaps.get(index) else {
            return false;
        };
        let page = self.ground.area(gap.segment).map(|area| area.page_bytes);
        let length = |gap: &Gap| gap.end.saturating_sub(gap.at);
        let before = self
            .gaps
            .get(..index)
            .unwrap_or_default()
            .iter()
            .rev()
            .take(8);
        page.is_some_and(|page| item.wanted.align <= page)
            && before
                .filter(|other| other.segment == gap.segment)
                .any(|other| length(other) == length(gap))
    }
}

/// Returns the number of an item as an index.
fn to_usize(number: u32) -> usize {
    // CAST: `usize` has 64 bits wherever this driver runs.
    number as usize
}
