// SPDX-License-Identifier: GPL-2.0

//! How far the next portion of a buffer reaches, and where everything lies while it runs.
//!
//! The entries of the patch list are taken in order (DMA-12). What an entry binds must be in memory
//! from its split offset on, and what was bound anywhere since the last cut stays where it is, so the
//! question at each entry is whether there is room beside all of that. If not, the buffer is cut at
//! the entry's split offset (DMA-14).
//!
//! | what is bound | where it lies |
//! |---|---|
//! | across the cut, by a slot that is not bound anew there | where it is (DMA-16, DMA-21) |
//! | across the cut, all its slots bound anew there | where it is, or anywhere if that makes room (DMA-22) |
//! | later, and is in memory already | where it is, if nothing before it came there |
//! | later, and is not in memory | anywhere |
//!
//! The places of the last kind are chosen together: if the best one for each leaves no room for the next,
//! all of them are placed anew before the buffer is cut. Whoever else lies there leaves, unless it must
//! stay.

use super::super::patch_list::{
    Lists,
    Patch, //
};
use super::super::placement;
use super::super::resource_table::{
    to_index,
    Table, //
};
use super::ground::{
    Ground,
    Spot, //
};
use super::packing::{
    pack,
    Gap,
    Trial, //
};

/// Whether something may be moved for a portion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// If the rules permit it.
    #[default]
    Loose,
    /// Not at all: others need it where it is.
    Fast,
}

/// What an element of the allocation list needs, and where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Its size.
    pub bytes: u64,
    /// Its alignment in bytes.
    pub align: u64,
    /// The segments in which it may be.
    pub segments: u32,
    /// Which of them it prefers.
    pub preferred: u64,
    /// Where it lies, if it is in memory.
    pub place: Option<Spot>,
    /// Whether it may be moved from there.
    pub hold: Hold,
}

/// An element of the allocation list, and what is decided about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// What it needs.
    pub(super) wanted: Wanted,
    /// What was decided.
    standing: Standing,
    /// Where the search for a place stands.
    pub(super) trial: Trial,
}

/// What was decided about an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// The portion does not need it.
    #[default]
    Unneeded,
    /// It is there and stays.
    Kept(Spot),
    /// It lies there while the portion runs; it may be placed elsewhere as long as that is being decided.
    Placed(Spot),
}

impl Item {
    /// Returns an element about which nothing is decided.
    pub fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            ..Self::default()
        }
    }

    /// Returns where it lies while the portion runs; [`None`] if the portion does not need it.
    pub fn spot(&self) -> Option<Spot> {
        match self.standing {
            Standing::Unneeded => None,
            Standing::Kept(spot) | Standing::Placed(spot) => Some(spot),
        }
    }

    /// Returns whether another item can take its part in a placement.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let key = |item: &Self| {
            let wanted = &item.wanted;
            (
                wanted.bytes,
                wanted.align,
                wanted.segments,
                wanted.preferred,
            )
        };
        key(self) == key(other)
    }
}

/// Where a buffer was cut: where the next portion begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The first byte of the portion.
    pub offset: u32,
    /// The first entry with that split offset.
    pub entry: usize,
}

/// The next portion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portion {
    /// Where it begins.
    pub start: Cut,
    /// Where the next one begins; at the end of the buffer and of the list if there is none.
    pub end: Cut,
    /// The entry for which there was no room; [`None`] if nothing had to be left out.
    pub failed: Option<usize>,
}

/// What is bound at the beginning of the portion has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlace {
    /// The entry for which there was no room.
    pub entry: usize,
}

/// Memory lent to [`plan`]; its content does not matter.
#[derive(Debug)]
pub struct Scratch<'a> {
    /// One number for each element of the allocation list.
    pub order: &'a mut [u32],
    /// One for each page of the segments.
    pub gaps: &'a mut [Gap],
}

/// Plans the portion that begins at `start`.
///
/// `items` has one for each element of the allocation list, the NULL elements included. `table`
/// was made for these lists, and `ground` was described at this moment. [`Item::spot`] tells where
/// each item lies while the portion runs.
///
/// # Errors
///
/// [`NoPlace`]: no portion can begin there.
///
/// Requirement: DMA-5, DMA-9, DMA-11, DMA-14 to DMA-17, DMA-19 to DMA-23.
pub fn plan(
    lists: &Lists<'_>,
    start: Cut,
    items: &mut [Item],
    table: &mut Table<'_>,
    ground: &mut Ground<'_>,
    scratch: Scratch<'_>,
) -> Result<Portion, NoPlace> {
    let mut planner = Planner {
        lists,
        items,
        table,
        ground,
        scratch,
    };
    let first = planner.begin(start);
    if let Err(entry) = planner.place_group(start.entry, first) {
        return Err(NoPlace { entry });
    }
    let mut entry = first;
    while let Some(offset) = planner.offset_of(entry) {
        let group = entry;
        entry = planner.end_of_group(entry);
        planner.bind(group, entry);
        if let Err(failed) = planner.place_group(group, entry) {
            // What is bound at the very end is not needed by any byte.
            let end = if offset < lists.bytes {
                Cut {
                    offset,
                    entry: group,
                }
            } else {
                planner.end()
            };
            return Ok(Portion {
                start,
                end,
                failed: Some(failed),
            });
        }
    }
    Ok(Portion {
        start,
        end: planner.end(),
        failed: None,
    })
}

