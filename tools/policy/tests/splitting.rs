// SPDX-License-Identifier: GPL-2.0

//! Portions against a model that tries every placement.
//!
//! A story is a patch list, a memory in which others lie, and what they do between the portions. The
//! model applies each plan and asks: does everything that is bound lie where the portion expects it,
//! was nothing moved that is needed, and could no placement that moves nothing of it have gone
//! further?

use std::ops::Range;
use std::sync::atomic::{
    AtomicU32,
    Ordering::Relaxed, //
};

use policy::policy::eviction::{
    Bond,
    Candidate,
    Fate,
    Occupant,
    Rank, //
};
use policy::policy::patching::{
    Listed,
    Lists,
    Patch,
    PatchKind,
    Table,
    Use,
    NO_ALLOCATION, //
};
use policy::policy::splitting::{
    kept_across,
    plan,
    Area,
    Cut,
    Gap,
    Ground,
    Hold,
    Item,
    NoPlace,
    Portion,
    Scratch,
    Spot,
    Wanted, //
};
use policy::units::SegmentId;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

mod soak;
mod story;

use story::{
    story,
    Story,
    Tenant,
    PAGE,
    SLOTS, //
};

/// Where a plan wants each item: segment and page.
type Spots = Vec<Option<(u32, u32)>>;

/// Memory and lists while the story goes on.
struct Model {
    story: Story,
    patches: Vec<Patch>,
    listed: Vec<Listed>,
    bytes: u32,
    /// Where each allocation lies: segment and first page.
    places: Vec<Option<(u32, u32)>>,
    tenants: Vec<Tenant>,
}

impl Model {
    fn new(story: Story) -> Self {
        let mut offset = 0;
        let count = story.kinds.len() as u32;
        let patches = story.entries.iter().map(|(slot, element, steps)| {
            offset += steps * 8;
            Patch {
                alloc_index: if *element < count {
                    *element
                } else {
                    NO_ALLOCATION
                },
                slot: *slot,
                kind: PatchKind::None,
                driver_id: 0,
                alloc_offset: 0,
                patch_offset: 0,
                split_offset: offset,
            }
        });
        let patches: Vec<Patch> = patches.collect();
        let listed = (1..=u64::from(count)).map(|object| Listed {
            object,
            ..Listed::default()
        });
        let mut model = Self {
            listed: listed.collect(),
            bytes: offset + story.tail * 8,
            patches,
            places: vec![None; story.kinds.len()],
            tenants: Vec::new(),
            story,
        };
        for index in 0..model.places.len() {
            let kind = model.story.kinds[index].clone();
            let Some((area, page)) = kind.first else {
                continue;
            };
            let spot = (area + 1, page);
            if model.is_right(index, spot) && model.may_take(spot.0, &model.run(index, spot)) {
                model.places[index] = Some(spot);
            }
        }
        model
    }

