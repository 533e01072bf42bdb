// SPDX-License-Identifier: GPL-2.0

//! Commands: what a program passes to `ioctl`, and what the module takes apart again.
//!
//! Every command is read-write. Direction, type and number choose the handler; the size is the one
//! of the structure that the program was built with.

use core::mem::size_of;

use super::{
    nr,
    AllocCreate,
    AllocQuery,
    Budget,
    Close,
    ContextCreate,
    ContextSet,
    DeviceCreate,
    DeviceState,
    Events,
    Evict,
    FenceCreate,
    FenceSignal,
    FenceWait,
    Lock,
    MakeResident,
    Offer,
    PagingQueueCreate,
    Query,
    Reclaim,
    ReserveBudget,
    Scanout,
    SetName,
    SetPriority,
    SubmitPatched,
    SubmitQuery,
    SubmitVirtual,
    Unlock,
    VaFree,
    VaMap,
    VaQuery,
    VaReserve, //
};

/// Type byte of every command.
pub const IOC_TYPE: u8 = 0xda;

/// Encodes a read-write command, as `_IOWR` of the C header does.
const fn command(number: u8, size: usize) -> u32 {
    // CAST: the argument structures are far below the 16383 bytes that the size bits hold.
    (3 << 30) | ((size as u32) << 16) | ((IOC_TYPE as u32) << 8) | number as u32
}

/// Command of QUERY.
pub const IOCTL_QUERY: u32 = command(nr::QUERY, size_of::<Query>());
/// Command of SET_NAME.
pub const IOCTL_SET_NAME: u32 = command(nr::SET_NAME, size_of::<SetName>());
/// Command of CLOSE.
pub const IOCTL_CLOSE: u32 = command(nr::CLOSE, size_of::<Close>());
/// Command of DEVICE_CREATE.
pub const IOCTL_DEVICE_CREATE: u32 = command(nr::DEVICE_CREATE, size_of::<DeviceCreate>());
/// Command of DEVICE_STATE.
pub const IOCTL_DEVICE_STATE: u32 = command(nr::DEVICE_STATE, size_of::<DeviceState>());
/// Command of ALLOC_CREATE.
pub const IOCTL_ALLOC_CREATE: u32 = command(nr::ALLOC_CREATE, size_of::<AllocCreate>());
/// Command of ALLOC_QUERY.
pub const IOCTL_ALLOC_QUERY: u32 = command(nr::ALLOC_QUERY, size_of::<AllocQuery>());
/// Command of SET_PRIORITY.
pub const IOCTL_SET_PRIORITY: u32 = command(nr::SET_PRIORITY, size_of::<SetPriority>());
/// Command of LOCK.
pub const IOCTL_LOCK: u32 = command(nr::LOCK, size_of::<Lock>());
/// Command of UNLOCK.
pub const IOCTL_UNLOCK: u32 = command(nr::UNLOCK, size_of::<Unlock>());
/// Command of CONTEXT_CREATE.
pub const IOCTL_CONTEXT_CREATE: u32 = command(nr::CONTEXT_CREATE, size_of::<ContextCreate>());
/// Command of CONTEXT_SET.
pub const IOCTL_CONTEXT_SET: u32 = command(nr::CONTEXT_SET, size_of::<ContextSet>());
/// Command of SUBMIT_PATCHED.
pub const IOCTL_SUBMIT_PATCHED: u32 = command(nr::SUBMIT_PATCHED, size_of::<SubmitPatched>());
/// Command of SUBMIT_VIRTUAL.
pub const IOCTL_SUBMIT_VIRTUAL: u32 = command(nr::SUBMIT_VIRTUAL, size_of::<SubmitVirtual>());
/// Command of SUBMIT_QUERY.
pub const IOCTL_SUBMIT_QUERY: u32 = command(nr::SUBMIT_QUERY, size_of::<SubmitQuery>());
/// Command of PAGING_QUEUE_CREATE.
pub const IOCTL_PAGING_QUEUE_CREATE: u32 =
    command(nr::PAGING_QUEUE_CREATE, size_of::<PagingQueueCreate>());
/// Command of MAKE_RESIDENT.
pub const IOCTL_MAKE_RESIDENT: u32 = command(nr::MAKE_RESIDENT, size_of::<MakeResident>());
/// Command of EVICT.
pub const IOCTL_EVICT: u32 = command(nr::EVICT, size_of::<Evict>());
/// Command of OFFER.
pub const IOCTL_OFFER: u32 = command(nr::OFFER, size_of::<Offer>());
/// Command of RECLAIM.
pub const IOCTL_RECLAIM: u32 = command(nr::RECLAIM, size_of::<Reclaim>());
/// Command of BUDGET.
pub const IOCTL_BUDGET: u32 = command(nr::BUDGET, size_of::<Budget>());
/// Command of RESERVE_BUDGET.
pub const IOCTL_RESERVE_BUDGET: u32 = command(nr::RESERVE_BUDGET, size_of::<ReserveBudget>());
/// Command of EVENTS.
pub const IOCTL_EVENTS: u32 = command(nr::EVENTS, size_of::<Events>());
/// Command of VA_RESERVE.
pub const IOCTL_VA_RESERVE: u32 = command(nr::VA_RESERVE, size_of::<VaReserve>());
/// Command of VA_FREE.
pub const IOCTL_VA_FREE: u32 = command(nr::VA_FREE, size_of::<VaFree>());
/// Command of VA_MAP.
pub const IOCTL_VA_MAP: u32 = command(nr::VA_MAP, size_of::<VaMap>());
/// Command of VA_QUERY.
pub const IOCTL_VA_QUERY: u32 = command(nr::VA_QUERY, size_of::<VaQuery>());
/// Command of FENCE_CREATE.
pub const IOCTL_FENCE_CREATE: u32 = command(nr::FENCE_CREATE, size_of::<FenceCreate>());
/// Command of FENCE_SIGNAL.
pub const IOCTL_FENCE_SIGNAL: u32 = command(nr::FENCE_SIGNAL, size_of::<FenceSignal>());
/// Command of FENCE_WAIT.
pub const IOCTL_FENCE_WAIT: u32 = command(nr::FENCE_WAIT, size_of::<FenceWait>());
/// Command of SCANOUT.
pub const IOCTL_SCANOUT: u32 = command(nr::SCANOUT, size_of::<Scanout>());
