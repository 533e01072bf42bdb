// SPDX-License-Identifier: GPL-2.0

//! Rectangles and ranges: FILL, COPY, BLEND and CHECKSUM.
//!
//! A rectangle is worked on row by row, and a row in *pieces* that do not cross a 64 KiB boundary of
//! the destination. A piece is checked before its first byte is written; between pieces others get
//! the CPU, and a stop request is obeyed. Rows without gaps between them are one long row.

use kernel::prelude::*;

use super::{
    access::Direction,
    blend,
    execution::{
        Execution,
        Halt, //
    },
    memory::Memory,
    parts::{
        Parts,
        LONGEST, //
    }, //
};
use crate::backend::{
    packet::{
        Extent,
        Rectangle, //
    },
    FaultAccess, //
};

/// No piece crosses a multiple of this address.
const BOUNDARY: u64 = LONGEST;

/// Pixels that are blended at once.
const CHUNK: usize = 1024;

/// Bytes of a pixel.
const PIXEL: u64 = 4;

/// The start of a CRC-32C, and what its end is inverted with.
const CRC_ONES: u32 = u32::MAX;

/// Room to work in.
pub(super) struct Scratch {
    /// What a piece of the destination consists of.
    pub(super) target: KBox<Parts>,
    /// What a piece of the source consists of.
    pub(super) source: KBox<Parts>,
    /// Pixels of the destination of a BLEND.
    to: KBox<[u32; CHUNK]>,
    /// Pixels of its source.
    from: KBox<[u32; CHUNK]>,
}

impl Scratch {
    /// Returns new room.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    // All of it is on the stack once.
    #[inline(never)]
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            target: KBox::new(Parts::new(), GFP_KERNEL)?,
            source: KBox::new(Parts::new(), GFP_KERNEL)?,
            to: KBox::new([0; CHUNK], GFP_KERNEL)?,
            from: KBox::new([0; CHUNK], GFP_KERNEL)?,
        })
    }
}

/// Rows of one or two rectangles, and the order in which they are worked on.
struct Rows {
    /// Bytes of a row.
    width: u64,
    /// How many there are.
    height: u64,
    /// The order.
    direction: Direction,
}

impl Rows {
    /// Returns the rows of an extent; `whole` says that there are no gaps between them.
    fn new(extent: Extent, whole: bool, direction: Direction) -> Self {
        let (width, height) = if whole {
            (extent.bytes(), 1)
        } else {
            (extent.width.into(), extent.height.into())
        };
        Self {
            width,
            height,
            direction,
        }
    }

