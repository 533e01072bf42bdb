// SPDX-License-Identifier: GPL-2.0

//! The shape of the software engine: module parameters become capabilities, or an error.
//!
//! A [`profile`] chooses all values and each parameter overrides one of them. What comes out is
//! checked against the rules of registration, so that behind this point every adapter is a sound one:
//! one that breaks a rule never appears.

mod nodes;
mod profile;
mod segments;

#[cfg(CONFIG_KUNIT)]
mod tests;

use kernel::prelude::*;

use self::profile::Profile;
use super::{
    page_table,
    paging::SMALLEST_BUFFER, //
};
use crate::{
    abstractions::params::Parameters,
    backend::{
        capabilities::{
            Capabilities,
            Node,
            NodeKind,
            PictureLimits,
            Segment,
            SegmentKind,
            Translation,
            UpdateMode, //
        },
        page_table::ENTRY_BYTES, //
    },
    units::{
        NodeOrdinal,
        SegmentId,
        PAGE_BYTES, //
    }, //
};

/// The most binding slots that a patched buffer can have (BCK-2).
const MOST_SLOTS: u32 = 1 << 24;

/// The most display sources.
const MOST_SOURCES: u32 = 16;

/// What the display sources can show: they only keep books, so this is what displays can.
const PICTURE: PictureLimits = PictureLimits {
    pitch_align: 64,
    width: 16384,
    height: 16384,
};

/// The largest paging buffer.
const LARGEST_PAGING_BUFFER: u64 = 1 << 20;

/// The first address that clients can use.
const FIRST_ADDRESS: u64 = 64 << 10;

/// End of the addresses with two page-table levels: what the shortest root covers, as roots of clients keep
/// their length.
const END_OF_TWO_LEVELS: u64 = 1 << 30;

/// The end of the space of four levels.
const END_OF_FOUR_LEVELS: u64 = 256 << 40;

/// How many translations a node remembers.
const TLB_ENTRIES: u32 = 1024;

/// The most that it can be told to remember.
const MOST_TLB_ENTRIES: u32 = 1 << 20;

/// The smallest scratch area: a source and a destination of one large page each.
const SMALLEST_SCRATCH: u64 = 2 * 64 * 1024;

/// What the software engine is made from.
pub(super) struct Configuration {
    /// What it says about itself.
    pub(super) capabilities: Capabilities,
    /// Seed of the waiting times before packets.
    pub(super) seed: u64,
    /// Longest waiting time before a packet.
    pub(super) delay_us: u32,
    /// How many translations each node remembers.
    pub(super) tlb_entries: u32,
    /// Whether accesses are checked against what portions were given, and memory is poisoned.
    pub(super) self_check: SelfCheck,
}

/// Whether the engine looks for mistakes of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SelfCheck {
    /// It does not.
    Off,
    /// It does.
    On,
}

impl Configuration {
    /// Returns the shape that `parameters` ask for.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it breaks a rule of registration.
    /// - `ENOMEM`: no memory.
    pub(super) fn new(parameters: &Parameters) -> Result<Self> {
        let profile = Profile::named(text(parameters.profile)?).ok_or(EINVAL)?;
        let segments = segments::read(text(parameters.segments)?.unwrap_or(profile.segments))?;
        let translation = translation(parameters, profile, &segments)?;
        let nodes = nodes(parameters, profile, translation.is_some())?;
        let paging_node = paging_node(&nodes)?;
        check_paging(paging_node, &segments, translation.as_ref())?;

        let self_check = match parameters.self_check {
            Some(true) => SelfCheck::On,
            Some(false) | None => SelfCheck::Off,
        };
        Ok(Self {
            capabilities: Capabilities {
                patch_slots: patch_slots(parameters, &nodes)?,
                paging_buffer_bytes: paging_buffer(parameters)?,
                picture: PICTURE,
                sources: at_most(parameters.sources.unwrap_or(2), MOST_SOURCES)?,
                segments,
                nodes,
                paging_node,
                translation,
            },
            seed: parameters.seed.unwrap_or(0),
            delay_us: parameters.delay_us.unwrap_or(0),
            tlb_entries: tlb_entries(parameters)?,
            self_check,
        })
    }
}

