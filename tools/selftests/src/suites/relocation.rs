// SPDX-License-Identifier: GPL-2.0

//! Memory that moves while it is used: by mappings, by queued work, under a lock.

use std::sync::atomic::{
    AtomicBool,
    AtomicU64,
    Ordering, //
};

use crate::{
    abi,
    client::Allocation,
    clock,
    commands::Commands,
    debugfs,
    effort::{
        self,
        Rounds, //
    },
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        MIB,
        PAGING_NODE,
        PHYSICAL_NODE,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    memory::{
        touch,
        Mapping,
        PAGE, //
    },
    mover::{
        try_step,
        Mover,
        ASIDE, //
    },
    random::Random,
    suite::{
        Suite,
        TABLES_OUTSIDE, //
    },
    trace::Recording,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "relocation",
    parameters: Some(TABLES_OUTSIDE),
    cases: crate::cases! {
        "[SEG-32]" mapped_memory_keeps_its_content_on_every_way,
        "[SEG-32]" locked_memory_keeps_its_content_on_every_way,
        "[SEG-32]" mapped_memory_goes_aside_for_a_run,
        "[SEG-32]" writers_lose_nothing_while_memory_moves,
        "[SEG-32]" touch_of_memory_on_its_way_waits,
        "" queued_work_finds_its_memory_on_every_way,
        "[F9]" work_never_sees_memory_that_is_still_on_its_way,
        "" cpu_and_gpu_add_to_one_word_while_it_moves,
        "" old_place_is_not_written_through_old_mappings,
        "" mappings_come_and_go_while_memory_moves,
        "" first_touches_meet_the_end_of_the_storage,
        "" touch_without_memory_finds_what_there_is,
    },
};

/// The suite on a segment for large allocations.
pub const LARGE_SUITE: Suite = Suite {
    name: "relocation_large",
    parameters: Some(
        "profile=DISC segments=memory:96M:visible:contiguous=8M,\
         memory:4M:page=64K:window=16:contiguous=1M,aperture:16M",
    ),
    cases: crate::cases! {
        "" large_allocation_moves_in_a_handful_of_operations,
    },
};

/// Every place.
const EVERYWHERE: u32 = VISIBLE_SEGMENT | HIDDEN_SEGMENT | SYSTEM;

/// Where an allocation is before it moves; the mapping goes to the pages directly, through the window,
/// or to the backing pages.
const STARTS: [&str; 3] = ["move {} 1 0x200000", "move {} 2 0x200000", "move {} 3"];

/// How an allocation moves. What lies where it goes is no move.
const WAYS: [(&str, &[&str]); 8] = [
    ("aside for a run", &[ASIDE]),
    ("inside the segment", &["move {}"]),
    ("to the visible segment", &["move {} 1 0x400000"]),
    ("to the hidden segment", &["move {} 2 0x300000"]),
    ("to system memory", &["move {} 3"]),
    ("out", &["evict {}"]),
    ("out and back", &["evict {}", "move {} 1"]),
    (
        "round",
        &[
            "move {} 2",
            "move {} 1",
            "move {} 3",
            "move {} 2",
            "evict {}",
        ],
    ),
];

/// Lets an allocation move.
fn go(allocation: &Allocation, way: &[&str]) {
    for step in way {
        try_step(allocation, step).unwrap_or_else(|errno| panic!("{step}: errno {errno}"));
    }
}

/// Calls `check` for every start and every way, with words that say which.
fn on_every_way(mut check: impl FnMut(&str, &[&str], &str)) {
    for start in STARTS {
        for (name, way) in WAYS {
            check(start, way, &format!("from {start} {name}"));
        }
    }
}

/// An allocation that may be everywhere, as large as two pages of the hidden segment, with a mapping.
fn traveller(fixture: &Fixture) -> (Allocation, Mapping) {
    let allocation = fixture.create(physical(128 * KIB, EVERYWHERE));
    let mapping = fixture.client.map(&allocation);
    (allocation, mapping)
}

/// What the GPU sees of an allocation.
struct Witness<'a> {
    fixture: &'a Fixture,
    context: crate::client::Context,
    copy: Allocation,
    mapping: Mapping,
}

