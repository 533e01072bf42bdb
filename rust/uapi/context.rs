// SPDX-License-Identifier: GPL-2.0

//! CONTEXT_CREATE, CONTEXT_SET.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::capability,
    object::{
        context::{
            Context,
            Description,
            Mode,
            Tuning, //
        },
        device::Device,
    },
    units::NodeOrdinal,
};

use super::{
    abi::{
        self,
        ContextCreate,
        ContextSet, //
    },
    dispatch::{
        argument,
        Silent, //
    },
    file::File,
    handle::{
        Kind,
        Object,
        Publication, //
    },
};

/// Fields that CONTEXT_SET can set.
const MASK_KNOWN: u32 = abi::CONTEXT_SET_PRIORITY | abi::CONTEXT_SET_TIMEOUT;

argument! {
    ContextCreate:
    flags flags;
    zero;
    results context, progress, progress_slot, progress_mmap;
    report
}

argument! {
    ContextSet:
    flags;
    zero;
    results;
    report
}

/// Makes a context and its progress fence.
///
/// # Errors
///
/// - `EOPNOTSUPP`: a mode that is unknown or that the node does not offer, a chosen companion node.
/// - `EINVAL`: a time limit where there is to be none, no such node, a priority out of range.
/// - `ENOENT`: no such device.
/// - `EPERM`: a priority or a time limit that needs a privilege.
/// - `EIO`, `ENODEV`: the device is in error, or gone.
/// - `ENOSPC`: the client has as many objects as it can have.
/// - `ENOMEM`: no memory.
pub(super) fn create<'a>(
    file: &'a File,
    argument: &mut ContextCreate,
) -> Result<[Publication<'a>; 2]> {
    let mode = decode_mode(argument.mode)?;
    if argument.companion_node != abi::NODE_NONE {
        return Err(EOPNOTSUPP);
    }
    let unlimited = argument.flags & abi::CONTEXT_NO_TIMEOUT != 0;
    if unlimited && argument.timeout_ms != 0 {
        return Err(EINVAL);
    }
    let device: Arc<Device> = file.handles().get(argument.device)?;
    if unlimited && !capability::sys_admin() {
        return Err(EPERM);
    }
    check_priority(argument.priority)?;
    let node = NodeOrdinal(argument.node);
    let capabilities = device.adapter().backend().capabilities();
    let offered = capabilities.node(node).ok_or(EINVAL)?;
    if offered.modes.bits() & (1 << argument.mode) == 0 {
        return Err(EOPNOTSUPP);
    }
    check_timeout(argument.timeout_ms, offered.timeout_ms)?;
    device.ensure_active()?;

    let reservations = (
        file.handles().reserve(Some(argument.device))?,
        file.handles().reserve(Some(argument.device))?,
    );
    let context = Context::new(
        &device,
        &Description {
            node,
            mode,
            tuning: Tuning {
                priority: argument.priority,
                timeout_ms: if unlimited {
                    Tuning::UNLIMITED_MS
                } else {
                    argument.timeout_ms
                },
            },
        },
    )?;
    let progress = context.progress().clone();
    argument.context = reservations.0.handle(Kind::Context);
    argument.progress = reservations.1.handle(Kind::Fence);
    argument.progress_slot = progress.slot().index();
    argument.progress_mmap = progress.slot().mmap_offset();
    Ok([
        Publication::new(file.client(), reservations.0, Object::Context(context)),
        Publication::new(file.client(), reservations.1, Object::Fence(progress)),
    ])
}

/// Changes priority and time limit of a context.
///
/// # Errors
///
/// - `EOPNOTSUPP`: an unknown field in the mask.
/// - `EINVAL`: a value that is not to be set, or a priority out of range.
/// - `ENOENT`: no such context.
/// - `EPERM`: a priority or a time limit that needs a privilege.
/// - `EIO`, `ENODEV`: the device is in error, or gone.
pub(super) fn set(file: &File, argument: &mut ContextSet) -> Result<Silent> {
    if argument.mask & !MASK_KNOWN != 0 {
        return Err(EOPNOTSUPP);
    }
    let sets_priority = argument.mask & abi::CONTEXT_SET_PRIORITY != 0;
    let sets_timeout = argument.mask & abi::CONTEXT_SET_TIMEOUT != 0;
    if (!sets_priority && argument.priority != 0) || (!sets_timeout && argument.timeout_ms != 0) {
        return Err(EINVAL);
    }
    let context: Arc<Context> = file.handles().get(argument.context)?;
    if sets_priority {
        check_priority(argument.priority)?;
    }
    if sets_timeout {
        check_timeout(argument.timeout_ms, default_timeout_ms(&context))?;
    }
    context.device().ensure_active()?;
    context.tune(|tuning| {
        if sets_priority {
            tuning.priority = argument.priority;
        }
        if sets_timeout {
            tuning.timeout_ms = argument.timeout_ms;
        }
    });
    Ok(Silent)
}

fn decode_mode(mode: u32) -> Result<Mode> {
    match mode {
        abi::CONTEXT_MODE_PATCHED_LIST => Ok(Mode::PatchedList),
        abi::CONTEXT_MODE_PATCHED_EXPLICIT => Ok(Mode::PatchedExplicit),
        abi::CONTEXT_MODE_VIRTUAL => Ok(Mode::Virtual),
        _ => Err(EOPNOTSUPP),
    }
}

/// Returns the time limit of a context that sets none.
fn default_timeout_ms(context: &Context) -> u32 {
    let capabilities = context.device().adapter().backend().capabilities();
    capabilities
        .node(context.node())
        .map_or(0, |node| node.timeout_ms)
}

fn check_priority(priority: i32) -> Result {
    if priority > 0 && !capability::sys_nice() {
        return Err(EPERM);
    }
    if !(abi::CONTEXT_PRIORITY_MIN..=abi::CONTEXT_PRIORITY_MAX).contains(&priority) {
        return Err(EINVAL);
    }
    Ok(())
}

fn check_timeout(timeout_ms: u32, default_ms: u32) -> Result {
    if timeout_ms > default_ms && !capability::sys_admin() {
        return Err(EPERM);
    }
    Ok(())
}
