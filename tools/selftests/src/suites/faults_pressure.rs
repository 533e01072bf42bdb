// SPDX-License-Identifier: GPL-2.0

//! Hostile scenarios: memory that is short.

use std::{
    sync::atomic::{
        AtomicBool,
        Ordering, //
    },
    time::{
        Duration,
        Instant, //
    },
};

use crate::{
    abi,
    client::Allocation,
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        physical,
        plain,
        Fixture,
        KIB,
        MIB,
        VISIBLE_SEGMENT, //
    },
    process::Child,
    suite::Suite,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "faults_pressure",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[F1]" submission_ends_when_no_eviction_succeeds,
        "[F1]" caller_can_be_killed_when_no_eviction_succeeds,
        "[F3]" list_as_large_as_memory_never_pushes_its_own_out,
        "[F6]" small_client_beside_a_hog_is_served,
    },
};

/// Lets everything that takes room fail to leave, and fills the visible segment with it.
fn block(fixture: &Fixture) {
    let old = fixture.create_resident(plain(12 * MIB, VISIBLE_SEGMENT));
    fixture
        .client
        .try_evict(fixture.device, &[old.handle], abi::EVICT_ONLY_IF_NEEDED)
        .expect("EVICT");
    debugfs::inject(&format!("fail move {}", u32::MAX));
}

fn submission_ends_when_no_eviction_succeeds() {
    let (holder, fixture) = (Fixture::new(), Fixture::new());
    block(&holder);
    let context = fixture.context();
    let target = fixture.create(physical(8 * MIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    commands.store(target.at(0), 1);
    commands.submit(&fixture.client, &context);
    clock::wait_until("the device is in error", || {
        let state = fixture.client.device_state(fixture.device);
        state.state == abi::DEVICE_STATE_ERROR_MEMORY
    });
    debugfs::inject("fail move 0");
    let other = Fixture::new();
    other.create_resident(plain(14 * MIB, VISIBLE_SEGMENT));
}

fn caller_can_be_killed_when_no_eviction_succeeds() {
    let holder = Fixture::new();
    block(&holder);
    let mut child = Child::start(|says| {
        let fixture = Fixture::new();
        let wanted = fixture.create(plain(8 * MIB, VISIBLE_SEGMENT));
        says.line("asks");
        loop {
            fixture.bring_in(&wanted);
            fixture.client.evict(fixture.device, &[wanted.handle]);
        }
    });
    assert_eq!(child.line(), "asks");
    child.kill();
    debugfs::inject("fail move 0");
    let other = Fixture::new();
    other.create_resident(plain(14 * MIB, VISIBLE_SEGMENT));
}

/// Commands that write a number into each of `allocations`, and copy the first one to the last.
fn use_all(allocations: &[Allocation], value: u64) -> Commands {
    let mut commands = Commands::new();
    for (number, allocation) in (0..).zip(allocations) {
        commands.store(allocation.at(MIB - 8), value + number);
    }
    if let (Some(first), Some(last)) = (allocations.first(), allocations.last()) {
        commands.copy_bytes(last.at(0), first.at(MIB - 8), 8);
    }
    commands
}

fn list_as_large_as_memory_never_pushes_its_own_out() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let pages = debugfs::segment(1).total / MIB;
    for count in [pages - 1, pages, pages + 1] {
        let allocations: Vec<Allocation> = (0..count)
            .map(|_| fixture.create(physical(MIB, VISIBLE_SEGMENT)))
            .collect();
        for round in 1..4 {
            let value = round << 32;
            let submitted =
                use_all(&allocations, value).try_submit(&fixture.client, context.handle);
            let id = match submitted {
                Ok(id) => id,
                Err(refusal) => {
                    assert_eq!((refusal.errno, count), (libc::ENOSPC, pages + 1));
                    continue;
                }
            };
            fixture.client.wait(context.progress, id);
            for (number, allocation) in (0..).zip(&allocations) {
                let mapping = fixture.client.map(allocation);
                let found = mapping.read64(MIB as usize - 8);
                assert_eq!(found, value + number, "{count} of {pages}, round {round}");
                if number == count - 1 {
                    assert_eq!(mapping.read64(0), value, "the copy");
                }
            }
        }
        let handles: Vec<u32> = allocations.iter().map(|one| one.handle).collect();
        fixture.client.close_and_wait(&handles);
    }
}

/// Cycles through three times what there is until it is told to stop; returns how many times it came
/// round.
fn hog(stop: &AtomicBool) -> u64 {
    let fixture = Fixture::new();
    let context = fixture.context();
    let all: Vec<Allocation> = (0..12)
        .map(|_| fixture.create(physical(4 * MIB, VISIBLE_SEGMENT)))
        .collect();
    let mut steps = 0;
    for allocation in all.iter().cycle() {
        if stop.load(Ordering::Acquire) {
            break;
        }
        let mut commands = Commands::new();
        commands.store(allocation.at(0), steps);
        fixture.run(&context, &commands);
        steps += 1;
    }
    steps / all.len() as u64
}

fn small_client_beside_a_hog_is_served() {
    let limit = clock::scaled(Duration::from_secs(10));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hog = scope.spawn(|| hog(&stop));
        let fixture = Fixture::new();
        let context = fixture.context();
        let own = fixture.create(physical(768 * KIB, VISIBLE_SEGMENT));
        let mapping = fixture.client.map(&own);
        let mut longest = Duration::ZERO;
        for round in 1..=60 {
            let begin = Instant::now();
            let mut commands = Commands::new();
            commands.store(own.at(8), round);
            // No refusal, ever.
            fixture.run(&context, &commands);
            longest = longest.max(begin.elapsed());
            assert_eq!(mapping.read64(8), round);
            std::thread::sleep(Duration::from_millis(16));
        }
        stop.store(true, Ordering::Release);
        hog.join().expect("the hog");
        assert!(longest < limit, "{longest:?} for one submission");
    });
}
