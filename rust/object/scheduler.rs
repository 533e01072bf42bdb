// SPDX-License-Identifier: GPL-2.0

//! The last steps before a node: addresses are written, buffers handed over.
//!
//! Everything here runs in the worker. A submission whose memory is prepared goes to its node when the paging in
//! front of it is complete and the node has room; one whose paging takes longer holds up only what comes behind
//! it on its own context. Who goes next is chosen by priority, and by what each client and context has had of
//! the node (DMA-30).
//!
//! Of a submission that is cut one portion at a time comes here (DMA-14). Its waits go in front of the first
//! and its signals behind the last one. On a node that cannot save contexts nothing else comes between them
//! ([`Turns`](super::worker::Turns), DMA-3), so the first one lets those go first that were prepared before it.

use core::ops::Range;

use kernel::{
    list::{
        List,
        ListArc, //
    },
    prelude::*, //
};

use crate::{
    abstractions::trace,
    backend::{
        Buffer,
        Fetch,
        Kind,
        Patched, //
    },
    object::{
        adapter::Adapter,
        client::Sum,
        context::{
            CUT,
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
    policy::{
        patching::PatchKind,
        sharing::Claim, //
    },
    units::Run,
};

/// Writes down where everything is that a portion has pinned, and that what the submission lists as
/// written will differ from what it was brought from (DMA-31).
pub(super) fn locate(residency: &Residency, submission: &mut ListArc<Submission>) {
    submission.progress_mut().places.clear();
    let mut settled = 0;
    for index in 0..submission.needs().len() {
        let mut place = None;
        let need = submission.needs().get(index);
        if let Some(need) = need.filter(|need| need.is_pinned()) {
            let mut residence = need.allocation().residence().lock();
            if need.is_written() {
                residence.note_written(Written::ByGpu);
            }
            place = residency.place_of(&residence);
            settled = settled.max(residence.settled);
        }
        let _ = submission.progress_mut().places.push_within_capacity(place);
    }
    submission.progress_mut().settled = settled;
}

/// Takes a submission of which a portion is prepared. Behind the last one the context may go on.
pub(super) fn prepared(desk: &mut Desk, submission: ListArc<Submission>) {
    let context = submission.context().clone();
    let is_last = submission.is_at_last_portion();
    desk.prepared.push_back(submission);
    if is_last {
        context.prepared();
    }
}

/// Ends a submission of which no portion is prepared.
pub(super) fn drop_cancelled(adapter: &Adapter, desk: &mut Desk, submission: ListArc<Submission>) {
    let context = submission.context().clone();
    desk.turns.end(adapter, &submission);
    context.discard(&submission);
    drop(submission);
    context.prepared();
}

/// Puts the device of a submission in error that has no place although nobody stands in its way.
pub(super) fn fail_memory(adapter: &Adapter, desk: &mut Desk, submission: ListArc<Submission>) {
    let context = submission.context().clone();
    submission.record().update(|report| {
        report.state = State::Faulted;
        report.error = Some(ENOSPC);
    });
    context.device().fail(device::Offence {
        state: device::State::ErrorMemory,
        context: context.number(),
        node: Some(context.node().0),
        submission: submission.id(),
        offset: 0,
        fault: None,
    });
    drop_cancelled(adapter, desk, submission);
}

/// Emits the event of entry `entry` of the patch list, whose allocation is in its place; it was brought
/// there if `result` is none.
pub(super) fn announce(submission: &Submission, entry: usize, result: Option<trace::Prepared>) {
    trace::dma_prepare(|| {
        let patch = submission.patches().get(entry);
        let need = patch.and_then(|patch| submission.element(patch.alloc_index));
        let need = need.map(|(_, need)| need);
        trace::DmaPrepare {
            submit: submission.number(),
            // CAST: lists are shorter than 2^32.
            entry: entry as u32,
            slot: patch.map_or(0, |patch| patch.slot),
            allocation: need.map_or(0, |need| need.allocation().object_id()),
            result: result.unwrap_or_else(|| match need {
                None => trace::Prepared::Unbound,
                Some(_) if is_replaced(submission, entry) => trace::Prepared::Replaced,
                Some(need) if need.take_note() => trace::Prepared::PagedIn,
                Some(_) => trace::Prepared::Resident,
            }),
        }
    });
}

/// Returns whether a later entry binds the slot of entry `entry` at the same offset.
fn is_replaced(submission: &Submission, entry: usize) -> bool {
    let mut rest = submission.patches().iter().skip(entry);
    let Some(patch) = rest.next() else {
        return false;
    };
    rest.take_while(|later| later.split_offset == patch.split_offset)
        .any(|later| later.slot == patch.slot)
}

/// Hands to the nodes what they have room for, and what is settled.
pub(super) fn dispatch(adapter: &Adapter, desk: &mut Desk) {
    drop_closed(adapter, desk);
    while let Some(submission) = take_next(adapter, desk) {
        hand_over(adapter, desk, submission);
    }
}

/// Ends what is prepared of contexts that are closed.
fn drop_closed(adapter: &Adapter, desk: &mut Desk) {
    let mut prepared = List::new();
    prepared.push_all_back(&mut desk.prepared);
    let mut waiting = List::new();
    while let Some(submission) = prepared.pop_front() {
        let context = submission.context().clone();
        if !context.is_closed() {
            waiting.push_back(submission);
            continue;
        }
        desk.turns.end(adapter, &submission);
        let is_last = submission.is_at_last_portion();
        context.discard(&submission);
        drop(submission);
        if !is_last {
            context.prepared();
        }
    }
    desk.prepared.push_all_back(&mut waiting);
}

/// Takes what goes to a node next, if anything does: of each context the first, if its paging is complete and the
/// node has room.
fn take_next(adapter: &Adapter, desk: &mut Desk) -> Option<ListArc<Submission>> {
    let completed = adapter.paging().completed();
    desk.searches += 1;
    let mut best: Option<(u64, Claim)> = None;
    let mut searched = List::new();
    while let Some(submission) = desk.prepared.pop_front() {
        let context = submission.context();
        let node = context.node();
        let is_first = context.meet(desk.searches);
        let has_room = submission.progress().dma.is_none() || adapter.loads().has_room(node);
        let is_settled = submission.progress().settled <= completed;
        if is_first && has_room && is_settled && !must_wait(desk, &submission, &searched) {
            let claim = context.claim(&desk.floor(node));
            if best.is_none_or(|(_, other)| claim.goes_before(&other)) {
                best = Some((submission.number(), claim));
            }
        }
        searched.push_back(submission);
    }
    let mut taken = None;
    while let Some(submission) = searched.pop_front() {
        if best.is_some_and(|(number, _)| submission.number() == number) {
            taken = Some(submission);
        } else {
            desk.prepared.push_back(submission);
        }
    }
    taken
}

/// Returns whether a submission that will have its node for itself has to let others go first that were
/// prepared before it; `searched` are those that have been looked at.
fn must_wait(desk: &Desk, submission: &Submission, searched: &List<Submission>) -> bool {
    let node = submission.context().node();
    let mut others = Iterator::chain(desk.prepared.iter(), searched.iter());
    desk.turns.is_exclusive(submission) && others.any(|other| other.context().node() == node)
}
/// Patches a portion and gives its buffers to the node.
fn hand_over(adapter: &Adapter, desk: &mut Desk, mut submission: ListArc<Submission>) {
    let context = submission.context().clone();
    let node = context.node();
    let is_last = submission.is_at_last_portion();
    let progress = submission.progress_mut();
    let (wait, mut dma) = (progress.wait.take(), progress.dma.take());
    let signal = if is_last {
        progress.signal.take()
    } else {
        None
    };
    let runs = dma.is_some();
    if let Some(buffer) = dma.as_mut() {
        adapter.loads().begin(node);
        if let Some(floor) = desk.floors.get_mut(node.index()) {
            submission.note_charge(context.charge(floor));
        }
        // The worker alone gives buffers to the node, so its completion values are known.
        let fence = desk.node_fences.get_mut(node.index()).map_or(0, |last| {
            *last += 1;
            *last
        });
        prepare_buffer(adapter, &submission, buffer, fence);
    }
    submission.record().update(|report| {
        report.state = State::Ready;
        report.portions += u32::from(runs);
    });
    if is_last {
        desk.turns.end(adapter, &submission);
    } else {
        adapter.statistics().split();
        context.device().client().usage().add(Sum::Splits, 1);
    }
    let dma_cookie = match (is_last, &signal) {
        (false, _) => CUT,
        (true, Some(_)) => 0,
        (true, None) => LAST,
    };
    context.depart(submission);
    let send = |buffer: Option<ListArc<Buffer>>, kind: Kind, cookie: u64| {
        let Some(mut buffer) = buffer else { return };
        let contents = buffer.contents_mut();
        contents.kind = kind;
        contents.cookie = cookie;
        contents.context = Some(context.engine().clone());
        contents.completion = Some(context.clone());
        adapter.backend().submit(node, buffer);
    };
    send(wait, Kind::Wait, 0);
    send(dma, Kind::Dma, dma_cookie);
    send(signal, Kind::Signal, LAST);
}

/// Lets a node fetch commands in the space of the client; of work that executes nothing, none.
fn fetch(submission: &ListArc<Submission>, buffer: &mut ListArc<Buffer>, fetch: Fetch) {
    let contents = buffer.contents_mut();
    let root = submission.space().and_then(|space| space.standing().root());
    if let Some(root) = root {
        submission.context().enter(root);
    }
    contents.root = root.map(|root| root.place);
    contents.fetch = Some(match submission.execution() {
        Execution::Full => fetch,
        Execution::Null => Fetch { bytes: 0, ..fetch },
    });
}

/// Lets a buffer be the portion that is prepared, with the addresses of this moment.
fn prepare_buffer(
    adapter: &Adapter,
    submission: &ListArc<Submission>,
    buffer: &mut ListArc<Buffer>,
    fence: u64,
) {
    let Some(portion) = submission.progress().portion else {
        return;
    };
    let context = submission.context();
    trace::dma_portion(|| trace::DmaPortion {
        submit: submission.number(),
        context: context.number(),
        node: context.node().0,
        start: portion.start.offset,
        end: portion.end.offset,
        // CAST: lists are shorter than 2^32.
        first_entry: portion.start.entry as u32,
        // CAST: lists are shorter than 2^32.
        entries: portion.end.entry.saturating_sub(portion.start.entry) as u32,
        fence,
        submission: submission.id(),
    });
    if let Some(fetch) = buffer.contents().fetch {
        self::fetch(submission, buffer, fetch);
        return;
    }
    patch(
        adapter,
        submission,
        buffer,
        portion.start.offset..portion.end.offset,
    );
    let contents = buffer.contents_mut();
    contents.portion = match submission.execution() {
        // CAST: `usize` has 64 bits wherever this driver runs.
        Execution::Full => portion.start.offset as usize / 4..portion.end.offset as usize / 4,
        Execution::Null => 0..0,
    };
    contents.grants.clear();
    for (need, place) in submission.needs().iter().zip(&submission.progress().places) {
        let Some(place) = place else { continue };
        let bytes = need.allocation().size();
        let _ = contents
            .grants
            .push_within_capacity(Run::new(*place, bytes));
    }
}

/// Writes the addresses into these bytes of the commands, from the places at this moment.
fn patch(
    adapter: &Adapter,
    submission: &ListArc<Submission>,
    buffer: &mut ListArc<Buffer>,
    bytes: Range<u32>,
) {
    let places = &submission.progress().places;
    let contents = buffer.contents_mut();
    let mut written = 0;
    for patch in submission.patches() {
        if patch.kind == PatchKind::None || !bytes.contains(&patch.patch_offset) {
            continue;
        }
        let Some((need, _)) = submission.element(patch.alloc_index) else {
            continue;
        };
        let Some(&Some(place)) = places.get(need) else {
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
        .update(|report| report.patches_written = report.patches_written.saturating_add(written));
}
