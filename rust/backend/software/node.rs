// SPDX-License-Identifier: GPL-2.0

//! A node: a queue of buffers, and a work item that runs them one after the other.
//!
//! Each node is a work item of its own on an unbound workqueue, so nodes run at the same time on
//! different CPUs while a node never runs twice at once. Submission puts a buffer at the end of the
//! queue and wakes the work item, no more; everything else happens in the work item, in process
//! context, with no lock held while a buffer runs or completes.

use kernel::{
    impl_has_work,
    list::{
        List,
        ListArc, //
    },
    new_mutex,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Completion as Event,
        Mutex,
        SpinLock, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use super::{
    configuration::SelfCheck,
    context::{
        Context,
        POISONED, //
    },
    execution::{
        Execution,
        Grants,
        Halt,
        Space, //
    },
    interruption::Interruption,
    mmu::AddressSpace,
    paging,
    random::Delays,
    raster::Scratch,
    Shared, //
};
use crate::{
    abstractions::{
        trace,
        work::UnboundQueue, //
    },
    backend::{
        buffer::Contents,
        capabilities::{
            self,
            NodeFlag, //
        },
        packet::Stream,
        Buffer,
        EngineContext as _,
        Failure,
        Flow,
        Kind,
        Outcome, //
    },
    units::NodeOrdinal, //
};

/// One node of the engine.
#[pin_data]
pub(super) struct Node {
    /// Its number.
    ordinal: NodeOrdinal,
    /// What happens to the registers of a context between its portions.
    registers: Between,
    /// What all nodes work on.
    shared: Arc<Shared>,
    /// Whether it ends what it is doing and starts nothing more.
    stopping: Atomic<bool>,
    /// The completion value of the buffer that is to be given up; written with the queue locked, while that
    /// buffer runs.
    given_up: Atomic<u64>,
    /// What it has to do.
    ///
    /// Leaf lock.
    #[pin]
    queue: SpinLock<Queue>,
    /// What running needs beside the buffer. Only the work item takes this lock.
    #[pin]
    tools: Mutex<Tools>,
    /// Completed when a node that is stopping has nothing left.
    #[pin]
    idle: Event,
    /// The work item.
    #[pin]
    work: Work<Node>,
}

/// What happens to the registers of a context between its portions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    /// They are kept.
    Saved,
    /// They are lost: every portion begins with poison.
    Lost,
}

/// The queue of a node.
struct Queue {
    /// Buffers in the order of their submission.
    buffers: List<Buffer>,
    /// The completion value of the last buffer that has one.
    last: u64,
    /// Whether buffers are started.
    flow: Flow,
    /// Whether the node still works; if not, buffers only pass through.
    open: bool,
    /// The buffer that runs.
    running: Option<Running>,
}

/// What is known of the buffer that runs.
#[derive(Clone, Copy)]
pub(super) struct Running {
    /// What kind of buffer it is.
    pub(super) kind: Kind,
    /// The number of its context.
    pub(super) context: u64,
    /// Its completion value.
    fence: u64,
}

impl Queue {
    /// Returns whether the next buffer may leave the queue.
    fn starts(&self) -> bool {
        !self.open || self.flow == Flow::Running
    }
}

/// What running needs beside the buffer.
struct Tools {
    /// Room for pixels.
    scratch: Scratch,
    /// Waiting times.
    delays: Delays,
}

impl_has_work! {
    impl HasWork<Self> for Node { self.work }
}

impl WorkItem for Node {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        while let Some(buffer) = this.next() {
            this.serve(buffer);
        }
        if this.stopping.load(Relaxed) {
            this.idle.complete_all();
        }
    }
}

