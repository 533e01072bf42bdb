// SPDX-License-Identifier: GPL-2.0

//! FENCE_CREATE, FENCE_SIGNAL, FENCE_WAIT.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::wait_queue::Deadline,
    object::{
        device::Device,
        fence::{
            CpuSignal,
            Fence,
            OnReset,
            Purpose,
            Rewind, //
        },
        fence_wait::{
            self,
            Quorum, //
        },
        submission, //
    },
};

use super::{
    abi::{
        self,
        FenceCreate,
        FenceSignal,
        FenceWait,
        Point,
        FAIL_INDEX_NONE, //
    },
    dispatch::{
        argument,
        Answered,
        Done, //
    },
    file::File,
    handle::{
        Kind,
        Object,
        Publication, //
    },
    list::{
        self,
        Blame,
        Empty,
        List,
        Refused, //
    },
};

/// Flags of FENCE_CREATE that are understood.
pub(super) const FLAGS_KNOWN: u32 =
    abi::FENCE_NO_CPU_SIGNAL | abi::FENCE_NO_GPU_ACCESS | abi::FENCE_KEEP_ON_RESET;

argument! {
    FenceCreate:
    flags flags;
    zero;
    results fence, slot, mmap_offset, gpu_va;
    report
}

argument! {
    FenceSignal:
    flags flags;
    zero;
    results;
    report fail_index = FAIL_INDEX_NONE
}

argument! {
    FenceWait:
    flags flags;
    zero;
    results;
    report first = FAIL_INDEX_NONE
}

/// Makes a fence.
///
/// # Errors
///
/// - `ENOENT`: no such device.
/// - `EIO`, `ENODEV`: the device is in error, or gone.
/// - `ENOSPC`: the client has as many objects as it can have, or no mapping offset is left.
/// - `ENOMEM`: no memory.
pub(super) fn create<'a>(file: &'a File, argument: &mut FenceCreate) -> Result<Publication<'a>> {
    let device: Arc<Device> = file.handles().get(argument.device)?;
    device.ensure_active()?;
    let reservation = file.handles().reserve(Some(argument.device))?;
    let purpose = Purpose::Client {
        cpu_signal: if argument.flags & abi::FENCE_NO_CPU_SIGNAL != 0 {
            CpuSignal::Refused
        } else {
            CpuSignal::Allowed
        },
        on_reset: if argument.flags & abi::FENCE_KEEP_ON_RESET != 0 {
            OnReset::Keep
        } else {
            OnReset::Saturate
        },
    };
    let fence = Fence::new(file.client(), purpose, argument.initial)?;
    argument.fence = reservation.handle(Kind::Fence);
    argument.slot = fence.slot().index();
    argument.mmap_offset = fence.slot().mmap_offset();
    Ok(Publication::new(
        file.client(),
        reservation,
        Object::Fence(fence),
    ))
}

/// Refuses flags of points; there are none yet.
pub(super) fn check_point(point: &Point) -> Result {
    if point.flags != 0 {
        return Err(EOPNOTSUPP);
    }
    Ok(())
}

/// Refuses to have a fence signalled that only the kernel signals.
///
/// # Errors
///
/// - `EACCES`: it is the fence of a paging queue or of a context.
pub(super) fn check_signal(point: &submission::Point) -> Result {
    match point.fence.purpose() {
        Purpose::Client { .. } => Ok(()),
        Purpose::Paging | Purpose::Progress => Err(EACCES),
    }
}

/// Points whose fences have been looked up.
enum Points {
    /// Only one: needs no memory.
    One(submission::Point),
    /// Any number.
    Many(KVVec<submission::Point>),
}

impl Points {
    fn as_slice(&self) -> &[submission::Point] {
        match self {
            Self::One(point) => core::slice::from_ref(point),
            Self::Many(points) => points,
        }
    }
}

