// SPDX-License-Identifier: GPL-2.0

//! The vocabulary of paging operations.
//!
//! All memory work is said in these few words (PAG-1). The core describes *what* shall happen to
//! which places; a backend encodes the words into a paging buffer, operation by operation, and a
//! node carries them out later. On an adapter without a paging node the same words are carried out
//! at once.
//!
//! A place is a segment and an offset. [`SegmentId::SYSTEM`](crate::units::SegmentId::SYSTEM) names
//! system memory, where the offset is a guest physical address. Memory that is not adjacent is a
//! list of runs: a whole run costs one entry, however long it is. All lengths are multiples of 4,
//! and of the CPU page for the aperture.
//!
//! Virtual addresses mean those of the space of the context in which the buffer runs, which is that
//! of the paging process ([`Backend::set_root`](super::Backend::set_root)). What stands in a page
//! table is said in [`page_table`](super::page_table).

use core::ops::Range;

use super::page_table::Update;
use crate::units::{
    GpuVirtualAddress,
    Place,
    Run, //
};

/// One paging operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation<'a> {
    /// Every dword of `to` becomes `pattern` (PAG-22).
    Fill {
        /// What is written.
        pattern: u32,
        /// Where it is written.
        to: &'a [Run],
    },
    /// The bytes of `from`, in order, are copied to the bytes of `to`. Both are equally long and do
    /// not overlap; their runs need not be cut alike (PAG-22).
    Transfer {
        /// Where the content is.
        from: &'a [Run],
        /// Where it shall be.
        to: &'a [Run],
    },
    /// The content of `what` is given up (PAG-15).
    Discard {
        /// The places that lose their content.
        what: &'a [Run],
    },
    /// Every dword of a range becomes `pattern` (PAG-12).
    FillVirtual {
        /// What is written.
        pattern: u32,
        /// Where it is written.
        to: GpuVirtualAddress,
        /// How much.
        bytes: u64,
    },
    /// A range is copied to another one that does not overlap it (PAG-10).
    TransferVirtual {
        /// Where the content is.
        from: GpuVirtualAddress,
        /// Where it shall be.
        to: GpuVirtualAddress,
        /// How much.
        bytes: u64,
    },
    /// Entries of one page table change (PAG-19).
    UpdatePageTable(Update<'a>),
    /// No node works with translations of a range any more that were made before (PAG-20).
    FlushTlb {
        /// The root of the address space.
        root: Place,
        /// The addresses; an empty range stands for the whole space.
        range: FlushRange,
    },
    /// Pages of the aperture, from `at` on, show `pages` of system memory (SEG-16).
    MapAperture {
        /// First page in the aperture.
        at: Place,
        /// System memory behind it, whole pages.
        pages: &'a [Run],
    },
    /// Pages of the aperture show the dummy page again (SEG-31).
    UnmapAperture {
        /// First page in the aperture.
        at: Place,
        /// How much of it.
        bytes: u64,
    },
}

/// The addresses that FlushTLB covers, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlushRange {
    /// The first one.
    pub(crate) start: GpuVirtualAddress,
    /// The first one behind it.
    pub(crate) end: GpuVirtualAddress,
}

impl FlushRange {
    /// The whole space.
    #[allow(dead_code)]
    pub(crate) const ALL: Self = Self {
        start: GpuVirtualAddress(0),
        end: GpuVirtualAddress(0),
    };

    /// Returns the range of `bytes` bytes from `start` on.
    pub(crate) const fn new(start: GpuVirtualAddress, bytes: u64) -> Self {
        Self {
            start,
            end: start.forward(bytes),
        }
    }

    /// Returns how long it is; zero for the whole space.
    pub(crate) const fn bytes(self) -> u64 {
        self.end.0.saturating_sub(self.start.0)
    }

    /// Returns the addresses, of the whole space too.
    pub(crate) const fn addresses(self) -> Range<u64> {
        match self.bytes() {
            0 => 0..u64::MAX,
            _ => self.start.0..self.end.0,
        }
    }
}

