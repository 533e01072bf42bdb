// SPDX-License-Identifier: GPL-2.0

//! OFFER: content that its client can do without.

use std::sync::atomic::{
    AtomicBool,
    Ordering, //
};

use crate::{
    abi::{
        self,
        AllocInfo, //
    },
    client::{
        Allocation,
        Answer, //
    },
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        physical,
        plain,
        Fixture,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    memory,
    suite::Suite,
    trace::Recording, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "offer",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[RES-21]" offer_waits_for_queued_work_and_not_the_caller,
        "[RES-21]" every_use_of_an_offered_allocation_is_refused,
        "[RES-21]" low_goes_before_normal_before_high,
        "[RES-17] [RES-21]" offered_goes_before_the_rest,
        "[RES-21]" offer_now_fails_while_work_is_queued,
        "[RES-21]" refused_list_offers_nothing,
        "[RES-21]" offer_behind_a_command_lets_it_finish,
        "[RES-21]" evict_of_an_offered_allocation_keeps_its_content,
        "[RES-21]" required_by_a_list_does_not_bring_an_offered_allocation,
        "[RES-21] [PAG-15] [RES-23]" offered_content_leaves_by_discard,
        "" offered_bytes_are_counted,
        "" offered_allocations_can_be_closed,
        "" offers_race_with_everything,
    },
};

/// Offers allocations.
#[track_caller]
pub fn offer(fixture: &Fixture, allocations: &[Allocation], level: u32) {
    let handles: Vec<u32> = allocations.iter().map(|one| one.handle).collect();
    fixture
        .client
        .try_offer(fixture.device, &handles, level, 0)
        .unwrap_or_else(|error| panic!("OFFER: {error:?}"));
}

/// Reclaims one allocation; returns its result.
#[track_caller]
pub fn reclaim(fixture: &Fixture, allocation: &Allocation) -> u32 {
    let (results, answer) = fixture
        .client
        .try_reclaim(fixture.queue.handle, &[allocation.handle])
        .unwrap_or_else(|error| panic!("RECLAIM: {error:?}"));
    if let Answer::Pending(value) = answer {
        fixture.client.wait(fixture.queue.fence, value);
    }
    results[0]
}

pub fn flags_of(fixture: &Fixture, allocation: &Allocation) -> u32 {
    fixture.client.state_of(allocation.handle).flags
}

pub fn residency_of(fixture: &Fixture, allocation: &Allocation) -> u32 {
    fixture.client.state_of(allocation.handle).residency
}

/// Waits until an offer is in force.
fn wait_in_force(allocation: &Allocation) {
    clock::wait_until("the offer is in force", || {
        debugfs::placement(allocation.object_id)
            .record
            .word("offer")
            == Some("in-force")
    });
}

pub fn press_out(allocation: &Allocation) {
    debugfs::inject(&format!("evict {}", allocation.object_id));
}

/// A resident allocation with content that the GPU has written.
pub fn drawn(fixture: &Fixture, info: AllocInfo, value: u32) -> Allocation {
    let allocation = fixture.create_resident(info);
    let context = fixture.context();
    let mut commands = Commands::new();
    commands.fill_bytes(allocation.at(0), allocation.size as u32, value);
    fixture.run(&context, &commands);
    fixture.client.close(&[context.handle]);
    allocation
}

