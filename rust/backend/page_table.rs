// SPDX-License-Identifier: GPL-2.0

//! What the core says about page tables: what an entry means, and how entries change.
//!
//! A table is memory of a segment. Level 0 is a *leaf*, whose entries are pages of 4 KiB or 64 KiB;
//! above it entries name the tables of the next lower level, and the table at the top is the *root*,
//! by whose place an address space is known. How entries are laid out is the business of the
//! backend.

use super::operation::total;
use crate::units::{
    GpuVirtualAddress,
    PageSize,
    Place,
    Run, //
};

/// Bytes of an entry in memory.
pub(crate) const ENTRY_BYTES: u64 = 8;

/// Levels whose entries cover what nine more bits of an address do.
const INDEX_BITS: u32 = 9;

/// Bits of an address below the entries of the level above a leaf.
const LEAF_SHIFT: u32 = 21;

/// What a page may be used for beside reading, which is always allowed (VA-16).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    /// Whether it may be written.
    pub(crate) write: bool,
    /// Whether commands may be fetched from it.
    pub(crate) execute: bool,
    /// Passed through for the GPU; an engine keeps what it has room for.
    pub(crate) driver: u64,
}

/// What an entry of a page table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Every access faults.
    Invalid,
    /// Reads give zero and writes vanish; at a higher level in all of what the entry covers.
    Zero,
    /// A page, in a leaf only.
    Page {
        /// Where it is, aligned to its size.
        place: Place,
        /// What it may be used for.
        rights: Rights,
    },
    /// The table of the next lower level, above a leaf only.
    Table {
        /// Where it is, aligned to 4 KiB.
        place: Place,
        /// The pages of its entries, if it is a leaf.
        leaves: PageSize,
    },
}

/// The entries that are written, from the first one on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entries<'a> {
    /// One entry again and again.
    Repeat {
        /// The entry.
        entry: Entry,
        /// How often.
        count: u32,
    },
    /// One entry for each page of the runs, in order; all of them whole and aligned pages.
    Pages {
        /// The pages.
        runs: &'a [Run],
        /// What they may be used for.
        rights: Rights,
    },
    /// These entries.
    Each(&'a [Entry]),
}

/// A page table that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// Where it is.
    pub(crate) place: Place,
    /// Where the paging process sees it; [`None`] if it is named by its place (PAG-18).
    pub(crate) window: Option<GpuVirtualAddress>,
}

/// When in the life of a table its entries are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// At its beginning: the memory held something else before.
    Initialise,
    /// While it is in force.
    Normal,
}

/// A change of consecutive entries of one table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Update<'a> {
    /// The table.
    pub(crate) table: Table,
    /// Its level, 0 for a leaf.
    pub(crate) level: u32,
    /// The pages of its entries, if it is a leaf.
    pub(crate) page: PageSize,
    /// Index of the first entry.
    pub(crate) first: u32,
    /// The first address that the first entry translates.
    pub(crate) address: GpuVirtualAddress,
    /// The root of the space.
    pub(crate) root: Place,
    /// When in the life of the table.
    pub(crate) phase: Phase,
    /// What is written.
    pub(crate) entries: Entries<'a>,
}

impl Rights {
    /// Returns the bits of VA_MAP: 0 to write, 1 to execute.
    pub(crate) const fn protection(self) -> u64 {
        // CAST: widening; `From` is not const.
        self.write as u64 | (self.execute as u64) << 1
    }
}

impl Entry {
    /// Returns the place it names.
    pub(crate) const fn place(self) -> Option<Place> {
        match self {
            Entry::Page { place, .. } | Entry::Table { place, .. } => Some(place),
            Entry::Invalid | Entry::Zero => None,
        }
    }

    /// Returns what its page may be used for.
    pub(crate) fn rights(self) -> Rights {
        match self {
            Entry::Page { rights, .. } => rights,
            _ => Rights::default(),
        }
    }
}

impl Update<'_> {
    /// Returns how many entries are written.
    pub(crate) fn count(&self) -> u64 {
        match self.entries {
            Entries::Repeat { count, .. } => count.into(),
            Entries::Pages { runs, .. } => total(runs) >> self.page.shift(),
            // CAST: `usize` has 64 bits wherever this driver runs.
            Entries::Each(entries) => entries.len() as u64,
        }
    }

    /// Returns how many bytes of addresses one entry covers.
    pub(crate) const fn span(&self) -> u64 {
        span(self.level, self.page)
    }

    /// Returns how many bytes of addresses the entries cover.
    pub(crate) fn bytes(&self) -> u64 {
        self.count().saturating_mul(self.span())
    }

    /// Calls `write` with each entry, in order.
    pub(crate) fn try_for_each<E>(
        &self,
        mut write: impl FnMut(Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.entries {
            Entries::Repeat { entry, count } => (0..count).try_for_each(|_| write(entry)),
            Entries::Pages { runs, rights } => runs.iter().try_for_each(|run| {
                (0..run.bytes >> self.page.shift()).try_for_each(|page| {
                    let place = run.place.forward(page << self.page.shift());
                    write(Entry::Page { place, rights })
                })
            }),
            Entries::Each(entries) => entries.iter().try_for_each(|entry| write(*entry)),
        }
    }

    /// Returns the entry number `index` of those that are written.
    pub(crate) fn entry(&self, index: u64) -> Option<Entry> {
        match self.entries {
            Entries::Repeat { entry, count } => (index < count.into()).then_some(entry),
            Entries::Pages { runs, rights } => {
                let mut skip = index.checked_mul(self.page.bytes())?;
                let run = runs.iter().find(|run| {
                    let inside = skip < run.bytes;
                    skip -= if inside { 0 } else { run.bytes };
                    inside
                })?;
                let place = run.place.forward(skip);
                Some(Entry::Page { place, rights })
            }
            Entries::Each(entries) => entries.get(usize::try_from(index).ok()?).copied(),
        }
    }
}

/// Returns how many bytes of addresses an entry at `level` covers; `page` is the page of a leaf.
pub(crate) const fn span(level: u32, page: PageSize) -> u64 {
    match level {
        0 => page.bytes(),
        // OVERFLOW: four levels at most.
        _ => 1 << (LEAF_SHIFT + INDEX_BITS * (level - 1)),
    }
}

/// The root of an address space, as a context is told (VA-12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// Where it is.
    pub(crate) place: Place,
    /// How many entries it has; an index at or beyond that faults.
    pub(crate) entries: u32,
}
