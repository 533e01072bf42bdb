// SPDX-License-Identifier: GPL-2.0

//! Content through addresses: the order of operations, and what the addresses show.

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
        Event,
        Events,
        Recording, //
    },
};

/// The suite where tables are named by address.
pub const SUITE: Suite = Suite {
    name: "paging_virtual",
    parameters: Some("profile=DISC"),
    cases: CASES,
};

/// The suite where tables are named by their places, on four levels.
pub const PLACE_SUITE: Suite = Suite {
    name: "paging_virtual_place",
    parameters: Some("profile=DISC-4L update_mode=1"),
    cases: CASES,
};

/// The suite with a scratch area that is smaller than what is moved.
pub const SMALL_SUITE: Suite = Suite {
    name: "paging_virtual_small",
    parameters: Some("profile=DISC scratch=262144"),
    cases: crate::cases! {
        "[PAG-16]" large_transfer_goes_in_ascending_pieces,
        "[PAG-16]" large_fill_goes_in_ascending_pieces,
        "[PAG-16]" ranges_in_use_never_overlap,
        "[PAG-16]" paused_node_holds_ranges_and_nothing_else_up,
    },
};

/// The suite with the smallest buffers that are worth it.
pub const BUFFER_SUITE: Suite = Suite {
    name: "paging_virtual_buffer",
    parameters: Some("profile=DISC paging_buffer=4096"),
    cases: crate::cases! {
        "[PAG-17]" transfer_of_scattered_memory_spans_buffers_in_order,
        "[PAG-17]" buffer_reported_full_loses_nothing,
    },
};

const CASES: &[Case] = crate::cases! {
    "[PAG-8] [PAG-9] [PAG-10]" eviction_is_scenario_t,
    "[PAG-10] [PAG-11]" transfer_serves_every_pair_of_places,
    "[PAG-12]" first_residency_is_scenario_f,
    "[PAG-18]" mode_is_that_of_the_backend,
    "[PAG-19]" updates_are_disjoint_and_complete,
    "[PAG-20]" flushes_name_the_root_and_what_was_changed,
    "[PAG-16]" ranges_in_use_never_overlap,
    "[PAG-9]" scattered_memory_is_shown_in_its_order,
};

/// The scenario steps of one allocation: repeated steps are joined.
fn steps(events: &Events, id: u64) -> Vec<String> {
    let space = debugfs::paging_space();
    let mut purposes = BTreeMap::new();
    let mut steps: Vec<String> = Vec::new();
    for event in &events.0 {
        let step = match event.name.as_str() {
            "va_range" if event.word("action") == "alloc" && event.number("space") == space => {
                purposes.insert(event.number("start"), event.word("purpose").to_owned());
                format!("VA({})", event.word("purpose"))
            }
            "paging_op" if event.number("alloc") == id => match event.word("op") {
                "UpdatePageTable" => {
                    let below = purposes.range(..=event.number("va")).next_back();
                    format!("UPT({})", below.map_or("?", |(_, purpose)| purpose))
                }
                "FlushTLB" => "FLUSH".to_owned(),
                "TransferVirtual" => "XFERV".to_owned(),
                "FillVirtual" => "FILLV".to_owned(),
                other => other.to_owned(),
            },
            "paging_submit" => "SUBMIT".to_owned(),
            _ => continue,
        };
        if steps.last() != Some(&step) {
            steps.push(step);
        }
    }
    steps
}

/// Scenario T.
const TRANSFER: [&str; 7] = [
    "VA(source)",
    "VA(destination)",
    "UPT(source)",
    "UPT(destination)",
    "FLUSH",
    "XFERV",
    "SUBMIT",
];

/// Scenario F.
const FILL: [&str; 5] = [
    "VA(destination)",
    "UPT(destination)",
    "FLUSH",
    "FILLV",
    "SUBMIT",
];

/// First and last address of the scratch area: what leaf tables but those of the window translate.
fn scratch() -> (u64, u64) {
    let space = debugfs::paging_space();
    let leaves: Vec<u64> = debugfs::tables()
        .iter()
        .filter(|table| table.space == space && table.level == 0 && table.address > 0)
        .map(|table| table.address)
        .collect();
    let first = leaves.iter().min().expect("leaf tables");
    let last = leaves.iter().max().expect("leaf tables");
    (*first, last + (2 << 20))
}

