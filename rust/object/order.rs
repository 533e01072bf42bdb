// SPDX-License-Identifier: GPL-2.0

//! In which order allocations leave a segment.
//!
//! Each segment keeps who lies in it in an [`Order`] of three trees:
//!
//! | tree | key | answers |
//! |---|---|---|
//! | `items` | client, rank, last use | which rank is this client's lowest, and who of it was used longest ago |
//! | `forecasts` | client, rank, expected use | who of them is expected last, or most overdue |
//! | `heads` | lowest rank, with the budget of the client; last use by the client; client | which clients to ask |
//!
//! Those clients that have the lowest rank of all are asked, the ones that were idle for longest first and
//! no more than [`ASKED`]; the policy chooses from whom they name ([`Order::choose`]).
//!
//! So what is true of a whole client, its budget and when it ran last, is written down in one place
//! per segment, however many allocations it has. Choosing a victim, and every change of a rank, is
//! a few steps down a tree.
//!
//! # Keys are bounds
//!
//! A rank depends on things that change often and elsewhere: pins, submissions, offers. The rank in
//! the key is therefore only a lower bound of the true one. Whoever is met at the front is looked
//! at, and if its true rank is higher it is put where it belongs and the next one is met.
//! A change that raises a rank thus costs nothing until it matters, and then one step down the tree; no
//! change is paid for twice. A change that lowers a rank is told: the allocation goes to a list that is
//! worked off before victims are chosen ([`Allocation::sink`], [`Sunk`]), and only if its key really is too
//! high, which it can only be after it was met once. The last use of a client in `heads` is a bound in the
//! same way.
//!
//! Nothing here allocates: an allocation brings a node for each of the first two trees, a client one node of `heads` per
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
        Ballot,
        Bond,
        Budget,
        Contest,
        Pace,
        Poll,
        Rank,
        Use, //
    },
    units::PAGE_BYTES,
};

/// How many clients are asked for a victim.
const ASKED: usize = 16;

/// A key in one of the orders of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Its client.
    client: u64,
    /// A lower bound of its rank.
    rank: Rank,
    /// When it was used last, or is expected to be used; in the time of its client.
    time: u64,
    /// Its number.
    number: u64,
}

/// Where an allocation stands in the order of its segment. In its residence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Among those in the order of last use.
    item: Key,
    /// Among those in the order of expected use, if it is expected.
    forecast: Option<Key>,
}

/// Memory for one allocation in an order.
pub(crate) struct EntryNodes {
    item: Option<ItemNode>,
    forecast: Option<ItemNode>,
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

/// Memory for one key.
type ItemNode = RBTreeNodeReservation<Key, Arc<Allocation>>;
/// Memory for one client in an order.
type HeadNode = RBTreeNodeReservation<Head, ()>;

/// What the orders need to know of a client. Lives in `Client::turn`.
pub(super) struct Turn {
    /// How its usage compares with its budget.
    budget: Budget,
    /// Its time, and how good forecasts are.
    pace: Pace,
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
            pace: Pace::default(),
            slots,
        })
    }

    /// Returns how the usage compares with the budget.
    pub(super) fn budget(&self) -> Budget {
        self.budget
    }

    /// Notes how the usage compares with the budget; says whether that is news. Then
    /// [`Order::settle`] wants to know in every segment.
    pub(super) fn set_budget(&mut self, budget: Budget) -> bool {
        core::mem::replace(&mut self.budget, budget) != budget
    }
}

/// The time of the adapter, counted in pages that were used, and what was learned from it.
pub(crate) struct Uses {
    clock: u64,
    /// Pages of all memory segments.
    pages: u64,
    contest: Contest,
}

impl Uses {
    /// Begins for an adapter whose memory segments have so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            clock: 0,
            pages: bytes / PAGE_BYTES,
            contest: Contest::new(),
        }
    }

    /// Notes that an allocation is used.
    pub(super) fn note(&mut self, allocation: &Allocation, residence: &mut Residence, how: Use) {
        let pages = allocation.size() / PAGE_BYTES;
        self.clock = self.clock.saturating_add(pages);
        let now = allocation.device().client().turn().lock().pace.used(
            self.clock,
            pages,
            Pace::grace(self.pages),
        );
        residence.history.used(now, how);
        self.contest.used(allocation.object_id());
    }
}

