// SPDX-License-Identifier: GPL-2.0

//! A backend for tests of the core: it remembers what it is told and completes on command.
//!
//! It has no memory and executes nothing. Operations are encoded as the software engine encodes them,
//! so buffers fill up as they do in earnest; what was built or executed can be read back in words.
//! Buffers wait in the queues of their nodes until the test completes them.
//!
//! Size: one method for each of the trait, and what reads them back.

use kernel::{
    list::{
        List,
        ListArc, //
    },
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    }, //
};

use core::any::Any;

use super::{
    address,
    operation::Name,
    packet,
    page_table::Entry,
    software,
    Backend,
    Buffer,
    Capabilities,
    Commands,
    ContextDescription,
    EngineContext,
    Event,
    Failure,
    Flow,
    Frames,
    Full,
    Kind,
    Lookups,
    ObjectCall,
    Operation,
    Outcome,
    Patched,
    Progress,
    Root,
    Statistics,
    Stop,
    Unparsed,
    User,
    WindowPage, //
};
use crate::{
    abstractions::params::Parameters,
    units::{
        GpuVirtualAddress,
        NodeOrdinal,
        Place,
        Run,
        SegmentId, //
    }, //
};

/// How many things it remembers until they are taken.
const MEMORY: usize = 4096;

/// One thing that the backend was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// An object came or went.
    Object(ObjectCall),
    /// An operation, or a part of one, was built into a buffer.
    Built(RecordedOperation),
    /// An operation was executed at once.
    Executed(RecordedOperation),
    /// A page of a CPU host aperture shows a page of its segment.
    Shown {
        /// The segment.
        segment: SegmentId,
        /// For whom.
        user: User,
        /// Both pages.
        page: WindowPage,
    },
    /// A page of a CPU host aperture shows nothing any more.
    Hidden {
        /// The segment.
        segment: SegmentId,
        /// For whom it was.
        user: User,
        /// The page of the window.
        window: u32,
    },
    /// A context was told its root.
    Root {
        /// The number of the context.
        context: u64,
        /// The root.
        root: Root,
    },
    /// A buffer was submitted.
    Submitted {
        /// To which node.
        node: NodeOrdinal,
        /// Its kind.
        kind: Kind,
        /// The core's own number of it.
        cookie: u64,
        /// Its completion value.
        fence: u64,
    },
}

/// An operation in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedOperation {
    /// Which one.
    pub(crate) name: Name,
    /// Where it writes, maps or unmaps: first place.
    pub(crate) to: Option<Place>,
    /// Where it reads, or what it gives up: first place.
    pub(crate) from: Option<Place>,
    /// The bytes covered.
    pub(crate) bytes: u64,
    /// The pattern of Fill.
    pub(crate) pattern: u32,
    /// The first address: filled, written, mapped or flushed.
    pub(crate) address: Option<GpuVirtualAddress>,
    /// The entries of UpdatePageTable.
    pub(crate) entries: u64,
}

impl RecordedOperation {
    /// Returns `operation` in words.
    fn new(operation: &Operation<'_>) -> Self {
        let first = |runs: &[Run]| runs.first().map(|run| run.place);
        let recorded = Self {
            name: operation.name(),
            to: None,
            from: None,
            bytes: operation.bytes(),
            pattern: 0,
            address: None,
            entries: 0,
        };
        match *operation {
            Operation::Fill { pattern, to } => Self {
                to: first(to),
                pattern,
                ..recorded
            },
            Operation::Transfer { from, to } => Self {
                to: first(to),
                from: first(from),
                ..recorded
            },
            Operation::Discard { what } => Self {
                from: first(what),
                ..recorded
            },
            Operation::MapAperture { at, pages } => Self {
                to: Some(at),
                from: first(pages),
                ..recorded
            },
            Operation::UnmapAperture { at, .. } => Self {
                to: Some(at),
                ..recorded
            },
            Operation::FillVirtual { pattern, to, .. } => Self {
                address: Some(to),
                pattern,
                ..recorded
            },
            Operation::TransferVirtual { to, .. } => Self {
                address: Some(to),
                ..recorded
            },
            Operation::UpdatePageTable(update) => Self {
                from: Some(update.table.place.forward(u64::from(update.first) * 8)),
                to: update.entry(0).and_then(Entry::place),
                address: Some(update.address),
                entries: update.count(),
                ..recorded
            },
            Operation::FlushTlb { root, range } => Self {
                from: Some(root),
                address: Some(range.start),
                ..recorded
            },
        }
    }
}

