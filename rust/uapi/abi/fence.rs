// SPDX-License-Identifier: GPL-2.0

//! Monitored fences: the slot in a fence page, FENCE_CREATE, FENCE_SIGNAL, FENCE_WAIT.
//!
//! A fence is a 64-bit value in a page that the CPU maps read-only. A wait for `v` is satisfied
//! when the value is `v` or more.

use super::Array;

// Fence slots. Where slots lie in a page.

/// Distance of two slots in bytes; slot n starts at n times this in its page, and what the layout
/// does not name is zero.
pub const FENCE_SLOT_STRIDE: u32 = 64;

// Poison. The value of a poisoned fence.

/// `value` of a poisoned fence without KEEP_ON_RESET: every spinning reader comes free.
pub const FENCE_VALUE_POISONED: u64 = u64::MAX;

// Fence states. Values of `state` in `FenceSlot`.

/// The fence works.
pub const FENCE_STATE_LIVE: u32 = 0;
/// The fence will not be signalled; `error` says why. Waits return `EIO`, or `ENODEV` when the
/// adapter is gone.
pub const FENCE_STATE_POISONED: u32 = 1;

/// A fence value in a mapped page.
///
/// Not an argument: the kernel or the software GPU writes it, programs read it. Reading `value`
/// with acquire ordering is enough to know that everything ordered before the signal is visible.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FenceSlot {
    /// out: current fence value.
    pub value: u64,
    /// out: fence state, `FENCE_STATE_LIVE` or `FENCE_STATE_POISONED`.
    pub state: u32,
    /// out: negative errno when poisoned.
    pub error: i32,
    /// out: CLOCK_MONOTONIC of the last change.
    pub changed_ns: u64,
}

layout!(FenceSlot, size 24, {
    value: 0,
    state: 8,
    error: 12,
    changed_ns: 16,
});

// FENCE_CREATE flags. Bits of `flags` in `FenceCreate`.

/// May be exported; has a page of its own. Needs `FEATURE_FENCE_SHARE`.
pub const FENCE_SHARED: u32 = 1 << 0;
/// FENCE_SIGNAL is refused (`EACCES`).
pub const FENCE_NO_CPU_SIGNAL: u32 = 1 << 1;
/// Not in the address space of the client; `gpu_va` is 0.
pub const FENCE_NO_GPU_ACCESS: u32 = 1 << 2;
/// Poisoning leaves `value` alone and only sets `state` and `error`.
pub const FENCE_KEEP_ON_RESET: u32 = 1 << 3;

/// Argument of FENCE_CREATE.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FenceCreate {
    /// in: device handle.
    pub device: u32,
    /// in: FENCE_CREATE flags.
    pub flags: u32,
    /// in: first value.
    pub initial: u64,
    /// out: fence handle.
    pub fence: u32,
    /// out: slot inside its page.
    pub slot: u32,
    /// out: mapping offset of its page.
    pub mmap_offset: u64,
    /// out: GPU virtual address of the value, 8-byte aligned; 0 with NO_GPU_ACCESS or without a GPU
    /// MMU.
    pub gpu_va: u64,
}

layout!(FenceCreate, size 40, first 40, {
    device: 0,
    flags: 4,
    initial: 8,
    fence: 16,
    slot: 20,
    mmap_offset: 24,
    gpu_va: 32,
});

// FENCE_SIGNAL flags. Bits of `flags` in `FenceSignal`.

/// The value may go down, which is `EINVAL` otherwise. Waits already satisfied are not re-armed.
pub const FENCE_SIGNAL_ALLOW_REWIND: u32 = 1 << 0;

/// Argument of FENCE_SIGNAL.
///
/// `EACCES` with NO_CPU_SIGNAL, and for paging and progress fences.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FenceSignal {
    /// in: array of `Point`.
    pub points: Array,
    /// in: FENCE_SIGNAL flags.
    pub flags: u32,
    /// out!: first element refused; none signalled.
    pub fail_index: u32,
}

layout!(FenceSignal, size 24, first 24, {
    points: 0,
    flags: 16,
    fail_index: 20,
});

// FENCE_WAIT flags. Bits of `flags` in `FenceWait`.

/// One point is enough; otherwise all must be reached.
pub const FENCE_WAIT_ANY: u32 = 1 << 0;

/// Argument of FENCE_WAIT.
///
/// `ETIME` at the deadline, also for polling. Waiting for a value that nobody has queued is legal.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FenceWait {
    /// in: array of `Point`.
    pub points: Array,
    /// in: absolute CLOCK_MONOTONIC; `WAIT_FOREVER` waits for ever, 0 polls.
    pub deadline_ns: i64,
    /// in: FENCE_WAIT flags.
    pub flags: u32,
    /// out!: ANY: a satisfied element; on error the poisoned one.
    pub first: u32,
}

layout!(FenceWait, size 32, first 32, {
    points: 0,
    deadline_ns: 16,
    flags: 24,
    first: 28,
});
