// SPDX-License-Identifier: GPL-2.0

//! Bringing allocations to places that a plan has chosen for them ([`crate::policy::splitting`]).
//!
//! Whoever lies where another one is to come makes way first: what the plan has a place for goes there at once,
//! if that is free already, everybody else leaves and comes back when it is needed. Between two portions of a
//! submission all of that has the cause `split`.

use core::ops::Range;

use kernel::sync::Arc;

use crate::{
    abstractions::trace,
    backend::capabilities::SegmentKind,
    object::{
        allocation::Allocation,
        residence::Location, //
    },
    policy::splitting::Spot,
    units::SegmentId,
};

use super::{
    Mover,
    Refusal, //
};

impl Mover<'_> {
    /// Brings `allocation` to `spot`, from wherever it is, and pins it there. `planned` tells where the
    /// plan wants others.
    ///
    /// # Errors
    ///
    /// - [`Refusal::Occupied`]: somebody is there who will leave one day.
    /// - [`Refusal::NoPlace`]: the place is not to be had, or the allocation has no backing pages.
    /// - [`Refusal::GivenUp`]: a move failed.
    pub(in crate::object) fn bring_to(
        &mut self,
        allocation: &Arc<Allocation>,
        spot: Spot,
        planned: impl Fn(&Allocation) -> Option<Spot>,
    ) -> Result<(), Refusal> {
        if self.is_at(allocation, spot) {
            self.stay(allocation);
            return Ok(());
        }
        let id = spot.segment;
        let segment = self.residency.segment(id).ok_or(Refusal::NoPlace)?;
        let kind = segment.kind;
        let window = segment
            .pages_from(spot.page, allocation.size())
            .ok_or(Refusal::NoPlace)?;
        self.clear_planned(allocation, id, &window, planned)?;
        if kind == SegmentKind::Memory && self.shift_to(allocation, id, window.clone())? {
            self.stay(allocation);
            return Ok(());
        }
        let resident = allocation.residence().lock().is_resident();
        if resident {
            self.leave(allocation, self.departure())?;
            self.builder.flush(self.line);
        }
        let chain = self
            .residency
            .segment_mut(id)
            .and_then(|segment| segment.take_pages(window))
            .ok_or(Refusal::NoPlace)?;
        let location = match kind {
            SegmentKind::Memory => Location::Segment(id, chain),
            SegmentKind::Aperture => Location::Aperture(chain),
        };
        self.come(allocation, location)
    }

    /// Returns whether an allocation lies at a spot.
    fn is_at(&self, allocation: &Allocation, spot: Spot) -> bool {
        let residence = allocation.residence().lock();
        self.residency.spot_of(&residence) == Some(spot)
    }

    /// Why those leave who are in the way.
    fn departure(&self) -> trace::Cause {
        match self.cause {
            trace::Cause::Split => trace::Cause::Split,
            _ => trace::Cause::Pressure,
        }
    }

    /// Why those move that are in the way.
    fn movement(&self) -> trace::Cause {
        match self.cause {
            trace::Cause::Split => trace::Cause::Split,
            _ => trace::Cause::Move,
        }
    }

    /// Lets everybody but `allocation` go away from `window`, and as many others leave as the commit
    /// limit demands.
    fn clear_planned(
        &mut self,
        allocation: &Allocation,
        id: SegmentId,
        window: &Range<u32>,
        planned: impl Fn(&Allocation) -> Option<Spot>,
    ) -> Result<(), Refusal> {
        let super::Residency {
            segments, victims, ..
        } = &mut *self.residency;
        let segment = super::find(segments, id).ok_or(Refusal::NoPlace)?;
        let count = segment.list_tenants(window, allocation.object_id(), victims);
        for index in 0..count {
            let victim = self.residency.victims.get(index).copied();
            let found = victim.and_then(|victim| {
                let segment = self.residency.segment(id)?;
                segment.order.get(&victim.key).cloned()
            });
            let Some(found) = found else { continue };
            if found.residence().lock().stays() {
                return Err(Refusal::Occupied);
            }
            let target = planned(&found).filter(|target| !self.is_at(&found, *target));
            if !self.make_way(&found, target)? {
                self.leave(&found, self.departure())?;
            }
        }
        let comes = !self.is_in(allocation, id);
        let shape = allocation.shape();
        let over = self
            .residency
            .segment(id)
            .map_or(0, |segment| segment.overdraft(&shape));
        if comes && over > 0 {
            let chosen = self.choose_loose(id, Some(over));
            self.clear(id, chosen)?;
        }
        // Who comes now goes to pages that are still being read: into a buffer of its own.
        self.builder.flush(self.line);
        Ok(())
    }

    /// Returns whether an allocation lies in a segment.
    fn is_in(&self, allocation: &Allocation, id: SegmentId) -> bool {
        let residence = allocation.residence().lock();
        let spot = self.residency.spot_of(&residence);
        spot.is_some_and(|spot| spot.segment == id)
    }

    /// Moves somebody who is in the way to where the plan wants it, if that is free; says whether it
    /// was.
    fn make_way(&mut self, found: &Arc<Allocation>, target: Option<Spot>) -> Result<bool, Refusal> {
        let Some(target) = target else {
            return Ok(false);
        };
        let pages = self
            .residency
            .segment(target.segment)
            .filter(|segment| segment.kind == SegmentKind::Memory)
            .and_then(|segment| segment.pages_from(target.page, found.size()));
        match pages {
            Some(pages) => self.shift_to(found, target.segment, pages),
            None => Ok(false),
        }
    }

    /// Moves an allocation from a memory segment to free pages of one; says whether it could be done.
    fn shift_to(
        &mut self,
        allocation: &Arc<Allocation>,
        id: SegmentId,
        pages: Range<u32>,
    ) -> Result<bool, Refusal> {
        let in_memory = matches!(
            allocation.residence().lock().location(),
            Location::Segment(..)
        );
        if !in_memory {
            return Ok(false);
        }
        let chain = self
            .residency
            .segment_mut(id)
            .and_then(|segment| segment.take_pages(pages));
        match chain {
            Some(chain) => self
                .shift(allocation, id, chain, self.movement())
                .map(|()| true),
            None => Ok(false),
        }
    }
}