/// Who lies in one segment.
pub(crate) struct Order {
    /// The number of the segment among those of the adapter, from 0 on.
    index: usize,
    items: RBTree<Key, Arc<Allocation>>,
    forecasts: RBTree<Key, Arc<Allocation>>,
    heads: RBTree<Head, ()>,
}

impl EntryNodes {
    /// Takes memory.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            item: Some(ItemNode::new(GFP_KERNEL_ACCOUNT)?),
            forecast: Some(ItemNode::new(GFP_KERNEL_ACCOUNT)?),
        })
    }
}

impl Order {
    /// Returns the order of an empty segment.
    pub(super) fn new(index: usize) -> Self {
        Self {
            index,
            items: RBTree::new(),
            forecasts: RBTree::new(),
            heads: RBTree::new(),
        }
    }

    /// Enters an allocation, as one that may leave.
    pub(super) fn enter(&mut self, allocation: &Arc<Allocation>, residence: &mut Residence) {
        let rank = allocation.rank(residence).tied(Bond::Loose);
        self.insert(allocation, residence, rank);
        self.settle(allocation.device().client());
    }

    /// Takes an allocation out, if it is in.
    pub(super) fn leave(&mut self, allocation: &Allocation, residence: &mut Residence) {
        self.remove(residence);
        self.settle(allocation.device().client());
    }

    /// Puts an allocation that was used where it belongs now, as one that may leave.
    pub(super) fn touch(&mut self, allocation: &Arc<Allocation>, residence: &mut Residence) {
        let rank = allocation.rank(residence).tied(Bond::Loose);
        self.place(allocation, residence, rank);
    }

    /// Puts an allocation where its rank belongs; returns that.
    pub(super) fn rerank(
        &mut self,
        allocation: &Arc<Allocation>,
        residence: &mut Residence,
    ) -> Rank {
        let rank = allocation.rank(residence);
        if residence.entry.is_some_and(|entry| entry.rank() != rank) {
            self.place(allocation, residence, rank);
        }
        rank
    }

    /// Changes where an allocation stands, if it is in.
    fn place(&mut self, allocation: &Arc<Allocation>, residence: &mut Residence, rank: Rank) {
        if residence.entry.is_some() {
            self.remove(residence);
            self.insert(allocation, residence, rank);
            self.settle(allocation.device().client());
        }
    }

    /// Enters an allocation that is not in.
    fn insert(&mut self, allocation: &Arc<Allocation>, residence: &mut Residence, rank: Rank) {
        let history = residence.history;
        let key = |time| Key {
            client: allocation.device().client().id(),
            rank,
            time,
            number: allocation.object_id(),
        };
        let item = key(history.last());
        let forecast = history.expected().map(key);
        if let Some(node) = residence.nodes.item.take() {
            self.items.insert(node.into_node(item, allocation.clone()));
        }
        if let Some(key) = forecast {
            if let Some(node) = residence.nodes.forecast.take() {
                self.forecasts
                    .insert(node.into_node(key, allocation.clone()));
            }
        }
        residence.entry = Some(Entry { item, forecast });
    }

    /// Takes an allocation out. Somebody else knows it, too: these are not the last references.
    fn remove(&mut self, residence: &mut Residence) {
        let Some(entry) = residence.entry.take() else {
            return;
        };
        if let Some(node) = self.items.remove_node(&entry.item) {
            residence.nodes.item = Some(node.into_reservation());
        }
        let forecast = entry
            .forecast
            .and_then(|key| self.forecasts.remove_node(&key));
        if let Some(node) = forecast {
            residence.nodes.forecast = Some(node.into_reservation());
        }
    }

