// SPDX-License-Identifier: GPL-2.0

//! Residency: MAKE_RESIDENT step by step, and what happens to content.

use crate::{
    abi,
    client::{
        Allocation,
        Answer, //
    },
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    process::thread_id,
    suite::Suite,
    trace::{
        Events,
        Recording, //
    }, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "residency",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[RES-1]" application_thread_does_its_four_steps_only,
        "[RES-2]" pages_are_taken_in_the_call,
        "[RES-2]" system_memory_that_is_out_fails_the_call,
        "[RES-2]" submission_takes_the_pages_of_its_list,
        "[RES-2]" memory_cgroup_limit_fails_the_call,
        "[RES-3]" pending_values_rise_by_one,
        "[RES-4]" call_returns_before_the_worker_starts,
        "[RES-6]" memory_segment_is_filled_with_zeros,
        "[RES-6]" system_memory_is_not_filled,
        "[RES-6]" gpu_reads_zeros_first,
        "[RES-9]" values_come_in_order_behind_their_operations,
        "[RES-15]" content_is_restored_instead_of_filled,
        "[RES-15] [SEG-5]" gpu_writes_in_system_memory_survive_the_way_to_a_segment,
        "[SEG-5]" pattern_survives_pressure_and_bytes_add_up,
        "[SEG-5]" counters_agree_with_the_trace,
    },
};

fn application_thread_does_its_four_steps_only() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(MIB, VISIBLE_SEGMENT));
    debugfs::inject("pause 1");
    let recording = Recording::start();
    let Answer::Pending(value) = fixture
        .client
        .make_resident(&fixture.queue, &[allocation.handle])
    else {
        panic!("READY with a paused paging node");
    };
    let events = recording.stop();
    let me = thread_id();
    let mine: Vec<_> = events.0.iter().filter(|event| event.thread == me).collect();
    let steps: Vec<(&str, u64)> = mine
        .iter()
        .map(|event| (event.name.as_str(), event.number("step")))
        .collect();
    assert_eq!(
        steps,
        [1, 2, 3, 4].map(|step| ("resident_step", step)),
        "{}",
        events.listing()
    );
    for event in &mine {
        assert_eq!(event.word("where"), "app");
        assert_eq!(event.number("alloc"), allocation.object_id);
    }
    assert_eq!(mine[0].number("fence"), 0);
    assert_eq!(mine[1].number("fence"), value);
    debugfs::inject("resume 1");
    fixture.client.wait(fixture.queue.fence, value);
}

fn pages_are_taken_in_the_call() {
    let fixture = Fixture::new();
    debugfs::inject("hold worker");
    for (mask, pins) in [(SYSTEM, 1), (VISIBLE_SEGMENT, 0)] {
        let allocation = fixture.create(plain(256 * KIB, mask));
        assert_eq!(debugfs::placement(allocation.object_id).backing_pages(), 0);
        let answer = fixture
            .client
            .make_resident(&fixture.queue, &[allocation.handle]);
        let before = debugfs::placement(allocation.object_id);
        assert_eq!(
            (before.backing_pages(), before.pins),
            (64, pins),
            "set {mask:#x}"
        );
        debugfs::inject("release worker");
        if let Answer::Pending(value) = answer {
            fixture.client.wait(fixture.queue.fence, value);
        }
        fixture.push_out(&allocation);
        clock::wait_until("the pins are gone", || {
            debugfs::placement(allocation.object_id).pins == 0
        });
        assert_eq!(
            debugfs::placement(allocation.object_id).backing,
            before.backing
        );
        debugfs::inject("hold worker");
    }
    debugfs::inject("release worker");
}

fn system_memory_that_is_out_fails_the_call() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(256 * KIB, VISIBLE_SEGMENT));
    debugfs::inject("reserve 0 1");
    let recording = Recording::start();
    let result = fixture
        .client
        .try_make_resident(fixture.queue.handle, &[allocation.handle]);
    assert_eq!(result, Err((libc::ENOMEM, 0)));
    let events = recording.stop();
    events.assert_none("resident_step", &["where=worker".to_owned()]);
    let state = fixture.client.state_of(allocation.handle);
    assert_eq!(
        (state.resident_refs, state.residency),
        (0, abi::ALLOC_RESIDENCY_NOT_RESIDENT)
    );
    assert_eq!(debugfs::placement(allocation.object_id).backing_pages(), 0);
    debugfs::inject("reserve 0 0");
    fixture.bring_in(&allocation);
}

