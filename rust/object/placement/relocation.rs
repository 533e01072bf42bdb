// SPDX-License-Identifier: GPL-2.0

//! Moves that a debug command asks for.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::trace,
    object::{
        allocation::Allocation,
        inject::Destination,
        residence::Location, //
    },
    policy::placement::{
        self,
        Choice, //
    },
    units::{
        Place,
        SegmentId, //
    },
};

use super::{
    Moved,
    Mover,
    Refusal, //
};

impl Mover<'_> {
    /// Moves an allocation where a debug command wants it; brings it in if it is not resident.
    /// Content goes straight from one memory segment to another, otherwise by way of the backing
    /// pages.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: it never moves from where it is.
    /// - `EINVAL`: a segment outside its set, an offset that is misaligned or too large.
    /// - `ENOSPC`: the place cannot be had without moving others.
    /// - `EIO`: the move failed.
    pub(in crate::object) fn relocate(
        &mut self,
        allocation: &Arc<Allocation>,
        destination: Destination,
    ) -> Result<Moved> {
        let (current, in_memory) = {
            let residence = allocation.residence().lock();
            if residence.fixed > 0 || residence.slot_holds() > 0 {
                return Err(EBUSY);
            }
            if residence.pins > 0 {
                return Ok(Moved::InUse);
            }
            let in_memory = matches!(residence.location(), Location::Segment(..));
            (self.residency.place_of(&residence), in_memory)
        };
        let Some(location) = self.destination(allocation, current, destination)? else {
            return Ok(Moved::Done);
        };
        match location {
            Location::Segment(id, chain) if in_memory => {
                self.shift(allocation, id, chain, trace::Cause::Move)?;
            }
            location => self.by_backing(allocation, location)?,
        }
        Ok(Moved::Done)
    }

    /// Moves an allocation to a place that was taken for it, by way of its backing pages.
    fn by_backing(&mut self, allocation: &Arc<Allocation>, to: Location) -> Result<(), Refusal> {
        if let Err(refusal) = self.leave(allocation, trace::Cause::Move) {
            self.give_up(to);
            return Err(refusal);
        }
        self.come(allocation, to)?;
        Allocation::unpin(allocation);
        Ok(())
    }

    /// Takes the place that a debug command names; [`None`] if the allocation is there already.
    fn destination(
        &mut self,
        allocation: &Allocation,
        current: Option<Place>,
        destination: Destination,
    ) -> Result<Option<Location>> {
        if self.residency.failing.takes_place() {
            return Err(ENOSPC);
        }
        let aperture = self.residency.aperture();
        let shape = allocation.shape();
        let named = |id: SegmentId| match aperture {
            Some(aperture) if id == SegmentId::SYSTEM => aperture,
            _ => id,
        };
        let is_system = |id: SegmentId| id == SegmentId::SYSTEM || Some(id) == aperture;
        let (id, offset) = match destination {
            Destination::Elsewhere => {
                let here = current.map(|place| named(place.segment));
                let others = placement::order(allocation.preferred(), allocation.segments());
                let first = here
                    .filter(|id| Some(*id) != aperture)
                    .map(|segment| Choice {
                        segment,
                        from: placement::End::Low,
                    });
                let choices = Iterator::chain(
                    first.into_iter(),
                    others.filter(|choice| Some(choice.segment) != here),
                );
                for choice in choices {
                    if let Some(location) = self.take(allocation, choice) {
                        return Ok(Some(location));
                    }
                }
                return Err(ENOSPC);
            }
            Destination::Segment(id) => (named(id), None),
            Destination::Place(id, offset) => (named(id), Some(offset)),
        };
        if !allocation.permits(id) {
            return Err(EINVAL);
        }
        let here = current.is_some_and(|place| {
            let same = named(place.segment) == id;
            same && (is_system(id) || offset.is_none_or(|offset| offset == place.offset))
        });
        let Some(offset) = offset else {
            if here {
                return Ok(None);
            }
            let choice = Choice {
                segment: id,
                from: placement::End::Low,
            };
            return self.take(allocation, choice).map(Some).ok_or(ENOSPC);
        };
        let segment = self.residency.segment_mut(id).ok_or(EINVAL)?;
        let end = offset.checked_add(shape.bytes).ok_or(EINVAL)?;
        if is_system(id) || offset % segment.page_bytes != 0 || end > segment.bytes() {
            return Err(EINVAL);
        }
        if here {
            return Ok(None);
        }
        let chain = segment.take_at(&shape, offset).ok_or(ENOSPC)?;
        Ok(Some(Location::Segment(id, chain)))
    }
}
