// SPDX-License-Identifier: GPL-2.0

//! Spaces of addresses against a model that knows each page by itself.

use std::ops::Range;

use policy::policy::mapping::{
    Freed,
    Kind,
    Made,
    Owner,
    Place,
    Refused,
    Request,
    Rights,
    Slot,
    Space,
    SLOTS, //
};
use proptest::prelude::*;

mod soak;

/// Addresses of the space.
const LIMITS: Range<u64> = 3..120;
const OWNERS: usize = 3;

/// What the model knows of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    /// Which range it belongs to: the number of the request that made it.
    range: usize,
    /// The kind of the reservation, if that is what made the range.
    reserved: Option<Kind>,
    /// Whose memory it shows, which byte, and what may be done.
    mapped: Option<(usize, u64, Rights)>,
}

type Model = Vec<Option<Page>>;

/// A request of the random walk.
#[derive(Clone, Debug)]
enum Step {
    Reserve(Place, u64, Kind),
    Map {
        place: Place,
        bytes: u64,
        owner: usize,
        offset: u64,
        rights: u32,
    },
    Free(Range<u64>),
    /// Frees what the n-th range of the space was made as.
    FreeRange(usize),
    /// Forgets an owner, and makes another one known.
    Renew(usize),
}

fn places() -> impl Strategy<Value = Place> {
    let window = (0..130_u64, 0..130_u64, 0..5_u32);
    prop_oneof![
        3 => (0..125_u64).prop_map(Place::At),
        1 => window.prop_map(|(start, end, align)| Place::Within {
            window: start..end,
            align: 1 << align,
        }),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![Just(Kind::NoAccess), Just(Kind::Zero)];
    let map = (places(), 0..20_u64, 0..OWNERS, 0..30_u64, 0..2_u32);
    prop_oneof![
        1 => (places(), 1..30_u64, kind).prop_map(|(place, bytes, kind)| Step::Reserve(place, bytes, kind)),
        6 => map.prop_map(|(place, bytes, owner, offset, rights)| Step::Map { place, bytes, owner, offset, rights }),
        3 => (0..125_u64, 0..20_u64).prop_map(|(start, bytes)| Step::Free(start..start + bytes)),
        1 => (0..8_usize).prop_map(Step::FreeRange),
        1 => (0..OWNERS).prop_map(Step::Renew),
    ]
}

/// The pages of a range, or why it is no range.
fn inside(range: &Range<u64>) -> Result<Range<usize>, Refused> {
    let inside = range.start >= LIMITS.start && range.end <= LIMITS.end && !range.is_empty();
    inside
        .then_some(range.start as usize..range.end as usize)
        .ok_or(Refused::Outside)
}

/// Where a range goes, page by page.
fn placed(model: &Model, place: &Place, bytes: u64) -> Result<Range<usize>, Refused> {
    if bytes == 0 {
        return Err(Refused::Outside);
    }
    let Place::Within { window, align } = place else {
        let Place::At(start) = *place else {
            unreachable!()
        };
        return inside(&(start..start + bytes));
    };
    let window = window.start.max(LIMITS.start)..window.end.min(LIMITS.end);
    let fits = |start: &u64| {
        let range = *start..*start + bytes;
        let pages = range.start as usize..range.end as usize;
        start % align == 0 && range.end <= window.end && model[pages].iter().all(Option::is_none)
    };
    let found = window.clone().chain([window.end]).find(fits);
    inside(
        &found
            .map(|start| start..start + bytes)
            .ok_or(Refused::NoPlace)?,
    )
}

fn reserve(
    model: &mut Model,
    number: usize,
    (place, bytes, kind): (&Place, u64, Kind),
) -> Result<u64, Refused> {
    let pages = placed(model, place, bytes)?;
    if model[pages.clone()].iter().any(Option::is_some) {
        return Err(Refused::Overlap);
    }
    model[pages.clone()].fill(Some(Page {
        range: number,
        reserved: Some(kind),
        mapped: None,
    }));
    Ok(pages.start as u64)
}

fn map(model: &mut Model, number: usize, owner: usize, request: &Request) -> Result<Made, Refused> {
    let pages = placed(model, &request.place, request.bytes)?;
    let first = model[pages.start];
    let same = |page: &Option<Page>| page.map(|page| page.range) == first.map(|page| page.range);
    if !model[pages.clone()].iter().all(same) {
        return Err(Refused::Overlap);
    }
    let reserved = first.and_then(|page| page.reserved);
    if reserved == Some(Kind::Zero) {
        return Err(Refused::Zero);
    }
    for (page, skip) in pages.clone().zip(0..) {
        model[page] = Some(Page {
            range: first.map_or(number, |page| page.range),
            reserved,
            mapped: Some((owner, request.offset + skip, request.rights)),
        });
    }
    let start = pages.start as u64;
    Ok(match first {
        None => Made::Range(start),
        Some(_) => Made::Inside(start),
    })
}

/// Takes the mapping of a page away; returns whether the page is free now.
fn unmap(page: &mut Option<Page>) -> bool {
    match page {
        Some(page) if page.reserved.is_some() => page.mapped = None,
        _ => *page = None,
    }
    page.is_none()
}

fn free(model: &mut Model, range: &Range<u64>, freed: &mut Vec<u64>) -> Result<Freed, Refused> {
    let pages = inside(range)?;
    let first = model[pages.start];
    if let Some(Page {
        range: number,
        reserved: Some(kind),
        ..
    }) = first
    {
        let is_part = |page: &Option<Page>| page.is_some_and(|page| page.range == number);
        let whole = model.iter().filter(|page| is_part(page)).count();
        if whole == pages.len() && model[pages.clone()].iter().all(is_part) {
            model[pages].fill(None);
            return Ok(Freed::Reservation(kind));
        }
    }
    for page in &model[pages.clone()] {
        let page = page.ok_or(Refused::NotMapped)?;
        if page.reserved == Some(Kind::Zero) {
            return Err(Refused::Zero);
        }
        page.mapped.ok_or(Refused::NotMapped)?;
    }
    freed.extend(
        range
            .clone()
            .filter(|page| unmap(&mut model[*page as usize])),
    );
    Ok(Freed::Mappings)
}

/// The range that was made `number` ranges ago, as far as it is still there.
fn whole_range(model: &Model, number: usize) -> Option<Range<u64>> {
    let mut numbers: Vec<usize> = model.iter().flatten().map(|page| page.range).collect();
    numbers.dedup();
    let wanted = *numbers.iter().rev().nth(number)?;
    let is_part = |page: &Option<Page>| page.is_some_and(|page| page.range == wanted);
    let start = model.iter().position(is_part)?;
    let end = model.iter().rposition(is_part)? + 1;
    Some(start as u64..end as u64)
}

type Lent = Vec<Slot<usize>>;

fn unused(count: usize) -> Lent {
    std::iter::repeat_with(|| Slot::UNUSED)
        .take(count)
        .collect()
}

/// The space, beside its model.
struct Pair {
    space: Space<Lent, usize>,
    owners: Vec<Owner>,
    model: Model,
}

impl Pair {
    fn new() -> Self {
        let mut space = Space::new(unused(OWNERS), LIMITS);
        let owners = (0..OWNERS).map(|owner| space.attach(owner));
        Self {
            owners: owners.map(|owner| owner.expect("an owner")).collect(),
            space,
            model: vec![None; 200],
        }
    }

    /// Makes a step in both; both answer the same.
    fn step(&mut self, number: usize, step: &Step) {
        if self.space.spare() < SLOTS {
            let longer = self.space.capacity() + SLOTS as usize + number % 5;
            let old = self.space.grow(unused(longer));
            assert!(old.len() < longer);
        }
        match step {
            Step::Reserve(place, bytes, kind) => {
                let expected = reserve(&mut self.model, number, (place, *bytes, *kind));
                assert_eq!(self.space.reserve(place, *bytes, *kind), expected);
            }
            Step::Map {
                place,
                bytes,
                owner,
                offset,
                rights,
            } => {
                let request = Request {
                    place: place.clone(),
                    bytes: *bytes,
                    owner: self.owners[*owner],
                    offset: *offset,
                    rights: Rights(*rights),
                };
                let expected = map(&mut self.model, number, *owner, &request);
                assert_eq!(self.space.map(&request), expected);
            }
            Step::Free(range) => self.free(range.clone()),
            Step::FreeRange(which) => {
                if let Some(range) = whole_range(&self.model, *which) {
                    self.free(range);
                }
            }
            Step::Renew(owner) => self.renew(*owner),
        }
    }

    fn free(&mut self, range: Range<u64>) {
        let (mut expected, mut freed) = (Vec::new(), Vec::new());
        let answer = free(&mut self.model, &range, &mut expected);
        assert_eq!(self.space.free(range, |part| freed.extend(part)), answer);
        assert_eq!(freed, expected, "what is told to be free");
    }

    fn renew(&mut self, owner: usize) {
        let mut expected = Vec::new();
        for (address, page) in self.model.iter_mut().enumerate() {
            if page.is_some_and(|page| page.mapped.is_some_and(|(whose, ..)| whose == owner))
                && unmap(page)
            {
                expected.push(address as u64);
            }
        }
        let mut freed = Vec::new();
        let gone = self
            .space
            .detach(self.owners[owner], |part| freed.extend(part));
        freed.sort_unstable();
        assert_eq!(gone, Some(owner));
        assert_eq!(freed, expected, "what an owner leaves free");
        self.owners[owner] = self.space.attach(owner).expect("its own slot is spare");
    }

    /// Compares the two, page by page and by the number of mappings.
    fn compare(&self) {
        let mut pages = vec![None; self.model.len()];
        for piece in self.space.pieces(0..u64::MAX) {
            for address in piece.range.clone() {
                let mapped = piece.mapped.map(|mapped| {
                    let owner = *self.space.owner(mapped.owner).expect("an owner");
                    (
                        owner,
                        mapped.offset + address - piece.range.start,
                        mapped.rights,
                    )
                });
                assert_eq!(pages[address as usize], None, "two pieces at one address");
                pages[address as usize] = Some((piece.reserved, mapped));
            }
        }
        let expected = self
            .model
            .iter()
            .map(|page| Some((page.as_ref()?.reserved, page.as_ref()?.mapped)));
        assert!(pages.iter().copied().eq(expected), "{pages:?}");
        self.compare_mappings();
    }

    /// Mappings are as few as they can be, and each is found through its owner.
    fn compare_mappings(&self) {
        let continues = |before: &Option<Page>, page: &Page| {
            let (owner, offset, rights) = page.mapped.expect("a mapping");
            before.is_some_and(|before| {
                let shows = before
                    .mapped
                    .map(|(whose, at, rights)| (whose, at + 1, rights));
                before.range == page.range && shows == Some((owner, offset, rights))
            })
        };
        for (number, owner) in self.owners.iter().enumerate() {
            let whose = |page: &Page| page.mapped.map(|(whose, ..)| whose) == Some(number);
            let beginnings = self.model.iter().enumerate().filter(|(address, page)| {
                page.as_ref().is_some_and(|page| {
                    let before = address.checked_sub(1).and_then(|before| self.model[before]);
                    whose(page) && !continues(&before, page)
                })
            });
            let mut expected: Vec<u64> = beginnings.map(|(address, _)| address as u64).collect();
            let mut found: Vec<u64> = self
                .space
                .mappings_of(*owner)
                .map(|(range, _)| range.start)
                .collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "mappings of owner {number}");
        }
    }
}

#[test]
fn space_and_model_agree_after_each_step() {
    let walk = prop::collection::vec(steps(), 1..60);
    soak::check(2000, walk, |walk| {
        let mut pair = Pair::new();
        for (number, step) in walk.iter().enumerate() {
            pair.step(number, step);
            pair.compare();
        }
        Ok(())
    });
}

#[test]
fn windows_show_what_lies_in_them() {
    let walk = prop::collection::vec(steps(), 1..60);
    let window = (0..130_u64, 0..130_u64);
    soak::check(500, (walk, window), |(walk, (start, end))| {
        let mut pair = Pair::new();
        for (number, step) in walk.iter().enumerate() {
            pair.step(number, step);
        }
        let mut next = start;
        for piece in pair.space.pieces(start..end) {
            prop_assert!(piece.range.start >= next && piece.range.end <= end);
            prop_assert!(!piece.range.is_empty());
            let free = next as usize..piece.range.start as usize;
            prop_assert!(pair.model[free].iter().all(Option::is_none));
            next = piece.range.end;
        }
        let free = next as usize..(end.max(next)) as usize;
        prop_assert!(pair.model[free].iter().all(Option::is_none));
        Ok(())
    });
}
