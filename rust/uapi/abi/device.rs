// SPDX-License-Identifier: GPL-2.0

//! Devices: DEVICE_CREATE, DEVICE_STATE.
//!
//! A device owns allocations, contexts, paging queues and a residency list, and is what goes into
//! error.

/// Argument of DEVICE_CREATE.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCreate {
    /// in: must be zero.
    pub flags: u32,
    /// out: device handle.
    pub device: u32,
}

layout!(DeviceCreate, size 8, first 8, {
    flags: 0,
    device: 4,
});

// Device states. Values of `state` in `DeviceState`.

/// The device works.
pub const DEVICE_STATE_ACTIVE: u32 = 1;
/// An adapter reset took the device along.
pub const DEVICE_STATE_RESET: u32 = 2;
/// A portion ran beyond its time limit.
pub const DEVICE_STATE_HUNG: u32 = 3;
/// Not used in this version.
pub const DEVICE_STATE_STOPPED: u32 = 4;
/// A MUST_SUCCEED failed, or a portion could not be placed at run time.
pub const DEVICE_STATE_ERROR_MEMORY: u32 = 5;
/// A packet or address turned out wrong at run time, or a PATCHED_EXPLICIT list named something
/// that is not on the residency list.
pub const DEVICE_STATE_ERROR_DMA: u32 = 6;
/// A GPU page fault.
pub const DEVICE_STATE_ERROR_FAULT: u32 = 7;
/// The adapter was removed.
pub const DEVICE_STATE_ADAPTER_GONE: u32 = 8;

// Fault flags. Bits of `fault_flags` in `DeviceState`.

/// The access read.
pub const DEVICE_STATE_FAULT_READ: u32 = 1 << 0;
/// The access wrote.
pub const DEVICE_STATE_FAULT_WRITE: u32 = 1 << 1;
/// Nothing is mapped at the address.
pub const DEVICE_STATE_FAULT_NOT_MAPPED: u32 = 1 << 2;
/// A mapping exists and the memory is away.
pub const DEVICE_STATE_FAULT_NOT_RESIDENT: u32 = 1 << 3;
/// The mapping does not allow the access.
pub const DEVICE_STATE_FAULT_PROTECTION: u32 = 1 << 4;
/// A write to a fence page other than 8 bytes to a `value`.
pub const DEVICE_STATE_FAULT_FENCE_INVALID: u32 = 1 << 5;

/// Argument of DEVICE_STATE.
///
/// Works in every state, also after the adapter is gone.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceState {
    /// in: device handle.
    pub device: u32,
    /// in: must be zero.
    pub flags: u32,
    /// out: device state, `DEVICE_STATE_ACTIVE` and so on.
    pub state: u32,
    /// out: 1 if this device caused it, 0 if it was a bystander.
    pub guilty: u32,
    /// out: context that was running, 0 if none.
    pub context: u32,
    /// out: node ordinal, `NODE_NONE` if none.
    pub node: u32,
    /// out: submission id that was running.
    pub submission: u64,
    /// out: ERROR_FAULT: faulting GPU virtual address; ERROR_DMA: byte offset of the packet in its
    /// buffer; otherwise 0.
    pub fault_va: u64,
    /// out: fault flags.
    pub fault_flags: u32,
    /// out: adapter resets since load.
    pub reset_count: u32,
    /// out: CLOCK_MONOTONIC time of the event.
    pub time_ns: u64,
}

layout!(DeviceState, size 56, first 56, {
    device: 0,
    flags: 4,
    state: 8,
    guilty: 12,
    context: 16,
    node: 20,
    submission: 24,
    fault_va: 32,
    fault_flags: 40,
    reset_count: 44,
    time_ns: 48,
});
