// SPDX-License-Identifier: GPL-2.0

//! PINNED allocations: who may make them, and that they never move once they have a place.

use crate::{
    abi::{
        self,
        AllocInfo, //
    },
    client::{
        Allocation,
        Client, //
    },
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        MIB,
        PHYSICAL_NODE,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    module::Loaded,
    process,
    suite::{
        Suite,
        TABLES_OUTSIDE, //
    },
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "pinned",
    parameters: Some(TABLES_OUTSIDE),
    cases: crate::cases! {
        "" creation_without_the_right_is_refused,
        "" lack_of_a_right_comes_before_a_bad_size,
        "" the_right_is_asked_for_this_flag_alone,
        "" pinned_memory_can_move_before_it_has_a_place,
        "" placed_memory_cannot_be_pushed_out_or_moved,
        "" pinned_system_memory_cannot_be_moved_to_a_segment,
        "" pinned_memory_stays_when_its_last_reference_goes,
        "" pinned_memory_stays_under_pressure,
        "" work_that_has_no_place_beside_pinned_memory_ends,
        "" pinned_memory_goes_with_its_handle,
    },
};

/// Without parameters of its own: the profile has memory that the CPU never reaches.
pub const REACH_SUITE: Suite = Suite {
    name: "pinned_reach",
    parameters: None,
    cases: crate::cases! {
        "" pinned_memory_is_where_the_cpu_reaches_it,
    },
};

fn pinned(mut info: AllocInfo) -> AllocInfo {
    info.flags |= abi::ALLOC_PINNED;
    info
}

/// Where an allocation is: segment and offset.
fn place(allocation: &Allocation) -> (u64, u64) {
    let placement = debugfs::placement(allocation.object_id);
    (placement.segment, placement.offset)
}

/// Asserts what an ordinary user gets who creates this.
fn assert_answer_without_rights(info: AllocInfo, errno: Option<i32>) {
    process::Child::start(|_| {
        let fixture = Fixture::new();
        process::drop_privileges();
        let created = fixture.client.try_create(fixture.device, info);
        assert_eq!(created.err(), errno);
    })
    .join();
}

fn creation_without_the_right_is_refused() {
    assert_answer_without_rights(pinned(plain(4096, VISIBLE_SEGMENT)), Some(libc::EPERM));
}

fn lack_of_a_right_comes_before_a_bad_size() {
    assert_answer_without_rights(pinned(plain(0, VISIBLE_SEGMENT)), Some(libc::EPERM));
}

fn the_right_is_asked_for_this_flag_alone() {
    assert_answer_without_rights(plain(4096, VISIBLE_SEGMENT), None);
}

fn pinned_memory_can_move_before_it_has_a_place() {
    let fixture = Fixture::new();
    let allocation = fixture.create(pinned(plain(4096, VISIBLE_SEGMENT | SYSTEM)));
    let state = fixture.client.state_of(allocation.handle);
    assert_eq!(
        state.flags & abi::ALLOC_STATE_PINNED,
        abi::ALLOC_STATE_PINNED
    );
    assert_eq!(state.residency, abi::ALLOC_RESIDENCY_NOT_RESIDENT);
    debugfs::inject(&format!("move {} 1", allocation.object_id));
    assert_eq!(place(&allocation).0, 1);
}

fn placed_memory_cannot_be_pushed_out_or_moved() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(pinned(plain(MIB, VISIBLE_SEGMENT | SYSTEM)));
    let before = place(&allocation);
    assert_eq!(before.0, 1);
    for command in ["evict", "move"] {
        let command = format!("{command} {}", allocation.object_id);
        assert_eq!(debugfs::try_inject(&command), Err(libc::EBUSY), "{command}");
    }
    assert_eq!(place(&allocation), before);
}

fn pinned_system_memory_cannot_be_moved_to_a_segment() {
    let fixture = Fixture::new();
    let mut info = pinned(plain(MIB, VISIBLE_SEGMENT | SYSTEM));
    info.preferred = 3;
    let allocation = fixture.create_resident(info);
    assert_eq!(place(&allocation).0, 0);
    let command = format!("move {} 1", allocation.object_id);
    assert_eq!(debugfs::try_inject(&command), Err(libc::EBUSY));
}

fn pinned_memory_stays_when_its_last_reference_goes() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(pinned(plain(MIB, VISIBLE_SEGMENT)));
    let witness = fixture.create_resident(plain(MIB, VISIBLE_SEGMENT));
    let before = place(&allocation);
    let handles = [allocation.handle, witness.handle];
    fixture.client.evict(fixture.device, &handles);
    // The witness was asked to leave after it.
    clock::wait_until("the other one leaves", || {
        fixture.client.state_of(witness.handle).residency == abi::ALLOC_RESIDENCY_NOT_RESIDENT
    });
    assert_eq!(place(&allocation), before);
    fixture.bring_in(&allocation);
    assert_eq!(place(&allocation), before);
}

fn pinned_memory_stays_under_pressure() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create_resident(pinned(physical(2 * MIB, VISIBLE_SEGMENT)));
    let mapping = fixture.client.map(&allocation);
    let content = pattern(1, allocation.size);
    mapping.write(0, &content);
    let before = place(&allocation);
    fixture.client.evict(fixture.device, &[allocation.handle]);
    // Each needs everything else there is.
    for seed in 0..4 {
        let other = fixture.create(physical(14 * MIB, VISIBLE_SEGMENT));
        let mut commands = Commands::new();
        commands.fill_bytes(other.at(0), 4096, seed);
        fixture.run(&context, &commands);
        assert_eq!(place(&other).0, 1);
        assert_eq!(place(&allocation), before);
    }
    assert_eq!(mapping.read(0, content.len()), content);
}

fn work_that_has_no_place_beside_pinned_memory_ends() {
    let client = Client::open();
    let device = client.create_device();
    let context = client.create_context(device, PHYSICAL_NODE);
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(pinned(plain(4 * MIB, VISIBLE_SEGMENT)));
    let big = client.create(device, physical(14 * MIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    commands.fill_bytes(big.at(0), 4096, 1);
    commands.submit(&client, &context);
    clock::wait_until("the device of the work is in error", || {
        client.device_state(device).state == abi::DEVICE_STATE_ERROR_MEMORY
    });
    assert_eq!(place(&allocation).0, 1);
}

fn pinned_memory_goes_with_its_handle() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(pinned(plain(4 * MIB, VISIBLE_SEGMENT)));
    fixture.client.close_and_wait(&[allocation.handle]);
    let segment = debugfs::segment(1);
    assert_eq!(segment.free, segment.total);
}

fn pinned_memory_is_where_the_cpu_reaches_it() {
    let _loaded = Loaded::new("profile=PHYS segments=memory:4M:contiguous=4M,aperture:4M");
    let fixture = Fixture::new();
    let refused = fixture
        .client
        .try_create(fixture.device, pinned(plain(4096, 1 << 1)));
    assert_eq!(refused.err(), Some(libc::ENOSPC));
    let both = fixture.create_resident(pinned(plain(4096, 1 << 1 | 1 << 2)));
    assert_eq!(place(&both).0, 0);
    let mut unseen = pinned(plain(4096, 1 << 1));
    unseen.flags &= !abi::ALLOC_CPU_VISIBLE;
    let unseen = fixture.create_resident(unseen);
    assert_eq!(place(&unseen).0, 1);
}
