// SPDX-License-Identifier: GPL-2.0

//! What is random in a test of portions.

use std::ops::Range;

use proptest::prelude::*;

/// How many slots there are.
pub const SLOTS: u32 = 4;
/// Bytes of the smallest page.
pub const PAGE: u64 = 4096;

/// What an allocation is like.
#[derive(Clone, Debug)]
pub struct Kind {
    pub pages: u64,
    pub align: u64,
    pub segments: u32,
    /// Where it lies at first, if there is room.
    pub first: Option<(u32, u32)>,
    /// Whether others need it where it is.
    pub fast: bool,
}

/// Somebody else in memory.
#[derive(Clone, Debug)]
pub struct Tenant {
    pub segment: u32,
    pub run: Range<u32>,
    pub stays: bool,
}

/// Everything that is random.
#[derive(Clone, Debug)]
pub struct Story {
    /// Pages, bytes of a page in pages of 4 KiB, pages that may be in use.
    pub areas: Vec<(u32, u64, u32)>,
    pub kinds: Vec<Kind>,
    /// Slot, element (the last number is none), steps from the entry before.
    pub entries: Vec<(u32, u32, u32)>,
    /// Others that come before each portion, where there is room.
    pub tenants: Vec<Vec<Tenant>>,
    /// Bytes behind the last split offset.
    pub tail: u32,
}

fn kind(aligned: bool) -> impl Strategy<Value = Kind> {
    let align = if aligned { 0..3_u32 } else { 0..1_u32 };
    let first = prop::option::of((0..2_u32, 0..10_u32));
    (
        1..=6_u64,
        align,
        1..=3_u32,
        first,
        prop::bool::weighted(0.1),
    )
        .prop_map(|(pages, align, mask, first, fast)| Kind {
            pages,
            align: PAGE << align,
            segments: mask << 1,
            first,
            fast,
        })
}

fn tenant() -> impl Strategy<Value = Tenant> {
    (1..=2_u32, 0..10_u32, 1..=3_u32, prop::bool::weighted(0.25)).prop_map(
        |(segment, start, pages, stays)| Tenant {
            segment,
            run: start..start + pages,
            stays,
        },
    )
}

/// Stories, with alignments above a page if `aligned`.
pub fn story(aligned: bool) -> impl Strategy<Value = Story> {
    let areas = prop::collection::vec((1..=9_u32, 1..=2_u64, 4..=9_u32), 2);
    let kinds = prop::collection::vec(kind(aligned), 1..=5);
    let entry = (0..SLOTS, 0..6_u32, 0..3_u32);
    let entries = prop::collection::vec(entry, 1..=12);
    let tenants = prop::collection::vec(prop::collection::vec(tenant(), 0..4), 1..5);
    (areas, kinds, entries, tenants, 0..3_u32).prop_map(|(areas, kinds, entries, tenants, tail)| {
        Story {
            areas,
            kinds,
            entries,
            tenants,
            tail,
        }
    })
}
