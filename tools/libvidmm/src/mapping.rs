// SPDX-License-Identifier: GPL-2.0

//! Mappings: memory that others may read and write at the same time.
//!
//! A [`Mapping`] owns a range of addresses and unmaps it on drop. What is mapped is shared with the
//! kernel, the GPU and other programs, so there are no slices of it: bytes are copied in and out by
//! volatile accesses, single values can be read and written atomically.
//!
//! All offsets are in bytes from the start of the mapping. An access beyond its end panics, as
//! indexing a slice does.

use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicU32,
    AtomicU64,
    Ordering, //
};

use rustix::mm::{
    mmap,
    mmap_anonymous,
    mprotect,
    munmap,
    MapFlags,
    MprotectFlags,
    ProtFlags, //
};

use crate::{
    error::{
        Errno,
        Error, //
    },
    Result,
};

/// What a program may do with a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Nothing: every access is a fault.
    None,
    /// Read.
    Read,
    /// Read and write.
    ReadWrite,
    /// Read and execute.
    ReadExecute,
}

impl Protection {
    fn flags(self) -> ProtFlags {
        match self {
            Self::None => ProtFlags::empty(),
            Self::Read => ProtFlags::READ,
            Self::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
            Self::ReadExecute => ProtFlags::READ | ProtFlags::EXEC,
        }
    }
}

/// Whether stores reach the object or a copy of the program's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// They reach the object.
    Shared,
    /// They make a copy. The adapter refuses such mappings.
    Private,
}

