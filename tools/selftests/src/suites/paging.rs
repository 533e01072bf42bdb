// SPDX-License-Identifier: GPL-2.0

//! Paging operations: which there are, in which buffers they run, and what may not overtake what.
//!
//! Most tests run on an adapter with both kinds of nodes and on one without GPU MMU. How content goes
//! through addresses is another suite.

use std::collections::{
    BTreeMap,
    BTreeSet, //
};

use crate::{
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
        PAGING_NODE,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    suite::{
        Case,
        Suite, //
    },
    trace::{
        Events,
        Recording, //
    },
};

/// The suite on DISC.
pub const SUITE: Suite = Suite {
    name: "paging",
    parameters: Some("profile=DISC"),
    cases: CASES,
};

/// The suite on PHYS.
pub const PHYSICAL_SUITE: Suite = Suite {
    name: "paging_phys",
    parameters: Some("profile=PHYS"),
    cases: CASES,
};

/// What holds on PHYS alone.
pub const PLACES_SUITE: Suite = Suite {
    name: "paging_places",
    parameters: Some("profile=PHYS"),
    cases: crate::cases! {
        "[PAG-22]" first_residency_is_fill_then_submit,
        "[PAG-22]" eviction_is_transfer_then_submit,
        "[PAG-22]" return_is_transfer_then_submit,
        "[PAG-22]" virtual_forms_never_occur,
    },
};

const CASES: &[Case] = crate::cases! {
    "[PAG-1]" operations_have_known_names_and_one_buffer,
    "[PAG-2]" buffers_run_in_the_system_context,
    "[PAG-14]" memory_is_not_reused_before_its_content_has_left,
    "[PAG-14]" reused_memory_shows_no_foreign_data,
    "[PAG-15] [PAG-22]" destruction_of_resident_memory_is_a_discard,
    "[BCK-1]" backend_calls_account_for_every_object,
    "" move_goes_to_each_kind_of_place,
    "" move_of_bad_arguments_is_refused,
    "" malformed_injection_is_refused,
};

/// Work that moves memory of every kind in every direction.
fn do_some_work(fixture: &Fixture) {
    let context = fixture.context();
    for mask in [VISIBLE_SEGMENT, HIDDEN_SEGMENT, SYSTEM] {
        let allocation = fixture.create_resident(physical(128 * KIB, mask));
        let mut commands = Commands::new();
        commands.fill_bytes(allocation.at(0), 4096, 77);
        fixture.run(&context, &commands);
        fixture.push_out(&allocation);
        fixture.bring_in(&allocation);
        fixture.client.close_and_wait(&[allocation.handle]);
    }
}

fn operations_have_known_names_and_one_buffer() {
    let fixture = Fixture::new();
    let recording = Recording::start();
    do_some_work(&fixture);
    let events = recording.stop();
    let names: BTreeSet<&str> = events
        .named("paging_op")
        .map(|event| event.word("op"))
        .collect();
    let known = BTreeSet::from([
        "Fill",
        "Transfer",
        "Discard",
        "FillVirtual",
        "TransferVirtual",
        "UpdatePageTable",
        "FlushTLB",
        "CopyPageTableEntries",
        "MapAperture",
        "UnmapAperture",
    ]);
    assert!(names.is_subset(&known), "{names:?}");
    for (place, operation) in events.0.iter().enumerate() {
        if operation.name != "paging_op" || operation.number("buf") == 0 {
            continue;
        }
        let sequence = operation.number("seq");
        let holders: Vec<usize> = (0..events.0.len())
            .filter(|index| events.0[*index].name == "paging_submit")
            .filter(|index| {
                let submit = &events.0[*index];
                (submit.number("first_seq")..=submit.number("last_seq")).contains(&sequence)
            })
            .collect();
        assert_eq!(holders.len(), 1, "operation {sequence}: {}", operation.text);
        assert!(
            holders[0] > place,
            "operation {sequence} comes after its buffer"
        );
        assert_eq!(events.0[holders[0]].number("buf"), operation.number("buf"));
    }
}

fn buffers_run_in_the_system_context() {
    let fixture = Fixture::new();
    let recording = Recording::start();
    do_some_work(&fixture);
    let events = recording.stop();
    let system = debugfs::system_context();
    assert!(events.named("paging_submit").count() > 0);
    for event in events.named("paging_submit") {
        assert_eq!(event.number("ctx"), system, "{}", event.text);
        assert_eq!(event.number("node"), u64::from(PAGING_NODE));
    }
    let mine: BTreeSet<u64> = events
        .named("dma_portion")
        .map(|event| event.number("ctx"))
        .collect();
    assert!(!mine.contains(&system));
}

/// Sequence numbers of the operations of an allocation.
fn sequences(events: &Events, op: &str, allocation: &Allocation) -> Vec<u64> {
    let operations = events.operations(op, allocation.object_id);
    let found: Vec<u64> = operations.map(|event| event.number("seq")).collect();
    assert!(
        !found.is_empty(),
        "no {op} of {}:\n{}",
        allocation.object_id,
        events.listing()
    );
    found
}

