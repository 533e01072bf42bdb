// SPDX-License-Identifier: GPL-2.0

//! What every backend that executes must pass (BCK-1, BCK-4, BCK-9).
//!
//! A check gets a backend of the shape that [`shape`] describes, freshly made, and answers whether it
//! did the right thing. It knows the trait and the command set, nothing of the backend's inside; memory
//! it looks at by page frame.

mod addresses;
mod bench;
mod commands;
mod mapping;
mod memory;
mod model;
mod order;
mod space;
mod stream;

use kernel::prelude::*;

use super::Backend;
use crate::{
    abstractions::params::Parameters,
    units::{
        NodeOrdinal,
        Place,
        SegmentId, //
    }, //
};

pub(crate) use self::{
    addresses::{
        commands_are_fetched,
        flush_reaches_busy_nodes,
        invalid_translations_do_not_last,
        large_pages_translate,
        lookups_are_counted,
        page_states_are_kept,
        translations_last_until_flush,
        virtual_operations_move_content,
        wrong_space_is_an_error, //
    },
    commands::{
        grants_are_kept,
        outside_is_an_error,
        portions_match_whole,
        rectangles_match_model,
        registers_are_lost,
        values_are_right, //
    },
    mapping::mappings_match_model,
    memory::{
        aperture_shows_pages,
        discard_spares_neighbours,
        fill_writes_runs_only,
        full_buffers_are_continued,
        ignored_operation_has_no_effect,
        system_memory_is_reached,
        transfer_moves_content,
        window_shows_pages, //
    },
    order::{
        lost_completion_needs_stop,
        node_keeps_order,
        nodes_run_at_once,
        shut_down_gives_back_all,
        stop_ends_work, //
    }, //
};

/// The shape of a backend to be checked: two memory segments of different page sizes, an aperture, two
/// nodes for clients around the paging node.
pub(crate) fn shape() -> Parameters {
    Parameters {
        segments: Some(c"memory:1M:visible,memory:1M:page=64K:window=4,aperture:1M"),
        nodes: Some(c"render:physical,paging,copy:physical"),
        levels: Some(0),
        save_restore: Some(true),
        self_check: Some(true),
        ..Parameters::default()
    }
}

/// The shape of a backend whose nodes work with virtual addresses: the same, with page tables of two
/// levels.
pub(crate) fn virtual_shape() -> Parameters {
    Parameters {
        nodes: Some(c"render:virtual,paging,copy:virtual"),
        levels: Some(2),
        ..shape()
    }
}

/// The first node for clients.
const RENDER: NodeOrdinal = NodeOrdinal(0);
/// The paging node.
const PAGING: NodeOrdinal = NodeOrdinal(1);
/// The other node for clients.
const COPY: NodeOrdinal = NodeOrdinal(2);

/// Bytes of a segment.
const SEGMENT: u64 = 1 << 20;

/// A check passed, did not, or could not be made.
pub(crate) type Verdict = Result<bool>;

/// Returns the place at `offset` in the segment with this number.
fn place(segment: u32, offset: u64) -> Place {
    Place::new(SegmentId::new(segment).unwrap_or(SegmentId::SYSTEM), offset)
}

/// What [`shape`] asks for is what the backend says about itself.
pub(crate) fn capabilities_match_shape(backend: &dyn Backend) -> Verdict {
    let capabilities = backend.capabilities();
    Ok(capabilities.segments.len() == 3
        && capabilities.nodes.len() == 3
        && capabilities.paging_node == Some(PAGING)
        && capabilities.aperture().map(|segment| segment.id) == SegmentId::new(3)
        && backend.frames(place(1, 0)).is_some()
        && backend.frames(place(1, SEGMENT)).is_none()
        && backend.frames(place(3, 0)).is_none())
}
