// SPDX-License-Identifier: GPL-2.0

//! Allocations: ALLOC_CREATE, ALLOC_QUERY, SET_PRIORITY.
//!
//! An allocation is memory with one or more instances. It says which segments may hold it; where it
//! is, is the kernel's decision, which ALLOC_QUERY shows.

use super::Array;

/// Argument of ALLOC_CREATE.
///
/// Creation commits no pages: the thread that first needs them takes them. Contents start as zero;
/// no client ever sees data of another.
///
/// Also: `ENOSPC` when no permitted segment could ever hold it, `EINVAL` for excluded combinations,
/// segment id 0, unknown segments, a preference outside the set.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocCreate {
    /// in: device handle.
    pub device: u32,
    /// in: must be zero.
    pub flags: u32,
    /// in: array of `AllocInfo`.
    pub infos: Array,
    /// out!: first element refused; nothing has been created in that case.
    pub fail_index: u32,
    /// in: must be zero.
    pub pad: u32,
}

layout!(AllocCreate, size 32, first 32, {
    device: 0,
    flags: 4,
    infos: 8,
    fail_index: 24,
    pad: 28,
});

// Allocation flags. Bits of `flags` in `AllocInfo`. A flag of a missing feature is refused like an
// unknown one.

/// The CPU will map it.
pub const ALLOC_CPU_VISIBLE: u32 = 1 << 0;
/// A rendering engine will use physical addresses: one run of addresses, and of page frames, in a
/// memory segment; an aperture range for as long as it is resident in system memory. Only these may
/// be named in the list of a patched submission (`EACCES`).
pub const ALLOC_ACCESSED_PHYSICALLY: u32 = 1 << 1;
/// `LOCK_DISCARD` may give another instance. Not with USER_MEMORY, PRIMARY, TILE_POOL, SHAREABLE
/// (`EINVAL`).
pub const ALLOC_RENAMABLE: u32 = 1 << 2;
/// Backed by `user_addr`: system memory only, nothing to evict to. Later.
pub const ALLOC_USER_MEMORY: u32 = 1 << 3;
/// The GPU must not write it.
pub const ALLOC_READ_ONLY: u32 = 1 << 4;
/// May be shown; restricted by the kernel to segments with `SEGMENT_SCANOUT`.
pub const ALLOC_PRIMARY: u32 = 1 << 5;
/// Source of tile mappings; kept mapped in the privileged address space.
pub const ALLOC_TILE_POOL: u32 = 1 << 6;
/// May be exported.
pub const ALLOC_SHAREABLE: u32 = 1 << 7;
/// Pages behind it may be swapped while it is neither resident nor locked. Not with SHAREABLE
/// (`EINVAL`).
pub const ALLOC_SWAPPABLE: u32 = 1 << 8;
/// Never moves once placed. Needs `CAP_SYS_ADMIN`.
pub const ALLOC_PINNED: u32 = 1 << 9;

// Priorities. Values of `priority` of an allocation. In `AllocInfo` 0 means NORMAL.

/// First to leave.
pub const ALLOC_PRIORITY_MINIMUM: u32 = 1;
/// Leaves before NORMAL.
pub const ALLOC_PRIORITY_LOW: u32 = 2;
/// The default.
pub const ALLOC_PRIORITY_NORMAL: u32 = 3;
/// Leaves after NORMAL.
pub const ALLOC_PRIORITY_HIGH: u32 = 4;
/// Last to leave.
pub const ALLOC_PRIORITY_MAXIMUM: u32 = 5;

// Preference list. One byte of `preferred` in `AllocInfo`: eight bytes, least significant first,
// most wanted first; a zero byte ends the list. The other bits are zero.

/// Mask of the segment id.
pub const ALLOC_PREFERRED_SEGMENT: u32 = 0x1f;
/// Place from the top of the segment.
pub const ALLOC_PREFERRED_FROM_TOP: u32 = 0x80;

// Caching. Values of `caching` in `AllocInfo`.

/// The choice of the kernel.
pub const ALLOC_CACHING_DEFAULT: u32 = 0;
/// Cached.
pub const ALLOC_CACHING_WRITE_BACK: u32 = 1;
/// Write-combined. Later, `FEATURE_CACHING`.
pub const ALLOC_CACHING_WRITE_COMBINED: u32 = 2;
/// Uncached. Later, `FEATURE_CACHING`.
pub const ALLOC_CACHING_UNCACHED: u32 = 3;

/// One allocation of ALLOC_CREATE.
///
/// The last four fields are for `ALLOC_PRIMARY`, `rename_max` is for `ALLOC_RENAMABLE`, `user_addr`
/// is for `ALLOC_USER_MEMORY`; otherwise they are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocInfo {
    /// in: bytes, not zero; rounded up to the page size of every permitted segment.
    pub size: u64,
    /// in: power of two or 0 for the segment default.
    pub align: u64,
    /// in: allocation flags.
    pub flags: u32,
    /// out: allocation handle.
    pub handle: u32,
    /// in: bit mask (bit = id) of the segments it may be in; the aperture's bit means system
    /// memory; bit 0 must be clear; 0 means any.
    pub read_segments: u32,
    /// in: 0 or equal to `read_segments`; others later.
    pub write_segments: u32,
    /// in: must be zero; later.
    pub evict_segments: u32,
    /// in: `ALLOC_PRIORITY_MINIMUM` to `ALLOC_PRIORITY_MAXIMUM`, 0 means NORMAL.
    pub priority: u32,
    /// in: preference list.
    pub preferred: u64,
    /// in: caching, `ALLOC_CACHING_DEFAULT` or `ALLOC_CACHING_WRITE_BACK`.
    pub caching: u32,
    /// in: most instances, the original counted (1 never renames); 0 sets no limit but the one of
    /// `InfoLimits` and memory.
    pub rename_max: u32,
    /// in: page-aligned address of existing memory.
    pub user_addr: u64,
    /// out: number unique on this adapter until unload, for duplicate detection.
    pub object_id: u64,
    /// out: first mapping offset, 0 without CPU_VISIBLE.
    pub mmap_offset: u64,
    /// out: bytes that may be mapped from there (`slot_stride` times instance limit).
    pub mmap_span: u64,
    /// out: distance between instances inside the span.
    pub slot_stride: u64,
    /// out: mapping offset of the busy table, 0 unless feature RENAME_USERPICK and RENAMABLE.
    pub busy_offset: u64,
    /// in: pixels.
    pub width: u32,
    /// in: lines.
    pub height: u32,
    /// in/out: bytes per line, 0 asks the kernel to choose.
    pub pitch: u32,
    /// in: four-character code.
    pub format: u32,
}

