// SPDX-License-Identifier: GPL-2.0

//! Which tables translate a range of GPU virtual addresses, and which of their entries.
//!
//! A table is an array of entries. Level 0 is the *leaf*, whose entries are pages; an entry above
//! stands for a table of the level below. What an entry of a level translates depends on the level
//! alone ([`entry_bytes`]), so a table is named by its level and the first address it translates. A
//! leaf has pages of one size: 512 small ones, or 32 large ones.
//!
//! [`parts`] cuts a range into consecutive entries of one table each, which is what one operation
//! of the hardware can write (PAG-19). [`permits_large`] says whether large pages could show a
//! mapping. [`Shape`] says how many levels there are, how far they reach, and how many entries the
//! root needs to reach so far: with two levels it grows (VA-13).
//!
//! Nothing here knows what is mapped; that is [`super::mapping`].

use core::ops::Range;

use crate::units::{
    GpuVirtualAddress,
    PageSize,
    Run,
    PAGE_BYTES, //
};

/// Entries of a table, but for the root of two levels and leaves of large pages.
pub const TABLE_ENTRIES: u32 = 512;

/// Bits of the address that select an entry of such a table.
const TABLE_BITS: u32 = TABLE_ENTRIES.trailing_zeros();

/// Bytes that one leaf translates.
pub const LEAF_BYTES: u64 = entry_bytes(1);

/// The most entries that the root of two levels can grow to.
const MOST_ROOT_ENTRIES: u32 = 16384;

/// Returns the bytes that one entry of a table of this level translates; in a leaf a small page.
pub const fn entry_bytes(level: u32) -> u64 {
    PAGE_BYTES.wrapping_shl(TABLE_BITS.wrapping_mul(level))
}

/// Returns the entries of a leaf.
pub const fn leaf_entries(page: PageSize) -> u32 {
    match page {
        PageSize::Small => TABLE_ENTRIES,
        PageSize::Large => 32,
    }
}

/// How many levels the tables of an address space have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Leaves below a root that grows.
    Two,
    /// Four levels of tables of fixed size.
    Four,
}

impl Shape {
    /// Returns the shape with so many levels, if there is one.
    pub const fn new(levels: u32) -> Option<Self> {
        match levels {
            2 => Some(Self::Two),
            4 => Some(Self::Four),
            _ => None,
        }
    }

    /// Returns the number of levels.
    pub const fn levels(self) -> u32 {
        match self {
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// Returns the level of the root.
    pub const fn root(self) -> u32 {
        self.levels().wrapping_sub(1)
    }

    /// Returns the end of the addresses that the tables can translate.
    pub const fn end(self) -> GpuVirtualAddress {
        GpuVirtualAddress(self.reach(match self {
            Self::Two => MOST_ROOT_ENTRIES,
            Self::Four => TABLE_ENTRIES,
        }))
    }

    /// Returns the bytes that a root of so many entries translates.
    pub const fn reach(self, root_entries: u32) -> u64 {
        // CAST: widening; `From` is not const.
        entry_bytes(self.root()).wrapping_mul(root_entries as u64)
    }

    /// Returns the entries of a root that reaches to `end`: a power of two between the least and the
    /// most a root can have. [`None`] if that is beyond [`end`](Self::end).
    ///
    /// Requirement: VA-13.
    pub fn root_entries(self, end: GpuVirtualAddress) -> Option<u32> {
        if end > self.end() {
            return None;
        }
        let needed = end.0.div_ceil(entry_bytes(self.root()));
        let entries = u32::try_from(needed).ok()?.checked_next_power_of_two()?;
        Some(entries.max(TABLE_ENTRIES))
    }

    /// Returns the range of addresses that the table of `level` translates which translates
    /// `address`. A root translates everything.
    pub fn span(self, level: u32, address: GpuVirtualAddress) -> Range<u64> {
        if level >= self.root() {
            return 0..self.end().0;
        }
        let bytes = entry_bytes(level.wrapping_add(1));
        let start = address.0 & !bytes.wrapping_sub(1);
        start..start.saturating_add(bytes)
    }
}

/// Consecutive entries of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The first address that the table translates.
    pub table: GpuVirtualAddress,
    /// The first entry.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// The first address that these entries translate.
    pub address: GpuVirtualAddress,
    /// The bytes that they translate.
    pub bytes: u64,
}

/// Entries of which kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// Pages, in leaves.
    Pages(PageSize),
    /// Tables of the level below this one, which is not a leaf.
    Tables(u32),
}

