// SPDX-License-Identifier: GPL-2.0

//! The worker: one ordered work item per adapter that carries out memory requests.
//!
//! Four kinds of request reach it: commands of paging queues, submissions that are next on their
//! context, switches of display sources, and allocations that ask for attention (their claims or
//! references are gone, or the CPU wants to touch them out of reach). It carries out each in turn: a request that must wait for
//! running work is left in its place and tried again when something has completed, and holds up only
//! what comes behind it on its own queue (RES-9). The worker never waits for anything but a free
//! paging buffer, and never allocates.
//!
//! It alone hands portions to the nodes, so that they arrive in the order in which their memory was
//! prepared.
//!
//! # Locking
//!
//! `Worker::inbox` (rank 6, spinlock) protects what has arrived. `Worker::desk` (rank 0, mutex) is
//! what the worker has before it; nobody else takes it, except the debug commands.

use kernel::{
    list::{
        List,
        ListArc, //
    },
    new_mutex, new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc,
        Mutex,
        SpinLock, //
    },
    workqueue::{
        impl_has_work,
        new_work,
        Work,
        WorkItem, //
    },
};

use crate::{
    abstractions::{
        trace,
        work::OrderedQueue, //
    },
    backend::Capabilities,
    object::{
        adapter::Adapter,
        address_space::AddressSpace,
        allocation::{
            Allocation,
            Hold, //
        },
        client_tables::ClientTables,
        command::Command,
        context::Floor,
        device::{
            self,
            Offence, //
        },
        paging::Builder,
        paging_queue::Priority,
        placement::{
            Behalf,
            Mover,
            Paged,
            Reader,
            Refusal,
            Residency, //
        },
        residence::Wish,
        residency::Urgency,
        scanout::Stage,
        scheduler,
        submission::Submission,
    },
    units::NodeOrdinal,
};

mod inbox;
mod portions;
mod request;
mod turns;
mod unplaced;

pub(in crate::object) use self::turns::Turns;
use self::{
    inbox::Inbox,
    portions::Draft, //
};

/// The worker of an adapter.
#[pin_data]
pub(crate) struct Worker {
    queue: OrderedQueue,
    held: Atomic<bool>,
    #[pin]
    inbox: SpinLock<Inbox>,
    #[pin]
    desk: Mutex<Desk>,
    /// The adapter it works for; none before it is set up and after it is shut down.
    #[pin]
    adapter: SpinLock<Option<Arc<Adapter>>>,
    #[pin]
    work: Work<Worker>,
}

impl_has_work! {
    impl HasWork<Self> for Worker { self.work }
}

/// What the worker has before it.
pub(super) struct Desk {
    /// Commands by priority, each list in the order of arrival.
    commands: [List<Command>; 3],
    /// Submissions whose memory is to be prepared.
    submissions: List<Submission>,
    /// Submissions that are prepared, in this order; they go to their nodes when the paging in
    /// front of them is complete.
    pub(super) prepared: List<Submission>,
    /// Allocations whose last operations are outstanding.
    departing: List<Allocation>,
    /// Spaces of which something is stale, without a command.
    spaces: List<AddressSpace>,
    /// Tables of clients that are gone, written by buffers that are not complete.
    buried: List<ClientTables>,
    /// Switches of display sources.
    pub(super) stage: Stage,
    pub(super) builder: Builder,
    /// What those had that went to each node last.
    pub(super) floors: KVec<Floor>,
    /// Numbers the searches of the scheduler.
    pub(super) searches: u64,
    /// Who may be between two portions.
    pub(super) turns: Turns,
    draft: Draft,
    /// Completion values given out, per node.
    pub(super) node_fences: KVec<u64>,
    /// Numbers each pass, so that a queue can be seen to be blocked in this one.
    pass: u64,
}

