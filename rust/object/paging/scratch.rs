// SPDX-License-Identifier: GPL-2.0

//! The scratch area: addresses of the paging process that show what work is about.
//!
//! An engine with an MMU reads and writes memory through addresses, and so do the paging operations
//! that move content on it. For each piece of work the worker takes ranges of the scratch area, lets
//! their entries name the memory in question, and gives the ranges back when the paging buffer that
//! used them is complete ([`crate::policy::scratch`]). Entries that are not in use any more keep what
//! they say: nobody looks at them before they are written and flushed again.

use kernel::prelude::*;

use crate::{
    abstractions::trace,
    backend::{
        capabilities::UpdateMode,
        page_table::Table, //
    },
    object::paging_process::Space,
    policy::{
        page_table::LEAF_BYTES,
        scratch::{
            Part,
            Purpose,
            Ring,
            Taken, //
        },
    },
    units::{
        GpuVirtualAddress,
        Place,
        PAGE_BYTES, //
    },
};

/// Ranges that can be in use at one time.
const RANGES: usize = 2048;

/// The scratch area of the paging process.
pub(super) struct Scratch {
    /// The space in which it lies.
    pub(super) space: u64,
    /// The process that has the space.
    pub(super) process: u64,
    /// The root of the space.
    pub(super) root: Place,
    start: GpuVirtualAddress,
    pages: u32,
    /// Its leaf tables, in order.
    leaves: KVec<Place>,
    /// Where the first of them is seen; [`None`] if tables are named by their places.
    window: Option<GpuVirtualAddress>,
}

/// An entry of a leaf table of the scratch area.
pub(super) struct Slot {
    /// The table.
    pub(super) table: Table,
    /// The index of the entry.
    pub(super) index: u32,
    /// Bytes that the table covers from this entry on.
    pub(super) bytes: u64,
}

impl Scratch {
    /// Returns the scratch area of a space; [`None`] if it has none.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `EINVAL`: it has more pages than can be counted.
    pub(super) fn of(space: &Space) -> Result<Option<Self>> {
        let range = &space.layout().scratch;
        if range.is_empty() {
            return Ok(None);
        }
        let mut leaves = KVec::new();
        for place in space.scratch_leaves() {
            leaves.push(place, GFP_KERNEL)?;
        }
        Ok(Some(Self {
            space: space.number(),
            process: space.process(),
            root: space.root().place,
            start: GpuVirtualAddress(range.start),
            pages: u32::try_from((range.end - range.start) / PAGE_BYTES).map_err(|_| EINVAL)?,
            leaves,
            window: match space.mode() {
                UpdateMode::GpuVirtual => Some(GpuVirtualAddress(space.layout().window.start)),
                UpdateMode::GpuPhysical | UpdateMode::CpuVirtual => None,
            },
        }))
    }

    /// Returns the books of its ranges.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn ring(this: Option<&Self>) -> Result<Ring<KVVec<Taken>>> {
        Ok(match this {
            Some(scratch) => Ring::new(
                scratch.pages,
                KVVec::from_elem(Taken::UNUSED, RANGES, GFP_KERNEL)?,
            ),
            None => Ring::new(0, KVVec::new()),
        })
    }

    /// Returns the most bytes that each of `count` ranges can have at one time.
    pub(super) fn most_bytes(&self, count: u32) -> u64 {
        u64::from(self.pages / count.max(1)) * PAGE_BYTES
    }

    /// Returns whether tables are reached through addresses of the paging process.
    pub(super) fn is_seen(&self) -> bool {
        self.window.is_some()
    }

    /// Returns how many pages it has.
    pub(super) fn pages(&self) -> u32 {
        self.pages
    }

    /// Returns the address of a page.
    pub(super) fn address(&self, page: u32) -> GpuVirtualAddress {
        self.start.forward(u64::from(page) * PAGE_BYTES)
    }

    /// Returns the entry for `address`; [`None`] outside of the area.
    pub(super) fn slot(&self, address: GpuVirtualAddress) -> Option<Slot> {
        let inside = address.0.checked_sub(self.start.0)?;
        let leaf = inside / LEAF_BYTES;
        let place = *self.leaves.get(usize::try_from(leaf).ok()?)?;
        let within = inside % LEAF_BYTES;
        Some(Slot {
            table: Table {
                place,
                window: self.window.map(|window| window.forward(leaf * PAGE_BYTES)),
            },
            index: u32::try_from(within / PAGE_BYTES).ok()?,
            bytes: LEAF_BYTES - within,
        })
    }

    /// Says in the trace that ranges from `address` on are taken.
    pub(super) fn announce(&self, address: GpuVirtualAddress, parts: &[Part]) {
        let mut start = address;
        for part in parts {
            self.trace(start, *part, trace::Hold::Alloc);
            start = start.forward(u64::from(part.pages) * PAGE_BYTES);
        }
    }

    /// Says in the trace that a range is free again.
    pub(super) fn denounce(&self, taken: &Taken) {
        self.trace(self.address(taken.first), taken.part, trace::Hold::Free);
    }

    fn trace(&self, start: GpuVirtualAddress, part: Part, action: trace::Hold) {
        trace::va_range(|| trace::VaRange {
            space: self.space,
            process: self.process,
            purpose: match part.purpose {
                Purpose::Root => trace::Purpose::Root,
                Purpose::Table => trace::Purpose::Table,
                Purpose::Source => trace::Purpose::Source,
                Purpose::Destination => trace::Purpose::Destination,
            },
            start: start.0,
            size: u64::from(part.pages) * PAGE_BYTES,
            action,
        });
    }
}
