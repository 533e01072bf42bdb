// SPDX-License-Identifier: GPL-2.0

//! Contexts: ordered streams of submissions on one node.
//!
//! Submissions of a context start in the order in which they were accepted, and each waits for its
//! fences when it is first in line; nobody else is held up (SYN-4). The first in line goes to the
//! worker, which prepares its memory; then the next one may come. What is on its way through the node
//! is kept in order too, because a node completes in order.
//!
//! # Locking
//!
//! `Context::inner` (rank 5, spinlock) protects the queues. Nobody is called with it held but the
//! fences' own locks (rank 7).
//!
//! Size: the ways into the queues of a context share one lock.

use kernel::{
    list::{
        List,
        ListArc, //
    },
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        SpinLock, //
    },
    types::ScopeGuard,
};

use crate::{
    abstractions::{
        pages::Charge,
        trace, //
    },
    backend::{
        ContextDescription,
        EngineContext, //
    },
    object::{
        device::Device,
        fence::{
            Fence,
            OnReset,
            Purpose,
            Reached,
            Wake, //
        },
        name,
        presence::ContextPresence,
        standing::Root,
        submission::{
            Point,
            Record,
            State,
            Submission, //
        },
        worker::Worker, //
    },
    policy::sharing::{
        Claim,
        Meter, //
    },
    units::NodeOrdinal,
};

mod completion;

/// Submissions of a context that may be ahead of the line: with the worker or the node.
const AHEAD: u32 = 64;

/// What those had that went to a node last: nobody who comes counts as having had less.
#[derive(Clone, Copy, Default)]
pub(super) struct Floor {
    client: u64,
    context: u64,
}

/// Finished submissions that SUBMIT_QUERY can still see.
pub(crate) const REMEMBERED: usize = 256;

/// How the work of a context names memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Patched addresses; the lists decide residency.
    PatchedList,
    /// Patched addresses; everything named holds a residency reference.
    PatchedExplicit,
    /// Virtual addresses; everything on the residency list is in its place (RES-12).
    Virtual,
}

/// What CONTEXT_CREATE asks for.
#[derive(Clone, Copy)]
pub(crate) struct Description {
    /// The node.
    pub(crate) node: NodeOrdinal,
    /// How memory is named.
    pub(crate) mode: Mode,
    /// What can be changed later.
    pub(crate) tuning: Tuning,
}

/// What CONTEXT_SET can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// -7 to 7.
    pub(crate) priority: i32,
    /// Time limit of one portion in milliseconds; 0 is the default of the node, all ones is none.
    pub(crate) timeout_ms: u32,
}

impl Tuning {
    /// The time limit of contexts that have none.
    pub(crate) const UNLIMITED_MS: u32 = u32::MAX;

    /// Returns the time limit of one portion; [`None`] if there is none.
    fn limit_ms(&self, default_ms: impl FnOnce() -> u32) -> Option<u32> {
        match self.timeout_ms {
            0 => Some(default_ms()),
            Self::UNLIMITED_MS => None,
            limit => Some(limit),
        }
    }
}

/// Where the first submission in line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nobody looks at it.
    Idle,
    /// Its waits are being looked at.
    Checking,
    /// It waits for a fence.
    Waiting,
    /// The worker has it.
    Preparing,
}

/// One context.
#[pin_data]
pub(crate) struct Context {
    number: u64,
    device: Arc<Device>,
    node: NodeOrdinal,
    mode: Mode,
    presence: ContextPresence,
    progress: Arc<Fence>,
    #[pin]
    name: name::Slot,
    #[pin]
    inner: SpinLock<Inner>,
}

struct Inner {
    tuning: Tuning,
    stage: Stage,
    /// Which wait of the first in line is being waited for.
    next_wait: usize,
    /// The fence on which a waiter of this context is left.
    waiting_on: Option<(Arc<Fence>, u64)>,
    /// Accepted, not yet with the worker.
    queued: List<Submission>,
    /// With the node, in order.
    flight: List<Submission>,
    /// Why nothing is taken any more.
    closed: Option<Error>,
    last_id: u64,
    known: RBTree<u64, Arc<Record>>,
    finished: usize,
    /// The root that the engine knows.
    root: Option<Root>,
    /// The scheduler's search in which something of this context was met.
    met: u64,
    /// What it has had of its node.
    meter: Meter,
    /// How long its last portion took, in nanoseconds.
    took_ns: u64,
    /// When its node began the portion that runs.
    begun_ns: u64,
    /// Submissions that the worker or the node has.
    ahead: u32,
}