impl<'a> Witness<'a> {
    fn new(fixture: &'a Fixture, size: u64) -> Self {
        let copy = fixture.create(physical(size, VISIBLE_SEGMENT));
        Self {
            fixture,
            context: fixture.context(),
            copy,
            mapping: fixture.client.map(&copy),
        }
    }

    /// Copies an allocation to where it can be read.
    fn commands(&self, allocation: &Allocation) -> Commands {
        let mut commands = Commands::new();
        commands.copy_bytes(self.copy.at(0), allocation.at(0), allocation.size as u32);
        commands
    }

    fn sees(&self, allocation: &Allocation) -> Vec<u8> {
        self.fixture.run(&self.context, &self.commands(allocation));
        self.mapping.read(0, allocation.size as usize)
    }
}

fn mapped_memory_keeps_its_content_on_every_way() {
    let fixture = Fixture::new();
    let (allocation, mapping) = traveller(&fixture);
    let witness = Witness::new(&fixture, allocation.size);
    let address = mapping.address();
    let mut seed = 0;
    on_every_way(|start, way, what| {
        go(&allocation, &[start]);
        seed += 1;
        let mut data = pattern(seed, allocation.size);
        mapping.write(0, &data);
        go(&allocation, way);
        assert!(mapping.read(0, data.len()) == data, "{what}: after it");
        data[70000..70008].copy_from_slice(&seed.to_le_bytes());
        mapping.write(70000, &seed.to_le_bytes());
        assert!(witness.sees(&allocation) == data, "{what}: seen by the GPU");
        assert_eq!(mapping.address(), address);
    });
}

fn locked_memory_keeps_its_content_on_every_way() {
    let fixture = Fixture::new();
    let (allocation, mapping) = traveller(&fixture);
    let witness = Witness::new(&fixture, allocation.size);
    let mut seed = 100;
    on_every_way(|start, way, what| {
        go(&allocation, &[start]);
        seed += 1;
        let data = pattern(seed, allocation.size);
        fixture
            .client
            .lock(allocation.handle, abi::LOCK_READ | abi::LOCK_WRITE);
        let (half, rest) = data.split_at(65536);
        mapping.write(0, half);
        go(&allocation, way);
        mapping.write(65536, rest);
        assert!(
            mapping.read(0, data.len()) == data,
            "{what}: under the lock"
        );
        fixture.client.unlock(allocation.handle);
        assert!(witness.sees(&allocation) == data, "{what}: seen by the GPU");
    });
}

fn mapped_memory_goes_aside_for_a_run() {
    let fixture = Fixture::new();
    let (allocation, mapping) = traveller(&fixture);
    let data = pattern(77, allocation.size);
    for (start, segment) in [(STARTS[0], 1), (STARTS[1], 2)] {
        go(&allocation, &[start]);
        mapping.write(0, &data);
        let recording = Recording::start();
        go(&allocation, &[ASIDE]);
        let events = recording.stop();
        let moves: Vec<_> = events
            .named("residency")
            .filter(|event| event.number("alloc") == allocation.object_id)
            .map(|event| (event.number("from_seg"), event.word("cause").to_owned()))
            .collect();
        assert_eq!(moves, [(segment, "move".to_owned())], "{start}");
        assert!(mapping.read(0, data.len()) == data, "{start}");
    }
}

fn queued_work_finds_its_memory_on_every_way() {
    let fixture = Fixture::new();
    let (allocation, mapping) = traveller(&fixture);
    let witness = Witness::new(&fixture, allocation.size);
    let mut seed = 200;
    on_every_way(|start, way, what| {
        go(&allocation, &[start]);
        seed += 1;
        let data = pattern(seed, allocation.size);
        mapping.write(0, &data);
        debugfs::inject(&format!("pause {PHYSICAL_NODE}"));
        let commands = witness.commands(&allocation);
        let id = commands.submit(&fixture.client, &witness.context);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for step in way {
                    // What queued work needs is not pushed out; it is moved when the work has ended.
                    let result = try_step(&allocation, step);
                    assert!(matches!(result, Ok(()) | Err(libc::EBUSY)), "{result:?}");
                }
                done.store(true, Ordering::Release);
            });
            assert!(
                mapping.read(0, data.len()) == data,
                "{what}: before it runs"
            );
            debugfs::inject(&format!("resume {PHYSICAL_NODE}"));
            fixture.client.wait(witness.context.progress, id);
            assert!(
                witness.mapping.read(0, data.len()) == data,
                "{what}: seen by the GPU"
            );
        });
        assert!(done.load(Ordering::Acquire));
        assert!(mapping.read(0, data.len()) == data, "{what}: in the end");
    });
}

