// SPDX-License-Identifier: GPL-2.0

//! Allocations: pieces of GPU-usable memory, the unit of placement and residency.
//!
//! An allocation is alive as long as somebody *holds* it: its handle, a submission, a queued
//! command, a mapping. A [`Hold`] is such a claim; when the last one goes, the storage goes, at
//! once if it lies nowhere, otherwise by the worker, after the work that was queued before
//! (RES-25). References that hold nothing (the order of use, the debug files, mapping offsets) are
//! plain `Arc`s.
//!
//! # Locking
//!
//! `Allocation::residence` (rank 2, mutex) protects where the allocation is. Whoever changes the
//! place also holds `Adapter::residency` (rank 1); whoever only reads it, or inserts CPU
//! translations, needs rank 2 alone.

use kernel::{
    list::{
        impl_list_arc_safe,
        impl_list_item,
        AtomicTracker,
        ListLinks,
        TryNewListArc, //
    },
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
};

use crate::{
    abstractions::{
        memory_cgroup::MemoryCgroup,
        shmem::SwapFile,
        trace, //
    },
    object::{
        adapter::Adapter,
        address_space::AddressSpace,
        backing::Backing,
        client::Sum,
        device::Device,
        name,
        offer::Offer,
        offsets::Token,
        presence::Presence,
        residence::Residence,
        segment::{
            Contiguity,
            Shape, //
        },
        worker::Worker,
    },
    policy::residency::Demand,
    units::SegmentId,
};

mod creation;
mod hold;
mod primary;
mod standing;

pub(crate) use self::creation::{
    create,
    Description, //
};
pub(crate) use self::hold::Hold;
pub(super) use self::primary::Write;
pub(crate) use self::primary::{
    Format,
    Picture,
    Primary, //
};

kernel::impl_flags!(
    /// What an allocation is created for.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub(crate) struct Flags(u32);

    /// One property of an allocation. The numbers are those of ALLOC_CREATE.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Flag {
        /// The CPU will map it.
        CpuVisible = 1 << 0,
        /// An engine will use physical addresses.
        AccessedPhysically = 1 << 1,
        /// The GPU must not write it.
        ReadOnly = 1 << 4,
        /// It can be shown.
        Primary = 1 << 5,
        /// Linux may swap the pages behind it while they are not needed.
        Swappable = 1 << 8,
        /// It never moves once it has a place.
        Pinned = 1 << 9,
    }
);

impl Flags {
    /// Returns the bits of the interface.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

/// An allocation.
#[pin_data]
pub(crate) struct Allocation {
    object_id: u64,
    device: Arc<Device>,
    size: u64,
    align: u64,
    flags: Flags,
    segments: u32,
    preferred: u64,
    /// How much it matters that it stays where engines reach it, 1 to 5.
    priority: Atomic<u32>,
    primary: Option<Pin<KBox<Primary>>>,
    /// Who pays for its backing pages, whoever takes them.
    payer: MemoryCgroup,
    /// Where its content is while Linux may swap it; of a swappable allocation.
    swap: Option<Arc<SwapFile>>,
    /// How many [`Hold`]s there are.
    holds: Atomic<i64>,
    /// Accepted submissions that read it and have not ended.
    readers: Atomic<i64>,
    /// Accepted submissions that write it and have not ended.
    writers: Atomic<i64>,
    /// Accepted submissions that need it in its place without using it.
    requirements: Atomic<i64>,
    /// Whether it is offered; set before the counts above are looked at.
    offered: Atomic<bool>,
    /// Locks by the CPU that are in force.
    locks: Atomic<i64>,
    /// Mappings of it.
    mappings: Atomic<i64>,
    /// What it is called in the address space of its client; changes under `AddressSpace::mappings`.
    mapped: Atomic<u32>,
    /// Goes up whenever its place changes.
    moves: Atomic<u32>,
    /// Where its mappings begin; stays after the token is gone, because mappings may.
    mapping_start: u64,
    #[pin]
    name: name::Slot,
    #[pin]
    token: Mutex<Option<Token>>,
    #[pin]
    residence: Mutex<Residence>,
    #[pin]
    links: ListLinks,
    #[pin]
    tracker: AtomicTracker,
    #[pin]
    sunk_links: ListLinks<1>,
    #[pin]
    sunk_tracker: AtomicTracker<1>,
    _presence: Presence,
}

impl_list_arc_safe! {
    impl ListArcSafe<0> for Allocation { tracked_by tracker: AtomicTracker; }
}

impl_list_item! {
    impl ListItem<0> for Allocation { using ListLinks { self.links }; }
}

impl_list_arc_safe! {
    impl ListArcSafe<1> for Allocation { tracked_by sunk_tracker: AtomicTracker<1>; }
}

impl_list_item! {
    impl ListItem<1> for Allocation { using ListLinks { self.sunk_links }; }
}

impl Allocation {
    /// Called when the last claim is gone.
    fn abandon(this: &Arc<Self>) {
        let nowhere = {
            let residence = this.residence.lock();
            let completed = this.adapter().paging().completed();
            // What is offered stands in orders that the worker keeps.
            residence.is_idle_nowhere(completed) && residence.offer == Offer::None
        };
        if nowhere {
            this.retire();
        } else {
            Worker::attend(this.adapter().worker(), this);
        }
    }

