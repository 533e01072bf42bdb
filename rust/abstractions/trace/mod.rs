// SPDX-License-Identifier: GPL-2.0

//! Trace events: what the driver decides and does, told to whoever listens.
//!
//! Every event is a record with a function of the same name. The function takes a closure that makes
//! the record, so that an event nobody listens to costs one no-op instruction and none of its fields is
//! computed:
//!
//! ```ignore
//! trace::fence(|| trace::Fence {
//!     fence: self.number,
//!     value: value.0,
//!     origin: trace::Origin::Worker,
//! });
//! ```
//!
//! Names, fields and words are an interface (section 2.4 of the requirements), and the C side in
//! `rust/helpers/events.h` writes the text. The records here mirror `rust/helpers/event_records.h`.
//!
//! C header: [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h).
//! Upstream: `rust/kernel/tracepoint.rs`, once it can declare the events of a module.

mod words;

pub use self::words::{
    Call,
    Cause,
    Decision,
    FaultReason,
    Hold,
    Kind,
    Life,
    Mode,
    Operation,
    Origin,
    Prepared,
    Purpose,
    Shown,
    State,
    Waiting,
    Where, //
};

use crate::units;
use core::mem::size_of;

/// A segment and an offset.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The segment; all ones prints as -1.
    pub segment: u32,
    /// Bytes from its start.
    pub offset: u64,
}

impl Place {
    /// The place of what is nowhere.
    pub const NOWHERE: Self = Self::new(u32::MAX, u64::MAX);
    /// What an event prints where a place means nothing.
    pub const NONE: Self = Self::new(0, 0);

    /// Returns the place with this offset in `segment`.
    pub const fn new(segment: u32, offset: u64) -> Self {
        Self { segment, offset }
    }
}

impl From<units::Place> for Place {
    fn from(place: units::Place) -> Self {
        Self::new(place.segment.get(), place.offset)
    }
}

/// Flag of [`trim`]: down to the budget.
pub const TRIM_TO_BUDGET: u32 = 1 << 2;

/// Flag of [`paging_op`]: one entry is written again and again.
pub const UPDATE_REPEATED: u32 = 1 << 0;
/// Flag of [`paging_op`]: the first entries of a table.
pub const UPDATE_INITIALISES: u32 = 1 << 1;

/// A node number that prints as -1.
pub const NO_NODE: u32 = u32::MAX;

/// Declares the records, the functions that emit them, and checks each size against the C side.
macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $($event:ident),+ => $record:ident($size:literal) {
            $($(#[$field_doc:meta])* $field:ident: $type:ty,)+
        }
    )+) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $record {
            $($(#[$field_doc])* pub $field: $type,)+
        }

        const _: () = assert!(size_of::<$record>() == $size);

        $(event!($event, $record);)+
    )+};
}

/// Declares the function that emits one event.
macro_rules! event {
    ($event:ident, $record:ident) => {
        kernel::macros::paste! {
            #[cfg(CONFIG_TRACEPOINTS)]
            #[allow(improper_ctypes)]
            extern "C" {
                static [<__tracepoint_ $event>]: kernel::bindings::tracepoint;
                fn [<rust_do_trace_ $event>](record: *const $record);
            }

            #[doc = concat!("Emits `", stringify!($event), "` if somebody listens.")]
            #[inline(always)]
            pub fn $event(record: impl FnOnce() -> $record) {
                #[cfg(CONFIG_TRACEPOINTS)]
                {
                    // SAFETY: The key is that of a tracepoint, defined in C by `events.c`.
                    let enabled = unsafe {
                        kernel::jump_label::static_branch_unlikely!(
                            [<__tracepoint_ $event>],
                            kernel::bindings::tracepoint,
                            key
                        )
                    };

                    if enabled {
                        let record = record();

                        // SAFETY: The record is borrowed for the call, which copies what it needs.
                        unsafe { [<rust_do_trace_ $event>](&record) };
                    }
                }

                #[cfg(not(CONFIG_TRACEPOINTS))]
                let _ = record;
            }
        }
    };
}