fn offer_waits_for_queued_work_and_not_the_caller() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create_resident(physical(8 * MIB, VISIBLE_SEGMENT));
    fixture
        .client
        .try_evict(
            fixture.device,
            &[allocation.handle],
            abi::EVICT_ONLY_IF_NEEDED,
        )
        .expect("EVICT");
    let mapping = fixture.client.map(&allocation);
    mapping.write32(0, 1);
    debugfs::inject("pause 2");
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 2);
    let id = commands.submit(&fixture.client, &context);
    let recording = Recording::start();
    offer(&fixture, &[allocation], abi::OFFER_LEVEL_LOW);
    assert_ne!(
        flags_of(&fixture, &allocation) & abi::ALLOC_STATE_OFFERED,
        0
    );
    let lock = abi::Lock {
        alloc: allocation.handle,
        flags: abi::LOCK_READ | abi::LOCK_DO_NOT_WAIT,
        ..Default::default()
    };
    assert_eq!(fixture.client.try_lock(lock), Err(libc::EBUSY));
    // The mapping is still there: the offer is not in force.
    assert_eq!(mapping.read32(0), 1);
    let other = fixture.create(plain(12 * MIB, VISIBLE_SEGMENT));
    let answer = fixture
        .client
        .make_resident(&fixture.queue, &[other.handle]);
    let Answer::Pending(value) = answer else {
        panic!("READY without room");
    };
    assert_eq!(fixture.client.state_of(allocation.handle).segment, 1);
    debugfs::inject("resume 2");
    fixture.client.wait(context.progress, id);
    fixture.client.wait(fixture.queue.fence, value);
    recording.stop().assert_order(&[
        "node_end node=2 kind=dma".to_owned(),
        format!("paging_op op=Discard alloc={}", allocation.object_id),
    ]);
    assert_eq!(
        residency_of(&fixture, &allocation),
        abi::ALLOC_RESIDENCY_DISCARDED
    );
}

fn every_use_of_an_offered_allocation_is_refused() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let good = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let allocation = drawn(&fixture, physical(64 * KIB, VISIBLE_SEGMENT), 0x1234_5678);
    let mapping = fixture.client.map(&allocation);
    assert_eq!(mapping.read32(0), 0x1234_5678);
    offer(&fixture, &[allocation], abi::OFFER_LEVEL_HIGH);
    for flags in [
        abi::LOCK_READ,
        abi::LOCK_WRITE,
        abi::LOCK_NO_OVERWRITE,
        abi::LOCK_READ | abi::LOCK_DO_NOT_WAIT,
    ] {
        let lock = abi::Lock {
            alloc: allocation.handle,
            flags,
            ..Default::default()
        };
        assert_eq!(fixture.client.try_lock(lock), Err(libc::EBUSY));
    }
    let handles = [good.handle, allocation.handle];
    let result = fixture
        .client
        .try_make_resident(fixture.queue.handle, &handles);
    assert_eq!(result, Err((libc::EBUSY, 1)));
    assert_eq!(fixture.client.state_of(good.handle).resident_refs, 1);
    let mut commands = Commands::new();
    commands.store(good.at(0), 1).store(allocation.at(0), 1);
    let refusal = commands
        .try_submit(&fixture.client, context.handle)
        .expect_err("an offered allocation");
    assert_eq!(
        (refusal.errno, refusal.kind, refusal.index),
        (libc::EBUSY, abi::SUBMIT_ERROR_OFFERED, 1)
    );
    let again = fixture
        .client
        .try_offer(fixture.device, &[allocation.handle], 1, 0);
    assert_eq!(again, Err((libc::EBUSY, 0)));
    for write in [false, true] {
        assert_eq!(memory::touch(&mapping, 0, write), Err(libc::SIGBUS));
    }
    assert_eq!(reclaim(&fixture, &allocation), abi::RECLAIM_RESULT_OK);
    assert_eq!(mapping.read32(0), 0x1234_5678);
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 1);
    fixture.run(&context, &commands);
}

/// Allocations of 3 MiB that fill the visible segment, without references.
fn five(fixture: &Fixture) -> [Allocation; 5] {
    let allocations = [(); 5].map(|()| fixture.create_resident(plain(3 * MIB, VISIBLE_SEGMENT)));
    let handles = allocations.map(|allocation| allocation.handle);
    fixture
        .client
        .try_evict(fixture.device, &handles, abi::EVICT_ONLY_IF_NEEDED)
        .expect("EVICT");
    allocations
}

/// Which of them have left after each of `count` others has come.
fn departures(fixture: &Fixture, allocations: &[Allocation], count: usize) -> Vec<usize> {
    let mut order = Vec::new();
    for _ in 0..count {
        fixture.create_resident(plain(3 * MIB, VISIBLE_SEGMENT));
        for (index, allocation) in allocations.iter().enumerate() {
            if fixture.client.state_of(allocation.handle).segment != 1 && !order.contains(&index) {
                order.push(index);
            }
        }
    }
    order
}