    /// Forgets the allocation: it lies nowhere and nobody claims it. Its pages go with the last
    /// reference.
    pub(super) fn retire(&self) {
        let adapter = self.adapter();
        let client = self.device.client();
        let (backing, committed) = {
            let mut residency = self.is_swappable().then(|| adapter.residency().lock());
            let mut residence = self.residence.lock();
            // The worker may have been asked to look at it before, and finds it once more.
            if !residence.bury() {
                return;
            }
            if let Some(residency) = &mut residency {
                residency.idle.leave(self, &mut residence);
            }
            (residence.take_backing(), residence.is_committed())
        };
        adapter.registries().allocations.remove(self.object_id);
        if committed {
            client.usage().sub(Sum::Backing, self.size);
            adapter.statistics().unbacked(self.size);
        }
        drop(backing);
        client.usage().sub(Sum::Total, self.size);
        self.trace(trace::Life::Destroy);
        adapter.notify_released();
    }

    fn trace(&self, action: trace::Life) {
        trace::alloc(|| trace::Alloc {
            allocation: self.object_id,
            action,
            size: self.size,
            flags: self.flags.bits(),
            cookie: 0,
        });
    }

    /// Takes the mapping offset and the GPU virtual mappings back. Called when the handle goes; existing
    /// mappings of the CPU stay.
    pub(crate) fn closed(&self) {
        if let Some(space) = self.device.client().space() {
            AddressSpace::forget(space, self);
        }
        let token = self.token.lock().take();
        if let Some(token) = token {
            let client = self.device.client();
            self.adapter().offsets().give(client, token);
        }
    }

    /// Returns its number, unique on the adapter.
    pub(crate) fn object_id(&self) -> u64 {
        self.object_id
    }

    /// Returns the device it belongs to.
    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Returns the adapter.
    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        self.device.adapter()
    }

    /// Returns the bytes of one instance, rounded.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns its properties.
    pub(crate) fn flags(&self) -> Flags {
        self.flags
    }

    /// Returns its permitted segments.
    pub(crate) fn segments(&self) -> u32 {
        self.segments
    }

    /// Returns its order of preference.
    pub(crate) fn preferred(&self) -> u64 {
        self.preferred
    }

    /// Returns where its name is.
    pub(crate) fn name(&self) -> &name::Slot {
        &self.name
    }

    /// Returns the first mapping offset and the bytes that can be mapped from there; zeros if the
    /// CPU cannot map it.
    pub(crate) fn mapping(&self) -> (u64, u64) {
        self.token
            .lock()
            .as_ref()
            .map_or((0, 0), |token| (token.start(), token.bytes()))
    }