    /// Puts a client where it belongs, after what it has here or its budget has changed.
    pub(super) fn settle(&mut self, client: &Client) {
        let first = self.first_of(client.id());
        let mut turn = client.turn().lock();
        let (budget, active) = (turn.budget, turn.pace.active());
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

    /// Returns who leaves next, or what ties those with the lowest rank if nobody may leave; [`None`]
    /// if nobody is there.
    pub(super) fn choose(&mut self, uses: &mut Uses) -> Option<Result<Arc<Allocation>, Bond>> {
        loop {
            let front = *self.heads.cursor_front()?.current().0;
            if self.correct(front) {
                continue;
            }
            if !front.rank.may_leave() {
                return Some(Err(front.rank.bond()));
            }
            if let Some(chosen) = self.ask(front.rank, uses) {
                return Some(Ok(chosen));
            }
        }
    }

    /// Asks the clients of this lowest rank; [`None`] if one of them turns out to have none of it.
    fn ask(&mut self, rank: Rank, uses: &mut Uses) -> Option<Arc<Allocation>> {
        let mut poll = Poll::new();
        let mut next = Head {
            rank,
            active: 0,
            client: 0,
        };
        for _ in 0..ASKED {
            let Some(cursor) = self.heads.cursor_lower_bound(&next) else {
                break;
            };
            let head = *cursor.current().0;
            if head.rank != rank {
                break;
            }
            if self.correct(head) {
                return None;
            }
            poll.add(self.ballot(head, uses)?);
            next = Head {
                client: head.client.saturating_add(1),
                ..head
            };
        }
        let Uses {
            clock,
            pages,
            contest,
        } = uses;
        let key = poll.finish(contest, *clock, Pace::patience(*pages))?;
        self.items.get(&key).cloned()
    }

    /// Returns whom a client names; [`None`] if one of them had another rank, which is corrected.
    fn ballot(&mut self, head: Head, uses: &mut Uses) -> Option<Ballot<Key>> {
        let first = self.first_of(head.client)?;
        let oldest = self.items.get(&first)?.clone();
        let pace = {
            let mut turn = oldest.device().client().turn().lock();
            turn.pace.learn(uses.contest.verdict(head.client));
            turn.pace
        };
        let mut ballot = Ballot::new(head.client, &pace, uses.clock, Pace::grace(uses.pages));
        {
            let residence = oldest.residence().lock();
            ballot.longest_ago(first, first.number, &residence.history);
        }
        for key in self.ends_of(first.client, first.rank).into_iter().flatten() {
            let allocation = self.forecasts.get(&key)?.clone();
            let mut residence = allocation.residence().lock();
            if self.rerank(&allocation, &mut residence) != first.rank {
                return None;
            }
            let item = residence.entry.map(|entry| entry.item)?;
            ballot.expected(item, key.number, &residence.history);
        }
        Some(ballot)
    }

    /// Returns who of a client and rank is expected first and last.
    fn ends_of(&self, client: u64, rank: Rank) -> [Option<Key>; 2] {
        let within = |key: &Key| (key.client, key.rank) == (client, rank);
        let low = Key {
            client,
            rank,
            ..Key::default()
        };
        let high = Key {
            time: u64::MAX,
            number: u64::MAX,
            ..low
        };
        let first = self.forecasts.cursor_lower_bound(&low);
        let first = first.map(|cursor| *cursor.current().0).filter(within);
        let last = match self.forecasts.cursor_lower_bound(&high) {
            Some(cursor) => cursor.peek_prev().map(|(key, _)| *key),
            None => self
                .forecasts
                .cursor_back()
                .map(|cursor| *cursor.current().0),
        };
        [first, last.filter(within)]
    }

    /// Corrects what is outdated of a client's first allocation and its time of use; says whether
    /// anything was.
    fn correct(&mut self, head: Head) -> bool {
        let Some(first) = self.first_of(head.client) else {
            return false;
        };
        let Some(allocation) = self.items.get(&first).cloned() else {
            return false;
        };
        let rank = self.rerank(&allocation, &mut allocation.residence().lock());
        rank != first.rank || self.refresh(allocation.device().client(), head)
    }

    /// Corrects the time of use of a client; says whether it was outdated.
    fn refresh(&mut self, client: &Client, head: Head) -> bool {
        let mut turn = client.turn().lock();
        let active = turn.pace.active();
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
        residence.entry.map(|entry| entry.item)
    }

    /// Puts the one with this key back that was set aside.
    pub(super) fn put_back(&mut self, key: &Key) {
        if let Some(allocation) = self.get(key).cloned() {
            self.restore(&allocation);
        }
    }

    /// Puts one back that was set aside, whatever its key is by now.
    pub(super) fn restore(&mut self, allocation: &Arc<Allocation>) {
        let mut residence = allocation.residence().lock();
        residence.wanted = false;
        self.rerank(allocation, &mut residence);
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

impl Entry {
    /// Returns the lower bound of the rank.
    pub(super) fn rank(&self) -> Rank {
        self.item.rank
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
