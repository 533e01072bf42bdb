// SPDX-License-Identifier: GPL-2.0

//! Random work of several clients against a model: every byte of every allocation is known.
//!
//! The clients share one process, so that a seed gives the same calls in the same order. A model
//! remembers the content of each allocation; at random times, and at the end, all of it is compared.

use std::{
    cell::RefCell,
    collections::VecDeque, //
};

use crate::{
    abi,
    client::{
        Allocation,
        Context, //
    },
    commands::{
        Commands,
        Extent,
        Side, //
    },
    debugfs,
    fixture::{
        physical,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    memory::Mapping,
    random::Random,
    reference::Machine,
    suite::Suite,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "random_model",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[SEG-5]" work_that_fits_matches_the_model,
        "[SEG-5] [PAG-14]" work_under_pressure_matches_the_model,
        "[SEG-12]" work_with_forced_moves_matches_the_model,
        "[RES-22] [PAG-21]" work_with_offers_matches_the_model,
    },
};

/// How a run differs from others.
struct Shape {
    clients: usize,
    allocations: usize,
    largest: u64,
    moves: bool,
    offers: bool,
}

/// An allocation of the model.
struct Held {
    allocation: Allocation,
    mapping: Mapping,
    references: u32,
    /// What was done to it last.
    history: RefCell<VecDeque<String>>,
}

impl Held {
    fn note(&self, what: String) {
        let mut history = self.history.borrow_mut();
        if history.len() == 12 {
            history.pop_front();
        }
        history.push_back(what);
    }
}

/// A client of the model.
struct Actor {
    fixture: Fixture,
    context: Context,
    held: Vec<Held>,
    machine: Machine,
    last: u64,
}

impl Actor {
    fn new() -> Self {
        let fixture = Fixture::new();
        let context = fixture.context();
        Self {
            fixture,
            context,
            held: Vec::new(),
            machine: Machine::new(true),
            last: 0,
        }
    }

    fn create(&mut self, random: &mut Random, largest: u64) {
        let size = 4 * KIB * (1 + random.below(largest / (4 * KIB)));
        let masks = [
            VISIBLE_SEGMENT,
            HIDDEN_SEGMENT,
            SYSTEM,
            VISIBLE_SEGMENT | SYSTEM,
            VISIBLE_SEGMENT | HIDDEN_SEGMENT,
            0,
        ];
        let allocation = self.fixture.create(physical(size, *random.pick(&masks)));
        let mapping = self.fixture.client.map(&allocation);
        self.machine
            .set(allocation.handle, vec![0; allocation.size as usize]);
        self.held.push(Held {
            allocation,
            mapping,
            references: 0,
            history: RefCell::default(),
        });
    }

    fn close(&mut self, random: &mut Random) {
        let held = self.held.swap_remove(random.index(self.held.len()));
        self.fixture.client.close(&[held.allocation.handle]);
        self.machine.memory.remove(&held.allocation.handle);
    }

    fn write(&mut self, random: &mut Random) {
        let held = &self.held[random.index(self.held.len())];
        let handle = held.allocation.handle;
        let size = held.allocation.size;
        let start = random.below(size);
        let length = 1 + random.below((size - start).min(20_000));
        let bytes = random.bytes(length as usize);
        self.fixture.client.lock(handle, abi::LOCK_WRITE);
        held.mapping.write(start as usize, &bytes);
        held.note(format!("CPU writes {:#x} to {:#x}", start, start + length));
        self.fixture.client.unlock(handle);
        let memory = self
            .machine
            .memory
            .get_mut(&handle)
            .expect("a known allocation");
        memory[start as usize..][..bytes.len()].copy_from_slice(&bytes);
    }

    fn change_residency(&mut self, random: &mut Random) {
        let index = random.index(self.held.len());
        let held = &mut self.held[index];
        let handle = held.allocation.handle;
        if held.references > 0 {
            let flags = [0, abi::EVICT_ONLY_IF_NEEDED];
            let flags = *random.pick(&flags);
            let device = self.fixture.device;
            self.fixture
                .client
                .try_evict(device, &[handle], flags)
                .expect("EVICT");
            held.references -= 1;
            held.note(format!("evicted with flags {flags}"));
        } else {
            match self
                .fixture
                .client
                .try_make_resident(self.fixture.queue.handle, &[handle])
            {
                Ok(answer) => {
                    held.references += 1;
                    held.note(format!("made resident: {answer:?}"));
                }
                Err((errno, _)) => assert_eq!(errno, libc::ENOSPC),
            }
        }
    }

