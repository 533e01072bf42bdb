// SPDX-License-Identifier: GPL-2.0

//! Counters of the engine, and the failures it was asked for.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

use crate::backend::{
    operation::Name,
    Failure,
    Statistics, //
};

/// Counters that all nodes add to.
pub(super) struct Counters {
    /// Operations executed, by name.
    operations: [Atomic<u64>; Name::ALL.len()],
    /// Bytes covered by them.
    operation_bytes: [Atomic<u64>; Name::ALL.len()],
    /// Client packets executed.
    packets: Atomic<u64>,
    /// Bytes written by them.
    packet_bytes: Atomic<u64>,
    /// Buffers run to their end.
    buffers: Atomic<u64>,
    /// Buffers whose root was compared.
    roots: Atomic<u64>,
}

impl Counters {
    /// Returns counters at zero.
    pub(super) const fn new() -> Self {
        Self {
            operations: [const { Atomic::new(0) }; Name::ALL.len()],
            operation_bytes: [const { Atomic::new(0) }; Name::ALL.len()],
            packets: Atomic::new(0),
            packet_bytes: Atomic::new(0),
            buffers: Atomic::new(0),
            roots: Atomic::new(0),
        }
    }

    /// Counts an operation.
    pub(super) fn operation(&self, name: Name, bytes: u64) {
        if let Some(count) = self.operations.get(name.index()) {
            count.add(1u64, Relaxed);
        }
        if let Some(sum) = self.operation_bytes.get(name.index()) {
            sum.add(bytes, Relaxed);
        }
    }

    /// Counts what a portion did.
    pub(super) fn portion(&self, packets: u64, bytes: u64) {
        self.packets.add(packets, Relaxed);
        self.packet_bytes.add(bytes, Relaxed);
    }

    /// Counts a buffer.
    pub(super) fn buffer(&self) {
        self.buffers.add(1u64, Relaxed);
    }

    /// Counts a buffer whose root was compared.
    pub(super) fn root(&self) {
        self.roots.add(1u64, Relaxed);
    }

    /// Returns the values.
    pub(super) fn read(&self) -> Statistics {
        Statistics {
            operations: self.operations.each_ref().map(|count| count.load(Relaxed)),
            operation_bytes: self.operation_bytes.each_ref().map(|sum| sum.load(Relaxed)),
            packets: self.packets.load(Relaxed),
            packet_bytes: self.packet_bytes.load(Relaxed),
            buffers: self.buffers.load(Relaxed),
            roots: self.roots.load(Relaxed),
            dummy_hits: 0,
        }
    }
}

/// How often something shall still go wrong.
pub(super) struct Failures {
    /// Operations that are ignored, by name.
    operations: [Atomic<u32>; Name::ALL.len()],
    /// Buffers that do not complete.
    completion: Atomic<u32>,
    /// Builds that find the buffer full.
    buffer_full: Atomic<u32>,
    /// Nodes that do not listen when they are asked to give way.
    preempt: Atomic<u32>,
    /// Engines that cannot be reset.
    engine_reset: Atomic<u32>,
}

impl Failures {
    /// Returns a state in which all goes well.
    pub(super) const fn new() -> Self {
        Self {
            operations: [const { Atomic::new(0) }; Name::ALL.len()],
            completion: Atomic::new(0),
            buffer_full: Atomic::new(0),
            preempt: Atomic::new(0),
            engine_reset: Atomic::new(0),
        }
    }

    /// Returns the count of `failure`.
    fn count(&self, failure: Failure) -> Option<&Atomic<u32>> {
        match failure {
            Failure::Operation(name) => self.operations.get(name.index()),
            Failure::Completion => Some(&self.completion),
            Failure::BufferFull => Some(&self.buffer_full),
            Failure::Preempt => Some(&self.preempt),
            Failure::EngineReset => Some(&self.engine_reset),
        }
    }

    /// Lets the next `count` occasions of `failure` go wrong.
    pub(super) fn set(&self, failure: Failure, count: u32) {
        if let Some(left) = self.count(failure) {
            left.store(count, Relaxed);
        }
    }

    /// Returns whether this occasion of `failure` goes wrong.
    pub(super) fn take(&self, failure: Failure) -> bool {
        let Some(left) = self.count(failure) else {
            return false;
        };
        let mut seen = left.load(Relaxed);
        while let Some(less) = seen.checked_sub(1) {
            match left.cmpxchg(seen, less, Relaxed) {
                Ok(_) => return true,
                Err(current) => seen = current,
            }
        }
        false
    }
}
