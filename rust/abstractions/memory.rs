// SPDX-License-Identifier: GPL-2.0

//! Views of memory that others change at any time.
//!
//! The memory of clients and of segments is shared three ways: programs have it mapped, engines read
//! and write it, and the driver fills and copies it. A Rust reference promises that nobody else writes,
//! so there can be none. A [`Window`] is what stands for it: accesses of one word are single volatile
//! or atomic ones, accesses of many are calls of the kernel's own `memset` and `memmove`, whose
//! workings the compiler cannot see. What a reader finds while others write is any mixture of old and
//! new words; whoever needs order brings it with a fence.
//!
//! All RAM is mapped in the kernel at one constant distance from its physical address (there is no
//! high memory where this driver runs), so a view needs no set-up and is freely copied.
//!
//! C header: [`include/linux/string.h`](srctree/include/linux/string.h),
//! [`include/linux/crc32c.h`](srctree/include/linux/crc32c.h).
//! Upstream: a sibling of the I/O accessors of `rust/kernel/io.rs`.

use super::{
    bindings as local,
    pages::Frame, //
};
use core::{
    ops::Range,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    ffi, //
};

/// A stretch of directly mapped memory.
///
/// A copy of the pair of address and length: it does not keep the memory. Whoever stores one stores it
/// beside the owner of the pages.
///
/// # Invariants
///
/// `base` is the address of `bytes` bytes in the kernel's map of RAM. They are accessed by volatile and
/// atomic accesses and from assembly alone. They belong to a block of pages of the driver, which lives
/// as long as the window is used, by the rule of [`Window::physical`].
#[derive(Clone, Copy, Debug)]
pub struct Window {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: An address and a length; the accesses are safe from any thread by the type invariants.
unsafe impl Send for Window {}

// SAFETY: As for `Send`.
unsafe impl Sync for Window {}

impl Window {
    /// Returns the view of `bytes` bytes at a physical address, or [`None`] where there is no RAM.
    ///
    /// # Why this is no `unsafe fn`
    ///
    /// The software engine is a bus master. Like any device that can reach system memory it writes to
    /// the addresses that it is given, and giving a device an address is not part of what Rust's
    /// memory safety covers, here or elsewhere in the kernel: a wrong one can be given to real
    /// hardware from safe code as well. The rule that replaces it: **an address handed to an engine, or
    /// to this function, lies in a `PageBlock` or a `ContiguousBlock` of this driver that outlives the
    /// access.** Buffers hold what they name until they are complete; with the parameter `self_check`
    /// the engine looks up each access in what its buffer holds.
    pub fn physical(address: u64, bytes: usize) -> Option<Self> {
        let last = address.checked_add(u64::try_from(bytes).ok()?.checked_sub(1)?)?;
        let (start, end) = (Frame::containing(address), Frame::containing(last));

        if !exists(start) || (end != start && !exists(end)) {
            return None;
        }

        // CAST: Less than a page.
        let inside = (address - start.address()) as usize;

        // INVARIANT: Both ends are RAM, and blocks have no holes; the owner is the caller's duty.
        Self::owned(start, inside.checked_add(bytes)?).sub(inside, bytes)
    }

    /// Returns the view of pages that the caller owns.
    pub(super) fn owned(frame: Frame, bytes: usize) -> Self {
        // SAFETY: Arithmetic on the number of a page that exists; nothing is accessed here.
        let base = unsafe { local::vidmm_pfn_to_virtual(frame.0) };

        // INVARIANT: The caller owns the pages. The map of RAM does not begin at address zero; if it
        // did, the window would be empty.
        match NonNull::new(base.cast()) {
            Some(base) => Self { base, bytes },
            None => Self {
                base: NonNull::dangling(),
                bytes: 0,
            },
        }
    }

    /// Returns the number of bytes.
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Returns the part of `bytes` bytes at `offset`.
    pub fn sub(&self, offset: usize, bytes: usize) -> Option<Self> {
        let base = self.at(offset, bytes, 1)?;

        // INVARIANT: Part of a window that fulfils them.
        Some(Self { base, bytes })
    }