    fn draw(&mut self, random: &mut Random) {
        let mut commands = Commands::new();
        for _ in 0..1 + random.below(3) {
            let to = self.held[random.index(self.held.len())].allocation;
            let from = self.held[random.index(self.held.len())].allocation;
            let width = 4 * (1 + random.below(256)) as u32;
            let height = 1 + random.below(3) as u32;
            let reach = u64::from(width * height);
            let place = |random: &mut Random, size: u64| random.below((size - reach) / 4) * 4;
            let to = Side {
                at: to.at(place(random, to.size)),
                pitch: width,
            };
            let from = Side {
                at: from.at(place(random, from.size)),
                pitch: width,
            };
            let extent = Extent { width, height };
            match random.below(4) {
                0 => commands.fill(to, extent, random.next() as u32),
                1 => commands.blend(to, from, extent),
                _ => commands.copy(to, from, extent),
            };
        }
        let result = commands.try_submit(&self.fixture.client, self.context.handle);
        for held in &self.held {
            let handle = held.allocation.handle;
            if let Some(listed) = commands.allocs.iter().find(|listed| listed.alloc == handle) {
                held.note(format!("drawn, flags {}, {result:?}", listed.flags));
            }
        }
        match result {
            Ok(id) => {
                self.last = id;
                self.machine.run(&commands);
            }
            Err(refusal) => assert_eq!(refusal.errno, libc::ENOSPC, "{refusal:?}"),
        }
    }

    fn inject(&self, random: &mut Random) {
        let held = &self.held[random.index(self.held.len())];
        let id = held.allocation.object_id;
        let command = match random.below(4) {
            0 => format!("evict {id}"),
            1 => format!("move {id}"),
            2 => format!("move {id} {}", 1 + random.below(3)),
            _ => format!("move {id} 1 {}", random.below(64) * 64 * KIB),
        };
        if let Err(errno) = debugfs::try_inject(&command) {
            // A place outside the set, or one that is taken.
            assert!(
                matches!(errno, libc::EINVAL | libc::ENOSPC | libc::EBUSY),
                "{command}: {errno}"
            );
        }
    }

    /// Offers some allocations, perhaps behind work that uses them, pushes some of them out, and takes
    /// them back.
    fn offer(&mut self, random: &mut Random) {
        let count = 1 + random.index(self.held.len().min(3));
        let first = random.index(self.held.len());
        let chosen: Vec<usize> = (first..first + count)
            .map(|index| index % self.held.len())
            .collect();
        let handles: Vec<u32> = chosen
            .iter()
            .map(|index| self.held[*index].allocation.handle)
            .collect();
        let flags = [0, abi::OFFER_NOW, abi::OFFER_ALLOW_DECOMMIT];
        let level = 1 + random.below(4) as u32;
        let offered = self.fixture.client.try_offer(
            self.fixture.device,
            &handles,
            level,
            *random.pick(&flags),
        );
        if let Err((errno, _)) = offered {
            assert_eq!(errno, libc::EBUSY);
        }
        for index in &chosen {
            if random.once_in(2) {
                let id = self.held[*index].allocation.object_id;
                let result = debugfs::try_inject(&format!("evict {id}"));
                assert!(matches!(result, Ok(()) | Err(libc::EBUSY)), "{result:?}");
            }
        }
        let queue = self.fixture.queue;
        let (results, answer) = self
            .fixture
            .client
            .try_reclaim(queue.handle, &handles)
            .expect("RECLAIM");
        if let (crate::client::Answer::Pending(value), true) = (answer, random.once_in(2)) {
            self.fixture.client.wait(queue.fence, value);
        }
        for (index, result) in chosen.iter().zip(results) {
            let held = &self.held[*index];
            held.note(format!("offered {offered:?}, reclaimed with {result}"));
            match result {
                abi::RECLAIM_RESULT_OK => {}
                abi::RECLAIM_RESULT_DISCARDED => {
                    let size = held.allocation.size as usize;
                    self.machine.set(held.allocation.handle, vec![0; size]);
                }
                other => panic!("result {other}"),
            }
        }
    }

