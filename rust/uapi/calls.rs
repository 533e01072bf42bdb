// SPDX-License-Identifier: GPL-2.0

//! The table of calls: one line for each, by its number.
//!
//! A line names the number, the argument structure, the flags that are understood, and the handler.
//! Numbers of the interface without a line are calls whose feature is not there.

use super::{
    abi::{
        self,
        nr, //
    },
    address_space,
    allocation,
    budget,
    close,
    context,
    device,
    dispatch::{
        run,
        Argument,
        Call,
        Line, //
    },
    events,
    fence,
    lock,
    name,
    offer,
    paging_queue,
    query,
    residency,
    scanout,
    submission,
    virtual_submission, //
};

/// Numbers in the block of the interface.
const NUMBERS: usize = at(nr::LAST) + 1;

/// Returns the place of a number in the table.
const fn at(number: u8) -> usize {
    // CAST: widening; `From` is not const.
    number as usize
}

/// Makes a line of the table.
macro_rules! ioctl {
    ($argument:ident, $flags:expr, $handler:path) => {
        Line::Call(Call {
            size_first: <abi::$argument as Argument>::SIZE_FIRST,
            size_known: size_of::<abi::$argument>(),
            flags_known: $flags,
            run: |file, passed| run(file, passed, $flags, $handler),
        })
    };
}

/// All lines, by number.
// PANIC: evaluated by the compiler, which refuses an index outside.
#[allow(clippy::indexing_slicing)]
static LINES: [Line; NUMBERS] = {
    let mut lines = [const { Line::Unknown }; NUMBERS];
    let mut known = 0;
    while known < nr::ALL.len() {
        lines[at(nr::ALL[known])] = Line::Missing;
        known += 1;
    }
    lines[at(nr::QUERY)] = ioctl!(Query, 0, query::query);
    lines[at(nr::SET_NAME)] = ioctl!(SetName, 0, name::set_name);
    lines[at(nr::CLOSE)] = ioctl!(Close, abi::CLOSE_SYNC, close::close);
    lines[at(nr::DEVICE_CREATE)] = ioctl!(DeviceCreate, 0, device::create);
    lines[at(nr::DEVICE_STATE)] = ioctl!(DeviceState, 0, device::state);
    lines[at(nr::ALLOC_CREATE)] = ioctl!(AllocCreate, 0, allocation::create);
    lines[at(nr::ALLOC_QUERY)] = ioctl!(AllocQuery, 0, allocation::query);
    lines[at(nr::SET_PRIORITY)] = ioctl!(SetPriority, 0, allocation::set_priority);
    lines[at(nr::LOCK)] = ioctl!(Lock, lock::FLAGS_KNOWN, lock::lock);
    lines[at(nr::UNLOCK)] = ioctl!(Unlock, 0, lock::unlock);
    lines[at(nr::CONTEXT_CREATE)] = ioctl!(ContextCreate, abi::CONTEXT_NO_TIMEOUT, context::create);
    lines[at(nr::CONTEXT_SET)] = ioctl!(ContextSet, 0, context::set);
    lines[at(nr::SUBMIT_PATCHED)] = ioctl!(
        SubmitPatched,
        abi::SUBMIT_PATCHED_NULL_RENDER,
        submission::submit
    );
    lines[at(nr::SUBMIT_VIRTUAL)] = ioctl!(
        SubmitVirtual,
        abi::SUBMIT_VIRTUAL_NULL_RENDER,
        virtual_submission::submit
    );
    lines[at(nr::SUBMIT_QUERY)] = ioctl!(SubmitQuery, 0, submission::query);
    lines[at(nr::PAGING_QUEUE_CREATE)] = ioctl!(PagingQueueCreate, 0, paging_queue::create);
    lines[at(nr::MAKE_RESIDENT)] = ioctl!(
        MakeResident,
        abi::MAKE_RESIDENT_CANT_TRIM_FURTHER | abi::MAKE_RESIDENT_MUST_SUCCEED,
        residency::make_resident
    );
    lines[at(nr::EVICT)] = ioctl!(
        Evict,
        abi::EVICT_ONLY_IF_NEEDED | abi::EVICT_NOT_WRITTEN,
        residency::evict
    );
    lines[at(nr::BUDGET)] = ioctl!(Budget, 0, budget::budget);
    lines[at(nr::RESERVE_BUDGET)] = ioctl!(ReserveBudget, 0, budget::reserve);
    lines[at(nr::EVENTS)] = ioctl!(Events, 0, events::events);
    lines[at(nr::OFFER)] = ioctl!(Offer, offer::FLAGS_KNOWN, offer::offer);
    lines[at(nr::RECLAIM)] = ioctl!(Reclaim, 0, offer::reclaim);
    lines[at(nr::VA_RESERVE)] = ioctl!(VaReserve, 0, address_space::reserve);
    lines[at(nr::VA_FREE)] = ioctl!(VaFree, 0, address_space::free);
    lines[at(nr::VA_MAP)] = ioctl!(VaMap, 0, address_space::map);
    lines[at(nr::VA_QUERY)] = ioctl!(VaQuery, 0, address_space::query);
    lines[at(nr::FENCE_CREATE)] = ioctl!(FenceCreate, fence::FLAGS_KNOWN, fence::create);
    lines[at(nr::FENCE_SIGNAL)] =
        ioctl!(FenceSignal, abi::FENCE_SIGNAL_ALLOW_REWIND, fence::signal);
    lines[at(nr::FENCE_WAIT)] = ioctl!(FenceWait, abi::FENCE_WAIT_ANY, fence::wait);
    lines[at(nr::SCANOUT)] = ioctl!(Scanout, abi::SCANOUT_TEST, scanout::scanout);
    lines
};

/// Returns the line of a number.
pub(super) fn line(number: u8) -> &'static Line {
    LINES.get(usize::from(number)).unwrap_or(&Line::Unknown)
}
