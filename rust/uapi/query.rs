// SPDX-License-Identifier: GPL-2.0

//! QUERY: what the adapter is and can do, as records that may grow.

use core::mem::size_of;

use kernel::prelude::*;

use crate::{
    abstractions::{
        bytes::{
            self,
            Plain, //
        },
        capability,
        clock,
        pages, //
    },
    object::{
        adapter::{
            Adapter,
            NodeKind,
            SegmentKind, //
        },
        client::Sum,
        events,
    },
    units::{
        NodeOrdinal,
        PageSize,
        SegmentId,
        PAGE_BYTES, //
    },
};

use super::{
    abi::{
        self,
        InfoAdapter,
        InfoClient,
        InfoClock,
        InfoIoctl,
        InfoLimits,
        InfoNode,
        InfoSegment,
        Query, //
    },
    calls,
    dispatch::{
        argument,
        Answered,
        Line, //
    },
    file::File,
    handle,
    list,
    scanout, //
};

/// Features that every adapter has.
const FEATURES: u64 = abi::FEATURE_PATCHED
    | abi::FEATURE_SPLIT
    | abi::FEATURE_BUDGET_EVENTS
    | abi::FEATURE_OFFER
    | abi::FEATURE_ACCESSED_PHYSICALLY
    | abi::FEATURE_SCANOUT
    | abi::FEATURE_RECOVERY
    | abi::FEATURE_STATUS_PAGE
    | abi::FEATURE_SWAPPABLE;
/// Ticks of the clock of the software engine, which is CLOCK_MONOTONIC.
const GPU_HZ: u64 = 1_000_000_000;

argument! {
    Query:
    flags flags;
    zero;
    results;
    report
}

/// Copies a record to the caller, as much of it as there is room for, and returns its size.
///
/// # Errors
///
/// - `EOPNOTSUPP`: no such record.
/// - `EINVAL`: an index where there is none.
/// - `ENOENT`: an index out of range.
/// - `EFAULT`: the record cannot be written.
pub(super) fn query(file: &File, argument: &mut Query) -> Result<Answered> {
    match argument.query {
        abi::QUERY_ADAPTER => answer_one(argument, || adapter(file)),
        abi::QUERY_SEGMENT => answer(file, argument, segment),
        abi::QUERY_NODE => answer(file, argument, node),
        abi::QUERY_IOCTL => answer(file, argument, ioctl),
        abi::QUERY_LIMITS => answer_one(argument, limits),
        abi::QUERY_CLOCK => answer_one(argument, clock),
        abi::QUERY_SOURCE => answer(file, argument, scanout::describe),
        abi::QUERY_CLIENT => answer_one(argument, || client(file)),
        _ => Err(EOPNOTSUPP),
    }
}

/// Answers with the record of something that there is only one of.
fn answer_one<T: Plain>(argument: &mut Query, record: impl FnOnce() -> T) -> Result<Answered> {
    if argument.index != 0 {
        return Err(EINVAL);
    }
    deliver(argument, &record())
}

/// Answers with the record of one of several.
fn answer<T: Plain>(
    file: &File,
    argument: &mut Query,
    record: impl FnOnce(&File, u32) -> Option<T>,
) -> Result<Answered> {
    let record = record(file, argument.index).ok_or(ENOENT)?;
    deliver(argument, &record)
}

fn deliver<T: Plain>(argument: &mut Query, record: &T) -> Result<Answered> {
    if argument.size != 0 {
        bytes::copy_record_out(argument.data, argument.size, record)?;
    }
    // CAST: records are far below 4 GiB.
    argument.size = size_of::<T>() as u32;
    Ok(Answered)
}

/// Returns the number of elements of a list of capabilities.
fn count<T>(list: &[T]) -> u32 {
    // CAST: at most 31 segments, and nodes are as few.
    list.len() as u32
}

fn adapter(file: &File) -> InfoAdapter {
    let adapter = file.adapter();
    let capabilities = adapter.backend().capabilities();
    // CAST: a small constant.
    let large = PageSize::Large.bytes() as u32;
    let (large_page_size, addresses) = match &capabilities.translation {
        Some(translation) => (large, translation.addresses.clone()),
        None => (0, 0..0),
    };
    InfoAdapter {
        uapi_major: abi::UAPI_MAJOR,
        uapi_minor: abi::UAPI_MINOR,
        adapter_id: adapter.id(),
        reset_count: adapter.watchdog().adapter_resets(),
        state: abi::ADAPTER_STATE_RUNNING,
        // CAST: a small constant.
        page_size: PAGE_BYTES as u32,
        large_page_size,
        segments: count(&capabilities.segments),
        nodes: count(&capabilities.nodes),
        sources: capabilities.sources,
        patch_slots: capabilities.patch_slots,
        va_start: addresses.start,
        va_end: addresses.end,
        features: features(adapter),
        features_hi: 0,
    }
}

