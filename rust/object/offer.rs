// SPDX-License-Identifier: GPL-2.0

//! OFFER and RECLAIM: memory whose content its client can do without.
//!
//! | state | the content | until |
//! |---|---|---|
//! | [`Offer::None`] | is the client's | OFFER |
//! | [`Offer::Announced`] | is needed by work that was queued before | that has ended |
//! | [`Offer::InForce`] | may be given up | somebody needs the space |
//! | [`Offer::GivenUp`] | is gone: the memory reads as zero | RECLAIM |
//!
//! RECLAIM leads back to the first state from every other one. An offer comes into force at once if
//! nothing uses the allocation, otherwise by the worker, when the last use has ended. Translations of the
//! CPU are removed then, and a touch finds nothing until RECLAIM.
//!
//! No use begins while an allocation is offered. Whoever begins one counts it first and looks at the flag
//! `Allocation::offered` then; OFFER sets the flag first and looks at the counts then. So one of the two
//! sees the other, in whatever order they come.
//!
//! # Locking
//!
//! The state is part of the residence (rank 2); whoever changes it holds `Adapter::residency` (rank 1) as
//! well, so a list is offered, or reclaimed, in one step.

use kernel::{
    prelude::*,
    sync::{
        atomic::Acquire,
        Arc, //
    },
};

use crate::{
    object::{
        allocation::{
            Allocation,
            Flag,
            Hold, //
        },
        client::Sum,
        device::Device,
        placement::Residency,
        residence::{
            Residence,
            Wish, //
        },
        residency::Refused, //
    },
    policy::eviction,
};

mod reclaim;
mod surrender;

pub(crate) use self::{
    reclaim::{
        reclaim,
        Outcome, //
    },
    surrender::Order, //
};

pub(super) use self::surrender::Surrender;

/// Which offered content is given up first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// The first to go.
    Low,
    /// Between the others; also for a client that leaves the choice to us, since among equals the order
    /// of use decides.
    Normal,
    /// The last to go.
    High,
}

/// Whether the pages behind an offered allocation may be given up, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// They stay.
    Stay,
    /// They may go with the content.
    MayGo,
}

/// What an offer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// The work queued so far.
    AfterWork,
    /// Nothing: it fails if there is any.
    Now,
}

/// What OFFER says of its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// When the content goes, compared with other offers.
    pub(crate) level: Level,
    /// What goes with it.
    pub(crate) pages: Pages,
}

/// Whether an allocation is offered, and what has become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// It is not.
    None,
    /// It is, behind the work queued so far.
    Announced(Terms),
    /// Its content may be given up.
    InForce(Terms),
    /// Its content has been given up.
    GivenUp(Terms),
}

impl Offer {
    /// Returns whether its content may be given up, or has been.
    pub(super) fn is_in_force(self) -> bool {
        matches!(self, Self::InForce(_) | Self::GivenUp(_))
    }

    /// Returns whether its content has been given up.
    pub(crate) fn is_given_up(self) -> bool {
        matches!(self, Self::GivenUp(_))
    }

    /// Returns what the choice of victims makes of it.
    pub(super) fn rank(self) -> eviction::Offer {
        match self {
            Self::None | Self::Announced(_) => eviction::Offer::None,
            Self::InForce(terms) | Self::GivenUp(terms) => match terms.level {
                Level::Low => eviction::Offer::Low,
                Level::Normal => eviction::Offer::Normal,
                Level::High => eviction::Offer::High,
            },
        }
    }

    /// Notes that the content is given up.
    pub(super) fn give_up(&mut self) {
        if let Self::InForce(terms) = *self {
            *self = Self::GivenUp(terms);
        }
    }
}

