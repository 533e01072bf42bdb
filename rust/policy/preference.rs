// SPDX-License-Identifier: GPL-2.0

//! Where an allocation would like to be.
//!
//! A client says in which segments an allocation may be (a mask of ids) and, in eight bytes,
//! which of them it wants most (SEG-30): least significant byte first, most wanted first, bits
//! 0 to 4 a segment id out of the set, bit 7 set if the allocation should be placed from the top.
//! A zero byte ends the list. Segments of the set that no byte names follow in ascending order.
//!
//! Nothing is silently ignored: whatever the eight bytes hold beyond that is refused.

use crate::units::SegmentId;

/// Bits of a preference byte that name the segment.
const ID_BITS: u8 = 0x1f;

/// Bit of a preference byte that asks for a place near the top.
const FROM_TOP: u8 = 0x80;

/// An end of a range of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The one with the lowest addresses.
    Low,
    /// The one with the highest addresses.
    High,
}

/// A segment to try, and the end of it at which to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The segment.
    pub segment: SegmentId,
    /// The end nearest to which to place.
    pub from: End,
}

/// A preference names a segment outside the set, or is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPreference;

/// Checks that `preferred` is well formed and names segments of `mask` only.
///
/// # Errors
///
/// [`BadPreference`] for an unused bit, an id outside `mask`, id 0 with bit 7, or anything behind
/// the byte that ends the list.
///
/// Requirement: SEG-11, SEG-30.
pub fn check_preference(preferred: u64, mask: u32) -> Result<(), BadPreference> {
    let bytes = preferred.to_le_bytes();
    let mut listed = bytes.iter();
    let named = listed.by_ref().take_while(|byte| **byte != 0);
    for byte in named {
        let id = byte & ID_BITS;
        let allowed = mask & 1_u32.wrapping_shl(id.into()) != 0;
        if byte & !(ID_BITS | FROM_TOP) != 0 || id == 0 || !allowed {
            return Err(BadPreference);
        }
    }
    if listed.any(|byte| *byte != 0) {
        return Err(BadPreference);
    }
    Ok(())
}

/// Returns the segments in the order in which to try them.
///
/// First those that `preferred` names, then the others of `mask` from the lowest id up. A segment
/// that is named twice is tried twice. Ids outside `mask` are left out.
///
/// Requirement: SEG-30.
pub fn order(preferred: u64, mask: u32) -> impl Iterator<Item = Choice> + Clone {
    // System memory is never a choice of its own: the aperture's bit means it (SEG-11).
    let mask = mask & !SegmentId::SYSTEM.bit();
    let named = preferred
        .to_le_bytes()
        .into_iter()
        .take_while(|byte| *byte != 0)
        .filter_map(|byte| choice(u32::from(byte & ID_BITS), end_of(byte)))
        .filter(move |choice| choice.segment.bit() & mask != 0);
    let rest = named
        .clone()
        .fold(mask, |rest, choice| rest & !choice.segment.bit());
    let others = (1..u32::BITS)
        .filter(move |id| rest & 1_u32.wrapping_shl(*id) != 0)
        .filter_map(|id| choice(id, End::Low));
    named.chain(others)
}

/// Returns the end that a preference byte asks for.
fn end_of(byte: u8) -> End {
    if byte & FROM_TOP != 0 {
        End::High
    } else {
        End::Low
    }
}

/// Returns the choice of segment `id`.
fn choice(id: u32, from: End) -> Option<Choice> {
    SegmentId::new(id).map(|segment| Choice { segment, from })
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_preference))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::End::{High, Low};
    use super::*;

    /// Returns whether segments are tried in the order of `expected`: id and end.
    fn order_is(preferred: u64, mask: u32, expected: &[(u32, End)]) -> bool {
        order(preferred, mask)
            .map(|choice| (choice.segment.get(), choice.from))
            .eq(expected.iter().copied())
    }

    #[test]
    fn no_preference_tries_ascending() {
        assert!(order_is(0, 0b1110, &[(1, Low), (2, Low), (3, Low)]));
        assert!(order_is(0, 0x8000_0002, &[(1, Low), (31, Low)]));
    }

    #[test]
    fn preferred_come_first() {
        assert!(order_is(0x0102, 0b1110, &[(2, Low), (1, Low), (3, Low)]));
        assert!(order_is(0x83, 0b1110, &[(3, High), (1, Low), (2, Low)]));
    }

    #[test]
    fn segment_zero_is_never_tried() {
        assert!(order_is(0, 0b11, &[(1, Low)]));
    }

    #[test]
    fn good_preferences_are_accepted() {
        assert_eq!(check_preference(0, 0b1110), Ok(()));
        assert_eq!(check_preference(0x8302_0183, 0b1110), Ok(()));
        assert_eq!(check_preference(0x0101_0101_0101_0101, 0b10), Ok(()));
    }

    #[test]
    fn segment_outside_the_set_is_refused() {
        assert_eq!(check_preference(0x04, 0b1110), Err(BadPreference));
        assert_eq!(check_preference(0x0402, 0b1110), Err(BadPreference));
    }

    #[test]
    fn segment_zero_that_does_not_end_the_list_is_refused() {
        assert_eq!(check_preference(0x80, 0b1111), Err(BadPreference));
        assert_eq!(check_preference(0x0002_0001, 0b1110), Err(BadPreference));
    }

    #[test]
    fn unused_bits_are_refused() {
        assert_eq!(check_preference(0x21, 0b10), Err(BadPreference));
        assert_eq!(check_preference(0x41, 0b10), Err(BadPreference));
    }
}
