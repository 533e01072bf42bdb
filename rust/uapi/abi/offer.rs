// SPDX-License-Identifier: GPL-2.0

//! Offers: OFFER, RECLAIM.
//!
//! A client offers memory whose contents it can do without. Until it reclaims the memory, the kernel
//! may throw the contents away instead of saving them.

use super::Array;

// Offer levels. Values of `level` in `Offer`: who loses contents first when memory is short.

/// First.
pub const OFFER_LEVEL_LOW: u32 = 1;
/// After LOW.
pub const OFFER_LEVEL_NORMAL: u32 = 2;
/// Last.
pub const OFFER_LEVEL_HIGH: u32 = 3;
/// The kernel chooses from use.
pub const OFFER_LEVEL_AUTO: u32 = 4;

// OFFER flags. Bits of `flags` in `Offer`.

/// Does not wait for queued work: `EBUSY` for an allocation that is in use.
pub const OFFER_NOW: u32 = 1 << 0;
/// Backing store may be given up as well.
pub const OFFER_ALLOW_DECOMMIT: u32 = 1 << 1;

/// Argument of OFFER.
///
/// Takes effect, without blocking, after the work queued so far: from then on the kernel may throw
/// the contents away instead of saving them. Until RECLAIM, LOCK, EXPORT, VA_MAP, MAKE_RESIDENT and
/// submissions that name the allocation fail with `EBUSY`.
///
/// Also: `EBUSY` for an allocation that is offered, exported, imported, pinned or on screen, and for
/// USER_MEMORY.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// in: device handle.
    pub device: u32,
    /// in: offer level, `OFFER_LEVEL_LOW` and so on.
    pub level: u32,
    /// in: OFFER flags.
    pub flags: u32,
    /// out!: first handle refused; none offered.
    pub fail_index: u32,
    /// in: `u32` allocation handles.
    pub handles: Array,
}

layout!(Offer, size 32, first 32, {
    device: 0,
    level: 4,
    flags: 8,
    fail_index: 12,
    handles: 16,
});

/// Argument of RECLAIM.
///
/// LOCK works as soon as the call returns, without waiting for the fence. The call itself fails only
/// for bad arguments and handles; what became of each allocation is in its `result`. One that is not
/// offered stays as it is, with the result OK.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reclaim {
    /// in: paging queue handle.
    pub queue: u32,
    /// in: must be zero.
    pub flags: u32,
    /// in/out: array of `ReclaimItem`.
    pub items: Array,
    /// out: paging fence value that covers the list.
    pub fence_value: u64,
    /// out: `STATUS_READY` or `STATUS_PENDING`.
    pub status: u32,
    /// out!: first element refused; nothing is reclaimed.
    pub fail_index: u32,
}

layout!(Reclaim, size 40, first 40, {
    queue: 0,
    flags: 4,
    items: 8,
    fence_value: 24,
    status: 32,
    fail_index: 36,
});

// Reclaim results. Values of `result` in `ReclaimItem`.

/// Contents are intact.
pub const RECLAIM_RESULT_OK: u32 = 0;
/// Storage is there, contents are zero.
pub const RECLAIM_RESULT_DISCARDED: u32 = 1;
/// Backing store was given up under ALLOW_DECOMMIT and could not be committed again; the allocation
/// stays offered.
pub const RECLAIM_RESULT_NOT_COMMITTED: u32 = 2;

/// One allocation of RECLAIM.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReclaimItem {
    /// in: allocation handle.
    pub alloc: u32,
    /// out: reclaim result, `RECLAIM_RESULT_OK` and so on.
    pub result: u32,
}

layout!(ReclaimItem, size 8, first 8, {
    alloc: 0,
    result: 4,
});
