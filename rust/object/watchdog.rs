// SPDX-License-Identifier: GPL-2.0

//! What becomes of work that does not end: the watchdog and recovery (BCK-12).
//!
//! The watchdog knows since when each node has been running its buffer. One that runs beyond its limit is asked to
//! give way (*preemption*), which only paging buffers can do in the middle. If that does not help, the engine of
//! the node is reset: a paging buffer is submitted again with its completion value, a portion of a client ends
//! there and its device goes to HUNG. If the engine cannot be reset, the whole adapter is: every device goes to
//! RESET.
//!
//! ```text
//! runs --limit--> asked to give way --GRACE--> engine reset --fails--> adapter reset
//!                      \__ refused _____________/
//! ```
//!
//! The watchdog is a work item of its own that looks every [`TICK`] as long as anything runs. It holds no
//! lock while it acts, and what it acts upon may end at that moment: the backend ends only what belongs to the
//! context that was meant, whose further buffers do not run anyway.
//!
//! # Locking
//!
//! `Watchdog::nodes` is a leaf spinlock.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    },
    time::{
        delay::fsleep,
        Delta, //
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
        clock,
        work::OrderedQueue, //
    },
    object::{
        adapter::Adapter,
        device::{
            Offence,
            State, //
        },
    },
    units::NodeOrdinal,
};

/// Time between two looks, in nanoseconds.
const TICK: u64 = 5_000_000;
/// Time in which a node gives way, in nanoseconds.
const GRACE: u64 = 20_000_000;

/// What a node is running.
#[derive(Clone, Copy)]
pub(super) struct Running {
    /// The context; for paging that of the system.
    pub(super) context: u64,
    /// The submission, as its context counts.
    pub(super) submission: u64,
    /// How long it may take, in nanoseconds.
    pub(super) limit_ns: u64,
}

/// One node.
#[derive(Clone, Copy, Default)]
struct Watch {
    running: Option<Running>,
    since_ns: u64,
    /// When it was asked to give way.
    asked_ns: Option<u64>,
}

/// What has to be done about a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Ask it to give way.
    Preempt,
    /// Reset its engine.
    Reset,
}

/// What a look at the nodes has found.
enum Finding {
    /// Nothing runs.
    Idle,
    /// Nothing is too late.
    Busy,
    /// This has to be done.
    Late(NodeOrdinal, Running, Step),
}

/// The watchdog of an adapter.
#[pin_data]
pub(crate) struct Watchdog {
    queue: OrderedQueue,
    #[pin]
    nodes: SpinLock<KVec<Watch>>,
    #[pin]
    adapter: SpinLock<Option<Arc<Adapter>>>,
    preemptions: Atomic<u64>,
    engine_resets: Atomic<u64>,
    adapter_resets: Atomic<u32>,
    #[pin]
    work: Work<Watchdog>,
}

impl_has_work! {
    impl HasWork<Self> for Watchdog { self.work }
}

