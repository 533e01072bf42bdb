// SPDX-License-Identifier: GPL-2.0

//! Entries that follow: the tables of a client say where its memory is.
//!
//! Whoever gives an allocation a new place, or takes the old one, has the entries of all its mappings
//! written and flushed before ([`Mover::translate`]), in the same stream of operations: what comes
//! behind, and whoever gets the old pages, comes later (PAG-14, VA-20). What has changed in a space since is
//! written first ([`Mover::settle`]), so that no entry is left that leads to a place without being found.
//!
//! A range is written table by table, from the root down. Where it says the same throughout, and no table
//! below is in force, the entry above says it for all of them. Tables that must be there for it get
//! their places before ([`Mover::prepare_mappings`]); others may have to leave for them.
//!
//! Requirements: RES-5, VA-7, VA-16 to VA-20, PAG-3 to PAG-7.

use core::ops::Range;

use crate::{
    backend::page_table::{
        Entry,
        Rights, //
    },
    object::{
        address_space::{
            unpack,
            AddressSpace,
            Description,
            Kind, //
        },
        allocation::Allocation,
        backing::Backing,
        paging::Reason,
        residence::{
            Location,
            Residence, //
        },
        segment::{
            Contiguity,
            Shape, //
        },
    },
    policy::page_table::cut,
    units::{
        GpuVirtualAddress,
        Run,
        PAGE_BYTES, //
    },
};

use super::{
    Mover,
    Refusal,
    Residency, //
};

mod writer;

use self::writer::{
    Before,
    Content,
    Writer, //
};

/// No pages: for content that is the same throughout.
type Nothing = core::iter::Empty<Run>;

/// A part of an allocation that is mapped.
struct Part {
    /// Where in the allocation it begins.
    skip: u64,
    /// What engines may do.
    rights: Rights,
    /// The allocation.
    object_id: u64,
}

/// Whether tables may get a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// Where there is room.
    Placed,
    /// No: somebody leaves.
    None,
}

/// There is no room for a table.
struct Full;

impl Residency {
    /// Returns the pages of an allocation at `location`, in order.
    fn runs_at<'a>(
        &'a self,
        location: &'a Location,
        backing: Option<&'a Backing>,
    ) -> impl Iterator<Item = Run> + Clone + 'a {
        let chain = match location {
            Location::Segment(id, chain) => self.segment(*id).zip(Some(chain)),
            _ => None,
        };
        let backing = match location {
            Location::System | Location::Aperture(_) => backing,
            _ => None,
        };
        let here = chain.map(|(segment, chain)| segment.runs(chain));
        let there = backing.map(Backing::runs);
        Iterator::chain(here.into_iter().flatten(), there.into_iter().flatten())
    }
}

