// SPDX-License-Identifier: GPL-2.0

//! Packets: how dwords are put together.

use crate::abi::engine;

/// Returns the first dword of a packet.
pub(super) const fn header(opcode: u32, dwords: usize) -> u32 {
    // CAST: packets have at most 65534 dwords.
    opcode | ((dwords as u32) << engine::HEADER_LENGTH_SHIFT)
}

/// Puts a 64-bit value into a packet, low half first.
pub(super) fn put(packet: &mut [u32], dword: usize, value: u64) {
    // CAST: each takes its half.
    packet[dword] = value as u32;
    packet[dword + 1] = (value >> 32) as u32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_has_opcode_and_length() {
        assert_eq!(header(engine::OP_BLEND, engine::BLEND_DWORDS), 0x000a_0003);
    }

    #[test]
    fn value_of_64_bits_has_its_low_half_first() {
        let mut packet = [0; 4];

        put(&mut packet, 2, 0x1122_3344_5566_7788);

        assert_eq!(packet, [0, 0, 0x5566_7788, 0x1122_3344]);
    }
}
