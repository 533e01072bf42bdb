// SPDX-License-Identifier: GPL-2.0

//! A small memory manager built from the policies, with memory in which every page can be read.
//!
//! Allocations come and go, move into segments and out of them, push each other out and are
//! written. After each step every page of every allocation must hold what was last written to it,
//! wherever it is. Pages that nobody owns are poisoned, so a lost, shared or forgotten page shows.

use std::collections::{
    BTreeMap,
    BTreeSet, //
};
use std::ops::Range;

use policy::policy::eviction::{
    self,
    Candidate,
    Fate,
    Gathering,
    Occupant,
    Rank,
    Victim,
    Window, //
};
use policy::policy::placement::{
    order,
    Chain,
    Choice,
    Link,
    PagePool, //
};
use proptest::prelude::*;
use proptest::test_runner::{
    TestCaseError,
    TestCaseResult, //
};

mod ranks;
mod soak;

use ranks::{
    rank,
    IDLE, //
};

/// What a page without owner holds.
const POISON: u64 = 0xd1d1_d1d1_d1d1_d1d1;

/// A segment: which pages are whose, and what they hold.
struct Segment {
    pool: PagePool<Vec<u64>, Vec<Link>>,
    /// The pages that may hold contiguous allocations, at the low end.
    contiguous: Range<u32>,
    memory: Vec<u64>,
}

impl Segment {
    fn new(pages: u32, contiguous: u32) -> Self {
        let words = vec![0; PagePool::<Vec<u64>, Vec<Link>>::words(pages)];
        let links = vec![Link::UNUSED; pages as usize];
        Self {
            pool: PagePool::new(words, links, pages).unwrap(),
            contiguous: 0..contiguous.min(pages),
            memory: vec![POISON; pages as usize],
        }
    }

    fn pages(&self) -> Range<u32> {
        0..self.pool.pages()
    }

    /// The pages for loose allocations to take first.
    fn loose_first(&self) -> Range<u32> {
        self.contiguous.end..self.pool.pages()
    }

    /// Page numbers of a chain in the order of the allocation's pages.
    fn page_numbers(&self, chain: &Chain) -> Vec<u32> {
        self.pool.runs(chain).flatten().collect()
    }
}

/// An allocation.
struct Allocation {
    /// What its pages should hold.
    truth: Vec<u64>,
    /// What they held when it last left its segment; poison while it is in one.
    outside: Vec<u64>,
    contiguous: bool,
    align: u32,
    mask: u32,
    preferred: u64,
    rank: Rank,
    last_use: u32,
    /// Where it is.
    place: Option<(usize, Chain)>,
}

impl Allocation {
    fn pages(&self) -> u32 {
        self.truth.len() as u32
    }

    fn is_in(&self, segment: usize) -> bool {
        matches!(&self.place, Some((other, _)) if *other == segment)
    }

    fn candidate(&self, key: u64) -> Candidate {
        Candidate {
            key,
            pages: self.pages(),
            rank: self.rank,
        }
    }
}

/// Everything.
#[derive(Default)]
struct Adapter {
    /// By segment id.
    segments: Vec<Segment>,
    allocations: BTreeMap<u64, Allocation>,
    next_key: u64,
    now: u32,
}

impl Adapter {
    /// Keys of the allocations in a segment, the one used longest ago first.
    fn oldest_first(&self, segment: usize) -> Vec<u64> {
        let inside = self
            .allocations
            .iter()
            .filter(|(_, one)| one.is_in(segment));
        let mut keys: Vec<(u32, u64)> = inside.map(|(key, one)| (one.last_use, *key)).collect();
        keys.sort();
        keys.into_iter().map(|(_, key)| key).collect()
    }