impl Mover<'_> {
    /// Writes what is stale in a space. Tables that are missing get a place.
    ///
    /// # Errors
    ///
    /// [`Refusal`]: a table has no place. What is left is stale still.
    pub(in crate::object) fn settle(&mut self, space: &AddressSpace) -> Result<(), Refusal> {
        while self.settle_stale(space, Growth::Placed).is_err() {
            self.make_room_for_table(space)?;
        }
        Ok(())
    }

    /// Writes what is stale in the space of an allocation that is about to lose its place. Where a table is
    /// missing there is no entry that leads to it, and the range stays stale.
    pub(super) fn settle_for(&mut self, allocation: &Allocation) {
        if let Some(space) = allocation.device().client().space() {
            let _ = self.settle_stale(&space.clone(), Growth::None);
        }
    }

    fn settle_stale(&mut self, space: &AddressSpace, growth: Growth) -> Result<(), Full> {
        let mut left: Option<Range<u64>> = None;
        while let Some(range) = space.take_stale() {
            let mut rest = range;
            while rest.start < rest.end {
                let found = space.first_piece(rest.clone());
                let start = found
                    .as_ref()
                    .map_or(rest.end, |found| found.piece.range.start);
                self.write(space, rest.start..start, Entry::Invalid);
                rest.start = start;
                let Some(found) = found else { break };
                let piece = found.piece.range.clone();
                let settled = self.settle_piece(space, &found, growth);
                if settled.is_err() && growth == Growth::Placed {
                    space.add_stale(rest);
                    return Err(Full);
                }
                if settled.is_err() {
                    let start = left.as_ref().map_or(piece.start, |left| left.start);
                    left = Some(start..piece.end);
                }
                rest.start = piece.end;
            }
        }
        if let Some(left) = left {
            space.add_stale(left);
        }
        Ok(())
    }

    /// Writes one piece of what is mapped, as far as its tables are there.
    fn settle_piece(
        &mut self,
        space: &AddressSpace,
        found: &Description,
        growth: Growth,
    ) -> Result<(), Full> {
        let range = found.piece.range.clone();
        let mapped = found.allocation.as_ref().zip(found.piece.mapped);
        let Some((allocation, mapped)) = mapped else {
            if found.piece.reserved != Some(Kind::Zero) || !space.tables().is_in_use() {
                self.write(space, range, Entry::Invalid);
                return Ok(());
            }
            let complete = self.place_ends(space, &range, growth);
            self.write(space, range, Entry::Zero);
            return complete;
        };
        let complete = match allocation.residence().lock().is_resident() {
            true => self.place_tables(space, &range, growth),
            false => Ok(()),
        };
        let residence = allocation.residence().lock();
        let part = Part {
            skip: mapped.offset,
            rights: unpack(mapped.rights),
            object_id: allocation.object_id(),
        };
        let (location, backing) = (&residence.location, residence.backing());
        self.write_part(space, range, (location, backing), &part, Before::Anything);
        complete
    }

    /// Gives the tables their places that mappings of `allocation` need, and writes what is stale.
    ///
    /// # Errors
    ///
    /// [`Refusal`]: there is no room.
    ///
    /// Requirements: PAG-3, RES-8.
    pub(super) fn prepare_mappings(&mut self, allocation: &Allocation) -> Result<(), Refusal> {
        let Some(space) = allocation.device().client().space().cloned() else {
            return Ok(());
        };
        self.settle(&space)?;
        loop {
            let mut placed = Ok(());
            space.for_each_mapping(allocation, |range, _| {
                if placed.is_ok() {
                    placed = self.place_tables(&space, &range, Growth::Placed);
                }
            });
            match placed {
                Ok(()) => return Ok(()),
                Err(Full) => self.make_room_for_table(&space)?,
            }
        }
    }

    /// Gives the tables a place that pages of `range` need.
    fn place_tables(
        &mut self,
        space: &AddressSpace,
        range: &Range<u64>,
        growth: Growth,
    ) -> Result<(), Full> {
        let shape = space.tables().shape();
        for level in (0..shape.levels()).rev() {
            let mut next = range.start;
            while next < range.end {
                let address = GpuVirtualAddress(next);
                self.place_table(space, level, address, growth)?;
                next = shape.span(level, address).end;
            }
        }
        Ok(())
    }

    /// Gives the tables a place that the ends of a range need which says the same throughout.
    fn place_ends(
        &mut self,
        space: &AddressSpace,
        range: &Range<u64>,
        growth: Growth,
    ) -> Result<(), Full> {
        let shape = space.tables().shape();
        for level in (0..shape.levels()).rev() {
            for address in [range.start, range.end.saturating_sub(1)] {
                let address = GpuVirtualAddress(address);
                let span = shape.span(level, address);
                if span.start < range.start || span.end > range.end {
                    self.place_table(space, level, address, growth)?;
                }
            }
        }
        Ok(())
    }

    fn place_table(
        &mut self,
        space: &AddressSpace,
        level: u32,
        address: GpuVirtualAddress,
        growth: Growth,
    ) -> Result<(), Full> {
        let tables = space.tables();
        if !tables.is_away(level, address) {
            return Ok(());
        }
        if growth == Growth::None {
            return Err(Full);
        }
        let begins = !tables.is_in_use();
        if !tables.place(&mut self.residency.segments, level, address, self.cause) {
            return Err(Full);
        }
        if begins {
            // What reads as zero was not written as long as nothing could run.
            space.add_zero_stale();
        }
        Ok(())
    }

    /// Lets others leave so that there is room for a table.
    fn make_room_for_table(&mut self, space: &AddressSpace) -> Result<(), Refusal> {
        let id = space.tables().segment();
        let shape = Shape {
            bytes: PAGE_BYTES,
            align: PAGE_BYTES,
            contiguity: Contiguity::Loose,
        };
        let segment = self.residency.segment(id);
        let need = segment.and_then(|segment| segment.missing(&shape));
        let chosen = self.choose_loose(id, need)?;
        if chosen == 0 {
            return Err(Refusal::NoPlace);
        }
        self.clear(id, Ok(chosen))
    }

    /// Lets all mappings of an allocation that is nowhere lead to the place it is about to have.
    ///
    /// Requirement: RES-5.
    pub(super) fn translate_coming(
        &mut self,
        allocation: &Allocation,
        location: &Location,
        backing: &Backing,
    ) {
        self.translate(allocation, (location, Some(backing)), Before::Nothing);
    }

    /// Lets all mappings of an allocation lead to `location` instead of the place it has.
    ///
    /// Requirements: VA-19, VA-20.
    pub(super) fn translate_away(
        &mut self,
        allocation: &Allocation,
        location: &Location,
        residence: &Residence,
    ) {
        let place = (location, residence.backing());
        self.translate(allocation, place, Before::Anything);
    }

    fn translate(
        &mut self,
        allocation: &Allocation,
        place: (&Location, Option<&Backing>),
        before: Before,
    ) {
        let Some(space) = allocation.device().client().space().cloned() else {
            return;
        };
        let object_id = allocation.object_id();
        space.for_each_mapping(allocation, |range, mapped| {
            let part = Part {
                skip: mapped.offset,
                rights: unpack(mapped.rights),
                object_id,
            };
            self.write_part(&space, range, place, &part, before);
        });
    }

    /// Writes entries for a part of an allocation at a place.
    fn write_part(
        &mut self,
        space: &AddressSpace,
        range: Range<u64>,
        (location, backing): (&Location, Option<&Backing>),
        part: &Part,
        before: Before,
    ) {
        let bytes = range.end.saturating_sub(range.start);
        let end = part.skip.saturating_add(bytes);
        let (mut writer, residency) = self.writer(space, part.object_id);
        if matches!(location, Location::Nowhere) {
            let nothing = Content::<Nothing>::Same(Entry::Invalid);
            return writer.write(range, nothing, Before::Anything);
        }
        let runs = cut(residency.runs_at(location, backing), part.skip..end);
        writer.write(range, Content::Pages(runs, part.rights), before);
    }

    /// Writes a range that says the same throughout.
    fn write(&mut self, space: &AddressSpace, range: Range<u64>, entry: Entry) {
        let (mut writer, _) = self.writer(space, 0);
        let content = Content::<Nothing>::Same(entry);
        writer.write(range, content, Before::Anything);
    }

    fn writer<'a>(
        &'a mut self,
        space: &'a AddressSpace,
        object_id: u64,
    ) -> (Writer<'a>, &'a Residency) {
        let writer = Writer {
            adapter: self.adapter,
            space,
            tables: space.tables(),
            builder: self.builder,
            line: self.line,
            why: Reason {
                space: space.number(),
                process: space.process(),
                allocation: object_id,
                cause: self.cause,
            },
        };
        (writer, self.residency)
    }
}
