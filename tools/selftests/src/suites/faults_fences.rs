// SPDX-License-Identifier: GPL-2.0

//! Hostile scenarios of class H: fences whose values jump, fall and race, and waits that race with
//! the end of what they wait for.

use std::{
    fs,
    sync::atomic::{
        AtomicBool,
        AtomicU64,
        Ordering, //
    },
};

use crate::{
    abi::{
        self,
        FenceCreate, //
    },
    client::{
        point,
        Answer,
        Client,
        Context, //
    },
    clock,
    commands::Commands,
    debugfs,
    descriptor::Epoll,
    effort::Rounds,
    fixture::{
        physical,
        plain,
        Fixture,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    memory::{
        Mapping,
        PAGE, //
    },
    process::{
        wait_for_the_end,
        Child, //
    },
    random::Random,
    suite::Suite,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "faults_fences",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[H2]" pulses_never_hang_the_waiter,
        "[H3]" steps_over_the_value_wake_the_waiter,
        "[H4]" two_contexts_never_lower_the_value,
        "[H6]" waits_on_contexts_that_are_closed_end,
        "[H7]" chain_of_contexts_drops_what_it_used,
        "[H8]" wrong_fence_at_every_place_keeps_nothing,
        "[H11]" sleepers_in_epoll_survive_the_file,
        "[H13]" waits_time_out_beside_the_end_of_work,
        "[H14]" fences_signal_beside_reclaim,
    },
};

/// Sets a fence back to zero.
fn set_back(client: &Client, fence: u32) {
    let flags = abi::FENCE_SIGNAL_ALLOW_REWIND;
    client
        .try_signal(&[point(fence, 0)], flags)
        .expect("FENCE_SIGNAL");
}

fn pulses_never_hang_the_waiter() {
    let fixture = Fixture::new();
    let client = &fixture.client;
    let fence = client.create_fence(fixture.device, 0);
    client.signal(fence, 5);
    set_back(client, fence);
    assert!(!client.is_reached(fence, 3));
    let done = AtomicBool::new(false);
    let woken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                client.wait(fence, 1);
                woken.fetch_add(1, Ordering::AcqRel);
            }
        });
        for _ in Rounds::new(5000) {
            client.signal(fence, 1);
            set_back(client, fence);
        }
        done.store(true, Ordering::Release);
        client.signal(fence, 1);
    });
    assert!(woken.load(Ordering::Acquire) > 0);
}

fn steps_over_the_value_wake_the_waiter() {
    let fixture = Fixture::new();
    let client = &fixture.client;
    let context = fixture.context();
    let fence = client.create_fence(fixture.device, 0);
    let mut random = Random::new(crate::effort::seed());
    let mut base = 0;
    for _ in Rounds::new(300) {
        let (before, waited) = (base + 1 + random.below(4), base + 5);
        let after = waited + 1 + random.below(9);
        std::thread::scope(|scope| {
            scope.spawn(|| client.wait(fence, waited));
            for value in [before, after] {
                let mut commands = Commands::new();
                commands.then_signal(fence, value);
                commands.submit(client, &context);
            }
        });
        base = after;
    }
}

fn two_contexts_never_lower_the_value() {
    const LAST: u64 = 400;
    let fixture = Fixture::new();
    let client = &fixture.client;
    let mut argument = FenceCreate {
        device: fixture.device,
        ..Default::default()
    };
    let fence = client
        .try_create_fence(&mut argument)
        .expect("FENCE_CREATE");
    let page = Mapping::read_only(client.file(), argument.mmap_offset, PAGE);
    let slot = argument.slot as usize * 64;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            while last < LAST {
                let value = page.read64(slot);
                assert!(value >= last, "{value} after {last}");
                last = value;
            }
        });
        for first in [1, 2] {
            let fixture = &fixture;
            scope.spawn(move || {
                let context = fixture.context();
                for value in (first..=LAST).step_by(2) {
                    let mut commands = Commands::new();
                    commands.then_signal(fence, value);
                    commands.submit(client, &context);
                }
                client.wait(fence, LAST);
            });
        }
        for value in (1..=LAST).step_by(7) {
            client.wait(fence, value);
        }
    });
}

fn waits_on_contexts_that_are_closed_end() {
    let fixture = Fixture::new();
    let client = &fixture.client;
    let allocation = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    for round in Rounds::new(150) {
        let context = fixture.context();
        let mut commands = Commands::new();
        commands.store(allocation.at(0), round).spin(200_000);
        let id = commands.submit(client, &context);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let points = [point(context.progress, id)];
                    let result = client.try_wait(&points, clock::patient_deadline(), 0);
                    let ended = matches!(result, Ok(_) | Err(libc::ECANCELED | libc::ENOENT));
                    assert!(ended, "round {round}: {result:?}");
                });
            }
            std::thread::sleep(std::time::Duration::from_micros(round % 8 * 50));
            client.close(&[context.handle]);
            client.close(&[context.progress]);
        });
    }
}

