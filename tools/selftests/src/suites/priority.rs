// SPDX-License-Identifier: GPL-2.0

//! SET_PRIORITY.

use crate::{
    abi::{
        self,
        PriorityItem, //
    },
    client::{
        Allocation,
        Client, //
    },
    fixture::{
        plain,
        Fixture,
        KIB,
        MIB,
        VISIBLE_SEGMENT, //
    },
    suite::Suite,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "priority",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" each_priority_can_be_set,
        "" later_element_counts,
        "" bad_element_changes_nothing,
        "" handles_come_before_ranges,
        "[RES-17]" lowered_priority_leaves_first,
        "[RES-17]" raised_priority_leaves_last,
    },
};

fn item(allocation: &Allocation, priority: u32) -> PriorityItem {
    PriorityItem {
        alloc: allocation.handle,
        priority,
    }
}

fn set(client: &Client, items: &[PriorityItem]) {
    client
        .try_set_priority(items)
        .unwrap_or_else(|error| panic!("SET_PRIORITY: {error:?}"));
}

fn priority_of(client: &Client, allocation: &Allocation) -> u32 {
    client.state_of(allocation.handle).priority
}

fn each_priority_can_be_set() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4 * KIB, VISIBLE_SEGMENT));
    for priority in abi::ALLOC_PRIORITY_MINIMUM..=abi::ALLOC_PRIORITY_MAXIMUM {
        set(&fixture.client, &[item(&allocation, priority)]);
        assert_eq!(priority_of(&fixture.client, &allocation), priority);
    }
}

fn later_element_counts() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4 * KIB, VISIBLE_SEGMENT));
    set(
        &fixture.client,
        &[item(&allocation, 5), item(&allocation, 2)],
    );
    assert_eq!(priority_of(&fixture.client, &allocation), 2);
}

fn bad_element_changes_nothing() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4 * KIB, VISIBLE_SEGMENT));
    let closed = fixture.create(plain(4 * KIB, VISIBLE_SEGMENT));
    fixture.client.close(&[closed.handle]);
    let good = item(&allocation, 5);
    for (bad, errno) in [
        (item(&allocation, 0), libc::EINVAL),
        (item(&allocation, 6), libc::EINVAL),
        (item(&allocation, u32::MAX), libc::EINVAL),
        (item(&closed, 3), libc::ENOENT),
    ] {
        let result = fixture.client.try_set_priority(&[good, good, bad]);
        assert_eq!(result, Err((errno, 2)), "{bad:?}");
        assert_eq!(priority_of(&fixture.client, &allocation), 3);
    }
}

fn handles_come_before_ranges() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4 * KIB, VISIBLE_SEGMENT));
    let unknown = PriorityItem {
        alloc: 0,
        priority: 3,
    };
    let result = fixture
        .client
        .try_set_priority(&[item(&allocation, 9), unknown]);
    assert_eq!(result, Err((libc::ENOENT, 1)));
}

/// Four allocations that fill the visible segment, without references, in the order of their use.
fn fill(fixture: &Fixture) -> [Allocation; 4] {
    let allocations =
        [(); 4].map(|()| fixture.create_resident(plain(7 * MIB / 2, VISIBLE_SEGMENT)));
    let handles = allocations.map(|allocation| allocation.handle);
    fixture
        .client
        .try_evict(fixture.device, &handles, abi::EVICT_ONLY_IF_NEEDED)
        .expect("EVICT");
    allocations
}

/// Which of them are still there after another one has come.
fn survivors(fixture: &Fixture, allocations: &[Allocation]) -> Vec<bool> {
    let fifth = fixture.create_resident(plain(7 * MIB / 2, VISIBLE_SEGMENT));
    let here = |allocation: &Allocation| fixture.client.state_of(allocation.handle).segment == 1;
    let survivors = allocations.iter().map(here).collect();
    fixture.client.close_and_wait(&[fifth.handle]);
    survivors
}

fn lowered_priority_leaves_first() {
    let fixture = Fixture::new();
    let allocations = fill(&fixture);
    set(
        &fixture.client,
        &[item(&allocations[2], abi::ALLOC_PRIORITY_LOW)],
    );
    assert_eq!(survivors(&fixture, &allocations), [true, true, false, true]);
}

fn raised_priority_leaves_last() {
    let fixture = Fixture::new();
    let allocations = fill(&fixture);
    set(
        &fixture.client,
        &[
            item(&allocations[0], abi::ALLOC_PRIORITY_HIGH),
            item(&allocations[1], abi::ALLOC_PRIORITY_MAXIMUM),
        ],
    );
    assert_eq!(survivors(&fixture, &allocations), [true, true, false, true]);
}
