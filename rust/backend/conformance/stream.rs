// SPDX-License-Identifier: GPL-2.0

//! Client commands, written packet by packet.

use kernel::prelude::*;

use crate::{
    uapi::abi::engine as abi,
    units::Place, //
};

/// A command buffer that grows.
pub(super) struct Stream(KVVec<u32>);

/// A rectangle: its first byte and the bytes from row to row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    /// First byte.
    pub(super) place: Place,
    /// Bytes from row to row.
    pub(super) pitch: u32,
}

impl Stream {
    /// Returns an empty buffer.
    pub(super) fn new() -> Self {
        Self(KVVec::new())
    }

    /// Returns the dwords.
    pub(super) fn words(&self) -> &[u32] {
        &self.0
    }

    /// Adds a packet with the operands behind dword 1.
    pub(super) fn packet(&mut self, opcode: u32, first: u32, rest: &[u32]) -> Result<&mut Self> {
        let length = rest.len() as u32 + 2;
        self.0.push(length << 16 | opcode, GFP_KERNEL)?;
        self.0.push(first, GFP_KERNEL)?;
        self.0.extend_from_slice(rest, GFP_KERNEL)?;
        Ok(self)
    }

    /// Adds FILL.
    pub(super) fn fill(
        &mut self,
        pattern: u32,
        to: Side,
        width: u32,
        height: u32,
    ) -> Result<&mut Self> {
        let [low, high] = address(to.place);
        let rest = [low, high, to.pitch, width, height, 0];
        self.packet(abi::OP_FILL, pattern, &rest)
    }

    /// Adds COPY or BLEND.
    pub(super) fn pair(
        &mut self,
        opcode: u32,
        to: Side,
        from: Side,
        width: u32,
        height: u32,
    ) -> Result<&mut Self> {
        let [to_low, to_high] = address(to.place);
        let [from_low, from_high] = address(from.place);
        let rest = [
            to_low, to_high, from_low, from_high, to.pitch, from.pitch, width, height,
        ];
        self.packet(opcode, 0, &rest)
    }

    /// Adds a copy of adjacent bytes.
    pub(super) fn copy(&mut self, to: Place, from: Place, bytes: u32) -> Result<&mut Self> {
        let to = Side {
            place: to,
            pitch: bytes,
        };
        let from = Side {
            place: from,
            pitch: bytes,
        };
        self.pair(abi::OP_COPY, to, from, bytes, 1)
    }

    /// Adds STORE or ADD.
    pub(super) fn store(&mut self, opcode: u32, to: Place, value: u64) -> Result<&mut Self> {
        let [low, high] = address(to);
        let [value_low, value_high] = halves(value);
        self.packet(opcode, 0, &[low, high, value_low, value_high])
    }

    /// Adds SPIN.
    pub(super) fn spin(&mut self, nanoseconds: u64) -> Result<&mut Self> {
        self.packet(abi::OP_SPIN, 0, &halves(nanoseconds))
    }

    /// Adds POLL.
    pub(super) fn poll(&mut self, from: Place, mask: u64, value: u64) -> Result<&mut Self> {
        let [low, high] = address(from);
        let [mask_low, mask_high] = halves(mask);
        let [value_low, value_high] = halves(value);
        let rest = [low, high, mask_low, mask_high, value_low, value_high];
        self.packet(abi::OP_POLL, 0, &rest)
    }

    /// Adds SET_REGISTER.
    pub(super) fn set_register(&mut self, index: u32, value: u64) -> Result<&mut Self> {
        self.packet(abi::OP_SET_REGISTER, index, &halves(value))
    }

    /// Adds STORE_REGISTER or LOAD_REGISTER.
    pub(super) fn register(&mut self, opcode: u32, index: u32, place: Place) -> Result<&mut Self> {
        self.packet(opcode, index, &address(place))
    }

    /// Adds CHECKSUM.
    pub(super) fn checksum(&mut self, to: Place, from: Place, bytes: u32) -> Result<&mut Self> {
        let [to_low, to_high] = address(to);
        let [from_low, from_high] = address(from);
        let rest = [to_low, to_high, from_low, from_high];
        self.packet(abi::OP_CHECKSUM, bytes, &rest)
    }
}

/// Returns the halves of a 64-bit operand, low half first.
fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// Returns the halves of the physical address of a place.
fn address(place: Place) -> [u32; 2] {
    halves(u64::from(place.segment.get()) << 56 | place.offset)
}
