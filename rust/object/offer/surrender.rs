// SPDX-License-Identifier: GPL-2.0

//! Offered allocations whose pages may go, and how they go.
//!
//! When the system is short of memory, what was offered with ALLOW_DECOMMIT loses its content and the pages
//! behind it, by level and then by time. Who asks for that may be anybody who allocates memory, perhaps with
//! locks of this driver held: so locks are only tried, nothing is waited for, and nothing is allocated.
//! What lies nowhere can go at once. What is resident is left to the worker, which pushes it out; its
//! pages go the next time.

use core::mem;

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::Arc, //
};

use crate::{
    object::{
        adapter::Adapter,
        allocation::{
            Allocation,
            Hold, //
        },
        client::Sum,
        reclaim::Step,
        residence::{
            Residence,
            Wish, //
        },
        worker::Worker,
    },
    units::PAGE_BYTES,
};

use super::{
    Level,
    Pages,
    Terms, //
};

/// Where an allocation stands in the order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::object) struct Key {
    level: Level,
    /// Counts the offers that have come into force.
    number: u64,
}

/// Memory for an allocation in the order.
type Node = RBTreeNodeReservation<Key, Arc<Allocation>>;

/// Where one allocation stands in the order. Part of the residence.
pub(in crate::object) enum Surrender {
    /// It has never been offered with pages that may go.
    Unequipped,
    /// It is not in the order, and has what it needs for that.
    Equipped(Node),
    /// It is in the order.
    Listed(Key),
}

impl Surrender {
    /// Gives an allocation what it needs to enter the order; it keeps that.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn equip(hold: &Hold) -> Result {
        let unequipped = |residence: &Residence| matches!(residence.surrender, Self::Unequipped);
        if !unequipped(&hold.residence().lock()) {
            return Ok(());
        }
        let node = Node::new(GFP_KERNEL_ACCOUNT)?;
        let mut residence = hold.residence().lock();
        if unequipped(&residence) {
            residence.surrender = Self::Equipped(node);
        }
        Ok(())
    }
}

/// The order. Protected by `Adapter::residency`.
pub(crate) struct Order {
    tree: RBTree<Key, Arc<Allocation>>,
    last: u64,
}

impl Order {
    /// Returns an empty order.
    pub(in crate::object) fn new() -> Self {
        Self {
            tree: RBTree::new(),
            last: 0,
        }
    }

    /// Enters an allocation, if its pages may go.
    pub(super) fn enter(
        &mut self,
        allocation: &Arc<Allocation>,
        residence: &mut Residence,
        terms: Terms,
    ) {
        // Pages that Linux may swap go to swap instead, and their content with them.
        let kept = terms.pages == Pages::Stay || allocation.is_swappable();
        if kept || residence.backing().is_none() {
            return;
        }
        let surrender = mem::replace(&mut residence.surrender, Surrender::Unequipped);
        let Surrender::Equipped(node) = surrender else {
            residence.surrender = surrender;
            return;
        };
        self.last += 1;
        let key = Key {
            level: terms.level,
            number: self.last,
        };
        self.tree.insert(node.into_node(key, allocation.clone()));
        residence.surrender = Surrender::Listed(key);
        allocation.adapter().add_surrenderable(allocation.size());
    }

    /// Takes an allocation out, if it is in.
    pub(in crate::object) fn leave(&mut self, allocation: &Allocation, residence: &mut Residence) {
        let Surrender::Listed(key) = residence.surrender else {
            return;
        };
        if let Some(node) = self.tree.remove_node(&key) {
            // Somebody else knows the allocation, too: this is not the last reference.
            residence.surrender = Surrender::Equipped(node.into_reservation());
            allocation.adapter().sub_surrenderable(allocation.size());
        }
    }
}

/// How many resident allocations are pushed out for one request at most.
const PUSHED_AT_ONCE: usize = 16;

impl Adapter {
    /// Gives up the content and the pages of the first offered allocation that can lose them now.
    /// Never waits and never allocates.
    ///
    /// Requirement: RES-26.
    pub(in crate::object) fn surrender_first(&self) -> Step {
        let Some(mut residency) = self.residency().try_lock() else {
            return Step::Busy;
        };
        let Some(allocation) = self.first_to_surrender(&residency.offers) else {
            return Step::Nothing;
        };
        let Some(mut residence) = allocation.residence().try_lock() else {
            return Step::Busy;
        };
        residency.offers.leave(&allocation, &mut residence);
        let lost = !residence.offer.is_given_up();
        residence.give_up_content();
        let backing = residence.give_up_backing();
        drop(residence);
        if lost {
            allocation.count_discarded();
        }
        if backing.is_some() {
            let usage = allocation.device().client().usage();
            usage.sub(Sum::Backing, allocation.size());
            self.statistics().unbacked(allocation.size());
        }
        let pages = allocation.size() / PAGE_BYTES;
        // An offer ends under this lock before its allocation is forgotten, so the registry knows it.
        drop(allocation);
        drop(residency);
        drop(backing);
        // CAST: `usize` has 64 bits wherever this driver runs.
        Step::Given(pages as usize)
    }

    /// Finds the first allocation whose pages can go now; those before it that are resident are pushed
    /// out, so that theirs can go the next time.
    fn first_to_surrender(&self, order: &Order) -> Option<Arc<Allocation>> {
        let completed = self.paging().completed();
        let mut pushed = 0;
        for allocation in order.tree.values() {
            let Some(mut residence) = allocation.residence().try_lock() else {
                continue;
            };
            if residence.is_idle_nowhere(completed) {
                return Some(allocation.clone());
            }
            if residence.is_resident() && residence.wish == Wish::None && pushed < PUSHED_AT_ONCE {
                residence.wish = Wish::GiveUp;
                drop(residence);
                Worker::attend(self.worker(), allocation);
                pushed += 1;
            }
        }
        None
    }
}
