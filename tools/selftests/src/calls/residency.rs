// SPDX-License-Identifier: GPL-2.0

//! The calls about residency: paging queues, references, offers, budgets, events.

use crate::{
    abi::{
        self,
        nr,
        Budget,
        Events,
        Evict,
        MakeResident,
        Offer,
        PagingQueueCreate,
        Reclaim,
        ReclaimItem,
        ReserveBudget, //
    },
    argument::Argument,
    call::array,
    calls::call,
    elements::{
        ALLOCATION_HANDLE,
        RECLAIM_ITEM, //
    },
    fixture::{
        physical,
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
        "PAGING_QUEUE_CREATE",
        PAGING_QUEUE_CREATE,
        PagingQueueCreate {
            device: Handle(Type::Device),
            priority: In,
            flags: Flags(0),
            queue: Out,
            fence: Out,
            slot: Out,
            mmap_offset: Out,
        },
        |world| Argument::of(PagingQueueCreate {
            device: world.device,
            ..Default::default()
        })
    ),
    call!(
        "MAKE_RESIDENT",
        MAKE_RESIDENT,
        MakeResident {
            queue: Handle(Type::Queue),
            flags: Flags(3),
            handles: List(&ALLOCATION_HANDLE, Empty::Refused),
            fence_value: Out,
            bytes_to_trim: OutAlways,
            status: Out,
            fail_index: OutAlways,
        },
        |world| {
            Argument::of(MakeResident {
                queue: world.queue.handle,
                ..Default::default()
            })
            .with_list(
                core::mem::offset_of!(MakeResident, handles),
                &[world.allocation.handle],
            )
        }
    ),
    call!(
        "EVICT",
        EVICT,
        Evict {
            device: Handle(Type::Device),
            flags: Flags(3),
            handles: List(&ALLOCATION_HANDLE, Empty::Refused),
            bytes_to_trim: Out,
            fail_index: OutAlways,
            pad: Zero,
        },
        |world| {
            world
                .client
                .bring_in(&world.queue, &[world.allocation.handle]);
            Argument::of(Evict {
                device: world.device,
                ..Default::default()
            })
            .with_list(
                core::mem::offset_of!(Evict, handles),
                &[world.allocation.handle],
            )
        }
    ),
    call!(
        "OFFER",
        OFFER,
        Offer {
            device: Handle(Type::Device),
            level: In,
            flags: Flags(3),
            fail_index: OutAlways,
            handles: List(&ALLOCATION_HANDLE, Empty::Refused),
        },
        |world| {
            Argument::of(Offer {
                device: world.device,
                level: abi::OFFER_LEVEL_NORMAL,
                ..Default::default()
            })
            .with_list(
                core::mem::offset_of!(Offer, handles),
                &[unused_allocation(world)],
            )
        }
    ),
    call!(
        "RECLAIM",
        RECLAIM,
        Reclaim {
            queue: Handle(Type::Queue),
            flags: Flags(0),
            items: List(&RECLAIM_ITEM, Empty::Refused),
            fence_value: Out,
            status: Out,
            fail_index: OutAlways,
        },
        arrange_reclaim
    ),
    call!(
        "BUDGET",
        BUDGET,
        Budget {
            group: In,
            flags: Flags(0),
            budget: Out,
            usage: Out,
            reservation: Out,
            reservable: Out,
            bytes_to_trim: Out,
            generation: Out,
        },
        |_| Argument::of(Budget::default())
    ),
    call!(
        "RESERVE_BUDGET",
        RESERVE_BUDGET,
        ReserveBudget {
            group: In,
            flags: Flags(0),
            bytes: In,
        },
        |_| Argument::of(ReserveBudget {
            bytes: 4096,
            ..Default::default()
        })
    ),
    call!(
        "EVENTS",
        EVENTS,
        Events {
            mask: Flags(0x7f),
            eventfd: In,
            flags: Flags(0),
        },
        |_| Argument::of(Events {
            mask: 1 << (abi::EVENT_BUDGET - 1) | 1 << (abi::EVENT_TRIM - 1),
            eventfd: abi::EVENTS_NO_EVENTFD,
            flags: 0,
        })
    ),
];

/// An allocation that nobody else names, so that it may stay offered.
fn unused_allocation(world: &World) -> u32 {
    let info = physical(4096, SYSTEM);
    world.client.create(world.device, info).handle
}

fn arrange_reclaim(world: &World) -> Argument {
    let alloc = unused_allocation(world);
    let handles = [alloc];
    let mut offer = Offer {
        device: world.device,
        level: abi::OFFER_LEVEL_NORMAL,
        handles: array(&handles),
        ..Default::default()
    };
    world
        .client
        .call(abi::IOCTL_OFFER, &mut offer)
        .expect("OFFER");
    let item = ReclaimItem { alloc, result: 0 };
    Argument::of(Reclaim {
        queue: world.queue.handle,
        ..Default::default()
    })
    .with_list(core::mem::offset_of!(Reclaim, items), &[item])
}
