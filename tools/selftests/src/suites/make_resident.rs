// SPDX-License-Identifier: GPL-2.0

//! What MAKE_RESIDENT and EVICT answer: all or nothing, how much to give up, what a last attempt may do.

use crate::{
    abi,
    budget::{
        evict,
        local,
        make_resident,
        reserve, //
    },
    client::{
        Allocation,
        Answer, //
    },
    clock,
    debugfs,
    events::{
        drain,
        subscribe, //
    },
    fixture::{
        physical,
        plain,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        MIB,
        VISIBLE_SEGMENT, //
    },
    suite::{
        Suite,
        TABLES_OUTSIDE, //
    },
    trace::Recording, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "make_resident",
    parameters: Some(TABLES_OUTSIDE),
    cases: crate::cases! {
        "[RES-13]" list_whose_last_does_not_fit_changes_nothing,
        "[RES-13]" evicting_what_is_lacking_is_enough,
        "[RES-13]" resident_list_is_ready,
        "[RES-13]" last_attempt_without_memory_fails_the_device,
        "[RES-13]" failing_without_must_succeed_leaves_the_device_alone,
        "[RES-13]" must_succeed_alone_is_malformed,
        "[RES-13]" what_others_reserved_is_spared,
        "[RES-13]" what_others_keep_beyond_reservations_is_not,
        "[RES-13]" last_attempt_takes_what_others_reserved,
        "[RES-13]" refused_list_tells_how_far_it_exceeds_the_budget,
        "[RES-13]" list_without_a_place_is_signalled_and_marked,
        "[RES-13]" list_without_a_place_that_must_succeed_fails_the_device,
        "[RES-14]" plain_evict_empties_the_segment,
        "[RES-14]" evict_if_needed_stays_until_somebody_needs_room,
        "[RES-14]" evict_if_needed_and_back_costs_no_paging,
        "[RES-14]" evict_above_zero_changes_nothing,
    },
};

const BOTH: u32 = VISIBLE_SEGMENT | HIDDEN_SEGMENT;
const CANT_TRIM: u32 = abi::MAKE_RESIDENT_CANT_TRIM_FURTHER;
const MUST_SUCCEED: u32 = CANT_TRIM | abi::MAKE_RESIDENT_MUST_SUCCEED;

fn handles(allocations: &[Allocation]) -> Vec<u32> {
    allocations.iter().map(|one| one.handle).collect()
}

fn sizes(fixture: &Fixture, mebibytes: &[u64]) -> Vec<Allocation> {
    mebibytes
        .iter()
        .map(|size| fixture.create(plain(size * MIB, VISIBLE_SEGMENT)))
        .collect()
}

fn references(fixture: &Fixture, allocations: &[Allocation]) -> Vec<u32> {
    let states = fixture.client.try_states(&handles(allocations));
    let states = states.expect("states");
    states.iter().map(|state| state.resident_refs).collect()
}

/// Six MiB that are resident, and a list of twelve of which the last two do not fit beside them.
fn crowded() -> (Fixture, Vec<Allocation>, Vec<Allocation>) {
    let fixture = Fixture::new();
    let resident = sizes(&fixture, &[4, 2]);
    fixture.client.bring_in(&fixture.queue, &handles(&resident));
    let list = sizes(&fixture, &[5, 5, 2]);
    (fixture, resident, list)
}

fn list_whose_last_does_not_fit_changes_nothing() {
    let (fixture, resident, list) = crowded();
    let usage = local(&fixture.client).usage;
    let list_handles = handles(&list);
    let (errno, argument) = make_resident(&fixture.client, &fixture.queue, &list_handles, 0)
        .expect_err("18 MiB do not fit into 16");
    assert_eq!(errno, libc::ENOSPC);
    assert_eq!((argument.bytes_to_trim, argument.fail_index), (2 * MIB, 2));
    assert_eq!((argument.fence_value, argument.status), (0, 0));
    assert_eq!(references(&fixture, &list), [0, 0, 0]);
    assert_eq!(references(&fixture, &resident), [1, 1]);
    assert_eq!(local(&fixture.client).usage, usage);
}

