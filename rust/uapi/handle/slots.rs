// SPDX-License-Identifier: GPL-2.0

//! Where the things behind handles are kept: numbered slots in leaves of one page each.
//!
//! A slot is found in three steps of seven bits: root, branch, leaf. Leaves come and go with the
//! number of slots in use, and nothing that is in use ever moves. Free slots form a queue: the one
//! that became free first is used first, and a leaf is added before the queue runs short, so that it
//! takes long until a slot is used again. Each use of a slot has a generation of its own, which
//! tells a handle of today from one of yesterday; a branch remembers where a leaf that went has to
//! continue.
//!
//! A thing may have an owner, and an owner may have many. Their slots form a list, so that all can
//! be found when the owner goes. Owners have no owner themselves.
//!
//! This file knows no locks: whoever has `&mut Slots` has the lock of the table. All steps take
//! constant time, except [`Slots::grow`] and giving back a leaf, which go through the slots of one
//! leaf. Memory is taken before the lock and freed after it.

use core::mem;

use kernel::{
    alloc::Flags,
    prelude::*, //
};
use pin_init::init_array_from_fn;

/// Bits of an index that one level decodes.
const LEVEL_BITS: u32 = 7;
/// Entries of the root, of a branch and of a leaf.
const FANOUT: usize = 1 << LEVEL_BITS;
/// Slots of one leaf.
const LEAF_SLOTS: u32 = 1 << LEVEL_BITS;
/// The most slots there can be.
pub(super) const MAX_SLOTS: u32 = 1 << (3 * LEVEL_BITS);
/// Free slots that must remain before an old one is used again, as long as there can be new ones.
const SPARE_SLOTS: u32 = LEAF_SLOTS / 2;
/// Free slots that are kept when a leaf is given back.
const KEPT_SLOTS: u32 = 2 * LEAF_SLOTS;
/// No slot.
const NONE: u32 = u32::MAX;

/// One page of slots.
pub(super) type Leaf<O> = [Slot<O>; FANOUT];

/// A use of a slot: its number and which use of it is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Number of the slot, below [`MAX_SLOTS`].
    pub(super) index: u32,
    /// Which use of the slot.
    pub(super) generation: u8,
}

/// Returns the places of a slot in root, branch and leaf. That in the root is out of range for what
/// is no slot.
fn path(index: u32) -> (usize, usize, usize) {
    // CAST: `usize` has 64 bits wherever this driver runs.
    let index = index as usize;
    let mask = FANOUT - 1;
    (
        index >> (2 * LEVEL_BITS),
        (index >> LEVEL_BITS) & mask,
        index & mask,
    )
}

/// What a slot holds.
enum State<O> {
    /// Nothing; the slot is in the queue of free ones.
    Free,
    /// A promise: something is being built for it.
    Reserved,
    /// Something that can be found.
    Live(O),
    /// An owner that has been taken out; what it owns has not all gone yet.
    Emptied,
}

/// Whether the request that is being checked has named this slot already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Unnamed,
    Named,
}

/// A place for one thing.
///
/// `next`, `previous` and `owner` are numbers of slots, or [`NONE`]. Of a free slot the first two
/// are its neighbours in the queue of free ones, of a slot with an owner those in the list of that
/// owner. Of a slot without owner `next` is the first one of its own list.
pub(super) struct Slot<O> {
    state: State<O>,
    generation: u8,
    mark: Mark,
    next: u32,
    previous: u32,
    owner: u32,
}

impl<O> Slot<O> {
    const fn free() -> Self {
        Self {
            state: State::Free,
            generation: 0,
            mark: Mark::Unnamed,
            next: NONE,
            previous: NONE,
            owner: NONE,
        }
    }
}

/// What a branch knows about the place of a leaf.
#[derive(Clone, Copy)]
struct Place {
    /// Slots of the leaf that are not free.
    used: u8,
    /// Generation with which the slots of the leaf began, or will begin.
    generation: u8,
}

/// The middle level.
pub(super) struct Branch<O> {
    leaves: [Option<KBox<Leaf<O>>>; FANOUT],
    places: [Place; FANOUT],
    present: usize,
}

/// What is missing to have more slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortage {
    /// Memory for slots.
    Leaf,
    /// Memory for leaves.
    Branch,
    /// Nothing can be added: all slots are in use.
    Full,
}