/// Returns the features that are there on this adapter.
fn features(adapter: &Adapter) -> u64 {
    let window = match adapter.host_apertures() {
        [] => 0,
        _ => abi::FEATURE_HOST_APERTURE,
    };
    let translation = match adapter.backend().capabilities().translation {
        Some(_) => abi::FEATURE_VIRTUAL,
        None => 0,
    };
    FEATURES | window | translation
}

fn segment(file: &File, index: u32) -> Option<InfoSegment> {
    let id = SegmentId::new(index)?;
    let adapter = file.adapter();
    let own = file.client().usage().get(Sum::Resident(id));
    let mut record = if id == SegmentId::SYSTEM {
        system_segment()
    } else {
        let segment = adapter.backend().capabilities().segment(id)?;
        InfoSegment {
            id: id.get(),
            kind: match segment.kind {
                SegmentKind::Memory => abi::SEGMENT_KIND_MEMORY,
                SegmentKind::Aperture => abi::SEGMENT_KIND_APERTURE,
            },
            flags: segment.flags.bits(),
            group: match segment.kind {
                SegmentKind::Memory => abi::GROUP_LOCAL,
                SegmentKind::Aperture => abi::GROUP_NON_LOCAL,
            },
            base: segment.base,
            size: segment.bytes,
            commit_limit: segment.commit_limit,
            cpu_window: segment.cpu_window,
            page_size: segment.page_bytes,
            contiguous: segment.contiguous,
            ..InfoSegment::default()
        }
    };
    record.own = own;
    if capability::perfmon() {
        let residency = adapter.residency().lock();
        (record.used, record.largest_free) = match residency.segment(id) {
            Some(segment) => (segment.bytes_used(), segment.largest_free()),
            None => (residency.system_bytes, 0),
        };
    }
    Some(record)
}

fn system_segment() -> InfoSegment {
    let bytes = pages::system_bytes();
    InfoSegment {
        id: abi::SEGMENT_ID_SYSTEM,
        kind: abi::SEGMENT_KIND_SYSTEM,
        flags: abi::SEGMENT_CPU_VISIBLE | abi::SEGMENT_CACHE_COHERENT,
        group: abi::GROUP_NON_LOCAL,
        size: bytes,
        commit_limit: bytes,
        cpu_window: bytes,
        page_size: PAGE_BYTES,
        ..InfoSegment::default()
    }
}

fn node(file: &File, index: u32) -> Option<InfoNode> {
    let capabilities = file.adapter().backend().capabilities();
    let node = capabilities.node(NodeOrdinal(index))?;
    Some(InfoNode {
        ordinal: node.ordinal.0,
        kind: match node.kind {
            NodeKind::Render => abi::NODE_KIND_RENDER,
            NodeKind::Copy => abi::NODE_KIND_COPY,
            NodeKind::Paging | NodeKind::Companion => abi::NODE_KIND_PAGING,
        },
        modes: node.modes.bits(),
        flags: node.flags.bits(),
        companion_node: node.companion.map_or(abi::NODE_NONE, |node| node.0),
        timeout_ms: node.timeout_ms,
        max_dma_bytes: node.limits.dma_bytes,
        max_allocs: node.limits.allocations,
        max_patches: node.limits.patches,
        max_points: node.limits.points,
    })
}

fn ioctl(_file: &File, index: u32) -> Option<InfoIoctl> {
    let number = u8::try_from(index).ok()?;
    match calls::line(number) {
        Line::Unknown => None,
        Line::Missing => Some(InfoIoctl {
            nr: index,
            ..InfoIoctl::default()
        }),
        Line::Call(call) => Some(InfoIoctl {
            nr: index,
            supported: 1,
            // CAST: arguments are far below 4 GiB.
            size_first: call.size_first as u32,
            // CAST: as above.
            size_known: call.size_known as u32,
            flags_known: u64::from(call.flags_known),
        }),
    }
}

fn limits() -> InfoLimits {
    InfoLimits {
        handles_per_list: list::HANDLES,
        allocs_per_create: list::CREATIONS,
        rename_max: 1024,
        va_ops: 65536,
        va_updates_queued: 128,
        submissions_remembered: 256,
        events_queued: events::CAPACITY,
        objects: handle::MAX_OBJECTS,
    }
}

/// The clock of the software engine is the clock of the CPU, so the two are read at one moment.
fn clock() -> InfoClock {
    let now = clock::now_ns();
    InfoClock {
        cpu_ns: now,
        gpu_ticks: now,
        gpu_hz: GPU_HZ,
        uncertainty_ns: 0,
    }
}

fn client(file: &File) -> InfoClient {
    let usage = file.client().usage();
    InfoClient {
        client_id: file.client().id(),
        evictions: usage.get(Sum::Evictions),
        paged_in: usage.get(Sum::PagedIn),
        paged_out: usage.get(Sum::PagedOut),
        discarded: usage.get(Sum::Discarded),
        backing: usage.get(Sum::Backing),
        ..InfoClient::default()
    }
}
