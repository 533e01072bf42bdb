// SPDX-License-Identifier: GPL-2.0

//! Stress: processes that work against each other and are killed at random times.

use super::oversubscription::{
    self,
    eight_processes_need_four_times_what_there_is, //
};
use crate::{
    client::Client,
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
    process::Child,
    random::Random,
    suite::Suite,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "stress",
    parameters: Some(oversubscription::PARAMETERS),
    cases: crate::cases! {
        "[RES-25] [F7]" processes_killed_at_random_leave_nothing,
        "[PAG-14]" processes_under_pressure_keep_their_data,
        "[RES-25] [PAG-14] [F5]" eight_processes_need_four_times_what_there_is,
        "" threads_of_one_client_share_everything,
        "" signals_do_not_change_results,
    },
};

/// A worker: works on its own allocations and checks them all the time.
fn work(seed: u64, rounds: u64, largest: u64) {
    let fixture = Fixture::new();
    let context = fixture.context();
    let mut random = Random::new(seed);
    let masks = [VISIBLE_SEGMENT, SYSTEM, VISIBLE_SEGMENT | SYSTEM];
    let sizes = [4 * KIB, largest / 8, largest / 2, largest];
    let pairs: Vec<_> = (0..3)
        .map(|_| {
            let size = *random.pick(&sizes);
            let one = fixture.create(physical(size, *random.pick(&masks)));
            let other = fixture.create(physical(size, *random.pick(&masks)));
            (
                one,
                fixture.client.map(&one),
                other,
                fixture.client.map(&other),
            )
        })
        .collect();
    for _ in 0..rounds {
        let (source, from, target, to) = random.pick(&pairs);
        let value = random.next() as u32;
        let size = source.size as u32;
        let mut commands = Commands::new();
        commands.fill_bytes(source.at(0), size, value);
        commands.copy_bytes(target.at(0), source.at(0), size);
        match commands.try_submit(&fixture.client, context.handle) {
            Ok(id) => fixture.client.wait(context.progress, id),
            Err(refusal) => {
                assert_eq!(refusal.errno, libc::ENOSPC);
                continue;
            }
        }
        for _ in 0..4 {
            let offset = random.below(u64::from(size) / 4) as usize * 4;
            assert_eq!(
                (from.read32(offset), to.read32(offset)),
                (value, value),
                "at {offset:#x}"
            );
        }
        if random.once_in(4) {
            let handle = target.handle;
            if let Ok(crate::client::Answer::Pending(value)) = fixture
                .client
                .try_make_resident(fixture.queue.handle, &[handle])
            {
                fixture.client.wait(fixture.queue.fence, value);
            }
            let _ = fixture.client.try_evict(fixture.device, &[handle], 0);
        }
    }
}

/// Workers come, and are killed in the middle of anything.
pub fn processes_killed_at_random_leave_nothing() {
    let mut random = Random::new(crate::effort::seed());
    let mut children: Vec<Child> = Vec::new();
    for _ in crate::effort::Rounds::new(12) {
        if children.len() == 4 {
            let index = random.index(children.len());
            children.swap_remove(index).kill();
        }
        let seed = random.next();
        children.push(Child::start(|says| {
            says.line("started");
            work(seed, u64::MAX, 256 * KIB);
        }));
        let last = children.len() - 1;
        assert_eq!(children[last].line(), "started");
    }
    drop(children);
    clock::wait_until("all memory is free", || debugfs::placements().is_empty());
    work(1, 3, 64 * KIB);
}

/// Processes that need more than there is, all at once.
pub fn processes_under_pressure_keep_their_data() {
    debugfs::inject(&format!(
        "reserve 1 {}",
        debugfs::segment(1).free - 1024 * KIB
    ));
    let seed = crate::effort::seed() - 1;
    for round in crate::effort::Rounds::new(1) {
        let first = seed.wrapping_add(3 * round);
        let children: Vec<Child> = (0..3)
            .map(|number| {
                let number = first.wrapping_add(number);
                Child::start(move |_| work(number, 25, 512 * KIB))
            })
            .collect();
        for child in children {
            child.join();
        }
    }
}

fn threads_of_one_client_share_everything() {
    let fixture = Fixture::new();
    let client: &Client = &fixture.client;
    std::thread::scope(|scope| {
        for number in 0..4_u64 {
            let fixture = &fixture;
            scope.spawn(move || {
                let context = fixture.context();
                for round in 0..15 {
                    let allocation = fixture.create(physical(16 * KIB, VISIBLE_SEGMENT));
                    let mapping = client.map(&allocation);
                    let mut commands = Commands::new();
                    commands.fill_bytes(allocation.at(0), 16384, (number * 100 + round) as u32);
                    fixture.run(&context, &commands);
                    assert_eq!(u64::from(mapping.read32(16380)), number * 100 + round);
                    client.close(&[allocation.handle]);
                }
            });
        }
    });
}

fn signals_do_not_change_results() {
    crate::process::interrupted(|| work(9, 15, 64 * KIB));
}
