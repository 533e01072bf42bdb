// SPDX-License-Identifier: GPL-2.0

//! What lies where in the address space of the paging process.
//!
//! Page 0 is nothing. Behind it comes the *window*: one page for each leaf table of the scratch area,
//! through which the paging process sees the entries that it changes all the time. The *scratch area*
//! begins where the next leaf table does, and behind it, unless the backend names a place, the range
//! that the backend keeps for itself (VA-3, VA-9). Tables exist for everything up to the end of the
//! scratch area and never change.

use core::ops::{
    Range,
    RangeInclusive, //
};

use super::page_table::{
    entry_bytes,
    LEAF_BYTES, //
};
use crate::units::PAGE_BYTES;

/// The most levels there are.
pub const MOST_LEVELS: usize = 4;

/// What a layout is made from.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Levels of page tables, at least two.
    pub levels: u32,
    /// How many entries the root can have: powers of two.
    pub root_entries: RangeInclusive<u32>,
    /// Bytes of the scratch area, whole pages.
    pub scratch_bytes: u64,
    /// Bytes that the backend keeps for itself.
    pub reserved_bytes: u64,
    /// Where it wants them; [`None`] if it does not matter.
    pub reserved_at: Option<u64>,
}

/// What was wished for cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is more than the tables can cover.
    TooLarge,
    /// The range of the backend is no range of whole pages.
    Misaligned,
    /// The range of the backend is in use.
    InUse,
}

/// The layout of the space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Where the leaf tables of the scratch area are seen.
    pub window: Range<u64>,
    /// The scratch area.
    pub scratch: Range<u64>,
    /// What the backend keeps for itself; may be empty.
    pub reserved: Range<u64>,
    /// Entries of the root.
    pub root_entries: u32,
    /// Tables of each level, leaves first; 0 for levels that do not exist.
    pub tables: [u32; MOST_LEVELS],
}

impl Layout {
    /// Lays the space out.
    ///
    /// # Errors
    ///
    /// [`Unfit`]: it cannot be done.
    pub fn new(wish: &Wish) -> Result<Self, Unfit> {
        let leaves = wish.scratch_bytes.div_ceil(LEAF_BYTES);
        let window_end = leaves
            .checked_mul(PAGE_BYTES)
            .and_then(|bytes| bytes.checked_add(PAGE_BYTES))
            .ok_or(Unfit::TooLarge)?;
        let window = PAGE_BYTES..window_end;
        let start = window_end.next_multiple_of(LEAF_BYTES);
        let scratch = match wish.scratch_bytes {
            0 => window_end..window_end,
            bytes => start..start.checked_add(bytes).ok_or(Unfit::TooLarge)?,
        };
        let reserved = reserve(wish, scratch.end)?;
        let end = scratch.end.max(reserved.end);
        let below_root = entry_bytes(wish.levels.saturating_sub(1));
        let entries = u32::try_from(end.div_ceil(below_root))
            .ok()
            .and_then(u32::checked_next_power_of_two)
            .ok_or(Unfit::TooLarge)?
            .max(*wish.root_entries.start());
        if entries > *wish.root_entries.end() {
            return Err(Unfit::TooLarge);
        }
        let mut tables = [0; MOST_LEVELS];
        for (level, count) in (0..wish.levels).zip(&mut tables) {
            *count = match level.checked_add(1) {
                Some(above) if above < wish.levels => scratch.end.div_ceil(entry_bytes(above)),
                _ => 1,
            }
            .try_into()
            .map_err(|_| Unfit::TooLarge)?;
        }
        Ok(Self {
            window,
            scratch,
            reserved,
            root_entries: entries,
            tables,
        })
    }

    /// Returns the leaf tables of the scratch area, by their numbers among the leaves.
    pub fn scratch_leaves(&self) -> Range<u64> {
        let leaf = |address: u64| address / LEAF_BYTES;
        match self.scratch.is_empty() {
            true => 0..0,
            false => leaf(self.scratch.start)..self.scratch.end.div_ceil(LEAF_BYTES),
        }
    }
}

