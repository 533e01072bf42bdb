// SPDX-License-Identifier: GPL-2.0

//! The packets of clients: what the dwords mean.
//!
//! A command buffer is a stream of packets, each an even number of dwords with its length in the
//! header. [`Packet::take`] turns the first one into a value and checks every rule on the way.
//! Checking at submission ([`parse`]) and execution on a node both go through it, so nothing can be
//! accepted by one and misread by the other.
//!
//! This is the command set of every node that the driver plays itself, whatever the backend.

mod stream;

#[cfg(CONFIG_KUNIT)]
mod tests;

use super::{
    address::wide,
    Access,
    Stop, //
};
use crate::uapi::abi::engine as abi;

pub(crate) use self::stream::parse;
pub(super) use self::stream::Stream;

/// A rectangle in memory, seen from one address operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rectangle {
    /// Address of its first byte.
    pub(super) address: u64,
    /// Bytes from row to row.
    pub(super) pitch: u32,
}

/// Extent of a rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Bytes of a row.
    pub(super) width: u32,
    /// Rows.
    pub(super) height: u32,
}

impl Extent {
    /// Returns the extent unless the rules for a rectangle with these pitches are broken.
    #[inline(always)]
    fn checked(width: u32, height: u32, pitches: [u32; 2]) -> Option<Self> {
        let [first, second] = pitches;
        let aligned = (width | first | second) % abi::PITCH_ALIGN == 0;
        let sound = aligned && width > 0 && height > 0 && first >= width && second >= width;
        sound.then_some(Self { width, height })
    }

    /// Returns how many bytes a packet may touch from the first byte on.
    #[inline(always)]
    fn reach(self, pitch: u32) -> u64 {
        // OVERFLOW: the product of two 32-bit numbers and a third one fit in 64 bits.
        u64::from(self.height.wrapping_sub(1)) * u64::from(pitch) + u64::from(self.width)
    }

    /// Returns how many bytes the rectangle has.
    pub(super) fn bytes(self) -> u64 {
        // OVERFLOW: the product of two 32-bit numbers fits in 64 bits.
        u64::from(self.height) * u64::from(self.width)
    }
}

/// A packet of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// Nothing.
    Nop,
    /// Rows become a pattern.
    Fill {
        /// What is written.
        pattern: u32,
        /// Where.
        to: Rectangle,
        /// How much.
        extent: Extent,
    },
    /// A rectangle is copied.
    Copy {
        /// Destination.
        to: Rectangle,
        /// Source.
        from: Rectangle,
        /// How much.
        extent: Extent,
    },
    /// A rectangle of pixels is laid over another.
    Blend {
        /// Destination.
        to: Rectangle,
        /// Source.
        from: Rectangle,
        /// How much.
        extent: Extent,
    },
    /// One 64-bit store.
    Store {
        /// Where.
        to: u64,
        /// What.
        value: u64,
    },
    /// One atomic 64-bit addition.
    Add {
        /// Where.
        to: u64,
        /// What.
        value: u64,
    },
    /// A register gets a value.
    SetRegister {
        /// Which.
        index: Register,
        /// What.
        value: u64,
    },
    /// A register is stored.
    StoreRegister {
        /// Which.
        index: Register,
        /// Where.
        to: u64,
    },
    /// A register is loaded.
    LoadRegister {
        /// Which.
        index: Register,
        /// From where.
        from: u64,
    },
    /// The CRC-32C of a range is stored.
    Checksum {
        /// Length of the range.
        bytes: u32,
        /// Where the sum goes.
        to: u64,
        /// The range.
        from: u64,
    },
    /// The time is stored.
    Timestamp {
        /// Where.
        to: u64,
    },
    /// The node is kept busy.
    Spin {
        /// How long; [`None`] for ever.
        nanoseconds: Option<u64>,
    },
    /// The node is kept busy until memory has a value.
    Poll {
        /// Where to look.
        from: u64,
        /// The bits that matter.
        mask: u64,
        /// What they shall be.
        value: u64,
    },
}

/// The number of a register, in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Register(u32);

