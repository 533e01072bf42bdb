// SPDX-License-Identifier: GPL-2.0

//! Command buffers: packets of the engine, with the lists that go with them.
//!
//! [`Commands`] writes packets and notes for every address operand an entry of the patch list:
//! which allocation, in which binding slot, from which packet on. Slots are chosen by the encoder:
//! an allocation keeps its slot until another one needs it, and the slot that was not used for the
//! longest time is taken first. Every packet that names memory binds what it names anew, so that its
//! start is a place where the driver may cut.
//!
//! Nothing is checked here. The kernel checks everything, and tests need wrong buffers too: all
//! parts of a [`Buffer`] are open to changes.

mod operand;
mod packet;
mod slots;

pub use self::operand::{
    Area,
    Operand,
    Rectangle, //
};
use self::packet::{
    header,
    put, //
};
use self::slots::Slots;
use crate::abi::{
    self,
    engine, //
};

/// A finished command buffer with its lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// The packets.
    pub dwords: Vec<u32>,
    /// The allocation list.
    pub allocations: Vec<abi::SubmitAlloc>,
    /// The patch list.
    pub patches: Vec<abi::SubmitPatch>,
}

/// What a packet does at an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Reads,
    Writes,
}

/// A command buffer that is being written.
#[derive(Clone, Debug)]
pub struct Commands {
    buffer: Buffer,
    slots: Slots,
}

impl Commands {
    /// Begins an empty buffer for an adapter with this many binding slots (`patch_slots`). A packet
    /// needs up to two.
    pub fn new(slots: u32) -> Self {
        Self {
            buffer: Buffer::default(),
            slots: Slots::new(slots),
        }
    }

    /// Returns the bytes written so far: the offset of the next packet.
    pub fn bytes(&self) -> u32 {
        // CAST: far below what a node takes.
        (self.buffer.dwords.len() * 4) as u32
    }

    /// Returns the buffer.
    pub fn finish(self) -> Buffer {
        self.buffer
    }

    /// NOP of `dwords` dwords, an even number.
    pub fn nop(&mut self, dwords: u16) {
        let length = usize::from(dwords).max(1);
        let start = self.buffer.dwords.len();
        self.buffer.dwords.push(header(engine::OP_NOP, length));
        self.buffer.dwords.resize(start + length, 0);
    }

    /// FILL: each row of the rectangle becomes the pattern.
    pub fn fill(&mut self, dst: Operand, pattern: u32, area: Area) {
        let mut packet = [0; engine::FILL_DWORDS];
        packet[engine::FILL_PATTERN] = pattern;
        packet[engine::FILL_PITCH] = area.pitch;
        packet[engine::FILL_WIDTH] = area.width;
        packet[engine::FILL_HEIGHT] = area.height;
        let operands = [(engine::FILL_DST, dst, Use::Writes)];
        self.push(engine::OP_FILL, packet, &operands);
    }

    /// COPY: copies the rectangle.
    pub fn copy(&mut self, dst: Operand, src: Operand, rectangle: Rectangle) {
        let mut packet = [0; engine::COPY_DWORDS];
        packet[engine::COPY_DST_PITCH] = rectangle.dst_pitch;
        packet[engine::COPY_SRC_PITCH] = rectangle.src_pitch;
        packet[engine::COPY_WIDTH] = rectangle.width;
        packet[engine::COPY_HEIGHT] = rectangle.height;
        let operands = [
            (engine::COPY_DST, dst, Use::Writes),
            (engine::COPY_SRC, src, Use::Reads),
        ];
        self.push(engine::OP_COPY, packet, &operands);
    }

