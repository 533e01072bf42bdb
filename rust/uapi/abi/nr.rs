// SPDX-License-Identifier: GPL-2.0

//! Ioctl numbers of all calls of the interface, built or not.
//!
//! A number that is not in [`ALL`] is `ENOTTY`; one that is, and whose call is not built, is
//! `EOPNOTSUPP`. Numbers are never reused or redefined.

/// First number of the block.
pub const FIRST: u8 = 0x00;
/// Last number of the block.
pub const LAST: u8 = 0x9f;

/// QUERY: [`super::Query`].
pub const QUERY: u8 = 0x00;
/// SET_NAME: [`super::SetName`].
pub const SET_NAME: u8 = 0x01;
/// CLOSE: [`super::Close`].
pub const CLOSE: u8 = 0x02;
/// DEVICE_CREATE: [`super::DeviceCreate`].
pub const DEVICE_CREATE: u8 = 0x10;
/// DEVICE_STATE: [`super::DeviceState`].
pub const DEVICE_STATE: u8 = 0x11;
/// ALLOC_CREATE: [`super::AllocCreate`].
pub const ALLOC_CREATE: u8 = 0x20;
/// ALLOC_QUERY: [`super::AllocQuery`].
pub const ALLOC_QUERY: u8 = 0x21;
/// ALLOC_UPDATE.
pub const ALLOC_UPDATE: u8 = 0x22;
/// SET_PRIORITY: [`super::SetPriority`].
pub const SET_PRIORITY: u8 = 0x23;
/// LOCK: [`super::Lock`].
pub const LOCK: u8 = 0x30;
/// UNLOCK: [`super::Unlock`].
pub const UNLOCK: u8 = 0x31;
/// CONTEXT_CREATE: [`super::ContextCreate`].
pub const CONTEXT_CREATE: u8 = 0x40;
/// CONTEXT_SET: [`super::ContextSet`].
pub const CONTEXT_SET: u8 = 0x41;
/// SUBMIT_PATCHED: [`super::SubmitPatched`].
pub const SUBMIT_PATCHED: u8 = 0x42;
/// SUBMIT_VIRTUAL: [`super::SubmitVirtual`].
pub const SUBMIT_VIRTUAL: u8 = 0x43;
/// SUBMIT_QUERY: [`super::SubmitQuery`].
pub const SUBMIT_QUERY: u8 = 0x44;
/// PAGING_QUEUE_CREATE: [`super::PagingQueueCreate`].
pub const PAGING_QUEUE_CREATE: u8 = 0x50;
/// MAKE_RESIDENT: [`super::MakeResident`].
pub const MAKE_RESIDENT: u8 = 0x51;
/// EVICT: [`super::Evict`].
pub const EVICT: u8 = 0x52;
/// OFFER: [`super::Offer`].
pub const OFFER: u8 = 0x53;
/// RECLAIM: [`super::Reclaim`].
pub const RECLAIM: u8 = 0x54;
/// BUDGET: [`super::Budget`].
pub const BUDGET: u8 = 0x55;
/// RESERVE_BUDGET: [`super::ReserveBudget`].
pub const RESERVE_BUDGET: u8 = 0x56;
/// EVENTS: [`super::Events`].
pub const EVENTS: u8 = 0x57;
/// VA_RESERVE: [`super::VaReserve`].
pub const VA_RESERVE: u8 = 0x60;
/// VA_FREE: [`super::VaFree`].
pub const VA_FREE: u8 = 0x61;
/// VA_MAP: [`super::VaMap`].
pub const VA_MAP: u8 = 0x62;
/// VA_UPDATE.
pub const VA_UPDATE: u8 = 0x63;
/// VA_QUERY: [`super::VaQuery`].
pub const VA_QUERY: u8 = 0x64;
/// FENCE_CREATE: [`super::FenceCreate`].
pub const FENCE_CREATE: u8 = 0x70;
/// FENCE_SIGNAL: [`super::FenceSignal`].
pub const FENCE_SIGNAL: u8 = 0x71;
/// FENCE_WAIT: [`super::FenceWait`].
pub const FENCE_WAIT: u8 = 0x72;
/// FENCE_EVENTFD.
pub const FENCE_EVENTFD: u8 = 0x73;
/// FENCE_EXPORT.
pub const FENCE_EXPORT: u8 = 0x74;
/// FENCE_IMPORT.
pub const FENCE_IMPORT: u8 = 0x75;
/// EXPORT.
pub const EXPORT: u8 = 0x80;
/// IMPORT.
pub const IMPORT: u8 = 0x81;
/// SCANOUT: [`super::Scanout`].
pub const SCANOUT: u8 = 0x90;

/// All numbers, in ascending order.
pub const ALL: [u8; 38] = [
    QUERY,
    SET_NAME,
    CLOSE,
    DEVICE_CREATE,
    DEVICE_STATE,
    ALLOC_CREATE,
    ALLOC_QUERY,
    ALLOC_UPDATE,
    SET_PRIORITY,
    LOCK,
    UNLOCK,
    CONTEXT_CREATE,
    CONTEXT_SET,
    SUBMIT_PATCHED,
    SUBMIT_VIRTUAL,
    SUBMIT_QUERY,
    PAGING_QUEUE_CREATE,
    MAKE_RESIDENT,
    EVICT,
    OFFER,
    RECLAIM,
    BUDGET,
    RESERVE_BUDGET,
    EVENTS,
    VA_RESERVE,
    VA_FREE,
    VA_MAP,
    VA_UPDATE,
    VA_QUERY,
    FENCE_CREATE,
    FENCE_SIGNAL,
    FENCE_WAIT,
    FENCE_EVENTFD,
    FENCE_EXPORT,
    FENCE_IMPORT,
    EXPORT,
    IMPORT,
    SCANOUT,
];
