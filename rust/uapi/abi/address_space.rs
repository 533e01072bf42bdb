// SPDX-License-Identifier: GPL-2.0

//! GPU virtual addresses: VA_RESERVE, VA_FREE, VA_MAP, VA_QUERY.
//!
//! A client has one space of GPU virtual addresses. Ranges of it are named by their address.

use super::Array;

// Reservation kinds. Values of `kind` in `VaReserve`: what an access meets where nothing is mapped.

/// It faults.
pub const VA_RESERVE_NO_ACCESS: u32 = 0;
/// Reads give zero, writes are dropped. Needs the zero capability of the adapter (`EOPNOTSUPP`).
/// What is in such a range changes by VA_UPDATE only.
pub const VA_RESERVE_ZERO: u32 = 1;

// Alignment of reservations.

/// Base, limits and size of a reservation are multiples of it.
pub const VA_RESERVE_ALIGN: u64 = 0x1_0000;

/// Argument of VA_RESERVE.
///
/// Sets addresses aside, without memory behind them. `base`, `min`, `max` and `size` are multiples
/// of `VA_RESERVE_ALIGN`. An exact address that overlaps anything is `EEXIST`, no free place is
/// `ENOSPC`. With a `base`, `min` and `max` are zero and `base` is a multiple of `align`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VaReserve {
    /// in: paging queue handle.
    pub queue: u32,
    /// in: reservation kind, `VA_RESERVE_NO_ACCESS` and so on.
    pub kind: u32,
    /// in: must be zero.
    pub flags: u32,
    /// out: `STATUS_READY` or `STATUS_PENDING`.
    pub status: u32,
    /// in: exact address, or 0.
    pub base: u64,
    /// in: lowest address when `base` is 0.
    pub min: u64,
    /// in: end of the window when `base` is 0, 0 for the whole space.
    pub max: u64,
    /// in: bytes.
    pub size: u64,
    /// in: power of two or 0.
    pub align: u64,
    /// out: address reserved.
    pub va: u64,
    /// out: paging fence value, 0 when READY.
    pub fence_value: u64,
}

layout!(VaReserve, size 72, first 72, {
    queue: 0,
    kind: 4,
    flags: 8,
    status: 12,
    base: 16,
    min: 24,
    max: 32,
    size: 40,
    align: 48,
    va: 56,
    fence_value: 64,
});

/// Argument of VA_FREE.
///
/// Exactly the range of a reservation means the reservation: it goes with everything in it, also
/// when one mapping fills it. Any other range must lie in mappings of the client (`EINVAL`); what
/// lies in a NO_ACCESS reservation falls back to it, a part of a ZERO reservation is left to
/// VA_UPDATE (`EINVAL`). On return the addresses can be used again.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VaFree {
    /// in: page multiple: start of a whole reservation, or of any part of mappings.
    pub va: u64,
    /// in: page multiple.
    pub size: u64,
    /// in: must be zero.
    pub flags: u32,
    /// in: must be zero.
    pub pad: u32,
}

layout!(VaFree, size 24, first 24, {
    va: 0,
    size: 8,
    flags: 16,
    pad: 20,
});

// Mapping protection. Bits of `protection` in `VaMap`. Reads are always allowed.

/// Engines may write.
pub const VA_WRITE: u32 = 1 << 0;
/// Engines may fetch commands.
pub const VA_EXECUTE: u32 = 1 << 1;

/// Argument of VA_MAP.
///
/// Outside a reservation it makes its own range; an exact `base` may also lie wholly inside one
/// NO_ACCESS reservation or one range made by an earlier call, where it replaces all that it
/// covers, one mapping or several, whole or in part, in one step. Any other overlap is `EEXIST`,
/// two ranges side by side included; inside a ZERO reservation it is `EINVAL`; no free place is
/// `ENOSPC`. With a `base`, `min` and `max` are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VaMap {
    /// in: paging queue handle.
    pub queue: u32,
    /// in: allocation handle.
    pub alloc: u32,
    /// in: mapping protection, `VA_WRITE` and so on.
    pub protection: u32,
    /// in: must be zero.
    pub flags: u32,
    /// in: exact address, or 0 for the kernel to choose.
    pub base: u64,
    /// in: lowest address when `base` is 0.
    pub min: u64,
    /// in: end of the window when `base` is 0, 0 for the whole space.
    pub max: u64,
    /// in: page multiple.
    pub alloc_offset: u64,
    /// in: page multiple.
    pub size: u64,
    /// out: address mapped.
    pub va: u64,
    /// out: paging fence value, 0 when READY.
    pub fence_value: u64,
    /// out: `STATUS_READY` or `STATUS_PENDING`.
    pub status: u32,
    /// in: must be zero.
    pub pad: u32,
    /// in: handed to the backend with each page-table entry; bits it does not know are `EOPNOTSUPP`
    /// (software engine: bits 0-3).
    pub driver_protection: u64,
}

layout!(VaMap, size 88, first 88, {
    queue: 0,
    alloc: 4,
    protection: 8,
    flags: 12,
    base: 16,
    min: 24,
    max: 32,
    alloc_offset: 40,
    size: 48,
    va: 56,
    fence_value: 64,
    status: 72,
    pad: 76,
    driver_protection: 80,
});

/// Argument of VA_QUERY.
///
/// What is reserved and mapped in the client's own space, cut to the window, by ascending address.
/// For debuggers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VaQuery {
    /// in: start of the window.
    pub va: u64,
    /// in: its length.
    pub size: u64,
    /// in/out: room for `VaEntry`; they are written only.
    pub entries: Array,
    /// out: runs that exist in the window, may exceed the room.
    pub total: u32,
    /// in: must be zero.
    pub flags: u32,
}

layout!(VaQuery, size 40, first 40, {
    va: 0,
    size: 8,
    entries: 16,
    total: 32,
    flags: 36,
});

// Address run flags. Bits of `flags` in `VaEntry`.

/// Lies in a reservation.
pub const VA_ENTRY_RESERVED: u32 = 1 << 0;
/// Reads give zero and writes are dropped.
pub const VA_ENTRY_ZERO: u32 = 1 << 1;
/// An allocation is mapped, and its entries lead to memory.
pub const VA_ENTRY_VALID: u32 = 1 << 2;
/// Engines may write.
pub const VA_ENTRY_WRITE: u32 = 1 << 3;
/// Engines may fetch commands.
pub const VA_ENTRY_EXECUTE: u32 = 1 << 4;
/// The entries are large pages.
pub const VA_ENTRY_LARGE_PAGE: u32 = 1 << 5;

/// A run of addresses, an element of VA_QUERY.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VaEntry {
    /// out: start of a run with equal attributes.
    pub va: u64,
    /// out: its length.
    pub size: u64,
    /// out: allocation handle, 0 if none.
    pub alloc: u32,
    /// out: address run flags.
    pub flags: u32,
    /// out: offset inside the allocation.
    pub alloc_offset: u64,
    /// out: segment behind it, `SEGMENT_ID_NONE` if not valid.
    pub segment: u32,
    /// out: page-table level of the leaf.
    pub level: u32,
}

layout!(VaEntry, size 40, first 40, {
    va: 0,
    size: 8,
    alloc: 16,
    flags: 20,
    alloc_offset: 24,
    segment: 32,
    level: 36,
});