    /// BLEND: premultiplied source-over of ARGB8888 pixels.
    pub fn blend(&mut self, dst: Operand, src: Operand, rectangle: Rectangle) {
        let mut packet = [0; engine::BLEND_DWORDS];
        packet[engine::BLEND_DST_PITCH] = rectangle.dst_pitch;
        packet[engine::BLEND_SRC_PITCH] = rectangle.src_pitch;
        packet[engine::BLEND_WIDTH] = rectangle.width;
        packet[engine::BLEND_HEIGHT] = rectangle.height;
        let operands = [
            (engine::BLEND_DST, dst, Use::Writes),
            (engine::BLEND_SRC, src, Use::Reads),
        ];
        self.push(engine::OP_BLEND, packet, &operands);
    }

    /// STORE: one 64-bit store.
    pub fn store(&mut self, dst: Operand, value: u64) {
        let mut packet = [0; engine::STORE_DWORDS];
        put(&mut packet, engine::STORE_VALUE, value);
        let operands = [(engine::STORE_DST, dst, Use::Writes)];
        self.push(engine::OP_STORE, packet, &operands);
    }

    /// ADD: one atomic 64-bit add; the previous value goes to register 0.
    pub fn add(&mut self, dst: Operand, value: u64) {
        let mut packet = [0; engine::ADD_DWORDS];
        put(&mut packet, engine::ADD_VALUE, value);
        let operands = [(engine::ADD_DST, dst, Use::Writes)];
        self.push(engine::OP_ADD, packet, &operands);
    }

    /// SET_REGISTER: puts a value into a register.
    pub fn set_register(&mut self, index: u32, value: u64) {
        let mut packet = [0; engine::SET_REGISTER_DWORDS];
        packet[engine::SET_REGISTER_INDEX] = index;
        put(&mut packet, engine::SET_REGISTER_VALUE, value);
        self.push(engine::OP_SET_REGISTER, packet, &[]);
    }

    /// STORE_REGISTER: register to memory.
    pub fn store_register(&mut self, dst: Operand, index: u32) {
        let mut packet = [0; engine::STORE_REGISTER_DWORDS];
        packet[engine::STORE_REGISTER_INDEX] = index;
        let operands = [(engine::STORE_REGISTER_DST, dst, Use::Writes)];
        self.push(engine::OP_STORE_REGISTER, packet, &operands);
    }

    /// LOAD_REGISTER: memory to register.
    pub fn load_register(&mut self, index: u32, src: Operand) {
        let mut packet = [0; engine::LOAD_REGISTER_DWORDS];
        packet[engine::LOAD_REGISTER_INDEX] = index;
        let operands = [(engine::LOAD_REGISTER_SRC, src, Use::Reads)];
        self.push(engine::OP_LOAD_REGISTER, packet, &operands);
    }

    /// CHECKSUM: CRC-32C of `bytes` bytes at `src`, stored at `dst`.
    pub fn checksum(&mut self, dst: Operand, src: Operand, bytes: u32) {
        let mut packet = [0; engine::CHECKSUM_DWORDS];
        packet[engine::CHECKSUM_BYTES] = bytes;
        let operands = [
            (engine::CHECKSUM_DST, dst, Use::Writes),
            (engine::CHECKSUM_SRC, src, Use::Reads),
        ];
        self.push(engine::OP_CHECKSUM, packet, &operands);
    }

    /// TIMESTAMP: stores the time.
    pub fn timestamp(&mut self, dst: Operand) {
        let packet = [0; engine::TIMESTAMP_DWORDS];
        let operands = [(engine::TIMESTAMP_DST, dst, Use::Writes)];
        self.push(engine::OP_TIMESTAMP, packet, &operands);
    }

    /// SPIN: keeps the node busy for a time; `SPIN_FOREVER` until it is stopped.
    pub fn spin(&mut self, nanoseconds: u64) {
        let mut packet = [0; engine::SPIN_DWORDS];
        put(&mut packet, engine::SPIN_NANOSECONDS, nanoseconds);
        self.push(engine::OP_SPIN, packet, &[]);
    }

