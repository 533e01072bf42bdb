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
        allocation::Hold,
        paging_queue::PagingQueue,
        reclaim::Kept,
        residency::Urgency, //
    },
};

/// One make-resident command.
#[pin_data]
pub(crate) struct Command {
    queue: Arc<PagingQueue>,
    allocations: KVVec<Hold>,
    urgency: Urgency,
    /// Keeps the pages of those that Linux may swap.
    _kept: KVVec<Kept>,
    /// The paging fence value that announces its completion.
    value: ListArcField<u64>,
    /// What [`Adapter::room`] said when no room was found last.
    ///
    /// [`Adapter::room`]: super::adapter::Adapter::room
    tried: ListArcField<u64>,
    #[pin]
    links: ListLinks,
}

impl_list_arc_safe! {
    impl ListArcSafe<0> for Command { untracked; }
}

impl_list_item! {
    impl ListItem<0> for Command { using ListLinks { self.links }; }
}

impl Command {
    /// Makes a command for `queue`; it has no value yet. `kept` are the pages of those that Linux may
    /// swap.
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
        ListArc::pin_init(
            try_pin_init!(Self {
                queue: queue.clone(),
                allocations,
                urgency,
                _kept: kept,
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
        &self.allocations
    }

    /// Returns whether nobody is left to see what is done for it: its device is closed or in error, or
    /// all it names is closed.
    pub(super) fn is_moot(&self) -> bool {
        let mut holds = self.allocations.iter();
        self.queue.is_over() || holds.all(|hold| hold.residence().lock().forgotten)
    }

    /// Returns what it means that there is no place.
    pub(super) fn urgency(&self) -> Urgency {
        self.urgency
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
