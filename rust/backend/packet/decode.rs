// SPDX-License-Identifier: GPL-2.0

//! From dwords to packets.
//!
//! Each packet but NOP has exactly one length and no flags, so one comparison of the header says which
//! packet it is and that length and flags are right.

use super::{
    length,
    Extent,
    Packet,
    Rectangle,
    Register, //
};
use crate::{
    backend::address::wide,
    uapi::abi::engine as abi, //
};

/// Returns the header of a packet.
const fn header(opcode: u32, dwords: usize) -> u32 {
    // CAST: the longest packet has a length of 16 bits.
    (dwords as u32) << abi::HEADER_LENGTH_SHIFT | opcode
}

/// Headers.
mod headers {
    use super::{
        abi,
        header, //
    };

    /// FILL.
    pub(super) const FILL: u32 = header(abi::OP_FILL, abi::FILL_DWORDS);
    /// COPY.
    pub(super) const COPY: u32 = header(abi::OP_COPY, abi::COPY_DWORDS);
    /// BLEND.
    pub(super) const BLEND: u32 = header(abi::OP_BLEND, abi::BLEND_DWORDS);
    /// STORE.
    pub(super) const STORE: u32 = header(abi::OP_STORE, abi::STORE_DWORDS);
    /// ADD.
    pub(super) const ADD: u32 = header(abi::OP_ADD, abi::ADD_DWORDS);
    /// SET_REGISTER.
    pub(super) const SET_REGISTER: u32 = header(abi::OP_SET_REGISTER, abi::SET_REGISTER_DWORDS);
    /// STORE_REGISTER.
    pub(super) const STORE_REGISTER: u32 =
        header(abi::OP_STORE_REGISTER, abi::STORE_REGISTER_DWORDS);
    /// LOAD_REGISTER.
    pub(super) const LOAD_REGISTER: u32 = header(abi::OP_LOAD_REGISTER, abi::LOAD_REGISTER_DWORDS);
    /// CHECKSUM.
    pub(super) const CHECKSUM: u32 = header(abi::OP_CHECKSUM, abi::CHECKSUM_DWORDS);
    /// TIMESTAMP.
    pub(super) const TIMESTAMP: u32 = header(abi::OP_TIMESTAMP, abi::TIMESTAMP_DWORDS);
    /// SPIN.
    pub(super) const SPIN: u32 = header(abi::OP_SPIN, abi::SPIN_DWORDS);
    /// POLL.
    pub(super) const POLL: u32 = header(abi::OP_POLL, abi::POLL_DWORDS);
}

impl Packet {
    /// Returns the packet at the start of `words` and what is behind it, or [`None`] if it breaks a
    /// rule.
    #[inline(always)]
    pub(in crate::backend) fn take(words: &[u32]) -> Option<(Self, &[u32])> {
        match *words.first()? {
            headers::FILL => Self::with(words, Self::fill),
            headers::COPY => Self::with(words, Self::copy),
            headers::BLEND => Self::with(words, Self::blend),
            headers::STORE => Self::with(words, Self::store),
            headers::ADD => Self::with(words, Self::add),
            headers::SET_REGISTER => Self::with(words, Self::set_register),
            headers::STORE_REGISTER => Self::with(words, Self::store_register),
            headers::LOAD_REGISTER => Self::with(words, Self::load_register),
            headers::CHECKSUM => Self::with(words, Self::checksum),
            headers::TIMESTAMP => Self::with(words, Self::timestamp),
            headers::SPIN => Self::with(words, Self::spin),
            headers::POLL => Self::with(words, Self::poll),
            header => Self::nop(header, words),
        }
    }

    /// Cuts off a packet of `N` dwords and decodes it.
    #[inline(always)]
    fn with<const N: usize>(
        words: &[u32],
        decode: impl FnOnce(&[u32; N]) -> Option<Self>,
    ) -> Option<(Self, &[u32])> {
        let (packet, rest) = words.split_first_chunk()?;
        Some((decode(packet)?, rest))
    }

    /// Cuts off a NOP, the one packet whose length varies.
    fn nop(header: u32, words: &[u32]) -> Option<(Self, &[u32])> {
        if !Self::is_nop(header) {
            return None;
        }
        let (_, rest) = words.split_at_checked(length(header)?)?;
        Some((Packet::Nop, rest))
    }

    /// Decodes FILL.
    #[inline(always)]
    fn fill(packet: &[u32; abi::FILL_DWORDS]) -> Option<Self> {
        let &[_, pattern, low, high, pitch, width, height, 0] = packet else {
            return None;
        };
        Some(Packet::Fill {
            pattern,
            to: Rectangle {
                address: wide(low, high),
                pitch,
            },
            extent: Extent::checked(width, height, [pitch, pitch])?,
        })
    }

