/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The command set of vidmm's software engine: packets of a client.
 *
 * A command buffer is a stream of little-endian 32-bit words (dwords). Packets
 * start on 8-byte boundaries and are an even number of dwords long, so every
 * 64-bit operand is 8-byte aligned, low half first. Dwords that no operand
 * takes are zero.
 */
#ifndef _UAPI_LINUX_VIDMM_ENGINE_H
#define _UAPI_LINUX_VIDMM_ENGINE_H

/**
 * DOC: Packet header
 *
 * Dword 0 of a packet: opcode, flags, length of the whole packet in dwords. No
 * packet defines a flag; the bits are zero. Dword 1 is the first 32-bit
 * operand, zero where the packet has none.
 *
 * %VIDMM_ENGINE_HEADER_OPCODE_MASK
 *   Opcode.
 * %VIDMM_ENGINE_HEADER_FLAGS_MASK
 *   Flags, zero.
 * %VIDMM_ENGINE_HEADER_LENGTH_SHIFT
 *   Place of the length.
 * %VIDMM_ENGINE_PACKET_DWORDS_MIN
 *   Shortest packet.
 * %VIDMM_ENGINE_PACKET_DWORDS_MAX
 *   Longest packet.
 * %VIDMM_ENGINE_PACKET_ALIGN
 *   Alignment of a packet in its buffer, in bytes; every length is even.
 */
#define VIDMM_ENGINE_HEADER_OPCODE_MASK		0x000000ffU
#define VIDMM_ENGINE_HEADER_FLAGS_MASK		0x0000ff00U
#define VIDMM_ENGINE_HEADER_LENGTH_SHIFT	16
#define VIDMM_ENGINE_PACKET_DWORDS_MIN		2
#define VIDMM_ENGINE_PACKET_DWORDS_MAX		65534
#define VIDMM_ENGINE_PACKET_ALIGN		8

/**
 * DOC: Opcodes
 *
 * What a packet does. Each packet but NOP has exactly one length.
 *
 * %VIDMM_ENGINE_OP_NOP
 *   Nothing. Any length; all dwords but the first are ignored.
 * %VIDMM_ENGINE_OP_FILL
 *   Each row of the rectangle becomes the 32-bit pattern, repeated from the
 *   row's start.
 * %VIDMM_ENGINE_OP_COPY
 *   Copies the rectangle.
 * %VIDMM_ENGINE_OP_BLEND
 *   Premultiplied source-over of ARGB8888 pixels.
 * %VIDMM_ENGINE_OP_STORE
 *   One 64-bit store.
 * %VIDMM_ENGINE_OP_ADD
 *   One atomic 64-bit add, wrapping; the previous value goes to register 0.
 * %VIDMM_ENGINE_OP_SET_REGISTER
 *   Puts a value into a register.
 * %VIDMM_ENGINE_OP_STORE_REGISTER
 *   Stores a register, 64 bits.
 * %VIDMM_ENGINE_OP_LOAD_REGISTER
 *   Loads a register, 64 bits.
 * %VIDMM_ENGINE_OP_CHECKSUM
 *   CRC-32C of the range, zero-extended to 64 bits and stored when the whole
 *   range is read.
 * %VIDMM_ENGINE_OP_TIMESTAMP
 *   Stores CLOCK_MONOTONIC in nanoseconds.
 * %VIDMM_ENGINE_OP_SPIN
 *   Keeps the node busy for a time.
 * %VIDMM_ENGINE_OP_POLL
 *   Keeps the node busy until the 64 bits at the source, masked, equal the
 *   masked value.
 * %VIDMM_ENGINE_OP_CLIENT_LAST
 *   Last opcode that a client may use.
 * %VIDMM_ENGINE_OP_KERNEL_FIRST
 *   First opcode that only the kernel may use.
 * %VIDMM_ENGINE_OP_KERNEL_LAST
 *   Last opcode that only the kernel may use.
 */
