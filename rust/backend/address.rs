// SPDX-License-Identifier: GPL-2.0

//! Physical addresses as packets hold them: a segment in the highest byte, an offset below.

use super::Patched;
use crate::{
    uapi::abi::engine as abi,
    units::{
        Place,
        SegmentId, //
    }, //
};

/// Returns the 64-bit operand with these halves.
pub(super) const fn wide(low: u32, high: u32) -> u64 {
    // CAST: widening; `From` is not const.
    low as u64 | (high as u64) << 32
}

/// Returns the place that a physical address names, or [`None`] if no segment can have its id.
pub(super) fn place(address: u64) -> Option<Place> {
    // CAST: eight bits.
    let segment = SegmentId::new((address >> abi::ADDRESS_SEGMENT_SHIFT) as u32)?;
    Some(Place::new(segment, address & abi::ADDRESS_OFFSET_MASK))
}

/// Returns the physical address of a place.
pub(super) fn address(place: Place) -> u64 {
    u64::from(place.segment.get()) << abi::ADDRESS_SEGMENT_SHIFT
        | place.offset & abi::ADDRESS_OFFSET_MASK
}

/// Lets the 64-bit operand at `dword` name `place`; writes only what differs.
#[inline]
pub(crate) fn patch(commands: &mut [u32], dword: u32, place: Place) -> Patched {
    // CAST: `usize` has 64 bits wherever this driver runs.
    let at = dword as usize;
    let wanted = address(place);
    match commands.get_mut(at..at.saturating_add(2)) {
        Some([low, high]) if wide(*low, *high) != wanted => {
            // CAST: the low half.
            *low = wanted as u32;
            // CAST: the high half.
            *high = (wanted >> 32) as u32;
            Patched::Written
        }
        _ => Patched::Unchanged,
    }
}
