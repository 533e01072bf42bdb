// SPDX-License-Identifier: GPL-2.0

//! The software engine: the CPU plays the GPU.
//!
//! Segments are memory of the host, nodes are work items, commands are executed by a small
//! interpreter. What a node does is decided by memory content alone, so mistakes of the memory manager
//! show as wrong bytes. The order below is the way of a buffer: [`node`] takes it from its queue,
//! [`execution`] runs packets of clients that [`packet`] decodes, with [`raster`] and [`blend`] for
//! those that move pixels, [`paging`] runs operations of the core; both reach [`memory`] through
//! [`access`]. A virtual address becomes a list of [`parts`] in the [`mmu`], which walks the tables
//! ([`page_table`]) or remembers ([`tlb`]). [`configuration`] decides the shape of it all when the module is loaded.

mod access;
mod aperture;
mod blend;
mod configuration;
mod context;
mod execution;
mod host_aperture;
mod interruption;
mod memory;
mod mmu;
mod node;
mod page_table;
pub(super) mod paging;
mod parts;
mod random;
mod raster;
mod statistics;
mod tlb;

#[cfg(CONFIG_KUNIT)]
mod tests;

use kernel::{
    list::ListArc,
    prelude::*,
    sync::Arc, //
};

use self::{
    configuration::{
        Configuration,
        SelfCheck, //
    },
    context::Context,
    interruption::Stopped,
    memory::Memory,
    mmu::Mmu,
    node::Node,
    random::Delays,
    statistics::{
        Counters,
        Failures, //
    }, //
};
use super::{
    address,
    packet,
    page_table::ENTRY_BYTES,
    trace_call,
    Backend,
    Buffer,
    Capabilities,
    Commands,
    ContextDescription,
    EngineContext,
    Entry,
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
    abstractions::{
        params::Parameters,
        scheduling::yield_cpu,
        trace,
        work::UnboundQueue, //
    },
    units::{
        NodeOrdinal,
        Place,
        SegmentId, //
    }, //
};

/// Returns what an engine in the shape of `parameters` would say about itself.
///
/// # Errors
///
/// - `EINVAL`: the parameters break a rule of registration.
/// - `ENOMEM`: no memory.
#[cfg(CONFIG_KUNIT)]
pub(crate) fn capabilities(parameters: &Parameters) -> Result<Capabilities> {
    Configuration::new(parameters).map(|configuration| configuration.capabilities)
}

/// The software engine.
pub(crate) struct Engine {
    /// What it says about itself.
    capabilities: Capabilities,
    /// What its nodes work on.
    shared: Arc<Shared>,
    /// Its nodes, by ordinal.
    nodes: KVec<Arc<Node>>,
    /// Where the nodes run.
    workers: UnboundQueue,
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// What all nodes work on.
struct Shared {
    /// The memory of the segments.
    memory: Memory,
    /// What translates virtual addresses, if anything does.
    mmu: Option<Mmu>,
    /// Counters.
    counters: Counters,
    /// Failures that were asked for.
    failures: Failures,
    /// Whether mistakes of the driver are looked for.
    self_check: SelfCheck,
}

impl Shared {
    /// Returns what carries out paging operations, calling `pass` between steps. Virtual addresses are
    /// those of `space`.
    fn executor<'a, P: Fn() -> Result<(), Stopped>>(
        &'a self,
        space: Option<paging::Space<'a>>,
        pass: P,
    ) -> paging::Executor<'a, P> {
        paging::Executor {
            memory: &self.memory,
            mmu: self.mmu.as_ref(),
            space,
            discarded: match self.self_check {
                SelfCheck::Off => paging::Discarded::Left,
                SelfCheck::On => paging::Discarded::Poisoned,
            },
            pass,
        }
    }
}

impl Engine {
    /// Creates the engine in the shape that `parameters` ask for. Takes the memory of all segments.
    ///
    /// It must not be dropped from [`Completion::complete`](super::Completion::complete), which runs
    /// on its own workqueue.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the parameters break a rule of registration.
    /// - `ENOMEM`: no memory.
    // Kept apart, so that its temporaries are off the stack before the next step.
    #[inline(never)]
    pub(crate) fn new(parameters: &Parameters) -> Result<Arc<Self>> {
        let mut configuration = Configuration::new(parameters)?;
        let capabilities = &mut configuration.capabilities;
        let mmu = match &capabilities.translation {
            Some(translation) => Some(Mmu::new(
                translation,
                capabilities.nodes.len(),
                configuration.tlb_entries,
            )?),
            None => None,
        };
        let shared = Arc::new(
            Shared {
                memory: Memory::new(&mut capabilities.segments)?,
                mmu,
                counters: Counters::new(),
                failures: Failures::new(),
                self_check: configuration.self_check,
            },
            GFP_KERNEL,
        )?;
        let mut nodes = KVec::with_capacity(capabilities.nodes.len(), GFP_KERNEL)?;
        for node in &capabilities.nodes {
            let delays = Delays::new(configuration.seed, node.ordinal, configuration.delay_us);
            nodes.push(Node::new(node, shared.clone(), delays)?, GFP_KERNEL)?;
        }
        trace_call(trace::Call::QuerySegments, 0, 0);
        Ok(Arc::new(
            Self {
                capabilities: configuration.capabilities,
                shared,
                nodes,
                workers: UnboundQueue::new(c"vidmm-node")?,
            },
            GFP_KERNEL,
        )?)
    }

    /// Returns the node with this ordinal.
    fn node(&self, ordinal: NodeOrdinal) -> Option<&Arc<Node>> {
        self.nodes.get(ordinal.index())
    }

