// SPDX-License-Identifier: GPL-2.0

//! Memory that Linux may swap: files that live in memory.
//!
//! A [`SwapFile`] is a file without a name on the kernel's own tmpfs. Its pages come when they are first
//! wanted, zeroed, and are charged to the memory cgroup in force. As long as nobody has them pinned, the
//! kernel may write them to swap and take them away; [`SwapFile::pin`] brings all of them back, perhaps
//! into other frames, and keeps them until the [`PinnedPages`] are dropped. What was written meanwhile
//! is then in the file: whoever drops them need not say so.
//!
//! Pinned pages may be pinned for long, so they come from memory that need not stay movable, and the
//! kernel does not waste its time on looking at them: the file is unevictable while it is pinned.
//!
//! C header: [`include/linux/shmem_fs.h`](srctree/include/linux/shmem_fs.h),
//! [`include/linux/pagemap.h`](srctree/include/linux/pagemap.h).
//! Upstream: beside `rust/kernel/drm/gem/shmem.rs`.

use super::{
    bindings as local,
    pages::Frame, //
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    error::from_err_ptr,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full, //
        },
        Arc, //
    }, //
};

/// Pages of a file that the kernel may swap.
///
/// # Invariants
///
/// `file` is a file of the kernel's tmpfs on which this value owns a reference; nobody else knows it, so
/// it never shrinks. It has `pages` pages.
pub struct SwapFile {
    file: NonNull<bindings::file>,
    pages: u64,
    /// How many [`PinnedPages`] there are, or are being made.
    pinners: Atomic<u64>,
}

// SAFETY: Files are counted, and their page cache has locks of its own.
unsafe impl Send for SwapFile {}

// SAFETY: As for `Send`.
unsafe impl Sync for SwapFile {}

impl SwapFile {
    /// Makes a file of `pages` pages, none of which exist yet.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `EINVAL`: more pages than a file can have.
    pub fn new(pages: u64) -> Result<Arc<Self>> {
        // CAST: `usize` has 64 bits.
        let bytes = pages
            .checked_mul(kernel::page::PAGE_SIZE as u64)
            .ok_or(EINVAL)?;
        let bytes = i64::try_from(bytes).map_err(|_| EINVAL)?;

        // SAFETY: The name ends in NUL, and the function copies it.
        let file = unsafe { local::vidmm_swap_file(c"vidmm".as_char_ptr(), bytes) };
        let file = NonNull::new(from_err_ptr(file)?).ok_or(ENOMEM)?;

        // INVARIANT: The file is new and its only reference is ours.
        let this = Self {
            file,
            pages,
            pinners: Atomic::new(0),
        };

        Ok(Arc::new(this, GFP_KERNEL_ACCOUNT)?)
    }

    /// Returns what holds the pages of the file.
    fn mapping(&self) -> *mut bindings::address_space {
        // SAFETY: By the type invariants the file is alive; the field does not change.
        unsafe { (*self.file.as_ptr()).f_mapping }
    }

    /// Brings all pages into memory and keeps them there. May sleep, and reads from swap.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: the system or the memory cgroup has no more.
    /// - `EIO`: a page could not be read.
    /// - `EINTR`: the caller is being killed.
    pub fn pin(self: &Arc<Self>) -> Result<PinnedPages> {
        // CAST: `usize` has 64 bits.
        let frames = KVVec::with_capacity(self.pages as usize, GFP_KERNEL_ACCOUNT)?;
        let mut pinned = PinnedPages::new(self.clone(), frames);

        for index in 0..self.pages {
            if pinned.file.is_swapped(index) {
                pinned.swapped_in += 1;
            }

            let frame = self.read(index)?;

            // INVARIANT: The reference on the page is that of `frames`. There is room for all of them.
            let _ = pinned.frames.push_within_capacity(frame);

            if super::scheduling::fatal_signal_pending() {
                return Err(EINTR);
            }
        }

        Ok(pinned)
    }

