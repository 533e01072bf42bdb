// SPDX-License-Identifier: GPL-2.0

//! Preparing submissions, whole or portion by portion.
//!
//! A submission that may fit is tried as a whole first. If that leads nowhere, the policy says how far the
//! next portion reaches and where everything lies meanwhile ([`crate::policy::splitting`]), and everything is
//! brought there in the order of the patch list. What others have pinned is a reason to wait, not to
//! cut: a cut is made where memory does not suffice even without them.

use kernel::{
    list::ListArc,
    prelude::*, //
};

use crate::{
    abstractions::trace,
    backend::Capabilities,
    object::{
        adapter::Adapter,
        allocation::Allocation,
        context::Mode,
        need::Need,
        placement::{
            Behalf,
            Paged,
            Refusal,
            Residency, //
        },
        residence::Residence,
        scheduler,
        submission::{
            Extent,
            Submission, //
        },
    },
    policy::{
        eviction::{
            Fate,
            Occupant, //
        },
        patching::{
            Table,
            Use, //
        },
        splitting::{
            self,
            Area,
            Cut,
            Gap,
            Ground,
            Hold,
            Item,
            NoPlace,
            Portion,
            Scratch,
            Spot,
            Wanted, //
        },
    },
};

use super::Desk;

/// How a plan looks at what others have pinned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    /// It is in the way.
    Now,
    /// It will be gone.
    Later,
}

/// Memory for plans.
pub(super) struct Draft {
    slots: KVVec<u32>,
    uses: KVVec<Use>,
    items: KVVec<Item>,
    order: KVVec<u32>,
    gaps: KVVec<Gap>,
    areas: KVVec<Area>,
    occupants: KVVec<Occupant>,
}

impl Draft {
    /// Takes memory for plans on an adapter.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new(capabilities: &Capabilities) -> Result<Self> {
        let nodes = capabilities.nodes.iter();
        let longest = nodes.map(|node| node.limits.allocations).max().unwrap_or(0);
        let segments = capabilities.segments.iter();
        let pages: u64 = segments
            .map(|segment| segment.bytes / segment.page_bytes.max(1))
            .fold(0, u64::saturating_add);
        // CAST: `usize` has 64 bits wherever this driver runs.
        let (longest, pages) = (longest as usize, pages as usize);
        // CAST: as above.
        let slots = capabilities.patch_slots as usize;
        let nobody = Occupant::nobody();
        Ok(Self {
            slots: KVVec::from_elem(0, slots, GFP_KERNEL)?,
            uses: KVVec::from_elem(Use::default(), longest, GFP_KERNEL)?,
            items: KVVec::from_elem(Item::default(), longest, GFP_KERNEL)?,
            order: KVVec::from_elem(0, longest, GFP_KERNEL)?,
            // One behind each occupant and one more in each segment.
            gaps: KVVec::from_elem(
                Gap::default(),
                pages.saturating_add(capabilities.segments.len()),
                GFP_KERNEL,
            )?,
            areas: KVVec::with_capacity(capabilities.segments.len(), GFP_KERNEL)?,
            occupants: KVVec::from_elem(nobody, pages, GFP_KERNEL)?,
        })
    }

    /// Plans the portion of `submission` that begins at `start`.
    fn plan(
        &mut self,
        residency: &Residency,
        submission: &Submission,
        start: Cut,
        view: View,
    ) -> Result<Portion, NoPlace> {
        let lists = submission.lists();
        let count = lists.listed.len();
        self.areas.clear();
        for segment in &residency.segments {
            let _ = self.areas.push_within_capacity(segment.area());
        }
        let mut ground = Ground::new(&mut self.areas, &mut self.occupants);
        for segment in &residency.segments {
            segment.describe(&mut ground, |residence| match view {
                View::Now if residence.stays() => Fate::Stays,
                View::Later if residence.fixed > 0 => Fate::Stays,
                _ => Fate::Leaves,
            });
        }
        ground.settle();
        let items = self.items.get_mut(..count).unwrap_or_default();
        for (item, index) in items.iter_mut().zip(0..) {
            let need = submission.element(index).map(|(_, need)| need);
            *item = need.map_or(Item::default(), |need| describe(residency, need, view));
        }
        let uses = self.uses.get_mut(..count).unwrap_or_default();
        let mut table = Table::new(&mut self.slots, uses);
        let scratch = Scratch {
            order: &mut self.order,
            gaps: &mut self.gaps,
        };
        splitting::plan(&lists, start, items, &mut table, &mut ground, scratch)
    }

    /// Returns where the plan wants element `index` of the allocation list.
    fn spot(&self, index: u32) -> Option<Spot> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.items.get(index as usize)?.spot()
    }

    /// Calls `each` for all that must stay where it is if `submission` is cut at `cut`.
    fn kept_across(&mut self, submission: &Submission, cut: Cut, mut each: impl FnMut(&Need)) {
        let lists = submission.lists();
        let uses = self.uses.get_mut(..lists.listed.len()).unwrap_or_default();
        let mut table = Table::new(&mut self.slots, uses);
        splitting::kept_across(&lists, cut, &mut table, |index| {
            let need = u32::try_from(index)
                .ok()
                .and_then(|index| submission.element(index));
            if let Some((_, need)) = need {
                each(need);
            }
        });
    }
}

