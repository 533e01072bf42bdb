// SPDX-License-Identifier: GPL-2.0

//! SCANOUT: which primary a display source shows.
//!
//! A source shows one primary at a time, or none. What it shows lies in one run, in a memory segment or
//! of the aperture, and is *fixed* there: it neither moves nor leaves until the source has gone over to
//! something else (SEG-23).
//!
//! A call is a [`Switch`], in three steps:
//!
//! | step | where | what |
//! |---|---|---|
//! | asked | calling thread | everything is checked that needs no place; memory for all that follows is taken |
//! | coming | worker ([`stage`]) | the new primary has its range: the call is accepted, or refused with the source as it was |
//! | over | worker | the wait is reached, work that was accepted before and writes the new primary has ended, and the paging that brings the range is complete: the new one starts, the old one stops and gives up what it had |
//!
//! The thread waits for the second step, the program for the third, with a fence. A source has one
//! switch coming at a time, and so two ranges at most, however fast a program flips (SEG-25); a call
//! that finds one coming waits until it is over. Waits of calls end with a signal as long as the call
//! is not accepted, and leave nothing behind.
//!
//! The first client that shows something on a source owns it until it has gone blank again, or the
//! client has.
//!
//! # Locking
//!
//! `Source::inner` is a leaf spinlock. The worker alone changes what it protects.

use kernel::{
    list::ListArc,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc,
        SpinLock, //
    },
};

use crate::{
    abstractions::wait_queue::{
        new_wait_queue,
        Deadline,
        Sleep,
        WaitQueue,
        Woken, //
    },
    object::{
        adapter::Adapter,
        allocation::Hold,
        client::Client,
        reclaim::Kept,
        submission::Point,
        worker::Worker, //
    },
};

mod stage;
mod switch;

use self::switch::Answer;
pub(crate) use self::switch::{
    Granted,
    Purpose, //
};
pub(super) use self::{
    stage::Stage,
    switch::Switch, //
};

/// One display source.
#[pin_data]
pub(crate) struct Source {
    number: u32,
    #[pin]
    inner: SpinLock<Inner>,
    /// Where calls wait for their answer.
    #[pin]
    answered: WaitQueue,
}

struct Inner {
    owner: Owner,
    shown: Option<Hold>,
    /// Accepted calls.
    sequence: u64,
}

/// Who has a source.
enum Owner {
    /// Nobody.
    Nobody,
    /// The client that shows something on it, or is about to.
    Client(Arc<Client>),
    /// A client that is gone; what it shows has yet to stop.
    Gone,
}

/// What a source is doing.
pub(crate) struct Snapshot {
    /// Number of the client that owns it, 0 if it is gone.
    pub(crate) owner: Option<u64>,
    /// What it shows.
    pub(crate) shown: Option<Hold>,
    /// The last sequence number that a call got.
    pub(crate) sequence: u64,
}

