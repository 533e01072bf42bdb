// SPDX-License-Identifier: GPL-2.0

//! The records that a client has not read: a ring that never grows and loses nothing silently.

use kernel::prelude::*;

use super::{
    Event,
    Record,
    CAPACITY, //
};

/// Places of the queue: one more, for the record that counts the lost ones.
// CAST: a small constant.
const PLACES: u64 = CAPACITY as u64 + 1;

/// What an empty place holds.
const NONE: Record = Record {
    event: Event::Overflow { lost: 0 },
    time_ns: 0,
};

/// The records that wait, in order. Each has a number; its place is the number modulo [`PLACES`].
pub(super) struct Queue {
    places: KVVec<Record>,
    /// The number of the first one that waits.
    first: u64,
    /// The number that comes next.
    next: u64,
    /// Records that are handed out and may come back. Their places stay free.
    out: u64,
}

/// Whether a record takes a place of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Queued {
    /// It is one record more.
    Anew,
    /// It is told by one that was there.
    Within,
}

impl Queue {
    /// Returns an empty queue with all its memory.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            // CAST: `usize` has 64 bits wherever this driver runs.
            places: KVVec::from_elem(NONE, PLACES as usize, GFP_KERNEL_ACCOUNT)?,
            first: 0,
            next: 0,
            out: 0,
        })
    }

    /// Returns whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.first == self.next
    }

    fn place(&mut self, number: u64) -> Option<&mut Record> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.places.get_mut((number % PLACES) as usize)
    }

    /// Enters an event as the last one, or counts it as lost.
    pub(super) fn push(&mut self, event: Event) -> Queued {
        let record = Record::now(event);
        if let Some(older) = self.on_the_topic_of(&event) {
            *older = record;
            return Queued::Within;
        }
        // OVERFLOW: differences of numbers in order, and no more than there are places.
        let waiting = self.next - self.first + self.out;
        if waiting < PLACES - 1 {
            return self.append(record);
        }
        let first = self.first;
        let last = self.next.checked_sub(1).filter(|last| *last >= first);
        if let Some(Record {
            event: Event::Overflow { lost },
            ..
        }) = last.and_then(|last| self.place(last))
        {
            *lost = lost.saturating_add(1);
            return Queued::Within;
        }
        self.append(Record::now(Event::Overflow { lost: 1 }))
    }

    /// Returns the record on the same topic, if one waits.
    fn on_the_topic_of(&mut self, event: &Event) -> Option<&mut Record> {
        let topic = event.topic()?;
        let place = (self.first..self.next)
            // CAST: `usize` has 64 bits wherever this driver runs.
            .map(|number| (number % PLACES) as usize)
            .find(|place| {
                let record = self.places.get(*place);
                record.is_some_and(|record| record.event.topic() == Some(topic))
            })?;
        self.places.get_mut(place)
    }

    fn append(&mut self, record: Record) -> Queued {
        let number = self.next;
        if let Some(place) = self.place(number) {
            *place = record;
            self.next += 1;
        }
        Queued::Anew
    }

    /// Hands out the first record; it may be put back until it is known to be delivered.
    pub(super) fn take(&mut self) -> Option<Record> {
        if self.is_empty() {
            return None;
        }
        let record = *self.place(self.first)?;
        self.first += 1;
        self.out += 1;
        Some(record)
    }

    /// Gives up the claim on the place of a record that has been delivered.
    pub(super) fn keep_out(&mut self) {
        self.out = self.out.saturating_sub(1);
    }

    /// Puts a record back in front of the others. The place there is free, because it is out.
    pub(super) fn put_back(&mut self, record: Record) {
        // Without one that is out, it belongs to a subscription that has ended.
        let (Some(out), Some(number)) = (self.out.checked_sub(1), self.first.checked_sub(1)) else {
            return;
        };
        self.out = out;
        if self.on_the_topic_of(&record.event).is_some() {
            return;
        }
        if let Some(place) = self.place(number) {
            *place = record;
            self.first = number;
        }
    }
}