impl Worker {
    /// Makes a worker without an adapter; `builder` has done what was done before.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    // Kept apart, so that its temporaries are off the stack before the next step.
    #[inline(never)]
    pub(super) fn new(capabilities: &Capabilities, builder: Builder) -> Result<Arc<Self>> {
        let nodes = capabilities.nodes.len();
        let desk = Desk {
            commands: [const { List::new() }; 3],
            submissions: List::new(),
            prepared: List::new(),
            departing: List::new(),
            spaces: List::new(),
            buried: List::new(),
            stage: Stage::new(),
            builder,
            floors: KVec::from_elem(Floor::default(), nodes, GFP_KERNEL)?,
            searches: 0,
            turns: Turns::new(),
            draft: Draft::new(capabilities)?,
            node_fences: KVec::from_elem(0, nodes, GFP_KERNEL)?,
            pass: 0,
        };
        let queue = OrderedQueue::new(c"vidmm-worker")?;
        Arc::pin_init(
            pin_init!(Self {
                queue,
                held: Atomic::new(false),
                inbox <- new_spinlock!(Inbox::new(), "Worker::inbox"),
                desk <- new_mutex!(desk, "Worker::desk"),
                adapter <- new_spinlock!(None, "Worker::adapter"),
                work <- new_work!("Worker::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Lets the worker work for `adapter`, or for nobody.
    pub(super) fn serve(&self, adapter: Option<Arc<Adapter>>) {
        let mut adapter = adapter;
        core::mem::swap(&mut *self.adapter.lock(), &mut adapter);
        drop(adapter);
    }

    /// Lets the worker look at what has arrived.
    pub(super) fn kick(this: &Arc<Self>) {
        // Not behind the last flush: its work item would be the last to hold the worker, and with it the
        // queue it runs on.
        let adapter = this.adapter.lock();
        if adapter.is_some() {
            let _ = this.queue.enqueue(this.clone());
        }
    }

    /// Waits until the worker has looked at everything.
    pub(super) fn flush(&self) {
        self.queue.flush();
    }

    /// Makes the worker take nothing more, or go on.
    pub(super) fn hold(this: &Arc<Self>, held: bool) {
        this.held.store(held, Release);
        if !held {
            Self::kick(this);
        }
    }

    /// Returns whether the worker takes nothing.
    pub(super) fn is_held(&self) -> bool {
        self.held.load(Acquire)
    }

    /// Runs `task` in the place of the worker: nothing else is decided meanwhile. For debug
    /// commands.
    pub(super) fn in_place<R>(
        &self,
        adapter: &Adapter,
        task: impl FnOnce(&mut Mover<'_>) -> R,
    ) -> R {
        let mut desk = self.desk.lock();
        let mut residency = adapter.residency().lock();
        let mut mover = desk.mover(adapter, &mut residency, trace::Cause::Move);
        let result = task(&mut mover);
        desk.builder.flush(adapter.paging());
        result
    }

    /// Takes in what has arrived and does what can be done.
    fn pass(&self, adapter: &Adapter) {
        let mut desk = self.desk.lock();
        let desk = &mut *desk;
        desk.pass += 1;
        self.attend_all(adapter, desk);
        self.take_in(desk);
        desk.depart(adapter);
        desk.settle_spaces(adapter);
        desk.serve_sources(adapter);
        for priority in [Priority::High, Priority::Normal, Priority::Low] {
            desk.serve_commands(adapter, priority);
            if priority == Priority::High {
                desk.prepare_submissions(adapter);
            }
        }
        scheduler::dispatch(adapter, desk);
        desk.resort(adapter);
        adapter.let_go_settled();
    }

    fn take_in(&self, desk: &mut Desk) {
        let mut finished = List::new();
        let mut arrived = List::new();
        let mut inbox = self.inbox.lock();
        finished.push_all_back(&mut inbox.finished);
        for (arrived, waiting) in inbox.commands.iter_mut().zip(desk.commands.iter_mut()) {
            waiting.push_all_back(arrived);
        }
        arrived.push_all_back(&mut inbox.submissions);
        desk.spaces.push_all_back(&mut inbox.spaces);
        desk.buried.push_all_back(&mut inbox.buried);
        desk.stage.take_in(&mut inbox.switches);
        drop(inbox);
        drop(finished);
        while let Some(submission) = arrived.pop_front() {
            if submission.progress().portion.is_some() {
                // A portion has run; nobody else is as near to its end.
                submission.unpin();
                desk.submissions.push_front(submission);
            } else {
                submission.require();
                desk.submissions.push_back(submission);
            }
        }
    }

    /// Looks at every allocation that asked for it. One that must wait asks again when what it waits
    /// for has ended.
    fn attend_all(&self, adapter: &Adapter, desk: &mut Desk) {
        // A full line is no reason to wait: its next completion asks for another pass.
        while adapter.paging().is_roomy() {
            let entry = self.inbox.lock().attention.pop_front();
            let Some(entry) = entry else { break };
            let allocation = entry.into_arc();
            if allocation.is_abandoned() {
                desk.release(adapter, allocation);
            } else {
                desk.grant_wish(adapter, &allocation);
            }
        }
        desk.builder.flush(adapter.paging());
    }
}

impl WorkItem for Worker {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if this.held.load(Acquire) {
            return;
        }
        let adapter = this.adapter.lock().clone();
        if let Some(adapter) = adapter {
            this.pass(&adapter);
            adapter.budgets().settle();
        }
    }
}

impl Desk {
    /// Returns what those had that went to a node last.
    pub(super) fn floor(&self, node: NodeOrdinal) -> Floor {
        self.floors.get(node.index()).copied().unwrap_or_default()
    }

    /// Returns the worker at work on `residency`.
    pub(super) fn mover<'a>(
        &'a mut self,
        adapter: &'a Adapter,
        residency: &'a mut Residency,
        cause: trace::Cause,
    ) -> Mover<'a> {
        mover(&mut self.builder, adapter, residency, cause)
    }

    /// Puts allocations whose rank has fallen where they belong.
    pub(super) fn resort(&mut self, adapter: &Adapter) {
        while let Some(allocation) = adapter.sunk().pop() {
            adapter.residency().lock().rerank(&allocation);
        }
    }

    /// Takes the place of an allocation that nobody claims; it is forgotten when its last
    /// operations are complete.
    fn release(&mut self, adapter: &Adapter, allocation: Arc<Allocation>) {
        let mut residency = adapter.residency().lock();
        self.mover(adapter, &mut residency, trace::Cause::Discard)
            .discard(&allocation);
        drop(residency);
        adapter.make_room();
        if let Some(entry) = ListArc::try_from_arc_or_drop(allocation) {
            self.departing.push_back(entry);
        }
    }

    /// Forgets allocations whose last operations are complete.
    fn depart(&mut self, adapter: &Adapter) {
        self.builder.flush(adapter.paging());
        let completed = adapter.paging().completed();
        let mut waiting = List::new();
        while let Some(entry) = self.departing.pop_front() {
            if entry.residence().lock().is_settled(completed) {
                entry.into_arc().retire();
            } else {
                waiting.push_back(entry);
            }
        }
        self.departing.push_all_back(&mut waiting);
    }

    /// Takes the places of tables back whose clients are gone.
    fn bury(&mut self, adapter: &Adapter) {
        let mut waiting = List::new();
        while let Some(tables) = self.buried.pop_front() {
            if !tables.is_forgotten() {
                // Another space may begin at the same place, and shall not meet what is remembered of
                // this one.
                if let Some(root) = tables.forget() {
                    self.builder.forget_space(adapter.paging(), root);
                    self.builder.flush(adapter.paging());
                }
                tables.settle(self.builder.settles(adapter.paging()));
            }
            if tables.is_settled(adapter.paging().completed()) {
                let mut residency = adapter.residency().lock();
                let tables = ClientTables::vacate(tables, residency.segments_mut());
                drop(residency);
                drop(tables);
                adapter.make_room();
            } else {
                waiting.push_back(tables);
            }
        }
        self.buried.push_all_back(&mut waiting);
    }

    /// Writes what is stale in spaces that have changed without a command.
    fn settle_spaces(&mut self, adapter: &Adapter) {
        self.bury(adapter);
        let mut waiting = List::new();
        while let Some(space) = self.spaces.pop_front() {
            let settled = adapter.paging().is_roomy() && self.settle(adapter, &space).is_ok();
            if !settled {
                waiting.push_back(space);
            }
        }
        self.spaces.push_all_back(&mut waiting);
    }

    /// Writes what is stale in a space.
    fn settle(&mut self, adapter: &Adapter, space: &AddressSpace) -> Result<(), Refusal> {
        let mut residency = adapter.residency().lock();
        let settled = self
            .mover(adapter, &mut residency, trace::Cause::Map)
            .settle(space);
        drop(residency);
        self.builder.flush(adapter.paging());
        settled
    }

    /// Moves an allocation out, if it shall leave and can.
    fn grant_wish(&mut self, adapter: &Adapter, allocation: &Arc<Allocation>) {
        let mut residency = adapter.residency().lock();
        residency.put_in_force(allocation);
        let cause = {
            let mut residence = allocation.residence().lock();
            // Who needs it now says so again when it has ended.
            let stays = residence.stays()
                || (residence.wish == Wish::Leave
                    && (residence.references > 0 || allocation.is_busy()));
            match residence.wish {
                Wish::None => return,
                Wish::Leave if residence.references > 0 => {
                    residence.wish = Wish::None;
                    return;
                }
                // It is about to come, for nobody, and will be looked at again.
                Wish::Leave if residence.commands > 0 => return,
                _ if stays => return,
                Wish::Leave => trace::Cause::Evict,
                Wish::Reach | Wish::GiveUp => trace::Cause::Pressure,
            }
        };
        // One that could not leave stays until somebody wants its room.
        let _ = self
            .mover(adapter, &mut residency, cause)
            .leave(allocation, cause);
        adapter.make_room();
    }

    /// Carries out the commands of one priority as far as possible.
    fn serve_commands(&mut self, adapter: &Adapter, priority: Priority) {
        let mut commands = List::new();
        if let Some(waiting) = self.commands.get_mut(priority.index()) {
            commands.push_all_back(waiting);
        }
        let mut blocked = List::new();
        while let Some(mut command) = commands.pop_front() {
            let queue = command.queue().clone();
            let room = adapter.room();
            // Trying again where nothing has changed would only push others out again.
            let hopeful = *command.tried() != room || command.is_moot();
            let may_try = hopeful && !queue.is_blocked_in(self.pass) && adapter.paging().is_roomy();
            let served = may_try && self.serve(adapter, &command);
            if may_try && !served {
                *command.tried_mut() = room;
            }
            if served {
                crate::object::paging::Line::signal(adapter.paging(), command);
            } else {
                queue.block_in(self.pass);
                blocked.push_back(command);
            }
        }
        if let Some(waiting) = self.commands.get_mut(priority.index()) {
            waiting.push_all_back(&mut blocked);
        }
    }

    /// Carries out one command; says whether it is done.
    fn serve(&mut self, adapter: &Adapter, command: &ListArc<Command>) -> bool {
        if let Some(space) = command.space() {
            return command.is_moot() || self.settle(adapter, space).is_ok();
        }
        let queue = command.queue();
        let device = queue.device();
        let behalf = Behalf::Command {
            queue: queue.number(),
            value: *command.value(),
        };
        let list = command.allocations().iter().map(Hold::allocation);
        let served = match command.is_moot() {
            true => None,
            false => Some(self.bring_all(adapter, list.clone(), behalf, |_, _| ())),
        };
        if served == Some(Err(Refusal::Occupied)) {
            self.builder.flush(adapter.paging());
            return false;
        }
        match served {
            Some(Ok(_)) => list.clone().for_each(Allocation::unpin),
            Some(Err(_)) => self.bring_some(adapter, list.clone(), behalf),
            None => {}
        }
        for one in list {
            one.residence().lock().commands -= 1;
            Allocation::reconsider(one);
        }
        if matches!(served, Some(Err(_))) && command.urgency() == Urgency::MustSucceed {
            device.fail(Offence {
                state: device::State::ErrorMemory,
                context: 0,
                node: None,
                submission: 0,
                offset: 0,
                fault: None,
            });
        }
        if let Some(first) = command.allocations().first() {
            trace::resident_step(|| trace::ResidentStep {
                at: trace::Where::Worker,
                step: 3,
                allocation: first.object_id(),
                queue: queue.number(),
                fence: *command.value(),
            });
        }
        self.builder.flush(adapter.paging());
        true
    }

    /// Prepares the memory of submissions as far as possible.
    fn prepare_submissions(&mut self, adapter: &Adapter) {
        let mut submissions = List::new();
        submissions.push_all_back(&mut self.submissions);
        let mut blocked = List::new();
        while let Some(mut submission) = submissions.pop_front() {
            if submission.is_cancelled() || submission.has_failed() {
                scheduler::drop_cancelled(adapter, self, submission);
                continue;
            }
            let room = adapter.room();
            let is_pointless = submission.progress().tried == room;
            if !adapter.paging().is_roomy() || is_pointless || self.turns.bars(&submission) {
                blocked.push_back(submission);
                continue;
            }
            submission.progress_mut().tried = room;
            let prepared = self.prepare(adapter, &mut submission);
            self.turns
                .note_waiting(&submission, prepared == Err(Refusal::Occupied));
            match prepared {
                Ok(()) => scheduler::prepared(self, submission),
                Err(Refusal::Occupied) => blocked.push_back(submission),
                Err(Refusal::NoPlace | Refusal::GivenUp) => {
                    scheduler::fail_memory(adapter, self, submission);
                }
            }
        }
        self.submissions.push_all_back(&mut blocked);
    }
}

/// Returns the worker at work on `residency`, building into `builder`.
fn mover<'a>(
    builder: &'a mut Builder,
    adapter: &'a Adapter,
    residency: &'a mut Residency,
    cause: trace::Cause,
) -> Mover<'a> {
    Mover {
        adapter,
        line: adapter.paging(),
        residency,
        builder,
        cause,
        behalf: Behalf::Work,
        reader: Reader::Engines,
        paged: Paged::default(),
    }
}
