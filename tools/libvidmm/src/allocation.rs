// SPDX-License-Identifier: GPL-2.0

//! Allocations: memory that may be in segments, which the driver chooses among.

use std::sync::OnceLock;

use crate::{
    abi,
    commands::Operand,
    error::{
        Errno,
        Error, //
    },
    handle::Handle,
    lock::{
        Access,
        Guard, //
    },
    offer::{
        Level,
        Outcome, //
    },
    paging_queue::PagingQueue,
    Deadline,
    Device,
    Mapping,
    Result, //
};

/// Describes an allocation that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Builder {
    info: abi::AllocInfo,
}

impl Builder {
    /// Describes an allocation of `size` bytes that may be in any segment.
    pub fn new(size: u64) -> Self {
        Self {
            info: abi::AllocInfo {
                size,
                ..Default::default()
            },
        }
    }

    /// Adds `ALLOC_` flags.
    pub fn flags(mut self, flags: u32) -> Self {
        self.info.flags |= flags;
        self
    }

    /// The CPU will map it.
    pub fn cpu_visible(self) -> Self {
        self.flags(abi::ALLOC_CPU_VISIBLE)
    }

    /// An engine will use physical addresses: patched submissions may name it.
    pub fn accessed_physically(self) -> Self {
        self.flags(abi::ALLOC_ACCESSED_PHYSICALLY)
    }

    /// Its pages may be swapped while it is neither resident nor locked.
    pub fn swappable(self) -> Self {
        self.flags(abi::ALLOC_SWAPPABLE)
    }

    /// It never moves once placed. Needs `CAP_SYS_ADMIN`.
    pub fn pinned(self) -> Self {
        self.flags(abi::ALLOC_PINNED)
    }

    /// A source may show it, as such a picture.
    pub fn primary(self, picture: Picture) -> Self {
        let mut builder = self.flags(abi::ALLOC_PRIMARY);
        builder.info.width = picture.width;
        builder.info.height = picture.height;
        builder.info.pitch = picture.pitch;
        builder.info.format = u32::from_le_bytes(picture.format);
        builder
    }

    /// Restricts it to segments: bit n of the mask stands for id n.
    pub fn segments(mut self, mask: u32) -> Self {
        self.info.read_segments = mask;
        self
    }

    /// States up to eight segments in the order in which they are wanted.
    pub fn preferred(mut self, segments: &[Preference]) -> Self {
        self.info.preferred = segments
            .iter()
            .rev()
            .fold(0, |list, segment| (list << 8) | segment.byte());
        self
    }

    /// Sets the alignment in bytes.
    pub fn align(mut self, align: u64) -> Self {
        self.info.align = align;
        self
    }

    /// Sets the priority, `ALLOC_PRIORITY_MINIMUM` and so on.
    pub fn priority(mut self, priority: u32) -> Self {
        self.info.priority = priority;
        self
    }

    /// Returns the description, for changes that the builder has no method for.
    pub fn info(&self) -> &abi::AllocInfo {
        &self.info
    }

    /// Returns the description for changing.
    pub fn info_mut(&mut self) -> &mut abi::AllocInfo {
        &mut self.info
    }

    /// Makes the allocation.
    pub fn create(&self, device: &Device) -> Result<Allocation> {
        let infos = device.create_allocations(&[self.info])?;
        match infos[..] {
            [info] => Ok(Allocation {
                handle: Handle::new(device.file(), info.handle),
                device: device.handle(),
                info,
                span: OnceLock::new(),
            }),
            _ => unreachable!("one description makes one allocation"),
        }
    }
}

/// A segment in a list of preferred ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// The segment with this id, from its start.
    Segment(u8),
    /// The segment with this id, from its end.
    FromTop(u8),
}

impl Preference {
    fn byte(self) -> u64 {
        match self {
            Self::Segment(id) => u64::from(id),
            Self::FromTop(id) => u64::from(id) | u64::from(abi::ALLOC_PREFERRED_FROM_TOP),
        }
    }
}

/// What a primary looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Pixels per line.
    pub width: u32,
    /// Lines.
    pub height: u32,
    /// Bytes per line; with 0 the kernel chooses.
    pub pitch: u32,
    /// Four-character code, for example `*b"XR24"`.
    pub format: [u8; 4],
}

