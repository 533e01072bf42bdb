// SPDX-License-Identifier: GPL-2.0

//! Occupancy of the segments: which pages belong to whom.
//!
//! A segment is a pool of equal pages (SEG-4). Who lies in it is kept in the order in which they leave
//! ([`super::order`]). Pools, links and tree nodes have their memory from registration or from the
//! creation of an allocation on: nothing here allocates.
//!
//! Everything in this file is protected by `Adapter::residency` (rank 1).

use core::{
    num::NonZeroU64,
    ops::Range, //
};

use kernel::prelude::*;

use crate::{
    backend::capabilities::{
        Capabilities,
        SegmentFlag,
        SegmentKind, //
    },
    object::{
        allocation::Allocation,
        order::{
            Key,
            Order, //
        },
        residence::{
            Location,
            Residence, //
        },
    },
    policy::{
        eviction::{
            Bond,
            Candidate,
            Fate,
            Occupant,
            Rank,
            Victim,
            Window, //
        },
        placement::{
            Chain,
            End,
            Link,
            PagePool, //
        },
        splitting::{
            Area,
            Ground, //
        },
    },
    units::{
        Place,
        Run,
        SegmentId, //
    },
};

mod tables;

/// What an allocation needs in a segment.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// Bytes, a multiple of the page size of every permitted segment.
    pub(crate) bytes: u64,
    /// Alignment in bytes.
    pub(crate) align: u64,
    /// Whether it must be one run.
    pub(crate) contiguity: Contiguity,
}

/// Whether an allocation must be one run of addresses and, in a memory segment, of page frames.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contiguity {
    /// Loose pages will do.
    Loose,
    /// One run (SEG-15).
    Contiguous,
}

/// The occupancy of one segment.
pub(crate) struct Segment {
    /// Its number.
    pub(crate) id: SegmentId,
    /// What it stands for.
    pub(crate) kind: SegmentKind,
    /// Whether the CPU can map it.
    pub(crate) visible: bool,
    /// Bytes of one page.
    pub(crate) page_bytes: u64,
    /// Pages at the lowest offsets whose frames are adjacent.
    contiguous_pages: u32,
    /// Bytes that may be in use at once.
    commit_limit: u64,
    pool: PagePool<KVVec<u64>, KVVec<Link>>,
    /// Who lies in it, in the order in which they leave.
    pub(super) order: Order,
    /// Pages taken out of use by `inject reserve`.
    reserved: KVVec<Chain>,
    /// Pages taken out of use by `inject fragment`.
    fragments: KVVec<Chain>,
    /// Pages in `reserved` and `fragments`.
    withheld: u32,
    /// Page tables of the paging process, which never leave.
    fixtures: KVVec<Chain>,
    /// Which pages tables of clients have, one bit each, and how many.
    table_bits: KVVec<u64>,
    tables: u32,
}

impl Segment {
    /// Returns the occupancy of the segments an adapter lists, all free, in the order of their ids.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `EINVAL`: a segment has more pages than can be counted.
    pub(super) fn all(capabilities: &Capabilities) -> Result<KVec<Segment>> {
        let mut segments = KVec::with_capacity(capabilities.segments.len(), GFP_KERNEL)?;
        for segment in &capabilities.segments {
            let page_bytes = NonZeroU64::new(segment.page_bytes).ok_or(EINVAL)?;
            let pages = u32::try_from(segment.bytes / page_bytes).map_err(|_| EINVAL)?;
            let contiguous = match segment.kind {
                SegmentKind::Memory => segment.contiguous / page_bytes,
                SegmentKind::Aperture => u64::from(pages),
            };
            let words = KVVec::zeroed(
                PagePool::<KVVec<u64>, KVVec<Link>>::words(pages),
                GFP_KERNEL,
            )?;
            // CAST: `usize` has 64 bits wherever this driver runs.
            let links = KVVec::from_elem(Link::default(), pages as usize, GFP_KERNEL)?;
            segments.push(
                Segment {
                    id: segment.id,
                    kind: segment.kind,
                    visible: segment.flags.contains(SegmentFlag::CpuVisible),
                    page_bytes: segment.page_bytes,
                    contiguous_pages: u32::try_from(contiguous).unwrap_or(pages).min(pages),
                    commit_limit: segment.commit_limit,
                    pool: PagePool::new(words, links, pages).map_err(|_| EINVAL)?,
                    order: Order::new(segments.len()),
                    reserved: KVVec::new(),
                    fragments: KVVec::new(),
                    withheld: 0,
                    fixtures: KVVec::new(),
                    table_bits: KVVec::zeroed(pages.div_ceil(u64::BITS) as usize, GFP_KERNEL)?,
                    tables: 0,
                },
                GFP_KERNEL,
            )?;
        }
        Ok(segments)
    }

