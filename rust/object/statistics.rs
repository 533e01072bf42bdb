// SPDX-License-Identifier: GPL-2.0

//! What the core has done since the module was loaded, in numbers (BCK-15).
//!
//! Each counter goes up where the trace event of the same thing is emitted, so that both tell the
//! same story. What engines do is counted by the backend.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

use crate::{
    abstractions::trace::{
        Cause,
        Decision, //
    },
    units::{
        Place,
        SegmentId,
        PAGE_BYTES, //
    },
};

/// Why memory leaves, with the words of the trace.
pub(crate) const DEPARTURES: [(Cause, &str); 5] = [
    (Cause::Evict, "evict"),
    (Cause::Pressure, "pressure"),
    (Cause::Move, "move"),
    (Cause::Split, "split"),
    (Cause::Discard, "discard"),
];

/// What becomes of a lock, with the words of the trace.
pub(crate) const DECISIONS: [(Decision, &str); 3] = [
    (Decision::Direct, "direct"),
    (Decision::Stall, "stall"),
    (Decision::WouldBlock, "would-block"),
];

/// Which way content goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From system memory into a memory segment.
    In,
    /// From a memory segment to system memory.
    Out,
    /// From one place in a memory segment to another.
    Within,
}

/// All directions with their names.
pub(crate) const DIRECTIONS: [(Direction, &str); 3] = [
    (Direction::In, "in"),
    (Direction::Out, "out"),
    (Direction::Within, "within"),
];

impl Direction {
    /// Returns the direction of a transfer between two places.
    pub(super) fn between(from: Place, to: Place) -> Self {
        match (from.segment, to.segment) {
            (SegmentId::SYSTEM, _) => Self::In,
            (_, SegmentId::SYSTEM) => Self::Out,
            _ => Self::Within,
        }
    }
}

/// The counters.
pub(crate) struct Statistics {
    departures: [Atomic<u64>; DEPARTURES.len()],
    locks: [Atomic<u64>; DECISIONS.len()],
    transferred: [Atomic<u64>; DIRECTIONS.len()],
    backing_bytes: Atomic<u64>,
    splits: Atomic<u64>,
}

impl Statistics {
    /// Returns counters at zero.
    pub(super) const fn new() -> Self {
        Self {
            departures: [const { Atomic::new(0) }; DEPARTURES.len()],
            locks: [const { Atomic::new(0) }; DECISIONS.len()],
            transferred: [const { Atomic::new(0) }; DIRECTIONS.len()],
            backing_bytes: Atomic::new(0),
            splits: Atomic::new(0),
        }
    }

    /// Counts an allocation that leaves its place for no other.
    pub(super) fn left(&self, cause: Cause) {
        add(&self.departures, &DEPARTURES, cause, 1);
    }

    /// Counts a lock.
    pub(super) fn locked(&self, decision: Decision) {
        add(&self.locks, &DECISIONS, decision, 1);
    }

    /// Counts what a Transfer covers.
    pub(super) fn transferred(&self, direction: Direction, bytes: u64) {
        add(&self.transferred, &DIRECTIONS, direction, bytes);
    }

    /// Counts a cut of a submission.
    pub(super) fn split(&self) {
        self.splits.add(1, Relaxed);
    }

    /// Returns how often submissions were cut.
    pub(crate) fn splits(&self) -> u64 {
        self.splits.load(Relaxed)
    }

    /// Counts backing pages that are taken.
    pub(super) fn backed(&self, bytes: u64) {
        self.backing_bytes.add(bytes, Relaxed);
    }

    /// Counts backing pages that are given back.
    pub(super) fn unbacked(&self, bytes: u64) {
        self.backing_bytes.add(bytes.wrapping_neg(), Relaxed);
    }

    /// Returns how often something left, by cause.
    pub(crate) fn departures(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        read(&self.departures, &DEPARTURES)
    }

    /// Returns how often a lock was decided, by decision.
    pub(crate) fn locks(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        read(&self.locks, &DECISIONS)
    }

    /// Returns the bytes of Transfers, by direction.
    pub(crate) fn transfers(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        read(&self.transferred, &DIRECTIONS)
    }

    /// Returns how many pages of system memory back allocations at present.
    pub(crate) fn backing_pages(&self) -> u64 {
        self.backing_bytes.load(Relaxed) / PAGE_BYTES
    }
}

/// Adds to the counter of `which`.
fn add<T: PartialEq>(counters: &[Atomic<u64>], names: &[(T, &str)], which: T, amount: u64) {
    let named = counters.iter().zip(names);
    for (counter, _) in named.filter(|(_, (name, _))| *name == which) {
        counter.add(amount, Relaxed);
    }
}

/// Returns names and values.
fn read<'a, T>(
    counters: &'a [Atomic<u64>],
    names: &'a [(T, &'static str)],
) -> impl Iterator<Item = (&'static str, u64)> + 'a {
    let named = counters.iter().zip(names);
    named.map(|(counter, (_, name))| (*name, counter.load(Relaxed)))
}
