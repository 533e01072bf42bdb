// SPDX-License-Identifier: GPL-2.0

//! The packets of clients: what the dwords mean.
//!
//! A command buffer is a stream of packets, each an even number of dwords with its length in the
//! header. [`Packet::take`] turns the first one into a value and checks every rule on the way.
//! Checking at submission ([`parse`]) and execution on a node both go through it, so nothing can be
//! accepted by one and misread by the other.
//!
//! This is the command set of every node that the driver plays itself, whatever the backend.

mod decode;
mod stream;

#[cfg(CONFIG_KUNIT)]
mod tests;

use super::{
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
pub(super) const fn length(header: u32) -> Option<usize> {
    // CAST: 16 bits.
    let length = (header >> abi::HEADER_LENGTH_SHIFT) as usize;
    if length >= abi::PACKET_DWORDS_MIN && length % 2 == 0 {
        Some(length)
    } else {
        None
    }
}

impl Packet {
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

/// Dwords of the longest packet but NOP.
pub(super) const LONGEST: usize = abi::COPY_DWORDS;

impl Packet {
    /// Returns whether the addresses in `words`, the packet as it stands in memory, are aligned as
    /// their operands must be.
    pub(super) fn is_aligned(self, words: &[u32]) -> bool {
        self.operands(|shape| {
            // CAST: `usize` has 64 bits wherever this driver runs.
            match words.get(shape.dword as usize) {
                Some(low) if low % shape.align == 0 => Ok(()),
                _ => Err(Stop),
            }
        })
        .is_ok()
    }

    /// Returns whether `header` is that of a NOP, the one packet that may be longer than [`LONGEST`].
    pub(super) const fn is_nop(header: u32) -> bool {
        header & (abi::HEADER_OPCODE_MASK | abi::HEADER_FLAGS_MASK) == abi::OP_NOP
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
