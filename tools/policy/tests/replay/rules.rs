// SPDX-License-Identifier: GPL-2.0

//! The driver's rule and those it is compared with.

use std::collections::{
    BTreeSet,
    VecDeque, //
};

use policy::policy::eviction::{
    Ballot,
    Contest,
    History,
    Pace,
    Poll,
    Use, //
};

use super::{
    Pattern,
    Rule, //
};

/// The driver's rule: its policy on ordinary trees.
pub struct Ours<'a> {
    pattern: &'a Pattern,
    clock: u64,
    grace: u64,
    contest: Contest,
    history: Vec<History>,
    clients: Vec<Client>,
}

/// A client and what of it may leave.
#[derive(Default)]
struct Client {
    pace: Pace,
    /// By last use.
    recent: BTreeSet<(u64, usize)>,
    /// By expected use.
    expected: BTreeSet<(u64, usize)>,
}

impl<'a> Ours<'a> {
    /// Begins with empty memory.
    pub fn new(pattern: &'a Pattern) -> Self {
        let clients = pattern.client.iter().max().map_or(0, |last| last + 1);
        Self {
            pattern,
            clock: 0,
            grace: Pace::grace(pattern.memory),
            contest: Contest::new(),
            history: vec![History::default(); pattern.pages.len()],
            clients: (0..clients).map(|_| Client::default()).collect(),
        }
    }

    fn enter(&mut self, item: usize) {
        let history = &self.history[item];
        let client = &mut self.clients[self.pattern.client[item]];
        client.recent.insert((history.last(), item));
        if let Some(expected) = history.expected() {
            client.expected.insert((expected, item));
        }
    }

    fn remove(&mut self, item: usize) {
        let history = &self.history[item];
        let client = &mut self.clients[self.pattern.client[item]];
        client.recent.remove(&(history.last(), item));
        if let Some(expected) = history.expected() {
            client.expected.remove(&(expected, item));
        }
    }
}

impl Rule for Ours<'_> {
    fn used(&mut self, item: usize) {
        self.remove(item);
        let pages = self.pattern.pages[item];
        self.clock += pages;
        let client = &mut self.clients[self.pattern.client[item]];
        let now = client.pace.used(self.clock, pages, self.grace);
        self.history[item].used(now, Use::Worked);
        self.contest.used(item as u64);
    }

    fn keep(&mut self, item: usize) {
        self.enter(item);
    }

    fn victim(&mut self) -> usize {
        let mut poll = Poll::new();
        for (number, client) in self.clients.iter_mut().enumerate() {
            client.pace.learn(self.contest.verdict(number as u64));
            let Some(&(_, oldest)) = client.recent.first() else {
                continue;
            };
            let mut ballot = Ballot::new(number as u64, &client.pace, self.clock, self.grace);
            ballot.longest_ago(oldest, oldest as u64, &self.history[oldest]);
            for &(_, item) in [client.expected.first(), client.expected.last()]
                .into_iter()
                .flatten()
            {
                ballot.expected(item, item as u64, &self.history[item]);
            }
            poll.add(ballot);
        }
        let victim = poll
            .finish(
                &mut self.contest,
                self.clock,
                Pace::patience(self.pattern.memory),
            )
            .unwrap();
        self.remove(victim);
        victim
    }

    fn put_back(&mut self, item: usize) {
        self.enter(item);
    }
}

/// Least recently used.
pub struct Lru {
    clock: u64,
    last: Vec<u64>,
    order: BTreeSet<(u64, usize)>,
}

impl Lru {
    /// Begins with empty memory.
    pub fn new(pattern: &Pattern) -> Self {
        Self {
            clock: 0,
            last: vec![0; pattern.pages.len()],
            order: BTreeSet::new(),
        }
    }
}

impl Rule for Lru {
    fn used(&mut self, item: usize) {
        self.order.remove(&(self.last[item], item));
        self.clock += 1;
        self.last[item] = self.clock;
    }

    fn keep(&mut self, item: usize) {
        self.order.insert((self.last[item], item));
    }

    fn victim(&mut self) -> usize {
        self.order.pop_first().unwrap().1
    }

    fn put_back(&mut self, item: usize) {
        self.order.insert((self.last[item], item));
    }
}

/// Second chance: a hand goes round and spares what was used since it came by last.
pub struct Clock {
    used: Vec<bool>,
    inside: Vec<bool>,
    ring: VecDeque<usize>,
}

impl Clock {
    /// Begins with empty memory.
    pub fn new(pattern: &Pattern) -> Self {
        Self {
            used: vec![false; pattern.pages.len()],
            inside: vec![false; pattern.pages.len()],
            ring: VecDeque::new(),
        }
    }
}

impl Rule for Clock {
    fn used(&mut self, item: usize) {
        self.used[item] = self.inside[item];
    }

    fn keep(&mut self, item: usize) {
        if !self.inside[item] {
            self.inside[item] = true;
            self.ring.push_back(item);
        }
    }

    fn victim(&mut self) -> usize {
        loop {
            let item = self.ring.pop_front().unwrap();
            if !std::mem::take(&mut self.used[item]) {
                self.inside[item] = false;
                return item;
            }
            self.ring.push_back(item);
        }
    }

    fn put_back(&mut self, item: usize) {
        self.inside[item] = true;
        self.ring.push_front(item);
    }
}

/// Belady's rule: whoever is used again last leaves. It knows the future.
pub struct Optimum {
    /// When the item of each use is used again.
    next: Vec<usize>,
    now: usize,
    again: Vec<usize>,
    order: BTreeSet<(usize, usize)>,
}

impl Optimum {
    /// Looks at the future.
    pub fn new(pattern: &Pattern) -> Self {
        let mut next = vec![usize::MAX; pattern.uses.len()];
        let mut seen = vec![usize::MAX; pattern.pages.len()];
        for (time, &item) in pattern.uses.iter().enumerate().rev() {
            next[time] = std::mem::replace(&mut seen[item], time);
        }
        Self {
            next,
            now: 0,
            again: vec![usize::MAX; pattern.pages.len()],
            order: BTreeSet::new(),
        }
    }
}

impl Rule for Optimum {
    fn used(&mut self, item: usize) {
        self.order.remove(&(self.again[item], item));
        self.again[item] = self.next[self.now];
        self.now += 1;
    }

    fn keep(&mut self, item: usize) {
        self.order.insert((self.again[item], item));
    }

    fn victim(&mut self) -> usize {
        self.order.pop_last().unwrap().1
    }

    fn put_back(&mut self, item: usize) {
        self.order.insert((self.again[item], item));
    }
}
