// SPDX-License-Identifier: GPL-2.0

//! What the parser takes and what it refuses.

use kernel::prelude::*;

use super::parse;
use crate::{
    backend::{
        address::{
            address,
            patch,
            place, //
        },
        Event,
        Patched,
        Stop,
        Unparsed, //
    },
    units::{
        Place,
        SegmentId, //
    }, //
};

#[kernel::macros::kunit_tests(vidmm_backend_packet)]
mod suite {
    use super::*;

    /// One well-formed packet of each kind.
    const GOOD: [&[u32]; 13] = [
        &[2 << 16, 9],
        &[8 << 16 | 1, 7, 0, 0, 8, 8, 3, 0],
        &[10 << 16 | 2, 0, 0, 0, 0, 0, 8, 12, 8, 2],
        &[10 << 16 | 3, 0, 0, 0, 0, 0, 8, 12, 8, 2],
        &[6 << 16 | 4, 0, 0, 0, 1, 2],
        &[6 << 16 | 5, 0, 0, 0, 1, 2],
        &[4 << 16 | 6, 15, 1, 2],
        &[4 << 16 | 7, 15, 0, 0],
        &[4 << 16 | 8, 15, 0, 0],
        &[6 << 16 | 9, 1, 0, 0, 0, 0],
        &[4 << 16 | 10, 0, 0, 0],
        &[4 << 16 | 11, 0, 1, 2],
        &[8 << 16 | 12, 0, 0, 0, 1, 2, 3, 4],
    ];

    /// Returns how many operands `words` have, or what is wrong with them.
    fn operands(words: &[u32]) -> Result<usize, Unparsed> {
        let mut count = 0;
        parse(words, |event| {
            if let Event::Operand(_) = event {
                count += 1;
            }
            Ok(())
        })?;
        Ok(count)
    }

    /// Returns whether `words` break a rule in their first packet.
    fn is_bad(words: &[u32]) -> bool {
        operands(words) == Err(Unparsed::BadPacket { offset: 0 })
    }

    /// Returns a copy of `words` with one changed.
    fn changed(words: &[u32], at: usize, value: u32) -> Result<KVec<u32>> {
        let mut copy = KVec::new();
        copy.extend_from_slice(words, GFP_KERNEL)?;
        copy[at] = value;
        Ok(copy)
    }

    #[test]
    fn well_formed_packets_are_accepted() {
        let expected = [0, 1, 2, 2, 1, 1, 0, 1, 1, 2, 1, 0, 1];
        for (packet, count) in GOOD.iter().zip(expected) {
            assert_eq!(operands(packet), Ok(count));
        }
    }

    #[test]
    fn wrong_headers_are_bad() -> Result {
        for packet in GOOD {
            let header = packet[0];
            assert!(is_bad(&changed(packet, 0, header | 0x100)?));
            assert!(is_bad(&changed(packet, 0, header | 0x8000)?));
            assert!(is_bad(&changed(packet, 0, header + (2 << 16))?));
            assert!(is_bad(&changed(packet, 0, header - (2 << 16))?));
            assert!(is_bad(&changed(packet, 0, header + (1 << 16))?));
            assert!(is_bad(&packet[..packet.len() - 1]));
            for opcode in [0x0d, 0x3f, 0x40, 0x42, 0x4f, 0x50, 0xff] {
                assert!(is_bad(&changed(packet, 0, header & !0xff | opcode)?));
            }
        }
        Ok(())
    }

