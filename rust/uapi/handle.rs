// SPDX-License-Identifier: GPL-2.0

//! Handles: the names that a client has for its objects.
//!
//! A handle is a number that is not zero and means something to one client only. It is made of
//! three parts: where the object is kept (21 bits), what kind of object it is (3 bits), and which
//! use of that place it is (8 bits). So a handle of another kind, or of an object that is gone, is
//! found out without looking at anything else. What is kept behind a handle is a reference; where
//! it is kept is the business of [`slots`].
//!
//! A new object gets its name last, in three steps: [`Table::reserve`] finds a place, the object is
//! built, and [`Reservation::publish`] lets others find it. Whoever gives up in between drops the
//! reservation.
//!
//! # Locking
//!
//! `Table::slots` is a leaf spinlock: under it references are copied and moved, nothing is dropped,
//! allocated or called. `Table::checking` (mutex) is taken before it and lets only one request at a
//! time decide whether all it wants to close can be closed; it is held for nothing else.

mod entry;
mod slots;

#[cfg(CONFIG_KUNIT)]
mod tests;

use kernel::{
    new_mutex,
    new_spinlock,
    prelude::*,
    sync::{
        Mutex,
        SpinLock, //
    }, //
};

use crate::abstractions::scheduling;

use self::slots::{
    Growth,
    Key,
    Slots, //
};

use super::list::Refused;

pub(super) use self::entry::{
    Object,
    Publication,
    Publications, //
};

/// Bits of the place of an object.
const INDEX_BITS: u32 = 21;
/// Bits of its kind.
const KIND_BITS: u32 = 3;
/// The most objects a client can have.
pub(super) const MAX_OBJECTS: u32 = slots::MAX_SLOTS;
/// Slots that are handled before the spinlock is let go for a moment.
const BATCH: usize = 64;

const _: () = assert!(MAX_OBJECTS == 1 << INDEX_BITS);
const _: () = assert!(INDEX_BITS + KIND_BITS + u8::BITS == u32::BITS);

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Device = 1,
    Allocation = 2,
    Context = 3,
    PagingQueue = 4,
    Fence = 5,
}

impl Kind {
    /// Returns the handle of an object of this kind.
    fn handle(self, key: Key) -> u32 {
        // CAST: the number of a variant.
        let kind = (self as u32) << INDEX_BITS;
        (u32::from(key.generation) << (INDEX_BITS + KIND_BITS)) | kind | key.index
    }

    /// Returns where an object of this kind is kept; [`None`] if `handle` names another kind.
    fn key(self, handle: u32) -> Option<Key> {
        let key = Key::from_handle(handle);
        (self.handle(key) == handle).then_some(key)
    }
}

impl Key {
    /// Returns where the object is kept that `handle` names, whatever it is.
    fn from_handle(handle: u32) -> Self {
        Self {
            index: handle & (MAX_OBJECTS - 1),
            // CAST: the upper eight bits.
            generation: (handle >> (INDEX_BITS + KIND_BITS)) as u8,
        }
    }
}

/// What a table needs to know about what it keeps.
pub(super) trait Entry: Sized {
    /// Returns what it is.
    fn kind(&self) -> Kind;

    /// Returns the handle that must be closed with it, if it cannot be closed alone.
    fn leader(&self) -> Option<u32>;

    /// Returns the handle that is closed with it.
    fn follower(&self) -> Option<u32>;

    /// Returns whether it cannot be closed as it is now.
    fn is_busy(&self) -> bool;
}

/// Something that can be looked up.
pub(super) trait Named<E>: Sized {
    /// What it is.
    const KIND: Kind;

    /// Takes a reference to it out of an entry.
    fn of(entry: &E) -> Option<Self>;
}

/// The handles of a client.
#[pin_data]
pub(super) struct Table<E = Object> {
    #[pin]
    slots: SpinLock<Slots<E>>,
    #[pin]
    checking: Mutex<()>,
}