fn submission_takes_the_pages_of_its_list() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create(physical(256 * KIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 1);
    debugfs::inject("reserve 0 1");
    let refusal = commands
        .try_submit(&fixture.client, context.handle)
        .expect_err("no memory");
    assert_eq!(refusal.errno, libc::ENOMEM);
    debugfs::inject("reserve 0 0");
    debugfs::inject("hold worker");
    let id = commands.submit(&fixture.client, &context);
    assert_eq!(debugfs::placement(allocation.object_id).backing_pages(), 64);
    debugfs::inject("release worker");
    fixture.client.wait(context.progress, id);
    assert_eq!(fixture.client.state_of(allocation.handle).resident_refs, 0);
}

fn memory_cgroup_limit_fails_the_call() {
    let group = crate::cgroup::Group::new("vidmm-test", 12 * MIB);
    let mut child = crate::process::Child::start(|says| {
        group.enter();
        let fixture = Fixture::new();
        let context = fixture.context();
        let allocation = fixture.create(physical(16 * MIB, VISIBLE_SEGMENT));
        let result = fixture
            .client
            .try_make_resident(fixture.queue.handle, &[allocation.handle]);
        assert_eq!(result, Err((libc::ENOMEM, 0)));
        assert_eq!(fixture.client.state_of(allocation.handle).resident_refs, 0);
        let mut commands = Commands::new();
        commands.store(allocation.at(0), 1);
        let refusal = commands
            .try_submit(&fixture.client, context.handle)
            .expect_err("a limit");
        assert_eq!(refusal.errno, libc::ENOMEM);
        let small = fixture.create_resident(physical(64 * KIB, VISIBLE_SEGMENT));
        fixture.client.close(&[small.handle]);
        says.line("done");
    });
    assert_eq!(child.line(), "done");
    child.join();
}

fn pending(answer: Answer) -> u64 {
    match answer {
        Answer::Pending(value) => value,
        Answer::Ready => panic!("READY where something is to do"),
    }
}

fn pending_values_rise_by_one() {
    let fixture = Fixture::new();
    let allocations: Vec<Allocation> = (0..8)
        .map(|_| fixture.create(plain(4 * KIB, VISIBLE_SEGMENT)))
        .collect();
    debugfs::inject("hold worker");
    let recording = Recording::start();
    let values: Vec<u64> = allocations
        .iter()
        .map(|allocation| {
            pending(
                fixture
                    .client
                    .make_resident(&fixture.queue, &[allocation.handle]),
            )
        })
        .collect();
    let events = recording.stop();
    debugfs::inject("release worker");
    for pair in values.windows(2) {
        assert_eq!(pair[1], pair[0] + 1, "{values:?}");
    }
    let traced: Vec<u64> = events
        .named("resident_step")
        .filter(|event| event.word("where") == "app" && event.number("step") == 2)
        .map(|event| event.number("fence"))
        .collect();
    assert_eq!(traced, values);
    fixture.client.wait(fixture.queue.fence, values[7]);
}

fn call_returns_before_the_worker_starts() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(MIB, VISIBLE_SEGMENT));
    debugfs::inject("hold worker");
    debugfs::inject("pause 1");
    let recording = Recording::start();
    let value = pending(
        fixture
            .client
            .make_resident(&fixture.queue, &[allocation.handle]),
    );
    let events = recording.so_far();
    events.assert_order(&[format!("resident_step where=app step=3 fence={value}")]);
    events.assert_none("resident_step", &["where=worker".to_owned()]);
    assert!(fixture.client.is_reached(fixture.queue.fence, value - 1));
    assert!(!fixture.client.is_reached(fixture.queue.fence, value));
    assert!(debugfs::queue_values().contains(&(value, value - 1)));
    debugfs::inject("release worker");
    clock::wait_until("the worker starts", || {
        let step = format!("fence={value}");
        recording
            .so_far()
            .find(0, "resident_step", &["where=worker".to_owned(), step])
            .is_some()
    });
    assert!(!fixture.client.is_reached(fixture.queue.fence, value));
    debugfs::inject("resume 1");
    fixture.client.wait(fixture.queue.fence, value);
    recording.stop().assert_order(&[
        format!("resident_step where=app step=3 fence={value}"),
        format!("resident_step where=app step=4 fence={value}"),
        format!("resident_step where=worker step=1 fence={value}"),
        format!("resident_step where=worker step=2 fence={value}"),
        format!("resident_step where=worker step=3 fence={value}"),
        format!("fence value={value} origin=worker"),
    ]);
}