impl Entries {
    /// Returns the level of the tables that have such entries.
    pub const fn level(self) -> u32 {
        match self {
            Self::Pages(_) => 0,
            Self::Tables(level) => level,
        }
    }

    /// Returns the bytes that an entry translates.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Pages(page) => page.bytes(),
            Self::Tables(level) => entry_bytes(level),
        }
    }
}

/// Cuts a range of addresses into consecutive entries of one table each, in ascending order.
///
/// Entries that translate a part of the range only are whole entries of the answer. So the range is
/// a multiple of the entries' size where what they translate must be neither more nor less.
///
/// Requirement: PAG-19.
pub fn parts(
    shape: Shape,
    entries: Entries,
    range: Range<u64>,
) -> impl Iterator<Item = Part> + Clone {
    let bytes = entries.bytes();
    let mask = bytes.wrapping_sub(1);
    let end = range.end.min(shape.end().0);
    let start = range.start & !mask;
    let mut rest = start..if range.start < end { end } else { start };
    core::iter::from_fn(move || {
        if rest.start >= rest.end {
            return None;
        }
        let span = shape.span(entries.level(), GpuVirtualAddress(rest.start));
        let end = rest.end.min(span.end);
        let first = rest.start.wrapping_sub(span.start) / bytes;
        let count = end.wrapping_sub(rest.start).div_ceil(bytes);
        let part = Part {
            table: GpuVirtualAddress(span.start),
            first: u32::try_from(first).ok()?,
            count: u32::try_from(count).ok()?,
            address: GpuVirtualAddress(rest.start),
            bytes: count.wrapping_mul(bytes),
        };
        rest.start = span.end;
        Some(part)
    })
}

/// Returns whether large pages could show `runs` at `address`: the addresses and the places begin
/// and end at multiples of a large page, each run by itself.
///
/// Requirement: VA-22.
pub fn permits_large(address: GpuVirtualAddress, runs: impl Iterator<Item = Run>) -> bool {
    let whole = |value: u64| value % PageSize::Large.bytes() == 0;
    let mut runs = runs;
    whole(address.0) && runs.all(|run| whole(run.place.offset) && whole(run.bytes))
}

