// SPDX-License-Identifier: GPL-2.0

//! Properties of budgets, for any users of any group.

use policy::{
    policy::budget::{
        share_out,
        Share, //
    },
    units::PAGE_BYTES, //
};
use proptest::prelude::*;

mod soak;

/// A group of some pages, and users of it whose reservations fit.
fn group() -> impl Strategy<Value = (u64, Vec<Share>)> {
    let user = (0_u64..300, prop_oneof![3 => Just(0_u64), 1 => 0_u64..100]);
    (1_u64..400, prop::collection::vec(user, 1..12)).prop_map(|(pages, users)| {
        let mut left = pages;
        let shares = users.into_iter().map(|(usage, reservation)| {
            let reservation = reservation.min(left);
            left -= reservation;
            Share {
                usage: usage * PAGE_BYTES,
                reservation: reservation * PAGE_BYTES,
                budget: 0,
            }
        });
        (pages * PAGE_BYTES, shares.collect())
    })
}

fn shared(total: u64, shares: &[Share]) -> Vec<Share> {
    let mut shares = shares.to_vec();
    share_out(total, &mut shares);
    shares
}

#[test]
fn budgets_never_exceed_the_group() {
    soak::check(1000, group(), |(total, shares)| {
        let shares = shared(total, &shares);
        let sum: u64 = shares.iter().map(|share| share.budget).sum();
        prop_assert!(sum <= total);
        Ok(())
    });
}

#[test]
fn nearly_everything_is_shared_out() {
    soak::check(1000, group(), |(total, shares)| {
        let shares = shared(total, &shares);
        let active = shares.iter().filter(|share| share.is_active()).count() as u64;
        let sum: u64 = shares.iter().map(|share| share.budget).sum();
        prop_assert!(active == 0 || sum + active * PAGE_BYTES > total);
        Ok(())
    });
}

#[test]
fn reservations_are_kept() {
    soak::check(1000, group(), |(total, shares)| {
        for share in shared(total, &shares) {
            prop_assert!(share.budget >= share.reservation);
        }
        Ok(())
    });
}

#[test]
fn whoever_needs_no_more_than_an_equal_part_of_the_rest_gets_it() {
    soak::check(1000, group(), |(total, shares)| {
        let shares = shared(total, &shares);
        let reserved: u64 = shares.iter().map(|share| share.reservation).sum();
        let active = shares.iter().filter(|share| share.is_active()).count();
        let part = (total - reserved) / active.max(1) as u64 / PAGE_BYTES * PAGE_BYTES;
        for share in shares.iter().filter(|share| share.usage <= part) {
            prop_assert!(share.budget >= share.usage);
        }
        Ok(())
    });
}

#[test]
fn nobody_who_falls_short_sees_more_with_another_one_that_reserved_less() {
    soak::check(1000, group(), |(total, shares)| {
        let shares = shared(total, &shares);
        for share in shares.iter().filter(|share| share.usage > share.budget) {
            for other in &shares {
                let most = share.budget.max(other.reservation);
                prop_assert!(other.budget <= most, "{share:?} {other:?}");
            }
        }
        Ok(())
    });
}

#[test]
fn needing_more_lowers_nobody_but_others() {
    let who = any::<prop::sample::Index>();
    soak::check(
        1000,
        (group(), who, 1_u64..200),
        |((total, shares), who, more)| {
            let before = shared(total, &shares);
            let who = who.index(shares.len());
            let mut grown = shares;
            grown[who].usage += more * PAGE_BYTES;
            let after = shared(total, &grown);
            prop_assert!(after[who].budget >= before[who].budget);
            for other in (0..after.len()).filter(|other| *other != who) {
                prop_assert!(after[other].budget <= before[other].budget);
            }
            Ok(())
        },
    );
}

#[test]
fn nobody_is_over_budget_while_there_is_enough() {
    soak::check(1000, group(), |(total, shares)| {
        let needs = shares
            .iter()
            .map(|share| share.usage.max(share.reservation));
        let total = total.max(needs.sum());
        for share in shared(total, &shares) {
            prop_assert!(share.usage <= share.budget);
        }
        Ok(())
    });
}
