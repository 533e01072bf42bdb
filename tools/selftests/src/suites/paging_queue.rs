// SPDX-License-Identifier: GPL-2.0

//! Paging queues and their fences.

use crate::{
    abi::{
        self,
        PagingQueueCreate, //
    },
    client::{
        point,
        Answer, //
    },
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
    memory::{
        Mapping,
        PAGE, //
    },
    suite::Suite,
    trace::Recording, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "paging_queue",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" priorities_in_range_are_accepted,
        "" priority_out_of_range_is_refused,
        "" paging_fence_is_visible_in_its_page,
        "[SYN-1]" values_rise_strictly_or_are_ready,
        "[SYN-1]" queues_count_for_themselves,
        "[SYN-2]" fence_stays_until_the_gpu_has_finished,
        "[SYN-9]" work_that_waits_for_the_paging_value_is_right,
        "[SYN-9]" cpu_waits_for_the_paging_value,
        "[RES-9]" mixed_commands_keep_their_order,
        "" queue_closed_with_commands_queued_is_drained,
    },
};

fn priorities_in_range_are_accepted() {
    let fixture = Fixture::new();
    for priority in [-1, 0, 1] {
        let device = fixture.device;
        let mut argument = PagingQueueCreate {
            device,
            priority,
            ..Default::default()
        };
        fixture
            .client
            .call(abi::IOCTL_PAGING_QUEUE_CREATE, &mut argument)
            .expect("a queue");
        assert_ne!(argument.queue, argument.fence);
    }
}

fn priority_out_of_range_is_refused() {
    let fixture = Fixture::new();
    for priority in [-2, 2, i32::MIN, i32::MAX] {
        let device = fixture.device;
        let mut argument = PagingQueueCreate {
            device,
            priority,
            ..Default::default()
        };
        let result = fixture
            .client
            .call(abi::IOCTL_PAGING_QUEUE_CREATE, &mut argument);
        assert_eq!(result, Err(libc::EINVAL), "priority {priority}");
    }
}

fn paging_fence_is_visible_in_its_page() {
    let fixture = Fixture::new();
    let mut argument = PagingQueueCreate {
        device: fixture.device,
        ..Default::default()
    };
    fixture
        .client
        .call(abi::IOCTL_PAGING_QUEUE_CREATE, &mut argument)
        .expect("a queue");
    let page = Mapping::read_only(fixture.client.file(), argument.mmap_offset, PAGE);
    let slot = argument.slot as usize * 64;
    assert_eq!(page.read64(slot), 0);
    let allocation = fixture.create(plain(4 * KIB, VISIBLE_SEGMENT));
    let answer = fixture
        .client
        .try_make_resident(argument.queue, &[allocation.handle]);
    let Ok(Answer::Pending(value)) = answer else {
        panic!("{answer:?}");
    };
    fixture.client.wait(argument.fence, value);
    assert_eq!(page.read64(slot), value);
}

fn values_rise_strictly_or_are_ready() {
    let fixture = Fixture::new();
    let mut last = 0;
    for number in 0..24 {
        let mask = if number % 3 == 0 {
            SYSTEM
        } else {
            VISIBLE_SEGMENT
        };
        let allocation = fixture.create(physical(4 * KIB, mask));
        match fixture
            .client
            .make_resident(&fixture.queue, &[allocation.handle])
        {
            Answer::Pending(value) => {
                assert_eq!(value, last + 1);
                last = value;
                if number % 4 == 0 {
                    fixture.client.wait(fixture.queue.fence, value);
                    let again = fixture
                        .client
                        .make_resident(&fixture.queue, &[allocation.handle]);
                    assert_eq!(again, Answer::Ready);
                }
            }
            Answer::Ready => panic!("READY for something that is not resident"),
        }
    }
    fixture.client.wait(fixture.queue.fence, last);
}

fn queues_count_for_themselves() {
    let fixture = Fixture::new();
    let other = fixture.client.create_queue(fixture.device);
    for value in 1..4 {
        for queue in [&fixture.queue, &other] {
            let allocation = fixture.create(plain(4 * KIB, VISIBLE_SEGMENT));
            let answer = fixture.client.make_resident(queue, &[allocation.handle]);
            assert_eq!(answer, Answer::Pending(value));
        }
    }
    fixture.client.wait(fixture.queue.fence, 3);
    fixture.client.wait(other.fence, 3);
}