impl Node {
    /// Creates a node.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new(
        node: &capabilities::Node,
        shared: Arc<Shared>,
        delays: Delays,
    ) -> Result<Arc<Self>> {
        let tools = Tools {
            scratch: Scratch::new()?,
            delays,
        };
        let queue = Queue {
            buffers: List::new(),
            last: 0,
            flow: Flow::Running,
            open: true,
            running: None,
        };
        Arc::pin_init(
            try_pin_init!(Self {
                ordinal: node.ordinal,
                registers: if node.flags.contains(NodeFlag::SavesContext) {
                    Between::Saved
                } else {
                    Between::Lost
                },
                shared,
                stopping: Atomic::new(false),
                given_up: Atomic::new(0),
                queue <- new_spinlock!(queue, "vidmm::Node::queue"),
                tools <- new_mutex!(tools, "vidmm::Node::tools"),
                idle <- Event::new(),
                work <- new_work!("vidmm::Node::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Puts `buffer` at the end of the queue; returns its completion value.
    pub(super) fn submit(
        self: &Arc<Self>,
        workers: &UnboundQueue,
        mut buffer: ListArc<Buffer>,
    ) -> u64 {
        let mut queue = self.queue.lock();
        let contents = buffer.contents_mut();
        contents.fence = match contents.kind {
            Kind::Dma | Kind::Paging => {
                queue.last = queue.last.wrapping_add(1);
                queue.last
            }
            Kind::Wait | Kind::Signal => 0,
        };
        let fence = contents.fence;
        queue.buffers.push_back(buffer);
        let starts = queue.starts();
        drop(queue);
        if starts {
            self.wake(workers);
        }
        fence
    }

    /// Puts a buffer that was preempted in front of the queue, with the completion value that it has.
    pub(super) fn resubmit(self: &Arc<Self>, workers: &UnboundQueue, buffer: ListArc<Buffer>) {
        self.queue.lock().buffers.push_front(buffer);
        self.wake(workers);
    }

    /// Gives up what runs, if it is `meant`.
    pub(super) fn give_up(&self, meant: impl FnOnce(&Running) -> bool) {
        let queue = self.queue.lock();
        if let Some(running) = queue.running.filter(meant) {
            self.given_up.store(running.fence, Relaxed);
        }
    }

    /// Starts buffers, or no further ones.
    pub(super) fn set_flow(self: &Arc<Self>, workers: &UnboundQueue, flow: Flow) {
        self.queue.lock().flow = flow;
        if flow == Flow::Running {
            self.wake(workers);
        }
    }

    /// Ends what the node is doing; what is left completes as stopped.
    pub(super) fn stop(self: &Arc<Self>, workers: &UnboundQueue) {
        self.stopping.store(true, Relaxed);
        self.queue.lock().open = false;
        self.wake(workers);
    }

    /// Waits until a node that was stopped has nothing left.
    pub(super) fn wait_idle(&self) {
        self.idle.wait_for_completion();
    }

    /// Lets the work item run; if it is about to run anyway, nothing changes.
    fn wake(self: &Arc<Self>, workers: &UnboundQueue) {
        let _ = workers.enqueue(self.clone());
    }

    /// Takes the next buffer that may start.
    fn next(&self) -> Option<ListArc<Buffer>> {
        let mut queue = self.queue.lock();
        if !queue.starts() {
            return None;
        }
        let buffer = queue.buffers.pop_front()?;
        let contents = buffer.contents();
        queue.running = Some(Running {
            kind: contents.kind,
            context: contents
                .context
                .as_ref()
                .map_or(0, |context| context.number()),
            fence: contents.fence,
        });
        Some(buffer)
    }

    /// Notes that nothing runs; returns whether the buffer that ran was given up.
    fn ends(&self) -> bool {
        let mut queue = self.queue.lock();
        queue.running = None;
        self.given_up.xchg(0, Relaxed) != 0
    }

    /// Runs a buffer and gives it back.
    fn serve(&self, mut buffer: ListArc<Buffer>) {
        let contents = buffer.contents();
        let mut begun = contents.portion.start;
        let context = contents.context.clone();
        let outcome = match context
            .as_ref()
            .map(|context| context.as_any().downcast_ref())
        {
            Some(Some(context)) => self.run_in(contents, context, &mut begun),
            _ => Outcome::Stopped,
        };
        drop(context);
        let is_paging = contents.kind == Kind::Paging;
        let outcome = match (self.ends(), outcome) {
            (true, Outcome::Stopped) if is_paging && !self.stopping.load(Relaxed) => {
                Outcome::Preempted
            }
            (_, outcome) => outcome,
        };
        if outcome == Outcome::Preempted {
            // What was carried out may have been overwritten since, on purpose: never again.
            buffer.contents_mut().portion.start = begun;
        }
        buffer.give_back(outcome);
    }

    /// Runs a buffer of `context`; `begun` becomes the dword of the operation that was begun last.
    fn run_in(&self, contents: &Contents, context: &Context, begun: &mut usize) -> Outcome {
        let interruption =
            Interruption::new(context, &self.stopping, &self.given_up, contents.fence);
        if interruption.check().is_err() {
            return Outcome::Stopped;
        }
        let record = || trace::Node {
            node: self.ordinal.0,
            context: context.number(),
            kind: contents.kind.into(),
            fence: contents.fence,
        };
        trace::node_begin(record);
        if let Some(completion) = &contents.completion {
            completion.begin(contents.kind);
        }
        let outcome = match contents.kind {
            Kind::Wait | Kind::Signal => Outcome::Done,
            _ if !self.has_root(contents, context) => {
                self.report(0, Halt::Unknown);
                Outcome::Error { offset: 0 }
            }
            Kind::Dma => self.client(contents, context, interruption),
            Kind::Paging => self.paging(contents, context, interruption, begun),
        };
        trace::node_end(record);
        self.shared.counters.buffer();
        outcome
    }

    /// Returns whether the context has the root that the buffer was built for, if any (BCK-8).
    fn has_root(&self, contents: &Contents, context: &Context) -> bool {
        let Some(wanted) = contents.root else {
            return true;
        };
        self.shared.counters.root();
        context.root().is_some_and(|root| root.place == wanted)
    }

    /// Returns the address space of a context, as this node sees it.
    fn space<'a>(&'a self, context: &'a Context) -> Option<AddressSpace<'a>> {
        Some(AddressSpace {
            mmu: self.shared.mmu.as_ref()?,
            memory: &self.shared.memory,
            node: self.ordinal,
            context,
        })
    }

    /// Runs a portion of client commands.
    fn client(
        &self,
        contents: &Contents,
        context: &Context,
        interruption: Interruption<'_>,
    ) -> Outcome {
        let mut tools = self.tools.lock();
        let Tools { scratch, delays } = &mut *tools;
        let space = match (contents.fetch, self.space(context)) {
            (Some(_), Some(space)) => Space::Virtual(space),
            _ => Space::Physical(Grants::new(&contents.grants)),
        };
        let mut execution = Execution {
            memory: &self.shared.memory,
            space,
            interruption,
            registers: match self.registers {
                Between::Saved => context.registers(),
                Between::Lost => POISONED,
            },
            scratch,
            delays,
            packets: 0,
            bytes: 0,
        };
        let (outcome, halt) = match contents.fetch {
            Some(fetch) => execution.run_fetched(fetch),
            None => execution.run(portion(contents), contents.portion.start),
        };
        if self.registers == Between::Saved {
            context.save(&execution.registers);
        }
        self.shared
            .counters
            .portion(execution.packets, execution.bytes);
        drop(tools);
        if let (Outcome::Error { offset }, Some(halt)) = (outcome, halt) {
            self.report(offset, halt);
        }
        match outcome {
            Outcome::Done => self.complete(interruption),
            outcome => outcome,
        }
    }

    /// Runs paging operations.
    fn paging(
        &self,
        contents: &Contents,
        context: &Context,
        interruption: Interruption<'_>,
        begun: &mut usize,
    ) -> Outcome {
        let mut tools = self.tools.lock();
        let Tools { scratch, delays } = &mut *tools;
        let space = self
            .space(context)
            .map(|space| paging::Space { space, scratch });
        let mut executor = self.shared.executor(space, || interruption.pass());
        let skip = |name| self.shared.failures.take(Failure::Operation(name));
        for cut in Stream::new(portion(contents), contents.portion.start) {
            let delay = delays.next();
            if interruption.wait(Some(delay)).is_err() {
                return Outcome::Stopped;
            }
            let offset = cut.offset();
            // CAST: `usize` has 64 bits wherever this driver runs.
            *begun = offset as usize / 4;
            let done = match cut.words {
                Some(packet) => executor.packet(packet, skip),
                None => Err(paging::Halt::Wrong),
            };
            match done {
                Ok(report) => self.shared.counters.operation(report.name, report.bytes),
                Err(paging::Halt::Stopped) => return Outcome::Stopped,
                Err(paging::Halt::Wrong) => {
                    self.report(offset, Halt::Unknown);
                    return Outcome::Error { offset };
                }
            }
        }
        self.complete(interruption)
    }

    /// Says that a buffer is done, or hangs if that is to be lost.
    fn complete(&self, interruption: Interruption<'_>) -> Outcome {
        if !self.shared.failures.take(Failure::Completion) {
            return Outcome::Done;
        }
        // The node has lost its way to say that it is done, and hangs until it is stopped.
        let _ = interruption.wait(None);
        Outcome::Stopped
    }

    /// Tells the kernel log about a defect of the driver, in self-check mode.
    fn report(&self, offset: u32, halt: Halt) {
        if self.shared.self_check == SelfCheck::Off {
            return;
        }
        let node = self.ordinal.0;
        match halt {
            Halt::Stopped => {}
            Halt::Unknown => pr_warn!("node {node}: nothing to carry out at byte {offset}\n"),
            // The mistake of a client, which is told.
            Halt::Fault(_) => {}
            Halt::OutOfRange(address) => {
                pr_warn!("node {node}: {address:#x} is out of range at byte {offset}\n");
            }
        }
    }
}

/// Returns the commands of a portion.
fn portion(contents: &Contents) -> &[u32] {
    let words = contents.commands.words();
    words.get(contents.portion.clone()).unwrap_or(&[])
}

impl From<Kind> for trace::Kind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Dma => trace::Kind::Dma,
            Kind::Paging => trace::Kind::Paging,
            Kind::Wait => trace::Kind::Wait,
            Kind::Signal => trace::Kind::Signal,
        }
    }
}