impl<E: Entry> Table<E> {
    /// Returns a table without handles.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            slots <- new_spinlock!(Slots::new(), "Table::slots"),
            checking <- new_mutex!((), "Table::checking"),
        })
    }

    /// Returns the object that `handle` names.
    ///
    /// # Errors
    ///
    /// - `ENOENT`: it names nothing, something else, or something that is gone.
    pub(super) fn get<T: Named<E>>(&self, handle: u32) -> Result<T> {
        let key = T::KIND.key(handle).ok_or(ENOENT)?;
        let slots = self.slots.lock();
        slots.find(key).and_then(T::of).ok_or(ENOENT)
    }

    /// Returns whatever `handle` names.
    ///
    /// # Errors
    ///
    /// - `ENOENT`: it names nothing, or something that is gone.
    pub(super) fn get_any(&self, handle: u32) -> Result<E>
    where
        E: Clone,
    {
        let slots = self.slots.lock();
        let entry = slots.find(Key::from_handle(handle)).ok_or(ENOENT)?;
        entry.kind().key(handle).ok_or(ENOENT)?;
        Ok(entry.clone())
    }

    /// Looks handles up, one after the other, and shows what is found to `visit`, which holds a
    /// spinlock.
    pub(super) fn visit<T: Named<E>>(
        &self,
        handles: impl IntoIterator<Item = u32>,
        mut visit: impl FnMut(usize, Option<T>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let mut handles = handles.into_iter().enumerate().peekable();
        while handles.peek().is_some() {
            let slots = self.slots.lock();
            for (index, handle) in handles.by_ref().take(BATCH) {
                let entry = T::KIND.key(handle).and_then(|key| slots.find(key));
                visit(index, entry.and_then(T::of))?;
            }
        }
        Ok(())
    }

    /// Returns the objects that `handles` name.
    ///
    /// # Errors
    ///
    /// - `ENOENT`: as [`Self::get`], with the first such element.
    /// - `ENOMEM`: no memory.
    pub(super) fn get_list<T: Named<E>>(
        &self,
        handles: impl ExactSizeIterator<Item = u32>,
    ) -> Result<KVVec<T>, Refused> {
        let mut objects = KVVec::with_capacity(handles.len(), GFP_KERNEL_ACCOUNT)?;
        self.visit(handles, |index, object| {
            let object = object.ok_or(Refused::at(index, ENOENT))?;
            objects
                .push_within_capacity(object)
                .map_err(|_| Refused::at(index, ENOMEM))
        })?;
        Ok(objects)
    }

    /// Returns the first object with a place of at least `index`, its handle, and the next place.
    pub(super) fn at_least<T: Named<E>>(&self, index: u32) -> Option<(u32, u32, T)> {
        let mut index = index;
        loop {
            let slots = self.slots.lock();
            let (key, entry) = slots.at_least(index)?;
            index = key.index + 1;
            if entry.kind() == T::KIND {
                return Some((T::KIND.handle(key), index, T::of(entry)?));
            }
        }
    }

    /// Finds places for `count` more objects, and makes them if there are too few.
    fn make_room(&self, count: u32) -> Result {
        loop {
            let Some(shortage) = self.slots.lock().shortage(count) else {
                return Ok(());
            };
            let growth = Growth::new(shortage, GFP_KERNEL_ACCOUNT)?;
            let unused = self.slots.lock().grow(growth);
            drop(unused);
        }
    }

    /// Finds a place for an object that is about to be built.
    ///
    /// `owner` is the handle of its device, if it has one.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `ENOSPC`: the client has as many objects as it can have.
    pub(super) fn reserve(&self, owner: Option<u32>) -> Result<Reservation<'_, E>> {
        let owner = owner.map(Key::from_handle);
        loop {
            let mut slots = self.slots.lock();
            if slots.shortage(1).is_none() {
                let key = slots.reserve().ok_or(ENOSPC)?;
                return Ok(Reservation {
                    table: self,
                    key,
                    owner,
                });
            }
            drop(slots);
            self.make_room(1)?;
        }
    }

    /// Removes what `handles` name, and what that owns, and hands it to `closed`.
    ///
    /// All are checked before the first is removed. A handle that stands in the list twice is
    /// refused where it stands the second time.
    ///
    /// # Errors
    ///
    /// - `ENOENT`: as [`Self::get`].
    /// - `EBUSY`: it can only be closed together with another one, which is not in the list, or is
    ///   busy.
    pub(super) fn close(&self, handles: &[u32], mut closed: impl FnMut(E)) -> Result<(), Refused> {
        if let [handle] = *handles {
            return self
                .close_one(handle, &mut closed)
                .map_err(|error| Refused::at(0, error));
        }
        self.check(handles)?;
        for &handle in handles {
            // What is gone already went with its owner, or with a leader before it in the list.
            self.remove(Key::from_handle(handle), &mut closed);
            scheduling::yield_cpu();
        }
        Ok(())
    }

    fn close_one(&self, handle: u32, closed: &mut impl FnMut(E)) -> Result {
        let key = Key::from_handle(handle);
        let slots = self.slots.lock();
        let entry = slots.find(key).ok_or(ENOENT)?;
        entry.kind().key(handle).ok_or(ENOENT)?;
        if entry.leader().is_some() || entry.is_busy() {
            return Err(EBUSY);
        }
        drop(slots);
        match self.remove(key, closed) {
            Removal::Done => Ok(()),
            Removal::Gone => Err(ENOENT),
        }
    }

    /// Names the slots of a list that is to be closed. Once all are named, nobody else closes them.
    fn check(&self, handles: &[u32]) -> Result<(), Refused> {
        let _one_at_a_time = self.checking.lock();
        let (refused, named) = match self.name_all(handles) {
            Ok(()) => match self.check_states(handles) {
                Ok(()) => return Ok(()),
                Err(refused) => (refused, handles.len()),
            },
            Err(refused) => (refused, refused.index.unwrap_or(0)),
        };
        for batch in handles.get(..named).unwrap_or(handles).chunks(BATCH) {
            let mut slots = self.slots.lock();
            for &handle in batch {
                slots.unname(Key::from_handle(handle).index);
            }
        }
        Err(refused)
    }

    fn name_all(&self, handles: &[u32]) -> Result<(), Refused> {
        let mut index = 0;
        for batch in handles.chunks(BATCH) {
            let mut slots = self.slots.lock();
            for &handle in batch {
                let key = Key::from_handle(handle);
                let known = slots
                    .find(key)
                    .is_some_and(|entry| entry.kind().key(handle).is_some());
                if !known || !slots.name(key.index) {
                    return Err(Refused::at(index, ENOENT));
                }
                index += 1;
            }
        }
        Ok(())
    }

    fn check_states(&self, handles: &[u32]) -> Result<(), Refused> {
        let mut index = 0;
        for batch in handles.chunks(BATCH) {
            let slots = self.slots.lock();
            for &handle in batch {
                let entry = slots.find(Key::from_handle(handle));
                if entry.is_some_and(Entry::is_busy) {
                    return Err(Refused::at(index, EBUSY));
                }
                if let Some(leader) = entry.and_then(Entry::leader) {
                    if !slots.is_named(Key::from_handle(leader).index) {
                        return Err(Refused::at(index, EBUSY));
                    }
                }
                index += 1;
            }
        }
        Ok(())
    }

    /// Removes one object with all that goes with it.
    fn remove(&self, key: Key, closed: &mut impl FnMut(E)) -> Removal {
        let mut slots = self.slots.lock();
        let Some(entry) = slots.empty(key) else {
            return Removal::Gone;
        };
        let follower = entry.follower().map(Key::from_handle);
        let follower = follower.map(|follower| slots.remove(follower));
        let owner = slots.first_owned(key.index).is_some();
        let leaf = if owner {
            drop(slots);
            self.remove_owned(key.index, closed);
            self.slots.lock().release(key.index)
        } else {
            let leaf = slots.release(key.index);
            drop(slots);
            leaf
        };
        drop(leaf);
        if let Some((Some(follower), _)) = follower {
            closed(follower);
        }
        closed(entry);
        Removal::Done
    }

    /// Removes all that an owner owns. It has been emptied, so nothing comes after.
    fn remove_owned(&self, owner: u32, closed: &mut impl FnMut(E)) {
        loop {
            let mut batch = [const { None }; BATCH / 2];
            let mut slots = self.slots.lock();
            for removed in &mut batch {
                match slots.first_owned(owner) {
                    Some(key) => *removed = Some(slots.remove(key)),
                    None => break,
                }
            }
            drop(slots);
            let mut last = true;
            for removed in batch.into_iter().flatten() {
                last = false;
                if let (Some(entry), _) = removed {
                    closed(entry);
                }
            }
            if last {
                return;
            }
            scheduling::yield_cpu();
        }
    }

    /// Removes everything: the client goes, and nobody adds anything.
    pub(super) fn close_all(&self, mut closed: impl FnMut(E)) {
        let mut index = 0;
        loop {
            let Some(key) = self.slots.lock().at_least(index).map(|(key, _)| key) else {
                return;
            };
            index = key.index;
            self.remove(key, &mut closed);
            scheduling::yield_cpu();
        }
    }
}

/// What became of a request to remove something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Removal {
    /// It is removed.
    Done,
    /// Somebody else was faster.
    Gone,
}

/// A place for an object that is being built. Dropping it gives the place up.
pub(super) struct Reservation<'a, E: Entry = Object> {
    table: &'a Table<E>,
    key: Key,
    owner: Option<Key>,
}

impl<E: Entry> Reservation<'_, E> {
    /// Returns the handle that an object of this kind will have.
    pub(super) fn handle(&self, kind: Kind) -> u32 {
        kind.handle(self.key)
    }

    /// Lets the object be found.
    ///
    /// # Errors
    ///
    /// Gives it back if its owner has been closed in the meantime, and the object with it.
    pub(super) fn publish(self, entry: E) -> Result<(), E> {
        let published = self.table.slots.lock().publish(self.key, entry, self.owner);
        if published.is_ok() {
            core::mem::forget(self);
        }
        published
    }
}

impl<E: Entry> Drop for Reservation<'_, E> {
    fn drop(&mut self) {
        let leaf = self.table.slots.lock().release(self.key.index);
        drop(leaf);
    }
}
