// SPDX-License-Identifier: GPL-2.0

//! How much work loops do: a fixed amount with a fixed seed in the normal run, as much as fits into
//! a time in a long run.

use std::{
    sync::OnceLock,
    time::{
        Duration,
        Instant, //
    },
};

use crate::ktap;

struct Long {
    total: Duration,
    seed: u64,
}

static LONG: OnceLock<Long> = OnceLock::new();

/// Asks for a long run; a seed of nobody's choice is taken from the clock.
pub fn set(total: Duration, seed: Option<u64>) {
    let seed = seed.unwrap_or_else(|| crate::clock::now_ns() as u64);
    ktap::comment(&format!("seed {seed}"));
    let _ = LONG.set(Long { total, seed });
}

/// The seed of a random test.
pub fn seed() -> u64 {
    LONG.get().map_or(1, |long| long.seed)
}

/// A loop with a budget.
pub struct Rounds {
    left: u64,
    end: Option<Instant>,
    number: u64,
}

impl Rounds {
    /// `short` rounds in the normal run, as many as there is time for in a long one.
    pub fn new(short: u64) -> Self {
        let end = LONG.get().map(|long| Instant::now() + long.total);
        Self {
            left: short,
            end,
            number: 0,
        }
    }
}

impl Iterator for Rounds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let more = match self.end {
            Some(end) => Instant::now() < end,
            None => self.left > 0,
        };
        self.left = self.left.saturating_sub(1);
        self.number += 1;
        more.then_some(self.number - 1)
    }
}