    /// Returns the mapping offset at which translations of it can be; 0 if there never are any.
    pub(crate) fn mapping_start(&self) -> u64 {
        self.mapping_start
    }

    /// Returns what it needs in a segment.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            bytes: self.size,
            align: self.align,
            contiguity: if self.is_contiguous() {
                Contiguity::Contiguous
            } else {
                Contiguity::Loose
            },
        }
    }

    /// Returns what it asks for when it is to be resident.
    pub(crate) fn demand(&self) -> Demand {
        Demand {
            bytes: self.size,
            mask: self.segments,
            // A primary that no engine reaches physically needs a range in system memory only while
            // it is shown.
            contiguous: self.is_physical() || (self.is_contiguous() && !self.may_be_in_system()),
        }
    }

    /// Returns whether it must be one run wherever it lies in a memory segment: engines or displays
    /// address it physically (SEG-15, SEG-21).
    pub(crate) fn is_contiguous(&self) -> bool {
        self.is_physical() || self.primary.is_some()
    }

    /// Returns what makes it a primary, if it is one.
    pub(crate) fn primary(&self) -> Option<&Primary> {
        self.primary.as_deref()
    }

    /// Returns whether a source shows it or is about to.
    pub(crate) fn is_on_screen(&self) -> bool {
        self.primary().is_some_and(|primary| primary.displays() > 0)
    }

    /// One more source shows it.
    pub(super) fn begin_display(&self) {
        if let Some(primary) = self.primary() {
            primary.begin_display();
            self.device.begin_display();
        }
    }

    /// One source less shows it.
    pub(super) fn end_display(&self) {
        if let Some(primary) = self.primary() {
            primary.end_display();
            self.device.end_display();
        }
    }

    /// Returns whether engines may use physical addresses of it, so that it needs a range of the
    /// aperture for as long as it is resident in system memory (SEG-16, SEG-24).
    pub(crate) fn is_physical(&self) -> bool {
        self.flags.contains(Flag::AccessedPhysically)
    }

    fn may_be_in_system(&self) -> bool {
        let aperture = self.adapter().backend().capabilities().aperture();
        aperture.is_some_and(|aperture| self.permits(aperture.id))
    }

    /// Returns whether Linux may swap the pages behind it while they are not needed.
    pub(crate) fn is_swappable(&self) -> bool {
        self.swap.is_some()
    }

    /// Returns whether system memory is its only place.
    pub(crate) fn is_system_only(&self) -> bool {
        self.adapter()
            .backend()
            .capabilities()
            .aperture()
            .is_some_and(|aperture| self.segments == aperture.id.bit())
    }

    /// Returns where it is, behind its lock.
    pub(crate) fn residence(&self) -> &Mutex<Residence> {
        &self.residence
    }

    /// Gives it `backing` unless it has backing pages.
    pub(super) fn install(&self, backing: Backing) {
        let surplus = {
            let mut residence = self.residence.lock();
            let surplus = residence.install(backing);
            if residence.note_commitment() {
                self.device.client().usage().add(Sum::Backing, self.size);
                self.adapter().statistics().backed(self.size);
            }
            surplus
        };
        drop(surplus);
    }

    /// Takes backing pages for it, charged to the task that created it. Before it fails, the client gives
    /// up what it has touched and does not need.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: the system or the memory cgroup has no more.
    /// - `EIO`: swap cannot be read.
    /// - `EINTR`: the caller is being killed.
    pub(super) fn take_backing(&self) -> Result<Backing> {
        let adapter = self.adapter();
        if adapter.is_backing_withheld() {
            return Err(ENOMEM);
        }
        let take = || {
            self.payer.charge(|| match &self.swap {
                None => Backing::owned(self.size),
                Some(file) => Backing::swappable(file),
            })
        };
        let backing = match take() {
            Err(ENOMEM) if adapter.let_go_touched(self.device.client()) => take(),
            taken => taken,
        }?;
        adapter.count_swapped_in(backing.swapped_in());
        Ok(backing)
    }

    /// Takes its backing pages if it has none.
    ///
    /// # Errors
    ///
    /// As [`Self::take_backing`].
    pub(super) fn commit(&self) -> Result {
        if self.residence.lock().backing().is_none() {
            self.install(self.take_backing()?);
        }
        Ok(())
    }

    /// Ends a portion's claim on its place.
    pub(super) fn unpin(this: &Arc<Self>) {
        Self::untie(this, |residence| {
            residence.pins = residence.pins.saturating_sub(1);
        });
    }

    /// Ends the claim of slots on its place across a cut.
    pub(super) fn let_go(this: &Arc<Self>) {
        Self::untie(this, |residence| {
            residence.held = residence.held.saturating_sub(1);
        });
    }

    fn untie(this: &Arc<Self>, change: impl FnOnce(&mut Residence)) {
        let wanted = {
            let mut residence = this.residence.lock();
            change(&mut residence);
            if this.is_sunk(&residence) {
                this.adapter().sunk().push(this);
            }
            !residence.is_tied() && residence.is_awaited()
        };
        if wanted {
            Worker::attend(this.adapter().worker(), this);
        }
    }

    /// Lets the worker look again, after a use has ended, if somebody wants it elsewhere.
    pub(super) fn reconsider(this: &Arc<Self>) {
        let wanted = this.residence.lock().is_awaited();
        if wanted {
            Worker::attend(this.adapter().worker(), this);
        }
    }

    /// Returns how often its place has changed.
    pub(super) fn moves(&self) -> u32 {
        self.moves.load(Acquire)
    }

    /// Counts a change of place, for its client too, and wakes who waits for one.
    pub(super) fn moved(&self) {
        self.account(&mut self.residence.lock());
        self.moves.fetch_add(1, Full);
        self.adapter().paging().notify();
    }

    /// Counts the use by an accepted submission.
    pub(super) fn begin_use(&self, access: Access) {
        self.users(access).fetch_add(1, Full);
    }

    /// Ends a use.
    pub(super) fn end_use(&self, access: Access) {
        self.users(access).fetch_sub(1, Full);
    }

    fn users(&self, access: Access) -> &Atomic<i64> {
        match access {
            Access::Read => &self.readers,
            Access::Write => &self.writers,
        }
    }

    /// Returns whether an accepted submission that has not ended uses it in this way.
    pub(crate) fn is_used(&self, access: Access) -> bool {
        self.users(access).load(Acquire) > 0
    }

    /// Returns whether any accepted submission that has not ended uses it.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_used(Access::Read) || self.is_used(Access::Write)
    }

    /// Returns the counter of submissions that need it in its place without using it.
    pub(super) fn requirements(&self) -> &Atomic<i64> {
        &self.requirements
    }

    /// Returns whether it is offered: no new use may begin.
    pub(crate) fn is_offered(&self) -> bool {
        self.offered.load(Acquire)
    }

    /// Notes whether it is offered.
    pub(super) fn set_offered(&self, offered: bool) {
        self.offered.xchg(offered, Full);
    }

    /// Returns what it is called in the address space of its client.
    pub(super) fn mapped(&self) -> &Atomic<u32> {
        &self.mapped
    }

    /// Returns the counter of its mappings.
    pub(super) fn mappings(&self) -> &Atomic<i64> {
        &self.mappings
    }

    /// Returns the counter of locks in force.
    pub(super) fn locks(&self) -> &Atomic<i64> {
        &self.locks
    }

    /// Returns whether the CPU has it locked.
    pub(crate) fn is_locked(&self) -> bool {
        self.locks.load(Relaxed) > 0
    }

    /// Returns whether nobody claims it any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.holds.load(Acquire) == 0
    }

    /// Returns the segment of `id` in which it may lie.
    pub(crate) fn permits(&self, id: SegmentId) -> bool {
        self.segments & id.bit() != 0
    }
}

/// How a submission uses an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It only reads.
    Read,
    /// It writes.
    Write,
}
