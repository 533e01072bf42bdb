// SPDX-License-Identifier: GPL-2.0

//! The page tables of a client: which there are, and which of them have a place.
//!
//! A table is *made* in the application thread, by the call after which it may be needed, and charged
//! to the client. It is *placed* by the worker when an entry in it leads somewhere for the first time, at the
//! high end of the segment that the backend names; that takes no memory. A placed table is *fresh* until all
//! its entries say nothing, and *linked* when the table above leads to it. Entries above say nothing, or zero,
//! where a table below is not linked.
//!
//! | state | place | content | the table above |
//! |---|---|---|---|
//! | `Away` | no | - | does not lead to it |
//! | `Fresh` | yes | anything | does not lead to it |
//! | `Linked` | yes | as [`super::address_space`] says, but for what is stale | leads to it |
//!
//! The root is never linked: `Linked` means of it that its entries are written.
//!
//! When the client is gone, and with it everything that runs in its space, the worker takes the
//! places back.
//!
//! # Locking
//!
//! `ClientTables::inner` is a mutex of rank 4, never together with `AddressSpace::mappings`. It is held to
//! look up, to add and to change a state, not while operations are built. States and places change under
//! `Adapter::residency` as well.

use core::ops::Range;

use kernel::{
    list::{
        impl_list_arc_safe,
        impl_list_item,
        AtomicTracker,
        ListArc,
        ListLinks,
        TryNewListArc, //
    },
    new_mutex,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
};

use crate::{
    abstractions::{
        pages::Charge,
        trace, //
    },
    backend::capabilities::Translation,
    object::{
        adapter::Adapter,
        page_table::{
            Description,
            PageTable, //
        },
        segment::Segment,
        worker::Worker, //
    },
    policy::{
        page_table::{
            Shape,
            TABLE_ENTRIES, //
        },
        placement::Chain,
    },
    units::{
        GpuVirtualAddress,
        Place,
        SegmentId, //
    },
};

/// How far a table has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has no place.
    Away,
    /// It has a place, and nothing is written there.
    Fresh,
    /// It is in force.
    Linked,
}

/// A table and its place.
struct Held {
    table: PageTable,
    /// Its pages in a memory segment.
    chain: Option<Chain>,
    state: State,
}

/// Names a table: its level, and the first address that it translates.
type Name = (u32, u64);

/// What the worker needs to know of a table to write it.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// Its level, 0 for a leaf.
    pub(super) level: u32,
    /// The first address that it translates.
    pub(super) address: GpuVirtualAddress,
    /// How many entries it has.
    pub(super) entries: u32,
    /// Where it is.
    pub(super) place: Place,
    /// How far it has come.
    pub(super) state: State,
}

/// The tables of a client.
#[pin_data]
pub(crate) struct ClientTables {
    shape: Shape,
    segment: SegmentId,
    #[pin]
    inner: Mutex<Inner>,
    /// The number of the paging buffer with which what was written last is done.
    settled: Atomic<u64>,
    /// Whether translations of the space are flushed for good.
    forgotten: Atomic<bool>,
    #[pin]
    links: ListLinks,
    #[pin]
    tracker: AtomicTracker,
}

/// The tables by name.
struct Inner {
    tables: RBTree<Name, Held>,
}

impl_list_arc_safe! {
    impl ListArcSafe<0> for ClientTables { tracked_by tracker: AtomicTracker; }
}

impl_list_item! {
    impl ListItem<0> for ClientTables { using ListLinks { self.links }; }
}

/// The claim of a space on its tables; when it goes, the worker takes their places back.
pub(super) struct Claim {
    tables: Arc<ClientTables>,
    worker: Arc<Worker>,
}

