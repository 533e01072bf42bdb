// SPDX-License-Identifier: GPL-2.0

//! The text of trace events: which fields, in which order, as which words and numbers.

use std::collections::BTreeSet;

use crate::{
    abi,
    client::Allocation,
    commands::Commands,
    debugfs,
    fixture::{
        physical,
        plain,
        Fixture,
        KIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    suite::Suite,
    trace::{
        Events,
        Recording,
        EVENTS, //
    },
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "trace_format",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" every_event_has_its_fields_in_order,
        "" words_are_those_of_the_text,
        "" numbers_have_the_form_of_the_text,
        "" creation_and_destruction_read_exactly,
        "" residency_reads_exactly,
        "" submission_reads_exactly,
        "" operations_are_numbered_without_gaps,
        "" submissions_are_numbered_on_the_adapter,
    },
};

/// Records work of every kind; the allocation is closed at the end.
fn record_work() -> (Events, Allocation) {
    let recording = Recording::start();
    let fixture = Fixture::new();
    let context = fixture.context();
    let gate = fixture.client.create_fence(fixture.device, 0);
    let allocation = fixture.create_resident(physical(64 * KIB, VISIBLE_SEGMENT));
    fixture.client.lock(allocation.handle, abi::LOCK_WRITE);
    fixture.client.unlock(allocation.handle);
    let mut commands = Commands::new();
    commands
        .store(allocation.at(0), 1)
        .wait_for(gate, 1)
        .then_signal(gate, 2);
    let id = commands.submit(&fixture.client, &context);
    fixture.client.signal(gate, 1);
    fixture.client.wait(context.progress, id);
    fixture.push_out(&allocation);
    debugfs::inject(&format!("move {} 1", allocation.object_id));
    fixture.create_resident(physical(64 * KIB, SYSTEM));
    fixture.create_resident(plain(64 * KIB, SYSTEM));
    fixture.client.close_and_wait(&[allocation.handle]);
    let events = recording.stop();
    (events, allocation)
}

fn every_event_has_its_fields_in_order() {
    let (events, _) = record_work();
    let mut seen = BTreeSet::new();
    for event in &events.0 {
        let known = EVENTS.iter().find(|(name, _)| *name == event.name);
        let (name, fields) = known.unwrap_or_else(|| panic!("unknown event {}", event.name));
        assert_eq!(event.keys(), *fields, "{name}: {}", event.text);
        seen.insert(*name);
    }
    for name in [
        "backend_call",
        "alloc",
        "paging_op",
        "paging_submit",
        "resident_step",
        "residency",
        "dma_prepare",
        "dma_portion",
        "dma_patch",
        "node_begin",
        "node_end",
        "lock",
        "fence",
        "fence_wait",
    ] {
        assert!(seen.contains(name), "no event {name}");
    }
}

fn words_are_those_of_the_text() {
    let (events, _) = record_work();
    let words: [(&str, &str, &[&str]); 14] = [
        ("alloc", "action", &["create", "destroy"]),
        ("paging_op", "mode", &["none", "gpu_virtual"]),
        (
            "va_range",
            "purpose",
            &["root", "table", "source", "destination"],
        ),
        ("va_range", "action", &["alloc", "free"]),
        (
            "paging_op",
            "cause",
            &["resident", "evict", "pressure", "move", "discard", "scrub"],
        ),
        (
            "residency",
            "cause",
            &["resident", "evict", "pressure", "move", "discard"],
        ),
        ("resident_step", "where", &["app", "worker"]),
        (
            "dma_prepare",
            "result",
            &["resident", "paged-in", "unbound", "replaced", "no-memory"],
        ),
        ("node_begin", "kind", &["dma", "paging", "wait", "signal"]),
        ("node_end", "kind", &["dma", "paging", "wait", "signal"]),
        (
            "lock",
            "decision",
            &["direct", "reuse", "rename", "stall", "would-block"],
        ),
        (
            "fence",
            "origin",
            &["cpu", "gpu", "worker", "companion", "reset"],
        ),
        ("fence_wait", "action", &["begin", "end", "cancel"]),
        (
            "paging_op",
            "op",
            &[
                "FillVirtual",
                "TransferVirtual",
                "UpdatePageTable",
                "FlushTLB",
                "Discard",
                "MapAperture",
                "UnmapAperture",
            ],
        ),
    ];
    for (name, field, allowed) in words {
        for event in events.named(name) {
            let word = event.word(field);
            assert!(allowed.contains(&word), "{name}: {field}={word}");
        }
    }
}

/// Whether a text is a number without sign, prefix or leading zeros.
fn is_decimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'))
}

/// Whether a text is `0x` with lower-case digits and no leading zeros.
fn is_hexadecimal(text: &str) -> bool {
    let Some(digits) = text.strip_prefix("0x") else {
        return false;
    };
    let plain = digits
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    plain && !digits.is_empty() && (digits == "0" || !digits.starts_with('0'))
}

