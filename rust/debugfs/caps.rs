// SPDX-License-Identifier: GPL-2.0

//! `caps`: what an adapter consists of, as its backend has said.

use kernel::fmt;

use crate::object::adapter::{
    Adapter,
    NodeKind,
    SegmentKind, //
};

use super::write_or_dash;

pub(super) fn show(adapter: &Adapter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let capabilities = adapter.backend().capabilities();
    write!(
        f,
        "adapter={} patch_slots={} sources={} paging_buffer={} paging_node=",
        adapter.id(),
        capabilities.patch_slots,
        capabilities.sources,
        capabilities.paging_buffer_bytes,
    )?;
    let paging_node = capabilities.paging_node.map(|node| u64::from(node.0));
    write_or_dash(f, paging_node)?;
    f.write_str("\n")?;
    for segment in &capabilities.segments {
        writeln!(
            f,
            "segment={} kind={} base={:#x} size={} page={} flags={:#x} commit_limit={} \
             cpu_window={} contiguous={}",
            segment.id.get(),
            segment_word(segment.kind),
            segment.base,
            segment.bytes,
            segment.page_bytes,
            segment.flags.bits(),
            segment.commit_limit,
            segment.cpu_window,
            segment.contiguous,
        )?;
    }
    for node in &capabilities.nodes {
        write!(
            f,
            "node={} kind={} modes={:#x} flags={:#x} timeout_ms={} max_dma_bytes={} \
             max_allocs={} max_patches={} max_points={} companion=",
            node.ordinal.0,
            node_word(node.kind),
            node.modes.bits(),
            node.flags.bits(),
            node.timeout_ms,
            node.limits.dma_bytes,
            node.limits.allocations,
            node.limits.patches,
            node.limits.points,
        )?;
        write_or_dash(f, node.companion.map(|node| u64::from(node.0)))?;
        f.write_str("\n")?;
    }
    Ok(())
}

/// Returns the word for a kind of segment.
pub(super) fn segment_word(kind: SegmentKind) -> &'static str {
    match kind {
        SegmentKind::Memory => "memory",
        SegmentKind::Aperture => "aperture",
    }
}

fn node_word(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Render => "render",
        NodeKind::Copy => "copy",
        NodeKind::Paging => "paging",
        NodeKind::Companion => "companion",
    }
}
