// SPDX-License-Identifier: GPL-2.0

//! KUnit tests of the table of handles, with entries that are mere numbers.

/// A table of its own for each test.
#[kernel::macros::kunit_tests(vidmm_handle)]
mod suite {
    use kernel::prelude::*;

    use crate::uapi::{
        handle::{
            Entry,
            Kind,
            Named,
            Table, //
        },
        list::Refused,
    };

    /// Something with a number.
    #[derive(Clone, Copy)]
    struct Item {
        kind: Kind,
        number: u32,
        leader: Option<u32>,
        follower: Option<u32>,
        busy: bool,
    }

    impl Item {
        const fn new(kind: Kind, number: u32) -> Self {
            Self {
                kind,
                number,
                leader: None,
                follower: None,
                busy: false,
            }
        }
    }

    impl Entry for Item {
        fn kind(&self) -> Kind {
            self.kind
        }

        fn leader(&self) -> Option<u32> {
            self.leader
        }

        fn follower(&self) -> Option<u32> {
            self.follower
        }

        fn is_busy(&self) -> bool {
            self.busy
        }
    }

    /// The number of an allocation.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Number(u32);

    impl Named<Item> for Number {
        const KIND: Kind = Kind::Allocation;

        fn of(item: &Item) -> Option<Self> {
            Some(Self(item.number))
        }
    }

    fn table() -> Result<Pin<KBox<Table<Item>>>> {
        KBox::pin_init(Table::new(), GFP_KERNEL)
    }

    /// Gives `item` a name.
    fn add(table: &Table<Item>, item: Item, owner: Option<u32>) -> Result<u32> {
        let reservation = table.reserve(owner)?;
        let handle = reservation.handle(item.kind);
        reservation.publish(item).map_err(|_| ENOENT)?;
        Ok(handle)
    }

    fn allocation(table: &Table<Item>, number: u32) -> Result<u32> {
        add(table, Item::new(Kind::Allocation, number), None)
    }

    /// Makes `count` allocations, numbered from zero.
    fn allocations(table: &Table<Item>, count: u32) -> Result<KVec<u32>> {
        let mut handles = KVec::new();
        for number in 0..count {
            handles.push(allocation(table, number)?, GFP_KERNEL)?;
        }
        Ok(handles)
    }

    /// Closes `handles` and returns how many entries went.
    fn close(table: &Table<Item>, handles: &[u32]) -> Result<u32, Refused> {
        let mut gone = 0;
        table.close(handles, |_| gone += 1)?;
        Ok(gone)
    }

    /// Makes a paging queue and its fence, which goes with it and not alone.
    fn pair(table: &Table<Item>) -> Result<(u32, u32)> {
        let (first, second) = (table.reserve(None)?, table.reserve(None)?);
        let (queue, fence) = (first.handle(Kind::PagingQueue), second.handle(Kind::Fence));
        let led = Item {
            leader: Some(queue),
            ..Item::new(Kind::Fence, 1)
        };
        let leading = Item {
            follower: Some(fence),
            ..Item::new(Kind::PagingQueue, 0)
        };
        second.publish(led).map_err(|_| ENOENT)?;
        first.publish(leading).map_err(|_| ENOENT)?;
        Ok((queue, fence))
    }

    #[test]
    fn published_entry_is_found() -> Result {
        let table = table()?;
        let handle = allocation(&table, 7)?;
        assert_eq!(table.get::<Number>(handle), Ok(Number(7)));
        Ok(())
    }

    #[test]
    fn zero_is_no_handle() -> Result {
        let table = table()?;
        allocation(&table, 7)?;
        assert_eq!(table.get::<Number>(0), Err(ENOENT));
        Ok(())
    }

    #[test]
    fn reserved_place_is_not_found() -> Result {
        let table = table()?;
        let reservation = table.reserve(None)?;
        let handle = reservation.handle(Kind::Allocation);
        assert_eq!(table.get::<Number>(handle), Err(ENOENT));
        Ok(())
    }

