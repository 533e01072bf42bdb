// SPDX-License-Identifier: GPL-2.0

//! CPU mappings that follow the memory.
//!
//! A mapping belongs to an allocation, not to a place. A page is put in place when it is touched,
//! from where the allocation is at that moment: its backing pages, or a memory segment that the CPU
//! can see (SEG-6), or through the window onto one that it cannot ([`host_aperture`], SEG-7). A move
//! removes the translations first, and a touch meanwhile waits until the new place is in force; so a
//! program sees a delay and never a move. Memory in a segment without a window that the CPU cannot see
//! comes to system memory when it is touched.
//!
//! The rule that makes it safe: a translation is inserted under `Allocation::residence`, and removed
//! under it after the place has changed. An insertion that saw the old place is over before the
//! removal begins.
//!
//! [`host_aperture`]: super::host_aperture

use core::num::NonZeroU64;

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Full,
            Relaxed, //
        },
        Arc, //
    },
};

use crate::{
    abstractions::{
        pages::Frame,
        scheduling,
        vm_area::{
            Fault,
            HugeFault,
            Mapping,
            Outcome,
            HUGE_BYTES, //
        },
        wait_queue::Sleep,
    },
    object::{
        adapter::Adapter,
        allocation::{
            Allocation,
            Hold, //
        },
        fence_page::FencePage,
        host_aperture::{
            Crowded,
            HostAperture,
            View,
            Wanted, //
        },
        reclaim::{
            self,
            Kept, //
        },
        residence::{
            Location,
            Residence,
            Translations,
            Wish, //
        },
        worker::Worker, //
    },
    units::PAGE_BYTES,
};

/// A mapping of an allocation. It claims the storage, not the handle.
pub(crate) struct AllocationMapping {
    hold: Hold,
    /// The mapping offset at which the allocation begins.
    start: u64,
}

impl AllocationMapping {
    /// Returns a mapping of the allocation whose offsets begin at `start`.
    pub(crate) fn new(hold: Hold, start: u64) -> Self {
        hold.mappings().fetch_add(1, Relaxed);
        Self { hold, start }
    }

    /// Puts `pages` pages from the device-file offset `offset` on in place, once the allocation
    /// can be reached.
    fn touch(&self, fault: &mut impl Touch, offset: u64, pages: u64) -> Outcome {
        let allocation = self.hold.allocation();
        let Some(offset) = offset.checked_sub(self.start) else {
            return Outcome::BUS_ERROR;
        };
        let mut kept = None;
        loop {
            let ended = match touch(allocation, offset / PAGE_BYTES, pages, fault) {
                Found::Inserted(outcome) => Some(outcome),
                Found::Nothing => Some(Outcome::BUS_ERROR),
                Found::Uncommitted => match commit(allocation, &mut kept) {
                    Ok(()) => None,
                    // Reclaim was tried. An answer of "out of memory" would let the task try for
                    // ever, or have somebody killed for it.
                    Err(_) => Some(Outcome::BUS_ERROR),
                },
                Found::Moving(settled) => {
                    fault.wait(|| wait_settled(allocation.adapter(), settled))
                }
                Found::Stained if scheduling::fatal_signal_pending() => Some(Outcome::KILLED),
                Found::Stained => {
                    allocation.residence().lock().clear_some();
                    None
                }
                Found::OutOfReach => fault.wait(|| wait_in_reach(allocation)),
                Found::Crowded(window, crowded) => fault.wait(|| window.wait(crowded)),
            };
            if let Some(outcome) = ended {
                return outcome;
            }
        }
    }
}

impl Drop for AllocationMapping {
    /// Gives pages of the window back with the last mapping.
    fn drop(&mut self) {
        let allocation = self.hold.allocation();
        if allocation.mappings().fetch_sub(1, Full) > 1 {
            return;
        }
        let mut residence = allocation.residence().lock();
        if let Translations::Window(_) = residence.translations {
            // A mapping may be new by now; then it is touched again.
            allocation.adapter().unmap(allocation, &mut residence);
        }
    }
}

impl Mapping for AllocationMapping {
    fn fault(&self, fault: &mut Fault<'_>) -> Outcome {
        let offset = fault.offset();
        self.touch(fault, offset, 1)
    }

