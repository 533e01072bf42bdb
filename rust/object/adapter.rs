// SPDX-License-Identifier: GPL-2.0

//! The adapter: one GPU with its segments and nodes.
//!
//! Everything that clients share hangs here: the residency of all memory, the worker, the paging
//! line, mapping offsets, and the lists of living objects. An [`Attached`] adapter is what the module
//! holds; dropping it takes the adapter apart, in an order in which nothing is used after it is gone.

use kernel::{
    new_mutex,
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
        mapping_anchor::MappingAnchor,
        pages::system_bytes,
        wait_queue::{
            new_wait_queue,
            WaitQueue, //
        },
    },
    backend::{
        Backend,
        Flow, //
    },
    object::{
        allocation::Allocation,
        budget::{
            local_bytes,
            Budgets,
            PerGroup, //
        },
        client::Client,
        context::Context,
        device::Device,
        fence::Fence,
        fixed::Fixed,
        host_aperture::HostAperture,
        node_load::NodeLoads,
        offsets::Offsets,
        order::Sunk,
        paging::{
            Builder,
            Line, //
        },
        paging_process::{
            PagingProcess,
            FIRST_NUMBER, //
        },
        paging_queue::PagingQueue,
        placement::Residency,
        reclaim::Relief,
        registry::Registry,
        scanout::Sources,
        statistics::Statistics,
        watchdog::Watchdog,
        worker::Worker, //
    },
    policy::residency::{
        Capacity,
        Demand, //
    },
    units::{
        NodeOrdinal,
        SegmentId,
        SEGMENT_IDS, //
    },
};

// What the door needs to know of an adapter's shape, handed through so that it looks no deeper.
pub(crate) use crate::backend::capabilities::{
    NodeKind,
    SegmentKind, //
};

/// One adapter.
#[pin_data]
pub(crate) struct Adapter {
    id: u64,
    backend: Arc<dyn Backend>,
    worker: Arc<Worker>,
    paging: Arc<Line>,
    watchdog: Arc<Watchdog>,
    loads: NodeLoads,
    anchor: Arc<MappingAnchor>,
    /// The windows through which the CPU sees segments.
    host_apertures: KVec<Arc<HostAperture>>,
    sources: Sources,
    /// What the segments hold when they are empty, by id.
    whole: [Capacity; SEGMENT_IDS],
    numbers: Atomic<u64>,
    submissions: Atomic<u64>,
    /// Goes up whenever work ends.
    ends: Atomic<u64>,
    /// Goes up whenever room may have become free for somebody who found none.
    room: Atomic<u64>,
    /// Pages of swappable allocations that are kept because the CPU has touched them.
    touched_pages: Atomic<u64>,
    /// Pages that were read back from swap.
    swapped_in: Atomic<u64>,
    /// Pages that were let go because memory was short.
    let_go: Atomic<u64>,
    /// Bytes of backing pages that offers allow to go.
    surrenderable: Atomic<i64>,
    /// What never leaves its place.
    fixed: Fixed,
    /// Bytes of offered content that was given up.
    discarded: Atomic<i64>,
    /// Whether no backing pages are given out, for tests.
    backing_withheld: Atomic<bool>,
    statistics: Arc<Statistics>,
    #[pin]
    registries: Registries,
    #[pin]
    offsets: Offsets,
    #[pin]
    residency: Mutex<Residency>,
    #[pin]
    sunk: Sunk,
    #[pin]
    budgets: Budgets,
    #[pin]
    idle: WaitQueue,
    #[pin]
    released: WaitQueue,
    /// Last, so that it is there before and after everything that works on its behalf.
    process: PagingProcess,
}

/// All living objects.
#[pin_data]
pub(crate) struct Registries {
    /// Clients, by id.
    #[pin]
    pub(crate) clients: Registry<Client>,
    /// Devices, by number.
    #[pin]
    pub(crate) devices: Registry<Device>,
    /// Allocations, by object id; also those whose handle is gone.
    #[pin]
    pub(crate) allocations: Registry<Allocation>,
    /// Contexts, by number.
    #[pin]
    pub(crate) contexts: Registry<Context>,
    /// Paging queues, by number.
    #[pin]
    pub(crate) queues: Registry<PagingQueue>,
    /// Fences, by number.
    #[pin]
    pub(crate) fences: Registry<Fence>,
}

