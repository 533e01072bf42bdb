// SPDX-License-Identifier: GPL-2.0

//! What can be done with any descriptor: read, poll, epoll; and eventfds.

use std::{
    io,
    os::fd::{
        AsRawFd,
        BorrowedFd,
        FromRawFd,
        OwnedFd, //
    }, //
};

use crate::call::Errno;

/// Returns the number that a call of the kernel returned, or its errno.
fn number(result: isize) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Takes a descriptor that a call of the kernel has returned.
fn own(result: i32) -> OwnedFd {
    assert!(
        result >= 0,
        "no descriptor: {}",
        std::io::Error::last_os_error()
    );
    // SAFETY: the call has returned a descriptor that is ours.
    unsafe { OwnedFd::from_raw_fd(result) }
}

/// Makes reads of a file wait, or not.
pub fn set_waiting(file: BorrowedFd<'_>, waits: bool) {
    let flags = if waits { 0 } else { libc::O_NONBLOCK };
    // SAFETY: takes numbers only.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags) };
    assert_eq!(result, 0, "F_SETFL failed");
}

/// Reads into `length` bytes at an address.
pub fn read_at(file: BorrowedFd<'_>, address: u64, length: usize) -> Result<usize, Errno> {
    let address = address as *mut libc::c_void;
    // SAFETY: the kernel answers bad addresses with EFAULT; good ones are those of the caller.
    number(unsafe { libc::read(file.as_raw_fd(), address, length) })
}

/// Reads into `length` bytes at an address, from the start of the file.
pub fn read_from_start(file: BorrowedFd<'_>, address: u64, length: usize) -> Result<usize, Errno> {
    let address = address as *mut libc::c_void;
    // SAFETY: the kernel answers bad addresses with EFAULT; good ones are those of the caller.
    number(unsafe { libc::pread(file.as_raw_fd(), address, length, 0) })
}

/// What a file is ready for, after at most `milliseconds`.
pub fn poll(file: BorrowedFd<'_>, milliseconds: i32) -> i16 {
    let mut entry = libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, which is a local.
    let result = unsafe { libc::poll(&mut entry, 1, milliseconds) };
    assert!(result >= 0, "poll failed");
    entry.revents
}

/// An eventfd.
pub struct EventFd(OwnedFd);

impl EventFd {
    /// Makes one.
    pub fn new() -> Self {
        // SAFETY: takes numbers only.
        Self(own(unsafe {
            libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC)
        }))
    }

    /// Its descriptor.
    pub fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// How often it was raised since the last call.
    pub fn count(&self) -> u64 {
        let mut count = [0_u64];
        // SAFETY: eight bytes of a local.
        let result = unsafe { libc::read(self.descriptor(), count.as_mut_ptr().cast(), 8) };
        if result == 8 {
            count[0]
        } else {
            0
        }
    }
}

/// A set of polled files.
pub struct Epoll(OwnedFd);

impl Epoll {
    /// Makes one with a file in it, which is reported when it becomes readable.
    pub fn of_edges(file: BorrowedFd<'_>) -> Self {
        // SAFETY: takes numbers only.
        let epoll = own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) });
        let mut entry = libc::epoll_event {
            events: (libc::EPOLLIN | libc::EPOLLET) as u32,
            u64: 0,
        };
        let (set, file) = (epoll.as_raw_fd(), file.as_raw_fd());
        // SAFETY: the entry is a local.
        let result = unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, file, &mut entry) };
        assert_eq!(result, 0, "epoll_ctl failed");
        Self(epoll)
    }

    /// How many files are reported now.
    pub fn reported(&self) -> i32 {
        let mut entry = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: one entry, which is a local.
        unsafe { libc::epoll_wait(self.0.as_raw_fd(), &mut entry, 1, 0) }
    }

    /// Sleeps until a file is reported, at most so long.
    pub fn sleep(&self, limit: std::time::Duration) {
        let mut entry = libc::epoll_event { events: 0, u64: 0 };
        let milliseconds = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one entry, which is a local.
        unsafe { libc::epoll_wait(self.0.as_raw_fd(), &mut entry, 1, milliseconds) };
    }
}

/// Bytes of a system call that worked, or the errno.
fn length_of(result: isize) -> Result<usize, i32> {
    usize::try_from(result).map_err(|_| std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Writes memory at an address of a caller's mapping to a file.
pub fn write_from(file: &impl AsRawFd, address: u64, length: usize) -> Result<usize, i32> {
    // SAFETY: the kernel only reads, and fails where there is no memory.
    length_of(unsafe { libc::write(file.as_raw_fd(), address as *const _, length) })
}

/// Reads a file into a caller's mapping.
pub fn read_into(file: &impl AsRawFd, address: u64, length: usize) -> Result<usize, i32> {
    // SAFETY: callers lend live memory of theirs, which is reached by single accesses only.
    length_of(unsafe { libc::read(file.as_raw_fd(), address as *mut _, length) })
}

/// Gives pages of a caller's mapping to a pipe.
pub fn splice_from(pipe: &impl AsRawFd, address: u64, length: usize) -> Result<usize, i32> {
    let part = libc::iovec {
        iov_base: address as *mut _,
        iov_len: length,
    };
    // SAFETY: one entry, which is a local; the kernel only reads what it names.
    length_of(unsafe { libc::vmsplice(pipe.as_raw_fd(), &part, 1, libc::SPLICE_F_NONBLOCK) })
}

/// Wakes whoever sleeps on a word; success carries how many that are.
pub fn wake_futex(address: u64) -> Result<usize, i32> {
    // SAFETY: the kernel looks the word up and changes nothing.
    let result = unsafe { libc::syscall(libc::SYS_futex, address, libc::FUTEX_WAKE, 1) };
    length_of(result as isize)
}