/// Operations of an allocation with one name.
fn operations<'a>(events: &'a Events, op: &'a str, allocation: &Allocation) -> Vec<&'a Event> {
    events.operations(op, allocation.object_id).collect()
}

/// Updates of an allocation in the range that `start` begins and `bytes` long.
fn updates_in<'a>(
    events: &'a Events,
    allocation: &Allocation,
    start: u64,
    bytes: u64,
) -> Vec<&'a Event> {
    let mut updates = operations(events, "UpdatePageTable", allocation);
    updates.retain(|update| (start..start + bytes).contains(&update.number("va")));
    updates
}

fn eviction_is_scenario_t() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(MIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let data = pattern(2, MIB);
    mapping.write(0, &data);
    let recording = Recording::start();
    debugfs::inject(&format!("evict {}", allocation.object_id));
    let events = recording.stop();
    assert_eq!(steps(&events, allocation.object_id), TRANSFER);
    let (first, last) = scratch();
    let ranges: Vec<&Event> = events
        .named("va_range")
        .filter(|event| event.word("action") == "alloc")
        .collect();
    for range in &ranges {
        let (start, size) = (range.number("start"), range.number("size"));
        assert!(start >= first && start + size <= last, "{}", range.text);
        assert_eq!((size, range.number("process")), (MIB, 1));
    }
    for (range, segment, right) in [(ranges[0], 1, 0), (ranges[1], 0, 1)] {
        let updates = updates_in(&events, &allocation, range.number("start"), MIB);
        let bytes: u64 = updates.iter().map(|update| update.number("bytes")).sum();
        assert_eq!(bytes, MIB, "{}", events.listing());
        for update in updates {
            assert_eq!(update.number("dst_seg"), segment, "{}", update.text);
            assert_eq!(update.number("protection"), right, "{}", update.text);
        }
    }
    let transfers = operations(&events, "Transfer", &allocation);
    let bytes: u64 = transfers.iter().map(|event| event.number("bytes")).sum();
    assert_eq!(bytes, MIB);
    for submit in events.named("paging_submit") {
        assert_eq!(submit.number("ctx"), debugfs::system_context());
        assert_eq!(submit.number("node"), u64::from(PAGING_NODE));
    }
    assert!(mapping.read(0, data.len()) == data, "the content differs");
    fixture.bring_in(&allocation);
    assert!(mapping.read(0, data.len()) == data, "content after return");
}

fn transfer_serves_every_pair_of_places() {
    let fixture = Fixture::new();
    let everywhere = VISIBLE_SEGMENT | HIDDEN_SEGMENT | SYSTEM;
    let allocation = fixture.create_resident(plain(256 * KIB, everywhere));
    let id = allocation.object_id;
    let mapping = fixture.client.map(&allocation);
    let data = pattern(8, allocation.size);
    mapping.write(0, &data);
    debugfs::inject(&format!("move {id} 1 0x100000"));
    for (command, from, to) in [
        ("1 0x200000", 1, 1),
        ("2", 1, 2),
        ("2 0x100000", 2, 2),
        ("3", 2, 0),
        ("1 0x200000", 0, 1),
    ] {
        let before = debugfs::placement(id);
        let recording = Recording::start();
        debugfs::inject(&format!("move {id} {command}"));
        let events = recording.stop();
        let after = debugfs::placement(id);
        assert_eq!(steps(&events, id), TRANSFER, "move {command}");
        for transfer in operations(&events, "Transfer", &allocation) {
            let (source, target) = (events.source(transfer), events.destination(transfer));
            assert_eq!((source.0, target.0), (from, to), "move {command}");
            assert_eq!(source.1, before.offset, "move {command}");
            assert_eq!(target.1, after.offset, "move {command}");
        }
        assert!(mapping.read(0, data.len()) == data, "after move {command}");
        // What is unchanged would leave without a transfer.
        mapping.write(0, &data);
    }
}

