// SPDX-License-Identifier: GPL-2.0

//! The end of things: closing while work is queued, processes that are killed, unloading.

use crate::{
    abi::engine,
    client::Client,
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        physical,
        plain,
        Fixture,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    module,
    process::{
        wait_for_the_end,
        Child, //
    },
    random::Random,
    suite::Suite, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "lifetime",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[RES-25]" closed_allocation_lives_until_its_work_is_done,
        "[RES-25]" close_with_sync_returns_when_the_memory_is_free,
        "[RES-25]" close_of_the_file_does_not_wait,
        "[RES-25]" killed_client_leaves_nothing,
        "[RES-25]" client_killed_while_paging_leaves_nothing,
        "" client_killed_in_a_wait_leaves_nothing,
        "" queued_work_is_cancelled_with_its_context,
        "" signals_of_cancelled_work_do_not_come,
        "" other_clients_go_on_beside_a_killed_one,
        "[D2]" objects_used_by_many_threads_can_be_closed,
        "[D1]" guessed_handles_never_hit_unfinished_objects,
        "" unload_is_refused_while_a_file_is_open,
        "" client_without_objects_comes_and_goes,
    },
};

fn closed_allocation_lives_until_its_work_is_done() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create_resident(physical(64 * KIB, VISIBLE_SEGMENT));
    let copy = fixture.create_resident(physical(64 * KIB, SYSTEM));
    fixture.client.map(&allocation).write64(0, 4711);
    debugfs::inject("pause 2");
    let mut commands = Commands::new();
    commands.copy_bytes(copy.at(0), allocation.at(0), 65536);
    let id = commands.submit(&fixture.client, &context);
    fixture.client.close(&[allocation.handle]);
    assert_eq!(
        fixture.client.try_states(&[allocation.handle]).err(),
        Some((libc::ENOENT, 0))
    );
    let orphan = debugfs::placement(allocation.object_id);
    assert!(orphan.orphan, "{}", orphan.record.text);
    debugfs::inject("resume 2");
    fixture.client.wait(context.progress, id);
    assert_eq!(fixture.client.map(&copy).read64(0), 4711);
    clock::wait_until("the memory is free", || {
        debugfs::find_placement(allocation.object_id).is_none()
    });
}

fn close_with_sync_returns_when_the_memory_is_free() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let free = debugfs::segment(1).free;
    for _ in 0..10 {
        let allocation = fixture.create_resident(physical(MIB, VISIBLE_SEGMENT));
        let mut commands = Commands::new();
        commands.fill_bytes(allocation.at(0), 1 << 20, 1);
        commands.submit(&fixture.client, &context);
        fixture.client.close_and_wait(&[allocation.handle]);
        assert_eq!(debugfs::segment(1).free, free);
    }
}

fn close_of_the_file_does_not_wait() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create_resident(physical(64 * KIB, VISIBLE_SEGMENT));
    debugfs::inject("pause 2");
    for _ in 0..8 {
        let mut commands = Commands::new();
        commands.store(allocation.at(0), 1);
        commands.submit(&fixture.client, &context);
    }
    drop(fixture);
    // Closing has returned although nothing could run.
    debugfs::inject("resume 2");
    clock::wait_until("the memory is free", || {
        debugfs::find_placement(allocation.object_id).is_none()
    });
}

/// Starts a client that is busy when it says so, and never ends by itself.
fn busy_client(seed: u64) -> Child {
    Child::start(move |says| {
        let fixture = Fixture::new();
        let context = fixture.context();
        let mut random = Random::new(seed);
        let fence = fixture.client.create_fence(fixture.device, 0);
        for mask in [VISIBLE_SEGMENT, SYSTEM, 1 << 2] {
            let allocation = fixture.create(physical(256 * KIB, mask));
            fixture
                .client
                .make_resident(&fixture.queue, &[allocation.handle]);
            let mut commands = Commands::new();
            commands.fill_bytes(allocation.at(0), 65536, 5);
            match random.below(4) {
                0 => _ = commands.spin(engine::SPIN_FOREVER),
                1 => _ = commands.poll(allocation.at(0), u64::MAX, 1),
                2 => _ = commands.wait_for(fence, 1),
                _ => {}
            }
            commands.submit(&fixture.client, &context);
        }
        let mapped = fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
        let mapping = fixture.client.map(&mapped);
        mapping.write32(0, 1);
        says.line("busy");
        match seed % 3 {
            0 => wait_for_the_end(),
            1 => fixture.client.wait(fence, 1),
            _ => loop {
                fixture
                    .client
                    .make_resident(&fixture.queue, &[mapped.handle]);
                fixture.client.evict(fixture.device, &[mapped.handle]);
                mapping.write32(4096, 2);
            },
        }
    })
}

