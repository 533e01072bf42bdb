// SPDX-License-Identifier: GPL-2.0

//! The aperture: who has a range in it, what shows where nothing is mapped, and how much may be
//! mapped at once.

use std::sync::atomic::{
    AtomicBool,
    Ordering, //
};

use crate::{
    abi,
    client::Allocation,
    commands::Commands,
    debugfs,
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        APERTURE,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    suite::Suite,
    trace::{
        Events,
        Recording, //
    },
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "aperture",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[SEG-19]" unflagged_system_memory_stays_out_of_the_aperture,
        "[SEG-31]" range_that_was_not_mapped_shows_the_dummy_page,
        "[SEG-31]" maps_and_unmaps_leave_a_running_copy_alone,
    },
};

/// The suite on an aperture of which a quarter may be mapped at once.
pub const LIMIT_SUITE: Suite = Suite {
    name: "aperture_limit",
    parameters: Some(
        "profile=DISC segments=memory:16M:page=4K:visible:contiguous=16M,\
         memory:16M:page=64K:window=16:contiguous=4M,aperture:16M:limit=4M",
    ),
    cases: crate::cases! {
        "[SEG-31]" range_beyond_the_limit_comes_after_another_has_left,
        "[SEG-31]" list_beyond_the_limit_is_refused,
        "[SEG-31]" work_beyond_the_limit_waits_for_running_work,
    },
};

fn unflagged_system_memory_stays_out_of_the_aperture() {
    let fixture = Fixture::new();
    let mapped = debugfs::segment(APERTURE).mapped;
    let recording = Recording::start();
    let allocations: Vec<Allocation> = (0..100)
        .map(|_| fixture.create(plain(16 * KIB, SYSTEM)))
        .collect();
    let handles: Vec<u32> = allocations.iter().map(|each| each.handle).collect();
    fixture.client.bring_in(&fixture.queue, &handles);
    let events = recording.stop();
    assert_eq!(debugfs::segment(APERTURE).mapped, mapped);
    events.assert_none("paging_op", &["op=MapAperture".to_owned()]);
    for placement in debugfs::placements() {
        assert_eq!(
            (placement.segment, placement.aperture, placement.pins),
            (0, None, 1),
            "{}",
            placement.record.text
        );
    }
    assert_eq!(debugfs::placements().len(), 100);
}

fn range_that_was_not_mapped_shows_the_dummy_page() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let bystander = fixture.create_resident(physical(64 * KIB, SYSTEM));
    let target = fixture.create_resident(physical(64 * KIB, VISIBLE_SEGMENT));
    let hidden = fixture.create(physical(64 * KIB, SYSTEM));
    let mappings = [&bystander, &target, &hidden].map(|each| fixture.client.map(each));
    let contents = [1, 2, 3].map(|seed| pattern(seed, 64 * KIB));
    for (mapping, content) in mappings.iter().zip(&contents) {
        mapping.write(0, content);
    }
    let hits = debugfs::stat("dummy_hits");
    debugfs::inject("fail MapAperture 1");
    fixture.bring_in(&hidden);

    let recording = Recording::start();
    let mut writing = Commands::new();
    writing.fill_bytes(hidden.at(0), 65536, 0x5151_5151);
    fixture.run(&context, &writing);
    assert!(debugfs::stat("dummy_hits") > hits, "no hit of the write");
    for (mapping, content) in mappings.iter().zip(&contents) {
        assert!(mapping.read(0, content.len()) == *content, "content");
    }
    let hits = debugfs::stat("dummy_hits");
    let mut reading = Commands::new();
    reading.copy_bytes(target.at(0), hidden.at(0), 65536);
    fixture.run(&context, &reading);
    assert!(debugfs::stat("dummy_hits") > hits, "no hit of the read");
    assert!(mappings[1].is_filled(0, 65536, 0), "the copy is not zero");
    assert!(mappings[2].read(0, 65536) == contents[2], "content");
    recording.stop().assert_none("fault", &[]);
    let state = fixture.client.device_state(fixture.device);
    assert_eq!(state.state, abi::DEVICE_STATE_ACTIVE);

    // The next range is mapped again.
    fixture.push_out(&hidden);
    fixture.bring_in(&hidden);
    let hits = debugfs::stat("dummy_hits");
    fixture.run(&context, &reading);
    assert!(
        mappings[1].read(0, 65536) == contents[2],
        "the copy differs"
    );
    assert_eq!(debugfs::stat("dummy_hits"), hits);
}

