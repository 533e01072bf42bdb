// SPDX-License-Identifier: GPL-2.0

//! More memory than the window of the CPU shows at once: its pages go round.

use std::{
    collections::BTreeSet,
    sync::atomic::{
        AtomicBool,
        Ordering, //
    },
};

use super::host_aperture::{
    hidden,
    shown,
    STEP,
    WINDOW_PAGE,
    WINDOW_PAGES, //
};
use crate::{
    abi,
    client::Allocation,
    debugfs,
    effort::Rounds,
    fixture::{
        pattern,
        plain,
        Fixture,
        HIDDEN_SEGMENT,
        SYSTEM, //
    },
    memory::{
        self,
        Mapping,
        PAGE, //
    },
    random::Random,
    suite::Suite,
    trace::Recording,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "host_aperture_shortage",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[SEG-29]" shortage_of_pages_moves_nothing_and_fails_no_lock,
        "[SEG-29]" page_used_last_stays,
        "[SEG-29]" pages_come_and_go_under_everybody,
    },
};

/// The suite on the smallest window that is allowed.
pub const SMALL_SUITE: Suite = Suite {
    name: "host_aperture_small",
    parameters: Some(
        "profile=DISC segments=memory:16M:visible:contiguous=8M,memory:4M:page=64K:window=4,\
         aperture:16M",
    ),
    cases: crate::cases! {
        "[SEG-29]" more_threads_than_pages_come_to_an_end,
        "[SEG-29]" instruction_that_needs_all_pages_runs,
        "" calls_with_many_threads_come_to_an_end,
    },
};

/// Lets `threads` threads count in the words of allocations in an order of their own.
fn count_in_all(mappings: &[Mapping], threads: usize, rounds: u64) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut random = Random::new(thread as u64 + 1);
                for _ in 0..rounds {
                    for _ in mappings {
                        let mapping = random.pick(mappings);
                        let page = random.index(16) * PAGE;
                        mapping
                            .word(page + 64 * thread)
                            .fetch_add(1, Ordering::AcqRel);
                    }
                }
            });
        }
    });
}

/// Sum of all words in which a thread has counted.
fn counted(mappings: &[Mapping], thread: usize) -> u64 {
    let word = |mapping: &Mapping, page: usize| mapping.read32(page * PAGE + 64 * thread);
    let all = mappings
        .iter()
        .flat_map(|mapping| (0..16).map(move |page| u64::from(word(mapping, page))));
    all.sum()
}

fn shortage_of_pages_moves_nothing_and_fails_no_lock() {
    let fixture = Fixture::new();
    let (allocations, mappings): (Vec<Allocation>, Vec<Mapping>) = (0..WINDOW_PAGES + 1)
        .map(|_| hidden(&fixture, WINDOW_PAGE))
        .unzip();
    let places: Vec<_> = allocations
        .iter()
        .map(|allocation| debugfs::placement(allocation.object_id).runs)
        .collect();
    let recycled = debugfs::stat("window_recycled");
    let recording = Recording::start();
    for (number, (allocation, mapping)) in allocations.iter().zip(&mappings).enumerate() {
        fixture
            .client
            .lock(allocation.handle, abi::LOCK_READ | abi::LOCK_WRITE);
        mapping.write32(PAGE - 4, number as u32);
    }
    assert!(debugfs::stat("window_recycled") > recycled);
    recording.stop().assert_none("residency", &[]);
    let (rounds, done) = (40, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                assert!(shown() <= WINDOW_PAGES * WINDOW_PAGE);
                std::thread::yield_now();
            }
        });
        count_in_all(&mappings, 4, rounds);
        done.store(true, Ordering::Release);
    });
    let expected = rounds * (WINDOW_PAGES + 1);
    for thread in 0..4 {
        assert_eq!(counted(&mappings, thread), expected, "thread {thread}");
    }
    for (number, mapping) in mappings.iter().enumerate() {
        assert_eq!(mapping.read32(PAGE - 4), number as u32);
    }
    for (allocation, place) in allocations.iter().zip(places) {
        assert_eq!(debugfs::placement(allocation.object_id).runs, place);
        fixture.client.unlock(allocation.handle);
    }
}

fn page_used_last_stays() {
    let fixture = Fixture::new();
    let all: Vec<(Allocation, Mapping)> = (0..WINDOW_PAGES + 1)
        .map(|_| hidden(&fixture, WINDOW_PAGE))
        .collect();
    for (_, mapping) in &all[..16] {
        mapping.write32(0, 1);
    }
    // A second mapping of the first one asks for the same page once more.
    let again = fixture.client.map(&all[0].0);
    assert_eq!(again.read32(0), 1);
    all[16].1.write32(0, 1);
    let has_page = |index: usize| {
        let (allocation, _) = &all[index];
        !debugfs::placement(allocation.object_id).window.is_empty()
    };
    assert!(has_page(0) && has_page(16) && !has_page(1) && has_page(2));
}