fn assert_client_works() {
    let fixture = Fixture::new();
    let allocation = fixture.create(physical(64 * KIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    commands.fill_bytes(allocation.at(0), 65536, 0x77);
    fixture.run(&fixture.context(), &commands);
    assert_eq!(fixture.client.map(&allocation).read32(65532), 0x77);
}

fn no_allocations_are_left() {
    clock::wait_until("all memory is free", || debugfs::placements().is_empty());
}

/// Busy clients are killed.
pub fn killed_client_leaves_nothing() {
    for seed in crate::effort::Rounds::new(6) {
        let mut child = busy_client(seed);
        assert_eq!(child.line(), "busy");
        child.kill();
        assert_client_works();
    }
    no_allocations_are_left();
}

fn client_killed_while_paging_leaves_nothing() {
    for command in ["pause 1", "hold worker", "pause 2"] {
        debugfs::inject(command);
        let mut child = Child::start(|says| {
            let fixture = Fixture::new();
            let context = fixture.context();
            for mask in [VISIBLE_SEGMENT, SYSTEM] {
                let allocation = fixture.create(physical(256 * KIB, mask));
                fixture
                    .client
                    .make_resident(&fixture.queue, &[allocation.handle]);
                let mut commands = Commands::new();
                commands.store(allocation.at(0), 1);
                commands.submit(&fixture.client, &context);
                fixture.client.evict(fixture.device, &[allocation.handle]);
            }
            says.line("busy");
            wait_for_the_end();
        });
        assert_eq!(child.line(), "busy");
        child.kill();
        debugfs::reset_injections();
        no_allocations_are_left();
        assert_client_works();
    }
}

fn client_killed_in_a_wait_leaves_nothing() {
    debugfs::inject("pause 2");
    let mut child = Child::start(|says| {
        let fixture = Fixture::new();
        let context = fixture.context();
        let allocation = fixture.create(physical(4 * KIB, VISIBLE_SEGMENT));
        let mut commands = Commands::new();
        commands.store(allocation.at(0), 1);
        commands.submit(&fixture.client, &context);
        says.line("waits");
        fixture
            .client
            .lock(allocation.handle, crate::abi::LOCK_WRITE);
    });
    assert_eq!(child.line(), "waits");
    child.kill();
    debugfs::inject("resume 2");
    no_allocations_are_left();
}

fn queued_work_is_cancelled_with_its_context() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let fence = fixture.client.create_fence(fixture.device, 0);
    let allocation = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 1).wait_for(fence, 1);
    commands.submit(&fixture.client, &context);
    fixture.client.close_and_wait(&[context.handle]);
    fixture.client.signal(fence, 1);
    fixture.run(&fixture.context(), &Commands::new());
    assert_eq!(fixture.client.map(&allocation).read64(0), 0);
}

fn signals_of_cancelled_work_do_not_come() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let gate = fixture.client.create_fence(fixture.device, 0);
    let fence = fixture.client.create_fence(fixture.device, 0);
    let mut commands = Commands::new();
    commands.nop(2).wait_for(gate, 1).then_signal(fence, 1);
    let id = commands.submit(&fixture.client, &context);
    fixture.client.close_and_wait(&[context.handle]);
    let wait = [crate::client::point(context.progress, id)];
    let result = fixture.client.try_wait(&wait, clock::patient_deadline(), 0);
    assert_eq!(result, Err(libc::ECANCELED));
    assert!(!fixture.client.is_reached(fence, 1));
}

fn other_clients_go_on_beside_a_killed_one() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create(physical(64 * KIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let mut child = busy_client(5);
    assert_eq!(child.line(), "busy");
    let mut last = 0;
    for value in 1..20 {
        let mut commands = Commands::new();
        commands.store(allocation.at(8 * value), value);
        last = commands.submit(&fixture.client, &context);
    }
    child.kill();
    fixture.client.wait(context.progress, last);
    for value in 1..20 {
        assert_eq!(mapping.read64(8 * value as usize), value);
    }
}

/// Threads use objects while they are closed.
pub fn objects_used_by_many_threads_can_be_closed() {
    let fixture = Fixture::new();
    let client: &Client = &fixture.client;
    for _ in crate::effort::Rounds::new(40) {
        let context = fixture.context();
        let allocation = fixture.create(physical(4 * KIB, VISIBLE_SEGMENT));
        let fence = client.create_fence(fixture.device, 0);
        let queue = client.create_queue(fixture.device);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut commands = Commands::new();
                commands.store(allocation.at(0), 1).then_signal(fence, 1);
                for _ in 0..5 {
                    let _ = commands.try_submit(client, context.handle);
                }
            });
            scope.spawn(|| {
                for _ in 0..5 {
                    let _ = client.try_make_resident(queue.handle, &[allocation.handle]);
                    let _ = client.try_evict(fixture.device, &[allocation.handle], 0);
                    let points = [crate::client::point(fence, 1)];
                    let _ = client.try_wait(&points, 0, 0);
                }
            });
            let handles = [allocation.handle, context.handle, fence, queue.handle];
            client.close(&handles);
        });
        client.close(&[context.progress]);
    }
}

fn guessed_handles_never_hit_unfinished_objects() {
    let fixture = Fixture::new();
    let client: &Client = &fixture.client;
    let done = std::sync::atomic::AtomicBool::new(false);
    let newest = std::sync::atomic::AtomicU32::new(fixture.create(plain(4096, SYSTEM)).handle);
    use std::sync::atomic::Ordering;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(3);
            while !done.load(Ordering::Acquire) {
                let guess = newest
                    .load(Ordering::Acquire)
                    .wrapping_add(random.below(8) as u32);
                match client.try_states(&[guess]) {
                    Ok(states) => assert_eq!(states[0].size, 4096),
                    Err((errno, _)) => assert_eq!(errno, libc::ENOENT),
                }
            }
        });
        for _ in crate::effort::Rounds::new(400) {
            let allocation = fixture.create(plain(4096, SYSTEM));
            newest.store(allocation.handle, Ordering::Release);
            client.close(&[allocation.handle]);
        }
        done.store(true, Ordering::Release);
    });
}

fn unload_is_refused_while_a_file_is_open() {
    let client = Client::open();
    let result = module::try_unload();
    assert!(
        matches!(result, Err(libc::EBUSY | libc::EAGAIN)),
        "{result:?}"
    );
    client.create_device();
}

fn client_without_objects_comes_and_goes() {
    for _ in 0..200 {
        drop(Client::open());
    }
    let clients: Vec<Client> = (0..50).map(|_| Client::open()).collect();
    drop(clients);
}