/// The recording backend.
#[pin_data]
pub(crate) struct Recorder {
    /// What it says about itself.
    capabilities: Capabilities,
    /// What happened.
    ///
    /// Leaf lock.
    #[pin]
    state: SpinLock<State>,
}

/// What happened.
struct State {
    /// What it was told and nobody has taken yet.
    recorded: KVec<Recorded>,
    /// The queues of the nodes.
    queues: KVec<Queue>,
    /// Builds that still find the buffer full.
    buffer_full: u32,
}

/// The queue of a node.
struct Queue {
    /// Buffers in the order of their submission.
    buffers: List<Buffer>,
    /// The completion value of the last buffer that has one.
    last: u64,
}

impl State {
    /// Remembers something, as long as there is room.
    fn record(&mut self, recorded: Recorded) {
        let _ = self.recorded.push_within_capacity(recorded);
    }
}

impl Recorder {
    /// Creates a backend that looks like the software engine in the shape of `parameters`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the parameters break a rule of registration.
    /// - `ENOMEM`: no memory.
    pub(crate) fn new(parameters: &Parameters) -> Result<Arc<Self>> {
        software::capabilities(parameters).and_then(Self::with)
    }

    /// Creates a backend that says this about itself, which need not be sound.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(crate) fn with(capabilities: Capabilities) -> Result<Arc<Self>> {
        let mut queues = KVec::with_capacity(capabilities.nodes.len(), GFP_KERNEL)?;
        for _ in 0..capabilities.nodes.len() {
            let queue = Queue {
                buffers: List::new(),
                last: 0,
            };
            queues.push(queue, GFP_KERNEL)?;
        }
        let state = State {
            recorded: KVec::with_capacity(MEMORY, GFP_KERNEL)?,
            queues,
            buffer_full: 0,
        };
        Arc::pin_init(
            try_pin_init!(Self {
                capabilities,
                state <- new_spinlock!(state, "vidmm::Recorder::state"),
            }),
            GFP_KERNEL,
        )
    }

    /// Takes what was recorded, in order.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(crate) fn take(&self) -> Result<KVec<Recorded>> {
        let mut taken = KVec::with_capacity(MEMORY, GFP_KERNEL)?;
        core::mem::swap(&mut taken, &mut self.state.lock().recorded);
        Ok(taken)
    }

    /// Returns how many buffers wait on `node`.
    pub(crate) fn queued(&self, node: NodeOrdinal) -> usize {
        let state = self.state.lock();
        state
            .queues
            .get(node.index())
            .map_or(0, |queue| queue.buffers.iter().count())
    }

    /// Completes the oldest buffer of `node`; returns whether there was one.
    pub(crate) fn complete(&self, node: NodeOrdinal, outcome: Outcome) -> bool {
        match self.pop(node) {
            Some(buffer) => {
                buffer.give_back(outcome);
                true
            }
            None => false,
        }
    }

    /// Completes buffers of `node` until none waits, also those that come meanwhile; returns how many
    /// there were.
    pub(crate) fn complete_all(&self, node: NodeOrdinal) -> usize {
        let mut count = 0;
        while self.complete(node, Outcome::Done) {
            count += 1;
        }
        count
    }

    /// Takes the oldest buffer of `node`.
    fn pop(&self, node: NodeOrdinal) -> Option<ListArc<Buffer>> {
        let mut state = self.state.lock();
        state.queues.get_mut(node.index())?.buffers.pop_front()
    }
}

