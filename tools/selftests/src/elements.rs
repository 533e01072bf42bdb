// SPDX-License-Identifier: GPL-2.0

//! The elements of lists, field by field.

use crate::{
    abi::{
        AllocInfo,
        AllocState,
        Point,
        PriorityItem,
        ReclaimItem,
        SubmitAlloc,
        SubmitPatch,
        VaEntry, //
    },
    schema::{
        fields,
        Element,
        Field,
        Kind::{
            Flags,
            Handle,
            In,
            InOut,
            OptionalHandle,
            Out,
            Zero, //
        },
        Type, //
    }, //
};

/// A handle of anything.
pub const ANY_HANDLE: Element = Element {
    size: 4,
    align: 4,
    written: false,
    fields: &[Field {
        name: "handle",
        offset: 0,
        size: 4,
        kind: Handle(Type::Any),
    }],
};

/// A handle of an allocation.
pub const ALLOCATION_HANDLE: Element = Element {
    size: 4,
    align: 4,
    written: false,
    fields: &[Field {
        name: "handle",
        offset: 0,
        size: 4,
        kind: Handle(Type::Allocation),
    }],
};

/// A run of addresses.
pub const VA_ENTRY: Element = Element {
    size: size_of::<VaEntry>(),
    align: 8,
    written: true,
    fields: fields!(VaEntry {
        va: Out,
        size: Out,
        alloc: Out,
        flags: Out,
        alloc_offset: Out,
        segment: Out,
        level: Out,
    }),
};

/// An allocation to be made.
pub const ALLOC_INFO: Element = Element {
    size: size_of::<AllocInfo>(),
    align: 8,
    written: true,
    fields: fields!(AllocInfo {
        size: In,
        align: In,
        flags: Flags(0x333),
        handle: Out,
        read_segments: In,
        write_segments: In,
        evict_segments: Flags(0),
        priority: In,
        preferred: In,
        caching: In,
        rename_max: Zero,
        object_id: Out,
        mmap_offset: Out,
        mmap_span: Out,
        slot_stride: Out,
        busy_offset: Out,
        width: Zero,
        height: Zero,
        pitch: Zero,
        format: Zero,
    }),
};

/// An allocation that is asked about.
pub const ALLOC_STATE: Element = Element {
    size: size_of::<AllocState>(),
    align: 8,
    written: true,
    fields: fields!(AllocState {
        handle: Handle(Type::Allocation),
        residency: Out,
        segment: Out,
        flags: Out,
        priority: Out,
        resident_refs: Out,
        instances: Out,
        current: Out,
        size: Out,
        object_id: Out,
        mmap_offset: Out,
        mmap_span: Out,
    }),
};

/// An allocation that gets a priority.
pub const PRIORITY_ITEM: Element = Element {
    size: size_of::<PriorityItem>(),
    align: 4,
    written: false,
    fields: fields!(PriorityItem {
        alloc: Handle(Type::Allocation),
        priority: In,
    }),
};

/// An allocation that is reclaimed.
pub const RECLAIM_ITEM: Element = Element {
    size: size_of::<ReclaimItem>(),
    align: 4,
    written: true,
    fields: fields!(ReclaimItem {
        alloc: Handle(Type::Allocation),
        result: Out,
    }),
};

/// A value of a fence.
pub const POINT: Element = Element {
    size: size_of::<Point>(),
    align: 8,
    written: false,
    fields: fields!(Point {
        fence: Handle(Type::Fence),
        flags: Flags(0),
        value: In,
    }),
};

/// An element of an allocation list.
pub const SUBMIT_ALLOC: Element = Element {
    size: size_of::<SubmitAlloc>(),
    align: 8,
    written: true,
    fields: fields!(SubmitAlloc {
        alloc: OptionalHandle(Type::Allocation),
        flags: Flags(1),
        instance: In,
        presumed_segment: InOut,
        presumed_address: InOut,
    }),
};

/// An entry of a patch list.
pub const SUBMIT_PATCH: Element = Element {
    size: size_of::<SubmitPatch>(),
    align: 8,
    written: false,
    fields: fields!(SubmitPatch {
        alloc_index: In,
        slot: In,
        kind: In,
        driver_id: In,
        alloc_offset: In,
        patch_offset: In,
        split_offset: In,
    }),
};
