// SPDX-License-Identifier: GPL-2.0

//! The way of paging operations to the paging node.
//!
//! The worker builds operations into a paging buffer ([`Builder`]); a full buffer, or the end of a
//! command, sends it to the paging node in the system context (PAG-2). [`Line`] owns the buffers,
//! which are made at registration and used again and again, so that paging allocates nothing, and
//! takes them back when they are complete. Buffers are numbered; the number of the last completed
//! one tells everybody which places are in force.
//!
//! Behind the last buffer of a command goes a *signal*, which completes in its turn and raises the
//! paging fence then, not when the work was built (SYN-2).
//!
//! Where there is an MMU, content is filled and moved through addresses of the paging process
//! ([`scenario`]); otherwise operations name places.
//!
//! An adapter without a paging node executes operations at once; then numbers stay zero.
//!
//! # Locking
//!
//! `Line::pool` and `Line::signals` are leaf spinlocks.
//!
//! Size: the line and the builder that fills its buffers.

use core::ops::Range;

use kernel::{
    list::{
        List,
        ListArc, //
    },
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc,
        SpinLock, //
    },
};

use crate::{
    abstractions::{
        pages::Charge,
        trace,
        wait_queue::{
            new_wait_queue,
            Deadline,
            Sleep,
            WaitQueue,
            Woken, //
        },
    },
    backend::{
        capabilities::Translation,
        Backend,
        Buffer,
        Completion,
        ContextDescription,
        EngineContext,
        Kind,
        Operation,
        Outcome,
        Progress, //
    },
    object::{
        command::Command,
        paging_process::PagingProcess,
        statistics::{
            Direction,
            Statistics, //
        },
        watchdog::{
            Running,
            Watchdog, //
        },
        worker::Worker, //
    },
    policy::scratch::{
        Part,
        Ring,
        Taken, //
    },
    units::{
        NodeOrdinal,
        Place,
        Run, //
    },
};

mod chopped;
mod scenario;
mod scratch;
mod story;
mod update;

use self::{
    chopped::Chopped,
    scratch::Scratch,
    story::at,
    update::Shown, //
};

pub(super) use self::update::{
    Position,
    TABLES, //
};

/// Paging buffers made at registration.
const BUFFERS: usize = 16;
/// Signals made at registration.
const SIGNALS: usize = 64;
/// Runs of one list of an operation. Longer lists become several operations.
const RUNS: usize = 512;

/// Owner of the paging buffers.
#[pin_data]
pub(crate) struct Line {
    backend: Arc<dyn Backend>,
    node: Option<NodeOrdinal>,
    context: Arc<dyn EngineContext>,
    /// The addresses through which content is reached; [`None`] if operations name places.
    scratch: Option<Scratch>,
    worker: Arc<Worker>,
    watchdog: Arc<Watchdog>,
    /// How long one buffer may take, in nanoseconds.
    limit_ns: u64,
    /// How often the buffer that runs was preempted; each time it gets twice as long.
    preempted: Atomic<u32>,
    statistics: Arc<Statistics>,
    completed: Atomic<u64>,
    submitted: Atomic<u64>,
    #[pin]
    pool: SpinLock<Pool>,
    #[pin]
    signals: SpinLock<List<Command>>,
    #[pin]
    settled: WaitQueue,
}

struct Pool {
    buffers: List<Buffer>,
    signals: List<Buffer>,
    free_buffers: usize,
    free_signals: usize,
    /// The ranges of the scratch area.
    ring: Ring<KVVec<Taken>>,
}

