// SPDX-License-Identifier: GPL-2.0

//! Any ioctl with any bytes: for tests of what the kernel does with hostile input.
//!
//! Nothing is restarted and nothing is filled in. Bytes can hold addresses; what the kernel does
//! with memory at an address that a test makes up is outside of what a compiler can watch, as
//! it is for whoever writes to `/proc/self/mem`. Tests take addresses from a
//! [`Mapping`](crate::Mapping) of their own or from [`BadAddress`].

use std::os::fd::AsFd;

use super::{
    abi,
    issue_as_is,
    issue_at,
    issue_room,
    Error,
    Request,
    Result, //
};

/// Direction bits of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Without argument: `_IO`.
    None = 0,
    /// The kernel reads the argument: `_IOW`.
    Write = 1,
    /// The kernel writes the argument: `_IOR`.
    Read = 2,
    /// Both: `_IOWR`, as every call of the interface.
    ReadWrite = 3,
}

/// Returns the command of call `number` with an argument of `size` bytes.
pub const fn command(number: u8, size: usize) -> u32 {
    encode(Direction::ReadWrite, abi::IOC_TYPE, number, size)
}

/// Returns any command. Bits of `size` beyond the fourteen that a command has are lost.
pub const fn encode(direction: Direction, kind: u8, number: u8, size: usize) -> u32 {
    // CAST: all parts are cut to their bits.
    ((direction as u32) << 30)
        | ((size as u32 & 0x3fff) << 16)
        | ((kind as u32) << 8)
        | number as u32
}

/// Returns the number of call `R`.
pub const fn number<R: Request>() -> u8 {
    // CAST: the low eight bits of a command are its number.
    R::COMMAND as u8
}

/// Issues `command` once with `argument`, which the kernel may change.
///
/// Returns what the call returned, so that a positive value is seen. A buffer that is shorter
/// than the size in the command is continued with zeros for the time of the call; what the
/// kernel writes there is lost.
///
/// `request` is the name that an error carries.
pub fn call(
    fd: impl AsFd,
    request: &'static str,
    command: u32,
    argument: &mut [u8],
) -> Result<i32> {
    let size = (command as usize >> 16) & 0x3fff;
    // Eight-byte units: argument structures are aligned.
    let mut room = vec![[0; 8]; size.max(argument.len()).div_ceil(8)];
    room.as_flattened_mut()[..argument.len()].copy_from_slice(argument);
    let mut room: Vec<_> = room.into_iter().map(u64::from_ne_bytes).collect();
    let outcome = issue_room(fd.as_fd(), command, &mut room);
    let room: Vec<_> = room.into_iter().map(u64::to_ne_bytes).collect();
    argument.copy_from_slice(&room.as_flattened()[..argument.len()]);
    outcome.map_err(|errno| Error::new(request, errno))
}

/// Issues the call of `argument` once, with the addresses that `argument` holds already.
pub fn call_as_is<R: Request>(fd: impl AsFd, argument: &mut R) -> Result<i32> {
    issue_as_is(fd.as_fd(), argument).map_err(|errno| Error {
        request: R::NAME,
        errno,
        blame: argument.blame(),
    })
}

/// Issues `command` once with an address that is not memory of the program.
pub fn call_at(
    fd: impl AsFd,
    request: &'static str,
    command: u32,
    address: BadAddress,
) -> Result<i32> {
    issue_at(fd.as_fd(), command, address).map_err(|errno| Error::new(request, errno))
}

/// An address that no program can have memory at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadAddress {
    /// Address zero.
    Null,
    /// The second half of the first page, where nothing may be mapped.
    Low,
    /// An address between those of programs and those of the kernel.
    NonCanonical,
    /// An address of the kernel.
    Kernel,
    /// The last eight bytes of all addresses.
    Last,
}

impl BadAddress {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Null,
        Self::Low,
        Self::NonCanonical,
        Self::Kernel,
        Self::Last,
    ];

    /// Returns the number, for a field of an argument.
    pub const fn value(self) -> u64 {
        match self {
            Self::Null => 0,
            Self::Low => 0x800,
            Self::NonCanonical => 0x0100_0000_0000_0000,
            Self::Kernel => 0xffff_ffff_8100_0000,
            Self::Last => 0xffff_ffff_ffff_fff8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Errno;

    #[test]
    fn command_equals_the_one_of_the_interface() {
        assert_eq!(
            command(abi::nr::LOCK, size_of::<abi::Lock>()),
            abi::IOCTL_LOCK
        );
        assert_eq!(number::<abi::SubmitPatched>(), abi::nr::SUBMIT_PATCHED);
    }

    #[test]
    fn error_of_a_foreign_file_keeps_errno_and_name() {
        let file = std::fs::File::open("/dev/null").unwrap();

        let error = call(&file, "QUERY", abi::IOCTL_QUERY, &mut [0; 24]).unwrap_err();

        assert_eq!(error, Error::new("QUERY", Errno::NOTTY));
    }
}
