// SPDX-License-Identifier: GPL-2.0

//! Waiting times before packets, chosen from a seed.
//!
//! They change when things happen, never what happens, so a race that shows with one seed can be
//! looked for again with the same seed. Each node has a generator of its own.

use crate::units::NodeOrdinal;

/// Nanoseconds in a microsecond.
const MICROSECOND: u64 = 1000;

/// The waiting times of one node.
pub(super) struct Delays {
    /// State of the generator.
    state: u64,
    /// The longest time, in nanoseconds; 0: no waiting.
    longest: u64,
}

impl Delays {
    /// Returns the waiting times of a node, at most `longest_us` microseconds each.
    pub(super) fn new(seed: u64, node: NodeOrdinal, longest_us: u32) -> Self {
        let mut delays = Self {
            state: seed,
            longest: u64::from(longest_us) * MICROSECOND,
        };
        // Neighbouring nodes are as unlike as neighbouring numbers of the generator.
        delays.state = delays.draw() ^ u64::from(node.0);
        delays
    }

    /// Returns the next waiting time in nanoseconds.
    pub(super) fn next(&mut self) -> u64 {
        if self.longest == 0 {
            return 0;
        }
        self.draw() % self.longest.saturating_add(1)
    }

    /// Returns the next number of the generator (SplitMix64).
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.state;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ number >> 31
    }
}