fn first_residency_is_scenario_f() {
    let fixture = Fixture::new();
    for (mask, segment) in [(VISIBLE_SEGMENT, 1), (HIDDEN_SEGMENT, 2)] {
        let allocation = fixture.create(plain(MIB, mask));
        let recording = Recording::start();
        fixture.bring_in(&allocation);
        let events = recording.stop();
        assert_eq!(steps(&events, allocation.object_id), FILL);
        assert_eq!(events.bytes("FillVirtual", allocation.object_id), MIB);
        for update in operations(&events, "UpdatePageTable", &allocation) {
            assert_eq!(update.number("dst_seg"), segment, "{}", update.text);
        }
        assert!(fixture
            .client
            .map(&allocation)
            .is_filled(0, MIB as usize, 0));
    }
}

fn mode_is_that_of_the_backend() {
    let fixture = Fixture::new();
    let recording = Recording::start();
    fixture.create_resident(plain(64 * KIB, VISIBLE_SEGMENT));
    let events = recording.stop();
    // Four levels come with tables that are named by their places.
    let levels = debugfs::tables().iter().map(|table| table.level).max();
    let expected = match levels {
        Some(1) => "gpu_virtual",
        _ => "gpu_physical",
    };
    let mut seen = 0;
    for event in events.named("paging_op") {
        let mode = match event.word("op") {
            "UpdatePageTable" => expected,
            _ => "none",
        };
        assert_eq!(event.word("mode"), mode, "{}", event.text);
        assert_ne!(event.number("buf"), 0, "{}", event.text);
        seen += 1;
    }
    assert!(seen >= 3);
}

/// Work that moves memory of every kind in every direction.
fn do_some_work(fixture: &Fixture) {
    let context = fixture.context();
    for mask in [VISIBLE_SEGMENT, HIDDEN_SEGMENT, SYSTEM] {
        for size in [64 * KIB, 3 * MIB] {
            let allocation = fixture.create_resident(physical(size, mask));
            let mut commands = Commands::new();
            commands.fill_bytes(allocation.at(0), 4096, 77);
            fixture.run(&context, &commands);
            fixture.push_out(&allocation);
            fixture.bring_in(&allocation);
            fixture.client.close_and_wait(&[allocation.handle]);
        }
    }
}

fn updates_are_disjoint_and_complete() {
    let fixture = Fixture::new();
    debugfs::inject("fragment 1");
    let recording = Recording::start();
    for size in [64 * KIB, 5 * MIB] {
        let allocation = fixture.create_resident(plain(size, VISIBLE_SEGMENT));
        fixture.client.map(&allocation).write32(0, 1);
        fixture.push_out(&allocation);
        fixture.bring_in(&allocation);
        fixture.push_out(&allocation);
    }
    let events = recording.stop();
    let tables = debugfs::tables();
    let mut shown = 0;
    for event in &events.0 {
        let op = match event.name.as_str() {
            "paging_op" => event.word("op"),
            _ => continue,
        };
        match op {
            "UpdatePageTable" => {
                let (address, bytes) = (event.number("va"), event.number("bytes"));
                let place = (event.number("src_seg"), event.number("src_off"));
                let holder = tables.iter().find(|table| {
                    let offset = table.place.map(|(_, offset)| place.1.wrapping_sub(offset));
                    table.place.map(|at| at.0) == Some(place.0)
                        && offset.is_some_and(|offset| offset < 4096)
                });
                let holder = holder.unwrap_or_else(|| panic!("no table: {}", event.text));
                let index = (address - holder.address) / 4096;
                assert_eq!(place.1, holder.place.expect("a place").1 + 8 * index);
                assert!(index + event.number("count") <= 512, "{}", event.text);
                assert_eq!(bytes, 4096 * event.number("count"), "{}", event.text);
                assert_eq!((event.number("level"), event.number("flags")), (0, 0));
                shown += bytes;
            }
            "TransferVirtual" => {
                assert_eq!(shown, 2 * event.number("bytes"), "{}", event.text);
                shown = 0;
            }
            "FillVirtual" => {
                assert_eq!(shown, event.number("bytes"), "{}", event.text);
                shown = 0;
            }
            _ => {}
        }
    }
    // Within a range each update begins where the one before it ended.
    let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
    for event in &events.0 {
        if event.name == "va_range" && event.word("action") == "alloc" {
            ends.insert(event.number("start"), event.number("start"));
        } else if event.name == "paging_op" && event.word("op") == "UpdatePageTable" {
            let address = event.number("va");
            let (_, end) = ends.range_mut(..=address).next_back().expect("a range");
            assert_eq!(*end, address, "{}", event.text);
            *end += event.number("bytes");
        }
    }
}