    /// Returns the address at `offset` if `bytes` bytes from there are inside and it is aligned.
    fn at(&self, offset: usize, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(bytes)?;

        if end > self.bytes {
            return None;
        }

        // SAFETY: The offset is within the window, which is one stretch of mapped memory by the type
        // invariants.
        let address = unsafe { self.base.add(offset) };

        (address.addr().get() % align == 0).then_some(address)
    }

    /// Reads the aligned 32-bit word at `offset` once.
    #[must_use]
    pub fn read32(&self, offset: usize) -> Option<u32> {
        let at = self.at(offset, 4, 4)?.cast::<u32>();

        // SAFETY: Inside and aligned; by the type invariants a volatile access is allowed.
        Some(unsafe { at.read_volatile() })
    }

    /// Reads the aligned 64-bit word at `offset` once.
    #[must_use]
    pub fn read64(&self, offset: usize) -> Option<u64> {
        let at = self.at(offset, 8, 8)?.cast::<u64>();

        // SAFETY: Inside and aligned; by the type invariants a volatile access is allowed.
        Some(unsafe { at.read_volatile() })
    }

    /// Writes the aligned 32-bit word at `offset` once.
    #[must_use]
    pub fn write32(&self, offset: usize, value: u32) -> Option<()> {
        let at = self.at(offset, 4, 4)?.cast::<u32>();

        // SAFETY: Inside and aligned; by the type invariants a volatile access is allowed.
        unsafe { at.write_volatile(value) };
        Some(())
    }

    /// Writes the aligned 64-bit word at `offset` once.
    #[must_use]
    pub fn write64(&self, offset: usize, value: u64) -> Option<()> {
        let at = self.at(offset, 8, 8)?.cast::<u64>();

        // SAFETY: Inside and aligned; by the type invariants a volatile access is allowed.
        unsafe { at.write_volatile(value) };
        Some(())
    }

    /// Reads the aligned 64-bit word at `offset`, before all later accesses (acquire).
    #[must_use]
    pub fn acquire64(&self, offset: usize) -> Option<u64> {
        let at = self.at(offset, 8, 8)?.cast::<bindings::atomic64_t>();

        // SAFETY: Inside and aligned; by the type invariants an atomic access is allowed.
        let value = unsafe { bindings::atomic64_read_acquire(at.as_ptr()) };

        // CAST: The same bits.
        Some(value as u64)
    }

    /// Writes the aligned 64-bit word at `offset`, after all earlier accesses (release).
    #[must_use]
    pub fn release64(&self, offset: usize, value: u64) -> Option<()> {
        let at = self.at(offset, 8, 8)?.cast::<bindings::atomic64_t>();

        // CAST: The same bits.
        // SAFETY: Inside and aligned; by the type invariants an atomic access is allowed.
        unsafe { bindings::atomic64_set_release(at.as_ptr(), value as i64) };
        Some(())
    }

    /// Adds to the aligned 64-bit word at `offset` in one step, fully ordered; returns the old value.
    #[must_use]
    pub fn fetch_add64(&self, offset: usize, value: u64) -> Option<u64> {
        let at = self.at(offset, 8, 8)?.cast::<bindings::atomic64_t>();

        // CAST: The same bits; the addition wraps.
        // SAFETY: Inside and aligned; by the type invariants an atomic access is allowed.
        let old = unsafe { bindings::atomic64_fetch_add(value as i64, at.as_ptr()) };

        // CAST: The same bits.
        Some(old as u64)
    }
}

/// Whole windows at once.
impl Window {
    /// Fills the window with copies of `pattern`, beginning with its lowest byte.
    ///
    /// A window whose length is no multiple of four ends in the first bytes of the pattern. As fast as
    /// clearing, where the window begins at a word.
    pub fn fill32(&self, pattern: u32) {
        let [first, ..] = pattern.to_ne_bytes();

        if pattern == u32::from_ne_bytes([first; 4]) {
            return self.poison(first);
        }

        let head = (self.base.addr().get().wrapping_neg() % 8).min(self.bytes);

        if head % 4 != 0 {
            return self.fill_bytes(0..self.bytes, pattern);
        }

        // OVERFLOW: The head is part of the window.
        let words = (self.bytes - head) / 8;
        let tail = head + words * 8;

        self.fill_bytes(0..head, pattern);
        self.fill_words(head, words, u64::from(pattern) << 32 | u64::from(pattern));
        self.fill_bytes(tail..self.bytes, pattern);
    }

