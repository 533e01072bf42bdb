// SPDX-License-Identifier: GPL-2.0

//! The words of trace events, each set closed.
//!
//! A word crosses to C as a number: that of its place in the list of the same field in
//! `rust/helpers/events.h`, which turns it into text. A new word goes to the end of both lists.

/// Declares the words of one field, numbered from zero.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident,)+ })+) => {$(
        $(#[$doc])*
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$word_doc])* $word,)+
        }
    )+};
}

words! {
    /// A call of the backend that is neither building nor submitting.
    Call {
        /// `query_segments`
        QuerySegments,
        /// `create_process`
        CreateProcess,
        /// `destroy_process`
        DestroyProcess,
        /// `create_device`
        CreateDevice,
        /// `destroy_device`
        DestroyDevice,
        /// `create_context`
        CreateContext,
        /// `destroy_context`
        DestroyContext,
        /// `create_allocation`
        CreateAllocation,
        /// `destroy_allocation`
        DestroyAllocation,
        /// `set_root`
        SetRoot,
        /// `map_host_aperture`
        MapHostAperture,
        /// `unmap_host_aperture`
        UnmapHostAperture,
        /// `suspend_context`
        SuspendContext,
        /// `resume_context`
        ResumeContext,
        /// `preempt`
        Preempt,
        /// `reset_engine`
        ResetEngine,
        /// `reset_adapter`
        ResetAdapter,
    }

    /// Beginning and end of an object.
    Life {
        /// `create`
        Create,
        /// `destroy`
        Destroy,
    }

    /// What a range of a GPU virtual address space is for.
    Purpose {
        /// `root`: a client's root page table, seen by the paging process.
        Root,
        /// `table`: another page table of a client, likewise.
        Table,
        /// `source`: content that is read.
        Source,
        /// `destination`: content that is written.
        Destination,
        /// `backend`: what the backend keeps for itself.
        Backend,
        /// `pool`: mappings of a tile pool.
        Pool,
        /// `reservation`: VA_RESERVE.
        Reservation,
        /// `map`: VA_MAP outside of a reservation.
        Map,
        /// `fence`: a page of fence slots.
        Fence,
    }

    /// What happens to a range of a GPU virtual address space.
    Hold {
        /// `alloc`
        Alloc,
        /// `free`
        Free,
    }

    /// The kind of a paging operation.
    Operation {
        /// `Fill`
        Fill,
        /// `Transfer`
        Transfer,
        /// `Discard`
        Discard,
        /// `FillVirtual`
        FillVirtual,
        /// `TransferVirtual`
        TransferVirtual,
        /// `UpdatePageTable`
        UpdatePageTable,
        /// `FlushTLB`
        FlushTlb,
        /// `CopyPageTableEntries`
        CopyPageTableEntries,
        /// `MapAperture`
        MapAperture,
        /// `UnmapAperture`
        UnmapAperture,
    }

    /// How the target of a paging operation is addressed.
    Mode {
        /// `none`: the operation has no choice.
        None,
        /// `gpu_virtual`
        GpuVirtual,
        /// `gpu_physical`
        GpuPhysical,
        /// `cpu_virtual`: executed at once, without a buffer.
        CpuVirtual,
    }

    /// Why memory work is done.
    Cause {
        /// `none`
        None,
        /// `create`: tables of a new process or root.
        Create,
        /// `resident`: MAKE_RESIDENT, RECLAIM, what a submission names, a return before work runs.
        Resident,
        /// `evict`: the reference count fell to 0.
        Evict,
        /// `pressure`: room for others.
        Pressure,
        /// `move`: a requested move, making room contiguous.
        Move,
        /// `split`: between two portions of one submission.
        Split,
        /// `map`: VA_RESERVE, VA_MAP, VA_FREE.
        Map,
        /// `tile`: VA_UPDATE and the permanent mappings of the privileged space.
        Tile,
        /// `display`: SCANOUT.
        Display,
        /// `power`: entering and leaving full power.
        Power,
        /// `discard`: content dropped, because it is offered, trimmed or destroyed.
        Discard,
        /// `scrub`: clearing memory that is free.
        Scrub,
    }

    /// Where a step of making resident runs.
    Where {
        /// `app`: in the call.
        Application,
        /// `worker`
        Worker,
    }

    /// How an element of a patch list came out of its preparation.
    Prepared {
        /// `resident`
        Resident,
        /// `paged-in`
        PagedIn,
        /// `unbound`: a NULL element.
        Unbound,
        /// `replaced`: another element binds the slot at the same offset.
        Replaced,
        /// `no-memory`
        NoMemory,
    }

    /// What a node runs.
    Kind {
        /// `dma`
        Dma,
        /// `paging`
        Paging,
        /// `wait`
        Wait,
        /// `signal`
        Signal,
    }

    /// How a lock for the CPU is answered.
    Decision {
        /// `direct`
        Direct,
        /// `reuse`
        Reuse,
        /// `rename`
        Rename,
        /// `stall`
        Stall,
        /// `would-block`
        WouldBlock,
    }

    /// Who changed the value of a fence.
    Origin {
        /// `cpu`: FENCE_SIGNAL, an imported sync_file.
        Cpu,
        /// `gpu`: signals of submissions, stores to the fence page, progress fences.
        Gpu,
        /// `worker`: paging fences.
        Worker,
        /// `companion`: updates, also where the CPU carries them out.
        Companion,
        /// `reset`: poisoning.
        Reset,
    }

    /// What becomes of a wait for a fence.
    Waiting {
        /// `begin`
        Begin,
        /// `end`: satisfied.
        End,
        /// `cancel`
        Cancel,
    }

    /// Why an address could not be accessed.
    FaultReason {
        /// `NOT_MAPPED`
        NotMapped,
        /// `NOT_RESIDENT`: a mapping exists, and its memory is away.
        NotResident,
        /// `PROTECTION`
        Protection,
    }

    /// What a source does with a primary.
    Shown {
        /// `start`
        Start,
        /// `stop`
        Stop,
    }
}

/// The state of a device, with the numbers of the interface.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// `ACTIVE`
    Active = 1,
    /// `RESET`
    Reset,
    /// `HUNG`
    Hung,
    /// `STOPPED`
    Stopped,
    /// `ERROR_MEMORY`
    ErrorMemory,
    /// `ERROR_DMA`
    ErrorDma,
    /// `ERROR_FAULT`
    ErrorFault,
    /// `ADAPTER_GONE`
    AdapterGone,
}