    /// Decodes COPY.
    #[inline(always)]
    fn copy(packet: &[u32; abi::COPY_DWORDS]) -> Option<Self> {
        let (to, from, extent) = Self::pair(packet)?;
        Some(Packet::Copy { to, from, extent })
    }

    /// Decodes BLEND.
    #[inline(always)]
    fn blend(packet: &[u32; abi::BLEND_DWORDS]) -> Option<Self> {
        let (to, from, extent) = Self::pair(packet)?;
        Some(Packet::Blend { to, from, extent })
    }

    /// Decodes a packet with two rectangles.
    #[inline(always)]
    fn pair(packet: &[u32; abi::COPY_DWORDS]) -> Option<(Rectangle, Rectangle, Extent)> {
        let &[_, 0, to_low, to_high, from_low, from_high, to_pitch, from_pitch, width, height] =
            packet
        else {
            return None;
        };
        let to = Rectangle {
            address: wide(to_low, to_high),
            pitch: to_pitch,
        };
        let from = Rectangle {
            address: wide(from_low, from_high),
            pitch: from_pitch,
        };
        let extent = Extent::checked(width, height, [to_pitch, from_pitch])?;
        Some((to, from, extent))
    }

    /// Decodes STORE.
    #[inline(always)]
    fn store(packet: &[u32; abi::STORE_DWORDS]) -> Option<Self> {
        let (to, value) = Self::value(packet)?;
        Some(Packet::Store { to, value })
    }

    /// Decodes ADD.
    #[inline(always)]
    fn add(packet: &[u32; abi::ADD_DWORDS]) -> Option<Self> {
        let (to, value) = Self::value(packet)?;
        Some(Packet::Add { to, value })
    }

    /// Decodes a packet with an address and a 64-bit value.
    #[inline(always)]
    fn value(packet: &[u32; abi::STORE_DWORDS]) -> Option<(u64, u64)> {
        let &[_, 0, low, high, value_low, value_high] = packet else {
            return None;
        };
        Some((wide(low, high), wide(value_low, value_high)))
    }

    /// Decodes SET_REGISTER.
    #[inline(always)]
    fn set_register(packet: &[u32; abi::SET_REGISTER_DWORDS]) -> Option<Self> {
        let (index, value) = Self::register(packet)?;
        Some(Packet::SetRegister { index, value })
    }

    /// Decodes STORE_REGISTER.
    #[inline(always)]
    fn store_register(packet: &[u32; abi::STORE_REGISTER_DWORDS]) -> Option<Self> {
        let (index, to) = Self::register(packet)?;
        Some(Packet::StoreRegister { index, to })
    }

    /// Decodes LOAD_REGISTER.
    #[inline(always)]
    fn load_register(packet: &[u32; abi::LOAD_REGISTER_DWORDS]) -> Option<Self> {
        let (index, from) = Self::register(packet)?;
        Some(Packet::LoadRegister { index, from })
    }

    /// Decodes a packet with a register and a 64-bit operand.
    #[inline(always)]
    fn register(packet: &[u32; abi::SET_REGISTER_DWORDS]) -> Option<(Register, u64)> {
        let &[_, index, low, high] = packet;
        Some((Register::checked(index)?, wide(low, high)))
    }

    /// Decodes CHECKSUM.
    #[inline(always)]
    fn checksum(packet: &[u32; abi::CHECKSUM_DWORDS]) -> Option<Self> {
        let &[_, bytes, to_low, to_high, from_low, from_high] = packet;
        if bytes == 0 {
            return None;
        }
        Some(Packet::Checksum {
            bytes,
            to: wide(to_low, to_high),
            from: wide(from_low, from_high),
        })
    }

    /// Decodes TIMESTAMP.
    #[inline(always)]
    fn timestamp(packet: &[u32; abi::TIMESTAMP_DWORDS]) -> Option<Self> {
        let &[_, 0, low, high] = packet else {
            return None;
        };
        Some(Packet::Timestamp {
            to: wide(low, high),
        })
    }

    /// Decodes SPIN.
    #[inline(always)]
    fn spin(packet: &[u32; abi::SPIN_DWORDS]) -> Option<Self> {
        let &[_, 0, low, high] = packet else {
            return None;
        };
        let time = wide(low, high);
        Some(Packet::Spin {
            nanoseconds: (time != abi::SPIN_FOREVER).then_some(time),
        })
    }

    /// Decodes POLL.
    #[inline(always)]
    fn poll(packet: &[u32; abi::POLL_DWORDS]) -> Option<Self> {
        let &[_, 0, low, high, mask_low, mask_high, value_low, value_high] = packet else {
            return None;
        };
        Some(Packet::Poll {
            from: wide(low, high),
            mask: wide(mask_low, mask_high),
            value: wide(value_low, value_high),
        })
    }
}
