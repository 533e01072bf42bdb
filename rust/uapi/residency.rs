// SPDX-License-Identifier: GPL-2.0

//! MAKE_RESIDENT, EVICT.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::object::{
    allocation::Hold,
    device::Device,
    paging_queue::PagingQueue,
    residency::{
        self,
        Answer,
        Leaving,
        Statement,
        Urgency, //
    },
};

use super::{
    abi::{
        self,
        Evict,
        MakeResident,
        FAIL_INDEX_NONE, //
    },
    dispatch::{
        argument,
        Delivery,
        Done,
        Effect, //
    },
    file::File,
    list::{
        self,
        Blame,
        Empty,
        List,
        Refused, //
    },
};

argument! {
    MakeResident:
    flags flags;
    zero;
    results fence_value, status;
    report bytes_to_trim = 0, fail_index = FAIL_INDEX_NONE
}

argument! {
    Evict:
    flags flags;
    zero pad;
    results bytes_to_trim;
    report fail_index = FAIL_INDEX_NONE
}

/// Looks allocations up that must belong to `device`.
///
/// # Errors
///
/// - `ENOENT`: no such allocation.
/// - `EXDEV`: it belongs to another device.
/// - `ENOMEM`: no memory.
pub(super) fn get_of_device(
    file: &File,
    handles: impl ExactSizeIterator<Item = u32>,
    device: &Arc<Device>,
) -> Result<KVVec<Hold>, Refused> {
    let holds: KVVec<Hold> = file.handles().get_list(handles)?;
    match holds
        .iter()
        .position(|hold| !Arc::ptr_eq(hold.device(), device))
    {
        Some(index) => Err(Refused::at(index, EXDEV)),
        None => Ok(holds),
    }
}

/// Residency references that have been counted. Dropping it gives them back.
pub(super) struct Counted<'a> {
    file: &'a File,
    device: Arc<Device>,
    handles: Option<List<u32>>,
}

impl Effect for Counted<'_> {
    const DELIVERY: Delivery = Delivery::Last;

    fn commit(mut self) {
        self.handles = None;
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let Some(handles) = self.handles.take() else {
            return;
        };
        for &handle in handles.as_slice() {
            // A handle that was closed in the meantime has taken its references along.
            if let Ok(hold) = self.file.handles().get::<Hold>(handle) {
                let _ =
                    residency::evict(&self.device, &[hold], Leaving::AtOnce, Statement::Nothing);
            }
        }
    }
}

/// Adds residency references.
///
/// # Errors
///
/// - `EINVAL`: MUST_SUCCEED without CANT_TRIM_FURTHER.
/// - `ENOENT`: no such queue or allocation.
/// - `EXDEV`: an allocation of another device.
/// - `EIO`, `ENODEV`: the device is in error, or gone.
/// - `ENOSPC`: not all of it can be resident together.
/// - `ENOMEM`: no memory.
pub(super) fn make_resident<'a>(
    file: &'a File,
    argument: &mut MakeResident,
) -> Result<Counted<'a>> {
    let fail_index = &mut argument.fail_index;
    let must_succeed = argument.flags & abi::MAKE_RESIDENT_MUST_SUCCEED != 0;
    if must_succeed && argument.flags & abi::MAKE_RESIDENT_CANT_TRIM_FURTHER == 0 {
        return Err(EINVAL);
    }
    let handles: List<u32> =
        List::read(&argument.handles, list::HANDLES, Empty::Refused).blame(fail_index)?;
    let queue: Arc<PagingQueue> = file.handles().get(argument.queue)?;
    let device = queue.device();
    let holds =
        get_of_device(file, handles.as_slice().iter().copied(), device).blame(fail_index)?;
    device.ensure_active()?;

    let last_attempt = argument.flags & abi::MAKE_RESIDENT_CANT_TRIM_FURTHER != 0;
    let urgency = match (last_attempt, must_succeed) {
        (_, true) => Urgency::MustSucceed,
        (true, false) => Urgency::LastAttempt,
        (false, false) => Urgency::MayFail,
    };
    let answer = residency::make_resident(&queue, holds, urgency)
        .inspect_err(|refused| argument.bytes_to_trim = refused.bytes_to_trim)
        .blame(fail_index)?;
    argument.bytes_to_trim = file.client().account().excess();
    if let Answer::Pending(value) = answer {
        argument.fence_value = value;
        argument.status = abi::STATUS_PENDING;
    }
    Ok(Counted {
        file,
        device: device.clone(),
        handles: Some(handles),
    })
}

/// Takes residency references back.
///
/// # Errors
///
/// - `ENOENT`: no such device or allocation.
/// - `EXDEV`: an allocation of another device.
/// - `EIO`, `ENODEV`: the device is in error, or gone.
/// - `EINVAL`: an allocation without a reference.
/// - `ENOMEM`: no memory.
pub(super) fn evict(file: &File, argument: &mut Evict) -> Result<Done> {
    let fail_index = &mut argument.fail_index;
    let handles: List<u32> =
        List::read(&argument.handles, list::HANDLES, Empty::Refused).blame(fail_index)?;
    let device: Arc<Device> = file.handles().get(argument.device)?;
    let holds =
        get_of_device(file, handles.as_slice().iter().copied(), &device).blame(fail_index)?;
    device.ensure_active()?;
    let leaving = if argument.flags & abi::EVICT_ONLY_IF_NEEDED != 0 {
        Leaving::IfNeeded
    } else {
        Leaving::AtOnce
    };
    let statement = if argument.flags & abi::EVICT_NOT_WRITTEN != 0 {
        Statement::NotWritten
    } else {
        Statement::Nothing
    };
    residency::evict(&device, &holds, leaving, statement).blame(fail_index)?;
    argument.bytes_to_trim = file.client().account().excess();
    Ok(Done)
}