    fn verify(&self, index: usize, step: u64) {
        let held = &self.held[index];
        held.note("verified".to_owned());
        let found = self.fixture.read(&held.allocation, &held.mapping);
        let expected = self.machine.content(held.allocation.handle);
        if found != expected {
            let again = self.fixture.read(&held.allocation, &held.mapping);
            let differs = |index: &usize| found[*index] != expected[*index];
            let first = (0..found.len()).find(differs).unwrap_or(0);
            let last = (0..found.len()).rfind(differs).unwrap_or(0);
            let sample = first..(first + 16).min(found.len());
            panic!(
                "step {step}: allocation {} differs from {first:#x} to {last:#x} in {} bytes, a \
                 second look {}; {:02x?}, expected {:02x?}; {:?}; {:#?}",
                held.allocation.object_id,
                (0..found.len()).filter(differs).count(),
                if again == expected {
                    "is right"
                } else {
                    "is wrong too"
                },
                &found[sample.clone()],
                &expected[sample],
                debugfs::find_placement(held.allocation.object_id)
                    .map(|placement| placement.record.text),
                held.history.borrow()
            );
        }
    }
}

fn run(shape: &Shape, steps: u64) {
    let mut random = Random::new(crate::effort::seed());
    let mut actors: Vec<Actor> = (0..shape.clients).map(|_| Actor::new()).collect();
    for step in crate::effort::Rounds::new(steps) {
        if random.once_in(200) {
            // A client goes with all it has, and another one comes.
            let index = random.index(actors.len());
            actors[index] = Actor::new();
        }
        let index = random.index(actors.len());
        let actor = &mut actors[index];
        if actor.held.len() < 2 {
            actor.create(&mut random, shape.largest);
            continue;
        }
        match random.below(20) {
            0..=1 if actor.held.len() < shape.allocations => {
                actor.create(&mut random, shape.largest);
            }
            2 if actor.held.len() > 2 => actor.close(&mut random),
            3..=6 => actor.write(&mut random),
            7..=9 => actor.change_residency(&mut random),
            10..=11 if shape.moves => actor.inject(&mut random),
            13 if shape.offers => actor.offer(&mut random),
            12 => actor.verify(random.index(actor.held.len()), step),
            _ => actor.draw(&mut random),
        }
    }
    for actor in &actors {
        actor
            .fixture
            .client
            .wait(actor.context.progress, actor.last);
        for index in 0..actor.held.len() {
            actor.verify(index, u64::MAX);
        }
    }
}

/// Random work that fits.
pub fn work_that_fits_matches_the_model() {
    let shape = Shape {
        clients: 2,
        allocations: 6,
        largest: 64 * KIB,
        moves: false,
        offers: false,
    };
    run(&shape, 1500);
}

/// Random work that does not.
pub fn work_under_pressure_matches_the_model() {
    // Little more than a megabyte of the visible segment is left.
    debugfs::inject(&format!(
        "reserve 1 {}",
        debugfs::segment(1).free - 1200 * KIB
    ));
    let shape = Shape {
        clients: 3,
        allocations: 8,
        largest: 256 * KIB,
        moves: false,
        offers: false,
    };
    run(&shape, 1500);
}

/// Random work while memory moves.
pub fn work_with_forced_moves_matches_the_model() {
    let shape = Shape {
        clients: 2,
        allocations: 8,
        largest: 128 * KIB,
        moves: true,
        offers: false,
    };
    run(&shape, 1000);
}

/// Random work while content is offered, pushed out and taken back.
pub fn work_with_offers_matches_the_model() {
    debugfs::inject(&format!(
        "reserve 1 {}",
        debugfs::segment(1).free - 1200 * KIB
    ));
    let shape = Shape {
        clients: 3,
        allocations: 8,
        largest: 256 * KIB,
        moves: false,
        offers: true,
    };
    run(&shape, 1500);
}
