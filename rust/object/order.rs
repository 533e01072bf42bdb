// SPDX-License-Identifier: GPL-2.0

//! In which order allocations leave a segment.
//!
//! Each segment keeps who lies in it in an [`Order`] of two trees:
//!
//! | tree | key | answers |
//! |---|---|---|
//! | `items` | client, rank, last use | who of this client leaves first |
//! | `heads` | rank of that one with the budget of the client, last use by the client, client | which client is next |
//!
//! So what is true of a whole client, its budget and when it ran last, is written down in one place
//! per segment, however many allocations it has. Choosing a victim, and every change of a rank, is
//! a few steps down a tree.
//!
//! # Keys are bounds
//!
//! A rank depends on things that change often and elsewhere: pins, submissions, offers. The rank in
//! the key is therefore only a lower bound of the true one. Whoever is met at the front is looked
//! at, and if its true rank is higher it is put where it belongs and the next one is met ([`Order::first`]).
//! A change that raises a rank thus costs nothing until it matters, and then one step down the tree; no
//! change is paid for twice. A change that lowers a rank is told: the allocation goes to a list that is
//! worked off before victims are chosen ([`Allocation::sink`], [`Sunk`]), and only if its key really is too
//! high, which it can only be after it was met once. The last use of a client in `heads` is a bound in the
//! same way.
//!
//! Nothing here allocates: an allocation brings the node of `items`, a client one node of `heads` per
//! segment, both made when they are.
//!
//! # Locking
//!
//! `Adapter::residency` (rank 1) protects orders. `Client::turn` is a leaf spinlock; it is only taken
//! while that one is held, so what it protects is steady for who holds either. `Sunk::list` is a leaf
//! spinlock.

use kernel::{
    list::{
        List,
        ListArc, //
    },
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        SpinLock, //
    },
};

use crate::{
    object::{
        allocation::Allocation,
        client::Client,
        residence::Residence, //
    },
    policy::eviction::{
        Bond,
        Budget,
        Rank, //
    },
};

/// Where an allocation stands in the order of its segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Its client.
    client: u64,
    /// A lower bound of its rank.
    rank: Rank,
    /// When it was used last; nobody else was used at that time.
    stamp: u64,
}

/// Where a client stands in the order of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    /// The rank of its first allocation, with its budget.
    rank: Rank,
    /// A lower bound of when it used anything last.
    active: u64,
    /// The client.
    client: u64,
}

/// Memory for one allocation in an order.
pub(crate) type ItemNode = RBTreeNodeReservation<Key, Arc<Allocation>>;
/// Memory for one client in an order.
type HeadNode = RBTreeNodeReservation<Head, ()>;

/// What the orders need to know of a client. Lives in `Client::turn`.
pub(super) struct Turn {
    /// How its usage compares with its budget.
    budget: Budget,
    /// When it used anything last.
    active: u64,
    /// Where it stands in each segment.
    slots: KVec<Slot>,
}

/// Where a client stands in one segment.
struct Slot {
    /// Its key, if anything of it lies there.
    head: Option<Head>,
    /// Memory for it, if not.
    node: Option<HeadNode>,
}

impl Turn {
    /// Returns what is known of a new client on an adapter with so many segments.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new(segments: usize) -> Result<Self> {
        let mut slots = KVec::with_capacity(segments, GFP_KERNEL_ACCOUNT)?;
        for _ in 0..segments {
            let slot = Slot {
                head: None,
                node: Some(HeadNode::new(GFP_KERNEL_ACCOUNT)?),
            };
            slots.push(slot, GFP_KERNEL_ACCOUNT)?;
        }
        Ok(Self {
            budget: Budget::Within,
            active: 0,
            slots,
        })
    }

    /// Notes that the client has used something at the time `stamp`.
    pub(super) fn used(&mut self, stamp: u64) {
        self.active = stamp;
    }

    /// Notes how the usage compares with the budget; says whether that is news. Then
    /// [`Order::settle`] wants to know in every segment.
    pub(super) fn set_budget(&mut self, budget: Budget) -> bool {
        core::mem::replace(&mut self.budget, budget) != budget
    }
}

/// Who lies in one segment.
pub(crate) struct Order {
    /// The number of the segment among those of the adapter, from 0 on.
    index: usize,
    items: RBTree<Key, Arc<Allocation>>,
    heads: RBTree<Head, ()>,
}

impl Order {
    /// Returns the order of an empty segment.
    pub(super) fn new(index: usize) -> Self {
        Self {
            index,
            items: RBTree::new(),
            heads: RBTree::new(),
        }
    }

    /// Enters an allocation that was used last at the time `stamp`.
    pub(super) fn enter(
        &mut self,
        allocation: &Arc<Allocation>,
        residence: &mut Residence,
        stamp: u64,
    ) {
        let Some(node) = residence.take_node() else {
            return;
        };
        let client = allocation.device().client();
        let key = Key {
            client: client.id(),
            rank: allocation.rank(residence).tied(Bond::Loose),
            stamp,
        };
        residence.key = Some(key);
        self.items.insert(node.into_node(key, allocation.clone()));
        self.settle(client);
    }

    /// Takes an allocation out, if it is in.
    pub(super) fn leave(&mut self, allocation: &Allocation, residence: &mut Residence) {
        let node = residence
            .key
            .take()
            .and_then(|key| self.items.remove_node(&key));
        if let Some(node) = node {
            // Somebody else knows the allocation, too: this is not the last reference.
            residence.give_node(node.into_reservation());
            self.settle(allocation.device().client());
        }
    }

