// SPDX-License-Identifier: GPL-2.0

//! Structures and lists that cross between user memory and the driver.
//!
//! The structures of the interface are plain bytes; this file vouches for that, once for all of them.
//! And it knows how they travel: a structure may be shorter or longer than the one that the driver
//! knows, and each side must understand what the other cannot (sections 2.2 and 2.3 of the interface):
//!
//! * what the caller does not have is taken as zero, and is not written;
//! * what the driver does not know must be zero, and is cleared on return.
//!
//! The same holds for every element of a list, with its *stride* in the place of the size. Everything
//! is copied once; what programs change afterwards confuses nobody but themselves.
//!
//! C header: [`include/linux/uaccess.h`](srctree/include/linux/uaccess.h).
//! Upstream: `rust/kernel/uaccess.rs` (`copy_struct_from_user`).

use crate::uapi::abi;
use core::mem::{
    align_of,
    size_of, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    transmute::{
        AsBytes,
        FromBytes, //
    },
    uaccess::{
        UserPtr,
        UserSlice,
        UserSliceReader,
        UserSliceWriter, //
    }, //
};

/// Implements the kernel's byte traits for the structures of the interface.
macro_rules! plain_bytes {
    ($($name:ident,)+) => {$(
        // SAFETY: Integers and structures of integers; every bit pattern is a value.
        unsafe impl FromBytes for abi::$name {}

        // SAFETY: Integers and structures of integers without holes, which `abi` proves at build time.
        unsafe impl AsBytes for abi::$name {}
    )+};
}

abi::for_each_struct!(plain_bytes);

/// A type that may be copied from and to user memory byte by byte, and whose zero means nothing.
pub trait Plain: FromBytes + AsBytes + Copy {}

impl<T: FromBytes + AsBytes + Copy> Plain for T {}

/// Returns the value whose bytes are all zero.
pub fn zeroed<T: Plain>() -> T {
    // SAFETY: Every bit pattern is a value of the type, by the contract of `FromBytes`.
    unsafe { core::mem::zeroed() }
}

/// Reads the structure of `size` bytes at a user address; the first published size is `first`.
///
/// # Errors
///
/// - `EINVAL`: shorter than the first published size.
/// - `E2BIG`: longer than a page, or something behind the end of `T` is not zero.
/// - `EFAULT`: not all of it can be read.
pub fn copy_struct_in<T: Plain>(address: usize, size: usize, first: usize) -> Result<T> {
    check_size(size, first)?;
    read_one(
        &mut UserSlice::new(UserPtr::from_addr(address), size).reader(),
        size,
    )
}

/// Writes a structure to the `size` bytes at a user address, and clears what is behind it.
///
/// # Errors
///
/// - `EFAULT`: not all of it can be written.
pub fn copy_struct_out<T: Plain>(address: usize, size: usize, value: &T) -> Result {
    write_one(
        &mut UserSlice::new(UserPtr::from_addr(address), size).writer(),
        size,
        value,
    )
}

/// Writes as many bytes of a record as fit into `capacity`, for queries that return its size.
///
/// # Errors
///
/// - `EFAULT`: not all of them can be written.
pub fn copy_record_out<T: Plain>(address: u64, capacity: u32, record: &T) -> Result {
    // CAST: `usize` has 64 bits.
    let (address, capacity) = (address as usize, capacity as usize);
    let size = capacity.min(size_of::<T>());

    copy_struct_out(address, size, record)
}

/// A list in user memory whose description has passed all checks.
///
/// # Invariants
///
/// The elements lie between 0 and the end of the address space, without overflow.
#[derive(Clone, Copy, Debug)]
pub struct List {
    address: usize,
    count: usize,
    stride: usize,
}

impl List {
    /// Checks the description of a list of `T`, with at most `limit` elements, the first published
    /// size of which was `first`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: more than `limit` elements, an empty list with an address, a stride that is smaller
    ///   than `first` or not a multiple of the alignment.
    /// - `E2BIG`: elements longer than a page.
    /// - `EFAULT`: elements at address 0.
    /// - `EOVERFLOW`: the list ends behind the address space.
    pub fn new<T: Plain>(list: abi::Array, first: usize, limit: u32) -> Result<Self> {
        if list.count > limit || (list.count == 0 && list.ptr != 0) {
            return Err(EINVAL);
        }

        // CAST: `usize` has 64 bits.
        let (address, count) = (list.ptr as usize, list.count as usize);
        // CAST: `usize` has 64 bits.
        let stride = list.stride as usize;

        if count > 0 {
            check_size(stride, first)?;

            if stride % align_of::<T>() != 0 {
                return Err(EINVAL);
            }
            if address == 0 {
                return Err(EFAULT);
            }

            let bytes = count.checked_mul(stride).ok_or(EOVERFLOW)?;

            address.checked_add(bytes).ok_or(EOVERFLOW)?;
        }

        // INVARIANT: Just checked.
        Ok(Self {
            address,
            count,
            stride,
        })
    }

    /// Returns the number of elements.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the user memory of `count` elements from `index` on.
    fn slice(&self, index: usize, count: usize) -> UserSlice {
        // OVERFLOW: Callers stay inside the list, which does not overflow by the type invariants.
        let start = self.address.wrapping_add(index.wrapping_mul(self.stride));

        UserSlice::new(UserPtr::from_addr(start), count.wrapping_mul(self.stride))
    }