/// Looks the fences of points up.
///
/// # Errors
///
/// - `ENOENT`: no such fence.
/// - `ENOMEM`: no memory.
pub(super) fn get_points(
    file: &File,
    points: &[Point],
) -> Result<KVVec<submission::Point>, Refused> {
    let mut resolved = KVVec::with_capacity(points.len(), GFP_KERNEL_ACCOUNT)?;
    let mut values = points.iter().map(|point| point.value);
    let handles = points.iter().map(|point| point.fence);
    file.handles()
        .visit(handles, |index, found: Option<Arc<Fence>>| {
            let fence = found.ok_or(Refused::at(index, ENOENT))?;
            let value = values.next().ok_or(Refused::at(index, ENOENT))?;
            resolved
                .push_within_capacity(submission::Point { fence, value })
                .map_err(|_| Refused::at(index, ENOMEM))
        })?;
    Ok(resolved)
}

/// Copies the points of a call and looks their fences up.
fn read_points(file: &File, array: &abi::Array) -> Result<Points, Refused> {
    let points: List<Point> = List::read(array, list::HANDLES, Empty::Refused)?;
    list::check_each(points.as_slice(), check_point)?;
    let &[Point { fence, value, .. }] = points.as_slice() else {
        return get_points(file, points.as_slice()).map(Points::Many);
    };
    let fence = file
        .handles()
        .get(fence)
        .map_err(|error| Refused::at(0, error))?;
    Ok(Points::One(submission::Point { fence, value }))
}

/// Sets fences to values: all of the list, or none.
///
/// # Errors
///
/// - `EOPNOTSUPP`: a flag of a point.
/// - `ENOENT`: no such fence.
/// - `EACCES`: the CPU may not signal it.
/// - `EINVAL`: the value would go down.
/// - `ENOMEM`: no memory.
pub(super) fn signal(file: &File, argument: &mut FenceSignal) -> Result<Done> {
    let fail_index = &mut argument.fail_index;
    let points = read_points(file, &argument.points).blame(fail_index)?;
    let rewind = if argument.flags & abi::FENCE_SIGNAL_ALLOW_REWIND != 0 {
        Rewind::Allowed
    } else {
        Rewind::Refused
    };
    fence_wait::signal(points.as_slice(), rewind).blame(fail_index)?;
    Ok(Done)
}

/// Waits until fences have reached values.
///
/// # Errors
///
/// - `EINVAL`: a negative deadline.
/// - `EOPNOTSUPP`: a flag of a point.
/// - `ENOENT`: no such fence.
/// - `ETIME`: not before the deadline.
/// - `EINTR`: a signal arrived.
/// - `EIO`, `ENODEV`, `ECANCELED`: a fence will not get there.
/// - `ENOMEM`: no memory.
pub(super) fn wait(file: &File, argument: &mut FenceWait) -> Result<Answered> {
    let first = &mut argument.first;
    let deadline = decode_deadline(argument.deadline_ns)?;
    let points = read_points(file, &argument.points).blame(first)?;
    let quorum = if argument.flags & abi::FENCE_WAIT_ANY != 0 {
        Quorum::Any
    } else {
        Quorum::All
    };
    let reached =
        fence_wait::wait(file.adapter(), points.as_slice(), quorum, deadline).blame(first)?;
    *first = match quorum {
        // CAST: lists are far shorter than 4 Gi elements.
        Quorum::Any => reached as u32,
        Quorum::All => 0,
    };
    Ok(Answered)
}

/// Translates a deadline of the interface.
///
/// # Errors
///
/// - `EINVAL`: it is negative.
pub(super) fn decode_deadline(deadline_ns: i64) -> Result<Deadline> {
    match deadline_ns {
        abi::WAIT_FOREVER => Ok(Deadline::Never),
        0 => Ok(Deadline::Poll),
        _ => u64::try_from(deadline_ns)
            .map(Deadline::At)
            .map_err(|_| EINVAL),
    }
}
