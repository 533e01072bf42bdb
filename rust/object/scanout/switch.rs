// SPDX-License-Identifier: GPL-2.0

//! One call of SCANOUT, from the calling thread to the worker and back.
//!
//! The thread that asks and the worker share the switch until it is answered: whoever is first, the
//! answer of the worker or the signal that makes the thread give up, decides what becomes of it. After
//! that the worker has it alone.

use kernel::{
    list::{
        define_list_arc_field_getter,
        impl_list_arc_safe,
        impl_list_item,
        ListArc,
        ListArcField,
        ListLinks, //
    },
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc, //
    },
};

use crate::{
    abstractions::trace,
    object::{
        allocation::Hold,
        client::Client,
        fence::{
            Fence,
            Reached,
            Waiter,
            Wake, //
        },
        submission::Point,
        worker::Worker, //
    },
};

use super::{
    Request,
    Source, //
};

/// What a switch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To show something.
    Show,
    /// To know whether it could be shown.
    Test,
}

/// What an accepted call says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    /// Handle of the primary that is shown until then, 0 if there is none.
    pub(crate) previous: u32,
    /// Which accepted call on its source it is.
    pub(crate) sequence: u64,
}

/// What the worker says to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It will be carried out.
    Granted(Granted),
    /// It is forgotten.
    Refused(Error),
    /// To be asked again, with a list of who stays.
    NeedsList,
}

/// Not answered yet.
const ASKED: i32 = 0;
/// [`Answer::Granted`].
const GRANTED: i32 = 1;
/// [`Answer::NeedsList`].
const NEEDS_LIST: i32 = 2;
/// The thread has given up.
const WITHDRAWN: i32 = 3;

/// Rung when the value is reached that a switch waits for.
pub(super) struct Bell {
    worker: Arc<Worker>,
    rung: Atomic<bool>,
}

impl Wake for Bell {
    fn wake(&self, _ticket: u64) {
        self.rung.store(true, Release);
        Worker::kick(&self.worker);
    }
}

/// What changes while a switch is on its way. Belongs to the worker.
pub(super) struct Progress {
    /// Memory for the wait.
    waiter: Option<Waiter>,
    /// Writes to the new primary with lower numbers were accepted before.
    pub(super) writes: u64,
}

/// A source is to show something else.
#[pin_data]
pub(in crate::object) struct Switch {
    number: u64,
    source: Arc<Source>,
    client: Arc<Client>,
    purpose: Purpose,
    primary: Option<Hold>,
    wait: Option<Point>,
    signal: Option<Point>,
    /// What must stay in its place when room is made, if it is known.
    kept: Option<KVVec<Hold>>,
    bell: Arc<Bell>,
    state: Atomic<i32>,
    previous: Atomic<u32>,
    sequence: Atomic<u64>,
    progress: ListArcField<Progress>,
    #[pin]
    links: ListLinks,
}

impl_list_arc_safe! {
    impl ListArcSafe<0> for Switch { untracked; }
}

impl_list_item! {
    impl ListItem<0> for Switch { using ListLinks { self.links }; }
}

impl Switch {
    /// Makes a switch, with all the memory that it will need.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new(
        client: &Arc<Client>,
        source: &Arc<Source>,
        request: &Request,
        kept: Option<KVVec<Hold>>,
    ) -> Result<ListArc<Self>> {
        let adapter = client.adapter();
        let number = adapter.next_number();
        let bell = Arc::new(
            Bell {
                worker: adapter.worker().clone(),
                rung: Atomic::new(request.wait.is_none()),
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        let waiter = match &request.wait {
            Some(point) => Some(Fence::waiter(point.value, number, bell.clone())?),
            None => None,
        };
        let progress = Progress { waiter, writes: 0 };
        ListArc::pin_init(
            try_pin_init!(Self {
                number,
                source: source.clone(),
                client: client.clone(),
                purpose: request.purpose,
                primary: request.primary.clone(),
                wait: request.wait.clone(),
                signal: request.signal.clone(),
                kept,
                bell,
                state: Atomic::new(ASKED),
                previous: Atomic::new(0),
                sequence: Atomic::new(0),
                progress: ListArcField::new(progress),
                links <- ListLinks::new(),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    define_list_arc_field_getter! {
        pub(super) fn progress(&self) -> &Progress { progress }
        pub(super) fn progress_mut(&mut self) -> &mut Progress { progress }
    }

    /// Returns the source.
    pub(super) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Returns who asks.
    pub(super) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Returns what it is for.
    pub(super) fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Returns what is to be shown; [`None`] blanks.
    pub(super) fn primary(&self) -> Option<&Hold> {
        self.primary.as_ref()
    }

    /// Returns what is signalled when the old primary is no longer shown.
    pub(super) fn signal(&self) -> Option<&Point> {
        self.signal.as_ref()
    }

    /// Returns what must stay in its place when room is made, if that is known.
    pub(super) fn kept(&self) -> Option<&[Hold]> {
        self.kept.as_deref()
    }

    /// Returns the answer, if there is one.
    pub(super) fn answer(&self) -> Option<Answer> {
        match self.state.load(Acquire) {
            ASKED | WITHDRAWN => None,
            GRANTED => Some(Answer::Granted(Granted {
                previous: self.previous.load(Relaxed),
                sequence: self.sequence.load(Relaxed),
            })),
            NEEDS_LIST => Some(Answer::NeedsList),
            errno => Some(Answer::Refused(Error::from_errno(errno))),
        }
    }

    /// Takes the question back, unless it is answered; then this is the answer.
    pub(super) fn withdraw(&self) -> Option<Answer> {
        match self.state.cmpxchg(ASKED, WITHDRAWN, Full) {
            Ok(_) => None,
            Err(_) => self.answer(),
        }
    }

    /// Returns whether nobody waits for an answer any more.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.state.load(Acquire) == WITHDRAWN
    }

    /// Answers; says whether the answer counts, because the question was not taken back.
    pub(super) fn respond(&self, answer: Answer) -> bool {
        let state = match answer {
            Answer::Granted(granted) => {
                self.previous.store(granted.previous, Relaxed);
                self.sequence.store(granted.sequence, Relaxed);
                GRANTED
            }
            Answer::NeedsList => NEEDS_LIST,
            Answer::Refused(error) => error.to_errno(),
        };
        self.state.cmpxchg(ASKED, state, Full).is_ok()
    }

    /// Begins to wait for what has to be reached before.
    pub(super) fn begin_wait(this: &mut ListArc<Self>) {
        let Some(point) = this.wait.clone() else {
            return;
        };
        // A poisoned fence holds nobody up.
        if point.fence.reached(point.value) == Reached::No {
            if let Some(waiter) = this.progress_mut().waiter.take() {
                this.trace_wait(trace::Waiting::Begin);
                if point.fence.wait_for(point.value, waiter) == Reached::No {
                    return;
                }
            }
        }
        this.bell.rung.store(true, Release);
    }

    /// Returns whether the wait is over.
    pub(super) fn is_due(&self) -> bool {
        self.bell.rung.load(Acquire)
    }

    /// Ends the wait, if it began.
    pub(super) fn end_wait(this: &ListArc<Self>, action: trace::Waiting) {
        if let (Some(point), None) = (&this.wait, &this.progress().waiter) {
            point.fence.forget(point.value, this.number);
            this.trace_wait(action);
        }
    }

    fn trace_wait(&self, action: trace::Waiting) {
        if let Some(point) = &self.wait {
            trace::fence_wait(|| trace::FenceWait {
                fence: point.fence.number(),
                value: point.value,
                context: 0,
                action,
            });
        }
    }
}
