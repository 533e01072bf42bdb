// SPDX-License-Identifier: GPL-2.0

//! Portions of small buffers, one rule at a time.

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_portion))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::super::super::eviction::{
        Bond,
        Candidate,
        Fate,
        Occupant,
        Rank, //
    };
    use super::super::super::patch_list::{
        Listed,
        PatchKind, //
    };
    use super::super::super::patch_list::{
        Lists,
        Patch, //
    };
    use super::super::super::resource_table::Table;
    use super::super::super::resource_table::{
        Use,
        NO_ALLOCATION, //
    };
    use super::super::portion::*;
    use super::super::{
        Area,
        Gap,
        Ground,
        Spot, //
    };
    use crate::units::SegmentId;

    const SEGMENT: SegmentId = match SegmentId::new(1) {
        Some(id) => id,
        None => SegmentId::SYSTEM,
    };

    /// `L(slot, offset, element)`.
    fn bind(slot: u32, split_offset: u32, alloc_index: u32) -> Patch {
        Patch {
            alloc_index,
            slot,
            kind: PatchKind::None,
            driver_id: 0,
            alloc_offset: 0,
            patch_offset: 0,
            split_offset,
        }
    }

    /// An element of so many pages, perhaps at a page of the segment.
    fn item(pages: u64, at: Option<u32>) -> Item {
        Item::new(Wanted {
            bytes: pages * 4096,
            align: 4096,
            segments: 0b10,
            preferred: 0,
            place: at.map(|page| Spot {
                segment: SEGMENT,
                page,
            }),
            hold: Hold::Loose,
        })
    }

    /// What becomes of the elements in a segment of 16 pages, of which `fixed` is not to be had.
    struct Outcome {
        /// First and last byte and what failed; or the entry that had no place.
        portion: Result<(u32, u32, Option<usize>), usize>,
        /// The page of each element.
        pages: [Option<u32>; 4],
    }

    fn occupant(key: u64, start: u32, pages: u32, fate: Fate) -> Occupant {
        let candidate = Candidate {
            key,
            pages,
            rank: Rank::default().tied(Bond::Loose),
        };
        Occupant::new(candidate, start..start + pages, fate, 0)
    }

    /// Plans the portion of a buffer of 1024 bytes that begins at `start`.
    fn run(patches: &[Patch], mut items: [Item; 4], start: Cut, fixed: Option<u32>) -> Outcome {
        let listed = Listed {
            object: 1,
            ..Listed::default()
        };
        let lists = Lists {
            bytes: 1024,
            listed: &[listed; 4],
            patches,
        };
        let (mut slots, mut uses) = ([0; 4], [Use::default(); 4]);
        let mut table = Table::new(&mut slots, &mut uses);
        let mut areas = [Area::new(16, 4096, 16)];
        let mut occupants = [occupant(0, 0, 0, Fate::Leaves); 16];
        let mut ground = Ground::new(&mut areas, &mut occupants);
        for (key, item) in (1..).zip(&items) {
            let wanted = &item.wanted;
            let pages = (wanted.bytes / 4096) as u32; // CAST: small numbers of the tests.
            if let Some(spot) = wanted.place {
                ground.add(SEGMENT, occupant(key, spot.page, pages, Fate::Leaves));
            }
        }
        if let Some(page) = fixed {
            ground.add(SEGMENT, occupant(9, page, 1, Fate::Stays));
        }
        ground.settle();
        let scratch = Scratch {
            order: &mut [0; 4],
            gaps: &mut [Gap::default(); 17],
        };
        let portion = plan(&lists, start, &mut items, &mut table, &mut ground, scratch);
        Outcome {
            portion: portion
                .map(|portion| (portion.start.offset, portion.end.offset, portion.failed))
                .map_err(|none| none.entry),
            pages: items.map(|item| item.spot().map(|spot| spot.page)),
        }
    }

    /// The cut at this offset, before this entry.
    fn at(offset: u32, entry: usize) -> Cut {
        Cut { offset, entry }
    }

    #[test]
    fn what_fits_runs_whole() {
        let patches = [bind(0, 0, 0), bind(1, 256, 1)];
        let items = [item(6, None), item(10, None), item(1, None), item(1, None)];
        let outcome = run(&patches, items, at(0, 0), None);
        assert_eq!(outcome.portion, Ok((0, 1024, None)));
        assert_eq!(outcome.pages, [Some(0), Some(6), None, None]);
    }

    #[test]
    fn cut_is_where_the_first_fails() {
        let patches = [
            bind(0, 0, 0),
            bind(1, 256, 1),
            bind(2, 256, 2),
            bind(0, 512, 3),
        ];
        let items = [item(6, None), item(6, None), item(6, None), item(6, None)];
        let outcome = run(&patches, items, at(0, 0), None);
        assert_eq!(outcome.portion, Ok((0, 256, Some(2))));
        assert_eq!(outcome.pages, [Some(0), Some(6), None, None]);
    }

    #[test]
    fn released_memory_serves_the_next_portion() {
        let patches = [bind(0, 0, 0), bind(0, 512, 1)];
        let items = [
            item(10, Some(0)),
            item(10, None),
            item(1, None),
            item(1, None),
        ];
        let first = run(&patches, items, at(0, 0), None);
        assert_eq!(first.portion, Ok((0, 512, Some(1))));
        let second = run(&patches, items, at(512, 1), None);
        assert_eq!(second.portion, Ok((512, 1024, None)));
        assert_eq!(second.pages, [None, Some(0), None, None]);
    }

    #[test]
    fn unbinding_lets_go() {
        let unbind = bind(0, 256, NO_ALLOCATION);
        let items = [
            item(10, Some(0)),
            item(10, None),
            item(1, None),
            item(1, None),
        ];
        let with = [bind(0, 0, 0), unbind, bind(1, 256, 1)];
        assert!(run(&with, items, at(256, 1), None).portion.is_ok());
        let without = [bind(0, 0, 0), bind(1, 256, 1)];
        assert_eq!(run(&without, items, at(256, 1), None).portion, Err(1));
    }

    #[test]
    fn bound_stays_although_it_is_in_the_way() {
        let patches = [bind(0, 0, 0), bind(1, 256, 1)];
        let items = [
            item(1, Some(8)),
            item(12, None),
            item(1, None),
            item(1, None),
        ];
        assert_eq!(
            run(&patches, items, at(0, 0), None).portion,
            Ok((0, 256, Some(1)))
        );
        let outcome = run(&patches, items, at(256, 1), None);
        assert_eq!(outcome.portion, Err(1));
        assert_eq!(outcome.pages, [Some(8), None, None, None]);
    }

    #[test]
    fn bound_anew_makes_way() {
        let patches = [bind(0, 0, 0), bind(0, 256, 0), bind(1, 256, 1)];
        let items = [
            item(1, Some(8)),
            item(12, None),
            item(1, None),
            item(1, None),
        ];
        let outcome = run(&patches, items, at(256, 1), None);
        assert_eq!(outcome.portion, Ok((256, 1024, None)));
        assert_eq!(outcome.pages, [Some(12), Some(0), None, None]);
    }

    /// A resource that is bound anew at each cut goes from one end to the other, whatever is kept in
    /// between. [DMA-23]
    #[test]
    fn large_resource_bound_anew_alternates() {
        let anew = [
            bind(1, 0, 1),
            bind(0, 0, 0),
            bind(0, 256, 0),
            bind(2, 256, 2),
        ];
        let mut place = 0;
        for turn in 0..6 {
            // Beside what is kept there is room for 8 pages on one side and for 7 on the other.
            let (kept, other) = if turn % 2 == 0 { (8, 9) } else { (7, 0) };
            let items = [
                item(7, Some(place)),
                item(1, Some(kept)),
                item(8, None),
                item(1, None),
            ];
            let outcome = run(&anew, items, at(256, 2), None);
            assert_eq!(outcome.portion, Ok((256, 1024, None)));
            assert_eq!(outcome.pages[..2], [Some(other), Some(kept)]);
            let fixed = [anew[0], anew[1], anew[3]];
            assert_eq!(run(&fixed, items, at(256, 2), None).portion, Err(2));
            place = other;
        }
    }

    #[test]
    fn another_slot_that_is_not_bound_anew_holds() {
        let patches = [
            bind(0, 0, 0),
            bind(2, 0, 0),
            bind(0, 256, 0),
            bind(1, 256, 1),
        ];
        let items = [
            item(1, Some(8)),
            item(12, None),
            item(1, None),
            item(1, None),
        ];
        assert_eq!(run(&patches, items, at(256, 2), None).portion, Err(3));
    }

    #[test]
    fn replaced_at_once_needs_no_place() {
        let patches = [bind(0, 0, 0), bind(0, 0, 1), bind(1, 0, 2)];
        let items = [item(14, None), item(8, None), item(8, None), item(1, None)];
        let outcome = run(&patches, items, at(0, 0), None);
        assert_eq!(outcome.portion, Ok((0, 1024, None)));
        assert_eq!(outcome.pages, [None, Some(0), Some(8), None]);
    }

    #[test]
    fn better_placement_saves_a_cut() {
        // Gaps of 7 and 8 pages: the first two in the first gap leave no room for the third.
        let patches = [bind(0, 0, 0), bind(1, 8, 1), bind(2, 16, 2)];
        let items = [item(3, None), item(4, None), item(8, None), item(1, None)];
        let outcome = run(&patches, items, at(0, 0), Some(7));
        assert_eq!(outcome.portion, Ok((0, 1024, None)));
        let patches = [bind(0, 0, 0), bind(1, 8, 1), bind(2, 16, 2)];
        let items = [item(4, None), item(4, None), item(7, None), item(1, None)];
        let outcome = run(&patches, items, at(0, 0), Some(7));
        assert_eq!(outcome.portion, Ok((0, 1024, None)));
        assert_eq!(outcome.pages, [Some(8), Some(12), Some(0), None]);
    }

    #[test]
    fn end_of_the_buffer_needs_nothing() {
        let patches = [bind(0, 0, 0), bind(1, 1024, 1)];
        let items = [item(16, None), item(8, None), item(1, None), item(1, None)];
        let outcome = run(&patches, items, at(0, 0), None);
        assert_eq!(outcome.portion, Ok((0, 1024, Some(1))));
    }

    #[test]
    fn what_is_kept_is_held_by_a_slot_that_is_left_alone() {
        let patches = [
            bind(0, 0, 0),
            bind(1, 0, 1),
            bind(2, 0, 2),
            bind(3, 0, 2),
            bind(0, 256, 0),
            bind(1, 256, 3),
            bind(2, 256, 2),
        ];
        let listed = Listed {
            object: 1,
            ..Listed::default()
        };
        let lists = Lists {
            bytes: 1024,
            listed: &[listed; 4],
            patches: &patches,
        };
        let (mut slots, mut uses) = ([0; 4], [Use::default(); 4]);
        let mut table = Table::new(&mut slots, &mut uses);
        let mut kept = [false; 4];
        kept_across(&lists, at(256, 4), &mut table, |index| {
            if let Some(kept) = kept.get_mut(index) {
                *kept = true;
            }
        });
        assert_eq!(kept, [false, false, true, false]);
    }
}
