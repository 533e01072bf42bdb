// SPDX-License-Identifier: GPL-2.0

//! Paging queues: which is served first, and what becomes of their commands when they are closed.

use std::{
    thread,
    time::Duration, //
};

use crate::{
    abi::{
        self,
        PagingQueueCreate, //
    },
    client::{
        point,
        Allocation,
        Answer,
        Client,
        Queue, //
    },
    clock,
    debugfs,
    fixture::{
        plain,
        Fixture,
        KIB,
        VISIBLE_SEGMENT, //
    },
    process::interrupted,
    suite::Suite,
    trace::Recording, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "queue_life",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[RES-24]" high_priority_is_served_first,
        "[RES-24]" order_inside_a_queue_is_kept,
        "[RES-24]" close_returns_at_once_and_the_last_value_comes,
        "[RES-24]" close_with_sync_waits_for_the_last_value,
        "[RES-24]" close_with_sync_of_an_idle_queue_returns,
        "[RES-24]" signal_ends_a_close_with_sync,
        "[RES-24]" commands_of_a_closed_queue_are_carried_out,
        "[RES-24]" closed_queue_and_its_fence_are_unknown,
        "[RES-24]" closed_device_takes_its_queues_along,
    },
};

fn queue_of_priority(client: &Client, device: u32, priority: i32) -> Queue {
    let mut argument = PagingQueueCreate {
        device,
        priority,
        ..Default::default()
    };
    client
        .call(abi::IOCTL_PAGING_QUEUE_CREATE, &mut argument)
        .unwrap_or_else(|errno| panic!("PAGING_QUEUE_CREATE: errno {errno}"));
    Queue {
        handle: argument.queue,
        fence: argument.fence,
    }
}

/// Queues a command that brings a new allocation in, and returns both.
fn queue_one(fixture: &Fixture, queue: &Queue) -> (Allocation, u64) {
    let allocation = fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    match fixture.client.make_resident(queue, &[allocation.handle]) {
        Answer::Pending(value) => (allocation, value),
        Answer::Ready => panic!("READY where something is to do"),
    }
}

/// Queues one command for each priority in turn while the worker is held; returns the numbers of the
/// allocations in the order in which they were served.
fn served_in_order(priorities: &[i32]) -> Vec<usize> {
    let fixture = Fixture::new();
    let queues = [-1, 0, 1].map(|one| queue_of_priority(&fixture.client, fixture.device, one));
    debugfs::inject("hold worker");
    let commands: Vec<(Allocation, Queue, u64)> = priorities
        .iter()
        .map(|priority| {
            let queue = queues[(priority + 1) as usize];
            let (allocation, value) = queue_one(&fixture, &queue);
            (allocation, queue, value)
        })
        .collect();
    let recording = Recording::start();
    debugfs::inject("release worker");
    for (_, queue, value) in &commands {
        fixture.client.wait(queue.fence, *value);
    }
    let events = recording.stop();
    let steps = events
        .named("resident_step")
        .filter(|event| event.word("where") == "worker" && event.number("step") == 1);
    let position = |object_id: u64| {
        let found = commands
            .iter()
            .position(|(one, ..)| one.object_id == object_id);
        found.expect("a command of the test")
    };
    steps.map(|event| position(event.number("alloc"))).collect()
}

fn high_priority_is_served_first() {
    assert_eq!(served_in_order(&[-1, 1]), [1, 0]);
    assert_eq!(served_in_order(&[-1, 0, 1]), [2, 1, 0]);
}

fn order_inside_a_queue_is_kept() {
    assert_eq!(served_in_order(&[-1, 1, 0, -1, 1, 0]), [1, 4, 2, 5, 0, 3]);
}

fn close_returns_at_once_and_the_last_value_comes() {
    let fixture = Fixture::new();
    debugfs::inject("hold worker");
    let (_, value) = queue_one(&fixture, &fixture.queue);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let points = [point(fixture.queue.fence, value)];
            fixture
                .client
                .try_wait(&points, clock::patient_deadline(), 0)
        });
        wait_for_waiter();
        fixture.client.close(&[fixture.queue.handle]);
        assert!(!waiter.is_finished());
        debugfs::inject("release worker");
        assert_eq!(waiter.join().expect("the waiter"), Ok(0));
    });
}

