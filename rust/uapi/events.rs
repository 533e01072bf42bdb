// SPDX-License-Identifier: GPL-2.0

//! EVENTS, and `read` on the device file.

use core::mem::size_of;

use kernel::{
    prelude::*,
    uaccess::UserSlice, //
};

use crate::{
    abstractions::eventfd::EventFd,
    object::events::{
        Event,
        Kind,
        Kinds,
        Patience,
        Record, //
    },
};

use super::{
    abi::{
        self,
        Events, //
    },
    device,
    dispatch::{
        argument,
        Silent, //
    },
    file::File,
};

argument! {
    Events:
    flags flags;
    zero;
    results;
    report
}

/// Returns the bit of an event type in the mask of EVENTS.
const fn bit(number: u32) -> u64 {
    1 << (number - 1)
}

/// Types of events that the interface knows.
const KNOWN: u64 = (1 << abi::EVENT_SCANOUT) - 1;

/// Types of events that can be asked for, and what they are.
const KINDS: [(u64, Kind); 4] = [
    (bit(abi::EVENT_BUDGET), Kind::Budget),
    (bit(abi::EVENT_TRIM), Kind::Trim),
    (bit(abi::EVENT_DEVICE_STATE), Kind::DeviceState),
    (bit(abi::EVENT_SCANOUT), Kind::Scanout),
];

/// Subscribes to events, or ends the subscription.
///
/// # Errors
///
/// - `EOPNOTSUPP`: an unknown event type.
/// - `EBADF`: an eventfd that is not open.
/// - `EINVAL`: a descriptor that is no eventfd, or one for no events.
/// - `ENOMEM`: no memory.
///
/// Requirement: RES-20.
pub(super) fn events(file: &File, argument: &mut Events) -> Result<Silent> {
    if argument.mask & !KNOWN != 0 {
        return Err(EOPNOTSUPP);
    }
    if argument.mask == 0 {
        if !matches!(argument.eventfd, 0 | abi::EVENTS_NO_EVENTFD) {
            return Err(EINVAL);
        }
        file.client().events().unsubscribe();
        return Ok(Silent);
    }
    let eventfd = match argument.eventfd {
        abi::EVENTS_NO_EVENTFD => None,
        descriptor => Some(EventFd::from_descriptor(descriptor)?),
    };
    let kinds = KINDS
        .iter()
        .filter(|(bit, _)| argument.mask & bit != 0)
        .fold(Kinds::default(), |kinds, (_, kind)| kinds.with(*kind));
    file.client().events().subscribe(kinds, eventfd)?;
    Ok(Silent)
}

/// Reads records, as many whole ones as there are and as fit; returns their bytes.
///
/// # Errors
///
/// - `EINVAL`: not even one fits.
/// - `EAGAIN`: there is none, and `patience` says not to wait.
/// - `EINTR`: a signal came before a record.
/// - `EFAULT`: the first cannot be written; it stays the first.
///
/// Requirement: RES-20.
pub(super) fn read(file: &File, to: UserSlice, patience: Patience) -> Result<usize> {
    let mut writer = to.writer();
    let mut patience = patience;
    let mut bytes = 0;
    if writer.len() < size_of::<abi::Event>() {
        return Err(EINVAL);
    }
    while writer.len() >= size_of::<abi::Event>() {
        let delivered = file.client().events().take(patience).and_then(|taken| {
            writer.write(&encode(taken.record()))?;
            taken.delivered();
            Ok(())
        });
        match delivered {
            Ok(()) => bytes += size_of::<abi::Event>(),
            Err(_) if bytes > 0 => break,
            Err(error) => return Err(error),
        }
        patience = Patience::Poll;
    }
    Ok(bytes)
}

/// Returns a record as the interface puts it.
fn encode(record: &Record) -> abi::Event {
    let event = abi::Event {
        // CAST: a small constant.
        length: size_of::<abi::Event>() as u32,
        time_ns: record.time_ns,
        ..abi::Event::default()
    };
    match record.event {
        Event::Budget {
            group,
            budget,
            usage,
        } => abi::Event {
            r#type: abi::EVENT_BUDGET,
            object: group.number(),
            a: budget,
            b: usage,
            ..event
        },
        Event::Trim {
            group,
            bytes,
            usage,
        } => abi::Event {
            r#type: abi::EVENT_TRIM,
            object: group.number(),
            a: bytes,
            b: usage,
            ..event
        },
        Event::DeviceState { device, state } => abi::Event {
            r#type: abi::EVENT_DEVICE_STATE,
            object: device,
            code: device::number(state),
            ..event
        },
        Event::Scanout { source, sequence } => abi::Event {
            r#type: abi::EVENT_SCANOUT,
            object: source,
            a: sequence,
            ..event
        },
        Event::Overflow { lost } => abi::Event {
            r#type: abi::EVENT_OVERFLOW,
            code: lost,
            ..event
        },
    }
}