impl Backend for Recorder {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn object(&self, call: ObjectCall) -> Result {
        self.state.lock().record(Recorded::Object(call));
        Ok(())
    }

    fn create_context(&self, description: ContextDescription) -> Result<Arc<dyn EngineContext>> {
        let context = Context {
            description,
            stopped: Atomic::new(false),
        };
        self.capabilities.node(description.node).ok_or(EINVAL)?;
        Ok(Arc::new(context, description.charge.heap())?)
    }

    fn set_root(&self, context: &dyn EngineContext, root: Root) {
        let context = context.number();
        self.state.lock().record(Recorded::Root { context, root });
    }

    fn destroy_context(&self, _context: &dyn EngineContext) {}

    fn parse(
        &self,
        commands: &[u32],
        visitor: &mut dyn FnMut(Event) -> Result<(), Stop>,
    ) -> Result<(), Unparsed> {
        packet::parse(commands, visitor)
    }

    fn patch(
        &self,
        commands: &mut [u32],
        dword: u32,
        place: Place,
        allocation_offset: u64,
    ) -> Patched {
        address::patch(commands, dword, place.forward(allocation_offset))
    }

    fn build(
        &self,
        commands: &mut Commands,
        operation: &Operation<'_>,
        progress: &mut Progress,
    ) -> Result<(), Full> {
        let mut state = self.state.lock();
        if let Some(left) = state.buffer_full.checked_sub(1) {
            state.buffer_full = left;
            return Err(Full);
        }
        let before = progress.0;
        let built = software::paging::build(commands, operation, progress);
        if progress.0 > before {
            let part = progress.0 - before;
            let whole = RecordedOperation::new(operation);
            state.record(Recorded::Built(match operation {
                Operation::UpdatePageTable(update) => RecordedOperation {
                    bytes: part * update.span(),
                    entries: part,
                    ..whole
                },
                Operation::FlushTlb { .. } => whole,
                _ => RecordedOperation {
                    bytes: part,
                    ..whole
                },
            }));
        }
        built
    }

    fn execute(&self, operation: &Operation<'_>) -> Result {
        let operation = RecordedOperation::new(operation);
        self.state.lock().record(Recorded::Executed(operation));
        Ok(())
    }

    fn submit(&self, node: NodeOrdinal, mut buffer: ListArc<Buffer>) -> u64 {
        let mut state = self.state.lock();
        let Some(queue) = state.queues.get_mut(node.index()) else {
            drop(state);
            buffer.give_back(Outcome::Stopped);
            return 0;
        };
        let contents = buffer.contents_mut();
        contents.fence = match contents.kind {
            Kind::Dma | Kind::Paging => {
                queue.last += 1;
                queue.last
            }
            Kind::Wait | Kind::Signal => 0,
        };
        let (kind, cookie, fence) = (contents.kind, contents.cookie, contents.fence);
        queue.buffers.push_back(buffer);
        state.record(Recorded::Submitted {
            node,
            kind,
            cookie,
            fence,
        });
        fence
    }

    fn frames(&self, _place: Place) -> Option<Frames> {
        None
    }

    fn map_host_aperture(&self, segment: SegmentId, user: User, pages: &[WindowPage]) -> Result {
        let mut state = self.state.lock();
        for page in pages.iter().copied() {
            state.record(Recorded::Shown {
                segment,
                user,
                page,
            });
        }
        Ok(())
    }

    fn unmap_host_aperture(&self, segment: SegmentId, user: User, pages: &[u32]) {
        let mut state = self.state.lock();
        for window in pages.iter().copied() {
            state.record(Recorded::Hidden {
                segment,
                user,
                window,
            });
        }
    }

    fn window_frames(&self, _segment: SegmentId, _window: u32, _offset: u64) -> Option<Frames> {
        None
    }

    fn resubmit(&self, node: NodeOrdinal, buffer: ListArc<Buffer>) {
        let mut state = self.state.lock();
        match state.queues.get_mut(node.index()) {
            Some(queue) => queue.buffers.push_front(buffer),
            None => {
                drop(state);
                buffer.give_back(Outcome::Stopped);
            }
        }
    }

