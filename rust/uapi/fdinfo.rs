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
    let active = active(file);
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
                active: active.get(segment.id.index()).copied().unwrap_or(0),
            },
        );
    }
    show_region(
        seq,
        Region::Memory,
        Bytes {
            total: elsewhere,
            resident: usage.get(Sum::Resident(SegmentId::SYSTEM)),
            active: active[0],
        },
    );
    show_own(file, usage, seq);
}

/// What is said about a region.
struct Bytes {
    total: u64,
    resident: u64,
    active: u64,
}

fn show_region(seq: &SeqFile, region: Region, bytes: Bytes) {
    let lines = [
        ("total", bytes.total),
        ("shared", 0),
        ("resident", bytes.resident),
        ("purgeable", 0),
        ("active", bytes.active),
    ];
    for (what, bytes) in lines {
        seq_print!(seq, "drm-{what}-{region}:\t{} KiB\n", bytes / 1024);
    }
}

/// Adds up, by segment, what queued work uses.
fn active(file: &File) -> [u64; SEGMENT_IDS] {
    let capabilities = file.adapter().backend().capabilities();
    let aperture = capabilities.aperture().map(|aperture| aperture.id);
    let mut active = [0; SEGMENT_IDS];
    let mut next = 0;
    while let Some((_, after, allocation)) = file.handles().at_least::<Hold>(next) {
        next = after;
        if !allocation.is_busy() {
            continue;
        }
        let segment = match allocation.residence().lock().location() {
            Location::Segment(id, _) => *id,
            Location::Aperture(_) => aperture.unwrap_or(SegmentId::SYSTEM),
            Location::System | Location::Nowhere => SegmentId::SYSTEM,
        };
        if let Some(sum) = active.get_mut(segment.index()) {
            *sum += allocation.size();
        }
    }
    active
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
        ("offered", 0),
        ("paged-in", usage.get(Sum::PagedIn)),
        ("paged-out", usage.get(Sum::PagedOut)),
        ("discarded", 0),
    ];
    for (what, bytes) in bytes {
        seq_print!(seq, "vidmm-{what}:\t{} KiB\n", bytes / 1024);
    }
    let counts = [
        ("evictions", usage.get(Sum::Evictions)),
        ("splits", 0),
        ("renames", 0),
        ("rename-waits", 0),
    ];
    for (what, count) in counts {
        seq_print!(seq, "vidmm-{what}:\t{count}\n");
    }
}