/// Memory for more slots.
pub(super) enum Growth<O> {
    /// Room for slots.
    Leaf(KBox<Leaf<O>>),
    /// Room for leaves.
    Branch(KBox<Branch<O>>),
}

impl<O> Growth<O> {
    /// Takes memory against a shortage.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `ENOSPC`: all slots are in use.
    pub(super) fn new(shortage: Shortage, flags: Flags) -> Result<Self> {
        match shortage {
            Shortage::Leaf => {
                let slots = init_array_from_fn::<_, FANOUT, _, Error>(|_| Ok(Slot::free()));
                Ok(Self::Leaf(KBox::init(slots, flags)?))
            }
            Shortage::Branch => {
                let branch = Branch {
                    leaves: [const { None }; FANOUT],
                    places: [Place {
                        used: 0,
                        generation: 0,
                    }; FANOUT],
                    present: 0,
                };
                Ok(Self::Branch(KBox::new(branch, flags)?))
            }
            Shortage::Full => Err(ENOSPC),
        }
    }
}

/// What comes out of a slot that is given up: what was in it, and a leaf that has become empty, to
/// be dropped after the lock is released.
pub(super) type Removed<O> = (Option<O>, Option<KBox<Leaf<O>>>);

/// All slots of a table.
pub(super) struct Slots<O> {
    root: [Option<KBox<Branch<O>>>; FANOUT],
    /// Slots that exist.
    total: u32,
    /// The queue of free slots: its ends and its length.
    first_free: u32,
    last_free: u32,
    free: u32,
}

impl<O> Slots<O> {
    /// Returns a set without slots.
    pub(super) const fn new() -> Self {
        Self {
            root: [const { None }; FANOUT],
            total: 0,
            first_free: NONE,
            last_free: NONE,
            free: 0,
        }
    }

    fn slot(&self, index: u32) -> Option<&Slot<O>> {
        let (branch, leaf, slot) = path(index);
        self.root
            .get(branch)?
            .as_ref()?
            .leaves
            .get(leaf)?
            .as_ref()?
            .get(slot)
    }

    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<O>> {
        let (branch, leaf, slot) = path(index);
        self.root
            .get_mut(branch)?
            .as_mut()?
            .leaves
            .get_mut(leaf)?
            .as_mut()?
            .get_mut(slot)
    }

    /// Finds what lies behind a key.
    pub(super) fn find(&self, key: Key) -> Option<&O> {
        match self.slot(key.index) {
            Some(Slot {
                state: State::Live(object),
                generation,
                ..
            }) if *generation == key.generation => Some(object),
            _ => None,
        }
    }

    /// Finds the first thing in a slot with a number of at least `index`.
    pub(super) fn at_least(&self, index: u32) -> Option<(Key, &O)> {
        let mut index = index;
        while index < MAX_SLOTS {
            let (branch, leaf, _) = path(index);
            let Some(Some(branch)) = self.root.get(branch) else {
                index = (index | (LEAF_SLOTS * LEAF_SLOTS - 1)) + 1;
                continue;
            };
            let Some(Some(leaf)) = branch.leaves.get(leaf) else {
                index = (index | (LEAF_SLOTS - 1)) + 1;
                continue;
            };
            let first = index & !(LEAF_SLOTS - 1);
            for (slot, number) in leaf.iter().zip(first..) {
                if let (State::Live(object), true) = (&slot.state, number >= index) {
                    let key = Key {
                        index: number,
                        generation: slot.generation,
                    };
                    return Some((key, object));
                }
            }
            index = first + LEAF_SLOTS;
        }
        None
    }

    /// Says what is missing before `count` slots can be reserved.
    pub(super) fn shortage(&self, count: u32) -> Option<Shortage> {
        if self.free >= count.saturating_add(SPARE_SLOTS) {
            return None;
        }
        if self.total == MAX_SLOTS {
            return (self.free < count).then_some(Shortage::Full);
        }
        match self.place_for_leaf() {
            Some(_) => Some(Shortage::Leaf),
            None => Some(Shortage::Branch),
        }
    }

