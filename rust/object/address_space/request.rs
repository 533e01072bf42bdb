// SPDX-License-Identifier: GPL-2.0

//! What calls change in an address space, and what they are told of it.

use core::ops::Range;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::trace,
    object::{
        allocation::Hold,
        client::Client,
        command::Command,
        paging_queue::PagingQueue,
        residency::Answer,
        worker::Worker, //
    },
    policy::mapping::{
        self,
        Freed,
        Made,
        Request, //
    },
    units::PageSize,
};

use super::{
    of,
    Description,
    Kind,
    Place,
    Wish, //
};

/// Reserves addresses; returns where.
///
/// # Errors
///
/// - `EOPNOTSUPP`: there is no MMU.
/// - `EINVAL`: the range is empty or leaves the space.
/// - `EEXIST`: something is there.
/// - `ENOSPC`: there is no free place.
/// - `ENOMEM`: no memory.
///
/// Requirement: VA-17.
pub(crate) fn reserve(
    queue: &Arc<PagingQueue>,
    place: &Place,
    bytes: u64,
    kind: Kind,
) -> Result<(u64, Answer)> {
    let (space, _) = of(queue.device().client())?;
    let adapter = queue.device().adapter();
    let command = Command::update(queue, space)?;
    let (start, is_done) = space.change(|mappings| {
        let start = mappings.space.reserve(place, bytes, kind)?;
        let range = start..start.saturating_add(bytes);
        space.trace(trace::Purpose::Reservation, &range, trace::Hold::Alloc);
        // Where nothing was, every access faults already.
        let is_done = kind == Kind::NoAccess && mappings.stale.is_empty();
        Ok((start, is_done))
    })?;
    if is_done {
        return Ok((start, Answer::Ready));
    }
    let range = start..start.saturating_add(bytes);
    if kind == Kind::Zero {
        space.or_free(range.clone(), space.tables().provide_ends(adapter, &range))?;
    }
    space.add_stale(range);
    Ok((start, Answer::Pending(queue.push(command, |_| ()))))
}

/// Maps a part of an allocation; returns where.
///
/// # Errors
///
/// - `EOPNOTSUPP`: there is no MMU.
/// - `EINVAL`: the range is empty, leaves the allocation or the space, or lies in a ZERO reservation.
/// - `EBUSY`: the allocation is offered.
/// - `ENOENT`: the allocation is closed.
/// - `EEXIST`: something is there that may not be replaced.
/// - `ENOSPC`: there is no free place.
/// - `ENOMEM`: no memory.
///
/// Requirements: VA-14, VA-15, VA-16.
pub(crate) fn map(queue: &Arc<PagingQueue>, hold: &Hold, wish: &Wish) -> Result<(u64, Answer)> {
    let (space, translation) = of(queue.device().client())?;
    let end = wish.offset.checked_add(wish.bytes).ok_or(EINVAL)?;
    if end > hold.size() {
        return Err(EINVAL);
    }
    let adapter = queue.device().adapter();
    let command = Command::update(queue, space)?;
    if let Place::At(start) = wish.place {
        let end = start.checked_add(wish.bytes).ok_or(EINVAL)?;
        let addresses = &translation.addresses;
        if start < addresses.start || end > addresses.end || start == end {
            return Err(EINVAL);
        }
        space.tables().provide(adapter, &(start..end))?;
    }
    let start = space.change(|mappings| {
        if hold.is_offered() {
            return Err(EBUSY);
        }
        let request = |place, owner| Request {
            place,
            bytes: wish.bytes,
            owner,
            offset: wish.offset,
            rights: wish.rights,
        };
        let owner = mappings.owner(hold.allocation())?;
        // Large pages can show it only at a multiple of their size.
        let made = match large(&wish.place, wish) {
            Some(place) => mappings.space.map(&request(place, owner)),
            None => Err(mapping::Refused::NoPlace),
        };
        let made = match made {
            Err(mapping::Refused::NoPlace) => {
                mappings.space.map(&request(wish.place.clone(), owner))
            }
            made => made,
        }?;
        let range = made.start()..made.start().saturating_add(wish.bytes);
        if let Made::Range(_) = made {
            space.trace(trace::Purpose::Map, &range, trace::Hold::Alloc);
        }
        Ok(made.start())
    })?;
    let range = start..start.saturating_add(wish.bytes);
    // At a place of the caller's choice they are there, and nothing fails.
    space.or_free(range.clone(), space.tables().provide(adapter, &range))?;
    space.add_stale(range);
    Ok((start, Answer::Pending(queue.push(command, |_| ()))))
}

/// Returns a better place for a mapping that large pages could show.
fn large(place: &Place, wish: &Wish) -> Option<Place> {
    let large = PageSize::Large.bytes();
    let whole = wish.bytes >= large && wish.offset % large == 0;
    match place {
        Place::Within { window, align } if whole && *align < large => Some(Place::Within {
            window: window.clone(),
            align: large,
        }),
        _ => None,
    }
}

/// Gives addresses back: a reservation, or any part of mappings.
///
/// # Errors
///
/// - `EOPNOTSUPP`: there is no MMU.
/// - `EINVAL`: the range is neither a reservation nor mapped throughout, or a part of a ZERO reservation.
/// - `ENOMEM`: no memory.
///
/// Requirement: VA-18.
pub(crate) fn free(client: &Client, range: Range<u64>) -> Result {
    let (space, _) = of(client)?;
    space.change(|mappings| {
        let freed = mappings.space.free(range.clone(), |part| {
            space.trace(trace::Purpose::Map, &part, trace::Hold::Free);
        })?;
        if let Freed::Reservation(_) = freed {
            space.trace(trace::Purpose::Reservation, &range, trace::Hold::Free);
        }
        mappings.stale.add(range);
        Ok(())
    })?;
    Worker::attend_space(client.adapter().worker(), space);
    Ok(())
}

/// Tells what lies in a window: up to `room` runs, for which `to` has room; returns how many there are.
///
/// # Errors
///
/// - `EOPNOTSUPP`: there is no MMU.
pub(crate) fn query(
    client: &Client,
    window: Range<u64>,
    room: usize,
    to: &mut KVVec<Description>,
) -> Result<u32> {
    let (space, _) = of(client)?;
    let mappings = space.mappings.lock();
    let mut total: u32 = 0;
    for piece in mappings.space.pieces(window) {
        total = total.saturating_add(1);
        if to.len() < room {
            let _ = to.push_within_capacity(mappings.describe(piece));
        }
    }
    Ok(total)
}
