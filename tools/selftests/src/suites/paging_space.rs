// SPDX-License-Identifier: GPL-2.0

//! The address space of the paging process: how it comes, what is in it, and that it stays.
//!
//! Each test loads the module by itself.

use crate::{
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
    module::{
        self,
        Loaded, //
    },
    suite::Suite,
    trace::{
        self,
        Event,
        Events,
        Recording, //
    },
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "paging_space",
    parameters: None,
    cases: crate::cases! {
        "[VA-1] [VA-2] [VA-4] [VA-5] [VA-8]" space_is_set_up_in_order_at_load,
        "[VA-5]" every_table_is_initialised_once_before_it_is_linked,
        "[VA-2] [VA-3]" backend_keeps_its_range,
        "[VA-3]" misaligned_range_of_the_backend_does_not_load,
        "[VA-3]" range_beyond_the_space_does_not_load,
        "[VA-4]" tables_lie_in_the_named_segment,
        "[VA-4]" tables_in_an_unknown_segment_do_not_load,
        "[VA-4]" tables_without_room_do_not_load,
        "[VA-9]" window_shows_the_tables_of_the_scratch_area,
        "[VA-9]" tables_stay_under_pressure,
        "[VA-11]" tables_have_the_shape_of_the_levels,
        "[VA-11]" long_tables_in_system_memory_do_not_load,
        "[PAG-18]" cpu_virtual_with_tables_in_a_segment_does_not_load,
        "[PAG-22]" adapter_without_mmu_has_no_space,
    },
};

/// What happens to the space while the module loads: repeated steps are joined.
fn steps(events: &Events) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    for event in &events.0 {
        let step = match event.name.as_str() {
            "backend_call" => event.word("name").to_owned(),
            "va_range" => format!("VA({})", event.word("purpose")),
            "alloc" | "residency" => event.name.clone(),
            "paging_op" if event.number("space") != 0 => "UPT".to_owned(),
            "paging_op" | "paging_submit" => event.text.clone(),
            _ => continue,
        };
        if steps.last() != Some(&step) {
            steps.push(step);
        }
    }
    steps
}

/// Loads the module and returns what it said meanwhile.
fn load(parameters: &str) -> (Loaded, Events) {
    let recording = trace::record_load();
    let loaded = Loaded::new(parameters);
    (loaded, recording.stop())
}

/// The tables of the paging process.
fn tables() -> Vec<debugfs::Table> {
    let space = debugfs::paging_space();
    let mut tables = debugfs::tables();
    tables.retain(|table| table.space == space);
    tables
}

fn space_is_set_up_in_order_at_load() {
    for profile in ["DISC", "DISC-4L", "INT"] {
        let (_loaded, events) = load(&format!("profile={profile}"));
        let expected = [
            "query_segments",
            "create_process",
            "create_device",
            "alloc",
            "residency",
            "UPT",
            "create_context",
            "set_root",
        ];
        assert_eq!(steps(&events), expected, "{profile}");
        let tables = tables();
        let count = |name| events.named(name).count();
        assert_eq!(count("alloc"), tables.len(), "{profile}");
        assert_eq!(count("residency"), tables.len(), "{profile}");
        for operation in events.named("paging_op") {
            assert_eq!(operation.word("op"), "UpdatePageTable");
            assert_eq!(operation.word("mode"), "cpu_virtual");
            assert_eq!(operation.number("buf"), 0, "{}", operation.text);
            assert_eq!(operation.number("space"), debugfs::paging_space());
            assert_eq!(operation.number("process"), 1);
        }
        for event in events.named("backend_call") {
            let process = event.number("process");
            assert_eq!(process, u64::from(event.word("name") != "query_segments"));
        }
    }
}

