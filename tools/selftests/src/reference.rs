// SPDX-License-Identifier: GPL-2.0

//! The reference: what a command buffer leaves behind, computed by the CPU.
//!
//! It works on the same packets and patch entries that are submitted, so that a mistake of the
//! builder shows on one side only.

use std::collections::BTreeMap;

use crate::{
    abi::engine,
    commands::Commands, //
};

/// Memory and registers as they should be.
#[derive(Clone)]
pub struct Machine {
    /// Content of each allocation by its handle.
    pub memory: BTreeMap<u32, Vec<u8>>,
    /// Registers of the context.
    pub registers: [u64; engine::REGISTERS],
    /// Whether registers survive between buffers.
    pub saves_registers: bool,
}

/// Where an operand points.
#[derive(Clone, Copy)]
struct Target {
    handle: u32,
    offset: usize,
}

/// A rectangle packet taken apart.
struct Rectangle {
    to: Target,
    from: Target,
    to_pitch: usize,
    from_pitch: usize,
    width: usize,
    height: usize,
}

impl Machine {
    /// A machine whose context has just been made.
    pub fn new(saves_registers: bool) -> Self {
        Self {
            memory: BTreeMap::new(),
            registers: [0; engine::REGISTERS],
            saves_registers,
        }
    }

    /// Gives an allocation its content.
    pub fn set(&mut self, handle: u32, content: Vec<u8>) {
        self.memory.insert(handle, content);
    }

    /// Content of an allocation.
    pub fn content(&self, handle: u32) -> &[u8] {
        &self.memory[&handle]
    }

    /// Runs a buffer. POLL is taken as satisfied, SPIN and TIMESTAMP leave memory alone.
    pub fn run(&mut self, commands: &Commands) {
        if !self.saves_registers {
            self.registers = [engine::REGISTER_POISON; engine::REGISTERS];
        }
        let mut start = 0;
        while start < commands.dwords.len() {
            let header = commands.dwords[start];
            let length = (header >> engine::HEADER_LENGTH_SHIFT) as usize;
            self.packet(commands, start, header & engine::HEADER_OPCODE_MASK);
            start += length;
        }
    }

    fn packet(&mut self, commands: &Commands, start: usize, opcode: u32) {
        let dword = |index: usize| commands.dwords[start + index];
        let long = |index: usize| u64::from(dword(index)) | (u64::from(dword(index + 1)) << 32);
        let target = |index: usize| target_of(commands, (start + index) as u32 * 4);
        match opcode {
            engine::OP_FILL => {
                let pattern = dword(engine::FILL_PATTERN).to_le_bytes();
                let to = target(engine::FILL_DST);
                let width = dword(engine::FILL_WIDTH) as usize;
                let memory = self.bytes(to.handle);
                for row in 0..dword(engine::FILL_HEIGHT) as usize {
                    let first = to.offset + row * dword(engine::FILL_PITCH) as usize;
                    for (index, byte) in memory[first..first + width].iter_mut().enumerate() {
                        *byte = pattern[index % 4];
                    }
                }
            }
            engine::OP_COPY | engine::OP_BLEND => {
                let rectangle = Rectangle {
                    to: target(engine::COPY_DST),
                    from: target(engine::COPY_SRC),
                    to_pitch: dword(engine::COPY_DST_PITCH) as usize,
                    from_pitch: dword(engine::COPY_SRC_PITCH) as usize,
                    width: dword(engine::COPY_WIDTH) as usize,
                    height: dword(engine::COPY_HEIGHT) as usize,
                };
                self.rectangle(&rectangle, opcode == engine::OP_BLEND);
            }
            engine::OP_STORE => {
                self.store(target(engine::STORE_DST), long(engine::STORE_VALUE));
            }
            engine::OP_ADD => {
                let to = target(engine::ADD_DST);
                let previous = self.load(to);
                self.registers[0] = previous;
                self.store(to, previous.wrapping_add(long(engine::ADD_VALUE)));
            }
            engine::OP_SET_REGISTER => {
                self.registers[dword(engine::SET_REGISTER_INDEX) as usize] =
                    long(engine::SET_REGISTER_VALUE);
            }
            engine::OP_STORE_REGISTER => {
                let value = self.registers[dword(engine::STORE_REGISTER_INDEX) as usize];
                self.store(target(engine::STORE_REGISTER_DST), value);
            }
            engine::OP_LOAD_REGISTER => {
                self.registers[dword(engine::LOAD_REGISTER_INDEX) as usize] =
                    self.load(target(engine::LOAD_REGISTER_SRC));
            }
            engine::OP_CHECKSUM => {
                let from = target(engine::CHECKSUM_SRC);
                let bytes = dword(engine::CHECKSUM_BYTES) as usize;
                let sum = crc32c(&self.bytes(from.handle)[from.offset..from.offset + bytes]);
                self.store(target(engine::CHECKSUM_DST), u64::from(sum));
            }
            _ => {}
        }
    }

    fn bytes(&mut self, handle: u32) -> &mut Vec<u8> {
        self.memory
            .get_mut(&handle)
            .expect("an allocation that the machine knows")
    }

    fn load(&mut self, from: Target) -> u64 {
        let bytes = &self.bytes(from.handle)[from.offset..from.offset + 8];
        u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }

    fn store(&mut self, to: Target, value: u64) {
        self.bytes(to.handle)[to.offset..to.offset + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn rectangle(&mut self, rectangle: &Rectangle, blend: bool) {
        let Rectangle {
            to,
            from,
            width,
            height,
            ..
        } = *rectangle;
        // Rows go from the last one if the destination is above the source.
        let backwards = to.handle == from.handle && to.offset > from.offset;
        for step in 0..height {
            let row = if backwards { height - 1 - step } else { step };
            let source = from.offset + row * rectangle.from_pitch;
            let target = to.offset + row * rectangle.to_pitch;
            let mut pixels = self.bytes(from.handle)[source..source + width].to_vec();
            let memory = &mut self.bytes(to.handle)[target..target + width];
            if blend {
                blend_over(&mut pixels, memory);
            }
            memory.copy_from_slice(&pixels);
        }
    }
}

/// Puts premultiplied ARGB pixels over others, into the first slice.
fn blend_over(pixels: &mut [u8], under: &[u8]) {
    for (source, below) in pixels.chunks_exact_mut(4).zip(under.chunks_exact(4)) {
        let rest = 255 - u32::from(source[3]);
        for (byte, below) in source.iter_mut().zip(below) {
            let sum = u32::from(*byte) + (u32::from(*below) * rest + 127) / 255;
            *byte = sum.min(255) as u8;
        }
    }
}

fn target_of(commands: &Commands, patch_offset: u32) -> Target {
    let found = commands
        .patches
        .iter()
        .find(|patch| patch.patch_offset == patch_offset);
    let patch = found.expect("an entry for the operand");
    let handle = commands.allocs[patch.alloc_index as usize].alloc;
    Target {
        handle,
        offset: patch.alloc_offset as usize,
    }
}

/// CRC-32C, reflected, with final inversion.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            let carry = sum & 1;
            sum >>= 1;
            if carry != 0 {
                sum ^= 0x82f6_3b78;
            }
        }
    }
    !sum
}
