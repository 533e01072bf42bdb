// SPDX-License-Identifier: GPL-2.0

//! The calls, field by field, each with a way to make an argument that it accepts.
//!
//! One table, as long as the interface: it is read by looking a call up, not from start to end. The
//! calls about residency are in [`residency`], those about GPU virtual addresses in [`addresses`].

use crate::{
    abi::{
        self,
        nr,
        AllocCreate,
        AllocQuery,
        AllocState,
        Array,
        Close,
        ContextCreate,
        ContextSet,
        DeviceCreate,
        DeviceState,
        FenceCreate,
        FenceSignal,
        FenceWait,
        InfoAdapter,
        InfoIoctl,
        Lock,
        PriorityItem,
        Query,
        Scanout,
        SetName,
        SetPriority,
        SubmitPatched,
        SubmitQuery,
        Unlock, //
    },
    argument::Argument,
    call::bytes_of,
    client::{
        context_argument,
        point,
        Client, //
    },
    clock,
    commands::Commands,
    elements::{
        ALLOC_INFO,
        ALLOC_STATE,
        ANY_HANDLE,
        POINT,
        PRIORITY_ITEM,
        SUBMIT_ALLOC,
        SUBMIT_PATCH, //
    },
    fixture::{
        physical,
        primary,
        PHYSICAL_NODE,
        SYSTEM, //
    },
    schema::{
        fields,
        Call,
        Empty,
        Kind::{
            Flags,
            Handle,
            In,
            InOut,
            List,
            OptionalHandle,
            Out,
            OutAlways,
            Pointer,
            Zero, //
        },
        Type, //
    },
    world::World, //
};

macro_rules! call {
    ($name:literal, $number:ident, $structure:ident { $($fields:tt)* }, $arrange:expr) => {
        Call {
            name: $name,
            number: nr::$number,
            size: size_of::<$structure>(),
            fields: fields!($structure { $($fields)* }),
            arrange: $arrange,
        }
    };
}
pub(crate) use call;

mod addresses;
mod residency;