/// An allocation of a device.
#[derive(Debug)]
pub struct Allocation {
    handle: Handle,
    device: u32,
    info: abi::AllocInfo,
    span: OnceLock<Mapping>,
}

impl Allocation {
    /// Returns the handle.
    pub fn handle(&self) -> u32 {
        self.handle.value()
    }

    /// Returns the description as the kernel filled it in.
    pub fn info(&self) -> &abi::AllocInfo {
        &self.info
    }

    /// Returns the bytes that were asked for.
    pub fn size(&self) -> u64 {
        self.info.size
    }

    /// Returns where the allocation is and what is being done with it.
    pub fn state(&self) -> Result<abi::AllocState> {
        let mut items = [abi::AllocState {
            handle: self.handle(),
            ..Default::default()
        }];
        let argument = abi::AllocQuery::default();
        self.handle.file().call_with(argument, &mut items[..])?;
        Ok(items[0])
    }

    /// Sets the priority, `ALLOC_PRIORITY_MINIMUM` and so on.
    pub fn set_priority(&self, priority: u32) -> Result<()> {
        let item = abi::PriorityItem {
            alloc: self.handle(),
            priority,
        };
        let argument = abi::SetPriority::default();
        self.handle.file().call_with(argument, &[item])?;
        Ok(())
    }

    /// Lets the kernel throw the contents away once the work queued so far is done. Until
    /// [`reclaim`](Self::reclaim) nothing may be done with it; a touch of its memory is a signal.
    pub fn offer(&self, level: Level) -> Result<()> {
        let argument = abi::Offer {
            device: self.device,
            level: level.value(),
            ..Default::default()
        };
        self.handle.file().call_with(argument, &[self.handle()])?;
        Ok(())
    }

    /// Takes back what was offered, waits until it can be used, and says what became of it.
    pub fn reclaim(&self, queue: &PagingQueue) -> Result<Outcome> {
        let reclaimed = queue.reclaim(&[self.handle()])?;
        queue.wait(reclaimed.progress, Deadline::FOREVER)?;
        match reclaimed.outcomes[..] {
            [outcome] => Ok(outcome),
            _ => unreachable!("one allocation has one outcome"),
        }
    }

    /// Returns the operand of a packet that is `offset` bytes inside the current instance.
    pub fn at(&self, offset: u64) -> Operand {
        Operand {
            allocation: self.handle(),
            instance: abi::INSTANCE_CURRENT,
            offset,
        }
    }

    /// Returns all instances as mapped memory, `slot_stride` apart. They are mapped once.
    ///
    /// Without a lock nothing orders accesses with queued work.
    pub fn map(&self) -> Result<&Mapping> {
        if self.info.mmap_offset == 0 {
            return Err(Error::new("mmap", Errno::OPNOTSUPP));
        }
        if let Some(span) = self.span.get() {
            return Ok(span);
        }
        // CAST: `usize` has 64 bits wherever a span does not fit 32.
        let length = self.info.mmap_span as usize;
        let span = Mapping::new(self.handle.file().fd(), self.info.mmap_offset, length)?;
        Ok(self.span.get_or_init(|| span))
    }

    /// Waits until the CPU may access all of it, and gives access until the guard is dropped.
    pub fn lock(&self, access: Access) -> Result<Guard<'_>> {
        access.lock(self)
    }

    /// Locks for reading and returns the `length` bytes at `offset`.
    pub fn read(&self, offset: usize, length: usize) -> Result<Vec<u8>> {
        Ok(self.lock(Access::READ)?.to_vec(offset, length))
    }

    /// Locks for writing and copies `bytes` to `offset`.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let mut guard = self.lock(Access::WRITE)?;
        guard.write(offset, bytes);
        guard.unlock()
    }

    /// Returns the handle with its file.
    pub(crate) fn owned(&self) -> &Handle {
        &self.handle
    }

    /// Closes the allocation and says how that went. With `CLOSE_SYNC` in `flags` its storage is
    /// gone afterwards.
    pub fn close(self, flags: u32) -> Result<()> {
        drop(self.span);
        self.handle.close(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preference_list_begins_with_the_low_byte() {
        let builder = Builder::new(1).preferred(&[Preference::Segment(2), Preference::FromTop(1)]);

        assert_eq!(builder.info().preferred, 0x8102);
    }
}