    fn huge_fault(&self, fault: &mut HugeFault<'_>) -> Outcome {
        let offset = fault.offset();
        // A huge page that hangs over the end of the allocation is put in place page by page.
        let end = self.start.saturating_add(self.hold.size());
        if offset.saturating_add(HUGE_BYTES) > end {
            return Outcome::FALLBACK;
        }
        self.touch(fault, offset, HUGE_BYTES / PAGE_BYTES)
    }
}

/// A touch of small or huge pages.
trait Touch {
    /// Inserts what begins at `frame`.
    fn insert(&mut self, frame: Frame) -> Outcome;

    /// Inserts what a page of a window shows, when its byte `inside` was touched.
    fn insert_view(&mut self, view: &View<'_>, inside: u64) -> Outcome;

    /// Waits without holding others up; see [`Fault::wait`].
    fn wait(&mut self, wait: impl FnOnce() -> bool) -> Option<Outcome>;
}

impl Touch for Fault<'_> {
    fn insert(&mut self, frame: Frame) -> Outcome {
        Fault::insert(self, frame)
    }

    fn insert_view(&mut self, view: &View<'_>, inside: u64) -> Outcome {
        let Some(frames) = view.frames(inside) else {
            return Outcome::BUS_ERROR;
        };
        let outcome = self.insert(frames.first);
        let begin = self.offset().wrapping_sub(inside);
        let mut offset = 0;
        // The page of the window is there for all of it.
        while outcome == Outcome::DONE && offset < view.bytes() {
            let Some(frames) = view.frames(offset) else {
                break;
            };
            for page in 0..frames.count {
                let frame = frames.first.forward(page);
                self.insert_also(begin.wrapping_add(offset + page * PAGE_BYTES), frame);
            }
            offset += frames.count * PAGE_BYTES;
        }
        outcome
    }

    fn wait(&mut self, wait: impl FnOnce() -> bool) -> Option<Outcome> {
        Fault::wait(self, wait)
    }
}

impl Touch for HugeFault<'_> {
    fn insert(&mut self, frame: Frame) -> Outcome {
        HugeFault::insert(self, frame)
    }

    fn insert_view(&mut self, _view: &View<'_>, _inside: u64) -> Outcome {
        Outcome::FALLBACK
    }

    fn wait(&mut self, wait: impl FnOnce() -> bool) -> Option<Outcome> {
        HugeFault::wait(self, wait)
    }
}

/// What a touch finds.
enum Found<'a> {
    /// A page was inserted, or was not to be had as a huge one.
    Inserted(Outcome),
    /// There are no backing pages yet.
    Uncommitted,
    /// The place comes into force with this paging buffer.
    Moving(u64),
    /// The backing pages hold what was given up.
    Stained,
    /// It is where the CPU cannot see it.
    OutOfReach,
    /// It has to wait for a page of this window.
    Crowded(&'a HostAperture, Crowded),
    /// There is no such page, or it is offered.
    Nothing,
}

/// Looks for `pages` adjacent pages of an allocation, beginning with `page`, and inserts them.
fn touch<'a>(
    allocation: &'a Arc<Allocation>,
    page: u64,
    pages: u64,
    fault: &mut impl Touch,
) -> Found<'a> {
    let adapter = allocation.adapter();
    let mut residency = adapter.residency().lock();
    let mut residence = allocation.residence().lock();
    if residence.offer.is_in_force() {
        return Found::Nothing;
    }
    if !residence.is_settled(adapter.paging().completed()) {
        return Found::Moving(residence.settled);
    }
    if residence.is_stained() && residence.backing().is_some() {
        return Found::Stained;
    }
    let found = match &residence.location {
        Location::Segment(id, chain) => {
            let segment = residency.segment(*id);
            if let Some(window) = adapter.host_aperture(*id) {
                let (inside, offset) = split(page * PAGE_BYTES, window.page_bytes());
                let place = segment.and_then(|segment| segment.place_in(chain, offset));
                drop(residency);
                let wanted = place.map(|place| Wanted {
                    allocation,
                    offset,
                    place,
                });
                return touch_window(window, wanted, inside, &mut residence, fault);
            }
            if !segment.is_some_and(|segment| segment.visible) {
                return Found::OutOfReach;
            }
            let place = segment.and_then(|segment| segment.run_at(chain, page * PAGE_BYTES));
            place.and_then(|run| {
                let frames = adapter.backend().frames(run.place)?;
                Some((frames.first, frames.count.min(run.bytes / PAGE_BYTES)))
            })
        }
        _ => match residence.backing() {
            Some(backing) => backing.frames_at(page),
            None => return Found::Uncommitted,
        },
    };
    if !residence.is_resident() {
        residency
            .idle
            .enter(reclaim::Reason::Touched, allocation, &mut residence);
    }
    // Where it is cannot change any more before `residence` is released.
    drop(residency);
    let Some((frame, adjacent)) = found else {
        return Found::Nothing;
    };
    if adjacent < pages {
        return Found::Inserted(Outcome::FALLBACK);
    }
    residence.note_mapped(Translations::Direct);
    Found::Inserted(fault.insert(frame))
}

