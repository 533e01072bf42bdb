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
    allocation,
    close,
    context,
    device,
    dispatch::{
        run,
        Argument,
        Call,
        Line, //
    },
    fence,
    lock,
    name,
    paging_queue,
    query,
    residency,
    submission, //
};

/// Numbers in the block of the interface.
const NUMBERS: usize = nr::LAST as usize + 1;

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
static LINES: [Line; NUMBERS] = {
    let mut lines = [const { Line::Unknown }; NUMBERS];
    let mut known = 0;
    while known < nr::ALL.len() {
        lines[nr::ALL[known] as usize] = Line::Missing;
        known += 1;
    }
    lines[nr::QUERY as usize] = ioctl!(Query, 0, query::query);
    lines[nr::SET_NAME as usize] = ioctl!(SetName, 0, name::set_name);
    lines[nr::CLOSE as usize] = ioctl!(Close, abi::CLOSE_SYNC, close::close);
    lines[nr::DEVICE_CREATE as usize] = ioctl!(DeviceCreate, 0, device::create);
    lines[nr::DEVICE_STATE as usize] = ioctl!(DeviceState, 0, device::state);
    lines[nr::ALLOC_CREATE as usize] = ioctl!(AllocCreate, 0, allocation::create);
    lines[nr::ALLOC_QUERY as usize] = ioctl!(AllocQuery, 0, allocation::query);
    lines[nr::LOCK as usize] = ioctl!(Lock, lock::FLAGS_KNOWN, lock::lock);
    lines[nr::UNLOCK as usize] = ioctl!(Unlock, 0, lock::unlock);
    lines[nr::CONTEXT_CREATE as usize] =
        ioctl!(ContextCreate, abi::CONTEXT_NO_TIMEOUT, context::create);
    lines[nr::CONTEXT_SET as usize] = ioctl!(ContextSet, 0, context::set);
    lines[nr::SUBMIT_PATCHED as usize] = ioctl!(
        SubmitPatched,
        abi::SUBMIT_PATCHED_NULL_RENDER,
        submission::submit
    );
    lines[nr::SUBMIT_QUERY as usize] = ioctl!(SubmitQuery, 0, submission::query);
    lines[nr::PAGING_QUEUE_CREATE as usize] = ioctl!(PagingQueueCreate, 0, paging_queue::create);
    lines[nr::MAKE_RESIDENT as usize] = ioctl!(
        MakeResident,
        abi::MAKE_RESIDENT_CANT_TRIM_FURTHER | abi::MAKE_RESIDENT_MUST_SUCCEED,
        residency::make_resident
    );
    lines[nr::EVICT as usize] = ioctl!(
        Evict,
        abi::EVICT_ONLY_IF_NEEDED | abi::EVICT_NOT_WRITTEN,
        residency::evict
    );
    lines[nr::FENCE_CREATE as usize] = ioctl!(FenceCreate, fence::FLAGS_KNOWN, fence::create);
    lines[nr::FENCE_SIGNAL as usize] =
        ioctl!(FenceSignal, abi::FENCE_SIGNAL_ALLOW_REWIND, fence::signal);
    lines[nr::FENCE_WAIT as usize] = ioctl!(FenceWait, abi::FENCE_WAIT_ANY, fence::wait);
    lines
};

/// Returns the line of a number.
pub(super) fn line(number: u8) -> &'static Line {
    LINES.get(usize::from(number)).unwrap_or(&Line::Unknown)
}
