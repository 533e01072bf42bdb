// SPDX-License-Identifier: GPL-2.0

//! Whether forecasts are any good.
//!
//! Least recent use would often let somebody else leave than a forecast does. Who was right shows
//! when one of the two is used again: it should have stayed. A [`Contest`] keeps a sample of such
//! duels, whichever of the two really left, and tells each client how its forecasts do. So a client
//! with a pattern gains, and one without loses nothing beside the few duels that showed it.

/// The duels that are watched at once.
const DUELS: usize = 16;

/// Two that were to leave, one by each rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duel {
    /// The client whose forecast it is.
    pub client: u64,
    /// Whom the forecast lets leave.
    pub forecast: u64,
    /// Whom least recent use lets leave.
    pub recent: u64,
}

/// A duel that is watched or decided.
#[derive(Clone, Copy, Debug)]
struct Watched {
    /// Who and who.
    duel: Duel,
    /// When it began.
    since: u64,
    /// 1 if the forecast was right, -1 if it was not, 0 as long as nobody knows.
    verdict: i32,
}

/// A sample of duels.
#[derive(Clone, Debug)]
pub struct Contest {
    /// The sample.
    watched: [Option<Watched>; DUELS],
}

impl Default for Contest {
    fn default() -> Self {
        Self::new()
    }
}

impl Contest {
    /// Begins without any duel.
    pub const fn new() -> Self {
        Self {
            watched: [None; DUELS],
        }
    }

    /// Watches a duel from the time `clock` on, if there is room. One that has lasted for longer than
    /// `patience` makes room: neither is used any more.
    pub fn enter(&mut self, duel: Duel, clock: u64, patience: u64) {
        let known = self.watched.iter().flatten().any(|one| one.duel == duel);
        if known || duel.forecast == duel.recent {
            return;
        }
        let room = self
            .watched
            .iter_mut()
            .find(|place| place.is_none_or(|one| clock.saturating_sub(one.since) > patience));
        if let Some(place) = room {
            *place = Some(Watched {
                duel,
                since: clock,
                verdict: 0,
            });
        }
    }

    /// Decides the duels of an allocation that is used.
    pub fn used(&mut self, allocation: u64) {
        for one in self.watched.iter_mut().flatten() {
            if one.verdict != 0 {
                continue;
            }
            if one.duel.recent == allocation {
                one.verdict = 1;
            } else if one.duel.forecast == allocation {
                one.verdict = -1;
            }
        }
    }

    /// Returns what the duels of a client that were decided say of its forecasts, and forgets them.
    pub fn verdict(&mut self, client: u64) -> i32 {
        let mut sum: i32 = 0;
        for place in &mut self.watched {
            let decided = place.filter(|one| one.duel.client == client && one.verdict != 0);
            if let Some(one) = decided {
                sum = sum.saturating_add(one.verdict);
                *place = None;
            }
        }
        sum
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_contest))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    fn duel(client: u64, forecast: u64, recent: u64) -> Duel {
        Duel {
            client,
            forecast,
            recent,
        }
    }

    #[test]
    fn who_is_used_first_should_have_stayed() {
        let mut contest = Contest::new();
        contest.enter(duel(1, 10, 20), 0, 100);
        contest.enter(duel(1, 30, 20), 0, 100);
        contest.enter(duel(2, 40, 50), 0, 100);
        contest.used(20);
        contest.used(10);
        contest.used(40);
        assert_eq!(contest.verdict(1), 2);
        assert_eq!(contest.verdict(1), 0);
        assert_eq!(contest.verdict(2), -1);
    }

    #[test]
    fn endless_duels_make_room() {
        let mut contest = Contest::new();
        for number in 0..16 {
            contest.enter(duel(1, number, 100), 0, 50);
        }
        contest.enter(duel(2, 1, 2), 50, 50);
        contest.used(2);
        assert_eq!(contest.verdict(2), 0);
        contest.enter(duel(2, 1, 2), 51, 50);
        contest.used(2);
        assert_eq!(contest.verdict(2), 1);
    }
}
