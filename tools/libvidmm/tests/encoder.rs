// SPDX-License-Identifier: GPL-2.0

//! Buffers of the encoder keep the rules of patched submission, whatever is written into them.
//!
//! The checks here are the rules of the interface in their plainest form, without regard to time.

#![allow(missing_docs)]

use libvidmm::abi::{
    self,
    engine, //
};
use libvidmm::commands::{
    Area,
    Buffer,
    Commands,
    Operand,
    Rectangle, //
};

/// Numbers from a linear congruence: enough to mix packets.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }

    fn operand(&mut self) -> Operand {
        Operand {
            allocation: 1 + self.below(12) as u32,
            instance: abi::INSTANCE_CURRENT,
            offset: 8 * self.below(64),
        }
    }
}

/// Writes a packet that `numbers` choose.
fn write_packet(commands: &mut Commands, numbers: &mut Numbers) {
    let area = Area {
        pitch: 64,
        width: 16,
        height: 2,
    };
    let rectangle = Rectangle {
        dst_pitch: 64,
        src_pitch: 32,
        width: 16,
        height: 2,
    };
    let (first, second) = (numbers.operand(), numbers.operand());
    match numbers.below(14) {
        0 => commands.nop(2 + 2 * numbers.below(4) as u16),
        1 => commands.fill(first, 1, area),
        2 => commands.copy(first, second, rectangle),
        3 => commands.blend(first, second, rectangle),
        4 => commands.store(first, 1),
        5 => commands.add(first, 1),
        6 => commands.set_register(1, 1),
        7 => commands.store_register(first, 1),
        8 => commands.load_register(1, first),
        9 => commands.checksum(first, second, 16),
        10 => commands.timestamp(first),
        11 => commands.spin(1),
        12 => commands.poll(first, 1, 1),
        _ => {
            commands.unbind(first.allocation);
        }
    }
}

fn random_buffer(seed: u64, slots: u32) -> Buffer {
    let mut numbers = Numbers(seed);
    let mut commands = Commands::new(slots);
    for _ in 0..200 {
        write_packet(&mut commands, &mut numbers);
    }
    commands.finish()
}

/// Returns the starts of all packets in bytes, and the end.
fn packets(buffer: &Buffer) -> Vec<u32> {
    let mut starts = vec![0];
    while let Some(header) = buffer.dwords.get(*starts.last().unwrap() as usize / 4) {
        starts.push(starts.last().unwrap() + 4 * (header >> engine::HEADER_LENGTH_SHIFT));
    }
    starts
}

/// Returns the byte offsets of the address operands of a packet, and whether they are written.
fn operands(opcode: u32) -> Vec<(usize, bool)> {
    match opcode {
        engine::OP_COPY | engine::OP_BLEND | engine::OP_CHECKSUM => vec![(8, true), (16, false)],
        engine::OP_LOAD_REGISTER | engine::OP_POLL => vec![(8, false)],
        engine::OP_NOP | engine::OP_SET_REGISTER | engine::OP_SPIN => vec![],
        _ => vec![(8, true)],
    }
}

fn for_many_buffers(check: impl Fn(&Buffer, u32)) {
    for seed in 0..50 {
        for slots in [2, 3, 8] {
            check(&random_buffer(seed, slots), slots);
        }
    }
}

#[test]
fn every_operand_has_one_patch_and_every_patch_an_operand() {
    for_many_buffers(|buffer, _| {
        let mut expected = Vec::new();
        for start in packets(buffer).iter().rev().skip(1).rev() {
            let opcode = buffer.dwords[*start as usize / 4] & engine::HEADER_OPCODE_MASK;
            expected.extend(operands(opcode).iter().map(|(at, _)| start + *at as u32));
        }
        let full = buffer
            .patches
            .iter()
            .filter(|patch| patch.kind == abi::SUBMIT_PATCH_KIND_FULL64);
        let mut patched: Vec<_> = full.map(|patch| patch.patch_offset).collect();
        patched.sort_unstable();
        assert_eq!(patched, expected);
    });
}

#[test]
fn split_offsets_never_decrease_and_are_starts_of_packets() {
    for_many_buffers(|buffer, _| {
        let starts = packets(buffer);
        let mut before = 0;
        for patch in &buffer.patches {
            assert!(patch.split_offset >= before);
            assert!(starts.contains(&patch.split_offset));
            if patch.kind == abi::SUBMIT_PATCH_KIND_FULL64 {
                assert!(patch.split_offset <= patch.patch_offset);
            }
            before = patch.split_offset;
        }
    });
}

#[test]
fn every_operand_is_bound_at_its_packet() {
    for_many_buffers(|buffer, slots| {
        for patch in &buffer.patches {
            if patch.kind != abi::SUBMIT_PATCH_KIND_FULL64 {
                continue;
            }
            let starts = packets(buffer);
            let packet = starts.iter().rev().find(|s| **s <= patch.patch_offset);
            let mut bound = vec![abi::ALLOC_INDEX_NONE; slots as usize];
            for earlier in &buffer.patches {
                if earlier.split_offset <= *packet.unwrap() {
                    bound[earlier.slot as usize] = earlier.alloc_index;
                }
            }
            assert!(bound.contains(&patch.alloc_index));
        }
    });
}

#[test]
fn list_has_each_allocation_once_and_says_what_is_written() {
    for_many_buffers(|buffer, _| {
        let mut handles: Vec<_> = buffer.allocations.iter().map(|entry| entry.alloc).collect();
        handles.sort_unstable();
        handles.dedup();
        assert_eq!(handles.len(), buffer.allocations.len());

        for (index, entry) in buffer.allocations.iter().enumerate() {
            let patches = buffer.patches.iter();
            let named = patches.filter(|patch| patch.alloc_index == index as u32);
            let written = named.map(|patch| {
                let writes = operands(patch.driver_id);
                let at = patch.patch_offset - patch.split_offset;
                writes.contains(&(at as usize, true))
            });
            let written: Vec<_> = written.collect();
            assert!(!written.is_empty());
            let expected = written.contains(&true);
            assert_eq!(entry.flags & abi::SUBMIT_ALLOC_WRITE != 0, expected);
        }
    });
}
