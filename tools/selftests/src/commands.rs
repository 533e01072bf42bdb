// SPDX-License-Identifier: GPL-2.0

//! Command buffers: packets of the software engine with their allocation and patch lists.
//!
//! The builder binds the destination of each packet to slot 0 and the source to slot 1, at the
//! packet's start. That is always legal, however many allocations a buffer names. Tests that look
//! for a refusal change the lists by hand.

use std::collections::BTreeMap;

use crate::{
    abi::{
        self,
        engine,
        Point,
        SubmitAlloc,
        SubmitPatch,
        SubmitPatched, //
    },
    call::{
        array,
        bytes_of,
        Errno, //
    },
    client::{
        Allocation,
        Client,
        Context, //
    },
};

/// A place in an allocation, or an address.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Handle of the allocation; 0 for an address.
    pub handle: u32,
    /// Byte offset, or GPU virtual address.
    pub offset: u64,
}

impl Allocation {
    /// A place in it.
    pub fn at(&self, offset: u64) -> At {
        At {
            handle: self.handle,
            offset,
        }
    }
}

/// Size of a rectangle: bytes of a row, rows.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Bytes of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// One end of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// Where the first row starts.
    pub at: At,
    /// Bytes from row to row.
    pub pitch: u32,
}

/// Why a submission was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The errno.
    pub errno: Errno,
    /// `error_kind`.
    pub kind: u32,
    /// `error_index`.
    pub index: u32,
}

/// A command buffer with its lists.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    /// The packets.
    pub dwords: Vec<u32>,
    /// The allocation list.
    pub allocs: Vec<SubmitAlloc>,
    /// The patch list.
    pub patches: Vec<SubmitPatch>,
    /// Points to wait for.
    pub waits: Vec<Point>,
    /// Points to signal.
    pub signals: Vec<Point>,
    /// Flags of the submission.
    pub flags: u32,
    indices: BTreeMap<u32, u32>,
}

impl Commands {
    /// A buffer without packets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes so far: where the next packet starts.
    pub fn bytes(&self) -> u32 {
        self.dwords.len() as u32 * 4
    }

    /// Appends a packet of `length` dwords and returns its first dword's index.
    fn packet(&mut self, opcode: u32, length: usize) -> usize {
        let start = self.dwords.len();
        self.dwords.resize(start + length, 0);
        self.dwords[start] = opcode | ((length as u32) << engine::HEADER_LENGTH_SHIFT);
        start
    }

    fn set64(&mut self, index: usize, value: u64) {
        self.dwords[index] = value as u32;
        self.dwords[index + 1] = (value >> 32) as u32;
    }

    /// Index of an allocation in the list, which it joins if it is new.
    pub fn list(&mut self, handle: u32, write: Write) -> u32 {
        let next = self.allocs.len() as u32;
        let index = *self.indices.entry(handle).or_insert(next);
        if index == next {
            self.allocs.push(listed(handle));
        }
        if write == Write::Yes {
            self.allocs[index as usize].flags |= abi::SUBMIT_ALLOC_WRITE;
        }
        index
    }

    /// Covers an operand of the packet at `start` with an entry, or writes its address.
    fn operand(&mut self, start: usize, dword: usize, slot: u32, at: At, write: Write) {
        if at.handle == 0 {
            self.set64(start + dword, at.offset);
            return;
        }
        let alloc_index = self.list(at.handle, write);
        self.patches.push(SubmitPatch {
            alloc_index,
            slot,
            kind: abi::SUBMIT_PATCH_KIND_FULL64,
            driver_id: 0,
            alloc_offset: at.offset,
            patch_offset: (start + dword) as u32 * 4,
            split_offset: start as u32 * 4,
        });
    }

    /// Does nothing.
    pub fn nop(&mut self, length: usize) -> &mut Self {
        self.packet(engine::OP_NOP, length);
        self
    }

