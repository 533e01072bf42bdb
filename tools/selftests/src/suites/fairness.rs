// SPDX-License-Identifier: GPL-2.0

//! Fairness: what one client does to another, and what stays behind when it is gone.

use std::fs;

use crate::{
    abi,
    budget::make_resident,
    client::{
        point,
        Answer,
        Client, //
    },
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        physical,
        plain,
        Fixture,
        KIB,
        MIB,
        PAGING_NODE,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    process::{
        wait_for_the_end,
        Child, //
    },
    suite::Suite, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "fairness",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" mapping_offsets_are_shared_out,
        "" more_than_the_system_has_is_refused,
        "" touch_that_waits_holds_up_nobody_who_looks_at_the_process,
        "" blocked_request_ends_with_its_client,
        "" blocked_request_ends_with_its_queue,
        "" blocked_requests_do_not_page_for_ever,
        "" list_that_never_fits_ends_and_fails_its_device,
        "" empty_explicit_submission_pins_nothing,
        "" satisfied_point_stays_satisfied_when_its_fence_falls,
        "" nobody_starves_where_memory_never_suffices,
    },
};

/// Takes all but `left` bytes of the visible segment, held there by a POLL that never ends.
fn occupy(fixture: &Fixture, left: u64) {
    let size = debugfs::segment(1).free - left;
    let allocation = fixture.create(physical(size, VISIBLE_SEGMENT));
    let signal = fixture.create(physical(4 * KIB, SYSTEM));
    let mapping = fixture.client.map(&signal);
    let context = fixture.context();
    let mut commands = Commands::new();
    commands
        .store(signal.at(8), 1)
        .poll(allocation.at(0), u64::MAX, 5);
    commands.submit(&fixture.client, &context);
    clock::wait_until("POLL runs", || mapping.read64(8) == 1);
}

fn mapping_offsets_are_shared_out() {
    let greedy = Fixture::new();
    let mut size = 512 * MIB;
    while size >= 2 * MIB {
        let made = greedy.client.try_create(greedy.device, plain(size, SYSTEM));
        match made {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error, libc::ENOSPC);
                size /= 2;
            }
        }
    }
    let other = Fixture::new();
    other.create(plain(4 * KIB, SYSTEM));
    other.client.create_fence(other.device, 0);
    other.context();
}

fn more_than_the_system_has_is_refused() {
    let fixture = Fixture::new();
    let made = fixture
        .client
        .try_create(fixture.device, plain(1 << 40, SYSTEM));
    assert_eq!(made.err(), Some(libc::ENOSPC));
}

fn touch_that_waits_holds_up_nobody_who_looks_at_the_process() {
    let mut child = Child::start(|says| {
        let fixture = Fixture::new();
        let allocation = fixture.create_resident(plain(64 * KIB, VISIBLE_SEGMENT));
        let mapping = fixture.client.map(&allocation);
        debugfs::inject(&format!("pause {PAGING_NODE}"));
        fixture.push_out(&allocation);
        says.line(&std::process::id().to_string());
        // The content is on its way and does not come.
        mapping.read64(0);
    });
    let process = child.line();
    let sleeps = |path: String| {
        fs::read_to_string(path).is_ok_and(|stat| stat.contains(" S ") || stat.contains(" D "))
    };
    clock::wait_until("the touch waits", || {
        sleeps(format!("/proc/{process}/stat"))
    });
    let maps = fs::read_to_string(format!("/proc/{process}/maps"));
    assert!(maps.expect("the maps of the process").contains("vidmm"));
    child.kill();
    debugfs::inject(&format!("resume {PAGING_NODE}"));
}

/// Starts a process that asks for more than is left of the visible segment, and says the object.
fn blocked_client() -> (Child, u64) {
    let mut child = Child::start(|says| {
        let fixture = Fixture::new();
        let allocation = fixture.create(plain(12 * MIB, VISIBLE_SEGMENT));
        let answer = fixture
            .client
            .make_resident(&fixture.queue, &[allocation.handle]);
        assert!(matches!(answer, Answer::Pending(1)));
        says.line(&allocation.object_id.to_string());
        wait_for_the_end();
    });
    let object_id = child.line().parse().expect("a number");
    (child, object_id)
}

fn blocked_request_ends_with_its_client() {
    let holder = Fixture::new();
    occupy(&holder, 8 * MIB);
    let (child, object_id) = blocked_client();
    assert!(debugfs::find_placement(object_id).is_some());
    child.kill();
    clock::wait_until("its memory is free", || {
        debugfs::find_placement(object_id).is_none()
    });
}