    #[test]
    fn entry_of_another_kind_is_not_found() -> Result {
        let table = table()?;
        let handle = add(&table, Item::new(Kind::Fence, 7), None)?;
        assert_eq!(table.get::<Number>(handle), Err(ENOENT));
        Ok(())
    }

    #[test]
    fn neighbours_of_a_handle_are_not_found() -> Result {
        let table = table()?;
        let handle = allocation(&table, 7)?;
        for bit in 0..u32::BITS {
            assert_eq!(table.get::<Number>(handle ^ (1 << bit)), Err(ENOENT));
        }
        Ok(())
    }

    #[test]
    fn closed_handle_is_stale() -> Result {
        let table = table()?;
        let handle = allocation(&table, 7)?;
        assert_eq!(close(&table, &[handle]), Ok(1));
        assert_eq!(table.get::<Number>(handle), Err(ENOENT));
        assert_eq!(close(&table, &[handle]), Err(Refused::at(0, ENOENT)));
        Ok(())
    }

    #[test]
    fn handle_does_not_come_back_soon() -> Result {
        let table = table()?;
        let first = allocation(&table, 0)?;
        close(&table, &[first]).map_err(|refused| refused.error)?;
        for number in 0..10_000 {
            let handle = allocation(&table, number)?;
            assert!(handle != first);
            close(&table, &[handle]).map_err(|refused| refused.error)?;
        }
        Ok(())
    }

    #[test]
    fn many_entries_keep_their_numbers() -> Result {
        let table = table()?;
        let handles = allocations(&table, 20_000)?;
        let wrong = handles
            .iter()
            .zip(0..)
            .filter(|(handle, number)| table.get(**handle) != Ok(Number(*number)))
            .count();
        assert_eq!(wrong, 0);
        assert_eq!(
            table
                .get_list::<Number>(handles.iter().copied())
                .map(|list| list.len()),
            Ok(20_000)
        );
        Ok(())
    }

    #[test]
    fn stale_handles_stay_stale_when_memory_comes_and_goes() -> Result {
        let table = table()?;
        let old = allocations(&table, 3_000)?;
        assert_eq!(close(&table, &old), Ok(3_000));
        let new = allocations(&table, 3_000)?;
        let found = old
            .iter()
            .filter(|handle| table.get::<Number>(**handle).is_ok())
            .count();
        assert_eq!(found, 0);
        assert_eq!(close(&table, &new), Ok(3_000));
        Ok(())
    }

    #[test]
    fn unknown_handle_in_a_list_closes_nothing() -> Result {
        let table = table()?;
        let mut handles = allocations(&table, 100)?;
        handles.push(u32::MAX, GFP_KERNEL)?;
        assert_eq!(close(&table, &handles), Err(Refused::at(100, ENOENT)));
        handles.truncate(100);
        assert_eq!(close(&table, &handles), Ok(100));
        Ok(())
    }

    #[test]
    fn handle_named_twice_is_refused_the_second_time() -> Result {
        let table = table()?;
        let handles = allocations(&table, 2)?;
        let (a, b) = (handles[0], handles[1]);
        assert_eq!(close(&table, &[a, b, a]), Err(Refused::at(2, ENOENT)));
        assert_eq!(close(&table, &[a, b]), Ok(2));
        Ok(())
    }

    #[test]
    fn owner_takes_along_what_it_owns() -> Result {
        let table = table()?;
        let other = allocation(&table, 0)?;
        let owner = add(&table, Item::new(Kind::Device, 0), None)?;
        for number in 0..500 {
            add(&table, Item::new(Kind::Allocation, number), Some(owner))?;
        }
        assert_eq!(close(&table, &[owner]), Ok(501));
        assert_eq!(table.get::<Number>(other), Ok(Number(0)));
        assert_eq!(close(&table, &[other]), Ok(1));
        Ok(())
    }