fn memory_is_not_reused_before_its_content_has_left() {
    let fixture = Fixture::new();
    let size = debugfs::segment(1).largest;
    let first = fixture.create_resident(physical(size, VISIBLE_SEGMENT));
    let second = fixture.create(physical(size, VISIBLE_SEGMENT));
    let data = pattern(21, MIB);
    fixture.client.map(&first).write(0, &data);
    debugfs::inject("pause 1");
    let recording = Recording::start();
    fixture.client.evict(fixture.device, &[first.handle]);
    let answer = fixture
        .client
        .make_resident(&fixture.queue, &[second.handle]);
    let crate::client::Answer::Pending(value) = answer else {
        panic!("READY with a paused paging node");
    };
    debugfs::inject("resume 1");
    fixture.client.wait(fixture.queue.fence, value);
    let events = recording.stop();
    let left = sequences(&events, "Transfer", &first).into_iter();
    let left = left.map(|sequence| events.end_of_buffer(sequence)).max();
    let written = sequences(&events, "Fill", &second).into_iter();
    let written = written
        .map(|sequence| events.begin_of_buffer(sequence))
        .min();
    // Operations of one buffer run in their order.
    let same_buffer = left > written;
    if same_buffer {
        let last = sequences(&events, "Transfer", &first).into_iter().max();
        let start = sequences(&events, "Fill", &second).into_iter().min();
        assert!(
            last < start,
            "the fill comes before the transfer:\n{}",
            events.listing()
        );
    }
    assert!(fixture.client.map(&second).is_filled(0, MIB as usize, 0));
    assert!(
        fixture.client.map(&first).read(0, data.len()) == data,
        "content of the first"
    );
}

/// Memory changes hands and is checked.
pub fn reused_memory_shows_no_foreign_data() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocations: Vec<Allocation> = (0..6)
        .map(|_| fixture.create(physical(4 * MIB, VISIBLE_SEGMENT)))
        .collect();
    for number in crate::effort::Rounds::new(18) {
        let index = (number * 5 % 6) as usize;
        let allocation = &allocations[index];
        let expected = if number < 6 { 0 } else { index as u32 + 1 };
        let mapping = fixture.client.map(allocation);
        for offset in [0, 4096, MIB as usize, 4 * MIB as usize - 4] {
            assert_eq!(
                mapping.read32(offset),
                expected,
                "round {number}, offset {offset:#x}"
            );
        }
        let mut commands = Commands::new();
        commands.fill_bytes(allocation.at(0), 4 << 20, index as u32 + 1);
        fixture.run(&context, &commands);
    }
}

/// Asserts that operations of one name make up what happens to an allocation, and that their buffers
/// are submitted.
fn assert_only(events: &Events, op: &str, allocation: &Allocation) {
    let id = allocation.object_id;
    let names: BTreeSet<&str> = events
        .named("paging_op")
        .filter(|event| event.number("alloc") == id)
        .map(|event| event.word("op"))
        .collect();
    assert_eq!(names, BTreeSet::from([op]), "{}", events.listing());
    assert_eq!(events.bytes(op, id), allocation.size);
    events.assert_order(&[
        format!("paging_op op={op} alloc={id}"),
        format!("paging_submit node={PAGING_NODE}"),
        format!("node_begin node={PAGING_NODE} kind=paging"),
        format!("node_end node={PAGING_NODE} kind=paging"),
    ]);
}

fn first_residency_is_fill_then_submit() {
    let fixture = Fixture::new();
    for info in [plain(MIB, VISIBLE_SEGMENT), plain(MIB, HIDDEN_SEGMENT)] {
        let allocation = fixture.create(info);
        let recording = Recording::start();
        fixture.bring_in(&allocation);
        assert_only(&recording.stop(), "Fill", &allocation);
    }
}

fn eviction_is_transfer_then_submit() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(MIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let data = pattern(2, MIB);
    mapping.write(0, &data);
    let recording = Recording::start();
    debugfs::inject(&format!("evict {}", allocation.object_id));
    let events = recording.stop();
    assert_only(&events, "Transfer", &allocation);
    for event in events.operations("Transfer", allocation.object_id) {
        assert_eq!((event.number("src_seg"), event.number("dst_seg")), (1, 0));
        assert_eq!(event.word("cause"), "pressure");
    }
    assert!(mapping.read(0, data.len()) == data, "the content differs");
}

fn return_is_transfer_then_submit() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(MIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let data = pattern(4, MIB);
    mapping.write(0, &data);
    fixture.push_out(&allocation);
    let recording = Recording::start();
    fixture.bring_in(&allocation);
    let events = recording.stop();
    assert_only(&events, "Transfer", &allocation);
    for event in events.operations("Transfer", allocation.object_id) {
        assert_eq!((event.number("src_seg"), event.number("dst_seg")), (0, 1));
        assert_eq!(event.word("cause"), "resident");
    }
    assert!(mapping.read(0, data.len()) == data, "the content differs");
}