#define VIDMM_ENGINE_OP_NOP			0x00
#define VIDMM_ENGINE_OP_FILL			0x01
#define VIDMM_ENGINE_OP_COPY			0x02
#define VIDMM_ENGINE_OP_BLEND			0x03
#define VIDMM_ENGINE_OP_STORE			0x04
#define VIDMM_ENGINE_OP_ADD			0x05
#define VIDMM_ENGINE_OP_SET_REGISTER		0x06
#define VIDMM_ENGINE_OP_STORE_REGISTER		0x07
#define VIDMM_ENGINE_OP_LOAD_REGISTER		0x08
#define VIDMM_ENGINE_OP_CHECKSUM		0x09
#define VIDMM_ENGINE_OP_TIMESTAMP		0x0a
#define VIDMM_ENGINE_OP_SPIN			0x0b
#define VIDMM_ENGINE_OP_POLL			0x0c
#define VIDMM_ENGINE_OP_CLIENT_LAST		0x0c
#define VIDMM_ENGINE_OP_KERNEL_FIRST		0x40
#define VIDMM_ENGINE_OP_KERNEL_LAST		0x4f

/**
 * DOC: Packet lengths
 *
 * Length of the whole packet in dwords.
 *
 * %VIDMM_ENGINE_FILL_DWORDS
 *   Length of FILL.
 * %VIDMM_ENGINE_COPY_DWORDS
 *   Length of COPY.
 * %VIDMM_ENGINE_BLEND_DWORDS
 *   Length of BLEND.
 * %VIDMM_ENGINE_STORE_DWORDS
 *   Length of STORE.
 * %VIDMM_ENGINE_ADD_DWORDS
 *   Length of ADD.
 * %VIDMM_ENGINE_SET_REGISTER_DWORDS
 *   Length of SET_REGISTER.
 * %VIDMM_ENGINE_STORE_REGISTER_DWORDS
 *   Length of STORE_REGISTER.
 * %VIDMM_ENGINE_LOAD_REGISTER_DWORDS
 *   Length of LOAD_REGISTER.
 * %VIDMM_ENGINE_CHECKSUM_DWORDS
 *   Length of CHECKSUM.
 * %VIDMM_ENGINE_TIMESTAMP_DWORDS
 *   Length of TIMESTAMP.
 * %VIDMM_ENGINE_SPIN_DWORDS
 *   Length of SPIN.
 * %VIDMM_ENGINE_POLL_DWORDS
 *   Length of POLL.
 */
#define VIDMM_ENGINE_FILL_DWORDS		8
#define VIDMM_ENGINE_COPY_DWORDS		10
#define VIDMM_ENGINE_BLEND_DWORDS		10
#define VIDMM_ENGINE_STORE_DWORDS		6
#define VIDMM_ENGINE_ADD_DWORDS			6
#define VIDMM_ENGINE_SET_REGISTER_DWORDS	4
#define VIDMM_ENGINE_STORE_REGISTER_DWORDS	4
#define VIDMM_ENGINE_LOAD_REGISTER_DWORDS	4
#define VIDMM_ENGINE_CHECKSUM_DWORDS		6
#define VIDMM_ENGINE_TIMESTAMP_DWORDS		4
#define VIDMM_ENGINE_SPIN_DWORDS		4
#define VIDMM_ENGINE_POLL_DWORDS		8

/**
 * DOC: FILL operands
 *
 * Dwords of FILL.
 *
 * %VIDMM_ENGINE_FILL_PATTERN
 *   Pattern.
 * %VIDMM_ENGINE_FILL_DST
 *   Destination address, 64 bits.
 * %VIDMM_ENGINE_FILL_PITCH
 *   Bytes from row to row.
 * %VIDMM_ENGINE_FILL_WIDTH
 *   Bytes of a row.
 * %VIDMM_ENGINE_FILL_HEIGHT
 *   Rows.
 */
#define VIDMM_ENGINE_FILL_PATTERN		1
#define VIDMM_ENGINE_FILL_DST			2
#define VIDMM_ENGINE_FILL_PITCH			4
#define VIDMM_ENGINE_FILL_WIDTH			5
#define VIDMM_ENGINE_FILL_HEIGHT		6

/**
 * DOC: COPY operands
 *
 * Dwords of COPY.
 *
 * %VIDMM_ENGINE_COPY_DST
 *   Destination address, 64 bits.
 * %VIDMM_ENGINE_COPY_SRC
 *   Source address, 64 bits.
 * %VIDMM_ENGINE_COPY_DST_PITCH
 *   Bytes from row to row of the destination.
 * %VIDMM_ENGINE_COPY_SRC_PITCH
 *   Bytes from row to row of the source.
 * %VIDMM_ENGINE_COPY_WIDTH
 *   Bytes of a row.
 * %VIDMM_ENGINE_COPY_HEIGHT
 *   Rows.
 */
