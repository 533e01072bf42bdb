// SPDX-License-Identifier: GPL-2.0

//! What the residency requirement list of a device asks for in sum.
//!
//! MAKE_RESIDENT must say at once whether what a device wants can be resident together (RES-1: sums
//! only). The sums are kept by segment mask, so that the question costs as many steps as there are
//! different masks, however long the list is. Beside the sums stands the list itself, for
//! submissions that need all of it.

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::Arc, //
};

use crate::{
    object::allocation::Allocation,
    policy::residency::{
        Capacity,
        Demand,
        Ledger,
        MASKS, //
    },
};

/// Kinds of demand of which account is kept: as many as the policy looks at, each with one run and
/// without. Demands of further kinds are not counted, which makes the answer weaker, never wrong.
const KINDS: usize = 2 * MASKS;

/// Memory for one entry of the list.
pub(super) type Entry = RBTreeNode<u64, Arc<Allocation>>;

/// The residency requirement list of a device.
pub(crate) struct Demands {
    sums: KVec<Demand>,
    list: RBTree<u64, Arc<Allocation>>,
    len: usize,
}

impl Demands {
    /// Returns an empty list.
    pub(super) fn new() -> Self {
        Self {
            sums: KVec::new(),
            list: RBTree::new(),
            len: 0,
        }
    }

    /// Takes memory for an entry.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn entry(allocation: &Arc<Allocation>) -> Result<Entry> {
        RBTreeNode::new(
            allocation.object_id(),
            allocation.clone(),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Makes room for `kinds` more kinds of demand, so that [`Self::add`] needs no memory.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn reserve(&mut self, kinds: usize) -> Result {
        let most = KINDS.saturating_sub(self.sums.len());
        Ok(self.sums.reserve(kinds.min(most), GFP_KERNEL_ACCOUNT)?)
    }

    /// Enters an allocation. Room for a new kind was reserved before.
    pub(super) fn add(&mut self, demand: Demand, entry: Entry) {
        let more = self.sums.len() < KINDS;
        match self.sum(&demand) {
            Some(sum) => sum.bytes = sum.bytes.saturating_add(demand.bytes),
            None if more => {
                let _ = self.sums.push_within_capacity(demand);
            }
            None => {}
        }
        if self.list.insert(entry).is_none() {
            self.len += 1;
        }
    }

    /// Takes an allocation out, if it is on the list.
    pub(super) fn remove(&mut self, demand: &Demand, object_id: u64) -> Option<Entry> {
        let entry = self.list.remove_node(&object_id)?;
        self.len -= 1;
        if let Some(sum) = self.sum(demand) {
            sum.bytes = sum.bytes.saturating_sub(demand.bytes);
        }
        Some(entry)
    }

    fn sum(&mut self, demand: &Demand) -> Option<&mut Demand> {
        self.sums
            .iter_mut()
            .find(|sum| sum.mask == demand.mask && sum.contiguous == demand.contiguous)
    }

    /// Returns how many bytes too few there are for everything to be resident together, beside what
    /// is promised to others.
    pub(super) fn lacking(&self, promised: &[Demand], capacities: &[Capacity]) -> u64 {
        let mut ledger = Ledger::new(capacities);
        for sum in Iterator::chain(self.sums.iter(), promised) {
            if sum.bytes > 0 {
                ledger.add_sum(sum);
            }
        }
        ledger.lacking()
    }

    /// Returns the number of allocations.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the allocations, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Allocation>> {
        self.list.values()
    }
}
