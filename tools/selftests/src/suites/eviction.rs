// SPDX-License-Identifier: GPL-2.0

//! Eviction: who leaves under pressure, and how room for one run is made.

use crate::{
    abi,
    abi::AllocInfo,
    client::Allocation,
    commands::Commands,
    debugfs,
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        MIB,
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
    name: "eviction",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[RES-17] " lowest_priority_leaves,
        "[RES-17] " maximum_leaves_last,
        "[RES-17] " one_used_longest_ago_leaves_of_equals,
        "[RES-17] " references_without_work_protect_nobody,
        "" loop_larger_than_memory_keeps_most_of_it,
        "" request_does_not_push_its_own_out,
        "[RES-18] " waiting_submission_keeps_nobody_from_leaving,
        "[SEG-14] " flagged_allocation_waits_until_others_went_away,
        "[SEG-18] " unflagged_allocation_takes_scattered_pages,
        "" room_for_one_run_is_made_by_moving,
        "" run_moves_out_of_the_way_into_another_segment,
    },
};

/// Bytes of each of the allocations that fill the visible segment.
const QUARTER: u64 = 3 * MIB + 512 * KIB;

fn of_priority(priority: u32) -> AllocInfo {
    AllocInfo {
        priority,
        ..plain(QUARTER, VISIBLE_SEGMENT)
    }
}

fn is_in(allocation: &Allocation) -> bool {
    debugfs::placement(allocation.object_id).segment == 1
}

/// Lets four idle allocations with these priorities fill the visible segment, and a fifth one of
/// another client come; returns which of the four have left.
fn pressed_out(priorities: [u32; 4]) -> Vec<usize> {
    let (fixture, other) = (Fixture::new(), Fixture::new());
    let four = priorities.map(|priority| fixture.create_resident(of_priority(priority)));
    assert!(four.iter().all(is_in));
    other.create_resident(of_priority(abi::ALLOC_PRIORITY_NORMAL));
    (0..4).filter(|index| !is_in(&four[*index])).collect()
}

fn lowest_priority_leaves() {
    assert_eq!(pressed_out([3, 1, 4, 2]), [1]);
    assert_eq!(pressed_out([2, 3, 4, 4]), [0]);
    assert_eq!(pressed_out([4, 3, 3, 2]), [3]);
}

fn maximum_leaves_last() {
    assert_eq!(pressed_out([5, 5, 5, 4]), [3]);
    assert_eq!(pressed_out([5, 5, 5, 5]), [0]);
}

fn one_used_longest_ago_leaves_of_equals() {
    assert_eq!(pressed_out([3, 3, 3, 3]), [0]);
    let (fixture, other) = (Fixture::new(), Fixture::new());
    let context = fixture.context();
    let create = || fixture.create_resident(physical(QUARTER, VISIBLE_SEGMENT));
    let four = [(); 4].map(|()| create());
    for index in [2, 0, 3, 1] {
        let mut commands = Commands::new();
        commands.store(four[index].at(0), 1);
        fixture.run(&context, &commands);
    }
    other.create_resident(physical(QUARTER, VISIBLE_SEGMENT));
    assert!(!is_in(&four[2]));
    assert!([0, 1, 3].iter().all(|index| is_in(&four[*index])));
}

fn references_without_work_protect_nobody() {
    let (fixture, other) = (Fixture::new(), Fixture::new());
    let required = fixture.create_resident(of_priority(abi::ALLOC_PRIORITY_LOW));
    let freed = [(); 3].map(|()| {
        let allocation = fixture.create_resident(of_priority(abi::ALLOC_PRIORITY_NORMAL));
        let only = abi::EVICT_ONLY_IF_NEEDED;
        let evicted = fixture
            .client
            .try_evict(fixture.device, &[allocation.handle], only);
        evicted.expect("EVICT");
        allocation
    });
    other.create_resident(of_priority(abi::ALLOC_PRIORITY_NORMAL));
    assert!(!is_in(&required), "nothing that runs needs it");
    assert!(freed.iter().all(is_in));
}

fn loop_larger_than_memory_keeps_most_of_it() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let all = [(); 20].map(|()| fixture.create(physical(MIB, VISIBLE_SEGMENT)));
    let rounds = |count| {
        for _ in 0..count {
            for one in &all {
                let mut commands = Commands::new();
                commands.store(one.at(0), 1);
                fixture.run(&context, &commands);
            }
        }
    };
    rounds(3);
    let recording = Recording::start();
    rounds(4);
    let events = recording.stop();
    let came = events
        .named("residency")
        .filter(|event| event.number("to_seg") == 1)
        .count();
    // Least recent use would have to bring in every one of the 80; 4 to 5 of 20 are missing.
    assert!(came <= 32, "{came} came");
}

fn request_does_not_push_its_own_out() {
    let (fixture, other) = (Fixture::new(), Fixture::new());
    let old = fixture.create_resident(plain(4 * MIB, VISIBLE_SEGMENT));
    let idle = other.create_resident(plain(8 * MIB, VISIBLE_SEGMENT));
    let new = fixture.create(plain(8 * MIB, VISIBLE_SEGMENT));
    let recording = Recording::start();
    fixture
        .client
        .bring_in(&fixture.queue, &[new.handle, old.handle]);
    let events = recording.stop();
    assert!(is_in(&old) && is_in(&new) && !is_in(&idle));
    assert_eq!(events.bytes("Transfer", old.object_id), 0);
}

