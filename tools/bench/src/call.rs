// SPDX-License-Identifier: GPL-2.0

//! Calls of the peers: ioctls that are not those of vidmm.
//!
//! [`Argument`] promises that a structure holds no address; the few calls that take addresses have
//! functions of their own, which borrow what the addresses name. Structures and commands are those of
//! [`arguments`](crate::arguments).

use std::ffi::c_void;
use std::os::fd::{
    AsFd,
    BorrowedFd,
    FromRawFd,
    OwnedFd, //
};

use libvidmm::Errno;
use rustix::fs::OFlags;

use crate::arguments::{
    BufferSync,
    CreateDumb,
    DestroyDumb,
    Graphics,
    HeapAllocation,
    Patch,
    PatchAllocation,
    PatchEntry,
    Syncobj,
    SyncobjArray,
    Version,
    Words,
    Work,
    HEAP_ALLOC,
    PATCH,
    SYNCOBJ_RESET,
    VERSION, //
};

/// An argument structure: integers only, of which none is an address.
///
/// # Safety
///
/// The kernel may read and write all bytes, and follows no address in them.
pub unsafe trait Argument: Copy {}

/// States that structures hold no address.
macro_rules! arguments {
    ($($name:ident,)+) => {
        $(
            // SAFETY: integers, of which none is an address.
            unsafe impl Argument for $name {}
        )+
    };
}

arguments! {
    Words,
    Work,
    Graphics,
    HeapAllocation,
    BufferSync,
    CreateDumb,
    DestroyDumb,
    Syncobj,
}

/// An ioctl whose number is known at run time only.
struct Issue {
    command: u32,
    argument: *mut c_void,
}

// SAFETY: the argument is as the `# Safety` of `issue` says, which alone makes values of this type.
unsafe impl rustix::ioctl::Ioctl for Issue {
    type Output = ();

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> rustix::ioctl::Opcode {
        self.command
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument
    }

    unsafe fn output_from_ptr(
        _: rustix::ioctl::IoctlOutput,
        _: *mut c_void,
    ) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// Issues one ioctl.
///
/// # Safety
///
/// `argument` is valid for the bytes that the size in `command` says, and so is everything that its
/// addresses name.
unsafe fn issue(fd: BorrowedFd<'_>, command: u32, argument: *mut c_void) -> Result<(), Errno> {
    // SAFETY: `Issue` hands on `command` and `argument`, of which the caller's `# Safety` speaks.
    unsafe { rustix::ioctl::ioctl(fd, Issue { command, argument }) }
}

/// Issues an ioctl with an argument.
///
/// # Panics
///
/// The argument is shorter than the size in `command`.
pub fn call<A: Argument>(fd: impl AsFd, command: u32, argument: &mut A) -> Result<(), Errno> {
    assert!((command as usize >> 16) & 0x3fff <= size_of::<A>());
    let pointer: *mut A = argument;
    // SAFETY: `pointer` is to as many bytes as the command says, without addresses in them.
    unsafe { issue(fd.as_fd(), command, pointer.cast()) }
}

/// Issues an ioctl without argument.
///
/// # Panics
///
/// The command has a size.
pub fn call_plain(fd: impl AsFd, command: u32) -> Result<(), Errno> {
    assert!((command >> 16) & 0x3fff == 0);
    // SAFETY: nothing is read or written.
    unsafe { issue(fd.as_fd(), command, std::ptr::null_mut()) }
}

/// The lists of the floor of a submission.
pub struct PatchLists<'a> {
    /// Commands.
    pub commands: &'a [u32],
    /// Allocation list.
    pub allocations: &'a mut [PatchAllocation],
    /// Patch list.
    pub patches: &'a [PatchEntry],
}

/// BENCH_PATCH with `BENCH_PATCH_` flags; returns the sum of the patched buffer if they ask for it.
pub fn patch(fd: impl AsFd, lists: &mut PatchLists<'_>, flags: u32) -> Result<u64, Errno> {
    let length = |length| u32::try_from(length).map_err(|_| Errno::INVAL);
    let mut argument = Patch {
        commands: lists.commands.as_ptr().expose_provenance() as u64,
        command_bytes: length(size_of_val(lists.commands))?,
        flags,
        allocations: lists.allocations.as_mut_ptr().expose_provenance() as u64,
        allocation_count: length(lists.allocations.len())?,
        patches: lists.patches.as_ptr().expose_provenance() as u64,
        patch_count: length(lists.patches.len())?,
        ..Default::default()
    };
    let pointer: *mut Patch = &mut argument;
    // SAFETY: `pointer` is to the argument of the command, whose addresses are those of `lists`.
    unsafe { issue(fd.as_fd(), PATCH, pointer.cast()) }?;
    Ok(argument.sum)
}

/// Allocates a buffer of a heap.
pub fn heap_alloc(fd: impl AsFd, bytes: u64) -> Result<OwnedFd, Errno> {
    let mut argument = HeapAllocation {
        len: bytes,
        fd_flags: (OFlags::RDWR | OFlags::CLOEXEC).bits(),
        ..Default::default()
    };
    call(fd, HEAP_ALLOC, &mut argument)?;
    // SAFETY: the call has just made the descriptor, for its caller alone.
    Ok(unsafe { OwnedFd::from_raw_fd(argument.fd) })
}

/// Returns the name of the driver behind a DRM device.
pub fn drm_driver(fd: impl AsFd) -> Result<String, Errno> {
    let mut name = [0u8; 64];
    let mut argument = Version {
        name_len: name.len() as u64,
        name: name.as_mut_ptr().expose_provenance() as u64,
        ..Default::default()
    };
    let pointer: *mut Version = &mut argument;
    // SAFETY: `pointer` is to the argument of the command, whose only address is that of `name`.
    unsafe { issue(fd.as_fd(), VERSION, pointer.cast()) }?;
    let length = usize::try_from(argument.name_len).unwrap_or(usize::MAX);
    Ok(String::from_utf8_lossy(&name[..length.min(name.len())]).into_owned())
}

/// Resets sync objects.
pub fn syncobj_reset(fd: impl AsFd, handles: &[u32]) -> Result<(), Errno> {
    let mut argument = SyncobjArray {
        handles: handles.as_ptr().expose_provenance() as u64,
        count: u32::try_from(handles.len()).map_err(|_| Errno::INVAL)?,
        pad: 0,
    };
    let pointer: *mut SyncobjArray = &mut argument;
    // SAFETY: `pointer` is to the argument of the command, whose only address is that of `handles`.
    unsafe { issue(fd.as_fd(), SYNCOBJ_RESET, pointer.cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::NULL;

    #[test]
    fn error_of_a_foreign_file_is_returned() {
        let file = std::fs::File::open("/dev/null").unwrap();

        assert_eq!(call_plain(&file, NULL), Err(Errno::NOTTY));
    }
}
