// SPDX-License-Identifier: GPL-2.0

//! The command set of the software engine: packets of a client, mirror of `vidmm_engine.h`.
//!
//! A command buffer is a stream of little-endian 32-bit words (dwords). Packets start on 8-byte
//! boundaries and are an even number of dwords long, so every 64-bit operand is 8-byte aligned, low
//! half first. Dwords that no operand takes are zero.
//!
//! `OP_FILL` is an opcode, `FILL_DWORDS` the length of its packet, `FILL_DST` the dword of an
//! operand.

// Packet header. Dword 0 of a packet: opcode, flags, length of the whole packet in dwords. No
// packet defines a flag; the bits are zero. Dword 1 is the first 32-bit operand, zero where the
// packet has none.

/// Opcode.
pub const HEADER_OPCODE_MASK: u32 = 0x0000_00ff;
/// Flags, zero.
pub const HEADER_FLAGS_MASK: u32 = 0x0000_ff00;
/// Place of the length.
pub const HEADER_LENGTH_SHIFT: u32 = 16;
/// Shortest packet.
pub const PACKET_DWORDS_MIN: usize = 2;
/// Longest packet.
pub const PACKET_DWORDS_MAX: usize = 65534;
/// Alignment of a packet in its buffer, in bytes; every length is even.
pub const PACKET_ALIGN: usize = 8;

// Opcodes. What a packet does. Each packet but NOP has exactly one length.

/// Nothing. Any length; all dwords but the first are ignored.
pub const OP_NOP: u32 = 0x00;
/// Each row of the rectangle becomes the 32-bit pattern, repeated from the row's start.
pub const OP_FILL: u32 = 0x01;
/// Copies the rectangle.
pub const OP_COPY: u32 = 0x02;
/// Premultiplied source-over of ARGB8888 pixels.
pub const OP_BLEND: u32 = 0x03;
/// One 64-bit store.
pub const OP_STORE: u32 = 0x04;
/// One atomic 64-bit add, wrapping; the previous value goes to register 0.
pub const OP_ADD: u32 = 0x05;
/// Puts a value into a register.
pub const OP_SET_REGISTER: u32 = 0x06;
/// Stores a register, 64 bits.
pub const OP_STORE_REGISTER: u32 = 0x07;
/// Loads a register, 64 bits.
pub const OP_LOAD_REGISTER: u32 = 0x08;
/// CRC-32C of the range, zero-extended to 64 bits and stored when the whole range is read.
pub const OP_CHECKSUM: u32 = 0x09;
/// Stores CLOCK_MONOTONIC in nanoseconds.
pub const OP_TIMESTAMP: u32 = 0x0a;
/// Keeps the node busy for a time.
pub const OP_SPIN: u32 = 0x0b;
/// Keeps the node busy until the 64 bits at the source, masked, equal the masked value.
pub const OP_POLL: u32 = 0x0c;
/// Last opcode that a client may use.
pub const OP_CLIENT_LAST: u32 = 0x0c;
/// First opcode that only the kernel may use.
pub const OP_KERNEL_FIRST: u32 = 0x40;
/// Last opcode that only the kernel may use.
pub const OP_KERNEL_LAST: u32 = 0x4f;

// Packet lengths. Length of the whole packet in dwords.

/// Length of FILL.
pub const FILL_DWORDS: usize = 8;
/// Length of COPY.
pub const COPY_DWORDS: usize = 10;
/// Length of BLEND.
pub const BLEND_DWORDS: usize = 10;
/// Length of STORE.
pub const STORE_DWORDS: usize = 6;
/// Length of ADD.
pub const ADD_DWORDS: usize = 6;
/// Length of SET_REGISTER.
pub const SET_REGISTER_DWORDS: usize = 4;
/// Length of STORE_REGISTER.
pub const STORE_REGISTER_DWORDS: usize = 4;
/// Length of LOAD_REGISTER.
pub const LOAD_REGISTER_DWORDS: usize = 4;
/// Length of CHECKSUM.
pub const CHECKSUM_DWORDS: usize = 6;
/// Length of TIMESTAMP.
pub const TIMESTAMP_DWORDS: usize = 4;
/// Length of SPIN.
pub const SPIN_DWORDS: usize = 4;
/// Length of POLL.
pub const POLL_DWORDS: usize = 8;

// FILL operands. Dwords of FILL.

/// Pattern.
pub const FILL_PATTERN: usize = 1;
/// Destination address, 64 bits.
pub const FILL_DST: usize = 2;
/// Bytes from row to row.
pub const FILL_PITCH: usize = 4;
/// Bytes of a row.
pub const FILL_WIDTH: usize = 5;
/// Rows.
pub const FILL_HEIGHT: usize = 6;

