// SPDX-License-Identifier: GPL-2.0

//! How the tables of a client are written: the order of operations, and what the entries name.

use crate::{
    abi::{
        self,
        VaMap, //
    },
    addresses::Ground,
    client::Answer,
    debugfs,
    fixture::{
        plain,
        KIB,
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

/// The suite with two levels.
pub const SUITE: Suite = Suite {
    name: "address_updates",
    parameters: Some("profile=DISC"),
    cases: CASES,
};

/// The suite with four levels.
pub const FOUR_SUITE: Suite = Suite {
    name: "address_updates_four",
    parameters: Some("profile=DISC-4L"),
    cases: CASES,
};

const CASES: &[Case] = crate::cases! {
    "[PAG-4] [PAG-5] [PAG-6] [PAG-7] [PAG-13]" mapping_is_scenario_u,
    "[PAG-6] [PAG-19]" entries_name_each_page,
    "[RES-5] [RES-7]" residency_begins_with_the_tables,
};

/// The operations and ranges of scenario U, repeated ones joined.
fn steps(events: &Events) -> Vec<String> {
    let paging = debugfs::paging_space();
    let mut steps: Vec<String> = Vec::new();
    for event in &events.0 {
        let whose = |space: u64| if space == paging { "paging" } else { "client" };
        let step = match event.name.as_str() {
            "va_range" if event.word("action") == "alloc" && event.number("space") == paging => {
                format!("VA({})", event.word("purpose"))
            }
            "paging_op" => match event.word("op") {
                "UpdatePageTable" => format!("UPT({})", whose(event.number("space"))),
                "FlushTLB" => format!("FLUSH({})", whose(event.number("space"))),
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

/// Scenario U.
const UPDATE: [&str; 6] = [
    "VA(root)",
    "VA(table)",
    "UPT(paging)",
    "FLUSH(paging)",
    "UPT(client)",
    "FLUSH(client)",
];

fn mapping_is_scenario_u() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let data = ground
        .fixture
        .create_resident(plain(64 * KIB, VISIBLE_SEGMENT));
    let recording = Recording::start();
    let va = ground.map(&data, abi::VA_WRITE);
    let events = recording.stop();
    let expected: Vec<&str> = UPDATE.iter().copied().chain(["SUBMIT"]).collect();
    assert_eq!(steps(&events), expected, "{}", events.listing());
    let submit = events.named("paging_submit").next().expect("a buffer");
    assert_eq!(submit.number("ctx"), debugfs::system_context());
    assert_eq!(submit.number("node"), u64::from(PAGING_NODE));
    for operation in events.named("paging_op") {
        assert_eq!(operation.number("buf"), submit.number("buf"));
        assert_ne!(operation.word("op"), "CopyPageTableEntries");
    }
    let flush = events.named("paging_op").last().expect("an operation");
    assert_eq!((flush.number("va"), flush.number("bytes")), (va, data.size));
    // What the paging process sees is where the tables are.
    let first = events.named("paging_op").next().expect("an operation");
    let tables: Vec<u64> = events
        .named("paging_op")
        .filter(|event| {
            event.word("op") == "UpdatePageTable" && event.number("space") != first.number("space")
        })
        .map(|event| event.number("src_off") & !0xfff)
        .collect();
    assert!(!tables.is_empty() && first.number("count") >= 2);
}

fn entries_name_each_page() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    debugfs::inject("fragment 1");
    let data = ground
        .fixture
        .create_resident(plain(64 * KIB, VISIBLE_SEGMENT));
    let recording = Recording::start();
    let part = VaMap {
        queue: ground.fixture.queue.handle,
        alloc: data.handle,
        base: 0x5f_e000,
        alloc_offset: 0x4000,
        size: 0x4000,
        ..Default::default()
    };
    assert_eq!(ground.map_as(part), Ok(0x5f_e000));
    let events = recording.stop();
    let paging = debugfs::paging_space();
    let updates: Vec<_> = events
        .named("paging_op")
        .filter(|event| {
            event.word("op") == "UpdatePageTable"
                && event.number("space") != paging
                && event.number("level") == 0
                && event.number("flags") == 0
        })
        .map(|event| {
            (
                event.number("va"),
                event.number("count"),
                event.number("dst_off"),
            )
        })
        .collect();
    // Two leaves, two pages in each.
    assert_eq!(updates.len(), 2, "{}", events.listing());
    assert_eq!((updates[0].0, updates[0].1), (0x5f_e000, 2));
    assert_eq!((updates[1].0, updates[1].1), (0x60_0000, 2));
    let runs = debugfs::placement(data.object_id).runs;
    let pages: Vec<u64> = runs
        .iter()
        .flat_map(|run| (run.start..run.start + run.length).step_by(4096))
        .collect();
    assert_eq!((updates[0].2, updates[1].2), (pages[4], pages[6]));
}

fn residency_begins_with_the_tables() {
    for segments in [VISIBLE_SEGMENT, SYSTEM] {
        let ground = Ground::new(VISIBLE_SEGMENT);
        let data = ground.fixture.create(plain(64 * KIB, segments));
        ground.map(&data, 0);
        let recording = Recording::start();
        let answer = ground
            .fixture
            .client
            .make_resident(&ground.fixture.queue, &[data.handle]);
        ground.fixture.client.settle(&ground.fixture.queue, answer);
        let events = recording.stop();
        let all = steps(&events);
        assert_eq!(all[..6], UPDATE, "{}", events.listing());
        let fills = all.iter().filter(|step| *step == "FILLV").count();
        assert_eq!(fills, usize::from(segments == VISIBLE_SEGMENT));
        let Answer::Pending(value) = answer else {
            panic!("ready at once");
        };
        let mut order: Vec<String> = (1..=3)
            .map(|step| format!("resident_step where=app step={step}"))
            .collect();
        order.push("resident_step where=worker step=1".to_owned());
        order.push("paging_op op=UpdatePageTable".to_owned());
        if segments == VISIBLE_SEGMENT {
            order.push("resident_step where=worker step=2".to_owned());
            order.push("paging_op op=FillVirtual".to_owned());
        }
        order.push("resident_step where=worker step=3".to_owned());
        order.push(format!("fence value={value} origin=worker"));
        events.assert_order(&order);
        if segments == SYSTEM {
            let words = ["where=worker".to_owned(), "step=2".to_owned()];
            events.assert_none("resident_step", &words);
        }
    }
}
