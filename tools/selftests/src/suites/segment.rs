// SPDX-License-Identifier: GPL-2.0

//! Segments: where allocations come to lie, in pages, in runs, and behind the aperture.

use crate::{
    abi,
    client::Allocation,
    clock,
    commands::Commands,
    debugfs::{
        self,
        Placement, //
    },
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        APERTURE,
        HIDDEN_SEGMENT,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    process::Child,
    suite::Suite,
    trace::{
        Events,
        Recording, //
    },
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "segment",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[SEG-3]" full_segment_leaves_the_other_alone,
        "[SEG-4]" odd_size_takes_whole_pages,
        "[SEG-9]" aperture_makes_scattered_pages_one_range,
        "[SEG-9]" two_clients_have_disjoint_aperture_ranges,
        "[SEG-10]" system_memory_is_segment_zero_at_frame_addresses,
        "[SEG-12]" every_place_is_a_pair_inside_its_segment,
        "[SEG-13]" patched_allocation_has_one_run,
        "[SEG-15]" flagged_allocation_is_contiguous_in_frames,
        "[SEG-16]" residency_in_system_memory_maps_the_aperture,
        "[SEG-16]" aperture_is_unmapped_when_the_allocation_leaves,
        "[SEG-30]" preference_decides_the_order_of_segments,
        "[SEG-30]" place_from_the_top_is_the_highest,
        "[SEG-30]" alignment_is_kept,
        "" empty_set_means_every_segment,
        "" freed_memory_is_one_run_again,
        "" reserved_memory_is_missing,
    },
};

fn full_segment_leaves_the_other_alone() {
    let fixture = Fixture::new();
    let other = debugfs::segment(2);
    let mut held = Vec::new();
    loop {
        let allocation = fixture.create(plain(MIB, VISIBLE_SEGMENT));
        match fixture
            .client
            .try_make_resident(fixture.queue.handle, &[allocation.handle])
        {
            Ok(_) => held.push(allocation.handle),
            Err(error) => {
                assert_eq!(error, (libc::ENOSPC, 0));
                break;
            }
        }
        assert!(held.len() <= 16, "more than the segment has");
    }
    clock::wait_until("segment 1 is full", || debugfs::segment(1).free < MIB);
    assert_eq!(debugfs::segment(2), other);
    let last = fixture.create_resident(plain(MIB, HIDDEN_SEGMENT));
    assert_eq!(fixture.client.state_of(last.handle).segment, 2);
    assert_eq!(debugfs::segment(2).free, other.free - MIB);
}

fn odd_size_takes_whole_pages() {
    let fixture = Fixture::new();
    for (segment, mask, taken) in [(1, VISIBLE_SEGMENT, 8 * KIB), (2, HIDDEN_SEGMENT, 64 * KIB)] {
        let before = debugfs::segment(segment).free;
        let allocation = fixture.create_resident(plain(4097, mask));
        assert_eq!(allocation.size, taken);
        assert_eq!(
            before - debugfs::segment(segment).free,
            taken,
            "segment {segment}"
        );
    }
}

/// Makes a flagged allocation in system memory whose page frames are not all adjacent.
fn scattered(fixture: &Fixture) -> (Allocation, Placement) {
    for _ in 0..16 {
        let allocation = fixture.create_resident(physical(MIB + 12 * KIB, SYSTEM));
        let placement = debugfs::placement(allocation.object_id);
        if placement.backing.len() > 1 {
            return (allocation, placement);
        }
        fixture.client.close(&[allocation.handle]);
    }
    panic!("page frames are adjacent each time");
}

fn aperture_makes_scattered_pages_one_range() {
    let fixture = Fixture::new();
    let (source, placement) = scattered(&fixture);
    let range = placement.aperture.expect("an aperture range");
    assert_eq!(range.length, source.size);

    let target = fixture.create(physical(source.size, VISIBLE_SEGMENT));
    let data = pattern(9, source.size);
    fixture.client.map(&source).write(0, &data);
    let mut commands = Commands::new();
    commands.copy_bytes(target.at(0), source.at(0), source.size as u32);
    fixture.run(&fixture.context(), &commands);

    let after = debugfs::placement(source.object_id);
    assert_eq!(
        (after.aperture, after.backing),
        (placement.aperture, placement.backing)
    );
    assert!(
        fixture.read(&target, &fixture.client.map(&target)) == data,
        "the copy differs"
    );
}

fn two_clients_have_disjoint_aperture_ranges() {
    let fixture = Fixture::new();
    let mine = fixture.create_resident(physical(MIB, SYSTEM));
    let mut other = Child::start(|says| {
        let fixture = Fixture::new();
        let allocation = fixture.create_resident(physical(MIB, SYSTEM));
        says.line(&allocation.object_id.to_string());
        crate::process::wait_for_the_end();
    });
    let foreign: u64 = other.line().parse().expect("a number");
    let mine = debugfs::placement(mine.object_id)
        .aperture
        .expect("a range");
    let foreign = debugfs::placement(foreign).aperture.expect("a range");
    assert!(
        mine.end() <= foreign.start || foreign.end() <= mine.start,
        "{mine:?} {foreign:?}"
    );
    other.kill();
}

