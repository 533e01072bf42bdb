// SPDX-License-Identifier: GPL-2.0

//! Is something listed twice?
//!
//! An allocation list may name 65536 allocations, in an order that a client chooses, and must not
//! name the same instance of the same allocation twice. A radix sort brings equal ones together in
//! linear time whatever the client does: it sorts the elements by one digit after the other, the
//! least significant first. Object numbers of one client lie close together, so most digits are the
//! same for all elements and are passed over.

use super::patch_list::Listed;
use super::resource_table::to_index;

/// Bits per digit.
const DIGIT_BITS: u32 = 6;

/// Values of a digit.
const DIGIT_VALUES: usize = 1 << DIGIT_BITS;

/// Digits of an instance number.
const INSTANCE_DIGITS: u32 = u32::BITS.div_ceil(DIGIT_BITS);

/// Digits of an object number.
const OBJECT_DIGITS: u32 = u64::BITS.div_ceil(DIGIT_BITS);

/// The instance of an allocation, or the bits in which several differ.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Key {
    /// Object number.
    object: u64,
    /// Instance number.
    instance: u32,
}

impl Key {
    /// Returns the key of an element.
    fn of(listed: &Listed) -> Self {
        Self {
            object: listed.object,
            instance: listed.instance,
        }
    }

    /// Returns a digit as an index; digit 0 is the least significant one.
    fn digit(self, number: u32) -> usize {
        let (bits, digit) = match number.checked_sub(INSTANCE_DIGITS) {
            None => (self.instance.into(), number),
            Some(digit) => (self.object, digit),
        };
        let shifted = bits
            .checked_shr(digit.saturating_mul(DIGIT_BITS))
            .unwrap_or(0);
        // CAST: `usize` has 64 bits wherever this driver runs.
        shifted as usize % DIGIT_VALUES
    }
}

/// Returns the second one of two equal elements; those without allocation are left out.
///
/// Linear in the number of elements. `order` has two places for each of them.
pub(super) fn find_duplicate(listed: &[Listed], order: &mut [u32]) -> Option<u32> {
    let key = |element: u32| {
        listed
            .get(to_index(element))
            .map_or(Key::default(), Key::of)
    };
    let (from, to) = order.split_at_mut_checked(listed.len())?;
    let count = gather(listed, from);
    let (mut from, mut to) = (from.get_mut(..count)?, to.get_mut(..count)?);
    let differing = differing_bits(from, key);
    for number in 0..INSTANCE_DIGITS.saturating_add(OBJECT_DIGITS) {
        if differing.digit(number) != 0 {
            sort_by(from, to, |element| key(element).digit(number));
            core::mem::swap(&mut from, &mut to);
        }
    }
    let mut pairs = from.iter().zip(from.iter().skip(1));
    let (_, second) = pairs.find(|(one, other)| key(**one) == key(**other))?;
    Some(*second)
}

/// Writes the indices of the elements that name an allocation; returns their number.
fn gather(listed: &[Listed], order: &mut [u32]) -> usize {
    let named = listed
        .iter()
        .zip(0..u32::MAX)
        .filter(|(listed, _)| listed.object != 0);
    let mut count: usize = 0;
    for (place, (_, element)) in order.iter_mut().zip(named) {
        *place = element;
        count = count.saturating_add(1);
    }
    count
}

/// Returns the bits in which the keys of the elements are not all the same.
fn differing_bits(order: &[u32], key: impl Fn(u32) -> Key) -> Key {
    let first = order
        .first()
        .map_or(Key::default(), |element| key(*element));
    let mut bits = Key::default();
    for element in order {
        let key = key(*element);
        bits.object |= key.object ^ first.object;
        bits.instance |= key.instance ^ first.instance;
    }
    bits
}

/// Sorts the elements in `from` by a digit and writes them to `to`; equal ones keep their order.
fn sort_by(from: &[u32], to: &mut [u32], digit: impl Fn(u32) -> usize) {
    let mut starts = [0_usize; DIGIT_VALUES];
    for element in from {
        if let Some(count) = starts.get_mut(digit(*element)) {
            *count = count.saturating_add(1);
        }
    }
    let mut sum: usize = 0;
    for start in &mut starts {
        let count = core::mem::replace(start, sum);
        sum = sum.saturating_add(count);
    }
    for element in from {
        let Some(start) = starts.get_mut(digit(*element)) else {
            continue;
        };
        if let Some(place) = to.get_mut(*start) {
            *place = *element;
        }
        *start = start.saturating_add(1);
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_duplicates))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    fn find<const N: usize>(keys: [(u64, u32); N]) -> Option<u32> {
        let listed = keys.map(|(object, instance)| Listed {
            object,
            instance,
            ..Listed::default()
        });
        find_duplicate(&listed, &mut [77; 16])
    }

    #[test]
    fn nothing_is_listed_twice() {
        assert_eq!(find([]), None);
        assert_eq!(find([(1, 0)]), None);
        assert_eq!(find([(5, 0), (5, 1), (6, 0)]), None);
        assert_eq!(find([(1, 2), (2, 1), (1 << 32, 2), (2 << 32, 1)]), None);
    }

    #[test]
    fn second_of_two_equal_is_found() {
        assert_eq!(find([(9, 1), (5, 1), (7, 1), (5, 1)]), Some(3));
        assert_eq!(find([(5, 1), (5, 1)]), Some(1));
        assert_eq!(find([(u64::MAX, 9), (1, 9), (u64::MAX, 9)]), Some(2));
        assert_eq!(find([(1, u32::MAX), (1, 0), (1, u32::MAX)]), Some(2));
    }

    #[test]
    fn elements_without_allocation_may_repeat() {
        assert_eq!(find([(0, 0), (3, 0), (0, 0), (0, 0)]), None);
        assert_eq!(find([(0, 0), (3, 0), (0, 0), (3, 0)]), Some(3));
    }
}
