// SPDX-License-Identifier: GPL-2.0

//! Events: what a client is told without having asked.
//!
//! A client subscribes to kinds of events; from then on each is a [`Record`] in a queue of its own,
//! until the client reads it. Whoever has something to tell calls [`Events::post`], from any context,
//! also under spinlocks: the queue has its memory from the subscription on.
//!
//! The queue never grows. Records that only repeat an older one with new numbers (budget and trim of
//! one group) take its place. When the queue is full, one more record says how many are lost; it is
//! the last one until there is room again.
//!
//! A record leaves the queue in two steps: [`Events::take`] hands it out, and dropping it unread puts
//! it back, where it was. So a record that could not be delivered is still there, and two readers
//! never get the same one.
//!
//! # Locking
//!
//! `Events::queue` is a leaf spinlock. Sleepers and eventfds are woken after it is released.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        poll::PollCondVarBox,
        Arc,
        SpinLock, //
    },
};

use crate::{
    abstractions::{
        clock,
        eventfd::EventFd, //
    },
    object::{
        budget::Group,
        device, //
    },
};

mod queue;

use self::queue::{
    Queue,
    Queued, //
};

/// Records that are kept before some are lost.
pub(crate) const CAPACITY: u32 = 256;

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The budget of a group has changed.
    Budget {
        /// The group.
        group: Group,
        /// The new budget.
        budget: u64,
        /// The usage.
        usage: u64,
    },
    /// The client shall give memory up.
    Trim {
        /// The group.
        group: Group,
        /// How much.
        bytes: u64,
        /// The usage.
        usage: u64,
    },
    /// A device changed its state.
    DeviceState {
        /// Its handle.
        device: u32,
        /// The new state.
        state: device::State,
    },
    /// A source has gone over to what a call wanted.
    Scanout {
        /// The source.
        source: u32,
        /// Sequence number of the call.
        sequence: u64,
    },
    /// Records are lost, because nobody read them in time.
    Overflow {
        /// How many.
        lost: u32,
    },
}

/// A kind of event that can be subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// [`Event::Budget`].
    Budget,
    /// [`Event::Trim`].
    Trim,
    /// [`Event::DeviceState`].
    DeviceState,
    /// [`Event::Scanout`].
    Scanout,
}

/// The kinds of events that a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds(u32);

impl Kinds {
    /// Returns the kinds with this one.
    pub(crate) fn with(self, kind: Kind) -> Self {
        Self(self.0 | kind.bit())
    }

    fn contains(self, kind: Kind) -> bool {
        self.0 & kind.bit() != 0
    }
}

impl Kind {
    fn bit(self) -> u32 {
        // CAST: a fieldless enum.
        1 << self as u32
    }
}

impl Event {
    /// Returns its kind; an overflow has none, it comes unasked.
    fn kind(&self) -> Option<Kind> {
        match self {
            Self::Budget { .. } => Some(Kind::Budget),
            Self::Trim { .. } => Some(Kind::Trim),
            Self::DeviceState { .. } => Some(Kind::DeviceState),
            Self::Scanout { .. } => Some(Kind::Scanout),
            Self::Overflow { .. } => None,
        }
    }

    /// Returns what it is about, if it makes older events on the same topic worthless.
    fn topic(&self) -> Option<(Kind, Group)> {
        match self {
            Self::Budget { group, .. } => Some((Kind::Budget, *group)),
            Self::Trim { group, .. } => Some((Kind::Trim, *group)),
            Self::DeviceState { .. } | Self::Scanout { .. } | Self::Overflow { .. } => None,
        }
    }
}

/// An event and when it happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// What has happened.
    pub(crate) event: Event,
    /// When, CLOCK_MONOTONIC.
    pub(crate) time_ns: u64,
}

impl Record {
    fn now(event: Event) -> Self {
        Self {
            event,
            time_ns: clock::now_ns(),
        }
    }
}

/// What a client has asked for.
struct Subscription {
    kinds: Kinds,
    eventfd: Option<Arc<EventFd>>,
    queue: Queue,
}

/// The events of one client.
#[pin_data]
pub(crate) struct Events {
    #[pin]
    queue: SpinLock<Option<Subscription>>,
    readable: PollCondVarBox,
}

