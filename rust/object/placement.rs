// SPDX-License-Identifier: GPL-2.0

//! Moves: the worker brings allocations to their places and makes room for them.
//!
//! A move is decided and built here in one step, under `Adapter::residency` (rank 1): the new place
//! is taken, the trace says so, the operations are built, and whoever looks at the allocation from
//! then on sees the new place together with the number of the buffer that brings it into force. The
//! paging node runs operations in the order in which they are built, so a page that is given up can
//! be given away at once: its next user's operations come later (PAG-14).
//!
//! CPU translations of the old place are removed before the first operation is built. A touch that
//! comes later waits until the new place is in force ([`super::cpu_access`]).

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::trace,
    backend::capabilities::SegmentKind,
    object::{
        adapter::Adapter,
        allocation::Allocation,
        client::Client,
        offer,
        order::{
            Key,
            Uses, //
        },
        paging::{
            Builder,
            Line,
            Reason, //
        },
        reclaim::Idle,
        residence::{
            Location,
            Residence, //
        },
        segment::{
            Contiguity,
            Segment, //
        },
    },
    policy::{
        eviction::{
            Bond,
            Budget,
            Gathering,
            Occupant,
            Use,
            Victim, //
        },
        placement::{
            self,
            Chain,
            Choice, //
        },
        splitting::Spot,
    },
    units::{
        Place,
        SegmentId, //
    },
};

mod compaction;
mod display;
mod failing;
mod moves;
mod planned;
mod relocation;
mod translation;

pub(super) use self::display::Room;
use self::failing::Failing;

/// What `Adapter::residency` protects beside the residency of each allocation.
pub(crate) struct Residency {
    /// Occupancy of the segments, in the order of their ids from 1 on.
    pub(crate) segments: KVec<Segment>,
    /// Bytes pinned in system memory for residency.
    pub(crate) system_bytes: u64,
    /// What a debug command lets fail.
    pub(super) failing: Failing,
    /// Swappable allocations that lie nowhere and have their pages.
    pub(super) idle: Idle,
    /// Offered allocations whose pages may go.
    pub(super) offers: offer::Order,
    /// When everybody used anything.
    uses: Uses,
    /// Those who are to leave a segment.
    victims: KVVec<Victim<Key>>,
    /// Who lies where in a segment, and their keys.
    occupants: KVVec<Occupant>,
    keys: KVVec<Key>,
}

/// Why an allocation has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Portions that are about to run or running occupy too much; their end may help.
    Occupied,
    /// There is no room although everything that may leave has been counted.
    NoPlace,
    /// The move failed: everything is as before it.
    GivenUp,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Occupied => EBUSY,
            Refusal::NoPlace => ENOSPC,
            Refusal::GivenUp => EIO,
        }
    }
}

/// What bringing an allocation in has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Paged {
    /// Bytes brought in.
    pub(super) bytes_in: u64,
    /// Bytes pushed out.
    pub(super) bytes_out: u64,
}

impl Paged {
    /// Adds what else was paged.
    pub(super) fn add(&mut self, more: Self) {
        self.bytes_in = self.bytes_in.saturating_add(more.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(more.bytes_out);
    }
}

/// What became of a requested move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// It is decided.
    Done,
    /// Work that has begun uses the allocation.
    InUse,
}

/// On whose behalf an allocation is brought in, for the trace.
#[derive(Clone, Copy)]
pub(super) enum Behalf {
    /// A submission, or a debug command.
    Work,
    /// MAKE_RESIDENT: its queue and fence value.
    Command {
        /// Number of the paging queue.
        queue: u64,
        /// The value that announces completion.
        value: u64,
    },
}

impl Behalf {
    /// Returns what an allocation is used for then.
    fn how(self) -> Use {
        match self {
            Behalf::Work => Use::Worked,
            Behalf::Command { .. } => Use::Asked,
        }
    }
}

/// Who will read the physical addresses of what is brought in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// Engines, if the allocation was created for it.
    Engines,
    /// A display as well.
    Display,
}

