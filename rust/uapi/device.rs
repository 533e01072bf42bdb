// SPDX-License-Identifier: GPL-2.0

//! DEVICE_CREATE, DEVICE_STATE.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::object::device::{
    Device,
    Fault,
    FaultAccess,
    FaultReason,
    State, //
};

use super::{
    abi::{
        self,
        DeviceCreate,
        DeviceState, //
    },
    dispatch::{
        argument,
        Answered, //
    },
    file::File,
    handle::{
        Kind,
        Object,
        Publication, //
    },
};

argument! {
    DeviceCreate:
    flags flags;
    zero;
    results device;
    report
}

argument! {
    DeviceState:
    flags flags;
    zero;
    results state, guilty, context, node, submission, fault_va, fault_flags, reset_count, time_ns;
    report
}

/// Makes a device.
///
/// # Errors
///
/// - `ENOSPC`: the client has as many objects as it can have.
/// - `ENOMEM`: no memory.
pub(super) fn create<'a>(file: &'a File, argument: &mut DeviceCreate) -> Result<Publication<'a>> {
    let reservation = file.handles().reserve(None)?;
    let device = Device::new(file.client())?;
    argument.device = reservation.handle(Kind::Device);
    Ok(Publication::new(
        file.client(),
        reservation,
        Object::Device(device),
    ))
}

/// Says what a device is in, whatever that is.
///
/// # Errors
///
/// - `ENOENT`: no such device.
pub(super) fn state(file: &File, argument: &mut DeviceState) -> Result<Answered> {
    let device: Arc<Device> = file.handles().get(argument.device)?;
    let snapshot = device.state();
    argument.state = number(snapshot.state);
    argument.guilty = u32::from(match snapshot.state {
        State::Active => false,
        // Whoever is to blame hung before.
        State::Reset => snapshot.context != 0,
        State::ErrorMemory | State::ErrorDma | State::ErrorFault | State::Hung => true,
    });
    argument.context = handle_of_context(file, snapshot.context);
    argument.node = snapshot.node.unwrap_or(abi::NODE_NONE);
    argument.submission = snapshot.submission;
    (argument.fault_va, argument.fault_flags) = match snapshot.fault {
        Some(fault) => (fault.address.0, fault_flags(fault)),
        None => (snapshot.offset, 0),
    };
    argument.reset_count = device.adapter().watchdog().adapter_resets();
    argument.time_ns = snapshot.time_ns;
    Ok(Answered)
}

/// Returns the state as the interface numbers it.
pub(super) fn number(state: State) -> u32 {
    match state {
        State::Active => abi::DEVICE_STATE_ACTIVE,
        State::ErrorMemory => abi::DEVICE_STATE_ERROR_MEMORY,
        State::ErrorDma => abi::DEVICE_STATE_ERROR_DMA,
        State::ErrorFault => abi::DEVICE_STATE_ERROR_FAULT,
        State::Hung => abi::DEVICE_STATE_HUNG,
        State::Reset => abi::DEVICE_STATE_RESET,
    }
}

/// Returns the bits that describe a fault. Fetching commands is reading.
fn fault_flags(fault: Fault) -> u32 {
    let access = match fault.access {
        FaultAccess::Read | FaultAccess::Fetch => abi::DEVICE_STATE_FAULT_READ,
        FaultAccess::Write => abi::DEVICE_STATE_FAULT_WRITE,
    };
    let reason = match fault.reason {
        FaultReason::NotMapped => abi::DEVICE_STATE_FAULT_NOT_MAPPED,
        FaultReason::NotResident => abi::DEVICE_STATE_FAULT_NOT_RESIDENT,
        FaultReason::Protection => abi::DEVICE_STATE_FAULT_PROTECTION,
    };
    access | reason
}

/// Returns the handle of a context, which a device in error knows by its number; 0 if it is closed.
fn handle_of_context(file: &File, number: u64) -> u32 {
    let contexts = &file.adapter().registries().contexts;
    contexts
        .get(number)
        .map_or(0, |context| context.name().handle())
}
