// SPDX-License-Identifier: GPL-2.0

//! The admission bound against trying every placement, and against its own definition.

use policy::policy::patching::{
    Listed,
    Lists,
    Patch,
    PatchKind,
    Table,
    Use,
    NO_ALLOCATION, //
};
use policy::policy::residency::{
    fits,
    Capacity,
    Demand, //
};
use policy::policy::splitting::check_room;
use proptest::prelude::*;

mod soak;

/// Segments with ids 1 to 4 at most; the contiguous part is no larger than the whole.
fn capacities() -> impl Strategy<Value = Vec<Capacity>> {
    let capacity = (0..9_u64, 0..9_u64).prop_map(|(one, other)| Capacity {
        bytes: one.max(other),
        contiguous: one.min(other),
    });
    prop::collection::vec(capacity, 1..5).prop_map(|mut all| {
        all.insert(0, Capacity::default());
        all
    })
}

fn demand() -> impl Strategy<Value = Demand> {
    (0..6_u64, 1..16_u32, any::<bool>()).prop_map(|(bytes, mask, contiguous)| Demand {
        bytes,
        mask: mask << 1,
        contiguous,
    })
}

/// Whether some assignment of demands to segments stays inside the capacities.
fn placeable(demands: &[Demand], room: &mut [Capacity]) -> bool {
    let Some((demand, rest)) = demands.split_first() else {
        return true;
    };
    for id in 0..room.len() {
        let old = room[id];
        let runs = if demand.contiguous { demand.bytes } else { 0 };
        let allowed = demand.mask & 1 << id != 0;
        if !allowed || demand.bytes > old.bytes || runs > old.contiguous {
            continue;
        }
        room[id].bytes -= demand.bytes;
        room[id].contiguous -= runs;
        let found = placeable(rest, room);
        room[id] = old;
        if found {
            return true;
        }
    }
    false
}

/// Whether the bound holds, straight from its definition, with the masks that occur.
fn bound_holds(demands: &[Demand], capacities: &[Capacity]) -> bool {
    let masks: Vec<u32> = demands.iter().map(|demand| demand.mask).collect();
    bound_holds_for(&masks, demands, capacities)
}

/// Whether each demand fits alone and those inside each of `masks` do not exceed it.
fn bound_holds_for(masks: &[u32], demands: &[Demand], capacities: &[Capacity]) -> bool {
    let sum = |mask: u32, of: fn(&Capacity) -> u64| -> u64 {
        let ids = (0..capacities.len()).filter(|id| mask & 1 << id != 0);
        ids.map(|id| of(&capacities[id])).sum()
    };
    let asked = |mask: u32, of: fn(&&Demand) -> bool| -> u64 {
        let inside = demands.iter().filter(|demand| demand.mask & !mask == 0);
        inside.filter(of).map(|demand| demand.bytes).sum()
    };
    let fit_alone = demands.iter().all(|demand| {
        let ids = (0..capacities.len()).filter(|id| demand.mask & 1 << id != 0);
        let mut rooms = ids.map(|id| match demand.contiguous {
            true => capacities[id].contiguous,
            false => capacities[id].bytes,
        });
        rooms.any(|room| demand.bytes <= room)
    });
    fit_alone
        && masks.iter().all(|mask| {
            asked(*mask, |_| true) <= sum(*mask, |capacity| capacity.bytes)
                && asked(*mask, |demand| demand.contiguous)
                    <= sum(*mask, |capacity| capacity.contiguous)
        })
}

#[test]
fn what_can_be_placed_is_never_refused() {
    let demands = prop::collection::vec(demand(), 0..6);
    soak::check(3000, (demands, capacities()), |(demands, capacities)| {
        if placeable(&demands, &mut capacities.clone()) {
            prop_assert_eq!(fits(demands, &capacities), Ok(()));
        }
        Ok(())
    });
}

#[test]
fn bound_is_what_its_definition_says() {
    let demands = prop::collection::vec(demand(), 0..40);
    let scaled = (demands, capacities(), 1..8_u64).prop_map(|(demands, mut capacities, scale)| {
        for capacity in &mut capacities {
            capacity.bytes *= scale;
            capacity.contiguous *= scale;
        }
        (demands, capacities)
    });
    soak::check(2000, scaled, |(demands, capacities)| {
        let broken =
            (1..=demands.len()).find(|count| !bound_holds(&demands[..*count], &capacities));
        let expected = broken.map_or(Ok(()), |count| Err(count - 1));
        prop_assert_eq!(fits(demands, &capacities), expected);
        Ok(())
    });
}

/// Bindings of allocations to 4 slots at rising split offsets.
fn bindings() -> impl Strategy<Value = Vec<Patch>> {
    let binding = (0..8_u32, 0..4_u32, 0..3_u32);
    prop::collection::vec(binding, 0..20).prop_map(|bindings| {
        let mut split_offset = 0;
        let patch = |(alloc_index, slot, step): (u32, u32, u32)| {
            split_offset += step / 2 * 8;
            Patch {
                alloc_index: if alloc_index == 7 {
                    NO_ALLOCATION
                } else {
                    alloc_index
                },
                slot,
                kind: PatchKind::None,
                driver_id: 0,
                alloc_offset: 0,
                patch_offset: 0,
                split_offset,
            }
        };
        bindings.into_iter().map(patch).collect()
    })
}

/// The elements that the slots hold after all entries up to `split_offset`, each once.
fn held_at(patches: &[Patch], listed: &[Listed], split_offset: u32) -> Vec<usize> {
    let mut slots = [NO_ALLOCATION; 4];
    for patch in patches
        .iter()
        .filter(|patch| patch.split_offset <= split_offset)
    {
        slots[patch.slot as usize] = patch.alloc_index;
    }
    let mut held: Vec<usize> = slots.iter().map(|index| *index as usize).collect();
    held.retain(|index| listed.get(*index).is_some_and(|listed| listed.object != 0));
    held.sort();
    held.dedup();
    held
}

#[test]
fn room_is_checked_at_each_split_offset() {
    let demands = prop::collection::vec(demand(), 7);
    let case = (bindings(), demands, capacities(), 0..8_usize);
    soak::check(3000, case, |(patches, demands, capacities, null)| {
        let mut listed = [Listed {
            object: 1,
            ..Listed::default()
        }; 7];
        if let Some(element) = listed.get_mut(null) {
            element.object = 0;
        }
        let lists = Lists {
            bytes: 1024,
            listed: &listed,
            patches: &patches,
        };
        let (mut slots, mut uses) = ([5; 4], [Use::default(); 7]);
        let mut table = Table::new(&mut slots, &mut uses);
        let result = check_room(
            &lists,
            |index| demands[index as usize],
            &capacities,
            &mut table,
        );
        let masks: Vec<u32> = (0..7)
            .filter(|element| *element != null)
            .map(|element| demands[element].mask)
            .collect();
        let held = |split| -> Vec<Demand> {
            let elements = held_at(&patches, &listed, split).into_iter();
            elements.map(|element| demands[element]).collect()
        };
        let mut splits = patches.iter().map(|patch| patch.split_offset);
        let broken = splits.find(|split| !bound_holds_for(&masks, &held(*split), &capacities));
        let refused = result
            .err()
            .map(|refused| patches[refused.index as usize].split_offset);
        prop_assert_eq!(refused, broken);
        if let Some(split) = refused {
            let mut room = capacities.clone();
            prop_assert!(
                !placeable(&held(split), &mut room),
                "refused what could run"
            );
        }
        Ok(())
    });
}