/// Tells `kept` what must stay where it is if the buffer is cut at `cut`: what is bound before and
/// by some slot that is not bound anew exactly there. `table` was made for these lists.
///
/// Requirement: DMA-15, DMA-16, DMA-22.
pub fn kept_across(
    lists: &Lists<'_>,
    cut: Cut,
    table: &mut Table<'_>,
    mut kept: impl FnMut(usize),
) {
    replay(lists, cut, table);
    for index in 0..lists.listed.len() {
        let held = u32::try_from(index).is_ok_and(|index| table.holds(index));
        if held {
            kept(index);
        }
    }
}

/// Leaves in `table` what is bound before `cut` by slots that are not bound anew there.
fn replay(lists: &Lists<'_>, cut: Cut, table: &mut Table<'_>) {
    table.clear();
    for patch in lists.patches.iter().take(cut.entry) {
        table.bind(patch.slot, lists.target(patch));
    }
    let rest = lists.patches.iter().skip(cut.entry);
    for patch in rest.take_while(|patch| patch.split_offset == cut.offset) {
        table.bind(patch.slot, None);
    }
}

/// A plan in the making.
struct Planner<'p, 't, 'g> {
    lists: &'p Lists<'p>,
    items: &'p mut [Item],
    table: &'p mut Table<'t>,
    ground: &'p mut Ground<'g>,
    scratch: Scratch<'p>,
}