    /// Moves an allocation out and gives its pages back.
    fn move_out(&mut self, key: u64) {
        let allocation = self.allocations.get_mut(&key).unwrap();
        let Some((id, chain)) = allocation.place.take() else {
            return;
        };
        let segment = &mut self.segments[id];
        let pages = segment.page_numbers(&chain);
        for (page, outside) in pages.into_iter().zip(&mut allocation.outside) {
            *outside = std::mem::replace(&mut segment.memory[page as usize], POISON);
        }
        segment.pool.give(chain);
    }

    /// Moves an allocation into pages that were taken for it.
    fn move_in(&mut self, key: u64, id: usize, chain: Chain) -> TestCaseResult {
        let allocation = self.allocations.get_mut(&key).unwrap();
        let segment = &mut self.segments[id];
        let pages = segment.page_numbers(&chain);
        prop_assert_eq!(pages.len(), allocation.outside.len());
        for (page, outside) in pages.into_iter().zip(&mut allocation.outside) {
            let old = std::mem::replace(&mut segment.memory[page as usize], *outside);
            prop_assert_eq!(old, POISON, "page {} has another owner", page);
            *outside = POISON;
        }
        allocation.place = Some((id, chain));
        Ok(())
    }

    /// Takes pages for an allocation in a segment without pushing anyone out.
    fn take(&mut self, key: u64, choice: Choice) -> Option<Chain> {
        let allocation = &self.allocations[&key];
        let segment = self.segments.get_mut(choice.segment.index())?;
        let pages = allocation.pages();
        if allocation.contiguous {
            let within = segment.contiguous.clone();
            segment
                .pool
                .take_run(pages, allocation.align, within, choice.from)
        } else {
            let (all, first) = (segment.pages(), segment.loose_first());
            segment.pool.take_loose(pages, all, first, choice.from)
        }
    }

    /// Pushes others out until an allocation has pages; says whether that was possible.
    fn push_out(&mut self, key: u64, choice: Choice) -> Result<Option<Chain>, TestCaseError> {
        let id = choice.segment.index();
        if id >= self.segments.len() {
            return Ok(None);
        }
        if self.allocations[&key].contiguous {
            self.push_out_window(key, id)
        } else {
            self.push_out_loose(key, choice)
        }
    }

    fn push_out_loose(&mut self, key: u64, choice: Choice) -> Result<Option<Chain>, TestCaseError> {
        let id = choice.segment.index();
        let free = self.segments[id].pool.free_pages();
        let need = self.allocations[&key].pages() - free;
        let keys = self.oldest_first(id);
        let mut candidates: Vec<Candidate> = keys
            .iter()
            .map(|key| self.allocations[key].candidate(*key))
            .filter(|one| one.rank.may_leave())
            .collect();
        candidates.sort_by_key(|one| one.rank);
        let mut victims = vec![Victim::default(); keys.len()];
        let mut gathering = Gathering::new(need, &mut victims);
        for Candidate { key, pages, .. } in &candidates {
            if !gathering.is_enough() {
                let (key, pages) = (*key, *pages);
                prop_assert_eq!(gathering.add(Victim { key, pages }), Ok(()));
            }
        }
        if !gathering.is_enough() {
            prop_assert!(candidates.iter().map(|one| one.pages).sum::<u32>() < need);
            return Ok(None);
        }
        let leaving = gathering.finish().leaving;
        self.let_go(&victims[..leaving])?;
        let chain = self.take(key, choice);
        prop_assert!(chain.is_some(), "the victims were not enough");
        Ok(chain)
    }

    fn push_out_window(&mut self, key: u64, id: usize) -> Result<Option<Chain>, TestCaseError> {
        let allocation = &self.allocations[&key];
        let window = Window {
            pages: allocation.pages(),
            align: allocation.align,
            within: self.segments[id].contiguous.clone(),
        };
        let mut occupants = Vec::new();
        for (key, age) in self.oldest_first(id).into_iter().zip(0..) {
            let other = &self.allocations[&key];
            let chain = &other.place.as_ref().unwrap().1;
            for run in self.segments[id].pool.runs(chain) {
                let fate = match other.rank.may_leave() {
                    true => Fate::Leaves,
                    false => Fate::Stays,
                };
                occupants.push(Occupant::new(other.candidate(key), run, fate, age));
            }
        }
        let Ok(place) = eviction::contiguous(&window, &mut occupants) else {
            return Ok(None);
        };
        let victims: Vec<Victim<u64>> = eviction::victims(&occupants, &place).collect();
        self.let_go(&victims)?;
        let chain = self.segments[id].pool.take_at(place);
        prop_assert!(chain.is_ok(), "the window is not empty");
        Ok(chain.ok())
    }

