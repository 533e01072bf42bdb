// SPDX-License-Identifier: GPL-2.0

//! Random changes of an address space against a plain model: what the engine reads and writes at each
//! page is compared.

use crate::{
    abi::{
        self,
        VaMap, //
    },
    addresses::{
        address,
        Ground, //
    },
    client::Allocation,
    commands::Commands,
    debugfs,
    effort::{
        self,
        Rounds, //
    },
    fixture::{
        plain,
        HIDDEN_SEGMENT,
        KIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    random::Random,
    suite::{
        Case,
        Suite, //
    },
};

/// The suite with two levels.
pub const SUITE: Suite = Suite {
    name: "address_model",
    parameters: Some("profile=DISC"),
    cases: CASES,
};

/// The suite with four levels.
pub const FOUR_SUITE: Suite = Suite {
    name: "address_model_four",
    parameters: Some("profile=DISC-4L"),
    cases: CASES,
};

const CASES: &[Case] = crate::cases! {
    "[VA-15] [VA-18] [VA-19] [VA-20]" engine_and_model_agree_on_a_random_walk,
};

/// Where the walk takes place: around the border of two leaf tables.
const START: u64 = 0x3f_0000;
const PAGES: u64 = 64;
const PAGE: u64 = 4 * KIB;
/// Pages of each allocation.
const LENGTH: u64 = 16;

/// One page of the model: the number of the range, the allocation and its page.
type Page = Option<(u64, usize, u64)>;

struct Walk {
    ground: Ground,
    random: Random,
    allocations: Vec<Allocation>,
    /// What each page of each allocation holds.
    contents: Vec<Vec<u64>>,
    pages: Vec<Page>,
    /// Where the engine stores what it reads.
    results: Allocation,
    results_va: u64,
    step: u64,
}

impl Walk {
    fn new(seed: u64) -> Self {
        let ground = Ground::new(VISIBLE_SEGMENT);
        let segments = [
            VISIBLE_SEGMENT,
            HIDDEN_SEGMENT | SYSTEM,
            VISIBLE_SEGMENT | HIDDEN_SEGMENT | SYSTEM,
            SYSTEM,
        ];
        let allocations: Vec<Allocation> = segments
            .into_iter()
            .map(|segments| {
                ground
                    .fixture
                    .create_resident(plain(LENGTH * PAGE, segments))
            })
            .collect();
        let (results, results_va) = ground.create(plain(PAGE, VISIBLE_SEGMENT));
        Self {
            random: Random::new(seed),
            contents: vec![vec![0; LENGTH as usize]; allocations.len()],
            allocations,
            pages: vec![None; PAGES as usize],
            results,
            results_va,
            ground,
            step: 0,
        }
    }

    fn range(&mut self) -> (u64, u64) {
        let length = self.random.below(12) + 1;
        (self.random.below(PAGES - length + 1), length)
    }

    /// Maps a random range and checks that it is refused exactly if the model says so.
    fn map(&mut self) {
        let (first, length) = self.range();
        let which = self.random.index(self.allocations.len());
        let offset = self.random.below(LENGTH - length + 1);
        let argument = VaMap {
            queue: self.ground.fixture.queue.handle,
            alloc: self.allocations[which].handle,
            protection: abi::VA_WRITE,
            base: START + first * PAGE,
            alloc_offset: offset * PAGE,
            size: length * PAGE,
            ..Default::default()
        };
        let pages = &mut self.pages[first as usize..(first + length) as usize];
        let range = pages[0].map(|page| page.0);
        let fits = pages.iter().all(|page| page.map(|page| page.0) == range);
        let expected = if fits {
            Ok(argument.base)
        } else {
            Err(libc::EEXIST)
        };
        assert_eq!(self.ground.map_as(argument), expected, "step {}", self.step);
        if fits {
            for (page, number) in pages.iter_mut().zip(offset..) {
                *page = Some((range.unwrap_or(self.step), which, number));
            }
        }
    }

    fn free(&mut self) {
        let (first, length) = self.range();
        let pages = &mut self.pages[first as usize..(first + length) as usize];
        let is_mapped = pages.iter().all(Option::is_some);
        let expected = if is_mapped { Ok(()) } else { Err(libc::EINVAL) };
        let (va, bytes) = (START + first * PAGE, length * PAGE);
        let freed = self.ground.fixture.client.try_free_addresses(va, bytes);
        assert_eq!(freed, expected, "step {}", self.step);
        if is_mapped {
            pages.fill(None);
        }
    }

    /// Moves or pushes an allocation out and in.
    fn disturb(&mut self) {
        let which = self.random.index(self.allocations.len());
        let allocation = self.allocations[which];
        if self.random.once_in(2) {
            self.ground.fixture.push_out(&allocation);
            self.ground.fixture.bring_in(&allocation);
        } else {
            // Where it may not go it does not go.
            let to = self.random.below(3);
            let _ = debugfs::try_inject(&format!("move {} {to}", allocation.object_id));
        }
    }

    /// Lets the engine write one page and read some.
    fn access(&mut self) {
        let mut commands = Commands::new();
        let mapped: Vec<u64> = (0..PAGES)
            .filter(|page| self.pages[*page as usize].is_some())
            .collect();
        let Some(written) = mapped.get(self.random.index(mapped.len().max(1))) else {
            return;
        };
        commands.store(address(START + written * PAGE + 8), self.step);
        if let Some((_, which, page)) = self.pages[*written as usize] {
            self.contents[which][page as usize] = self.step;
        }
        let mut expected = Vec::new();
        for slot in 0..16 {
            let page = *self.random.pick(&mapped);
            commands.load_register(1, address(START + page * PAGE + 8));
            commands.store_register(1, address(self.results_va + slot * 8));
            let (_, which, number) = self.pages[page as usize].expect("mapped");
            expected.push(self.contents[which][number as usize]);
        }
        self.ground.run(&commands);
        let mapping = self.ground.fixture.client.map(&self.results);
        let found: Vec<u64> = (0..16).map(|slot| mapping.read64(slot * 8)).collect();
        assert_eq!(found, expected, "step {}", self.step);
    }

    /// Compares what VA_QUERY tells with the model.
    fn compare(&self) {
        let entries = self
            .ground
            .fixture
            .client
            .query_addresses(START, PAGES * PAGE);
        let mut pages = vec![None; PAGES as usize];
        for entry in entries {
            for page in 0..entry.size / PAGE {
                let at = (entry.va - START) / PAGE + page;
                pages[at as usize] = Some((entry.alloc, entry.alloc_offset / PAGE + page));
            }
        }
        let expected: Vec<_> = self
            .pages
            .iter()
            .map(|page| page.map(|(_, which, number)| (self.allocations[which].handle, number)))
            .collect();
        assert_eq!(pages, expected, "step {}", self.step);
    }
}

fn engine_and_model_agree_on_a_random_walk() {
    let seed = effort::seed();
    let mut walk = Walk::new(seed);
    for round in Rounds::new(400) {
        walk.step = round + 1;
        match walk.random.below(10) {
            0..4 => walk.map(),
            4..6 => walk.free(),
            6 => walk.disturb(),
            _ => walk.access(),
        }
        if walk.step % 16 == 0 {
            walk.compare();
        }
    }
}