impl Residency {
    /// Returns the residency of an adapter on which everything is free.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `EINVAL`: a segment has more pages than can be counted.
    // Kept apart, so that its temporaries are off the stack before the next step.
    #[inline(never)]
    pub(super) fn new(adapter: &dyn crate::backend::Backend) -> Result<Self> {
        let segments = Segment::all(adapter.capabilities())?;
        // A segment has at most one occupant, and one run, per page.
        let pages = segments.iter().map(Segment::pages).max().unwrap_or(0);
        // CAST: `usize` has 64 bits wherever this driver runs.
        let pages = pages as usize;
        let memory = segments
            .iter()
            .filter(|segment| segment.kind == SegmentKind::Memory)
            .fold(0, |sum, segment| segment.bytes().saturating_add(sum));
        Ok(Self {
            segments,
            system_bytes: 0,
            failing: Failing::default(),
            idle: Idle::new(),
            offers: offer::Order::new(),
            uses: Uses::new(memory),
            victims: KVVec::from_elem(Victim::default(), pages, GFP_KERNEL)?,
            occupants: KVVec::with_capacity(pages, GFP_KERNEL)?,
            keys: KVVec::with_capacity(pages, GFP_KERNEL)?,
        })
    }

    /// Returns the segment with this id; system memory is none.
    pub(crate) fn segment(&self, id: SegmentId) -> Option<&Segment> {
        self.segments.get(id.index().checked_sub(1)?)
    }

    /// Returns the segment with this id, to be changed.
    pub(crate) fn segment_mut(&mut self, id: SegmentId) -> Option<&mut Segment> {
        self.segments.get_mut(id.index().checked_sub(1)?)
    }

    /// Returns all segments, to be changed.
    pub(super) fn segments_mut(&mut self) -> &mut [Segment] {
        &mut self.segments
    }

    /// Returns the id of the aperture.
    pub(crate) fn aperture(&self) -> Option<SegmentId> {
        self.segments
            .iter()
            .find(|segment| segment.kind == SegmentKind::Aperture)
            .map(|segment| segment.id)
    }

    /// Returns the segment and the first page of what lies in one run there.
    pub(super) fn spot_of(&self, residence: &Residence) -> Option<Spot> {
        let (segment, page) = match residence.location() {
            Location::Segment(id, chain) => (*id, chain.first()),
            Location::Aperture(chain) => (self.aperture()?, chain.first()),
            Location::System | Location::Nowhere => return None,
        };
        Some(Spot { segment, page })
    }

    /// Returns whether a debug command wants no place to be found for an allocation that needs one.
    pub(super) fn finds_no_place(&mut self, allocation: &Allocation) -> bool {
        let resident = allocation.residence().lock().is_resident();
        !resident && self.failing.takes_place()
    }

    /// Returns where an allocation is, as the trace and ALLOC_QUERY put it; [`None`] if it is not
    /// resident.
    pub(crate) fn place_of(&self, residence: &Residence) -> Option<Place> {
        match residence.location() {
            Location::Nowhere => None,
            Location::System => Some(Place::new(
                SegmentId::SYSTEM,
                residence.backing().map_or(0, |backing| backing.address()),
            )),
            Location::Aperture(chain) => self.segment(self.aperture()?)?.place_in(chain, 0),
            Location::Segment(id, chain) => self.segment(*id)?.place_in(chain, 0),
        }
    }

    /// Notes how the usage of `client` compares with its budget: over it, all its allocations leave
    /// before those of others.
    pub(super) fn set_budget(&mut self, client: &Client, budget: Budget) {
        if client.turn().lock().set_budget(budget) {
            for segment in self.segments.iter_mut() {
                segment.order.settle(client);
            }
        }
    }

    /// Puts an allocation whose rank has fallen where it belongs.
    pub(super) fn rerank(&mut self, allocation: &Arc<Allocation>) {
        let mut residence = allocation.residence().lock();
        let segment = match residence.location() {
            Location::Segment(id, _) => self.segment_mut(*id),
            Location::Aperture(_) => self.aperture().and_then(|id| self.segment_mut(id)),
            Location::System | Location::Nowhere => None,
        };
        if let Some(segment) = segment {
            segment.order.rerank(allocation, &mut residence);
        }
    }
}

/// The worker at work on the residency of an adapter.
pub(super) struct Mover<'a> {
    pub(super) adapter: &'a Adapter,
    pub(super) line: &'a Arc<Line>,
    /// Proof of rank 1.
    pub(super) residency: &'a mut Residency,
    pub(super) builder: &'a mut Builder,
    pub(super) cause: trace::Cause,
    pub(super) behalf: Behalf,
    pub(super) reader: Reader,
    pub(super) paged: Paged,
}

