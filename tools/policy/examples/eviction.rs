// SPDX-License-Identifier: GPL-2.0

//! Prints how rules that choose victims do on patterns of use.
//!
//! `cargo run -p policy --example eviction [--rst]`. For each pattern: the part of the uses that found
//! their item in memory, and the bytes paged in compared with the optimum, over several sizes of memory.

#[path = "../tests/replay/mod.rs"]
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
const SEEDS: u64 = 6;
/// The rules, the optimum first.
const RULES: [&str; 4] = ["optimum", "driver", "LRU", "clock"];

/// The costs of a kind, by rule.
type Costs = [Cost; RULES.len()];

fn costs(kind: &Kind, percent: u64) -> Costs {
    let mut costs = Costs::default();
    for seed in 1..=SEEDS {
        let pattern = kind.make(percent, seed);
        let each = [
            replayed(&pattern, &mut Optimum::new(&pattern)),
            replayed(&pattern, &mut Ours::new(&pattern)),
            replayed(&pattern, &mut Lru::new(&pattern)),
            replayed(&pattern, &mut Clock::new(&pattern)),
        ];
        for (sum, one) in costs.iter_mut().zip(each) {
            sum.add(one);
        }
    }
    costs
}

/// One line of the table: name, hits of each rule, mean and worst excess of each but the optimum.
fn line(kind: &Kind) -> Vec<String> {
    let all: Vec<Costs> = PERCENTS
        .iter()
        .map(|percent| costs(kind, *percent))
        .collect();
    let mut cells = vec![kind.name.to_string()];
    for rule in 0..RULES.len() {
        let hits: f64 = all.iter().map(|costs| costs[rule].hits()).sum();
        cells.push(format!("{:.0} %", 100.0 * hits / all.len() as f64));
    }
    for rule in 1..RULES.len() {
        let excess: Vec<f64> = all
            .iter()
            .map(|costs| costs[rule].relative_to(costs[0]))
            .collect();
        let mean = excess.iter().sum::<f64>() / excess.len() as f64;
        let worst = excess.iter().copied().fold(0.0, f64::max);
        cells.push(format!("{mean:.2} ({worst:.2})"));
    }
    cells
}

fn main() {
    let mut head = vec!["pattern".to_string()];
    head.extend(RULES.iter().map(|rule| format!("{rule} hits")));
    head.extend(RULES.iter().skip(1).map(|rule| format!("{rule} bytes")));
    let mut lines = vec![head];
    lines.extend(KINDS.iter().map(line));
    if std::env::args().any(|argument| argument == "--rst") {
        for line in &lines {
            println!("   * - {}", line.join("\n     - "));
        }
        return;
    }
    for line in &lines {
        let (name, cells) = line.split_first().unwrap();
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>13}")).collect();
        let cells = cells.join(" ");
        println!("{name:18} {cells}");
    }
}