impl Registries {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            clients <- Registry::new(),
            devices <- Registry::new(),
            allocations <- Registry::new(),
            contexts <- Registry::new(),
            queues <- Registry::new(),
            fences <- Registry::new(),
        })
    }
}

impl Adapter {
    // Kept apart, so that its temporaries are off the stack before the next step.
    #[inline(never)]
    fn new(id: u64, backend: Arc<dyn Backend>) -> Result<Arc<Self>> {
        let numbers = Atomic::new(FIRST_NUMBER);
        let mut builder = Builder::new()?;
        let mut residency = Residency::new(&*backend)?;
        let process = PagingProcess::new(&backend, &mut residency.segments, &mut builder, || {
            numbers.fetch_add(1, Relaxed)
        })?;
        let worker = Worker::new(backend.capabilities(), builder)?;
        let statistics = Arc::new(Statistics::new(), GFP_KERNEL)?;
        let nodes = backend.capabilities().nodes.len();
        let watchdog = Watchdog::new(nodes)?;
        let loads = NodeLoads::new(nodes)?;
        let paging = Line::new(&backend, &worker, &watchdog, &statistics, &process)?;
        let mut whole = [Capacity::default(); SEGMENT_IDS];
        for segment in &residency.segments {
            if let Some(capacity) = whole.get_mut(segment.id.index()) {
                *capacity = capacity_of(segment.kind, segment.capacity());
            }
        }
        let local = local_bytes(backend.capabilities(), &residency);
        let totals = PerGroup::new(local, system_bytes());
        let sources = Sources::new(backend.capabilities().sources)?;
        let anchor = Arc::pin_init(MappingAnchor::new(), GFP_KERNEL)?;
        let host_apertures = HostAperture::all(backend.capabilities())?;
        let adapter = Arc::pin_init(
            pin_init!(Self {
                id,
                backend,
                worker,
                paging,
                watchdog,
                loads,
                anchor,
                host_apertures,
                sources,
                whole,
                numbers,
                submissions: Atomic::new(1),
                ends: Atomic::new(0),
                room: Atomic::new(1),
                touched_pages: Atomic::new(0),
                swapped_in: Atomic::new(0),
                let_go: Atomic::new(0),
                surrenderable: Atomic::new(0),
                fixed: Fixed::new(),
                discarded: Atomic::new(0),
                backing_withheld: Atomic::new(false),
                statistics,
                registries <- Registries::new(),
                offsets <- Offsets::new(),
                residency <- new_mutex!(residency, "Adapter::residency"),
                sunk <- Sunk::new(),
                budgets <- Budgets::new(totals),
                idle <- new_wait_queue!("Adapter::idle"),
                released <- new_wait_queue!("Adapter::released"),
                process,
            }),
            GFP_KERNEL,
        )?;
        adapter.worker.serve(Some(adapter.clone()));
        adapter.watchdog.serve(Some(adapter.clone()));
        Ok(adapter)
    }

    /// Returns its identity until the module is unloaded.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Returns the paging process.
    pub(crate) fn paging_process(&self) -> &PagingProcess {
        &self.process
    }

    /// Returns the backend.
    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Returns how much client work its nodes have before them.
    pub(super) fn loads(&self) -> &NodeLoads {
        &self.loads
    }

    /// Returns what watches over its nodes.
    pub(crate) fn watchdog(&self) -> &Arc<Watchdog> {
        &self.watchdog
    }

    /// Returns what brings the mappings of all files together.
    pub(crate) fn anchor(&self) -> &Arc<MappingAnchor> {
        &self.anchor
    }

    /// Returns the windows through which the CPU sees segments.
    pub(crate) fn host_apertures(&self) -> &[Arc<HostAperture>] {
        &self.host_apertures
    }

    /// Returns the window through which the CPU sees a segment, if that is how.
    pub(crate) fn host_aperture(&self, segment: SegmentId) -> Option<&HostAperture> {
        let mut all = self.host_apertures.iter();
        all.find(|aperture| aperture.segment() == segment)
            .map(|aperture| &**aperture)
    }

    /// Returns the lists of living objects.
    pub(crate) fn registries(&self) -> &Registries {
        &self.registries
    }

    /// Returns the display sources.
    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Returns the mapping offsets.
    pub(crate) fn offsets(&self) -> &Offsets {
        &self.offsets
    }

