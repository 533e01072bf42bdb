// SPDX-License-Identifier: GPL-2.0

//! Parts of tables against a walk that takes each page by itself, as the hardware does.

use std::collections::BTreeMap;

use policy::policy::page_table::{
    cut,
    entry_bytes,
    parts,
    permits_large,
    Entries,
    Part,
    Shape, //
};
use policy::units::{
    GpuVirtualAddress,
    PageSize,
    Place,
    Run,
    SegmentId,
    PAGE_BYTES, //
};
use proptest::prelude::*;

mod soak;

fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![Just(Shape::Two), Just(Shape::Four)]
}

fn entries(shape: Shape) -> impl Strategy<Value = Entries> {
    prop_oneof![
        Just(Entries::Pages(PageSize::Small)),
        Just(Entries::Pages(PageSize::Large)),
        (1..shape.levels()).prop_map(Entries::Tables),
    ]
}

/// Ranges near the edges of tables of every level, not longer than a few leaves.
fn ranges(shape: Shape) -> impl Strategy<Value = (u64, u64)> {
    let edge = (0..shape.levels() + 1, 0..600_u64);
    (edge, -2000_i64..2000, 0..3000_u64).prop_map(move |((level, count), pages, length)| {
        let edge = entry_bytes(level).saturating_mul(count).min(shape.end().0);
        let start = edge.saturating_add_signed(pages * PAGE_BYTES as i64);
        (start, start.saturating_add(length * PAGE_BYTES))
    })
}

/// The table and the index in it that translate an address, by the bits of the address.
fn walk(shape: Shape, entries: Entries, address: u64) -> (u64, u32) {
    let (shift, bits) = match entries {
        Entries::Pages(PageSize::Large) => (16, 5),
        Entries::Pages(PageSize::Small) => (12, 9),
        Entries::Tables(level) if level == shape.root() => (12 + 9 * level, 64 - 12 - 9 * level),
        Entries::Tables(level) => (12 + 9 * level, 9),
    };
    let index = address >> shift & ((1 << bits) - 1);
    let table = if shift + bits >= 64 {
        0
    } else {
        address >> (shift + bits) << (shift + bits)
    };
    (table, index as u32)
}

#[test]
fn parts_are_the_entries_of_each_page() {
    let cases = shapes().prop_flat_map(|shape| (Just(shape), entries(shape), ranges(shape)));
    soak::check(1000, cases, |(shape, entries, (start, end))| {
        let end = end.min(shape.end().0);
        let mut expected = BTreeMap::<u64, Vec<u32>>::new();
        for address in (start..end).step_by(PAGE_BYTES as usize) {
            let (table, index) = walk(shape, entries, address);
            let indices = expected.entry(table).or_default();
            if indices.last() != Some(&index) {
                indices.push(index);
            }
        }
        let found: Vec<Part> = parts(shape, entries, start..end).collect();
        prop_assert_eq!(found.len(), expected.len());
        for (part, (table, indices)) in found.iter().zip(expected) {
            prop_assert_eq!(part.table.0, table);
            prop_assert!((part.first..part.first + part.count).eq(indices));
            prop_assert_eq!(walk(shape, entries, part.address.0), (table, part.first));
            prop_assert_eq!(part.bytes, u64::from(part.count) * entries.bytes());
        }
        Ok(())
    });
}

#[test]
fn span_is_what_leads_to_the_same_table() {
    let cases = shapes().prop_flat_map(|shape| (Just(shape), 0..shape.levels(), ranges(shape)));
    soak::check(500, cases, |(shape, level, (address, _))| {
        let address = address.min(shape.end().0 - 1);
        let span = shape.span(level, GpuVirtualAddress(address));
        prop_assert!(span.contains(&address));
        let entries = match level {
            0 => Entries::Pages(PageSize::Small),
            level => Entries::Tables(level),
        };
        prop_assert_eq!(walk(shape, entries, span.start).0, span.start);
        prop_assert_eq!(walk(shape, entries, span.end - 1).0, span.start);
        if span.end < shape.end().0 {
            prop_assert_eq!(walk(shape, entries, span.end).0, span.end);
        }
        Ok(())
    });
}

/// Runs of up to three large pages, in order of nothing.
fn runs() -> impl Strategy<Value = Vec<Run>> {
    let run = (0..64_u64, 1..40_u64).prop_map(|(page, pages)| {
        let place = Place::new(SegmentId::SYSTEM, page * PAGE_BYTES);
        Run::new(place, pages * PAGE_BYTES)
    });
    prop::collection::vec(run, 0..6)
}

/// Where each page of runs is.
fn pages(runs: impl Iterator<Item = Run>) -> Vec<u64> {
    runs.flat_map(|run| run.offsets().step_by(PAGE_BYTES as usize))
        .collect()
}

#[test]
fn cut_runs_have_the_pages_of_the_range() {
    soak::check(
        1000,
        (runs(), 0..250_usize, 0..250_usize),
        |(runs, start, end)| {
            let all = pages(runs.iter().copied());
            let range = start as u64 * PAGE_BYTES..end as u64 * PAGE_BYTES;
            let found: Vec<Run> = cut(runs.into_iter(), range).collect();
            let expected: &[u64] = all.get(start..end.min(all.len())).unwrap_or_default();
            prop_assert_eq!(pages(found.iter().copied()), expected);
            prop_assert!(found.iter().all(|run| run.bytes > 0));
            Ok(())
        },
    );
}

#[test]
fn large_pages_are_permitted_where_each_is_one_aligned_stretch() {
    soak::check(1000, (runs(), 0..4_u64), |(mut runs, page)| {
        // Whole large pages are rare by chance.
        for run in &mut runs {
            if run.bytes > 20 * PAGE_BYTES {
                let large = PageSize::Large.bytes();
                *run = Run::new(
                    Place::new(SegmentId::SYSTEM, run.place.offset * 16),
                    run.bytes.next_multiple_of(large),
                );
            }
        }
        let address = GpuVirtualAddress(page * 4 * PAGE_BYTES);
        let aligned = runs.iter().all(|run| {
            let of_large = pages([*run].into_iter());
            let whole = of_large
                .chunks(16)
                .all(|chunk| chunk.len() == 16 && chunk[0] % (16 * PAGE_BYTES) == 0);
            whole
        });
        let expected = address.0 % (16 * PAGE_BYTES) == 0 && aligned;
        prop_assert_eq!(permits_large(address, runs.into_iter()), expected);
        Ok(())
    });
}