    /// Fills a rectangle.
    pub fn fill(&mut self, to: Side, extent: Extent, pattern: u32) -> &mut Self {
        let start = self.packet(engine::OP_FILL, engine::FILL_DWORDS);
        self.dwords[start + engine::FILL_PATTERN] = pattern;
        self.dwords[start + engine::FILL_PITCH] = to.pitch;
        self.dwords[start + engine::FILL_WIDTH] = extent.width;
        self.dwords[start + engine::FILL_HEIGHT] = extent.height;
        self.operand(start, engine::FILL_DST, 0, to.at, Write::Yes);
        self
    }

    /// Fills `bytes` bytes in one row.
    pub fn fill_bytes(&mut self, at: At, bytes: u32, pattern: u32) -> &mut Self {
        self.fill(
            Side { at, pitch: bytes },
            Extent {
                width: bytes,
                height: 1,
            },
            pattern,
        )
    }

    fn rectangle(&mut self, opcode: u32, to: Side, from: Side, extent: Extent) -> &mut Self {
        let start = self.packet(opcode, engine::COPY_DWORDS);
        self.dwords[start + engine::COPY_DST_PITCH] = to.pitch;
        self.dwords[start + engine::COPY_SRC_PITCH] = from.pitch;
        self.dwords[start + engine::COPY_WIDTH] = extent.width;
        self.dwords[start + engine::COPY_HEIGHT] = extent.height;
        self.operand(start, engine::COPY_DST, 0, to.at, Write::Yes);
        self.operand(start, engine::COPY_SRC, 1, from.at, Write::No);
        self
    }

    /// Copies a rectangle.
    pub fn copy(&mut self, to: Side, from: Side, extent: Extent) -> &mut Self {
        self.rectangle(engine::OP_COPY, to, from, extent)
    }

    /// Copies `bytes` bytes in one row.
    pub fn copy_bytes(&mut self, to: At, from: At, bytes: u32) -> &mut Self {
        let extent = Extent {
            width: bytes,
            height: 1,
        };
        self.copy(
            Side {
                at: to,
                pitch: bytes,
            },
            Side {
                at: from,
                pitch: bytes,
            },
            extent,
        )
    }

    /// Blends a rectangle over another.
    pub fn blend(&mut self, to: Side, from: Side, extent: Extent) -> &mut Self {
        self.rectangle(engine::OP_BLEND, to, from, extent)
    }

    /// Stores 64 bits.
    pub fn store(&mut self, to: At, value: u64) -> &mut Self {
        let start = self.packet(engine::OP_STORE, engine::STORE_DWORDS);
        self.set64(start + engine::STORE_VALUE, value);
        self.operand(start, engine::STORE_DST, 0, to, Write::Yes);
        self
    }

    /// Adds to 64 bits.
    pub fn add(&mut self, to: At, value: u64) -> &mut Self {
        let start = self.packet(engine::OP_ADD, engine::ADD_DWORDS);
        self.set64(start + engine::ADD_VALUE, value);
        self.operand(start, engine::ADD_DST, 0, to, Write::Yes);
        self
    }

    /// Sets a register.
    pub fn set_register(&mut self, index: u32, value: u64) -> &mut Self {
        let start = self.packet(engine::OP_SET_REGISTER, engine::SET_REGISTER_DWORDS);
        self.dwords[start + engine::SET_REGISTER_INDEX] = index;
        self.set64(start + engine::SET_REGISTER_VALUE, value);
        self
    }

    /// Stores a register.
    pub fn store_register(&mut self, index: u32, to: At) -> &mut Self {
        let start = self.packet(engine::OP_STORE_REGISTER, engine::STORE_REGISTER_DWORDS);
        self.dwords[start + engine::STORE_REGISTER_INDEX] = index;
        self.operand(start, engine::STORE_REGISTER_DST, 0, to, Write::Yes);
        self
    }

    /// Loads a register.
    pub fn load_register(&mut self, index: u32, from: At) -> &mut Self {
        let start = self.packet(engine::OP_LOAD_REGISTER, engine::LOAD_REGISTER_DWORDS);
        self.dwords[start + engine::LOAD_REGISTER_INDEX] = index;
        self.operand(start, engine::LOAD_REGISTER_SRC, 1, from, Write::No);
        self
    }

