// SPDX-License-Identifier: GPL-2.0

//! Memory of the program itself: what copies and fills of the user are measured with.
//!
//! A range begins at a multiple of 2 MiB, so that huge pages are where they would be for everybody,
//! or an odd number of small pages behind one. In two ranges of the two kinds, bytes at equal
//! offsets never share an entry of an emulator's direct-mapped TLB.

use std::ptr::NonNull;

use libvidmm::Mapping;
use rustix::mm::{
    madvise,
    mmap_anonymous,
    munmap,
    Advice,
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

/// Writes one byte of each page of a mapping.
pub fn touch(mapping: &Mapping) {
    // SAFETY: the mapping is borrowed, and its length is the one of its bytes.
    unsafe { touch_pages(mapping.as_ptr(), mapping.len()) }
}

/// Writes one byte of each page.
///
/// # Safety
///
/// `start` is valid for `length` bytes, which others may write only as whole bytes.
unsafe fn touch_pages(start: *mut u8, length: usize) {
    for offset in (0..length).step_by(PAGE) {
        // SAFETY: `offset` is below `length`.
        let page = unsafe { start.add(offset) };
        // SAFETY: as above.
        unsafe { page.write_volatile(1) };
    }
}

/// Asks for huge pages.
pub fn advise_huge(mapping: &Mapping) -> Result<()> {
    let start = mapping.as_ptr().cast();
    // SAFETY: the mapping is borrowed; the advice changes no contents.
    unsafe { madvise(start, mapping.len(), Advice::LinuxHugepage) }?;
    Ok(())
}

/// Returns how many bytes of a mapping of shared memory are mapped by huge pages.
pub fn huge_bytes(mapping: &Mapping) -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/smaps")?;
    let start = format!("{:x}-", mapping.as_ptr().addr());
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&start));
    let line = lines.find_map(|line| line.strip_prefix("ShmemPmdMapped:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kib: Option<u64> = kib.and_then(|kib| kib.parse().ok());
    kib.map(|kib| kib << 10)
        .ok_or(Failure::new("/proc/self/smaps does not show the mapping"))
}

/// Takes private memory, writes one byte of each page and gives the memory back. Ranges of 2 MiB and
/// more begin at a multiple of that, and consist of huge pages where the kernel has any.
pub fn take_touch_and_return(length: usize) -> Result<()> {
    let is_huge = length >= HUGE;
    let mapped = if is_huge { length + HUGE } else { length };
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let base = std::ptr::null_mut();
    // SAFETY: without a wanted address the kernel picks a range that nothing else uses.
    let base = unsafe { mmap_anonymous(base, mapped, protection, MapFlags::PRIVATE) }?;
    let bytes = base.cast::<u8>();
    let inside = if is_huge { bytes.align_offset(HUGE) } else { 0 };
    // SAFETY: less than 2 MiB, which the mapping is longer by.
    let start = unsafe { bytes.add(inside) };
    if is_huge {
        // SAFETY: the range lies in the mapping; the advice changes no contents.
        unsafe { madvise(start.cast(), length, Advice::LinuxHugepage) }?;
    }
    // SAFETY: the mapping is this function's own and has these bytes.
    unsafe { touch_pages(start, length) };
    // SAFETY: nothing refers to the mapping any more.
    unsafe { munmap(base, mapped) }?;
    Ok(())
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

    /// Lets the kernel take the pages until they are written again.
    pub fn give_up(&mut self) -> Result<()> {
        let start = self.start.as_ptr().cast();
        // SAFETY: by the invariants the bytes are this value's own, and no reference to them exists.
        unsafe { madvise(start, self.length, Advice::LinuxFree) }?;
        Ok(())
    }

    /// Writes one byte of each page.
    pub fn touch(&mut self) {
        // SAFETY: by the invariants the bytes are this value's own.
        unsafe { touch_pages(self.start.as_ptr(), self.length) }
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