/// A range of mapped memory.
///
/// # Invariants
///
/// `start` is the start of `length` bytes that `mmap` gave to this value alone.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory may be accessed from every thread; all accesses are volatile or atomic.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`; nothing in the value changes behind a shared reference.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `length` bytes of an object of the adapter for reading and writing. `token` is an offset
    /// that a call returned.
    pub fn new(fd: impl AsFd, token: u64, length: usize) -> Result<Self> {
        Self::with(fd, token, length, Protection::ReadWrite, Sharing::Shared)
    }

    /// Maps `length` bytes of an object of the adapter for reading.
    pub fn read_only(fd: impl AsFd, token: u64, length: usize) -> Result<Self> {
        Self::with(fd, token, length, Protection::Read, Sharing::Shared)
    }

    /// Maps in any way, also in ways that the adapter refuses.
    pub fn with(
        fd: impl AsFd,
        token: u64,
        length: usize,
        protection: Protection,
        sharing: Sharing,
    ) -> Result<Self> {
        let sharing = match sharing {
            Sharing::Shared => MapFlags::SHARED,
            Sharing::Private => MapFlags::PRIVATE,
        };
        // SAFETY: without a wanted address the kernel picks a range that nothing else uses.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                protection.flags(),
                sharing,
                fd,
                token,
            )
        };
        Self::take(start, length)
    }

    /// Maps zeroed memory that belongs to no file, shared with children of the program.
    pub fn anonymous(length: usize, protection: Protection) -> Result<Self> {
        // SAFETY: without a wanted address the kernel picks a range that nothing else uses.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                length,
                protection.flags(),
                MapFlags::SHARED,
            )
        };
        Self::take(start, length)
    }

    /// Takes over what `mmap` returned.
    fn take(
        start: std::result::Result<*mut core::ffi::c_void, Errno>,
        length: usize,
    ) -> Result<Self> {
        let start = start.map_err(|errno| Error::new("mmap", errno))?;
        let start = NonNull::new(start.cast()).ok_or(Error::new("mmap", Errno::NOMEM))?;
        // INVARIANT: `mmap` has just given out these `length` bytes.
        Ok(Self { start, length })
    }

    /// Changes what may be done with the mapping.
    ///
    /// An access that is not allowed afterwards is a signal to the program.
    pub fn protect(&self, protection: Protection) -> Result<()> {
        let flags = match protection {
            Protection::None => MprotectFlags::empty(),
            Protection::Read => MprotectFlags::READ,
            Protection::ReadWrite => MprotectFlags::READ | MprotectFlags::WRITE,
            Protection::ReadExecute => MprotectFlags::READ | MprotectFlags::EXEC,
        };
        // SAFETY: by the invariants the range is this value's own; no reference to its bytes exists.
        unsafe { mprotect(self.start.as_ptr().cast(), self.length, flags) }
            .map_err(|errno| Error::new("mprotect", errno))
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Says whether the mapping has no bytes, which no mapping has.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the pointer to the first byte. Whoever uses it sees to races and to the end.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Returns the address of the byte at `offset`, for a field of an argument.
    pub fn address(&self, offset: usize) -> u64 {
        let address = self.at::<u8>(offset, 1).expose_provenance();
        // CAST: addresses have at most 64 bits.
        address as u64
    }

    /// Returns the pointer to `count` values of `T` at `offset`, which lie in the mapping.
    fn at<T>(&self, offset: usize, count: usize) -> *mut T {
        let bytes = count.checked_mul(size_of::<T>());
        let end = bytes.and_then(|bytes| offset.checked_add(bytes));
        assert!(
            end.is_some_and(|end| end <= self.length) && offset % align_of::<T>() == 0,
            "no {count} aligned values of {} bytes at {offset} in a mapping of {} bytes",
            size_of::<T>(),
            self.length
        );
        // SAFETY: `offset` is inside the mapping, or at its end with nothing to access.
        unsafe { self.start.as_ptr().add(offset).cast() }
    }

    /// Reads the byte at `offset`.
    pub fn read8(&self, offset: usize) -> u8 {
        // SAFETY: `at` checked the range.
        unsafe { self.at::<u8>(offset, 1).read_volatile() }
    }

    /// Writes the byte at `offset`.
    pub fn write8(&self, offset: usize, value: u8) {
        // SAFETY: `at` checked the range.
        unsafe { self.at::<u8>(offset, 1).write_volatile(value) }
    }

    /// Reads the aligned 32-bit value at `offset`.
    pub fn read32(&self, offset: usize) -> u32 {
        // SAFETY: `at` checked range and alignment.
        unsafe { self.at::<u32>(offset, 1).read_volatile() }
    }

    /// Writes the aligned 32-bit value at `offset`.
    pub fn write32(&self, offset: usize, value: u32) {
        // SAFETY: `at` checked range and alignment.
        unsafe { self.at::<u32>(offset, 1).write_volatile(value) }
    }

    /// Reads the aligned 64-bit value at `offset`.
    pub fn read64(&self, offset: usize) -> u64 {
        // SAFETY: `at` checked range and alignment.
        unsafe { self.at::<u64>(offset, 1).read_volatile() }
    }

    /// Writes the aligned 64-bit value at `offset`.
    pub fn write64(&self, offset: usize, value: u64) {
        // SAFETY: `at` checked range and alignment.
        unsafe { self.at::<u64>(offset, 1).write_volatile(value) }
    }

    /// Returns the aligned 32-bit value at `offset` for atomic accesses.
    pub fn atomic32(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: `at` checked range and alignment; the memory lives as long as the borrow, and
        // whoever else accesses it does so by whole values.
        unsafe { AtomicU32::from_ptr(self.at(offset, 1)) }
    }

    /// Returns the aligned 64-bit value at `offset` for atomic accesses.
    pub fn atomic64(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as for `atomic32`.
        unsafe { AtomicU64::from_ptr(self.at(offset, 1)) }
    }

    /// Reads the 64-bit value at `offset` with acquire ordering: what was written before it was
    /// stored is visible afterwards.
    pub fn load_acquire(&self, offset: usize) -> u64 {
        self.atomic64(offset).load(Ordering::Acquire)
    }

    /// Copies `bytes` to `offset`.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        self.transfer(offset, bytes.len(), |to, at| {
            match bytes[at..].first_chunk() {
                // SAFETY: `transfer` hands out pointers to as many bytes as it advances by.
                Some(chunk) if to.is_aligned() => unsafe {
                    to.write_volatile(u64::from_ne_bytes(*chunk));
                },
                // SAFETY: as above.
                _ => unsafe { to.cast::<u8>().write_volatile(bytes[at]) },
            }
        });
    }

    /// Copies the bytes at `offset` to `bytes`.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        let length = bytes.len();
        self.transfer(offset, length, |from, at| {
            match bytes[at..].first_chunk_mut() {
                // SAFETY: `transfer` hands out pointers to as many bytes as it advances by.
                Some(chunk) if from.is_aligned() => unsafe {
                    *chunk = from.read_volatile().to_ne_bytes();
                },
                // SAFETY: as above.
                _ => unsafe { bytes[at] = from.cast::<u8>().read_volatile() },
            }
        });
    }

    /// Returns the `length` bytes at `offset`.
    pub fn to_vec(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.read(offset, &mut bytes);
        bytes
    }

    /// Sets the `length` bytes at `offset` to `value`.
    pub fn fill(&self, offset: usize, length: usize, value: u8) {
        let word = u64::from_ne_bytes([value; 8]);
        self.transfer(offset, length, |to, at| {
            if length - at >= 8 && to.is_aligned() {
                // SAFETY: `transfer` hands out pointers to as many bytes as it advances by.
                unsafe { to.write_volatile(word) }
            } else {
                // SAFETY: as above.
                unsafe { to.cast::<u8>().write_volatile(value) }
            }
        });
    }

    /// Calls `step` with a pointer and a distance from `offset` until `length` bytes are done: eight
    /// bytes where as many are left and the pointer is aligned, one byte otherwise.
    fn transfer(&self, offset: usize, length: usize, mut step: impl FnMut(*mut u64, usize)) {
        let start = self.at::<u8>(offset, length);
        let mut done = 0;
        while done < length {
            // SAFETY: `done` is below `length`, and `at` checked that many bytes.
            let pointer = unsafe { start.add(done).cast::<u64>() };
            step(pointer, done);
            done += if length - done >= 8 && pointer.is_aligned() {
                8
            } else {
                1
            };
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: by the invariants the range is this value's own, and nothing borrows it any more.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok(), "munmap of an owned range: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_any_offset() {
        let mapping = Mapping::anonymous(4096, Protection::ReadWrite).unwrap();
        let bytes: Vec<u8> = (0..100).collect();

        mapping.write(3, &bytes);

        assert_eq!(mapping.to_vec(3, 100), bytes);
        assert_eq!(mapping.read8(2), 0);
        assert_eq!(mapping.read8(103), 0);
    }

    #[test]
    fn fill_stops_at_its_end() {
        let mapping = Mapping::anonymous(4096, Protection::ReadWrite).unwrap();

        mapping.fill(5, 20, 0xee);

        assert_eq!(mapping.read8(4), 0);
        assert_eq!(mapping.to_vec(5, 20), [0xee; 20]);
        assert_eq!(mapping.read8(25), 0);
    }

    #[test]
    fn values_are_seen_by_atomic_loads() {
        let mapping = Mapping::anonymous(4096, Protection::ReadWrite).unwrap();

        mapping.write64(8, 0x1122_3344_5566_7788);

        assert_eq!(mapping.load_acquire(8), 0x1122_3344_5566_7788);
    }

    #[test]
    #[should_panic(expected = "in a mapping of 4096 bytes")]
    fn access_beyond_the_end_panics() {
        let mapping = Mapping::anonymous(4096, Protection::ReadWrite).unwrap();

        mapping.read32(4096);
    }
}
