// SPDX-License-Identifier: GPL-2.0

//! OFFER, RECLAIM.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::object::{
    device::Device,
    offer::{
        self,
        Level,
        Outcome,
        Pages,
        Patience,
        Terms, //
    },
    paging_queue::PagingQueue,
    residency::Answer,
};

use super::{
    abi::{
        self,
        Offer,
        Reclaim,
        ReclaimItem,
        FAIL_INDEX_NONE, //
    },
    dispatch::{
        argument,
        Done, //
    },
    file::File,
    list::{
        self,
        Blame,
        Empty,
        List, //
    },
    residency::get_of_device,
};

/// Flags of OFFER that are understood.
pub(super) const FLAGS_KNOWN: u32 = abi::OFFER_NOW | abi::OFFER_ALLOW_DECOMMIT;

argument! {
    Offer:
    flags flags;
    zero;
    results;
    report fail_index = FAIL_INDEX_NONE
}

argument! {
    Reclaim:
    flags flags;
    zero;
    results fence_value, status;
    report fail_index = FAIL_INDEX_NONE
}

/// Says that the content of allocations may be given up: of all of the list, or of none.
///
/// # Errors
///
/// - `ENOENT`: no such device or allocation.
/// - `EXDEV`: an allocation of another device.
/// - `EINVAL`: no such level.
/// - `EIO`, `ENODEV`: the device is in error, or gone.
/// - `EBUSY`: one is offered, pinned or on screen; with NOW, in use.
/// - `ENOMEM`: no memory.
pub(super) fn offer(file: &File, argument: &mut Offer) -> Result<Done> {
    let fail_index = &mut argument.fail_index;
    let handles: List<u32> =
        List::read(&argument.handles, list::HANDLES, Empty::Refused).blame(fail_index)?;
    let device: Arc<Device> = file.handles().get(argument.device)?;
    let holds =
        get_of_device(file, handles.as_slice().iter().copied(), &device).blame(fail_index)?;
    let terms = Terms {
        level: decode_level(argument.level)?,
        pages: match argument.flags & abi::OFFER_ALLOW_DECOMMIT {
            0 => Pages::Stay,
            _ => Pages::MayGo,
        },
    };
    let patience = match argument.flags & abi::OFFER_NOW {
        0 => Patience::AfterWork,
        _ => Patience::Now,
    };
    device.ensure_active()?;
    offer::offer(&device, &holds, terms, patience).blame(fail_index)?;
    Ok(Done)
}

fn decode_level(level: u32) -> Result<Level> {
    match level {
        abi::OFFER_LEVEL_LOW => Ok(Level::Low),
        abi::OFFER_LEVEL_NORMAL | abi::OFFER_LEVEL_AUTO => Ok(Level::Normal),
        abi::OFFER_LEVEL_HIGH => Ok(Level::High),
        _ => Err(EINVAL),
    }
}

/// Takes offered allocations back, and says of each what became of it.
///
/// # Errors
///
/// - `ENOENT`: no such queue or allocation.
/// - `EXDEV`: an allocation of another device.
/// - `EIO`, `ENODEV`: the device is in error, or gone.
/// - `ENOMEM`: no memory.
pub(super) fn reclaim(file: &File, argument: &mut Reclaim) -> Result<Done> {
    let fail_index = &mut argument.fail_index;
    let mut items: List<ReclaimItem> =
        List::read(&argument.items, list::HANDLES, Empty::Refused).blame(fail_index)?;
    let queue: Arc<PagingQueue> = file.handles().get(argument.queue)?;
    let handles = items.as_slice().iter().map(|item| item.alloc);
    let holds = get_of_device(file, handles, queue.device()).blame(fail_index)?;
    queue.device().ensure_active()?;
    // The answers will be written there: find out before anything happens.
    items.write_back()?;
    let elements = items.as_mut_slice();
    let report = |index: usize, outcome| {
        if let Some(item) = elements.get_mut(index) {
            item.result = match outcome {
                Outcome::Intact => abi::RECLAIM_RESULT_OK,
                Outcome::Discarded => abi::RECLAIM_RESULT_DISCARDED,
                Outcome::NotCommitted => abi::RECLAIM_RESULT_NOT_COMMITTED,
            };
        }
    };
    let answer = offer::reclaim(&queue, &holds, report).blame(fail_index)?;
    if let Answer::Pending(value) = answer {
        argument.fence_value = value;
        argument.status = abi::STATUS_PENDING;
    }
    items.write_back()?;
    Ok(Done)
}
