// SPDX-License-Identifier: GPL-2.0

//! What rectangles do, byte by byte: as slow and as plain as the text that defines them.

use kernel::prelude::*;

/// Two rectangles in one array of bytes that stands for the start of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Offset and pitch of the destination.
    pub(super) to: (usize, usize),
    /// Offset and pitch of the source.
    pub(super) from: (usize, usize),
    /// Bytes of a row.
    pub(super) width: usize,
    /// Rows.
    pub(super) height: usize,
}

/// What happens to a byte: old byte of the destination, byte of the source, alpha of the source.
type Mix = fn(u8, u8, u8) -> u8;

/// A byte is copied.
pub(super) fn copied(_to: u8, from: u8, _alpha: u8) -> u8 {
    from
}

/// A byte is laid over another.
pub(super) fn blended(to: u8, from: u8, alpha: u8) -> u8 {
    let sum = u32::from(from) + (u32::from(to) * (255 - u32::from(alpha)) + 127) / 255;
    sum.min(255) as u8
}

/// Works on the rectangles as COPY and BLEND do: rows in order, pieces in order, a piece read
/// completely before it is written.
pub(super) fn pair(memory: &mut [u8], pair: Pair, mix: Mix) -> Result {
    let ascending = pair.to.0 <= pair.from.0;
    for index in 0..pair.height {
        let row = if ascending {
            index
        } else {
            pair.height - 1 - index
        };
        let to = pair.to.0 + row * pair.to.1;
        let from = pair.from.0 + row * pair.from.1;
        let mut cuts = KVec::new();
        cuts.push(0, GFP_KERNEL)?;
        for at in 1..pair.width {
            if (to + at) % 65536 == 0 {
                cuts.push(at, GFP_KERNEL)?;
            }
        }
        cuts.push(pair.width, GFP_KERNEL)?;
        for piece in 0..cuts.len() - 1 {
            let piece = if ascending {
                piece
            } else {
                cuts.len() - 2 - piece
            };
            let (start, end) = (cuts[piece], cuts[piece + 1]);
            let mut source = KVVec::new();
            source.extend_from_slice(&memory[from + start..from + end], GFP_KERNEL)?;
            for at in 0..end - start {
                let byte = &mut memory[to + start + at];
                *byte = mix(*byte, source[at], source[at / 4 * 4 + 3]);
            }
        }
    }
    Ok(())
}

/// Fills a rectangle.
pub(super) fn fill(
    memory: &mut [u8],
    pattern: u32,
    to: (usize, usize),
    width: usize,
    height: usize,
) {
    for row in 0..height {
        for at in 0..width {
            memory[to.0 + row * to.1 + at] = pattern.to_le_bytes()[at % 4];
        }
    }
}

/// Returns the CRC-32C of `bytes`.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 {
                sum >> 1 ^ 0x82f6_3b78
            } else {
                sum >> 1
            };
        }
    }
    !sum
}