fn evicting_what_is_lacking_is_enough() {
    let (fixture, resident, list) = crowded();
    let list_handles = handles(&list);
    let refused = make_resident(&fixture.client, &fixture.queue, &list_handles, 0);
    let (_, refused) = refused.expect_err("18 MiB do not fit into 16");
    assert_eq!(refused.bytes_to_trim, resident[1].size);
    evict(&fixture.client, fixture.device, &[resident[1].handle], 0);
    let answer = make_resident(&fixture.client, &fixture.queue, &list_handles, 0);
    let answer = answer.expect("16 MiB fit");
    assert_eq!((answer.bytes_to_trim, answer.fail_index), (0, u32::MAX));
    fixture.client.wait(fixture.queue.fence, answer.fence_value);
    for allocation in &list {
        let state = fixture.client.state_of(allocation.handle);
        assert_eq!((state.resident_refs, state.segment), (1, 1));
    }
}

fn resident_list_is_ready() {
    let fixture = Fixture::new();
    let list = sizes(&fixture, &[1, 1, 1]);
    fixture.client.bring_in(&fixture.queue, &handles(&list));
    let recording = Recording::start();
    for flags in [0, CANT_TRIM, MUST_SUCCEED] {
        let answer = make_resident(&fixture.client, &fixture.queue, &handles(&list), flags);
        let answer = answer.expect("it is resident");
        assert_eq!((answer.status, answer.fence_value), (abi::STATUS_READY, 0));
    }
    recording.stop().assert_none("paging_op", &[]);
    assert_eq!(references(&fixture, &list), [4, 4, 4]);
}

fn reserve_segment() {
    debugfs::inject(&format!("reserve 1 {}", debugfs::segment(1).free));
}

fn last_attempt_without_memory_fails_the_device() {
    let fixture = Fixture::new();
    subscribe(&fixture.client, &[abi::EVENT_DEVICE_STATE]);
    let allocation = fixture.create(plain(MIB, VISIBLE_SEGMENT));
    reserve_segment();
    let refused = make_resident(
        &fixture.client,
        &fixture.queue,
        &[allocation.handle],
        MUST_SUCCEED,
    );
    debugfs::inject("reserve 1 0");
    let (errno, argument) = refused.expect_err("nothing is free");
    assert_eq!((errno, argument.bytes_to_trim), (libc::ENOSPC, MIB));
    let state = fixture.client.device_state(fixture.device);
    assert_eq!(state.state, abi::DEVICE_STATE_ERROR_MEMORY);
    assert_eq!((state.guilty, state.context, state.submission), (1, 0, 0));
    let records = drain(&fixture.client);
    let [record] = records[..] else {
        panic!("{records:?}");
    };
    assert_eq!(
        (record.r#type, record.object, record.code),
        (
            abi::EVENT_DEVICE_STATE,
            fixture.device,
            abi::DEVICE_STATE_ERROR_MEMORY
        )
    );
    let other = fixture.client.create_device();
    let queue = fixture.client.create_queue(other);
    let allocation = fixture.client.create(other, plain(MIB, VISIBLE_SEGMENT));
    debugfs::inject("reserve 0 1");
    let refused = make_resident(&fixture.client, &queue, &[allocation.handle], MUST_SUCCEED);
    debugfs::inject("reserve 0 0");
    assert_eq!(refused.expect_err("no pages").0, libc::ENOMEM);
    let state = fixture.client.device_state(other).state;
    assert_eq!(state, abi::DEVICE_STATE_ERROR_MEMORY);
}

fn failing_without_must_succeed_leaves_the_device_alone() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(MIB, VISIBLE_SEGMENT));
    reserve_segment();
    for flags in [0, CANT_TRIM] {
        let handles = [allocation.handle];
        let refused = make_resident(&fixture.client, &fixture.queue, &handles, flags);
        assert_eq!(refused.expect_err("nothing is free").0, libc::ENOSPC);
        let state = fixture.client.device_state(fixture.device).state;
        assert_eq!(state, abi::DEVICE_STATE_ACTIVE);
    }
    debugfs::inject("reserve 1 0");
    fixture.bring_in(&allocation);
}

