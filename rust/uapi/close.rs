// SPDX-License-Identifier: GPL-2.0

//! CLOSE.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::wait_queue::{
        Deadline,
        Sleep, //
    },
    object::{
        adapter::Adapter,
        fence_wait::{
            self,
            Quorum, //
        },
        submission::Point, //
    },
};

use super::{
    abi::{
        self,
        Close,
        FAIL_INDEX_NONE, //
    },
    dispatch::{
        argument,
        Done, //
    },
    file::File,
    handle::Object,
    list::{
        self,
        Blame,
        Empty,
        List, //
    },
};

argument! {
    Close:
    flags flags;
    zero;
    results;
    report fail_index = FAIL_INDEX_NONE
}

/// Drops names: all of the list, or none. A device takes along what it owns.
///
/// # Errors
///
/// - `ENOENT`: no such object, or named twice.
/// - `EBUSY`: a paging fence without its queue; a primary on screen, or its device.
/// - `EINTR`: a signal while waiting for work and storage to go; the names are dropped.
///
/// Requirements: RES-24, RES-25.
pub(super) fn close(file: &File, argument: &mut Close) -> Result<Done> {
    let fail_index = &mut argument.fail_index;
    let handles: List<u32> =
        List::read(&argument.handles, list::HANDLES, Empty::Refused).blame(fail_index)?;
    let client = file.client();
    if argument.flags & abi::CLOSE_SYNC == 0 {
        file.handles()
            .close(handles.as_slice(), |object| object.close(client))
            .blame(fail_index)?;
        file.adapter().budgets().settle();
        return Ok(Done);
    }
    let count = handles.as_slice().len();
    let mut storage = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;
    let mut queued = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;
    file.handles()
        .close(handles.as_slice(), |object| {
            // Without memory for it, nobody waits for what a device takes along.
            match &object {
                Object::Allocation(allocation) => {
                    let _ = storage.push(allocation.object_id(), GFP_KERNEL_ACCOUNT);
                }
                Object::PagingQueue(queue, _) => {
                    let _ = queued.push(queue.end(), GFP_KERNEL_ACCOUNT);
                }
                _ => {}
            }
            object.close(client);
        })
        .blame(fail_index)?;
    file.adapter().budgets().settle();
    wait_until_done(file.adapter(), &queued)?;
    wait_until_gone(file.adapter(), &storage)?;
    Ok(Done)
}

/// Waits until what was queued on paging queues that have been closed is done.
fn wait_until_done(adapter: &Arc<Adapter>, ends: &[Point]) -> Result {
    if ends.is_empty() {
        return Ok(());
    }
    match fence_wait::wait(adapter, ends, Quorum::All, Deadline::Never) {
        Err(refused) if refused.error == EINTR => Err(EINTR),
        _ => Ok(()),
    }
}

/// Waits until the storage of allocations that have been closed is gone.
fn wait_until_gone(adapter: &Adapter, storage: &[u64]) -> Result {
    let allocations = &adapter.registries().allocations;
    for &object_id in storage {
        adapter
            .released()
            .wait(Sleep::Interruptible, Deadline::Never, || {
                (!allocations.contains(object_id)).then_some(())
            })
            .map_err(|_| EINTR)?;
    }
    Ok(())
}