#define VIDMM_ENGINE_COPY_DST			2
#define VIDMM_ENGINE_COPY_SRC			4
#define VIDMM_ENGINE_COPY_DST_PITCH		6
#define VIDMM_ENGINE_COPY_SRC_PITCH		7
#define VIDMM_ENGINE_COPY_WIDTH			8
#define VIDMM_ENGINE_COPY_HEIGHT		9

/**
 * DOC: BLEND operands
 *
 * Dwords of BLEND.
 *
 * %VIDMM_ENGINE_BLEND_DST
 *   Destination address, 64 bits.
 * %VIDMM_ENGINE_BLEND_SRC
 *   Source address, 64 bits.
 * %VIDMM_ENGINE_BLEND_DST_PITCH
 *   Bytes from row to row of the destination.
 * %VIDMM_ENGINE_BLEND_SRC_PITCH
 *   Bytes from row to row of the source.
 * %VIDMM_ENGINE_BLEND_WIDTH
 *   Bytes of a row.
 * %VIDMM_ENGINE_BLEND_HEIGHT
 *   Rows.
 */
#define VIDMM_ENGINE_BLEND_DST			2
#define VIDMM_ENGINE_BLEND_SRC			4
#define VIDMM_ENGINE_BLEND_DST_PITCH		6
#define VIDMM_ENGINE_BLEND_SRC_PITCH		7
#define VIDMM_ENGINE_BLEND_WIDTH		8
#define VIDMM_ENGINE_BLEND_HEIGHT		9

/**
 * DOC: STORE operands
 *
 * Dwords of STORE.
 *
 * %VIDMM_ENGINE_STORE_DST
 *   Destination address, 64 bits.
 * %VIDMM_ENGINE_STORE_VALUE
 *   Value, 64 bits.
 */
#define VIDMM_ENGINE_STORE_DST			2
#define VIDMM_ENGINE_STORE_VALUE		4

/**
 * DOC: ADD operands
 *
 * Dwords of ADD.
 *
 * %VIDMM_ENGINE_ADD_DST
 *   Destination address, 64 bits.
 * %VIDMM_ENGINE_ADD_VALUE
 *   Value, 64 bits.
 */
#define VIDMM_ENGINE_ADD_DST			2
#define VIDMM_ENGINE_ADD_VALUE			4

/**
 * DOC: SET_REGISTER operands
 *
 * Dwords of SET_REGISTER.
 *
 * %VIDMM_ENGINE_SET_REGISTER_INDEX
 *   Register.
 * %VIDMM_ENGINE_SET_REGISTER_VALUE
 *   Value, 64 bits.
 */
#define VIDMM_ENGINE_SET_REGISTER_INDEX		1
#define VIDMM_ENGINE_SET_REGISTER_VALUE		2

/**
 * DOC: STORE_REGISTER operands
 *
 * Dwords of STORE_REGISTER.
 *
 * %VIDMM_ENGINE_STORE_REGISTER_INDEX
 *   Register.
 * %VIDMM_ENGINE_STORE_REGISTER_DST
 *   Destination address, 64 bits.
 */
#define VIDMM_ENGINE_STORE_REGISTER_INDEX	1
#define VIDMM_ENGINE_STORE_REGISTER_DST		2

/**
 * DOC: LOAD_REGISTER operands
 *
 * Dwords of LOAD_REGISTER.
 *
 * %VIDMM_ENGINE_LOAD_REGISTER_INDEX
 *   Register.
 * %VIDMM_ENGINE_LOAD_REGISTER_SRC
 *   Source address, 64 bits.
 */
#define VIDMM_ENGINE_LOAD_REGISTER_INDEX	1
#define VIDMM_ENGINE_LOAD_REGISTER_SRC		2

/**
 * DOC: CHECKSUM operands
 *
 * Dwords of CHECKSUM.
 *
 * %VIDMM_ENGINE_CHECKSUM_BYTES
 *   Bytes of the range.
 * %VIDMM_ENGINE_CHECKSUM_DST
 *   Destination address, 64 bits.
 * %VIDMM_ENGINE_CHECKSUM_SRC
 *   Source address, 64 bits.
 */