impl Watchdog {
    /// Makes a watchdog for so many nodes, without an adapter.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new(nodes: usize) -> Result<Arc<Self>> {
        let queue = OrderedQueue::new(c"vidmm-watchdog")?;
        let nodes = KVec::from_elem(Watch::default(), nodes, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                queue,
                nodes <- new_spinlock!(nodes, "Watchdog::nodes"),
                adapter <- new_spinlock!(None, "Watchdog::adapter"),
                preemptions: Atomic::new(0),
                engine_resets: Atomic::new(0),
                adapter_resets: Atomic::new(0),
                work <- new_work!("Watchdog::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Lets it watch `adapter`, or nobody.
    pub(super) fn serve(&self, adapter: Option<Arc<Adapter>>) {
        let mut adapter = adapter;
        core::mem::swap(&mut *self.adapter.lock(), &mut adapter);
        drop(adapter);
    }

    /// Waits until it does nothing any more.
    pub(super) fn flush(&self) {
        self.queue.flush();
    }

    /// Notes that a node begins a buffer; one without limit is not watched.
    pub(super) fn begin(this: &Arc<Self>, node: NodeOrdinal, running: Option<Running>) {
        this.note(node, running);
        if running.is_some() {
            let _ = this.queue.enqueue(this.clone());
        }
    }

    /// Notes that a node has ended its buffer.
    pub(super) fn end(&self, node: NodeOrdinal) {
        self.note(node, None);
    }

    fn note(&self, node: NodeOrdinal, running: Option<Running>) {
        if let Some(watch) = self.nodes.lock().get_mut(node.index()) {
            *watch = Watch {
                running,
                since_ns: clock::now_ns(),
                asked_ns: None,
            };
        }
    }

    /// Returns how often nodes were asked to give way.
    pub(crate) fn preemptions(&self) -> u64 {
        self.preemptions.load(Relaxed)
    }

    /// Returns how often engines were reset.
    pub(crate) fn engine_resets(&self) -> u64 {
        self.engine_resets.load(Relaxed)
    }

    /// Returns how often the adapter was reset.
    pub(crate) fn adapter_resets(&self) -> u32 {
        self.adapter_resets.load(Relaxed)
    }

    /// Looks at all nodes.
    fn look(&self) -> Finding {
        let now = clock::now_ns();
        let mut found = Finding::Idle;
        let mut nodes = self.nodes.lock();
        for (watch, ordinal) in nodes.iter_mut().zip(0..) {
            let Some(running) = watch.running else {
                continue;
            };
            let step = watch.step(now, &running);
            if let Some(step) = step {
                return Finding::Late(NodeOrdinal(ordinal), running, step);
            }
            found = Finding::Busy;
        }
        found
    }

    /// Does what has to be done about a node that is late.
    fn recover(&self, adapter: &Adapter, node: NodeOrdinal, running: &Running, step: Step) {
        match step {
            Step::Preempt => {
                self.preemptions.fetch_add(1, Relaxed);
                if adapter.backend().preempt(node).is_err() {
                    self.reset_engine(adapter, node, running);
                }
            }
            Step::Reset => self.reset_engine(adapter, node, running),
        }
    }

    /// Resets the engine of a node: what it runs is given up.
    fn reset_engine(&self, adapter: &Adapter, node: NodeOrdinal, running: &Running) {
        self.engine_resets.fetch_add(1, Relaxed);
        if let Some(context) = adapter.registries().contexts.get(running.context) {
            // First, so that who sees the end of the buffer sees why.
            context.device().fail(Offence {
                state: State::Hung,
                context: running.context,
                node: Some(node.0),
                submission: running.submission,
                offset: 0,
                fault: None,
            });
        }
        if adapter
            .backend()
            .reset_engine(node, running.context)
            .is_err()
        {
            self.reset_adapter(adapter);
        }
    }

    /// Resets everything: no device survives it.
    fn reset_adapter(&self, adapter: &Adapter) {
        self.adapter_resets.fetch_add(1, Relaxed);
        let devices = &adapter.registries().devices;
        let mut next = 0;
        while let Some((number, device)) = devices.at_least(next) {
            next = number.saturating_add(1);
            device.fail(Offence {
                state: State::Reset,
                context: 0,
                node: None,
                submission: 0,
                offset: 0,
                fault: None,
            });
        }
        adapter.backend().reset_adapter();
    }
}

impl Watch {
    /// Returns what has to be done, and notes that it is being done.
    fn step(&mut self, now: u64, running: &Running) -> Option<Step> {
        if now.saturating_sub(self.since_ns) <= running.limit_ns {
            return None;
        }
        match self.asked_ns {
            None => {
                self.asked_ns = Some(now);
                Some(Step::Preempt)
            }
            Some(asked) if now.saturating_sub(asked) > GRACE => {
                // Again, if it is still there after as long.
                self.asked_ns = Some(now);
                Some(Step::Reset)
            }
            Some(_) => None,
        }
    }
}

impl WorkItem for Watchdog {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        loop {
            let Some(adapter) = this.adapter.lock().clone() else {
                return;
            };
            match this.look() {
                Finding::Idle => return,
                Finding::Busy => {}
                Finding::Late(node, running, step) => {
                    this.recover(&adapter, node, &running, step);
                    continue;
                }
            }
            drop(adapter);
            // CAST: a small constant.
            fsleep(Delta::from_nanos(TICK as i64));
        }
    }
}