    /// Finds the lowest branch that has room for a leaf, and the place there.
    fn place_for_leaf(&self) -> Option<(usize, usize)> {
        for (number, branch) in self.root.iter().enumerate() {
            let Some(branch) = branch else { continue };
            if branch.present < FANOUT {
                let place = branch.leaves.iter().position(|leaf| leaf.is_none())?;
                return Some((number, place));
            }
        }
        None
    }

    /// Adds memory. Gives it back if there is no use for it any more.
    pub(super) fn grow(&mut self, growth: Growth<O>) -> Option<Growth<O>> {
        match growth {
            Growth::Branch(branch) => {
                if self.place_for_leaf().is_some() {
                    return Some(Growth::Branch(branch));
                }
                match self.root.iter_mut().find(|place| place.is_none()) {
                    Some(place) => *place = Some(branch),
                    None => return Some(Growth::Branch(branch)),
                }
            }
            Growth::Leaf(leaf) => {
                let Some((branch, place)) = self.place_for_leaf() else {
                    return Some(Growth::Leaf(leaf));
                };
                self.add_leaf(branch, place, leaf);
            }
        }
        None
    }

    fn add_leaf(&mut self, number: usize, place: usize, mut leaf: KBox<Leaf<O>>) {
        let Some(Some(branch)) = self.root.get_mut(number) else {
            return;
        };
        // Its fields are borrowed one by one.
        let branch = &mut **branch;
        let Some(known) = branch.places.get_mut(place) else {
            return;
        };
        let Some(hole) = branch.leaves.get_mut(place) else {
            return;
        };
        known.used = 0;
        for slot in leaf.iter_mut() {
            slot.generation = known.generation;
        }
        *hole = Some(leaf);
        branch.present += 1;
        self.total += LEAF_SLOTS;
        // CAST: both are below `FANOUT`.
        let first = ((number as u32) << (2 * LEVEL_BITS)) | ((place as u32) << LEVEL_BITS);
        for index in first..first + LEAF_SLOTS {
            self.enqueue(index);
        }
    }

    /// Takes an empty leaf out, if enough free slots remain without it.
    fn take_leaf(&mut self, index: u32) -> Option<KBox<Leaf<O>>> {
        let (number, place, _) = path(index);
        let branch = self.root.get(number)?.as_ref()?;
        let known = *branch.places.get(place)?;
        if known.used > 0 || self.free < KEPT_SLOTS + LEAF_SLOTS {
            return None;
        }
        let first = index & !(LEAF_SLOTS - 1);
        let mut uses = 0;
        for index in first..first + LEAF_SLOTS {
            self.dequeue(index);
            let generation = self.slot(index)?.generation;
            uses = uses.max(generation.wrapping_sub(known.generation));
        }
        let branch = self.root.get_mut(number)?.as_mut()?;
        branch.places.get_mut(place)?.generation = known.generation.wrapping_add(uses);
        branch.present -= 1;
        self.total -= LEAF_SLOTS;
        branch.leaves.get_mut(place)?.take()
    }

    /// Puts a slot at the end of the queue of free ones.
    fn enqueue(&mut self, index: u32) {
        let last = self.last_free;
        if let Some(slot) = self.slot_mut(index) {
            slot.state = State::Free;
            slot.owner = NONE;
            slot.next = NONE;
            slot.previous = last;
        }
        match self.slot_mut(last) {
            Some(slot) => slot.next = index,
            None => self.first_free = index,
        }
        self.last_free = index;
        self.free += 1;
    }

    /// Takes a slot out of the queue of free ones.
    fn dequeue(&mut self, index: u32) {
        let Some(slot) = self.slot(index) else { return };
        let (next, previous) = (slot.next, slot.previous);
        match self.slot_mut(previous) {
            Some(slot) => slot.next = next,
            None => self.first_free = next,
        }
        match self.slot_mut(next) {
            Some(slot) => slot.previous = previous,
            None => self.last_free = previous,
        }
        self.free -= 1;
    }

    fn count_used(&mut self, index: u32, change: impl FnOnce(u8) -> u8) {
        let (branch, leaf, _) = path(index);
        if let Some(Some(branch)) = self.root.get_mut(branch) {
            if let Some(place) = branch.places.get_mut(leaf) {
                place.used = change(place.used);
            }
        }
    }