fn flushes_name_the_root_and_what_was_changed() {
    let fixture = Fixture::new();
    let recording = Recording::start();
    do_some_work(&fixture);
    let events = recording.stop();
    let space = debugfs::paging_space();
    let mut changed: Vec<(u64, u64)> = Vec::new();
    let mut flushes = 0;
    for event in events.named("paging_op") {
        let range = (
            event.number("va"),
            event.number("va") + event.number("bytes"),
        );
        match event.word("op") {
            "UpdatePageTable" => changed.push(range),
            "FlushTLB" => {
                assert_eq!((event.number("space"), event.number("process")), (space, 1));
                for (start, end) in changed.drain(..) {
                    assert!(range.0 <= start && end <= range.1, "{}", event.text);
                }
                flushes += 1;
            }
            "TransferVirtual" | "FillVirtual" => {
                assert!(changed.is_empty(), "no flush before {}", event.text);
            }
            _ => {}
        }
    }
    assert!(flushes > 6);
}

fn ranges_in_use_never_overlap() {
    let fixture = Fixture::new();
    let recording = Recording::start();
    do_some_work(&fixture);
    let events = recording.stop();
    let space = debugfs::paging_space();
    let mut live: BTreeMap<u64, u64> = BTreeMap::new();
    let mut freed = 0;
    for event in events.named("va_range") {
        assert_eq!(event.number("space"), space, "{}", event.text);
        let (start, size) = (event.number("start"), event.number("size"));
        if event.word("action") == "free" {
            // What was taken before the recording may end in it.
            freed += u64::from(live.remove(&start).is_some());
            continue;
        }
        let below = live.range(..start + size).next_back();
        let apart = below.is_none_or(|(other, length)| other + length <= start);
        assert!(apart, "{} overlaps {below:?}", event.text);
        live.insert(start, size);
    }
    assert!(freed > 10, "{freed} ranges came back");
}

fn scattered_memory_is_shown_in_its_order() {
    let fixture = Fixture::new();
    debugfs::inject("fragment 1");
    let allocation = fixture.create(plain(2 * MIB, VISIBLE_SEGMENT));
    let recording = Recording::start();
    fixture.bring_in(&allocation);
    let events = recording.stop();
    let runs = debugfs::placement(allocation.object_id).runs;
    let pages: Vec<u64> = runs
        .iter()
        .flat_map(|run| (run.start..run.end()).step_by(4096))
        .collect();
    let mut covered = 0;
    for update in operations(&events, "UpdatePageTable", &allocation) {
        assert_eq!(update.number("dst_off"), pages[covered], "{}", update.text);
        covered += update.number("count") as usize;
    }
    assert_eq!(covered, pages.len());
    let fill = pattern(7, allocation.size);
    let mapping = fixture.client.map(&allocation);
    mapping.write(0, &fill);
    fixture.push_out(&allocation);
    assert!(mapping.read(0, fill.len()) == fill, "content outside");
}

/// Half of the scratch area of the small suite: what one of two ranges can have.
const HALF: u64 = 128 * KIB;

