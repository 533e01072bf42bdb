// SPDX-License-Identifier: GPL-2.0

//! What is mapped and reserved in a space of GPU virtual addresses.
//!
//! A space has *ranges* that do not overlap: reservations, and what was mapped outside of them.
//! Inside a reservation lie *mappings*; outside, a range is full of them. Each mapping shows a
//! stretch of the memory of an *owner*. What a request may touch is said in terms of ranges:
//!
//! | request | where | else |
//! |---|---|---|
//! | reserve | free addresses | [`Refused::Overlap`] |
//! | map | free addresses: a new range | [`Refused::Overlap`] |
//! | | inside one range, whose mappings there it replaces | [`Refused::Zero`] in a ZERO reservation |
//! | free | exactly a reservation, with all that is in it | |
//! | | any part of mappings | [`Refused::NotMapped`], [`Refused::Zero`] |
//!
//! Two ranges side by side are not one. To tell them apart, mappings outside of reservations have
//! a *colour*: a new range gets one that no range beside it has, and a range never grows, so
//! mappings side by side are of one range exactly if they have the same colour. Three suffice.
//!
//! Mappings that continue each other are one. So there are as many as the history needs, not as
//! many as there are pages; each operation takes O(log n), and O(log n) more for each mapping that
//! it removes. The mappings of an owner are in a ring, in no order, so that they are found
//! without the others when its memory moves.
//!
//! Nothing here fails for want of memory: the caller lends slots ([`Space::grow`]) so that at least
//! [`SLOTS`] are spare before a request.

use core::borrow::{
    Borrow,
    BorrowMut, //
};
use core::ops::Range;

use super::range_tree::{
    link,
    Link,
    Tree,
    NIL, //
};

mod change;
mod pieces;
mod slot;
#[cfg(any(test, CONFIG_KUNIT))]
mod tests;

pub use pieces::{
    Mapped,
    Piece,
    Pieces, //
};
pub use slot::Slot;
use slot::{
    Content,
    Mapping,
    Reservation,
    Ring,
    Slots,
    Walk, //
};

/// How many slots are spare before a request, at least: for an owner, a range, and the rest of a
/// mapping that is cut in two.
pub const SLOTS: u32 = 3;

/// What an access meets in a reservation where nothing is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It faults.
    NoAccess,
    /// Reads give zero and writes vanish.
    Zero,
}

/// What engines may do with a mapping. The bits mean something to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights(pub u32);

/// Names somebody whose memory is mapped in a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(u32);

impl Owner {
    /// Returns the number of an owner, which is not zero.
    pub const fn number(self) -> u32 {
        // OVERFLOW: the last slot cannot be named.
        self.0.wrapping_add(1)
    }

    /// Returns the owner with a number, unless it is zero.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number.checked_sub(1) {
            Some(at) => Some(Self(at)),
            None => None,
        }
    }
}

/// Where a range shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Here.
    At(u64),
    /// At the lowest free multiple of `align`, a power of two, inside `window`.
    Within {
        /// The addresses.
        window: Range<u64>,
        /// The alignment.
        align: u64,
    },
}

/// A mapping that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where.
    pub place: Place,
    /// How long it is.
    pub bytes: u64,
    /// Whose memory.
    pub owner: Owner,
    /// Where in that memory it begins.
    pub offset: u64,
    /// What engines may do.
    pub rights: Rights,
}

/// Where a mapping was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// It is a range of its own that begins here.
    Range(u64),
    /// It begins here, in a range that was there before.
    Inside(u64),
}

impl Made {
    /// Returns where it begins.
    pub const fn start(self) -> u64 {
        match self {
            Self::Range(start) | Self::Inside(start) => start,
        }
    }
}

/// What was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freed {
    /// A reservation with all that was in it.
    Reservation(Kind),
    /// Mappings, or parts of some.
    Mappings,
}

/// Why a request is refused. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Something is in the way that may not be replaced.
    Overlap,
    /// A part of a ZERO reservation.
    Zero,
    /// The range is neither a reservation nor covered by mappings.
    NotMapped,
    /// The range is empty or leaves the space.
    Outside,
    /// No free place is long enough.
    NoPlace,
    /// Too few slots are spare.
    Slots,
}

/// The ranges of a space.
///
/// `S` is an array of [`Slot`]s that the caller lends, `T` stands for an owner.
///
/// # Invariants
///
/// `areas` has the reservations and the mappings outside of them, each reservation has the mappings
/// inside of it, and each mapping is in the ring of its owner.
pub struct Space<S, T> {
    slots: Slots<S, T>,
    /// The addresses that can be used.
    limits: Range<u64>,
    /// Reservations, and mappings outside of them.
    areas: Tree,
}

