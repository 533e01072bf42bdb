// SPDX-License-Identifier: GPL-2.0

//! One request: a list that comes as a whole or not at all.
//!
//! All of the list is *wanted* while the request is carried out, so what is there already does not leave
//! to make room for the rest.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::trace,
    object::{
        adapter::Adapter,
        allocation::Allocation,
        placement::{
            Behalf,
            Paged,
            Refusal, //
        },
    },
};

use super::Desk;

impl Desk {
    /// Brings in and pins everything in `list`, or pins nothing. `note` is told the index of each
    /// that came and whether content was brought in.
    ///
    /// What needs one run comes first. If the list stands in its own way, because some of it lies
    /// where the rest should be, and nobody else is pinned there, everybody leaves and the list comes
    /// once more: in empty segments runs lie side by side, so what fits in sum has its place.
    pub(super) fn bring_all<'a>(
        &mut self,
        adapter: &Adapter,
        list: impl Iterator<Item = &'a Arc<Allocation>> + Clone,
        behalf: Behalf,
        note: impl Fn(usize, bool),
    ) -> Result<Paged, Refusal> {
        let mut paged = Paged::default();
        if self
            .bring_once(adapter, list.clone(), behalf, &note, &mut paged)
            .is_ok()
        {
            return Ok(paged);
        }
        for one in list.clone() {
            if adapter.residency().lock().is_contended(one) {
                return Err(Refusal::Occupied);
            }
        }
        for one in list.clone() {
            let mut residency = adapter.residency().lock();
            let mut mover = self.mover(adapter, &mut residency, trace::Cause::Pressure);
            mover.evacuate(one);
            paged.add(mover.paged);
        }
        self.builder.flush(adapter.paging());
        self.bring_once(adapter, list, behalf, &note, &mut paged)
            .map(|()| paged)
            .map_err(|_| Refusal::NoPlace)
    }

    /// Brings in and pins everything in `list`, or pins nothing, without trying twice.
    pub(super) fn bring_once<'a>(
        &mut self,
        adapter: &Adapter,
        list: impl Iterator<Item = &'a Arc<Allocation>> + Clone,
        behalf: Behalf,
        note: &impl Fn(usize, bool),
        paged: &mut Paged,
    ) -> Result<(), Refusal> {
        let runs = list
            .clone()
            .enumerate()
            .filter(|(_, one)| one.is_contiguous());
        let loose = list.enumerate().filter(|(_, one)| !one.is_contiguous());
        let order = Iterator::chain(runs, loose);
        // None of them leaves to make room for the others.
        order.clone().for_each(|(_, one)| Allocation::want(one));
        let brought = self.bring_each(adapter, order.clone(), behalf, note, paged);
        order.for_each(|(_, one)| Allocation::unwant(one));
        self.resort(adapter);
        brought
    }

    fn bring_each<'a>(
        &mut self,
        adapter: &Adapter,
        order: impl Iterator<Item = (usize, &'a Arc<Allocation>)> + Clone,
        behalf: Behalf,
        note: &impl Fn(usize, bool),
        paged: &mut Paged,
    ) -> Result<(), Refusal> {
        for (count, (index, one)) in order.clone().enumerate() {
            self.resort(adapter);
            // What is pinned stays, so the lock need not be held for the whole list.
            let mut residency = adapter.residency().lock();
            let mut mover = self.mover(adapter, &mut residency, trace::Cause::Resident);
            mover.behalf = behalf;
            let brought = mover.bring(one);
            let more = mover.paged;
            drop(residency);
            paged.add(more);
            note(index, more.bytes_in > 0);
            if let Err(refusal) = brought {
                for (_, one) in order.take(count) {
                    Allocation::unpin(one);
                }
                return Err(refusal);
            }
        }
        Ok(())
    }
}