    /// POLL: keeps the node busy until the masked 64 bits at `src` equal the masked value.
    pub fn poll(&mut self, src: Operand, mask: u64, value: u64) {
        let mut packet = [0; engine::POLL_DWORDS];
        put(&mut packet, engine::POLL_MASK, mask);
        put(&mut packet, engine::POLL_VALUE, value);
        let operands = [(engine::POLL_SRC, src, Use::Reads)];
        self.push(engine::OP_POLL, packet, &operands);
    }

    /// Writes dwords as they are, without patches: for packets that do not exist.
    pub fn raw(&mut self, dwords: &[u32]) {
        self.buffer.dwords.extend_from_slice(dwords);
    }

    /// Gives up the slot of an allocation from the next packet on, so that it need not stay where it
    /// is. Says whether it had one.
    pub fn unbind(&mut self, allocation: u32) -> bool {
        let allocations = &self.buffer.allocations;
        let released = self.slots.release(|entry| {
            // CAST: `usize` has at least 32 bits on Linux.
            let element = allocations.get(entry as usize);
            element.is_some_and(|element| element.alloc == allocation)
        });
        let Some(slot) = released else {
            return false;
        };
        let split_offset = self.bytes();
        self.buffer.patches.push(abi::SubmitPatch {
            alloc_index: abi::ALLOC_INDEX_NONE,
            slot,
            kind: abi::SUBMIT_PATCH_KIND_NONE,
            split_offset,
            ..Default::default()
        });
        true
    }

    /// Appends a packet and an entry of the patch list for each of its operands.
    fn push<const DWORDS: usize>(
        &mut self,
        opcode: u32,
        mut packet: [u32; DWORDS],
        operands: &[(usize, Operand, Use)],
    ) {
        let start = self.bytes();
        packet[0] = header(opcode, DWORDS);
        self.buffer.dwords.extend_from_slice(&packet);
        for &(dword, operand, access) in operands {
            let entry = self.list(operand, access);
            let slot = self.slots.bind(entry);
            self.buffer.patches.push(abi::SubmitPatch {
                alloc_index: entry,
                slot,
                kind: abi::SUBMIT_PATCH_KIND_FULL64,
                driver_id: opcode,
                alloc_offset: operand.offset,
                // CAST: a packet has some ten dwords.
                patch_offset: start + 4 * dword as u32,
                split_offset: start,
            });
        }
    }

