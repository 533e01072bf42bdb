// SPDX-License-Identifier: GPL-2.0

//! Premultiplied source-over of ARGB8888 pixels.
//!
//! For each of the four bytes, `d = min(255, s + (d * (255 - a) + 127) / 255)` with integer division,
//! where `a` is the alpha of the source, bits 24 to 31. The four bytes of a pixel are worked on at
//! once, each in a lane of 16 bits.

/// The low byte of each lane.
const LANES: u64 = 0x00ff_00ff_00ff_00ff;

/// One in each lane.
const ONES: u64 = 0x0001_0001_0001_0001;

/// Lays the pixels of `from` over those of `to`, as far as both go.
pub(super) fn over(to: &mut [u32], from: &[u32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = pixel(u32::from_le(*to), u32::from_le(*from)).to_le();
    }
}

/// Lays pixel `source` over pixel `target`.
const fn pixel(target: u32, source: u32) -> u32 {
    let rest = 255 - (source >> 24);
    if rest == 0 {
        return source;
    }
    // A lane of the product is at most 255 * 255 + 127. For such an x, x / 255 is
    // (x + 1 + ((x + 1) >> 8)) >> 8, and nothing of it leaves 16 bits.
    // CAST: widening; `From` is not const.
    let next = spread(target) * rest as u64 + 128 * ONES;
    let quotient = (next + (next >> 8 & LANES)) >> 8 & LANES;
    let sum = spread(source) + quotient;
    // A lane beyond 255 has bit 8 set; it becomes all ones.
    let over = sum >> 8 & ONES;
    gather((sum | (over << 8) - over) & LANES)
}

/// Puts the bytes of a pixel into lanes: first the even ones, then the odd ones.
const fn spread(pixel: u32) -> u64 {
    // CAST: widening; `From` is not const.
    let pixel = pixel as u64;
    (pixel | pixel << 24) & LANES
}

/// Puts the lanes, all at most 255, back into the bytes of a pixel.
const fn gather(lanes: u64) -> u32 {
    // CAST: the low half, which has all four bytes.
    (lanes | lanes >> 24) as u32
}

#[cfg(CONFIG_KUNIT)]
#[kernel::macros::kunit_tests(vidmm_backend_blend)]
mod tests {
    use super::*;

    /// The definition for one byte.
    fn byte(target: u32, source: u32, alpha: u32) -> u32 {
        (source + (target * (255 - alpha) + 127) / 255).min(255)
    }

    #[test]
    fn lanes_match_definition() {
        for alpha in 0..=255 {
            for target in 0..=255 {
                // The other bytes are as different as can be: nothing may leak into a lane.
                let source = (alpha * 7 + target * 3) & 0xff;
                let result = pixel(
                    target << 16 | 0xff00 | target,
                    alpha << 24 | source << 8 | source,
                );
                let expected = byte(0, alpha, alpha) << 24
                    | byte(target, 0, alpha) << 16
                    | byte(255, source, alpha) << 8
                    | byte(target, source, alpha);
                assert_eq!(result, expected);
            }
        }
    }

    #[test]
    fn opaque_source_replaces_and_clear_source_keeps() {
        assert_eq!(pixel(0x1234_5678, 0xff01_0203), 0xff01_0203);
        assert_eq!(pixel(0x1234_5678, 0), 0x1234_5678);
    }
}