/// Describes what a need is and where it lies.
fn describe(residency: &Residency, need: &Need, view: View) -> Item {
    let allocation = need.allocation();
    let residence = allocation.residence().lock();
    Item::new(Wanted {
        bytes: allocation.size(),
        align: allocation.shape().align,
        segments: allocation.segments(),
        preferred: allocation.preferred(),
        place: residency.spot_of(&residence),
        hold: if is_fast(need, &residence, view) {
            Hold::Fast
        } else {
            Hold::Loose
        },
    })
}

/// Returns whether others need it where it is.
fn is_fast(need: &Need, residence: &Residence, view: View) -> bool {
    let own = u32::from(need.is_held());
    let by_others = residence.pins > 0 || residence.slot_holds() > own;
    residence.fixed > 0 || (view == View::Now && by_others)
}

impl Desk {
    /// Brings in and pins what the next portion of a submission needs, or nothing.
    pub(super) fn prepare(
        &mut self,
        adapter: &Adapter,
        submission: &mut ListArc<Submission>,
    ) -> Result<(), Refusal> {
        let is_listed = submission.context().mode() == Mode::PatchedList;
        let is_new = submission.progress().portion.is_none();
        let prepared = if !is_listed || submission.progress().dma.is_none() {
            self.prepare_at_once(adapter, submission)
        } else if is_new
            && submission.extent() == Extent::Whole
            && self.try_whole(adapter, submission)
        {
            Ok(submission.whole())
        } else {
            self.prepare_portion(adapter, submission)
        };
        self.builder.flush(adapter.paging());
        submission.progress_mut().portion = Some(prepared?);
        if submission.is_at_last_portion() {
            // From here on it is pinned.
            submission.dismiss();
        }
        scheduler::locate(&adapter.residency().lock(), submission);
        if submission.space().is_some() {
            let settles = self.builder.settles(adapter.paging());
            let progress = submission.progress_mut();
            progress.settled = progress.settled.max(settles);
        }
        Ok(())
    }

    /// Brings in everything: nothing is cut.
    fn prepare_at_once(
        &mut self,
        adapter: &Adapter,
        submission: &ListArc<Submission>,
    ) -> Result<Portion, Refusal> {
        let needs = submission.needs();
        let list = needs.iter().map(Need::allocation);
        let paged = self.bring_all(adapter, list, Behalf::Work, |index, paged_in| {
            if let Some(need) = needs.get(index) {
                need.note(paged_in);
            }
        })?;
        self.note_whole(submission, paged);
        if let Err(refusal) = self.prepare_space(adapter, submission) {
            submission.needs().iter().for_each(Need::unpin);
            return Err(refusal);
        }
        Ok(submission.whole())
    }

    /// Lets the tables of the space in which a submission runs say what is mapped.
    fn prepare_space(&mut self, adapter: &Adapter, submission: &Submission) -> Result<(), Refusal> {
        let Some(space) = submission.space() else {
            return Ok(());
        };
        let mut residency = adapter.residency().lock();
        let mut mover = self.mover(adapter, &mut residency, trace::Cause::Resident);
        let settled = mover.settle(space);
        drop(residency);
        self.builder.flush(adapter.paging());
        settled
    }

    /// Brings in everything, if that is possible one after the other; says whether it was.
    fn try_whole(&mut self, adapter: &Adapter, submission: &ListArc<Submission>) -> bool {
        let needs = submission.needs();
        let list = needs.iter().map(Need::allocation);
        let note = |index: usize, paged_in| {
            if let Some(need) = needs.get(index) {
                need.note(paged_in);
            }
        };
        let mut paged = Paged::default();
        let brought = self.bring_once(adapter, list, Behalf::Work, &note, &mut paged);
        match brought {
            Ok(()) => self.note_whole(submission, paged),
            Err(_) => submission.record().update(|report| report.paged.add(paged)),
        }
        brought.is_ok()
    }

    /// Notes that everything is pinned.
    fn note_whole(&mut self, submission: &ListArc<Submission>, paged: Paged) {
        submission.needs().iter().for_each(Need::note_pinned);
        submission.record().update(|report| report.paged.add(paged));
        for entry in 0..submission.patches().len() {
            scheduler::announce(submission, entry, None);
        }
    }

