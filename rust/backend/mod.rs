// SPDX-License-Identifier: GPL-2.0

//! The hands: whatever executes work on some memory.
//!
//! A backend owns the memory of the segments and the nodes that work on it. It is told what to do
//! in two languages: packets of clients, which it can check ([`Backend::parse`]), patch and run,
//! and paging operations of the core ([`operation`]), which it encodes into buffers itself
//! ([`Backend::build`]). It decides nothing about memory: where something lies is the business of
//! the core alone (SEG-1, BCK-1).
//!
//! Work goes down as a [`Buffer`] and comes back up, complete, through [`Completion`]: from process
//! context with no lock held, once for each buffer, in the order of the node. Nothing here allocates
//! between submission and completion, so that paging can free memory when there is none.
//!
//! What enters here: encodings, execution, the memory behind segments. What does not: handles,
//! allocations, residency, policy. This room never looks up at the objects.

pub(crate) mod address;
pub(crate) mod buffer;
pub(crate) mod capabilities;
pub(crate) mod operation;
pub(crate) mod packet;
pub(crate) mod page_table;
pub(crate) mod software;

#[cfg(CONFIG_KUNIT)]
mod conformance;
#[cfg(CONFIG_KUNIT)]
pub(crate) mod recording;

use kernel::{
    list::ListArc,
    prelude::*,
    sync::Arc, //
};

use core::any::Any;

use crate::{
    abstractions::{
        pages::{
            Charge,
            Frame, //
        },
        trace, //
    },
    units::{
        GpuVirtualAddress,
        NodeOrdinal,
        Place,
        SegmentId, //
    }, //
};

pub(crate) use self::{
    buffer::{
        Buffer,
        Commands,
        Completion,
        Fetch,
        Kind,
        Outcome, //
    },
    capabilities::Capabilities,
    operation::{
        Full,
        Operation,
        Progress, //
    }, //
    page_table::{
        Entry,
        Root, //
    },
};

/// Something that executes paging operations and client commands.
pub(crate) trait Backend: Send + Sync {
    /// Returns what the adapter consists of; the same at every call.
    fn capabilities(&self) -> &Capabilities;

    /// Takes note of a process, device or allocation that comes or goes.
    ///
    /// # Errors
    ///
    /// Whatever keeps the backend from creating its side of it; going never fails.
    fn object(&self, call: ObjectCall) -> Result;

    /// Creates the backend's side of a context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: no such node.
    /// - `ENOMEM`: no memory.
    fn create_context(&self, description: ContextDescription) -> Result<Arc<dyn EngineContext>>;

    /// Tells the root of the address space in which a context works from now on (VA-12). The context
    /// does not run meanwhile. Before the first root every virtual address faults.
    fn set_root(&self, context: &dyn EngineContext, root: Root);

    /// Takes note that a context is destroyed. Buffers that still refer to it keep it alive.
    fn destroy_context(&self, context: &dyn EngineContext);

    /// Checks client commands completely and reports what they consist of, in stream order: each
    /// packet, then its address operands in ascending order. Linear in the length.
    ///
    /// # Errors
    ///
    /// [`Unparsed`] with the first violation, or when the visitor stops.
    fn parse(
        &self,
        commands: &[u32],
        visitor: &mut dyn FnMut(Event) -> Result<(), Stop>,
    ) -> Result<(), Unparsed>;

    /// Lets the operand at `dword` name what is `allocation_offset` bytes behind `place`; returns
    /// whether that changed anything. A dword beyond the end is ignored.
    fn patch(
        &self,
        commands: &mut [u32],
        dword: u32,
        place: Place,
        allocation_offset: u64,
    ) -> Patched;

    /// Appends `operation`, from `progress` on, to `commands`, and advances `progress` (PAG-17).
    ///
    /// # Errors
    ///
    /// - [`Full`]: not everything had room. What is counted by `progress` is built; the rest needs
    ///   another buffer.
    fn build(
        &self,
        commands: &mut Commands,
        operation: &Operation<'_>,
        progress: &mut Progress,
    ) -> Result<(), Full>;

