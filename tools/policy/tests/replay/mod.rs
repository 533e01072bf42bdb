// SPDX-License-Identifier: GPL-2.0

//! Replays patterns of use through rules that choose victims, and counts what is paged.
//!
//! A [`Pattern`] is a list of uses of items of different sizes by some clients, and a memory that
//! cannot hold all items. A use of an item that is not in memory pages it in; others leave until
//! there is room. Bytes that are paged in are what the rules are compared by, in pages.

pub mod patterns;
pub mod rules;

/// A pattern of use.
pub struct Pattern {
    /// Pages of each item.
    pub pages: Vec<u64>,
    /// The client of each item.
    pub client: Vec<usize>,
    /// The items that are used, in order.
    pub uses: Vec<usize>,
    /// Pages of memory.
    pub memory: u64,
}

/// A rule that chooses victims.
pub trait Rule {
    /// The item is used; it is not among those that may leave until [`Self::keep`].
    fn used(&mut self, item: usize);

    /// The item is in memory and may leave from now on.
    fn keep(&mut self, item: usize);

    /// Chooses who leaves next, and takes it out.
    fn victim(&mut self) -> usize;

    /// Takes an item back that was chosen and need not leave.
    fn put_back(&mut self, item: usize);
}

/// What a rule has cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Pages paged in.
    pub pages: u64,
    /// Uses of items that were not in memory.
    pub misses: u64,
    /// All uses.
    pub uses: u64,
}

impl Cost {
    /// Adds the cost of another pattern.
    pub fn add(&mut self, other: Self) {
        self.pages += other.pages;
        self.misses += other.misses;
        self.uses += other.uses;
    }

    /// How much it is compared with another one.
    pub fn relative_to(self, other: Self) -> f64 {
        self.pages as f64 / other.pages as f64
    }

    /// The part of the uses that found their item in memory.
    pub fn hits(self) -> f64 {
        1.0 - self.misses as f64 / self.uses as f64
    }
}

/// Replays a pattern.
pub fn replay(pattern: &Pattern, rule: &mut impl Rule) -> Cost {
    let mut inside = vec![false; pattern.pages.len()];
    let mut free = pattern.memory;
    let mut cost = Cost::default();
    for &item in &pattern.uses {
        cost.uses += 1;
        rule.used(item);
        if !inside[item] {
            cost.misses += 1;
            cost.pages += pattern.pages[item];
            free = make_room(pattern, rule, &mut inside, free, item);
            free -= pattern.pages[item];
            inside[item] = true;
        }
        rule.keep(item);
    }
    cost
}

/// Lets others leave as the driver does: one by one until it is enough, then nobody in vain.
fn make_room(
    pattern: &Pattern,
    rule: &mut impl Rule,
    inside: &mut [bool],
    free: u64,
    item: usize,
) -> u64 {
    let mut free = free;
    let mut victims = Vec::new();
    while free < pattern.pages[item] {
        let victim = rule.victim();
        free += pattern.pages[victim];
        inside[victim] = false;
        victims.push(victim);
    }
    for victim in victims.into_iter().rev() {
        if free - pattern.pages[item] >= pattern.pages[victim] {
            free -= pattern.pages[victim];
            inside[victim] = true;
            rule.put_back(victim);
        }
    }
    free
}