impl Claim {
    /// Makes the first tables of a client: the root, and one table of each level below it (VA-6).
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `EINVAL`: there is no such shape.
    pub(super) fn new(adapter: &Adapter, translation: &Translation) -> Result<Self> {
        let tables = Arc::pin_init(
            try_pin_init!(ClientTables {
                shape: Shape::new(translation.levels).ok_or(EINVAL)?,
                segment: translation.client_tables,
                inner <- new_mutex!(Inner { tables: RBTree::new() }, "ClientTables::inner"),
                settled: Atomic::new(0),
                forgotten: Atomic::new(false),
                links <- ListLinks::new(),
                tracker <- AtomicTracker::new(),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let first = translation.addresses.start;
        for level in (0..translation.levels).rev() {
            tables.make(adapter, level, GpuVirtualAddress(first))?;
        }
        Ok(Self {
            tables,
            worker: adapter.worker().clone(),
        })
    }

    /// Returns the tables.
    pub(super) fn tables(&self) -> &Arc<ClientTables> {
        &self.tables
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        Worker::bury_tables(&self.worker, &self.tables);
    }
}

impl ClientTables {
    /// Returns the levels and their reach.
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the name of the table of a level that translates `address`.
    fn name(&self, level: u32, address: u64) -> Name {
        let span = self.shape.span(level, GpuVirtualAddress(address));
        (level, span.start)
    }

    /// Makes a table unless there is one.
    fn make(&self, adapter: &Adapter, level: u32, address: GpuVirtualAddress) -> Result {
        let name = self.name(level, address.0);
        if self.inner.lock().tables.get(&name).is_some() {
            return Ok(());
        }
        let table = PageTable::new(&Description {
            number: adapter.next_number(),
            level,
            entries: TABLE_ENTRIES,
            address: GpuVirtualAddress(name.1),
            segment: self.segment,
            charge: Charge::Client,
        })?;
        let held = Held {
            table,
            chain: None,
            state: State::Away,
        };
        let node = RBTreeNode::new(name, held, GFP_KERNEL_ACCOUNT)?;
        let mut inner = self.inner.lock();
        // Another thread may have made it; what is replaced has no place yet, or stays.
        let surplus = match inner.tables.get(&name) {
            Some(_) => Some(node),
            None => {
                inner.tables.insert(node);
                None
            }
        };
        drop(inner);
        drop(surplus);
        Ok(())
    }

    /// Makes the tables that pages of `range` need.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `ENOSPC`: the root does not reach so far.
    pub(super) fn provide(&self, adapter: &Adapter, range: &Range<u64>) -> Result {
        self.check_reach(range)?;
        for level in (0..self.shape.root()).rev() {
            let mut next = range.start;
            while next < range.end {
                self.make(adapter, level, GpuVirtualAddress(next))?;
                next = self.shape.span(level, GpuVirtualAddress(next)).end;
            }
        }
        Ok(())
    }

    /// Makes the tables that a range needs whose entries are all the same: those at its ends, where an
    /// entry above would say too much.
    ///
    /// # Errors
    ///
    /// As [`provide`](Self::provide).
    pub(super) fn provide_ends(&self, adapter: &Adapter, range: &Range<u64>) -> Result {
        self.check_reach(range)?;
        for level in (0..self.shape.root()).rev() {
            for address in [range.start, range.end.saturating_sub(1)] {
                let span = self.shape.span(level, GpuVirtualAddress(address));
                if span.start < range.start || span.end > range.end {
                    self.make(adapter, level, GpuVirtualAddress(address))?;
                }
            }
        }
        Ok(())
    }

    fn check_reach(&self, range: &Range<u64>) -> Result {
        match range.end <= self.shape.reach(TABLE_ENTRIES) {
            true => Ok(()),
            false => Err(ENOSPC),
        }
    }

    /// Returns the table of a level that translates `address`, if it has a place.
    pub(super) fn find(&self, level: u32, address: u64) -> Option<Known> {
        let inner = self.inner.lock();
        inner.tables.get(&self.name(level, address))?.known()
    }

    /// Returns whether the root has a place.
    pub(super) fn is_in_use(&self) -> bool {
        self.find(self.shape.root(), 0).is_some()
    }

    /// Returns the segment in which the tables lie.
    pub(super) fn segment(&self) -> SegmentId {
        self.segment
    }

    /// Returns the first table of a level in `range` that has a place.
    pub(super) fn first_in(&self, level: u32, range: &Range<u64>) -> Option<Known> {
        let inner = self.inner.lock();
        let mut start = range.start;
        loop {
            let cursor = inner.tables.cursor_lower_bound(&(level, start))?;
            let ((found, address), held) = cursor.current();
            if *found != level || *address >= range.end {
                return None;
            }
            if let Some(known) = held.known() {
                return Some(known);
            }
            start = address.saturating_add(1);
        }
    }

    /// Calls `each` with every table until one fails, the root first, for the windows.
    pub(crate) fn try_for_each<E>(
        &self,
        mut each: impl FnMut(&PageTable) -> Result<(), E>,
    ) -> Result<(), E> {
        let inner = self.inner.lock();
        for level in (0..self.shape.levels()).rev() {
            let level_only = inner
                .tables
                .values()
                .filter(|held| held.table.level() == level);
            for held in level_only {
                each(&held.table)?;
            }
        }
        Ok(())
    }

    /// Returns whether the table of a level that translates `address` needs a place and has none: it was
    /// made.
    pub(super) fn is_away(&self, level: u32, address: GpuVirtualAddress) -> bool {
        let inner = self.inner.lock();
        let held = inner.tables.get(&self.name(level, address.0));
        held.is_some_and(|held| held.state == State::Away)
    }

    /// Gives a table a place in one of `segments`; says whether there was room.
    pub(super) fn place(
        &self,
        segments: &mut [Segment],
        level: u32,
        address: GpuVirtualAddress,
        cause: trace::Cause,
    ) -> bool {
        let mut inner = self.inner.lock();
        let name = self.name(level, address.0);
        let Some(held) = inner.tables.get_mut(&name) else {
            return true;
        };
        let segment = segments.iter_mut().find(|one| one.id == self.segment);
        let taken = match segment {
            Some(segment) => match segment.take_table(held.table.bytes()) {
                Some(chain) => {
                    let place = segment.place_in(&chain, 0);
                    held.chain = Some(chain);
                    place
                }
                None => None,
            },
            None => held.table.own_place(),
        };
        if taken.is_none() {
            return false;
        }
        held.table.put(taken, cause);
        held.state = State::Fresh;
        true
    }

    /// Notes that a table is in force.
    pub(super) fn note_linked(&self, level: u32, address: GpuVirtualAddress) {
        let name = self.name(level, address.0);
        if let Some(held) = self.inner.lock().tables.get_mut(&name) {
            held.state = State::Linked;
        }
    }

    /// Notes with which paging buffer what was written last is done.
    pub(super) fn settle(&self, number: u64) {
        self.settled.store(number, Relaxed);
    }

    /// Returns whether everything that was written is done.
    pub(super) fn is_settled(&self, completed: u64) -> bool {
        self.settled.load(Relaxed) <= completed
    }

    /// Returns whether translations of the space are flushed for good.
    pub(super) fn is_forgotten(&self) -> bool {
        self.forgotten.load(Relaxed)
    }

    /// Notes that translations of the space are flushed for good; returns the place of the root, if there
    /// can be any.
    pub(super) fn forget(&self) -> Option<Place> {
        self.forgotten.store(true, Relaxed);
        let root = self.find(self.shape.root(), 0)?;
        (root.state == State::Linked).then_some(root.place)
    }

    /// Takes all places back. Nobody works in the space any more.
    pub(super) fn vacate(this: ListArc<Self>, segments: &mut [Segment]) -> ListArc<Self> {
        let mut inner = this.inner.lock();
        for held in inner.tables.values_mut() {
            let segment = segments.iter_mut().find(|one| one.id == this.segment);
            if let (Some(segment), Some(chain)) = (segment, held.chain.take()) {
                segment.give_table(chain);
            }
            if held.state != State::Away {
                held.table.put(None, trace::Cause::Discard);
            }
            held.state = State::Away;
        }
        drop(inner);
        this
    }
}

impl Held {
    fn known(&self) -> Option<Known> {
        Some(Known {
            level: self.table.level(),
            address: self.table.address(),
            entries: self.table.entries(),
            place: self.table.place()?,
            state: self.state,
        })
    }
}