events! {
    /// A call of the backend. `process` and `allocation` are 0 where they mean nothing.
    backend_call => BackendCall(24) {
        /// Which call.
        name: Call,
        /// The client.
        process: u64,
        /// The allocation.
        allocation: u64,
    }

    /// An allocation comes into being or goes.
    alloc => Alloc(40) {
        /// Its object id.
        allocation: u64,
        /// What happens to it.
        action: Life,
        /// Bytes.
        size: u64,
        /// Creation flags of the interface.
        flags: u32,
        /// The client's mark.
        cookie: u64,
    }

    /// A range of a GPU virtual address space is taken or given back.
    va_range => VaRange(48) {
        /// The space.
        space: u64,
        /// Owner of the space.
        process: u64,
        /// What it is for.
        purpose: Purpose,
        /// Its first address.
        start: u64,
        /// Bytes.
        size: u64,
        /// What happens to it.
        action: Hold,
    }

    /// A paging operation is built, or carried out if it needs no buffer.
    paging_op => PagingOp(144) {
        /// Its number on the adapter.
        sequence: u64,
        /// The paging buffer, 0 if it is executed at once.
        buffer: u64,
        /// What it does.
        operation: Operation,
        /// The address space whose tables are changed, flushed or gone through.
        space: u64,
        /// Owner of the space.
        process: u64,
        /// The allocation whose pages are meant.
        allocation: u64,
        /// Where content comes from, or what is given up.
        source: Place,
        /// Where content goes to.
        destination: Place,
        /// First GPU virtual address.
        address: u64,
        /// Bytes moved or mapped.
        bytes: u64,
        /// How the target is addressed.
        mode: Mode,
        /// Why it is done.
        cause: Cause,
        /// Page-table level, 0 for a leaf.
        level: u32,
        /// Page-table entries.
        count: u64,
        /// Protection bits.
        protection: u64,
        /// Driver-defined protection bits.
        driver: u64,
        /// Flags of the operation.
        flags: u32,
    }

    /// A paging buffer goes to its node.
    paging_submit => PagingSubmit(48) {
        /// The paging buffer.
        buffer: u64,
        /// The context it runs in.
        context: u64,
        /// The node.
        node: u32,
        /// First operation in it.
        first_sequence: u64,
        /// Last operation in it.
        last_sequence: u64,
        /// Completion value on the node.
        fence: u64,
    }

    /// A step of making resident begins.
    resident_step => ResidentStep(32) {
        /// Where it runs.
        at: Where,
        /// 1 to 4 in the call, 1 to 3 in the worker.
        step: u32,
        /// The allocation, or the first one of the list.
        allocation: u64,
        /// The paging queue.
        queue: u64,
        /// Value of the paging fence, 0 in step A1.
        fence: u64,
    }

    /// A move is decided.
    residency => Residency(56) {
        /// The allocation.
        allocation: u64,
        /// Its instance.
        instance: u32,
        /// Old place.
        from: Place,
        /// New place.
        to: Place,
        /// Why.
        cause: Cause,
    }

    /// An element of a patch list is prepared.
    dma_prepare => DmaPrepare(32) {
        /// Number of the submission on the adapter.
        submit: u64,
        /// Index in the patch list.
        entry: u32,
        /// Binding slot.
        slot: u32,
        /// The allocation, 0 for a NULL element.
        allocation: u64,
        /// What came out.
        result: Prepared,
    }

    /// A portion of a DMA buffer goes to its node.
    dma_portion => DmaPortion(56) {
        /// Number of the submission on the adapter.
        submit: u64,
        /// The context.
        context: u64,
        /// The node.
        node: u32,
        /// First byte of the portion.
        start: u32,
        /// End of the portion.
        end: u32,
        /// First entry of the patch list in it.
        first_entry: u32,
        /// Entries of the patch list in it.
        entries: u32,
        /// Completion value on the node.
        fence: u64,
        /// What the call returned, counted per context.
        submission: u64,
    }

    /// An address is written to a DMA buffer, or would be had it not been right.
    dma_patch => DmaPatch(32) {
        /// Number of the submission on the adapter.
        submit: u64,
        /// Byte offset in the DMA buffer.
        offset: u32,
        /// What is written there.
        place: Place,
    }

    /// A node begins or ends a buffer.
    node_begin, node_end => Node(32) {
        /// The node.
        node: u32,
        /// The context.
        context: u64,
        /// What runs.
        kind: Kind,
        /// Completion value on the node, 0 for waits and signals.
        fence: u64,
    }

    /// A lock for the CPU is decided.
    lock => Lock(24) {
        /// The allocation.
        allocation: u64,
        /// The instance that is handed out.
        instance: u32,
        /// How.
        decision: Decision,
        /// How long the call waited.
        wait_ns: u64,
    }

    /// The value of a monitored fence changes.
    fence => Fence(24) {
        /// The fence.
        fence: u64,
        /// Its new value.
        value: u64,
        /// Who changed it.
        origin: Origin,
    }

    /// Somebody waits for a value of a monitored fence.
    fence_wait => FenceWait(32) {
        /// The fence.
        fence: u64,
        /// The value.
        value: u64,
        /// The context that waits, 0 for the CPU.
        context: u64,
        /// What becomes of the wait.
        action: Waiting,
    }

    /// A source begins or ceases to show a primary.
    scanout => Scanout(32) {
        /// The primary.
        allocation: u64,
        /// Where it lies.
        place: Place,
        /// Which of the two.
        action: Shown,
    }

    /// A context met an address that it could not access.
    fault => Fault(24) {
        /// The context.
        context: u64,
        /// The address.
        address: u64,
        /// Why it could not.
        reason: FaultReason,
    }

    /// A device changes its state.
    device_state => DeviceState(16) {
        /// The device.
        device: u64,
        /// Its new state.
        state: State,
    }

    /// The budget of a client changes.
    budget => Budget(32) {
        /// The client.
        process: u64,
        /// The segment group, as the interface numbers it.
        group: u32,
        /// The new budget.
        budget: u64,
        /// What it uses.
        usage: u64,
    }

    /// A client is asked to give memory up.
    trim => Trim(24) {
        /// The client.
        process: u64,
        /// How far: [`TRIM_TO_BUDGET`].
        flags: u32,
        /// How much.
        bytes: u64,
    }
}
