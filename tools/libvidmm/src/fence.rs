// SPDX-License-Identifier: GPL-2.0

//! Monitored fences: 64-bit values in a page that the program maps.
//!
//! [`Slot`] reads a value without a call; waiting and signalling are calls.

use crate::{
    abi,
    handle::{
        File,
        Handle, //
    },
    Deadline,
    Device,
    Mapping,
    Result, //
};

/// Bytes of a fence page.
const PAGE_BYTES: usize = 4096;

/// A fence of a device.
#[derive(Debug)]
pub struct Fence {
    handle: Handle,
    slot: Slot,
    gpu_address: u64,
}

impl Fence {
    /// Makes a fence with a first value and `FENCE_` flags.
    pub fn create(device: &Device, initial: u64, flags: u32) -> Result<Self> {
        let reply = device.file().call(abi::FenceCreate {
            device: device.handle(),
            flags,
            initial,
            ..Default::default()
        })?;
        // The handle first: it is closed if the page cannot be mapped.
        let handle = Handle::new(device.file(), reply.fence);
        Ok(Self {
            slot: Slot::map(device.file(), reply.mmap_offset, reply.slot)?,
            gpu_address: reply.gpu_va,
            handle,
        })
    }

    /// Returns the handle.
    pub fn handle(&self) -> u32 {
        self.handle.value()
    }

    /// Returns the point at which the fence has `value`.
    pub fn point(&self, value: u64) -> abi::Point {
        point(self.handle(), value)
    }

    /// Returns the slot.
    pub fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Returns the current value. Whatever was ordered before the signal is visible.
    pub fn value(&self) -> u64 {
        self.slot.value()
    }

    /// Returns the GPU virtual address of the value, 0 if it has none.
    pub fn gpu_address(&self) -> u64 {
        self.gpu_address
    }

    /// Raises the fence to `value`.
    pub fn signal(&self, value: u64) -> Result<()> {
        signal(self.handle.file(), &[self.point(value)], 0)
    }

    /// Sets the fence to `value`, also to a lower one.
    pub fn rewind(&self, value: u64) -> Result<()> {
        let flags = abi::FENCE_SIGNAL_ALLOW_REWIND;
        signal(self.handle.file(), &[self.point(value)], flags)
    }

    /// Waits until the fence has `value` or more.
    pub fn wait(&self, value: u64, deadline: Deadline) -> Result<()> {
        wait(self.handle.file(), &[self.point(value)], deadline, 0).map(|_| ())
    }

    /// Closes the fence and says how that went.
    pub fn close(self) -> Result<()> {
        self.handle.close(0)
    }
}

/// The place of a fence value in mapped memory.
#[derive(Debug)]
pub struct Slot {
    page: Mapping,
    offset: usize,
}

impl Slot {
    /// Maps the fence page that `token` stands for.
    pub(crate) fn map(file: &File, token: u64, slot: u32) -> Result<Self> {
        Ok(Self {
            page: Mapping::read_only(file.fd(), token, PAGE_BYTES)?,
            // CAST: `usize` has at least 32 bits on Linux.
            offset: slot as usize * abi::FENCE_SLOT_STRIDE as usize,
        })
    }

    /// Returns the current value. Whatever was ordered before the signal is visible.
    pub fn value(&self) -> u64 {
        let offset = std::mem::offset_of!(abi::FenceSlot, value);
        self.page.load_acquire(self.offset + offset)
    }

    /// Returns the whole slot.
    pub fn read(&self) -> abi::FenceSlot {
        use std::mem::offset_of;

        let value = self.value();
        let at = |offset| self.offset + offset;
        abi::FenceSlot {
            value,
            state: self.page.read32(at(offset_of!(abi::FenceSlot, state))),
            // CAST: the same 32 bits with a sign.
            error: self.page.read32(at(offset_of!(abi::FenceSlot, error))) as i32,
            changed_ns: self.page.read64(at(offset_of!(abi::FenceSlot, changed_ns))),
        }
    }

    /// Returns the page that the slot lies in.
    pub fn page(&self) -> &Mapping {
        &self.page
    }
}

/// Returns the point at which the fence with this handle has `value`.
pub fn point(fence: u32, value: u64) -> abi::Point {
    abi::Point {
        fence,
        flags: 0,
        value,
    }
}

/// Waits for points and returns `first` of the reply.
pub(crate) fn wait(
    file: &File,
    points: &[abi::Point],
    deadline: Deadline,
    flags: u32,
) -> Result<u32> {
    let argument = abi::FenceWait {
        deadline_ns: deadline.nanoseconds(),
        flags,
        ..Default::default()
    };
    Ok(file.call_with(argument, points)?.first)
}

/// Signals points.
pub(crate) fn signal(file: &File, points: &[abi::Point], flags: u32) -> Result<()> {
    let argument = abi::FenceSignal {
        flags,
        ..Default::default()
    };
    file.call_with(argument, points).map(|_| ())
}
