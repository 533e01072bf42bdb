// SPDX-License-Identifier: GPL-2.0

//! Victims against trying everything.

use std::ops::Range;

use policy::policy::eviction::{
    contiguous,
    victims,
    Candidate,
    Fate,
    Gathering,
    Occupant,
    Rank,
    Victim,
    Window, //
};
use proptest::prelude::*;

mod ranks;
mod soak;

use ranks::rank;

#[test]
fn gathered_victims_are_enough_and_none_too_many() {
    let case = (prop::collection::vec(0..40_u32, 0..30), 0..600_u32);
    soak::check(2000, case, |(pages, need)| {
        let mut lent = vec![Victim::default(); pages.len()];
        let mut gathering = Gathering::new(need, &mut lent);
        for (key, pages) in pages.iter().copied().enumerate() {
            if gathering.is_enough() {
                break;
            }
            prop_assert_eq!(gathering.add(Victim { key, pages }), Ok(()));
        }
        let enough = gathering.is_enough();
        let gathered = gathering.finish();
        prop_assert_eq!(enough, pages.iter().sum::<u32>() >= need);
        prop_assert!(enough || gathered.leaving == 0);
        let chosen = &lent[..gathered.leaving];
        let sum: u32 = chosen.iter().map(|victim| victim.pages).sum();
        prop_assert!(!enough || sum >= need);
        for victim in chosen {
            prop_assert!(sum - victim.pages < need, "{:?} leaves in vain", victim);
            prop_assert_eq!(pages[victim.key], victim.pages);
        }
        prop_assert!(chosen.is_sorted_by_key(|victim| victim.key));
        // Who was gathered and stays can still be named.
        let mut all: Vec<usize> = lent[..gathered.count].iter().map(|one| one.key).collect();
        all.sort();
        prop_assert!(all.into_iter().eq(0..gathered.count));
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
    fates: &[Fate],
    place: &Range<u32>,
) -> Option<(u32, u64, u64, u64)> {
    let mut cost = (0, 0, 0, 0);
    for owner in owners_in(occupants, place) {
        let candidate = candidates[owner];
        let pages = u64::from(candidate.pages);
        match fates[owner] {
            Fate::Stays => return None,
            Fate::Moves => cost.2 += pages,
            Fate::Leaves => {
                cost.0 = cost.0.max(candidate.rank.order() + 1);
                cost.1 += pages;
            }
        }
        cost.3 += owner as u64;
    }
    Some(cost)
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        2 => Just(Fate::Moves),
        3 => Just(Fate::Leaves),
        1 => Just(Fate::Stays),
    ]
}

/// A window that is wanted, the runs and owners in the way, and the rank and fate of each owner.
type Case = (Window, Vec<(Range<u32>, usize)>, Vec<(Rank, Fate)>);

fn case() -> impl Strategy<Value = Case> {
    let window = (1..60_u32, 0..6_u32, 0..40_u32, 0..160_u32).prop_map(|window| {
        let (pages, align, start, length) = window;
        Window {
            pages,
            align: if align == 5 { 0 } else { 1 << align },
            within: start..start + length,
        }
    });
    let ranks = prop::collection::vec((rank(), fate()), 12);
    (window, occupants(), ranks)
}

#[test]
fn window_is_the_cheapest_of_all() {
    soak::check(2500, case(), |(window, occupants, ranks)| {
        let pages = |owner: usize| {
            let own = occupants.iter().filter(|(_, other)| *other == owner);
            own.map(|(run, _)| run.end - run.start).sum()
        };
        let candidates: Vec<Candidate> = (0..12)
            .map(|owner| Candidate {
                key: 100 + owner as u64,
                pages: pages(owner),
                rank: ranks[owner].0,
            })
            .collect();
        let fates: Vec<Fate> = ranks.iter().map(|(_, fate)| *fate).collect();
        // The order in which they are told does not matter.
        let mut told: Vec<Occupant> = occupants
            .iter()
            .rev()
            .map(|(run, owner)| {
                Occupant::new(
                    candidates[*owner],
                    run.clone(),
                    fates[*owner],
                    *owner as u32,
                )
            })
            .collect();
        let result = contiguous(&window, &mut told);
        let last = window.within.end.saturating_sub(window.pages);
        let best = (window.within.start..=last)
            .filter(|start| start % window.align.max(1) == 0)
            .filter(|start| start + window.pages <= window.within.end)
            .filter_map(|start| {
                let place = start..start + window.pages;
                Some((cost(&occupants, &candidates, &fates, &place)?, start))
            })
            .min();
        let expected = best.map(|(_, start)| start..start + window.pages);
        prop_assert_eq!(result.clone().ok(), expected);
        if let Ok(place) = result {
            let mut leaving: Vec<Victim<u64>> = victims(&told, &place).collect();
            leaving.sort_by_key(|victim| victim.key);
            let owners = owners_in(&occupants, &place).into_iter();
            let expected: Vec<Victim<u64>> = owners
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