    /// Returns the number of its pages.
    pub(super) fn pages(&self) -> u32 {
        self.pool.pages()
    }

    /// Returns the number of pages that hold `bytes`.
    fn pages_for(&self, bytes: u64) -> Option<u32> {
        u32::try_from(bytes.div_ceil(self.page_bytes)).ok()
    }

    /// Returns the pages among which `shape` may lie.
    pub(crate) fn permitted(&self, shape: &Shape) -> Range<u32> {
        match shape.contiguity {
            Contiguity::Contiguous => 0..self.contiguous_pages,
            Contiguity::Loose => 0..self.pool.pages(),
        }
    }

    /// Takes pages for `shape`, as near to `end` as they are to be had. Loose pages come from
    /// behind the contiguous part as long as there are any. `held` is what the same allocation has
    /// here and gives back then: the commit limit counts it once.
    pub(crate) fn take(&mut self, shape: &Shape, end: End, held: u64) -> Option<Chain> {
        let pages = self.pages_for(shape.bytes)?;
        let in_use = self.bytes_used().checked_add(shape.bytes)?;
        if in_use.saturating_sub(held) > self.commit_limit {
            return None;
        }
        let align = self.pages_for(shape.align)?.max(1);
        let permitted = self.permitted(shape);
        match shape.contiguity {
            Contiguity::Contiguous => self.pool.take_run(pages, align, permitted, end),
            Contiguity::Loose => {
                let behind = self.contiguous_pages..self.pool.pages();
                self.pool.take_loose(pages, permitted, behind, end)
            }
        }
    }

    /// Takes exactly the pages at `offset`, if they are free.
    pub(crate) fn take_at(&mut self, shape: &Shape, offset: u64) -> Option<Chain> {
        let first = u32::try_from(offset / self.page_bytes).ok()?;
        let end = first.checked_add(self.pages_for(shape.bytes)?)?;
        if end > self.permitted(shape).end {
            return None;
        }
        self.pool.take_at(first..end).ok()
    }

    /// Takes one run of pages for `bytes` bytes for good, at the high end; returns its place. For what is
    /// set up with the adapter: this takes memory.
    pub(super) fn fix(&mut self, bytes: u64) -> Option<Place> {
        let pages = self.pages_for(bytes)?;
        self.fixtures.reserve(1, GFP_KERNEL).ok()?;
        if self.bytes_used().checked_add(bytes)? > self.commit_limit {
            return None;
        }
        let chain = self
            .pool
            .take_run(pages, 1, 0..self.pool.pages(), End::High)?;
        let place = self.place_in(&chain, 0);
        let _ = self.fixtures.push_within_capacity(chain);
        place
    }

    /// Takes exactly these pages, if they are free.
    pub(super) fn take_pages(&mut self, pages: Range<u32>) -> Option<Chain> {
        self.pool.take_at(pages).ok()
    }

    /// Gives pages back.
    pub(crate) fn give(&mut self, chain: Chain) {
        self.pool.give(chain);
    }

    /// Returns how many bytes `chain` has.
    pub(super) fn bytes_of(&self, chain: &Chain) -> u64 {
        u64::from(chain.pages()) * self.page_bytes
    }