fn large_transfer_goes_in_ascending_pieces() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(physical(MIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let data = pattern(11, MIB);
    mapping.write(0, &data);
    let place = debugfs::placement(allocation.object_id).offset;
    let recording = Recording::start();
    debugfs::inject(&format!("evict {}", allocation.object_id));
    let events = recording.stop();
    let found = steps(&events, allocation.object_id);
    let rounds: Vec<&[String]> = found.chunks(TRANSFER.len()).collect();
    assert_eq!(rounds.len() as u64, MIB / HALF);
    for round in rounds {
        assert_eq!(round, TRANSFER);
    }
    let transfers = operations(&events, "Transfer", &allocation);
    for (number, transfer) in (0..).zip(&transfers) {
        assert_eq!(events.source(transfer), (1, place + number * HALF));
        assert_eq!(transfer.number("bytes"), HALF);
    }
    assert!(mapping.read(0, data.len()) == data, "the content differs");
}

fn large_fill_goes_in_ascending_pieces() {
    let fixture = Fixture::new();
    let allocation = fixture.create(physical(MIB, VISIBLE_SEGMENT));
    let recording = Recording::start();
    fixture.bring_in(&allocation);
    let events = recording.stop();
    let place = debugfs::placement(allocation.object_id).offset;
    let fills = operations(&events, "Fill", &allocation);
    assert_eq!(fills.len(), 4);
    for (number, fill) in (0..).zip(&fills) {
        let offset = place + number * 2 * HALF;
        assert_eq!(events.destination(fill), (1, offset));
        assert_eq!(fill.number("bytes"), 2 * HALF);
    }
    assert!(fixture
        .client
        .map(&allocation)
        .is_filled(0, MIB as usize, 0));
}

fn paused_node_holds_ranges_and_nothing_else_up() {
    let fixture = Fixture::new();
    let first = fixture.create(plain(128 * KIB, VISIBLE_SEGMENT));
    let second = fixture.create(plain(128 * KIB, VISIBLE_SEGMENT));
    debugfs::inject("pause 1");
    for allocation in [&first, &second] {
        let answer = fixture
            .client
            .make_resident(&fixture.queue, &[allocation.handle]);
        assert!(matches!(answer, crate::client::Answer::Pending(_)));
    }
    // Half of the area is in use, and who asks is answered all the same.
    let state = fixture.client.state_of(first.handle);
    assert_eq!(state.resident_refs, 1);
    debugfs::inject("resume 1");
    fixture.bring_in(&second);
    for allocation in [&first, &second] {
        let mapping = fixture.client.map(allocation);
        assert!(mapping.is_filled(0, allocation.size as usize, 0));
    }
}

/// The buffers that hold the operations of an allocation, in the order of these.
fn buffers(events: &Events, allocation: &Allocation) -> BTreeSet<u64> {
    let id = allocation.object_id;
    let mine: Vec<u64> = events
        .named("paging_op")
        .filter(|event| event.number("alloc") == id)
        .map(|event| event.number("buf"))
        .collect();
    assert!(mine.is_sorted(), "{mine:?}");
    mine.into_iter().collect()
}

fn transfer_of_scattered_memory_spans_buffers_in_order() {
    let fixture = Fixture::new();
    debugfs::inject("fragment 1");
    let size = debugfs::segment(1).free / (64 * KIB) * (64 * KIB);
    let allocation = fixture.create_resident(plain(size, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let data = pattern(17, allocation.size);
    mapping.write(0, &data);
    let recording = Recording::start();
    fixture.push_out(&allocation);
    // A touch waits until the place is in force, thus for the last buffer.
    assert!(mapping.read(0, data.len()) == data, "content outside");
    let events = recording.stop();
    assert_eq!(events.bytes("Transfer", allocation.object_id), size);
    let used = buffers(&events, &allocation);
    assert!(used.len() >= 4, "{} buffers", used.len());
    let mut order = Vec::new();
    for submit in events.named("paging_submit") {
        let fence = submit.number("fence");
        order.push(format!("node_begin node={PAGING_NODE} fence={fence}"));
        order.push(format!("node_end node={PAGING_NODE} fence={fence}"));
    }
    events.assert_order(&order);
    fixture.bring_in(&allocation);
    assert!(mapping.read(0, data.len()) == data, "content back inside");
}

fn buffer_reported_full_loses_nothing() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(physical(MIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let data = pattern(18, MIB);
    for count in [1, 2, 3, 4, 5, 40] {
        // What is unchanged would leave without a transfer.
        mapping.write(0, &data);
        debugfs::inject(&format!("fail buffer-full {count}"));
        let recording = Recording::start();
        debugfs::inject(&format!("evict {}", allocation.object_id));
        let events = recording.stop();
        assert_eq!(events.bytes("Transfer", allocation.object_id), MIB);
        buffers(&events, &allocation);
        assert!(mapping.read(0, data.len()) == data, "after {count}");
        fixture.bring_in(&allocation);
        fixture.client.evict(fixture.device, &[allocation.handle]);
    }
}