fn blocked_request_ends_with_its_queue() {
    let holder = Fixture::new();
    occupy(&holder, 8 * MIB);
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(12 * MIB, VISIBLE_SEGMENT));
    let handles = [allocation.handle];
    fixture.client.make_resident(&fixture.queue, &handles);
    fixture.client.close(&[fixture.queue.handle]);
    fixture.client.close(&handles);
    clock::wait_until("its memory is free", || {
        debugfs::find_placement(allocation.object_id).is_none()
    });
}

fn blocked_requests_do_not_page_for_ever() {
    let holder = Fixture::new();
    occupy(&holder, 8 * MIB);
    let clients = [blocked_client(), blocked_client()];
    let before = debugfs::stat("paging_completed");
    // Each request of a third client gives the worker a reason to look at everything.
    let third = Fixture::new();
    for _ in 0..50 {
        let allocation = third.create_resident(plain(64 * KIB, SYSTEM));
        third.client.close_and_wait(&[allocation.handle]);
    }
    let buffers = debugfs::stat("paging_completed") - before;
    assert!(buffers < 200, "{buffers} paging buffers for nothing");
    drop(clients);
}

fn list_that_never_fits_ends_and_fails_its_device() {
    let fixture = Fixture::new();
    let only_at_the_start = || {
        let mut info = physical(4 * KIB, VISIBLE_SEGMENT);
        info.align = 16 * MIB;
        fixture.create(info).handle
    };
    let handles = [only_at_the_start(), only_at_the_start()];
    let flags = abi::MAKE_RESIDENT_CANT_TRIM_FURTHER | abi::MAKE_RESIDENT_MUST_SUCCEED;
    make_resident(&fixture.client, &fixture.queue, &handles, flags).expect("it fits in sum");
    clock::wait_until("the device is in error", || {
        let state = fixture.client.device_state(fixture.device);
        state.state == abi::DEVICE_STATE_ERROR_MEMORY
    });
}

fn empty_explicit_submission_pins_nothing() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(physical(MIB, VISIBLE_SEGMENT));
    let context = fixture.client.create_context_of_mode(
        fixture.device,
        crate::fixture::PHYSICAL_NODE,
        abi::CONTEXT_MODE_PATCHED_EXPLICIT,
    );
    fixture.run(&context, &Commands::new());
    fixture.push_out(&allocation);
    assert_eq!(debugfs::segment(1).free, debugfs::segment(1).room());
}

fn satisfied_point_stays_satisfied_when_its_fence_falls() {
    let client = Client::open();
    let device = client.create_device();
    let fences = [
        client.create_fence(device, 0),
        client.create_fence(device, 0),
    ];
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let points = [point(fences[0], 10), point(fences[1], 10)];
            client.try_wait(&points, clock::patient_deadline(), 0)
        });
        clock::wait_until("both are waited for", || debugfs::fence_waiters() == 2);
        client.signal(fences[0], 10);
        let rewound = [point(fences[0], 0)];
        client
            .try_signal(&rewound, abi::FENCE_SIGNAL_ALLOW_REWIND)
            .expect("a rewind");
        client.signal(fences[1], 10);
        assert_eq!(waiter.join().expect("the waiter"), Ok(0));
    });
}

fn nobody_starves_where_memory_never_suffices() {
    let count = 3;
    let fixtures: Vec<Fixture> = (0..count).map(|_| Fixture::new()).collect();
    let contexts: Vec<_> = fixtures.iter().map(Fixture::context).collect();
    let mut ids = vec![0; count];
    // Each submission needs three quarters of the memory, and all are queued at once.
    let allocations: Vec<Vec<_>> = fixtures
        .iter()
        .map(|fixture| {
            let create = || fixture.create(physical(4 * MIB, VISIBLE_SEGMENT));
            (0..3).map(|_| create()).collect()
        })
        .collect();
    for round in 1..=8 {
        for (index, fixture) in fixtures.iter().enumerate() {
            let mut commands = Commands::new();
            for allocation in &allocations[index] {
                commands.add(allocation.at(0), round);
            }
            ids[index] = commands.submit(&fixture.client, &contexts[index]);
        }
    }
    for (index, fixture) in fixtures.iter().enumerate() {
        fixture.client.wait(contexts[index].progress, ids[index]);
        for allocation in &allocations[index] {
            let mapping = fixture.client.map(allocation);
            assert_eq!(mapping.read64(0), (1..=8).sum::<u64>());
        }
    }
}
