// SPDX-License-Identifier: GPL-2.0

//! Commands of paging queues, as they are handed to the worker (step A3 of RES-1).

use kernel::{
    list::{
        define_list_arc_field_getter,
        impl_list_arc_safe,
        impl_list_item,
        ListArc,
        ListArcField,
        ListLinks, //
    },
    prelude::*,
    sync::Arc,
};

use crate::{
    abstractions::trace,
    object::{
        address_space::AddressSpace,
        allocation::Hold,
        paging_queue::PagingQueue,
        reclaim::Kept,
        residency::Urgency, //
    },
};

/// One command.
#[pin_data]
pub(crate) struct Command {
    queue: Arc<PagingQueue>,
    work: Work,
    /// The paging fence value that announces its completion.
    value: ListArcField<u64>,
    /// What [`Adapter::room`] said when no room was found last.
    ///
    /// [`Adapter::room`]: super::adapter::Adapter::room
    tried: ListArcField<u64>,
    #[pin]
    links: ListLinks,
}

/// What a command is for.
enum Work {
    /// Allocations are to be made resident.
    Resident {
        allocations: KVVec<Hold>,
        urgency: Urgency,
        /// Keeps the pages of those that Linux may swap.
        _kept: KVVec<Kept>,
    },
    /// Page tables are to say what is mapped.
    Update(Arc<AddressSpace>),
}

impl_list_arc_safe! {
    impl ListArcSafe<0> for Command { untracked; }
}

impl_list_item! {
    impl ListItem<0> for Command { using ListLinks { self.links }; }
}

impl Command {
    /// Makes a command for `queue` that makes allocations resident; it has no value yet. `kept` are
    /// the pages of those that Linux may swap.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new(
        queue: &Arc<PagingQueue>,
        allocations: KVVec<Hold>,
        urgency: Urgency,
        kept: KVVec<Kept>,
    ) -> Result<ListArc<Self>> {
        let work = Work::Resident {
            allocations,
            urgency,
            _kept: kept,
        };
        Self::of(queue, work)
    }

    /// Makes a command for `queue` that writes what is stale in the tables of `space`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn update(
        queue: &Arc<PagingQueue>,
        space: &Arc<AddressSpace>,
    ) -> Result<ListArc<Self>> {
        Self::of(queue, Work::Update(space.clone()))
    }

    fn of(queue: &Arc<PagingQueue>, work: Work) -> Result<ListArc<Self>> {
        ListArc::pin_init(
            try_pin_init!(Self {
                queue: queue.clone(),
                work,
                value: ListArcField::new(0),
                tried: ListArcField::new(0),
                links <- ListLinks::new(),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Returns the queue.
    pub(super) fn queue(&self) -> &Arc<PagingQueue> {
        &self.queue
    }

    /// Returns what is to be made resident.
    pub(super) fn allocations(&self) -> &[Hold] {
        match &self.work {
            Work::Resident { allocations, .. } => allocations,
            Work::Update(_) => &[],
        }
    }

    /// Returns the space whose tables are to be written.
    pub(super) fn space(&self) -> Option<&Arc<AddressSpace>> {
        match &self.work {
            Work::Resident { .. } => None,
            Work::Update(space) => Some(space),
        }
    }

    /// Returns whether nobody is left to see what is done for it: its device is closed or in error, or
    /// all it names is closed.
    pub(super) fn is_moot(&self) -> bool {
        let is_gone = |hold: &Hold| hold.residence().lock().forgotten;
        let all_gone = match &self.work {
            Work::Resident { allocations, .. } => allocations.iter().all(is_gone),
            Work::Update(_) => false,
        };
        self.queue.is_over() || all_gone
    }

    /// Returns what it means that there is no place.
    pub(super) fn urgency(&self) -> Urgency {
        match self.work {
            Work::Resident { urgency, .. } => urgency,
            Work::Update(_) => Urgency::MayFail,
        }
    }

    define_list_arc_field_getter! {
        pub(super) fn value(&self) -> &u64 { value }
        pub(super) fn value_mut(&mut self) -> &mut u64 { value }
        pub(super) fn tried(&self) -> &u64 { tried }
        pub(super) fn tried_mut(&mut self) -> &mut u64 { tried }
    }

    /// Raises the paging fence: everything in front is complete.
    pub(super) fn finish(&self, value: u64) {
        self.queue.fence().raise(value, trace::Origin::Worker);
    }
}
