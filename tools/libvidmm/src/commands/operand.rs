// SPDX-License-Identifier: GPL-2.0

//! Operands: what a packet names, and the form of what it touches there.

/// An address in a packet: a byte inside an instance of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Handle of the allocation.
    pub allocation: u32,
    /// Instance, or `INSTANCE_CURRENT`.
    pub instance: u32,
    /// Bytes from the start of the instance.
    pub offset: u64,
}

impl Operand {
    /// Returns the same place in another instance.
    pub fn instance(self, instance: u32) -> Self {
        Self { instance, ..self }
    }

    /// Returns the place `bytes` further on.
    pub fn forward(self, bytes: u64) -> Self {
        Self {
            offset: self.offset + bytes,
            ..self
        }
    }
}

/// A rectangle of one operand, in bytes and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// Bytes from row to row.
    pub pitch: u32,
    /// Bytes of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// The form of a rectangle that goes from one operand to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rectangle {
    /// Bytes from row to row of the destination.
    pub dst_pitch: u32,
    /// Bytes from row to row of the source.
    pub src_pitch: u32,
    /// Bytes of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}
