// SPDX-License-Identifier: GPL-2.0

//! SUBMIT_VIRTUAL.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    object::{
        allocation::Hold,
        context::{
            Context,
            Mode, //
        },
        submission::{
            self,
            Execution,
            Kind, //
        },
        virtual_submission::{
            self,
            Fetch,
            Request, //
        },
    },
    units::GpuVirtualAddress,
};

use super::{
    abi::{
        self,
        SubmitVirtual, //
    },
    dispatch::{
        argument,
        Done, //
    },
    fence,
    file::File,
    list::{
        self,
        Empty,
        List,
        Refused, //
    },
    submission::{
        refuse,
        resolve_signals,
        Limits,
        COMMAND_ALIGN, //
    },
};

argument! {
    SubmitVirtual:
    flags flags;
    zero pad;
    results submission;
    report error_kind = abi::SUBMIT_ERROR_NONE, error_index = 0
}

/// The lists of a submission, copied and checked as far as no object is needed.
struct Lists {
    primaries: List<u32>,
    waits: List<abi::Point>,
    signals: List<abi::Point>,
}

/// Queues commands that lie in the address space of the client, or only waits and signals.
///
/// # Errors
///
/// - `EOPNOTSUPP`: a flag whose feature is not there, or a context in another mode.
/// - `EINVAL`: lists that are too long; an address or a length that is no multiple of 8; an address or
///   primaries without commands; a primary that is none.
/// - `ENOENT`: no such context, or a primary that does not exist.
/// - `EXDEV`: a primary of another device.
/// - `ENOMEM`: no memory.
/// - Those of [`virtual_submission::submit`], with a submit error kind.
///
/// Requirement: DMA-29.
pub(super) fn submit(file: &File, argument: &mut SubmitVirtual) -> Result<Done> {
    let context = file.handles().get::<Arc<Context>>(argument.context);
    let limits = context.as_ref().map_or(Limits::DEFAULT, Limits::of);
    let lists = Lists::read(argument, &limits)?;
    let commands = decode_commands(argument)?;
    let context = context?;
    if context.mode() != Mode::Virtual {
        return Err(EOPNOTSUPP);
    }
    argument.submission = resolve(file, &context, argument.flags, &lists, commands)
        .and_then(|request| virtual_submission::submit(&context, request))
        .map_err(|refused| {
            argument.error_kind = refused.kind;
            argument.error_index = refused.index;
            refused.error
        })?;
    Ok(Done)
}

impl Lists {
    fn read(argument: &SubmitVirtual, limits: &Limits) -> Result<Self> {
        let most = abi::SUBMIT_VIRTUAL_PRIMARIES;
        let lists = Self {
            primaries: List::read(&argument.primaries, most, Empty::Allowed)?,
            waits: List::read(&argument.waits, limits.points, Empty::Allowed)?,
            signals: List::read(&argument.signals, limits.points, Empty::Allowed)?,
        };
        list::check_each(lists.waits.as_slice(), fence::check_point)
            .and_then(|()| list::check_each(lists.signals.as_slice(), fence::check_point))
            .map_err(|refused| refused.error)?;
        Ok(lists)
    }
}

/// Returns where the commands are.
fn decode_commands(argument: &SubmitVirtual) -> Result<Option<Fetch>> {
    if argument.cmd_size == 0 {
        return match (argument.cmd_va, argument.primaries.count) {
            (0, 0) => Ok(None),
            _ => Err(EINVAL),
        };
    }
    let align = u64::from(COMMAND_ALIGN);
    if argument.cmd_size % COMMAND_ALIGN != 0 || argument.cmd_va % align != 0 {
        return Err(EINVAL);
    }
    Ok(Some(Fetch {
        address: GpuVirtualAddress(argument.cmd_va),
        bytes: argument.cmd_size,
    }))
}

/// Turns the copies into a request that speaks of objects.
fn resolve(
    file: &File,
    context: &Context,
    flags: u32,
    lists: &Lists,
    commands: Option<Fetch>,
) -> Result<Request, submission::Refused> {
    Ok(Request {
        commands,
        execution: if flags & abi::SUBMIT_VIRTUAL_NULL_RENDER != 0 {
            Execution::Null
        } else {
            Execution::Full
        },
        primaries: resolve_primaries(file, context, lists.primaries.as_slice())
            .map_err(|refused| refuse(Kind::BadHandle, refused, 0))?,
        waits: fence::get_points(file, lists.waits.as_slice())
            .map_err(|refused| refuse(Kind::BadPoint, refused, 0))?,
        signals: resolve_signals(file, lists.signals.as_slice())
            .map_err(|refused| refuse(Kind::BadPoint, refused, lists.waits.as_slice().len()))?,
    })
}

fn resolve_primaries(
    file: &File,
    context: &Context,
    handles: &[u32],
) -> Result<KVVec<Hold>, Refused> {
    let primaries: KVVec<Hold> = file.handles().get_list(handles.iter().copied())?;
    let foreign = primaries
        .iter()
        .position(|primary| !Arc::ptr_eq(primary.device(), context.device()));
    match foreign {
        Some(index) => Err(Refused::at(index, EXDEV)),
        None => Ok(primaries),
    }
}