/// Returns the text of a string parameter.
fn text(parameter: Option<&'static CStr>) -> Result<Option<&'static str>> {
    parameter
        .map(|text| text.to_str().map_err(|_| EINVAL))
        .transpose()
}

/// Returns the number that `text` is, decimal or `0x`.
fn number(text: &str) -> Result<u64> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // A sign is no digit.
    if digits.starts_with('+') {
        return Err(EINVAL);
    }
    u64::from_str_radix(digits, radix).map_err(|_| EINVAL)
}

/// Returns the number of bytes that `text` is: a number, or one with K, M or G behind it.
fn size(text: &str) -> Result<u64> {
    let units = [('K', 1 << 10), ('M', 1 << 20), ('G', 1 << 30)];
    for (letter, unit) in units {
        if let Some(count) = text.strip_suffix(letter) {
            return number(count)?.checked_mul(unit).ok_or(EINVAL);
        }
    }
    number(text)
}

/// Returns `value` unless it is more than `most`.
fn at_most(value: u32, most: u32) -> Result<u32> {
    if value <= most {
        Ok(value)
    } else {
        Err(EINVAL)
    }
}

/// Returns the GPU MMU, if there is one.
fn translation(
    parameters: &Parameters,
    profile: &Profile,
    segments: &[Segment],
) -> Result<Option<Translation>> {
    let levels = match parameters.levels.unwrap_or(profile.levels) {
        0 => return Ok(None),
        levels @ (2 | 4) => levels,
        _ => return Err(EINVAL),
    };
    let update_mode = match parameters.update_mode.unwrap_or(profile.update_mode) {
        0 => UpdateMode::GpuVirtual,
        1 => UpdateMode::GpuPhysical,
        2 => UpdateMode::CpuVirtual,
        _ => return Err(EINVAL),
    };
    let table = |number: Option<u32>| {
        let id = SegmentId::new(number.unwrap_or(profile.tables)).ok_or(EINVAL)?;
        let memory = segments
            .iter()
            .any(|segment| segment.id == id && segment.kind == SegmentKind::Memory);
        match (id, update_mode) {
            (SegmentId::SYSTEM, _) => Ok(id),
            (_, UpdateMode::GpuVirtual | UpdateMode::GpuPhysical) if memory => Ok(id),
            _ => Err(EINVAL),
        }
    };
    let scratch_bytes = parameters.scratch.unwrap_or(profile.scratch);
    let reserved_bytes = parameters.reserve_va.unwrap_or(0);
    let small = scratch_bytes < SMALLEST_SCRATCH && update_mode != UpdateMode::CpuVirtual;
    if small || scratch_bytes % PAGE_BYTES != 0 || reserved_bytes % PAGE_BYTES != 0 {
        return Err(EINVAL);
    }
    let (addresses, root_entries) = match levels {
        2 => (FIRST_ADDRESS..END_OF_TWO_LEVELS, page_table::RESIZABLE_ROOT),
        _ => (FIRST_ADDRESS..END_OF_FOUR_LEVELS, page_table::FIXED_ROOT),
    };
    // Tables in system memory are one page each, also when a root has grown (VA-11).
    let client_tables = table(parameters.client_tables)?;
    let longest = u64::from(*root_entries.end()) * ENTRY_BYTES;
    if client_tables == SegmentId::SYSTEM && longest > PAGE_BYTES {
        return Err(EINVAL);
    }
    Ok(Some(Translation {
        addresses,
        root_entries,
        zero_pages: parameters.zero_pages.unwrap_or(true),
        holds_invalid: parameters.tlb_holds_invalid.unwrap_or(true),
        driver_bits: page_table::DRIVER_BITS,
        levels,
        update_mode,
        client_tables,
        paging_tables: table(parameters.paging_tables)?,
        scratch_bytes,
        reserved_bytes,
        reserved_at: None,
    }))
}

