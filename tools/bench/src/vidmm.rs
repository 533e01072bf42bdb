// SPDX-License-Identifier: GPL-2.0

//! vidmm as it is measured: one client with one device, and calls as lean as the library allows.

use std::path::Path;
use std::rc::Rc;

use libvidmm::{
    abi,
    allocation,
    context,
    context::Mode,
    ioctl,
    Adapter,
    Allocation,
    Context,
    Device,
    PagingQueue, //
};

use crate::{
    clock::Clock,
    failure::{
        Failure,
        Result, //
    }, //
};

/// A client of the adapter with what all rows use.
#[derive(Clone)]
pub struct Vidmm {
    inner: Rc<Inner>,
    /// The clock.
    pub clock: Clock,
}

struct Inner {
    adapter: Adapter,
    device: Device,
    queue: PagingQueue,
    patch_slots: u32,
    node: u32,
    memory: abi::InfoSegment,
    aperture: abi::InfoSegment,
}

/// Where an allocation may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// Wherever it can.
    Anywhere,
    /// In the memory segment.
    Memory,
    /// In system memory.
    System,
}

impl Vidmm {
    /// Opens the adapter and finds its segments and a node that takes patch lists.
    pub fn open(path: &Path, clock: Clock) -> Result<Self> {
        let adapter =
            Adapter::open(path).map_err(|error| Failure::from(error).during(path.display()))?;
        let segments = adapter.segments()?;
        let find = |kind, what: &str| {
            segments
                .iter()
                .filter(|segment| segment.kind == kind)
                .max_by_key(|segment| segment.contiguous)
                .copied()
                .ok_or_else(|| Failure::new(format!("the adapter has no {what}")))
        };
        let memory = find(abi::SEGMENT_KIND_MEMORY, "memory segment")?;
        let aperture = find(abi::SEGMENT_KIND_APERTURE, "aperture")?;
        let nodes = adapter.nodes()?;
        let node = nodes
            .iter()
            .find(|node| Mode::PatchedList.is_offered(node))
            .ok_or(Failure::new("no node takes patch lists"))?
            .ordinal;
        let device = adapter.create_device()?;
        let inner = Inner {
            queue: device.create_paging_queue(0)?,
            patch_slots: adapter.info()?.patch_slots,
            adapter,
            device,
            node,
            memory,
            aperture,
        };
        Ok(Self {
            inner: Rc::new(inner),
            clock,
        })
    }

    /// Returns the client.
    pub fn adapter(&self) -> &Adapter {
        &self.inner.adapter
    }

    /// Returns the client if its adapter has a feature, and otherwise says that it has not.
    pub fn with(&self, feature: u64, name: &str) -> Result<Self> {
        match self.adapter().has(feature)? {
            true => Ok(self.clone()),
            false => Err(Failure::new(format!("the adapter has no feature {name}"))),
        }
    }

    /// Returns the paging queue.
    pub fn queue(&self) -> &PagingQueue {
        &self.inner.queue
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Returns how many binding slots a command buffer has.
    pub fn patch_slots(&self) -> u32 {
        self.inner.patch_slots
    }

    /// Returns the memory segment.
    pub fn memory(&self) -> &abi::InfoSegment {
        &self.inner.memory
    }

    /// Returns the aperture, whose limit is that of system memory.
    pub fn aperture(&self) -> &abi::InfoSegment {
        &self.inner.aperture
    }

    /// Makes a context for patched submissions.
    pub fn context(&self) -> Result<Context> {
        Ok(context::Builder::new(self.inner.node).create(self.device())?)
    }

    /// Describes an allocation that the CPU may map.
    pub fn describe(&self, bytes: u64, place: Where) -> allocation::Builder {
        let bit = |segment: &abi::InfoSegment| 1 << segment.id;
        let segments = match place {
            Where::Memory => bit(self.memory()),
            Where::System => bit(self.aperture()),
            Where::Anywhere => bit(self.memory()) | bit(self.aperture()),
        };
        allocation::Builder::new(bytes)
            .cpu_visible()
            .segments(segments)
    }

    /// Makes an allocation in the memory segment that engines address physically.
    pub fn physical(&self, bytes: u64) -> Result<Allocation> {
        let description = self.describe(bytes, Where::Memory).accessed_physically();
        Ok(description.create(self.device())?)
    }

    /// Makes one allocation by one call, and returns its handle.
    pub fn create(&self, info: abi::AllocInfo) -> libvidmm::Result<u32> {
        Ok(self.create_described(info)?.handle)
    }

    /// Makes one allocation by one call, and returns its description.
    pub fn create_described(&self, info: abi::AllocInfo) -> libvidmm::Result<abi::AllocInfo> {
        let mut infos = [info];
        let mut argument = abi::AllocCreate {
            device: self.device().handle(),
            ..Default::default()
        };
        ioctl::call(self.adapter(), &mut argument, &mut infos)?;
        Ok(infos[0])
    }

    /// Locks an allocation for reading and writing by one call.
    pub fn lock(&self, allocation: u32) -> libvidmm::Result<abi::Lock> {
        let mut argument = abi::Lock {
            alloc: allocation,
            flags: abi::LOCK_READ | abi::LOCK_WRITE,
            deadline_ns: abi::WAIT_FOREVER,
            ..Default::default()
        };
        ioctl::call(self.adapter(), &mut argument, ())?;
        Ok(argument)
    }

    /// Unlocks an allocation by one call.
    pub fn unlock(&self, allocation: u32) -> libvidmm::Result<()> {
        let mut argument = abi::Unlock {
            alloc: allocation,
            ..Default::default()
        };
        ioctl::call(self.adapter(), &mut argument, ())
    }

    /// Closes one handle by one call, with `CLOSE_` flags.
    pub fn close(&self, handle: u32, flags: u32) -> libvidmm::Result<()> {
        let mut argument = abi::Close {
            flags,
            ..Default::default()
        };
        ioctl::call(self.adapter(), &mut argument, &[handle])
    }
}
