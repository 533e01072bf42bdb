// SPDX-License-Identifier: GPL-2.0

//! Capabilities, names and the end of a handle: QUERY and its records, SET_NAME, CLOSE.
//!
//! A record may grow at its end. QUERY copies the smaller of what the caller has room for and what
//! the kernel knows, and returns the latter.

use super::Array;

// Interface version. Fields `uapi_major` and `uapi_minor` of `InfoAdapter`. Nothing may test them
// to decide behaviour; feature bits and the IOCTL record are for that.

/// Changes only if an old number changes meaning, which must not happen.
pub const UAPI_MAJOR: u32 = 1;
/// Rises with every addition.
pub const UAPI_MINOR: u32 = 0;

// Queries. Values of `query` in `Query`. The record of each is `InfoAdapter` and so on, after the
// name.

/// The adapter; `index` is zero.
pub const QUERY_ADAPTER: u32 = 0;
/// A segment; `index` is its id, 0 is system memory.
pub const QUERY_SEGMENT: u32 = 1;
/// A node; `index` is its ordinal.
pub const QUERY_NODE: u32 = 2;
/// A call; `index` is its ioctl number. `ENOENT` for a number that does not exist.
pub const QUERY_IOCTL: u32 = 3;
/// Limits of lists and queues; `index` is zero.
pub const QUERY_LIMITS: u32 = 4;
/// CPU and GPU clock at one moment; `index` is zero.
pub const QUERY_CLOCK: u32 = 5;
/// A display source; `index` is its id. Needs `FEATURE_SCANOUT`.
pub const QUERY_SOURCE: u32 = 6;
/// Counters of this client; `index` is zero.
pub const QUERY_CLIENT: u32 = 7;

/// Argument of QUERY.
///
/// With `size` 0 only the record size is returned. Otherwise the smaller of `size` and the record
/// size is copied, and `size` is set to the record size: shorter and longer records are both fine.
/// An unknown `query` is `EOPNOTSUPP`, an `index` out of range is `ENOENT`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// in: what to read, a `QUERY_ADAPTER` and so on.
    pub query: u32,
    /// in: segment id (0 is system memory), node ordinal, ioctl number or source id, according to
    /// `query`; otherwise zero.
    pub index: u32,
    /// in: destination address, ignored when `size` is 0.
    pub data: u64,
    /// in/out: capacity of `data`; on return the size this kernel has for that record.
    pub size: u32,
    /// in: must be zero.
    pub flags: u32,
}

layout!(Query, size 24, first 24, {
    query: 0,
    index: 4,
    data: 8,
    size: 16,
    flags: 20,
});

// Feature bits. Bits of `features` in `InfoAdapter`. A bit is set when everything it names works;
// until then the calls, flags and fields it names answer `EOPNOTSUPP`.

