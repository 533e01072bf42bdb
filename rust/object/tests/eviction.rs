// SPDX-License-Identifier: GPL-2.0

//! Who leaves, decided by ranks that objects have.

use crate::{
    object::offer::{
        Level,
        Offer,
        Pages,
        Terms, //
    },
    policy::eviction::Budget, //
};

use super::*;

#[kunit_tests(vidmm_object_eviction)]
mod suite {
    use super::*;

    /// RES-17: the ranks come before the order of use, and one pass of use leaves in its order.
    #[test]
    fn ranks_decide_who_leaves() -> Result {
        let fixture = Fixture::new()?;
        let idle = fixture.allocate(5 * MIB, 0b10, Flags::default())?;
        let required = fixture.allocate(5 * MIB, 0b10, Flags::default())?;
        let offered = fixture.allocate(5 * MIB, 0b10, Flags::default())?;
        let others = [(); 3].map(|()| fixture.allocate(5 * MIB, 0b10, Flags::default()));
        for hold in [&required, &idle, &offered] {
            fixture.make_resident(hold)?;
            fixture.settle();
            fixture.evict(hold, Leaving::IfNeeded)?;
        }
        required.residence().lock().required = 1;
        offered.residence().lock().offer = Offer::InForce(Terms {
            level: Level::High,
            pages: Pages::Stay,
        });
        Allocation::sink(offered.allocation());
        let mut left = [0; 3];
        for (other, left) in others.iter().flatten().zip(&mut left) {
            fixture.make_resident(other)?;
            fixture.settle();
            // Whoever comes next must not have this room.
            other.residence().lock().fixed = 1;
            for (hold, bit) in [(&offered, 1), (&idle, 2), (&required, 4)] {
                *left += if resident(hold) { 0 } else { bit };
            }
        }
        assert_eq!(left, [1, 3, 7]);
        required.residence().lock().required = 0;
        for hold in [idle, required, offered] {
            forget(hold);
        }
        others.into_iter().flatten().for_each(forget);
        fixture.close();
        Ok(())
    }

    #[test]
    fn clients_over_their_budget_leave_first() -> Result {
        let fixture = Fixture::new()?;
        let adapter = fixture.attached.adapter();
        let client = Client::new(adapter)?;
        let device = Device::new(&client)?;
        let queue = PagingQueue::new(&device, Priority::Normal)?;
        let mine = fixture.allocate(7 * MIB, 0b10, Flags::default())?;
        let new = fixture.allocate(7 * MIB, 0b10, Flags::default())?;
        let theirs = allocation::create(&device, &description(7 * MIB, Flags::default()))?;
        fixture.make_resident(&mine)?;
        fixture.settle();
        let mut list = KVVec::new();
        list.push(theirs.clone(), GFP_KERNEL)?;
        let answer = residency::make_resident(&queue, list, Urgency::MayFail);
        assert!(answer.is_ok());
        fixture.settle();
        adapter.residency().lock().set_budget(&client, Budget::Over);
        fixture.make_resident(&new)?;
        fixture.settle();
        assert!(resident(&mine) && !resident(&theirs));
        adapter
            .residency()
            .lock()
            .set_budget(&client, Budget::Within);
        for hold in [mine, new, theirs] {
            forget(hold);
        }
        queue.closed();
        device.closed();
        client.close();
        fixture.close();
        Ok(())
    }
}