    /// Reads the list. The memory is charged to the caller.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `E2BIG`: something that the driver does not know is not zero.
    /// - `EFAULT`: not all of it can be read.
    pub fn read<T: Plain>(&self) -> Result<KVVec<T>> {
        let mut elements = KVVec::with_capacity(self.count, GFP_KERNEL_ACCOUNT)?;
        let mut reader = self.slice(0, self.count).reader();

        if self.stride == size_of::<T>() {
            read_all(&mut reader, self.count, &mut elements)?;
            return Ok(elements);
        }

        for _ in 0..self.count {
            elements.push(read_one(&mut reader, self.stride)?, GFP_KERNEL_ACCOUNT)?;
        }

        Ok(elements)
    }

    /// Reads a short list, one element after the other, into as many `elements`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the lengths differ.
    /// - `E2BIG`: something that the driver does not know is not zero.
    /// - `EFAULT`: not all of it can be read.
    pub fn read_into<T: Plain>(&self, elements: &mut [T]) -> Result {
        if elements.len() != self.count {
            return Err(EINVAL);
        }

        let mut reader = self.slice(0, self.count).reader();

        elements.iter_mut().try_for_each(|element| {
            *element = read_one(&mut reader, self.stride)?;
            Ok(())
        })
    }

    /// Writes the element at `index`, and clears what the driver does not know of it.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is no such element.
    /// - `EFAULT`: not all of it can be written.
    pub fn write<T: Plain>(&self, index: usize, value: &T) -> Result {
        if index >= self.count {
            return Err(EINVAL);
        }

        write_one(&mut self.slice(index, 1).writer(), self.stride, value)
    }

    /// Writes the whole list, which has as many elements as `values`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the lengths differ.
    /// - `EFAULT`: not all of it can be written.
    pub fn write_all<T: Plain>(&self, values: &[T]) -> Result {
        if values.len() != self.count {
            return Err(EINVAL);
        }

        let mut writer = self.slice(0, self.count).writer();

        if self.stride == size_of::<T>() {
            return writer.write_slice(values.as_bytes());
        }

        values
            .iter()
            .try_for_each(|value| write_one(&mut writer, self.stride, value))
    }
}

/// Reads `words` from a user address into `to`, replacing what was there; `to` keeps its memory.
///
/// # Errors
///
/// - `ENOMEM`: no memory.
/// - `EFAULT`: not all of them can be read.
pub fn copy_words_in(address: u64, words: usize, to: &mut KVVec<u32>) -> Result {
    // CAST: `usize` has 64 bits.
    let start = UserPtr::from_addr(address as usize);
    let bytes = words.checked_mul(size_of::<u32>()).ok_or(EOVERFLOW)?;

    to.clear();
    to.reserve(words, GFP_KERNEL_ACCOUNT)?;
    read_all(&mut UserSlice::new(start, bytes).reader(), words, to)
}

/// Checks the caller's size of a structure or of an element.
fn check_size(size: usize, first: usize) -> Result {
    if size < first {
        Err(EINVAL)
    } else if size > PAGE_SIZE {
        Err(E2BIG)
    } else {
        Ok(())
    }
}

/// Reads a value of which the caller has `size` bytes.
fn read_one<T: Plain>(reader: &mut UserSliceReader, size: usize) -> Result<T> {
    let Some(tail) = size.checked_sub(size_of::<T>()) else {
        let mut value = zeroed::<T>();

        if let Some(head) = value.as_bytes_mut().get_mut(..size) {
            reader.read_slice(head)?;
        }

        return Ok(value);
    };
    let value = reader.read()?;

    check_zero(reader, tail)?;
    Ok(value)
}

/// Reads `bytes` bytes, which must be zero.
fn check_zero(reader: &mut UserSliceReader, mut bytes: usize) -> Result {
    let mut piece = [0u8; 64];

    while bytes > 0 {
        let length = bytes.min(piece.len());
        let (part, _) = piece.split_at_mut(length);

        reader.read_slice(part)?;

        if part.iter().any(|byte| *byte != 0) {
            return Err(E2BIG);
        }

        // OVERFLOW: Not more than what is left.
        bytes -= length;
    }

    Ok(())
}

/// Writes a value of which the caller has `size` bytes.
fn write_one<T: Plain>(writer: &mut UserSliceWriter, size: usize, value: &T) -> Result {
    let Some(mut tail) = size.checked_sub(size_of::<T>()) else {
        let (known, _) = value.as_bytes().split_at(size);

        return writer.write_slice(known);
    };

    writer.write(value)?;

    let zeroes = [0u8; 64];
    while tail > 0 {
        let (part, _) = zeroes.split_at(tail.min(zeroes.len()));

        writer.write_slice(part)?;
        // OVERFLOW: Not more than what is left.
        tail -= part.len();
    }

    Ok(())
}

/// Appends `count` values to `to`, which has room for them, in one copy.
fn read_all<T: Plain>(reader: &mut UserSliceReader, count: usize, to: &mut KVVec<T>) -> Result {
    let room = to.spare_capacity_mut();
    let room = room.get_mut(..count).ok_or(EINVAL)?;
    let bytes = size_of_val(room);
    let start = room.as_mut_ptr().cast();

    // SAFETY: These are the bytes of the room, which is borrowed; they may be uninitialised.
    reader.read_raw(unsafe { core::slice::from_raw_parts_mut(start, bytes) })?;

    // SAFETY: The read has initialised `count` values, and every bit pattern is one.
    unsafe { to.inc_len(count) };
    Ok(())
}
