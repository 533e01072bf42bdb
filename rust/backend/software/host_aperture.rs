// SPDX-License-Identifier: GPL-2.0

//! The CPU host aperture of a segment: a table from pages of the window to pages of the segment.
//!
//! The CPU reaches the segment through nothing else, so the page frames of a window page are looked
//! up in the table at every call. A mapping that is missing shows as a refusal, one that is stale as
//! the bytes of somebody else.

use core::num::NonZeroU64;

use kernel::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    }, //
};

use crate::backend::{
    capabilities::Segment,
    WindowPage, //
};

/// What an entry holds that shows nothing. No segment has a page of this number.
const EMPTY: u32 = u32::MAX;

/// The table.
pub(super) struct HostAperture {
    /// Bytes of a page.
    page_bytes: u64,
    /// Pages of the segment.
    pages: u64,
    /// The page of the segment that each page of the window shows, or [`EMPTY`].
    entries: KVVec<Atomic<u32>>,
}

impl HostAperture {
    /// Returns the window of `segment`, which shows nothing.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory for the table.
    /// - `EINVAL`: its pages have no length.
    pub(super) fn new(segment: &Segment) -> Result<Self> {
        let page_bytes = NonZeroU64::new(segment.page_bytes).ok_or(EINVAL)?;
        // CAST: `usize` has 64 bits wherever this driver runs.
        let count = (segment.cpu_window / page_bytes) as usize;
        let mut entries = KVVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            entries.push(Atomic::new(EMPTY), GFP_KERNEL)?;
        }
        Ok(Self {
            page_bytes: segment.page_bytes,
            pages: segment.bytes / page_bytes,
            entries,
        })
    }

    /// Lets pages of the window show pages of the segment; all of them, or none.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is no such page, or the page of the window shows something.
    pub(super) fn map(&self, pages: &[WindowPage]) -> Result {
        for (index, page) in pages.iter().enumerate() {
            if self.map_one(*page).is_none() {
                let mapped = pages.get(..index).unwrap_or_default();
                self.unmap(mapped.iter().map(|page| page.window));
                return Err(EINVAL);
            }
        }
        Ok(())
    }

    fn map_one(&self, page: WindowPage) -> Option<()> {
        if u64::from(page.page) >= self.pages {
            return None;
        }
        let entry = self.entry(page.window)?;
        entry.cmpxchg(EMPTY, page.page, Release).ok().map(|_| ())
    }

    /// Lets pages of the window show nothing.
    pub(super) fn unmap(&self, pages: impl Iterator<Item = u32>) {
        for page in pages {
            if let Some(entry) = self.entry(page) {
                entry.store(EMPTY, Relaxed);
            }
        }
    }

    /// Returns the offset in the segment of the byte `offset` of the page `window`.
    pub(super) fn locate(&self, window: u32, offset: u64) -> Option<u64> {
        let page = self.entry(window)?.load(Acquire);
        (page != EMPTY && offset < self.page_bytes)
            .then(|| u64::from(page) * self.page_bytes + offset)
    }

    /// Returns how many bytes of a page come after its first `offset`.
    pub(super) fn rest(&self, offset: u64) -> u64 {
        self.page_bytes.saturating_sub(offset)
    }

    fn entry(&self, window: u32) -> Option<&Atomic<u32>> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.entries.get(window as usize)
    }
}