fn fence_stays_until_the_gpu_has_finished() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    debugfs::inject("pause 1");
    let recording = Recording::start();
    let Answer::Pending(value) = fixture
        .client
        .make_resident(&fixture.queue, &[allocation.handle])
    else {
        panic!("READY with a paused paging node");
    };
    let last_step = [
        "where=worker".to_owned(),
        "step=3".to_owned(),
        format!("fence={value}"),
    ];
    crate::clock::wait_until("the worker has done its last step", || {
        recording
            .so_far()
            .find(0, "resident_step", &last_step)
            .is_some()
    });
    assert!(!fixture.client.is_reached(fixture.queue.fence, value));
    debugfs::inject("resume 1");
    fixture.client.wait(fixture.queue.fence, value);
    recording.stop().assert_order(&[
        format!("resident_step where=worker step=3 fence={value}"),
        "node_end node=1 kind=paging".to_owned(),
        format!("fence value={value} origin=worker"),
    ]);
}

/// Work behind a paging value.
pub fn work_that_waits_for_the_paging_value_is_right() {
    let fixture = Fixture::new();
    let mode = abi::CONTEXT_MODE_PATCHED_EXPLICIT;
    let context = fixture
        .client
        .create_context_of_mode(fixture.device, 2, mode);
    let target = fixture.create_resident(physical(4 * KIB, SYSTEM));
    let mapping = fixture.client.map(&target);
    for round in crate::effort::Rounds::new(60) {
        let mask = if round % 2 == 0 {
            VISIBLE_SEGMENT
        } else {
            SYSTEM
        };
        let source = fixture.create(physical(4 * KIB, mask));
        fixture.client.map(&source).write64(0, round + 1);
        let answer = fixture
            .client
            .make_resident(&fixture.queue, &[source.handle]);
        let mut commands = Commands::new();
        commands.copy_bytes(target.at(0), source.at(0), 8);
        if let Answer::Pending(value) = answer {
            commands.wait_for(fixture.queue.fence, value);
        }
        let id = commands.submit(&fixture.client, &context);
        fixture.client.wait(context.progress, id);
        assert_eq!(mapping.read64(0), round + 1);
        fixture.client.close(&[source.handle]);
    }
}

fn cpu_waits_for_the_paging_value() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4 * KIB, VISIBLE_SEGMENT));
    debugfs::inject("pause 1");
    let Answer::Pending(value) = fixture
        .client
        .make_resident(&fixture.queue, &[allocation.handle])
    else {
        panic!("READY with a paused paging node");
    };
    let points = [point(fixture.queue.fence, value)];
    assert_eq!(fixture.client.try_wait(&points, 0, 0), Err(libc::ETIME));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| fixture.client.wait(fixture.queue.fence, value));
        debugfs::inject("resume 1");
        waiter.join().expect("the waiter");
    });
    assert_eq!(fixture.client.state_of(allocation.handle).segment, 1);
}

fn mixed_commands_keep_their_order() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    mapping.write64(0, 1);
    let mut last = 0;
    for _ in 0..10 {
        if let Answer::Pending(value) = fixture
            .client
            .make_resident(&fixture.queue, &[allocation.handle])
        {
            last = value;
        }
        fixture.client.evict(fixture.device, &[allocation.handle]);
    }
    let answer = fixture
        .client
        .make_resident(&fixture.queue, &[allocation.handle]);
    if let Answer::Pending(value) = answer {
        assert!(value > last);
        fixture.client.wait(fixture.queue.fence, value);
    }
    let state = fixture.client.state_of(allocation.handle);
    assert_eq!((state.segment, state.resident_refs), (1, 1));
    assert_eq!(mapping.read64(0), 1);
}

fn queue_closed_with_commands_queued_is_drained() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    debugfs::inject("hold worker");
    fixture
        .client
        .make_resident(&fixture.queue, &[allocation.handle]);
    fixture
        .client
        .close(&[fixture.queue.handle, allocation.handle]);
    debugfs::inject("release worker");
    crate::clock::wait_until("the memory is free", || {
        debugfs::find_placement(allocation.object_id).is_none()
    });
}