/// The calls that are about neither.
const OTHERS: &[Call] = &[
    call!(
        "QUERY",
        QUERY,
        Query {
            query: In,
            index: In,
            data: Pointer,
            size: InOut,
            flags: Flags(0),
        },
        |_| {
            let size = size_of::<InfoAdapter>() as u32;
            Argument::of(Query {
                query: abi::QUERY_ADAPTER,
                size,
                ..Default::default()
            })
            .with_memory(core::mem::offset_of!(Query, data), size as usize)
        }
    ),
    call!(
        "SET_NAME",
        SET_NAME,
        SetName {
            object: OptionalHandle(Type::Any),
            len: In,
            ptr: Pointer,
        },
        |world| {
            let mut argument = Argument::of(SetName {
                object: world.device,
                len: 4,
                ptr: 0,
            })
            .with_memory(core::mem::offset_of!(SetName, ptr), 4);
            argument.list_bytes(0)[..4].copy_from_slice(b"name");
            argument
        }
    ),
    call!(
        "CLOSE",
        CLOSE,
        Close {
            handles: List(&ANY_HANDLE, Empty::Refused),
            flags: Flags(1),
            fail_index: OutAlways,
        },
        |world| {
            let fence = world.client.create_fence(world.device, 0);
            Argument::of(Close::default()).with_list(0, &[fence])
        }
    ),
    call!(
        "DEVICE_CREATE",
        DEVICE_CREATE,
        DeviceCreate {
            flags: Flags(0),
            device: Out,
        },
        |_| { Argument::of(DeviceCreate::default()) }
    ),
    call!(
        "DEVICE_STATE",
        DEVICE_STATE,
        DeviceState {
            device: Handle(Type::Device),
            flags: Flags(0),
            state: Out,
            guilty: Out,
            context: Out,
            node: Out,
            submission: Out,
            fault_va: Out,
            fault_flags: Out,
            reset_count: Out,
            time_ns: Out,
        },
        |world| Argument::of(DeviceState {
            device: world.device,
            ..Default::default()
        })
    ),
    call!(
        "ALLOC_CREATE",
        ALLOC_CREATE,
        AllocCreate {
            device: Handle(Type::Device),
            flags: Flags(0),
            infos: List(&ALLOC_INFO, Empty::Refused),
            fail_index: OutAlways,
            pad: Zero,
        },
        |world| {
            Argument::of(AllocCreate {
                device: world.device,
                ..Default::default()
            })
            .with_list(
                core::mem::offset_of!(AllocCreate, infos),
                &[physical(4096, SYSTEM)],
            )
        }
    ),
    call!(
        "ALLOC_QUERY",
        ALLOC_QUERY,
        AllocQuery {
            items: List(&ALLOC_STATE, Empty::Refused),
            flags: Flags(0),
            fail_index: OutAlways,
        },
        |world| {
            let state = AllocState {
                handle: world.allocation.handle,
                ..Default::default()
            };
            Argument::of(AllocQuery::default()).with_list(0, &[state])
        }
    ),
    call!(
        "SET_PRIORITY",
        SET_PRIORITY,
        SetPriority {
            items: List(&PRIORITY_ITEM, Empty::Refused),
            flags: Flags(0),
            fail_index: OutAlways,
        },
        |world| {
            let item = PriorityItem {
                alloc: world.allocation.handle,
                priority: abi::ALLOC_PRIORITY_HIGH,
            };
            Argument::of(SetPriority::default()).with_list(0, &[item])
        }
    ),
    call!(
        "LOCK",
        LOCK,
        Lock {
            alloc: Handle(Type::Allocation),
            flags: Flags(0x1b),
            offset: In,
            length: In,
            deadline_ns: In,
            instance: Out,
            result: Out,
            mmap_offset: Out,
            generation: Out,
        },
        |world| {
            let alloc = world.allocation.handle;
            let deadline_ns = clock::patient_deadline();
            Argument::of(Lock {
                alloc,
                flags: abi::LOCK_READ,
                deadline_ns,
                ..Default::default()
            })
        }
    ),
    call!(
        "UNLOCK",
        UNLOCK,
        Unlock {
            alloc: Handle(Type::Allocation),
            instance: In,
            offset: In,
            length: In,
            flags: Flags(0),
            pad: Zero,
        },
        |world| {
            let alloc = world.allocation.handle;
            world.client.lock(alloc, abi::LOCK_WRITE);
            Argument::of(Unlock {
                alloc,
                ..Default::default()
            })
        }
    ),
    call!(
        "CONTEXT_CREATE",
        CONTEXT_CREATE,
        ContextCreate {
            device: Handle(Type::Device),
            node: In,
            mode: In,
            flags: Flags(1),
            priority: In,
            companion_node: In,
            timeout_ms: In,
            context: Out,
            progress: Out,
            progress_slot: Out,
            progress_mmap: Out,
        },
        |world| {
            let mode = abi::CONTEXT_MODE_PATCHED_LIST;
            Argument::of(context_argument(world.device, PHYSICAL_NODE, mode))
        }
    ),
    call!(
        "CONTEXT_SET",
        CONTEXT_SET,
        ContextSet {
            context: Handle(Type::Context),
            mask: Flags(3),
            priority: In,
            timeout_ms: In,
        },
        |world| {
            let context = world.context.handle;
            let mask = abi::CONTEXT_SET_PRIORITY;
            Argument::of(ContextSet {
                context,
                mask,
                priority: -1,
                timeout_ms: 0,
            })
        }
    ),
    call!(
        "SUBMIT_PATCHED",
        SUBMIT_PATCHED,
        SubmitPatched {
            context: Handle(Type::Context),
            flags: Flags(1),
            cmd_ptr: Pointer,
            cmd_size: In,
            pad: Zero,
            allocs: List(&SUBMIT_ALLOC, Empty::Allowed),
            patches: List(&SUBMIT_PATCH, Empty::Allowed),
            waits: List(&POINT, Empty::Allowed),
            signals: List(&POINT, Empty::Allowed),
            submission: Out,
            error_kind: OutAlways,
            error_index: OutAlways,
        },
        arrange_submission
    ),
    call!(
        "SUBMIT_QUERY",
        SUBMIT_QUERY,
        SubmitQuery {
            context: Handle(Type::Context),
            flags: Flags(0),
            submission: In,
            state: Out,
            error: Out,
            splits: Out,
            patches_written: Out,
            paged_in: Out,
            paged_out: Out,
            queued_ns: Out,
            start_ns: Out,
            end_ns: Out,
        },
        |world| {
            let context = world.context.handle;
            Argument::of(SubmitQuery {
                context,
                submission: 1,
                ..Default::default()
            })
        }
    ),
    call!(
        "FENCE_CREATE",
        FENCE_CREATE,
        FenceCreate {
            device: Handle(Type::Device),
            flags: Flags(0xe),
            initial: In,
            fence: Out,
            slot: Out,
            mmap_offset: Out,
            gpu_va: Out,
        },
        |world| Argument::of(FenceCreate {
            device: world.device,
            ..Default::default()
        })
    ),
    call!(
        "FENCE_SIGNAL",
        FENCE_SIGNAL,
        FenceSignal {
            points: List(&POINT, Empty::Refused),
            flags: Flags(1),
            fail_index: OutAlways,
        },
        |world| {
            let fence = world.client.create_fence(world.device, 0);
            Argument::of(FenceSignal::default()).with_list(0, &[point(fence, 1)])
        }
    ),
    call!(
        "FENCE_WAIT",
        FENCE_WAIT,
        FenceWait {
            points: List(&POINT, Empty::Refused),
            deadline_ns: In,
            flags: Flags(1),
            first: OutAlways,
        },
        |world| Argument::of(FenceWait::default()).with_list(0, &[point(world.fence, 0)])
    ),
    call!(
        "SCANOUT",
        SCANOUT,
        Scanout {
            source: In,
            alloc: OptionalHandle(Type::Allocation),
            flags: Flags(1),
            previous: Out,
            wait.fence: OptionalHandle(Type::Fence),
            wait.flags: Flags(0),
            wait.value: In,
            signal.fence: OptionalHandle(Type::Fence),
            signal.flags: Flags(0),
            signal.value: In,
            sequence: Out,
        },
        |world| {
            let alloc = world.client.create(world.device, primary(64, 64)).handle;
            let signal = world.client.create_fence(world.device, 0);
            Argument::of(Scanout {
                alloc,
                wait: point(world.fence, 0),
                signal: point(signal, 1),
                ..Default::default()
            })
        }
    ),
];

