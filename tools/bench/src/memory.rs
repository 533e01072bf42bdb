// SPDX-License-Identifier: GPL-2.0

//! Memory of the program itself: what copies and fills of the user are measured with.
//!
//! A range begins at a multiple of 2 MiB, so that huge pages are where they would be for everybody,
//! or an odd number of small pages behind one. In two ranges of the two kinds, bytes at equal
//! offsets never share an entry of an emulator's direct-mapped TLB.

use std::ptr::NonNull;

use rustix::mm::{
    mmap_anonymous,
    munmap,
    MapFlags,
    ProtFlags, //
};

use crate::failure::{
    Failure,
    Result, //
};

/// Bytes of a huge page.
pub const HUGE: usize = 2 << 20;
/// Bytes of a small page.
pub const PAGE: usize = 4096;

/// Where a range begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At a multiple of 2 MiB.
    Aligned,
    /// One small page behind a multiple of 2 MiB.
    OddPage,
}

/// A range of memory, touched.
///
/// # Invariants
///
/// `base` is the start of `mapped` bytes that `mmap` gave to this value alone; `start` is that of
/// `length` bytes among them.
#[derive(Debug)]
pub struct Range {
    base: NonNull<u8>,
    mapped: usize,
    start: NonNull<u8>,
    length: usize,
}

impl Range {
    /// Takes `length` bytes and touches them.
    pub fn new(length: usize, start: Start) -> Result<Self> {
        let mapped = length + HUGE + PAGE;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let base = std::ptr::null_mut();
        // SAFETY: without a wanted address the kernel picks a range that nothing else uses.
        let base = unsafe { mmap_anonymous(base, mapped, protection, MapFlags::PRIVATE) }?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(Failure::new("mmap gave nothing"))?;
        let inside = base.as_ptr().align_offset(HUGE)
            + match start {
                Start::Aligned => 0,
                Start::OddPage => PAGE,
            };
        // SAFETY: at most 2 MiB less one byte plus a page, which the mapping is longer by.
        let start = unsafe { base.add(inside) };
        // INVARIANT: `mmap` has just given out these bytes, and `inside` leaves `length` of them.
        let mut range = Self {
            base,
            mapped,
            start,
            length,
        };
        range.fill(1);
        Ok(range)
    }

    /// Sets all bytes, as the C library does.
    pub fn fill(&mut self, value: u8) {
        // SAFETY: by the invariants the bytes are this value's own.
        unsafe { self.start.as_ptr().write_bytes(value, self.length) };
    }

    /// Copies all bytes from a range of the same length, as the C library does.
    ///
    /// # Panics
    ///
    /// The lengths differ.
    pub fn copy_from(&mut self, source: &Self) {
        assert_eq!(self.length, source.length);
        // SAFETY: by the invariants both are ranges of their own of that length.
        unsafe {
            self.start
                .as_ptr()
                .copy_from_nonoverlapping(source.start.as_ptr(), self.length);
        }
    }

    /// Says whether the first and the last byte have a value.
    pub fn ends_are(&self, value: u8) -> bool {
        let byte = |offset: usize| {
            // SAFETY: by the invariants `offset` is inside, as both uses below say.
            let pointer = unsafe { self.start.add(offset) };
            // SAFETY: as above.
            unsafe { pointer.as_ptr().read_volatile() }
        };
        byte(0) == value && byte(self.length - 1) == value
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: by the invariants the mapping is this value's own.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.mapped) };
        debug_assert!(unmapped.is_ok(), "munmap of an owned range: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_begin_where_they_shall() {
        let aligned = Range::new(HUGE, Start::Aligned).unwrap();
        let odd = Range::new(HUGE, Start::OddPage).unwrap();

        assert_eq!(aligned.start.as_ptr().addr() % HUGE, 0);
        assert_eq!(odd.start.as_ptr().addr() % HUGE, PAGE);
    }

    #[test]
    fn copy_reaches_both_ends() {
        let mut source = Range::new(3 * PAGE, Start::Aligned).unwrap();
        let mut target = Range::new(3 * PAGE, Start::OddPage).unwrap();

        source.fill(7);
        target.copy_from(&source);

        assert!(target.ends_are(7));
    }
}
