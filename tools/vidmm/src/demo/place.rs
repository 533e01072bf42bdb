// SPDX-License-Identifier: GPL-2.0

//! Where a scene is painted: a segment that is too small for it, and a node that takes patch lists.

use libvidmm::{
    abi,
    context::Mode,
    Adapter, //
};

use crate::failure::Failure;

/// A segment and a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) segment: abi::InfoSegment,
    pub(crate) node: abi::InfoNode,
    /// Bytes of the segment in which allocations with physical addresses can be.
    pub(crate) capacity: u64,
}

impl Place {
    /// Finds a node, and the segment that is wanted: by its id, or the memory segment with the most
    /// room, or the aperture of an adapter without memory segments.
    pub(crate) fn find(adapter: &Adapter, wanted: Option<u32>) -> Result<Self, Failure> {
        let nodes = adapter.nodes()?;
        let node = nodes.iter().find(|node| Mode::PatchedList.is_offered(node));
        let node = node.ok_or_else(|| {
            Failure("no node of this adapter takes command buffers with patch lists".to_owned())
        })?;
        let segments = adapter.segments()?;
        let segment = choose(&segments, wanted).map_err(Failure)?;
        Ok(Self {
            segment: *segment,
            node: *node,
            capacity: capacity(segment),
        })
    }

    /// Says what the segment is: `a 16 MiB segment`.
    pub(crate) fn noun(&self) -> &'static str {
        match self.segment.kind {
            abi::SEGMENT_KIND_APERTURE => "aperture",
            _ => "segment",
        }
    }
}

/// Picks the wanted segment from a list, or says why there is none.
fn choose(segments: &[abi::InfoSegment], wanted: Option<u32>) -> Result<&abi::InfoSegment, String> {
    match wanted {
        Some(id) => {
            let segment = segments.iter().find(|segment| segment.id == id);
            let segment = segment.ok_or_else(|| format!("there is no segment {id}"))?;
            match capacity(segment) {
                0 => Err(format!(
                    "segment {id} has no room for allocations with physical addresses"
                )),
                _ => Ok(segment),
            }
        }
        None => {
            let rank = |segment: &&abi::InfoSegment| {
                let is_memory = segment.kind == abi::SEGMENT_KIND_MEMORY;
                (is_memory, capacity(segment))
            };
            let usable = segments.iter().filter(|segment| capacity(segment) > 0);
            let mut best: Option<&abi::InfoSegment> = None;
            for segment in usable {
                // The first of equals.
                if best.is_none_or(|best| rank(&segment) > rank(&best)) {
                    best = Some(segment);
                }
            }
            best.ok_or_else(|| {
                "no segment has room for allocations with physical addresses: boot with a larger \
                 contiguous area, for example cma=64M"
                    .to_owned()
            })
        }
    }
}

/// Returns the bytes of a segment in which allocations with physical addresses can be.
fn capacity(segment: &abi::InfoSegment) -> u64 {
    match segment.kind {
        abi::SEGMENT_KIND_MEMORY => segment.contiguous,
        abi::SEGMENT_KIND_APERTURE => segment.size.min(segment.commit_limit),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(id: u32, kind: u32, size: u64, contiguous: u64) -> abi::InfoSegment {
        abi::InfoSegment {
            id,
            kind,
            size,
            contiguous,
            commit_limit: size,
            ..Default::default()
        }
    }

    fn segments() -> [abi::InfoSegment; 4] {
        [
            segment(0, abi::SEGMENT_KIND_SYSTEM, 1 << 30, 0),
            segment(1, abi::SEGMENT_KIND_MEMORY, 16 << 20, 16 << 20),
            segment(2, abi::SEGMENT_KIND_MEMORY, 16 << 20, 4 << 20),
            segment(3, abi::SEGMENT_KIND_APERTURE, 64 << 20, 0),
        ]
    }

    #[test]
    fn memory_segment_with_the_most_room_is_preferred() {
        assert_eq!(choose(&segments(), None).map(|s| s.id), Ok(1));
    }

    #[test]
    fn aperture_is_taken_where_there_is_no_memory_segment() {
        let segments = [segments()[0], segments()[3]];
        assert_eq!(choose(&segments, None).map(|s| s.id), Ok(3));
    }

    #[test]
    fn wanted_segment_must_have_room() {
        assert_eq!(choose(&segments(), Some(2)).map(|s| s.id), Ok(2));
        assert!(choose(&segments(), Some(0)).is_err());
        assert!(choose(&segments(), Some(9)).is_err());
    }
}