fn maps_and_unmaps_leave_a_running_copy_alone() {
    const LENGTH: u32 = 256 << 10;
    let copier = Fixture::new();
    let context = copier.context();
    let source = copier.create_resident(physical(u64::from(LENGTH), SYSTEM));
    let target = copier.create_resident(physical(u64::from(LENGTH), SYSTEM));
    let (from, to) = (copier.client.map(&source), copier.client.map(&target));
    let mapper = Fixture::new();
    let neighbour = mapper.create(physical(64 * KIB, SYSTEM));
    let before = [
        debugfs::stat("operations_MapAperture"),
        debugfs::stat("operations_UnmapAperture"),
    ];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..1000 {
                mapper.bring_in(&neighbour);
                mapper.push_out(&neighbour);
            }
            done.store(true, Ordering::Release);
        });
        let mut round = 0;
        while !done.load(Ordering::Acquire) {
            round += 1;
            let data = pattern(round, u64::from(LENGTH));
            from.write(0, &data);
            let mut commands = Commands::new();
            commands.copy_bytes(target.at(0), source.at(0), LENGTH);
            copier.run(&context, &commands);
            assert!(to.read(0, data.len()) == data, "copy {round} differs");
        }
        assert!(round > 10, "{round} copies beside a thousand maps");
    });
    for (index, name) in ["operations_MapAperture", "operations_UnmapAperture"]
        .into_iter()
        .enumerate()
    {
        assert!(debugfs::stat(name) >= before[index] + 1000, "{name}");
    }
}

/// A client of its own with so many referenced MiB in the aperture, in pieces of one.
fn holder(pieces: usize) -> (Fixture, Vec<Allocation>) {
    let fixture = Fixture::new();
    let allocations = (0..pieces)
        .map(|_| fixture.create_resident(physical(MIB, SYSTEM)))
        .collect();
    (fixture, allocations)
}

/// Asserts that ranges in force never added up to more than the limit.
fn assert_within_limit(events: &Events, at_first: u64) {
    let mut mapped = at_first;
    for event in events.named("paging_op") {
        match event.word("op") {
            "MapAperture" => mapped += event.number("bytes"),
            "UnmapAperture" => mapped -= event.number("bytes"),
            _ => {}
        }
        assert!(mapped <= 4 * MIB, "{mapped} bytes: {}", event.text);
    }
}

fn range_beyond_the_limit_comes_after_another_has_left() {
    let (_full, held) = holder(4);
    assert_eq!(debugfs::segment(APERTURE).mapped, 4 * MIB);
    let fixture = Fixture::new();
    let fifth = fixture.create(physical(MIB, SYSTEM));
    let recording = Recording::start();
    fixture.bring_in(&fifth);
    let events = recording.stop();
    assert_eq!(fixture.client.state_of(fifth.handle).segment, APERTURE);
    assert_eq!(debugfs::segment(APERTURE).mapped, 4 * MIB);
    assert_within_limit(&events, 4 * MIB);
    let gone: Vec<u64> = held
        .iter()
        .map(|each| each.object_id)
        .filter(|id| debugfs::placement(*id).aperture.is_none())
        .collect();
    assert_eq!(gone.len(), 1, "one of four leaves");
    events.assert_order(&[
        format!("residency alloc={} to_seg=-1 cause=pressure", gone[0]),
        format!("paging_op op=UnmapAperture alloc={}", gone[0]),
        format!("residency alloc={} to_seg=3", fifth.object_id),
        format!("paging_op op=MapAperture alloc={}", fifth.object_id),
    ]);
}

fn list_beyond_the_limit_is_refused() {
    let fixture = Fixture::new();
    let handles: Vec<u32> = (0..5)
        .map(|_| fixture.create(physical(MIB, SYSTEM)).handle)
        .collect();
    let result = fixture
        .client
        .try_make_resident(fixture.queue.handle, &handles);
    assert_eq!(result, Err((libc::ENOSPC, 4)));
    assert_eq!(debugfs::segment(APERTURE).mapped, 0);
    fixture.client.bring_in(&fixture.queue, &handles[1..]);
    assert_eq!(debugfs::segment(APERTURE).mapped, 4 * MIB);
}

fn work_beyond_the_limit_waits_for_running_work() {
    let busy = Fixture::new();
    let context = busy.context();
    let used: Vec<Allocation> = (0..4).map(|_| busy.create(physical(MIB, SYSTEM))).collect();
    let gate = busy.client.map(&used[0]);
    let mut commands = Commands::new();
    commands.poll(used[0].at(0), 1, 1);
    for each in &used {
        commands.store(each.at(64), 1);
    }
    let recording = Recording::start();
    let id = commands.submit(&busy.client, &context);
    let fixture = Fixture::new();
    let fifth = fixture.create(physical(MIB, SYSTEM));
    let answer = fixture
        .client
        .make_resident(&fixture.queue, &[fifth.handle]);
    let crate::client::Answer::Pending(value) = answer else {
        panic!("READY in a full aperture");
    };
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(!fixture.client.is_reached(fixture.queue.fence, value));
    gate.write64(0, 1);
    busy.client.wait(context.progress, id);
    fixture.client.wait(fixture.queue.fence, value);
    assert_within_limit(&recording.stop(), 0);
    assert_eq!(debugfs::segment(APERTURE).mapped, 4 * MIB);
}