    /// Calls `work` with row, offset in the row and length of each piece of a rectangle at `address`,
    /// in order.
    fn pieces(
        &self,
        to: Rectangle,
        mut work: impl FnMut(u64, u64, u64) -> Result<(), Halt>,
    ) -> Result<(), Halt> {
        for index in 0..self.height {
            let row = match self.direction {
                Direction::Ascending => index,
                Direction::Descending => self.height - 1 - index,
            };
            let start = to.row(row);
            match self.direction {
                Direction::Ascending => {
                    let mut done = 0;
                    while done < self.width {
                        let bytes = piece_at(start.wrapping_add(done)).min(self.width - done);
                        work(row, done, bytes)?;
                        done += bytes;
                    }
                }
                Direction::Descending => {
                    let mut left = self.width;
                    while left > 0 {
                        let bytes = piece_before(start.wrapping_add(left)).min(left);
                        left -= bytes;
                        work(row, left, bytes)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Rectangle {
    /// Returns the address of a row.
    fn row(self, row: u64) -> u64 {
        self.address
            .wrapping_add(row.wrapping_mul(self.pitch.into()))
    }

    /// Returns whether rows of `width` bytes have no gaps between them.
    const fn is_whole(self, extent: Extent) -> bool {
        self.pitch == extent.width || extent.height == 1
    }
}

/// Returns the length of the longest piece that begins at `address`.
const fn piece_at(address: u64) -> u64 {
    BOUNDARY - address % BOUNDARY
}

/// Returns the length of the longest piece that ends at `end`.
const fn piece_before(end: u64) -> u64 {
    match end % BOUNDARY {
        0 => BOUNDARY,
        bytes => bytes,
    }
}

impl Execution<'_> {
    /// FILL.
    pub(super) fn fill(&mut self, pattern: u32, to: Rectangle, extent: Extent) -> Result<(), Halt> {
        let rows = Rows::new(extent, to.is_whole(extent), Direction::Ascending);
        rows.pieces(to, |row, offset, bytes| {
            let address = to.row(row).wrapping_add(offset);
            let mut piece = self.space.hold()?;
            let target = &mut *self.scratch.target;
            piece.reach(self.memory, address, bytes, FaultAccess::Write, target)?;
            self.memory
                .fill_parts(target, pattern)
                .ok_or(Halt::OutOfRange(address))?;
            drop(piece);
            self.written(bytes)
        })
    }

    /// COPY.
    pub(super) fn copy(
        &mut self,
        to: Rectangle,
        from: Rectangle,
        extent: Extent,
    ) -> Result<(), Halt> {
        self.pairs(to, from, extent, |memory, scratch, _, direction| {
            memory.copy_parts(&scratch.target, &scratch.source, direction)
        })
    }

    /// BLEND.
    pub(super) fn blend(
        &mut self,
        to: Rectangle,
        from: Rectangle,
        extent: Extent,
    ) -> Result<(), Halt> {
        self.pairs(to, from, extent, blend_piece)
    }

    /// Calls `work` for each piece of two rectangles, with what it consists of in the scratch room, and
    /// its length.
    fn pairs(
        &mut self,
        to: Rectangle,
        from: Rectangle,
        extent: Extent,
        work: impl Fn(&Memory, &mut Scratch, u64, Direction) -> Option<()>,
    ) -> Result<(), Halt> {
        let whole = to.is_whole(extent) && from.is_whole(extent);
        let direction = Direction::safe(to.address, from.address);
        let rows = Rows::new(extent, whole, direction);
        rows.pieces(to, |row, offset, bytes| {
            let address = to.row(row).wrapping_add(offset);
            let origin = from.row(row).wrapping_add(offset);
            let mut piece = self.space.hold()?;
            let (memory, scratch) = (self.memory, &mut *self.scratch);
            let Scratch { target, source, .. } = scratch;
            piece.reach(memory, address, bytes, FaultAccess::Write, target)?;
            piece.reach(memory, origin, bytes, FaultAccess::Read, source)?;
            work(memory, scratch, bytes, direction).ok_or(Halt::OutOfRange(address))?;
            drop(piece);
            self.written(bytes)
        })
    }

    /// CHECKSUM.
    pub(super) fn checksum(&mut self, bytes: u32, to: u64, from: u64) -> Result<(), Halt> {
        let bytes = u64::from(bytes);
        let mut sum = CRC_ONES;
        let mut done = 0;
        while done < bytes {
            let address = from.wrapping_add(done);
            let length = piece_at(address).min(bytes - done);
            let mut piece = self.space.hold()?;
            let source = &mut *self.scratch.source;
            piece.reach(self.memory, address, length, FaultAccess::Read, source)?;
            sum = self
                .memory
                .crc32c_parts(source, sum)
                .ok_or(Halt::OutOfRange(address))?;
            drop(piece);
            done += length;
            self.interruption.pass()?;
        }
        self.store(to, u64::from(sum ^ CRC_ONES))
    }

    /// Counts a piece and lets others have the CPU.
    fn written(&mut self, bytes: u64) -> Result<(), Halt> {
        self.bytes += bytes;
        Ok(self.interruption.pass()?)
    }
}

/// Blends one piece, in chunks that do not overwrite what later chunks read.
fn blend_piece(
    memory: &Memory,
    scratch: &mut Scratch,
    bytes: u64,
    direction: Direction,
) -> Option<()> {
    // CAST: a small constant.
    let chunk = CHUNK as u64 * PIXEL;
    let chunks = bytes.div_ceil(chunk);
    for index in 0..chunks {
        let offset = match direction {
            Direction::Ascending => index * chunk,
            Direction::Descending => (chunks - 1 - index) * chunk,
        };
        // CAST: at most a chunk.
        let pixels = (chunk.min(bytes - offset) / PIXEL) as usize;
        let to = scratch.to.get_mut(..pixels)?;
        let from = scratch.from.get_mut(..pixels)?;
        memory.read_parts(&scratch.target, offset, to.as_mut_bytes())?;
        memory.read_parts(&scratch.source, offset, from.as_mut_bytes())?;
        blend::over(to, from);
        memory.write_parts(&scratch.target, offset, to.as_bytes())?;
    }
    Some(())
}