fn numbers_have_the_form_of_the_text() {
    let (events, _) = record_work();
    let words = [
        "name", "action", "op", "mode", "cause", "where", "result", "kind", "decision", "origin",
        "state", "reason", "purpose",
    ];
    let hexadecimal = ["va", "off", "flags", "protection", "driver", "cookie"];
    for event in &events.0 {
        for key in event.keys() {
            let text = event.word(key);
            let right = if words.contains(&key) {
                text.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            } else if key.ends_with("_off")
                || hexadecimal.contains(&key)
                || (event.name == "va_range" && matches!(key, "start" | "size"))
            {
                is_hexadecimal(text)
            } else if matches!(
                key,
                "seg" | "src_seg" | "dst_seg" | "from_seg" | "to_seg" | "node"
            ) {
                is_decimal(text) || text == "-1"
            } else {
                is_decimal(text)
            };
            assert!(right, "{}: {key}={text}", event.name);
        }
    }
}

fn creation_and_destruction_read_exactly() {
    let (events, allocation) = record_work();
    let id = allocation.object_id;
    let mine: Vec<&str> = events
        .named("alloc")
        .filter(|event| event.number("alloc") == id)
        .map(|event| event.text.as_str())
        .collect();
    let expected = [
        format!("alloc={id} action=create size=65536 flags=0x3 cookie=0x0"),
        format!("alloc={id} action=destroy size=65536 flags=0x3 cookie=0x0"),
    ];
    // The cookie is the backend's own.
    let without_cookie = |text: &str| text.split(" cookie=").next().map(str::to_owned);
    let found: Vec<_> = mine.iter().map(|text| without_cookie(text)).collect();
    let expected: Vec<_> = expected.iter().map(|text| without_cookie(text)).collect();
    assert_eq!(found, expected);
}

fn residency_reads_exactly() {
    let fixture = Fixture::new();
    let allocation = fixture.create(physical(64 * KIB, VISIBLE_SEGMENT));
    let recording = Recording::start();
    fixture.bring_in(&allocation);
    let offset = debugfs::placement(allocation.object_id).offset;
    fixture.push_out(&allocation);
    let events = recording.stop();
    let id = allocation.object_id;
    let found: Vec<&str> = events
        .named("residency")
        .filter(|event| event.number("alloc") == id)
        .map(|event| event.text.as_str())
        .collect();
    let nowhere = "0xffffffffffffffff";
    assert_eq!(
        found,
        [
            format!(
                "alloc={id} instance=0 from_seg=-1 from_off={nowhere} to_seg=1 \
                 to_off={offset:#x} cause=resident"
            ),
            format!(
                "alloc={id} instance=0 from_seg=1 from_off={offset:#x} to_seg=-1 \
                 to_off={nowhere} cause=evict"
            ),
        ]
    );
}

fn submission_reads_exactly() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create_resident(physical(64 * KIB, VISIBLE_SEGMENT));
    let offset = debugfs::placement(allocation.object_id).offset;
    let recording = Recording::start();
    let mut commands = Commands::new();
    commands.store(allocation.at(64), 1);
    let id = fixture.run(&context, &commands);
    let events = recording.stop();
    let portion = events
        .named("dma_portion")
        .next()
        .expect("a dma_portion event");
    let submit = portion.word("submit");
    let expected = format!(
        "submit={submit} ctx={} node=2 start=0 end=24 first_entry=0 entries=1 fence={} \
         submission={id}",
        portion.word("ctx"),
        portion.word("fence")
    );
    assert_eq!(portion.text, expected);
    let patch = events.named("dma_patch").next().expect("a dma_patch event");
    let expected = format!("submit={submit} offset=8 seg=1 seg_off={:#x}", offset + 64);
    assert_eq!(patch.text, expected);
    let prepare = events
        .named("dma_prepare")
        .next()
        .expect("a dma_prepare event");
    let expected = format!(
        "submit={submit} entry=0 slot=0 alloc={} result=resident",
        allocation.object_id
    );
    assert_eq!(prepare.text, expected);
    let words = ["node=2".to_owned(), "kind=dma".to_owned()];
    let begin = &events.0[events
        .find(0, "node_begin", &words)
        .expect("a node_begin event")];
    assert_eq!(begin.word("fence"), portion.word("fence"));
    assert_eq!(begin.word("ctx"), portion.word("ctx"));
}

fn operations_are_numbered_without_gaps() {
    let (events, _) = record_work();
    let sequences: Vec<u64> = events
        .named("paging_op")
        .map(|event| event.number("seq"))
        .collect();
    assert!(sequences.len() >= 4);
    for pair in sequences.windows(2) {
        assert_eq!(pair[1], pair[0] + 1, "{sequences:?}");
    }
    for event in events.named("paging_submit") {
        assert!(
            event.number("first_seq") <= event.number("last_seq"),
            "{}",
            event.text
        );
    }
}

fn submissions_are_numbered_on_the_adapter() {
    let (one, other) = (Fixture::new(), Fixture::new());
    let contexts = (one.context(), other.context());
    let recording = Recording::start();
    for _ in 0..5 {
        one.run(&contexts.0, Commands::new().nop(2));
        other.run(&contexts.1, Commands::new().nop(2));
    }
    let events = recording.stop();
    let numbers: Vec<u64> = events
        .named("dma_portion")
        .map(|event| event.number("submit"))
        .collect();
    assert_eq!(numbers.len(), 10);
    for pair in numbers.windows(2) {
        assert_eq!(pair[1], pair[0] + 1, "{numbers:?}");
    }
}