fn low_goes_before_normal_before_high() {
    let fixture = Fixture::new();
    let allocations = five(&fixture);
    offer(&fixture, &allocations[0..1], abi::OFFER_LEVEL_HIGH);
    offer(&fixture, &allocations[1..2], abi::OFFER_LEVEL_NORMAL);
    offer(&fixture, &allocations[3..4], abi::OFFER_LEVEL_LOW);
    assert_eq!(departures(&fixture, &allocations, 3), [3, 1, 0]);
}

fn offered_goes_before_the_rest() {
    let fixture = Fixture::new();
    let allocations = five(&fixture);
    let items = allocations.map(|allocation| abi::PriorityItem {
        alloc: allocation.handle,
        priority: abi::ALLOC_PRIORITY_MINIMUM,
    });
    fixture
        .client
        .try_set_priority(&items[..4])
        .expect("SET_PRIORITY");
    offer(&fixture, &allocations[4..], abi::OFFER_LEVEL_AUTO);
    assert_eq!(departures(&fixture, &allocations, 2), [4, 0]);
}

fn offer_now_fails_while_work_is_queued() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let idle = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let busy = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    debugfs::inject("pause 2");
    let mut commands = Commands::new();
    commands.store(busy.at(0), 2);
    let id = commands.submit(&fixture.client, &context);
    let handles = [idle.handle, busy.handle];
    let result = fixture
        .client
        .try_offer(fixture.device, &handles, 1, abi::OFFER_NOW);
    assert_eq!(result, Err((libc::EBUSY, 1)));
    assert_eq!(flags_of(&fixture, &idle) & abi::ALLOC_STATE_OFFERED, 0);
    debugfs::inject("resume 2");
    fixture.client.wait(context.progress, id);
    fixture
        .client
        .try_offer(fixture.device, &handles, 1, abi::OFFER_NOW)
        .expect("OFFER of idle memory");
    assert_eq!(
        debugfs::placement(busy.object_id).record.word("offer"),
        Some("in-force")
    );
}

fn refused_list_offers_nothing() {
    let fixture = Fixture::new();
    let good = fixture.create_resident(plain(4 * KIB, VISIBLE_SEGMENT));
    let offered = fixture.create(plain(4 * KIB, VISIBLE_SEGMENT));
    offer(&fixture, &[offered], abi::OFFER_LEVEL_NORMAL);
    let pinned = fixture.create(AllocInfo {
        flags: abi::ALLOC_CPU_VISIBLE | abi::ALLOC_PINNED,
        ..plain(4 * KIB, VISIBLE_SEGMENT)
    });
    let device = fixture.client.create_device();
    let foreign = fixture.client.create(device, plain(4 * KIB, SYSTEM));
    let low = abi::OFFER_LEVEL_LOW;
    for (last, level, expected) in [
        (good.handle, low, (libc::EBUSY, 1)),
        (offered.handle, low, (libc::EBUSY, 1)),
        (pinned.handle, low, (libc::EBUSY, 1)),
        (foreign.handle, low, (libc::EXDEV, 1)),
        (0, low, (libc::ENOENT, 1)),
        (0, 5, (libc::ENOENT, 1)),
        (pinned.handle, 0, (libc::EINVAL, u32::MAX)),
        (pinned.handle, 5, (libc::EINVAL, u32::MAX)),
    ] {
        let handles = [good.handle, last];
        let result = fixture.client.try_offer(fixture.device, &handles, level, 0);
        assert_eq!(result, Err(expected), "level {level}");
        assert_eq!(flags_of(&fixture, &good) & abi::ALLOC_STATE_OFFERED, 0);
    }
    fixture.client.lock(good.handle, abi::LOCK_READ);
    fixture.client.unlock(good.handle);
}

fn offer_behind_a_command_lets_it_finish() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(MIB, VISIBLE_SEGMENT));
    debugfs::inject("hold worker");
    let answer = fixture
        .client
        .make_resident(&fixture.queue, &[allocation.handle]);
    offer(&fixture, &[allocation], abi::OFFER_LEVEL_LOW);
    debugfs::inject("release worker");
    let Answer::Pending(value) = answer else {
        panic!("READY while the worker is held");
    };
    fixture.client.wait(fixture.queue.fence, value);
    assert_eq!(fixture.client.state_of(allocation.handle).segment, 1);
    wait_in_force(&allocation);
    assert_eq!(reclaim(&fixture, &allocation), abi::RECLAIM_RESULT_OK);
}