impl Mover<'_> {
    /// Brings `allocation` to one of its permitted places, making room by moving others out, and
    /// pins it there; what is pinned does not leave for what comes after it.
    ///
    /// # Errors
    ///
    /// [`Refusal`]; others may have left by then.
    pub(super) fn bring(&mut self, allocation: &Arc<Allocation>) -> Result<(), Refusal> {
        self.step(1, allocation);
        if self.stay(allocation) {
            return Ok(());
        }
        let location = self.find_place(allocation)?;
        self.come(allocation, location)
    }

    /// Pins an allocation that is resident already.
    fn stay(&mut self, allocation: &Arc<Allocation>) -> bool {
        let mut residence = allocation.residence().lock();
        if !residence.is_resident() {
            return false;
        }
        residence.pins += 1;
        self.take_back(&mut residence);
        allocation.account(&mut residence);
        self.touch(allocation, &mut residence);
        true
    }

    /// Makes an allocation the one used last.
    fn touch(&mut self, allocation: &Arc<Allocation>, residence: &mut Residence) {
        let id = match residence.location {
            Location::Segment(id, _) => Some(id),
            Location::Aperture(_) => self.residency.aperture(),
            Location::System | Location::Nowhere => None,
        };
        let how = self.behalf.how();
        self.residency.uses.note(allocation, residence, how);
        if let Some(segment) = id.and_then(|id| self.residency.segment_mut(id)) {
            segment.order.touch(allocation, residence);
        }
    }

    /// Takes a place: one that is free, in the order of preference; if there is none, one that
    /// others leave.
    fn find_place(&mut self, allocation: &Arc<Allocation>) -> Result<Location, Refusal> {
        if self.residency.failing.takes_place() {
            return Err(Refusal::NoPlace);
        }
        let order = placement::order(allocation.preferred(), allocation.segments());
        for choice in order.clone() {
            if let Some(location) = self.take(allocation, choice) {
                return Ok(location);
            }
        }
        let mut refusal = Refusal::NoPlace;
        for choice in order {
            match self.make_room(allocation, choice) {
                Ok(location) => return Ok(location),
                Err(Refusal::Occupied) => refusal = Refusal::Occupied,
                Err(Refusal::NoPlace | Refusal::GivenUp) => {}
            }
        }
        Err(refusal)
    }

    /// Returns whether it needs a range of the aperture when it is resident in system memory.
    fn needs_range(&self, allocation: &Allocation) -> bool {
        allocation.is_physical() || self.reader == Reader::Display
    }

    /// Takes a free place in one segment.
    fn take(&mut self, allocation: &Allocation, choice: Choice) -> Option<Location> {
        let shape = allocation.shape();
        let needs_range = self.needs_range(allocation);
        let held = match allocation.residence().lock().location() {
            Location::Segment(id, _) if *id == choice.segment => shape.bytes,
            _ => 0,
        };
        let segment = self.residency.segment_mut(choice.segment)?;
        match segment.kind {
            SegmentKind::Aperture if !needs_range => Some(Location::System),
            SegmentKind::Aperture => segment
                .take(&shape, choice.from, held)
                .map(Location::Aperture),
            SegmentKind::Memory => segment
                .take(&shape, choice.from, held)
                .map(|chain| Location::Segment(choice.segment, chain)),
        }
    }

    /// Lets others leave a segment and takes the place that becomes free.
    fn make_room(&mut self, allocation: &Allocation, choice: Choice) -> Result<Location, Refusal> {
        let shape = allocation.shape();
        if shape.contiguity == Contiguity::Contiguous {
            // The commit limit may ask for more than the stretch of pages does.
            let over = self
                .residency
                .segment(choice.segment)
                .map(|segment| segment.overdraft(&shape));
            if over.is_some_and(|over| over > 0) {
                let chosen = self.choose_loose(choice.segment, over);
                self.clear(choice.segment, chosen)?;
            }
        }
        if shape.contiguity == Contiguity::Contiguous {
            return self.clear_window(allocation, choice);
        }
        let need = self
            .residency
            .segment(choice.segment)
            .and_then(|segment| segment.missing(&shape));
        let chosen = self.choose_loose(choice.segment, need);
        self.clear(choice.segment, chosen)?;
        self.take(allocation, choice).ok_or(Refusal::NoPlace)
    }

    /// Lets the chosen ones leave.
    fn clear(&mut self, id: SegmentId, chosen: Result<usize, Refusal>) -> Result<(), Refusal> {
        for index in 0..chosen? {
            let victim = self.residency.victims.get(index).copied();
            let found = victim.and_then(|victim| {
                let segment = self.residency.segment(id)?;
                segment.order.get(&victim.key).cloned()
            });
            let Some(found) = found else { continue };
            // One that stays is in the way of the search that follows.
            if self.leave(&found, trace::Cause::Pressure).is_err() {
                if let Some(segment) = self.residency.segment_mut(id) {
                    segment.order.restore(&found);
                }
            }
        }
        // Who comes now goes to pages that are still being read: into a buffer of its own.
        self.builder.flush(self.line);
        Ok(())
    }

    /// Lets everybody leave who may from where `allocation` might be, so that nothing is in the way.
    pub(super) fn evacuate(&mut self, allocation: &Allocation) {
        let order = placement::order(allocation.preferred(), allocation.segments());
        for choice in order {
            loop {
                let Residency { segments, uses, .. } = &mut *self.residency;
                let segment = find(segments, choice.segment);
                let first = segment.and_then(|segment| segment.order.choose(uses));
                let Some(Ok(first)) = first else { break };
                // One that cannot leave would be met for ever.
                if self.leave(&first, trace::Cause::Pressure).is_err() {
                    break;
                }
            }
        }
        self.builder.flush(self.line);
    }

    /// Names who leaves so that `need` pages become free, adjacent or not.
    fn choose_loose(&mut self, id: SegmentId, need: Option<u32>) -> Result<usize, Refusal> {
        let need = need.ok_or(Refusal::NoPlace)?;
        let Residency {
            segments,
            victims,
            uses,
            ..
        } = &mut *self.residency;
        let segment = find(segments, id).ok_or(Refusal::NoPlace)?;
        let mut gathering = Gathering::new(need, victims);
        let mut refusal = None;
        while !gathering.is_enough() && refusal.is_none() {
            refusal = match segment.order.choose(uses) {
                Some(Ok(first)) => {
                    let pages = Segment::pages_at(first.residence().lock().location());
                    let key = segment.order.set_aside(&first).unwrap_or_default();
                    let added = gathering.add(Victim { key, pages });
                    added.err().map(|_| Refusal::NoPlace)
                }
                Some(Err(Bond::Pinned)) => Some(Refusal::Occupied),
                _ => Some(Refusal::NoPlace),
            };
        }
        let gathered = gathering.finish();
        let stay = victims.get(gathered.leaving..gathered.count);
        for victim in stay.unwrap_or_default() {
            segment.order.put_back(&victim.key);
        }
        refusal.map_or(Ok(gathered.leaving), Err)
    }

    fn place_at(&self, id: SegmentId, chain: &Chain) -> Option<Place> {
        self.residency.segment(id)?.place_in(chain, 0)
    }

    fn why(&self, allocation: &Allocation) -> Reason {
        Reason {
            space: 0,
            process: 0,
            allocation: allocation.object_id(),
            cause: self.cause,
        }
    }

    /// Says in the trace that a move is decided.
    ///
    /// # Errors
    ///
    /// - [`Refusal::GivenUp`]: it fails; the trace says that as well. Nothing has changed.
    fn begin(
        &mut self,
        allocation: &Allocation,
        from: Option<Place>,
        to: Option<Place>,
        cause: trace::Cause,
    ) -> Result<(), Refusal> {
        trace_move(allocation, from, to, cause);
        if !self.residency.failing.takes_move() {
            return Ok(());
        }
        trace_move(allocation, to, from, cause);
        Err(Refusal::GivenUp)
    }

    fn step(&self, step: u32, allocation: &Allocation) {
        if let Behalf::Command { queue, value } = self.behalf {
            trace::resident_step(|| trace::ResidentStep {
                at: trace::Where::Worker,
                step,
                allocation: allocation.object_id(),
                queue,
                fence: value,
            });
        }
    }
}

fn trace_move(
    allocation: &Allocation,
    from: Option<Place>,
    to: Option<Place>,
    cause: trace::Cause,
) {
    if to.is_none() {
        allocation.adapter().statistics().left(cause);
    }
    trace::residency(|| trace::Residency {
        allocation: allocation.object_id(),
        instance: 0,
        from: from.map_or(trace::Place::NOWHERE, Into::into),
        to: to.map_or(trace::Place::NOWHERE, Into::into),
        cause,
    });
}

/// Returns the segment with this id; system memory is none.
fn find(segments: &mut [Segment], id: SegmentId) -> Option<&mut Segment> {
    segments.get_mut(id.index().checked_sub(1)?)
}

impl Residency {
    /// Returns whether somebody is pinned where `allocation` might be.
    pub(super) fn is_contended(&self, allocation: &Allocation) -> bool {
        self.segments
            .iter()
            .filter(|segment| allocation.permits(segment.id))
            .any(|segment| refusal(segment) == Refusal::Occupied)
    }
}

/// Returns why nothing can be had in `segment`: whether somebody is there who will go one day.
fn refusal(segment: &Segment) -> Refusal {
    if segment.is_contended() {
        Refusal::Occupied
    } else {
        Refusal::NoPlace
    }
}