/// Runs `work` in threads while `allocation` moves so many times; `work` is told when to stop.
fn while_it_moves<T: Send>(
    allocation: &Allocation,
    moves: u64,
    threads: usize,
    work: impl Fn(usize, &AtomicBool) -> T + Sync,
) -> Vec<T> {
    let stop = AtomicBool::new(false);
    let mut mover = Mover::new(effort::seed());
    std::thread::scope(|scope| {
        let (work, stop) = (&work, &stop);
        let workers: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || work(number, stop)))
            .collect();
        for _ in Rounds::new(moves) {
            let limit = 100;
            let moved = (0..limit).any(|_| mover.step(allocation));
            assert!(moved, "it stays where it is");
        }
        stop.store(true, Ordering::Release);
        let join = |worker: std::thread::ScopedJoinHandle<'_, T>| worker.join().expect("a worker");
        workers.into_iter().map(join).collect()
    })
}

/// Threads count in memory that goes everywhere.
pub fn writers_lose_nothing_while_memory_moves() {
    // A thousand for both; the debug kernel takes ten times as long for each.
    let moves = if clock::is_debug_kernel() { 50 } else { 500 };
    let fixture = Fixture::new();
    for info in [
        plain(256 * KIB, EVERYWHERE),
        physical(128 * KIB, EVERYWHERE),
    ] {
        let allocation = fixture.create_resident(info);
        let mapping = fixture.client.map(&allocation);
        let pages = allocation.size as usize / PAGE;
        let counts = while_it_moves(&allocation, moves, 3, |number, stop| {
            let mut count = 0_u32;
            while !stop.load(Ordering::Acquire) {
                let page = count as usize % pages * PAGE;
                mapping
                    .word(page + number * 64)
                    .fetch_add(1, Ordering::AcqRel);
                count += 1;
            }
            count
        });
        for (number, count) in counts.into_iter().enumerate() {
            let word = |page: usize| mapping.read32(page * PAGE + number * 64);
            let sum = (0..pages).map(word).fold(0, u32::wrapping_add);
            assert_eq!(sum, count, "writer {number}");
        }
        fixture.client.close(&[allocation.handle]);
    }
}

fn touch_of_memory_on_its_way_waits() {
    let fixture = Fixture::new();
    for mask in [VISIBLE_SEGMENT, HIDDEN_SEGMENT] {
        let allocation = fixture.create_resident(plain(64 * KIB, mask));
        let mapping = fixture.client.map(&allocation);
        mapping.write32(0, 41);
        debugfs::inject(&format!("pause {PAGING_NODE}"));
        fixture.push_out(&allocation);
        let recording = Recording::start();
        let read = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let value = mapping.word(0).fetch_add(1, Ordering::AcqRel);
                read.store(value.into(), Ordering::Release);
            });
            let early = clock::holds_within(std::time::Duration::from_millis(50), || {
                read.load(Ordering::Acquire) != 0
            });
            assert!(!early, "the touch did not wait");
            debugfs::inject(&format!("resume {PAGING_NODE}"));
        });
        assert_eq!(read.load(Ordering::Acquire), 41);
        assert_eq!(mapping.read32(0), 42);
        recording
            .stop()
            .assert_order(&["node_end kind=paging".to_owned()]);
    }
}

