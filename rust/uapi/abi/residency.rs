// SPDX-License-Identifier: GPL-2.0

//! Residency: MAKE_RESIDENT, EVICT.
//!
//! A residency reference is a promise for the time the device has work in PATCHED_EXPLICIT or
//! VIRTUAL contexts.

use super::Array;

// MAKE_RESIDENT flags. Bits of `flags` in `MakeResident`.

/// The caller has given up all it can; the kernel may go over the budget of this client at the cost
/// of others.
pub const MAKE_RESIDENT_CANT_TRIM_FURTHER: u32 = 1 << 0;
/// If even that fails the device goes to ERROR_MEMORY. Needs CANT_TRIM_FURTHER (`EINVAL`).
pub const MAKE_RESIDENT_MUST_SUCCEED: u32 = 1 << 1;

/// Argument of MAKE_RESIDENT.
///
/// Adds one residency reference per list element; a handle may appear more than once. Over budget
/// but physically possible succeeds and sets `bytes_to_trim`. Not possible without pushing out what
/// others need is `ENOSPC`: no reference has changed, `bytes_to_trim` is set.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MakeResident {
    /// in: paging queue handle.
    pub queue: u32,
    /// in: MAKE_RESIDENT flags.
    pub flags: u32,
    /// in: `u32` allocation handles.
    pub handles: Array,
    /// out: paging fence value that covers the whole list.
    pub fence_value: u64,
    /// out!: how much the client should give up, 0 when inside its budget.
    pub bytes_to_trim: u64,
    /// out: `STATUS_READY` or `STATUS_PENDING`.
    pub status: u32,
    /// out!: first allocation that could not be placed.
    pub fail_index: u32,
}

layout!(MakeResident, size 48, first 48, {
    queue: 0,
    flags: 4,
    handles: 8,
    fence_value: 24,
    bytes_to_trim: 32,
    status: 40,
    fail_index: 44,
});

// EVICT flags. Bits of `flags` in `Evict`.

/// The allocation stays until somebody wants the space.
pub const EVICT_ONLY_IF_NEEDED: u32 = 1 << 0;
/// Contents in backing store are still good.
pub const EVICT_NOT_WRITTEN: u32 = 1 << 1;

/// Argument of EVICT.
///
/// Drops one reference per element. At zero the allocation leaves at the first chance after the
/// work queued so far. `EINVAL` for a handle without a reference.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evict {
    /// in: device handle.
    pub device: u32,
    /// in: EVICT flags.
    pub flags: u32,
    /// in: `u32` allocation handles.
    pub handles: Array,
    /// out: as in MAKE_RESIDENT, after this call.
    pub bytes_to_trim: u64,
    /// out!: handle with no residency reference left.
    pub fail_index: u32,
    /// in: must be zero.
    pub pad: u32,
}

layout!(Evict, size 40, first 40, {
    device: 0,
    flags: 4,
    handles: 8,
    bytes_to_trim: 24,
    fail_index: 32,
    pad: 36,
});