    /// Executes `operation` at once, on this CPU: the way of an adapter without a paging node.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it names a place outside its segment, a defect of the caller.
    fn execute(&self, operation: &Operation<'_>) -> Result;

    /// Puts `buffer` at the end of the queue of `node` and returns its completion value there; zero
    /// for waits and signals. Never blocks and never allocates; may be called under a spinlock.
    ///
    /// A buffer that comes after [`Backend::shut_down`] completes as stopped. So does one for a node
    /// that does not exist, before this returns.
    fn submit(&self, node: NodeOrdinal, buffer: ListArc<Buffer>) -> u64;

    /// Puts `buffer`, which came back as [`Outcome::Preempted`], in front of everything that `node` has before
    /// it, with the completion value that it had. As [`Backend::submit`] otherwise.
    fn resubmit(&self, node: NodeOrdinal, buffer: ListArc<Buffer>);

    /// Asks `node` to give way. A paging buffer ends as preempted; client work gives way between portions
    /// only.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: no such node.
    /// - `EIO`: it does not listen.
    fn preempt(&self, node: NodeOrdinal) -> Result;

    /// Ends what `node` is running, if it belongs to the context with this number: client work as stopped, a
    /// paging buffer as preempted.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: no such node.
    /// - `EIO`: the engine cannot be reset.
    fn reset_engine(&self, node: NodeOrdinal, context: u64) -> Result;

    /// Ends what all nodes are running, whoever it belongs to, as [`Backend::reset_engine`] does.
    fn reset_adapter(&self);

    /// Returns the page frames that start at `place`, as far as they are adjacent; [`None`] outside
    /// memory segments.
    fn frames(&self, place: Place) -> Option<Frames>;

    /// Lets pages of the CPU host aperture of `segment` show pages of the segment, all of them or
    /// none; both sides may be scattered (SEG-28). Never blocks and never allocates.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is no such page, or the page of the window shows something.
    fn map_host_aperture(&self, segment: SegmentId, user: User, pages: &[WindowPage]) -> Result;

    /// Lets pages of the CPU host aperture of `segment` show nothing. The CPU has no translation of
    /// them any more. Never blocks and never allocates.
    fn unmap_host_aperture(&self, segment: SegmentId, user: User, pages: &[u32]);

    /// Returns the page frames by which the CPU reaches the page `window` of the host aperture of
    /// `segment`, from its byte `offset` on, as far as they are adjacent; [`None`] if it shows
    /// nothing.
    fn window_frames(&self, segment: SegmentId, window: u32, offset: u64) -> Option<Frames>;

    /// Lets `node` start no further buffer, or go on.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: no such node.
    fn set_flow(&self, node: NodeOrdinal, flow: Flow) -> Result;

    /// Lets the next `count` occasions of `failure` go wrong; replaces what is left of an earlier
    /// count.
    fn fail_next(&self, failure: Failure, count: u32);

    /// Returns the counters.
    fn statistics(&self) -> Statistics;

    /// Returns how a node looked for translations; [`None`] without MMU or node.
    fn lookups(&self, node: NodeOrdinal) -> Option<Lookups>;

    /// Reads an entry of the page table at `table`, for debug files; [`None`] outside of memory.
    fn entry(&self, table: Place, level: u32, index: u32) -> Option<Entry>;

    /// Waits until no completion is being reported any more. Only of use after
    /// [`Backend::shut_down`].
    fn flush(&self) {}

    /// Stops all nodes and waits for them. Every buffer still queued completes as stopped.
    fn shut_down(&self);
}

/// The backend's side of a context.
pub(crate) trait EngineContext: Send + Sync {
    /// Returns the number it is known by.
    fn number(&self) -> u64;

    /// Returns the process it belongs to.
    fn process(&self) -> u64;

    /// Ends what its buffers are doing within 10 ms; later buffers of it complete as stopped
    /// without running. Cannot be taken back.
    fn stop(&self);

    /// Returns itself for the backend that created it.
    fn as_any(&self) -> &dyn Any;
}

/// What a context is created from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContextDescription {
    /// The number it is known by.
    pub(crate) number: u64,
    /// The process it belongs to, for the trace.
    pub(crate) process: u64,
    /// The node it works on.
    pub(crate) node: NodeOrdinal,
    /// Who pays for it.
    pub(crate) charge: Charge,
}

/// An object that comes or goes; processes and allocations by their numbers on the adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectCall {
    /// A process appears.
    CreateProcess {
        /// Its number.
        process: u64,
    },
    /// A process is gone.
    DestroyProcess {
        /// Its number.
        process: u64,
    },
    /// A device appears.
    CreateDevice {
        /// The process it belongs to.
        process: u64,
    },
    /// A device is gone.
    DestroyDevice {
        /// The process it belonged to.
        process: u64,
    },
    /// An allocation appears.
    CreateAllocation {
        /// The process it belongs to.
        process: u64,
        /// Its number.
        allocation: u64,
    },
    /// An allocation is gone.
    DestroyAllocation {
        /// The process it belonged to.
        process: u64,
        /// Its number.
        allocation: u64,
    },
}