    /// Returns where `chain` lies.
    pub(crate) fn runs<'a>(&'a self, chain: &Chain) -> impl Iterator<Item = Run> + Clone + 'a {
        let (id, page_bytes) = (self.id, self.page_bytes);
        self.pool.runs(chain).map(move |pages| {
            let first = u64::from(pages.start);
            let count = u64::from(pages.end) - first;
            Run::new(Place::new(id, first * page_bytes), count * page_bytes)
        })
    }

    /// Returns the place of the byte `offset` of what lies in `chain`.
    pub(crate) fn place_in(&self, chain: &Chain, offset: u64) -> Option<Place> {
        self.run_at(chain, offset).map(|run| run.place)
    }

    /// Returns the rest of the run of `chain` that holds the byte `offset`, from there on.
    pub(crate) fn run_at(&self, chain: &Chain, offset: u64) -> Option<Run> {
        let mut left = offset;
        for run in self.runs(chain) {
            if left < run.bytes {
                return Some(Run::new(run.place.forward(left), run.bytes - left));
            }
            left -= run.bytes;
        }
        None
    }

    /// Returns how many pages must become free for `shape`; [`None`] if it never fits.
    pub(super) fn missing(&self, shape: &Shape) -> Option<u32> {
        let need = self.pages_for(shape.bytes)?;
        let free = self.pool.free_within(self.permitted(shape));
        (need <= self.pool.pages()).then(|| need.saturating_sub(free).max(self.overdraft(shape)))
    }

    /// Returns how many pages must become free for `shape` because of the commit limit.
    pub(super) fn overdraft(&self, shape: &Shape) -> u32 {
        let bytes = self.bytes_used().saturating_add(shape.bytes);
        let over = bytes.saturating_sub(self.commit_limit);
        self.pages_for(over).unwrap_or(u32::MAX)
    }

    /// Returns the stretch of pages that `shape` needs; [`None`] if it never fits.
    pub(super) fn window(&self, shape: &Shape) -> Option<Window> {
        let pages = self.pages_for(shape.bytes)?;
        let within = self.permitted(shape);
        (pages <= within.end).then_some(Window {
            pages,
            align: self.pages_for(shape.align)?.max(1),
            within,
        })
    }

    /// Returns the pages that become free when what lies at `location` leaves.
    pub(super) fn pages_at(location: &Location) -> u32 {
        match location {
            Location::Segment(_, chain) | Location::Aperture(chain) => chain.pages(),
            Location::System | Location::Nowhere => 0,
        }
    }

    /// Returns whether somebody is here who may leave when work has ended.
    pub(super) fn is_contended(&self) -> bool {
        self.order.iter().any(|(_, allocation)| {
            let residence = allocation.residence().lock();
            residence.is_tied() && residence.fixed == 0
        })
    }

    /// Lists all runs that somebody has, and the keys of those who have them; the key of a candidate
    /// is its index there. Both have room for one entry per page. `fate` says what becomes of who
    /// lies in a run of so many pages.
    pub(super) fn map_out(
        &self,
        runs: &mut KVVec<Occupant>,
        keys: &mut KVVec<Key>,
        fate: impl Fn(&Allocation, &Residence, u32) -> Fate,
    ) {
        runs.clear();
        keys.clear();
        for ((key, allocation), index) in self.order.iter().zip(0..) {
            let budget = allocation.device().client().turn().lock().budget();
            let residence = allocation.residence().lock();
            let candidate = Candidate {
                key: index,
                pages: Self::pages_at(residence.location()),
                rank: allocation.rank(&residence).with(budget),
            };
            if let Location::Segment(_, chain) | Location::Aperture(chain) = residence.location() {
                let longest = self.pool.runs(chain).map(|run| run.end - run.start).max();
                let fate = fate(allocation, &residence, longest.unwrap_or(0));
                for run in self.pool.runs(chain) {
                    // Within a client and rank in the order of last use.
                    let recency = u32::try_from(index).unwrap_or(u32::MAX);
                    let occupant = Occupant::new(candidate, run, fate, recency);
                    let _ = runs.push_within_capacity(occupant);
                }
            }
            let _ = keys.push_within_capacity(*key);
        }
        self.map_out_withheld(|occupant| {
            let _ = runs.push_within_capacity(occupant);
        });
    }

    /// Lists the runs that injections took out of use, or that page tables have.
    fn map_out_withheld(&self, mut add: impl FnMut(Occupant)) {
        for page in self.table_pages() {
            let candidate = Candidate {
                key: (u64::MAX >> 1) - u64::from(page),
                pages: 1,
                rank: Rank::default().tied(Bond::Fixed),
            };
            add(Occupant::new(candidate, page..page + 1, Fate::Stays, 0));
        }
        let withheld = Iterator::chain(self.reserved.iter(), self.fragments.iter());
        for chain in Iterator::chain(withheld, self.fixtures.iter()) {
            let candidate = Candidate {
                key: (u64::MAX >> 1) - u64::from(chain.first()),
                pages: chain.pages(),
                rank: Rank::default().tied(Bond::Fixed),
            };
            for run in self.pool.runs(chain) {
                add(Occupant::new(candidate, run, Fate::Stays, 0));
            }
        }
    }

    /// Returns what planning of portions knows of it, without those who lie in it.
    pub(super) fn area(&self) -> Area {
        // What injections took out of use is nobody's: the limit does not count it.
        let limit = self.pages_for(self.commit_limit).unwrap_or(u32::MAX);
        let limit = limit.saturating_add(self.withheld);
        Area::new(self.contiguous_pages, self.page_bytes, limit)
    }

    /// Says who lies where; an allocation's key is its number. `fate` says what becomes of them.
    pub(super) fn describe(&self, ground: &mut Ground<'_>, fate: impl Fn(&Residence) -> Fate) {
        for ((_, allocation), recency) in self.order.iter().zip(0..) {
            let budget = allocation.device().client().turn().lock().budget();
            let residence = allocation.residence().lock();
            let candidate = Candidate {
                key: allocation.object_id(),
                pages: Self::pages_at(residence.location()),
                rank: allocation.rank(&residence).with(budget),
            };
            let fate = fate(&residence);
            if let Location::Segment(_, chain) | Location::Aperture(chain) = residence.location() {
                for run in self.pool.runs(chain) {
                    ground.add(self.id, Occupant::new(candidate, run, fate, recency));
                }
            }
        }
        self.map_out_withheld(|occupant| ground.add(self.id, occupant));
    }

    /// Returns the pages of `bytes` from page `first` on.
    pub(super) fn pages_from(&self, first: u32, bytes: u64) -> Option<Range<u32>> {
        Some(first..first.checked_add(self.pages_for(bytes)?)?)
    }

    /// Lists who has a page in `window`, but for the one with the number `except`; returns how many.
    pub(super) fn list_tenants(
        &self,
        window: &Range<u32>,
        except: u64,
        tenants: &mut [Victim<Key>],
    ) -> usize {
        let mut slots = tenants.iter_mut();
        let mut count = 0;
        for (key, one) in self.order.iter() {
            let residence = one.residence().lock();
            let (Location::Segment(_, chain) | Location::Aperture(chain)) = residence.location()
            else {
                continue;
            };
            let mut runs = self.pool.runs(chain);
            let inside = runs.any(|run| run.start < window.end && window.start < run.end);
            if !inside || one.object_id() == except {
                continue;
            }
            if let Some(slot) = slots.next() {
                *slot = Victim {
                    key: *key,
                    pages: chain.pages(),
                };
                count += 1;
            }
        }
        count
    }

    /// Returns whether pages for `shape` are free that are not in a window of `window` pages, of
    /// which somebody has `inside`.
    pub(super) fn has_room_beside(&self, shape: &Shape, window: u32, inside: u32) -> bool {
        let Some(pages) = self.pages_for(shape.bytes) else {
            return false;
        };
        let most_inside = window.saturating_sub(inside);
        match shape.contiguity {
            Contiguity::Loose => pages <= self.pool.free_pages().saturating_sub(most_inside),
            Contiguity::Contiguous => pages <= self.pool.largest_within(self.permitted(shape)),
        }
    }

    /// Takes all free pages in `window`, so that nobody goes there.
    pub(super) fn block(&mut self, window: &Range<u32>) -> Option<Chain> {
        let free = self.pool.free_within(window.clone());
        let blocked = self
            .pool
            .take_loose(free, window.clone(), window.clone(), End::Low)?;
        // They are nobody's: the commit limit does not count them.
        self.withheld += blocked.pages();
        Some(blocked)
    }

    /// Gives back what was blocked.
    pub(super) fn unblock(&mut self, blocked: Chain) {
        self.withheld -= blocked.pages();
        self.pool.give(blocked);
    }

    /// Returns the bytes of the whole segment.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.pool.pages()) * self.page_bytes
    }

    /// Returns the bytes nobody has.
    pub(crate) fn bytes_free(&self) -> u64 {
        u64::from(self.pool.free_pages()) * self.page_bytes
    }

    /// Returns the bytes allocations have.
    pub(crate) fn bytes_used(&self) -> u64 {
        let withheld = u64::from(self.withheld) * self.page_bytes;
        self.bytes() - self.bytes_free() - withheld
    }

    /// Returns the bytes that injections took out of use.
    pub(crate) fn bytes_withheld(&self) -> u64 {
        u64::from(self.withheld) * self.page_bytes
    }

    /// Returns the bytes that page tables have.
    pub(crate) fn bytes_of_tables(&self) -> u64 {
        let fixed = self.fixtures.iter().map(|chain| self.bytes_of(chain));
        fixed.fold(
            u64::from(self.tables) * self.page_bytes,
            u64::saturating_add,
        )
    }

    /// Returns the bytes that no allocation can have: injections took them out of use, or tables lie
    /// there.
    pub(crate) fn bytes_unavailable(&self) -> u64 {
        self.bytes_withheld().saturating_add(self.bytes_of_tables())
    }

    /// Returns the length of the longest run nobody has.
    pub(crate) fn largest_free(&self) -> u64 {
        u64::from(self.pool.largest_run()) * self.page_bytes
    }

    /// Returns the bytes whose frames are adjacent.
    pub(crate) fn bytes_contiguous(&self) -> u64 {
        match self.kind {
            SegmentKind::Memory => u64::from(self.contiguous_pages) * self.page_bytes,
            SegmentKind::Aperture => 0,
        }
    }

    /// Returns the bytes a client can ever get, by contiguity.
    pub(crate) fn capacity(&self) -> (u64, u64) {
        let limit = self.commit_limit.min(self.bytes());
        let contiguous = u64::from(self.contiguous_pages) * self.page_bytes;
        (limit, contiguous.min(limit))
    }

    /// Takes `bytes` of free memory out of use, lowest offsets first, instead of what an earlier
    /// reservation took. `list` is empty and has room for one entry per page; it comes back as
    /// memory to be freed.
    ///
    /// # Errors
    ///
    /// - `ENOSPC`: less is free. Nothing has changed.
    pub(super) fn reserve(&mut self, bytes: u64, list: &mut KVVec<Chain>) -> Result {
        let pages = self.pages_for(bytes).ok_or(ENOSPC)?;
        let held: u32 = self.reserved.iter().map(Chain::pages).sum();
        if pages > self.pool.free_pages().saturating_add(held) {
            return Err(ENOSPC);
        }
        while let Some(chain) = self.reserved.pop() {
            self.withheld -= chain.pages();
            self.pool.give(chain);
        }
        core::mem::swap(&mut self.reserved, list);
        if pages == 0 {
            while let Some(chain) = self.fragments.pop() {
                self.withheld -= chain.pages();
                self.pool.give(chain);
            }
            return Ok(());
        }
        let mut left = pages;
        while left > 0 {
            let run = self.pool.free_runs().next().ok_or(ENOSPC)?;
            let count = left.min(run.end - run.start);
            let chain = self
                .pool
                .take_at(run.start..run.start + count)
                .map_err(|_| ENOSPC)?;
            self.withheld += count;
            left -= count;
            let _ = self.reserved.push_within_capacity(chain);
        }
        Ok(())
    }

    /// Takes every second free page out of use. `list` is as for [`Self::reserve`].
    pub(super) fn fragment(&mut self, list: &mut KVVec<Chain>) {
        while let Some(chain) = self.fragments.pop() {
            let _ = list.push_within_capacity(chain);
        }
        core::mem::swap(&mut self.fragments, list);
        let mut page = 0;
        loop {
            let run = self.pool.free_runs().find(|run| run.end > page);
            let Some(run) = run else {
                return;
            };
            let first = run.start.max(page);
            if let Ok(chain) = self.pool.take_at(first..first + 1) {
                self.withheld += 1;
                let _ = self.fragments.push_within_capacity(chain);
            }
            page = first + 2;
        }
    }
}
