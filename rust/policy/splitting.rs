// SPDX-License-Identifier: GPL-2.0

//! Cutting command buffers that need more than there is.
//!
//! Each distinct split offset of a patch list is a place where the command buffer may be cut into
//! portions (DMA-5). What the slots hold there has to be in memory together. If that is more than
//! the segments could hold were they empty, no cut helps and the submission is refused (DMA-25).
//!
//! Everything else is decided when a portion is about to be prepared, from what lies where at that
//! moment: [`portion`] says how far it reaches and where each allocation lies while it runs, [`ground`]
//! describes the segments, [`packing`] looks for places for several allocations at once. The plan is a
//! value; whoever applies it moves things.

use super::patch_list::{
    Kind,
    Lists,
    Refused, //
};
use super::residency::{
    Capacity,
    Demand,
    Ledger, //
};
use super::resource_table::Table;

mod ground;
mod packing;
mod portion;
#[cfg(any(test, CONFIG_KUNIT))]
mod tests_of_portions;

pub use self::{
    ground::{
        Area,
        Ground,
        Spot, //
    },
    packing::{
        Gap,
        LOOKS, //
    },
    portion::{
        kept_across,
        plan,
        Cut,
        Hold,
        Item,
        NoPlace,
        Portion,
        Scratch,
        Wanted, //
    },
};

/// Checks that what is bound at each split offset might be in memory at once (DMA-25).
///
/// The lists have passed a [`Checker`](super::patching::Checker); `demand` tells what element `index` asks for, and `table`
/// was made for these lists. Linear in the lists. An allocation that is bound and replaced at the
/// same offset needs no room.
///
/// # Errors
///
/// [`Kind::TooLarge`]: the last entry that binds something at that split offset.
///
/// Requirement: DMA-25.
pub fn check_room(
    lists: &Lists<'_>,
    demand: impl Fn(u32) -> Demand,
    capacities: &[Capacity],
    table: &mut Table<'_>,
) -> Result<(), Refused> {
    let mut ledger = Ledger::new(capacities);
    let mut binder = 0;
    let mut patches = lists.patches.iter().enumerate().peekable();
    table.clear();
    for (listed, index) in lists.listed.iter().zip(0..u32::MAX) {
        if listed.object != 0 {
            ledger.watch(demand(index).mask);
        }
    }
    while let Some((position, patch)) = patches.next() {
        let change = table.bind(patch.slot, lists.target(patch));
        if let Some(index) = change.bound {
            ledger.add(&demand(index));
            binder = position;
        }
        if let Some(index) = change.released {
            ledger.remove(&demand(index));
        }
        let next_split = patches.peek().map(|(_, next)| next.split_offset);
        if next_split != Some(patch.split_offset) && !ledger.fits() {
            return Err(Refused::at(Kind::TooLarge, binder));
        }
    }
    Ok(())
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_splitting))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::super::patch_list::{
        Listed,
        Patch,
        PatchKind, //
    };
    use super::super::resource_table::{
        Use,
        NO_ALLOCATION, //
    };
    use super::*;

    /// Segment 1 holds 16.
    const CAPACITIES: [Capacity; 2] = [
        Capacity {
            bytes: 0,
            contiguous: 0,
        },
        Capacity {
            bytes: 16,
            contiguous: 16,
        },
    ];

    /// A binding: element, slot, split offset.
    fn bind(alloc_index: u32, slot: u32, split_offset: u32) -> Patch {
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

    /// Checks the room for three allocations of 10, 6 and 7.
    fn check(patches: &[Patch]) -> Result<(), u32> {
        let listed = Listed {
            object: 1,
            ..Listed::default()
        };
        let lists = Lists {
            bytes: 1024,
            listed: &[listed; 3],
            patches,
        };
        let (mut slots, mut uses) = ([0; 4], [Use::default(); 3]);
        let mut table = Table::new(&mut slots, &mut uses);
        let demand = |index| Demand {
            bytes: [10, 6, 7].into_iter().nth(index as usize).unwrap(),
            mask: 0b10,
            contiguous: true,
        };
        let result = check_room(&lists, demand, &CAPACITIES, &mut table);
        result.map_err(|refused| refused.index)
    }

    #[test]
    fn what_fits_at_each_split_passes() {
        assert_eq!(check(&[bind(0, 0, 0), bind(1, 1, 0)]), Ok(()));
        assert_eq!(check(&[bind(0, 0, 0), bind(2, 0, 8)]), Ok(()));
        assert_eq!(check(&[]), Ok(()));
    }

    #[test]
    fn too_much_at_one_split_is_refused() {
        assert_eq!(check(&[bind(0, 0, 0), bind(2, 1, 8)]), Err(1));
        assert_eq!(check(&[bind(0, 0, 0), bind(2, 1, 0)]), Err(1));
    }

    #[test]
    fn unbinding_makes_room() {
        let unbind = bind(NO_ALLOCATION, 0, 8);
        assert_eq!(check(&[bind(0, 0, 0), unbind, bind(2, 1, 8)]), Ok(()));
        assert_eq!(check(&[bind(0, 0, 0), bind(2, 1, 8), unbind]), Ok(()));
    }

    #[test]
    fn binding_replaced_at_once_needs_no_room() {
        let patches = [bind(0, 0, 0), bind(2, 1, 8), bind(1, 1, 8)];
        assert_eq!(check(&patches), Ok(()));
    }

    #[test]
    fn two_slots_need_the_room_once() {
        let patches = [bind(0, 0, 0), bind(0, 1, 0), bind(1, 2, 0)];
        assert_eq!(check(&patches), Ok(()));
        let patches = [bind(0, 0, 0), bind(0, 1, 0), bind(2, 0, 8)];
        assert_eq!(check(&patches), Err(2));
    }
}