    /// Fills `words` aligned 64-bit words from `offset` on.
    ///
    /// Eight stores in a row are as fast as the kernel's `memset`; its functions for wider patterns
    /// store one word per step of a string instruction, which is slower on many processors.
    fn fill_words(&self, offset: usize, words: usize, pattern: u64) {
        const ROW: usize = 8;

        let Some(start) = self.at(offset, words.saturating_mul(8), 8) else {
            return;
        };
        let start = start.as_ptr().cast::<u64>();

        for row in 0..words / ROW {
            let row = start.wrapping_add(row * ROW);

            for word in 0..ROW {
                // SAFETY: Inside and aligned; by the type invariants a volatile access is allowed.
                unsafe { row.wrapping_add(word).write_volatile(pattern) };
            }
        }

        for word in words / ROW * ROW..words {
            // SAFETY: Inside and aligned; by the type invariants a volatile access is allowed.
            unsafe { start.wrapping_add(word).write_volatile(pattern) };
        }
    }

    /// Fills a range that begins at a multiple of four, byte by byte.
    fn fill_bytes(&self, range: Range<usize>, pattern: u32) {
        for (offset, byte) in range.zip(pattern.to_ne_bytes().iter().cycle()) {
            if let Some(at) = self.at(offset, 1, 1) {
                // SAFETY: Inside; by the type invariants a volatile access is allowed.
                unsafe { at.write_volatile(*byte) };
            }
        }
    }

    /// Clears the window.
    pub fn zero(&self) {
        self.poison(0);
    }

    /// Sets every byte of the window.
    pub fn poison(&self, byte: u8) {
        let base = self.base.as_ptr().cast();

        // SAFETY: The bytes are those of the window, and by the type invariants assembly may write them.
        unsafe { bindings::memset(base, ffi::c_int::from(byte), self.bytes) };
    }

    /// Copies `from` to this window; lengths that differ copy nothing.
    ///
    /// The two may overlap: the result is as if all of `from` were read before anything is written.
    #[must_use]
    pub fn copy_from(&self, from: &Self) -> Option<()> {
        if self.bytes != from.bytes {
            return None;
        }

        let to = self.base.as_ptr().cast();

        // SAFETY: The bytes are those of the two windows, and by the type invariants assembly may read
        // and write them.
        unsafe { bindings::memmove(to, from.base.as_ptr().cast(), self.bytes) };
        Some(())
    }

    /// Copies the window to `to`, which has the same length.
    #[must_use]
    pub fn read_into(&self, to: &mut [u8]) -> Option<()> {
        if self.bytes != to.len() {
            return None;
        }

        // SAFETY: The bytes are those of the window and of the slice, and by the type invariants
        // assembly may read the former.
        unsafe { bindings::memcpy(to.as_mut_ptr().cast(), self.base.as_ptr().cast(), to.len()) };
        Some(())
    }

    /// Copies `from`, which has the same length, to the window.
    #[must_use]
    pub fn write_from(&self, from: &[u8]) -> Option<()> {
        if self.bytes != from.len() {
            return None;
        }

        let to = self.base.as_ptr().cast();

        // SAFETY: The bytes are those of the window and of the slice, and by the type invariants
        // assembly may write the former.
        unsafe { bindings::memcpy(to, from.as_ptr().cast(), from.len()) };
        Some(())
    }

    /// Continues a CRC-32C over the window; neither `seed` nor the result is inverted.
    #[must_use]
    pub fn crc32c(&self, seed: u32) -> u32 {
        // SAFETY: The bytes are those of the window, and by the type invariants code that the compiler
        // cannot see may read them.
        unsafe { local::crc32c(seed, self.base.as_ptr().cast(), self.bytes) }
    }
}

/// Returns whether the kernel knows this page as memory.
fn exists(frame: Frame) -> bool {
    // SAFETY: Any number may be asked about.
    unsafe { local::vidmm_pfn_valid(frame.0) }
}
