// SPDX-License-Identifier: GPL-2.0

//! The system pages behind an allocation: its backing store.
//!
//! They are taken all at once, by the thread that first needs them, and stay until the allocation
//! is gone (RES-2). So eviction always has somewhere to copy to, and the worker never allocates.
//! Blocks are as large as the page allocator gives, so that a transfer is a handful of runs and a
//! large block can be mapped by one entry.

use kernel::prelude::*;

use crate::{
    abstractions::pages::{
        system_bytes,
        Charge,
        Frame,
        PageBlock, //
    },
    units::{
        Place,
        Run,
        SegmentId,
        PAGE_BYTES, //
    },
};

/// The largest block asked for: what one entry of a CPU page table can map.
const MAX_ORDER: u32 = 9;

/// The backing store of one instance.
pub(crate) struct Backing {
    blocks: KVVec<Block>,
}

/// One block and where it stands.
struct Block {
    /// First page of the instance that it holds.
    page: u64,
    memory: PageBlock,
}

impl Block {
    fn pages(&self) -> u64 {
        1 << self.memory.order()
    }
}

impl Backing {
    /// Takes zeroed pages for `bytes`, a multiple of the page size, charged to the memory cgroup in
    /// force.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: the system or the cgroup has no more.
    /// - `EINTR`: the caller is being killed.
    pub(crate) fn new(bytes: u64) -> Result<Self> {
        if bytes > system_bytes() {
            return Err(ENOMEM);
        }
        let mut blocks = KVVec::new();
        let pages = bytes / PAGE_BYTES;
        let mut page = 0;
        let mut order = MAX_ORDER;
        while page < pages {
            // CAST: the logarithm of a positive number is below 64.
            order = order.min((pages - page).ilog2());
            match PageBlock::new(order, Charge::Client) {
                Ok(memory) => {
                    blocks.push(Block { page, memory }, GFP_KERNEL_ACCOUNT)?;
                    page += 1 << order;
                }
                Err(error) if order == 0 => return Err(error),
                // A smaller block may still be had.
                Err(_) => order -= 1,
            }
            if crate::abstractions::scheduling::fatal_signal_pending() {
                return Err(EINTR);
            }
        }
        Ok(Self { blocks })
    }

    /// Returns the frame of page `page` and how many frames from there on are adjacent in its
    /// block.
    pub(crate) fn frames_at(&self, page: u64) -> Option<(Frame, u64)> {
        let index = self
            .blocks
            .partition_point(|block| block.page <= page)
            .checked_sub(1)?;
        let block = self.blocks.get(index)?;
        let inside = page.checked_sub(block.page)?;
        let left = block.pages().checked_sub(inside)?;
        (left > 0).then(|| (Frame(block.memory.frame().0 + inside), left))
    }

    /// Returns the pages as runs of system memory, neighbours joined.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        let mut blocks = self.blocks.iter().peekable();
        core::iter::from_fn(move || {
            let first = blocks.next()?;
            let place = Place::new(SegmentId::SYSTEM, first.memory.frame().address());
            let mut bytes = first.memory.bytes();
            while let Some(block) =
                blocks.next_if(|block| block.memory.frame().address() == place.offset + bytes)
            {
                bytes += block.memory.bytes();
            }
            Some(Run::new(place, bytes))
        })
    }

    /// Returns the physical address of the first page.
    pub(crate) fn address(&self) -> u64 {
        self.blocks
            .first()
            .map_or(0, |block| block.memory.frame().address())
    }
}