fn memory_segment_is_filled_with_zeros() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(MIB, VISIBLE_SEGMENT));
    let recording = Recording::start();
    fixture.bring_in(&allocation);
    let events = recording.stop();
    assert_eq!(events.bytes("Fill", allocation.object_id), MIB);
    assert_eq!(events.bytes("Transfer", allocation.object_id), 0);
    assert!(fixture
        .client
        .map(&allocation)
        .is_filled(0, MIB as usize, 0));
    let id = allocation.object_id;
    events.assert_order(&[
        format!("resident_step where=worker step=1 alloc={id}"),
        format!("resident_step where=worker step=2 alloc={id}"),
        format!("paging_op op=FillVirtual alloc={id}"),
        format!("resident_step where=worker step=3 alloc={id}"),
        "fence origin=worker".to_owned(),
    ]);
}

fn system_memory_is_not_filled() {
    let fixture = Fixture::new();
    for info in [plain(MIB, SYSTEM), physical(MIB, SYSTEM)] {
        let allocation = fixture.create(info);
        let recording = Recording::start();
        fixture.bring_in(&allocation);
        let events = recording.stop();
        let id = allocation.object_id;
        assert_eq!(events.bytes("Fill", id) + events.bytes("Transfer", id), 0);
        let step = ["where=worker".to_owned(), "step=2".to_owned()];
        events.assert_none("resident_step", &step);
        assert_eq!(debugfs::placement(id).pins, 1);
    }
}

fn gpu_reads_zeros_first() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let target = fixture.create_resident(physical(64 * KIB, SYSTEM));
    let mapping = fixture.client.map(&target);
    for mask in [VISIBLE_SEGMENT, SYSTEM, 1 << 2] {
        mapping.write(0, &pattern(1, 64 * KIB));
        let fresh = fixture.create_resident(physical(64 * KIB, mask));
        let mut commands = Commands::new();
        commands.copy_bytes(target.at(0), fresh.at(0), 65536);
        fixture.run(&context, &commands);
        assert!(mapping.is_filled(0, 65536, 0), "set {mask:#x}");
    }
}

/// Place of the `node_end` of the buffer that held the last operation of an allocation.
fn end_of_operations(events: &Events, object_id: u64) -> usize {
    let sequence = events
        .named("paging_op")
        .filter(|event| event.number("alloc") == object_id)
        .map(|event| event.number("seq"))
        .max()
        .expect("paging operations of the allocation");
    events.end_of_buffer(sequence)
}

fn values_come_in_order_behind_their_operations() {
    let fixture = Fixture::new();
    let allocations: Vec<Allocation> = (0..10)
        .map(|_| fixture.create(plain(64 * KIB, VISIBLE_SEGMENT)))
        .collect();
    debugfs::inject("pause 1");
    let recording = Recording::start();
    let values: Vec<u64> = allocations
        .iter()
        .map(|allocation| {
            pending(
                fixture
                    .client
                    .make_resident(&fixture.queue, &[allocation.handle]),
            )
        })
        .collect();
    assert!(!fixture.client.is_reached(fixture.queue.fence, values[0]));
    debugfs::inject("resume 1");
    fixture.client.wait(fixture.queue.fence, values[9]);
    let events = recording.stop();
    let mut last = 0;
    for (allocation, value) in allocations.iter().zip(&values) {
        let words = [format!("value={value}"), "origin=worker".to_owned()];
        let place = events
            .find(0, "fence", &words)
            .expect("a fence event for each value");
        assert!(place >= last, "value {value} comes too early");
        assert!(
            end_of_operations(&events, allocation.object_id) < place,
            "value {value}"
        );
        last = place;
    }
}

fn content_is_restored_instead_of_filled() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(512 * KIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let data = pattern(5, allocation.size);
    mapping.write(0, &data);
    fixture.push_out(&allocation);
    let recording = Recording::start();
    fixture.bring_in(&allocation);
    let events = recording.stop();
    let id = allocation.object_id;
    assert_eq!(
        (events.bytes("Transfer", id), events.bytes("Fill", id)),
        (allocation.size, 0)
    );
    events.assert_order(&[
        format!("resident_step where=worker step=1 alloc={id}"),
        format!("resident_step where=worker step=2 alloc={id}"),
        format!("paging_op op=TransferVirtual alloc={id}"),
        "fence origin=worker".to_owned(),
    ]);
    assert!(mapping.read(0, data.len()) == data, "the content differs");
}

