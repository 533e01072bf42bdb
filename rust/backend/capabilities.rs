// SPDX-License-Identifier: GPL-2.0

//! What a backend says about itself when it is attached (BCK-1, BCK-2).
//!
//! The lists are checked before an adapter appears and never change afterwards: segments are in the
//! order of their ids from 1 on, nodes in the order of their ordinals from 0 on.

use kernel::{
    bits::bit_u32,
    impl_flags,
    prelude::*, //
};

use core::ops::{
    Range,
    RangeInclusive, //
};

use crate::units::{
    NodeOrdinal,
    SegmentId, //
};

/// Everything that the core and QUERY need to know about an adapter.
pub(crate) struct Capabilities {
    /// Segments but system memory; id `n` is element `n - 1`.
    pub(crate) segments: KVec<Segment>,
    /// Nodes; ordinal `n` is element `n`.
    pub(crate) nodes: KVec<Node>,
    /// The node that runs paging buffers; [`None`] if operations are executed at once.
    pub(crate) paging_node: Option<NodeOrdinal>,
    /// Bytes of one paging buffer.
    pub(crate) paging_buffer_bytes: usize,
    /// Binding slots of a patched buffer (MaxAllocationListSlotId).
    pub(crate) patch_slots: u32,
    /// Display sources.
    pub(crate) sources: u32,
    /// What the sources can show.
    pub(crate) picture: PictureLimits,
    /// The GPU MMU, if there is one.
    #[allow(dead_code)]
    pub(crate) translation: Option<Translation>,
}

impl Capabilities {
    /// Returns the segment with this id; system memory is not listed.
    pub(crate) fn segment(&self, id: SegmentId) -> Option<&Segment> {
        self.segments.get(id.index().checked_sub(1)?)
    }

    /// Returns the node with this ordinal.
    pub(crate) fn node(&self, ordinal: NodeOrdinal) -> Option<&Node> {
        self.nodes.get(ordinal.index())
    }

    /// Returns the aperture: every adapter has exactly one (SEG-8).
    pub(crate) fn aperture(&self) -> Option<&Segment> {
        self.segments
            .iter()
            .find(|segment| segment.kind == SegmentKind::Aperture)
    }
}

/// What a display source can show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PictureLimits {
    /// What the bytes from line to line are a multiple of.
    pub(crate) pitch_align: u32,
    /// The most pixels of a line.
    pub(crate) width: u32,
    /// The most lines.
    pub(crate) height: u32,
}

/// What a listed segment stands for (SEG-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    /// Memory of the GPU.
    Memory,
    /// Addresses behind which system pages are mapped.
    Aperture,
}

impl_flags!(
    /// What a segment can do.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub(crate) struct SegmentFlags(u32);

    /// One property of a segment. The numbers are those of the SEGMENT record.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum SegmentFlag {
        /// The CPU can map all of it.
        CpuVisible = bit_u32(0),
        /// The CPU sees it through a window smaller than the segment.
        HostAperture = bit_u32(1),
        /// CPU caches need no maintenance.
        CacheCoherent = bit_u32(2),
        /// Primaries in it can be shown.
        Scanout = bit_u32(4),
        /// Counts towards the budget of its group.
        Budgeted = bit_u32(5),
    }
);

impl SegmentFlags {
    /// Returns the bits as the SEGMENT record has them.
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }
}

/// A range of memory or addresses that the core manages.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Its number, 1 to 31.
    pub(crate) id: SegmentId,
    /// What it stands for.
    pub(crate) kind: SegmentKind,
    /// What it can do.
    pub(crate) flags: SegmentFlags,
    /// First GPU physical address.
    pub(crate) base: u64,
    /// Bytes of address space.
    pub(crate) bytes: u64,
    /// Bytes that may be committed.
    pub(crate) commit_limit: u64,
    /// Bytes the CPU can see at once: 0, the window of a host aperture, or all.
    pub(crate) cpu_window: u64,
    /// Allocation granularity, 4 KiB or 64 KiB.
    pub(crate) page_bytes: u64,
    /// Bytes at the lowest offsets whose page frames are adjacent.
    pub(crate) contiguous: u64,
}

/// What a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// Rendering.
    Render,
    /// Copying.
    Copy,
    /// Paging buffers; only the kernel uses it.
    Paging,
    /// Page-table updates of companion contexts; only the kernel uses it.
    Companion,
}