fn must_succeed_alone_is_malformed() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(MIB, VISIBLE_SEGMENT));
    let flags = abi::MAKE_RESIDENT_MUST_SUCCEED;
    let refused = make_resident(&fixture.client, &fixture.queue, &[allocation.handle], flags);
    assert_eq!(
        refused.expect_err("it needs the other flag").0,
        libc::EINVAL
    );
    let state = fixture.client.device_state(fixture.device).state;
    assert_eq!(state, abi::DEVICE_STATE_ACTIVE);
}

/// A client that keeps twelve MiB, of which it has reserved `reserved`, and one that wants 24.
fn rivals(reserved: u64) -> (Fixture, Fixture, Vec<u32>) {
    let other = Fixture::new();
    for _ in 0..3 {
        other.create_resident(plain(4 * MIB, BOTH));
    }
    reserve(&other.client, reserved);
    let fixture = Fixture::new();
    let list = (0..6)
        .map(|_| fixture.create(plain(4 * MIB, BOTH)).handle)
        .collect();
    (other, fixture, list)
}

fn what_others_reserved_is_spared() {
    let (_other, fixture, list) = rivals(16 * MIB);
    let refused = make_resident(&fixture.client, &fixture.queue, &list, 0);
    let (errno, argument) = refused.expect_err("only 20 MiB are left");
    assert_eq!((errno, argument.fail_index), (libc::ENOSPC, 5));
    assert!(argument.bytes_to_trim >= 4 * MIB);
    let answer = make_resident(&fixture.client, &fixture.queue, &list[1..], 0);
    let answer = answer.expect("20 MiB fit");
    fixture.client.wait(fixture.queue.fence, answer.fence_value);
}

fn what_others_keep_beyond_reservations_is_not() {
    let (_other, fixture, list) = rivals(8 * MIB);
    let answer = make_resident(&fixture.client, &fixture.queue, &list, 0);
    let answer = answer.expect("24 MiB are left");
    fixture.client.wait(fixture.queue.fence, answer.fence_value);
}

fn last_attempt_takes_what_others_reserved() {
    let (_other, fixture, list) = rivals(16 * MIB);
    let answer = make_resident(&fixture.client, &fixture.queue, &list, CANT_TRIM);
    let answer = answer.expect("a last attempt");
    assert_eq!(answer.bytes_to_trim, local(&fixture.client).bytes_to_trim);
    assert!(answer.bytes_to_trim > 0);
    fixture.client.wait(fixture.queue.fence, answer.fence_value);
    for handle in list {
        let state = fixture.client.state_of(handle);
        assert_eq!(state.residency, abi::ALLOC_RESIDENCY_MEMORY);
    }
}

fn refused_list_tells_how_far_it_exceeds_the_budget() {
    let (_other, fixture, list) = rivals(16 * MIB);
    let refused = make_resident(&fixture.client, &fixture.queue, &list, 0);
    let (_, argument) = refused.expect_err("only 20 MiB are left");
    let account = local(&fixture.client);
    assert_eq!(account.usage, 0);
    let excess = 24 * MIB - account.budget;
    assert_eq!(argument.bytes_to_trim, excess.max(4 * MIB));
}

/// Two allocations that can lie in one place only, though they are small.
fn rivals_for_a_place(fixture: &Fixture) -> [Allocation; 2] {
    [(); 2].map(|()| {
        fixture.create(abi::AllocInfo {
            align: 16 * MIB,
            ..physical(4 * KIB, VISIBLE_SEGMENT)
        })
    })
}

fn list_without_a_place_is_signalled_and_marked() {
    let fixture = Fixture::new();
    let list = rivals_for_a_place(&fixture);
    fixture.client.bring_in(&fixture.queue, &handles(&list));
    let state = fixture.client.device_state(fixture.device).state;
    assert_eq!(state, abi::DEVICE_STATE_ACTIVE);
    let of = |one: &Allocation| fixture.client.state_of(one.handle);
    let mark = abi::ALLOC_STATE_NO_PLACE;
    assert_eq!((of(&list[0]).segment, of(&list[0]).flags & mark), (1, 0));
    assert_eq!(of(&list[1]).residency, abi::ALLOC_RESIDENCY_NOT_RESIDENT);
    assert_eq!(
        (of(&list[1]).resident_refs, of(&list[1]).flags & mark),
        (1, mark)
    );
    fixture.client.push_out(fixture.device, &[list[0].handle]);
    fixture.client.bring_in(&fixture.queue, &[list[1].handle]);
    assert_eq!((of(&list[1]).segment, of(&list[1]).flags & mark), (1, 0));
}