impl Context {
    /// Makes a context of `device`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: no such node.
    /// - `ENOMEM`: no memory.
    /// - `ENOSPC`: no mapping offset left for its fence.
    pub(crate) fn new(device: &Arc<Device>, description: &Description) -> Result<Arc<Self>> {
        let adapter = device.adapter();
        let number = adapter.next_number();
        let progress = Fence::new(device.client(), Purpose::Progress, 0)?;
        let progress = ScopeGuard::new_with_data(progress, |progress| {
            progress.unlist(device.client());
        });
        let shared = Arc::clone(&progress);
        let presence = ContextPresence::new(
            adapter.backend(),
            ContextDescription {
                number,
                process: device.client().id(),
                node: description.node,
                charge: Charge::Client,
            },
        )?;
        let inner = Inner {
            tuning: description.tuning,
            stage: Stage::Idle,
            next_wait: 0,
            waiting_on: None,
            queued: List::new(),
            flight: List::new(),
            closed: None,
            last_id: 0,
            known: RBTree::new(),
            finished: 0,
            root: None,
            met: 0,
            meter: Meter::default(),
            took_ns: 0,
            begun_ns: 0,
            ahead: 0,
        };
        let context = Arc::pin_init(
            pin_init!(Self {
                number,
                device: device.clone(),
                node: description.node,
                mode: description.mode,
                presence,
                progress: shared,
                name <- name::Slot::new(),
                inner <- new_spinlock!(inner, "Context::inner"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        device.add_context(&context)?;
        if let Err(error) = adapter.registries().contexts.add(number, &context) {
            device.remove_context(number);
            return Err(error);
        }
        progress.dismiss();
        Ok(context)
    }

    /// Ends the context: what has not started is thrown away, what runs is stopped. Called when its
    /// handle goes.
    pub(crate) fn closed(&self) {
        self.cancel(ECANCELED);
        self.device.remove_context(self.number);
        self.device
            .adapter()
            .registries()
            .contexts
            .remove(self.number);
    }

    /// Returns its number, unique on the adapter.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the device it belongs to.
    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Returns its node.
    pub(crate) fn node(&self) -> NodeOrdinal {
        self.node
    }

    /// Returns how its work names memory.
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the fence that carries the id of the last finished submission.
    pub(crate) fn progress(&self) -> &Arc<Fence> {
        &self.progress
    }

    /// Returns where its name is.
    pub(crate) fn name(&self) -> &name::Slot {
        &self.name
    }

    /// Returns what can be changed.
    pub(crate) fn tuning(&self) -> Tuning {
        self.inner.lock().tuning
    }

    /// Changes what can be changed.
    pub(crate) fn tune(&self, change: impl FnOnce(&mut Tuning)) {
        change(&mut self.inner.lock().tuning);
    }

    /// Returns the time limit of a context on this node that sets none.
    fn default_limit_ms(&self) -> u32 {
        let capabilities = self.device.adapter().backend().capabilities();
        capabilities
            .node(self.node)
            .map_or(0, |node| node.timeout_ms)
    }

    /// Returns the backend's side of it.
    pub(super) fn engine(&self) -> &Arc<dyn EngineContext> {
        self.presence.engine()
    }

    /// Returns whether nothing of it runs any more.
    pub(super) fn is_closed(&self) -> bool {
        self.inner.lock().closed.is_some()
    }

    /// Returns the number of submissions that wait in line and that are with the node.
    pub(crate) fn depth(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.queued.iter().count(), inner.flight.iter().count())
    }

    /// Returns the number of the last accepted submission.
    pub(crate) fn last_id(&self) -> u64 {
        self.inner.lock().last_id
    }

    /// Returns what is remembered of a submission.
    ///
    /// # Errors
    ///
    /// - `ENOENT`: it never existed or is forgotten.
    pub(crate) fn record(&self, id: u64) -> Result<Arc<Record>> {
        self.inner.lock().known.get(&id).cloned().ok_or(ENOENT)
    }

    /// Takes a submission, whose use has begun, into the line and returns its number.
    ///
    /// # Errors
    ///
    /// - `EIO`, `ECANCELED`: the context takes nothing any more.
    /// - `ENOMEM`: no memory.
    pub(super) fn accept(&self, submission: ListArc<Submission>) -> Result<u64> {
        let known = match RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT) {
            Ok(known) => known,
            Err(error) => {
                submission.end_use();
                return Err(error);
            }
        };
        let record = submission.record().clone();
        let id = {
            let mut inner = self.inner.lock();
            if let Some(error) = inner.closed {
                drop(inner);
                submission.end_use();
                return Err(error);
            }
            inner.last_id += 1;
            let id = inner.last_id;
            submission.set_id(id);
            inner.known.insert(known.into_node(id, record));
            inner.queued.push_back(submission);
            id
        };
        self.advance();
        Ok(id)
    }

    /// Looks at the first in line and moves it on as far as it goes.
    pub(super) fn advance(&self) {
        let Some(first) = self.begin_check() else {
            return;
        };
        if self.wait_for_fences(&first) {
            return;
        }
        drop(first);
        let submission = {
            let mut inner = self.inner.lock();
            inner.next_wait = 0;
            let submission = inner.queued.pop_front();
            inner.stage = match submission {
                Some(_) => Stage::Preparing,
                None => Stage::Idle,
            };
            inner.ahead += u32::from(submission.is_some());
            submission
        };
        if let Some(submission) = submission {
            submission
                .record()
                .update(|report| report.state = State::Paging);
            Worker::push_submission(self.device.adapter().worker(), submission);
        }
    }

    /// Takes on the check of the first in line, unless somebody has it.
    fn begin_check(&self) -> Option<Arc<Submission>> {
        let mut inner = self.inner.lock();
        if inner.stage != Stage::Idle || inner.ahead >= AHEAD {
            return None;
        }
        let first = inner.queued.cursor_front().peek_next()?.arc().into();
        inner.stage = Stage::Checking;
        Some(first)
    }

    /// Goes through the waits of the first in line; returns whether it has to wait.
    fn wait_for_fences(&self, first: &Submission) -> bool {
        let mut begun = None;
        loop {
            let index = self.inner.lock().next_wait;
            let Some(point) = first.waits().get(index) else {
                return false;
            };
            let satisfied = match point.fence.reached(point.value) {
                // A poisoned fence holds nobody up.
                Reached::Yes | Reached::Poisoned(_) => true,
                Reached::No => match first.take_waiter() {
                    None => true,
                    Some(waiter) => {
                        begun = Some(index);
                        self.trace_wait(&point.fence, point.value, trace::Waiting::Begin);
                        if !self.begin_wait(point) {
                            // Closed meanwhile: what is left of it goes to the worker to end.
                            return false;
                        }
                        let reached = point.fence.wait_for(point.value, waiter);
                        if reached == Reached::No && self.is_closed() {
                            // The one who closed it may have looked before the waiter was there.
                            point.fence.forget(point.value, self.number);
                        }
                        reached != Reached::No
                    }
                },
            };
            if !satisfied {
                return true;
            }
            if begun == Some(index) {
                self.trace_wait(&point.fence, point.value, trace::Waiting::End);
                let mut inner = self.inner.lock();
                inner.stage = Stage::Checking;
                let waited = inner.waiting_on.take();
                inner.next_wait = index + 1;
                drop(inner);
                drop(waited);
            } else {
                self.inner.lock().next_wait = index + 1;
            }
        }
    }

    /// Notes that a waiter of this context will be at the fence of `point`, unless the context is
    /// closed.
    fn begin_wait(&self, point: &Point) -> bool {
        let mut inner = self.inner.lock();
        if inner.closed.is_some() {
            return false;
        }
        inner.stage = Stage::Waiting;
        inner.waiting_on = Some((point.fence.clone(), point.value));
        true
    }

    fn trace_wait(&self, fence: &Fence, value: u64, action: trace::Waiting) {
        trace::fence_wait(|| trace::FenceWait {
            fence: fence.number(),
            value,
            context: self.number,
            action,
        });
    }

    /// Lets the engine find the tables of the client at `root`, before anything of the context runs; if it
    /// knew a root and that has not changed, nothing happens (VA-12).
    pub(super) fn enter(&self, root: Root) {
        let known = self.inner.lock().root.replace(root);
        if known != Some(root) {
            let backend = self.device.adapter().backend();
            backend.set_root(&**self.engine(), root);
        }
    }

    /// Lets the engine find the tables at another root, if it knew one; nothing of the context runs.
    pub(super) fn follow(&self, root: Root) {
        let knows = self.inner.lock().root.is_some();
        if knows {
            self.enter(root);
        }
    }

    /// The worker has prepared the first in line: the next one may come.
    pub(super) fn prepared(&self) {
        self.inner.lock().stage = Stage::Idle;
        self.advance();
    }

    /// Takes a submission that goes to the node now.
    pub(super) fn depart(&self, submission: ListArc<Submission>) {
        self.inner.lock().flight.push_back(submission);
    }

    /// Notes that something of it was met in the scheduler's search `search`; says whether that is the first
    /// of it.
    pub(super) fn meet(&self, search: u64) -> bool {
        core::mem::replace(&mut self.inner.lock().met, search) != search
    }

    /// Returns its claim on its node, given what those had that went last.
    pub(super) fn claim(&self, floor: &Floor) -> Claim {
        let client = self.device.client();
        let had = client.with_meter(self.node, |meter| meter.had(floor.client));
        let inner = self.inner.lock();
        Claim {
            priority: inner.tuning.priority,
            client: had.unwrap_or(0),
            context: inner.meter.had(floor.context),
        }
    }

    /// Charges a portion that goes to the node; returns what it is expected to take.
    pub(super) fn charge(&self, floor: &mut Floor) -> u64 {
        let expected = {
            let mut inner = self.inner.lock();
            let expected = inner.took_ns;
            floor.context = inner.meter.begin(floor.context, expected);
            expected
        };
        let client = self.device.client();
        let begun = client.with_meter(self.node, |meter| meter.begin(floor.client, expected));
        floor.client = begun.unwrap_or(floor.client);
        expected
    }

    /// A submission is with neither the worker nor the node any more; the next one may come.
    fn fall_back(&self) {
        let mut inner = self.inner.lock();
        inner.ahead = inner.ahead.saturating_sub(1);
        drop(inner);
        self.advance();
    }

    /// Throws everything away that has not started, and stops what runs.
    pub(super) fn cancel(&self, error: Error) {
        let mut queued = List::new();
        let waited = {
            let mut inner = self.inner.lock();
            if inner.closed.is_none() {
                inner.closed = Some(error);
            }
            queued.push_all_back(&mut inner.queued);
            inner.waiting_on.take()
        };
        self.engine().stop();
        if let Some((fence, value)) = waited {
            self.trace_wait(&fence, value, trace::Waiting::Cancel);
            fence.forget(value, self.number);
        }
        while let Some(submission) = queued.pop_front() {
            self.discard(&submission);
        }
        // Who closes the context sees how far it came; who is thrown out comes free.
        let on_reset = if error == ECANCELED {
            OnReset::Keep
        } else {
            OnReset::Saturate
        };
        self.progress.poison(error, on_reset);
        Worker::kick(self.device.adapter().worker());
    }

    /// Ends a submission that does not run to its end.
    pub(super) fn discard(&self, submission: &Submission) {
        submission.end_use();
        // Somebody may wait for the room.
        Worker::kick(self.device.adapter().worker());
        self.end(submission, Some(ECANCELED));
    }
}

/// The cookie of the last buffer of a submission.
pub(super) const LAST: u64 = 1;

/// The cookie of a portion behind which the submission is cut.
pub(super) const CUT: u64 = 2;

impl Wake for Context {
    fn wake(&self, _ticket: u64) {
        let waited = {
            let mut inner = self.inner.lock();
            if inner.stage == Stage::Waiting {
                inner.stage = Stage::Idle;
            }
            let waited = inner.waiting_on.take();
            if waited.is_some() {
                inner.next_wait += 1;
            }
            waited
        };
        if let Some((fence, value)) = waited {
            self.trace_wait(&fence, value, trace::Waiting::End);
        }
        self.advance();
    }
}