    /// Returns the residency of all memory, behind its lock. Lock rank 1.
    pub(crate) fn residency(&self) -> &Mutex<Residency> {
        &self.residency
    }

    /// Returns the allocations whose rank has fallen.
    pub(super) fn sunk(&self) -> &Sunk {
        &self.sunk
    }

    /// Returns what each client may keep resident.
    pub(crate) fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// Returns the worker.
    pub(super) fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// Returns the paging line.
    pub(crate) fn paging(&self) -> &Arc<Line> {
        &self.paging
    }

    /// Returns the counters of the core.
    pub(crate) fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns where locks wait for work to end.
    pub(super) fn idle(&self) -> &WaitQueue {
        &self.idle
    }

    /// Returns how often work has ended.
    pub(super) fn ends(&self) -> u64 {
        self.ends.load(Acquire)
    }

    /// Returns how often room may have become free.
    pub(super) fn room(&self) -> u64 {
        self.room.load(Acquire)
    }

    /// Notes that room may have become free for somebody who found none.
    pub(super) fn make_room(&self) {
        self.room.fetch_add(1, Full);
    }

    /// Counts bytes of backing pages that an offer allows to go.
    pub(super) fn add_surrenderable(&self, bytes: u64) {
        // CAST: sums of bytes that exist stay far below 2^63.
        self.surrenderable.add(bytes as i64, Relaxed);
    }

    /// Takes back what [`Self::add_surrenderable`] counted.
    pub(super) fn sub_surrenderable(&self, bytes: u64) {
        // CAST: sums of bytes that exist stay far below 2^63.
        self.surrenderable
            .add((bytes as i64).wrapping_neg(), Relaxed);
    }

    /// Returns the bytes of backing pages that offers allow to go.
    pub(crate) fn surrenderable(&self) -> u64 {
        self.surrenderable.load(Relaxed).max(0).unsigned_abs()
    }

    /// Counts bytes of offered content that was given up.
    pub(super) fn add_discarded(&self, bytes: u64) {
        // CAST: sums of bytes that exist stay far below 2^63.
        self.discarded.add(bytes as i64, Relaxed);
    }

    /// Returns the bytes of offered content that was given up.
    pub(crate) fn discarded(&self) -> u64 {
        self.discarded.load(Relaxed).max(0).unsigned_abs()
    }

    /// Gives no backing pages out any more, or does again.
    pub(super) fn withhold_backing(&self, withheld: bool) {
        self.backing_withheld.store(withheld, Relaxed);
    }

    /// Changes how many pages are kept because the CPU has touched them. `Adapter::residency` is
    /// locked, so that nobody else does.
    pub(super) fn count_touched(&self, change: impl FnOnce(u64) -> u64) {
        self.touched_pages
            .store(change(self.touched_pages.load(Relaxed)), Relaxed);
    }

    /// Returns how many pages are kept because the CPU has touched them.
    pub(crate) fn touched_pages(&self) -> u64 {
        self.touched_pages.load(Relaxed)
    }

    /// Counts pages that were read back from swap.
    pub(super) fn count_swapped_in(&self, pages: u64) {
        self.swapped_in.fetch_add(pages, Relaxed);
    }

    /// Counts pages that were let go because memory was short.
    pub(super) fn count_let_go(&self, pages: usize) {
        // CAST: widening.
        self.let_go.fetch_add(pages as u64, Relaxed);
    }

    /// Returns how many pages were let go because memory was short.
    pub(crate) fn pages_let_go(&self) -> u64 {
        self.let_go.load(Relaxed)
    }

    /// Returns how many pages were read back from swap.
    pub(crate) fn swapped_in(&self) -> u64 {
        self.swapped_in.load(Relaxed)
    }

    /// Returns whether no backing pages are given out.
    pub(super) fn is_backing_withheld(&self) -> bool {
        self.backing_withheld.load(Relaxed)
    }

    /// Wakes locks that wait for work to end.
    pub(super) fn notify_idle(&self) {
        self.ends.fetch_add(1, Full);
        self.idle.notify_all();
    }

    /// Returns where CLOSE with SYNC waits for storage to go.
    pub(crate) fn released(&self) -> &WaitQueue {
        &self.released
    }

    /// Wakes who waits for storage to go.
    pub(super) fn notify_released(&self) {
        self.released.notify_all();
    }

