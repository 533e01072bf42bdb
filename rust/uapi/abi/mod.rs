// SPDX-License-Identifier: GPL-2.0

//! The user ABI: the Rust mirror of `include/uapi/linux/vidmm.h` and `vidmm_engine.h`.
//!
//! Plain structures and constants, nothing else. Only `core` is used, so that userspace shares this
//! room by path: `#[path = ".../rust/uapi/abi/mod.rs"] mod abi;`.
//!
//! Names follow the header: `struct vidmm_alloc_create` is [`AllocCreate`], `VIDMM_ALLOC_PRIMARY` is
//! [`ALLOC_PRIMARY`], `VIDMM_NR_OFFER` is [`nr::OFFER`], `VIDMM_ENGINE_OP_FILL` is
//! [`engine::OP_FILL`], `VIDMM_CLOSE_SIZE_FIRST` is [`Close::SIZE_FIRST`]. The families are private:
//! all but [`nr`] and [`engine`] is named without them. `tools/check/abi` compares every structure
//! and every constant with the header and with the tables of the interface.
//!
//! The text of a field begins with its direction: `in`; `out`, written on success; `out!`, written
//! on failure too; `in/out`.
//!
//! What enters here: structures and constants of the header. What does not: methods, conversions,
//! kernel types, unsafe code. Which structures are plain bytes is said by `abstractions/bytes.rs`,
//! with the help of `for_each_struct!`.

// The module and the tools each use a part of the mirror.
#![allow(dead_code, unreachable_pub, unused_imports, unused_macros)]

/// States the layout of a structure: its size, the size first published if it is an argument or an
/// element of a list, and the offset of every field. The build fails if one of them is wrong, a
/// field is missing, or a hole is left.
macro_rules! layout {
    ($name:ident, size $size:literal, first $first:literal, { $($field:ident: $offset:literal,)+ }) => {
        layout!($name, size $size, { $($field: $offset,)+ });

        impl $name {
            /// Size in bytes when first published; smaller ones are refused.
            pub const SIZE_FIRST: usize = $first;
        }

        const _: () = assert!($first <= $size);
    };
    ($name:ident, size $size:literal, { $($field:ident: $offset:literal,)+ }) => {
        const _: () = {
            const fn field_size<S, T>(_: fn(&S) -> &T) -> usize {
                core::mem::size_of::<T>()
            }

            assert!(core::mem::size_of::<$name>() == $size);
            assert!($size == 0 $(+ field_size(|whole: &$name| &whole.$field))+);
            $(assert!(core::mem::offset_of!($name, $field) == $offset);)+
        };
    };
}

mod address_space;
mod allocation;
mod array;
mod budget;
mod context;
mod device;
mod events;
mod fence;
mod ioctl;
mod lock;
mod mapping;
mod offer;
mod paging_queue;
mod query;
mod residency;
mod scanout;
mod submission;

pub mod engine;
pub mod nr;

pub use address_space::*;
pub use allocation::*;
pub use array::*;
pub use budget::*;
pub use context::*;
pub use device::*;
pub use events::*;
pub use fence::*;
pub use ioctl::*;
pub use lock::*;
pub use mapping::*;
pub use offer::*;
pub use paging_queue::*;
pub use query::*;
pub use residency::*;
pub use scanout::*;
pub use submission::*;

/// Calls the macro `callback` with the names of all structures, each followed by a comma.
///
/// Whoever must treat each of them alike uses this, so that none is forgotten. The caller has the
/// structures in scope:
///
/// ```ignore
/// use abi::*;
///
/// macro_rules! list {
///     ($($name:ident,)+) => { [$((stringify!($name), size_of::<$name>())),+] };
/// }
/// let sizes = abi::for_each_struct!(list);
/// ```
macro_rules! for_each_struct {
    ($callback:ident) => {
        $callback! {
            Array,
            Point,
            Query,
            InfoAdapter,
            InfoSegment,
            InfoNode,
            InfoIoctl,
            InfoLimits,
            InfoClock,
            InfoSource,
            InfoClient,
            SetName,
            Close,
            DeviceCreate,
            DeviceState,
            AllocCreate,
            AllocInfo,
            AllocQuery,
            AllocState,
            SetPriority,
            PriorityItem,
            Lock,
            Unlock,
            ContextCreate,
            ContextSet,
            SubmitPatched,
            SubmitAlloc,
            SubmitPatch,
            SubmitVirtual,
            SubmitQuery,
            PagingQueueCreate,
            MakeResident,
            Evict,
            Offer,
            Reclaim,
            ReclaimItem,
            Budget,
            ReserveBudget,
            StatusPage,
            Events,
            Event,
            VaReserve,
            VaFree,
            VaMap,
            VaQuery,
            VaEntry,
            FenceSlot,
            FenceCreate,
            FenceSignal,
            FenceWait,
            Scanout,
        }
    };
}
pub(crate) use for_each_struct;