fn evict_of_an_offered_allocation_keeps_its_content() {
    let fixture = Fixture::new();
    let allocation = drawn(&fixture, physical(64 * KIB, VISIBLE_SEGMENT), 0x7e57_7e57);
    offer(&fixture, &[allocation], abi::OFFER_LEVEL_LOW);
    fixture.push_out(&allocation);
    assert_eq!(reclaim(&fixture, &allocation), abi::RECLAIM_RESULT_OK);
    assert_eq!(fixture.client.map(&allocation).read32(4096), 0x7e57_7e57);
}

fn required_by_a_list_does_not_bring_an_offered_allocation() {
    let fixture = Fixture::new();
    let mode = abi::CONTEXT_MODE_PATCHED_EXPLICIT;
    let node = crate::fixture::PHYSICAL_NODE;
    let context = fixture
        .client
        .create_context_of_mode(fixture.device, node, mode);
    let named = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let offered = fixture.create_resident(physical(MIB, VISIBLE_SEGMENT));
    offer(&fixture, &[offered], abi::OFFER_LEVEL_LOW);
    press_out(&offered);
    let mut commands = Commands::new();
    commands.store(named.at(0), 1);
    fixture.run(&context, &commands);
    assert_eq!(
        residency_of(&fixture, &offered),
        abi::ALLOC_RESIDENCY_DISCARDED
    );
    assert_eq!(reclaim(&fixture, &offered), abi::RECLAIM_RESULT_DISCARDED);
    assert_eq!(fixture.client.state_of(offered.handle).segment, 1);
}

fn offered_content_leaves_by_discard() {
    let fixture = Fixture::new();
    let allocation = drawn(&fixture, physical(MIB, VISIBLE_SEGMENT), 0xdead_beef);
    offer(&fixture, &[allocation], abi::OFFER_LEVEL_NORMAL);
    let recording = Recording::start();
    press_out(&allocation);
    let events = recording.stop();
    let id = allocation.object_id;
    assert_eq!(
        (events.bytes("Discard", id), events.bytes("Transfer", id)),
        (MIB, 0)
    );
    for event in events.operations("Discard", id) {
        assert_eq!(
            (event.number("src_seg"), event.word("cause")),
            (1, "discard")
        );
    }
    let state = fixture.client.state_of(allocation.handle);
    assert_eq!(
        (state.residency, state.segment),
        (abi::ALLOC_RESIDENCY_DISCARDED, abi::SEGMENT_ID_NONE)
    );
    assert_ne!(state.flags & abi::ALLOC_STATE_OFFERED, 0);
}

/// A value of fdinfo in KiB.
fn fdinfo(fixture: &Fixture, key: &str) -> u64 {
    let text = fixture.client.fdinfo().expect("fdinfo");
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("{key}:")));
    let line = line.unwrap_or_else(|| panic!("no {key} in {text}"));
    let number = line.split_whitespace().nth(1).expect("a value");
    number.parse().expect("a number")
}

fn offered_bytes_are_counted() {
    let fixture = Fixture::new();
    let one = drawn(&fixture, physical(MIB, VISIBLE_SEGMENT), 1);
    let two = fixture.create(plain(512 * KIB, SYSTEM));
    let before = debugfs::stat("offers_discarded_bytes");
    offer(&fixture, &[one, two], abi::OFFER_LEVEL_NORMAL);
    assert_eq!(fdinfo(&fixture, "vidmm-offered"), 1536);
    assert_eq!(fdinfo(&fixture, "drm-purgeable-vram1"), 1024);
    assert_eq!(fdinfo(&fixture, "drm-purgeable-memory"), 512);
    press_out(&one);
    assert_eq!(fdinfo(&fixture, "vidmm-discarded"), 1024);
    assert_eq!(fdinfo(&fixture, "drm-purgeable-vram1"), 0);
    let record: abi::InfoClient = fixture.client.query(abi::QUERY_CLIENT, 0);
    assert_eq!(record.discarded, MIB);
    assert_eq!(debugfs::stat("offers_discarded_bytes"), before + MIB);
    for allocation in [one, two] {
        reclaim(&fixture, &allocation);
    }
    assert_eq!(fdinfo(&fixture, "vidmm-offered"), 0);
    assert_eq!(fdinfo(&fixture, "drm-purgeable-memory"), 0);
}

