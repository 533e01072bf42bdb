// SPDX-License-Identifier: GPL-2.0

//! Making room for one run of pages.
//!
//! The policy chooses a stretch of pages; who lies in it goes away. Those who may move go to free
//! pages of the same segment, or to another segment that they permit, in one transfer each and without
//! ever being nowhere (cause `move`); who finds no other pages leaves (cause `pressure`). Until the
//! stretch is clear its free pages are blocked, so that nobody who is moved comes back into it.
//!
//! The guess of the policy who can move is careful but no promise: who was thought to move and finds no
//! pages leaves, too. What the request itself needs may be moved as well, and if it has to leave it comes
//! back with the rest of the request.

use core::ops::Range;

use kernel::sync::Arc;

use crate::{
    abstractions::trace,
    backend::capabilities::SegmentKind,
    object::{
        allocation::Allocation,
        residence::{
            Location,
            Residence, //
        },
        segment::{
            Segment,
            Shape, //
        },
    },
    policy::{
        eviction::{
            self,
            Fate,
            Victim, //
        },
        placement::{
            self,
            Chain,
            Choice,
            End, //
        },
    },
    units::SegmentId,
};

use super::{
    find,
    refusal,
    Mover,
    Refusal,
    Residency, //
};

impl Mover<'_> {
    /// Clears the stretch of pages in a segment whose clearing costs least, and takes it.
    pub(super) fn clear_window(
        &mut self,
        allocation: &Allocation,
        choice: Choice,
    ) -> Result<Location, Refusal> {
        let id = choice.segment;
        let (window, count) = self.choose_window(id, &allocation.shape())?;
        let mut blocked = self.block(id, &window);
        for index in 0..count {
            let victim = self.residency.victims.get(index).copied();
            let found = victim.and_then(|victim| {
                let segment = self.residency.segment(id)?;
                segment.order.get(&victim.key).cloned()
            });
            let Some(found) = found else { continue };
            if !self.move_away(&found, id) {
                // One that cannot leave is in the way of what follows, which tells.
                let _ = self.leave(&found, trace::Cause::Pressure);
            }
            self.unblock(id, blocked);
            blocked = self.block(id, &window);
            // Who comes next may go to pages that are still being read: into a buffer of its own.
            self.builder.flush(self.line);
        }
        self.unblock(id, blocked);
        let chain = self
            .residency
            .segment_mut(id)
            .and_then(|segment| segment.take_pages(window))
            .ok_or(Refusal::NoPlace)?;
        Ok(
            match self.residency.segment(id).map(|segment| segment.kind) {
                Some(SegmentKind::Aperture) => Location::Aperture(chain),
                _ => Location::Segment(id, chain),
            },
        )
    }

    /// Names the stretch to be cleared, and how many are in it; they stand in the list of victims.
    pub(super) fn choose_window(
        &mut self,
        id: SegmentId,
        shape: &Shape,
    ) -> Result<(Range<u32>, usize), Refusal> {
        let Residency {
            segments,
            victims,
            occupants,
            keys,
            ..
        } = &mut *self.residency;
        let all: &[Segment] = segments;
        let segment = id
            .index()
            .checked_sub(1)
            .and_then(|index| all.get(index))
            .ok_or(Refusal::NoPlace)?;
        let window = segment.window(shape).ok_or(Refusal::NoPlace)?;
        segment.map_out(occupants, keys, |allocation, residence, inside| {
            fate(all, segment, allocation, residence, window.pages, inside)
        });
        let Ok(place) = eviction::contiguous(&window, occupants) else {
            return Err(refusal(segment));
        };
        let mut count = 0;
        for (victim, slot) in eviction::victims(occupants, &place).zip(victims.iter_mut()) {
            let key = usize::try_from(victim.key)
                .ok()
                .and_then(|index| keys.get(index));
            *slot = Victim {
                key: key.copied().unwrap_or_default(),
                pages: victim.pages,
            };
            count += 1;
        }
        Ok((place, count))
    }

    /// Moves an allocation to free pages of the same segment, or of another one that it permits; says
    /// whether there were any.
    fn move_away(&mut self, allocation: &Arc<Allocation>, here: SegmentId) -> bool {
        if !matches!(
            allocation.residence().lock().location(),
            Location::Segment(..)
        ) {
            return false;
        }
        let same = Choice {
            segment: here,
            from: End::Low,
        };
        let others = placement::order(allocation.preferred(), allocation.segments())
            .filter(|choice| choice.segment != here);
        for choice in core::iter::once(same).chain(others) {
            let is_memory = find(&mut self.residency.segments, choice.segment)
                .is_some_and(|segment| segment.kind == SegmentKind::Memory);
            let place = is_memory.then(|| self.take(allocation, choice)).flatten();
            if let Some(Location::Segment(id, chain)) = place {
                let moved = self.shift(allocation, id, chain, trace::Cause::Move);
                return moved.is_ok();
            }
        }
        false
    }

    /// Takes the free pages of a stretch.
    fn block(&mut self, id: SegmentId, window: &Range<u32>) -> Option<Chain> {
        self.residency.segment_mut(id)?.block(window)
    }

    /// Gives them back.
    fn unblock(&mut self, id: SegmentId, blocked: Option<Chain>) {
        if let (Some(segment), Some(chain)) = (self.residency.segment_mut(id), blocked) {
            segment.unblock(chain);
        }
    }
}

/// Guesses what becomes of an allocation in the way, of which a run of `inside` pages may lie in a
/// stretch of `window` pages.
fn fate(
    segments: &[Segment],
    here: &Segment,
    allocation: &Allocation,
    residence: &Residence,
    window: u32,
    inside: u32,
) -> Fate {
    if residence.stays() {
        return Fate::Stays;
    }
    let shape = allocation.shape();
    let elsewhere = |segment: &Segment| {
        segment.id != here.id
            && segment.kind == SegmentKind::Memory
            && allocation.permits(segment.id)
            && segment.has_room_beside(&shape, 0, 0)
    };
    let is_memory = here.kind == SegmentKind::Memory;
    if is_memory && (here.has_room_beside(&shape, window, inside) || segments.iter().any(elsewhere))
    {
        Fate::Moves
    } else {
        Fate::Leaves
    }
}
