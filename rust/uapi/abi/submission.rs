// SPDX-License-Identifier: GPL-2.0

//! Submission: SUBMIT_PATCHED with its lists and errors, SUBMIT_VIRTUAL, SUBMIT_QUERY.
//!
//! A patched buffer names memory by patch entries. The kernel checks all of it before it accepts
//! the submission, writes the addresses right before a portion runs, and may cut the buffer at
//! split points.

use super::Array;

// SUBMIT_PATCHED flags. Bits of `flags` in `SubmitPatched`.

/// Validate, page and schedule, execute nothing.
pub const SUBMIT_PATCHED_NULL_RENDER: u32 = 1 << 0;

// Submit errors. Values of `error_kind`, with the errno that goes with each and what `error_index`
// is. Of several defects one is reported; which one is not promised.

/// None of these; any errno; 0.
pub const SUBMIT_ERROR_NONE: u32 = 0;
/// A packet is unknown, malformed or passes the end; `EINVAL`; byte offset of the packet.
pub const SUBMIT_ERROR_BAD_PACKET: u32 = 1;
/// No entry patches the operand; `EINVAL`; byte offset of the operand.
pub const SUBMIT_ERROR_UNPATCHED_OPERAND: u32 = 2;
/// The entry hits no operand, or one that is already patched; `EINVAL`; patch entry.
pub const SUBMIT_ERROR_PATCH_NOT_OPERAND: u32 = 3;
/// `patch_offset` is misaligned or outside the buffer; `EINVAL`; patch entry.
pub const SUBMIT_ERROR_PATCH_RANGE: u32 = 4;
/// `alloc_offset` is misaligned, or the reach leaves the allocation; `EINVAL`; patch entry.
pub const SUBMIT_ERROR_ALLOC_RANGE: u32 = 5;
/// `split_offset` decreases or is above `patch_offset`; `EINVAL`; patch entry.
pub const SUBMIT_ERROR_SPLIT_ORDER: u32 = 6;
/// `split_offset` is not the start of a packet; `EINVAL`; patch entry.
pub const SUBMIT_ERROR_SPLIT_BOUNDARY: u32 = 7;
/// `slot` is not below `patch_slots`; `EINVAL`; patch entry.
pub const SUBMIT_ERROR_SLOT_RANGE: u32 = 8;
/// A pair of allocation and instance appears twice; `EINVAL`; allocation entry.
pub const SUBMIT_ERROR_DUPLICATE: u32 = 9;
/// A write without the right, or no ACCESSED_PHYSICALLY; `EACCES`; allocation entry.
pub const SUBMIT_ERROR_ACCESS: u32 = 10;
/// The instance does not exist; `EINVAL`; allocation entry.
pub const SUBMIT_ERROR_INSTANCE: u32 = 11;
/// The allocation is offered; `EBUSY`; allocation or primary entry.
pub const SUBMIT_ERROR_OFFERED: u32 = 12;
/// No residency reference where one is needed; `EINVAL`; allocation or primary entry.
pub const SUBMIT_ERROR_NOT_RESIDENT: u32 = 13;
/// What is bound at one split point cannot fit; `ENOSPC`; patch entry.
pub const SUBMIT_ERROR_TOO_LARGE: u32 = 14;
/// A wait or signal point is refused; `ENOENT`, `EACCES` or `EINVAL` as in FENCE_WAIT and
/// FENCE_SIGNAL, except that a signal value below the current one is accepted; wait entries first,
/// then signal entries.
pub const SUBMIT_ERROR_BAD_POINT: u32 = 15;
/// `alloc_index` is outside the list, or an entry that patches names a NULL element; `EINVAL`;
/// patch entry.
pub const SUBMIT_ERROR_ALLOC_INDEX: u32 = 16;
/// No slot holds the allocation at the packet that uses it; `EINVAL`; patch entry.
pub const SUBMIT_ERROR_NOT_BOUND: u32 = 17;
/// No entry names the element; `EINVAL`; allocation entry.
pub const SUBMIT_ERROR_UNUSED: u32 = 18;
/// Unknown handle (`ENOENT`), other device (`EXDEV`), or no primary (`EINVAL`); allocation or
/// primary entry.
pub const SUBMIT_ERROR_BAD_HANDLE: u32 = 19;

