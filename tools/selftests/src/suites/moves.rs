// SPDX-License-Identifier: GPL-2.0

//! Moves: straight from place to place, and moves that fail and change nothing.

use std::{
    collections::BTreeMap,
    time::Instant, //
};

use crate::{
    abi,
    client::{
        Allocation,
        Answer, //
    },
    clock,
    commands::Commands,
    debugfs,
    effort::{
        self,
        Rounds, //
    },
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    random::Random,
    suite::Suite,
    trace::{
        Events,
        Recording, //
    },
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "moves",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" move_between_memory_segments_is_one_transfer,
        "" move_keeps_the_order_of_use,
        "" move_of_scattered_memory_keeps_its_content,
        "" failed_move_leads_back,
        "" failed_eviction_leads_back,
        "" failed_way_home_leaves_the_content_in_system_memory,
        "" failed_search_finds_no_place,
        "" request_survives_one_failure,
        "[F1]" request_that_always_fails_ends,
        "[F2]" failing_steps_leak_nothing,
    },
};

/// The suite on segments of which only a half may be in use at once.
pub const LIMIT_SUITE: Suite = Suite {
    name: "moves_limit",
    parameters: Some(
        "profile=DISC levels=4 client_tables=0 paging_tables=0 \
         segments=memory:16M:visible:contiguous=16M:limit=8M,\
         memory:4M:page=64K:window=16:contiguous=1M,aperture:16M",
    ),
    cases: crate::cases! {
        "" moves_inside_a_full_segment_need_no_more_of_it,
    },
};

/// Where a `residency` event leads: segments, all ones for nowhere.
fn ways(events: &Events, object_id: u64) -> Vec<(u64, u64)> {
    events
        .named("residency")
        .filter(|event| event.number("alloc") == object_id)
        .map(|event| (event.number("from_seg"), event.number("to_seg")))
        .collect()
}

fn move_between_memory_segments_is_one_transfer() {
    let fixture = Fixture::new();
    let both = VISIBLE_SEGMENT | HIDDEN_SEGMENT;
    for info in [physical(256 * KIB, both), plain(256 * KIB, both)] {
        let allocation = fixture.create(info);
        let data = pattern(5, allocation.size);
        fixture.client.map(&allocation).write(0, &data);
        fixture.bring_in(&allocation);
        let (one, two) = (debugfs::segment(1), debugfs::segment(2));
        for (from, command, to) in [(1, "1 0x200000", 1), (1, "2", 2), (2, "2 0x100000", 2)] {
            let recording = Recording::start();
            debugfs::inject(&format!("move {} {command}", allocation.object_id));
            let events = recording.stop();
            assert_eq!(ways(&events, allocation.object_id), [(from, to)]);
            let transfers: Vec<_> = events
                .operations("Transfer", allocation.object_id)
                .map(|event| (events.source(event).0, events.destination(event).0))
                .collect();
            assert_eq!(transfers, [(from, to)], "move {command}");
            events.assert_order(&[
                "residency cause=move".to_owned(),
                "paging_op op=TransferVirtual cause=move".to_owned(),
                "node_end kind=paging".to_owned(),
            ]);
        }
        assert_eq!(debugfs::segment(1).free, one.free + allocation.size);
        assert_eq!(debugfs::segment(2).free, two.free - allocation.size);
        assert_eq!(fixture.client.state_of(allocation.handle).segment, 2);
        assert!(fixture.client.map(&allocation).read(0, data.len()) == data);
        fixture.client.close_and_wait(&[allocation.handle]);
    }
}

fn move_keeps_the_order_of_use() {
    let fixture = Fixture::new();
    let create = |mask| {
        let allocation = fixture.create_resident(plain(6 * MIB, mask));
        let flags = abi::EVICT_ONLY_IF_NEEDED;
        fixture
            .client
            .try_evict(fixture.device, &[allocation.handle], flags)
            .expect("EVICT");
        allocation
    };
    let old = create(VISIBLE_SEGMENT | HIDDEN_SEGMENT);
    let new = create(VISIBLE_SEGMENT);
    debugfs::inject(&format!("move {} 2", old.object_id));
    debugfs::inject(&format!("move {} 1", old.object_id));
    fixture.create_resident(plain(6 * MIB, VISIBLE_SEGMENT));
    let residency = |allocation: &Allocation| fixture.client.state_of(allocation.handle).residency;
    assert_eq!(residency(&old), abi::ALLOC_RESIDENCY_NOT_RESIDENT);
    assert_ne!(residency(&new), abi::ALLOC_RESIDENCY_NOT_RESIDENT);
}

