// SPDX-License-Identifier: GPL-2.0

//! The MMU: every access by virtual address goes through it (BCK-10).
//!
//! Each node has a [`Tlb`] of its own. A node that works on a piece of a range holds the lock of its
//! TLB from the translation of the first byte to the access of the last ([`Translator`]), and nothing
//! else. So a flush, which goes through the TLBs of all nodes one after the other, is complete when
//! no node works any longer with a translation that it removed: it waits for the piece in hand, at
//! most.
//!
//! # Locking
//!
//! The lock of a TLB is taken by its node and by whoever flushes, one at a time, with no other lock
//! held; inside it only memory is accessed, and the root of a context read.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        lock::mutex::MutexBackend,
        lock::Guard,
        Mutex, //
    }, //
};

use super::{
    context::Context,
    memory::Memory,
    page_table::{
        self,
        Found, //
    },
    parts::{
        Part,
        Parts, //
    },
    tlb::Tlb, //
};
use crate::{
    backend::{
        capabilities::Translation,
        operation::FlushRange,
        page_table::Root,
        Fault,
        FaultAccess,
        FaultReason,
        Lookups, //
    },
    units::{
        GpuVirtualAddress,
        NodeOrdinal,
        PageSize,
        Place, //
    }, //
};

/// The MMU of an engine.
pub(super) struct Mmu {
    /// Levels of page tables.
    levels: u32,
    /// What becomes of walks that find nothing.
    nothing: Nothing,
    /// The translations of each node, by ordinal.
    nodes: KVec<Pin<KBox<Mutex<State>>>>,
}

/// What becomes of walks that find nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nothing {
    /// They are remembered like others.
    Remembered,
    /// They are made again at every access.
    Forgotten,
}

/// What a node knows.
struct State {
    tlb: Tlb,
    lookups: Lookups,
}

impl Mmu {
    /// Returns the MMU for so many nodes, each of which remembers `entries` translations.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new(translation: &Translation, nodes: usize, entries: u32) -> Result<Self> {
        let mut states = KVec::with_capacity(nodes, GFP_KERNEL)?;
        for _ in 0..nodes {
            let state = State {
                tlb: Tlb::new(entries)?,
                lookups: Lookups::default(),
            };
            states.push(
                KBox::pin_init(new_mutex!(state, "vidmm::Mmu::nodes"), GFP_KERNEL)?,
                GFP_KERNEL,
            )?;
        }
        Ok(Self {
            levels: translation.levels,
            nothing: if translation.holds_invalid {
                Nothing::Remembered
            } else {
                Nothing::Forgotten
            },
            nodes: states,
        })
    }

    /// Lets all nodes forget translations; none works with one of them any more.
    pub(super) fn flush(&self, root: Place, range: FlushRange) {
        let range = range.addresses();
        for node in &self.nodes {
            node.lock().tlb.flush(root, &range);
        }
    }

    /// Returns how a node looked up translations so far.
    pub(super) fn lookups(&self, node: NodeOrdinal) -> Option<Lookups> {
        let state = self.nodes.get(node.index())?;
        Some(state.lock().lookups)
    }
}

/// The address space of a context, seen from a node.
#[derive(Clone, Copy)]
pub(super) struct AddressSpace<'a> {
    /// The MMU.
    pub(super) mmu: &'a Mmu,
    /// Where tables and pages are.
    pub(super) memory: &'a Memory,
    /// The node that works.
    pub(super) node: NodeOrdinal,
    /// The context in which it does.
    pub(super) context: &'a Context,
}

impl<'a> AddressSpace<'a> {
    /// Begins to work on a piece. Translations that are flushed meanwhile stay in use until the value
    /// is dropped.
    pub(super) fn hold(&self) -> Result<Translator<'a>, Refused> {
        let state = self.mmu.nodes.get(self.node.index());
        let state = state.ok_or(Refused::Outside(GpuVirtualAddress(0)))?.lock();
        Ok(Translator {
            mmu: self.mmu,
            memory: self.memory,
            // Read inside the lock: a flush of the root that a context had before is behind its change.
            root: self.context.root(),
            state,
        })
    }
}

/// Why a range was not translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The space does not allow the access.
    Fault(Fault),
    /// The tables name a place outside of its segment, a defect of the driver.
    Outside(GpuVirtualAddress),
}

/// The right to use translations of one node.
pub(super) struct Translator<'a> {
    mmu: &'a Mmu,
    memory: &'a Memory,
    root: Option<Root>,
    state: Guard<'a, State, MutexBackend>,
}

impl Translator<'_> {
    /// Returns what stands behind an address, from memory or from the tables.
    fn look_up(&mut self, address: GpuVirtualAddress) -> Found {
        let Some(root) = self.root else {
            return Found::Invalid;
        };
        let State { tlb, lookups } = &mut *self.state;
        if let Some(found) = tlb.find(root.place, address) {
            lookups.hits = lookups.hits.wrapping_add(1);
            return found;
        }
        let walk = page_table::walk(self.memory, self.mmu.levels, root, address);
        lookups.misses = lookups.misses.wrapping_add(1);
        lookups.walks = lookups.walks.wrapping_add(walk.reads.into());
        if walk.found != Found::Invalid || self.mmu.nothing == Nothing::Remembered {
            tlb.insert(root.place, address, walk.found);
        }
        walk.found
    }

    /// Returns what `access` meets at an address: the part up to the end of the page.
    fn page(&mut self, address: GpuVirtualAddress, access: FaultAccess) -> Result<Part, Refused> {
        let fault = |reason| {
            Refused::Fault(Fault {
                address,
                access,
                reason,
            })
        };
        let (place, page, rights) = match self.look_up(address) {
            Found::Invalid => return Err(fault(FaultReason::NotMapped)),
            Found::Zero if access == FaultAccess::Fetch => {
                return Err(fault(FaultReason::Protection));
            }
            Found::Zero => {
                return Ok(Part {
                    place: None,
                    bytes: behind(address, PageSize::Small),
                });
            }
            Found::Page {
                place,
                page,
                rights,
            } => (place, page, rights),
        };
        let allowed = match access {
            FaultAccess::Read => true,
            FaultAccess::Write => rights.write,
            FaultAccess::Fetch => rights.execute,
        };
        if !allowed {
            return Err(fault(FaultReason::Protection));
        }
        if !self.memory.contains(place, page.bytes()) {
            return Err(Refused::Outside(address));
        }
        let bytes = behind(address, page);
        Ok(Part {
            place: Some(place.forward(page.bytes().saturating_sub(bytes))),
            bytes,
        })
    }

    /// Translates a range, all of it or nothing.
    ///
    /// # Errors
    ///
    /// [`Refused`], with the lowest address at which the access is not possible.
    pub(super) fn translate(
        &mut self,
        address: GpuVirtualAddress,
        bytes: u64,
        access: FaultAccess,
        parts: &mut Parts,
    ) -> Result<(), Refused> {
        parts.clear();
        let (mut at, mut left) = (address, bytes);
        while left > 0 {
            let page = self.page(at, access)?;
            let bytes = page.bytes.min(left);
            parts
                .push(Part { bytes, ..page })
                .ok_or(Refused::Outside(at))?;
            at = at.forward(bytes);
            left -= bytes;
        }
        Ok(())
    }
}

/// Returns how many bytes of its page lie at and behind `address`.
const fn behind(address: GpuVirtualAddress, page: PageSize) -> u64 {
    page.bytes() - address.0 % page.bytes()
}