impl Source {
    fn new(number: u32) -> Result<Arc<Self>> {
        let inner = Inner {
            owner: Owner::Nobody,
            shown: None,
            sequence: 0,
        };
        Arc::pin_init(
            pin_init!(Self {
                number,
                inner <- new_spinlock!(inner, "Source::inner"),
                answered <- new_wait_queue!("Source::answered"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns its number.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Returns what it is doing.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let inner = self.inner.lock();
        Snapshot {
            owner: match &inner.owner {
                Owner::Nobody => None,
                Owner::Client(client) => Some(client.id()),
                Owner::Gone => Some(0),
            },
            shown: inner.shown.clone(),
            sequence: inner.sequence,
        }
    }

    /// Refuses whoever may not use it.
    fn check_owner(&self, client: &Arc<Client>) -> Result {
        match &self.inner.lock().owner {
            Owner::Nobody => Ok(()),
            Owner::Client(owner) if Arc::ptr_eq(owner, client) => Ok(()),
            Owner::Client(_) | Owner::Gone => Err(EBUSY),
        }
    }
}

/// The sources of an adapter.
pub(crate) struct Sources {
    list: KVec<Arc<Source>>,
    /// Whether the owner of one is gone.
    deserted: Atomic<bool>,
}

impl Sources {
    /// Makes `count` sources that show nothing.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new(count: u32) -> Result<Self> {
        let mut list = KVec::new();
        for number in 0..count {
            list.push(Source::new(number)?, GFP_KERNEL)?;
        }
        Ok(Self {
            list,
            deserted: Atomic::new(false),
        })
    }

    /// Returns the source with this number.
    pub(crate) fn get(&self, number: u32) -> Option<&Arc<Source>> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.list.get(number as usize)
    }

    /// Returns whether a client is gone whose sources are not blank yet.
    pub(super) fn are_deserted(&self) -> bool {
        self.deserted.load(Acquire)
    }

    /// Returns all of them, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Source>> {
        self.list.iter()
    }
}

/// What SCANOUT asks for, decoded and resolved.
pub(crate) struct Request {
    /// Number of the source.
    pub(crate) source: u32,
    /// What to show; [`None`] blanks.
    pub(crate) primary: Option<Hold>,
    /// Reached before the switch.
    pub(crate) wait: Option<Point>,
    /// Signalled when the old primary is no longer shown.
    pub(crate) signal: Option<Point>,
    /// Whether anything is shown at all.
    pub(crate) purpose: Purpose,
}

/// Lets a source show something else, or says whether it could.
///
/// # Errors
///
/// - `EIO`: the device of the primary is in error, or a move to its range fails.
/// - `EINVAL`: no such source, not a primary, or a picture that the source cannot show.
/// - `EBUSY`: another client owns the source, or the primary is offered.
/// - `ENOENT`: the primary is closed meanwhile.
/// - `ENOSPC`: no range for it, whoever leaves.
/// - `ENOMEM`: no memory.
/// - `EINTR`: a signal; nothing has changed.
///
/// Requirements: SEG-22 to SEG-25.
pub(crate) fn scanout(client: &Arc<Client>, request: Request) -> Result<Granted> {
    let adapter = client.adapter();
    if let Some(primary) = &request.primary {
        primary.device().ensure_active()?;
    }
    let source = adapter.sources().get(request.source).ok_or(EINVAL)?;
    if let Some(primary) = &request.primary {
        check_picture(adapter, primary)?;
    }
    source.check_owner(client)?;
    if request
        .primary
        .as_ref()
        .is_some_and(|primary| primary.is_offered())
    {
        return Err(EBUSY);
    }
    // Its pages stay until it has its range.
    let _kept = match (&request.primary, request.purpose) {
        (Some(primary), Purpose::Show) => {
            primary.commit()?;
            Kept::new(primary.allocation())?
        }
        _ => None,
    };
    let mut kept = None;
    loop {
        let switch = Switch::new(client, source, &request, kept)?;
        match ask(adapter, source, switch)? {
            Answer::Granted(granted) => return Ok(granted),
            Answer::Refused(error) => return Err(error),
            // Room can only be made by moving others: the worker has to know who stays.
            Answer::NeedsList => {
                kept = match &request.primary {
                    Some(primary) => Some(required(primary)?),
                    None => None,
                };
            }
        }
    }
}

/// Returns claims on everything that the device of a primary holds references to and has not offered.
fn required(primary: &Hold) -> Result<KVVec<Hold>> {
    let required = primary.device().required()?;
    let mut holds = KVVec::with_capacity(required.len(), GFP_KERNEL_ACCOUNT)?;
    for requirement in &required {
        holds.push(requirement.hold().clone(), GFP_KERNEL_ACCOUNT)?;
    }
    Ok(holds)
}

/// Hands a switch to the worker and waits for the answer.
fn ask(adapter: &Adapter, source: &Source, switch: ListArc<Switch>) -> Result<Answer> {
    let asked = switch.clone_arc();
    Worker::push_switch(adapter.worker(), switch);
    let answer = source
        .answered
        .wait(Sleep::Interruptible, Deadline::Never, || asked.answer());
    match answer {
        Ok(answer) => Ok(answer),
        Err(Woken::Signal | Woken::Deadline) => match asked.withdraw() {
            Some(answer) => Ok(answer),
            None => {
                // The worker forgets it.
                Worker::kick(adapter.worker());
                Err(EINTR)
            }
        },
    }
}

/// Refuses what the sources cannot show.
fn check_picture(adapter: &Adapter, allocation: &Hold) -> Result {
    let picture = allocation.primary().ok_or(EINVAL)?.picture();
    let limits = &adapter.backend().capabilities().picture;
    if picture.width > limits.width || picture.height > limits.height {
        return Err(EINVAL);
    }
    Ok(())
}

/// Takes the sources of a client away, which is going: the worker blanks them.
pub(crate) fn desert(client: &Arc<Client>) {
    let sources = client.adapter().sources();
    let mut any = false;
    for source in sources.iter() {
        let mut gone = Owner::Gone;
        let mut inner = source.inner.lock();
        let owned = matches!(&inner.owner, Owner::Client(owner) if Arc::ptr_eq(owner, client));
        if owned {
            core::mem::swap(&mut inner.owner, &mut gone);
            any = true;
        }
        drop(inner);
        drop(gone);
    }
    if any {
        sources.deserted.store(true, Release);
        Worker::kick(client.adapter().worker());
    }
}