fn moves_inside_a_full_segment_need_no_more_of_it() {
    let fixture = Fixture::new();
    let create = |bytes| fixture.create_resident(physical(bytes, VISIBLE_SEGMENT));
    let (large, small) = (create(5 * MIB), create(3 * MIB));
    // Nothing more may be in use, and half of the segment is free.
    assert_eq!(debugfs::segment(1).mapped, 8 * MIB);
    for (allocation, offset) in [(&large, 11 * MIB), (&small, 8 * MIB), (&large, 0)] {
        debugfs::inject(&format!("move {} 1 {offset}", allocation.object_id));
        debugfs::inject(&format!("move {}", allocation.object_id));
        assert_eq!(debugfs::placement(allocation.object_id).segment, 1);
    }
    // Whoever stands where another one must lie goes aside, and does not leave.
    fixture.client.close_and_wait(&[small.handle]);
    debugfs::inject(&format!("move {} 1 0", large.object_id));
    let recording = Recording::start();
    let first = fixture.create_resident(abi::AllocInfo {
        align: 16 * MIB,
        ..physical(3 * MIB, VISIBLE_SEGMENT)
    });
    let events = recording.stop();
    assert_eq!(debugfs::placement(first.object_id).offset, 0);
    assert_eq!(ways(&events, large.object_id), [(1, 1)]);
}

fn move_of_scattered_memory_keeps_its_content() {
    let fixture = Fixture::new();
    debugfs::inject("fragment 1");
    debugfs::inject("fragment 2");
    let allocation = fixture.create(plain(MIB, VISIBLE_SEGMENT | HIDDEN_SEGMENT));
    let data = pattern(6, allocation.size);
    let mapping = fixture.client.map(&allocation);
    mapping.write(0, &data);
    fixture.bring_in(&allocation);
    for command in ["2", "1", "1", "2"] {
        let recording = Recording::start();
        debugfs::inject(&format!("move {} {command}", allocation.object_id));
        let events = recording.stop();
        let moves = usize::from(command != "1" || !ways(&events, allocation.object_id).is_empty());
        assert_eq!(ways(&events, allocation.object_id).len(), moves);
        let placement = debugfs::placement(allocation.object_id);
        assert!(placement.runs.len() >= 16, "{} runs", placement.runs.len());
    }
    debugfs::inject(&format!("move {} 1", allocation.object_id));
    assert!(mapping.read(0, data.len()) == data);
}

/// An allocation in the visible segment with content that a test knows.
fn known(fixture: &Fixture, mask: u32) -> (Allocation, Vec<u8>) {
    let allocation = fixture.create(plain(128 * KIB, mask));
    let data = pattern(7, allocation.size);
    fixture.client.map(&allocation).write(0, &data);
    fixture.bring_in(&allocation);
    (allocation, data)
}

fn failed_move_leads_back() {
    let fixture = Fixture::new();
    let (allocation, data) = known(&fixture, VISIBLE_SEGMENT | HIDDEN_SEGMENT);
    let before = debugfs::placement(allocation.object_id);
    let segments = debugfs::segments();
    debugfs::inject("fail move 2");
    for command in ["2", "1 0x300000"] {
        let recording = Recording::start();
        let moved = debugfs::try_inject(&format!("move {} {command}", allocation.object_id));
        assert_eq!(moved, Err(libc::EIO), "move {command}");
        let events = recording.stop();
        let ways = ways(&events, allocation.object_id);
        assert_eq!(ways.len(), 2);
        assert_eq!(ways[0], (ways[1].1, ways[1].0), "it leads back");
        assert_eq!(events.bytes("Transfer", allocation.object_id), 0);
    }
    assert_eq!(debugfs::placement(allocation.object_id).runs, before.runs);
    assert_eq!(debugfs::segments(), segments);
    assert!(fixture.client.map(&allocation).read(0, data.len()) == data);
    debugfs::inject(&format!("move {} 2", allocation.object_id));
    assert_eq!(fixture.client.state_of(allocation.handle).segment, 2);
}