    /// Sets a slot aside for something that is being built.
    pub(super) fn reserve(&mut self) -> Option<Key> {
        let index = self.first_free;
        let generation = self.slot(index)?.generation;
        self.dequeue(index);
        self.count_used(index, |used| used.saturating_add(1));
        let slot = self.slot_mut(index)?;
        slot.state = State::Reserved;
        slot.next = NONE;
        slot.previous = NONE;
        Some(Key { index, generation })
    }

    /// Puts `object` into a slot that was reserved for it, and into the list of `owner`.
    ///
    /// # Errors
    ///
    /// Gives it back if the owner is gone; the slot stays reserved.
    pub(super) fn publish(&mut self, key: Key, object: O, owner: Option<Key>) -> Result<(), O> {
        if let Some(owner) = owner {
            if self.find(owner).is_none() {
                return Err(object);
            }
            self.adopt(key.index, owner.index);
        }
        match self.slot_mut(key.index) {
            Some(slot) => {
                slot.state = State::Live(object);
                Ok(())
            }
            None => Err(object),
        }
    }

    /// Enters a slot into the list of its owner.
    fn adopt(&mut self, index: u32, owner: u32) {
        let Some(head) = self.slot_mut(owner) else {
            return;
        };
        let next = mem::replace(&mut head.next, index);
        if let Some(slot) = self.slot_mut(next) {
            slot.previous = index;
        }
        if let Some(slot) = self.slot_mut(index) {
            slot.next = next;
            slot.previous = NONE;
            slot.owner = owner;
        }
    }

    /// Takes a slot out of the list of its owner.
    fn disown(&mut self, index: u32) {
        let Some(slot) = self.slot(index) else { return };
        let (next, previous, owner) = (slot.next, slot.previous, slot.owner);
        if owner == NONE {
            return;
        }
        let before = if previous == NONE { owner } else { previous };
        if let Some(slot) = self.slot_mut(before) {
            slot.next = next;
        }
        if let Some(slot) = self.slot_mut(next) {
            slot.previous = previous;
        }
    }

    /// Takes out what lies behind a key, so that it cannot be found any more. The slot and what it
    /// owns stay until [`Self::release`].
    pub(super) fn empty(&mut self, key: Key) -> Option<O> {
        let slot = self.slot_mut(key.index)?;
        if slot.generation != key.generation || !matches!(slot.state, State::Live(_)) {
            return None;
        }
        match mem::replace(&mut slot.state, State::Emptied) {
            State::Live(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the first thing that an owner owns.
    pub(super) fn first_owned(&self, owner: u32) -> Option<Key> {
        let slot = self.slot(owner)?;
        if slot.owner != NONE {
            return None;
        }
        let index = slot.next;
        let generation = self.slot(index)?.generation;
        Some(Key { index, generation })
    }

    /// Gives a slot up: one that is reserved, or one that has been emptied and owns nothing.
    pub(super) fn release(&mut self, index: u32) -> Option<KBox<Leaf<O>>> {
        self.disown(index);
        if let Some(slot) = self.slot_mut(index) {
            slot.generation = slot.generation.wrapping_add(1);
            slot.mark = Mark::Unnamed;
        }
        self.enqueue(index);
        self.count_used(index, |used| used.saturating_sub(1));
        self.take_leaf(index)
    }

    /// Takes something that owns nothing out and gives its slot up.
    pub(super) fn remove(&mut self, key: Key) -> Removed<O> {
        match self.empty(key) {
            Some(object) => (Some(object), self.release(key.index)),
            None => (None, None),
        }
    }

    /// Notes that the request being checked names a slot; says whether it is the first time.
    pub(super) fn name(&mut self, index: u32) -> bool {
        match self.slot_mut(index) {
            Some(slot) => mem::replace(&mut slot.mark, Mark::Named) == Mark::Unnamed,
            None => false,
        }
    }

    /// Says whether the request being checked has named a slot.
    pub(super) fn is_named(&self, index: u32) -> bool {
        self.slot(index)
            .is_some_and(|slot| slot.mark == Mark::Named)
    }

    /// Takes back [`Self::name`].
    pub(super) fn unname(&mut self, index: u32) {
        if let Some(slot) = self.slot_mut(index) {
            slot.mark = Mark::Unnamed;
        }
    }
}
