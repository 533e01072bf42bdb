// SPDX-License-Identifier: GPL-2.0

//! Quantities and identifiers.
//!
//! A bare `u64` says nothing about what it counts. The types here do, and every room speaks in
//! them: a place in video memory is always a pair of segment and offset ([`Place`], SEG-12), a
//! stretch of memory is a [`Run`], and a fence value cannot be mistaken for a size.
//!
//! This file depends on `core` alone, so that the policy room can be built and tested on a host.

use core::fmt;
use core::ops::Range;

/// Bytes of one CPU page, the unit of backing memory.
pub const PAGE_BYTES: u64 = 4096;

/// The number of segment ids an adapter can use: 0 is system memory, 1 to 31 are listed.
pub const SEGMENT_IDS: usize = 32;

/// A segment of memory, named by a small number (SEG-1, SEG-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentId(u8);

impl SegmentId {
    /// System memory: implicit on every adapter, addressed by guest physical address.
    pub const SYSTEM: Self = Self(0);

    /// Returns the segment with this number, or [`None`] beyond the last possible one.
    pub const fn new(id: u32) -> Option<Self> {
        if id < 32 {
            // CAST: below 32.
            Some(Self(id as u8))
        } else {
            None
        }
    }

    /// Returns the number.
    pub const fn get(self) -> u32 {
        // CAST: widening; `From` is not const.
        self.0 as u32
    }

    /// Returns the number as an index.
    pub const fn index(self) -> usize {
        // CAST: widening; `From` is not const.
        self.0 as usize
    }

    /// Returns the bit of this segment in a segment mask of the interface.
    pub const fn bit(self) -> u32 {
        1 << self.0
    }
}

/// A physical place: a segment and a byte offset inside it (SEG-12).
///
/// In [`SegmentId::SYSTEM`] the offset is a guest physical address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The segment.
    pub segment: SegmentId,
    /// Bytes from the start of the segment.
    pub offset: u64,
}

impl Place {
    /// Returns the place with this offset in `segment`.
    pub const fn new(segment: SegmentId, offset: u64) -> Self {
        Self { segment, offset }
    }

    /// Returns the place `bytes` further on.
    pub const fn forward(self, bytes: u64) -> Self {
        Self::new(self.segment, self.offset.wrapping_add(bytes))
    }
}

/// A stretch of consecutive addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where it begins.
    pub place: Place,
    /// How long it is.
    pub bytes: u64,
}

impl Run {
    /// Returns the run of `bytes` at `place`.
    pub const fn new(place: Place, bytes: u64) -> Self {
        Self { place, bytes }
    }

    /// Returns the offsets it covers, half-open.
    pub const fn offsets(self) -> Range<u64> {
        self.place.offset..self.place.offset.wrapping_add(self.bytes)
    }
}

/// An address in a GPU virtual address space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuVirtualAddress(pub u64);

impl GpuVirtualAddress {
    /// Returns the address `bytes` further on.
    pub const fn forward(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

/// The page of a leaf entry of a page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageSize {
    /// 4 KiB.
    Small,
    /// 64 KiB.
    Large,
}

impl PageSize {
    /// Returns how many bits of an address it leaves to the offset in the page.
    pub const fn shift(self) -> u32 {
        match self {
            PageSize::Small => 12,
            PageSize::Large => 16,
        }
    }

    /// Returns its length.
    pub const fn bytes(self) -> u64 {
        1 << self.shift()
    }
}

/// A value of a monitored fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FenceValue(pub u64);

/// The number of a node, counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeOrdinal(pub u32);

impl NodeOrdinal {
    /// Returns the ordinal as an index.
    pub const fn index(self) -> usize {
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.0 as usize
    }
}

impl fmt::Display for NodeOrdinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