fn waiting_submission_keeps_nobody_from_leaving() {
    let (fixture, other) = (Fixture::new(), Fixture::new());
    let allocation = fixture.create_resident(physical(8 * MIB, VISIBLE_SEGMENT));
    let fence = fixture.client.create_fence(fixture.device, 0);
    let context = fixture.context();
    let mut commands = Commands::new();
    commands.wait_for(fence, 1).store(allocation.at(64), 7);
    let id = commands.submit(&fixture.client, &context);
    other.create_resident(plain(12 * MIB, VISIBLE_SEGMENT));
    assert!(!is_in(&allocation));
    fixture.client.signal(fence, 1);
    fixture.client.wait(context.progress, id);
    assert!(is_in(&allocation));
    assert_eq!(fixture.client.map(&allocation).read64(64), 7);
}

/// The moves of others than `newcomer` that were decided before it had its place.
fn made_way(events: &Events, newcomer: &Allocation) -> Vec<(u64, String)> {
    events
        .named("residency")
        .take_while(|event| event.number("alloc") != newcomer.object_id)
        .map(|event| (event.number("alloc"), event.word("cause").to_owned()))
        .collect()
}

/// An allocation with content that a test knows.
fn known(fixture: &Fixture, info: AllocInfo, seed: u64) -> (Allocation, Vec<u8>) {
    let allocation = fixture.create(info);
    let data = pattern(seed, allocation.size);
    fixture.client.map(&allocation).write(0, &data);
    fixture.bring_in(&allocation);
    (allocation, data)
}

fn flagged_allocation_waits_until_others_went_away() {
    let fixture = Fixture::new();
    let (other, data) = known(&fixture, plain(4 * MIB, VISIBLE_SEGMENT), 3);
    debugfs::inject("fragment 1");
    assert_eq!(debugfs::segment(1).largest, 4 * KIB);
    let recording = Recording::start();
    let unflagged = fixture.create_resident(plain(64 * KIB, VISIBLE_SEGMENT));
    let events = recording.stop();
    assert!(made_way(&events, &unflagged).is_empty());
    let recording = Recording::start();
    let flagged = fixture.create_resident(physical(64 * KIB, VISIBLE_SEGMENT));
    let events = recording.stop();
    let way = made_way(&events, &flagged);
    assert_eq!(way, [(other.object_id, "move".to_owned())]);
    assert_eq!(debugfs::placement(flagged.object_id).runs.len(), 1);
    assert!(is_in(&other));
    assert!(fixture.client.map(&other).read(0, data.len()) == data);
}

fn unflagged_allocation_takes_scattered_pages() {
    let fixture = Fixture::new();
    debugfs::inject("fragment 1");
    let (allocation, data) = known(&fixture, plain(64 * KIB, VISIBLE_SEGMENT), 4);
    let placement = debugfs::placement(allocation.object_id);
    assert_eq!(placement.segment, 1);
    assert_eq!(placement.runs.len(), 16);
    assert_eq!(
        placement.frames.iter().map(|run| run.length).sum::<u64>(),
        16
    );
    assert!(fixture.client.map(&allocation).read(0, data.len()) == data);
    fixture
        .client
        .push_out(fixture.device, &[allocation.handle]);
    assert!(fixture.client.map(&allocation).read(0, data.len()) == data);
}

/// Fills the visible segment with small runs and gives every second one back.
fn full_of_holes(fixture: &Fixture, segments: u32) -> Vec<(Allocation, Vec<u8>)> {
    let count = debugfs::segment(1).free / MIB;
    let mut all: Vec<_> = (0..count)
        .map(|seed| known(fixture, physical(MIB, segments), seed))
        .collect();
    let mut kept = Vec::new();
    while let Some(stays) = all.pop() {
        kept.push(stays);
        if let Some((goes, _)) = all.pop() {
            fixture.client.close_and_wait(&[goes.handle]);
        }
    }
    assert!(debugfs::segment(1).largest < 3 * MIB);
    kept
}

fn room_for_one_run_is_made_by_moving() {
    let fixture = Fixture::new();
    let kept = full_of_holes(&fixture, VISIBLE_SEGMENT);
    let recording = Recording::start();
    let long = fixture.create_resident(physical(5 * MIB, VISIBLE_SEGMENT));
    let events = recording.stop();
    let way = made_way(&events, &long);
    assert!(!way.is_empty() && way.iter().all(|(_, cause)| cause == "move"));
    assert!(way.len() <= 3, "{} were moved", way.len());
    assert_eq!(debugfs::placement(long.object_id).runs.len(), 1);
    for (allocation, data) in &kept {
        assert!(is_in(allocation));
        assert!(fixture.client.map(allocation).read(0, data.len()) == *data);
    }
}

fn run_moves_out_of_the_way_into_another_segment() {
    let fixture = Fixture::new();
    let both = VISIBLE_SEGMENT | HIDDEN_SEGMENT;
    debugfs::inject(&format!("reserve 1 {}", 9 * MIB));
    let stays = fixture.create_resident(physical(3 * MIB, both));
    assert!(is_in(&stays));
    let recording = Recording::start();
    let long = fixture.create_resident(physical(6 * MIB, VISIBLE_SEGMENT));
    let events = recording.stop();
    let way = made_way(&events, &long);
    assert_eq!(way, [(stays.object_id, "move".to_owned())]);
    assert_eq!(debugfs::placement(stays.object_id).segment, 2);
}
