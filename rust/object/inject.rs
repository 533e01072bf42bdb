// SPDX-License-Identifier: GPL-2.0

//! What the debug file `inject` does: commands that put the memory manager into situations that
//! tests want to see.
//!
//! Moves and evictions are made in the place of the worker, so that they never race with it, and are
//! synchronous: a call returns when the new place is in force. A signal ends the waiting, not the move.

use kernel::prelude::*;

use crate::{
    abstractions::{
        trace,
        wait_queue::{
            Deadline,
            Sleep, //
        },
    },
    object::{
        adapter::Adapter,
        allocation::{
            Allocation,
            Hold, //
        },
        placement::Moved,
        reclaim::Kept,
        worker::Worker, //
    },
    policy::placement::Chain,
    units::{
        NodeOrdinal,
        SegmentId, //
    },
};

// What can be disturbed, handed through to the debug files.
pub(crate) use crate::backend::{
    operation::Name as OperationName,
    Failure as EngineFailure,
    Flow, //
};

/// What can be made to go wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Something the backend does.
    Engine(EngineFailure),
    /// A search for a place finds no room.
    Place,
    /// A move is given up.
    Move,
}

/// Where `move` puts an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Another place than now, in the same segment if there is room.
    Elsewhere,
    /// Anywhere in this segment; system memory and the aperture mean the same.
    Segment(SegmentId),
    /// At this offset of a memory segment.
    Place(SegmentId, u64),
}

impl Adapter {
    /// Lets a node start no further buffer, or go on.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: no such node.
    pub(crate) fn inject_flow(&self, node: NodeOrdinal, flow: Flow) -> Result {
        self.backend().set_flow(node, flow)
    }

    /// Lets the worker take no further command, or go on.
    pub(crate) fn inject_hold(&self, held: bool) {
        Worker::hold(self.worker(), held);
        self.paging().notify();
    }

    /// Takes so much of the free memory of a segment out of use; 0 gives everything back. For
    /// system memory any number but 0 means that no backing pages are given out.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: no such segment.
    /// - `ENOSPC`: less is free.
    /// - `ENOMEM`: no memory.
    pub(crate) fn inject_reserve(&self, segment: SegmentId, bytes: u64) -> Result {
        if segment == SegmentId::SYSTEM {
            self.withhold_backing(bytes != 0);
            return Ok(());
        }
        let mut list = self.list_of_pages(segment)?;
        let mut residency = self.residency().lock();
        residency
            .segment_mut(segment)
            .ok_or(EINVAL)?
            .reserve(bytes, &mut list)?;
        drop(residency);
        self.resize_local();
        self.make_room();
        Worker::kick(self.worker());
        Ok(())
    }

    /// Takes every second free page of a segment out of use.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: no such segment.
    /// - `ENOMEM`: no memory.
    pub(crate) fn inject_fragment(&self, segment: SegmentId) -> Result {
        let mut list = self.list_of_pages(segment)?;
        let mut residency = self.residency().lock();
        let found = residency.segment_mut(segment);
        found.ok_or(EINVAL)?.fragment(&mut list);
        drop(residency);
        self.resize_local();
        Ok(())
    }

    /// Returns an empty list with room for what may be withheld of a segment: nothing is allocated
    /// while its lock is held.
    fn list_of_pages(&self, segment: SegmentId) -> Result<KVVec<Chain>> {
        let pages = {
            let residency = self.residency().lock();
            residency.segment(segment).ok_or(EINVAL)?.pages()
        };
        // CAST: `usize` has 64 bits wherever this driver runs.
        Ok(KVVec::with_capacity(pages as usize, GFP_KERNEL)?)
    }

    /// Lets the next `count` occasions of `failure` go wrong.
    pub(crate) fn inject_failure(&self, failure: Failure, count: u32) {
        match failure {
            Failure::Engine(failure) => self.backend().fail_next(failure, count),
            Failure::Place => self.residency().lock().failing.set_places(count),
            Failure::Move => self.residency().lock().failing.set_moves(count),
        }
    }

    /// Pushes an allocation out as pressure would.
    ///
    /// # Errors
    ///
    /// - `ENOENT`: no such allocation.
    /// - `EBUSY`: it is pinned.
    /// - `EIO`: the move failed.
    /// - `EINTR`: a signal; the eviction goes on.
    pub(crate) fn inject_evict(&self, object_id: u64) -> Result {
        let allocation = self.find(object_id)?;
        self.wait_for_worker()?;
        self.worker().in_place(self, |mover| {
            if allocation.residence().lock().stays() {
                return Err(EBUSY);
            }
            mover.leave(allocation.allocation(), trace::Cause::Pressure)?;
            Ok(())
        })?;
        self.make_room();
        Worker::kick(self.worker());
        self.wait_until_settled(&allocation)
    }

    /// Moves an allocation.
    ///
    /// # Errors
    ///
    /// - `ENOENT`: no such allocation.
    /// - `EBUSY`: it never moves from where it is.
    /// - `EINVAL`: a segment outside its set, an offset that is misaligned or too large.
    /// - `ENOSPC`: the place cannot be had without moving others.
    /// - `EIO`: the move failed.
    /// - `ENOMEM`: no backing pages.
    /// - `EINTR`: a signal; the move goes on.
    pub(crate) fn inject_move(&self, object_id: u64, destination: Destination) -> Result {
        let allocation = self.find(object_id)?;
        let _kept = Kept::new(allocation.allocation())?;
        allocation.commit()?;
        loop {
            self.wait_for_worker()?;
            let ends = self.ends();
            let moved = self.worker().in_place(self, |mover| {
                mover.relocate(allocation.allocation(), destination)
            })?;
            match moved {
                Moved::Done => return self.wait_until_settled(&allocation),
                Moved::InUse => self
                    .idle()
                    .wait(Sleep::Interruptible, Deadline::Never, || {
                        (self.ends() != ends).then_some(())
                    })
                    .map_err(|_| EINTR)?,
            }
        }
    }

    /// Finds an allocation that somebody still claims, and claims it too.
    fn find(&self, object_id: u64) -> Result<Hold> {
        let allocation = self.registries().allocations.get(object_id).ok_or(ENOENT)?;
        Allocation::hold(&allocation).ok_or(ENOENT)
    }

    fn wait_for_worker(&self) -> Result {
        self.paging()
            .wait(Sleep::Interruptible, |_| !self.worker().is_held())
            .map_err(|_| EINTR)
    }

    fn wait_until_settled(&self, allocation: &Allocation) -> Result {
        let settled = allocation.residence().lock().settled;
        self.paging()
            .wait(Sleep::Interruptible, |line| line.completed() >= settled)
            .map_err(|_| EINTR)
    }
}
