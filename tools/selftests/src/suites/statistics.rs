// SPDX-License-Identifier: GPL-2.0

//! Statistics: counters and sums against the trace and the lists of objects.
//!
//! That everything is back at its first value when all files are closed is looked at behind every
//! test of every suite ([`Baseline`](crate::debugfs::Baseline)).

use std::collections::BTreeMap;

use crate::{
    abi::{
        self,
        Lock, //
    },
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        physical,
        plain,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    suite::Suite,
    trace::{
        Event,
        Events,
        Recording, //
    },
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "statistics",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[BCK-15]" counters_agree_with_sums_over_the_trace,
        "[BCK-15]" living_objects_are_counted,
        "[BCK-15]" sums_of_processes_agree_with_their_allocations,
        "[BCK-15]" segments_agree_with_allocations,
    },
};

/// The paging operations.
const OPERATIONS: [&str; 9] = [
    "Fill",
    "Transfer",
    "Discard",
    "FillVirtual",
    "TransferVirtual",
    "UpdatePageTable",
    "FlushTLB",
    "MapAperture",
    "UnmapAperture",
];

/// Makes memory come, go and move for every cause, and locks end in every way.
fn work_of_every_kind() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let everywhere = VISIBLE_SEGMENT | HIDDEN_SEGMENT | SYSTEM;
    for mask in [VISIBLE_SEGMENT, HIDDEN_SEGMENT, SYSTEM, everywhere] {
        let allocation = fixture.create_resident(physical(128 * KIB, mask));
        let mut commands = Commands::new();
        commands.fill_bytes(allocation.at(0), 4096, 77);
        fixture.run(&context, &commands);
        fixture.push_out(&allocation);
        fixture.bring_in(&allocation);
        debugfs::inject(&format!("evict {}", allocation.object_id));
        debugfs::inject(&format!("move {}", allocation.object_id));
        fixture.client.close_and_wait(&[allocation.handle]);
    }
    let allocation = fixture.create(physical(64 * KIB, everywhere));
    for segment in [1, 2, 1, 3, 2] {
        debugfs::inject(&format!("move {} {segment}", allocation.object_id));
    }
    // Two that do not fit beside each other, again and again.
    let large = [(); 2].map(|()| fixture.create(physical(12 * MIB, VISIBLE_SEGMENT)));
    for round in 0..4 {
        let mut commands = Commands::new();
        commands.store(large[round % 2].at(0), round as u64);
        fixture.run(&context, &commands);
    }
    debugfs::inject("pause 2");
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 1);
    commands.submit(&fixture.client, &context);
    let mut lock = Lock {
        alloc: allocation.handle,
        flags: abi::LOCK_READ | abi::LOCK_DO_NOT_WAIT,
        ..Default::default()
    };
    assert_eq!(fixture.client.try_lock(lock).err(), Some(libc::EAGAIN));
    // One that waits in vain.
    lock.flags = abi::LOCK_READ;
    lock.deadline_ns = clock::deadline_in(1);
    assert_eq!(fixture.client.try_lock(lock).err(), Some(libc::ETIME));
    debugfs::inject("resume 2");
    for _ in 0..2 {
        fixture.client.lock(allocation.handle, abi::LOCK_WRITE);
        fixture.client.unlock(allocation.handle);
    }
}

/// Waits until nothing is left that could still be counted.
fn wait_for_rest() {
    clock::wait_until("all objects are gone", || {
        let stats = debugfs::stats();
        stats["clients"] == 0 && stats["allocations"] == 0 && stats["pages_pinned"] == 0
    });
}

/// How much a counter has grown since `before`.
fn growth(before: &BTreeMap<String, u64>, name: &str) -> u64 {
    let first = before.get(name).copied();
    debugfs::stat(name) - first.unwrap_or_else(|| panic!("no {name} in stats"))
}

/// Adds up `amount` of the events by what `key` says of them.
fn sums<'a>(
    events: impl Iterator<Item = &'a Event>,
    key: impl Fn(&Event) -> String,
    amount: impl Fn(&Event) -> u64,
) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for event in events {
        *sums.entry(key(event)).or_default() += amount(event);
    }
    sums
}

/// What the counters must have grown by, according to the trace.
fn expected(events: &Events) -> BTreeMap<String, u64> {
    let one = |_: &Event| 1;
    let bytes = |event: &Event| event.number("bytes");
    let left = |event: &&Event| event.number("to_seg") == u64::MAX;
    let transfer = |event: &&Event| matches!(event.word("op"), "Transfer" | "TransferVirtual");
    let mut all = BTreeMap::new();
    for name in OPERATIONS {
        all.insert(format!("operations_{name}"), 0);
    }
    for part in [
        sums(
            events.named("paging_op"),
            |event| format!("operations_{}", event.word("op")),
            one,
        ),
        sums(
            events.named("paging_op"),
            |event| format!("operation_bytes_{}", event.word("op")),
            bytes,
        ),
        sums(
            events.named("paging_op").filter(transfer),
            |event| match (events.source(event).0, events.destination(event).0) {
                (0, _) => "transferred_in".to_owned(),
                (_, 0) => "transferred_out".to_owned(),
                _ => "transferred_within".to_owned(),
            },
            bytes,
        ),
        sums(
            events.named("residency").filter(left),
            |event| format!("evictions_{}", event.word("cause")),
            one,
        ),
        sums(
            events.named("lock"),
            |event| format!("locks_{}", event.word("decision")),
            one,
        ),
        sums(
            events.named("paging_submit"),
            |_| "paging_completed".to_owned(),
            one,
        ),
        sums(events.named("node_end"), |_| "buffers".to_owned(), one),
    ] {
        all.extend(part);
    }
    all
}

