// SPDX-License-Identifier: GPL-2.0

//! `processes`: who is there, with the handles by which clients know their objects.
//!
//! A handle of 0 means that there is none, or none any more. The paging process of the driver has a
//! line like the clients, and its system context one like the contexts. Of a client `total` is the
//! size of all its allocations, `backing` the part of it that has pages in system memory, and
//! `resident` what is resident, as `SEGMENT+BYTES` with commas between; what has a range in the
//! aperture counts there and in system memory.

use kernel::fmt;

use crate::{
    object::{
        adapter::Adapter,
        client::{
            Client,
            Sum, //
        },
        context::Context,
        device::{
            Device,
            State, //
        },
        fence::Fence,
        paging_queue::PagingQueue,
    },
    units::SegmentId,
};

use super::end_with_name;

pub(super) fn show(adapter: &Adapter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let paging = adapter.paging_process();
    let system = paging.number();
    writeln!(f, "process={system} kind=paging name=-")?;
    writeln!(
        f,
        "context={} process={system} device=0 handle=0 kind=paging name=-",
        paging.context(),
    )?;
    if let Some(space) = paging.space() {
        writeln!(f, "space={} process={system} kind=paging", space.number())?;
    }
    let registries = adapter.registries();
    registries
        .clients
        .for_each(|client| show_client(client, f))?;
    registries
        .devices
        .for_each(|device| show_device(device, f))?;
    registries
        .contexts
        .for_each(|context| show_context(context, f))?;
    registries.queues.for_each(|queue| show_queue(queue, f))?;
    registries.fences.for_each(|fence| show_fence(fence, f))
}

fn show_client(client: &Client, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let usage = client.usage();
    write!(
        f,
        "process={} kind=client total={} backing={} resident=",
        client.id(),
        usage.get(Sum::Total),
        usage.get(Sum::Backing),
    )?;
    write!(f, "0+{}", usage.get(Sum::Resident(SegmentId::SYSTEM)))?;
    for segment in &client.adapter().backend().capabilities().segments {
        let bytes = usage.get(Sum::Resident(segment.id));
        write!(f, ",{}+{bytes}", segment.id)?;
    }
    end_with_name(f, client.name())?;
    match client.space() {
        Some(space) => writeln!(
            f,
            "space={} process={} kind=application",
            space.number(),
            client.id(),
        ),
        None => Ok(()),
    }
}

fn show_device(device: &Device, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "device={} process={} handle={} state={}",
        device.number(),
        device.client().id(),
        device.name().handle(),
        state_word(device.state().state),
    )?;
    end_with_name(f, device.name())
}

/// Returns the name of a state in DEVICE_STATE.
fn state_word(state: State) -> &'static str {
    match state {
        State::Active => "ACTIVE",
        State::ErrorMemory => "ERROR_MEMORY",
        State::ErrorDma => "ERROR_DMA",
        State::ErrorFault => "ERROR_FAULT",
        State::Hung => "HUNG",
        State::Reset => "RESET",
    }
}

fn show_context(context: &Context, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let device = context.device();
    write!(
        f,
        "context={} process={} device={} handle={} kind=client node={} progress={}",
        context.number(),
        device.client().id(),
        device.number(),
        context.name().handle(),
        context.node().0,
        context.progress().number(),
    )?;
    end_with_name(f, context.name())
}

fn show_queue(queue: &PagingQueue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let device = queue.device();
    write!(
        f,
        "queue={} process={} device={} handle={} fence={}",
        queue.number(),
        device.client().id(),
        device.number(),
        queue.name().handle(),
        queue.fence().number(),
    )?;
    end_with_name(f, queue.name())
}

fn show_fence(fence: &Fence, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "fence={} process={} handle={}",
        fence.number(),
        fence.process(),
        fence.name().handle(),
    )?;
    end_with_name(f, fence.name())
}
