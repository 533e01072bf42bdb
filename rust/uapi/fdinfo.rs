// SPDX-License-Identifier: GPL-2.0

//! `/proc/PID/fdinfo/N`: what a client uses, in the keys that graphics drivers have agreed on, and
//! some of our own.
//!
//! An allocation is counted under one region: the segment it lies in, the aperture while it has a
//! range there, otherwise `memory`.

use kernel::{
    fmt,
    seq_file::SeqFile,
    seq_print, //
};

use crate::{
    object::{
        adapter::SegmentKind,
        allocation::Hold,
        budget::Group,
        client::{
            Sum,
            Usage, //
        },
        residence::Location, //
    },
    units::{
        SegmentId,
        SEGMENT_IDS, //
    },
};

use super::file::File;

/// A memory region of the report.
#[derive(Clone, Copy)]
enum Region {
    Memory,
    Segment(SegmentKind, SegmentId),
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Segment(SegmentKind::Memory, id) => write!(f, "vram{}", id.get()),
            Self::Segment(SegmentKind::Aperture, id) => write!(f, "aperture{}", id.get()),
        }
    }
}

/// Writes the lines.
pub(super) fn show(file: &File, seq: &SeqFile) {
    let client = file.client();
    seq_print!(seq, "drm-driver:\tvidmm\n");
    seq_print!(seq, "drm-client-id:\t{}\n", client.id());
    if let Some(name) = client.name().get() {
        seq_print!(seq, "drm-client-name:\t{name}\n");
    }
    let backend = file.adapter().backend();
    for node in &backend.capabilities().nodes {
        seq_print!(seq, "drm-engine-{}:\t0 ns\n", node.ordinal.0);
    }
    let tally = tally(file);
    let of = |sums: &[u64; SEGMENT_IDS], id: SegmentId| sums.get(id.index()).copied().unwrap_or(0);
    let usage = client.usage();
    let mut elsewhere = usage.get(Sum::Total);
    for segment in &backend.capabilities().segments {
        let resident = usage.get(Sum::Resident(segment.id));
        elsewhere = elsewhere.saturating_sub(resident);
        show_region(
            seq,
            Region::Segment(segment.kind, segment.id),
            Bytes {
                total: resident,
                resident,
                purgeable: of(&tally.purgeable, segment.id),
                active: of(&tally.active, segment.id),
            },
        );
    }
    show_region(
        seq,
        Region::Memory,
        Bytes {
            total: elsewhere,
            resident: usage.get(Sum::Resident(SegmentId::SYSTEM)),
            purgeable: of(&tally.purgeable, SegmentId::SYSTEM),
            active: of(&tally.active, SegmentId::SYSTEM),
        },
    );
    show_own(file, usage, seq);
}

/// What is said about a region.
struct Bytes {
    total: u64,
    resident: u64,
    purgeable: u64,
    active: u64,
}

fn show_region(seq: &SeqFile, region: Region, bytes: Bytes) {
    let lines = [
        ("total", bytes.total),
        ("shared", 0),
        ("resident", bytes.resident),
        ("purgeable", bytes.purgeable),
        ("active", bytes.active),
    ];
    for (what, bytes) in lines {
        seq_print!(seq, "drm-{what}-{region}:\t{} KiB\n", bytes / 1024);
    }
}

/// Bytes of allocations, by segment.
struct Tally {
    /// What queued work uses.
    active: [u64; SEGMENT_IDS],
    /// What is offered and has its content.
    purgeable: [u64; SEGMENT_IDS],
}

/// Adds up what is special about the allocations of a client.
fn tally(file: &File) -> Tally {
    let capabilities = file.adapter().backend().capabilities();
    let aperture = capabilities.aperture().map(|aperture| aperture.id);
    let mut tally = Tally {
        active: [0; SEGMENT_IDS],
        purgeable: [0; SEGMENT_IDS],
    };
    let mut next = 0;
    while let Some((_, after, allocation)) = file.handles().at_least::<Hold>(next) {
        next = after;
        if !allocation.is_busy() && !allocation.is_offered() {
            continue;
        }
        let residence = allocation.residence().lock();
        let segment = match residence.location() {
            Location::Segment(id, _) => *id,
            Location::Aperture(_) => aperture.unwrap_or(SegmentId::SYSTEM),
            Location::System | Location::Nowhere => SegmentId::SYSTEM,
        };
        let purgeable = allocation.is_offered() && !residence.offer().is_given_up();
        drop(residence);
        let sums = [
            (allocation.is_busy(), &mut tally.active),
            (purgeable, &mut tally.purgeable),
        ];
        for (_, sums) in sums.into_iter().filter(|(counts, _)| *counts) {
            if let Some(sum) = sums.get_mut(segment.index()) {
                *sum += allocation.size();
            }
        }
    }
    tally
}

fn show_own(file: &File, usage: &Usage, seq: &SeqFile) {
    for (group, name) in [(Group::Local, "local"), (Group::NonLocal, "nonlocal")] {
        let statement = file.adapter().budgets().statement(file.client(), group);
        let bytes = [
            ("budget", statement.budget),
            ("usage", statement.usage),
            ("trim", statement.excess()),
        ];
        for (what, bytes) in bytes {
            seq_print!(seq, "vidmm-{what}-{name}:\t{} KiB\n", bytes / 1024);
        }
    }
    let bytes = [
        ("backing", usage.get(Sum::Backing)),
        ("offered", usage.get(Sum::Offered)),
        ("paged-in", usage.get(Sum::PagedIn)),
        ("paged-out", usage.get(Sum::PagedOut)),
        ("discarded", usage.get(Sum::Discarded)),
    ];
    for (what, bytes) in bytes {
        seq_print!(seq, "vidmm-{what}:\t{} KiB\n", bytes / 1024);
    }
    let counts = [
        ("evictions", usage.get(Sum::Evictions)),
        ("splits", usage.get(Sum::Splits)),
        ("renames", 0),
        ("rename-waits", 0),
    ];
    for (what, count) in counts {
        seq_print!(seq, "vidmm-{what}:\t{count}\n");
    }
}