    #[test]
    fn closing_one_of_many_leaves_its_siblings() -> Result {
        let table = table()?;
        let owner = add(&table, Item::new(Kind::Device, 0), None)?;
        let mut handles = KVec::new();
        for number in 0..5 {
            let item = Item::new(Kind::Allocation, number);
            handles.push(add(&table, item, Some(owner))?, GFP_KERNEL)?;
        }
        assert_eq!(close(&table, &[handles[0]]), Ok(1));
        assert_eq!(close(&table, &[handles[4]]), Ok(1));
        assert_eq!(close(&table, &[handles[2]]), Ok(1));
        assert_eq!(table.get(handles[1]), Ok(Number(1)));
        assert_eq!(table.get(handles[3]), Ok(Number(3)));
        assert_eq!(close(&table, &[owner]), Ok(3));
        Ok(())
    }

    #[test]
    fn owner_and_owned_in_one_list_both_go() -> Result {
        let table = table()?;
        let owner = add(&table, Item::new(Kind::Device, 0), None)?;
        let owned = add(&table, Item::new(Kind::Allocation, 1), Some(owner))?;
        assert_eq!(close(&table, &[owner, owned]), Ok(2));
        Ok(())
    }

    #[test]
    fn entry_of_a_closed_owner_is_not_published() -> Result {
        let table = table()?;
        let owner = add(&table, Item::new(Kind::Device, 0), None)?;
        let reservation = table.reserve(Some(owner))?;
        let handle = reservation.handle(Kind::Allocation);
        assert_eq!(close(&table, &[owner]), Ok(1));
        assert!(reservation.publish(Item::new(Kind::Allocation, 1)).is_err());
        assert_eq!(table.get::<Number>(handle), Err(ENOENT));
        Ok(())
    }

    #[test]
    fn follower_goes_with_its_leader() -> Result {
        let table = table()?;
        let (queue, fence) = pair(&table)?;
        assert_eq!(close(&table, &[queue]), Ok(2));
        assert_eq!(close(&table, &[fence]), Err(Refused::at(0, ENOENT)));
        Ok(())
    }

    #[test]
    fn follower_alone_is_busy() -> Result {
        let table = table()?;
        let (queue, fence) = pair(&table)?;
        let other = allocation(&table, 0)?;
        assert_eq!(close(&table, &[fence]), Err(Refused::at(0, EBUSY)));
        assert_eq!(close(&table, &[other, fence]), Err(Refused::at(1, EBUSY)));
        assert_eq!(close(&table, &[fence, queue]), Ok(2));
        assert_eq!(close(&table, &[other]), Ok(1));
        Ok(())
    }

    #[test]
    fn busy_one_keeps_the_list_open() -> Result {
        let table = table()?;
        let mut item = Item::new(Kind::Allocation, 0);
        item.busy = true;
        let busy = add(&table, item, None)?;
        let other = allocation(&table, 1)?;
        assert_eq!(close(&table, &[busy]), Err(Refused::at(0, EBUSY)));
        assert_eq!(close(&table, &[other, busy]), Err(Refused::at(1, EBUSY)));
        assert_eq!(close(&table, &[other]), Ok(1));
        Ok(())
    }

    #[test]
    fn leader_before_follower_closes_both() -> Result {
        let table = table()?;
        let (queue, fence) = pair(&table)?;
        assert_eq!(close(&table, &[queue, fence]), Ok(2));
        Ok(())
    }

    #[test]
    fn close_all_leaves_nothing() -> Result {
        let table = table()?;
        let owner = add(&table, Item::new(Kind::Device, 0), None)?;
        for number in 0..1_000 {
            let owner = (number % 2 == 0).then_some(owner);
            add(&table, Item::new(Kind::Allocation, number), owner)?;
        }
        pair(&table)?;
        let mut gone = 0;
        table.close_all(|_| gone += 1);
        assert_eq!(gone, 1_003);
        assert!(table.at_least::<Number>(0).is_none());
        Ok(())
    }
}