fn counters_agree_with_sums_over_the_trace() {
    let before = debugfs::stats();
    let recording = Recording::start();
    work_of_every_kind();
    wait_for_rest();
    // The last buffer may still be on its way back from the node.
    clock::wait_until("all buffers are back", || {
        let handed_over = recording.so_far().named("paging_submit").count();
        growth(&before, "paging_completed") == handed_over as u64
    });
    let events = recording.stop();
    let expected = expected(&events);
    for name in [
        "evictions_evict",
        "evictions_pressure",
        "evictions_discard",
        "locks_direct",
        "locks_would-block",
        "locks_stall",
        "transferred_in",
        "transferred_out",
    ] {
        assert!(expected.contains_key(name), "no {name} in the trace");
    }
    for (name, sum) in &expected {
        assert_eq!(growth(&before, name), *sum, "{name}");
    }
    let counters = debugfs::stats();
    let told = |prefix: &str| {
        let names = counters.keys().filter(move |name| name.starts_with(prefix));
        let growths = names.map(|name| growth(&before, name));
        growths.sum::<u64>()
    };
    for prefix in ["operations_", "evictions_", "locks_", "transferred_"] {
        let traced = expected.iter().filter(|(name, _)| name.starts_with(prefix));
        let traced: u64 = traced.map(|(_, sum)| sum).sum();
        assert_eq!(told(prefix), traced, "{prefix}");
    }
}

fn living_objects_are_counted() {
    let recording = Recording::start();
    let before = debugfs::stats();
    let fixture = Fixture::new();
    let _context = fixture.context();
    let held: Vec<u32> = (0..5)
        .map(|_| fixture.create_resident(plain(64 * KIB, SYSTEM)).handle)
        .collect();
    fixture.client.close_and_wait(&held[..2]);
    // What is closed is taken away from the backend last.
    let gone = ["name=destroy_allocation".to_owned()];
    clock::wait_until("both are taken away", || {
        let events = recording.so_far();
        let calls = events.named("backend_call");
        calls.filter(|call| call.is("backend_call", &gone)).count() == 2
    });
    let events = recording.stop();
    for (name, kind) in [
        ("clients", "process"),
        ("devices", "device"),
        ("contexts", "context"),
        ("allocations", "allocation"),
    ] {
        let count = |call: &str| {
            let name = [format!("name={call}_{kind}")];
            let calls = events.named("backend_call");
            calls
                .filter(|event| event.is("backend_call", &name))
                .count() as u64
        };
        let alive = count("create") - count("destroy");
        assert_eq!(growth(&before, name), alive, "{name}");
    }
    assert_eq!(growth(&before, "pages_pinned"), 3 * 16);
    // Of the queue and of the context, both with a fence of their own.
    assert_eq!(
        (growth(&before, "queues"), growth(&before, "fences")),
        (1, 2)
    );
}

fn sums_of_processes_agree_with_their_allocations() {
    let fixtures = [Fixture::new(), Fixture::new()];
    for fixture in &fixtures {
        for mask in [VISIBLE_SEGMENT, HIDDEN_SEGMENT, SYSTEM] {
            fixture.create_resident(physical(128 * KIB, mask));
            fixture.create_resident(plain(64 * KIB, mask));
            fixture.create(plain(256 * KIB, mask));
            let gone = fixture.create_resident(physical(512 * KIB, mask));
            fixture.push_out(&gone);
        }
    }
    let placements = debugfs::placements();
    let processes = debugfs::clients();
    assert_eq!(processes.len(), 2);
    for process in &processes {
        let own = placements
            .iter()
            .filter(|placement| placement.record.number("process") == process.number);
        let mut resident = BTreeMap::from([(0, 0), (1, 0), (2, 0), (3, 0)]);
        let (mut total, mut backing) = (0, 0);
        for placement in own {
            let size = placement.record.number("size");
            total += size;
            let in_memory = !placement.runs.is_empty();
            backing += if in_memory {
                size
            } else {
                placement.backing_pages() * 4096
            };
            if placement.segment != u64::MAX {
                *resident.entry(placement.segment).or_default() += size;
            }
            if placement.aperture.is_some() {
                *resident.entry(0).or_default() += size;
            }
        }
        assert_eq!(process.resident, resident);
        assert_eq!((process.total, process.backing), (total, backing));
    }
    let backing: u64 = processes.iter().map(|process| process.backing).sum();
    assert_eq!(debugfs::stat("pages_pinned"), backing / 4096);
}

fn segments_agree_with_allocations() {
    let fixture = Fixture::new();
    for mask in [VISIBLE_SEGMENT, HIDDEN_SEGMENT, SYSTEM] {
        fixture.create_resident(physical(192 * KIB, mask));
        fixture.create_resident(plain(64 * KIB, mask));
    }
    debugfs::inject("reserve 1 65536");
    let placements = debugfs::placements();
    for segment in debugfs::segments() {
        let taken: u64 = placements
            .iter()
            .filter(|placement| placement.segment == segment.id)
            .map(|placement| placement.record.number("size"))
            .sum();
        let reserved = if segment.id == 1 { 65536 } else { 0 };
        assert_eq!(segment.mapped, taken + segment.tables, "{segment:?}");
        assert_eq!(segment.room() - segment.free, taken + reserved);
    }
}