fn failed_eviction_leads_back() {
    let fixture = Fixture::new();
    let (allocation, data) = known(&fixture, VISIBLE_SEGMENT);
    let segments = debugfs::segments();
    debugfs::inject("fail move 1");
    let recording = Recording::start();
    let evicted = debugfs::try_inject(&format!("evict {}", allocation.object_id));
    assert_eq!(evicted, Err(libc::EIO));
    let events = recording.stop();
    assert_eq!(
        ways(&events, allocation.object_id),
        [(1, u64::MAX), (u64::MAX, 1)]
    );
    assert_eq!(debugfs::segments(), segments);
    assert!(fixture.client.map(&allocation).read(0, data.len()) == data);
    debugfs::inject(&format!("evict {}", allocation.object_id));
    assert_eq!(debugfs::segment(1).free, segments[0].free + allocation.size);
}

fn failed_way_home_leaves_the_content_in_system_memory() {
    let fixture = Fixture::new();
    let (allocation, data) = known(&fixture, VISIBLE_SEGMENT);
    debugfs::inject(&format!("evict {}", allocation.object_id));
    let segments = debugfs::segments();
    debugfs::inject("fail move 1");
    let moved = debugfs::try_inject(&format!("move {} 1", allocation.object_id));
    assert_eq!(moved, Err(libc::EIO));
    assert_eq!(debugfs::segments(), segments);
    assert!(fixture.client.map(&allocation).read(0, data.len()) == data);
    debugfs::inject(&format!("move {} 1", allocation.object_id));
    assert!(fixture.client.map(&allocation).read(0, data.len()) == data);
    assert_eq!(fixture.client.state_of(allocation.handle).segment, 1);
}

fn failed_search_finds_no_place() {
    let fixture = Fixture::new();
    let (allocation, _) = known(&fixture, VISIBLE_SEGMENT | HIDDEN_SEGMENT);
    let segments = debugfs::segments();
    debugfs::inject("fail place 1");
    let recording = Recording::start();
    let moved = debugfs::try_inject(&format!("move {} 2", allocation.object_id));
    assert_eq!(moved, Err(libc::ENOSPC));
    recording.stop().assert_none("residency", &[]);
    assert_eq!(debugfs::segments(), segments);
    debugfs::inject(&format!("move {} 2", allocation.object_id));
}

fn request_survives_one_failure() {
    for what in ["move", "place"] {
        let fixture = Fixture::new();
        debugfs::inject(&format!("fail {what} 1"));
        let allocation = fixture.create_resident(plain(MIB, VISIBLE_SEGMENT));
        assert_eq!(fixture.client.state_of(allocation.handle).segment, 1);
        let context = fixture.context();
        let target = fixture.create(physical(64 * KIB, VISIBLE_SEGMENT));
        debugfs::inject(&format!("fail {what} 1"));
        let mut commands = Commands::new();
        commands.fill_bytes(target.at(0), 65536, 0x1234_5678);
        fixture.run(&context, &commands);
        assert_eq!(fixture.client.map(&target).read32(65532), 0x1234_5678);
    }
}

fn request_that_always_fails_ends() {
    let limit = clock::patience();
    for what in ["move", "place"] {
        let fixture = Fixture::new();
        let old = fixture.create_resident(plain(12 * MIB, VISIBLE_SEGMENT));
        fixture
            .client
            .try_evict(fixture.device, &[old.handle], abi::EVICT_ONLY_IF_NEEDED)
            .expect("EVICT");
        let new = fixture.create(plain(12 * MIB, VISIBLE_SEGMENT));
        let begin = Instant::now();
        debugfs::inject(&format!("fail {what} {}", u32::MAX));
        fixture.bring_in(&new);
        let state = fixture.client.device_state(fixture.device);
        assert_eq!(state.state, abi::DEVICE_STATE_ACTIVE, "fail {what}");
        let state = fixture.client.state_of(new.handle);
        assert_eq!(state.residency, abi::ALLOC_RESIDENCY_NOT_RESIDENT);
        assert_eq!(
            state.flags & abi::ALLOC_STATE_NO_PLACE,
            abi::ALLOC_STATE_NO_PLACE
        );
        assert!(begin.elapsed() < limit, "{:?}", begin.elapsed());
        debugfs::inject(&format!("fail {what} 0"));
        drop(fixture);
        // The next client finds everything as it should be.
        let fixture = Fixture::new();
        fixture.create_resident(plain(12 * MIB, VISIBLE_SEGMENT));
    }
}