impl ObjectCall {
    /// Emits the event of this call.
    fn trace(self) {
        let (name, process, allocation) = match self {
            ObjectCall::CreateProcess { process } => (trace::Call::CreateProcess, process, 0),
            ObjectCall::DestroyProcess { process } => (trace::Call::DestroyProcess, process, 0),
            ObjectCall::CreateDevice { process } => (trace::Call::CreateDevice, process, 0),
            ObjectCall::DestroyDevice { process } => (trace::Call::DestroyDevice, process, 0),
            ObjectCall::CreateAllocation {
                process,
                allocation,
            } => (trace::Call::CreateAllocation, process, allocation),
            ObjectCall::DestroyAllocation {
                process,
                allocation,
            } => (trace::Call::DestroyAllocation, process, allocation),
        };
        trace_call(name, process, allocation);
    }
}

/// Emits the event of a call of the backend.
fn trace_call(name: trace::Call, process: u64, allocation: u64) {
    trace::backend_call(|| trace::BackendCall {
        name,
        process,
        allocation,
    });
}

/// Something that [`Backend::parse`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A packet begins.
    Packet {
        /// Its byte offset.
        offset: u32,
    },
    /// The packet that began last has this address operand.
    Operand(Operand),
}

/// An address operand of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    /// Dword of its low half, counted from the start of the commands.
    pub(crate) dword: u32,
    /// Byte offset of its packet.
    pub(crate) packet: u32,
    /// Alignment the address must have.
    pub(crate) align: u32,
    /// Bytes from the address that the packet may touch.
    pub(crate) reach: u64,
    /// Whether it is written through.
    pub(crate) access: Access,
}

/// How a packet uses an address operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It only reads.
    Read,
    /// It writes, and may read.
    Write,
}

/// The visitor of [`Backend::parse`] has seen enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop;

/// Why [`Backend::parse`] did not come to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unparsed {
    /// The packet breaks a rule.
    BadPacket {
        /// Its byte offset.
        offset: u32,
    },
    /// The visitor stopped.
    Stopped,
}

impl From<Stop> for Unparsed {
    fn from(_: Stop) -> Self {
        Unparsed::Stopped
    }
}

/// An access by virtual address that was not possible (VA-21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The lowest address of the piece that could not be accessed.
    pub(crate) address: GpuVirtualAddress,
    /// What was to be done there.
    pub(crate) access: FaultAccess,
    /// Why it was not possible.
    pub(crate) reason: FaultReason,
}

/// What was to be done at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultAccess {
    /// Memory was to be read.
    Read,
    /// Memory was to be written, and maybe read.
    Write,
    /// Commands were to be fetched.
    Fetch,
}

/// Why an access was not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultReason {
    /// The page tables have no page there.
    NotMapped,
    /// The page does not allow it.
    Protection,
}

/// Whether [`Backend::patch`] had to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patched {
    /// The operand was right already.
    Unchanged,
    /// It was written.
    Written,
}

/// Adjacent page frames of a memory segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frames {
    /// The first one.
    pub(crate) first: Frame,
    /// How many there are; at least one.
    pub(crate) count: u64,
}

/// A page of a CPU host aperture, and the page of the segment that it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowPage {
    /// Number of the page of the window.
    pub(crate) window: u32,
    /// Number of the page of the segment.
    pub(crate) page: u32,
}

/// For whom something is done, for the trace: by their numbers on the adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    /// The process.
    pub(crate) process: u64,
    /// The allocation.
    pub(crate) allocation: u64,
}

/// Whether a node starts buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// It does.
    Running,
    /// It does not.
    Paused,
}

/// What can be made to go wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The engine ignores the operation.
    Operation(operation::Name),
    /// A buffer runs and does not complete until it is stopped or preempted.
    Completion,
    /// A node does not listen when it is asked to give way.
    Preempt,
    /// An engine cannot be reset.
    EngineReset,
    /// Building reports a full buffer.
    BufferFull,
}

/// How often a node looked for translations of virtual addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lookups {
    /// Translations it remembered.
    pub(crate) hits: u64,
    /// Translations it did not remember, each of them a walk.
    pub(crate) misses: u64,
    /// Entries of page tables read by walks.
    pub(crate) walks: u64,
}

/// Counters of a backend since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statistics {
    /// Operations executed, by [`operation::Name::index`].
    pub(crate) operations: [u64; operation::Name::ALL.len()],
    /// Bytes covered by them.
    pub(crate) operation_bytes: [u64; operation::Name::ALL.len()],
    /// Client packets executed.
    pub(crate) packets: u64,
    /// Bytes that client packets wrote.
    pub(crate) packet_bytes: u64,
    /// Buffers run to their end.
    pub(crate) buffers: u64,
    /// Buffers that named the root of a space, which was compared with that of their context (BCK-8).
    pub(crate) roots: u64,
    /// Accesses to the dummy page of the aperture.
    pub(crate) dummy_hits: u64,
}