fn system_memory_is_segment_zero_at_frame_addresses() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(64 * KIB, SYSTEM));
    let state = fixture.client.state_of(allocation.handle);
    assert_eq!(state.segment, 0);
    assert_eq!(state.residency, abi::ALLOC_RESIDENCY_SYSTEM);
    let placement = debugfs::placement(allocation.object_id);
    assert_eq!(placement.segment, 0);
    let first = placement.backing.first().expect("page frames");
    assert_eq!(placement.offset, first.start * 4096);
    assert_eq!(placement.aperture, None);
}

/// Asserts that every place in the events is a pair whose offset lies in its segment.
pub fn assert_places(events: &Events) {
    let sizes: Vec<u64> = debugfs::segments()
        .iter()
        .map(|segment| segment.total)
        .collect();
    let check = |event: &crate::trace::Event, segment: &str, offset: &str, length: u64| {
        let offset = event.number(offset);
        match event.number(segment) {
            u64::MAX => assert_eq!(offset, u64::MAX, "{}", event.text),
            0 => {}
            id @ 1..=3 => {
                let size = sizes[sizes.len() - 4 + id as usize];
                assert!(offset + length <= size, "{} {}", event.name, event.text);
            }
            other => panic!("segment {other} in {}", event.text),
        }
    };
    for event in &events.0 {
        match event.name.as_str() {
            "residency" => {
                check(event, "from_seg", "from_off", 0);
                check(event, "to_seg", "to_off", 0);
            }
            "paging_op" => {
                let bytes = event.number("bytes");
                let op = event.word("op");
                if matches!(op, "Fill" | "Transfer" | "MapAperture" | "UnmapAperture") {
                    check(event, "dst_seg", "dst_off", bytes);
                }
                if matches!(op, "Transfer" | "Discard") {
                    check(event, "src_seg", "src_off", bytes);
                }
                if op == "UpdatePageTable" {
                    check(event, "src_seg", "src_off", 8 * event.number("count"));
                    check(event, "dst_seg", "dst_off", 4096);
                }
            }
            "dma_patch" => check(event, "seg", "seg_off", 1),
            _ => {}
        }
    }
}

fn every_place_is_a_pair_inside_its_segment() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let recording = Recording::start();
    for mask in [VISIBLE_SEGMENT, HIDDEN_SEGMENT, SYSTEM] {
        let allocation = fixture.create_resident(physical(256 * KIB, mask));
        let mut commands = Commands::new();
        commands.fill_bytes(allocation.at(4096), 8192, 1);
        fixture.run(&context, &commands);
        fixture.push_out(&allocation);
    }
    let events = recording.stop();
    for name in ["residency", "paging_op", "dma_patch"] {
        assert!(events.named(name).count() >= 3, "no {name} events");
    }
    assert_places(&events);
}

fn patched_allocation_has_one_run() {
    let fixture = Fixture::new();
    let context = fixture.context();
    for mask in [VISIBLE_SEGMENT, HIDDEN_SEGMENT, SYSTEM] {
        let allocation = fixture.create_resident(physical(200 * KIB, mask));
        let recording = Recording::start();
        let mut commands = Commands::new();
        commands.store(allocation.at(4096), 1);
        fixture.run(&context, &commands);
        let events = recording.stop();
        let patch = events.named("dma_patch").next().expect("a dma_patch event");
        let placement = debugfs::placement(allocation.object_id);
        let run = match mask {
            SYSTEM => placement.aperture.expect("an aperture range"),
            _ => {
                assert_eq!(placement.runs.len(), 1);
                placement.runs[0]
            }
        };
        assert_eq!(run.length, allocation.size);
        assert_eq!(patch.number("seg"), u64::from(mask.trailing_zeros()));
        assert_eq!(patch.number("seg_off"), run.start + 4096);
    }
}

fn flagged_allocation_is_contiguous_in_frames() {
    let fixture = Fixture::new();
    for (size, mask) in [
        (4 * KIB, VISIBLE_SEGMENT),
        (MIB, VISIBLE_SEGMENT),
        (8 * MIB, VISIBLE_SEGMENT),
        (64 * KIB, HIDDEN_SEGMENT),
        (4 * MIB, HIDDEN_SEGMENT),
    ] {
        let allocation = fixture.create_resident(physical(size, mask));
        let placement = debugfs::placement(allocation.object_id);
        assert_eq!(placement.runs.len(), 1, "{size} bytes");
        assert_eq!(placement.runs[0].length, size);
        assert_eq!(placement.frames.len(), 1, "{size} bytes");
        assert_eq!(placement.frames[0].length, size / 4096);
        fixture.client.close_and_wait(&[allocation.handle]);
    }
}

