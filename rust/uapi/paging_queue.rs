// SPDX-License-Identifier: GPL-2.0

//! PAGING_QUEUE_CREATE.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::object::{
    device::Device,
    paging_queue::{
        PagingQueue,
        Priority, //
    },
};

use super::{
    abi::PagingQueueCreate,
    dispatch::argument,
    file::File,
    handle::{
        Kind,
        Object,
        Publication, //
    },
};

argument! {
    PagingQueueCreate:
    flags flags;
    zero;
    results queue, fence, slot, mmap_offset;
    report
}

/// Makes a paging queue and its paging fence.
///
/// # Errors
///
/// - `ENOENT`: no such device.
/// - `EINVAL`: a priority out of range.
/// - `EIO`, `ENODEV`: the device is in error, or gone.
/// - `ENOSPC`: the client has as many objects as it can have.
/// - `ENOMEM`: no memory.
pub(super) fn create<'a>(
    file: &'a File,
    argument: &mut PagingQueueCreate,
) -> Result<[Publication<'a>; 2]> {
    let device: Arc<Device> = file.handles().get(argument.device)?;
    let priority = match argument.priority {
        -1 => Priority::Low,
        0 => Priority::Normal,
        1 => Priority::High,
        _ => return Err(EINVAL),
    };
    device.ensure_active()?;

    let of_queue = file.handles().reserve(Some(argument.device))?;
    let of_fence = file.handles().reserve(Some(argument.device))?;
    let queue = PagingQueue::new(&device, priority)?;
    let fence = queue.fence().clone();
    argument.queue = of_queue.handle(Kind::PagingQueue);
    argument.fence = of_fence.handle(Kind::Fence);
    argument.slot = fence.slot().index();
    argument.mmap_offset = fence.slot().mmap_offset();
    let queue = Object::PagingQueue(queue, argument.fence);
    let fence = Object::PagingFence(fence, argument.queue);
    // The queue comes last: whoever closes it finds its fence.
    Ok([
        Publication::new(file.client(), of_fence, fence),
        Publication::new(file.client(), of_queue, queue),
    ])
}
