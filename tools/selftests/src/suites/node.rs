// SPDX-License-Identifier: GPL-2.0

//! Nodes: registers, time, packets that wait, and two nodes at once.

use crate::{
    abi::engine,
    client::{
        Allocation,
        Context, //
    },
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        physical,
        Fixture,
        KIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    lab::Lab,
    suite::Suite, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "node",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" registers_are_zero_at_first_and_survive,
        "" registers_belong_to_a_context,
        "" timestamp_is_the_time,
        "" spin_keeps_the_node_busy,
        "" poll_waits_for_the_cpu,
        "" endless_poll_ends_with_the_client,
        "" endless_spin_ends_with_the_context,
        "" longest_nop_runs,
    },
};

/// The suite on two nodes that do not save registers.
pub const PHYSICAL_SUITE: Suite = Suite {
    name: "node_phys",
    parameters: Some("profile=PHYS"),
    cases: crate::cases! {
        "" registers_hold_poison_at_the_start_of_a_buffer,
        "" adds_of_two_nodes_are_atomic,
        "" poll_waits_for_another_node,
        "" two_nodes_run_at_the_same_time,
    },
};

const SIZE: u64 = 64 * KIB;

/// Stores all registers at the start of an allocation.
fn store_all(commands: &mut Commands, allocation: &Allocation) {
    for index in 0..engine::REGISTERS as u32 {
        commands.store_register(index, allocation.at(u64::from(index) * 8));
    }
}

fn registers_are_zero_at_first_and_survive() {
    let mut lab = Lab::new(SIZE, 2);
    let first = lab.allocations[0];
    let mut commands = Commands::new();
    store_all(&mut commands, &first);
    for index in 0..16 {
        commands.set_register(index, 0x1111_2222_3333_4444 * u64::from(index));
    }
    lab.run(&commands);
    lab.assert_equal("registers of a new context");
    // Paging and another context come between.
    lab.fixture
        .create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let mut other = Commands::new();
    other.set_register(3, 1);
    lab.fixture.run(&lab.fixture.context(), &other);
    let mut commands = Commands::new();
    store_all(&mut commands, &first);
    lab.run(&commands);
    lab.assert_equal("registers of an old context");
}

fn registers_belong_to_a_context() {
    let fixture = Fixture::new();
    let allocation = fixture.create(physical(4 * KIB, VISIBLE_SEGMENT));
    let (one, other) = (fixture.context(), fixture.context());
    let mut set = Commands::new();
    set.set_register(7, 4711);
    fixture.run(&one, &set);
    let mut store = Commands::new();
    store.store_register(7, allocation.at(0));
    fixture.run(&other, &store);
    let mapping = fixture.client.map(&allocation);
    assert_eq!(mapping.read64(0), 0);
    fixture.run(&one, &store);
    assert_eq!(mapping.read64(0), 4711);
}

fn timestamp_is_the_time() {
    let fixture = Fixture::new();
    let allocation = fixture.create(physical(4 * KIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    commands
        .timestamp(allocation.at(0))
        .timestamp(allocation.at(8));
    let before = clock::now_ns() as u64;
    fixture.run(&fixture.context(), &commands);
    let after = clock::now_ns() as u64;
    let mapping = fixture.client.map(&allocation);
    let (first, second) = (mapping.read64(0), mapping.read64(8));
    assert!(before <= first && first <= second && second <= after);
}

fn spin_keeps_the_node_busy() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let mut commands = Commands::new();
    commands.spin(20_000_000);
    let start = clock::now_ns();
    fixture.run(&context, &commands);
    assert!(clock::now_ns() - start >= 20_000_000);
}

fn poll_waits_for_the_cpu() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let mut commands = Commands::new();
    commands
        .store(allocation.at(8), 1)
        .poll(allocation.at(0), 0xff00, 0x1200);
    commands.store(allocation.at(16), 2);
    let id = commands.submit(&fixture.client, &context);
    clock::wait_until("the packet before POLL has run", || mapping.read64(8) == 1);
    mapping.write64(0, 0xff34);
    assert!(!fixture.client.is_reached(context.progress, id));
    assert_eq!(mapping.read64(16), 0);
    mapping.write64(0, 0xaa12_00ff & !0xff00 | 0x1200);
    fixture.client.wait(context.progress, id);
    assert_eq!(mapping.read64(16), 2);
}

