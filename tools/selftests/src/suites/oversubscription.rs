// SPDX-License-Identifier: GPL-2.0

//! Eight processes that together need four times what there is, and are killed in the middle of it.
//!
//! Every allocation holds one word over and over, and every process knows which. It looks at all
//! bytes, through mappings and by the engine's checksum, before anything else may change them.

use std::time::Duration;

use crate::{
    abi::{
        self,
        InfoAdapter,
        Offer,
        PriorityItem,
        Reclaim,
        ReclaimItem,
        ReserveBudget,
        SetPriority, //
    },
    call::array,
    client::{
        Allocation,
        Answer,
        Client,
        Context, //
    },
    clock,
    commands::Commands,
    debugfs,
    effort::Rounds,
    fixture::{
        physical,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    memory::Mapping,
    process::Child,
    random::Random,
    reference::crc32c,
};

/// Segments of DISC, a quarter as large.
pub const PARAMETERS: &str =
    "profile=DISC segments=memory:4M:visible:contiguous=4M:scanout:budget,\
     memory:4M:page=64K:window=16:contiguous=4M:budget,aperture:4M:scanout";

/// Processes at a time; each needs half of what the memory segments have.
const PROCESSES: usize = 8;
/// Sizes of the allocations of a process.
const SIZES: [u64; 8] = [1024, 1024, 512, 512, 512, 256, 192, 64];

/// An allocation whose content is known.
struct Held {
    allocation: Allocation,
    mapping: Mapping,
    value: u32,
    references: u32,
    offered: bool,
}

/// A process at work.
struct Worker {
    fixture: Fixture,
    context: Context,
    held: Vec<Held>,
    sum: Allocation,
    sum_mapping: Mapping,
    features: u64,
    random: Random,
}

impl Worker {
    fn new(seed: u64) -> Self {
        let fixture = Fixture::new();
        let context = fixture.context();
        let mut random = Random::new(seed);
        let masks = [
            VISIBLE_SEGMENT,
            HIDDEN_SEGMENT,
            VISIBLE_SEGMENT | HIDDEN_SEGMENT,
            VISIBLE_SEGMENT | SYSTEM,
        ];
        let held = SIZES.map(|size| {
            let allocation = fixture.create(physical(size * KIB, *random.pick(&masks)));
            Held {
                allocation,
                mapping: fixture.client.map(&allocation),
                value: 0,
                references: 0,
                offered: false,
            }
        });
        let sum = fixture.create(physical(4 * KIB, SYSTEM));
        let sum_mapping = fixture.client.map(&sum);
        let adapter: InfoAdapter = fixture.client.query(abi::QUERY_ADAPTER, 0);
        Self {
            context,
            held: held.into(),
            sum,
            sum_mapping,
            features: adapter.features,
            random,
            fixture,
        }
    }

    fn client(&self) -> &Client {
        &self.fixture.client
    }

    /// Does one thing to one allocation.
    fn step(&mut self) {
        let index = self.random.index(self.held.len());
        if self.held[index].offered {
            return self.reclaim(index);
        }
        match self.random.below(16) {
            0..=3 => self.fill_by_engine(index),
            4..=5 => self.fill_by_cpu(index),
            6..=7 => self.copy(index),
            8..=9 => self.make_resident(index),
            10 => self.evict(index),
            11 if self.features & abi::FEATURE_OFFER != 0 => self.offer(index),
            12 if self.features & abi::FEATURE_OFFER != 0 => self.prioritise(index),
            13 if self.features & abi::FEATURE_BUDGET_EVENTS != 0 => self.reserve(),
            14 => self.check_by_engine(index),
            _ => self.check_by_cpu(index),
        }
    }

    fn run(&self, commands: &Commands) {
        let id = commands.submit(self.client(), &self.context);
        self.client().wait(self.context.progress, id);
    }

    fn fill_by_engine(&mut self, index: usize) {
        let held = &self.held[index];
        let value = self.random.next() as u32;
        let mut commands = Commands::new();
        commands.fill_bytes(held.allocation.at(0), held.allocation.size as u32, value);
        self.run(&commands);
        self.held[index].value = value;
    }

    fn fill_by_cpu(&mut self, index: usize) {
        let value = self.random.next() as u32;
        let held = &mut self.held[index];
        let words = held.allocation.size as usize / 4;
        self.fixture
            .client
            .lock(held.allocation.handle, abi::LOCK_WRITE);
        held.mapping.write(0, &value.to_le_bytes().repeat(words));
        self.fixture.client.unlock(held.allocation.handle);
        held.value = value;
    }

    /// Copies to an allocation from one that is no smaller.
    fn copy(&mut self, index: usize) {
        let from = self.random.index(self.held.len());
        let size = self.held[index].allocation.size;
        let source = &self.held[from];
        if from == index || source.offered || source.allocation.size < size {
            return;
        }
        let value = source.value;
        let mut commands = Commands::new();
        let target = self.held[index].allocation.at(0);
        commands.copy_bytes(target, source.allocation.at(0), size as u32);
        self.run(&commands);
        self.held[index].value = value;
    }

    fn make_resident(&mut self, index: usize) {
        let handles = [self.held[index].allocation.handle];
        let Fixture { client, queue, .. } = &self.fixture;
        match client.try_make_resident(queue.handle, &handles) {
            Ok(answer) => {
                if let Answer::Pending(value) = answer {
                    client.wait(queue.fence, value);
                }
                self.held[index].references += 1;
            }
            Err((errno, _)) => assert_eq!(errno, libc::ENOSPC),
        }
    }

    fn evict(&mut self, index: usize) {
        let held = &mut self.held[index];
        if held.references > 0 {
            held.references -= 1;
            let flags = *self.random.pick(&[0, abi::EVICT_ONLY_IF_NEEDED]);
            let Fixture { client, device, .. } = &self.fixture;
            client
                .try_evict(*device, &[held.allocation.handle], flags)
                .expect("EVICT");
        }
    }

    fn offer(&mut self, index: usize) {
        let handles = [self.held[index].allocation.handle];
        let mut argument = Offer {
            device: self.fixture.device,
            level: 1 + self.random.below(3) as u32,
            handles: array(&handles),
            ..Default::default()
        };
        self.client()
            .call(abi::IOCTL_OFFER, &mut argument)
            .expect("OFFER");
        self.held[index].offered = true;
    }

    fn reclaim(&mut self, index: usize) {
        let mut items = [ReclaimItem {
            alloc: self.held[index].allocation.handle,
            ..Default::default()
        }];
        let mut argument = Reclaim {
            queue: self.fixture.queue.handle,
            items: array(&items),
            ..Default::default()
        };
        argument.items.ptr = items.as_mut_ptr() as u64;
        self.client()
            .call(abi::IOCTL_RECLAIM, &mut argument)
            .expect("RECLAIM");
        if argument.status == abi::STATUS_PENDING {
            self.client()
                .wait(self.fixture.queue.fence, argument.fence_value);
        }
        let held = &mut self.held[index];
        held.offered = false;
        if items[0].result == abi::RECLAIM_RESULT_DISCARDED {
            held.value = 0;
        }
        self.check_by_cpu(index);
    }

    fn prioritise(&mut self, index: usize) {
        let items = [PriorityItem {
            alloc: self.held[index].allocation.handle,
            priority: 1 + self.random.below(5) as u32,
        }];
        let mut argument = SetPriority {
            items: array(&items),
            ..Default::default()
        };
        self.client()
            .call(abi::IOCTL_SET_PRIORITY, &mut argument)
            .expect("SET_PRIORITY");
    }

    fn reserve(&mut self) {
        let mut argument = ReserveBudget {
            bytes: self.random.below(3) * 256 * KIB,
            ..Default::default()
        };
        let result = self.client().call(abi::IOCTL_RESERVE_BUDGET, &mut argument);
        assert!(matches!(result, Ok(()) | Err(libc::ENOSPC)), "{result:?}");
    }

    fn check_by_cpu(&self, index: usize) {
        let held = &self.held[index];
        let found = self.fixture.read(&held.allocation, &held.mapping);
        let word = held.value.to_le_bytes();
        let wrong = found.chunks_exact(4).position(|found| found != word);
        if let Some(place) = wrong {
            panic!(
                "allocation {} at {:#x}: {:02x?} instead of {word:02x?}; {:?}",
                held.allocation.object_id,
                place * 4,
                &found[place * 4..][..4],
                debugfs::find_placement(held.allocation.object_id).map(|place| place.record.text),
            );
        }
    }

    fn check_by_engine(&self, index: usize) {
        let held = &self.held[index];
        let size = held.allocation.size;
        let mut commands = Commands::new();
        commands.checksum(self.sum.at(0), held.allocation.at(0), size as u32);
        self.run(&commands);
        let content = held.value.to_le_bytes().repeat(size as usize / 4);
        let (found, expected) = (self.sum_mapping.read32(0), crc32c(&content));
        assert_eq!(found, expected, "allocation {}", held.allocation.object_id);
    }

    /// Looks at everything, from both sides.
    fn check_all(&mut self) {
        for index in 0..self.held.len() {
            if self.held[index].offered {
                self.reclaim(index);
            }
            self.check_by_engine(index);
            self.check_by_cpu(index);
        }
        let state = self.client().device_state(self.fixture.device);
        assert_eq!(state.state, abi::DEVICE_STATE_ACTIVE);
    }
}

/// Eight processes under pressure; one after the other is killed, and another one comes.
pub fn eight_processes_need_four_times_what_there_is() {
    let shared = Mapping::shared(1);
    let (stop, steps) = (shared.word(0), shared.word(64));
    let mut random = Random::new(crate::effort::seed());
    let start = |seed: u64| {
        Child::start(move |_| {
            let mut worker = Worker::new(seed);
            while stop.load(std::sync::atomic::Ordering::Acquire) == 0 {
                worker.step();
                steps.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
            }
            worker.check_all();
        })
    };
    let mut children: Vec<Child> = (0..PROCESSES).map(|_| start(random.next())).collect();
    for _ in Rounds::new(24) {
        std::thread::sleep(Duration::from_millis(50 + random.below(300)));
        for child in &mut children {
            child.assert_runs();
        }
        let index = random.index(children.len());
        children.swap_remove(index).kill();
        children.push(start(random.next()));
    }
    stop.store(1, std::sync::atomic::Ordering::Release);
    for child in children {
        child.join();
    }
    let steps = steps.load(std::sync::atomic::Ordering::Acquire);
    crate::ktap::comment(&format!("{steps} steps"));
    assert!(steps > 200, "{steps} steps of all processes together");
    clock::wait_until("all memory is free", || debugfs::placements().is_empty());
}
