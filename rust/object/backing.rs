// SPDX-License-Identifier: GPL-2.0

//! The system pages behind an allocation: its backing store.
//!
//! They are taken all at once, by the thread that first needs them (RES-2), so eviction always has
//! somewhere to copy to, and the worker never allocates. There are two kinds. *Owned* pages stay until the
//! allocation is gone; blocks are as large as the page allocator gives, so that a transfer is a handful of
//! runs and a large block can be mapped by one entry. *Swappable* pages are those of a file that Linux may
//! swap; a backing store of this kind is there while they are pinned, and is made again, in other frames,
//! when somebody needs them again ([`super::reclaim`]).

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::{
        memory::Window,
        pages::{
            system_bytes,
            Charge,
            Frame,
            PageBlock, //
        },
        shmem::{
            PinnedPages,
            SwapFile, //
        },
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

/// The backing store of one instance, in memory.
pub(crate) enum Backing {
    /// Pages that stay, in blocks.
    Owned(Blocks),
    /// Pages that Linux may swap when this is dropped.
    Swappable(PinnedPages),
}

/// Blocks of pages, in the order of the pages that they hold.
pub(crate) struct Blocks(KVVec<Block>);

/// One block and where it stands.
pub(crate) struct Block {
    /// First page of the instance that it holds.
    page: u64,
    memory: PageBlock,
}

impl Block {
    fn pages(&self) -> u64 {
        1 << self.memory.order()
    }
}

impl Blocks {
    /// Takes zeroed pages for `bytes`, a multiple of the page size.
    fn new(bytes: u64) -> Result<Self> {
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
        Ok(Self(blocks))
    }

    fn frames_at(&self, page: u64) -> Option<(Frame, u64)> {
        let index = self
            .0
            .partition_point(|block| block.page <= page)
            .checked_sub(1)?;
        let block = self.0.get(index)?;
        let inside = page.checked_sub(block.page)?;
        let left = block.pages().checked_sub(inside)?;
        (left > 0).then(|| (block.memory.frame().forward(inside), left))
    }
}

impl Backing {
    /// Takes zeroed pages for `bytes`, a multiple of the page size, that stay. They are charged to the
    /// memory cgroup in force.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: the system or the cgroup has no more.
    /// - `EINTR`: the caller is being killed.
    pub(crate) fn owned(bytes: u64) -> Result<Self> {
        if bytes > system_bytes() {
            return Err(ENOMEM);
        }
        Blocks::new(bytes).map(Self::Owned)
    }

    /// Pins the pages of `file`; those that are new are charged to the memory cgroup in force.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: the system or the cgroup has no more.
    /// - `EIO`: swap cannot be read.
    /// - `EINTR`: the caller is being killed.
    pub(crate) fn swappable(file: &Arc<SwapFile>) -> Result<Self> {
        file.pin().map(Self::Swappable)
    }

    /// Returns how many pages were read from swap for it.
    pub(crate) fn swapped_in(&self) -> u64 {
        match self {
            Self::Owned(_) => 0,
            Self::Swappable(pinned) => pinned.swapped_in(),
        }
    }

    /// Returns the frame of page `page` and how many frames from there on are adjacent, as far as one
    /// entry of a page table can tell.
    pub(crate) fn frames_at(&self, page: u64) -> Option<(Frame, u64)> {
        match self {
            Self::Owned(blocks) => blocks.frames_at(page),
            Self::Swappable(pinned) => {
                let frames = pinned.frames().get(usize::try_from(page).ok()?..)?;
                let first = *frames.first()?;
                let adjacent = (0..1_u64 << MAX_ORDER)
                    .zip(frames)
                    .take_while(|(index, frame)| **frame == first.forward(*index))
                    .count();
                Some((first, u64::try_from(adjacent).ok()?))
            }
        }
    }

    /// Returns the pages as runs of system memory, neighbours joined.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run> + Clone + '_ {
        let (blocks, frames): (&[Block], &[Frame]) = match self {
            Self::Owned(blocks) => (&blocks.0, &[]),
            Self::Swappable(pinned) => (&[], pinned.frames()),
        };
        let blocks = blocks
            .iter()
            .map(|block| (block.memory.frame().address(), block.memory.bytes()));
        let frames = frames.iter().map(|frame| (frame.address(), PAGE_BYTES));
        let mut pieces = Iterator::chain(blocks, frames).peekable();
        core::iter::from_fn(move || {
            let (address, mut bytes) = pieces.next()?;
            while let Some((_, more)) = pieces.next_if(|(next, _)| *next == address + bytes) {
                bytes += more;
            }
            Some(Run::new(Place::new(SegmentId::SYSTEM, address), bytes))
        })
    }

    /// Clears adjacent pages from page `first` on; returns the first page behind them, or [`None`] at the
    /// end.
    pub(crate) fn clear_some(&self, first: u64) -> Option<u64> {
        let (frame, pages) = self.frames_at(first)?;
        // CAST: no more than one block.
        let bytes = (pages * PAGE_BYTES) as usize;
        if let Some(window) = Window::physical(frame.address(), bytes) {
            window.zero();
        }
        let next = first.checked_add(pages)?;
        self.frames_at(next).map(|_| next)
    }

    /// Returns the physical address of the first page.
    pub(crate) fn address(&self) -> u64 {
        self.frames_at(0).map_or(0, |(frame, _)| frame.address())
    }
}