impl Register {
    /// Returns the register with this number, if it exists.
    fn checked(index: u32) -> Option<Self> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        ((index as usize) < abi::REGISTERS).then_some(Self(index))
    }

    /// Returns the number as an index.
    pub(super) const fn index(self) -> usize {
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.0 as usize
    }
}

/// Alignment of the addresses of ranges.
// CAST: a small constant.
const RANGE_ALIGN: u32 = abi::RANGE_ALIGN as u32;

/// Alignment of the addresses of values.
// CAST: a small constant.
const VALUE_ALIGN: u32 = abi::VALUE_ALIGN as u32;

/// Returns the length that a header says, unless it is none that a packet can have.
const fn length(header: u32) -> Option<usize> {
    // CAST: 16 bits.
    let length = (header >> abi::HEADER_LENGTH_SHIFT) as usize;
    if length >= abi::PACKET_DWORDS_MIN && length % 2 == 0 {
        Some(length)
    } else {
        None
    }
}

/// Returns the header of a packet.
const fn header(opcode: u32, dwords: usize) -> u32 {
    // CAST: the longest packet has a length of 16 bits.
    (dwords as u32) << abi::HEADER_LENGTH_SHIFT | opcode
}

/// Headers. Each packet but NOP has exactly one length and no flags, hence one header.
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
    pub(super) fn take(words: &[u32]) -> Option<(Self, &[u32])> {
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
        if header & (abi::HEADER_OPCODE_MASK | abi::HEADER_FLAGS_MASK) != abi::OP_NOP {
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

    /// Hands the address operands to `visit`, in ascending order.
    #[inline(always)]
    fn operands(self, mut visit: impl FnMut(Shape) -> Result<(), Stop>) -> Result<(), Stop> {
        let range = |dword: usize, reach, access| Shape {
            // CAST: less than the length of a packet.
            dword: dword as u32,
            align: RANGE_ALIGN,
            reach,
            access,
        };
        let value = |dword: usize, access| Shape {
            // CAST: less than the length of a packet.
            dword: dword as u32,
            align: VALUE_ALIGN,
            reach: abi::VALUE_REACH,
            access,
        };
        match self {
            Packet::Nop | Packet::SetRegister { .. } | Packet::Spin { .. } => Ok(()),
            Packet::Fill { to, extent, .. } => {
                visit(range(abi::FILL_DST, extent.reach(to.pitch), Access::Write))
            }
            Packet::Copy { to, from, extent } => {
                visit(range(abi::COPY_DST, extent.reach(to.pitch), Access::Write))?;
                visit(range(abi::COPY_SRC, extent.reach(from.pitch), Access::Read))
            }
            Packet::Blend { to, from, extent } => {
                visit(range(abi::BLEND_DST, extent.reach(to.pitch), Access::Write))?;
                visit(range(
                    abi::BLEND_SRC,
                    extent.reach(from.pitch),
                    Access::Read,
                ))
            }
            Packet::Store { .. } => visit(value(abi::STORE_DST, Access::Write)),
            Packet::Add { .. } => visit(value(abi::ADD_DST, Access::Write)),
            Packet::StoreRegister { .. } => visit(value(abi::STORE_REGISTER_DST, Access::Write)),
            Packet::LoadRegister { .. } => visit(value(abi::LOAD_REGISTER_SRC, Access::Read)),
            Packet::Checksum { bytes, .. } => {
                visit(value(abi::CHECKSUM_DST, Access::Write))?;
                visit(range(abi::CHECKSUM_SRC, bytes.into(), Access::Read))
            }
            Packet::Timestamp { .. } => visit(value(abi::TIMESTAMP_DST, Access::Write)),
            Packet::Poll { .. } => visit(value(abi::POLL_SRC, Access::Read)),
        }
    }
}

/// An address operand of a packet, before its place in the stream is known.
struct Shape {
    /// Dword in the packet.
    dword: u32,
    /// Alignment.
    align: u32,
    /// Bytes it may touch.
    reach: u64,
    /// How.
    access: Access,
}
