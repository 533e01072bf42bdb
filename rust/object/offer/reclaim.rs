// SPDX-License-Identifier: GPL-2.0

//! RECLAIM: offered memory becomes the client's again.
//!
//! All of a list is reclaimed in one step, under `Adapter::residency`. What needs memory for that is taken
//! before, by the calling thread: pages for allocations that have lost theirs, and a command for the worker
//! if something is on the requirement list and not in place. Whether it is needed shows only under the
//! lock, so the step is tried, and tried again with what was lacking.

use kernel::{
    list::ListArc,
    prelude::*,
    sync::Arc, //
};

use crate::object::{
    allocation::Hold,
    backing::Backing,
    client::Sum,
    command::Command,
    paging_queue::PagingQueue,
    placement::Residency,
    residence::Residence,
    residency::{
        self,
        Answer,
        Refused,
        Urgency, //
    },
};

use super::Offer;

/// What RECLAIM finds of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its content is intact.
    Intact,
    /// Its content is gone; it reads as zero.
    Discarded,
    /// Its pages are gone, too, and could not be had again: it stays offered.
    NotCommitted,
}

/// Reclaims everything in the list, and tells `report` what became of each. What is not offered stays as it
/// is.
///
/// # Errors
///
/// - `ENOMEM`: no memory; nothing is reclaimed.
///
/// Requirement: RES-22.
pub(crate) fn reclaim(
    queue: &Arc<PagingQueue>,
    allocations: &[Hold],
    mut report: impl FnMut(usize, Outcome),
) -> Result<Answer, Refused> {
    let adapter = queue.device().adapter();
    let mut supplies = Supplies::default();
    loop {
        let mut residency = adapter.residency().lock();
        let completed = adapter.paging().completed();
        if !supplies.suffice(allocations, completed) {
            drop(residency);
            supplies.stock_up(queue, allocations, completed)?;
            continue;
        }
        for (index, hold) in allocations.iter().enumerate() {
            report(index, supplies.reclaim_one(&mut residency, index, hold));
        }
        if let Some(command) = &supplies.command {
            for hold in command.allocations() {
                hold.residence().lock().commands += 1;
            }
        }
        break;
    }
    match supplies.command {
        Some(command) => Ok(Answer::Pending(residency::send(queue, command))),
        None => Ok(Answer::Ready),
    }
}

/// What was taken for the step.
#[derive(Default)]
struct Supplies {
    /// Pages for elements of the list that have none, or the knowledge that there are none, in the order
    /// of the list.
    pages: KVVec<(usize, Option<Backing>)>,
    /// What brings in the allocations that are on the requirement list.
    command: Option<ListArc<Command>>,
}

impl Supplies {
    /// Returns whether nothing is lacking.
    fn suffice(&self, allocations: &[Hold], completed: u64) -> bool {
        allocations.iter().enumerate().all(|(index, hold)| {
            let residence = hold.residence().lock();
            let committed = match is_uncommitted(hold, &residence) {
                true => self.pages_for(index).map(|at| self.has_pages(at)),
                false => Some(true),
            };
            match committed {
                None => false,
                Some(false) => true,
                Some(true) => self.command.is_some() || !is_missed(&residence, completed),
            }
        })
    }

    /// Returns the place of what was found for an element.
    fn pages_for(&self, index: usize) -> Option<usize> {
        let found = self.pages.binary_search_by_key(&index, |(index, _)| *index);
        found.ok()
    }

    /// Returns whether there are pages at this place.
    fn has_pages(&self, at: usize) -> bool {
        self.pages.get(at).is_some_and(|(_, pages)| pages.is_some())
    }

    /// Takes what is lacking.
    fn stock_up(
        &mut self,
        queue: &Arc<PagingQueue>,
        allocations: &[Hold],
        completed: u64,
    ) -> Result<(), Refused> {
        let mut pages = KVVec::with_capacity(allocations.len(), GFP_KERNEL_ACCOUNT)?;
        let mut required = KVVec::with_capacity(allocations.len(), GFP_KERNEL_ACCOUNT)?;
        let mut missed = false;
        for (index, hold) in allocations.iter().enumerate() {
            let residence = hold.residence().lock();
            let uncommitted = is_uncommitted(hold, &residence);
            let (is_required, is_missed) =
                (residence.references() > 0, is_missed(&residence, completed));
            drop(residence);
            if uncommitted {
                let backing = hold.take_backing().ok();
                let failed = backing.is_none();
                let _ = pages.push_within_capacity((index, backing));
                if failed {
                    continue;
                }
            }
            missed |= is_missed;
            if is_required {
                let _ = required.push_within_capacity(hold.clone());
            }
        }
        self.pages = pages;
        self.command = match missed {
            true => Some({
                let kept = residency::keep(&required)?;
                Command::new(queue, required, Urgency::MayFail, kept)?
            }),
            false => None,
        };
        Ok(())
    }

    /// Reclaims one element of the list.
    fn reclaim_one(&mut self, residency: &mut Residency, index: usize, hold: &Hold) -> Outcome {
        let mut residence = hold.residence().lock();
        let outcome = match residence.offer {
            Offer::GivenUp(_) => Outcome::Discarded,
            _ => Outcome::Intact,
        };
        if is_uncommitted(hold, &residence) {
            let found = self.pages_for(index).and_then(|at| self.pages.get_mut(at));
            let Some(pages) = found.and_then(|(_, pages)| pages.take()) else {
                return Outcome::NotCommitted;
            };
            // It has none, so none is left over.
            let _ = residence.install(pages);
            if residence.note_commitment() {
                let usage = hold.device().client().usage();
                usage.add(Sum::Backing, hold.size());
                hold.adapter().statistics().backed(hold.size());
            }
        }
        residency.withdraw(hold, &mut residence);
        outcome
    }
}

/// Returns whether the pages went with the content. Those that Linux may swap come and go by themselves.
fn is_uncommitted(hold: &Hold, residence: &Residence) -> bool {
    !hold.is_swappable() && residence.offer.is_given_up() && residence.backing().is_none()
}

/// Returns whether the allocation is on the requirement list and not in place.
fn is_missed(residence: &Residence, completed: u64) -> bool {
    residence.offer != Offer::None && residence.references() > 0 && !residence.is_ready(completed)
}