    fn lists(&self) -> Lists<'_> {
        Lists {
            bytes: self.bytes,
            listed: &self.listed,
            patches: &self.patches,
        }
    }

    /// The pages of an allocation that begins at `spot`.
    fn run(&self, index: usize, spot: (u32, u32)) -> Range<u32> {
        let page = self.story.areas[spot.0 as usize - 1].1;
        let pages = self.story.kinds[index].pages.div_ceil(page) as u32;
        spot.1..spot.1 + pages
    }

    /// Whether an allocation may begin at `spot`, whoever lies there.
    fn is_right(&self, index: usize, spot: (u32, u32)) -> bool {
        let kind = &self.story.kinds[index];
        let (pages, page, _) = self.story.areas[spot.0 as usize - 1];
        let aligned = u64::from(spot.1) * page * PAGE % kind.align == 0;
        kind.segments & (1 << spot.0) != 0 && aligned && self.run(index, spot).end <= pages
    }

    fn is_free(&self, segment: u32, run: &Range<u32>) -> bool {
        let tenants = self.tenants.iter();
        let mut others = tenants
            .filter(|one| one.segment == segment)
            .map(|one| one.run.clone());
        let mut mine = (0..self.places.len()).filter_map(|index| {
            let spot = self.places[index]?;
            (spot.0 == segment).then(|| self.run(index, spot))
        });
        !others.any(|other| overlap(&other, run)) && !mine.any(|other| overlap(&other, run))
    }

    /// Whether pages may be taken: they are free, and not more are in use than may be.
    fn may_take(&self, segment: u32, run: &Range<u32>) -> bool {
        let tenants = self.tenants.iter().filter(|one| one.segment == segment);
        let mine = (0..self.places.len()).filter_map(|index| {
            let spot = self.places[index]?;
            (spot.0 == segment).then(|| self.run(index, spot).len())
        });
        let used = tenants.map(|one| one.run.len()).sum::<usize>() + mine.sum::<usize>();
        let limit = self.story.areas[segment as usize - 1].2 as usize;
        used + run.len() <= limit && self.is_free(segment, run)
    }

    /// Lets others come where there is room.
    fn let_come(&mut self, turn: usize) {
        let coming = self.story.tenants[turn % self.story.tenants.len()].clone();
        for tenant in coming {
            let pages = self.story.areas[tenant.segment as usize - 1].0;
            if tenant.run.end <= pages && self.may_take(tenant.segment, &tenant.run) {
                self.tenants.push(tenant);
            }
        }
    }

    fn items(&self) -> Vec<Item> {
        let kinds = self.story.kinds.iter().zip(&self.places);
        kinds
            .map(|(kind, place)| {
                Item::new(Wanted {
                    bytes: kind.pages * PAGE,
                    align: kind.align,
                    segments: kind.segments,
                    place: place.map(|(segment, page)| Spot {
                        segment: SegmentId::new(segment).unwrap(),
                        page,
                    }),
                    hold: if kind.fast { Hold::Fast } else { Hold::Loose },
                    preferred: 0,
                })
            })
            .collect()
    }

    /// Asks for the plan of the portion that begins at `start`.
    fn plan(&self, start: Cut) -> (Result<Portion, NoPlace>, Spots) {
        let mut areas: Vec<Area> = self
            .story
            .areas
            .iter()
            .map(|(pages, page, limit)| Area::new(*pages, page * PAGE, *limit))
            .collect();
        let empty = occupant(0, 0..0, Fate::Leaves);
        let mut occupants = vec![empty; 32];
        let mut ground = Ground::new(&mut areas, &mut occupants);
        for (key, tenant) in (100..).zip(&self.tenants) {
            let fate = if tenant.stays {
                Fate::Stays
            } else {
                Fate::Leaves
            };
            let segment = SegmentId::new(tenant.segment).unwrap();
            ground.add(segment, occupant(key, tenant.run.clone(), fate));
        }
        for index in (0..self.places.len()).rev() {
            let Some(spot) = self.places[index] else {
                continue;
            };
            let segment = SegmentId::new(spot.0).unwrap();
            ground.add(
                segment,
                occupant(index as u64, self.run(index, spot), Fate::Leaves),
            );
        }
        ground.settle();
        let mut items = self.items();
        let (mut slots, mut uses) = ([9; SLOTS as usize], [Use::default(); 8]);
        let mut table = Table::new(&mut slots, &mut uses);
        let scratch = Scratch {
            order: &mut [0; 8],
            gaps: &mut [Gap::default(); 40],
        };
        let portion = plan(
            &self.lists(),
            start,
            &mut items,
            &mut table,
            &mut ground,
            scratch,
        );
        let spots = items
            .iter()
            .map(|item| item.spot().map(|spot| (spot.segment.get(), spot.page)));
        (portion, spots.collect())
    }

    /// What each slot holds when all entries with a smaller split offset, or an equal one if
    /// `inclusive`, have been processed.
    fn bound(&self, offset: u32, inclusive: bool) -> [Option<usize>; SLOTS as usize] {
        let mut slots = [None; SLOTS as usize];
        for patch in &self.patches {
            if patch.split_offset < offset || (inclusive && patch.split_offset == offset) {
                slots[patch.slot as usize] =
                    (patch.alloc_index != NO_ALLOCATION).then_some(patch.alloc_index as usize);
            }
        }
        slots
    }

    /// What must stay where it is if the buffer is cut at `offset`.
    fn kept(&self, offset: u32) -> Vec<usize> {
        let before = self.bound(offset, false);
        let named = |slot: usize| {
            let mut entries = self.patches.iter();
            entries.any(|patch| patch.split_offset == offset && patch.slot as usize == slot)
        };
        let held = (0..SLOTS as usize).filter(|slot| !named(*slot));
        let mut kept: Vec<usize> = held.filter_map(|slot| before[slot]).collect();
        kept.sort_unstable();
        kept.dedup();
        kept
    }

    /// Whether an allocation is bound anew at the cut where a portion begins.
    fn is_relaxed(&self, index: usize, start: Cut) -> bool {
        let kept = self.kept(start.offset).contains(&index);
        let mut entries = self.patches.iter();
        let named = entries
            .any(|patch| patch.split_offset == start.offset && patch.alloc_index as usize == index);
        start.offset > 0 && named && !kept && !self.story.kinds[index].fast
    }

    /// Everything that the portion needs lies in memory of its own, where it may lie, and stays
    /// clear of those that must stay.
    fn check_places(&self, portion: &Portion, spots: &[Option<(u32, u32)>]) -> TestCaseResult {
        for offset in portion.start.offset..portion.end.offset {
            for index in self.bound(offset, true).into_iter().flatten() {
                prop_assert!(spots[index].is_some(), "{index} has no place at {offset}");
            }
        }
        for (index, spot) in spots.iter().enumerate() {
            let Some(spot) = *spot else { continue };
            prop_assert!(
                self.is_right(index, spot),
                "{index} may not lie at {spot:?}"
            );
            let run = self.run(index, spot);
            for tenant in self
                .tenants
                .iter()
                .filter(|one| one.stays && one.segment == spot.0)
            {
                prop_assert!(!overlap(&tenant.run, &run), "{index} lies in {tenant:?}");
            }
            for (other, there) in spots.iter().enumerate().skip(index + 1) {
                let clear = there.is_none_or(|there| {
                    there.0 != spot.0 || !overlap(&self.run(other, there), &run)
                });
                prop_assert!(clear, "{index} and {other} lie in each other");
            }
            for other in (0..spots.len()).filter(|other| *other != index) {
                let Some(there) = self.places[other] else {
                    continue;
                };
                let fast = self.story.kinds[other].fast && there.0 == spot.0;
                prop_assert!(!fast || !overlap(&self.run(other, there), &run));
            }
        }
        self.check_limits(spots)
    }

    /// No segment holds more than it may.
    fn check_limits(&self, spots: &[Option<(u32, u32)>]) -> TestCaseResult {
        for (segment, (pages, _, limit)) in (1..).zip(&self.story.areas) {
            if limit >= pages {
                continue;
            }
            prop_assert!(
                self.used(segment, spots) <= *limit
                    || spots.iter().flatten().all(|spot| spot.0 != segment),
                "segment {segment} is beyond its limit"
            );
        }
        Ok(())
    }

    /// Pages that are in use if the others leave: by those that stay and by `spots`.
    fn used(&self, segment: u32, spots: &[Option<(u32, u32)>]) -> u32 {
        let tenants = self
            .tenants
            .iter()
            .filter(|one| one.stays && one.segment == segment);
        let others: u32 = tenants.map(|one| one.run.end - one.run.start).sum();
        let mine: u32 = (0..spots.len())
            .filter_map(|index| {
                let fast = self.story.kinds[index].fast;
                let spot = spots[index].or(self.places[index].filter(|_| fast))?;
                (spot.0 == segment).then(|| self.run(index, spot).len() as u32)
            })
            .sum();
        others + mine
    }

    /// Nothing that must stay was moved.
    fn check_kept(&self, start: Cut, spots: &[Option<(u32, u32)>]) -> TestCaseResult {
        for index in self.kept(start.offset) {
            prop_assert!(self.places[index].is_some());
            prop_assert_eq!(spots[index], self.places[index], "{} was moved", index);
        }
        for (index, spot) in spots.iter().enumerate() {
            if self.story.kinds[index].fast && self.places[index].is_some() && spot.is_some() {
                prop_assert_eq!(*spot, self.places[index]);
            }
        }
        Ok(())
    }

    /// No placement of everything the portion needs, and of what the entry `failed` binds, exists
    /// that leaves where it is what must stay.
    fn check_need(
        &self,
        start: Cut,
        spots: &[Option<(u32, u32)>],
        failed: usize,
    ) -> TestCaseResult {
        let index = self.patches[failed].alloc_index as usize;
        prop_assert!(spots[index].is_none(), "it has a place");
        let mut fixed: Vec<Option<(u32, u32)>> = vec![None; spots.len()];
        let mut free = vec![index];
        for (number, spot) in spots.iter().enumerate() {
            let in_place = spot.is_some() && *spot == self.places[number];
            if in_place && !self.is_relaxed(number, start) {
                fixed[number] = *spot;
            } else if spot.is_some() {
                free.push(number);
            } else if self.story.kinds[number].fast {
                fixed[number] = self.places[number];
            }
        }
        prop_assert!(
            !self.can_place(&mut fixed, &free),
            "a better placement exists"
        );
        Ok(())
    }

    /// Whether all of `free` have places beside `placed`.
    fn can_place(&self, placed: &mut Vec<Option<(u32, u32)>>, free: &[usize]) -> bool {
        let Some((first, rest)) = free.split_first() else {
            return true;
        };
        for segment in 1..=2 {
            let (pages, _, limit) = self.story.areas[segment as usize - 1];
            for page in 0..pages {
                let spot = (segment, page);
                if !self.is_right(*first, spot) {
                    continue;
                }
                let run = self.run(*first, spot);
                let hard = self
                    .tenants
                    .iter()
                    .any(|one| one.stays && one.segment == segment && overlap(&one.run, &run));
                let taken = placed.iter().enumerate().any(|(other, there)| {
                    there.is_some_and(|there| {
                        there.0 == segment && overlap(&self.run(other, there), &run)
                    })
                });
                if hard || taken {
                    continue;
                }
                placed[*first] = Some(spot);
                let within = limit >= pages || self.used(segment, placed) <= limit;
                if within && self.can_place(placed, rest) {
                    return true;
                }
                placed[*first] = None;
            }
        }
        false
    }

    /// Moves everything where the plan says; who lies there leaves.
    fn apply(&mut self, spots: &[Option<(u32, u32)>]) {
        for (index, spot) in spots.iter().enumerate() {
            let Some(spot) = *spot else { continue };
            let run = self.run(index, spot);
            self.tenants
                .retain(|one| one.segment != spot.0 || !overlap(&one.run, &run));
            for other in 0..self.places.len() {
                let in_the_way = self.places[other].is_some_and(|there| {
                    there.0 == spot.0 && overlap(&self.run(other, there), &run)
                });
                if other != index && in_the_way {
                    self.places[other] = None;
                }
            }
        }
        for (place, spot) in self.places.iter_mut().zip(spots) {
            *place = spot.or(*place);
        }
        for segment in 1..=2 {
            self.keep_limit(segment, spots);
        }
    }

    /// Lets those leave who need not stay if more is in use than may be.
    fn keep_limit(&mut self, segment: u32, spots: &[Option<(u32, u32)>]) {
        if self.may_take(segment, &(0..0)) {
            return;
        }
        self.tenants
            .retain(|one| one.segment != segment || one.stays);
        for (index, spot) in spots.iter().enumerate() {
            let there = self.places[index].is_some_and(|there| there.0 == segment);
            if spot.is_none() && there && !self.story.kinds[index].fast {
                self.places[index] = None;
            }
        }
    }

    /// Runs all portions.
    fn run_all(&mut self, exactness: Exactness) -> TestCaseResult {
        let mut start = Cut::default();
        for turn in 0.. {
            self.let_come(turn);
            let (portion, spots) = self.plan(start);
            let portion = match portion {
                Ok(portion) => portion,
                Err(NoPlace { entry }) => {
                    prop_assert_eq!(self.patches[entry].split_offset, start.offset);
                    if exactness == Exactness::Full {
                        ENDS.fetch_add(1, Relaxed);
                        self.check_need(start, &spots, entry)?;
                    }
                    return Ok(());
                }
            };
            prop_assert_eq!(portion.start, start);
            self.check_places(&portion, &spots)?;
            self.check_kept(start, &spots)?;
            if let Some(failed) = portion.failed {
                let offset = self.patches[failed].split_offset;
                prop_assert_eq!(offset, portion.end.offset);
                if exactness == Exactness::Full {
                    CUTS.fetch_add(1, Relaxed);
                    self.check_need(start, &spots, failed)?;
                }
            }
            self.apply(&spots);
            if portion.end.offset >= self.bytes {
                prop_assert_eq!(portion.end.entry, self.patches.len());
                return Ok(());
            }
            let offset = portion.end.offset;
            let first = self
                .patches
                .iter()
                .position(|patch| patch.split_offset == offset);
            prop_assert_eq!(Some(portion.end.entry), first);
            prop_assert!(offset > start.offset, "an empty portion");
            self.check_kept_list(portion.end)?;
            start = portion.end;
        }
        Ok(())
    }

    /// What the policy says is kept across a cut is what the lists say.
    fn check_kept_list(&self, cut: Cut) -> TestCaseResult {
        let (mut slots, mut uses) = ([9; SLOTS as usize], [Use::default(); 8]);
        let mut table = Table::new(&mut slots, &mut uses);
        let mut kept = Vec::new();
        kept_across(&self.lists(), cut, &mut table, |index| kept.push(index));
        prop_assert_eq!(kept, self.kept(cut.offset));
        Ok(())
    }
}

/// How much is asked of a placement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exactness {
    /// If there is one it is found.
    Full,
    /// It is right.
    Sound,
}

fn occupant(key: u64, run: Range<u32>, fate: Fate) -> Occupant {
    let rank = match fate {
        Fate::Stays => Rank::default().tied(Bond::Fixed),
        _ => Rank::default(),
    };
    let candidate = Candidate {
        key,
        pages: run.end - run.start,
        rank,
    };
    Occupant::new(candidate, run, fate, 0)
}

fn overlap(one: &Range<u32>, other: &Range<u32>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Portions that were cut off, and submissions that could not go on.
static CUTS: AtomicU32 = AtomicU32::new(0);
static ENDS: AtomicU32 = AtomicU32::new(0);

#[test]
fn portions_reach_as_far_as_any_placement() {
    soak::check(20_000, story(false), |story| {
        Model::new(story).run_all(Exactness::Full)
    });
    // A story without cuts would prove nothing.
    assert!(CUTS.load(Relaxed) > 2_000 && ENDS.load(Relaxed) > 500);
}

#[test]
fn portions_are_right_with_any_alignment() {
    soak::check(10_000, story(true), |story| {
        Model::new(story).run_all(Exactness::Sound)
    });
}
