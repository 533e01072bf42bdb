// SPDX-License-Identifier: GPL-2.0

//! Devices: owners of allocations, contexts, paging queues and a residency list.

use crate::{
    abi,
    handle::{
        File,
        Handle, //
    },
    offer::Level,
    Fence,
    PagingQueue,
    Result, //
};

/// A device. What it owns goes with it.
#[derive(Debug)]
pub struct Device {
    handle: Handle,
}

impl Device {
    /// Makes a device of this client.
    pub(crate) fn create(file: &File) -> Result<Self> {
        let reply = file.call(abi::DeviceCreate::default())?;
        Ok(Self {
            handle: Handle::new(file, reply.device),
        })
    }

    /// Returns the handle.
    pub fn handle(&self) -> u32 {
        self.handle.value()
    }

    /// Returns the file that the device belongs to.
    pub(crate) fn file(&self) -> &File {
        self.handle.file()
    }

    /// Returns the state. Works after errors too.
    pub fn state(&self) -> Result<abi::DeviceState> {
        self.file().call(abi::DeviceState {
            device: self.handle(),
            ..Default::default()
        })
    }

    /// Makes allocations from descriptions, all or none, and returns the descriptions as the kernel
    /// filled them in. Nothing owns the handles in them.
    pub fn create_allocations(&self, infos: &[abi::AllocInfo]) -> Result<Vec<abi::AllocInfo>> {
        let argument = abi::AllocCreate {
            device: self.handle(),
            ..Default::default()
        };
        let mut infos = infos.to_vec();
        self.file().call_with(argument, &mut infos[..])?;
        Ok(infos)
    }

    /// Makes a paging queue of priority -1, 0 or 1.
    pub fn create_paging_queue(&self, priority: i32) -> Result<PagingQueue> {
        PagingQueue::create(self, priority)
    }

    /// Makes a fence with a first value.
    pub fn create_fence(&self, initial: u64) -> Result<Fence> {
        Fence::create(self, initial, 0)
    }

    /// Drops one residency reference per handle, with `EVICT_` flags, and returns how many bytes the
    /// client should still give up.
    pub fn evict(&self, handles: &[u32], flags: u32) -> Result<u64> {
        let argument = abi::Evict {
            device: self.handle(),
            flags,
            ..Default::default()
        };
        let reply = self.file().call_with(argument, handles)?;
        Ok(reply.bytes_to_trim)
    }

    /// Offers allocations: their contents may be thrown away until they are reclaimed, with `OFFER_`
    /// flags.
    pub fn offer(&self, handles: &[u32], level: Level, flags: u32) -> Result<()> {
        let argument = abi::Offer {
            device: self.handle(),
            level: level.value(),
            flags,
            ..Default::default()
        };
        self.file().call_with(argument, handles)?;
        Ok(())
    }

    /// Closes the device and says how that went.
    pub fn close(self) -> Result<()> {
        self.handle.close(0)
    }
}