/// Threads count in hidden memory while it is moved, mapped and unmapped, and pages are short.
pub fn pages_come_and_go_under_everybody() {
    let fixture = Fixture::new();
    let (allocations, mappings): (Vec<Allocation>, Vec<Mapping>) = (0..WINDOW_PAGES + 4)
        .map(|_| {
            let allocation = fixture.create_resident(plain(WINDOW_PAGE, HIDDEN_SEGMENT | SYSTEM));
            (allocation, fixture.client.map(&allocation))
        })
        .unzip();
    let mut passes = 0;
    for round in Rounds::new(3) {
        let (mappings, allocations) = (&mappings, &allocations);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mover = scope.spawn(|| {
                let mut random = Random::new(round);
                while !done.load(Ordering::Acquire) {
                    let allocation = random.pick(allocations);
                    let way = random.pick(&["move {}", "move {} 2", "evict {}", "move {} 3"]);
                    let way = way.replace("{}", &allocation.object_id.to_string());
                    let moved = debugfs::try_inject(&way);
                    assert!(matches!(moved, Ok(()) | Err(libc::ENOSPC)), "{moved:?}");
                    drop(fixture.client.map(allocation));
                }
            });
            count_in_all(mappings, 3, 20);
            passes += 20;
            done.store(true, Ordering::Release);
            mover.join().expect("the mover");
        });
        for thread in 0..3 {
            let expected = passes * (WINDOW_PAGES + 4);
            assert_eq!(counted(mappings, thread), expected, "thread {thread}");
        }
    }
}

fn more_threads_than_pages_come_to_an_end() {
    let fixture = Fixture::new();
    let pairs: Vec<[Mapping; 2]> = (0..8)
        .map(|number| {
            let (one, other) = (
                hidden(&fixture, WINDOW_PAGE).1,
                hidden(&fixture, WINDOW_PAGE).1,
            );
            one.write(0, &pattern(number, WINDOW_PAGE));
            [one, other]
        })
        .collect();
    let recycled = debugfs::stat("window_recycled");
    std::thread::scope(|scope| {
        for (number, [one, other]) in pairs.iter().enumerate() {
            scope.spawn(move || {
                let data = pattern(number as u64, WINDOW_PAGE);
                for round in 0..6 {
                    let (from, to) = match round % 2 {
                        0 => (one, other),
                        _ => (other, one),
                    };
                    memory::copy(from, to, STEP);
                    assert!(to.read(0, STEP) == data, "pair {number}");
                }
            });
        }
    });
    assert!(debugfs::stat("window_recycled") > recycled + 8);
    assert_eq!(shown(), 4 * WINDOW_PAGE);
}

fn instruction_that_needs_all_pages_runs() {
    let fixture = Fixture::new();
    let (one, other) = (
        hidden(&fixture, 2 * WINDOW_PAGE).1,
        hidden(&fixture, 2 * WINDOW_PAGE).1,
    );
    let crowd: Vec<_> = (0..4).map(|_| hidden(&fixture, WINDOW_PAGE).1).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for mapping in &crowd {
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Acquire) {
                    mapping.word(0).fetch_add(1, Ordering::AcqRel);
                }
            });
        }
        for round in 0..40_u64 {
            let value = round * 0x0101_0101_0101;
            one.write(STEP - 4, &value.to_le_bytes());
            memory::copy_word(&one, STEP - 4, &other, STEP - 4);
            assert_eq!(other.read(STEP - 4, 8), value.to_le_bytes());
        }
        done.store(true, Ordering::Release);
    });
}

fn calls_with_many_threads_come_to_an_end() {
    let fixture = Fixture::new();
    let mappings: Vec<_> = (0..8)
        .map(|_| hidden(&fixture, 2 * WINDOW_PAGE).1)
        .collect();
    let file = fixture.client.file();
    let devices: BTreeSet<u32> = std::thread::scope(|scope| {
        let threads: Vec<_> = mappings
            .iter()
            .map(|mapping| {
                scope.spawn(move || {
                    let mut made = Vec::new();
                    for _ in 0..8 {
                        let argument = [abi::DeviceCreate::default()];
                        let bytes = crate::call::bytes_of(&argument);
                        let offset = STEP - bytes.len() / 2;
                        mapping.write(offset, bytes);
                        let address = mapping.address() + offset as u64;
                        let call = abi::IOCTL_DEVICE_CREATE;
                        crate::call::issue_at(file, call, address).expect("DEVICE_CREATE");
                        made.push(mapping.read(offset, bytes.len()));
                    }
                    made
                })
            })
            .collect();
        let made = threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread"));
        made.flatten()
            .map(|bytes| {
                bytes
                    .chunks_exact(4)
                    .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                    .max()
                    .unwrap_or(0)
            })
            .collect()
    });
    assert_eq!(devices.len(), 64, "each call has written its answer");
}
