// SPDX-License-Identifier: GPL-2.0

//! How much client work each node has before it.
//!
//! A node takes what it is given in order. So that priorities and shares count, it is given little at a time: the
//! rest waits at the scheduler, which chooses when there is room again.

use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

use crate::units::NodeOrdinal;

/// Portions that a node has before it, the one that runs included. Enough that it need not wait for the worker
/// between short ones.
const DEPTH: u32 = 4;

/// The nodes of an adapter.
pub(crate) struct NodeLoads(KVec<Atomic<u32>>);

impl NodeLoads {
    /// Returns so many nodes with nothing to do.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new(nodes: usize) -> Result<Self> {
        let mut loads = KVec::with_capacity(nodes, GFP_KERNEL)?;
        for _ in 0..nodes {
            loads.push(Atomic::new(0), GFP_KERNEL)?;
        }
        Ok(Self(loads))
    }

    /// Returns whether a node takes more.
    pub(super) fn has_room(&self, node: NodeOrdinal) -> bool {
        let load = self.0.get(node.index());
        load.is_some_and(|load| load.load(Relaxed) < DEPTH)
    }

    /// Notes that a node is given a portion.
    pub(super) fn begin(&self, node: NodeOrdinal) {
        if let Some(load) = self.0.get(node.index()) {
            load.fetch_add(1, Relaxed);
        }
    }

    /// Notes that a node has given one back.
    pub(super) fn end(&self, node: NodeOrdinal) {
        if let Some(load) = self.0.get(node.index()) {
            load.fetch_sub(1, Relaxed);
        }
    }
}
