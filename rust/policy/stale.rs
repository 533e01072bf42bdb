// SPDX-License-Identifier: GPL-2.0

//! Which addresses have entries that may not say what is mapped there.
//!
//! Whoever changes a space adds the range that has changed; whoever writes entries takes ranges out and
//! writes what is mapped there then. There is room for few ranges: when it is full, the two that are
//! nearest become one, with what lies between them. Writing entries that were right already does no
//! harm, and so a change never fails for want of room.

use core::ops::Range;

/// Ranges that are kept apart.
const RANGES: usize = 32;

/// Ranges to be written.
///
/// # Invariants
///
/// The first `count` ranges rise, are not empty and do not touch each other.
pub struct Stale {
    /// One place more, for a range that is about to become part of another.
    ranges: [Range<u64>; RANGES + 1],
    count: usize,
}

impl Stale {
    /// Returns no range.
    pub const fn new() -> Self {
        Self {
            ranges: [const { 0..0 }; RANGES + 1],
            count: 0,
        }
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the ranges.
    pub fn ranges(&self) -> &[Range<u64>] {
        self.ranges.get(..self.count).unwrap_or_default()
    }

    /// Adds a range.
    pub fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        if let Some(place) = self.ranges.get_mut(self.count) {
            *place = range;
            self.count = self.count.saturating_add(1);
        }
        for index in (1..self.count).rev() {
            if let Some([before, range]) = self.pair(index) {
                if before.start > range.start {
                    core::mem::swap(before, range);
                }
            }
        }
        self.join(0);
        if self.count > RANGES {
            self.join(self.narrowest_gap());
        }
    }

    /// Takes the lowest range out.
    pub fn take(&mut self) -> Option<Range<u64>> {
        let first = self.ranges().first()?.clone();
        for index in 1..self.count {
            if let Some([before, range]) = self.pair(index) {
                core::mem::swap(before, range);
            }
        }
        self.count = self.count.saturating_sub(1);
        Some(first)
    }

    /// Returns the range number `index` and the one before it.
    fn pair(&mut self, index: usize) -> Option<&mut [Range<u64>; 2]> {
        let pair = self.ranges.get_mut(index.checked_sub(1)?..=index)?;
        pair.try_into().ok()
    }

    /// Makes ranges one that have a gap of `gap` bytes at most between them.
    fn join(&mut self, gap: u64) {
        let mut kept: usize = 0;
        for index in 0..self.count {
            let Some(next) = self.ranges.get(index).cloned() else {
                break;
            };
            let last = kept
                .checked_sub(1)
                .and_then(|last| self.ranges.get_mut(last));
            match last {
                Some(last) if next.start.saturating_sub(last.end) <= gap => {
                    last.end = last.end.max(next.end);
                }
                _ => {
                    if let Some(place) = self.ranges.get_mut(kept) {
                        *place = next;
                    }
                    kept = kept.saturating_add(1);
                }
            }
        }
        self.count = kept;
    }

    /// Returns the length of the shortest gap.
    fn narrowest_gap(&self) -> u64 {
        let ranges = self.ranges();
        let behind = ranges.iter().skip(1);
        let gaps = ranges
            .iter()
            .zip(behind)
            .map(|(range, next)| next.start.saturating_sub(range.end));
        gaps.min().unwrap_or(u64::MAX)
    }
}

impl Default for Stale {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_stale))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    fn stale(ranges: &[Range<u64>]) -> Stale {
        let mut stale = Stale::new();
        for range in ranges {
            stale.add(range.clone());
        }
        stale
    }

    #[test]
    fn ranges_come_out_in_order() {
        let mut stale = stale(&[30..40, 10..20, 50..60]);
        assert_eq!(stale.take(), Some(10..20));
        assert_eq!(stale.take(), Some(30..40));
        assert_eq!(stale.take(), Some(50..60));
        assert_eq!(stale.take(), None);
        assert!(stale.is_empty());
    }

    #[test]
    fn ranges_that_touch_are_one() {
        assert_eq!(stale(&[10..20, 20..30]).ranges(), [10..30]);
        assert_eq!(stale(&[10..20, 30..40, 15..35]).ranges(), [10..40]);
        assert_eq!(stale(&[10..50, 20..30]).ranges(), [10..50]);
        assert_eq!(stale(&[10..10]).ranges(), []);
    }

    #[test]
    fn nearest_ranges_become_one_when_there_is_no_room() {
        let mut stale = Stale::new();
        for number in 0..RANGES as u64 {
            stale.add(number * 100..number * 100 + 10);
        }
        stale.add(545..555);
        assert_eq!(stale.ranges().len(), RANGES);
        assert!(stale.ranges().contains(&(500..555)));
    }

    #[test]
    fn nothing_is_lost() {
        let mut stale = Stale::new();
        let starts = (0..200_u64).map(|number| number * 7919 % 10007);
        for start in starts.clone() {
            stale.add(start..start + 3);
        }
        for start in starts {
            let covered = |range: &Range<u64>| range.start <= start && start + 3 <= range.end;
            assert!(stale.ranges().iter().any(covered));
        }
    }
}
