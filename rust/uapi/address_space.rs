// SPDX-License-Identifier: GPL-2.0

//! VA_RESERVE, VA_FREE, VA_MAP, VA_QUERY.

use core::ops::Range;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::object::{
    address_space::{
        self,
        Description,
        Kind,
        Place,
        Wish, //
    },
    allocation::{
        Flag,
        Hold, //
    },
    paging_queue::PagingQueue,
    residency::Answer,
};

use super::{
    abi::{
        self,
        VaEntry,
        VaFree,
        VaMap,
        VaQuery,
        VaReserve, //
    },
    dispatch::{
        argument,
        Answered,
        Done,
        Silent, //
    },
    file::File,
    list::{
        self,
        Empty,
        List, //
    },
};

argument! {
    VaReserve:
    flags flags;
    zero;
    results status, va, fence_value;
    report
}

argument! {
    VaFree:
    flags flags;
    zero pad;
    results;
    report
}

argument! {
    VaMap:
    flags flags;
    zero;
    results va, fence_value, status;
    report
}

argument! {
    VaQuery:
    flags flags;
    zero;
    results total;
    report
}

/// Where a range shall be, as it is asked for.
struct Bounds {
    base: u64,
    min: u64,
    max: u64,
    align: u64,
}

impl Bounds {
    /// Decodes them. Every number is a multiple of `granule`; the range is one of `addresses`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it is not, or the bounds contradict each other.
    fn decode(&self, granule: u64, addresses: &Range<u64>) -> Result<Place> {
        let multiples = [self.base, self.min, self.max];
        let aligned = multiples.iter().all(|value| value % granule == 0);
        if !aligned || (self.align != 0 && !self.align.is_power_of_two()) {
            return Err(EINVAL);
        }
        let align = self.align.max(granule);
        if self.base != 0 {
            let bounded = self.min != 0 || self.max != 0;
            return match bounded || (self.align != 0 && self.base % self.align != 0) {
                true => Err(EINVAL),
                false => Ok(Place::At(self.base)),
            };
        }
        let end = match self.max {
            0 => addresses.end,
            max => max,
        };
        if end > addresses.end || self.min >= end {
            return Err(EINVAL);
        }
        Ok(Place::Within {
            window: self.min..end,
            align,
        })
    }
}

/// Returns `status` and `fence_value` of an answer.
fn answer(answer: Answer) -> (u32, u64) {
    match answer {
        Answer::Ready => (abi::STATUS_READY, 0),
        Answer::Pending(value) => (abi::STATUS_PENDING, value),
    }
}

/// Reserves addresses.
///
/// # Errors
///
/// - `EOPNOTSUPP`: there is no MMU; an unknown kind, or one that the MMU does not have.
/// - `ENOENT`: no such queue.
/// - `EIO`, `ENODEV`: the device is in error, or gone.
/// - `EINVAL`: numbers that are misaligned, leave the space or contradict each other.
/// - `EEXIST`: something is there.
/// - `ENOSPC`: there is no free place.
/// - `ENOMEM`: no memory.
///
/// Requirement: VA-17.
pub(super) fn reserve(file: &File, argument: &mut VaReserve) -> Result<Done> {
    let addresses = address_space::addresses(file.client())?;
    let kind = match argument.kind {
        abi::VA_RESERVE_NO_ACCESS => Kind::NoAccess,
        abi::VA_RESERVE_ZERO => Kind::Zero,
        _ => return Err(EOPNOTSUPP),
    };
    address_space::check_kind(file.client(), kind)?;
    let queue: Arc<PagingQueue> = file.handles().get(argument.queue)?;
    queue.device().ensure_active()?;
    let bounds = Bounds {
        base: argument.base,
        min: argument.min,
        max: argument.max,
        align: argument.align,
    };
    let place = bounds.decode(abi::VA_RESERVE_ALIGN, &addresses)?;
    if argument.size == 0 || argument.size % abi::VA_RESERVE_ALIGN != 0 {
        return Err(EINVAL);
    }
    let (start, done) = address_space::reserve(&queue, &place, argument.size, kind)?;
    argument.va = start;
    (argument.status, argument.fence_value) = answer(done);
    Ok(Done)
}

/// Gives addresses back.
///
/// # Errors
///
/// - `EOPNOTSUPP`: there is no MMU.
/// - `EINVAL`: misaligned, or the range is neither a reservation nor mapped throughout, or a part of a
///   ZERO reservation.
/// - `ENOMEM`: no memory.
///
/// Requirement: VA-18.
pub(super) fn free(file: &File, argument: &mut VaFree) -> Result<Silent> {
    address_space::addresses(file.client())?;
    let end = argument.va.checked_add(argument.size).ok_or(EINVAL)?;
    if !address_space::is_page_multiple(argument.va | argument.size) {
        return Err(EINVAL);
    }
    address_space::free(file.client(), argument.va..end)?;
    Ok(Silent)
}