    /// Plans the next portion and brings in what it needs.
    fn prepare_portion(
        &mut self,
        adapter: &Adapter,
        submission: &mut ListArc<Submission>,
    ) -> Result<Portion, Refusal> {
        let portion = self.plan_portion(adapter, submission)?;
        let is_cut = portion.end.offset < submission.whole().end.offset;
        if is_cut && !self.turns.begin(submission) {
            return Err(Refusal::Occupied);
        }
        let mut paged = Paged::default();
        let brought = self.bring_portion(adapter, submission, &portion, &mut paged);
        submission.record().update(|report| report.paged.add(paged));
        if brought.is_err() {
            submission.needs().iter().for_each(Need::unpin);
        }
        brought?;
        submission.progress_mut().announced = portion.failed.unwrap_or(submission.patches().len());
        submission.needs().iter().for_each(Need::let_go);
        if is_cut {
            self.draft
                .kept_across(submission, portion.end, |need| need.hold());
        }
        if let Some(entry) = portion.failed {
            scheduler::announce(submission, entry, Some(trace::Prepared::NoMemory));
        }
        Ok(portion)
    }

    /// Says how far the next portion reaches; the draft says where everything lies.
    fn plan_portion(
        &mut self,
        adapter: &Adapter,
        submission: &ListArc<Submission>,
    ) -> Result<Portion, Refusal> {
        let start = submission.next_cut();
        let residency = adapter.residency().lock();
        let draft = &mut self.draft;
        let now = draft.plan(&residency, submission, start, View::Now);
        let reaches = |portion: &Portion| (portion.end.offset, portion.failed.is_none());
        let whole = submission.whole();
        match now {
            Ok(now) if reaches(&now) >= reaches(&whole) => return Ok(now),
            _ => {}
        }
        let later = draft
            .plan(&residency, submission, start, View::Later)
            .map_err(|_| Refusal::NoPlace)?;
        match now {
            Ok(now) if reaches(&now) >= reaches(&later) => {
                // The places are those of the last plan.
                draft
                    .plan(&residency, submission, start, View::Now)
                    .map_err(|_| Refusal::Occupied)
            }
            _ => Err(Refusal::Occupied),
        }
    }

    /// Brings everything to its place that a portion needs, in the order of the patch list, and pins
    /// it.
    fn bring_portion(
        &mut self,
        adapter: &Adapter,
        submission: &ListArc<Submission>,
        portion: &Portion,
        paged: &mut Paged,
    ) -> Result<(), Refusal> {
        let announced = submission.progress().announced;
        let end = portion.failed.unwrap_or(submission.patches().len());
        for entry in portion.start.entry..end {
            let index = submission
                .patches()
                .get(entry)
                .map(|patch| patch.alloc_index);
            if let Some(index) = index {
                self.bring_element(adapter, submission, portion, index, paged)?;
            }
            if entry >= announced {
                scheduler::announce(submission, entry, None);
            }
        }
        // What was bound before and no entry names again.
        for index in (0..u32::MAX).take(submission.lists().listed.len()) {
            self.bring_element(adapter, submission, portion, index, paged)?;
        }
        Ok(())
    }

    /// Brings an element of the allocation list to its place, if the portion needs it and has not pinned
    /// it yet.
    fn bring_element(
        &mut self,
        adapter: &Adapter,
        submission: &ListArc<Submission>,
        portion: &Portion,
        index: u32,
        paged: &mut Paged,
    ) -> Result<(), Refusal> {
        let need = submission.element(index).map(|(_, need)| need);
        let wanted = need
            .filter(|need| !need.is_pinned())
            .zip(self.draft.spot(index));
        let Some((need, spot)) = wanted else {
            return Ok(());
        };
        self.resort(adapter);
        let cause = if portion.start.offset == 0 {
            trace::Cause::Resident
        } else {
            trace::Cause::Split
        };
        let mut residency = adapter.residency().lock();
        if residency.finds_no_place(need.allocation()) {
            return Err(Refusal::NoPlace);
        }
        let draft = &self.draft;
        let planned = |other: &Allocation| {
            let elements = (0..u32::MAX).take(submission.lists().listed.len());
            let mut others = elements.filter(|other_index| {
                let other_need = submission.element(*other_index);
                other_need
                    .is_some_and(|(_, need)| need.allocation().object_id() == other.object_id())
            });
            draft.spot(others.next()?)
        };
        let mut mover = super::mover(&mut self.builder, adapter, &mut residency, cause);
        let brought = mover.bring_to(need.allocation(), spot, planned);
        let more = mover.paged;
        drop(residency);
        paged.add(more);
        need.note(more.bytes_in > 0);
        brought?;
        need.note_pinned();
        Ok(())
    }
}
