// SPDX-License-Identifier: GPL-2.0

//! Memory of the test: mappings of the device file, pages with a guard page behind them.

use std::{
    io,
    os::fd::{
        AsRawFd,
        BorrowedFd, //
    },
    sync::atomic::{
        AtomicU32,
        AtomicU64,
        Ordering, //
    },
};

use crate::call::Errno;

/// Bytes of a page of this machine.
pub const PAGE: usize = 4096;

/// Reading only.
pub const READ: i32 = libc::PROT_READ;
/// Reading and writing.
pub const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// A mapping, removed at the end of the scope.
pub struct Mapping {
    address: *mut u8,
    length: usize,
}

// SAFETY: a mapping is memory that others change too; it is only accessed with atomic or volatile
// accesses.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Calls `mmap` and returns its errno.
    pub fn try_new(
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        protection: i32,
        flags: i32,
    ) -> Result<Self, Errno> {
        // SAFETY: the kernel chooses the address, so no memory of the program is replaced.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                flags,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().raw_os_error().unwrap_or(0));
        }
        Ok(Self {
            address: address.cast(),
            length,
        })
    }

    /// Maps the file shared, for reading and writing.
    pub fn new(file: BorrowedFd<'_>, offset: u64, length: usize) -> Self {
        Self::try_new(file, offset, length, READ_WRITE, libc::MAP_SHARED)
            .unwrap_or_else(|errno| panic!("mmap of {length} at {offset:#x}: errno {errno}"))
    }

    /// Memory that this process and those it forks see together.
    pub fn shared(pages: usize) -> Self {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping where the kernel wants it takes nothing away.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), pages * PAGE, READ_WRITE, flags, -1, 0) };
        assert!(address != libc::MAP_FAILED, "no shared memory");
        Self {
            address: address.cast(),
            length: pages * PAGE,
        }
    }

    /// Memory below 4 GiB that no file stands behind.
    pub fn low(pages: usize) -> Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
        // SAFETY: a new mapping where the kernel wants it takes nothing away.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), pages * PAGE, READ_WRITE, flags, -1, 0) };
        assert!(address != libc::MAP_FAILED, "no memory below 4 GiB");
        Self {
            address: address.cast(),
            length: pages * PAGE,
        }
    }

    /// Maps the file shared, for reading.
    pub fn read_only(file: BorrowedFd<'_>, offset: u64, length: usize) -> Self {
        Self::try_new(file, offset, length, READ, libc::MAP_SHARED)
            .unwrap_or_else(|errno| panic!("mmap of {length} at {offset:#x}: errno {errno}"))
    }

    /// Maps `pages` anonymous pages.
    pub fn anonymous(pages: usize) -> Self {
        // SAFETY: as in `try_new`.
        let address = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), pages * PAGE, READ_WRITE, flags, -1, 0)
        };
        assert!(address != libc::MAP_FAILED, "no anonymous memory");
        Self {
            address: address.cast(),
            length: pages * PAGE,
        }
    }

    /// Where it lies.
    pub fn address(&self) -> u64 {
        self.address as u64
    }

    /// The address of a byte of the mapping, or of its end.
    fn byte(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.length, "{offset} lies outside the mapping");
        // SAFETY: the offset is inside the mapping, or its end.
        unsafe { self.address.add(offset) }
    }

    fn at<T>(&self, offset: usize) -> *mut T {
        assert!(
            offset + size_of::<T>() <= self.length,
            "{offset} lies outside the mapping"
        );
        assert_eq!(offset % align_of::<T>(), 0, "{offset} is not aligned");
        self.byte(offset).cast()
    }

    /// The word at `offset`.
    pub fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: an aligned place inside a mapping that lives as long as the reference.
        unsafe { AtomicU32::from_ptr(self.at(offset)) }
    }

    /// The 64-bit word at `offset`.
    pub fn long(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: an aligned place inside a mapping that lives as long as the reference.
        unsafe { AtomicU64::from_ptr(self.at(offset)) }
    }

    /// Reads a word.
    pub fn read32(&self, offset: usize) -> u32 {
        self.word(offset).load(Ordering::Acquire)
    }

    /// Reads a 64-bit word.
    pub fn read64(&self, offset: usize) -> u64 {
        self.long(offset).load(Ordering::Acquire)
    }

    /// Writes a word.
    pub fn write32(&self, offset: usize, value: u32) {
        self.word(offset).store(value, Ordering::Release);
    }

    /// Writes a 64-bit word.
    pub fn write64(&self, offset: usize, value: u64) {
        self.long(offset).store(value, Ordering::Release);
    }

    /// Copies bytes out.
    pub fn read(&self, offset: usize, length: usize) -> Vec<u8> {
        assert!(offset + length <= self.length, "a read beyond the mapping");
        let mut bytes = vec![0; length];
        let from = self.byte(offset);
        // SAFETY: both ranges are valid for `length` bytes and do not overlap; a change of the
        // memory meanwhile gives other bytes, which is what tests look for.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), length) };
        bytes
    }

    /// Copies bytes in.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(
            offset + bytes.len() <= self.length,
            "a write beyond the mapping"
        );
        let to = self.byte(offset);
        // SAFETY: both ranges are valid for the length and do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Whether all bytes of a range are `byte`.
    pub fn is_filled(&self, offset: usize, length: usize, byte: u8) -> bool {
        self.read(offset, length).iter().all(|found| *found == byte)
    }

    /// Changes the protection of a part.
    pub fn protect(&self, offset: usize, length: usize, protection: i32) -> Result<(), Errno> {
        assert!(offset + length <= self.length, "a range beyond the mapping");
        let start = self.byte(offset);
        // SAFETY: the range belongs to this mapping.
        let result = unsafe { libc::mprotect(start.cast(), length, protection) };
        errno_of(result)
    }

    /// Removes a part; touching it afterwards is a fault.
    pub fn unmap_part(&self, offset: usize, length: usize) {
        assert!(offset + length <= self.length, "a range beyond the mapping");
        let start = self.byte(offset);
        // SAFETY: the range belongs to this mapping.
        let result = unsafe { libc::munmap(start.cast(), length) };
        assert_eq!(result, 0, "munmap failed");
    }

    /// Changes the length; it may move.
    pub fn remap(&mut self, length: usize) -> Result<(), Errno> {
        // SAFETY: the range is this mapping, and nobody holds a reference into it.
        let address = unsafe {
            libc::mremap(
                self.address.cast(),
                self.length,
                length,
                libc::MREMAP_MAYMOVE,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().raw_os_error().unwrap_or(0));
        }
        self.address = address.cast();
        self.length = length;
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping, and nobody holds a reference into it.
        unsafe { libc::munmap(self.address.cast(), self.length) };
    }
}

