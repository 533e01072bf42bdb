// SPDX-License-Identifier: GPL-2.0

//! Page tables: memory of the driver's own, with a place.
//!
//! A table has a number like an allocation and shows in the trace like one, but it has neither a
//! handle nor a side in the backend, and its content is written by paging operations alone (VA-11). It
//! lies in the segment that the backend names for tables, at the high end, where it does not cut up
//! the room of clients; or in a page of system memory, which is taken when the table is made, so that
//! giving it its place takes no memory.

use kernel::prelude::*;

use crate::{
    abstractions::{
        pages::{
            Charge,
            PageBlock, //
        },
        trace, //
    },
    backend::{
        page_table::{
            Table,
            ENTRY_BYTES, //
        },
        Backend, //
    },
    object::segment::Segment,
    policy::page_table::entry_bytes,
    units::{
        GpuVirtualAddress,
        Place,
        SegmentId,
        PAGE_BYTES, //
    },
};

// What the windows need to know of a table, handed through so that they look no deeper.
pub(crate) use crate::backend::page_table::Entry;

/// What a table is made from.
#[derive(Clone, Copy)]
pub(super) struct Description {
    /// Its number among the objects of the adapter.
    pub(super) number: u64,
    /// Its level, 0 for a leaf.
    pub(super) level: u32,
    /// How many entries it has.
    pub(super) entries: u32,
    /// The first address that it translates.
    pub(super) address: GpuVirtualAddress,
    /// Where tables lie; system memory is a segment here.
    pub(super) segment: SegmentId,
    /// Who pays for it.
    pub(super) charge: Charge,
}

/// One page table.
pub(crate) struct PageTable {
    number: u64,
    level: u32,
    entries: u32,
    address: GpuVirtualAddress,
    segment: SegmentId,
    /// Its memory, if that is system memory.
    page: Option<PageBlock>,
    /// Where it is, once it has a place.
    place: Option<Place>,
}

impl PageTable {
    /// Makes a table that has no place yet.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `EINVAL`: a table in system memory is longer than a page.
    pub(super) fn new(description: &Description) -> Result<Self> {
        let bytes = u64::from(description.entries) * ENTRY_BYTES;
        let page = match description.segment {
            SegmentId::SYSTEM if bytes > PAGE_BYTES => return Err(EINVAL),
            SegmentId::SYSTEM => Some(PageBlock::new(0, description.charge)?),
            _ => None,
        };
        let table = Self {
            number: description.number,
            level: description.level,
            entries: description.entries,
            address: description.address,
            segment: description.segment,
            page,
            place: None,
        };
        table.trace(trace::Life::Create);
        Ok(table)
    }

    /// Gives it a place for good, in one of `segments`.
    ///
    /// # Errors
    ///
    /// - `ENOSPC`: there is no room.
    ///
    /// Requirement: VA-4.
    pub(super) fn settle(
        &mut self,
        segments: &mut [Segment],
        cause: trace::Cause,
    ) -> Result<Place> {
        let place = match self.own_place() {
            Some(place) => place,
            None => segments
                .iter_mut()
                .find(|segment| segment.id == self.segment)
                .and_then(|segment| segment.fix(self.bytes()))
                .ok_or(ENOSPC)?,
        };
        self.put(Some(place), cause);
        Ok(place)
    }

    /// Returns its place in a page of system memory, if it has one of its own.
    pub(super) fn own_place(&self) -> Option<Place> {
        let page = self.page.as_ref()?;
        Some(Place::new(SegmentId::SYSTEM, page.frame().address()))
    }

    /// Gives it a place, or takes it.
    pub(super) fn put(&mut self, place: Option<Place>, cause: trace::Cause) {
        let from = core::mem::replace(&mut self.place, place);
        trace::residency(|| trace::Residency {
            allocation: self.number,
            instance: 0,
            from: from.map_or(trace::Place::NOWHERE, Into::into),
            to: place.map_or(trace::Place::NOWHERE, Into::into),
            cause,
        });
    }

    /// Returns its number, unique among the objects of the adapter.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns its level, 0 for a leaf.
    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    /// Returns how many entries it has.
    pub(crate) fn entries(&self) -> u32 {
        self.entries
    }

    /// Returns the first address that it translates.
    pub(crate) fn address(&self) -> GpuVirtualAddress {
        self.address
    }

    /// Returns the first address that an entry translates.
    pub(crate) fn translates(&self, index: u32) -> GpuVirtualAddress {
        self.address
            .forward(u64::from(index) * entry_bytes(self.level))
    }

    /// Returns what an entry says at the moment, as it is in memory; [`Entry::Invalid`] without a place.
    pub(crate) fn entry(&self, backend: &dyn Backend, index: u32) -> Entry {
        self.place
            .and_then(|place| backend.entry(place, self.level, index))
            .unwrap_or(Entry::Invalid)
    }

    /// Returns where it is, if it has a place.
    pub(crate) fn place(&self) -> Option<Place> {
        self.place
    }

    /// Returns how paging operations name it: by its place, or by the address at which the paging
    /// process sees it.
    pub(super) fn named(&self, window: Option<GpuVirtualAddress>) -> Option<Table> {
        let place = self.place?;
        Some(Table { place, window })
    }

    /// Returns the length of its memory, whole pages.
    pub(super) fn bytes(&self) -> u64 {
        (u64::from(self.entries) * ENTRY_BYTES).next_multiple_of(PAGE_BYTES)
    }

    fn trace(&self, action: trace::Life) {
        trace::alloc(|| trace::Alloc {
            allocation: self.number,
            action,
            size: self.bytes(),
            flags: 0,
            cookie: 0,
        });
    }
}

impl Drop for PageTable {
    fn drop(&mut self) {
        self.trace(trace::Life::Destroy);
    }
}
