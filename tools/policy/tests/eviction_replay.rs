// SPDX-License-Identifier: GPL-2.0

//! The choice of victims against the optimum and against least recent use.
//!
//! `cargo run -p policy --example eviction` prints what is tested here as a table.

mod replay;

use replay::{
    patterns::{
        Kind,
        KINDS,
        PERCENTS, //
    },
    replay as replayed,
    rules::{
        Clock,
        Lru,
        Optimum,
        Ours, //
    },
    Cost, //
};

/// Patterns of each kind and size of memory.
const SEEDS: u64 = 4;

/// What a kind of pattern costs with the driver's rule, least recent use, and the optimum.
struct Compared {
    ours: Cost,
    lru: Cost,
    optimum: Cost,
}

fn compare(kind: &Kind, percent: u64) -> Compared {
    let mut compared = Compared {
        ours: Cost::default(),
        lru: Cost::default(),
        optimum: Cost::default(),
    };
    for seed in 1..=SEEDS {
        let pattern = kind.make(percent, seed);
        compared
            .ours
            .add(replayed(&pattern, &mut Ours::new(&pattern)));
        compared
            .lru
            .add(replayed(&pattern, &mut Lru::new(&pattern)));
        let optimum = replayed(&pattern, &mut Optimum::new(&pattern));
        compared.optimum.add(optimum);
    }
    compared
}

fn kind(name: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.name == name).unwrap()
}

/// Checks that the driver pages at most 15 % more than the optimum, for every size of memory.
fn is_near_the_optimum(name: &str) {
    for percent in PERCENTS {
        let compared = compare(kind(name), percent);
        let excess = compared.ours.relative_to(compared.optimum);
        assert!(
            excess <= 1.15,
            "{name}, {percent} %: {excess:.3} of the optimum"
        );
    }
}

#[test]
fn loops_are_near_the_optimum() {
    is_near_the_optimum("loop");
    is_near_the_optimum("two loops at once");
}

#[test]
fn turns_are_near_the_optimum() {
    is_near_the_optimum("turns of 3 frames");
    is_near_the_optimum("turns of 8 frames");
}

#[test]
fn least_recent_use_is_never_noticeably_better() {
    for kind in &KINDS {
        for percent in PERCENTS {
            let compared = compare(kind, percent);
            let excess = compared.ours.relative_to(compared.lru);
            let name = kind.name;
            assert!(excess <= 1.02, "{name}, {percent} %: {excess:.3} of LRU");
        }
    }
}

#[test]
fn least_recent_use_collapses_where_the_driver_does_not() {
    for name in ["loop", "turns of 3 frames"] {
        let compared = compare(kind(name), 85);
        assert!(compared.lru.relative_to(compared.optimum) > 2.0);
        assert!(compared.lru.relative_to(compared.ours) > 2.0);
    }
}

#[test]
fn nobody_can_do_anything_about_what_is_used_once() {
    let pattern = kind("sequential").make(50, 1);
    let costs = [
        replayed(&pattern, &mut Ours::new(&pattern)),
        replayed(&pattern, &mut Lru::new(&pattern)),
        replayed(&pattern, &mut Clock::new(&pattern)),
        replayed(&pattern, &mut Optimum::new(&pattern)),
    ];
    let all: u64 = pattern.pages.iter().sum();
    assert!(costs
        .iter()
        .all(|cost| cost.pages == all && cost.hits() == 0.0));
}