fn errno_of(result: i32) -> Result<(), Errno> {
    if result == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Copies the first `length` bytes of one mapping to another, by as few instructions as it takes.
pub fn copy(from: &Mapping, to: &Mapping, length: usize) {
    let (source, target) = (from.byte(0), to.byte(0));
    assert!(
        length <= from.length && length <= to.length,
        "a copy beyond a mapping"
    );
    // SAFETY: both are valid for the length and do not overlap, as they are different mappings.
    unsafe { std::ptr::copy_nonoverlapping(source, target, length) };
}

/// Copies 8 bytes from one mapping to another by one instruction that reads and writes memory.
pub fn copy_word(from: &Mapping, from_offset: usize, to: &Mapping, to_offset: usize) {
    assert!(
        from_offset + 8 <= from.length && to_offset + 8 <= to.length,
        "a copy beyond a mapping"
    );
    let (source, target) = (from.byte(from_offset), to.byte(to_offset));
    // SAFETY: both places are valid for 8 bytes; the instruction touches nothing else, and the
    // direction flag is clear.
    unsafe {
        std::arch::asm!(
            "movsq",
            inout("rsi") source => _,
            inout("rdi") target => _,
            options(nostack, preserves_flags)
        );
    }
}

/// Writes bytes of a mapping to a file, without a copy of them in between.
pub fn write_out(
    file: &std::fs::File,
    mapping: &Mapping,
    offset: usize,
    length: usize,
) -> Result<(), Errno> {
    assert!(
        offset + length <= mapping.length,
        "a range beyond the mapping"
    );
    let start = mapping.byte(offset);
    // SAFETY: the range belongs to the mapping.
    let written = unsafe { libc::write(file.as_raw_fd(), start.cast(), length) };
    match usize::try_from(written) {
        Ok(written) => {
            assert_eq!(written, length, "a short write");
            Ok(())
        }
        Err(_) => Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)),
    }
}

/// Copies memory of this process by way of the kernel, as another process would; returns how many
/// bytes came.
pub fn peek(address: u64, bytes: &mut [u8]) -> Result<usize, Errno> {
    let local = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: bytes.len(),
    };
    // SAFETY: takes no argument.
    let process = unsafe { libc::getpid() };
    // SAFETY: the call fills `bytes`, which are borrowed, and checks the other address itself.
    let copied = unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) };
    usize::try_from(copied).map_err(|_| io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Memory that ends at a page where nothing is mapped.
pub struct Guarded {
    mapping: Mapping,
    end: usize,
}

impl Guarded {
    /// Maps `pages` pages with a hole behind them.
    pub fn new(pages: usize) -> Self {
        let mapping = Mapping::anonymous(pages + 1);
        mapping
            .protect(pages * PAGE, PAGE, libc::PROT_NONE)
            .expect("mprotect");
        Self {
            mapping,
            end: pages * PAGE,
        }
    }

    /// Copies bytes so that they end where the hole begins, and returns their address.
    pub fn place(&self, bytes: &[u8]) -> u64 {
        let offset = self.end - bytes.len();
        self.mapping.write(offset, bytes);
        self.mapping.address() + offset as u64
    }

    /// The last `length` bytes in front of the guard.
    pub fn read(&self, length: usize) -> Vec<u8> {
        self.mapping.read(self.end - length, length)
    }

    /// Makes the pages read-only.
    pub fn seal(&self) {
        self.mapping.protect(0, self.end, READ).expect("mprotect");
    }
}

/// Touches a word and reports whether that raised SIGBUS or SIGSEGV instead.
///
/// The process that touches is a child, so that the signal harms nobody.
pub fn touch(mapping: &Mapping, offset: usize, write: bool) -> Result<u32, i32> {
    use crate::process::{
        Child, //
        End,
    };
    let child = Child::start(|says| {
        if write {
            mapping.write32(offset, 0);
        }
        says.line(&mapping.read32(offset).to_string());
    });
    match child.end() {
        (End::Signal(signal), _) => Err(signal),
        (End::Code(0), text) => Ok(text.parse().expect("a number")),
        (end, text) => panic!("the touching process ended with {end:?}: {text}"),
    }
}