    /// Returns whether the content of a page is in swap at the moment.
    fn is_swapped(&self, index: u64) -> bool {
        // SAFETY: By the type invariants the file, and with it its page cache, is alive. The entry is
        // only looked at, not followed. CAST: `usize` has 64 bits.
        let entry = unsafe { bindings::xa_load(&mut (*self.mapping()).i_pages, index as usize) };

        // An entry that is a number and no pointer says where the page is in swap.
        entry.addr() & 1 != 0
    }

    /// Brings a page into memory and takes a reference on it.
    fn read(&self, index: u64) -> Result<Frame> {
        // SAFETY: By the type invariants this is a mapping of tmpfs, and alive. CAST: `usize` has 64
        // bits.
        let page = from_err_ptr(unsafe {
            local::shmem_read_mapping_page_gfp(self.mapping(), index as usize, Self::FLAGS)
        })?;

        // SAFETY: `page` is the descriptor that the function has just returned.
        Ok(Frame(unsafe { local::vidmm_page_to_pfn(page) }))
    }

    /// How pages are asked for: whoever asks for too much is told so, and nobody is killed for it.
    const FLAGS: bindings::gfp_t =
        bindings::GFP_KERNEL | 1 << bindings::___GFP_RETRY_MAYFAIL_BIT | bindings::__GFP_NOWARN;
}

/// Returns whether there is room in swap. Without it, pages that are not pinned stay all the same.
pub fn has_swap() -> bool {
    // SAFETY: Reads a number.
    unsafe { local::vidmm_has_swap() }
}

impl Drop for SwapFile {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the reference is ours. With it go the pages, in memory and in
        // swap.
        unsafe { bindings::fput(self.file.as_ptr()) }
    }
}

/// Pages of a [`SwapFile`] that stay in memory, in these frames. Dropping them gives them to Linux.
///
/// # Invariants
///
/// `frames` are those of the first pages of the file, and this value owns a reference on each.
pub struct PinnedPages {
    file: Arc<SwapFile>,
    frames: KVVec<Frame>,
    swapped_in: u64,
}

impl PinnedPages {
    /// Returns pins of no pages.
    fn new(file: Arc<SwapFile>, frames: KVVec<Frame>) -> Self {
        file.pinners.fetch_add(1, Full);

        // SAFETY: The file, and with it its mapping, is alive.
        unsafe { local::vidmm_mapping_set_unevictable(file.mapping()) };

        // INVARIANT: There is no frame yet.
        Self {
            file,
            frames,
            swapped_in: 0,
        }
    }

    /// Returns the frames, one for each page.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Returns how many of the pages came from swap.
    pub fn swapped_in(&self) -> u64 {
        self.swapped_in
    }
}

impl Drop for PinnedPages {
    fn drop(&mut self) {
        let mapping = self.file.mapping();

        if self.file.pinners.fetch_sub(1, Full) == 1 {
            // SAFETY: The file, and with it its mapping, is alive.
            unsafe { local::vidmm_mapping_clear_unevictable(mapping) };

            // Somebody who has pinned it between these two steps says so again.
            if self.file.pinners.load(kernel::sync::atomic::Acquire) > 0 {
                // SAFETY: The file, and with it its mapping, is alive.
                unsafe { local::vidmm_mapping_set_unevictable(mapping) };
            }
        }

        let mut batch = bindings::folio_batch::default();
        let most = batch.folios.len();

        for frames in self.frames.chunks(most) {
            for (slot, frame) in batch.folios.iter_mut().zip(frames) {
                // SAFETY: By the type invariants the page exists and is referenced.
                *slot = unsafe { local::vidmm_pfn_to_folio(frame.0) };

                // SAFETY: As above. The file is alive and never shrinks, so the page belongs to it.
                unsafe { bindings::folio_mark_dirty(*slot) };
            }

            // CAST: A batch counts its folios in a byte.
            batch.nr = frames.len() as u8;

            // SAFETY: The batch holds `nr` folios, which are referenced.
            unsafe { bindings::check_move_unevictable_folios(&mut batch) };
            // SAFETY: As above; by the type invariants the references are ours, and nobody uses them any
            // more. The call empties the batch.
            unsafe { bindings::__folio_batch_release(&mut batch) };
        }
    }
}