    /// Moves the victims out.
    fn let_go(&mut self, victims: &[Victim<u64>]) -> TestCaseResult {
        let keys: BTreeSet<u64> = victims.iter().map(|victim| victim.key).collect();
        prop_assert_eq!(keys.len(), victims.len(), "somebody leaves twice");
        for key in keys {
            prop_assert!(self.allocations[&key].rank.may_leave());
            self.move_out(key);
        }
        Ok(())
    }

    /// Brings an allocation in, wherever it may be; says whether it is in now.
    fn make_resident(&mut self, key: u64) -> Result<bool, TestCaseError> {
        self.now += 1;
        let allocation = self.allocations.get_mut(&key).unwrap();
        allocation.last_use = self.now;
        if allocation.place.is_some() {
            return Ok(true);
        }
        let choices: Vec<Choice> = order(allocation.preferred, allocation.mask).collect();
        for choice in &choices {
            if let Some(chain) = self.take(key, *choice) {
                self.move_in(key, choice.segment.index(), chain)?;
                return Ok(true);
            }
        }
        for choice in &choices {
            if let Some(chain) = self.push_out(key, *choice)? {
                self.move_in(key, choice.segment.index(), chain)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a page where the allocation is.
    fn read(&self, allocation: &Allocation, page: usize) -> u64 {
        match &allocation.place {
            None => allocation.outside[page],
            Some((id, chain)) => {
                let segment = &self.segments[*id];
                segment.memory[segment.page_numbers(chain)[page] as usize]
            }
        }
    }

    /// Reads everything.
    fn compare(&self) -> TestCaseResult {
        for (key, allocation) in &self.allocations {
            for (page, truth) in allocation.truth.iter().enumerate() {
                let found = self.read(allocation, page);
                prop_assert_eq!(found, *truth, "page {} of {} is wrong", page, key);
            }
            if let Some((id, chain)) = &allocation.place {
                let segment = &self.segments[*id];
                prop_assert!(allocation.mask & 1 << id != 0, "outside its set");
                let runs: Vec<Range<u32>> = segment.pool.runs(chain).collect();
                if allocation.contiguous {
                    prop_assert_eq!(runs.len(), 1);
                    prop_assert!(runs[0].end <= segment.contiguous.end);
                    prop_assert_eq!(runs[0].start % allocation.align, 0);
                }
            }
        }
        for segment in &self.segments {
            let poisoned = segment
                .memory
                .iter()
                .filter(|page| **page == POISON)
                .count();
            prop_assert_eq!(
                poisoned,
                segment.pool.free_pages() as usize,
                "a page is lost"
            );
        }
        Ok(())
    }
}

/// What an allocation is to be like.
#[derive(Clone, Debug)]
struct Wish {
    pages: u32,
    contiguous: bool,
    align: u32,
    mask: u32,
    preferred: u64,
}

/// Something that happens; numbers choose among the allocations that there are.
#[derive(Clone, Debug)]
enum Step {
    Create(Wish),
    Destroy(prop::sample::Index),
    MakeResident(prop::sample::Index),
    Evict(prop::sample::Index),
    Write(prop::sample::Index, prop::sample::Index),
    Rank(prop::sample::Index, Rank),
}

fn step() -> impl Strategy<Value = Step> {
    let which = any::<prop::sample::Index>;
    let pages = prop_oneof![1..10_u32, 1..60_u32];
    let preferred = prop_oneof![Just(0), Just(0x81), Just(0x0102), Just(0x83)];
    let wish = (pages, any::<bool>(), 0..3_u32, 1..8_u32, preferred);
    let wish = wish.prop_map(|(pages, contiguous, align, mask, preferred)| Wish {
        pages,
        contiguous,
        align: 1 << align,
        mask: mask << 1,
        preferred,
    });
    prop_oneof![
        4 => wish.prop_map(Step::Create),
        1 => which().prop_map(Step::Destroy),
        8 => which().prop_map(Step::MakeResident),
        2 => which().prop_map(Step::Evict),
        4 => (which(), which()).prop_map(|(one, page)| Step::Write(one, page)),
        2 => (which(), rank()).prop_map(|(one, rank)| Step::Rank(one, rank)),
    ]
}

/// Does one step.
fn apply(adapter: &mut Adapter, step: Step) -> TestCaseResult {
    let keys: Vec<u64> = adapter.allocations.keys().copied().collect();
    if keys.is_empty() && !matches!(step, Step::Create(_)) {
        return Ok(());
    }
    let of = |which: prop::sample::Index| *which.get(&keys);
    match step {
        Step::Create(wish) => create(adapter, wish)?,
        Step::Destroy(which) => {
            adapter.move_out(of(which));
            adapter.allocations.remove(&of(which));
        }
        Step::MakeResident(which) => {
            adapter.make_resident(of(which))?;
        }
        Step::Evict(which) => adapter.move_out(of(which)),
        Step::Write(which, page) => write(adapter, of(which), page),
        Step::Rank(which, rank) => {
            adapter.allocations.get_mut(&of(which)).unwrap().rank = rank;
        }
    }
    adapter.compare()
}

/// Creates an allocation whose pages all hold something of their own, and brings it in.
fn create(adapter: &mut Adapter, wish: Wish) -> TestCaseResult {
    adapter.next_key += 1;
    let key = adapter.next_key;
    let truth: Vec<u64> = (0..wish.pages)
        .map(|page| key << 32 | u64::from(page))
        .collect();
    let allocation = Allocation {
        outside: truth.clone(),
        truth,
        contiguous: wish.contiguous,
        align: wish.align,
        mask: wish.mask,
        preferred: wish.preferred,
        rank: IDLE.rank(),
        last_use: 0,
        place: None,
    };
    adapter.allocations.insert(key, allocation);
    adapter.make_resident(key)?;
    Ok(())
}

/// Writes something new to a page, where the allocation is.
fn write(adapter: &mut Adapter, key: u64, page: prop::sample::Index) {
    adapter.now += 1;
    let allocation = adapter.allocations.get_mut(&key).unwrap();
    let page = page.index(allocation.truth.len());
    let value = u64::from(adapter.now) << 48 | key << 24 | page as u64;
    allocation.truth[page] = value;
    match &allocation.place {
        None => allocation.outside[page] = value,
        Some((id, chain)) => {
            let segment = &mut adapter.segments[*id];
            let at = segment.page_numbers(chain)[page];
            segment.memory[at as usize] = value;
        }
    }
}

#[test]
fn no_page_is_lost_or_shared() {
    let segment = || (1..150_u32, 0..150_u32);
    let steps = prop::collection::vec(step(), 0..120);
    let case = ((segment(), segment(), segment()), steps);
    soak::check(200, case, |((one, two, three), steps)| {
        let mut adapter = Adapter::default();
        for (pages, contiguous) in [(0, 0), one, two, three] {
            adapter.segments.push(Segment::new(pages, contiguous));
        }
        for step in steps {
            apply(&mut adapter, step)?;
        }
        let keys: Vec<u64> = adapter.allocations.keys().copied().collect();
        for key in keys {
            adapter.move_out(key);
        }
        adapter.compare()?;
        for segment in &adapter.segments {
            prop_assert_eq!(segment.pool.largest_run(), segment.pool.pages());
        }
        Ok(())
    });
}