/// Offers everything in the list, or nothing.
///
/// # Errors
///
/// - `ENOENT`: the handle of one has been closed meanwhile.
/// - `EBUSY`: one is offered already, or stays where it is; or, [`Patience::Now`], work uses it.
/// - `ENOMEM`: no memory.
///
/// Requirement: RES-21.
pub(crate) fn offer(
    device: &Device,
    allocations: &[Hold],
    terms: Terms,
    patience: Patience,
) -> Result<(), Refused> {
    if terms.pages == Pages::MayGo {
        for hold in allocations {
            Surrender::equip(hold)?;
        }
    }
    let mut residency = device.adapter().residency().lock();
    for (index, hold) in allocations.iter().enumerate() {
        if let Err(error) = announce(hold, terms, patience) {
            withdraw(allocations.iter().take(index));
            return Err(Refused::at(error, index));
        }
    }
    for hold in allocations {
        hold.set_offered(true);
    }
    if patience == Patience::Now {
        // Work may have been accepted between the first look and the flag.
        let busy = |hold: &Hold| hold.is_in_use(&hold.residence().lock());
        if let Some(index) = allocations.iter().position(busy) {
            withdraw(allocations.iter());
            return Err(Refused::at(EBUSY, index));
        }
    }
    for hold in allocations {
        let usage = hold.device().client().usage();
        usage.add(Sum::Offered, hold.size());
        residency.put_in_force(hold.allocation());
    }
    Ok(())
}

/// Writes down an offer, unless the allocation cannot be offered.
fn announce(hold: &Hold, terms: Terms, patience: Patience) -> Result {
    let mut residence = hold.residence().lock();
    if residence.forgotten {
        return Err(ENOENT);
    }
    let stays = residence.fixed > 0 || hold.flags().contains(Flag::Pinned);
    if residence.offer != Offer::None || stays {
        return Err(EBUSY);
    }
    if patience == Patience::Now && hold.is_in_use(&residence) {
        return Err(EBUSY);
    }
    residence.offer = Offer::Announced(terms);
    Ok(())
}

/// Takes back what [`announce`] wrote down.
fn withdraw<'a>(announced: impl Iterator<Item = &'a Hold>) {
    for hold in announced {
        hold.residence().lock().offer = Offer::None;
        hold.set_offered(false);
    }
}

impl Residency {
    /// Puts an announced offer in force, if the work queued before it has ended.
    pub(super) fn put_in_force(&mut self, allocation: &Arc<Allocation>) {
        let mut residence = allocation.residence().lock();
        let due = allocation.offer_due(&residence);
        let (Offer::Announced(_), Offer::InForce(terms)) = (residence.offer, due) else {
            return;
        };
        allocation.adapter().unmap(allocation, &mut residence);
        residence.offer = Offer::InForce(terms);
        self.offers.enter(allocation, &mut residence, terms);
        let awaited = residence.wish == Wish::Reach;
        if awaited {
            residence.wish = Wish::None;
        }
        drop(residence);
        self.rerank(allocation);
        if awaited {
            // Who waits to touch it has waited in vain.
            allocation.moved();
        }
    }
}

impl Residency {
    /// Takes an offer back, if there is one.
    pub(super) fn withdraw(&mut self, allocation: &Allocation, residence: &mut Residence) {
        if residence.offer == Offer::None {
            return;
        }
        self.offers.leave(allocation, residence);
        residence.offer = Offer::None;
        allocation.set_offered(false);
        let usage = allocation.device().client().usage();
        usage.sub(Sum::Offered, allocation.size());
        if residence.wish == Wish::GiveUp {
            residence.wish = Wish::None;
        }
    }
}

impl Allocation {
    /// Returns whether anything that was queued so far may still need it. `residence` proves its lock.
    pub(super) fn is_in_use(&self, residence: &Residence) -> bool {
        residence.commands > 0
            || residence.is_tied()
            || self.is_busy()
            || self.requirements().load(Acquire) > 0
    }

    /// Returns how far an offer is, or would be if the worker had come to it.
    pub(super) fn offer_due(&self, residence: &Residence) -> Offer {
        match residence.offer {
            Offer::Announced(terms) if !self.is_in_use(residence) => Offer::InForce(terms),
            offer => offer,
        }
    }

    /// Counts its content as given up.
    pub(super) fn count_discarded(&self) {
        let usage = self.device().client().usage();
        usage.add(Sum::Discarded, self.size());
        self.adapter().add_discarded(self.size());
    }
}