/// Cuts `range`, in bytes from the beginning, out of runs that follow each other.
pub fn cut(
    runs: impl Iterator<Item = Run> + Clone,
    range: Range<u64>,
) -> impl Iterator<Item = Run> + Clone {
    let mut before: u64 = 0;
    runs.filter_map(move |run| {
        let start = before;
        before = before.saturating_add(run.bytes);
        let from = range.start.max(start).wrapping_sub(start);
        let to = range.end.min(before).saturating_sub(start);
        (from < to).then(|| Run::new(run.place.forward(from), to.wrapping_sub(from)))
    })
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_page_table))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::super::super::units::{
        Place,
        SegmentId, //
    };
    use super::*;

    const GIB: u64 = 1 << 30;
    const LARGE_BYTES: u64 = PageSize::Large.bytes();

    fn run(offset: u64, bytes: u64) -> Run {
        Run::new(Place::new(SegmentId::SYSTEM, offset), bytes)
    }

    fn small(range: Range<u64>) -> impl Iterator<Item = Part> {
        parts(Shape::Two, Entries::Pages(PageSize::Small), range)
    }

    #[test]
    fn levels_are_two_or_four() {
        assert_eq!(Shape::new(2), Some(Shape::Two));
        assert_eq!(Shape::new(4), Some(Shape::Four));
        assert!([0, 1, 3, 5]
            .into_iter()
            .all(|levels| Shape::new(levels).is_none()));
    }

    #[test]
    fn shapes_reach_as_far_as_the_engine() {
        assert_eq!(Shape::Two.end().0, 32 * GIB);
        assert_eq!(Shape::Four.end().0, 256 * 1024 * GIB);
        assert_eq!(Shape::Two.reach(512), GIB);
    }

    #[test]
    fn root_of_two_levels_grows_in_powers_of_two() {
        let entries = |end| Shape::Two.root_entries(GpuVirtualAddress(end));
        assert_eq!(entries(0), Some(512));
        assert_eq!(entries(GIB), Some(512));
        assert_eq!(entries(GIB + 1), Some(1024));
        assert_eq!(entries(5 * GIB), Some(4096));
        assert_eq!(entries(32 * GIB), Some(16384));
        assert_eq!(entries(32 * GIB + 1), None);
    }

    #[test]
    fn root_of_four_levels_is_fixed() {
        let entries = |end| Shape::Four.root_entries(GpuVirtualAddress(end));
        assert_eq!(entries(0), Some(512));
        assert_eq!(entries(Shape::Four.end().0), Some(512));
        assert_eq!(entries(u64::MAX), None);
    }

    #[test]
    fn range_inside_a_leaf_is_one_part() {
        let only = Part {
            table: GpuVirtualAddress(LEAF_BYTES),
            first: 3,
            count: 2,
            address: GpuVirtualAddress(LEAF_BYTES + 3 * PAGE_BYTES),
            bytes: 2 * PAGE_BYTES,
        };
        let start = LEAF_BYTES + 3 * PAGE_BYTES;
        assert!(small(start..start + 2 * PAGE_BYTES).eq([only]));
    }

    #[test]
    fn range_across_leaves_is_cut_where_they_meet() {
        let mut found = small(LEAF_BYTES - PAGE_BYTES..3 * LEAF_BYTES + PAGE_BYTES);
        let mut next = || found.next().map(|part| (part.first, part.count));
        assert_eq!(next(), Some((511, 1)));
        assert_eq!(next(), Some((0, 512)));
        assert_eq!(next(), Some((0, 512)));
        assert_eq!(next(), Some((0, 1)));
        assert_eq!(next(), None);
    }

    #[test]
    fn empty_range_has_no_part() {
        assert_eq!(small(PAGE_BYTES..PAGE_BYTES).count(), 0);
        assert_eq!(small(Shape::Two.end().0..u64::MAX).count(), 0);
    }

    #[test]
    fn large_pages_are_counted_in_their_size() {
        let mut found = parts(
            Shape::Two,
            Entries::Pages(PageSize::Large),
            LEAF_BYTES + LARGE_BYTES..2 * LEAF_BYTES,
        );
        let part = found.next().unwrap();
        assert_eq!((part.first, part.count), (1, 31));
        assert!(found.next().is_none());
    }

    #[test]
    fn table_entries_cover_what_the_range_touches() {
        let range = LEAF_BYTES + 1..LEAF_BYTES + 2;
        let part = parts(Shape::Two, Entries::Tables(1), range).next().unwrap();
        assert_eq!((part.table.0, part.first, part.count), (0, 1, 1));
        let far = GIB * 700..GIB * 700 + LEAF_BYTES;
        let part = parts(Shape::Four, Entries::Tables(3), far.clone())
            .next()
            .unwrap();
        assert_eq!((part.table.0, part.first, part.count), (0, 1, 1));
        let part = parts(Shape::Four, Entries::Tables(2), far).next().unwrap();
        assert_eq!((part.table.0, part.first, part.count), (512 * GIB, 188, 1));
    }

    #[test]
    fn large_pages_need_aligned_addresses_and_places() {
        let permits =
            |address, runs: &[Run]| permits_large(GpuVirtualAddress(address), runs.iter().copied());
        assert!(permits(
            LARGE_BYTES,
            &[run(0, LARGE_BYTES), run(5 * LARGE_BYTES, LARGE_BYTES)]
        ));
        assert!(!permits(PAGE_BYTES, &[run(0, LARGE_BYTES)]));
        assert!(!permits(0, &[run(PAGE_BYTES, LARGE_BYTES)]));
        assert!(!permits(0, &[run(0, PAGE_BYTES)]));
    }

    #[test]
    fn runs_are_cut_at_both_ends() {
        let runs = [run(100, 10), run(300, 20), run(500, 30)];
        assert!(cut(runs.into_iter(), 5..35).eq([run(105, 5), run(300, 20), run(500, 5)]));
        assert!(cut(runs.into_iter(), 10..30).eq([run(300, 20)]));
        assert!(cut(runs.into_iter(), 60..70).eq([]));
    }
}
