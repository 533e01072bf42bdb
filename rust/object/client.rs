// SPDX-License-Identifier: GPL-2.0

//! One open file of the device node: the *process* of the requirements.
//!
//! A client owns a name space of handles (kept by the door), fence pages, and the sums that QUERY
//! and fdinfo report. Its devices are closed by the door before it; what they leave to the worker
//! keeps the client alive until it is done.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    },
};

use crate::{
    backend::ObjectCall,
    object::{
        adapter::Adapter,
        address_space::AddressSpace,
        budget::Account,
        events::Events,
        fence_page::FencePages,
        name,
        order::Turn,
        presence::Presence,
        status_page::StatusPage, //
    },
    policy::sharing::Meter,
    units::{
        NodeOrdinal,
        SegmentId,
        SEGMENT_IDS, //
    },
};

/// One client of an adapter.
#[pin_data]
pub(crate) struct Client {
    id: u64,
    adapter: Arc<Adapter>,
    #[pin]
    name: name::Slot,
    #[pin]
    fence_pages: FencePages,
    #[pin]
    events: Events,
    #[pin]
    status: StatusPage,
    account: Account,
    usage: Usage,
    #[pin]
    turn: SpinLock<Turn>,
    /// Its GPU virtual addresses, if the adapter has an MMU.
    space: Option<Arc<AddressSpace>>,
    /// What it has had of each node.
    #[pin]
    meters: SpinLock<KVec<Meter>>,
    _presence: Presence,
}

/// Sums over what belongs to a client. Each is a number of its own; together they are no snapshot.
pub(crate) struct Usage {
    resident: [Atomic<i64>; SEGMENT_IDS],
    backing: Atomic<i64>,
    total: Atomic<i64>,
    mappable: Atomic<i64>,
    evictions: Atomic<i64>,
    splits: Atomic<i64>,
    paged_in: Atomic<i64>,
    paged_out: Atomic<i64>,
    offered: Atomic<i64>,
    discarded: Atomic<i64>,
}

/// One of the sums.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sum {
    /// Bytes in use in a segment, counted as SEGMENT.`used`.
    Resident(SegmentId),
    /// Bytes of backing store.
    Backing,
    /// Bytes of all allocations.
    Total,
    /// Bytes of mapping offsets.
    Mappable,
    /// Allocations pushed out.
    Evictions,
    /// Cuts of submissions.
    Splits,
    /// Bytes brought into memory segments.
    PagedIn,
    /// Bytes pushed out of memory segments.
    PagedOut,
    /// Bytes of allocations that are offered.
    Offered,
    /// Bytes of offered content that was given up.
    Discarded,
}

impl Usage {
    fn new() -> Self {
        Self {
            resident: [const { Atomic::new(0) }; SEGMENT_IDS],
            backing: Atomic::new(0),
            total: Atomic::new(0),
            mappable: Atomic::new(0),
            evictions: Atomic::new(0),
            splits: Atomic::new(0),
            paged_in: Atomic::new(0),
            paged_out: Atomic::new(0),
            offered: Atomic::new(0),
            discarded: Atomic::new(0),
        }
    }

    fn of(&self, sum: Sum) -> &Atomic<i64> {
        match sum {
            Sum::Resident(segment) => self
                .resident
                .get(segment.index())
                .unwrap_or(&self.resident[0]),
            Sum::Backing => &self.backing,
            Sum::Total => &self.total,
            Sum::Mappable => &self.mappable,
            Sum::Evictions => &self.evictions,
            Sum::Splits => &self.splits,
            Sum::PagedIn => &self.paged_in,
            Sum::PagedOut => &self.paged_out,
            Sum::Offered => &self.offered,
            Sum::Discarded => &self.discarded,
        }
    }

    /// Adds to a sum.
    pub(crate) fn add(&self, sum: Sum, amount: u64) {
        // CAST: sums of bytes that exist stay far below 2^63.
        self.of(sum).add(amount as i64, Relaxed);
    }

    /// Takes from a sum what was added before.
    pub(crate) fn sub(&self, sum: Sum, amount: u64) {
        // CAST: sums of bytes that exist stay far below 2^63.
        self.of(sum).add((amount as i64).wrapping_neg(), Relaxed);
    }

    /// Returns a sum.
    pub(crate) fn get(&self, sum: Sum) -> u64 {
        // CAST: never negative once everybody who adds has added.
        self.of(sum).load(Relaxed).max(0) as u64
    }
}

impl Client {
    /// Makes a client of `adapter`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(crate) fn new(adapter: &Arc<Adapter>) -> Result<Arc<Self>> {
        let id = adapter.next_number();
        let presence = Presence::new(
            adapter.backend(),
            ObjectCall::CreateProcess { process: id },
            ObjectCall::DestroyProcess { process: id },
        )?;
        let events = Events::new()?;
        let turn = Turn::new(adapter.backend().capabilities().segments.len())?;
        let translation = adapter.backend().capabilities().translation.as_ref();
        let space = translation
            .map(|translation| AddressSpace::new(adapter, id, translation))
            .transpose()?;
        let nodes = adapter.backend().capabilities().nodes.len();
        let meters = KVec::from_elem(Meter::default(), nodes, GFP_KERNEL_ACCOUNT)?;
        let client = Arc::pin_init(
            pin_init!(Self {
                id,
                adapter: adapter.clone(),
                name <- name::Slot::new(),
                fence_pages <- FencePages::new(),
                events <- events,
                status <- StatusPage::new(),
                account: Account::new(),
                usage: Usage::new(),
                turn <- new_spinlock!(turn, "Client::turn"),
                space,
                meters <- new_spinlock!(meters, "Client::meters"),
                _presence: presence,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        adapter.registries().clients.add(id, &client)?;
        adapter.budgets().join(&client).inspect_err(|_| {
            adapter.registries().clients.remove(id);
        })?;
        Ok(client)
    }

    /// Ends the client: its fence pages can no longer be mapped anew and the debug files forget
    /// it. Everything it had is closed by now; nothing is waited for.
    pub(crate) fn close(&self) {
        self.fence_pages.close(self);
        self.adapter.registries().clients.remove(self.id);
        self.adapter.budgets().part(self);
    }

    /// Returns its number, unique on the adapter.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Returns the adapter.
    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }

    /// Returns where its name is.
    pub(crate) fn name(&self) -> &name::Slot {
        &self.name
    }

    /// Returns its sums.
    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns what it may keep resident and keeps.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Returns where it reads its budgets without a call.
    pub(super) fn status(&self) -> &StatusPage {
        &self.status
    }

    /// Returns what it is told without having asked.
    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// Returns, or changes, what it has had of a node.
    pub(super) fn with_meter<T>(
        &self,
        node: NodeOrdinal,
        use_it: impl FnOnce(&mut Meter) -> T,
    ) -> Option<T> {
        self.meters.lock().get_mut(node.index()).map(use_it)
    }

    /// Returns what the orders of the segments know of it.
    pub(super) fn turn(&self) -> &SpinLock<Turn> {
        &self.turn
    }

    /// Returns its GPU virtual addresses, if the adapter has an MMU.
    pub(crate) fn space(&self) -> Option<&Arc<AddressSpace>> {
        self.space.as_ref()
    }

    /// Returns its fence pages.
    pub(super) fn fence_pages(&self) -> &FencePages {
        &self.fence_pages
    }
}