fn residency_in_system_memory_maps_the_aperture() {
    let fixture = Fixture::new();
    let allocation = fixture.create(physical(MIB, SYSTEM));
    let mapped = debugfs::segment(APERTURE).mapped;
    let recording = Recording::start();
    fixture.bring_in(&allocation);
    let events = recording.stop();
    assert_eq!(events.bytes("MapAperture", allocation.object_id), MIB);
    assert_eq!(
        events
            .operations("MapAperture", allocation.object_id)
            .count(),
        1
    );
    events.assert_order(&[
        format!("paging_op op=MapAperture alloc={}", allocation.object_id),
        "fence origin=worker".to_owned(),
    ]);
    assert_eq!(debugfs::segment(APERTURE).mapped, mapped + MIB);
    assert_eq!(fixture.client.state_of(allocation.handle).segment, APERTURE);
}

fn aperture_is_unmapped_when_the_allocation_leaves() {
    let fixture = Fixture::new();
    let mapped = debugfs::segment(APERTURE).mapped;
    let allocation = fixture.create_resident(physical(MIB, SYSTEM));
    let recording = Recording::start();
    fixture.push_out(&allocation);
    crate::clock::wait_until("the aperture range is free", || {
        debugfs::segment(APERTURE).mapped == mapped
    });
    let events = recording.stop();
    assert_eq!(events.bytes("UnmapAperture", allocation.object_id), MIB);
    assert_eq!(events.bytes("Transfer", allocation.object_id), 0);
    let placement = debugfs::placement(allocation.object_id);
    assert_eq!(placement.aperture, None);
    assert_eq!(placement.pins, 0);
}

fn preference_decides_the_order_of_segments() {
    let fixture = Fixture::new();
    let mut found = Vec::new();
    for _ in 0..8 {
        let mut info = plain(4 * MIB, VISIBLE_SEGMENT | HIDDEN_SEGMENT | SYSTEM);
        info.preferred = 0x0102;
        let allocation = fixture.create_resident(info);
        found.push(fixture.client.state_of(allocation.handle).segment);
    }
    assert_eq!(found, [2, 2, 2, 2, 1, 1, 1, 0]);
}

fn place_from_the_top_is_the_highest() {
    let fixture = Fixture::new();
    // Page tables are above.
    let room = debugfs::segment(1).room();
    let mut info = physical(64 * KIB, VISIBLE_SEGMENT);
    info.preferred = 0x81;
    let allocation = fixture.create_resident(info);
    let placement = debugfs::placement(allocation.object_id);
    assert_eq!(placement.offset + allocation.size, room);
}

fn alignment_is_kept() {
    let fixture = Fixture::new();
    fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    for align in [8, 64 * KIB, MIB, 4 * MIB] {
        let mut info = physical(12 * KIB, VISIBLE_SEGMENT);
        info.align = align;
        let allocation = fixture.create_resident(info);
        let offset = debugfs::placement(allocation.object_id).offset;
        assert_eq!(offset % align, 0, "alignment {align}, offset {offset:#x}");
    }
}

fn empty_set_means_every_segment() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(4 * KIB, 0));
    assert_eq!(allocation.size, 64 * KIB);
    let segment = fixture.client.state_of(allocation.handle).segment;
    assert!((1..=2).contains(&segment), "segment {segment}");
}

fn freed_memory_is_one_run_again() {
    let fixture = Fixture::new();
    let before = debugfs::segment(1);
    let handles: Vec<u32> = (0..64)
        .map(|_| {
            fixture
                .create_resident(physical(64 * KIB, VISIBLE_SEGMENT))
                .handle
        })
        .collect();
    let (even, odd): (Vec<u32>, Vec<u32>) = handles.iter().partition(|handle| **handle % 2 == 0);
    fixture.client.close_and_wait(&even);
    fixture.client.close_and_wait(&odd);
    assert_eq!(debugfs::segment(1), before);
    let whole = fixture.create_resident(physical(before.largest, VISIBLE_SEGMENT));
    assert_eq!(debugfs::segment(1).free, before.free - whole.size);
}

fn reserved_memory_is_missing() {
    let fixture = Fixture::new();
    let free = debugfs::segment(1).free;
    debugfs::inject(&format!("reserve 1 {}", free - MIB));
    assert_eq!(debugfs::segment(1).free, MIB);
    let large = fixture.create(plain(2 * MIB, VISIBLE_SEGMENT));
    let result = fixture
        .client
        .try_make_resident(fixture.queue.handle, &[large.handle]);
    assert_eq!(result, Err((libc::ENOSPC, 0)));
    fixture.create_resident(plain(MIB, VISIBLE_SEGMENT));
    debugfs::inject("reserve 1 0");
    fixture.bring_in(&large);
}