impl<S, T> Space<S, T>
where
    S: Borrow<[Slot<T>]> + BorrowMut<[Slot<T>]>,
{
    /// Returns a space of these addresses in which nothing is.
    pub fn new(slots: S, limits: Range<u64>) -> Self {
        Self {
            slots: Slots::new(slots),
            limits,
            areas: Tree::EMPTY,
        }
    }

    /// Returns the addresses that can be used.
    pub fn limits(&self) -> Range<u64> {
        self.limits.clone()
    }

    /// Returns how many slots there are.
    pub fn capacity(&self) -> usize {
        self.slots.all().len()
    }

    /// Returns how many slots are spare.
    pub fn spare(&self) -> u32 {
        self.slots.spare()
    }

    /// Goes on in a longer array of unused slots; returns the array that is not needed any more.
    pub fn grow(&mut self, longer: S) -> S {
        self.slots.grow(longer)
    }

    /// Makes an owner known.
    ///
    /// # Errors
    ///
    /// [`Refused::Slots`].
    pub fn attach(&mut self, owner: T) -> Result<Owner, Refused> {
        let at = self.slots.unused().ok_or(Refused::Slots)?;
        let ring = Ring { prev: at, next: at };
        let slot = Slot::of(0..0, Content::Owner(owner, ring, Walk::Even));
        self.slots.put(slot).map(Owner).ok_or(Refused::Slots)
    }

    /// Forgets an owner and all its mappings. `each` is told of every part of a range outside of
    /// reservations that is free now.
    pub fn detach(&mut self, owner: Owner, mut each: impl FnMut(Range<u64>)) -> Option<T> {
        while let Some(at) = self.first_of(owner) {
            let mapping = self.slots.get(at)?.mapping()?;
            let (reservation, range) = (mapping.reservation, self.range(at)?);
            self.remove(reservation, at);
            if reservation == NIL {
                each(range);
            }
        }
        match self.slots.take(owner.0)? {
            Content::Owner(owner, ..) => Some(owner),
            _ => None,
        }
    }

    /// Returns who an owner is.
    pub fn owner(&self, owner: Owner) -> Option<&T> {
        match &self.slots.get(owner.0)?.content {
            Content::Owner(owner, ..) => Some(owner),
            _ => None,
        }
    }

    /// Returns the mappings of an owner, in no order.
    pub fn mappings_of(&self, owner: Owner) -> impl Iterator<Item = (Range<u64>, Mapped)> + '_ {
        let mut at = self.first_of(owner);
        core::iter::from_fn(move || {
            let here = at?;
            let mapping = self.slots.get(here)?.mapping()?;
            at = Some(mapping.ring.next).filter(|next| *next != owner.0);
            Some((self.range(here)?, Mapped::of(mapping, 0)))
        })
    }

    /// Begins a walk over the mappings of an owner. The last one has come to its end.
    pub fn begin_walk(&mut self, owner: Owner) {
        if let Some(Content::Owner(_, _, walk)) = self.slots.content_mut(owner.0) {
            *walk = walk.other();
        }
    }

    /// Returns the next mapping of an owner that the walk has not met. The space may change between two
    /// steps: what is made after the beginning is left out, what was there is met in its parts.
    pub fn next_in_walk(&mut self, owner: Owner) -> Option<(Range<u64>, Mapped)> {
        let walk = self.walk_of(owner)?;
        let at = self.first_of(owner)?;
        let Some(Content::Mapping(mapping)) = self.slots.content_mut(at) else {
            return None;
        };
        if mapping.met_in == walk {
            return None;
        }
        mapping.met_in = walk;
        let found = Mapped::of(mapping, 0);
        // The owner moves on in the ring: before it is what was met, or is new.
        self.slots.leave_ring(owner.0);
        self.slots.join_ring(at, owner.0);
        Some((self.range(at)?, found))
    }

    /// Returns what lies in a window, in the order of addresses.
    pub fn pieces(&self, window: Range<u64>) -> Pieces<'_, T> {
        let first = self.areas.at_or_behind(self.slots.all(), window.start);
        Pieces::new(self.slots.all(), window, first)
    }

    /// Reserves a range; returns where it begins.
    ///
    /// # Errors
    ///
    /// [`Refused::Outside`], [`Refused::Overlap`], [`Refused::NoPlace`], [`Refused::Slots`].
    ///
    /// Requirement: VA-17.
    pub fn reserve(&mut self, place: &Place, bytes: u64, kind: Kind) -> Result<u64, Refused> {
        let range = self.place(place, bytes)?;
        if self.area_at(&range).is_some() {
            return Err(Refused::Overlap);
        }
        let content = Content::Reservation(Reservation {
            kind,
            inner: Tree::EMPTY,
        });
        let slot = Slot::of(range.clone(), content);
        let at = self.slots.put(slot).ok_or(Refused::Slots)?;
        self.areas.insert(self.slots.all_mut(), at);
        Ok(range.start)
    }

    /// Makes a mapping, in place of the mappings that are there.
    ///
    /// # Errors
    ///
    /// [`Refused::Outside`], [`Refused::Overlap`], [`Refused::Zero`], [`Refused::NoPlace`],
    /// [`Refused::Slots`].
    ///
    /// Requirement: VA-14, VA-15.
    pub fn map(&mut self, request: &Request) -> Result<Made, Refused> {
        let range = self.place(&request.place, request.bytes)?;
        let (reservation, colour, made) = match self.area_at(&range) {
            None => (NIL, self.new_colour(&range), Made::Range(range.start)),
            Some(area) => {
                let (reservation, colour) = self.one_range(area, &range)?;
                (reservation, colour, Made::Inside(range.start))
            }
        };
        if self.spare() < 2 {
            return Err(Refused::Slots);
        }
        self.carve(reservation, &range);
        let mapping = Mapping {
            offset: request.offset,
            owner: request.owner.0,
            reservation,
            ring: Ring {
                prev: NIL,
                next: NIL,
            },
            rights: request.rights,
            colour,
            met_in: self.walk_of(request.owner).unwrap_or(Walk::Even),
        };
        let at = self.put(range, mapping).ok_or(Refused::Slots)?;
        self.slots.join_ring_before(request.owner.0, at);
        self.join(reservation, at);
        Ok(made)
    }

    /// Gives back a reservation, or any part of mappings. `each` is told of every part of a range
    /// outside of reservations that is free now.
    ///
    /// # Errors
    ///
    /// [`Refused::Outside`], [`Refused::NotMapped`], [`Refused::Zero`], [`Refused::Slots`].
    ///
    /// Requirement: VA-18.
    pub fn free(
        &mut self,
        range: Range<u64>,
        mut each: impl FnMut(Range<u64>),
    ) -> Result<Freed, Refused> {
        self.check_inside(&range)?;
        let first = self.area_at(&range).ok_or(Refused::NotMapped)?;
        if let Some(reservation) = self.reservation(first) {
            if self.range(first) == Some(range.clone()) {
                self.free_reservation(first, reservation.inner);
                return Ok(Freed::Reservation(reservation.kind));
            }
        }
        self.check_mapped(first, &range)?;
        if self.spare() < 1 {
            return Err(Refused::Slots);
        }
        let mut rest = range;
        while let Some(part) = self.free_one_range(&rest) {
            rest.start = part.0.end;
            if part.1 == NIL {
                each(part.0);
            }
        }
        Ok(Freed::Mappings)
    }

    /// Frees the part of `rest` that lies in the first range; returns it and its reservation.
    fn free_one_range(&mut self, rest: &Range<u64>) -> Option<(Range<u64>, u32)> {
        let area = self.area_at(rest).filter(|_| !rest.is_empty())?;
        let (reservation, end) = match self.reservation(area) {
            Some(_) => (area, self.range(area)?.end),
            None => (NIL, self.end_of_colour(area, rest.end)?),
        };
        let part = rest.start..rest.end.min(end);
        self.carve(reservation, &part);
        Some((part, reservation))
    }

    /// Ends a reservation with all mappings in it.
    fn free_reservation(&mut self, at: u32, inner: Tree) {
        let mut next = inner.at_or_behind(self.slots.all(), 0);
        while let Some(mapping) = next {
            next = link(self.slots.all(), mapping)
                .map(Link::next)
                .filter(|next| *next != NIL);
            self.slots.leave_ring(mapping);
            self.slots.take(mapping);
        }
        self.areas.remove(self.slots.all_mut(), at);
        self.slots.take(at);
    }

    /// Returns the range that a place stands for.
    fn place(&self, place: &Place, bytes: u64) -> Result<Range<u64>, Refused> {
        if bytes == 0 {
            return Err(Refused::Outside);
        }
        let start = match place {
            Place::At(start) => *start,
            Place::Within { window, align } => {
                let window = window.start.max(self.limits.start)..window.end.min(self.limits.end);
                let found = self.areas.find_gap(self.slots.all(), window, bytes, *align);
                found.ok_or(Refused::NoPlace)?
            }
        };
        let range = start..start.checked_add(bytes).ok_or(Refused::Outside)?;
        self.check_inside(&range)?;
        Ok(range)
    }

    /// Checks that a range is not empty and inside the space.
    fn check_inside(&self, range: &Range<u64>) -> Result<(), Refused> {
        let inside = range.start >= self.limits.start && range.end <= self.limits.end;
        if inside && range.start < range.end {
            Ok(())
        } else {
            Err(Refused::Outside)
        }
    }

    /// Returns the first reservation or outside mapping that meets a range.
    fn area_at(&self, range: &Range<u64>) -> Option<u32> {
        let at = self.areas.at_or_behind(self.slots.all(), range.start)?;
        (self.range(at)?.start < range.end).then_some(at)
    }

    /// Returns the addresses of a slot.
    fn range(&self, at: u32) -> Option<Range<u64>> {
        link(self.slots.all(), at).map(Link::range)
    }

    fn reservation(&self, at: u32) -> Option<Reservation> {
        self.slots.get(at)?.reservation()
    }

    /// Returns the first mapping of an owner.
    fn first_of(&self, owner: Owner) -> Option<u32> {
        match &self.slots.get(owner.0)?.content {
            Content::Owner(_, ring, _) => Some(ring.next).filter(|next| *next != owner.0),
            _ => None,
        }
    }

    /// Returns the number of the last walk over the mappings of an owner.
    fn walk_of(&self, owner: Owner) -> Option<Walk> {
        match self.slots.get(owner.0)?.content {
            Content::Owner(_, _, walk) => Some(walk),
            _ => None,
        }
    }

    /// Checks that `range`, which meets `area` first, lies in one range that permits mappings;
    /// returns its reservation or [`NIL`], and the colour of its mappings.
    fn one_range(&self, area: u32, range: &Range<u64>) -> Result<(u32, u8), Refused> {
        let here = self.range(area).ok_or(Refused::Overlap)?;
        if here.start > range.start {
            return Err(Refused::Overlap);
        }
        if let Some(reservation) = self.reservation(area) {
            return match reservation.kind {
                _ if here.end < range.end => Err(Refused::Overlap),
                Kind::Zero => Err(Refused::Zero),
                Kind::NoAccess => Ok((area, 0)),
            };
        }
        match self.end_of_colour(area, range.end) {
            Some(end) if end >= range.end => Ok((NIL, self.colour(area).unwrap_or(0))),
            _ => Err(Refused::Overlap),
        }
    }

    /// Returns the colour of a mapping.
    fn colour(&self, at: u32) -> Option<u8> {
        Some(self.slots.get(at)?.mapping()?.colour)
    }

    /// Returns where the mappings end that follow each other from `area` on in its colour, but stops
    /// at the first end that is not below `until`.
    fn end_of_colour(&self, area: u32, until: u64) -> Option<u64> {
        let colour = self.colour(area)?;
        let mut here = link(self.slots.all(), area)?;
        while here.end < until {
            let next = here.next();
            match link(self.slots.all(), next) {
                Some(link) if link.start == here.end && self.colour(next) == Some(colour) => {
                    here = link;
                }
                _ => break,
            }
        }
        Some(here.end)
    }

    /// Returns a colour that no mapping beside `range`, which is free, has.
    fn new_colour(&self, range: &Range<u64>) -> u8 {
        let slots = self.slots.all();
        let next = self.areas.at_or_behind(slots, range.start);
        let prev = match next.and_then(|next| link(slots, next)) {
            Some(next) => Some(next.prev()),
            None => self.areas.last(slots),
        };
        let next = next.filter(|at| self.range(*at).is_some_and(|next| next.start == range.end));
        let prev = prev.filter(|at| self.range(*at).is_some_and(|prev| prev.end == range.start));
        let beside = [prev, next].map(|at| at.and_then(|at| self.colour(at)));
        let free = (0..2).find(|colour| !beside.contains(&Some(*colour)));
        free.unwrap_or(2)
    }

    /// Checks that all of `range`, which meets `first` first, is mapped, and nothing of it lies in a
    /// ZERO reservation.
    fn check_mapped(&self, first: u32, range: &Range<u64>) -> Result<(), Refused> {
        let mut rest = range.clone();
        let mut at = first;
        while rest.start < rest.end {
            let slots = self.slots.all();
            let here = link(slots, at).ok_or(Refused::NotMapped)?;
            if here.start > rest.start {
                return Err(Refused::NotMapped);
            }
            if let Some(reservation) = self.reservation(at) {
                if reservation.kind == Kind::Zero {
                    return Err(Refused::Zero);
                }
                let inner = reservation.inner.at_or_behind(slots, rest.start);
                self.check_covered(inner.unwrap_or(NIL), rest.start..rest.end.min(here.end))?;
            }
            rest.start = here.end;
            at = here.next();
        }
        Ok(())
    }

    /// Checks that the mappings from `first` on cover `range`.
    fn check_covered(&self, first: u32, range: Range<u64>) -> Result<(), Refused> {
        let mut rest = range;
        let mut at = first;
        while rest.start < rest.end {
            let here = link(self.slots.all(), at).ok_or(Refused::NotMapped)?;
            if here.start > rest.start {
                return Err(Refused::NotMapped);
            }
            rest.start = here.end;
            at = here.next();
        }
        Ok(())
    }
}
