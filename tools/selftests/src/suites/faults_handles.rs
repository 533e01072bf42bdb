// SPDX-License-Identifier: GPL-2.0

//! Hostile scenarios of class D: handles that are guessed, reused, wrong and closed.

use std::sync::atomic::{
    AtomicBool,
    AtomicU32,
    Ordering, //
};

use crate::{
    abi::{
        self,
        engine,
        Lock, //
    },
    calls::built,
    client::{
        point,
        Client, //
    },
    clock,
    commands::Commands,
    effort::Rounds,
    fixture::{
        physical,
        plain,
        Fixture,
        KIB,
        PHYSICAL_NODE,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    random::Random,
    schema::{
        Kind,
        Type, //
    },
    submitter::Submitter,
    suite::Suite,
    world::World,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "faults_handles",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[D1]" guessed_handles_of_every_type_are_whole_or_unknown,
        "[D2]" reused_number_is_the_old_or_the_new_object,
        "[D5]" wrong_handle_at_every_place_changes_no_reference,
        "[D7]" new_context_sees_nothing_of_the_one_before,
        "[D8]" closed_handle_stays_unknown,
    },
};

/// Whether a call on a handle that may be anything has answered as it may.
fn is_answer<T>(result: &Result<T, i32>) -> bool {
    matches!(
        result,
        Ok(_) | Err(libc::ENOENT | libc::EINVAL | libc::EXDEV | libc::ETIME | libc::EBUSY)
    )
}

/// Issues calls on a handle that was guessed.
fn try_everything(client: &Client, device: u32, guess: u32) {
    let first = |(errno, _)| errno;
    let mut commands = Commands::new();
    commands.waits.push(point(guess, 1));
    let results = [
        client.try_states(&[guess]).map(drop).map_err(first),
        client.try_evict(device, &[guess], 0).map_err(first),
        client.try_wait(&[point(guess, 1)], 0, 0).map(drop),
        client.try_signal(&[point(guess, 1)], 0).map_err(first),
        client.try_set_name(guess, b"guessed"),
        commands
            .try_submit(client, guess)
            .map(drop)
            .map_err(|refusal| refusal.errno),
        client.try_close(&[guess], 0).map_err(first),
    ];
    for result in results {
        let answer = is_answer(&result) || matches!(result, Err(libc::EPERM | libc::EACCES));
        assert!(answer, "handle {guess:#x}: {result:?}");
    }
}

fn guessed_handles_of_every_type_are_whole_or_unknown() {
    let fixture = Fixture::new();
    let client = &fixture.client;
    let done = AtomicBool::new(false);
    let newest = AtomicU32::new(client.create_fence(fixture.device, 0));
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (done, newest) = (&done, &newest);
            let device = fixture.device;
            scope.spawn(move || {
                let mut random = Random::new(seed);
                while !done.load(Ordering::Acquire) {
                    let base = newest.load(Ordering::Acquire);
                    let guess = base.wrapping_add(random.below(4) as u32);
                    if guess != device {
                        try_everything(client, device, guess);
                    }
                }
            });
        }
        for _ in Rounds::new(150) {
            let handles = [
                fixture.create(plain(4096, SYSTEM)).handle,
                client.create_fence(fixture.device, 0),
                client.create_context(fixture.device, PHYSICAL_NODE).handle,
                client.create_queue(fixture.device).handle,
            ];
            newest.store(handles[3], Ordering::Release);
            for handle in handles {
                let closed = client.try_close(&[handle], 0);
                assert!(matches!(closed, Ok(()) | Err((libc::ENOENT, 0))));
            }
        }
        done.store(true, Ordering::Release);
    });
}

fn reused_number_is_the_old_or_the_new_object() {
    let fixture = Fixture::new();
    let client = &fixture.client;
    let context = fixture.context();
    let done = AtomicBool::new(false);
    let shared = AtomicU32::new(fixture.create(physical(4 * KIB, VISIBLE_SEGMENT)).handle);
    std::thread::scope(|scope| {
        for number in 0..4_u64 {
            let (done, shared, fixture, context) = (&done, &shared, &fixture, &context);
            scope.spawn(move || {
                while !done.load(Ordering::Acquire) {
                    let handle = shared.load(Ordering::Acquire);
                    match client.try_states(&[handle]) {
                        Ok(states) => assert!(matches!(states[0].size, 4096 | 8192)),
                        Err(error) => assert_eq!(error, (libc::ENOENT, 0)),
                    }
                    let queue = fixture.queue.handle;
                    let brought = client.try_make_resident(queue, &[handle]);
                    assert!(
                        matches!(brought, Ok(_) | Err((libc::ENOENT, 0))),
                        "{brought:?}"
                    );
                    let evicted = client.try_evict(fixture.device, &[handle], 0);
                    let answer = matches!(evicted, Ok(()) | Err((libc::ENOENT | libc::EINVAL, 0)));
                    assert!(answer, "{evicted:?}");
                    let mut commands = Commands::new();
                    let at = crate::commands::At {
                        handle,
                        offset: 8 * number,
                    };
                    commands.store(at, number);
                    if let Err(refusal) = commands.try_submit(client, context.handle) {
                        assert_eq!(refusal.errno, libc::ENOENT, "{refusal:?}");
                    }
                    let locked = client.try_lock(Lock {
                        alloc: handle,
                        flags: abi::LOCK_READ | abi::LOCK_DO_NOT_WAIT,
                        ..Default::default()
                    });
                    let answer = matches!(locked, Ok(_) | Err(libc::ENOENT | libc::EAGAIN));
                    assert!(answer, "{:?}", locked.err());
                }
            });
        }
        for round in Rounds::new(300) {
            let size = if round % 2 == 0 { 8 * KIB } else { 4 * KIB };
            let next = fixture.create(physical(size, VISIBLE_SEGMENT)).handle;
            let old = shared.swap(next, Ordering::AcqRel);
            client.close(&[old]);
        }
        done.store(true, Ordering::Release);
    });
}

