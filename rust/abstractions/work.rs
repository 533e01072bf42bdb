// SPDX-License-Identifier: GPL-2.0

//! Work queues that belong to an object.
//!
//! The kernel crate has work items and the queues of the whole system. A driver whose memory work must
//! make progress while memory is short needs queues of its own with a rescuer thread
//! (WQ_MEM_RECLAIM), and it needs to know that nothing of an object runs any more when the object
//! goes: dropping a queue waits for all that was enqueued.
//!
//! [`OrderedQueue`] runs one item after the other, in the order of arrival. [`UnboundQueue`] runs as
//! many items at once as there are, on any CPU; one item by itself never runs twice at once.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h).
//! Upstream: an owning type in `rust/kernel/workqueue.rs`.

use core::ptr::NonNull;
use kernel::{
    bindings,
    ffi,
    prelude::*,
    workqueue::{
        Queue,
        RawWorkItem, //
    }, //
};

/// A workqueue of our own.
///
/// # Invariants
///
/// The pointer is that of a workqueue which this value alone destroys.
struct OwnedQueue(NonNull<bindings::workqueue_struct>);

// SAFETY: Workqueues may be used and destroyed from any task.
unsafe impl Send for OwnedQueue {}

// SAFETY: Workqueues have locks of their own.
unsafe impl Sync for OwnedQueue {}

impl OwnedQueue {
    /// Allocates a queue that runs up to `active` items at once, or the default for zero.
    fn new(name: &CStr, flags: bindings::wq_flags, active: ffi::c_int) -> Result<Self> {
        // SAFETY: The format has one string, which is passed and ends in NUL; the queue copies it.
        let queue = unsafe {
            bindings::alloc_workqueue_noprof(c"%s".as_char_ptr(), flags, active, name.as_char_ptr())
        };

        // INVARIANT: The queue is new and nobody else knows it.
        NonNull::new(queue).map(Self).ok_or(ENOMEM)
    }

    /// Returns the kernel crate's view, for as long as the queue lives.
    fn queue(&self) -> &Queue {
        // SAFETY: By the type invariants the queue lives as long as the borrow of `self`.
        unsafe { Queue::from_raw(self.0.as_ptr()) }
    }

    /// Waits until all that was enqueued before this call has run.
    fn flush(&self) {
        // SAFETY: By the type invariants the queue is alive.
        unsafe { bindings::__flush_workqueue(self.0.as_ptr()) }
    }
}

impl Drop for OwnedQueue {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the queue is alive, and nobody else destroys it. Nothing can
        // be enqueued any more but by its own items, which the call waits for.
        unsafe { bindings::destroy_workqueue(self.0.as_ptr()) }
    }
}

/// Runs one item after the other, in the order in which they were enqueued.
///
/// Dropping it runs what is left and waits for it. It must not be dropped by one of its own items: an
/// item that may hold the last reference to the owner of the queue would wait for itself.
pub struct OrderedQueue(OwnedQueue);

impl OrderedQueue {
    /// Allocates a queue; `name` shows in the list of kernel threads.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub fn new(name: &CStr) -> Result<Self> {
        let flags = bindings::wq_flags_WQ_UNBOUND
            | bindings::wq_flags___WQ_ORDERED
            | bindings::wq_flags_WQ_MEM_RECLAIM;

        OwnedQueue::new(name, flags, 1).map(Self)
    }

    /// Enqueues an item; for `Arc` items the error gives back one that is waiting already.
    pub fn enqueue<W, const ID: u64>(&self, item: W) -> W::EnqueueOutput
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        self.0.queue().enqueue(item)
    }

    /// Waits until all that was enqueued before this call has run. Not from an item of the queue.
    pub fn flush(&self) {
        self.0.flush();
    }
}

/// Runs many items at once, on any CPU.
///
/// The items have ordinary priority: they may compute for long, and what they stand for, a processor
/// of its own, must not take the CPU from the programs that feed it.
///
/// Dropping it runs what is left and waits for it; see [`OrderedQueue`].
pub struct UnboundQueue(OwnedQueue);

impl UnboundQueue {
    /// Allocates a queue; `name` shows in the list of kernel threads.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub fn new(name: &CStr) -> Result<Self> {
        let flags = bindings::wq_flags_WQ_UNBOUND | bindings::wq_flags_WQ_MEM_RECLAIM;

        OwnedQueue::new(name, flags, 0).map(Self)
    }

    /// Enqueues an item; for `Arc` items the error gives back one that is waiting already.
    pub fn enqueue<W, const ID: u64>(&self, item: W) -> W::EnqueueOutput
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        self.0.queue().enqueue(item)
    }

    /// Waits until all that was enqueued before this call has run. Not from an item of the queue.
    pub fn flush(&self) {
        self.0.flush();
    }
}