/// Returns the range of the backend.
fn reserve(wish: &Wish, behind: u64) -> Result<Range<u64>, Unfit> {
    let bytes = wish.reserved_bytes;
    if bytes == 0 {
        return Ok(behind..behind);
    }
    let start = match wish.reserved_at {
        Some(start) => start,
        None => behind
            .checked_next_multiple_of(LEAF_BYTES)
            .ok_or(Unfit::TooLarge)?,
    };
    if start % PAGE_BYTES != 0 || bytes % PAGE_BYTES != 0 {
        return Err(Unfit::Misaligned);
    }
    if start < behind {
        return Err(Unfit::InUse);
    }
    let end = start.checked_add(bytes).ok_or(Unfit::TooLarge)?;
    Ok(start..end)
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_paging_space))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    /// One MiB.
    const MIB: u64 = 1 << 20;

    /// Two levels with a root that can grow, and a scratch area of 32 MiB.
    fn wish() -> Wish {
        Wish {
            levels: 2,
            root_entries: 512..=16384,
            scratch_bytes: 32 * MIB,
            reserved_bytes: 0,
            reserved_at: None,
        }
    }

    #[test]
    fn window_has_a_page_for_each_leaf_of_the_scratch_area() {
        let layout = Layout::new(&wish()).unwrap();
        assert_eq!(layout.window, 4096..17 * 4096);
        assert_eq!(layout.scratch, 2 * MIB..34 * MIB);
        assert!(layout.reserved.is_empty());
        assert_eq!(layout.root_entries, 512);
        assert_eq!(layout.tables, [17, 1, 0, 0]);
        assert_eq!(layout.scratch_leaves(), 1..17);
    }

    #[test]
    fn every_level_has_tables() {
        let layout = Layout::new(&Wish {
            levels: 4,
            root_entries: 512..=512,
            ..wish()
        });
        assert_eq!(layout.unwrap().tables, [17, 1, 1, 1]);
    }

    #[test]
    fn space_without_scratch_has_one_leaf() {
        let layout = Layout::new(&Wish {
            levels: 4,
            root_entries: 512..=512,
            scratch_bytes: 0,
            ..wish()
        })
        .unwrap();
        assert_eq!(layout.tables, [1, 1, 1, 1]);
        assert!(layout.window.is_empty() && layout.scratch.is_empty());
        assert!(layout.scratch_leaves().is_empty());
    }

    #[test]
    fn large_window_pushes_the_scratch_area_back() {
        let layout = Layout::new(&Wish {
            scratch_bytes: 1 << 30,
            ..wish()
        })
        .unwrap();
        assert_eq!(layout.window.end, 513 * 4096);
        assert_eq!(layout.scratch.start, 4 * MIB);
        assert_eq!(layout.root_entries, 1024);
        assert_eq!(layout.scratch_leaves(), 2..514);
    }

    #[test]
    fn range_of_the_backend_lies_behind_the_scratch_area() {
        let layout = Layout::new(&Wish {
            reserved_bytes: 4 * MIB,
            ..wish()
        });
        assert_eq!(layout.unwrap().reserved, 34 * MIB..38 * MIB);
    }

    #[test]
    fn range_of_the_backend_must_be_free_and_aligned() {
        let at = |start, bytes| {
            Layout::new(&Wish {
                reserved_bytes: bytes,
                reserved_at: Some(start),
                ..wish()
            })
            .map(|layout| layout.reserved)
        };
        assert_eq!(at(64 * MIB, 4096), Ok(64 * MIB..64 * MIB + 4096));
        assert_eq!(at(64 * MIB + 8, 4096), Err(Unfit::Misaligned));
        assert_eq!(at(64 * MIB, 4095), Err(Unfit::Misaligned));
        assert_eq!(at(0, 4096), Err(Unfit::InUse));
        assert_eq!(at(34 * MIB - 4096, 8192), Err(Unfit::InUse));
        assert_eq!(at(u64::MAX - 4095, 8192), Err(Unfit::TooLarge));
        assert_eq!(at(1 << 35, 4096), Err(Unfit::TooLarge));
    }
}
