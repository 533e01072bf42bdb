// SPDX-License-Identifier: GPL-2.0

//! Random numbers that a seed determines: SplitMix64.

use std::ops::Range;

/// A generator.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Begins the sequence of `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Begins a sequence of its own for part number `part`.
    pub(crate) fn of_part(seed: u64, part: u64) -> Self {
        let start = Self::new(seed ^ part.wrapping_mul(0xd1b5_4a32_d192_ed03)).next();
        Self::new(start)
    }

    /// Returns the next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number of `range`, or its start if it is empty.
    pub(crate) fn within(&mut self, range: Range<i32>) -> i32 {
        let width = i64::from(range.end) - i64::from(range.start);
        let steps = match u64::try_from(width) {
            Ok(width @ 1..) => self.next() % width,
            _ => 0,
        };
        // CAST: less than the width of a range of `i32`, so that the sum is inside the range.
        (i64::from(range.start) + steps as i64) as i32
    }

    /// Returns an element of a list.
    pub(crate) fn pick<T: Copy, const LENGTH: usize>(&mut self, list: &[T; LENGTH]) -> T {
        // CAST: below the length of an array.
        list[(self.next() % LENGTH as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_is_that_of_splitmix64() {
        let mut random = Random::new(1_234_567);

        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_stay_within_their_range() {
        let mut random = Random::new(1);

        assert!((0..1000).all(|_| (-3..4).contains(&random.within(-3..4))));
        assert_eq!(random.within(5..5), 5);
    }
}