/// Whether a reader waits for something to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It does, until a signal comes.
    Wait,
    /// It does not.
    Poll,
}

impl Events {
    /// Returns the events of a client that has not asked for any.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new() -> Result<impl PinInit<Self>> {
        let readable = PollCondVarBox::new(
            kernel::optional_name!("Events::readable"),
            kernel::static_lock_class!(),
        )?;
        Ok(pin_init!(Self {
            queue <- new_spinlock!(None, "Events::queue"),
            readable,
        }))
    }

    /// Returns what tells that there is something to read.
    pub(crate) fn readable(&self) -> &PollCondVarBox {
        &self.readable
    }

    /// Asks for these kinds of events, instead of what was asked for before. What is queued stays.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(crate) fn subscribe(&self, kinds: Kinds, eventfd: Option<EventFd>) -> Result {
        let eventfd = match eventfd {
            Some(eventfd) => Some(Arc::new(eventfd, GFP_KERNEL_ACCOUNT)?),
            None => None,
        };
        // Not needed if there is a queue, but nothing is taken under the lock.
        let mut new = Some(Subscription {
            kinds,
            eventfd,
            queue: Queue::new()?,
        });
        let mut queue = self.queue.lock();
        if let (Some(new), Some(old)) = (&mut new, &mut *queue) {
            core::mem::swap(&mut new.queue, &mut old.queue);
        }
        core::mem::swap(&mut *queue, &mut new);
        drop(queue);
        // The old one, with the queue that is not needed.
        drop(new);
        Ok(())
    }

    /// Asks for nothing any more. What is queued is thrown away.
    pub(crate) fn unsubscribe(&self) {
        let old = self.queue.lock().take();
        drop(old);
    }

    /// Tells the client that something has happened, if it wants to know.
    ///
    /// Callable from any context that may hold spinlocks but not those of a leaf.
    ///
    /// Requirement: RES-20.
    pub(super) fn post(&self, event: Event) {
        let eventfd = {
            let mut queue = self.queue.lock();
            let Some(subscription) = &mut *queue else {
                return;
            };
            let wanted = event
                .kind()
                .is_none_or(|kind| subscription.kinds.contains(kind));
            if !wanted || subscription.queue.push(event) == Queued::Within {
                return;
            }
            subscription.eventfd.clone()
        };
        self.readable.notify_all();
        if let Some(eventfd) = eventfd {
            eventfd.raise();
        }
    }

    /// Returns whether there is something to read.
    pub(crate) fn is_readable(&self) -> bool {
        matches!(&*self.queue.lock(), Some(subscription) if !subscription.queue.is_empty())
    }

    /// Hands out the first record.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: there is none, and `patience` says not to wait.
    /// - `ERESTARTSYS`: a signal.
    pub(crate) fn take(&self, patience: Patience) -> Result<Taken<'_>> {
        let mut queue = self.queue.lock();
        loop {
            let record = match &mut *queue {
                Some(subscription) => subscription.queue.take(),
                None => None,
            };
            if let Some(record) = record {
                return Ok(Taken {
                    events: self,
                    record,
                    fate: Fate::Unread,
                });
            }
            if patience == Patience::Poll {
                return Err(EAGAIN);
            }
            if self.readable.wait_interruptible(&mut queue) {
                return Err(ERESTARTSYS);
            }
        }
    }

    fn settle(&self, record: Record, fate: Fate) {
        let mut queue = self.queue.lock();
        let Some(subscription) = &mut *queue else {
            return;
        };
        match fate {
            Fate::Delivered => {
                subscription.queue.keep_out();
                return;
            }
            Fate::Unread => subscription.queue.put_back(record),
        }
        drop(queue);
        self.readable.notify_all();
    }
}

/// What has become of a record that was handed out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Unread,
    Delivered,
}

/// A record that is handed out. Dropping it puts it back, unless it was delivered.
pub(crate) struct Taken<'a> {
    events: &'a Events,
    record: Record,
    fate: Fate,
}

impl Taken<'_> {
    /// Returns the record.
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// The client has it.
    pub(crate) fn delivered(mut self) {
        self.fate = Fate::Delivered;
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.events.settle(self.record, self.fate);
    }
}