fn chain_of_contexts_drops_what_it_used() {
    const LENGTH: usize = 64;
    for _ in Rounds::new(3) {
        let fixture = Fixture::new();
        let client = &fixture.client;
        let fences: Vec<u32> = (0..=LENGTH)
            .map(|_| client.create_fence(fixture.device, 0))
            .collect();
        let contexts: Vec<Context> = (0..LENGTH).map(|_| fixture.context()).collect();
        for (index, context) in contexts.iter().enumerate() {
            let used = fixture.create(physical(4 * KIB, VISIBLE_SEGMENT));
            let mut commands = Commands::new();
            commands
                .store(used.at(0), 1)
                .wait_for(fences[index], 1)
                .then_signal(fences[index + 1], 1);
            commands.submit(client, context);
            // From here on the queued work alone holds it.
            client.close(&[used.handle]);
        }
        assert_eq!(debugfs::placements().len(), LENGTH);
        // The fences between are held by the queued work alone, too.
        client.close(&fences[1..LENGTH]);
        client.signal(fences[0], 1);
        client.wait(fences[LENGTH], 1);
        clock::wait_until("what was used is gone", || debugfs::placements().is_empty());
    }
}

fn wrong_fence_at_every_place_keeps_nothing() {
    const LENGTH: usize = 32;
    let fixture = Fixture::new();
    let client = &fixture.client;
    let context = fixture.context();
    let before = debugfs::stat("fences");
    let fences: Vec<u32> = (0..LENGTH)
        .map(|_| client.create_fence(fixture.device, 0))
        .collect();
    for _ in Rounds::new(3) {
        for place in 0..LENGTH {
            let mut points: Vec<_> = fences.iter().map(|fence| point(*fence, 1)).collect();
            points[place].fence = 0xdead_beef;
            let waited = client.try_wait(&points, clock::patient_deadline(), 0);
            assert_eq!(waited, Err(libc::ENOENT), "WAIT, place {place}");
            let signalled = client.try_signal(&points, 0);
            assert_eq!(signalled, Err((libc::ENOENT, place as u32)), "SIGNAL");
            let mut commands = Commands::new();
            commands.waits.clone_from(&points);
            let refusal = commands.try_submit(client, context.handle);
            assert_eq!(refusal.err().map(|error| error.errno), Some(libc::ENOENT));
            let mut commands = Commands::new();
            commands.signals = points;
            let refusal = commands.try_submit(client, context.handle);
            assert_eq!(refusal.err().map(|error| error.errno), Some(libc::ENOENT));
        }
    }
    assert!(fences.iter().all(|fence| !client.is_reached(*fence, 1)));
    client.close(&fences);
    assert_eq!(debugfs::stat("fences"), before);
}

fn sleepers_in_epoll_survive_the_file() {
    for round in Rounds::new(20) {
        let fixture = Fixture::new();
        let sleepers: Vec<Child> = (0..3)
            .map(|_| {
                let mut child = Child::start(|says| {
                    let epoll = Epoll::of_edges(fixture.client.file());
                    says.line("asleep");
                    epoll.sleep(clock::patience());
                    wait_for_the_end();
                });
                assert_eq!(child.line(), "asleep");
                child
            })
            .collect();
        let epoll = Epoll::of_edges(fixture.client.file());
        let copy = fixture.client.try_clone();
        if round % 2 == 0 {
            fixture.client.close(&[fixture.device]);
        }
        drop(fixture);
        assert_eq!(epoll.reported(), 0);
        drop(copy);
        for sleeper in sleepers {
            sleeper.kill();
        }
        assert_eq!(epoll.reported(), 0);
    }
}

fn waits_time_out_beside_the_end_of_work() {
    let fixture = Fixture::new();
    let client = &fixture.client;
    let context = fixture.context();
    let mut random = Random::new(crate::effort::seed());
    let mut ends = [0_u64; 2];
    for _ in Rounds::new(400) {
        let fence = client.create_fence(fixture.device, 0);
        let mut commands = Commands::new();
        commands.spin(500_000).then_signal(fence, 1);
        let id = commands.submit(client, &context);
        let deadline = clock::now_ns() + random.below(2_000_000) as i64;
        std::thread::scope(|scope| {
            let waiter = scope.spawn(move || client.try_wait(&[point(fence, 1)], deadline, 0));
            if random.once_in(2) {
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
            client.close(&[fence]);
            match waiter.join().expect("the waiter") {
                Ok(_) => ends[0] += 1,
                Err(libc::ETIME) => ends[1] += 1,
                Err(errno) => assert!(matches!(errno, libc::ENOENT | libc::ECANCELED), "{errno}"),
            }
        });
        client.wait(context.progress, id);
    }
    crate::ktap::comment(&format!("{} ended, {} timed out", ends[0], ends[1]));
}

fn fences_signal_beside_reclaim() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let hog = Child::start(|_| loop {
        let _ = fs::write("/proc/sys/vm/drop_caches", "3");
        let memory = Mapping::anonymous(16 << 20 >> 12);
        for page in 0..(16 << 20 >> 12) {
            memory.write32(page * PAGE, 1);
        }
    });
    let allocations: Vec<_> = (0..4)
        .map(|_| fixture.create(physical(5 * MIB, VISIBLE_SEGMENT)))
        .collect();
    let extra = fixture.create(plain(MIB, VISIBLE_SEGMENT | SYSTEM));
    for round in Rounds::new(16) {
        let allocation = &allocations[round as usize % 4];
        let mut commands = Commands::new();
        commands.add(allocation.at(0), 1);
        fixture.run(&context, &commands);
        let handles = [extra.handle];
        if let Answer::Pending(value) = fixture.client.make_resident(&fixture.queue, &handles) {
            fixture.client.wait(fixture.queue.fence, value);
        }
        fixture.client.evict(fixture.device, &handles);
        let count = fixture.client.map(allocation).read64(0);
        assert_eq!(count, round / 4 + 1, "round {round}");
    }
    hog.kill();
}