/// Returns when another thread waits for a fence.
fn wait_for_waiter() {
    clock::wait_until("the fence is waited for", || debugfs::fence_waiters() == 1);
}

/// Gives a thread the time to go to sleep.
fn let_it_sleep() {
    thread::sleep(Duration::from_millis(50));
}

fn close_with_sync_waits_for_the_last_value() {
    let fixture = Fixture::new();
    debugfs::inject("pause 1");
    let commands = [(); 3].map(|()| queue_one(&fixture, &fixture.queue));
    let recording = Recording::start();
    thread::scope(|scope| {
        let closer = scope.spawn(|| fixture.client.close_and_wait(&[fixture.queue.handle]));
        let_it_sleep();
        assert!(!closer.is_finished());
        recording
            .so_far()
            .assert_none("fence", &["origin=worker".to_owned()]);
        debugfs::inject("resume 1");
        closer.join().expect("the closer");
    });
    let last = format!("value={}", commands[2].1);
    let words = [last, "origin=worker".to_owned()];
    assert!(recording.stop().find(0, "fence", &words).is_some());
    for (allocation, _) in commands {
        assert_eq!(fixture.client.state_of(allocation.handle).segment, 1);
    }
}

fn close_with_sync_of_an_idle_queue_returns() {
    let fixture = Fixture::new();
    let (_, value) = queue_one(&fixture, &fixture.queue);
    fixture.client.wait(fixture.queue.fence, value);
    let idle = fixture.client.create_queue(fixture.device);
    fixture
        .client
        .close_and_wait(&[fixture.queue.handle, idle.handle]);
}

fn signal_ends_a_close_with_sync() {
    let fixture = Fixture::new();
    debugfs::inject("hold worker");
    queue_one(&fixture, &fixture.queue);
    let handles = [fixture.queue.handle];
    let result = interrupted(|| fixture.client.try_close(&handles, abi::CLOSE_SYNC));
    assert_eq!(result, Err((libc::EINTR, u32::MAX)));
    debugfs::inject("release worker");
    let again = fixture.client.try_close(&handles, 0);
    assert_eq!(again, Err((libc::ENOENT, 0)));
}

fn commands_of_a_closed_queue_are_carried_out() {
    let fixture = Fixture::new();
    debugfs::inject("hold worker");
    let (allocation, _) = queue_one(&fixture, &fixture.queue);
    fixture.client.close(&[fixture.queue.handle]);
    debugfs::inject("release worker");
    clock::wait_until("the command is carried out", || {
        fixture.client.state_of(allocation.handle).segment == 1
    });
    assert_eq!(fixture.client.state_of(allocation.handle).resident_refs, 1);
}

fn closed_queue_and_its_fence_are_unknown() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    let queue = fixture.queue;
    assert_eq!(
        fixture.client.try_close(&[queue.fence], 0),
        Err((libc::EBUSY, 0))
    );
    fixture.client.close(&[queue.handle]);
    let used = fixture
        .client
        .try_make_resident(queue.handle, &[allocation.handle]);
    assert_eq!(used, Err((libc::ENOENT, u32::MAX)));
    let waited = fixture.client.try_wait(&[point(queue.fence, 0)], 0, 0);
    assert_eq!(waited, Err(libc::ENOENT));
}

fn closed_device_takes_its_queues_along() {
    let fixture = Fixture::new();
    debugfs::inject("hold worker");
    let (_, value) = queue_one(&fixture, &fixture.queue);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let points = [point(fixture.queue.fence, value)];
            fixture
                .client
                .try_wait(&points, clock::patient_deadline(), 0)
        });
        wait_for_waiter();
        fixture.client.close(&[fixture.device]);
        debugfs::inject("release worker");
        assert_eq!(waiter.join().expect("the waiter"), Ok(0));
    });
    let waited = fixture
        .client
        .try_wait(&[point(fixture.queue.fence, 0)], 0, 0);
    assert_eq!(waited, Err(libc::ENOENT));
    let closed = fixture.client.try_close(&[fixture.queue.handle], 0);
    assert_eq!(closed, Err((libc::ENOENT, 0)));
}