#define VIDMM_ENGINE_CHECKSUM_BYTES		1
#define VIDMM_ENGINE_CHECKSUM_DST		2
#define VIDMM_ENGINE_CHECKSUM_SRC		4

/**
 * DOC: TIMESTAMP operands
 *
 * Dwords of TIMESTAMP.
 *
 * %VIDMM_ENGINE_TIMESTAMP_DST
 *   Destination address, 64 bits.
 */
#define VIDMM_ENGINE_TIMESTAMP_DST		2

/**
 * DOC: SPIN operands
 *
 * Dwords of SPIN.
 *
 * %VIDMM_ENGINE_SPIN_NANOSECONDS
 *   Time, 64 bits.
 */
#define VIDMM_ENGINE_SPIN_NANOSECONDS		2

/**
 * DOC: POLL operands
 *
 * Dwords of POLL.
 *
 * %VIDMM_ENGINE_POLL_SRC
 *   Source address, 64 bits.
 * %VIDMM_ENGINE_POLL_MASK
 *   Mask, 64 bits.
 * %VIDMM_ENGINE_POLL_VALUE
 *   Value, 64 bits.
 */
#define VIDMM_ENGINE_POLL_SRC			2
#define VIDMM_ENGINE_POLL_MASK			4
#define VIDMM_ENGINE_POLL_VALUE			6

/**
 * DOC: Field rules
 *
 * What the parser asks of operands. Width, height and bytes are at least 1; a
 * pitch is at least the width, also when there is one row.
 *
 * %VIDMM_ENGINE_PITCH_ALIGN
 *   Alignment of width and pitches.
 * %VIDMM_ENGINE_RANGE_ALIGN
 *   Alignment of the addresses of FILL, COPY and BLEND, and of the source of
 *   CHECKSUM.
 * %VIDMM_ENGINE_VALUE_ALIGN
 *   Alignment of all other addresses.
 * %VIDMM_ENGINE_VALUE_REACH
 *   Bytes that those other operands touch.
 */
#define VIDMM_ENGINE_PITCH_ALIGN		4
#define VIDMM_ENGINE_RANGE_ALIGN		4
#define VIDMM_ENGINE_VALUE_ALIGN		8
#define VIDMM_ENGINE_VALUE_REACH		8

/**
 * DOC: Registers
 *
 * Registers are 64 bits wide and zero in a new context. On a node without
 * SAVES_CONTEXT they hold the poison at the start of every portion.
 *
 * %VIDMM_ENGINE_REGISTERS
 *   Number of registers, index 0 and up.
 * %VIDMM_ENGINE_REGISTER_POISON
 *   What a register holds that was not saved.
 */
#define VIDMM_ENGINE_REGISTERS			16
#define VIDMM_ENGINE_REGISTER_POISON		0xdeadc0dedeadc0deULL

/**
 * DOC: Addresses
 *
 * In physical mode an address is the segment id, 1 to 31, and the byte offset
 * in the segment. In virtual mode all bits are the address.
 *
 * %VIDMM_ENGINE_ADDRESS_SEGMENT_SHIFT
 *   Place of the segment id in a physical address.
 * %VIDMM_ENGINE_ADDRESS_OFFSET_MASK
 *   Byte offset of a physical address.
 */
#define VIDMM_ENGINE_ADDRESS_SEGMENT_SHIFT	56
#define VIDMM_ENGINE_ADDRESS_OFFSET_MASK	0x00ffffffffffffffULL

/**
 * DOC: Special values
 *
 * Values with a meaning of their own.
 *
 * %VIDMM_ENGINE_SPIN_FOREVER
 *   SPIN until the watchdog or closing ends it.
 * %VIDMM_ENGINE_MEMORY_POISON
 *   What discarded ranges and freed segment pages are filled with in self-check
 *   mode.
 */
#define VIDMM_ENGINE_SPIN_FOREVER		0xffffffffffffffffULL
#define VIDMM_ENGINE_MEMORY_POISON		0xd1

#endif /* _UAPI_LINUX_VIDMM_ENGINE_H */