impl_flags!(
    /// What a node can do.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub(crate) struct NodeFlags(u32);

    /// One property of a node. The numbers are those of the NODE record.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum NodeFlag {
        /// Work gives way between two portions.
        Preemptible = bit_u32(0),
        /// A submission may be cut.
        Split = bit_u32(1),
        /// Completion values are 64 bits wide.
        Fence64Bit = bit_u32(2),
        /// Registers survive other buffers on the node.
        SavesContext = bit_u32(3),
    }
);

impl NodeFlags {
    /// Returns the bits as the NODE record has them.
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }
}

impl_flags!(
    /// How contexts on a node can name memory. The bits are those of the NODE record.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub(crate) struct Modes(u32);

    /// One way in which a context names memory.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Mode {
        /// Patched addresses; lists decide residency.
        PatchedList = bit_u32(0),
        /// Patched addresses; residency is explicit.
        PatchedExplicit = bit_u32(1),
        /// GPU virtual addresses.
        Virtual = bit_u32(2),
    }
);

impl Modes {
    /// Returns the bits as the NODE record has them.
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }
}

/// One independently scheduled queue of the GPU.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Its number.
    pub(crate) ordinal: NodeOrdinal,
    /// What it is for.
    pub(crate) kind: NodeKind,
    /// Modes of the contexts it takes; none for nodes that only the kernel uses.
    pub(crate) modes: Modes,
    /// What it can do.
    pub(crate) flags: NodeFlags,
    /// The node on which companion contexts of its contexts run.
    pub(crate) companion: Option<NodeOrdinal>,
    /// Time limit of one portion.
    pub(crate) timeout_ms: u32,
    /// Longest lists it takes.
    pub(crate) limits: Limits,
}

impl Node {
    /// Returns whether it works with physical addresses of clients.
    pub(crate) fn is_physical(&self) -> bool {
        self.modes.contains(Mode::PatchedList)
    }

    /// Returns whether it works with virtual addresses of clients.
    pub(crate) fn is_virtual(&self) -> bool {
        self.modes.contains(Mode::Virtual)
    }

    /// Returns whether registers of a context survive other buffers on it.
    pub(crate) fn saves_context(&self) -> bool {
        self.flags.contains(NodeFlag::SavesContext)
    }

    /// Returns whether only the kernel uses it.
    pub(crate) fn is_internal(&self) -> bool {
        self.modes == Modes::default()
    }
}

/// The longest lists a node takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of a patched command buffer.
    pub(crate) dma_bytes: u32,
    /// Elements of an allocation list.
    pub(crate) allocations: u32,
    /// Elements of a patch list.
    pub(crate) patches: u32,
    /// Elements of a wait or signal list.
    pub(crate) points: u32,
}

/// How the page tables are reached when they are written (PAG-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateMode {
    /// By an address in the space of the paging process.
    GpuVirtual,
    /// By segment and offset.
    GpuPhysical,
    /// By the CPU, at once.
    CpuVirtual,
}

/// The GPU MMU. It is checked at registration, whether or not anything is translated yet.
#[allow(dead_code)]
#[derive(Clone, Debug)]
pub(crate) struct Translation {
    /// Page-table levels.
    pub(crate) levels: u32,
    /// How tables are written.
    pub(crate) update_mode: UpdateMode,
    /// Where the page tables of clients live.
    pub(crate) client_tables: SegmentId,
    /// Where those of the paging process live.
    pub(crate) paging_tables: SegmentId,
    /// Bytes of the scratch area of the paging process.
    pub(crate) scratch_bytes: u64,
    /// Bytes the backend keeps for itself in the space of the paging process (VA-3).
    pub(crate) reserved_bytes: u64,
    /// Where it wants them; [`None`] if it does not matter.
    pub(crate) reserved_at: Option<u64>,
    /// The addresses that clients can use.
    pub(crate) addresses: Range<u64>,
    /// How many entries a root can have: powers of two from the first to the last number. Both are
    /// the same unless the root can grow (VA-13).
    pub(crate) root_entries: RangeInclusive<u32>,
    /// Whether page tables have zero entries (VA-16).
    pub(crate) zero_pages: bool,
    /// Whether translation caches hold invalid translations until they are flushed (PAG-20).
    pub(crate) holds_invalid: bool,
    /// The bits of driver protection that entries keep.
    pub(crate) driver_bits: u64,
}
