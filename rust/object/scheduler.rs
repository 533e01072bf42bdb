// SPDX-License-Identifier: GPL-2.0

//! The last steps before a node: addresses are written, buffers handed over.
//!
//! Everything here runs in the worker. Submissions arrive in the order in which their memory was
//! prepared and go to their nodes when the paging in front of them is complete; one whose paging
//! takes longer holds up only what comes behind it on its own context.

use kernel::list::{
    List,
    ListArc, //
};

use crate::{
    abstractions::trace,
    backend::{
        Buffer,
        Kind,
        Patched, //
    },
    object::{
        adapter::Adapter,
        context::{
            Discarded,
            LAST, //
        },
        device,
        placement::Residency,
        residence::Written,
        submission::{
            Execution,
            State,
            Submission, //
        },
        worker::Desk, //
    },
    policy::patching::PatchKind,
    units::{
        Place,
        Run,
        SegmentId, //
    },
};

/// Writes down where everything a submission needs is, now that it is pinned there, and that what it
/// lists as written will differ from what it was brought from (DMA-31).
pub(super) fn locate(residency: &Residency, submission: &mut ListArc<Submission>) {
    submission.progress_mut().places.clear();
    let mut settled = 0;
    for index in 0..submission.needs().len() {
        let mut place = None;
        if let Some(need) = submission.needs().get(index) {
            let mut residence = need.allocation().residence().lock();
            if need.is_written() {
                residence.note_written(Written::ByGpu);
            }
            place = residency.place_of(&residence);
            settled = settled.max(residence.settled);
        }
        let place = place.unwrap_or(Place::new(SegmentId::SYSTEM, 0));
        let _ = submission.progress_mut().places.push_within_capacity(place);
    }
    submission.progress_mut().settled = settled;
}

/// Takes a submission whose memory is prepared.
pub(super) fn prepared(desk: &mut Desk, submission: ListArc<Submission>) {
    announce_entries(&submission);
    let context = submission.context().clone();
    desk.prepared.push_back(submission);
    context.prepared();
}

/// Ends a submission that was cancelled before its memory was prepared.
pub(super) fn drop_cancelled(submission: ListArc<Submission>) {
    let context = submission.context().clone();
    context.discard(&submission, Discarded::BeforeItsTurn);
    drop(submission);
    context.prepared();
}

/// Puts the device of a submission in error that has no place although nobody stands in its way.
pub(super) fn fail_memory(submission: ListArc<Submission>) {
    let context = submission.context().clone();
    context.device().fail(device::Offence {
        state: device::State::ErrorMemory,
        context: context.number(),
        node: Some(context.node().0),
        submission: submission.id(),
        offset: 0,
    });
    drop_cancelled(submission);
}

/// Emits one event for each entry of the patch list.
fn announce_entries(submission: &Submission) {
    for (entry, patch) in (0..).zip(submission.patches()) {
        trace::dma_prepare(|| {
            let need = submission.element(patch.alloc_index).map(|(_, need)| need);
            trace::DmaPrepare {
                submit: submission.number(),
                entry,
                slot: patch.slot,
                allocation: need.map_or(0, |need| need.allocation().object_id()),
                result: match need {
                    None => trace::Prepared::Unbound,
                    Some(_) if is_replaced(submission, entry) => trace::Prepared::Replaced,
                    Some(need) if need.take_note() => trace::Prepared::PagedIn,
                    Some(_) => trace::Prepared::Resident,
                },
            }
        });
    }
}

/// Returns whether a later entry binds the slot of entry `entry` at the same offset.
fn is_replaced(submission: &Submission, entry: u32) -> bool {
    // CAST: `usize` has 64 bits wherever this driver runs.
    let mut rest = submission.patches().iter().skip(entry as usize);
    let Some(patch) = rest.next() else {
        return false;
    };
    rest.take_while(|later| later.split_offset == patch.split_offset)
        .any(|later| later.slot == patch.slot)
}

