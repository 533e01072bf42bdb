// SPDX-License-Identifier: GPL-2.0

//! Paging queues: PAGING_QUEUE_CREATE, and the status that calls on a queue return.
//!
//! A paging queue orders residency and mapping work and has a fence of its own, the paging fence.

// Paging queue priorities. Range of `priority` in `PagingQueueCreate`.

/// Lowest priority.
pub const PAGING_QUEUE_PRIORITY_MIN: i32 = -1;
/// Highest priority.
pub const PAGING_QUEUE_PRIORITY_MAX: i32 = 1;

/// Argument of PAGING_QUEUE_CREATE.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagingQueueCreate {
    /// in: device handle.
    pub device: u32,
    /// in: `PAGING_QUEUE_PRIORITY_MIN` to `PAGING_QUEUE_PRIORITY_MAX`.
    pub priority: i32,
    /// in: must be zero.
    pub flags: u32,
    /// out: paging queue handle.
    pub queue: u32,
    /// out: its paging fence, wait-only, closed with the queue and not alone (`EBUSY`).
    pub fence: u32,
    /// out: slot of the fence inside its page.
    pub slot: u32,
    /// out: mapping offset of the page.
    pub mmap_offset: u64,
}

layout!(PagingQueueCreate, size 32, first 32, {
    device: 0,
    priority: 4,
    flags: 8,
    queue: 12,
    fence: 16,
    slot: 20,
    mmap_offset: 24,
});

// Paging status. Values of `status` of calls on a paging queue. The values of the paging fence rise
// by one per PENDING answer of any call on its queue.

/// Usable now; `fence_value` is 0.
pub const STATUS_READY: u32 = 0;
/// Wait for `fence_value` on the paging fence before running work that uses any of it.
pub const STATUS_PENDING: u32 = 1;
