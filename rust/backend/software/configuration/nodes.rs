// SPDX-License-Identifier: GPL-2.0

//! The list of nodes: `kind[:virtual|physical]`, with commas between.

use kernel::prelude::*;

use crate::{
    backend::capabilities::{
        Limits,
        Mode,
        Modes,
        Node,
        NodeFlag,
        NodeFlags,
        NodeKind, //
    },
    units::NodeOrdinal, //
};

/// The most nodes an adapter has.
const MOST_NODES: usize = 32;

/// The longest lists of the software engine.
const LIMITS: Limits = Limits {
    dma_bytes: 32 << 20,
    allocations: 1 << 16,
    patches: 1 << 20,
    points: 1 << 14,
};

/// What all nodes have in common.
pub(super) struct Properties {
    /// How a node that does not say it names memory.
    pub(super) default_modes: Modes,
    /// Whether registers survive other buffers.
    pub(super) saves_context: bool,
    /// Whether work gives way between two portions.
    pub(super) preemptible: bool,
    /// Time limit of one portion.
    pub(super) timeout_ms: u32,
}

/// The modes of a node that works with physical addresses.
pub(super) fn physical() -> Modes {
    Mode::PatchedList | Mode::PatchedExplicit
}

/// The modes of a node that works with virtual addresses.
pub(super) fn translating() -> Modes {
    Mode::Virtual.into()
}

/// Reads one element of the list.
fn node(text: &str, ordinal: NodeOrdinal, properties: &Properties) -> Result<Node> {
    let (kind, modes) = match text.split_once(':') {
        Some((kind, "virtual")) => (kind, Some(translating())),
        Some((kind, "physical")) => (kind, Some(physical())),
        Some(_) => return Err(EINVAL),
        None => (text, None),
    };
    let (kind, client) = match kind {
        "render" => (NodeKind::Render, true),
        "copy" => (NodeKind::Copy, true),
        "paging" => (NodeKind::Paging, false),
        "companion" => (NodeKind::Companion, false),
        _ => return Err(EINVAL),
    };
    let modes = match (client, modes) {
        (true, modes) => modes.unwrap_or(properties.default_modes),
        (false, None) => Modes::default(),
        (false, Some(_)) => return Err(EINVAL),
    };
    let mut flags: NodeFlags = NodeFlag::Fence64Bit.into();
    if client && properties.saves_context {
        flags |= NodeFlag::SavesContext;
    }
    if client && properties.preemptible {
        flags |= NodeFlag::Preemptible;
    }
    if modes.contains(Mode::PatchedList) {
        flags |= NodeFlag::Split;
    }
    Ok(Node {
        ordinal,
        kind,
        modes,
        flags,
        companion: None,
        timeout_ms: properties.timeout_ms,
        limits: LIMITS,
    })
}

/// Reads the list.
///
/// # Errors
///
/// - `EINVAL`: it breaks a rule.
/// - `ENOMEM`: no memory.
pub(super) fn read(text: &str, properties: &Properties) -> Result<KVec<Node>> {
    let mut nodes = KVec::new();
    for (ordinal, element) in (0..).zip(text.split(',')) {
        if nodes.len() == MOST_NODES {
            return Err(EINVAL);
        }
        let node = node(element, NodeOrdinal(ordinal), properties)?;
        nodes.push(node, GFP_KERNEL)?;
    }
    Ok(nodes)
}

/// Returns the first node of this kind.
pub(super) fn first(nodes: &[Node], kind: NodeKind) -> Option<NodeOrdinal> {
    nodes
        .iter()
        .find(|node| node.kind == kind)
        .map(|node| node.ordinal)
}