/// Argument of SUBMIT_PATCHED.
///
/// Command bytes and lists are copied; the caller may reuse its memory at once. All slots are empty
/// when a submission starts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmitPatched {
    /// in: context in one of the PATCHED modes.
    pub context: u32,
    /// in: SUBMIT_PATCHED flags.
    pub flags: u32,
    /// in: command bytes in user memory.
    pub cmd_ptr: u64,
    /// in: multiple of 8, may be 0 for a pure wait and signal submission (then both lists are
    /// empty).
    pub cmd_size: u32,
    /// in: must be zero.
    pub pad: u32,
    /// in/out: array of `SubmitAlloc`.
    pub allocs: Array,
    /// in: array of `SubmitPatch`.
    pub patches: Array,
    /// in: array of `Point`, all must be reached before the first byte runs.
    pub waits: Array,
    /// in: array of `Point`, signalled after the last byte.
    pub signals: Array,
    /// out: submission id, rises by one per context.
    pub submission: u64,
    /// out!: submit error, `SUBMIT_ERROR_NONE` and so on.
    pub error_kind: u32,
    /// out!: index of the offending list entry, or byte offset for packet errors.
    pub error_index: u32,
}

layout!(SubmitPatched, size 104, first 104, {
    context: 0,
    flags: 4,
    cmd_ptr: 8,
    cmd_size: 16,
    pad: 20,
    allocs: 24,
    patches: 40,
    waits: 56,
    signals: 72,
    submission: 88,
    error_kind: 96,
    error_index: 100,
});

// Allocation entry flags. Bits of `flags` in `SubmitAlloc`.

/// The buffer may write the allocation.
pub const SUBMIT_ALLOC_WRITE: u32 = 1 << 0;
/// The instance does not go back to the idle ones when this submission ends; a later submission
/// without the flag returns it. Needs `FEATURE_RENAME_USERPICK`.
pub const SUBMIT_ALLOC_KEEP_INSTANCE: u32 = 1 << 1;
/// A hint that nothing will need the allocation soon. Later, `FEATURE_LAST_USE`.
pub const SUBMIT_ALLOC_LAST_USE: u32 = 1 << 2;

// Instances. A special value of `instance` in `SubmitAlloc`.

/// The current instance.
pub const INSTANCE_CURRENT: u32 = u32::MAX;

/// An entry of the allocation list of SUBMIT_PATCHED.
///
/// The presumed place is a hint: operands that already hold the right address are not written
/// again, a wrong one is overwritten. `SEGMENT_ID_NONE` presumes nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmitAlloc {
    /// in: allocation handle, or 0 (NULL): an entry naming this element unbinds its slot; the other
    /// inputs are then zero.
    pub alloc: u32,
    /// in: allocation entry flags.
    pub flags: u32,
    /// in: instance number, or `INSTANCE_CURRENT`.
    pub instance: u32,
    /// in/out: segment the caller assumed; on return the one known at submit time.
    pub presumed_segment: u32,
    /// in/out: address the caller already wrote into the buffer; on return the one known at submit
    /// time, 0 if none.
    pub presumed_address: u64,
}

layout!(SubmitAlloc, size 24, first 24, {
    alloc: 0,
    flags: 4,
    instance: 8,
    presumed_segment: 12,
    presumed_address: 16,
});

// Patch kinds. Values of `kind` in `SubmitPatch`.

/// Binds or unbinds only.
pub const SUBMIT_PATCH_KIND_NONE: u32 = 0;
/// Writes the low half of an address. Later, `FEATURE_SPLIT_ADDRESS`.
pub const SUBMIT_PATCH_KIND_LOW32: u32 = 1;
/// Writes the high half of an address. Later, `FEATURE_SPLIT_ADDRESS`.
pub const SUBMIT_PATCH_KIND_HIGH32: u32 = 2;
/// Writes a 64-bit address.
pub const SUBMIT_PATCH_KIND_FULL64: u32 = 3;

// Unbinding. A special value of `alloc_index` in `SubmitPatch`.

/// Unbinds the slot, like an index to a NULL element.
pub const ALLOC_INDEX_NONE: u32 = u32::MAX;

/// An entry of the patch list of SUBMIT_PATCHED.
///
/// Entries are taken in order. Each binds its allocation to its slot from `split_offset` on;
/// binding an occupied slot, or unbinding it, releases the previous one from the same offset on.
/// `split_offset` values never decrease, and none is above its `patch_offset`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmitPatch {
    /// in: index in the allocation list, or `ALLOC_INDEX_NONE`.
    pub alloc_index: u32,
    /// in: binding slot, below `patch_slots`.
    pub slot: u32,
    /// in: patch kind; with `SUBMIT_PATCH_KIND_NONE` `alloc_offset` and `patch_offset` are zero.
    pub kind: u32,
    /// in: opaque, shown in dumps and errors.
    pub driver_id: u32,
    /// in: byte offset inside the allocation.
    pub alloc_offset: u64,
    /// in: byte offset in the command buffer.
    pub patch_offset: u32,
    /// in: byte offset from which the allocation is needed; a legal place to stop.
    pub split_offset: u32,
}