    /// Checks that contexts can be created on a node: it exists, and so does the node of their
    /// companions, which only the kernel uses (TIL-10).
    fn check_node(&self, ordinal: NodeOrdinal) -> Result {
        let node = self.capabilities.node(ordinal).ok_or(EINVAL)?;
        match node.companion {
            Some(companion) => self
                .capabilities
                .node(companion)
                .filter(|companion| companion.is_internal())
                .map(|_| ())
                .ok_or(EINVAL),
            None => Ok(()),
        }
    }
}

impl Backend for Engine {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn object(&self, call: ObjectCall) -> Result {
        call.trace();
        Ok(())
    }

    fn create_context(&self, description: ContextDescription) -> Result<Arc<dyn EngineContext>> {
        self.check_node(description.node)?;
        let context = Arc::pin_init(Context::new(description), description.charge.heap())?;
        trace_call(trace::Call::CreateContext, description.process, 0);
        Ok(context)
    }

    fn set_root(&self, context: &dyn EngineContext, root: Root) {
        if let Some(context) = context.as_any().downcast_ref::<Context>() {
            context.set_root(root);
        }
        trace_call(trace::Call::SetRoot, context.process(), 0);
    }

    fn destroy_context(&self, context: &dyn EngineContext) {
        trace_call(trace::Call::DestroyContext, context.process(), 0);
    }

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
        if self.shared.failures.take(Failure::BufferFull) {
            return Err(Full);
        }
        paging::build(commands, operation, progress)
    }

    fn execute(&self, operation: &Operation<'_>) -> Result {
        let name = operation.name();
        let bytes = if self.shared.failures.take(Failure::Operation(name)) {
            0
        } else {
            let mut executor = self.shared.executor(None, || {
                yield_cpu();
                Ok(())
            });
            executor.operation(operation).map_err(|_| EINVAL)?
        };
        self.shared.counters.operation(name, bytes);
        Ok(())
    }

    fn submit(&self, node: NodeOrdinal, buffer: ListArc<Buffer>) -> u64 {
        match self.node(node) {
            Some(node) => node.submit(&self.workers, buffer),
            None => {
                buffer.give_back(Outcome::Stopped);
                0
            }
        }
    }

    fn resubmit(&self, node: NodeOrdinal, buffer: ListArc<Buffer>) {
        match self.node(node) {
            Some(node) => node.resubmit(&self.workers, buffer),
            None => buffer.give_back(Outcome::Stopped),
        }
    }

    fn preempt(&self, node: NodeOrdinal) -> Result {
        let found = self.node(node).ok_or(EINVAL)?;
        trace_call(trace::Call::Preempt, 0, 0);
        if self.shared.failures.take(Failure::Preempt) {
            return Err(EIO);
        }
        found.give_up(|running| running.kind == Kind::Paging);
        Ok(())
    }

    fn reset_engine(&self, node: NodeOrdinal, context: u64) -> Result {
        let found = self.node(node).ok_or(EINVAL)?;
        trace_call(trace::Call::ResetEngine, 0, 0);
        if self.shared.failures.take(Failure::EngineReset) {
            return Err(EIO);
        }
        found.give_up(|running| running.context == context);
        Ok(())
    }

    fn reset_adapter(&self) {
        trace_call(trace::Call::ResetAdapter, 0, 0);
        for node in &self.nodes {
            node.give_up(|_| true);
        }
    }

    fn frames(&self, place: Place) -> Option<Frames> {
        self.shared.memory.frames(place)
    }

    fn map_host_aperture(&self, segment: SegmentId, user: User, pages: &[WindowPage]) -> Result {
        let window = self.shared.memory.window(segment).ok_or(EINVAL)?;
        window.map(pages)?;
        trace_call(trace::Call::MapHostAperture, user.process, user.allocation);
        Ok(())
    }

    fn unmap_host_aperture(&self, segment: SegmentId, user: User, pages: &[u32]) {
        if let Some(window) = self.shared.memory.window(segment) {
            window.unmap(pages.iter().copied());
            trace_call(
                trace::Call::UnmapHostAperture,
                user.process,
                user.allocation,
            );
        }
    }

    fn window_frames(&self, segment: SegmentId, window: u32, offset: u64) -> Option<Frames> {
        self.shared.memory.window_frames(segment, window, offset)
    }

    fn set_flow(&self, node: NodeOrdinal, flow: Flow) -> Result {
        self.node(node).ok_or(EINVAL)?.set_flow(&self.workers, flow);
        Ok(())
    }

    fn fail_next(&self, failure: Failure, count: u32) {
        self.shared.failures.set(failure, count);
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            dummy_hits: self.shared.memory.dummy_hits(),
            ..self.shared.counters.read()
        }
    }

    fn lookups(&self, node: NodeOrdinal) -> Option<Lookups> {
        self.shared.mmu.as_ref()?.lookups(node)
    }

    fn entry(&self, table: Place, level: u32, index: u32) -> Option<Entry> {
        let place = table.forward(u64::from(index) * ENTRY_BYTES);
        let inside = self.shared.memory.contains(place, ENTRY_BYTES);
        let word = inside.then(|| self.shared.memory.load(place))??;
        Some(page_table::decode(word, level))
    }

    fn flush(&self) {
        self.workers.flush();
    }

    fn shut_down(&self) {
        for node in &self.nodes {
            node.stop(&self.workers);
        }
        for node in &self.nodes {
            node.wait_idle();
        }
    }
}
