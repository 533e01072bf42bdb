// SPDX-License-Identifier: GPL-2.0

//! The time of a client.
//!
//! Time is counted in pages that were used: on the adapter by everybody, on the clock of a client
//! while that client is at work. When others run and it does not, its clock stands still after a
//! short grace, so that what it uses every frame is not forgotten because somebody else had a turn:
//! intervals mean the same before and after. Clients that take turns more often than that run side
//! by side, and their clocks go on together.
//!
//! How long a client will be idle is not known. The best guess is as long as it has been idle
//! already, and a bit of caution makes it [`CAUTION`] times that: its allocations are that much
//! farther from their next use, and go before those of a client at work.

/// How much farther away idle time is than its guess.
const CAUTION: u64 = 4;
/// The part of memory that others may use before a client counts as idle.
const GRACE: u64 = 32;
/// How many times all of memory is used before a duel is given up.
const PATIENCE: u64 = 4;
/// The trust of a new client: forecasts must show that they are good first.
const DOUBT: i32 = -4;
/// The most trust and distrust that past forecasts give.
const CERTAINTY: i32 = 16;

/// The clock of one client, and how good forecasts for it are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Its own time at its last use.
    now: u64,
    /// The time of the adapter then.
    active: u64,
    /// Forecasts that were better than least recent use, less those that were worse.
    trust: i32,
}

/// A time of the adapter, as a client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time of the client.
    pub now: u64,
    /// How far away the client itself is from being at work.
    pub away: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            now: 0,
            active: 0,
            trust: DOUBT,
        }
    }
}

impl Pace {
    /// Returns for how long a client may do nothing and is still at work, where memory has `pages`.
    pub const fn grace(pages: u64) -> u64 {
        pages / GRACE
    }

    /// Returns how long a duel is watched, where memory has `pages`.
    pub const fn patience(pages: u64) -> u64 {
        pages.saturating_mul(PATIENCE)
    }

    /// Notes that `pages` were used until the time `clock` of the adapter; returns the time of
    /// the client. `grace` is how long it may do nothing and is still at work.
    pub fn used(&mut self, clock: u64, pages: u64, grace: u64) -> u64 {
        let passed = clock.saturating_sub(self.active);
        self.now = self.now.saturating_add(passed.min(grace.max(pages)));
        self.active = clock;
        self.now
    }

    /// Returns what the time `clock` of the adapter is to the client.
    pub fn at(&self, clock: u64, grace: u64) -> Moment {
        let idle = clock.saturating_sub(self.active);
        Moment {
            now: self.now.saturating_add(idle.min(grace)),
            away: idle.saturating_sub(grace).saturating_mul(CAUTION),
        }
    }

    /// Returns the time of the adapter at its last use.
    pub fn active(&self) -> u64 {
        self.active
    }

    /// Takes in how forecasts have turned out: better ones less worse ones.
    pub fn learn(&mut self, verdict: i32) {
        let trust = self.trust.saturating_add(verdict);
        self.trust = trust.clamp(-CERTAINTY, CERTAINTY);
    }

    /// Returns whether forecasts are better than least recent use.
    pub fn is_predictable(&self) -> bool {
        self.trust >= 0
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_pace))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    #[test]
    fn clock_stands_still_while_others_run() {
        let mut pace = Pace::default();
        assert_eq!(pace.used(10, 10, 100), 10);
        assert_eq!(pace.used(60, 10, 100), 60);
        assert_eq!(pace.used(5060, 10, 100), 160);
    }

    #[test]
    fn idle_clients_are_far_away() {
        let mut pace = Pace::default();
        pace.used(100, 100, 50);
        assert_eq!(pace.at(140, 50), Moment { now: 140, away: 0 });
        let later = pace.at(200, 50);
        assert_eq!(later.now, 150);
        assert_eq!(later.away, 200);
    }

    #[test]
    fn trust_has_to_be_earned_and_can_be_lost() {
        let mut pace = Pace::default();
        assert!(!pace.is_predictable());
        pace.learn(4);
        assert!(pace.is_predictable());
        pace.learn(1000);
        pace.learn(-20);
        assert!(!pace.is_predictable());
    }
}