/// Does something with an allocation that has to move for it; where it fails, nothing happens.
fn disturb(fixture: &Fixture, random: &mut Random, allocation: &Allocation) {
    let (handle, id) = (allocation.handle, allocation.object_id);
    let what = *random.pick(&["move", "place"]);
    match random.below(5) {
        0 => {
            debugfs::inject(&format!("fail {what} 1"));
            fixture.bring_in(allocation);
            let flags = *random.pick(&[0, abi::EVICT_ONLY_IF_NEEDED]);
            fixture
                .client
                .try_evict(fixture.device, &[handle], flags)
                .expect("EVICT");
        }
        1 => {
            debugfs::inject(&format!("fail move {}", random.below(3)));
            let evicted = debugfs::try_inject(&format!("evict {id}"));
            assert!(matches!(evicted, Ok(()) | Err(libc::EIO)), "{evicted:?}");
        }
        _ => {
            debugfs::inject(&format!("fail {what} {}", random.below(3)));
            let to = *random.pick(&["", " 1", " 2", " 3"]);
            let moved = debugfs::try_inject(&format!("move {id}{to}"));
            let expected = matches!(moved, Ok(()) | Err(libc::EIO | libc::ENOSPC | libc::EINVAL));
            assert!(expected, "move{to}: {moved:?}");
        }
    }
    debugfs::inject("fail move 0");
    debugfs::inject("fail place 0");
}

/// Every step of moves fails now and then; content stays, and nothing is lost.
pub fn failing_steps_leak_nothing() {
    let mut random = Random::new(effort::seed());
    let before: BTreeMap<u64, u64> = debugfs::segments()
        .iter()
        .map(|segment| (segment.id, segment.free))
        .collect();
    let fixture = Fixture::new();
    let masks = [
        VISIBLE_SEGMENT | HIDDEN_SEGMENT,
        VISIBLE_SEGMENT | HIDDEN_SEGMENT | SYSTEM,
        HIDDEN_SEGMENT | SYSTEM,
    ];
    let known: Vec<_> = (0..6_u64)
        .map(|number| {
            let mask = masks[number as usize % masks.len()];
            let size = (64 * KIB) << (number % 5);
            let info = match number % 2 {
                0 => plain(size, mask),
                _ => physical(size, mask),
            };
            let allocation = fixture.create(info);
            let mapping = fixture.client.map(&allocation);
            let data = pattern(number, allocation.size);
            mapping.write(0, &data);
            (allocation, mapping, data)
        })
        .collect();
    for round in Rounds::new(120) {
        let (allocation, mapping, data) = random.pick(&known);
        disturb(&fixture, &mut random, allocation);
        let offset = random.below(allocation.size / 4096) as usize * 4096;
        let found = mapping.read(offset, 4096);
        assert!(found == data[offset..offset + 4096], "round {round}");
    }
    for (allocation, mapping, data) in &known {
        assert!(mapping.read(0, data.len()) == *data, "{allocation:?}");
    }
    drop(known);
    drop(fixture);
    clock::wait_until("all memory is free", || debugfs::placements().is_empty());
    for segment in debugfs::segments() {
        assert_eq!(segment.free, before[&segment.id], "segment {}", segment.id);
    }
    let fixture = Fixture::new();
    for (id, whole) in [(1, physical as fn(u64, u32) -> _), (2, plain)] {
        let size = debugfs::segment(id).room();
        let allocation = fixture.create(whole(size, 1 << id));
        let answer = fixture
            .client
            .make_resident(&fixture.queue, &[allocation.handle]);
        assert_ne!(answer, Answer::Ready);
        fixture.bring_in(&allocation);
        assert_eq!(debugfs::segment(id).free, 0);
    }
}
