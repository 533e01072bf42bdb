// SPDX-License-Identifier: GPL-2.0

//! The contiguous part of segments: odd sizes, fragmentation, and an area that is too small.

use crate::{
    abi::{
        self,
        InfoSegment, //
    },
    client::Client,
    fixture::{
        pattern,
        physical,
        Fixture,
        KIB,
        MIB, //
    },
    module::Loaded,
    suite::Suite,
};

/// The suite. Each test loads the module by itself.
pub const SUITE: Suite = Suite {
    name: "contiguous",
    parameters: None,
    cases: crate::cases! {
        "" every_share_and_alignment_of_an_odd_segment_is_answered,
        "" runs_between_freed_blocks_belong_to_one_allocation_each,
        "" area_that_is_too_small_makes_the_part_smaller,
    },
};

/// A memory segment of 12 MiB, no power of two, all of it contiguous.
const ODD: &str = "profile=PHYS segments=memory:12M:page=4K:visible:contiguous=12M,aperture:8M";
const MEMORY: u32 = 1 << 1;

fn every_share_and_alignment_of_an_odd_segment_is_answered() {
    let _loaded = Loaded::new(ODD);
    let fixture = Fixture::new();
    for share in [51, 75, 90, 100] {
        for shift in 12..=24 {
            let mut info = physical(12 * MIB * share / 100, MEMORY);
            info.align = 1 << shift;
            // An alignment larger than the segment never fits; any other does, at its start.
            match fixture.client.try_create(fixture.device, info) {
                Err(errno) => {
                    assert_eq!(errno, libc::ENOSPC, "{share} %, 2^{shift}");
                    assert!(info.align > 12 * MIB, "{share} %, 2^{shift} is refused");
                }
                Ok(allocation) => {
                    fixture.bring_in(&allocation);
                    let placement = crate::debugfs::placement(allocation.object_id);
                    assert_eq!(placement.runs.len(), 1, "{share} %, 2^{shift}");
                    assert_eq!(placement.offset % info.align, 0, "{share} %, 2^{shift}");
                    assert_eq!(placement.frames.len(), 1, "{share} %, 2^{shift}");
                    fixture.client.close_and_wait(&[allocation.handle]);
                }
            }
        }
    }
    fixture.create_resident(physical(12 * MIB, MEMORY));
}

fn runs_between_freed_blocks_belong_to_one_allocation_each() {
    const BLOCK: u64 = 256 * KIB;
    let _loaded = Loaded::new(ODD);
    let fixture = Fixture::new();
    let make = |seed: u64, bytes: u64| {
        let allocation = fixture.create(physical(bytes, MEMORY));
        let mapping = fixture.client.map(&allocation);
        mapping.write(0, &pattern(seed, bytes));
        fixture.bring_in(&allocation);
        (seed, allocation, mapping)
    };
    let blocks: Vec<_> = (0..12 * MIB / BLOCK)
        .map(|seed| make(seed, BLOCK))
        .collect();
    let (freed, mut live): (Vec<_>, Vec<_>) =
        blocks.into_iter().partition(|(seed, ..)| seed % 2 == 1);
    // Their mappings go as well.
    let freed: Vec<u32> = freed.into_iter().map(|(_, one, _)| one.handle).collect();
    fixture.client.close_and_wait(&freed);
    for (seed, bytes) in [
        (100, BLOCK * 3 / 2),
        (101, BLOCK * 2),
        (102, BLOCK * 3),
        (103, BLOCK),
    ] {
        live.push(make(seed, bytes));
    }
    let mut frames: Vec<(u64, u64)> = Vec::new();
    for (seed, allocation, mapping) in &live {
        assert!(
            mapping.read(0, allocation.size as usize) == pattern(*seed, allocation.size),
            "allocation {seed} has changed"
        );
        let placement = crate::debugfs::placement(allocation.object_id);
        frames.extend(placement.frames.iter().map(|run| (run.start, run.end())));
    }
    frames.sort_unstable();
    for pair in frames.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "frames are shared: {pair:?}");
    }
}

fn area_that_is_too_small_makes_the_part_smaller() {
    // More than the whole area has.
    let _loaded =
        Loaded::new("profile=PHYS segments=memory:96M:page=4K:visible:contiguous=96M,aperture:8M");
    let client = Client::open();
    let segment: InfoSegment = client.query(abi::QUERY_SEGMENT, 1);
    assert_eq!(segment.size, 96 * MIB);
    assert!(segment.contiguous < 96 * MIB, "{segment:?}");
    let fixture = Fixture::new();
    let refused = fixture.client.try_create(
        fixture.device,
        physical(segment.contiguous + 4 * KIB, MEMORY),
    );
    assert_eq!(refused.err(), Some(libc::ENOSPC));
    let mut loose = physical(16 * MIB, MEMORY);
    loose.flags = 0;
    fixture.create_resident(loose);
    let first = fixture.create(physical(segment.contiguous, MEMORY));
    let second = fixture.create(physical(segment.contiguous, MEMORY));
    // Each of them, in turn, gets the whole part; nothing on the way needs another block.
    for allocation in [&first, &second, &first] {
        fixture.bring_in(allocation);
        let placement = crate::debugfs::placement(allocation.object_id);
        assert_eq!(placement.frames.len(), 1);
        fixture.push_out(allocation);
    }
}