    /// Returns the index of the operand's allocation in the list, and notes what is done with it.
    fn list(&mut self, operand: Operand, access: Use) -> u32 {
        let list = &mut self.buffer.allocations;
        let found = list.iter().position(|element| {
            element.alloc == operand.allocation && element.instance == operand.instance
        });
        let index = found.unwrap_or_else(|| {
            list.push(abi::SubmitAlloc {
                alloc: operand.allocation,
                instance: operand.instance,
                presumed_segment: abi::SEGMENT_ID_NONE,
                ..Default::default()
            });
            list.len() - 1
        });
        if access == Use::Writes {
            list[index].flags |= abi::SUBMIT_ALLOC_WRITE;
        }
        // CAST: the longest list of a node is a `u32`.
        index as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operand(allocation: u32, offset: u64) -> Operand {
        Operand {
            allocation,
            instance: abi::INSTANCE_CURRENT,
            offset,
        }
    }

    const ROW: Rectangle = Rectangle {
        dst_pitch: 64,
        src_pitch: 32,
        width: 16,
        height: 2,
    };

    #[test]
    fn fill_has_its_operands_where_the_engine_looks() {
        let mut commands = Commands::new(8);

        commands.fill(
            operand(7, 4),
            0xaabb_ccdd,
            Area {
                pitch: 64,
                width: 16,
                height: 2,
            },
        );

        let buffer = commands.finish();
        assert_eq!(
            buffer.dwords,
            [0x0008_0001, 0xaabb_ccdd, 0, 0, 64, 16, 2, 0]
        );
        assert_eq!(
            buffer.patches,
            [abi::SubmitPatch {
                alloc_index: 0,
                slot: 0,
                kind: abi::SUBMIT_PATCH_KIND_FULL64,
                driver_id: engine::OP_FILL,
                alloc_offset: 4,
                patch_offset: 8,
                split_offset: 0,
            }]
        );
        assert_eq!(buffer.allocations[0].flags, abi::SUBMIT_ALLOC_WRITE);
    }

    #[test]
    fn every_packet_has_its_length_in_its_header() {
        let mut commands = Commands::new(8);
        let area = Area {
            pitch: 4,
            width: 4,
            height: 1,
        };

        commands.nop(2);
        commands.fill(operand(1, 0), 0, area);
        commands.copy(operand(1, 0), operand(2, 0), ROW);
        commands.blend(operand(1, 0), operand(2, 0), ROW);
        commands.store(operand(1, 0), 1);
        commands.add(operand(1, 0), 1);
        commands.set_register(3, 1);
        commands.store_register(operand(1, 0), 3);
        commands.load_register(3, operand(1, 0));
        commands.checksum(operand(1, 0), operand(2, 0), 16);
        commands.timestamp(operand(1, 0));
        commands.spin(1);
        commands.poll(operand(1, 0), 1, 1);

        let dwords = commands.finish().dwords;
        let mut opcodes = Vec::new();
        let mut rest = &dwords[..];
        while let Some(first) = rest.first() {
            opcodes.push(first & 0xff);
            rest = &rest[(first >> 16) as usize..];
        }
        assert_eq!(opcodes, (0..=engine::OP_CLIENT_LAST).collect::<Vec<_>>());
    }

    #[test]
    fn blend_lists_both_allocations_and_marks_what_it_writes() {
        let mut commands = Commands::new(8);

        commands.blend(operand(5, 128), operand(6, 0), ROW);

        let buffer = commands.finish();
        assert_eq!(buffer.dwords[0], 0x000a_0003);
        assert_eq!(buffer.dwords[6..], [64, 32, 16, 2]);
        let list: Vec<_> = buffer
            .allocations
            .iter()
            .map(|e| (e.alloc, e.flags))
            .collect();
        assert_eq!(list, [(5, abi::SUBMIT_ALLOC_WRITE), (6, 0)]);
        let offsets: Vec<_> = buffer.patches.iter().map(|p| p.patch_offset).collect();
        assert_eq!(offsets, [8, 16]);
    }

    #[test]
    fn allocation_keeps_its_slot_and_its_entry() {
        let mut commands = Commands::new(8);

        commands.blend(operand(5, 0), operand(6, 0), ROW);
        commands.blend(operand(5, 0), operand(7, 0), ROW);

        let buffer = commands.finish();
        let slots: Vec<_> = buffer.patches.iter().map(|p| p.slot).collect();
        assert_eq!(slots, [0, 1, 0, 2]);
        assert_eq!(buffer.allocations.len(), 3);
        let splits: Vec<_> = buffer.patches.iter().map(|p| p.split_offset).collect();
        assert_eq!(splits, [0, 0, 40, 40]);
    }

    #[test]
    fn unbind_releases_the_slot_from_the_next_packet_on() {
        let mut commands = Commands::new(8);
        commands.store(operand(5, 0), 1);

        assert!(commands.unbind(5));
        assert!(!commands.unbind(5));
        commands.store(operand(6, 0), 1);

        let patches = commands.finish().patches;
        assert_eq!(patches[1].kind, abi::SUBMIT_PATCH_KIND_NONE);
        assert_eq!(patches[1].split_offset, 24);
        assert_eq!(patches[2].slot, 0);
    }

    #[test]
    fn instances_are_entries_of_their_own() {
        let mut commands = Commands::new(8);

        commands.store(operand(5, 0), 1);
        commands.store(operand(5, 0).instance(1), 1);

        assert_eq!(commands.finish().allocations.len(), 2);
    }
}