    /// Makes an allocation the one used last.
    pub(super) fn touch(
        &mut self,
        allocation: &Arc<Allocation>,
        residence: &mut Residence,
        stamp: u64,
    ) {
        let rank = allocation.rank(residence).tied(Bond::Loose);
        self.place(allocation, residence, |key| Key { rank, stamp, ..key });
    }

    /// Puts an allocation where its rank belongs; returns that.
    pub(super) fn rerank(
        &mut self,
        allocation: &Arc<Allocation>,
        residence: &mut Residence,
    ) -> Rank {
        let rank = allocation.rank(residence);
        self.place(allocation, residence, |key| Key { rank, ..key });
        rank
    }

    /// Changes the key of an allocation, if it is in.
    fn place(
        &mut self,
        allocation: &Arc<Allocation>,
        residence: &mut Residence,
        change: impl FnOnce(Key) -> Key,
    ) {
        let Some(old) = residence.key else { return };
        let new = change(old);
        if new == old {
            return;
        }
        if let Some(node) = self.items.remove_node(&old) {
            let node = node.into_reservation();
            self.items.insert(node.into_node(new, allocation.clone()));
            residence.key = Some(new);
            self.settle(allocation.device().client());
        }
    }

    /// Puts a client where it belongs, after what it has here or its budget has changed.
    pub(super) fn settle(&mut self, client: &Client) {
        let first = self.first_of(client.id());
        let mut turn = client.turn().lock();
        let (budget, active) = (turn.budget, turn.active);
        let head = first.map(|key| Head {
            rank: key.rank.with(budget),
            active,
            client: client.id(),
        });
        let Some(slot) = turn.slots.get_mut(self.index) else {
            return;
        };
        // An outdated time of use is corrected when the client is met.
        if slot.head.map(|head| head.rank) != head.map(|head| head.rank) {
            slot.put(head, &mut self.heads);
        }
    }

    /// Returns the one that leaves first and its key, or what ties it if nobody may leave;
    /// [`None`] if nobody is there.
    pub(super) fn first(&mut self) -> Option<Result<(Key, Arc<Allocation>), Bond>> {
        loop {
            let head = *self.heads.cursor_front()?.current().0;
            let key = self.first_of(head.client)?;
            let allocation = self.items.get(&key)?.clone();
            let rank = self.rerank(&allocation, &mut allocation.residence().lock());
            if rank != key.rank || self.refresh(allocation.device().client(), head) {
                continue;
            }
            return Some(match rank.bond() {
                Bond::Loose => Ok((key, allocation)),
                bond => Err(bond),
            });
        }
    }

    /// Corrects the time of use of a client that is met at the front; says whether it was outdated.
    fn refresh(&mut self, client: &Client, head: Head) -> bool {
        let mut turn = client.turn().lock();
        let active = turn.active;
        if active == head.active {
            return false;
        }
        if let Some(slot) = turn.slots.get_mut(self.index) {
            slot.put(Some(Head { active, ..head }), &mut self.heads);
        }
        true
    }

    /// Sets one aside that is to leave, so that the next one is met; returns its new key.
    pub(super) fn set_aside(&mut self, allocation: &Arc<Allocation>) -> Option<Key> {
        let mut residence = allocation.residence().lock();
        residence.wanted = true;
        self.rerank(allocation, &mut residence);
        residence.key
    }

    /// Puts one back that was set aside.
    pub(super) fn put_back(&mut self, key: &Key) {
        let Some(allocation) = self.get(key).cloned() else {
            return;
        };
        let mut residence = allocation.residence().lock();
        residence.wanted = false;
        self.rerank(&allocation, &mut residence);
    }

    /// Returns the allocation with this key.
    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Allocation>> {
        self.items.get(key)
    }

    /// Returns everybody, one client after the other.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<Allocation>)> {
        self.items.iter()
    }

    /// Returns the first allocation of a client.
    fn first_of(&self, client: u64) -> Option<Key> {
        let lowest = Key {
            client,
            ..Key::default()
        };
        let cursor = self.items.cursor_lower_bound(&lowest)?;
        let key = *cursor.current().0;
        (key.client == client).then_some(key)
    }
}

impl Key {
    /// Returns the lower bound of the rank.
    pub(super) fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns when it was used last.
    pub(super) fn stamp(&self) -> u64 {
        self.stamp
    }
}

impl Slot {
    /// Changes where the client stands.
    fn put(&mut self, head: Option<Head>, heads: &mut RBTree<Head, ()>) {
        if let Some(old) = self.head.take() {
            self.node = heads.remove_node(&old).map(RBTreeNode::into_reservation);
        }
        if let Some(head) = head {
            if let Some(node) = self.node.take() {
                heads.insert(node.into_node(head, ()));
                self.head = Some(head);
            }
        }
    }
}

/// Allocations whose rank may be lower than their key says.
#[pin_data]
pub(crate) struct Sunk {
    #[pin]
    list: SpinLock<List<Allocation, 1>>,
}

impl Sunk {
    /// Returns an empty list.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            list <- new_spinlock!(List::new(), "Sunk::list"),
        })
    }

    /// Enters one, unless it is entered already.
    pub(super) fn push(&self, allocation: &Arc<Allocation>) {
        if let Some(entry) = ListArc::try_from_arc_or_drop(allocation.clone()) {
            self.list.lock().push_back(entry);
        }
    }

    /// Takes one.
    pub(super) fn pop(&self) -> Option<Arc<Allocation>> {
        let entry = self.list.lock().pop_front();
        entry.map(ListArc::into_arc)
    }
}