/// The GPU copies memory, with new content each time, that has just been pushed out or moved.
pub fn work_never_sees_memory_that_is_still_on_its_way() {
    let fixture = Fixture::new();
    let (allocation, mapping) = traveller(&fixture);
    let witness = Witness::new(&fixture, allocation.size);
    let mut mover = Mover::new(effort::seed());
    for round in Rounds::new(60) {
        let data = pattern(round, allocation.size);
        mapping.write(0, &data);
        mover.step(&allocation);
        assert!(witness.sees(&allocation) == data, "round {round}");
        mover.step(&allocation);
    }
}

/// CPU and GPU add to the same word: the sum is that of one memory.
pub fn cpu_and_gpu_add_to_one_word_while_it_moves() {
    let fixture = Fixture::new();
    let (allocation, mapping) = traveller(&fixture);
    let contexts = [fixture.context(), fixture.context()];
    let far = allocation.size as usize - 8;
    let counts = while_it_moves(&allocation, 60, 2, |number, stop| {
        let mut count = 0_u64;
        while !stop.load(Ordering::Acquire) {
            if number == 0 {
                mapping.long(0).fetch_add(1, Ordering::AcqRel);
                mapping.long(far).fetch_add(1, Ordering::AcqRel);
            } else {
                let mut commands = Commands::new();
                commands
                    .add(allocation.at(0), 1)
                    .add(allocation.at(far as u64), 1);
                fixture.run(&contexts[count as usize % 2], &commands);
            }
            count += 1;
        }
        count
    });
    let sum: u64 = counts.iter().sum();
    assert!(counts.iter().all(|count| *count > 0));
    assert_eq!((mapping.read64(0), mapping.read64(far)), (sum, sum));
}

/// Somebody else gets the place that an allocation has left while it is written through mappings.
pub fn old_place_is_not_written_through_old_mappings() {
    let fixture = Fixture::new();
    for id in [1, 2] {
        let size = 128 * KIB;
        let allocation = fixture.create_resident(physical(size, EVERYWHERE));
        let other = fixture.create(physical(size, EVERYWHERE));
        let (mapping, seen) = (fixture.client.map(&allocation), fixture.client.map(&other));
        let theirs = pattern(id, size);
        seen.write(0, &theirs);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut count = 0;
                while !stop.load(Ordering::Acquire) {
                    count += 1;
                    for page in 0..size as usize / PAGE {
                        mapping.write32(page * PAGE, count);
                        let found = mapping.read32(page * PAGE);
                        assert_eq!(found, count, "in round {count}");
                    }
                }
            });
            for round in Rounds::new(12) {
                go(&allocation, &["move {} 3"]);
                let place = format!("move {{}} {id} {:#x}", (round % 3 + 1) * MIB);
                go(&allocation, &[&place]);
                std::thread::yield_now();
                go(&allocation, &["move {} 3"]);
                go(&other, &[&place]);
                assert!(seen.read(0, theirs.len()) == theirs, "round {round}");
                go(&other, &["evict {}"]);
                assert!(seen.read(0, theirs.len()) == theirs, "round {round}");
            }
            stop.store(true, Ordering::Release);
        });
        fixture.client.close(&[allocation.handle, other.handle]);
    }
}

/// Mappings are made, touched and removed in whole and in part while their memory moves.
pub fn mappings_come_and_go_while_memory_moves() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(256 * KIB, EVERYWHERE));
    let first = fixture.client.map(&allocation);
    let pages = allocation.size as usize / PAGE;
    let counts = while_it_moves(&allocation, 60, 3, |number, stop| {
        let mut random = Random::new(number as u64 + 1);
        let mut count = 0_u32;
        while !stop.load(Ordering::Acquire) {
            let mapping = fixture.client.map(&allocation);
            let hole = random.index(pages);
            mapping.unmap_part(hole * PAGE, PAGE);
            for _ in 0..8 {
                let page = random.index(pages);
                if page != hole {
                    mapping
                        .word(page * PAGE + number * 64)
                        .fetch_add(1, Ordering::AcqRel);
                    count += 1;
                }
            }
        }
        count
    });
    for (number, count) in counts.into_iter().enumerate() {
        let word = |page: usize| first.read32(page * PAGE + number * 64);
        assert_eq!((0..pages).map(word).sum::<u32>(), count, "thread {number}");
    }
}