fn virtual_forms_never_occur() {
    let fixture = Fixture::new();
    let recording = Recording::start();
    do_some_work(&fixture);
    let events = recording.stop();
    for op in [
        "FillVirtual",
        "TransferVirtual",
        "UpdatePageTable",
        "FlushTLB",
        "CopyPageTableEntries",
    ] {
        events.assert_none("paging_op", &[format!("op={op}")]);
    }
    for event in events.named("paging_op") {
        assert_eq!(
            (event.number("space"), event.number("process")),
            (0, 0),
            "{}",
            event.text
        );
        assert_eq!(
            (event.number("va"), event.word("mode")),
            (0, "none"),
            "{}",
            event.text
        );
    }
}

fn destruction_of_resident_memory_is_a_discard() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(MIB, VISIBLE_SEGMENT));
    let recording = Recording::start();
    fixture.client.close_and_wait(&[allocation.handle]);
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
}

fn backend_calls_account_for_every_object() {
    let recording = Recording::start();
    let fixture = Fixture::new();
    do_some_work(&fixture);
    drop(fixture);
    crate::clock::wait_until("the client is gone", || {
        let gone = ["name=destroy_process".to_owned()];
        recording.so_far().find(0, "backend_call", &gone).is_some()
    });
    let events = recording.stop();
    let mut calls: BTreeMap<&str, usize> = BTreeMap::new();
    for event in events.named("backend_call") {
        *calls.entry(event.word("name")).or_default() += 1;
    }
    for (make, undo, least) in [
        ("create_process", "destroy_process", 1),
        ("create_device", "destroy_device", 1),
        ("create_context", "destroy_context", 1),
        ("create_allocation", "destroy_allocation", 3),
    ] {
        let (made, undone) = (calls.get(make).copied(), calls.get(undo).copied());
        assert_eq!(made, undone, "{make} and {undo}");
        assert!(made.unwrap_or(0) >= least, "{make}");
    }
    let made: BTreeSet<u64> = events
        .named("alloc")
        .filter(|event| event.word("action") == "create")
        .map(|event| event.number("alloc"))
        .collect();
    for event in events.named("paging_op") {
        let id = event.number("alloc");
        assert!(id == 0 || made.contains(&id), "{}", event.text);
    }
}

fn move_goes_to_each_kind_of_place() {
    let fixture = Fixture::new();
    let everywhere = VISIBLE_SEGMENT | HIDDEN_SEGMENT | SYSTEM;
    let allocation = fixture.create_resident(physical(128 * KIB, everywhere));
    let context = fixture.context();
    let target = fixture.create_resident(physical(128 * KIB, VISIBLE_SEGMENT));
    let data = pattern(8, allocation.size);
    fixture.client.map(&allocation).write(0, &data);
    for (command, segment) in [
        ("1 0x200000", 1),
        ("2", 2),
        ("3", 3),
        ("1", 1),
        ("1 0x400000", 1),
    ] {
        debugfs::inject(&format!("move {} {command}", allocation.object_id));
        let state = fixture.client.state_of(allocation.handle);
        assert_eq!(state.segment, segment, "move {command}");
        let placement = debugfs::placement(allocation.object_id);
        if let Some((_, offset)) = command.split_once(" 0x") {
            let offset = u64::from_str_radix(offset, 16).expect("a number");
            assert_eq!(placement.offset, offset);
        }
        let mut commands = Commands::new();
        commands.copy_bytes(target.at(0), allocation.at(0), allocation.size as u32);
        fixture.run(&context, &commands);
        let copy = fixture.client.map(&target).read(0, data.len());
        assert!(copy == data, "content after move {command}");
    }
    let before = debugfs::placement(allocation.object_id).offset;
    debugfs::inject(&format!("move {}", allocation.object_id));
    let after = debugfs::placement(allocation.object_id);
    assert_eq!(after.segment, 1);
    assert_ne!(after.offset, before);
}

fn move_of_bad_arguments_is_refused() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(64 * KIB, VISIBLE_SEGMENT));
    let id = allocation.object_id;
    let size = debugfs::segment(1).total;
    for (command, errno) in [
        ("move 999999999".to_owned(), libc::ENOENT),
        ("evict 999999999".to_owned(), libc::ENOENT),
        (format!("move {id} 2"), libc::EINVAL),
        (format!("move {id} 3"), libc::EINVAL),
        (format!("move {id} 0"), libc::EINVAL),
        (format!("move {id} 1 0x801"), libc::EINVAL),
        (format!("move {id} 1 {size}"), libc::EINVAL),
        (format!("move {id} 9"), libc::EINVAL),
    ] {
        assert_eq!(debugfs::try_inject(&command), Err(errno), "{command}");
    }
}

fn malformed_injection_is_refused() {
    for command in [
        "nonsense",
        "pause",
        "pause x",
        "pause 9",
        "resume 9",
        "hold",
        "hold node",
        "reserve",
        "reserve 1",
        "reserve 9 1",
        "reserve 1 x",
        "fragment",
        "fragment 9",
        "move",
        "evict",
        "fail",
        "fail Fill",
        "fail nothing 1",
        "fail Fill x",
        "pause 1 1",
    ] {
        assert_eq!(
            debugfs::try_inject(command),
            Err(libc::EINVAL),
            "\"{command}\""
        );
    }
}