impl Planner<'_, '_, '_> {
    /// Binds up to and at `start`, and lets stay what is kept across it. Returns the first entry
    /// behind.
    fn begin(&mut self, start: Cut) -> usize {
        replay(self.lists, start, self.table);
        for (index, item) in (0..).zip(self.items.iter_mut()) {
            item.standing = match item.wanted.place {
                Some(spot) if self.table.holds(index) => Standing::Kept(spot),
                _ => Standing::Unneeded,
            };
        }
        for item in self.items.iter() {
            let held = match item.standing {
                Standing::Kept(spot) => Some(spot),
                _ => item.wanted.place.filter(|_| item.wanted.hold == Hold::Fast),
            };
            if let Some(spot) = held {
                self.ground.hold(spot);
            }
        }
        if self.offset_of(start.entry) != Some(start.offset) {
            return start.entry;
        }
        let end = self.end_of_group(start.entry);
        self.bind(start.entry, end);
        // Nothing was bound before the first byte: what lies in memory there stays.
        if start.offset == 0 {
            return end;
        }
        // Bound anew: they may move.
        for entry in start.entry..end {
            self.relax(entry);
        }
        end
    }

    /// Lets what an entry binds at the cut go elsewhere if that makes room; where it is it stays as
    /// long as it can.
    fn relax(&mut self, entry: usize) {
        let Some((_, item)) = self.target(entry) else {
            return;
        };
        if item.wanted.hold == Hold::Fast || item.standing != Standing::Unneeded {
            return;
        }
        if let Some(spot) = item.wanted.place {
            item.standing = Standing::Placed(spot);
            self.ground.hold(spot);
        }
    }

    /// Returns the split offset of an entry; [`None`] behind the last.
    fn offset_of(&self, entry: usize) -> Option<u32> {
        self.lists
            .patches
            .get(entry)
            .map(|patch| patch.split_offset)
    }

    /// Returns the first entry with another split offset than that of `entry`.
    fn end_of_group(&self, entry: usize) -> usize {
        let offset = self.offset_of(entry);
        let rest = self.lists.patches.iter().skip(entry);
        let same = |patch: &&Patch| Some(patch.split_offset) == offset;
        entry.saturating_add(rest.take_while(same).count())
    }

    /// Returns the end of the buffer.
    fn end(&self) -> Cut {
        Cut {
            offset: self.lists.bytes,
            entry: self.lists.patches.len(),
        }
    }

    /// Binds what the entries of a group bind.
    fn bind(&mut self, from: usize, to: usize) {
        for patch in self.lists.patches.get(from..to).unwrap_or_default() {
            self.table.bind(patch.slot, self.lists.target(patch));
        }
    }

    /// Returns what an entry binds, and its number, if it stays bound after its group.
    fn target(&mut self, entry: usize) -> Option<(u32, &mut Item)> {
        let patch = self.lists.patches.get(entry)?;
        let index = self.lists.target(patch)?;
        if !self.table.holds(index) {
            return None;
        }
        Some((index, self.items.get_mut(to_index(index))?))
    }

    /// Finds places for everything that a group binds, in the order of its entries.
    ///
    /// # Errors
    ///
    /// The entry for which there is no room.
    fn place_group(&mut self, from: usize, to: usize) -> Result<(), usize> {
        for entry in from..to {
            let Some((index, item)) = self.target(entry) else {
                continue;
            };
            let item = *item;
            if item.spot().is_some() {
                continue;
            }
            if let Some(standing) = self.best_place(&item) {
                if let Some(item) = self.items.get_mut(to_index(index)) {
                    item.standing = standing;
                }
            } else if !self.place_anew(index) {
                return Err(entry);
            }
        }
        Ok(())
    }

    /// Finds the best place for an item beside all others and takes it.
    fn best_place(&mut self, item: &Item) -> Option<Standing> {
        let there = item.wanted.place.filter(|spot| self.can_stay(item, *spot));
        if let Some(spot) = there {
            self.ground.hold(spot);
            return Some(Standing::Kept(spot));
        }
        let choices = placement::order(item.wanted.preferred, item.wanted.segments);
        for clearing in [Clearing::None, Clearing::Cheapest] {
            for choice in choices.clone() {
                let Some(area) = self.ground.area(choice.segment) else {
                    continue;
                };
                let sizes = area
                    .pages_for(item.wanted.bytes)
                    .zip(area.pages_for(item.wanted.align));
                let Some((pages, align)) = sizes else {
                    continue;
                };
                let found = match clearing {
                    Clearing::None => self.ground.free(choice.segment, pages, align, choice.from),
                    Clearing::Cheapest => self.ground.cheapest(choice.segment, pages, align),
                };
                if let Some(found) = found {
                    let page = found.start;
                    self.ground.take(choice.segment, found);
                    return Some(Standing::Placed(Spot {
                        segment: choice.segment,
                        page,
                    }));
                }
            }
        }
        None
    }

    /// Returns whether an item can stay where it lies.
    fn can_stay(&self, item: &Item, spot: Spot) -> bool {
        if item.wanted.hold == Hold::Fast {
            return true;
        }
        let area = self.ground.area(spot.segment);
        let pages = area.and_then(|area| area.pages_for(item.wanted.bytes));
        let has_room = pages.is_some_and(|pages| self.ground.permits(spot.segment, pages));
        has_room && self.ground.is_there(spot)
    }

    /// Places an item together with those that may still be elsewhere: first without moving any that
    /// lies in memory, then with them.
    fn place_anew(&mut self, index: u32) -> bool {
        [Moving::Arriving, Moving::All]
            .into_iter()
            .any(|moving| self.pack(index, moving))
    }

    /// Places item `index`, and with it those that `moving` says.
    fn pack(&mut self, index: u32, moving: Moving) -> bool {
        let mut count = 0_usize;
        for (number, item) in (0..).zip(self.items.iter()) {
            let placed = match item.standing {
                Standing::Placed(spot) => Some(spot),
                _ => None,
            };
            let moves = placed.is_some_and(|spot| match moving {
                Moving::All => true,
                Moving::Arriving => item.wanted.place != Some(spot),
            });
            if number != index && !moves {
                continue;
            }
            if let Some(spot) = placed {
                self.ground.vacate(spot);
            }
            if let Some(slot) = self.scratch.order.get_mut(count) {
                *slot = number;
                count = count.saturating_add(1);
            }
        }
        let order = self.scratch.order.get_mut(..count).unwrap_or_default();
        let found = pack(self.ground, self.items, order, self.scratch.gaps);
        for number in order.iter() {
            let Some(item) = self.items.get_mut(to_index(*number)) else {
                continue;
            };
            if let Some(spot) = item.trial.spot().filter(|_| found) {
                item.standing = Standing::Placed(spot);
            }
            if let Standing::Placed(spot) = item.standing {
                let area = self.ground.area(spot.segment);
                let pages = area
                    .and_then(|area| area.pages_for(item.wanted.bytes))
                    .unwrap_or(0);
                let pages = spot.page..spot.page.saturating_add(pages);
                self.ground.take(spot.segment, pages);
            }
        }
        found
    }
}

/// Who may leave for an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clearing {
    /// Nobody.
    None,
    /// Those whose leaving costs least.
    Cheapest,
}

/// Who is placed anew.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moving {
    /// Those that are not where they shall be.
    Arriving,
    /// Those that are, too, if the rules permit it.
    All,
}