layout!(AllocInfo, size 120, first 120, {
    size: 0,
    align: 8,
    flags: 16,
    handle: 20,
    read_segments: 24,
    write_segments: 28,
    evict_segments: 32,
    priority: 36,
    preferred: 40,
    caching: 48,
    rename_max: 52,
    user_addr: 56,
    object_id: 64,
    mmap_offset: 72,
    mmap_span: 80,
    slot_stride: 88,
    busy_offset: 96,
    width: 104,
    height: 108,
    pitch: 112,
    format: 116,
});

/// Argument of ALLOC_QUERY.
///
/// A snapshot. Asking never moves anything.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocQuery {
    /// in/out: array of `AllocState`.
    pub items: Array,
    /// in: must be zero.
    pub flags: u32,
    /// out!: element with the unknown handle.
    pub fail_index: u32,
}

layout!(AllocQuery, size 24, first 24, {
    items: 0,
    flags: 16,
    fail_index: 20,
});

// Residency. Values of `residency` in `AllocState`.

/// In a memory segment.
pub const ALLOC_RESIDENCY_MEMORY: u32 = 1;
/// In system memory.
pub const ALLOC_RESIDENCY_SYSTEM: u32 = 2;
/// Not resident: backing store only.
pub const ALLOC_RESIDENCY_NOT_RESIDENT: u32 = 3;
/// Contents were discarded while offered.
pub const ALLOC_RESIDENCY_DISCARDED: u32 = 4;

// Allocation state flags. Bits of `flags` in `AllocState`.

/// Offered and not reclaimed.
pub const ALLOC_STATE_OFFERED: u32 = 1 << 0;
/// Does not move.
pub const ALLOC_STATE_PINNED: u32 = 1 << 1;
/// A dma-buf of it exists.
pub const ALLOC_STATE_EXPORTED: u32 = 1 << 2;
/// Made by IMPORT.
pub const ALLOC_STATE_IMPORTED: u32 = 1 << 3;
/// Written by the GPU since backing store was last current.
pub const ALLOC_STATE_GPU_DIRTY: u32 = 1 << 4;
/// Shown on a source.
pub const ALLOC_STATE_ON_SCREEN: u32 = 1 << 5;
/// At least one LOCK is not undone.
pub const ALLOC_STATE_LOCKED: u32 = 1 << 6;
/// Queued work uses it.
pub const ALLOC_STATE_BUSY: u32 = 1 << 7;
/// The last MAKE_RESIDENT found no place for it when its turn came.
pub const ALLOC_STATE_NO_PLACE: u32 = 1 << 8;

/// State of one allocation, element of ALLOC_QUERY.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocState {
    /// in: allocation handle.
    pub handle: u32,
    /// out: residency, `ALLOC_RESIDENCY_MEMORY` and so on.
    pub residency: u32,
    /// out: segment id: `SEGMENT_ID_SYSTEM` in system memory, the aperture's id while it also has
    /// an aperture range, `SEGMENT_ID_NONE` if not resident.
    pub segment: u32,
    /// out: allocation state flags.
    pub flags: u32,
    /// out: current priority.
    pub priority: u32,
    /// out: residency references held by the owning device.
    pub resident_refs: u32,
    /// out: instances that exist now.
    pub instances: u32,
    /// out: instance that new submissions would use.
    pub current: u32,
    /// out: bytes of one instance.
    pub size: u64,
    /// out: as in `AllocInfo`.
    pub object_id: u64,
    /// out: as in `AllocInfo`.
    pub mmap_offset: u64,
    /// out: as in `AllocInfo`.
    pub mmap_span: u64,
}

layout!(AllocState, size 64, first 64, {
    handle: 0,
    residency: 4,
    segment: 8,
    flags: 12,
    priority: 16,
    resident_refs: 20,
    instances: 24,
    current: 28,
    size: 32,
    object_id: 40,
    mmap_offset: 48,
    mmap_span: 56,
});

/// Argument of SET_PRIORITY.
///
/// Of two elements for one allocation the later one counts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetPriority {
    /// in: array of `PriorityItem`.
    pub items: Array,
    /// in: must be zero.
    pub flags: u32,
    /// out!: first element refused; none applied.
    pub fail_index: u32,
}

layout!(SetPriority, size 24, first 24, {
    items: 0,
    flags: 16,
    fail_index: 20,
});

/// One allocation of SET_PRIORITY.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriorityItem {
    /// in: allocation handle.
    pub alloc: u32,
    /// in: `ALLOC_PRIORITY_MINIMUM` to `ALLOC_PRIORITY_MAXIMUM`.
    pub priority: u32,
}

layout!(PriorityItem, size 8, first 8, {
    alloc: 0,
    priority: 4,
});