    fn preempt(&self, node: NodeOrdinal) -> Result {
        self.capabilities.node(node).map(|_| ()).ok_or(EINVAL)
    }

    fn reset_engine(&self, node: NodeOrdinal, _context: u64) -> Result {
        self.capabilities.node(node).map(|_| ()).ok_or(EINVAL)
    }

    fn reset_adapter(&self) {}

    fn set_flow(&self, node: NodeOrdinal, _flow: Flow) -> Result {
        self.capabilities.node(node).map(|_| ()).ok_or(EINVAL)
    }

    fn fail_next(&self, failure: Failure, count: u32) {
        if failure == Failure::BufferFull {
            self.state.lock().buffer_full = count;
        }
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn lookups(&self, _node: NodeOrdinal) -> Option<Lookups> {
        None
    }

    fn entry(&self, _table: Place, _level: u32, _index: u32) -> Option<Entry> {
        None
    }

    fn shut_down(&self) {
        for node in &self.capabilities.nodes {
            while self.complete(node.ordinal, Outcome::Stopped) {}
        }
    }
}

/// A context of the recording backend.
struct Context {
    /// What it was created from.
    description: ContextDescription,
    /// Whether it was stopped.
    stopped: Atomic<bool>,
}

impl EngineContext for Context {
    fn number(&self) -> u64 {
        self.description.number
    }

    fn process(&self) -> u64 {
        self.description.process
    }

    fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[kernel::macros::kunit_tests(vidmm_backend_recording)]
mod tests {
    use super::*;
    use crate::{
        abstractions::pages::Charge,
        units::SegmentId, //
    };

    /// Returns a recorder in the shape of the conformance suite.
    fn recorder() -> Result<Arc<Recorder>> {
        Recorder::new(&super::super::conformance::shape())
    }

    #[test]
    fn buffers_wait_until_they_are_completed() -> Result {
        let recorder = recorder()?;
        let node = NodeOrdinal(0);
        for cookie in 1..=3 {
            let mut buffer = Buffer::new(0, Charge::Driver)?;
            buffer.contents_mut().kind = Kind::Dma;
            buffer.contents_mut().cookie = cookie;
            assert_eq!(recorder.submit(node, buffer), cookie);
        }
        assert_eq!(recorder.queued(node), 3);
        assert!(recorder.complete(node, Outcome::Done));
        assert_eq!(recorder.queued(node), 2);
        assert_eq!(recorder.complete_all(node), 2);
        assert!(!recorder.complete(node, Outcome::Done));
        assert_eq!(recorder.take()?.len(), 3);
        assert_eq!(recorder.take()?.len(), 0);
        Ok(())
    }

    #[test]
    fn parts_of_operations_are_recorded() -> Result {
        let recorder = recorder()?;
        let place = |offset| {
            SegmentId::new(1)
                .map(|id| Place::new(id, offset))
                .ok_or(EINVAL)
        };
        let runs = [Run::new(place(0)?, 64), Run::new(place(4096)?, 32)];
        let operation = Operation::Discard { what: &runs };
        let mut progress = Progress::default();
        let mut commands = Commands::with_capacity(8, Charge::Driver)?;
        recorder.fail_next(Failure::BufferFull, 1);
        let full = recorder.build(&mut commands, &operation, &mut progress);
        assert_eq!((full, progress.0), (Err(Full), 0));
        let full = recorder.build(&mut commands, &operation, &mut progress);
        assert_eq!((full, progress.0), (Err(Full), 64));
        commands.clear();
        let done = recorder.build(&mut commands, &operation, &mut progress);
        assert_eq!((done, progress.0), (Ok(()), 96));
        let mut bytes = 0;
        for recorded in &recorder.take()? {
            if let Recorded::Built(operation) = recorded {
                assert!(operation.name == Name::Discard);
                bytes += operation.bytes;
            }
        }
        assert_eq!(bytes, 96);
        Ok(())
    }
}
