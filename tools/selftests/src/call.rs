// SPDX-License-Identifier: GPL-2.0

//! Calls as a hostile program makes them: any number, any size, any address.

use std::{
    io,
    mem::size_of,
    os::fd::{
        AsRawFd,
        BorrowedFd, //
    },
};

use crate::abi::{
    self,
    AllocCreate,
    AllocInfo,
    AllocQuery,
    AllocState,
    Budget,
    Close,
    ContextCreate,
    ContextSet,
    DeviceCreate,
    DeviceState,
    Event,
    Events,
    Evict,
    FenceCreate,
    FenceSignal,
    FenceSlot,
    FenceWait,
    InfoAdapter,
    InfoClient,
    InfoClock,
    InfoIoctl,
    InfoLimits,
    InfoNode,
    InfoSegment,
    InfoSource,
    Lock,
    MakeResident,
    Offer,
    PagingQueueCreate,
    Point,
    PriorityItem,
    Query,
    Reclaim,
    ReclaimItem,
    ReserveBudget,
    Scanout,
    SetName,
    SetPriority,
    StatusPage,
    SubmitAlloc,
    SubmitPatch,
    SubmitPatched,
    SubmitQuery,
    SubmitVirtual,
    Unlock,
    VaEntry,
    VaFree,
    VaMap,
    VaQuery,
    VaReserve, //
};

/// The errno of a call that failed.
pub type Errno = i32;

/// A structure of the interface: plain bytes without holes.
///
/// # Safety
///
/// Every byte of the type belongs to a field, and every value of the bytes is valid.
pub unsafe trait Plain: Copy + Default {}

macro_rules! plain {
    ($($name:ident,)+) => {
        // SAFETY: the mirror states of each of its structures that it has no hole; fields are
        // integers and structures of integers.
        $(unsafe impl Plain for $name {})+
    };
}

plain! {
    AllocCreate, AllocInfo, AllocQuery, AllocState, Budget, Close, ContextCreate, ContextSet,
    DeviceCreate, DeviceState, Event, Events, Evict, FenceCreate, FenceSignal, FenceSlot, FenceWait,
    InfoAdapter, InfoClient, InfoClock, InfoIoctl, InfoLimits, InfoNode, InfoSegment, InfoSource,
    Lock, MakeResident, Offer, PagingQueueCreate, Point, PriorityItem, Query, Reclaim, ReclaimItem,
    ReserveBudget, Scanout, SetName, SetPriority, StatusPage, SubmitAlloc, SubmitPatch,
    SubmitPatched, SubmitQuery, SubmitVirtual, Unlock, VaEntry, VaFree, VaMap, VaQuery,
    VaReserve, u32, u64,
}

/// The bytes of plain values.
pub fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: by `Plain` all bytes are initialised; length and lifetime are those of the slice.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of plain values, to be changed.
pub fn bytes_of_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    let length = size_of_val(values);
    // SAFETY: by `Plain` all bytes are initialised and may take any value; length and lifetime are
    // those of the slice, which is borrowed exclusively.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), length) }
}

/// Reads a plain value out of bytes.
pub fn from_bytes<T: Plain>(bytes: &[u8]) -> T {
    let mut value = T::default();
    let target = bytes_of_mut(std::slice::from_mut(&mut value));
    let length = target.len().min(bytes.len());
    target[..length].copy_from_slice(&bytes[..length]);
    value
}

/// The address of a list, as the interface takes it.
pub fn address<T>(values: &[T]) -> u64 {
    values.as_ptr() as u64
}

/// A list of the interface over plain values; an empty one has no address.
pub fn array<T: Plain>(values: &[T]) -> abi::Array {
    abi::Array {
        ptr: if values.is_empty() {
            0
        } else {
            address(values)
        },
        count: values.len() as u32,
        stride: size_of::<T>() as u32,
    }
}

/// Encodes a read-write command.
pub fn command(number: u8, size: usize) -> u32 {
    assert!(size < 1 << 14, "a size that no command can hold");
    (3 << 30) | ((size as u32) << 16) | (u32::from(abi::IOC_TYPE) << 8) | u32::from(number)
}

/// Issues an ioctl as a program of 32 bits does: by the other entry of the kernel.
pub fn issue_as_32_bit(file: BorrowedFd<'_>, command: u32, argument: u32) -> Result<(), Errno> {
    const IOCTL: u64 = 54;
    let descriptor = file.as_raw_fd() as u64;
    let mut result = IOCTL;
    // SAFETY: the same as `issue_at`. The entry leaves all registers but these alone; `rbx` is not
    // ours to name and gets its value back.
    unsafe {
        std::arch::asm!(
            "xchg rbx, {descriptor}",
            "int 0x80",
            "xchg rbx, {descriptor}",
            descriptor = inout(reg) descriptor => _,
            inout("rax") result,
            in("rcx") u64::from(command),
            in("rdx") u64::from(argument),
            out("r8") _,
            out("r9") _,
            out("r10") _,
            out("r11") _,
        );
    }
    match result as i32 {
        0 => Ok(()),
        error => Err(-error),
    }
}

/// Issues an ioctl with an argument at any address.
pub fn issue_at(file: BorrowedFd<'_>, command: u32, argument: u64) -> Result<(), Errno> {
    // SAFETY: what the kernel writes, it writes where the argument says. Callers lend it live memory
    // of theirs, or addresses at which there is none.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), u64::from(command), argument) };
    match result {
        0 => Ok(()),
        -1 => Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        positive => panic!("command {command:#x} returned {positive}"),
    }
}

/// Issues an ioctl with bytes of any length as argument.
pub fn issue_bytes(file: BorrowedFd<'_>, number: u8, argument: &mut [u8]) -> Result<(), Errno> {
    issue_at(
        file,
        command(number, argument.len()),
        argument.as_mut_ptr() as u64,
    )
}

/// Issues an ioctl with a structure as argument.
pub fn issue<T: Plain>(file: BorrowedFd<'_>, command: u32, argument: &mut T) -> Result<(), Errno> {
    issue_at(file, command, std::ptr::from_mut(argument) as u64)
}
