// SPDX-License-Identifier: GPL-2.0

//! Page tables as the engine reads them.
//!
//! Tables are arrays of 64-bit entries in memory of a segment, aligned to 4 KiB. Every level takes
//! nine bits of an address but the root of two levels, which takes all that are left and has as many
//! entries as the context was told, and a leaf of large pages, which takes five.

use core::ops::RangeInclusive;

use super::memory::Memory;
use crate::{
    backend::{
        address,
        page_table::{
            span,
            Entry,
            Rights,
            Root,
            ENTRY_BYTES, //
        }, //
    },
    units::{
        GpuVirtualAddress,
        PageSize,
        Place,
        PAGE_BYTES, //
    }, //
};

/// How many entries the root of two levels can have.
pub(super) const RESIZABLE_ROOT: RangeInclusive<u32> = 512..=16384;

/// How many entries every other table has.
pub(super) const FIXED_ROOT: RangeInclusive<u32> = 512..=512;

/// The bits of driver protection that have room in an entry.
pub(super) const DRIVER_BITS: u64 = 0xf;

/// The entry is in force.
const VALID: u64 = 1 << 0;
/// Reads give zero, writes vanish.
const ZERO: u64 = 1 << 1;
/// Writing is allowed.
const WRITE: u64 = 1 << 2;
/// Commands may be fetched.
const EXECUTE: u64 = 1 << 3;
/// The next table is a leaf of large pages.
const LARGE: u64 = 1 << 4;
/// Driver protection begins here.
const DRIVER_SHIFT: u32 = 8;
/// The place of a page or table, and its segment.
const PLACE: u64 = !(PAGE_BYTES - 1);

/// Bits of the index of a table but the root of two levels.
const INDEX_BITS: u32 = 9;

/// Returns what stands in memory for `entry`.
pub(super) fn encode(entry: Entry) -> u64 {
    let bit = |set, bit| if set { bit } else { 0 };
    match entry {
        Entry::Invalid => 0,
        Entry::Zero => VALID | ZERO,
        Entry::Page { place, rights } => {
            VALID
                | address::address(place) & PLACE
                | bit(rights.write, WRITE)
                | bit(rights.execute, EXECUTE)
                | (rights.driver & DRIVER_BITS) << DRIVER_SHIFT
        }
        Entry::Table { place, leaves } => {
            VALID | address::address(place) & PLACE | bit(leaves == PageSize::Large, LARGE)
        }
    }
}

/// Returns what an entry at `level` says; one whose segment cannot exist is invalid.
pub(super) fn decode(word: u64, level: u32) -> Entry {
    if word & VALID == 0 {
        return Entry::Invalid;
    }
    if word & ZERO != 0 {
        return Entry::Zero;
    }
    match (address::place(word & PLACE), level) {
        (None, _) => Entry::Invalid,
        (Some(place), 0) => Entry::Page {
            place,
            rights: Rights {
                write: word & WRITE != 0,
                execute: word & EXECUTE != 0,
                driver: word >> DRIVER_SHIFT & DRIVER_BITS,
            },
        },
        (Some(place), _) => Entry::Table {
            place,
            leaves: if word & LARGE != 0 {
                PageSize::Large
            } else {
                PageSize::Small
            },
        },
    }
}

/// What a walk through the tables found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    /// The entry at the end: that of a page, a zero entry or an invalid one.
    pub(super) found: Found,
    /// How many entries were read.
    pub(super) reads: u32,
}

/// What stands at the end of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing: the access faults.
    Invalid,
    /// Zeros, in the 4 KiB around the address at least.
    Zero,
    /// A page.
    Page {
        /// Where it begins.
        place: Place,
        /// How large it is.
        page: PageSize,
        /// What it may be used for.
        rights: Rights,
    },
}

/// Walks the tables of `levels` levels below `root`.
pub(super) fn walk(memory: &Memory, levels: u32, root: Root, address: GpuVirtualAddress) -> Walk {
    let mut table = root.place;
    let mut entries = u64::from(root.entries);
    let mut leaves = PageSize::Small;
    let mut reads = 0;
    for level in (0..levels).rev() {
        // The root takes all bits that are left, so an address beyond the space has no entry.
        let index = address.0 / span(level, leaves) % index_end(level, levels, leaves);
        if index >= entries {
            break;
        }
        let place = table.forward(index * ENTRY_BYTES);
        reads += 1;
        let inside = memory.contains(place, ENTRY_BYTES);
        let word = inside.then(|| memory.load(place)).flatten().unwrap_or(0);
        let found = match decode(word, level) {
            Entry::Invalid => break,
            Entry::Zero => Found::Zero,
            Entry::Page { place, rights } => Found::Page {
                place,
                page: leaves,
                rights,
            },
            Entry::Table {
                place,
                leaves: next,
            } => {
                table = place;
                leaves = if level == 1 { next } else { PageSize::Small };
                entries = match leaves {
                    PageSize::Small => 1 << INDEX_BITS,
                    PageSize::Large => span(1, leaves) / leaves.bytes(),
                };
                continue;
            }
        };
        return Walk { found, reads };
    }
    Walk {
        found: Found::Invalid,
        reads,
    }
}

/// Returns the end of what an index at `level` can be.
const fn index_end(level: u32, levels: u32, leaves: PageSize) -> u64 {
    if level + 1 == levels {
        u64::MAX
    } else if level == 0 {
        span(1, leaves) / leaves.bytes()
    } else {
        1 << INDEX_BITS
    }
}
