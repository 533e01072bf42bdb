// SPDX-License-Identifier: GPL-2.0

//! What the trace says of paging operations: the fields of `paging_op`, from what is built.

use core::ops::Range;

use crate::{
    abstractions::trace,
    backend::{
        page_table::{
            Entries,
            Entry,
            Phase,
            Update,
            ENTRY_BYTES, //
        },
        Operation, //
    },
    units::{
        GpuVirtualAddress,
        Place,
        Run, //
    },
};

use super::Builder;

/// The segment of places that are addresses.
const VIRTUAL: u32 = 255;

impl Builder {
    /// Returns what the trace says of a part of an operation, in its steps, whoever it is for.
    pub(super) fn describe(&self, operation: &Operation<'_>, part: Range<u64>) -> trace::PagingOp {
        let (before, steps) = (part.start, part.end - part.start);
        let none = trace::PagingOp {
            sequence: 0,
            buffer: 0,
            operation: word(operation),
            space: 0,
            process: 0,
            allocation: 0,
            source: trace::Place::NONE,
            destination: trace::Place::NONE,
            address: 0,
            bytes: steps,
            mode: trace::Mode::None,
            cause: trace::Cause::None,
            level: 0,
            count: 0,
            protection: 0,
            driver: 0,
            flags: 0,
        };
        let physical = |place: Option<Place>| place.map_or(trace::Place::NONE, Into::into);
        let virtually = |address: GpuVirtualAddress| trace::Place::new(VIRTUAL, address.0);
        match *operation {
            Operation::Fill { to, .. } => trace::PagingOp {
                destination: physical(at(to, before)),
                ..none
            },
            Operation::Transfer { from, to } => trace::PagingOp {
                source: physical(at(from, before)),
                destination: physical(at(to, before)),
                ..none
            },
            Operation::Discard { what } => trace::PagingOp {
                source: physical(at(what, before)),
                ..none
            },
            Operation::FillVirtual { to, .. } => trace::PagingOp {
                destination: virtually(to),
                ..none
            },
            Operation::TransferVirtual { from, to, .. } => trace::PagingOp {
                source: virtually(from),
                destination: virtually(to),
                ..none
            },
            Operation::UpdatePageTable(update) => describe_update(&update, before, steps, none),
            Operation::FlushTlb { range, .. } => trace::PagingOp {
                address: range.start.0,
                bytes: range.bytes(),
                ..none
            },
            Operation::MapAperture { at: place, pages } => trace::PagingOp {
                source: physical(at(pages, before)),
                destination: place.forward(before).into(),
                ..none
            },
            Operation::UnmapAperture { at: place, .. } => trace::PagingOp {
                source: physical(at(&self.from, before)),
                destination: place.forward(before).into(),
                ..none
            },
        }
    }
}

/// Returns the place of the byte `offset` of `runs`.
pub(super) fn at(runs: &[Run], offset: u64) -> Option<Place> {
    let mut left = offset;
    for run in runs {
        if left < run.bytes {
            return Some(run.place.forward(left));
        }
        left -= run.bytes;
    }
    None
}

/// Returns what the trace says of `steps` entries of an update, after `before`.
fn describe_update(
    update: &Update<'_>,
    before: u64,
    steps: u64,
    none: trace::PagingOp,
) -> trace::PagingOp {
    let entry = update.entry(before);
    let place = entry.and_then(Entry::place);
    let rights = entry.map(Entry::rights).unwrap_or_default();
    let repeated = match update.entries {
        Entries::Repeat { .. } => trace::UPDATE_REPEATED,
        _ => 0,
    };
    let phase = match update.phase {
        Phase::Initialise => trace::UPDATE_INITIALISES,
        Phase::Normal => 0,
    };
    let index = before.saturating_add(update.first.into());
    trace::PagingOp {
        source: update.table.place.forward(index * ENTRY_BYTES).into(),
        destination: place.map_or(trace::Place::NOWHERE, Into::into),
        address: update.address.forward(before * update.span()).0,
        bytes: steps * update.span(),
        mode: match update.table.window {
            Some(_) => trace::Mode::GpuVirtual,
            None => trace::Mode::GpuPhysical,
        },
        level: update.level,
        count: steps,
        protection: rights.protection(),
        driver: rights.driver,
        flags: repeated | phase,
        ..none
    }
}

fn word(operation: &Operation<'_>) -> trace::Operation {
    match operation {
        Operation::Fill { .. } => trace::Operation::Fill,
        Operation::Transfer { .. } => trace::Operation::Transfer,
        Operation::Discard { .. } => trace::Operation::Discard,
        Operation::FillVirtual { .. } => trace::Operation::FillVirtual,
        Operation::TransferVirtual { .. } => trace::Operation::TransferVirtual,
        Operation::UpdatePageTable(_) => trace::Operation::UpdatePageTable,
        Operation::FlushTlb { .. } => trace::Operation::FlushTlb,
        Operation::MapAperture { .. } => trace::Operation::MapAperture,
        Operation::UnmapAperture { .. } => trace::Operation::UnmapAperture,
    }
}
