// SPDX-License-Identifier: GPL-2.0

//! LOCK, UNLOCK.

use core::ops::Range;

use kernel::prelude::*;

use crate::object::{
    allocation::{
        Flag,
        Hold, //
    },
    lock::{
        self,
        Patience,
        Purpose,
        Stores, //
    },
};

use super::{
    abi::{
        self,
        Lock,
        Unlock, //
    },
    dispatch::{
        argument,
        Delivery,
        Effect,
        Silent, //
    },
    fence,
    file::File, //
};

/// Flags of LOCK that are understood.
pub(super) const FLAGS_KNOWN: u32 =
    abi::LOCK_READ | abi::LOCK_WRITE | abi::LOCK_NO_OVERWRITE | abi::LOCK_DO_NOT_WAIT;
/// Of which one must be set.
const PURPOSES: u32 = abi::LOCK_READ | abi::LOCK_WRITE | abi::LOCK_NO_OVERWRITE;

argument! {
    Lock:
    flags flags;
    zero;
    results instance, result, mmap_offset, generation;
    report
}

argument! {
    Unlock:
    flags flags;
    zero pad;
    results;
    report
}

/// A lock that is taken. Dropping it gives it back.
pub(super) struct Locked(Option<Hold>);

impl Effect for Locked {
    const DELIVERY: Delivery = Delivery::Last;

    fn commit(mut self) {
        self.0 = None;
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if let Some(allocation) = self.0.take() {
            // It is in force, so it can be undone.
            let _ = lock::unlock(&allocation, Stores::None);
        }
    }
}

/// Lets the CPU touch an allocation, after the work that is in the way.
///
/// # Errors
///
/// - `EINVAL`: no purpose, a bad deadline, or a range outside the allocation.
/// - `ENOENT`: no such allocation.
/// - `EOPNOTSUPP`: the CPU cannot map it.
/// - `EOVERFLOW`: the range overflows.
/// - `EIO`, `ENODEV`: the device is in error, or gone.
/// - `EBUSY`: it is offered.
/// - `EAGAIN`, `ETIME`, `EINTR`: work is in the way.
pub(super) fn lock(file: &File, argument: &mut Lock) -> Result<Locked> {
    let patience = decode_patience(argument)?;
    let allocation: Hold = file.handles().get(argument.alloc)?;
    if !allocation.flags().contains(Flag::CpuVisible) {
        return Err(EOPNOTSUPP);
    }
    let length = match argument.length {
        0 => allocation.size().saturating_sub(argument.offset).max(1),
        length => length,
    };
    range(&allocation, argument.offset, length)?;
    allocation.device().ensure_active()?;

    match lock::lock(&allocation, decode_purpose(argument.flags), patience)? {
        lock::Locked::AtOnce => {}
        lock::Locked::Waited => argument.result = abi::LOCK_RESULT_WAITED,
    }
    argument.mmap_offset = allocation.mapping_start();
    Ok(Locked(Some(allocation)))
}

fn decode_purpose(flags: u32) -> Purpose {
    if flags & abi::LOCK_NO_OVERWRITE != 0 {
        Purpose::NoOverwrite
    } else if flags & abi::LOCK_WRITE != 0 {
        Purpose::Write
    } else {
        Purpose::Read
    }
}

fn decode_patience(argument: &Lock) -> Result<Patience> {
    if argument.flags & PURPOSES == 0 {
        return Err(EINVAL);
    }
    if argument.flags & abi::LOCK_DO_NOT_WAIT == 0 {
        return fence::decode_deadline(argument.deadline_ns).map(Patience::Until);
    }
    if argument.deadline_ns != 0 {
        return Err(EINVAL);
    }
    Ok(Patience::DoNotWait)
}

/// Checks a range of bytes of an allocation.
fn range(allocation: &Hold, offset: u64, length: u64) -> Result<Range<u64>> {
    let end = offset.checked_add(length).ok_or(EOVERFLOW)?;
    if end > allocation.size() {
        return Err(EINVAL);
    }
    Ok(offset..end)
}

/// Ends a lock.
///
/// # Errors
///
/// - `EINVAL`: it is not locked, no such instance, or a range outside the allocation.
/// - `ENOENT`: no such allocation.
/// - `EOVERFLOW`: the range overflows.
/// - `EIO`, `ENODEV`: the device is in error, or gone.
pub(super) fn unlock(file: &File, argument: &mut Unlock) -> Result<Silent> {
    if argument.length == 0 && argument.offset != 0 {
        return Err(EINVAL);
    }
    let allocation: Hold = file.handles().get(argument.alloc)?;
    range(&allocation, argument.offset, argument.length)?;
    if argument.instance != 0 {
        return Err(EINVAL);
    }
    allocation.device().ensure_active()?;
    let stores = match argument.length {
        0 => Stores::None,
        _ => Stores::Some,
    };
    lock::unlock(&allocation, stores)?;
    Ok(Silent)
}