/// Maps a part of an allocation.
///
/// # Errors
///
/// - `EOPNOTSUPP`: there is no MMU; unknown bits of protection.
/// - `ENOENT`: no such queue or allocation.
/// - `EXDEV`: an allocation of another device.
/// - `EIO`, `ENODEV`: the device is in error, or gone.
/// - `EACCES`: a READ_ONLY allocation is to be written.
/// - `EINVAL`: numbers that are misaligned, leave the allocation or the space or contradict each other;
///   a place in a ZERO reservation.
/// - `EBUSY`: the allocation is offered.
/// - `EEXIST`: something is there that may not be replaced.
/// - `ENOSPC`: there is no free place.
/// - `ENOMEM`: no memory.
///
/// Requirements: VA-14, VA-15, VA-16.
pub(super) fn map(file: &File, argument: &mut VaMap) -> Result<Done> {
    let addresses = address_space::addresses(file.client())?;
    if argument.protection & !(abi::VA_WRITE | abi::VA_EXECUTE) != 0 {
        return Err(EOPNOTSUPP);
    }
    let write = argument.protection & abi::VA_WRITE != 0;
    let rights = address_space::Rights {
        write,
        execute: argument.protection & abi::VA_EXECUTE != 0,
        driver: argument.driver_protection,
    };
    let rights = address_space::pack(file.client(), rights)?;
    // Behind the bits that are not known, which are flags of another name.
    if argument.pad != 0 {
        return Err(EINVAL);
    }
    let queue: Arc<PagingQueue> = file.handles().get(argument.queue)?;
    let hold: Hold = file.handles().get(argument.alloc)?;
    if !Arc::ptr_eq(hold.device(), queue.device()) {
        return Err(EXDEV);
    }
    queue.device().ensure_active()?;
    if write && hold.flags().contains(Flag::ReadOnly) {
        return Err(EACCES);
    }
    let bounds = Bounds {
        base: argument.base,
        min: argument.min,
        max: argument.max,
        align: 0,
    };
    let place = bounds.decode(address_space::LEAST_PAGE, &addresses)?;
    if !address_space::is_page_multiple(argument.alloc_offset | argument.size) {
        return Err(EINVAL);
    }
    let wish = Wish {
        place,
        bytes: argument.size,
        offset: argument.alloc_offset,
        rights,
    };
    let (start, done) = address_space::map(&queue, &hold, &wish)?;
    argument.va = start;
    (argument.status, argument.fence_value) = answer(done);
    Ok(Done)
}

/// Tells what is reserved and mapped.
///
/// # Errors
///
/// - `EOPNOTSUPP`: there is no MMU.
/// - `EOVERFLOW`: the window is longer than there are addresses.
/// - `ENOMEM`: no memory.
pub(super) fn query(file: &File, argument: &mut VaQuery) -> Result<Answered> {
    address_space::addresses(file.client())?;
    let mut entries: List<VaEntry> = List::read(&argument.entries, list::HANDLES, Empty::Allowed)?;
    let end = argument.va.checked_add(argument.size).ok_or(EOVERFLOW)?;
    let room = entries.as_slice().len();
    let mut found = KVVec::with_capacity(room, GFP_KERNEL_ACCOUNT)?;
    argument.total = address_space::query(file.client(), argument.va..end, room, &mut found)?;
    entries.as_mut_slice().fill(VaEntry::default());
    for (entry, found) in entries.as_mut_slice().iter_mut().zip(&found) {
        *entry = describe(found);
    }
    entries.write_back()?;
    Ok(Answered)
}

fn describe(found: &Description) -> VaEntry {
    let piece = &found.piece;
    let segment = found.segment();
    let rights = found.rights();
    let flags = [
        (piece.reserved.is_some(), abi::VA_ENTRY_RESERVED),
        (found.is_zero(), abi::VA_ENTRY_ZERO),
        (segment.is_some(), abi::VA_ENTRY_VALID),
        (rights.write, abi::VA_ENTRY_WRITE),
        (rights.execute, abi::VA_ENTRY_EXECUTE),
    ];
    VaEntry {
        va: piece.range.start,
        size: piece.range.end.saturating_sub(piece.range.start),
        alloc: found.handle(),
        flags: flags
            .into_iter()
            .filter(|(is_set, _)| *is_set)
            .fold(0, |flags, (_, flag)| flags | flag),
        alloc_offset: piece.mapped.map_or(0, |mapped| mapped.offset),
        segment: segment.map_or(abi::SEGMENT_ID_NONE, |segment| segment.get()),
        level: 0,
    }
}
