// SPDX-License-Identifier: GPL-2.0

//! Waits and signals of submissions: what they hold back, and in which order things happen.

use crate::{
    abi,
    clock,
    commands::Commands,
    fixture::{
        physical,
        Fixture,
        KIB,
        VISIBLE_SEGMENT, //
    },
    process::Child,
    suite::Suite,
    trace::Recording, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "synchronisation",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[SYN-4]" waiting_context_holds_back_only_itself,
        "[SYN-4]" paging_goes_on_behind_a_waiting_context,
        "[SYN-8]" submission_with_a_wait_returns_at_once,
        "[SYN-8]" waits_hold_back_this_and_later_buffers,
        "[SYN-8]" signals_come_behind_earlier_buffers,
        "[SYN-8]" signal_below_the_value_leaves_it,
        "[SYN-8]" events_come_in_order,
        "[SYN-8]" chain_of_contexts_runs_in_order,
        "[SYN-8]" all_waits_of_a_submission_count,
        "[H2]" rewind_does_not_stop_a_satisfied_wait,
        "" cancelled_wait_ends_with_the_context,
        "" progress_tells_the_last_finished_submission,
    },
};

fn waiting_context_holds_back_only_itself() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.context(), fixture.context());
    let fence = fixture.client.create_fence(fixture.device, 0);
    let allocation = fixture.create(physical(4 * KIB, VISIBLE_SEGMENT));
    let mut waiting = Commands::new();
    waiting.store(allocation.at(0), 1).wait_for(fence, 1);
    let held = waiting.submit(&fixture.client, &one);
    for value in 1..10 {
        let mut commands = Commands::new();
        commands.store(allocation.at(8), value);
        fixture.run(&other, &commands);
    }
    let mapping = fixture.client.map(&allocation);
    assert_eq!((mapping.read64(0), mapping.read64(8)), (0, 9));
    assert!(!fixture.client.is_reached(one.progress, held));
    fixture.client.signal(fence, 1);
    fixture.client.wait(one.progress, held);
    assert_eq!(mapping.read64(0), 1);
}

fn paging_goes_on_behind_a_waiting_context() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let fence = fixture.client.create_fence(fixture.device, 0);
    let mut waiting = Commands::new();
    waiting.nop(2).wait_for(fence, 1);
    let held = waiting.submit(&fixture.client, &context);
    let allocation = fixture.create_resident(physical(64 * KIB, VISIBLE_SEGMENT));
    fixture.push_out(&allocation);
    fixture.client.signal(fence, 1);
    fixture.client.wait(context.progress, held);
}

fn submission_with_a_wait_returns_at_once() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let fence = fixture.client.create_fence(fixture.device, 0);
    for number in 1..=50 {
        let mut commands = Commands::new();
        commands.wait_for(fence, number);
        assert_eq!(commands.submit(&fixture.client, &context), number);
    }
    assert!(!fixture.client.is_reached(context.progress, 1));
    fixture.client.signal(fence, 50);
    fixture.client.wait(context.progress, 50);
}

fn waits_hold_back_this_and_later_buffers() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let fence = fixture.client.create_fence(fixture.device, 0);
    let allocation = fixture.create(physical(4 * KIB, VISIBLE_SEGMENT));
    let store = |value| {
        let mut commands = Commands::new();
        commands.store(allocation.at(0), value);
        commands
    };
    let first = store(1).submit(&fixture.client, &context);
    fixture.client.wait(context.progress, first);
    store(2)
        .wait_for(fence, 1)
        .submit(&fixture.client, &context);
    let last = store(3).submit(&fixture.client, &context);
    let mapping = fixture.client.map(&allocation);
    assert!(!fixture.client.is_reached(context.progress, first + 1));
    assert_eq!(mapping.read64(0), 1);
    fixture.client.signal(fence, 1);
    fixture.client.wait(context.progress, last);
    assert_eq!(mapping.read64(0), 3);
}

fn signals_come_behind_earlier_buffers() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let fence = fixture.client.create_fence(fixture.device, 0);
    let allocation = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let mut polling = Commands::new();
    polling
        .poll(allocation.at(0), u64::MAX, 1)
        .store(allocation.at(8), 2);
    polling.submit(&fixture.client, &context);
    let mut signal = Commands::new();
    signal.then_signal(fence, 1);
    signal.submit(&fixture.client, &context);
    assert!(!fixture.client.is_reached(fence, 1));
    mapping.write64(0, 1);
    fixture.client.wait(fence, 1);
    assert_eq!(mapping.read64(8), 2);
}