fn every_table_is_initialised_once_before_it_is_linked() {
    let (_loaded, events) = load("profile=DISC");
    let place =
        |event: &Event, segment: &str, offset: &str| (event.number(segment), event.number(offset));
    let mut ready = Vec::new();
    for update in events.named("paging_op") {
        let table = place(update, "src_seg", "src_off");
        if update.number("flags") == 3 {
            assert!(!ready.contains(&table), "{}", update.text);
            assert_eq!(update.number("count"), 512);
            assert_eq!(update.number("dst_seg"), u64::MAX);
            ready.push(table);
        } else {
            assert_eq!(update.number("flags"), 0, "{}", update.text);
            let named = place(update, "dst_seg", "dst_off");
            assert!(ready.contains(&named), "{}", update.text);
        }
    }
    let mut places: Vec<_> = tables().iter().filter_map(|table| table.place).collect();
    places.sort_unstable();
    ready.sort_unstable();
    assert_eq!(ready, places);
}

fn backend_keeps_its_range() {
    const RESERVED: u64 = 4 << 20;
    let (_loaded, events) = load("profile=DISC reserve_va=4194304");
    let found = steps(&events);
    let expected = ["create_process", "create_device", "VA(backend)", "alloc"];
    assert_eq!(found[1..5], expected);
    let range = events.named("va_range").next().expect("a range");
    assert_eq!(range.number("size"), RESERVED);
    let (start, end) = (range.number("start"), range.number("start") + RESERVED);
    let fixture = Fixture::new();
    let recording = Recording::start();
    for _ in 0..6 {
        let allocation = fixture.create_resident(plain(6 * MIB, VISIBLE_SEGMENT));
        fixture.client.map(&allocation).write32(0, 1);
        fixture.push_out(&allocation);
    }
    let events = recording.stop();
    let space = debugfs::paging_space();
    let mut seen = 0;
    for other in events.named("va_range") {
        assert_eq!(other.number("space"), space);
        let first = other.number("start");
        assert!(
            first + other.number("size") <= start || end <= first,
            "{}",
            other.text
        );
        seen += 1;
    }
    assert!(seen > 12);
}

fn misaligned_range_of_the_backend_does_not_load() {
    let result = module::try_load("profile=DISC reserve_va=4198400");
    assert_eq!(result, Ok(()), "whole pages are fine");
    module::try_unload().expect("it is not in use");
    for bytes in [1, 4095, 4194305] {
        let result = module::try_load(&format!("profile=DISC reserve_va={bytes}"));
        assert_eq!(result, Err(libc::EINVAL), "{bytes}");
    }
}

fn range_beyond_the_space_does_not_load() {
    let result = module::try_load(&format!("profile=DISC reserve_va={}", 32_u64 << 30));
    assert_eq!(result, Err(libc::EINVAL));
}

fn tables_lie_in_the_named_segment() {
    for (number, segment) in [(0, 0), (1, 1), (2, 2)] {
        let (_loaded, events) = load(&format!("profile=DISC paging_tables={number}"));
        let tables = tables();
        assert_eq!(tables.len(), 18);
        for table in &tables {
            assert_eq!(table.place.map(|place| place.0), Some(segment), "{table:?}");
            let moved = events.find(
                0,
                "residency",
                &[format!("alloc={}", table.table), "from_seg=-1".to_owned()],
            );
            let moved = &events.0[moved.expect("a place")];
            let place = (moved.number("to_seg"), moved.number("to_off"));
            assert_eq!(table.place, Some(place));
        }
        let fixture = Fixture::new();
        let allocation = fixture.create_resident(plain(64 * KIB, VISIBLE_SEGMENT));
        assert!(fixture.client.map(&allocation).is_filled(0, 64 << 10, 0));
    }
}

fn tables_in_an_unknown_segment_do_not_load() {
    for number in [4, 9, 31, 32, 3] {
        for which in ["paging_tables", "client_tables"] {
            let result = module::try_load(&format!("profile=DISC {which}={number}"));
            assert_eq!(result, Err(libc::EINVAL), "{which}={number}");
        }
    }
}

fn tables_without_room_do_not_load() {
    let result = module::try_load("profile=DISC segments=memory:64K,aperture:1M");
    assert_eq!(result, Err(libc::ENOSPC));
}