fn offered_allocations_can_be_closed() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let flags = abi::OFFER_ALLOW_DECOMMIT;
    for step in 0..4 {
        let allocation = drawn(&fixture, physical(64 * KIB, VISIBLE_SEGMENT), 1);
        if step == 2 {
            debugfs::inject("pause 2");
            let mut commands = Commands::new();
            commands.store(allocation.at(0), 2);
            commands.submit(&fixture.client, &context);
        }
        fixture
            .client
            .try_offer(fixture.device, &[allocation.handle], 1, flags)
            .expect("OFFER");
        if step == 1 {
            press_out(&allocation);
        }
        if step == 2 {
            fixture.client.close(&[allocation.handle]);
            debugfs::inject("resume 2");
        } else if step < 3 {
            fixture.client.close_and_wait(&[allocation.handle]);
        }
    }
    // The last one goes with its client.
    drop(fixture);
    clock::wait_until("everything is gone", || debugfs::placements().is_empty());
    assert_eq!(debugfs::stat("offers_surrenderable_bytes"), 0);
}

/// Threads offer, reclaim, use and push out the same allocations.
pub fn offers_race_with_everything() {
    let fixture = Fixture::new();
    let allocations: Vec<Allocation> = (0..4)
        .map(|_| fixture.create(physical(256 * KIB, VISIBLE_SEGMENT)))
        .collect();
    let done = AtomicBool::new(false);
    let (fixture, allocations) = (&fixture, &allocations);
    let busy_or_fine = |what: &str, result: Result<(), i32>| {
        assert!(
            matches!(result, Ok(()) | Err(libc::EBUSY)),
            "{what}: {result:?}"
        );
    };
    std::thread::scope(|scope| {
        let running = || !done.load(Ordering::Acquire);
        for flags in [0, abi::OFFER_NOW, abi::OFFER_ALLOW_DECOMMIT] {
            scope.spawn(move || {
                for number in (0..).take_while(|_| running()) {
                    let handles = [number, number + 1].map(|at: usize| allocations[at % 4].handle);
                    let level = 1 + number as u32 % 4;
                    let result = fixture
                        .client
                        .try_offer(fixture.device, &handles, level, flags);
                    busy_or_fine("OFFER", result.map_err(|(errno, _)| errno));
                    let reclaimed = fixture.client.try_reclaim(fixture.queue.handle, &handles);
                    assert!(reclaimed.is_ok(), "RECLAIM: {reclaimed:?}");
                }
            });
        }
        scope.spawn(move || {
            let context = fixture.context();
            for number in (0..).take_while(|_| running()) {
                let mut commands = Commands::new();
                commands.store(allocations[number % 4].at(0), number as u64);
                let result = commands.try_submit(&fixture.client, context.handle);
                busy_or_fine("SUBMIT", result.map(drop).map_err(|refusal| refusal.errno));
            }
        });
        scope.spawn(move || {
            for number in (0..).take_while(|_| running()) {
                let handle = allocations[number % 4].handle;
                let made = fixture
                    .client
                    .try_make_resident(fixture.queue.handle, &[handle]);
                if made.is_ok() {
                    fixture.client.evict(fixture.device, &[handle]);
                }
                busy_or_fine("MAKE_RESIDENT", made.map(drop).map_err(|(errno, _)| errno));
            }
        });
        scope.spawn(move || {
            for number in (0..).take_while(|_| running()) {
                let id = allocations[number % 4].object_id;
                busy_or_fine("inject", debugfs::try_inject(&format!("evict {id}")));
            }
        });
        for _ in crate::effort::Rounds::new(20) {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        done.store(true, Ordering::Release);
    });
    // After all that each is of use.
    for allocation in allocations {
        reclaim(fixture, allocation);
        let mapping = fixture.client.map(allocation);
        fixture.client.lock(allocation.handle, abi::LOCK_WRITE);
        mapping.write32(0, 5);
        fixture.client.unlock(allocation.handle);
        fixture.bring_in(allocation);
        assert_eq!(mapping.read32(0), 5);
    }
}