/// Waits until other work on the physical node goes through.
fn node_is_free_again() {
    let fixture = Fixture::new();
    let context = fixture.context();
    fixture.run(&context, &Commands::new());
    let mut commands = Commands::new();
    commands.nop(2);
    fixture.run(&context, &commands);
}

fn endless_poll_ends_with_the_client() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let mut commands = Commands::new();
    commands
        .store(allocation.at(8), 1)
        .poll(allocation.at(0), u64::MAX, 5);
    commands.submit(&fixture.client, &context);
    clock::wait_until("POLL runs", || mapping.read64(8) == 1);
    drop(mapping);
    let object_id = allocation.object_id;
    drop(fixture);
    clock::wait_until("its memory is free", || {
        debugfs::find_placement(object_id).is_none()
    });
    node_is_free_again();
}

fn endless_spin_ends_with_the_context() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let mut commands = Commands::new();
    commands
        .store(allocation.at(8), 1)
        .spin(engine::SPIN_FOREVER);
    commands.submit(&fixture.client, &context);
    clock::wait_until("SPIN runs", || mapping.read64(8) == 1);
    // A mapping would keep the file open.
    drop(mapping);
    drop(fixture);
    node_is_free_again();
}

fn longest_nop_runs() {
    let fixture = Fixture::new();
    let mut commands = Commands::new();
    commands.nop(65534).nop(2).nop(4);
    fixture.run(&fixture.context(), &commands);
}

fn registers_hold_poison_at_the_start_of_a_buffer() {
    for node in [0, 2] {
        let mut lab = Lab::new(SIZE, node);
        let first = lab.allocations[0];
        for _ in 0..2 {
            let mut commands = Commands::new();
            store_all(&mut commands, &first);
            commands.set_register(1, 1).store_register(1, first.at(256));
            lab.run(&commands);
            lab.assert_equal(&format!("registers on node {node}"));
            let mapping = lab.fixture.client.map(&first);
            assert_eq!(mapping.read64(8), engine::REGISTER_POISON);
        }
    }
}

/// A fixture with a context on each of the two physical nodes of PHYS.
fn two_nodes() -> (Fixture, Context, Context) {
    let fixture = Fixture::new();
    let one = fixture.client.create_context(fixture.device, 0);
    let other = fixture.client.create_context(fixture.device, 2);
    (fixture, one, other)
}

fn adds_of_two_nodes_are_atomic() {
    let (fixture, one, other) = two_nodes();
    let allocation = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    for _ in 0..500 {
        commands.add(allocation.at(0), 1);
    }
    let mut ids = (0, 0);
    for _ in 0..10 {
        ids.0 = commands.submit(&fixture.client, &one);
        ids.1 = commands.submit(&fixture.client, &other);
    }
    fixture.client.wait(one.progress, ids.0);
    fixture.client.wait(other.progress, ids.1);
    assert_eq!(fixture.client.map(&allocation).read64(0), 10_000);
}

fn poll_waits_for_another_node() {
    let (fixture, one, other) = two_nodes();
    let allocation = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let mut waiting = Commands::new();
    waiting
        .poll(allocation.at(0), u64::MAX, 5)
        .store(allocation.at(8), 6);
    let id = waiting.submit(&fixture.client, &one);
    assert!(!fixture.client.is_reached(one.progress, id));
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 5);
    fixture.run(&other, &commands);
    fixture.client.wait(one.progress, id);
    assert_eq!(fixture.client.map(&allocation).read64(8), 6);
}

fn two_nodes_run_at_the_same_time() {
    // Each node waits for what the other one writes.
    let (fixture, one, other) = two_nodes();
    let allocation = fixture.create_resident(physical(4 * KIB, SYSTEM));
    let rounds = 20;
    let (mut first, mut second) = (Commands::new(), Commands::new());
    for round in 1..=rounds {
        first
            .store(allocation.at(0), round)
            .poll(allocation.at(8), u64::MAX, round);
        second
            .poll(allocation.at(0), u64::MAX, round)
            .store(allocation.at(8), round);
    }
    let ids = (
        first.submit(&fixture.client, &one),
        second.submit(&fixture.client, &other),
    );
    fixture.client.wait(one.progress, ids.0);
    fixture.client.wait(other.progress, ids.1);
}
