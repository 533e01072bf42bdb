// SPDX-License-Identifier: GPL-2.0

//! Coming, leaving and going elsewhere: the new place, the operations, and the books, in one step.
//!
//! A move that fails (`inject fail move`) is given up before its first operation: the trace leads
//! back, the new place is given back, and the allocation is where it was.

use kernel::sync::Arc;

use crate::{
    abstractions::trace,
    object::{
        allocation::{
            Allocation,
            Flag, //
        },
        backing::Backing,
        client::Sum,
        paging::Reason,
        reclaim,
        residence::{
            Content,
            Fate,
            Location,
            Residence,
            Wish, //
        },
    },
    policy::placement::Chain,
    units::{
        Place,
        SegmentId, //
    },
};

use super::{
    trace_move,
    Behalf,
    Mover,
    Refusal, //
};

impl Mover<'_> {
    /// Puts an allocation that is nowhere into a place that was taken for it, and pins it there.
    ///
    /// # Errors
    ///
    /// - [`Refusal::NoPlace`]: it has no backing pages.
    /// - [`Refusal::GivenUp`]: the move failed.
    ///
    /// The place is given back.
    pub(super) fn come(
        &mut self,
        allocation: &Arc<Allocation>,
        location: Location,
    ) -> Result<(), Refusal> {
        if let Err(refusal) = self.prepare_mappings(allocation) {
            self.give_up(location);
            return Err(refusal);
        }
        let mut residence = allocation.residence().lock();
        self.residency.idle.leave(allocation, &mut residence);
        let Some(backing) = residence.take_backing() else {
            // Step A1 took it; without it there is nothing to come from.
            drop(residence);
            self.give_up(location);
            return Err(Refusal::NoPlace);
        };
        let to = match &location {
            Location::Nowhere => None,
            Location::System => Some(Place::new(SegmentId::SYSTEM, backing.address())),
            Location::Aperture(chain) => self
                .residency
                .aperture()
                .and_then(|id| self.place_at(id, chain)),
            Location::Segment(id, chain) => self.place_at(*id, chain),
        };
        if let Err(refusal) = self.begin(allocation, None, to, self.cause) {
            drop(residence.install(backing));
            drop(residence);
            self.give_up(location);
            return Err(refusal);
        }
        let usage = allocation.device().client().usage();
        let why = self.why(allocation);
        let size = allocation.size();
        let how = self.behalf.how();
        self.residency.uses.note(allocation, &mut residence, how);
        self.translate_coming(allocation, &location, &backing);
        match &location {
            Location::Segment(id, chain) => {
                self.step(2, allocation);
                if residence.content == Content::Backing {
                    self.adapter.unmap(allocation, &mut residence);
                }
                if let Some(segment) = self.residency.segment_mut(*id) {
                    let (line, builder) = (self.line, &mut *self.builder);
                    match residence.content {
                        Content::Empty => builder.fill(line, size, segment.runs(chain), why),
                        _ => builder.transfer(line, size, backing.runs(), segment.runs(chain), why),
                    }
                    segment.order.enter(allocation, &mut residence);
                }
                if residence.content == Content::Backing {
                    self.paged.bytes_in += size;
                    usage.add(Sum::PagedIn, size);
                }
                usage.add(Sum::Resident(*id), size);
            }
            Location::Aperture(_) => {
                let id = self.residency.aperture().unwrap_or(SegmentId::SYSTEM);
                self.clean(&backing, size, &mut residence, why);
                if let Some(place) = to {
                    self.builder
                        .map_aperture(self.line, place, backing.runs(), why);
                }
                if let Some(segment) = self.residency.segment_mut(id) {
                    segment.order.enter(allocation, &mut residence);
                }
                usage.add(Sum::Resident(id), size);
                self.residency.system_bytes += size;
                usage.add(Sum::Resident(SegmentId::SYSTEM), size);
            }
            Location::System => {
                self.clean(&backing, size, &mut residence, why);
                self.residency.system_bytes += size;
                usage.add(Sum::Resident(SegmentId::SYSTEM), size);
            }
            Location::Nowhere => {}
        }
        drop(residence.install(backing));
        residence.arrive(location);
        residence.unplaced = false;
        self.take_back(&mut residence);
        residence.settled = residence.settled.max(self.builder.settles(self.line));
        residence.pins += 1;
        if allocation.flags().contains(Flag::Pinned) {
            residence.fixed += 1;
        }
        drop(residence);
        allocation.moved();
        Ok(())
    }

    /// An allocation that work uses again is given up no longer.
    pub(super) fn take_back(&self, residence: &mut Residence) {
        if matches!(self.behalf, Behalf::Work) && residence.wish != Wish::Leave {
            residence.given_up = false;
        }
    }

    /// Clears backing pages that hold what was given up, before an engine can see them.
    fn clean(&mut self, backing: &Backing, bytes: u64, residence: &mut Residence, why: Reason) {
        if residence.is_stained() {
            self.builder.fill(self.line, bytes, backing.runs(), why);
            residence.note_cleared();
        }
    }

    /// Moves an allocation out of its place. Its content is kept, but for what was offered and leaves a
    /// memory segment under pressure (PAG-15); what it was brought from need not be written again if
    /// nobody has changed the content since (PAG-21).
    ///
    /// # Errors
    ///
    /// - [`Refusal::GivenUp`]: the move failed, and nobody wishes for it any more.
    pub(in crate::object) fn leave(
        &mut self,
        allocation: &Arc<Allocation>,
        cause: trace::Cause,
    ) -> Result<(), Refusal> {
        // The last use of an offered allocation may have ended just now.
        self.residency.put_in_force(allocation);
        self.settle_for(allocation);
        let mut residence = allocation.residence().lock();
        let fate = residence.fate(cause);
        let cause = match fate {
            Some(Fate::GivenUp) => trace::Cause::Discard,
            _ => cause,
        };
        let from = self.residency.place_of(&residence);
        if from.is_some() {
            if let Err(refusal) = self.begin(allocation, from, None, cause) {
                residence.wish = Wish::None;
                drop(residence);
                // Who waits for it to leave asks again.
                allocation.moved();
                return Err(refusal);
            }
        }
        if from.is_some() {
            self.translate_away(allocation, &Location::Nowhere, &residence);
        }
        let location = core::mem::replace(&mut residence.location, Location::Nowhere);
        let usage = allocation.device().client().usage();
        let size = allocation.size();
        let why = Reason {
            space: 0,
            process: 0,
            allocation: allocation.object_id(),
            cause,
        };
        match location {
            Location::Segment(id, chain) => {
                self.adapter.unmap(allocation, &mut residence);
                if let Some(segment) = self.residency.segment_mut(id) {
                    let (line, builder) = (self.line, &mut *self.builder);
                    match (fate, residence.backing()) {
                        (Some(Fate::Copied), Some(backing)) => {
                            builder.transfer(line, size, segment.runs(&chain), backing.runs(), why);
                        }
                        _ => builder.discard(line, segment.runs(&chain), why),
                    }
                    segment.order.leave(allocation, &mut residence);
                    segment.give(chain);
                }
                match fate {
                    Some(Fate::Copied) => {
                        self.paged.bytes_out += size;
                        usage.add(Sum::PagedOut, size);
                    }
                    Some(Fate::GivenUp) => allocation.count_discarded(),
                    Some(Fate::Unchanged) | None => {}
                }
                usage.add(Sum::Evictions, 1);
                usage.sub(Sum::Resident(id), size);
            }
            Location::Aperture(chain) => {
                self.unmap_range(allocation, &mut residence, chain, why);
                self.leave_system(allocation);
            }
            Location::System => self.leave_system(allocation),
            Location::Nowhere => {}
        }
        residence.wanted = false;
        residence.pinned_in_system = false;
        residence.part(fate);
        residence.settled = residence.settled.max(self.builder.settles(self.line));
        residence.wish = Wish::None;
        self.residency
            .idle
            .enter(reclaim::Reason::Settling, allocation, &mut residence);
        drop(residence);
        allocation.moved();
        Ok(())
    }

    /// Moves the content of an allocation from its place in a memory segment straight to another
    /// one, which was taken for it while it still holds the old one. The old pages are free at once:
    /// the operations of who comes there next are built later (PAG-14).
    ///
    /// It stays as recently used as it was, and what the GPU has written to it since it came stays
    /// unknown to its backing pages.
    ///
    /// # Errors
    ///
    /// - [`Refusal::GivenUp`]: the move failed. The new place is given back.
    /// - [`Refusal::NoPlace`]: it is not in a memory segment, a defect of the caller. As above.
    pub(in crate::object) fn shift(
        &mut self,
        allocation: &Arc<Allocation>,
        id: SegmentId,
        chain: Chain,
        cause: trace::Cause,
    ) -> Result<(), Refusal> {
        self.settle_for(allocation);
        let mut residence = allocation.residence().lock();
        let from = self.residency.place_of(&residence);
        let to = self.place_at(id, &chain);
        let begun = match residence.location {
            Location::Segment(..) => self.begin(allocation, from, to, cause),
            _ => Err(Refusal::NoPlace),
        };
        if let Err(refusal) = begun {
            drop(residence);
            self.give_up(Location::Segment(id, chain));
            return Err(refusal);
        }
        self.adapter.unmap(allocation, &mut residence);
        let why = Reason {
            space: 0,
            process: 0,
            allocation: allocation.object_id(),
            cause,
        };
        let new = Location::Segment(id, chain);
        self.translate_away(allocation, &new, &residence);
        let old = core::mem::replace(&mut residence.location, new);
        if let (Location::Segment(there, new), Location::Segment(here, old)) =
            (&residence.location, old)
        {
            let there = *there;
            self.carry(here, &old, there, new, why);
            self.enter_elsewhere(allocation, &mut residence, here, there);
            if let Some(segment) = self.residency.segment_mut(here) {
                segment.give(old);
            }
        }
        residence.settled = residence.settled.max(self.builder.settles(self.line));
        drop(residence);
        allocation.moved();
        Ok(())
    }

    /// Builds the transfer from the pages `old` of one segment to the pages `new` of another.
    fn carry(&mut self, here: SegmentId, old: &Chain, there: SegmentId, new: &Chain, why: Reason) {
        let from = self.residency.segment(here);
        let to = self.residency.segment(there);
        if let (Some(from), Some(to)) = (from, to) {
            self.builder.transfer(
                self.line,
                from.bytes_of(old),
                from.runs(old),
                to.runs(new),
                why,
            );
        }
    }

    /// Carries the place in the order of use, and the sums, over to another segment.
    fn enter_elsewhere(
        &mut self,
        allocation: &Arc<Allocation>,
        residence: &mut Residence,
        here: SegmentId,
        there: SegmentId,
    ) {
        if here == there {
            return;
        }
        let usage = allocation.device().client().usage();
        usage.sub(Sum::Resident(here), allocation.size());
        usage.add(Sum::Resident(there), allocation.size());
        if residence.entry.is_none() {
            return;
        }
        if let Some(segment) = self.residency.segment_mut(here) {
            segment.order.leave(allocation, residence);
        }
        if let Some(segment) = self.residency.segment_mut(there) {
            segment.order.enter(allocation, residence);
        }
    }

    /// Takes everything from an allocation that nobody claims any more; its content is given up.
    pub(in crate::object) fn discard(&mut self, allocation: &Arc<Allocation>) {
        self.settle_for(allocation);
        let mut residence = allocation.residence().lock();
        self.residency.withdraw(allocation, &mut residence);
        let from = self.residency.place_of(&residence);
        let location = core::mem::replace(&mut residence.location, Location::Nowhere);
        let usage = allocation.device().client().usage();
        let size = allocation.size();
        let cause = trace::Cause::Discard;
        let why = Reason {
            space: 0,
            process: 0,
            allocation: allocation.object_id(),
            cause,
        };
        if from.is_some() {
            trace_move(allocation, from, None, cause);
        }
        match location {
            Location::Segment(id, chain) => {
                self.adapter.unmap(allocation, &mut residence);
                if let Some(segment) = self.residency.segment_mut(id) {
                    self.builder.discard(self.line, segment.runs(&chain), why);
                    segment.order.leave(allocation, &mut residence);
                    segment.give(chain);
                }
                usage.sub(Sum::Resident(id), size);
            }
            Location::Aperture(chain) => {
                self.unmap_range(allocation, &mut residence, chain, why);
                self.leave_system(allocation);
            }
            Location::System => self.leave_system(allocation),
            Location::Nowhere => {}
        }
        allocation.account(&mut residence);
        residence.content = Content::Empty;
        residence.settled = residence.settled.max(self.builder.settles(self.line));
    }

    /// Takes an allocation off the books of system memory.
    fn leave_system(&mut self, allocation: &Allocation) {
        let usage = allocation.device().client().usage();
        self.residency.system_bytes -= allocation.size();
        usage.sub(Sum::Resident(SegmentId::SYSTEM), allocation.size());
    }

    /// Takes an allocation out of the aperture; it is still in system memory.
    pub(super) fn unmap_range(
        &mut self,
        allocation: &Allocation,
        residence: &mut Residence,
        chain: Chain,
        why: Reason,
    ) {
        let Some(id) = self.residency.aperture() else {
            return;
        };
        let usage = allocation.device().client().usage();
        let size = allocation.size();
        let first = Place::new(
            SegmentId::SYSTEM,
            residence.backing().map_or(0, |backing| backing.address()),
        );
        if let Some(at) = self.place_at(id, &chain) {
            self.builder.unmap_aperture(self.line, at, size, first, why);
        }
        if let Some(segment) = self.residency.segment_mut(id) {
            segment.order.leave(allocation, residence);
            segment.give(chain);
        }
        usage.sub(Sum::Resident(id), size);
    }

    /// Gives back a place that was taken and is not used.
    pub(super) fn give_up(&mut self, location: Location) {
        let (id, chain) = match location {
            Location::Segment(id, chain) => (Some(id), chain),
            Location::Aperture(chain) => (self.residency.aperture(), chain),
            Location::System | Location::Nowhere => return,
        };
        if let Some(segment) = id.and_then(|id| self.residency.segment_mut(id)) {
            segment.give(chain);
        }
    }
}