/// Every call that is described, whether the module builds it or not.
pub fn described() -> impl Iterator<Item = &'static Call> {
    OTHERS
        .iter()
        .chain(residency::CALLS)
        .chain(addresses::CALLS)
}

/// Every call that is described and that the module builds, by what it says itself.
pub fn built(client: &Client) -> Vec<&'static Call> {
    described()
        .filter(|call| {
            let record: InfoIoctl = client.query(abi::QUERY_IOCTL, u32::from(call.number));
            record.supported == 1
        })
        .collect()
}

/// A call by its name.
pub fn call_named(name: &str) -> &'static Call {
    let found = described().find(|call| call.name == name);
    found.unwrap_or_else(|| panic!("no call {name}"))
}

fn arrange_submission(world: &World) -> Argument {
    let mut commands = Commands::new();
    commands.fill_bytes(world.allocation.at(0), 64, 0x1234_5678);
    let base = commands.argument(world.context.handle);
    let mut argument = Argument::of(SubmitPatched {
        cmd_ptr: 0,
        allocs: Array::default(),
        patches: Array::default(),
        waits: Array::default(),
        signals: Array::default(),
        ..base
    })
    .with_list(
        core::mem::offset_of!(SubmitPatched, allocs),
        &commands.allocs,
    )
    .with_list(
        core::mem::offset_of!(SubmitPatched, patches),
        &commands.patches,
    )
    .with_list(
        core::mem::offset_of!(SubmitPatched, waits),
        &[point(world.fence, 0)],
    )
    .with_list(
        core::mem::offset_of!(SubmitPatched, signals),
        &[point(world.other_fence, 1)],
    )
    .with_memory(
        core::mem::offset_of!(SubmitPatched, cmd_ptr),
        commands.bytes() as usize,
    );
    let bytes = bytes_of(&commands.dwords);
    argument.list_bytes(4)[..bytes.len()].copy_from_slice(bytes);
    argument
}