fn signal_below_the_value_leaves_it() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let fence = fixture.client.create_fence(fixture.device, 0);
    let gate = fixture.client.create_fence(fixture.device, 0);
    let mut commands = Commands::new();
    commands.wait_for(gate, 1).then_signal(fence, 5);
    let id = commands.submit(&fixture.client, &context);
    fixture.client.signal(fence, 9);
    let recording = Recording::start();
    fixture.client.signal(gate, 1);
    fixture.client.wait(context.progress, id);
    assert!(fixture.client.is_reached(fence, 9));
    let events = recording.stop();
    let changes = events
        .named("fence")
        .filter(|event| event.number("value") == 5);
    assert_eq!(changes.count(), 0);
}

fn events_come_in_order() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let gate = fixture.client.create_fence(fixture.device, 0);
    let after = fixture.client.create_fence(fixture.device, 0);
    let recording = Recording::start();
    let mut commands = Commands::new();
    commands
        .nop(2)
        .wait_for(gate, 1_000_001)
        .then_signal(after, 1_000_002);
    let id = commands.submit(&fixture.client, &context);
    clock::wait_until("the wait begins", || {
        let words = ["value=1000001".to_owned(), "action=begin".to_owned()];
        recording.so_far().find(0, "fence_wait", &words).is_some()
    });
    let early = recording.so_far();
    early.assert_none("node_begin", &["kind=dma".to_owned()]);
    fixture.client.signal(gate, 1_000_001);
    fixture.client.wait(after, 1_000_002);
    fixture.client.wait(context.progress, id);
    recording.stop().assert_order(&[
        "fence_wait value=1000001 action=begin".to_owned(),
        "fence value=1000001 origin=cpu".to_owned(),
        "fence_wait value=1000001 action=end".to_owned(),
        "node_begin node=2 kind=dma".to_owned(),
        "node_end node=2 kind=dma".to_owned(),
        "fence value=1000002 origin=gpu".to_owned(),
    ]);
}

fn chain_of_contexts_runs_in_order() {
    let fixture = Fixture::new();
    let fence = fixture.client.create_fence(fixture.device, 0);
    let allocation = fixture.create(physical(4 * KIB, VISIBLE_SEGMENT));
    let contexts: Vec<_> = (0..16).map(|_| fixture.context()).collect();
    // Submitted from the last to the first; each one doubles and adds its number.
    for (number, context) in contexts.iter().enumerate().rev() {
        let number = number as u64;
        let mut commands = Commands::new();
        commands.load_register(1, allocation.at(0));
        commands.store_register(1, allocation.at(8 * (number + 1)));
        commands.add(allocation.at(0), number + 1);
        commands
            .wait_for(fence, number)
            .then_signal(fence, number + 1);
        commands.submit(&fixture.client, context);
    }
    fixture.client.wait(fence, 16);
    let mapping = fixture.client.map(&allocation);
    let mut sum = 0;
    for number in 0..16 {
        assert_eq!(mapping.read64(8 * (number + 1)), sum, "context {number}");
        sum += number as u64 + 1;
    }
}

fn all_waits_of_a_submission_count() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let fences: Vec<u32> = (0..8)
        .map(|_| fixture.client.create_fence(fixture.device, 0))
        .collect();
    let mut commands = Commands::new();
    for fence in &fences {
        commands.wait_for(*fence, 1);
    }
    let id = commands.submit(&fixture.client, &context);
    for fence in &fences {
        assert!(!fixture.client.is_reached(context.progress, id));
        fixture.client.signal(*fence, 1);
    }
    fixture.client.wait(context.progress, id);
}

fn rewind_does_not_stop_a_satisfied_wait() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let fence = fixture.client.create_fence(fixture.device, 0);
    for _ in 0..20 {
        let mut commands = Commands::new();
        commands.nop(2).wait_for(fence, 1);
        let id = commands.submit(&fixture.client, &context);
        fixture.client.signal(fence, 1);
        fixture.client.wait(context.progress, id);
        let rewind = [crate::client::point(fence, 0)];
        let flags = abi::FENCE_SIGNAL_ALLOW_REWIND;
        fixture.client.try_signal(&rewind, flags).expect("a rewind");
    }
}

fn cancelled_wait_ends_with_the_context() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let fence = fixture.client.create_fence(fixture.device, 0);
    let mut commands = Commands::new();
    commands.nop(2).wait_for(fence, 1);
    commands.submit(&fixture.client, &context);
    fixture.client.close_and_wait(&[context.handle]);
    fixture.client.signal(fence, 1);
    Child::start(|_| {
        let fixture = Fixture::new();
        fixture.run(&fixture.context(), &Commands::new());
    })
    .join();
}

fn progress_tells_the_last_finished_submission() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let mut last = 0;
    for _ in 0..100 {
        last = Commands::new().nop(2).submit(&fixture.client, &context);
    }
    for id in 1..=last {
        fixture.client.wait(context.progress, id);
    }
    assert!(!fixture.client.is_reached(context.progress, last + 1));
}
