// SPDX-License-Identifier: GPL-2.0

//! Requests one by one. The random walk is in `tools/policy/tests/mapping.rs`.

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_mapping))]
mod cases {
    use super::super::*;

    type Lent = [Slot<u32>; 32];

    /// A space of the addresses 16 to 1000, with two owners.
    fn space() -> (Space<Lent, u32>, [Owner; 2]) {
        let mut space = Space::new([const { Slot::UNUSED }; 32], 16..1000);
        let owners = [7, 8].map(|owner| space.attach(owner).unwrap());
        (space, owners)
    }

    fn request(owner: Owner, range: Range<u64>, offset: u64) -> Request {
        Request {
            place: Place::At(range.start),
            bytes: range.end - range.start,
            owner,
            offset,
            rights: Rights(1),
        }
    }

    /// The pieces of a space, as ranges and offsets; `u64::MAX` where nothing is mapped.
    fn pieces(space: &Space<Lent, u32>) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        space.pieces(0..1000).map(|piece| {
            let offset = piece.mapped.map_or(u64::MAX, |mapped| mapped.offset);
            (piece.range.start, piece.range.end, offset)
        })
    }

    fn mappings(space: &Space<Lent, u32>, owner: Owner) -> usize {
        space.mappings_of(owner).count()
    }

    #[test]
    fn mapping_of_free_addresses_is_a_range() {
        let (mut space, [a, _]) = space();
        assert_eq!(space.map(&request(a, 100..200, 0)), Ok(Made::Range(100)));
        assert!(pieces(&space).eq([(100, 200, 0)]));
        assert_eq!(space.owner(a), Some(&7));
    }

    #[test]
    fn place_is_the_lowest_that_fits() {
        let (mut space, [a, _]) = space();
        space.map(&request(a, 100..200, 0)).unwrap();
        let within = |window, align| Place::Within { window, align };
        let mut reserve = |window, align| {
            let place = within(window, align);
            space.reserve(&place, 50, Kind::NoAccess)
        };
        assert_eq!(reserve(0..1000, 1), Ok(16));
        assert_eq!(reserve(0..1000, 1), Ok(200));
        assert_eq!(reserve(0..1000, 64), Ok(256));
        assert_eq!(reserve(300..400, 1), Ok(306));
        assert_eq!(reserve(960..2000, 1), Err(Refused::NoPlace));
    }

    #[test]
    fn replacing_the_middle_leaves_both_ends() {
        let (mut space, [a, b]) = space();
        space.map(&request(a, 100..200, 1000)).unwrap();
        assert_eq!(space.map(&request(b, 130..150, 5)), Ok(Made::Inside(130)));
        assert!(pieces(&space).eq([(100, 130, 1000), (130, 150, 5), (150, 200, 1050)]));
        assert_eq!((mappings(&space, a), mappings(&space, b)), (2, 1));
    }

    #[test]
    fn replacing_takes_whole_mappings_and_parts() {
        let (mut space, [a, b]) = space();
        space.map(&request(a, 100..200, 0)).unwrap();
        space.map(&request(b, 120..140, 0)).unwrap();
        space.map(&request(b, 160..180, 500)).unwrap();
        assert_eq!(space.map(&request(a, 110..170, 900)), Ok(Made::Inside(110)));
        assert!(pieces(&space).eq([
            (100, 110, 0),
            (110, 170, 900),
            (170, 180, 510),
            (180, 200, 80)
        ]));
    }

    #[test]
    fn mappings_that_continue_each_other_are_one() {
        let (mut space, [a, b]) = space();
        space.reserve(&Place::At(100), 100, Kind::NoAccess).unwrap();
        space.map(&request(a, 100..120, 0)).unwrap();
        space.map(&request(a, 140..160, 40)).unwrap();
        assert_eq!(mappings(&space, a), 2);
        space.map(&request(a, 120..140, 20)).unwrap();
        assert_eq!(mappings(&space, a), 1);
        space.map(&request(b, 160..170, 60)).unwrap();
        assert!(pieces(&space).eq([(100, 160, 0), (160, 170, 60), (170, 200, u64::MAX)]));
    }

    #[test]
    fn ranges_side_by_side_are_not_one() {
        let (mut space, [a, _]) = space();
        for start in [100, 120, 110] {
            space.map(&request(a, start..start + 10, start)).unwrap();
        }
        assert_eq!(mappings(&space, a), 3);
        for range in [105..115, 110..121, 100..130, 95..100 + 1] {
            assert_eq!(space.map(&request(a, range, 0)), Err(Refused::Overlap));
        }
        assert!(space.map(&request(a, 110..120, 0)).is_ok());
    }

    #[test]
    fn halves_of_a_range_with_another_between_are_not_one() {
        let (mut space, [a, b]) = space();
        space.map(&request(a, 100..130, 0)).unwrap();
        space.free(110..120, |_| ()).unwrap();
        space.map(&request(b, 110..120, 10)).unwrap();
        assert_eq!(space.map(&request(b, 105..125, 0)), Err(Refused::Overlap));
        assert!(space.map(&request(b, 102..108, 0)).is_ok());
    }

    #[test]
    fn only_reservations_without_access_take_mappings() {
        let (mut space, [a, _]) = space();
        space.reserve(&Place::At(100), 50, Kind::NoAccess).unwrap();
        space.reserve(&Place::At(150), 50, Kind::Zero).unwrap();
        assert_eq!(space.map(&request(a, 110..150, 0)), Ok(Made::Inside(110)));
        assert_eq!(space.map(&request(a, 160..170, 0)), Err(Refused::Zero));
        for range in [90..110, 140..160, 190..210] {
            assert_eq!(space.map(&request(a, range, 0)), Err(Refused::Overlap));
        }
    }

    #[test]
    fn whole_reservation_goes_with_its_mappings() {
        let (mut space, [a, b]) = space();
        space.reserve(&Place::At(100), 50, Kind::NoAccess).unwrap();
        space.map(&request(a, 100..150, 0)).unwrap();
        space.map(&request(b, 110..120, 0)).unwrap();
        let spare = space.spare();
        let freed = space.free(100..150, |_| ());
        assert_eq!(freed, Ok(Freed::Reservation(Kind::NoAccess)));
        assert_eq!(space.spare(), spare + 4);
        assert!(pieces(&space).eq([]));
        assert_eq!((mappings(&space, a), mappings(&space, b)), (0, 0));
    }

    #[test]
    fn part_of_a_mapping_falls_back_to_the_reservation() {
        let (mut space, [a, _]) = space();
        space.reserve(&Place::At(100), 50, Kind::NoAccess).unwrap();
        space.map(&request(a, 110..140, 0)).unwrap();
        assert_eq!(space.free(120..130, |_| ()), Ok(Freed::Mappings));
        assert!(pieces(&space).eq([
            (100, 110, u64::MAX),
            (110, 120, 0),
            (120, 130, u64::MAX),
            (130, 140, 20),
            (140, 150, u64::MAX)
        ]));
        assert_eq!(space.free(105..115, |_| ()), Err(Refused::NotMapped));
        assert_eq!(space.free(100..110, |_| ()), Err(Refused::NotMapped));
    }

    #[test]
    fn mappings_of_several_ranges_are_freed_at_once() {
        let (mut space, [a, b]) = space();
        space.map(&request(a, 100..120, 0)).unwrap();
        space.map(&request(b, 110..115, 0)).unwrap();
        space.map(&request(b, 120..140, 0)).unwrap();
        let mut parts = [const { 0..0 }; 3];
        let mut count = 0;
        let freed = space.free(105..130, |part| {
            parts[count] = part;
            count += 1;
        });
        assert_eq!(freed, Ok(Freed::Mappings));
        assert_eq!((count, &parts[..2]), (2, &[105..120, 120..130][..]));
        assert!(pieces(&space).eq([(100, 105, 0), (130, 140, 10)]));
    }

    #[test]
    fn part_of_a_zero_reservation_is_not_freed() {
        let (mut space, _) = space();
        space.reserve(&Place::At(100), 50, Kind::Zero).unwrap();
        assert_eq!(space.free(100..120, |_| ()), Err(Refused::Zero));
        let freed = space.free(100..150, |_| ());
        assert_eq!(freed, Ok(Freed::Reservation(Kind::Zero)));
        assert_eq!(space.free(100..150, |_| ()), Err(Refused::NotMapped));
    }

    #[test]
    fn detached_owner_leaves_its_ranges_free() {
        let (mut space, [a, b]) = space();
        space.map(&request(a, 100..130, 0)).unwrap();
        space.map(&request(b, 110..120, 0)).unwrap();
        space.reserve(&Place::At(200), 50, Kind::NoAccess).unwrap();
        space.map(&request(b, 210..220, 0)).unwrap();
        let mut freed = 0;
        assert_eq!(
            space.detach(b, |range| freed += range.end - range.start),
            Some(8)
        );
        assert_eq!(freed, 10);
        assert!(pieces(&space).eq([(100, 110, 0), (120, 130, 20), (200, 250, u64::MAX)]));
        assert_eq!(space.owner(b), None);
    }

    #[test]
    fn addresses_outside_of_the_space_are_refused() {
        let (mut space, [a, _]) = space();
        for range in [0..20, 990..1001, 50..50] {
            assert_eq!(
                space.map(&request(a, range.clone(), 0)),
                Err(Refused::Outside)
            );
            assert_eq!(space.free(range, |_| ()), Err(Refused::Outside));
        }
        let mut beyond = request(a, 100..200, 0);
        beyond.bytes = u64::MAX;
        assert_eq!(space.map(&beyond), Err(Refused::Outside));
    }

    #[test]
    fn walk_meets_each_mapping_once_while_the_space_changes() {
        let (mut space, [a, b]) = space();
        for start in [100, 200, 300] {
            space.map(&request(a, start..start + 30, start)).unwrap();
        }
        space.begin_walk(a);
        let mut seen = 0;
        let mut step = 0;
        while let Some((range, _)) = space.next_in_walk(a) {
            seen += range.end - range.start;
            // A new mapping, a hole in one, and one less.
            let change = match step {
                0 => space.map(&request(a, 400..440, 0)).map(|_| ()),
                1 => space.map(&request(b, 210..220, 0)).map(|_| ()),
                _ => space.free(400..440, |_| ()).map(|_| ()),
            };
            assert_eq!(change, Ok(()));
            step += 1;
        }
        assert!((80..=90).contains(&seen));
        space.begin_walk(a);
        let again = core::iter::from_fn(|| space.next_in_walk(a));
        assert_eq!(
            again.map(|(range, _)| range.end - range.start).sum::<u64>(),
            80
        );
    }

    #[test]
    fn mapping_takes_few_bytes() {
        assert!(size_of::<Slot<&u32>>() <= 88);
    }

    #[test]
    fn request_without_spare_slots_is_refused() {
        let mut space = Space::new([const { Slot::UNUSED }; 2], 0..1000);
        let owner = space.attach(1).unwrap();
        let refused = space.map(&request(owner, 0..10, 0));
        assert_eq!(refused, Err(Refused::Slots));
        assert!(space.reserve(&Place::At(0), 10, Kind::Zero).is_ok());
        let refused = space.reserve(&Place::At(10), 10, Kind::Zero);
        assert_eq!(refused, Err(Refused::Slots));
        assert_eq!(space.attach(2), Err(Refused::Slots));
    }
}