fn window_shows_the_tables_of_the_scratch_area() {
    let (_loaded, _) = load("profile=DISC");
    let tables = tables();
    let leaf = |address| {
        let found = tables
            .iter()
            .find(|table| table.level == 0 && table.address == address);
        found.expect("a leaf table")
    };
    let entries = debugfs::table_entries();
    let window = leaf(0);
    let mut seen = 0;
    for entry in entries.iter().filter(|entry| entry.table == window.table) {
        let (segment, offset) = entry.to.expect("a page");
        assert_eq!((entry.kind.as_str(), entry.rights), ("page", 1));
        for step in 0..entry.count {
            let index = entry.first + step;
            let shown = leaf(index * (2 << 20)).place;
            assert_eq!(shown, Some((segment, offset + step * 4096)), "page {index}");
            seen += 1;
        }
    }
    // Page 0 shows nothing.
    assert!(entries
        .iter()
        .all(|entry| entry.address != 0 || entry.kind != "page"));
    assert_eq!(seen, 16);
    let scratch = tables
        .iter()
        .filter(|table| table.level == 0 && table.address > 0);
    for table in scratch {
        let said = entries.iter().find(|entry| entry.table == table.table);
        assert_eq!(said, None);
    }
}

fn tables_stay_under_pressure() {
    let _loaded = Loaded::new("profile=DISC");
    let before = tables();
    let fixture = Fixture::new();
    let context = fixture.context();
    for round in 0..4 {
        let room = debugfs::segment(1).room();
        let whole = fixture.create(physical(room, VISIBLE_SEGMENT));
        let mut commands = Commands::new();
        commands.fill_bytes(whole.at(0), 64 << 10, round);
        fixture.run(&context, &commands);
        assert_eq!(debugfs::segment(1).free, 0);
        assert_eq!(tables(), before);
    }
    let scattered: Vec<_> = (0..8)
        .map(|_| fixture.create_resident(plain(MIB, VISIBLE_SEGMENT | SYSTEM)))
        .collect();
    assert_eq!(tables(), before);
    drop(scattered);
}

fn tables_have_the_shape_of_the_levels() {
    for (parameters, counts) in [
        ("profile=DISC", vec![17, 1]),
        ("profile=DISC-4L", vec![17, 1, 1, 1]),
        ("profile=INT", vec![1, 1, 1, 1]),
        ("profile=DISC scratch=268435456", vec![129, 1]),
    ] {
        let _loaded = Loaded::new(parameters);
        let tables = tables();
        for (level, count) in (0..).zip(&counts) {
            let found = tables.iter().filter(|table| table.level == level);
            assert_eq!(found.count(), *count, "{parameters}, level {level}");
        }
        for table in &tables {
            assert!((table.level as usize) < counts.len());
            assert_eq!(table.entries, 512);
            assert_eq!(table.place.expect("a place").1 % 4096, 0);
        }
    }
}

fn long_tables_in_system_memory_do_not_load() {
    // The root of two levels can grow beyond a page.
    let result = module::try_load("profile=DISC client_tables=0");
    assert_eq!(result, Err(libc::EINVAL));
    let _loaded = Loaded::new("profile=DISC-4L client_tables=0");
}

fn cpu_virtual_with_tables_in_a_segment_does_not_load() {
    for which in [
        "client_tables=1 paging_tables=0",
        "client_tables=0 paging_tables=1",
    ] {
        let parameters = format!("profile=DISC-4L update_mode=2 {which}");
        assert_eq!(module::try_load(&parameters), Err(libc::EINVAL), "{which}");
    }
    let _loaded = Loaded::new("profile=DISC-4L update_mode=2 client_tables=0 paging_tables=0");
    let fixture = Fixture::new();
    let recording = Recording::start();
    let allocation = fixture.create_resident(plain(64 * KIB, VISIBLE_SEGMENT));
    let events = recording.stop();
    assert_eq!(events.named("va_range").count(), 0);
    assert!(fixture.client.map(&allocation).is_filled(0, 64 << 10, 0));
}

fn adapter_without_mmu_has_no_space() {
    let (_loaded, events) = load("profile=PHYS");
    let expected = [
        "query_segments",
        "create_process",
        "create_device",
        "create_context",
    ];
    assert_eq!(steps(&events), expected);
    assert_eq!(debugfs::read("pagetables").len(), 0);
    assert!(debugfs::read("processes")
        .iter()
        .all(|record| record.word("space").is_none()));
}
