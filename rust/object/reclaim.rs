// SPDX-License-Identifier: GPL-2.0

//! Host memory that can be given back: the pages behind swappable allocations (RES-26).
//!
//! The backing store of a swappable allocation consists of pages of a file that Linux may swap. They are
//! *pinned* while somebody needs them where they are:
//!
//! | who | from | until |
//! |---|---|---|
//! | residency, in whatever place | it comes | it has left and the last transfer is complete |
//! | a queued command, an accepted submission | the call, by a [`Kept`] | it has ended |
//! | a lock by the CPU | the touch under it | the last unlock |
//! | a touch without a lock | the touch | memory is short |
//!
//! Pins are taken by the thread that asks, which may wait and fail; they are given back by anybody, the
//! worker included, and giving back neither waits nor allocates. So the worker finds every page that it
//! moves content from or to.
//!
//! Allocations that lie nowhere and have their pages all the same are in one of two orders. *Settling*
//! ones have left, and the worker lets them go when their last operations are complete. *Touched* ones
//! go, the one touched longest ago first, when the kernel or their own client is short of memory.
//!
//! # Locking
//!
//! Both orders are part of what `Adapter::residency` (rank 1) protects. An allocation leaves them before
//! it is forgotten, so whoever finds one there can drop that reference without being the last.

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
        allocation::Allocation,
        backing::Backing,
        client::Client,
        placement::Residency,
        residence::Residence, //
    },
    units::PAGE_BYTES,
};

mod pressure;

pub(super) use self::pressure::{
    Relief,
    Step, //
};

/// Memory for one entry of an order.
pub(super) type IdleNode = RBTreeNodeReservation<u64, Arc<Allocation>>;

/// Why an allocation that lies nowhere has its pages all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Its last operations are outstanding.
    Settling,
    /// The CPU has touched it.
    Touched,
}

/// The place of an allocation in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    reason: Reason,
    stamp: u64,
}

/// Swappable allocations that lie nowhere and have their pages.
pub(crate) struct Idle {
    stamp: u64,
    settling: RBTree<u64, Arc<Allocation>>,
    touched: RBTree<u64, Arc<Allocation>>,
}

impl Idle {
    /// Returns orders without entries.
    pub(super) fn new() -> Self {
        Self {
            stamp: 0,
            settling: RBTree::new(),
            touched: RBTree::new(),
        }
    }

    fn order(&mut self, reason: Reason) -> &mut RBTree<u64, Arc<Allocation>> {
        match reason {
            Reason::Settling => &mut self.settling,
            Reason::Touched => &mut self.touched,
        }
    }

    /// Puts an allocation at the end of an order; does nothing with one that is not swappable.
    pub(super) fn enter(
        &mut self,
        reason: Reason,
        allocation: &Arc<Allocation>,
        residence: &mut Residence,
    ) {
        self.leave(allocation, residence);
        let Some(node) = residence.idle_node.take() else {
            return;
        };
        self.stamp += 1;
        let stamp = self.stamp;
        self.order(reason)
            .insert(node.into_node(stamp, allocation.clone()));
        residence.idle = Some(Position { reason, stamp });
        if reason == Reason::Touched {
            allocation
                .adapter()
                .count_touched(|pages| pages.saturating_add(allocation.size() / PAGE_BYTES));
        }
    }

    /// Takes an allocation out of its order.
    pub(super) fn leave(&mut self, allocation: &Allocation, residence: &mut Residence) {
        let Some(Position { reason, stamp }) = residence.idle.take() else {
            return;
        };
        if let Some(node) = self.order(reason).remove_node(&stamp) {
            residence.idle_node = Some(node.into_reservation());
        }
        if reason == Reason::Touched {
            allocation
                .adapter()
                .count_touched(|pages| pages.saturating_sub(allocation.size() / PAGE_BYTES));
        }
    }

    /// Returns the touched allocation with a stamp of at least `stamp`.
    fn touched_from(&self, stamp: u64) -> Option<(u64, Arc<Allocation>)> {
        let cursor = self.touched.cursor_lower_bound(&stamp)?;
        let (stamp, allocation) = cursor.current();
        Some((*stamp, allocation.clone()))
    }
}

/// Keeps the pages behind a swappable allocation in memory.
///
/// Not to be dropped under a lock, like a claim.
pub(crate) struct Kept(Arc<Allocation>);

impl Kept {
    /// Pins the pages of `allocation`; [`None`] if they stay anyhow.
    ///
    /// # Errors
    ///
    /// As [`Allocation::commit`].
    pub(super) fn new(allocation: &Arc<Allocation>) -> Result<Option<Self>> {
        if !allocation.is_swappable() {
            return Ok(None);
        }
        loop {
            {
                let mut residence = allocation.residence().lock();
                if residence.backing().is_some() {
                    residence.keepers += 1;
                    return Ok(Some(Self(allocation.clone())));
                }
            }
            // Somebody who lets it go again before it is kept makes another round.
            allocation.commit()?;
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let free = {
            let mut residence = self.0.residence().lock();
            residence.keepers -= 1;
            residence.keepers == 0 && !residence.is_resident() && residence.idle.is_none()
        };
        if free {
            self.0.adapter().let_go(&self.0);
        }
    }
}

impl Adapter {
    /// Takes the pages of a swappable allocation that nobody needs where they are. The caller drops
    /// them when it has released its locks.
    fn take_idle(
        &self,
        residency: &mut Residency,
        allocation: &Allocation,
        residence: &mut Residence,
    ) -> Option<Backing> {
        let needed = residence.keepers > 0
            || allocation.is_locked()
            || !residence.is_idle_nowhere(self.paging().completed());
        if needed || !allocation.is_swappable() {
            return None;
        }
        residency.idle.leave(allocation, residence);
        self.unmap(allocation, residence);
        residence.take_backing()
    }

    /// Gives the pages behind a swappable allocation to Linux, if nobody needs them where they are.
    pub(super) fn let_go(&self, allocation: &Allocation) {
        let backing = {
            let mut residency = self.residency().lock();
            let mut residence = allocation.residence().lock();
            self.take_idle(&mut residency, allocation, &mut residence)
        };
        drop(backing);
    }

    /// Lets those go that have left and whose last operations are complete.
    pub(super) fn let_go_settled(&self) {
        loop {
            let mut residency = self.residency().lock();
            let first = residency.idle.settling.cursor_front();
            let Some(allocation) = first.map(|first| first.current().1.clone()) else {
                return;
            };
            let mut residence = allocation.residence().lock();
            if !residence.is_settled(self.paging().completed()) {
                return;
            }
            residency.idle.leave(&allocation, &mut residence);
            let backing = self.take_idle(&mut residency, &allocation, &mut residence);
            drop(residence);
            drop(residency);
            drop(backing);
        }
    }

    /// Lets everything go that `client` has touched and does not need; says whether that was anything.
    pub(super) fn let_go_touched(&self, client: &Client) -> bool {
        let mut next = 0;
        let mut any = false;
        loop {
            let found = self.residency().lock().idle.touched_from(next);
            let Some((stamp, allocation)) = found else {
                return any;
            };
            next = stamp.saturating_add(1);
            if core::ptr::eq(&**allocation.device().client(), client) {
                self.let_go(&allocation);
                any |= allocation.residence().lock().backing().is_none();
            }
        }
    }
}