/// Allocations are closed and pushed out while their pages are touched for the first time; whoever
/// gets the memory next writes something else.
pub fn first_touches_meet_the_end_of_the_storage() {
    const OURS: u32 = 0x0a0a_0a0a;
    const THEIRS: u32 = 0xb1b1_b1b1;
    let fixture = Fixture::new();
    let mut random = Random::new(effort::seed());
    for round in Rounds::new(16) {
        let mask = *random.pick(&[VISIBLE_SEGMENT, HIDDEN_SEGMENT, EVERYWHERE]);
        let allocation = fixture.create(plain(256 * KIB, mask));
        let mapping = fixture.client.map(&allocation);
        for page in 0..64 {
            mapping.write32(page * PAGE, OURS);
        }
        fixture.bring_in(&allocation);
        let again = fixture.client.map(&allocation);
        drop(mapping);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                for page in 0..64 {
                    assert_eq!(
                        again.read32(page * PAGE),
                        OURS,
                        "round {round}, page {page}"
                    );
                }
            });
            let _ = debugfs::try_inject(&format!("evict {}", allocation.object_id));
            fixture.client.close(&[allocation.handle]);
            for _ in 0..3 {
                let other = fixture.create_resident(plain(256 * KIB, mask));
                let theirs = fixture.client.map(&other);
                for page in 0..64 {
                    assert_eq!(theirs.read32(page * PAGE), 0, "new memory is zero");
                    theirs.write32(page * PAGE, THEIRS);
                }
                for page in 0..64 {
                    assert_eq!(theirs.read32(page * PAGE), THEIRS);
                }
                fixture.client.close(&[other.handle]);
            }
            reader.join().expect("the reader");
        });
    }
}

fn touch_without_memory_finds_what_there_is() {
    let fixture = Fixture::new();
    let create = |mask| {
        let allocation = fixture.create(plain(64 * KIB, mask));
        (allocation, fixture.client.map(&allocation))
    };
    let (untouched, never) = create(SYSTEM);
    let known: Vec<_> = [VISIBLE_SEGMENT, HIDDEN_SEGMENT, HIDDEN_SEGMENT]
        .into_iter()
        .map(create)
        .collect();
    for (number, (allocation, mapping)) in known.iter().enumerate() {
        mapping.write32(PAGE, number as u32 + 1);
        fixture.bring_in(allocation);
    }
    fixture.push_out(&known[0].0);
    debugfs::inject("reserve 0 1");
    debugfs::inject(&format!("evict {}", known[1].0.object_id));
    for (number, (_, mapping)) in known.iter().enumerate() {
        assert_eq!(touch(mapping, PAGE, false), Ok(number as u32 + 1));
    }
    assert_eq!(touch(&never, 0, false), Err(libc::SIGBUS));
    debugfs::inject("reserve 0 0");
    assert_eq!(touch(&never, 0, true), Ok(0));
    fixture.client.close(&[untouched.handle]);
}

fn large_allocation_moves_in_a_handful_of_operations() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(64 * MIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    for page in 0..allocation.size as usize / PAGE {
        mapping.write32(page * PAGE, page as u32);
    }
    let id = allocation.object_id;
    let recording = Recording::start();
    fixture.bring_in(&allocation);
    // What is unchanged would leave without a transfer.
    mapping.write32(0, 0);
    let placement = debugfs::placement(id);
    debugfs::inject(&format!("evict {id}"));
    let events = recording.stop();
    let transfers = events.operations("Transfer", id).count();
    assert_eq!(events.bytes("Transfer", id), 2 * allocation.size);
    assert!(transfers <= 8, "{transfers} transfers");
    let submits = events.named("paging_submit").count();
    assert!(submits <= 8, "{submits} paging buffers");
    // Loose parts of a segment come in large blocks.
    assert_eq!(placement.runs.len(), 1);
    let frames = placement.frames.len();
    assert!(frames <= 32, "{frames} stretches of page frames");
    for page in 0..allocation.size as usize / PAGE {
        assert_eq!(mapping.read32(page * PAGE), page as u32);
    }
}
