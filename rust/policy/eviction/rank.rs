// SPDX-License-Identifier: GPL-2.0

//! The ranks in which allocations leave.
//!
//! What a client or a display asked for comes before any guess about what will be used next: a
//! lower [`Rank`] leaves first, and only among equals does the order of use decide. The rank is one
//! number, so that it can be part of the key under which an allocation is kept.
//!
//! | bits | field | leaves first |
//! |---|---|---|
//! | 9, 8 | [`Bond`] | loose; all others do not leave at all |
//! | 7 | priority MAXIMUM | not |
//! | 6 | [`Need`] | idle |
//! | 5, 4 | [`Offer`] | low, normal, high, not offered |
//! | 3 | [`Budget`] of the client | over |
//! | 2 to 0 | priority | lower |
//!
//! An allocation that is offered has said that it can be done without: MAXIMUM does not protect it.

/// What ties an allocation to its place, the weakest tie first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bond {
    /// Nothing: it may leave.
    Loose = 0,
    /// A portion that is ready to run or running. It ends one day.
    Pinned = 1,
    /// The request for which room is made needs it, too.
    Wanted = 2,
    /// It is displayed, or was created to stay.
    Fixed = 3,
}

/// Whether work that is about to run needs an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// None does.
    Idle = 0,
    /// The worker prepares work that does.
    Required = 1,
}

/// Whether the client can do without the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Offer {
    /// It was offered as the first to go.
    Low = 0,
    /// It was offered.
    Normal = 1,
    /// It was offered as the last to go.
    High = 2,
    /// It was not offered.
    None = 3,
}

/// How the usage of a client compares with its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Budget {
    /// It uses more.
    Over = 0,
    /// It does not.
    Within = 1,
}

/// The priority MAXIMUM.
const MAXIMUM: u32 = 5;
/// Where the fields begin.
const BOND: u32 = 8;
const LAST_RESORT: u32 = 7;
const NEED: u32 = 6;
const OFFER: u32 = 4;
const BUDGET: u32 = 3;
/// The bits of the priority.
const PRIORITIES: u32 = 7;

/// What the rank of an allocation is made of, but for its client's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What ties it to its place.
    pub bond: Bond,
    /// Whether work needs it.
    pub need: Need,
    /// Whether it is offered.
    pub offer: Offer,
    /// 1 to 5.
    pub priority: u32,
}

/// When an allocation leaves; the lowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u16);

impl Standing {
    /// Returns the rank among the allocations of one client.
    ///
    /// Requirement: RES-17.
    pub fn rank(self) -> Rank {
        let last_resort = self.priority >= MAXIMUM && self.offer == Offer::None;
        // CAST: the variants are numbered from 0 to 3.
        let fields = ((self.bond as u32) << BOND)
            | (u32::from(last_resort) << LAST_RESORT)
            | ((self.need as u32) << NEED)
            | ((self.offer as u32) << OFFER)
            | self.priority.min(PRIORITIES);
        // CAST: ten bits.
        Rank(fields as u16)
    }
}

impl Rank {
    /// Returns the rank among the allocations of all clients, if that is the budget of this one.
    pub fn with(self, budget: Budget) -> Self {
        // CAST: 0 or 1, shifted by three.
        let bit = (budget as u16) << BUDGET;
        Self((self.0 & !(1 << BUDGET)) | bit)
    }

    /// Returns what ties the allocation to its place.
    pub fn bond(self) -> Bond {
        match self.0 >> BOND {
            0 => Bond::Loose,
            1 => Bond::Pinned,
            2 => Bond::Wanted,
            _ => Bond::Fixed,
        }
    }

    /// Returns whether the allocation may leave.
    pub fn may_leave(self) -> bool {
        self.bond() == Bond::Loose
    }

    /// Returns where those with this rank stand among all that may leave, below 256; those that may
    /// not leave come last.
    pub fn order(self) -> u32 {
        match self.bond() {
            Bond::Loose => (self.0 & 0xff).into(),
            _ => 0xff,
        }
    }

    /// Returns the same rank with another tie.
    pub fn tied(self, bond: Bond) -> Self {
        // CAST: 0 to 3, shifted by eight.
        Self((self.0 & ((1 << BOND) - 1)) | ((bond as u16) << BOND))
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_rank))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    const IDLE: Standing = Standing {
        bond: Bond::Loose,
        need: Need::Idle,
        offer: Offer::None,
        priority: 3,
    };

    #[test]
    fn ranks_come_in_the_order_of_the_table() {
        let first_to_last = [
            Standing {
                offer: Offer::Low,
                priority: 5,
                ..IDLE
            },
            Standing {
                offer: Offer::Normal,
                priority: 1,
                ..IDLE
            },
            Standing {
                offer: Offer::High,
                ..IDLE
            },
            Standing {
                priority: 1,
                ..IDLE
            },
            Standing {
                priority: 4,
                ..IDLE
            },
            Standing {
                need: Need::Required,
                offer: Offer::Low,
                priority: 1,
                ..IDLE
            },
            Standing {
                need: Need::Required,
                priority: 4,
                ..IDLE
            },
            Standing {
                priority: 5,
                ..IDLE
            },
            Standing {
                need: Need::Required,
                priority: 5,
                ..IDLE
            },
            Standing {
                bond: Bond::Pinned,
                priority: 1,
                ..IDLE
            },
            Standing {
                bond: Bond::Wanted,
                ..IDLE
            },
            Standing {
                bond: Bond::Fixed,
                ..IDLE
            },
        ];
        let ranks = first_to_last.map(Standing::rank);
        assert!(ranks.is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn budget_counts_between_offer_and_priority() {
        let rank = IDLE.rank();
        let favoured = Standing {
            priority: 4,
            ..IDLE
        };
        let offered = Standing {
            offer: Offer::High,
            ..IDLE
        };
        let over = favoured.rank().with(Budget::Over);
        assert!(over < rank.with(Budget::Within));
        assert!(offered.rank().with(Budget::Within) < over);
    }

    #[test]
    fn only_loose_ones_may_leave() {
        let rank = IDLE.rank();
        assert!(rank.may_leave());
        for bond in [Bond::Pinned, Bond::Wanted, Bond::Fixed] {
            assert!(!rank.tied(bond).may_leave());
            assert_eq!(rank.tied(bond).bond(), bond);
            assert_eq!(rank.tied(bond).tied(Bond::Loose), rank);
        }
    }
}