impl Line {
    /// Makes the buffers and the system context, which works in the space of its `process`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `EINVAL`: the scratch area is too large.
    // Kept apart, so that its temporaries are off the stack before the next step.
    #[inline(never)]
    pub(super) fn new(
        backend: &Arc<dyn Backend>,
        worker: &Arc<Worker>,
        watchdog: &Arc<Watchdog>,
        statistics: &Arc<Statistics>,
        process: &PagingProcess,
    ) -> Result<Arc<Self>> {
        let node = backend.capabilities().paging_node;
        let context = backend.create_context(ContextDescription {
            number: process.context(),
            process: process.number(),
            node: node.unwrap_or(NodeOrdinal(0)),
            charge: Charge::Driver,
        })?;
        let limit_ms = node
            .and_then(|node| backend.capabilities().node(node))
            .map_or(0, |node| node.timeout_ms);
        if let Some(space) = process.space() {
            backend.set_root(&*context, space.root());
        }
        let space = process.space().filter(|_| node.is_some());
        let scratch = space.map(Scratch::of).transpose()?.flatten();
        let mut pool = Pool {
            buffers: List::new(),
            signals: List::new(),
            free_buffers: 0,
            free_signals: 0,
            ring: Scratch::ring(scratch.as_ref())?,
        };
        if node.is_some() {
            let dwords = backend.capabilities().paging_buffer_bytes / 4;
            for _ in 0..BUFFERS {
                pool.give(Buffer::new(dwords, Charge::Driver)?, Kind::Paging);
            }
            for _ in 0..SIGNALS {
                pool.give(Buffer::new(0, Charge::Driver)?, Kind::Signal);
            }
        }
        Arc::pin_init(
            pin_init!(Self {
                backend: backend.clone(),
                node,
                context,
                scratch,
                worker: worker.clone(),
                watchdog: watchdog.clone(),
                limit_ns: u64::from(limit_ms) * 1_000_000,
                preempted: Atomic::new(0),
                statistics: statistics.clone(),
                completed: Atomic::new(0),
                submitted: Atomic::new(0),
                pool <- new_spinlock!(pool, "Line::pool"),
                signals <- new_spinlock!(List::new(), "Line::signals"),
                settled <- new_wait_queue!("Line::settled"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns what the MMU can do, if there is one.
    pub(super) fn translation(&self) -> Option<&Translation> {
        self.backend.capabilities().translation.as_ref()
    }

    /// Returns the number of the last paging buffer that has completed.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Acquire)
    }

    /// Returns whether there are enough free buffers to begin a step without waiting.
    pub(super) fn is_roomy(&self) -> bool {
        let pool = self.pool.lock();
        let buffers = pool.free_buffers >= 4 && pool.free_signals >= 1;
        self.node.is_none() || (buffers && pool.ring.is_roomy())
    }

    /// Wakes everybody who waits for a place to come into force or to change.
    pub(super) fn notify(&self) {
        self.settled.notify_all();
    }

    /// Waits until `condition` holds; it is looked at whenever a buffer completes or a place
    /// changes. The condition may take spinlocks only.
    ///
    /// # Errors
    ///
    /// - [`Woken::Signal`]: a signal of the kind that `sleep` names.
    pub(super) fn wait(
        &self,
        sleep: Sleep,
        mut condition: impl FnMut(&Self) -> bool,
    ) -> Result<(), Woken> {
        self.settled
            .wait(sleep, Deadline::Never, || condition(self).then_some(()))
    }

    /// Takes a buffer; waits for one if all are on their way.
    fn take(&self) -> Option<ListArc<Buffer>> {
        let taken = self
            .settled
            .wait(Sleep::Uninterruptible, Deadline::Never, || {
                let mut pool = self.pool.lock();
                let buffer = pool.buffers.pop_front()?;
                pool.free_buffers -= 1;
                Some(buffer)
            });
        taken.ok()
    }

    /// Gives back the ranges of the scratch area that buffers up to `number` used.
    fn release_addresses(&self, number: u64) {
        let Some(scratch) = &self.scratch else { return };
        loop {
            let taken = self.pool.lock().ring.release(number);
            match taken {
                Some(taken) => scratch.denounce(&taken),
                None => return,
            }
        }
    }

    /// Lets the fence of `command` be raised when everything submitted so far is complete.
    pub(super) fn signal(this: &Arc<Self>, command: ListArc<Command>) {
        let Some(node) = this.node else {
            command.finish(*command.value());
            return;
        };
        let signal = {
            let mut pool = this.pool.lock();
            let signal = pool.signals.pop_front();
            pool.free_signals -= usize::from(signal.is_some());
            signal
        };
        let Some(mut signal) = signal else {
            // `is_roomy` was asked before the command began.
            return;
        };
        let contents = signal.contents_mut();
        contents.kind = Kind::Signal;
        contents.context = Some(this.context.clone());
        contents.completion = Some(this.clone());
        this.signals.lock().push_back(command);
        this.backend.submit(node, signal);
    }
}

impl Pool {
    fn give(&mut self, buffer: ListArc<Buffer>, kind: Kind) {
        if kind == Kind::Signal {
            self.signals.push_back(buffer);
            self.free_signals += 1;
        } else {
            self.buffers.push_back(buffer);
            self.free_buffers += 1;
        }
    }
}

impl Completion for Line {
    fn begin(&self, kind: Kind) {
        if let (Kind::Paging, Some(node)) = (kind, self.node) {
            let limit_ns = self.limit_ns << self.preempted.load(Relaxed).min(10);
            let running = Running {
                context: self.context.number(),
                submission: 0,
                limit_ns,
            };
            Watchdog::begin(&self.watchdog, node, Some(running));
        }
    }

    fn complete(&self, mut buffer: ListArc<Buffer>, outcome: Outcome) {
        let contents = buffer.contents_mut();
        let (kind, number) = (contents.kind, contents.cookie);
        if let (Kind::Paging, Some(node)) = (kind, self.node) {
            self.watchdog.end(node);
            if outcome == Outcome::Preempted {
                self.preempted.fetch_add(1, Relaxed);
                self.backend.resubmit(node, buffer);
                return;
            }
            self.preempted.store(0, Relaxed);
        }
        contents.reset();
        if let Outcome::Error { offset } = outcome {
            pr_err!("paging buffer {number} failed at byte {offset}\n");
        }
        if kind == Kind::Signal {
            let command = self.signals.lock().pop_front();
            if let Some(command) = command {
                command.finish(*command.value());
                // Its claims are dropped by the worker: that takes locks that the worker may hold
                // while it waits for a buffer from here.
                self.worker.retire_command(command);
            }
        } else {
            self.completed.store(number, Release);
            self.release_addresses(number);
        }
        self.pool.lock().give(buffer, kind);
        self.settled.notify_all();
        Worker::kick(&self.worker);
    }
}

/// What the trace says of an operation beyond its places.
#[derive(Clone, Copy)]
pub(super) struct Reason {
    /// The address space whose tables are changed, flushed or gone through; 0 without addresses.
    pub(super) space: u64,
    /// The process it belongs to; 0 likewise.
    pub(super) process: u64,
    /// The allocation whose pages are meant.
    pub(super) allocation: u64,
    /// Why.
    pub(super) cause: trace::Cause,
}

/// The paging buffer that is being filled. Belongs to the worker.
pub(super) struct Builder {
    buffer: Option<ListArc<Buffer>>,
    /// Number of the buffer that is, or will be, filled.
    number: u64,
    first: u64,
    next: u64,
    from: KVec<Run>,
    to: KVec<Run>,
    /// Tables of a client that are written.
    shown: KVec<Shown>,
    /// Their ranges in the scratch area.
    parts: KVec<Part>,
}

impl Builder {
    /// Returns a builder with nothing built.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            buffer: None,
            number: 1,
            first: 1,
            next: 1,
            from: KVec::with_capacity(RUNS, GFP_KERNEL)?,
            to: KVec::with_capacity(RUNS, GFP_KERNEL)?,
            shown: KVec::with_capacity(TABLES, GFP_KERNEL)?,
            parts: KVec::with_capacity(TABLES, GFP_KERNEL)?,
        })
    }

    /// Returns the number of the buffer with which all that is built so far is done.
    pub(super) fn settles(&self, line: &Line) -> u64 {
        match (line.node, &self.buffer) {
            (None, _) => 0,
            (Some(_), Some(_)) => self.number,
            (Some(_), None) => self.number - 1,
        }
    }

    /// Fills `bytes` bytes with zeros.
    pub(super) fn fill(
        &mut self,
        line: &Arc<Line>,
        bytes: u64,
        to: impl Iterator<Item = Run>,
        why: Reason,
    ) {
        if let Some(scratch) = &line.scratch {
            return self.fill_through(line, scratch, bytes, to, why);
        }
        let mut to = Chopped::new(to);
        let mut runs = core::mem::take(&mut self.to);
        while to.take_all(&mut runs) {
            self.build(
                line,
                &Operation::Fill {
                    pattern: 0,
                    to: &runs,
                },
                why,
            );
        }
        self.to = runs;
    }

    /// Builds Discard.
    pub(super) fn discard(
        &mut self,
        line: &Arc<Line>,
        what: impl Iterator<Item = Run>,
        why: Reason,
    ) {
        let mut what = Chopped::new(what);
        let mut runs = core::mem::take(&mut self.from);
        while what.take_all(&mut runs) {
            self.build(line, &Operation::Discard { what: &runs }, why);
        }
        self.from = runs;
    }

    /// Copies `bytes` bytes; both sides are as long.
    pub(super) fn transfer(
        &mut self,
        line: &Arc<Line>,
        bytes: u64,
        from: impl Iterator<Item = Run>,
        to: impl Iterator<Item = Run>,
        why: Reason,
    ) {
        if let Some(scratch) = &line.scratch {
            return self.transfer_through(line, scratch, bytes, (from, to), why);
        }
        let (mut from, mut to) = (Chopped::new(from), Chopped::new(to));
        let mut source = core::mem::take(&mut self.from);
        let mut target = core::mem::take(&mut self.to);
        while from.take_with(&mut source, &mut to, &mut target) {
            let operation = Operation::Transfer {
                from: &source,
                to: &target,
            };
            self.build(line, &operation, why);
        }
        self.from = source;
        self.to = target;
    }

    /// Builds MapAperture.
    pub(super) fn map_aperture(
        &mut self,
        line: &Arc<Line>,
        at: Place,
        pages: impl Iterator<Item = Run>,
        why: Reason,
    ) {
        let mut pages = Chopped::new(pages);
        let mut runs = core::mem::take(&mut self.from);
        let mut at = at;
        while pages.take_all(&mut runs) {
            let operation = Operation::MapAperture { at, pages: &runs };
            self.build(line, &operation, why);
            at = at.forward(operation.bytes());
        }
        self.from = runs;
    }

    /// Builds UnmapAperture of a range that showed system memory from `first` on.
    pub(super) fn unmap_aperture(
        &mut self,
        line: &Arc<Line>,
        at: Place,
        bytes: u64,
        first: Place,
        why: Reason,
    ) {
        self.from.clear();
        let _ = self.from.push_within_capacity(Run::new(first, bytes));
        self.build(line, &Operation::UnmapAperture { at, bytes }, why);
    }

    /// Executes an operation at once, whatever the adapter does with others.
    ///
    /// # Errors
    ///
    /// As [`Backend::execute`].
    pub(super) fn execute(
        &mut self,
        backend: &dyn Backend,
        operation: &Operation<'_>,
        why: Reason,
    ) -> Result {
        self.announce(0, operation, 0..operation.steps(), why);
        backend.execute(operation)
    }

    /// Encodes an operation, into as many buffers as it takes.
    fn build(&mut self, line: &Arc<Line>, operation: &Operation<'_>, why: Reason) {
        if line.node.is_none() {
            self.account(line, operation, 0..operation.steps(), why);
            if line.backend.execute(operation).is_err() {
                pr_err!("operation {} failed\n", operation.name().as_str());
            }
            return;
        }
        let mut progress = Progress::default();
        loop {
            if self.buffer.is_none() {
                self.buffer = line.take();
                self.first = self.next;
            }
            let Some(buffer) = self.buffer.as_mut() else {
                return;
            };
            let before = progress.0;
            let commands = &mut buffer.contents_mut().commands;
            let done = line.backend.build(commands, operation, &mut progress);
            if progress.0 > before {
                self.account(line, operation, before..progress.0, why);
            }
            match done {
                Ok(()) => return,
                Err(_) => self.flush(line),
            }
        }
    }

    /// Counts a part of an operation and emits its trace event.
    fn account(&mut self, line: &Line, operation: &Operation<'_>, part: Range<u64>, why: Reason) {
        if let Operation::Transfer { from, to } = operation {
            if let (Some(from), Some(to)) = (at(from, 0), at(to, 0)) {
                line.statistics
                    .transferred(Direction::between(from, to), part.end - part.start);
            }
        }
        let buffer = match line.node {
            Some(_) => self.number,
            None => 0,
        };
        self.announce(buffer, operation, part, why);
    }

    /// Emits the trace event of a part of an operation in a buffer, 0 if it is executed at once.
    fn announce(&mut self, buffer: u64, operation: &Operation<'_>, part: Range<u64>, why: Reason) {
        let sequence = self.next;
        self.next += 1;
        trace::paging_op(|| {
            let event = self.describe(operation, part);
            trace::PagingOp {
                sequence,
                buffer,
                space: why.space,
                process: why.process,
                allocation: why.allocation,
                cause: why.cause,
                mode: match buffer {
                    0 => trace::Mode::CpuVirtual,
                    _ => event.mode,
                },
                ..event
            }
        });
    }

    /// Sends what is built to the paging node.
    pub(super) fn flush(&mut self, line: &Arc<Line>) {
        let (Some(mut buffer), Some(node)) = (self.buffer.take(), line.node) else {
            return;
        };
        let contents = buffer.contents_mut();
        contents.kind = Kind::Paging;
        contents.cookie = self.number;
        contents.context = Some(line.context.clone());
        contents.completion = Some(line.clone());
        contents.root = line.scratch.as_ref().map(|scratch| scratch.root);
        contents.whole();
        // Nobody else submits buffers to the paging node, so its completion values are known.
        let fence = line.submitted.load(Relaxed) + 1;
        line.submitted.store(fence, Relaxed);
        let (first, last) = (self.first, self.next - 1);
        trace::paging_submit(|| trace::PagingSubmit {
            buffer: self.number,
            context: line.context.number(),
            node: node.0,
            first_sequence: first,
            last_sequence: last,
            fence,
        });
        self.number += 1;
        line.backend.submit(node, buffer);
    }
}