impl Operation<'_> {
    /// Returns which operation it is.
    pub(crate) const fn name(&self) -> Name {
        match self {
            Operation::Fill { .. } => Name::Fill,
            Operation::Transfer { .. } => Name::Transfer,
            Operation::Discard { .. } => Name::Discard,
            Operation::FillVirtual { .. } => Name::FillVirtual,
            Operation::TransferVirtual { .. } => Name::TransferVirtual,
            Operation::UpdatePageTable(..) => Name::UpdatePageTable,
            Operation::FlushTlb { .. } => Name::FlushTlb,
            Operation::MapAperture { .. } => Name::MapAperture,
            Operation::UnmapAperture { .. } => Name::UnmapAperture,
        }
    }

    /// Returns how much memory it covers: what it writes, gives up, shows or maps.
    pub(crate) fn bytes(&self) -> u64 {
        match *self {
            Operation::Fill { to: runs, .. }
            | Operation::Transfer { to: runs, .. }
            | Operation::Discard { what: runs }
            | Operation::MapAperture { pages: runs, .. } => total(runs),
            Operation::FillVirtual { bytes, .. }
            | Operation::TransferVirtual { bytes, .. }
            | Operation::UnmapAperture { bytes, .. } => bytes,
            Operation::UpdatePageTable(update) => update.bytes(),
            Operation::FlushTlb { range, .. } => range.bytes(),
        }
    }

    /// Returns what [`Progress`] counts up to: entries of a page table, one for FlushTLB, bytes
    /// otherwise.
    pub(crate) fn steps(&self) -> u64 {
        match *self {
            Operation::UpdatePageTable(update) => update.count(),
            Operation::FlushTlb { .. } => 1,
            _ => self.bytes(),
        }
    }
}

/// The name of a paging operation, as it appears in traces and in `inject fail`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// [`Operation::Fill`].
    Fill,
    /// [`Operation::Transfer`].
    Transfer,
    /// [`Operation::Discard`].
    Discard,
    /// [`Operation::FillVirtual`].
    FillVirtual,
    /// [`Operation::TransferVirtual`].
    TransferVirtual,
    /// [`Operation::UpdatePageTable`].
    UpdatePageTable,
    /// [`Operation::FlushTlb`].
    FlushTlb,
    /// [`Operation::MapAperture`].
    MapAperture,
    /// [`Operation::UnmapAperture`].
    UnmapAperture,
}

impl Name {
    /// All names.
    pub(crate) const ALL: [Name; 9] = [
        Name::Fill,
        Name::Transfer,
        Name::Discard,
        Name::FillVirtual,
        Name::TransferVirtual,
        Name::UpdatePageTable,
        Name::FlushTlb,
        Name::MapAperture,
        Name::UnmapAperture,
    ];

    /// Returns the word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Name::Fill => "Fill",
            Name::Transfer => "Transfer",
            Name::Discard => "Discard",
            Name::FillVirtual => "FillVirtual",
            Name::TransferVirtual => "TransferVirtual",
            Name::UpdatePageTable => "UpdatePageTable",
            Name::FlushTlb => "FlushTLB",
            Name::MapAperture => "MapAperture",
            Name::UnmapAperture => "UnmapAperture",
        }
    }

    /// Returns its number among [`Name::ALL`].
    pub(crate) const fn index(self) -> usize {
        // CAST: a fieldless enum, numbered in the order of `ALL`.
        self as usize
    }
}

/// How much of an operation has been built so far (PAG-17), in the unit of
/// [`Operation::steps`].
///
/// It starts at zero. When a buffer is full, the caller takes a new one and repeats the same
/// operation with the value as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress(pub(crate) u64);

/// The paging buffer has no room for the rest of the operation: the only failure of building.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Returns the sum of the lengths of `runs`.
pub(crate) fn total(runs: &[Run]) -> u64 {
    runs.iter()
        .fold(0, |sum: u64, run| sum.saturating_add(run.bytes))
}
