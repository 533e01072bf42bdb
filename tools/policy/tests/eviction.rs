// SPDX-License-Identifier: GPL-2.0

//! Victims against trying everything.

use std::ops::Range;

use policy::policy::eviction::{
    contiguous,
    loose,
    victims,
    Candidate,
    NoRoom,
    Occupant,
    Standing,
    Victim,
    Window, //
};
use proptest::prelude::*;

mod soak;

fn standing() -> impl Strategy<Value = Standing> {
    prop_oneof![
        4 => Just(Standing::Unreferenced),
        2 => Just(Standing::Referenced),
        1 => Just(Standing::Pinned),
    ]
}

/// Candidates whose keys are their positions.
fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let candidate = (0..40_u32, standing());
    prop::collection::vec(candidate, 0..30).prop_map(|all| {
        let numbered = all.into_iter().zip(0..);
        let named = numbered.map(|((pages, standing), key)| Candidate {
            key,
            pages,
            standing,
        });
        named.collect()
    })
}

/// Pages of the candidates of one standing.
fn pages_of(candidates: &[Candidate], standing: Standing) -> u32 {
    let equal = candidates.iter().filter(|one| one.standing == standing);
    equal.map(|one| one.pages).sum()
}

#[test]
fn loose_victims_are_enough_and_none_too_many() {
    soak::check(2000, (candidates(), 0..600_u32), |(candidates, need)| {
        let mut lent = vec![Victim::default(); candidates.len()];
        let result = loose(need, candidates.iter().copied(), &mut lent);
        let unreferenced = pages_of(&candidates, Standing::Unreferenced);
        let referenced = pages_of(&candidates, Standing::Referenced);
        let Ok(count) = result else {
            prop_assert_eq!(result, Err(NoRoom::Pages));
            prop_assert!(unreferenced + referenced < need);
            return Ok(());
        };
        let chosen = &lent[..count];
        let sum: u32 = chosen.iter().map(|victim| victim.pages).sum();
        prop_assert!(sum >= need);
        for victim in chosen {
            prop_assert!(sum - victim.pages < need, "{:?} leaves in vain", victim);
            let candidate = candidates[victim.key as usize];
            prop_assert_eq!(candidate.pages, victim.pages);
            prop_assert!(candidate.standing != Standing::Pinned);
            let early = candidate.standing == Standing::Referenced && unreferenced >= need;
            prop_assert!(!early, "required, but others suffice");
        }
        // In the order of last use within each rank, so nobody twice.
        let rank = |victim: &Victim| {
            let candidate = candidates[victim.key as usize];
            (candidate.standing == Standing::Referenced, victim.key)
        };
        prop_assert!(chosen
            .windows(2)
            .all(|pair| rank(&pair[0]) < rank(&pair[1])));
        Ok(())
    });
}

#[test]
fn loose_victims_need_no_more_places_than_candidates() {
    let case = (candidates(), 0..300_u32, 0..10_usize);
    soak::check(1000, case, |(candidates, need, places)| {
        let mut lent = vec![Victim::default(); places];
        let result = loose(need, candidates.iter().copied(), &mut lent);
        let full = places >= candidates.len();
        prop_assert!(!full || result != Err(NoRoom::Buffer));
        Ok(())
    });
}

/// Runs with gaps between them, each belonging to one of a few allocations.
fn occupants() -> impl Strategy<Value = Vec<(Range<u32>, usize)>> {
    let run = (0..12_u32, 1..12_u32, 0..12_usize);
    prop::collection::vec(run, 0..14).prop_map(|runs| {
        let mut end = 0;
        let place = |(gap, pages, owner): (u32, u32, usize)| {
            let start = end + if gap < 4 { 0 } else { gap };
            end = start + pages;
            (start..end, owner)
        };
        runs.into_iter().map(place).collect()
    })
}

/// The owners with a run in `place`, each once.
fn owners_in(occupants: &[(Range<u32>, usize)], place: &Range<u32>) -> Vec<usize> {
    let inside = |run: &Range<u32>| run.end > place.start && run.start < place.end;
    let mut owners: Vec<usize> = occupants
        .iter()
        .filter(|(run, _)| inside(run))
        .map(|(_, owner)| *owner)
        .collect();
    owners.sort();
    owners.dedup();
    owners
}

/// What it costs to empty `place`, or nothing if that cannot be.
fn cost(
    occupants: &[(Range<u32>, usize)],
    candidates: &[Candidate],
    place: &Range<u32>,
) -> Option<(u64, u64, u64)> {
    let mut cost = (0, 0, 0);
    for owner in owners_in(occupants, place) {
        let candidate = candidates[owner];
        match candidate.standing {
            Standing::Pinned => return None,
            Standing::Referenced => cost.0 += u64::from(candidate.pages),
            Standing::Unreferenced => {}
        }
        cost.1 += u64::from(candidate.pages);
        cost.2 += owner as u64;
    }
    Some(cost)
}

/// A window that is wanted, the runs and owners in the way, and the standing of each owner.
type Case = (Window, Vec<(Range<u32>, usize)>, Vec<Standing>);

fn case() -> impl Strategy<Value = Case> {
    let window = (1..60_u32, 0..6_u32, 0..40_u32, 0..160_u32).prop_map(|window| {
        let (pages, align, start, length) = window;
        Window {
            pages,
            align: if align == 5 { 0 } else { 1 << align },
            within: start..start + length,
        }
    });
    let standings = prop::collection::vec(standing(), 12);
    (window, occupants(), standings)
}

#[test]
fn window_is_the_cheapest_of_all() {
    soak::check(2500, case(), |(window, occupants, standings)| {
        let pages = |owner: usize| {
            let own = occupants.iter().filter(|(_, other)| *other == owner);
            own.map(|(run, _)| run.end - run.start).sum()
        };
        let candidates: Vec<Candidate> = (0..12)
            .map(|owner| Candidate {
                key: 100 + owner as u64,
                pages: pages(owner),
                standing: standings[owner],
            })
            .collect();
        // The order in which they are told does not matter.
        let mut told: Vec<Occupant> = occupants
            .iter()
            .rev()
            .map(|(run, owner)| Occupant::new(candidates[*owner], run.clone(), *owner as u32))
            .collect();
        let result = contiguous(&window, &mut told);
        let last = window.within.end.saturating_sub(window.pages);
        let best = (window.within.start..=last)
            .filter(|start| start % window.align.max(1) == 0)
            .filter(|start| start + window.pages <= window.within.end)
            .filter_map(|start| {
                let place = start..start + window.pages;
                Some((cost(&occupants, &candidates, &place)?, start))
            })
            .min();
        let expected = best.map(|(_, start)| start..start + window.pages);
        prop_assert_eq!(result.clone().ok(), expected);
        if let Ok(place) = result {
            let mut leaving: Vec<Victim> = victims(&told, &place).collect();
            leaving.sort_by_key(|victim| victim.key);
            let owners = owners_in(&occupants, &place).into_iter();
            let expected: Vec<Victim> = owners
                .map(|owner| Victim {
                    key: candidates[owner].key,
                    pages: candidates[owner].pages,
                })
                .collect();
            prop_assert_eq!(leaving, expected);
        }
        Ok(())
    });
}
