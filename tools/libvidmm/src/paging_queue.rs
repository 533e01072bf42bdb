// SPDX-License-Identifier: GPL-2.0

//! Paging queues: ordered residency work with a fence of its own.

use crate::{
    abi,
    fence::{
        self,
        Slot, //
    },
    handle::Handle,
    offer::Outcome,
    Deadline,
    Device,
    Result, //
};

/// A paging queue of a device.
#[derive(Debug)]
pub struct PagingQueue {
    handle: Handle,
    fence: u32,
    slot: Slot,
}

/// When what a call on a paging queue asked for is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is usable now.
    Ready,
    /// It is usable when the paging fence has this value.
    Pending(u64),
}

/// What MAKE_RESIDENT answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeResident {
    /// When all of the list is usable.
    pub progress: Progress,
    /// How many bytes the client should give up, 0 inside its budget.
    pub bytes_to_trim: u64,
}

/// What RECLAIM answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reclaimed {
    /// When all of the list is usable by the GPU; the CPU may lock it at once.
    pub progress: Progress,
    /// What became of each allocation.
    pub outcomes: Vec<Outcome>,
}

impl Progress {
    /// Reads `status` and `fence_value` of a reply.
    fn read(status: u32, fence_value: u64) -> Self {
        match status {
            abi::STATUS_READY => Self::Ready,
            _ => Self::Pending(fence_value),
        }
    }
}

impl PagingQueue {
    /// Makes a paging queue of priority -1, 0 or 1.
    pub(crate) fn create(device: &Device, priority: i32) -> Result<Self> {
        let reply = device.file().call(abi::PagingQueueCreate {
            device: device.handle(),
            priority,
            ..Default::default()
        })?;
        // The handle first: it is closed if the page cannot be mapped.
        let handle = Handle::new(device.file(), reply.queue);
        Ok(Self {
            fence: reply.fence,
            slot: Slot::map(device.file(), reply.mmap_offset, reply.slot)?,
            handle,
        })
    }

    /// Returns the handle.
    pub fn handle(&self) -> u32 {
        self.handle.value()
    }

    /// Returns the handle of the paging fence, which the queue owns.
    pub fn fence(&self) -> u32 {
        self.fence
    }

    /// Returns the slot of the paging fence.
    pub fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Returns the current value of the paging fence.
    pub fn value(&self) -> u64 {
        self.slot.value()
    }

    /// Returns the point at which the paging fence has `value`.
    pub fn point(&self, value: u64) -> abi::Point {
        fence::point(self.fence, value)
    }

    /// Adds one residency reference per handle, with `MAKE_RESIDENT_` flags.
    pub fn make_resident(&self, handles: &[u32], flags: u32) -> Result<MadeResident> {
        let argument = abi::MakeResident {
            queue: self.handle(),
            flags,
            ..Default::default()
        };
        let reply = self.handle.file().call_with(argument, handles)?;
        Ok(MadeResident {
            progress: Progress::read(reply.status, reply.fence_value),
            bytes_to_trim: reply.bytes_to_trim,
        })
    }

    /// Takes back allocations that were offered.
    pub fn reclaim(&self, handles: &[u32]) -> Result<Reclaimed> {
        let mut items: Vec<_> = handles
            .iter()
            .map(|&alloc| abi::ReclaimItem { alloc, result: 0 })
            .collect();
        let argument = abi::Reclaim {
            queue: self.handle(),
            ..Default::default()
        };
        let reply = self.handle.file().call_with(argument, &mut items[..])?;
        Ok(Reclaimed {
            progress: Progress::read(reply.status, reply.fence_value),
            outcomes: items.iter().map(Outcome::read).collect(),
        })
    }

    /// Waits until what a call on this queue asked for is done.
    pub fn wait(&self, progress: Progress, deadline: Deadline) -> Result<()> {
        match progress {
            Progress::Ready => Ok(()),
            Progress::Pending(value) => {
                let points = [self.point(value)];
                fence::wait(self.handle.file(), &points, deadline, 0).map(|_| ())
            }
        }
    }

    /// Closes the queue and says how that went.
    pub fn close(self) -> Result<()> {
        self.handle.close(0)
    }
}
