// SPDX-License-Identifier: GPL-2.0

//! Sharing out a group of segments among its users.
//!
//! Each user *needs* what it uses, and at least what it has reserved. If all needs together fit, each
//! gets what it needs, and what is left raises those who need least to a common level. If they do not
//! fit, each gets its reservation, and beyond that as much as it needs up to a common level. In both
//! cases a budget is the level, kept within two bounds of the user, so one search finds the level.
//!
//! What follows from it: the budgets together never exceed the group as long as the reservations do
//! not; a reservation is never taken away; who needs no more than an equal share gets what it needs;
//! what some do not use goes to those who need more; and needing more never lowers one's own budget
//! nor raises another one's.

use core::ops::RangeInclusive;

/// Budgets are multiples of this.
const UNIT: u64 = crate::units::PAGE_BYTES;
/// The number of bits in [`UNIT`].
const UNIT_BITS: u32 = UNIT.trailing_zeros();

/// One user of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Bytes that it uses.
    pub usage: u64,
    /// Bytes that it reserved.
    pub reservation: u64,
    /// Bytes that it may use without being asked to give some up: the answer.
    pub budget: u64,
}

impl Share {
    /// Returns whether it takes part: who neither uses nor reserves anything does not.
    pub fn is_active(&self) -> bool {
        self.need() != 0
    }

    /// Returns what it needs.
    fn need(&self) -> u64 {
        self.usage.max(self.reservation)
    }
}

/// Whether everybody can have what it needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Supply {
    Enough,
    Short,
}

impl Supply {
    /// Returns the least and the most that a user can get.
    fn bounds(self, share: &Share, total: u64) -> RangeInclusive<u64> {
        let need = share.need();
        match self {
            Self::Enough => need..=total.max(need),
            Self::Short => share.reservation..=need,
        }
    }
}

/// Sets the budget of each active user; that of the others is 0.
///
/// Linear in the number of users.
///
/// Requirement: RES-19.
pub fn share_out(total: u64, shares: &mut [Share]) {
    let needs = sum(shares.iter().map(Share::need));
    let supply = if needs <= total {
        Supply::Enough
    } else {
        Supply::Short
    };
    let active = shares.iter().filter(|share| share.is_active());
    let level = level(total, active.map(|share| supply.bounds(share, total)));
    for share in shares {
        share.budget = if share.is_active() {
            within(level, &supply.bounds(share, total))
        } else {
            0
        };
    }
}

/// Returns the highest level at which what lies within the bounds is no more than `total` together.
fn level(total: u64, bounds: impl Iterator<Item = RangeInclusive<u64>> + Clone) -> u64 {
    let mut level = 0;
    for bit in (UNIT_BITS..u64::BITS).rev() {
        let higher = level | 1_u64.wrapping_shl(bit);
        if higher > total {
            continue;
        }
        if sum(bounds.clone().map(|bounds| within(higher, &bounds))) <= total {
            level = higher;
        }
    }
    level
}

/// Returns `level`, or the bound that is nearest to it.
fn within(level: u64, bounds: &RangeInclusive<u64>) -> u64 {
    level.max(*bounds.start()).min(*bounds.end())
}

fn sum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_budget))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Returns whether users with these usages and reservations get `budgets`, all in MiB.
    fn get(total: u64, users: &[(u64, u64)], budgets: &[u64]) -> bool {
        let mut shares = [Share::default(); 4];
        for (share, (usage, reservation)) in shares.iter_mut().zip(users) {
            *share = Share {
                usage: usage * MIB,
                reservation: reservation * MIB,
                budget: 0,
            };
        }
        share_out(total * MIB, &mut shares);
        let shares = shares.iter().take(users.len());
        shares
            .map(|share| share.budget / MIB)
            .eq(budgets.iter().copied())
    }

    #[test]
    fn single_user_gets_everything() {
        assert!(get(16, &[(1, 0)], &[16]));
        assert!(get(16, &[(20, 0)], &[16]));
        assert!(get(16, &[(0, 4)], &[16]));
    }

    #[test]
    fn nobody_gets_anything_for_nothing() {
        assert!(get(16, &[(0, 0), (4, 0), (0, 0)], &[0, 16, 0]));
        assert!(get(16, &[], &[]));
        assert!(get(0, &[(4, 0)], &[0]));
    }

    #[test]
    fn what_is_left_raises_those_who_need_least() {
        assert!(get(16, &[(12, 0), (1, 0)], &[12, 4]));
        assert!(get(16, &[(4, 0), (1, 0)], &[8, 8]));
        assert!(get(16, &[(10, 0), (1, 0), (2, 0)], &[10, 3, 3]));
    }

    #[test]
    fn shortage_is_shared_by_those_who_need_most() {
        assert!(get(16, &[(12, 0), (6, 0)], &[10, 6]));
        assert!(get(16, &[(12, 0), (10, 0)], &[8, 8]));
        assert!(get(16, &[(30, 0), (2, 0), (8, 0)], &[7, 2, 7]));
    }

    #[test]
    fn reservations_are_kept() {
        assert!(get(16, &[(12, 12), (12, 0)], &[12, 4]));
        assert!(get(16, &[(0, 6), (16, 0)], &[6, 10]));
        assert!(get(16, &[(2, 6), (1, 0)], &[8, 8]));
    }

    #[test]
    fn reservations_beyond_a_group_that_shrank_are_kept() {
        assert!(get(4, &[(6, 6), (4, 0)], &[6, 0]));
    }
}