/// Contexts of mode PATCHED_LIST and PATCHED_EXPLICIT, SUBMIT_PATCHED.
pub const FEATURE_PATCHED: u64 = 1 << 0;
/// Submissions are cut under memory pressure. Without it, what does not fit as a whole is `ENOSPC`.
pub const FEATURE_SPLIT: u64 = 1 << 1;
/// Contexts of mode VIRTUAL, SUBMIT_VIRTUAL, VA_RESERVE, VA_FREE, VA_MAP, VA_QUERY.
pub const FEATURE_VIRTUAL: u64 = 1 << 2;
/// VA_UPDATE, `ALLOC_TILE_POOL`, companion contexts.
pub const FEATURE_TILES: u64 = 1 << 3;
/// `ALLOC_RENAMABLE`, `LOCK_DISCARD`.
pub const FEATURE_RENAME: u64 = 1 << 4;
/// The busy table, `SUBMIT_ALLOC_KEEP_INSTANCE`.
pub const FEATURE_RENAME_USERPICK: u64 = 1 << 5;
/// BUDGET, RESERVE_BUDGET, EVENTS.
pub const FEATURE_BUDGET_EVENTS: u64 = 1 << 6;
/// OFFER, RECLAIM.
pub const FEATURE_OFFER: u64 = 1 << 7;
/// At least one segment is larger than the window through which the CPU sees it.
pub const FEATURE_HOST_APERTURE: u64 = 1 << 8;
/// `ALLOC_ACCESSED_PHYSICALLY`.
pub const FEATURE_ACCESSED_PHYSICALLY: u64 = 1 << 9;
/// FENCE_EXPORT and FENCE_IMPORT of kind SYNC_FILE.
pub const FEATURE_SYNC_FILE: u64 = 1 << 10;
/// EXPORT, `ALLOC_SHAREABLE`.
pub const FEATURE_DMABUF_EXPORT: u64 = 1 << 11;
/// IMPORT.
pub const FEATURE_DMABUF_IMPORT: u64 = 1 << 12;
/// `ALLOC_PRIMARY`, SCANOUT, `QUERY_SOURCE`.
pub const FEATURE_SCANOUT: u64 = 1 << 13;
/// Segments are regions of the device-memory controller. Later.
pub const FEATURE_CGROUP: u64 = 1 << 14;
/// A node is reset after a timeout.
pub const FEATURE_RECOVERY: u64 = 1 << 15;
/// `ALLOC_USER_MEMORY`, `user_addr`. Later.
pub const FEATURE_USER_MEMORY: u64 = 1 << 16;
/// The status page at mapping offset 0.
pub const FEATURE_STATUS_PAGE: u64 = 1 << 17;
/// `ALLOC_SWAPPABLE`.
pub const FEATURE_SWAPPABLE: u64 = 1 << 18;
/// `write_segments` different from `read_segments`. Later.
pub const FEATURE_WRITE_SEGMENTS: u64 = 1 << 19;
/// `evict_segments` other than zero. Later.
pub const FEATURE_EVICT_SEGMENTS: u64 = 1 << 20;
/// ALLOC_UPDATE. Later.
pub const FEATURE_ALLOC_UPDATE: u64 = 1 << 21;
/// `ALLOC_CACHING_WRITE_COMBINED`, `ALLOC_CACHING_UNCACHED`. Later.
pub const FEATURE_CACHING: u64 = 1 << 22;
/// Operation PROTECT of VA_UPDATE. Later.
pub const FEATURE_VA_PROTECT: u64 = 1 << 23;
/// `SUBMIT_ALLOC_LAST_USE`. Later.
pub const FEATURE_LAST_USE: u64 = 1 << 24;
/// `companion_node` named by the caller. Later.
pub const FEATURE_COMPANION_CHOICE: u64 = 1 << 25;
/// `SUBMIT_PATCH_KIND_LOW32`, `SUBMIT_PATCH_KIND_HIGH32`. Later.
pub const FEATURE_SPLIT_ADDRESS: u64 = 1 << 26;
/// `FENCE_SHARED`, FENCE_EXPORT and FENCE_IMPORT of kind SHARE_FD.
pub const FEATURE_FENCE_SHARE: u64 = 1 << 27;
/// Trim requests on a timer. Later.
pub const FEATURE_PERIODIC_TRIM: u64 = 1 << 28;

// Adapter states. Values of `state` in `InfoAdapter`.

/// The adapter works.
pub const ADAPTER_STATE_RUNNING: u32 = 0;
/// The machine sleeps or is about to.
pub const ADAPTER_STATE_SUSPENDED: u32 = 1;
/// An adapter reset is under way.
pub const ADAPTER_STATE_RESETTING: u32 = 2;
/// The adapter was removed.
pub const ADAPTER_STATE_GONE: u32 = 3;

/// Record of `QUERY_ADAPTER`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InfoAdapter {
    /// out: changes only if an old number changes meaning, which must not happen.
    pub uapi_major: u32,
    /// out: rises with every addition; for humans, not for feature tests.
    pub uapi_minor: u32,
    /// out: identity of this adapter until unload.
    pub adapter_id: u64,
    /// out: adapter resets since load.
    pub reset_count: u32,
    /// out: adapter state, `ADAPTER_STATE_RUNNING` and so on.
    pub state: u32,
    /// out: smallest GPU page.
    pub page_size: u32,
    /// out: largest GPU page, 0 if none.
    pub large_page_size: u32,
    /// out: number of segments, ids 1..n; system memory, id 0, is not counted.
    pub segments: u32,
    /// out: number of nodes, ordinals 0..n-1.
    pub nodes: u32,
    /// out: number of display sources.
    pub sources: u32,
    /// out: binding slots per patched buffer (MaxAllocationListSlotId: slots 0..n-1).
    pub patch_slots: u32,
    /// out: first usable GPU virtual address.
    pub va_start: u64,
    /// out: end of the space.
    pub va_end: u64,
    /// out: feature bits.
    pub features: u64,
    /// out: more feature bits.
    pub features_hi: u64,
}

