// SPDX-License-Identifier: GPL-2.0

//! Choosing one of equals.
//!
//! Of those with the lowest rank, each client that is asked nominates two: the one it used longest
//! ago, and the one whose next use is farthest by forecast. If forecasts do well for that client the
//! second stands for it, otherwise the first ([`super::pace`]). Of all who stand the one leaves whose next
//! use is farthest away; of equally far ones that of the client asked first.

use super::contest::{
    Contest,
    Duel, //
};
use super::forecast::History;
use super::pace::{
    Moment,
    Pace, //
};

/// Somebody who might leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Nominee<K> {
    /// How the caller knows it.
    key: K,
    /// Its number.
    number: u64,
    /// How far away its next use is.
    distance: u64,
    /// Its client.
    client: u64,
}

/// Two nominees of one client.
#[derive(Clone, Copy, Debug)]
pub struct Ballot<K> {
    /// The client.
    client: u64,
    /// What time it is there.
    moment: Moment,
    /// Whether its forecasts do well.
    is_predictable: bool,
    /// The one used longest ago.
    recent: Option<Nominee<K>>,
    /// The one that is farthest by forecast.
    forecast: Option<Nominee<K>>,
}

impl<K: Copy> Ballot<K> {
    /// Begins without nominees of `client`.
    pub fn new(client: u64, pace: &Pace, clock: u64, grace: u64) -> Self {
        Self {
            client,
            moment: pace.at(clock, grace),
            is_predictable: pace.is_predictable(),
            recent: None,
            forecast: None,
        }
    }

    /// Nominates the one that was used longest ago.
    pub fn longest_ago(&mut self, key: K, number: u64, history: &History) {
        let age = history.age(self.moment.now);
        self.recent = Some(self.nominee(key, number, age));
        self.expected(key, number, history);
    }

    /// Nominates one at either end of the order of expected uses.
    pub fn expected(&mut self, key: K, number: u64, history: &History) {
        let nominee = self.nominee(key, number, history.distance(self.moment.now));
        if farther(&nominee, &self.forecast) {
            self.forecast = Some(nominee);
        }
    }

    fn nominee(&self, key: K, number: u64, distance: u64) -> Nominee<K> {
        Nominee {
            key,
            number,
            distance: distance.saturating_add(self.moment.away),
            client: self.client,
        }
    }
}

/// Whether `one` is farther away than the best so far.
fn farther<K>(one: &Nominee<K>, best: &Option<Nominee<K>>) -> bool {
    best.as_ref()
        .is_none_or(|best| one.distance > best.distance)
}

/// The ballots of all clients that are asked.
#[derive(Clone, Copy, Debug)]
pub struct Poll<K> {
    /// The best of those who stand.
    best: Option<Nominee<K>>,
    /// The best if everybody goes by least recent use.
    recent: Option<Nominee<K>>,
    /// The best if everybody goes by forecasts.
    forecast: Option<Nominee<K>>,
}

impl<K: Copy> Poll<K> {
    /// Begins without ballots.
    pub const fn new() -> Self {
        Self {
            best: None,
            recent: None,
            forecast: None,
        }
    }

    /// Counts a ballot.
    pub fn add(&mut self, ballot: Ballot<K>) {
        let stands = if ballot.is_predictable {
            ballot.forecast
        } else {
            ballot.recent
        };
        for (nominee, best) in [
            (stands, &mut self.best),
            (ballot.recent, &mut self.recent),
            (ballot.forecast, &mut self.forecast),
        ] {
            if nominee.is_some_and(|nominee| farther(&nominee, best)) {
                *best = nominee;
            }
        }
    }

    /// Returns who leaves. If the two rules disagree, `contest` watches who is right.
    pub fn finish(self, contest: &mut Contest, clock: u64, patience: u64) -> Option<K> {
        if let (Some(recent), Some(forecast)) = (self.recent, self.forecast) {
            let duel = Duel {
                client: forecast.client,
                forecast: forecast.number,
                recent: recent.number,
            };
            contest.enter(duel, clock, patience);
        }
        self.best.map(|best| best.key)
    }
}

impl<K: Copy> Default for Poll<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_poll))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::super::forecast::Use;
    use super::*;

    /// Used at these times.
    fn history(times: &[u64]) -> History {
        let mut history = History::default();
        for time in times {
            history.used(*time, Use::Worked);
        }
        history
    }

    /// A client that has used 1000 pages, with this verdict on its forecasts.
    fn pace(verdict: i32) -> Pace {
        let mut pace = Pace::default();
        pace.used(1000, 1000, 10);
        pace.learn(verdict);
        pace
    }

    #[test]
    fn trust_decides_between_the_nominees() {
        for (verdict, leaves) in [(0, 1), (10, 2)] {
            let mut ballot = Ballot::new(7, &pace(verdict), 1000, 10);
            ballot.longest_ago(1, 1, &history(&[100, 700]));
            ballot.expected(2, 2, &history(&[350, 950]));
            let mut poll = Poll::new();
            poll.add(ballot);
            let chosen = poll.finish(&mut Contest::new(), 1000, 10);
            assert_eq!(chosen, Some(leaves));
        }
    }

    #[test]
    fn idle_client_leaves_before_one_at_work() {
        let mut idle = Pace::default();
        idle.used(500, 500, 10);
        let mut poll = Poll::new();
        let mut ballot = Ballot::new(1, &pace(0), 1000, 10);
        ballot.longest_ago(1, 1, &history(&[300]));
        poll.add(ballot);
        let mut ballot = Ballot::new(2, &idle, 1000, 10);
        ballot.longest_ago(2, 2, &history(&[490]));
        poll.add(ballot);
        let chosen = poll.finish(&mut Contest::new(), 1000, 10);
        assert_eq!(chosen, Some(2));
    }

    #[test]
    fn disagreement_is_watched() {
        let mut contest = Contest::new();
        let mut ballot = Ballot::new(7, &pace(0), 1000, 10);
        ballot.longest_ago(1, 1, &history(&[100, 700]));
        ballot.expected(2, 2, &history(&[350, 950]));
        let mut poll = Poll::new();
        poll.add(ballot);
        poll.finish(&mut contest, 1000, 10);
        contest.used(1);
        assert_eq!(contest.verdict(7), 1);
    }
}