    #[test]
    fn rules_of_fields_are_kept() -> Result {
        // Packet, dword, value that it must not have.
        let wrong: [(usize, usize, u32); 25] = [
            (1, 4, 4),
            (1, 4, 9),
            (1, 5, 0),
            (1, 5, 6),
            (1, 6, 0),
            (1, 7, 1),
            (2, 1, 1),
            (2, 6, 4),
            (2, 6, 10),
            (2, 7, 4),
            (2, 7, 14),
            (2, 8, 0),
            (2, 8, 2),
            (2, 9, 0),
            (3, 1, 1),
            (3, 9, 0),
            (4, 1, 1),
            (5, 1, 1),
            (6, 1, 16),
            (7, 1, 16),
            (8, 1, u32::MAX),
            (9, 1, 0),
            (10, 1, 1),
            (11, 1, 1),
            (12, 1, 1),
        ];
        for (packet, at, value) in wrong {
            assert!(is_bad(&changed(GOOD[packet], at, value)?));
        }
        Ok(())
    }

    #[test]
    fn operands_are_reported_in_order() -> Result {
        let mut words = KVec::new();
        for packet in GOOD {
            words.extend_from_slice(packet, GFP_KERNEL)?;
        }
        let (mut packets, mut last, mut start) = (0, 0, 0);
        let parsed = parse(&words, |event| {
            match event {
                Event::Packet { offset } => {
                    packets += 1;
                    start = offset;
                }
                Event::Operand(operand) => {
                    if operand.dword <= last || operand.packet != start {
                        return Err(Stop);
                    }
                    last = operand.dword;
                }
            }
            Ok(())
        });
        assert_eq!(parsed, Ok(()));
        assert_eq!(packets, GOOD.len());
        Ok(())
    }

    #[test]
    fn reach_is_computed_in_64_bits() {
        let all = u32::MAX - 3;
        let mut reach = 0;
        let parsed = parse(&[8 << 16 | 1, 7, 0, 0, all, 4, u32::MAX, 0], |event| {
            if let Event::Operand(operand) = event {
                reach = operand.reach;
            }
            Ok(())
        });
        assert_eq!(parsed, Ok(()));
        assert_eq!(reach, 0xffff_fffe * 0xffff_fffc + 4);
    }

    #[test]
    fn bad_packet_is_named_by_its_offset() -> Result {
        let mut words = KVec::new();
        words.extend_from_slice(GOOD[1], GFP_KERNEL)?;
        words.extend_from_slice(GOOD[0], GFP_KERNEL)?;
        words.extend_from_slice(&[2 << 16 | 0x40, 0], GFP_KERNEL)?;
        assert_eq!(operands(&words), Err(Unparsed::BadPacket { offset: 40 }));
        assert_eq!(operands(&[]), Ok(0));
        assert!(is_bad(&[0, 0]));
        Ok(())
    }

    #[test]
    fn patch_writes_only_what_differs() -> Result {
        let segment = SegmentId::new(3).ok_or(EINVAL)?;
        let wanted = Place::new(segment, 0x12_3456_7890);
        let mut words = [1, 2, 3, 4];
        assert_eq!(patch(&mut words, 2, wanted), Patched::Written);
        assert_eq!(words, [1, 2, 0x3456_7890, 0x0300_0012]);
        assert_eq!(patch(&mut words, 2, wanted), Patched::Unchanged);
        assert_eq!(patch(&mut words, 3, wanted), Patched::Unchanged);
        assert_eq!(place(address(wanted)), Some(wanted));
        assert_eq!(place(32 << 56), None);
        Ok(())
    }

    #[test]
    fn random_changes_never_lead_outside() -> Result {
        let mut words = KVec::new();
        for packet in GOOD {
            words.extend_from_slice(packet, GFP_KERNEL)?;
        }
        let mut state = 1u32;
        let mut below = |end: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % end
        };
        for _ in 0..3000 {
            let at = below(words.len());
            let before = words[at];
            words[at] ^= 1 << below(32);
            let end = below(words.len() + 1);
            let mut inside = true;
            let _ = parse(&words[..end], |event| {
                if let Event::Operand(operand) = event {
                    inside &= (operand.dword as usize) + 2 <= end && operand.reach >= 1;
                }
                Ok(())
            });
            assert!(inside);
            words[at] = before;
        }
        Ok(())
    }
}
