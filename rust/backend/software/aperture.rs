// SPDX-License-Identifier: GPL-2.0

//! The aperture: one page table for the whole adapter (SEG-9).
//!
//! Page *n* shows one page of system memory, or the dummy page where nothing is mapped: it reads as
//! zero and swallows writes (SEG-31). Entries change one at a time while nodes use others; that
//! nobody uses an entry that changes is the business of whoever orders the changes.

use kernel::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Release, //
    }, //
};

use super::memory::Stretch;
use crate::{
    abstractions::{
        memory::Window,
        pages::Frame, //
    },
    units::PAGE_BYTES, //
};

/// Bytes of a page as a length in memory.
// CAST: a small constant.
const PAGE: usize = PAGE_BYTES as usize;

/// What an entry holds where nothing is mapped. No page of memory has this number.
const EMPTY: u64 = u64::MAX;

/// The table.
pub(super) struct Aperture {
    /// The number of the page frame that each page shows, or [`EMPTY`].
    entries: KVVec<Atomic<u64>>,
}

impl Aperture {
    /// Returns an aperture of `bytes` bytes, whole pages, that shows nothing.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory for the table.
    pub(super) fn new(bytes: u64) -> Result<Self> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        let pages = (bytes / PAGE_BYTES) as usize;
        let mut entries = KVVec::with_capacity(pages, GFP_KERNEL)?;
        for _ in 0..pages {
            entries.push(Atomic::new(EMPTY), GFP_KERNEL)?;
        }
        Ok(Self { entries })
    }

    /// Returns its length.
    pub(super) fn bytes(&self) -> u64 {
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.entries.len() as u64 * PAGE_BYTES
    }

    /// Lets the page at `offset` show `frame`, or the dummy page.
    pub(super) fn set(&self, offset: u64, frame: Option<Frame>) -> Option<()> {
        let entry = self.entries.get(page(offset))?;
        entry.store(frame.map_or(EMPTY, |frame| frame.0), Release);
        Some(())
    }

    /// Returns the stretch at the start of `limit` bytes at `offset`.
    pub(super) fn stretch(&self, offset: u64, limit: usize) -> Option<Stretch> {
        let inside = within(offset);
        let mut rest = self.entries.get(page(offset)..)?.iter();
        let first = rest.next()?.load(Acquire);
        let mut bytes = PAGE - inside;
        if first == EMPTY {
            return Some(Stretch::Dummy(bytes.min(limit)));
        }
        let mut next = first;
        for entry in rest {
            next = next.wrapping_add(1);
            if bytes >= limit || entry.load(Acquire) != next {
                break;
            }
            bytes += PAGE;
        }
        show(first, inside, bytes.min(limit))
    }

    /// Returns the stretch at the end of `limit` bytes before `end`: part of one page.
    pub(super) fn stretch_before(&self, end: u64, limit: usize) -> Option<Stretch> {
        let last = end.checked_sub(1)?;
        let bytes = limit.min(within(last) + 1);
        let frame = self.entries.get(page(last))?.load(Acquire);
        if frame == EMPTY {
            return Some(Stretch::Dummy(bytes));
        }
        show(frame, within(last) + 1 - bytes, bytes)
    }
}

/// Returns the index of the page that holds the byte at `offset`.
const fn page(offset: u64) -> usize {
    // CAST: `usize` has 64 bits wherever this driver runs.
    (offset / PAGE_BYTES) as usize
}

/// Returns where in its page the byte at `offset` is.
const fn within(offset: u64) -> usize {
    // CAST: less than a page.
    (offset % PAGE_BYTES) as usize
}

/// Returns the view of `bytes` bytes, `inside` bytes into the page `frame`.
fn show(frame: u64, inside: usize, bytes: usize) -> Option<Stretch> {
    // CAST: less than a page.
    let address = Frame(frame).address().checked_add(inside as u64)?;
    Window::physical(address, bytes).map(Stretch::Memory)
}
