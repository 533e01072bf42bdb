// SPDX-License-Identifier: GPL-2.0

//! Whose work goes to a node next.
//!
//! Each context, and each client, has had so much of the time of a node. Of those that have work for it, the one goes
//! next whose priority is highest; among equals the client that has had least, and of it the context that has
//! had least (DMA-30). So a client with many contexts has no more of a node than one with a single one, and long
//! buffers are paid for.
//!
//! Time that nobody asked for is not saved up: whoever comes back counts from where the node is now ([`Meter::begin`]).
//! How long a buffer takes is known when it has run; until then it counts like the one before.

/// How much of a node somebody has had, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter(u64);

impl Meter {
    /// Returns how much it has had, on a node where the one that went last had `floor`.
    pub fn had(self, floor: u64) -> u64 {
        self.0.max(floor)
    }

    /// Charges a buffer that is expected to take so long. Returns what the floor of the node is then.
    pub fn begin(&mut self, floor: u64, expected: u64) -> u64 {
        let had = self.had(floor);
        self.0 = had.saturating_add(expected);
        had
    }

    /// Charges what a buffer has really taken instead of what was expected.
    pub fn end(&mut self, expected: u64, taken: u64) {
        self.0 = self.0.saturating_sub(expected).saturating_add(taken);
    }
}

/// Work that could go to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The priority of its context; higher goes first.
    pub priority: i32,
    /// What its client has had.
    pub client: u64,
    /// What its context has had.
    pub context: u64,
}

impl Claim {
    /// Returns whether this one goes before another one that came earlier.
    ///
    /// Requirement: DMA-30.
    pub fn goes_before(&self, other: &Self) -> bool {
        let key = |claim: &Self| {
            (
                core::cmp::Reverse(claim.priority),
                claim.client,
                claim.context,
            )
        };
        key(self) < key(other)
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_sharing))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    fn claim(priority: i32, client: u64, context: u64) -> Claim {
        Claim {
            priority,
            client,
            context,
        }
    }

    #[test]
    fn priority_comes_first() {
        assert!(claim(1, 900, 900).goes_before(&claim(0, 0, 0)));
        assert!(!claim(-1, 0, 0).goes_before(&claim(0, 900, 900)));
    }

    #[test]
    fn client_comes_before_context() {
        assert!(claim(0, 5, 9).goes_before(&claim(0, 6, 0)));
        assert!(claim(0, 5, 8).goes_before(&claim(0, 5, 9)));
    }

    #[test]
    fn equal_ones_keep_their_order() {
        assert!(!claim(0, 5, 9).goes_before(&claim(0, 5, 9)));
    }

    #[test]
    fn time_is_not_saved_up() {
        let mut meter = Meter::default();
        assert_eq!(meter.begin(1000, 10), 1000);
        assert_eq!(meter.had(0), 1010);
        meter.end(10, 40);
        assert_eq!(meter.had(0), 1040);
    }

    /// Lets two share a node whose buffers take so long; returns how long each had it until one had had
    /// `total`.
    fn share(took: [u64; 2], total: u64) -> [u64; 2] {
        let (mut meters, mut floor, mut had) = ([Meter::default(); 2], 0, [0_u64; 2]);
        loop {
            let claims = meters.map(|meter| claim(0, meter.had(floor), 0));
            let next = usize::from(claims[1].goes_before(&claims[0]));
            floor = meters[next].begin(floor, took[next]);
            meters[next].end(took[next], took[next]);
            had[next] += took[next];
            if had[next] >= total {
                return had;
            }
        }
    }

    #[test]
    fn long_and_short_buffers_share_alike() {
        assert_eq!(share([1, 1], 100), [100, 99]);
        let [long, short] = share([40, 5], 400);
        assert!(long + short > 0 && long.abs_diff(short) <= 40);
    }
}
