// SPDX-License-Identifier: GPL-2.0

//! CPU access: a lock orders the CPU with queued work, and a guard gives it back.

use std::ops::Range;

use crate::{
    abi,
    handle::Handle,
    Allocation,
    Deadline,
    Mapping,
    Result, //
};

/// What a lock asks for.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    flags: u32,
    deadline: Deadline,
    offset: u64,
    length: u64,
}

impl Access {
    /// Reading: waits for writes of the GPU.
    pub const READ: Self = Self::new(abi::LOCK_READ);
    /// Writing: waits for all use by the GPU.
    pub const WRITE: Self = Self::new(abi::LOCK_WRITE);
    /// Reading and writing.
    pub const READ_WRITE: Self = Self::new(abi::LOCK_READ | abi::LOCK_WRITE);
    /// Writing without keeping the content: may give another instance instead of waiting.
    pub const DISCARD: Self = Self::new(abi::LOCK_DISCARD);
    /// Writing where no queued work looks: waits for nothing.
    pub const NO_OVERWRITE: Self = Self::new(abi::LOCK_NO_OVERWRITE);

    /// Asks with any `LOCK_` flags for the whole allocation, waiting as long as it takes.
    pub const fn new(flags: u32) -> Self {
        Self {
            flags,
            deadline: Deadline::FOREVER,
            offset: 0,
            length: 0,
        }
    }

    /// Gives up at a deadline.
    pub const fn until(mut self, deadline: Deadline) -> Self {
        self.deadline = deadline;
        self
    }

    /// Fails with `EAGAIN` where it would have to wait.
    pub const fn without_waiting(mut self) -> Self {
        self.flags |= abi::LOCK_DO_NOT_WAIT;
        self.deadline = Deadline::POLL;
        self
    }

    /// Asks for `length` bytes at `offset`; a length of 0 means to the end.
    pub const fn range(mut self, offset: u64, length: u64) -> Self {
        self.offset = offset;
        self.length = length;
        self
    }

    /// Locks `allocation`.
    pub(crate) fn lock(self, allocation: &Allocation) -> Result<Guard<'_>> {
        let handle = allocation.owned();
        let reply = handle.file().call(abi::Lock {
            alloc: handle.value(),
            flags: self.flags,
            offset: self.offset,
            length: self.length,
            deadline_ns: self.deadline.nanoseconds(),
            ..Default::default()
        })?;
        // The guard first: it unlocks if the memory cannot be mapped.
        let held = Held {
            handle,
            instance: reply.instance,
            written: None,
        };
        Ok(Guard {
            memory: allocation.map()?,
            // CAST: `usize` has 64 bits wherever a span does not fit 32.
            start: (u64::from(reply.instance) * allocation.info().slot_stride) as usize,
            reply,
            held,
        })
    }
}

/// Access of the CPU to one instance of an allocation, until it is dropped.
///
/// All offsets are in bytes from the start of the instance. What is written through the guard is
/// reported to the kernel when it ends.
#[derive(Debug)]
pub struct Guard<'a> {
    memory: &'a Mapping,
    start: usize,
    reply: abi::Lock,
    held: Held<'a>,
}

impl Guard<'_> {
    /// Returns the instance that the lock gave.
    pub fn instance(&self) -> u32 {
        self.reply.instance
    }

    /// Returns the answer to LOCK.
    pub fn reply(&self) -> &abi::Lock {
        &self.reply
    }

    /// Says whether all of these `LOCK_RESULT_` bits are set.
    pub fn has(&self, results: u32) -> bool {
        self.reply.result & results == results
    }

    /// Copies the bytes at `offset` to `bytes`.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        self.memory.read(self.start + offset, bytes);
    }

    /// Returns the `length` bytes at `offset`.
    pub fn to_vec(&self, offset: usize, length: usize) -> Vec<u8> {
        self.memory.to_vec(self.start + offset, length)
    }

    /// Reads the aligned 32-bit value at `offset`.
    pub fn read32(&self, offset: usize) -> u32 {
        self.memory.read32(self.start + offset)
    }

    /// Reads the aligned 64-bit value at `offset`.
    pub fn read64(&self, offset: usize) -> u64 {
        self.memory.read64(self.start + offset)
    }

    /// Copies `bytes` to `offset`.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.memory.write(self.start + offset, bytes);
        self.held.note(offset..offset + bytes.len());
    }

    /// Sets `length` bytes at `offset` to `value`.
    pub fn fill(&mut self, offset: usize, length: usize, value: u8) {
        self.memory.fill(self.start + offset, length, value);
        self.held.note(offset..offset + length);
    }

    /// Writes the aligned 32-bit value at `offset`.
    pub fn write32(&mut self, offset: usize, value: u32) {
        self.memory.write32(self.start + offset, value);
        self.held.note(offset..offset + 4);
    }

    /// Writes the aligned 64-bit value at `offset`.
    pub fn write64(&mut self, offset: usize, value: u64) {
        self.memory.write64(self.start + offset, value);
        self.held.note(offset..offset + 8);
    }

    /// Ends the access and says how that went.
    pub fn unlock(self) -> Result<()> {
        let Self { held, .. } = self;
        held.unlock()
    }
}

/// A lock that is to be undone.
#[derive(Debug)]
struct Held<'a> {
    handle: &'a Handle,
    instance: u32,
    written: Option<Range<usize>>,
}

impl Held<'_> {
    /// Notes that `range` was written.
    fn note(&mut self, range: Range<usize>) {
        self.written = Some(match self.written.take() {
            Some(written) => written.start.min(range.start)..written.end.max(range.end),
            None => range,
        });
    }

    /// Undoes the lock and says how that went.
    fn unlock(self) -> Result<()> {
        let this = std::mem::ManuallyDrop::new(self);
        this.undo()
    }

    fn undo(&self) -> Result<()> {
        let written = self.written.clone().unwrap_or_default();
        self.handle.file().call(abi::Unlock {
            alloc: self.handle.value(),
            instance: self.instance,
            // CAST: `u64` holds every `usize`.
            offset: written.start as u64,
            length: written.len() as u64,
            ..Default::default()
        })?;
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // An allocation can be gone already: closing a device closes what it owns.
        let _ = self.undo();
    }
}