layout!(InfoAdapter, size 80, {
    uapi_major: 0,
    uapi_minor: 4,
    adapter_id: 8,
    reset_count: 16,
    state: 20,
    page_size: 24,
    large_page_size: 28,
    segments: 32,
    nodes: 36,
    sources: 40,
    patch_slots: 44,
    va_start: 48,
    va_end: 56,
    features: 64,
    features_hi: 72,
});

// Segment kinds. Values of `kind` in `InfoSegment`.

/// Memory of the adapter.
pub const SEGMENT_KIND_MEMORY: u32 = 1;
/// A range of addresses behind which system pages are mapped. There is exactly one.
pub const SEGMENT_KIND_APERTURE: u32 = 2;
/// System memory, where backing store lives. Only `SEGMENT_ID_SYSTEM`.
pub const SEGMENT_KIND_SYSTEM: u32 = 3;

// Segment flags. Bits of `flags` in `InfoSegment`.

/// The CPU can map it.
pub const SEGMENT_CPU_VISIBLE: u32 = 1 << 0;
/// The CPU sees it through a window smaller than the segment.
pub const SEGMENT_HOST_APERTURE: u32 = 1 << 1;
/// CPU caches need no maintenance.
pub const SEGMENT_CACHE_COHERENT: u32 = 1 << 2;
/// Holds contiguous allocations only. Never set in this version.
pub const SEGMENT_CONTIGUOUS_ONLY: u32 = 1 << 3;
/// Primaries in it can be shown.
pub const SEGMENT_SCANOUT: u32 = 1 << 4;
/// Counts towards the budget of its group.
pub const SEGMENT_BUDGETED: u32 = 1 << 5;

// Segment groups. Values of `group` in `InfoSegment`, and in the arguments of BUDGET and
// RESERVE_BUDGET.

/// Memory segments.
pub const GROUP_LOCAL: u32 = 0;
/// The aperture and system memory.
pub const GROUP_NON_LOCAL: u32 = 1;

// Segment ids. Special ids of a segment. All others count from 1; bit n of a segment mask stands
// for id n.

/// System memory; not counted in `segments` of the ADAPTER record.
pub const SEGMENT_ID_SYSTEM: u32 = 0;
/// No segment: not resident, or nothing presumed.
pub const SEGMENT_ID_NONE: u32 = u32::MAX;

/// Record of `QUERY_SEGMENT`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InfoSegment {
    /// out: segment id.
    pub id: u32,
    /// out: segment kind.
    pub kind: u32,
    /// out: segment flags.
    pub flags: u32,
    /// out: segment group, `GROUP_LOCAL` or `GROUP_NON_LOCAL`.
    pub group: u32,
    /// out: first GPU physical address; 0 for id 0.
    pub base: u64,
    /// out: bytes of address space.
    pub size: u64,
    /// out: bytes that may be committed.
    pub commit_limit: u64,
    /// out: bytes the CPU can see at once: 0, less than `size` (host aperture), or `size`.
    pub cpu_window: u64,
    /// out: bytes in use by everybody: occupied in a memory segment, mapped in the aperture, pinned
    /// for residency in system memory; 0 without CAP_PERFMON.
    pub used: u64,
    /// out: longest free run; 0 without CAP_PERFMON.
    pub largest_free: u64,
    /// out: bytes in use by this client, counted as in `used`.
    pub own: u64,
    /// out: allocation granularity.
    pub page_size: u64,
    /// out: bytes of the part that is contiguous in page frames: the only place for
    /// ACCESSED_PHYSICALLY allocations and primaries.
    pub contiguous: u64,
}

