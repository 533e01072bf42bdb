// SPDX-License-Identifier: GPL-2.0

//! Who leaves to make room.
//!
//! There are two questions. For loose pages any victims will do, as long as they are large enough
//! together: they are taken in the order in which they leave, one by one ([`Gathering`]). For one
//! run of pages the victims must be neighbours, so what is chosen is a window of pages, and
//! everyone in it leaves ([`contiguous`]).
//!
//! The ranks are the same for both ([`Rank`], RES-17, RES-18), and nobody leaves in vain: without
//! any one of the victims there would be too little room.
//!
//! Among those of one rank [`poll`] asks whose next use is farthest away, by what is known of their
//! past ([`forecast`]), in the time of each client ([`pace`]); [`contest`] sees to it that forecasts
//! are trusted where they are good.
//!
//! Both answer with names. The caller then moves the victims out; nothing has changed until then.

mod contest;
mod forecast;
mod pace;
mod poll;
mod rank;

pub use self::{
    contest::{
        Contest,
        Duel, //
    },
    forecast::{
        History,
        Use, //
    },
    pace::{
        Moment,
        Pace, //
    },
    poll::{
        Ballot,
        Poll, //
    },
    rank::{
        Bond,
        Budget,
        Need,
        Offer,
        Rank,
        Standing, //
    },
};
pub use super::window::{
    contiguous,
    victims,
    Fate,
    Occupant,
    Window, //
};

/// An allocation that holds pages of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// A number by which the caller knows it.
    pub key: u64,
    /// The pages that become free when it leaves.
    pub pages: u32,
    /// When it leaves.
    pub rank: Rank,
}

/// An allocation that is to leave, and how the caller knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Victim<K> {
    /// How the caller knows it.
    pub key: K,
    /// The pages that become free when it leaves.
    pub pages: u32,
}

/// Why no room can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// What may leave is not enough.
    Pages,
    /// The lent buffer cannot name all that would have to leave.
    Buffer,
}

/// Victims that are gathered until they are enough.
///
/// The caller adds those who may leave in the order of their ranks, as long as more is
/// [missing](Self::is_enough). Then [`finish`](Self::finish) says who really leaves: a large one
/// that came late may have made smaller ones before it superfluous.
pub struct Gathering<'a, K> {
    /// Lent memory, filled from its beginning.
    victims: &'a mut [Victim<K>],
    /// How many there are.
    count: usize,
    /// Pages gathered beyond what is needed.
    excess: i64,
}

/// The outcome of a [`Gathering`]: a prefix of the lent memory leaves, the rest of what was
/// gathered stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// How many leave.
    pub leaving: usize,
    /// How many were gathered.
    pub count: usize,
}

impl<'a, K: Copy> Gathering<'a, K> {
    /// Begins to gather for `need` pages; `victims` has room for all that may be added.
    pub fn new(need: u32, victims: &'a mut [Victim<K>]) -> Self {
        Self {
            victims,
            count: 0,
            excess: i64::from(need).saturating_neg(),
        }
    }

    /// Returns whether nobody else need leave.
    pub fn is_enough(&self) -> bool {
        self.excess >= 0
    }

    /// Adds the next one.
    ///
    /// # Errors
    ///
    /// [`NoRoom::Buffer`]: the lent memory is full.
    pub fn add(&mut self, victim: Victim<K>) -> Result<(), NoRoom> {
        let place = self.victims.get_mut(self.count).ok_or(NoRoom::Buffer)?;
        *place = victim;
        self.count = self.count.saturating_add(1);
        self.excess = self.excess.saturating_add(victim.pages.into());
        Ok(())
    }

    /// Lets those stay who need not leave, beginning with the last that was added. If it is not
    /// enough, nobody leaves.
    ///
    /// Those who leave stand at the beginning, the first to leave first.
    pub fn finish(self) -> Gathered {
        let mut leaving: usize = 0;
        let mut excess = self.excess;
        let gathered = self.victims.get_mut(..self.count).unwrap_or_default();
        if excess >= 0 {
            for victim in gathered.iter_mut().rev() {
                let pages = i64::from(victim.pages);
                if pages <= excess {
                    excess = excess.saturating_sub(pages);
                    // That marks who stays; whoever had no pages stays anyway.
                    victim.pages = 0;
                }
            }
            for index in 0..self.count {
                if gathered.get(index).is_some_and(|victim| victim.pages != 0) {
                    gathered.swap(leaving, index);
                    leaving = leaving.saturating_add(1);
                }
            }
        }
        Gathered {
            leaving,
            count: self.count,
        }
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_eviction))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    /// Returns whether those who leave for `need` pages, of such with these `pages`, are
    /// `expected`.
    fn leave(need: u32, pages: &[u32], expected: &[usize]) -> bool {
        let mut victims = [Victim::default(); 8];
        let mut gathering = Gathering::new(need, &mut victims);
        for (key, &pages) in pages.iter().enumerate() {
            if !gathering.is_enough() {
                assert_eq!(gathering.add(Victim { key, pages }), Ok(()));
            }
        }
        let gathered = gathering.finish();
        let keys = victims.iter().take(gathered.leaving).map(|one| one.key);
        keys.eq(expected.iter().copied())
    }

    #[test]
    fn first_ones_leave() {
        assert!(leave(20, &[10, 10, 10], &[0, 1]));
        assert!(leave(0, &[10, 10, 10], &[]));
    }

    #[test]
    fn nobody_leaves_in_vain() {
        assert!(leave(6, &[2, 3, 30], &[2]));
        assert!(leave(32, &[2, 3, 30], &[0, 2]));
        assert!(leave(4, &[2, 0, 2], &[0, 2]));
    }

    #[test]
    fn nobody_leaves_if_all_are_not_enough() {
        assert!(leave(61, &[2, 3, 30], &[]));
    }

    #[test]
    fn short_buffer_is_told() {
        let mut victims = [Victim::default(); 1];
        let mut gathering = Gathering::new(20, &mut victims);
        assert_eq!(gathering.add(Victim { key: 0, pages: 10 }), Ok(()));
        let full = gathering.add(Victim { key: 1, pages: 10 });
        assert_eq!(full, Err(NoRoom::Buffer));
    }
}