fn wrong_handle_at_every_place_changes_no_reference() {
    let fixture = Fixture::new();
    let client = &fixture.client;
    let handles: Vec<u32> = (0..64)
        .map(|_| fixture.create(plain(4 * KIB, VISIBLE_SEGMENT)).handle)
        .collect();
    client.bring_in(&fixture.queue, &handles);
    for length in [1, 2, 3, 5, 8, 13, 21, 34, 64] {
        for place in 0..length {
            let mut list = handles[..length].to_vec();
            list[place] = 0xdead_beef;
            let expected = (libc::ENOENT, place as u32);
            let queue = fixture.queue.handle;
            assert_eq!(client.try_make_resident(queue, &list), Err(expected));
            assert_eq!(client.try_evict(fixture.device, &list, 0), Err(expected));
            assert_eq!(client.try_close(&list, 0), Err(expected));
            assert_eq!(client.try_states(&list).err(), Some(expected));
        }
    }
    let states = client.try_states(&handles).expect("ALLOC_QUERY");
    assert!(states.iter().all(|state| state.resident_refs == 1));
    client.push_out(fixture.device, &handles);
    client.close_and_wait(&handles);
    assert!(crate::debugfs::placements().is_empty());
}

fn new_context_sees_nothing_of_the_one_before() {
    let fixture = Fixture::new();
    let client = &fixture.client;
    let allocation = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let mapping = client.map(&allocation);
    let gate = client.create_fence(fixture.device, 0);
    for round in Rounds::new(60) {
        let doomed = fixture.context();
        for number in 0..4 {
            let mut commands = Commands::new();
            match (round + number) % 4 {
                0 => _ = commands.spin(engine::SPIN_FOREVER),
                1 => _ = commands.wait_for(gate, 1),
                2 => _ = commands.poll(allocation.at(2048), u64::MAX, 1),
                _ => {}
            }
            commands.store(allocation.at(1024), 0xdead);
            commands.submit(client, &doomed);
        }
        client.close(&[doomed.handle]);
        let fresh = fixture.context();
        assert!(!client.is_reached(fresh.progress, 1), "round {round}");
        let mut commands = Commands::new();
        commands.store(allocation.at(0), round + 1);
        assert_eq!(fixture.run(&fresh, &commands), 1);
        assert_eq!(mapping.read64(0), round + 1);
        assert!(!client.is_reached(fresh.progress, 2), "round {round}");
        let state = client
            .try_submission(fresh.handle, 1)
            .expect("SUBMIT_QUERY");
        assert_eq!(state.state, abi::SUBMIT_STATE_DONE);
        client.close(&[fresh.handle, fresh.progress, doomed.progress]);
    }
    let state = client.device_state(fixture.device);
    assert_eq!(state.state, abi::DEVICE_STATE_ACTIVE);
}

fn closed_handle_stays_unknown() {
    let world = World::new();
    let calls = built(&world.client);
    let stale: Vec<(Type, u32)> = [Type::Device, Type::Allocation, Type::Context, Type::Queue]
        .into_iter()
        .chain([Type::Fence, Type::Any])
        .map(|kind| (kind, world.stale_handle(kind)))
        .collect();
    let rounds = if clock::is_debug_kernel() { 20 } else { 200 };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in Rounds::new(rounds) {
                    for call in &calls {
                        let field = call.fields.iter().find_map(|field| match field.kind {
                            Kind::Handle(kind) => Some((field, kind)),
                            _ => None,
                        });
                        let Some((field, kind)) = field else { continue };
                        let (_, handle) = stale.iter().find(|(of, _)| *of == kind).expect("a type");
                        let mut argument = (call.arrange)(&world);
                        argument.set(field, u64::from(*handle));
                        world.assert_refused(call, &mut argument, libc::ENOENT, "closed");
                    }
                }
            });
        }
        // Beside it, somebody else works as always.
        let submitter = Submitter::new();
        for _ in 0..20 {
            submitter.assert_accepted(&submitter.two_stores());
        }
        assert_eq!(submitter.mapping.read64(8), 2);
    });
}