/// Returns how many translations a node remembers.
fn tlb_entries(parameters: &Parameters) -> Result<u32> {
    match parameters.tlb_entries.unwrap_or(TLB_ENTRIES) {
        0 => Err(EINVAL),
        entries => at_most(entries, MOST_TLB_ENTRIES),
    }
}

/// Returns the nodes; one that works with virtual addresses needs an MMU (BCK-6).
fn nodes(parameters: &Parameters, profile: &Profile, has_translation: bool) -> Result<KVec<Node>> {
    let list = text(parameters.nodes)?;
    let timeout_ms = parameters.timeout_ms.unwrap_or(2000);
    if timeout_ms == 0 {
        return Err(EINVAL);
    }
    let properties = nodes::Properties {
        default_modes: if has_translation {
            nodes::translating()
        } else {
            nodes::physical()
        },
        saves_context: parameters.save_restore.unwrap_or(profile.saves_context),
        preemptible: parameters.preemption.unwrap_or(profile.saves_context),
        timeout_ms,
    };
    let mut nodes = nodes::read(list.unwrap_or(profile.nodes), &properties)?;
    if !has_translation && nodes.iter().any(Node::is_virtual) {
        return Err(EINVAL);
    }

    // A list of its own comes without the companion of the profile. Whether the node is one that can
    // be a companion is found out when a context is created (TIL-10).
    let companion = match (parameters.companion, list) {
        (Some(ordinal), _) => Some(NodeOrdinal(ordinal)),
        (None, None) => profile.companion.map(NodeOrdinal),
        (None, Some(_)) => nodes::first(&nodes, NodeKind::Companion)
            .or_else(|| nodes::first(&nodes, NodeKind::Paging)),
    };
    for node in &mut nodes {
        node.companion = companion.filter(|_| node.is_virtual());
    }
    Ok(nodes)
}

/// Returns the paging node; there is at most one.
fn paging_node(nodes: &[Node]) -> Result<Option<NodeOrdinal>> {
    let mut paging = nodes
        .iter()
        .filter(|node| node.kind == NodeKind::Paging)
        .map(|node| node.ordinal);
    match (paging.next(), paging.next()) {
        (node, None) => Ok(node),
        _ => Err(EINVAL),
    }
}

/// Checks that whoever needs a paging node has one: memory segments, and page tables that the GPU
/// writes.
fn check_paging(
    paging_node: Option<NodeOrdinal>,
    segments: &[Segment],
    translation: Option<&Translation>,
) -> Result {
    let memory = segments
        .iter()
        .any(|segment| segment.kind == SegmentKind::Memory);
    let tables =
        translation.is_some_and(|translation| translation.update_mode != UpdateMode::CpuVirtual);
    if paging_node.is_none() && (memory || tables) {
        Err(EINVAL)
    } else {
        Ok(())
    }
}

/// Returns the number of binding slots; physical nodes need at least one (BCK-2).
fn patch_slots(parameters: &Parameters, nodes: &[Node]) -> Result<u32> {
    let slots = at_most(parameters.slots.unwrap_or(8), MOST_SLOTS)?;
    if slots == 0 && nodes.iter().any(Node::is_physical) {
        Err(EINVAL)
    } else {
        Ok(slots)
    }
}

/// Returns the length of a paging buffer.
fn paging_buffer(parameters: &Parameters) -> Result<usize> {
    let bytes = parameters.paging_buffer.unwrap_or(64 << 10);
    // CAST: a small constant.
    let smallest = SMALLEST_BUFFER as u64;
    if bytes % 8 == 0 && (smallest..=LARGEST_PAGING_BUFFER).contains(&bytes) {
        usize::try_from(bytes).map_err(|_| EINVAL)
    } else {
        Err(EINVAL)
    }
}