fn list_without_a_place_that_must_succeed_fails_the_device() {
    let fixture = Fixture::new();
    let list = rivals_for_a_place(&fixture);
    let answer = make_resident(
        &fixture.client,
        &fixture.queue,
        &handles(&list),
        MUST_SUCCEED,
    );
    let answer = answer.expect("it fits in sum");
    fixture.client.wait(fixture.queue.fence, answer.fence_value);
    let state = fixture.client.device_state(fixture.device).state;
    assert_eq!(state, abi::DEVICE_STATE_ERROR_MEMORY);
}

fn plain_evict_empties_the_segment() {
    let fixture = Fixture::new();
    let free = debugfs::segment(1).free;
    let list = sizes(&fixture, &[3, 4]);
    fixture.client.bring_in(&fixture.queue, &handles(&list));
    assert_eq!(debugfs::segment(1).free, free - 7 * MIB);
    assert_eq!(
        evict(&fixture.client, fixture.device, &handles(&list), 0),
        0
    );
    clock::wait_until("the segment is empty", || debugfs::segment(1).free == free);
}

fn evict_if_needed_stays_until_somebody_needs_room() {
    let fixture = Fixture::new();
    let list = sizes(&fixture, &[6, 6]);
    fixture.client.bring_in(&fixture.queue, &handles(&list));
    let flags = abi::EVICT_ONLY_IF_NEEDED;
    evict(&fixture.client, fixture.device, &[list[0].handle], flags);
    // What is queued behind it has been carried out, so it would have left.
    let small = fixture.create_resident(plain(MIB, VISIBLE_SEGMENT));
    let state = fixture.client.state_of(list[0].handle);
    assert_eq!((state.segment, state.resident_refs), (1, 0));
    let large = fixture.create_resident(plain(8 * MIB, VISIBLE_SEGMENT));
    let state = fixture.client.state_of(list[0].handle);
    assert_eq!(state.residency, abi::ALLOC_RESIDENCY_NOT_RESIDENT);
    for stays in [&list[1], &small, &large] {
        assert_eq!(fixture.client.state_of(stays.handle).segment, 1);
    }
}

fn evict_if_needed_and_back_costs_no_paging() {
    let fixture = Fixture::new();
    let list = sizes(&fixture, &[3, 3]);
    fixture.client.bring_in(&fixture.queue, &handles(&list));
    let recording = Recording::start();
    let flags = abi::EVICT_ONLY_IF_NEEDED;
    evict(&fixture.client, fixture.device, &handles(&list), flags);
    fixture.client.bring_in(&fixture.queue, &handles(&list));
    recording.stop().assert_none("paging_op", &[]);
    assert_eq!(references(&fixture, &list), [1, 1]);
}

fn evict_above_zero_changes_nothing() {
    let fixture = Fixture::new();
    let list = sizes(&fixture, &[3]);
    fixture.client.bring_in(&fixture.queue, &handles(&list));
    let again = fixture
        .client
        .make_resident(&fixture.queue, &handles(&list));
    assert_eq!(again, Answer::Ready);
    let usage = local(&fixture.client).usage;
    let recording = Recording::start();
    let flags = abi::EVICT_ONLY_IF_NEEDED;
    evict(&fixture.client, fixture.device, &handles(&list), flags);
    fixture.create_resident(plain(4 * KIB, VISIBLE_SEGMENT));
    let leaves = [format!("alloc={}", list[0].object_id)];
    recording.stop().assert_none("residency", &leaves);
    assert_eq!(references(&fixture, &list), [1]);
    assert_eq!(local(&fixture.client).usage, usage + 4 * KIB);
}