fn gpu_writes_in_system_memory_survive_the_way_to_a_segment() {
    let fixture = Fixture::new();
    let context = fixture.context();
    for evicted in [true, false] {
        debugfs::inject(&format!("reserve 1 {}", debugfs::segment(1).free));
        let allocation = fixture.create_resident(physical(64 * KIB, VISIBLE_SEGMENT | SYSTEM));
        let state = fixture.client.state_of(allocation.handle);
        assert_eq!(state.segment, crate::fixture::APERTURE);
        let mut commands = Commands::new();
        commands.fill_bytes(allocation.at(0), 65536, 0xfeed_beef);
        fixture.run(&context, &commands);
        debugfs::inject("reserve 1 0");
        if evicted {
            fixture.push_out(&allocation);
            fixture.bring_in(&allocation);
        } else {
            debugfs::inject(&format!("move {} 1", allocation.object_id));
        }
        assert_eq!(fixture.client.state_of(allocation.handle).segment, 1);
        let mapping = fixture.client.map(&allocation);
        assert_eq!(
            (mapping.read32(0), mapping.read32(65532)),
            (0xfeed_beef, 0xfeed_beef)
        );
        // CLOSE would wait for the mapping.
        drop(mapping);
        fixture.client.close_and_wait(&[allocation.handle]);
    }
}

/// Asserts that moves of content are covered by operations whose bytes add up.
fn assert_moves_are_covered(events: &Events, sizes: &[(u64, u64)]) {
    for (object_id, size) in sizes {
        let moves: Vec<_> = events
            .named("residency")
            .filter(|event| event.number("alloc") == *object_id)
            .collect();
        let memory = |event: &&&crate::trace::Event, key: &str| matches!(event.number(key), 1 | 2);
        let transfers = moves
            .iter()
            .filter(|event| memory(event, "from_seg"))
            .count()
            + moves
                .iter()
                .filter(|event| memory(event, "to_seg") && !memory(event, "from_seg"))
                .count();
        let covered = events.bytes("Transfer", *object_id)
            + events.bytes("Fill", *object_id)
            + events.bytes("Discard", *object_id);
        assert!(transfers > 0, "allocation {object_id} has not moved");
        assert!(
            covered >= transfers as u64 * size,
            "allocation {object_id}: {covered} bytes for {transfers} moves of {size}"
        );
        assert_eq!(events.bytes("Transfer", *object_id) % size, 0);
    }
}

fn pattern_survives_pressure_and_bytes_add_up() {
    let fixture = Fixture::new();
    let context = fixture.context();
    // Three of four fit, and nothing holds a reference: each use pushes another one out.
    let allocations: Vec<Allocation> = (0..4)
        .map(|_| fixture.create(physical(5 * MIB, VISIBLE_SEGMENT)))
        .collect();
    let recording = Recording::start();
    for (number, allocation) in allocations.iter().enumerate() {
        let mut commands = Commands::new();
        commands.fill_bytes(allocation.at(0), 5 << 20, 0x1111_1111 * (number as u32 + 1));
        fixture.run(&context, &commands);
    }
    for (number, allocation) in allocations.iter().enumerate() {
        let mut commands = Commands::new();
        commands.store(allocation.at(64), number as u64);
        fixture.run(&context, &commands);
    }
    let events = recording.stop();
    let sizes: Vec<(u64, u64)> = allocations
        .iter()
        .map(|allocation| (allocation.object_id, allocation.size))
        .collect();
    assert_moves_are_covered(&events, &sizes);
    super::segment::assert_places(&events);
    for (number, allocation) in allocations.iter().enumerate() {
        let mapping = fixture.client.map(allocation);
        let bytes = mapping.read(0, 5 << 20);
        let value = 0x11 * (number as u8 + 1);
        assert_eq!(mapping.read64(64), number as u64);
        let intact = |byte: &u8| *byte == value;
        assert!(
            bytes[..64].iter().all(intact) && bytes[72..].iter().all(intact),
            "{number}"
        );
    }
}

fn counters_agree_with_the_trace() {
    let fixture = Fixture::new();
    let before: Vec<u64> = ["Fill", "Transfer", "Discard"]
        .map(debugfs::operation_bytes)
        .to_vec();
    let recording = Recording::start();
    let allocation = fixture.create_resident(plain(MIB, VISIBLE_SEGMENT));
    fixture.client.map(&allocation).write32(0, 1);
    fixture.push_out(&allocation);
    fixture.bring_in(&allocation);
    let events = recording.stop();
    for (index, op) in ["Fill", "Transfer", "Discard"].into_iter().enumerate() {
        let traced: u64 = events
            .named("paging_op")
            .filter(|event| event.word("op") == op)
            .map(|event| event.number("bytes"))
            .sum();
        assert_eq!(debugfs::operation_bytes(op) - before[index], traced, "{op}");
    }
    assert_eq!(events.bytes("Transfer", allocation.object_id), 2 * MIB);
}
