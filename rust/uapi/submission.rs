// SPDX-License-Identifier: GPL-2.0

//! SUBMIT_PATCHED, SUBMIT_QUERY.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::bytes,
    object::{
        allocation::{
            Access,
            Hold, //
        },
        context::{
            Context,
            Mode, //
        },
        submission::{
            self,
            Accepted,
            Execution,
            Kind,
            Named,
            Patch,
            PatchKind,
            Point,
            Request,
            State, //
        },
    },
};

use super::{
    abi::{
        self,
        SubmitAlloc,
        SubmitPatch,
        SubmitPatched,
        SubmitQuery, //
    },
    dispatch::{
        argument,
        Answered,
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
};

/// Bytes that the length of a command buffer is a multiple of.
pub(super) const COMMAND_ALIGN: u32 = 8;

argument! {
    SubmitPatched:
    flags flags;
    zero pad;
    results submission;
    report error_kind = abi::SUBMIT_ERROR_NONE, error_index = 0
}

argument! {
    SubmitQuery:
    flags flags;
    zero;
    results state, error, splits, patches_written, paged_in, paged_out, queued_ns, start_ns, end_ns;
    report
}

/// The lists of a submission, copied and checked as far as no object is needed.
struct Lists {
    allocations: List<SubmitAlloc>,
    patches: List<SubmitPatch>,
    waits: List<abi::Point>,
    signals: List<abi::Point>,
}

/// Queues a command buffer, or only waits and signals.
///
/// # Errors
///
/// - `EOPNOTSUPP`: a flag, or a kind of patch, whose feature is not there; a context in mode VIRTUAL.
/// - `EINVAL`: lists that are too long, or not empty without commands; a length that is no multiple
///   of 8; fields that are not zero where they do not apply.
/// - `ENOENT`: no such context.
/// - `ENOMEM`: no memory.
/// - Those of [`submission::submit`], with a submit error kind.
pub(super) fn submit(file: &File, argument: &mut SubmitPatched) -> Result<Done> {
    let context = file.handles().get::<Arc<Context>>(argument.context);
    let limits = context.as_ref().map_or(Limits::DEFAULT, Limits::of);
    let mut lists = Lists::read(argument, &limits)?;
    let commands = read_commands(argument, &limits)?;
    let context = context?;
    if context.mode() == Mode::Virtual {
        return Err(EOPNOTSUPP);
    }

    let accepted = resolve(file, &context, argument, &lists, commands)
        .and_then(|request| {
            // The answer will be written there: find out before anything happens.
            lists.allocations.write_back()?;
            submission::submit(&context, request)
        })
        .map_err(|refused| {
            argument.error_kind = refused.kind;
            argument.error_index = refused.index;
            refused.error
        })?;
    argument.submission = accepted.id;
    lists.answer(&accepted)?;
    Ok(Done)
}

/// The longest lists of a submission.
pub(super) struct Limits {
    bytes: u32,
    allocations: u32,
    patches: u32,
    pub(super) points: u32,
}

impl Limits {
    /// What holds on every node; for a context that does not exist.
    pub(super) const DEFAULT: Self = Self {
        bytes: 1 << 20,
        allocations: 1 << 16,
        patches: 1 << 20,
        points: list::HANDLES,
    };

    pub(super) fn of(context: &Arc<Context>) -> Self {
        let capabilities = context.device().adapter().backend().capabilities();
        match capabilities.node(context.node()) {
            Some(node) => Self {
                bytes: node.limits.dma_bytes,
                allocations: node.limits.allocations,
                patches: node.limits.patches,
                points: node.limits.points,
            },
            None => Self::DEFAULT,
        }
    }
}

impl Lists {
    fn read(argument: &SubmitPatched, limits: &Limits) -> Result<Self> {
        let lists = Self {
            allocations: List::read(&argument.allocs, limits.allocations, Empty::Allowed)?,
            patches: List::read(&argument.patches, limits.patches, Empty::Allowed)?,
            waits: List::read(&argument.waits, limits.points, Empty::Allowed)?,
            signals: List::read(&argument.signals, limits.points, Empty::Allowed)?,
        };
        lists.check_known().map_err(|refused| refused.error)?;
        lists.check_applicable().map_err(|refused| refused.error)?;
        Ok(lists)
    }

    /// Refuses what needs a feature that is not there.
    fn check_known(&self) -> Result<(), Refused> {
        list::check_each(self.allocations.as_slice(), |element| {
            match element.flags & !abi::SUBMIT_ALLOC_WRITE {
                0 => Ok(()),
                _ => Err(EOPNOTSUPP),
            }
        })?;
        list::check_each(self.patches.as_slice(), |patch| {
            decode_kind(patch.kind).map(|_| ())
        })?;
        list::check_each(self.waits.as_slice(), fence::check_point)?;
        list::check_each(self.signals.as_slice(), fence::check_point)
    }

    /// Refuses fields that are not zero where they do not apply.
    fn check_applicable(&self) -> Result<(), Refused> {
        list::check_each(self.allocations.as_slice(), |element| {
            let null = SubmitAlloc::default();
            if element.alloc == 0 && *element != null {
                return Err(EINVAL);
            }
            Ok(())
        })?;
        list::check_each(self.patches.as_slice(), |patch| {
            let binds_only = patch.kind == abi::SUBMIT_PATCH_KIND_NONE;
            if binds_only && (patch.alloc_offset != 0 || patch.patch_offset != 0) {
                return Err(EINVAL);
            }
            Ok(())
        })
    }

    /// Tells the caller where its allocations are.
    fn answer(&mut self, accepted: &Accepted) -> Result {
        let elements = self.allocations.as_mut_slice();
        for (element, place) in elements.iter_mut().zip(&accepted.places) {
            if element.alloc == 0 {
                continue;
            }
            (element.presumed_segment, element.presumed_address) = match place {
                Some(place) => (place.segment.get(), place.offset),
                None => (abi::SEGMENT_ID_NONE, 0),
            };
        }
        self.allocations.write_back()
    }
}

fn read_commands(argument: &SubmitPatched, limits: &Limits) -> Result<KVVec<u32>> {
    let mut commands = KVVec::new();
    if argument.cmd_size == 0 {
        let lists_empty = argument.allocs.count == 0 && argument.patches.count == 0;
        return if argument.cmd_ptr == 0 && lists_empty {
            Ok(commands)
        } else {
            Err(EINVAL)
        };
    }
    if argument.cmd_size % COMMAND_ALIGN != 0 || argument.cmd_size > limits.bytes {
        return Err(EINVAL);
    }
    // CAST: `usize` has 64 bits wherever this driver runs.
    let words = argument.cmd_size as usize / size_of::<u32>();
    bytes::copy_words_in(argument.cmd_ptr, words, &mut commands)?;
    Ok(commands)
}

/// Turns the copies into a request that speaks of objects.
fn resolve(
    file: &File,
    context: &Context,
    argument: &SubmitPatched,
    lists: &Lists,
    commands: KVVec<u32>,
) -> Result<Request, submission::Refused> {
    Ok(Request {
        commands,
        execution: if argument.flags & abi::SUBMIT_PATCHED_NULL_RENDER != 0 {
            Execution::Null
        } else {
            Execution::Full
        },
        named: resolve_allocations(file, context, lists.allocations.as_slice())
            .map_err(|refused| refuse(Kind::BadHandle, refused, 0))?,
        patches: decode_patches(lists.patches.as_slice())?,
        waits: fence::get_points(file, lists.waits.as_slice())
            .map_err(|refused| refuse(Kind::BadPoint, refused, 0))?,
        signals: resolve_signals(file, lists.signals.as_slice())
            .map_err(|refused| refuse(Kind::BadPoint, refused, lists.waits.as_slice().len()))?,
    })
}

/// Says which element of a list is to blame for a refusal; `before` elements precede the list.
pub(super) fn refuse(kind: Kind, refused: Refused, before: usize) -> submission::Refused {
    match refused.index {
        Some(index) => submission::Refused {
            error: refused.error,
            kind: kind.number(),
            // CAST: lists are far shorter than 4 Gi elements.
            index: (before + index) as u32,
        },
        None => refused.error.into(),
    }
}

fn resolve_allocations(
    file: &File,
    context: &Context,
    elements: &[SubmitAlloc],
) -> Result<KVVec<Named>, Refused> {
    let mut named = KVVec::with_capacity(elements.len(), GFP_KERNEL_ACCOUNT)?;
    let mut inputs = elements.iter();
    let handles = elements.iter().map(|element| element.alloc);
    file.handles().visit(handles, |index, hold: Option<Hold>| {
        let element = inputs.next().ok_or(Refused::at(index, ENOENT))?;
        if hold.is_none() && element.alloc != 0 {
            return Err(Refused::at(index, ENOENT));
        }
        named
            .push_within_capacity(decode_element(element, hold))
            .map_err(|_| ENOMEM.into())
    })?;
    let foreign = named.iter().position(|named| match &named.hold {
        Some(hold) => !Arc::ptr_eq(hold.device(), context.device()),
        None => false,
    });
    match foreign {
        Some(index) => Err(Refused::at(index, EXDEV)),
        None => Ok(named),
    }
}

fn decode_element(element: &SubmitAlloc, hold: Option<Hold>) -> Named {
    Named {
        hold,
        access: if element.flags & abi::SUBMIT_ALLOC_WRITE != 0 {
            Access::Write
        } else {
            Access::Read
        },
        instance: element.instance,
    }
}

pub(super) fn resolve_signals(file: &File, points: &[abi::Point]) -> Result<KVVec<Point>, Refused> {
    let signals = fence::get_points(file, points)?;
    list::check_each(&signals, fence::check_signal)?;
    Ok(signals)
}

fn decode_kind(kind: u32) -> Result<PatchKind> {
    match kind {
        abi::SUBMIT_PATCH_KIND_NONE => Ok(PatchKind::None),
        abi::SUBMIT_PATCH_KIND_FULL64 => Ok(PatchKind::Full64),
        _ => Err(EOPNOTSUPP),
    }
}

fn decode_patches(patches: &[SubmitPatch]) -> Result<KVVec<Patch>> {
    let mut decoded = KVVec::with_capacity(patches.len(), GFP_KERNEL_ACCOUNT)?;
    for patch in patches {
        let patch = Patch {
            alloc_index: patch.alloc_index,
            slot: patch.slot,
            kind: decode_kind(patch.kind)?,
            driver_id: patch.driver_id,
            alloc_offset: patch.alloc_offset,
            patch_offset: patch.patch_offset,
            split_offset: patch.split_offset,
        };
        decoded.push_within_capacity(patch).map_err(|_| ENOMEM)?;
    }
    Ok(decoded)
}

/// Says what became of a submission.
///
/// # Errors
///
/// - `ENOENT`: no such context, or the submission is forgotten or never was.
/// - `EIO`, `ENODEV`: the device is in error, or gone.
pub(super) fn query(file: &File, argument: &mut SubmitQuery) -> Result<Answered> {
    let context: Arc<Context> = file.handles().get(argument.context)?;
    context.device().ensure_active()?;
    let report = context.record(argument.submission)?.report();
    argument.state = match report.state {
        State::Waiting => abi::SUBMIT_STATE_WAITING,
        State::Paging => abi::SUBMIT_STATE_PAGING,
        State::Ready => abi::SUBMIT_STATE_READY,
        State::Running => abi::SUBMIT_STATE_RUNNING,
        State::Done => abi::SUBMIT_STATE_DONE,
        State::Cancelled => abi::SUBMIT_STATE_CANCELLED,
        State::Faulted => abi::SUBMIT_STATE_FAULTED,
    };
    argument.error = report.error.map_or(0, |error| error.to_errno());
    argument.splits = report.portions;
    argument.patches_written = report.patches_written;
    argument.paged_in = report.paged_in();
    argument.paged_out = report.paged_out();
    argument.queued_ns = report.queued_ns;
    argument.start_ns = report.start_ns;
    argument.end_ns = report.end_ns;
    Ok(Answered)
}
