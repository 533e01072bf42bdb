// SPDX-License-Identifier: GPL-2.0

//! Ranks to test with: idle, required, pinned.

use policy::policy::eviction::{
    Bond,
    Need,
    Offer,
    Rank,
    Standing, //
};
use proptest::prelude::*;

/// What an allocation is that nothing was asked for.
pub const IDLE: Standing = Standing {
    bond: Bond::Loose,
    need: Need::Idle,
    offer: Offer::None,
    priority: 3,
};

/// Ranks, the most common first.
pub fn rank() -> impl Strategy<Value = Rank> {
    let required = Standing {
        need: Need::Required,
        ..IDLE
    };
    prop_oneof![
        4 => Just(IDLE.rank()),
        2 => Just(required.rank()),
        1 => Just(IDLE.rank().tied(Bond::Pinned)),
    ]
}