/// Hands everything to the nodes whose paging is complete.
pub(super) fn dispatch(adapter: &Adapter, desk: &mut Desk) {
    let completed = adapter.paging().completed();
    let pass = desk.pass();
    let mut prepared = List::new();
    prepared.push_all_back(&mut desk.prepared);
    let mut waiting = List::new();
    while let Some(submission) = prepared.pop_front() {
        let context = submission.context().clone();
        if context.is_closed() && !context.is_blocked_in(pass) {
            context.discard(&submission, Discarded::Pinned);
        } else if context.is_blocked_in(pass) || submission.progress().settled > completed {
            context.block_in(pass);
            waiting.push_back(submission);
        } else {
            hand_over(adapter, desk, submission);
        }
    }
    desk.prepared.push_all_back(&mut waiting);
}

/// Patches a submission and gives its buffers to the node.
fn hand_over(adapter: &Adapter, desk: &mut Desk, mut submission: ListArc<Submission>) {
    let context = submission.context().clone();
    let node = context.node();
    let progress = submission.progress_mut();
    let (wait, mut dma, signal) = (
        progress.wait.take(),
        progress.dma.take(),
        progress.signal.take(),
    );
    let mut fence = 0;
    if let Some(buffer) = dma.as_mut() {
        // The worker alone gives buffers to the node, so its completion values are known.
        if let Some(last) = desk.node_fences.get_mut(node.index()) {
            *last += 1;
            fence = *last;
        }
        let end = buffer.contents_mut().commands.used() * 4;
        trace::dma_portion(|| trace::DmaPortion {
            submit: submission.number(),
            context: context.number(),
            node: node.0,
            start: 0,
            // CAST: commands are no longer than the interface permits.
            end: end as u32,
            first_entry: 0,
            // CAST: lists are shorter than 2^32.
            entries: submission.patches().len() as u32,
            fence,
            submission: submission.id(),
        });
        patch(adapter, &submission, buffer);
    }
    submission.record().update(|report| {
        report.state = State::Ready;
        report.portions = u32::from(fence != 0);
    });
    let signals_last = signal.is_some();
    context.depart(submission);
    let send = |buffer: Option<ListArc<Buffer>>, kind: Kind, last: bool| {
        let Some(mut buffer) = buffer else { return };
        let contents = buffer.contents_mut();
        contents.kind = kind;
        contents.cookie = if last { LAST } else { 0 };
        contents.context = Some(context.engine().clone());
        contents.completion = Some(context.clone());
        adapter.backend().submit(node, buffer);
    };
    send(wait, Kind::Wait, false);
    send(dma, Kind::Dma, !signals_last);
    send(signal, Kind::Signal, true);
}

/// Writes the addresses into the commands, from the places at this moment.
fn patch(adapter: &Adapter, submission: &ListArc<Submission>, buffer: &mut ListArc<Buffer>) {
    let places = &submission.progress().places;
    let contents = buffer.contents_mut();
    let mut written = 0;
    for patch in submission.patches() {
        if patch.kind == PatchKind::None {
            continue;
        }
        let Some((need, _)) = submission.element(patch.alloc_index) else {
            continue;
        };
        let Some(&place) = places.get(need) else {
            continue;
        };
        trace::dma_patch(|| trace::DmaPatch {
            submit: submission.number(),
            offset: patch.patch_offset,
            place: place.forward(patch.alloc_offset).into(),
        });
        let words = contents.commands.words_mut();
        let patched =
            adapter
                .backend()
                .patch(words, patch.patch_offset / 4, place, patch.alloc_offset);
        written += u32::from(patched == Patched::Written);
    }
    submission
        .record()
        .update(|report| report.patches_written = written);
    for (need, place) in submission.needs().iter().zip(places) {
        let bytes = need.allocation().size();
        let _ = contents
            .grants
            .push_within_capacity(Run::new(*place, bytes));
    }
    contents.whole();
    if submission.execution() == Execution::Null {
        contents.portion = 0..0;
    }
}
