// SPDX-License-Identifier: GPL-2.0

//! The calls about GPU virtual addresses.

use core::mem::offset_of;

use crate::{
    abi::{
        self,
        nr,
        SubmitVirtual,
        VaEntry,
        VaFree,
        VaMap,
        VaQuery,
        VaReserve, //
    },
    addresses::VIRTUAL_NODE,
    argument::Argument,
    calls::call,
    client::point,
    elements::{
        ALLOCATION_HANDLE,
        POINT,
        VA_ENTRY, //
    },
    fixture::primary,
    schema::{
        fields,
        Call,
        Empty,
        Kind::{
            Flags,
            Handle,
            In,
            List,
            Out,
            OutAlways,
            Zero, //
        },
        Type, //
    },
    world::World, //
};

/// The calls.
pub const CALLS: &[Call] = &[
    call!(
        "SUBMIT_VIRTUAL",
        SUBMIT_VIRTUAL,
        SubmitVirtual {
            context: Handle(Type::Context),
            flags: Flags(1),
            cmd_va: In,
            cmd_size: In,
            pad: Zero,
            primaries: List(&ALLOCATION_HANDLE, Empty::Allowed),
            waits: List(&POINT, Empty::Allowed),
            signals: List(&POINT, Empty::Allowed),
            submission: Out,
            error_kind: OutAlways,
            error_index: OutAlways,
        },
        |world| {
            let mode = abi::CONTEXT_MODE_VIRTUAL;
            let context = world
                .client
                .create_context_of_mode(world.device, VIRTUAL_NODE, mode);
            let written = world.client.create(world.device, primary(16, 16));
            world.client.bring_in(&world.queue, &[written.handle]);
            Argument::of(SubmitVirtual {
                context: context.handle,
                flags: abi::SUBMIT_VIRTUAL_NULL_RENDER,
                cmd_va: 0x1_0000,
                cmd_size: 64,
                ..Default::default()
            })
            .with_list(offset_of!(SubmitVirtual, primaries), &[written.handle])
            .with_list(offset_of!(SubmitVirtual, waits), &[point(world.fence, 0)])
            .with_list(
                offset_of!(SubmitVirtual, signals),
                &[point(world.other_fence, 1)],
            )
        }
    ),
    call!(
        "VA_RESERVE",
        VA_RESERVE,
        VaReserve {
            queue: Handle(Type::Queue),
            kind: In,
            flags: Flags(0),
            status: Out,
            base: In,
            min: In,
            max: In,
            size: In,
            align: In,
            va: Out,
            fence_value: Out,
        },
        |world| Argument::of(VaReserve {
            queue: world.queue.handle,
            size: abi::VA_RESERVE_ALIGN,
            ..Default::default()
        })
    ),
    call!(
        "VA_FREE",
        VA_FREE,
        VaFree {
            va: In,
            size: In,
            flags: Flags(0),
            pad: Zero,
        },
        |world| Argument::of(VaFree {
            va: reserve(world),
            size: abi::VA_RESERVE_ALIGN,
            ..Default::default()
        })
    ),
    call!(
        "VA_MAP",
        VA_MAP,
        VaMap {
            queue: Handle(Type::Queue),
            alloc: Handle(Type::Allocation),
            protection: Flags(3),
            flags: Flags(0),
            base: In,
            min: In,
            max: In,
            alloc_offset: In,
            size: In,
            va: Out,
            fence_value: Out,
            status: Out,
            pad: Zero,
            driver_protection: In,
        },
        |world| Argument::of(VaMap {
            queue: world.queue.handle,
            alloc: world.allocation.handle,
            size: world.allocation.size,
            ..Default::default()
        })
    ),
    call!(
        "VA_QUERY",
        VA_QUERY,
        VaQuery {
            va: In,
            size: In,
            entries: List(&VA_ENTRY, Empty::Allowed),
            total: Out,
            flags: Flags(0),
        },
        |world| Argument::of(VaQuery {
            va: reserve(world),
            size: abi::VA_RESERVE_ALIGN,
            ..Default::default()
        })
        .with_list(offset_of!(VaQuery, entries), &[VaEntry::default()])
    ),
];

/// Reserves addresses and waits until they are.
fn reserve(world: &World) -> u64 {
    let (va, answer) = world
        .client
        .try_reserve_addresses(VaReserve {
            queue: world.queue.handle,
            size: abi::VA_RESERVE_ALIGN,
            ..Default::default()
        })
        .unwrap_or_else(|errno| panic!("VA_RESERVE: errno {errno}"));
    world.client.settle(&world.queue, answer);
    va
}
