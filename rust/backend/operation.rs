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

use crate::units::{
    Place,
    Run, //
};

/// One paging operation, addressed physically (PAG-22).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation<'a> {
    /// Every dword of `to` becomes `pattern`.
    Fill {
        /// What is written.
        pattern: u32,
        /// Where it is written.
        to: &'a [Run],
    },
    /// The bytes of `from`, in order, are copied to the bytes of `to`. Both are equally long and do
    /// not overlap; their runs need not be cut alike.
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

impl Operation<'_> {
    /// Returns which operation it is.
    pub(crate) const fn name(&self) -> Name {
        match self {
            Operation::Fill { .. } => Name::Fill,
            Operation::Transfer { .. } => Name::Transfer,
            Operation::Discard { .. } => Name::Discard,
            Operation::MapAperture { .. } => Name::MapAperture,
            Operation::UnmapAperture { .. } => Name::UnmapAperture,
        }
    }

    /// Returns how much memory it covers.
    pub(crate) fn bytes(&self) -> u64 {
        match *self {
            Operation::Fill { to: runs, .. }
            | Operation::Transfer { to: runs, .. }
            | Operation::Discard { what: runs }
            | Operation::MapAperture { pages: runs, .. } => total(runs),
            Operation::UnmapAperture { bytes, .. } => bytes,
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
    /// [`Operation::MapAperture`].
    MapAperture,
    /// [`Operation::UnmapAperture`].
    UnmapAperture,
}

impl Name {
    /// All names.
    pub(crate) const ALL: [Name; 5] = [
        Name::Fill,
        Name::Transfer,
        Name::Discard,
        Name::MapAperture,
        Name::UnmapAperture,
    ];

    /// Returns the word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Name::Fill => "Fill",
            Name::Transfer => "Transfer",
            Name::Discard => "Discard",
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

/// How many bytes of an operation have been built so far (PAG-17).
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
