// SPDX-License-Identifier: GPL-2.0

//! The slots of a space: the memory that the caller lends, and what can stand in it.

use core::borrow::{
    Borrow,
    BorrowMut, //
};

use super::super::range_tree::{
    Link,
    Node,
    Tree,
    NIL, //
};
use super::{
    Kind,
    Rights, //
};

/// A place for one range of a space, or for one owner of mappings.
///
/// The caller lends an array of them, made of [`UNUSED`](Self::UNUSED) ones.
#[derive(Debug)]
pub struct Slot<T> {
    /// What it is in a tree.
    link: Link,
    /// What stands in it.
    pub(super) content: Content<T>,
}

/// What stands in a slot.
#[derive(Debug)]
pub(super) enum Content<T> {
    /// Nothing; the next slot with nothing in it.
    Unused(u32),
    /// A reservation.
    Reservation(Reservation),
    /// A mapping.
    Mapping(Mapping),
    /// Somebody whose memory is mapped, the first and last mapping, and the last walk over them.
    Owner(T, Ring, Walk),
}

/// A reservation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    /// What an access meets where nothing is mapped.
    pub(super) kind: Kind,
    /// The mappings in it.
    pub(super) inner: Tree,
}

/// A mapping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    /// Where in the owner's memory it begins.
    pub(super) offset: u64,
    /// The slot of the owner.
    pub(super) owner: u32,
    /// The slot of the reservation it lies in, or [`NIL`].
    pub(super) reservation: u32,
    /// The mappings of the owner before it and behind it.
    pub(super) ring: Ring,
    /// What engines may do.
    pub(super) rights: Rights,
    /// Tells ranges apart that lie side by side: mappings of one range have the same one.
    pub(super) colour: u8,
    /// The last walk over the mappings of the owner that has met it.
    pub(super) met_in: Walk,
}

/// The number of a walk over the mappings of an owner. As a walk meets all of them, it suffices to
/// know whether it is odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    Even,
    Odd,
}

impl Walk {
    /// Returns the number of the next one.
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Even => Self::Odd,
            Self::Odd => Self::Even,
        }
    }
}

/// A place in the ring of an owner and its mappings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    pub(super) prev: u32,
    pub(super) next: u32,
}

impl<T> Slot<T> {
    /// A slot that is lent to a space.
    pub const UNUSED: Self = Self {
        link: Link::new(0..0),
        content: Content::Unused(NIL),
    };

    /// A slot with a range.
    pub(super) fn of(range: core::ops::Range<u64>, content: Content<T>) -> Self {
        Self {
            link: Link::new(range),
            content,
        }
    }

    /// Returns its place in the ring of an owner.
    pub(super) fn ring_mut(&mut self) -> Option<&mut Ring> {
        match &mut self.content {
            Content::Mapping(mapping) => Some(&mut mapping.ring),
            Content::Owner(_, ring, _) => Some(ring),
            _ => None,
        }
    }

