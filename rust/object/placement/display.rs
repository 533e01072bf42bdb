// SPDX-License-Identifier: GPL-2.0

//! Ranges for what is shown: a display reads physical addresses, so it needs one run.
//!
//! A primary in a memory segment has one anyway (SEG-21), and so has one with ACCESSED_PHYSICALLY in
//! system memory (SEG-24). Any other primary in system memory gets a range of the aperture when it is
//! going to be shown and loses it when no source shows it any more (SEG-22): many can be ready to be
//! shown while the aperture holds those that are (SEG-25).

use kernel::sync::Arc;

use crate::{
    object::{
        allocation::Allocation,
        client::Sum,
        residence::Location, //
    },
    policy::placement::{
        self,
        Chain,
        Choice, //
    },
    units::SegmentId,
};

use super::{
    trace_move,
    Mover,
    Reader,
    Refusal, //
};

/// Where a range is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::object) enum Room {
    /// Where nobody is.
    Free,
    /// Where others have to leave.
    Made,
}

/// Where a primary is that is going to be shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It has one run.
    Run,
    /// It is resident in system memory without a range, and work needs it there or not.
    System {
        /// Whether it must stay there.
        stays: bool,
    },
    /// It is not resident.
    Nowhere,
}

impl Mover<'_> {
    /// Sees to it that a display can read `allocation`, and fixes it in its place.
    ///
    /// # Errors
    ///
    /// [`Refusal`]: there is no range in such room.
    ///
    /// Requirements: SEG-22, SEG-23.
    pub(in crate::object) fn expose(
        &mut self,
        allocation: &Arc<Allocation>,
        room: Room,
    ) -> Result<(), Refusal> {
        self.reader = Reader::Display;
        match self.standing(allocation) {
            Standing::Run => {}
            standing => match (self.find_range(allocation, standing, room)?, standing) {
                (Location::Aperture(chain), Standing::System { .. }) => {
                    self.extend(allocation, chain)?;
                }
                (location, Standing::System { .. }) => {
                    if let Err(refusal) = self.leave(allocation, self.cause) {
                        self.give_up(location);
                        return Err(refusal);
                    }
                    if let Err(refusal) = self.arrive(allocation, location) {
                        // It is where it was: that takes no room.
                        let _ = self.arrive(allocation, Location::System);
                        return Err(refusal);
                    }
                }
                (location, _) => self.arrive(allocation, location)?,
            },
        }
        {
            let mut residence = allocation.residence().lock();
            residence.fixed += 1;
            allocation.account(&mut residence);
        }
        allocation.begin_display();
        Ok(())
    }

    /// Returns whether [`Self::expose`] would succeed; nothing changes.
    ///
    /// # Errors
    ///
    /// As [`Self::expose`].
    pub(in crate::object) fn could_expose(
        &mut self,
        allocation: &Arc<Allocation>,
        room: Room,
    ) -> Result<(), Refusal> {
        self.reader = Reader::Display;
        let standing = self.standing(allocation);
        if standing == Standing::Run {
            return Ok(());
        }
        let mut refusal = Refusal::NoPlace;
        for choice in self.choices(allocation, standing) {
            match room {
                Room::Free => {
                    if let Some(location) = self.take(allocation, choice) {
                        self.give_up(location);
                        return Ok(());
                    }
                }
                Room::Made => match self.could_make_room(allocation, choice) {
                    Ok(()) => return Ok(()),
                    Err(other) => refusal = other,
                },
            }
        }
        Err(refusal)
    }

    /// Ends one display of `allocation`: if it was the last, it is like any other again.
    ///
    /// Requirements: SEG-22, SEG-23.
    pub(in crate::object) fn hide(&mut self, allocation: &Arc<Allocation>) {
        allocation.end_display();
        let (has_range, idle) = {
            let mut residence = allocation.residence().lock();
            residence.fixed = residence.fixed.saturating_sub(1);
            allocation.account(&mut residence);
            let has_range = matches!(residence.location, Location::Aperture(_));
            let wanted = residence.references > 0 || residence.commands > 0;
            (has_range, !wanted && !residence.stays())
        };
        if has_range && !allocation.is_physical() && !allocation.is_on_screen() {
            // Nobody asked for more than that it is shown, or somebody did.
            if !idle || self.leave(allocation, self.cause).is_err() {
                self.retract(allocation);
            }
        }
        Allocation::sink(allocation);
        Allocation::reconsider(allocation);
    }

    fn standing(&self, allocation: &Allocation) -> Standing {
        let residence = allocation.residence().lock();
        match residence.location {
            Location::Segment(..) | Location::Aperture(_) => Standing::Run,
            Location::System => Standing::System {
                stays: residence.stays(),
            },
            Location::Nowhere => Standing::Nowhere,
        }
    }

    /// Returns the segments in the order in which a range is looked for: what is resident in system
    /// memory stays there if it can.
    fn choices(
        &self,
        allocation: &Allocation,
        standing: Standing,
    ) -> impl Iterator<Item = Choice> + Clone {
        let aperture = self.residency.aperture();
        let order = placement::order(allocation.preferred(), allocation.segments());
        let (first, others) = match standing {
            Standing::System { stays } => (true, !stays),
            _ => (false, true),
        };
        let is_aperture = move |choice: &Choice| Some(choice.segment) == aperture;
        let front = order
            .clone()
            .filter(move |choice| first && is_aperture(choice));
        let back = order.filter(move |choice| others && !(first && is_aperture(choice)));
        Iterator::chain(front, back)
    }

    fn find_range(
        &mut self,
        allocation: &Allocation,
        standing: Standing,
        room: Room,
    ) -> Result<Location, Refusal> {
        let failing = &mut self.residency.failing;
        // A search goes through both rooms and fails once.
        let fails = match room {
            Room::Free => failing.has_place(),
            Room::Made => failing.takes_place(),
        };
        if fails {
            return Err(Refusal::NoPlace);
        }
        let mut refusal = Refusal::NoPlace;
        for choice in self.choices(allocation, standing) {
            let found = match room {
                Room::Free => self.take(allocation, choice).ok_or(Refusal::NoPlace),
                Room::Made => self.make_room(allocation, choice),
            };
            match found {
                Ok(location) => return Ok(location),
                Err(other) => refusal = other,
            }
        }
        Err(refusal)
    }

    fn could_make_room(&mut self, allocation: &Allocation, choice: Choice) -> Result<(), Refusal> {
        let shape = allocation.shape();
        let over = self
            .residency
            .segment(choice.segment)
            .map_or(0, |segment| segment.overdraft(&shape));
        if over > 0 {
            let chosen = self.choose_loose(choice.segment, Some(over))?;
            self.spare(choice.segment, chosen);
        }
        self.choose_window(choice.segment, &shape).map(|_| ())
    }

    /// Lets those stay who have been chosen to leave.
    fn spare(&mut self, id: SegmentId, chosen: usize) {
        for index in 0..chosen {
            let victim = self.residency.victims.get(index).copied();
            if let (Some(victim), Some(segment)) = (victim, self.residency.segment_mut(id)) {
                segment.order.put_back(&victim.key);
            }
        }
    }

    /// Brings an allocation that is nowhere to a place that was taken for it.
    fn arrive(&mut self, allocation: &Arc<Allocation>, location: Location) -> Result<(), Refusal> {
        self.come(allocation, location)?;
        Allocation::unpin(allocation);
        Ok(())
    }

    /// Maps a range of the aperture for an allocation that is resident in system memory.
    ///
    /// # Errors
    ///
    /// - [`Refusal::GivenUp`]: the move failed. The range is given back.
    fn extend(&mut self, allocation: &Arc<Allocation>, chain: Chain) -> Result<(), Refusal> {
        let id = self.residency.aperture().ok_or(Refusal::NoPlace)?;
        let mut residence = allocation.residence().lock();
        let from = self.residency.place_of(&residence);
        let to = self.place_at(id, &chain);
        if let Err(refusal) = self.begin(allocation, from, to, self.cause) {
            drop(residence);
            self.give_up(Location::Aperture(chain));
            return Err(refusal);
        }
        let why = self.why(allocation);
        if let (Some(place), Some(backing)) = (to, residence.backing()) {
            self.builder
                .map_aperture(self.line, place, backing.runs(), why);
        }
        if let Some(segment) = self.residency.segment_mut(id) {
            segment.order.enter(allocation, &mut residence);
        }
        residence.location = Location::Aperture(chain);
        residence.settled = residence.settled.max(self.builder.settles(self.line));
        let usage = allocation.device().client().usage();
        usage.add(Sum::Resident(id), allocation.size());
        drop(residence);
        allocation.moved();
        Ok(())
    }

    /// Unmaps the range of the aperture of an allocation that stays in system memory.
    fn retract(&mut self, allocation: &Arc<Allocation>) {
        let mut residence = allocation.residence().lock();
        let from = self.residency.place_of(&residence);
        let why = self.why(allocation);
        match core::mem::replace(&mut residence.location, Location::System) {
            Location::Aperture(chain) => {
                let to = self.residency.place_of(&residence);
                trace_move(allocation, from, to, self.cause);
                self.unmap_range(allocation, &mut residence, chain, why);
            }
            other => residence.location = other,
        }
        residence.settled = residence.settled.max(self.builder.settles(self.line));
        drop(residence);
        allocation.moved();
    }
}
