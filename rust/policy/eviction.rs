// SPDX-License-Identifier: GPL-2.0

//! Who leaves to make room.
//!
//! There are two questions. For loose pages any victims will do, as long as they are large enough
//! together ([`loose`]). For one run of pages the victims must be neighbours, so what is chosen is
//! a window of pages, and everyone in it leaves ([`contiguous`]).
//!
//! The ranks are the same for both (RES-17, RES-18): what is pinned never leaves, what some device
//! requires leaves only if the others do not suffice, and among equals the one used longest ago
//! goes first. Nobody leaves in vain: without any one of the victims there would be too little
//! room.
//!
//! Both answer with names. The caller then moves the victims out; nothing has changed until then.

pub use super::window::{
    contiguous,
    victims,
    Occupant,
    Window, //
};

/// Whether an allocation may leave its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody asks for its residency.
    Unreferenced,
    /// A device requires it; it leaves if there is no other way and comes back before it is used.
    Referenced,
    /// It must stay where it is.
    Pinned,
}

/// An allocation that holds pages of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// A number by which the caller knows it.
    pub key: u64,
    /// The pages that become free when it leaves.
    pub pages: u32,
    /// Whether it may leave.
    pub standing: Standing,
}

/// An allocation that is to leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Victim {
    /// [`Candidate::key`].
    pub key: u64,
    /// [`Candidate::pages`].
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

/// Names the allocations that leave so that `need` more pages become free, adjacent or not.
///
/// `candidates` come in the order of their last use, the oldest first, and are gone through twice
/// at most. The names go to the beginning of `victims`, the first to leave first; one entry per
/// candidate always suffices.
///
/// Linear in the number of candidates. Returns the number of victims.
///
/// # Errors
///
/// [`NoRoom`], with `victims` in disorder.
///
/// Requirement: RES-17, RES-18.
pub fn loose(
    need: u32,
    candidates: impl Iterator<Item = Candidate> + Clone,
    victims: &mut [Victim],
) -> Result<usize, NoRoom> {
    let mut count: usize = 0;
    let mut excess = i64::from(need).saturating_neg();
    for rank in [Standing::Unreferenced, Standing::Referenced] {
        for candidate in candidates.clone() {
            if excess >= 0 {
                break;
            }
            if candidate.standing != rank || candidate.pages == 0 {
                continue;
            }
            let place = victims.get_mut(count).ok_or(NoRoom::Buffer)?;
            *place = Victim {
                key: candidate.key,
                pages: candidate.pages,
            };
            count = count.saturating_add(1);
            excess = excess.saturating_add(candidate.pages.into());
        }
    }
    if excess < 0 {
        return Err(NoRoom::Pages);
    }
    let chosen = victims.get_mut(..count).ok_or(NoRoom::Buffer)?;
    Ok(spare(chosen, excess))
}

/// Lets those stay who need not leave, beginning with the last; returns how many still leave.
fn spare(victims: &mut [Victim], excess: i64) -> usize {
    let mut excess = excess;
    for victim in victims.iter_mut().rev() {
        let pages = i64::from(victim.pages);
        if pages <= excess {
            excess = excess.saturating_sub(pages);
            // Nobody without pages was chosen: that marks the spared ones.
            victim.pages = 0;
        }
    }
    let mut kept: usize = 0;
    for index in 0..victims.len() {
        let leaves = victims.get(index).filter(|victim| victim.pages != 0);
        if let Some(victim) = leaves.copied() {
            if let Some(place) = victims.get_mut(kept) {
                *place = victim;
            }
            kept = kept.saturating_add(1);
        }
    }
    kept
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_eviction))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::Standing::{
        Pinned,
        Referenced,
        Unreferenced, //
    };
    use super::*;

    fn candidate(key: u64, pages: u32, standing: Standing) -> Candidate {
        Candidate {
            key,
            pages,
            standing,
        }
    }

    /// Returns whether those who leave for `need` pages are `expected`.
    fn leave(need: u32, candidates: &[Candidate], expected: &[u64]) -> bool {
        let mut victims = [Victim::default(); 8];
        let count = loose(need, candidates.iter().copied(), &mut victims).unwrap();
        let keys = victims.iter().take(count).map(|victim| victim.key);
        keys.eq(expected.iter().copied())
    }

    #[test]
    fn oldest_leave_first() {
        let candidates = [1, 2, 3].map(|key| candidate(key, 10, Unreferenced));
        assert!(leave(20, &candidates, &[1, 2]));
        assert!(leave(0, &candidates, &[]));
    }

    #[test]
    fn referenced_leave_only_if_others_do_not_suffice() {
        let candidates = [
            candidate(1, 10, Referenced),
            candidate(2, 10, Unreferenced),
            candidate(3, 10, Referenced),
        ];
        assert!(leave(10, &candidates, &[2]));
        assert!(leave(20, &candidates, &[2, 1]));
    }

    #[test]
    fn nobody_leaves_in_vain() {
        let candidates = [
            candidate(1, 2, Unreferenced),
            candidate(2, 3, Unreferenced),
            candidate(3, 30, Unreferenced),
        ];
        assert!(leave(6, &candidates, &[3]));
        assert!(leave(32, &candidates, &[1, 3]));
    }

    #[test]
    fn pinned_never_leave() {
        let candidates = [candidate(1, 10, Pinned), candidate(2, 10, Unreferenced)];
        let mut victims = [Victim::default(); 8];
        let result = loose(11, candidates.into_iter(), &mut victims);
        assert_eq!(result, Err(NoRoom::Pages));
    }

    #[test]
    fn short_buffer_is_told() {
        let candidates = [1, 2].map(|key| candidate(key, 10, Unreferenced));
        let mut victims = [Victim::default(); 1];
        let result = loose(11, candidates.into_iter(), &mut victims);
        assert_eq!(result, Err(NoRoom::Buffer));
    }
}
