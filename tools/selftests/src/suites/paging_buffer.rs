// SPDX-License-Identifier: GPL-2.0

//! Full paging buffers: what is there is submitted, and the operation goes on in the next one.

use crate::{
    client::Allocation,
    debugfs,
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        MIB,
        PAGING_NODE,
        VISIBLE_SEGMENT, //
    },
    suite::Suite,
    trace::{
        Event,
        Events,
        Recording, //
    },
};

/// The suite, with the smallest buffers that are worth it. Operations that name places are the ones that
/// are cut.
pub const SUITE: Suite = Suite {
    name: "paging_buffer",
    parameters: Some("profile=PHYS paging_buffer=4096"),
    cases: crate::cases! {
        "[PAG-17]" large_transfer_spans_several_buffers_in_order,
        "[PAG-17]" operation_goes_on_where_the_full_buffer_ended,
        "[PAG-17]" buffer_reported_full_is_followed_by_another,
    },
};

/// The operations of an allocation with one name, which must cover it exactly and in order.
fn parts<'a>(events: &'a Events, op: &'a str, allocation: &Allocation) -> Vec<&'a Event> {
    let parts: Vec<&Event> = events.operations(op, allocation.object_id).collect();
    let bytes: u64 = parts.iter().map(|part| part.number("bytes")).sum();
    assert_eq!(bytes, allocation.size, "{op} of {}", allocation.object_id);
    for pair in parts.windows(2) {
        let (one, next) = (pair[0].number("seq"), pair[1].number("seq"));
        assert_eq!(next, one + 1, "something stands between two parts");
    }
    parts
}

/// Buffers that hold these operations, which must run in the order of their submission.
fn buffers_of(events: &Events, parts: &[&Event]) -> usize {
    let mut numbers: Vec<u64> = parts.iter().map(|part| part.number("buf")).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    numbers.dedup();
    let submits: Vec<&Event> = events
        .named("paging_submit")
        .filter(|event| numbers.contains(&event.number("buf")))
        .collect();
    assert_eq!(submits.len(), numbers.len());
    let mut steps = Vec::new();
    for pair in submits.windows(2) {
        let (one, next) = (pair[0], pair[1]);
        assert_eq!(next.number("first_seq"), one.number("last_seq") + 1);
        assert!(next.number("fence") > one.number("fence"));
    }
    for submit in &submits {
        let fence = submit.number("fence");
        steps.push(format!("node_begin node={PAGING_NODE} fence={fence}"));
        steps.push(format!("node_end node={PAGING_NODE} fence={fence}"));
    }
    events.assert_order(&steps);
    numbers.len()
}

fn large_transfer_spans_several_buffers_in_order() {
    let fixture = Fixture::new();
    // Every second page is taken: each page left is a run of its own.
    debugfs::inject("fragment 1");
    let allocation = fixture.create_resident(plain(8 * MIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let data = pattern(17, allocation.size);
    mapping.write(0, &data);

    let recording = Recording::start();
    fixture.push_out(&allocation);
    // A touch waits until the place is in force, thus for the last buffer.
    assert!(mapping.read(0, data.len()) == data, "content outside");
    let events = recording.stop();
    let parts = parts(&events, "Transfer", &allocation);
    assert!(buffers_of(&events, &parts) >= 8);
    fixture.bring_in(&allocation);
    assert!(mapping.read(0, data.len()) == data, "content back inside");
}

fn operation_goes_on_where_the_full_buffer_ended() {
    let fixture = Fixture::new();
    debugfs::inject("fragment 1");
    let allocation = fixture.create(plain(2 * MIB, VISIBLE_SEGMENT));
    let recording = Recording::start();
    fixture.bring_in(&allocation);
    let events = recording.stop();
    let parts = parts(&events, "Fill", &allocation);
    assert!(buffers_of(&events, &parts) > 1);
    let runs = debugfs::placement(allocation.object_id).runs;
    let mut covered = 0;
    for part in parts {
        let mut left = covered;
        let mut place = None;
        for run in &runs {
            if left < run.length {
                place = Some(run.start + left);
                break;
            }
            left -= run.length;
        }
        assert_eq!(Some(part.number("dst_off")), place, "{}", part.text);
        covered += part.number("bytes");
    }
}

fn buffer_reported_full_is_followed_by_another() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(physical(MIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let data = pattern(18, MIB);
    for count in [1, 2, 40] {
        // What is unchanged would leave without a transfer.
        mapping.write(0, &data);
        debugfs::inject(&format!("fail buffer-full {count}"));
        let recording = Recording::start();
        debugfs::inject(&format!("evict {}", allocation.object_id));
        let events = recording.stop();
        buffers_of(&events, &parts(&events, "Transfer", &allocation));
        assert!(mapping.read(0, data.len()) == data, "after {count}");
        fixture.bring_in(&allocation);
        fixture.client.evict(fixture.device, &[allocation.handle]);
    }
}
