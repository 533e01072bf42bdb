// SPDX-License-Identifier: GPL-2.0

//! Submissions of virtual contexts (DMA-29).
//!
//! Their commands lie in the address space of the client and are read when they run, so nothing of them
//! can be checked before, and no list says what they use. What they need is what their device holds
//! residency references to when they are accepted, and nothing else (RES-12): all of it is in its
//! place and stays there while they run, and may be written. Behind acceptance they go the way of all
//! [`submission`](super::submission)s.
//!
//! Primaries that are written are listed only to keep the work in order with changes of the display.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::pages::Charge,
    backend::Buffer,
    object::{
        acceptance::{
            self,
            refuse, //
        },
        allocation::{
            Access,
            Flag,
            Hold, //
        },
        context::Context,
        need::Need,
        submission::{
            Draft,
            Execution,
            Extent,
            Kind,
            Point,
            Refused, //
        },
    },
};

pub(crate) use crate::backend::Fetch;

/// What SUBMIT_VIRTUAL asks for, decoded and resolved.
pub(crate) struct Request {
    /// The commands; [`None`] if there are only waits and signals.
    pub(crate) commands: Option<Fetch>,
    /// Whether they run.
    pub(crate) execution: Execution,
    /// Primaries that are written.
    pub(crate) primaries: KVVec<Hold>,
    /// Fences to wait for.
    pub(crate) waits: KVVec<Point>,
    /// Fences to signal.
    pub(crate) signals: KVVec<Point>,
}

/// Accepts a submission and returns its number on the context, or refuses it as a whole.
///
/// # Errors
///
/// [`Refused`]: nothing has changed.
///
/// Requirements: DMA-29, RES-12.
pub(crate) fn submit(context: &Arc<Context>, request: Request) -> Result<u64, Refused> {
    context.device().ensure_active()?;
    check(&request.primaries)?;
    let mut elements = KVVec::with_capacity(request.primaries.len(), GFP_KERNEL_ACCOUNT)?;
    for (index, _) in (0..).zip(&request.primaries) {
        elements.push(index, GFP_KERNEL_ACCOUNT)?;
    }
    let draft = Draft {
        needs: needs(context, &request)?,
        elements,
        listed: KVVec::new(),
        extent: Extent::Whole,
        bytes: request.commands.map_or(0, |commands| commands.bytes),
        patches: KVVec::new(),
        dma: request.commands.map(buffer).transpose()?,
        waits: request.waits,
        signals: request.signals,
        execution: request.execution,
    };
    let submission = draft.finish(context)?;
    submission.begin_use()?;
    Ok(context.accept(submission)?)
}

/// What is listed is a primary, is not offered, and holds residency references.
fn check(primaries: &[Hold]) -> Result<(), Refused> {
    for (index, primary) in primaries.iter().enumerate() {
        if primary.primary().is_none() {
            return Err(Refused {
                error: EINVAL,
                ..refuse(Kind::BadHandle, index)
            });
        }
    }
    for (index, primary) in primaries.iter().enumerate() {
        if primary.flags().contains(Flag::ReadOnly) {
            return Err(refuse(Kind::Access, index));
        }
    }
    for (index, primary) in primaries.iter().enumerate() {
        if primary.is_offered() {
            return Err(acceptance::refuse(Kind::Offered, index));
        }
        if primary.residence().lock().references() == 0 {
            return Err(refuse(Kind::NotResident, index));
        }
    }
    Ok(())
}

/// Returns what must be in its place while the submission runs: the primaries it lists, and everything
/// its device holds references to. Without commands nothing is touched.
fn needs(context: &Context, request: &Request) -> Result<KVVec<Need>, Refused> {
    let mut needs = KVVec::with_capacity(request.primaries.len(), GFP_KERNEL_ACCOUNT)?;
    for primary in &request.primaries {
        let need = Need::named(primary.clone(), Access::Write)?;
        needs.push(need, GFP_KERNEL_ACCOUNT)?;
    }
    if request.commands.is_some() {
        for requirement in context.device().required()? {
            let access = match requirement.hold().flags().contains(Flag::ReadOnly) {
                true => Access::Read,
                false => Access::Write,
            };
            let need = Need::required(requirement, access)?;
            needs.push(need, GFP_KERNEL_ACCOUNT)?;
        }
    }
    Ok(needs)
}

/// Returns the buffer that lets a node fetch commands.
fn buffer(commands: Fetch) -> Result<kernel::list::ListArc<Buffer>> {
    let mut buffer = Buffer::new(0, Charge::Client)?;
    buffer.contents_mut().fetch = Some(commands);
    Ok(buffer)
}
