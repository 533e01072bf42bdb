// SPDX-License-Identifier: GPL-2.0

//! When an allocation will be used next.
//!
//! Allocations stay known while they are not resident, so their past costs nothing to keep: when
//! each was used last, and how long it usually takes until it is used again. That gives a
//! [distance](History::distance) to the next use, in the time of the client ([`super::pace`]):
//!
//! - never used twice: as far as the last use lies back. That is the order of least recent use.
//! - expected later: as far as that is.
//! - overdue: at first near, then farther and farther, until it is as if nothing were known.
//!
//! On a loop through more than there is memory for, what has just been used is farthest, which is
//! where least recent use errs most; after one pass over new memory, what was used longest ago is.

/// What an allocation was used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A client asked for its residency, so it will have work for it soon.
    Asked,
    /// Work was prepared that needs it.
    Worked,
}

/// What is remembered of the uses of one allocation. Times are those of its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The last use; 0 if there was none.
    last: u64,
    /// The usual time between uses; 0 if there were not two.
    interval: u64,
    /// Whether the last use was a request, with its work still to come.
    asked: bool,
}

/// An interval shorter than the usual one by this factor belongs to a burst of uses.
const BURST: u64 = 8;
/// What is overdue moves away this many times faster than time passes.
const HASTE: u64 = 4;

impl History {
    /// Notes a use at the time `now`.
    ///
    /// Work that follows a request is the same use. Uses that follow each other much faster than
    /// usual are a burst within one: they shorten the interval a little, so that a real change of
    /// pace is learned.
    pub fn used(&mut self, now: u64, how: Use) {
        let is_same = self.asked && how == Use::Worked;
        if self.last != 0 && !is_same {
            let interval = now.saturating_sub(self.last);
            self.interval = if self.interval == 0 {
                interval
            } else if interval < self.interval / BURST {
                self.interval.saturating_sub(self.interval / BURST)
            } else {
                self.interval / 2 + interval / 2
            };
        }
        self.last = now;
        self.asked = how == Use::Asked;
    }

    /// Returns the time of the last use.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns when the next use is expected, if there is any reason to expect one.
    pub fn expected(&self) -> Option<u64> {
        (self.interval != 0).then_some(self.last.saturating_add(self.interval))
    }

    /// Returns how far away the next use is expected to be at the time `now`.
    pub fn distance(&self, now: u64) -> u64 {
        let Some(expected) = self.expected() else {
            return self.age(now);
        };
        match now.checked_sub(expected) {
            None => expected.saturating_sub(now),
            Some(overdue) => overdue.saturating_mul(HASTE).min(self.age(now)),
        }
    }

    /// Returns how long ago the last use was.
    pub fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.last)
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_forecast))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    fn used_at(times: &[u64]) -> History {
        let mut history = History::default();
        for time in times {
            history.used(*time, Use::Worked);
        }
        history
    }

    #[test]
    fn one_use_is_judged_by_its_age() {
        let history = used_at(&[100]);
        assert_eq!(history.expected(), None);
        assert_eq!(history.distance(130), 30);
    }

    #[test]
    fn regular_use_is_expected_after_its_interval() {
        let history = used_at(&[100, 200, 300]);
        assert_eq!(history.expected(), Some(400));
        assert_eq!(history.distance(310), 90);
    }

    #[test]
    fn overdue_ones_become_unknown() {
        let history = used_at(&[100, 200]);
        assert_eq!(history.distance(300), 0);
        assert_eq!(history.distance(310), 40);
        assert_eq!(history.distance(500), history.age(500));
    }

    #[test]
    fn work_belongs_to_the_request_before_it() {
        let mut history = History::default();
        history.used(100, Use::Asked);
        history.used(150, Use::Worked);
        assert_eq!(history.expected(), None);
        history.used(300, Use::Asked);
        history.used(350, Use::Worked);
        assert_eq!(history.expected(), Some(500));
    }

    #[test]
    fn bursts_hardly_shorten_the_interval() {
        let history = used_at(&[1000, 1800, 1801, 1802]);
        let interval = history.expected().unwrap() - history.last();
        assert!((600..800).contains(&interval));
    }
}