    /// Returns a number for a new object.
    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Relaxed)
    }

    /// Returns a number for a new submission.
    pub(super) fn next_submission(&self) -> u64 {
        self.submissions.fetch_add(1, Relaxed)
    }

    /// Returns what the segments hold when they are empty.
    pub(super) fn whole_capacities(&self) -> &[Capacity] {
        &self.whole
    }

    /// Returns what never leaves its place.
    pub(super) fn fixed(&self) -> &Fixed {
        &self.fixed
    }

    /// Returns what the segments hold for `device`: without what no allocation can have, and without what
    /// is fixed there, unless the device counts it among its demands.
    pub(super) fn free_capacities(&self, device: &Device) -> [Capacity; SEGMENT_IDS] {
        let mut capacities = self.whole;
        let residency = self.residency.lock();
        for segment in &residency.segments {
            if let Some(capacity) = capacities.get_mut(segment.id.index()) {
                let fixed = self.fixed.beside(device, segment.id);
                let missing = segment.bytes_unavailable().saturating_add(fixed.bytes);
                if segment.kind == SegmentKind::Memory {
                    capacity.bytes = capacity.bytes.saturating_sub(missing);
                }
                // Nothing says where the missing pages are; the bound may only be too wide.
                let most = segment.bytes().saturating_sub(missing);
                let contiguous = capacity.contiguous.saturating_sub(fixed.contiguous);
                capacity.contiguous = contiguous.min(most);
            }
        }
        capacities
    }

    /// Returns whether an empty adapter could hold this.
    pub(super) fn could_hold(&self, demand: &Demand) -> bool {
        demand.fits_alone(&self.whole)
    }

    /// Returns whether some permitted segment is large enough for this alignment.
    pub(super) fn could_align(&self, segments: u32, align: u64) -> bool {
        self.backend
            .capabilities()
            .segments
            .iter()
            .filter(|segment| segments & segment.id.bit() != 0)
            .any(|segment| align <= segment.bytes)
    }
}

/// Returns what the policy needs to know of a segment: everything, and what one run can have.
fn capacity_of(kind: SegmentKind, (all, contiguous): (u64, u64)) -> Capacity {
    match kind {
        SegmentKind::Memory => Capacity {
            bytes: all,
            contiguous,
        },
        // Loose allocations use system memory without a range; how much of it is free shows when
        // pages are taken.
        SegmentKind::Aperture => Capacity {
            bytes: system_bytes(),
            contiguous,
        },
    }
}

/// An adapter that is in service, for as long as this lives.
pub(crate) struct Attached {
    adapter: Arc<Adapter>,
    /// Lets the kernel ask for memory; gone once it is being taken apart.
    relief: Option<Relief>,
}

impl Attached {
    /// Puts an adapter on `backend` into service.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `EINVAL`: the backend describes something that cannot be managed.
    pub(crate) fn new(id: u64, backend: Arc<dyn Backend>) -> Result<Self> {
        let adapter = Adapter::new(id, backend)?;
        // Taken apart again if this fails.
        let mut attached = Self {
            adapter,
            relief: None,
        };
        attached.relief = Some(Relief::new(&attached.adapter)?);
        Ok(attached)
    }

    /// Returns the adapter.
    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }
}

impl Drop for Attached {
    /// Takes the adapter out of service: no file is open any more, and what clients left behind is
    /// finished.
    fn drop(&mut self) {
        // The kernel asks no more, and nobody is being asked.
        self.relief = None;
        let adapter = &self.adapter;
        adapter.watchdog.serve(None);
        adapter.watchdog.flush();
        for (ordinal, _) in (0..).zip(&adapter.backend.capabilities().nodes) {
            let _ = adapter
                .backend
                .set_flow(NodeOrdinal(ordinal), Flow::Running);
        }
        Worker::hold(&adapter.worker, false);
        // From here on everything completes at once, stopped: nobody is left to see its result.
        adapter.backend.shut_down();
        while !adapter.registries.allocations.is_empty() || adapter.sources.are_deserted() {
            Worker::kick(&adapter.worker);
            adapter.worker.flush();
        }
        // The last completions are over when nothing runs for the nodes any more.
        adapter.backend.flush();
        adapter.worker.serve(None);
        // A pass that is still asked for must not be the last to know the worker.
        adapter.worker.flush();
        while adapter.sunk.pop().is_some() {}
    }
}