layout!(InfoSegment, size 88, {
    id: 0,
    kind: 4,
    flags: 8,
    group: 12,
    base: 16,
    size: 24,
    commit_limit: 32,
    cpu_window: 40,
    used: 48,
    largest_free: 56,
    own: 64,
    page_size: 72,
    contiguous: 80,
});

// Node kinds. Values of `kind` in `InfoNode`.

/// Rendering.
pub const NODE_KIND_RENDER: u32 = 1;
/// Computing.
pub const NODE_KIND_COMPUTE: u32 = 2;
/// Copying.
pub const NODE_KIND_COPY: u32 = 3;
/// Paging; only the kernel uses it.
pub const NODE_KIND_PAGING: u32 = 4;

// Node flags. Bits of `flags` in `InfoNode`.

/// Work gives way between two portions.
pub const NODE_PREEMPTIBLE: u32 = 1 << 0;
/// A submission may be cut. Set wherever `CONTEXT_MODE_PATCHED_LIST` is offered.
pub const NODE_SPLIT: u32 = 1 << 1;
/// Fence values are 64 bits wide in hardware.
pub const NODE_FENCE_64BIT: u32 = 1 << 2;
/// Registers survive other buffers on the node.
pub const NODE_SAVES_CONTEXT: u32 = 1 << 3;

// Node ordinals. A special value of every field that holds the ordinal of a node.

/// No node.
pub const NODE_NONE: u32 = u32::MAX;

/// Record of `QUERY_NODE`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InfoNode {
    /// out: node ordinal.
    pub ordinal: u32,
    /// out: node kind.
    pub kind: u32,
    /// out: bit mask of context modes (bit = mode); 0 for nodes that only the kernel uses.
    pub modes: u32,
    /// out: node flags.
    pub flags: u32,
    /// out: node on which companion contexts run, `NODE_NONE` if none is needed.
    pub companion_node: u32,
    /// out: default time limit of one buffer.
    pub timeout_ms: u32,
    /// out: longest patched command buffer.
    pub max_dma_bytes: u32,
    /// out: longest allocation list.
    pub max_allocs: u32,
    /// out: longest patch list.
    pub max_patches: u32,
    /// out: longest wait or signal list.
    pub max_points: u32,
}

layout!(InfoNode, size 40, {
    ordinal: 0,
    kind: 4,
    modes: 8,
    flags: 12,
    companion_node: 16,
    timeout_ms: 20,
    max_dma_bytes: 24,
    max_allocs: 28,
    max_patches: 32,
    max_points: 36,
});

/// Record of `QUERY_IOCTL`.
///
/// This record is how a program learns whether a flag or a field exists before it uses it. No call
/// has to be tried out.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InfoIoctl {
    /// out: the number asked about.
    pub nr: u32,
    /// out: 1 if this kernel implements it.
    pub supported: u32,
    /// out: smallest accepted argument size.
    pub size_first: u32,
    /// out: argument size this kernel fully understands.
    pub size_known: u32,
    /// out: bits of the argument's `flags` that are understood.
    pub flags_known: u64,
}

layout!(InfoIoctl, size 24, {
    nr: 0,
    supported: 4,
    size_first: 8,
    size_known: 12,
    flags_known: 16,
});

/// Record of `QUERY_LIMITS`.
///
/// Guaranteed at least: 16384 handles per list, 1024 creations, 1024 instances, 65536 address
/// operations, 256 remembered submissions, 256 events, 2097152 objects. Queued updates are 128
/// everywhere. `handles_per_list` also bounds the lists that have no limit of their own.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InfoLimits {
    /// out: longest handle list.
    pub handles_per_list: u32,
    /// out: longest creation list.
    pub allocs_per_create: u32,
    /// out: most instances of one allocation.
    pub rename_max: u32,
    /// out: longest VA_UPDATE list.
    pub va_ops: u32,
    /// out: VA_UPDATE calls that may be queued per context.
    pub va_updates_queued: u32,
    /// out: finished submissions SUBMIT_QUERY can still see.
    pub submissions_remembered: u32,
    /// out: events kept before OVERFLOW.
    pub events_queued: u32,
    /// out: handles one client may hold.
    pub objects: u32,
}