layout!(SubmitPatch, size 32, first 32, {
    alloc_index: 0,
    slot: 4,
    kind: 8,
    driver_id: 12,
    alloc_offset: 16,
    patch_offset: 24,
    split_offset: 28,
});

// SUBMIT_VIRTUAL flags. Bits of `flags` in `SubmitVirtual`.

/// Schedule, execute nothing.
pub const SUBMIT_VIRTUAL_NULL_RENDER: u32 = 1 << 0;

// Written primaries. Limit of `primaries` in `SubmitVirtual`.

/// The most primaries that one submission can name.
pub const SUBMIT_VIRTUAL_PRIMARIES: u32 = 16;

/// Argument of SUBMIT_VIRTUAL.
///
/// Commands are read from GPU virtual memory when they run. What the device holds residency
/// references to is in memory then; lists of submissions do not change that. The primaries order
/// the work against changes of the display.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmitVirtual {
    /// in: context in VIRTUAL mode.
    pub context: u32,
    /// in: SUBMIT_VIRTUAL flags.
    pub flags: u32,
    /// in: GPU virtual address of the commands, multiple of 8, mapped with `VA_EXECUTE`.
    pub cmd_va: u64,
    /// in: multiple of 8, may be 0.
    pub cmd_size: u32,
    /// in: must be zero.
    pub pad: u32,
    /// in: `u32` handles of primaries that are written, at most `SUBMIT_VIRTUAL_PRIMARIES`.
    pub primaries: Array,
    /// in: array of `Point`, all must be reached before the first byte runs.
    pub waits: Array,
    /// in: array of `Point`, signalled after the last byte.
    pub signals: Array,
    /// out: submission id, rises by one per context.
    pub submission: u64,
    /// out!: submit error, `SUBMIT_ERROR_NONE` and so on.
    pub error_kind: u32,
    /// out!: index of the offending list entry.
    pub error_index: u32,
}

layout!(SubmitVirtual, size 88, first 88, {
    context: 0,
    flags: 4,
    cmd_va: 8,
    cmd_size: 16,
    pad: 20,
    primaries: 24,
    waits: 40,
    signals: 56,
    submission: 72,
    error_kind: 80,
    error_index: 84,
});

// Submission states. Values of `state` in `SubmitQuery`.

/// Waits for its fences.
pub const SUBMIT_STATE_WAITING: u32 = 1;
/// Waits for its memory.
pub const SUBMIT_STATE_PAGING: u32 = 2;
/// Waits for its node.
pub const SUBMIT_STATE_READY: u32 = 3;
/// Runs.
pub const SUBMIT_STATE_RUNNING: u32 = 4;
/// Has finished.
pub const SUBMIT_STATE_DONE: u32 = 5;
/// Was thrown away; `error` says why.
pub const SUBMIT_STATE_CANCELLED: u32 = 6;
/// Stopped by an error of its own; `error` says which.
pub const SUBMIT_STATE_FAULTED: u32 = 7;

/// Argument of SUBMIT_QUERY.
///
/// The record that explains a slow frame: how often it was split, what was paged for it, how long
/// it waited.
///
/// Also: `ENOENT` for ids that are forgotten or never existed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmitQuery {
    /// in: context handle.
    pub context: u32,
    /// in: must be zero.
    pub flags: u32,
    /// in: submission id; only a bounded number of finished ones is remembered.
    pub submission: u64,
    /// out: submission state, `SUBMIT_STATE_WAITING` and so on.
    pub state: u32,
    /// out: 0 or a negative errno for CANCELLED and FAULTED.
    pub error: i32,
    /// out: portions it was cut into, 1 when it ran whole.
    pub splits: u32,
    /// out: patch entries that had to be rewritten.
    pub patches_written: u32,
    /// out: bytes brought in on its behalf.
    pub paged_in: u64,
    /// out: bytes pushed out on its behalf.
    pub paged_out: u64,
    /// out: CLOCK_MONOTONIC.
    pub queued_ns: u64,
    /// out: CLOCK_MONOTONIC, 0 if not started.
    pub start_ns: u64,
    /// out: CLOCK_MONOTONIC, 0 if not finished.
    pub end_ns: u64,
}

layout!(SubmitQuery, size 72, first 72, {
    context: 0,
    flags: 4,
    submission: 8,
    state: 16,
    error: 20,
    splits: 24,
    patches_written: 28,
    paged_in: 32,
    paged_out: 40,
    queued_ns: 48,
    start_ns: 56,
    end_ns: 64,
});