    /// Stores the checksum of a range.
    pub fn checksum(&mut self, to: At, from: At, bytes: u32) -> &mut Self {
        let start = self.packet(engine::OP_CHECKSUM, engine::CHECKSUM_DWORDS);
        self.dwords[start + engine::CHECKSUM_BYTES] = bytes;
        self.operand(start, engine::CHECKSUM_DST, 0, to, Write::Yes);
        self.operand(start, engine::CHECKSUM_SRC, 1, from, Write::No);
        self
    }

    /// Stores the time.
    pub fn timestamp(&mut self, to: At) -> &mut Self {
        let start = self.packet(engine::OP_TIMESTAMP, engine::TIMESTAMP_DWORDS);
        self.operand(start, engine::TIMESTAMP_DST, 0, to, Write::Yes);
        self
    }

    /// Keeps the node busy.
    pub fn spin(&mut self, nanoseconds: u64) -> &mut Self {
        let start = self.packet(engine::OP_SPIN, engine::SPIN_DWORDS);
        self.set64(start + engine::SPIN_NANOSECONDS, nanoseconds);
        self
    }

    /// Keeps the node busy until a word has a value.
    pub fn poll(&mut self, from: At, mask: u64, value: u64) -> &mut Self {
        let start = self.packet(engine::OP_POLL, engine::POLL_DWORDS);
        self.set64(start + engine::POLL_MASK, mask);
        self.set64(start + engine::POLL_VALUE, value);
        self.operand(start, engine::POLL_SRC, 1, from, Write::No);
        self
    }

    /// Waits for a point before the first packet.
    pub fn wait_for(&mut self, fence: u32, value: u64) -> &mut Self {
        self.waits.push(crate::client::point(fence, value));
        self
    }

    /// Signals a point after the last packet.
    pub fn then_signal(&mut self, fence: u32, value: u64) -> &mut Self {
        self.signals.push(crate::client::point(fence, value));
        self
    }

    /// The argument of SUBMIT_PATCHED, which points into this buffer.
    pub fn argument(&self, context: u32) -> SubmitPatched {
        let commands = bytes_of(&self.dwords);
        SubmitPatched {
            context,
            flags: self.flags,
            cmd_ptr: if commands.is_empty() {
                0
            } else {
                commands.as_ptr() as u64
            },
            cmd_size: commands.len() as u32,
            allocs: array(&self.allocs),
            patches: array(&self.patches),
            waits: array(&self.waits),
            signals: array(&self.signals),
            ..Default::default()
        }
    }

    /// Submits a copy of the lists and returns the submission id.
    pub fn try_submit(&self, client: &Client, context: u32) -> Result<u64, Refusal> {
        // The kernel writes the presumed places back.
        let mut allocs = self.allocs.clone();
        let mut argument = self.argument(context);
        argument.allocs.ptr = if allocs.is_empty() {
            0
        } else {
            allocs.as_mut_ptr() as u64
        };
        submit(client, &mut argument)
    }

    /// Submits and returns the submission id.
    pub fn submit(&self, client: &Client, context: &Context) -> u64 {
        self.try_submit(client, context.handle)
            .unwrap_or_else(|refusal| panic!("SUBMIT_PATCHED: {refusal:?}"))
    }
}

/// Issues SUBMIT_PATCHED and returns the submission id.
pub fn submit(client: &Client, argument: &mut SubmitPatched) -> Result<u64, Refusal> {
    match client.call(abi::IOCTL_SUBMIT_PATCHED, argument) {
        Ok(()) => Ok(argument.submission),
        Err(errno) => Err(Refusal {
            errno,
            kind: argument.error_kind,
            index: argument.error_index,
        }),
    }
}

/// Whether a packet writes to an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// It does.
    Yes,
    /// It only reads.
    No,
}

/// An element of an allocation list that presumes nothing.
pub fn listed(handle: u32) -> SubmitAlloc {
    SubmitAlloc {
        alloc: handle,
        flags: 0,
        instance: abi::INSTANCE_CURRENT,
        presumed_segment: abi::SEGMENT_ID_NONE,
        presumed_address: 0,
    }
}