layout!(InfoLimits, size 32, {
    handles_per_list: 0,
    allocs_per_create: 4,
    rename_max: 8,
    va_ops: 12,
    va_updates_queued: 16,
    submissions_remembered: 20,
    events_queued: 24,
    objects: 28,
});

/// Record of `QUERY_CLOCK`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InfoClock {
    /// out: CLOCK_MONOTONIC.
    pub cpu_ns: u64,
    /// out: GPU counter at the same moment.
    pub gpu_ticks: u64,
    /// out: its frequency.
    pub gpu_hz: u64,
    /// out: width of the sampling window.
    pub uncertainty_ns: u64,
}

layout!(InfoClock, size 32, {
    cpu_ns: 0,
    gpu_ticks: 8,
    gpu_hz: 16,
    uncertainty_ns: 24,
});

// Source flags. Bits of `flags` in `InfoSource`.

/// Something is shown on the source.
pub const SOURCE_ENABLED: u32 = 1 << 0;
/// A client owns the source.
pub const SOURCE_OWNED: u32 = 1 << 1;

/// Record of `QUERY_SOURCE`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InfoSource {
    /// out: source id.
    pub source: u32,
    /// out: source flags.
    pub flags: u32,
    /// out: primary shown now if it belongs to this client, otherwise 0.
    pub alloc: u32,
    /// out: required alignment of `pitch`.
    pub pitch_align: u32,
    /// out: pixels.
    pub max_width: u32,
    /// out: lines.
    pub max_height: u32,
    /// out: last accepted SCANOUT sequence.
    pub sequence: u64,
}

layout!(InfoSource, size 32, {
    source: 0,
    flags: 4,
    alloc: 8,
    pitch_align: 12,
    max_width: 16,
    max_height: 20,
    sequence: 24,
});

/// Record of `QUERY_CLIENT`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InfoClient {
    /// out: the number shown in fdinfo.
    pub client_id: u64,
    /// out: allocations of this client pushed out.
    pub evictions: u64,
    /// out: bytes.
    pub paged_in: u64,
    /// out: bytes.
    pub paged_out: u64,
    /// out: DISCARD locks answered with another instance.
    pub renames: u64,
    /// out: DISCARD locks that had to wait.
    pub rename_waits: u64,
    /// out: extra portions caused by splitting.
    pub splits: u64,
    /// out: offered bytes thrown away.
    pub discarded: u64,
    /// out: bytes of backing store charged to this client.
    pub backing: u64,
}

layout!(InfoClient, size 72, {
    client_id: 0,
    evictions: 8,
    paged_in: 16,
    paged_out: 24,
    renames: 32,
    rename_waits: 40,
    splits: 48,
    discarded: 56,
    backing: 64,
});

// Names. The limit of SET_NAME.

/// Longest name in bytes, without terminator.
pub const SET_NAME_MAX: u32 = 63;

/// Argument of SET_NAME.
///
/// Names appear in fdinfo, debug files, dumps and the visualiser.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetName {
    /// in: object handle, or 0 to name the client itself.
    pub object: u32,
    /// in: length without terminator, 0 clears the name, at most `SET_NAME_MAX`.
    pub len: u32,
    /// in: printable ASCII, no white space.
    pub ptr: u64,
}

layout!(SetName, size 16, first 16, {
    object: 0,
    len: 4,
    ptr: 8,
});

// CLOSE flags. Bits of `flags` in `Close`.

/// Return only when the storage is really gone.
pub const CLOSE_SYNC: u32 = 1 << 0;

/// Argument of CLOSE.
///
/// Drops the names at once. Storage goes when the last of these is gone: handles, queued work that
/// uses it, CPU mappings, dma-buf descriptors and attachments, GPU virtual address mappings.
/// Closing a device closes what it owns.
///
/// Also: `EBUSY` for a primary that is on screen, and for a paging fence alone.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Close {
    /// in: `u32` handles, mixed types allowed.
    pub handles: Array,
    /// in: CLOSE flags.
    pub flags: u32,
    /// out!: index of the handle that was refused.
    pub fail_index: u32,
}

layout!(Close, size 24, first 24, {
    handles: 0,
    flags: 16,
    fail_index: 20,
});
