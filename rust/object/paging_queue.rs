// SPDX-License-Identifier: GPL-2.0

//! Paging queues: ordered streams of residency work, each with its own paging fence.
//!
//! A request that leaves something to do gets the next fence value (RES-3); values and commands
//! are handed out in one step, so that the order of the values is the order of the work (RES-9).
//!
//! # Locking
//!
//! `PagingQueue::last` (rank 5, spinlock) is held while a command goes to the worker.

use kernel::{
    list::ListArc,
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
    types::ScopeGuard,
};

use crate::object::{
    command::Command,
    device::Device,
    fence::{
        Fence,
        Purpose, //
    },
    name,
    submission::Point,
    worker::Worker, //
};

/// Which queues the worker looks at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// After the others.
    Low,
    /// In the order of arrival.
    Normal,
    /// Before the others.
    High,
}

/// One paging queue.
#[pin_data]
pub(crate) struct PagingQueue {
    number: u64,
    device: Arc<Device>,
    priority: Priority,
    fence: Arc<Fence>,
    #[pin]
    name: name::Slot,
    /// The last value that was handed out.
    #[pin]
    last: SpinLock<u64>,
    /// The worker's pass in which a command of this queue had to stay.
    blocked: Atomic<u64>,
}

impl Priority {
    /// Returns its place among the priorities, the lowest first.
    pub(super) fn index(self) -> usize {
        // CAST: a fieldless enum.
        self as usize
    }
}

impl PagingQueue {
    /// Makes a queue of `device`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `ENOSPC`: no mapping offset left for its fence.
    pub(crate) fn new(device: &Arc<Device>, priority: Priority) -> Result<Arc<Self>> {
        let fence = Fence::new(device.client(), Purpose::Paging, 0)?;
        let fence = ScopeGuard::new_with_data(fence, |fence| fence.unlist(device.client()));
        let shared = Arc::clone(&fence);
        let adapter = device.adapter();
        let queue = Arc::pin_init(
            pin_init!(Self {
                number: adapter.next_number(),
                device: device.clone(),
                priority,
                fence: shared,
                name <- name::Slot::new(),
                last <- new_spinlock!(0, "PagingQueue::last"),
                blocked: Atomic::new(0),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        adapter.registries().queues.add(queue.number, &queue)?;
        fence.dismiss();
        Ok(queue)
    }

    /// Takes the queue off the list that the debug files show. Called when its handle goes; what is
    /// queued is carried out all the same.
    ///
    /// Requirement: RES-24.
    pub(crate) fn closed(&self) {
        self.device
            .adapter()
            .registries()
            .queues
            .remove(self.number);
    }

    /// Returns its number, unique on the adapter.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the device it belongs to.
    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Returns its priority.
    pub(crate) fn priority(&self) -> Priority {
        self.priority
    }

    /// Returns its paging fence.
    pub(crate) fn fence(&self) -> &Arc<Fence> {
        &self.fence
    }

    /// Returns where its name is.
    pub(crate) fn name(&self) -> &name::Slot {
        &self.name
    }

    /// Returns the point at which everything is done that is queued now.
    pub(crate) fn end(&self) -> Point {
        Point {
            fence: self.fence.clone(),
            value: self.last_value(),
        }
    }

    /// Returns the last value that was handed out.
    pub(crate) fn last_value(&self) -> u64 {
        *self.last.lock()
    }

    /// Returns whether nobody is left to see what is done for it.
    pub(super) fn is_over(&self) -> bool {
        self.device.is_over()
    }

    /// Returns whether a command had to stay in the worker's pass `pass`.
    pub(super) fn is_blocked_in(&self, pass: u64) -> bool {
        self.blocked.load(Relaxed) == pass
    }

    /// Notes that a command had to stay in the worker's pass `pass`.
    pub(super) fn block_in(&self, pass: u64) {
        self.blocked.store(pass, Relaxed);
    }

    /// Gives `command` the next value and hands it to the worker. `announce` is told the value
    /// before the worker can see the command.
    pub(super) fn push(&self, mut command: ListArc<Command>, announce: impl FnOnce(u64)) -> u64 {
        let worker = self.device.adapter().worker();
        let value = {
            let mut last = self.last.lock();
            *last += 1;
            *command.value_mut() = *last;
            announce(*last);
            Worker::push_command(worker, command);
            *last
        };
        Worker::kick(worker);
        value
    }
}
