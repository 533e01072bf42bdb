// SPDX-License-Identifier: GPL-2.0

//! The segments in which a portion has to find its places.
//!
//! A [`Ground`] describes what lies in the part of each segment where contiguous allocations may be:
//! who must stay there, and what it would cost if the others left. Planning changes the description
//! only. It is lent memory for one occupant per page, which always suffices, as occupants do not
//! overlap.

use core::ops::Range;

use super::super::eviction::{
    contiguous,
    Bond,
    Candidate,
    Fate,
    Occupant,
    Rank,
    Window, //
};
use super::super::heap_sort::heap_sort;
use super::super::placement::End;
use crate::units::SegmentId;

/// Set in the keys of those that were placed here; not in those that were described.
const PLANNED: u64 = 1 << 63;

/// A segment, as far as allocations of a submission may lie in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Area {
    /// Pages at the lowest offsets in which contiguous allocations may lie.
    pub pages: u32,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages that may be in use at once.
    pub limit: u32,
    /// Where its occupants begin in the lent memory.
    first: usize,
    /// How many there are.
    count: usize,
}

impl Area {
    /// Describes a segment without anybody in it.
    pub fn new(pages: u32, page_bytes: u64, limit: u32) -> Self {
        Self {
            pages,
            page_bytes,
            limit,
            ..Self::default()
        }
    }

    /// Returns the pages that hold `bytes`.
    pub(super) fn pages_for(&self, bytes: u64) -> Option<u32> {
        let pages = bytes.checked_div(self.page_bytes)?;
        let rest = u64::from(bytes.checked_rem(self.page_bytes)? != 0);
        u32::try_from(pages.checked_add(rest)?).ok()
    }
}

/// Where something lies: a segment and its first page there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The segment.
    pub segment: SegmentId,
    /// The first page.
    pub page: u32,
}

/// What lies where in all segments.
#[derive(Debug)]
pub struct Ground<'a> {
    /// The segments, from id 1 on.
    areas: &'a mut [Area],
    /// Who lies in them, by segment.
    occupants: &'a mut [Occupant],
}

impl<'a> Ground<'a> {
    /// Describes empty segments. `occupants` has room for one entry for each of their pages.
    pub fn new(areas: &'a mut [Area], occupants: &'a mut [Occupant]) -> Self {
        let mut first = 0_usize;
        for area in areas.iter_mut() {
            area.first = first;
            area.count = 0;
            first = first.saturating_add(to_usize(area.pages));
        }
        Self { areas, occupants }
    }

    /// Says that somebody lies there; what lies behind the last page does not matter. After the last
    /// one comes [`Self::settle`].
    pub fn add(&mut self, segment: SegmentId, occupant: Occupant) {
        let Some(area) = area_mut(self.areas, segment) else {
            return;
        };
        if occupant.run().start >= area.pages {
            return;
        }
        let place = area.first.saturating_add(area.count);
        if let Some(place) = self.occupants.get_mut(place) {
            *place = occupant;
            area.count = area.count.saturating_add(1);
        }
    }

    /// Ends the description.
    pub fn settle(&mut self) {
        for number in 0..self.areas.len() {
            if let Some((_, occupants)) = self.split(segment_at(number)) {
                heap_sort(occupants, |one| one.run().start);
            }
        }
    }

    /// Returns a segment.
    pub(super) fn area(&self, segment: SegmentId) -> Option<&Area> {
        self.areas.get(segment.index().checked_sub(1)?)
    }

    /// Returns the numbers of the segments.
    pub(super) fn segments(&self) -> impl Iterator<Item = SegmentId> {
        (0..self.areas.len()).map(segment_at)
    }

    /// Returns a segment and who lies in it.
    fn split(&mut self, segment: SegmentId) -> Option<(Area, &mut [Occupant])> {
        let area = *self.area(segment)?;
        let end = area.first.checked_add(area.count)?;
        Some((area, self.occupants.get_mut(area.first..end)?))
    }

    /// Returns who lies in a segment, by place.
    pub(super) fn occupants(&self, segment: SegmentId) -> &[Occupant] {
        let found = self.area(segment).and_then(|area| {
            let end = area.first.checked_add(area.count)?;
            self.occupants.get(area.first..end)
        });
        found.unwrap_or_default()
    }

    /// Returns the index of the first occupant that does not end before `page`.
    fn position(&self, segment: SegmentId, page: u32) -> usize {
        self.occupants(segment)
            .partition_point(|one| one.run().end <= page)
    }

    /// Returns whether the run that was there at first still begins at this spot.
    pub(super) fn is_there(&self, spot: Spot) -> bool {
        let position = self.position(spot.segment, spot.page);
        let found = self.occupants(spot.segment).get(position);
        found.is_some_and(|one| one.run().start == spot.page && one.key() & PLANNED == 0)
    }

    /// Lets whoever lies at this spot stay there.
    pub(super) fn hold(&mut self, spot: Spot) {
        let position = self.position(spot.segment, spot.page);
        let found = self
            .split(spot.segment)
            .and_then(|(_, occupants)| occupants.get_mut(position));
        if let Some(found) = found.filter(|one| one.run().start == spot.page) {
            *found = found.staying();
        }
    }