    /// Returns the mapping in it.
    pub(super) fn mapping(&self) -> Option<&Mapping> {
        match &self.content {
            Content::Mapping(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// Returns the reservation in it.
    pub(super) fn reservation(&self) -> Option<Reservation> {
        match self.content {
            Content::Reservation(reservation) => Some(reservation),
            _ => None,
        }
    }
}

impl<T> Node for Slot<T> {
    fn link(&self) -> &Link {
        &self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The slots of a space, and which of them are unused.
///
/// # Invariants
///
/// `unused` is the first of a list of all unused slots, and `spare` their number.
pub(super) struct Slots<S, T> {
    slots: S,
    unused: u32,
    spare: u32,
    _content: core::marker::PhantomData<T>,
}

impl<S, T> Slots<S, T>
where
    S: Borrow<[Slot<T>]> + BorrowMut<[Slot<T>]>,
{
    /// Takes an array of unused slots.
    pub(super) fn new(slots: S) -> Self {
        let mut new = Self {
            slots,
            unused: NIL,
            spare: 0,
            _content: core::marker::PhantomData,
        };
        new.list_unused(0);
        new
    }

    /// Returns all slots.
    pub(super) fn all(&self) -> &[Slot<T>] {
        self.slots.borrow()
    }

    /// Returns all slots, for the functions of a tree.
    pub(super) fn all_mut(&mut self) -> &mut [Slot<T>] {
        self.slots.borrow_mut()
    }

    /// Returns how many are unused.
    pub(super) fn spare(&self) -> u32 {
        self.spare
    }

    /// Returns a slot.
    pub(super) fn get(&self, at: u32) -> Option<&Slot<T>> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.all().get(at as usize)
    }

    /// Returns a slot, to be changed.
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut Slot<T>> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.all_mut().get_mut(at as usize)
    }

    /// Returns what stands in a slot, to be changed.
    pub(super) fn content_mut(&mut self, at: u32) -> Option<&mut Content<T>> {
        Some(&mut self.get_mut(at)?.content)
    }

    /// Goes on in a longer array of unused slots; returns the old one, whose slots are unused now.
    /// One that is not longer is returned as it is.
    pub(super) fn grow(&mut self, longer: S) -> S {
        let count = self.all().len();
        if longer.borrow().len() <= count {
            return longer;
        }
        let mut old = core::mem::replace(&mut self.slots, longer);
        for (to, from) in self.all_mut().iter_mut().zip(old.borrow_mut()) {
            core::mem::swap(to, from);
        }
        self.list_unused(count);
        old
    }

    /// Lists the slots from `first` on, which are unused.
    fn list_unused(&mut self, first: usize) {
        let (mut unused, mut spare) = (self.unused, self.spare);
        // CAST: `usize` has 64 bits. The last place cannot be named.
        let count = self.all().len().min(u32::MAX as usize);
        for at in (first..count).rev() {
            let Some(slot) = self.all_mut().get_mut(at) else {
                break;
            };
            slot.content = Content::Unused(unused);
            // CAST: below 2^32.
            unused = at as u32;
            spare = spare.saturating_add(1);
        }
        (self.unused, self.spare) = (unused, spare);
    }

    /// Returns the slot that is used next.
    pub(super) fn unused(&self) -> Option<u32> {
        Some(self.unused).filter(|at| *at != NIL)
    }

    /// Puts `slot` into an unused place; returns which.
    pub(super) fn put(&mut self, slot: Slot<T>) -> Option<u32> {
        let at = self.unused;
        let place = self.get_mut(at)?;
        let Content::Unused(next) = place.content else {
            return None;
        };
        *place = slot;
        self.unused = next;
        self.spare = self.spare.saturating_sub(1);
        Some(at)
    }

    /// Takes out what stands in a slot.
    pub(super) fn take(&mut self, at: u32) -> Option<Content<T>> {
        let unused = self.unused;
        let content = &mut self.get_mut(at)?.content;
        let content = core::mem::replace(content, Content::Unused(unused));
        self.unused = at;
        self.spare = self.spare.saturating_add(1);
        Some(content)
    }

    /// Puts the mapping `new` behind `at` in the ring of an owner.
    pub(super) fn join_ring(&mut self, at: u32, new: u32) {
        let Some(ring) = self.get_mut(at).and_then(Slot::ring_mut) else {
            return;
        };
        let next = core::mem::replace(&mut ring.next, new);
        if let Some(ring) = self.get_mut(new).and_then(Slot::ring_mut) {
            *ring = Ring { prev: at, next };
        }
        if let Some(ring) = self.get_mut(next).and_then(Slot::ring_mut) {
            ring.prev = new;
        }
    }

    /// Puts the mapping `new` before `at` in the ring of an owner.
    pub(super) fn join_ring_before(&mut self, at: u32, new: u32) {
        if let Some(&mut Ring { prev, .. }) = self.get_mut(at).and_then(Slot::ring_mut) {
            self.join_ring(prev, new);
        }
    }

    /// Takes a mapping, or the owner itself, out of its ring.
    pub(super) fn leave_ring(&mut self, at: u32) {
        let Some(&mut Ring { prev, next }) = self.get_mut(at).and_then(Slot::ring_mut) else {
            return;
        };
        if let Some(ring) = self.get_mut(prev).and_then(Slot::ring_mut) {
            ring.next = next;
        }
        if let Some(ring) = self.get_mut(next).and_then(Slot::ring_mut) {
            ring.prev = prev;
        }
    }
}