/// Returns where in its page of `page_bytes` the byte at `offset` is, and where that page begins.
fn split(offset: u64, page_bytes: NonZeroU64) -> (u64, u64) {
    let inside = offset % page_bytes;
    (inside, offset - inside)
}

/// Inserts what a window shows of a page, when its byte `inside` was touched. `residence` keeps the
/// page where it is.
fn touch_window<'a>(
    window: &'a HostAperture,
    wanted: Option<Wanted<'_>>,
    inside: u64,
    residence: &mut Residence,
    fault: &mut impl Touch,
) -> Found<'a> {
    let Some(wanted) = wanted else {
        return Found::Nothing;
    };
    residence.note_mapped(Translations::Window(window.segment()));
    let shown = window.show(wanted.allocation.adapter(), wanted, |view| {
        fault.insert_view(view, inside)
    });
    match shown {
        Ok(Some(outcome)) => Found::Inserted(outcome),
        Ok(None) => Found::Nothing,
        Err(crowded) => Found::Crowded(window, crowded),
    }
}

/// Takes backing pages; those that Linux may swap stay until the touch is over.
fn commit(allocation: &Arc<Allocation>, kept: &mut Option<Kept>) -> Result {
    *kept = Kept::new(allocation)?;
    allocation.commit()
}

/// Waits for a place to come into force; false if the task is being killed.
fn wait_settled(adapter: &Adapter, settled: u64) -> bool {
    adapter
        .paging()
        .wait(Sleep::Killable, |line| line.completed() >= settled)
        .is_ok()
}

/// Lets an allocation come where the CPU sees it; false if the task is being killed.
fn wait_in_reach(allocation: &Arc<Allocation>) -> bool {
    let moves = allocation.moves();
    let out_of_reach = {
        let mut residence = allocation.residence().lock();
        let out_of_reach = matches!(residence.location, Location::Segment(..));
        if out_of_reach && residence.wish == Wish::None {
            residence.wish = Wish::Reach;
        }
        out_of_reach
    };
    if !out_of_reach {
        return true;
    }
    let adapter = allocation.adapter();
    Worker::attend(adapter.worker(), allocation);
    adapter
        .paging()
        .wait(Sleep::Killable, |_| allocation.moves() != moves)
        .is_ok()
}

impl Adapter {
    /// Removes all CPU translations of an allocation, and gives pages of a window back that it had.
    /// `residence` proves its lock.
    pub(super) fn unmap(&self, allocation: &Allocation, residence: &mut Residence) {
        let old = core::mem::replace(&mut residence.translations, Translations::None);
        if old == Translations::None {
            return;
        }
        let start = allocation.mapping_start();
        if start != 0 {
            let end = start.saturating_add(allocation.size());
            self.anchor().unmap(start..end);
        }
        if let Translations::Window(id) = old {
            if let Some(window) = self.host_aperture(id) {
                window.give_back(self, allocation);
            }
        }
    }
}

/// A mapping of a page of fence slots, read-only.
pub(crate) struct FenceMapping {
    page: Arc<FencePage>,
}

impl FenceMapping {
    /// Returns a mapping of `page`.
    pub(crate) fn new(page: Arc<FencePage>) -> Self {
        Self { page }
    }
}

impl Mapping for FenceMapping {
    fn fault(&self, fault: &mut Fault<'_>) -> Outcome {
        fault.insert(self.page.frame())
    }
}
