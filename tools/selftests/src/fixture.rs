// SPDX-License-Identifier: GPL-2.0

//! What most tests start from: a client with a device and a paging queue, and descriptions of
//! allocations.

use crate::{
    abi::{
        self,
        AllocInfo, //
    },
    client::{
        Allocation,
        Client,
        Context,
        Queue, //
    },
    commands::Commands,
    memory::Mapping,
};

/// 1 KiB.
pub const KIB: u64 = 1 << 10;
/// 1 MiB.
pub const MIB: u64 = 1 << 20;

/// The format of primaries: 32 bits per pixel, blue first, the last byte unused.
pub const XRGB8888: u32 = u32::from_le_bytes(*b"XR24");

/// Mask of the CPU-visible memory segment of DISC and PHYS.
pub const VISIBLE_SEGMENT: u32 = 1 << 1;
/// Mask of the memory segment that the CPU does not see.
pub const HIDDEN_SEGMENT: u32 = 1 << 2;
/// Mask of the aperture, which stands for system memory.
pub const SYSTEM: u32 = 1 << 3;
/// Id of the aperture.
pub const APERTURE: u32 = 3;
/// The paging node of DISC and PHYS.
pub const PAGING_NODE: u32 = 1;
/// The node that works in physical mode on DISC and PHYS.
pub const PHYSICAL_NODE: u32 = 2;

/// A mappable allocation that engines reach by GPU virtual address only.
pub fn plain(size: u64, segments: u32) -> AllocInfo {
    AllocInfo {
        size,
        flags: abi::ALLOC_CPU_VISIBLE,
        read_segments: segments,
        ..Default::default()
    }
}

/// A mappable allocation that engines reach by physical address.
pub fn physical(size: u64, segments: u32) -> AllocInfo {
    AllocInfo {
        flags: abi::ALLOC_CPU_VISIBLE | abi::ALLOC_ACCESSED_PHYSICALLY,
        ..plain(size, segments)
    }
}

/// An allocation that a source can show, in any segment that sources can show.
pub fn primary(width: u32, height: u32) -> AllocInfo {
    AllocInfo {
        size: u64::from(width) * u64::from(height) * 4,
        flags: abi::ALLOC_CPU_VISIBLE | abi::ALLOC_ACCESSED_PHYSICALLY | abi::ALLOC_PRIMARY,
        width,
        height,
        format: XRGB8888,
        ..Default::default()
    }
}

/// A client with a device and a paging queue.
pub struct Fixture {
    /// The client.
    pub client: Client,
    /// Its device.
    pub device: u32,
    /// A paging queue of the device.
    pub queue: Queue,
}

impl Fixture {
    /// Opens the device file and makes both.
    pub fn new() -> Self {
        let client = Client::open();
        let device = client.create_device();
        let queue = client.create_queue(device);
        Self {
            client,
            device,
            queue,
        }
    }

    /// Makes an allocation.
    pub fn create(&self, info: AllocInfo) -> Allocation {
        self.client.create(self.device, info)
    }

    /// Makes an allocation and brings it in.
    pub fn create_resident(&self, info: AllocInfo) -> Allocation {
        let allocation = self.create(info);
        self.client.bring_in(&self.queue, &[allocation.handle]);
        allocation
    }

    /// Makes a context with lists that page, on the physical node.
    pub fn context(&self) -> Context {
        self.client.create_context(self.device, PHYSICAL_NODE)
    }

    /// Submits commands and waits until they have run.
    pub fn run(&self, context: &Context, commands: &Commands) -> u64 {
        let id = commands.submit(&self.client, context);
        self.client.wait(context.progress, id);
        id
    }

    /// Waits until the device has no queued work left for an allocation and reads it through a
    /// mapping.
    pub fn read(&self, allocation: &Allocation, mapping: &Mapping) -> Vec<u8> {
        self.client.lock(allocation.handle, abi::LOCK_READ);
        let bytes = mapping.read(0, allocation.size as usize);
        self.client.unlock(allocation.handle);
        bytes
    }

    /// Brings an allocation in.
    pub fn bring_in(&self, allocation: &Allocation) {
        self.client.bring_in(&self.queue, &[allocation.handle]);
    }

    /// Drops the residency reference and waits until the allocation has left.
    pub fn push_out(&self, allocation: &Allocation) {
        self.client.push_out(self.device, &[allocation.handle]);
    }
}

/// Bytes of a pattern that differs from place to place and from seed to seed.
pub fn pattern(seed: u64, length: u64) -> Vec<u8> {
    crate::random::Random::new(seed).bytes(length as usize)
}