// COPY operands. Dwords of COPY.

/// Destination address, 64 bits.
pub const COPY_DST: usize = 2;
/// Source address, 64 bits.
pub const COPY_SRC: usize = 4;
/// Bytes from row to row of the destination.
pub const COPY_DST_PITCH: usize = 6;
/// Bytes from row to row of the source.
pub const COPY_SRC_PITCH: usize = 7;
/// Bytes of a row.
pub const COPY_WIDTH: usize = 8;
/// Rows.
pub const COPY_HEIGHT: usize = 9;

// BLEND operands. Dwords of BLEND.

/// Destination address, 64 bits.
pub const BLEND_DST: usize = 2;
/// Source address, 64 bits.
pub const BLEND_SRC: usize = 4;
/// Bytes from row to row of the destination.
pub const BLEND_DST_PITCH: usize = 6;
/// Bytes from row to row of the source.
pub const BLEND_SRC_PITCH: usize = 7;
/// Bytes of a row.
pub const BLEND_WIDTH: usize = 8;
/// Rows.
pub const BLEND_HEIGHT: usize = 9;

// STORE operands. Dwords of STORE.

/// Destination address, 64 bits.
pub const STORE_DST: usize = 2;
/// Value, 64 bits.
pub const STORE_VALUE: usize = 4;

// ADD operands. Dwords of ADD.

/// Destination address, 64 bits.
pub const ADD_DST: usize = 2;
/// Value, 64 bits.
pub const ADD_VALUE: usize = 4;

// SET_REGISTER operands. Dwords of SET_REGISTER.

/// Register.
pub const SET_REGISTER_INDEX: usize = 1;
/// Value, 64 bits.
pub const SET_REGISTER_VALUE: usize = 2;

// STORE_REGISTER operands. Dwords of STORE_REGISTER.

/// Register.
pub const STORE_REGISTER_INDEX: usize = 1;
/// Destination address, 64 bits.
pub const STORE_REGISTER_DST: usize = 2;

// LOAD_REGISTER operands. Dwords of LOAD_REGISTER.

/// Register.
pub const LOAD_REGISTER_INDEX: usize = 1;
/// Source address, 64 bits.
pub const LOAD_REGISTER_SRC: usize = 2;

// CHECKSUM operands. Dwords of CHECKSUM.

/// Bytes of the range.
pub const CHECKSUM_BYTES: usize = 1;
/// Destination address, 64 bits.
pub const CHECKSUM_DST: usize = 2;
/// Source address, 64 bits.
pub const CHECKSUM_SRC: usize = 4;

// TIMESTAMP operands. Dwords of TIMESTAMP.

/// Destination address, 64 bits.
pub const TIMESTAMP_DST: usize = 2;

// SPIN operands. Dwords of SPIN.

/// Time, 64 bits.
pub const SPIN_NANOSECONDS: usize = 2;

// POLL operands. Dwords of POLL.

/// Source address, 64 bits.
pub const POLL_SRC: usize = 2;
/// Mask, 64 bits.
pub const POLL_MASK: usize = 4;
/// Value, 64 bits.
pub const POLL_VALUE: usize = 6;

// Field rules. What the parser asks of operands. Width, height and bytes are at least 1; a pitch is
// at least the width, also when there is one row.

/// Alignment of width and pitches.
pub const PITCH_ALIGN: u32 = 4;
/// Alignment of the addresses of FILL, COPY and BLEND, and of the source of CHECKSUM.
pub const RANGE_ALIGN: u64 = 4;
/// Alignment of all other addresses.
pub const VALUE_ALIGN: u64 = 8;
/// Bytes that those other operands touch.
pub const VALUE_REACH: u64 = 8;

// Registers. Registers are 64 bits wide and zero in a new context. On a node without SAVES_CONTEXT
// they hold the poison at the start of every portion.

/// Number of registers, index 0 and up.
pub const REGISTERS: usize = 16;
/// What a register holds that was not saved.
pub const REGISTER_POISON: u64 = 0xdead_c0de_dead_c0de;

// Addresses. In physical mode an address is the segment id, 1 to 31, and the byte offset in the
// segment. In virtual mode all bits are the address.

/// Place of the segment id in a physical address.
pub const ADDRESS_SEGMENT_SHIFT: u32 = 56;
/// Byte offset of a physical address.
pub const ADDRESS_OFFSET_MASK: u64 = 0x00ff_ffff_ffff_ffff;

// Special values. Values with a meaning of their own.

/// SPIN until the watchdog or closing ends it.
pub const SPIN_FOREVER: u64 = u64::MAX;
/// What discarded ranges and freed segment pages are filled with in self-check mode.
pub const MEMORY_POISON: u8 = 0xd1;