    /// Returns the pages that must stay in use.
    pub(super) fn staying(&self, segment: SegmentId) -> u32 {
        let staying = self.occupants(segment).iter();
        staying
            .filter(|one| one.fate() == Fate::Stays)
            .fold(0, |sum, one| sum.saturating_add(length(&one.run())))
    }

    /// Returns whether so many pages more may be in use.
    pub(super) fn permits(&self, segment: SegmentId, pages: u32) -> bool {
        self.area(segment).is_some_and(|area| {
            area.limit >= area.pages || self.staying(segment).saturating_add(pages) <= area.limit
        })
    }

    /// Returns free pages, as near to the end `from` as there are any.
    pub(super) fn free(
        &self,
        segment: SegmentId,
        pages: u32,
        align: u32,
        from: End,
    ) -> Option<Range<u32>> {
        let area = self.area(segment)?;
        if !self.permits(segment, pages) {
            return None;
        }
        let occupants = self.occupants(segment);
        let starts = core::iter::once(0).chain(occupants.iter().map(|one| one.run().end));
        let ends = occupants.iter().map(|one| one.run().start);
        let gaps = starts.zip(ends.chain(core::iter::once(area.pages)));
        let fitting = |(start, end): (u32, u32)| {
            let end = end.min(area.pages);
            let start = match from {
                End::Low => aligned_up(start, align)?,
                End::High => aligned_down(end.checked_sub(pages)?, align),
            };
            let inside = start.checked_add(pages)? <= end;
            inside.then_some(start).zip(Some(start))
        };
        let mut found = None;
        for gap in gaps {
            let fits = fitting(gap).filter(|(start, _)| *start >= gap.0);
            if let Some((start, _)) = fits {
                found = Some(start..start.saturating_add(pages));
                if from == End::Low {
                    break;
                }
            }
        }
        found
    }

    /// Returns the pages whose clearing costs least.
    pub(super) fn cheapest(
        &mut self,
        segment: SegmentId,
        pages: u32,
        align: u32,
    ) -> Option<Range<u32>> {
        if !self.permits(segment, pages) {
            return None;
        }
        let (area, occupants) = self.split(segment)?;
        let window = Window {
            pages,
            align,
            within: 0..area.pages,
        };
        contiguous(&window, occupants).ok()
    }

    /// Lets somebody lie in these pages and stay; who lay there and could leave has left.
    pub(super) fn take(&mut self, segment: SegmentId, pages: Range<u32>) {
        self.retain(segment, |one| {
            one.start >= pages.end || one.end <= pages.start
        });
        let at = self.position(segment, pages.start);
        let Some(area) = area_mut(self.areas, segment) else {
            return;
        };
        let end = area.first.saturating_add(area.count).saturating_add(1);
        let Some(occupants) = self.occupants.get_mut(area.first..end) else {
            return;
        };
        area.count = area.count.saturating_add(1);
        if let Some(behind) = occupants.get_mut(at..) {
            behind.rotate_right(1);
        }
        if let Some(place) = occupants.get_mut(at) {
            *place = tenant(pages);
        }
    }

    /// Lets whoever lies at this spot be gone.
    pub(super) fn vacate(&mut self, spot: Spot) {
        self.retain(spot.segment, |one| one.start != spot.page);
    }

    /// Keeps those whose run is as wanted.
    fn retain(&mut self, segment: SegmentId, wanted: impl Fn(&Range<u32>) -> bool) {
        let Some((_, occupants)) = self.split(segment) else {
            return;
        };
        let mut kept = 0_usize;
        for index in 0..occupants.len() {
            let stays = occupants.get(index).is_some_and(|one| wanted(&one.run()));
            if stays {
                occupants.swap(kept, index);
                kept = kept.saturating_add(1);
            }
        }
        if let Some(area) = area_mut(self.areas, segment) {
            area.count = kept;
        }
    }
}

/// Returns the area of a segment.
fn area_mut(areas: &mut [Area], segment: SegmentId) -> Option<&mut Area> {
    areas.get_mut(segment.index().checked_sub(1)?)
}

/// Returns the segment whose area has this number.
fn segment_at(number: usize) -> SegmentId {
    let id = u32::try_from(number).ok().and_then(|id| id.checked_add(1));
    id.and_then(SegmentId::new).unwrap_or(SegmentId::SYSTEM)
}

/// Returns an occupant that stays, whoever it is.
fn tenant(pages: Range<u32>) -> Occupant {
    let candidate = Candidate {
        // One run: a key of its own.
        key: PLANNED | u64::from(pages.start),
        pages: length(&pages),
        rank: Rank::default().tied(Bond::Fixed),
    };
    Occupant::new(candidate, pages, Fate::Stays, 0)
}

/// Returns the number of pages in a range.
fn length(pages: &Range<u32>) -> u32 {
    pages.end.saturating_sub(pages.start)
}

/// Returns the first multiple of `align`, a power of two, from `page` on.
pub(super) fn aligned_up(page: u32, align: u32) -> Option<u32> {
    let mask = align.max(1).wrapping_sub(1);
    Some(page.checked_add(mask)? & !mask)
}

/// Returns the last multiple of `align`, a power of two, up to `page`.
fn aligned_down(page: u32, align: u32) -> u32 {
    page & !align.max(1).wrapping_sub(1)
}

/// Returns a number of pages as an index.
fn to_usize(pages: u32) -> usize {
    // CAST: `usize` has 64 bits wherever this driver runs.
    pages as usize
}
