// SPDX-License-Identifier: GPL-2.0

//! Carrying out paging operations.
//!
//! Whole runs are worked on at once, at the speed of the host's own `memset` and `memmove`. Between
//! steps of a run others get the CPU, and a stop request is obeyed.

use super::encoding::{
    Encoded,
    EncodedUpdate,
    Target, //
};
use crate::{
    abstractions::pages::Frame,
    backend::{
        operation::{
            FlushRange,
            Name,
            Operation, //
        },
        page_table::{
            Update,
            ENTRY_BYTES, //
        },
        software::{
            access::Direction,
            interruption::Stopped,
            memory::Memory,
            mmu::{
                AddressSpace,
                Mmu,
                Refused,
                Translator, //
            },
            page_table,
            parts::LONGEST,
            raster::Scratch, //
        },
        FaultAccess, //
    },
    uapi::abi::engine as abi,
    units::{
        GpuVirtualAddress,
        Place,
        Run,
        SegmentId,
        PAGE_BYTES, //
    }, //
};

/// Bytes that are worked on between two questions whether to stop.
const STEP: u64 = 256 * 1024;

/// Bytes of an entry of a page table as a step.
// CAST: a small constant.
const ENTRY: usize = ENTRY_BYTES as usize;

/// Bytes of a page as a step.
// CAST: a small constant.
const PAGE: usize = PAGE_BYTES as usize;

/// Why an operation was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend::software) enum Halt {
    /// It was asked to end.
    Stopped,
    /// It names a place outside of its segment, or is none.
    Wrong,
}

impl From<Stopped> for Halt {
    fn from(_: Stopped) -> Self {
        Halt::Stopped
    }
}

impl From<Refused> for Halt {
    fn from(_: Refused) -> Self {
        Halt::Wrong
    }
}

/// What happens to the content of discarded memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend::software) enum Discarded {
    /// Nothing.
    Left,
    /// It becomes poison, so that a later use shows.
    Poisoned,
}

/// The address space of operations by virtual address, and room to work in it.
pub(in crate::backend::software) struct Space<'a> {
    /// The space.
    pub(in crate::backend::software) space: AddressSpace<'a>,
    /// The room.
    pub(in crate::backend::software) scratch: &'a mut Scratch,
}

/// Carries out paging operations.
pub(in crate::backend::software) struct Executor<'a, P: Fn() -> Result<(), Stopped>> {
    /// What remembers translations, if anything does.
    pub(in crate::backend::software) mmu: Option<&'a Mmu>,
    /// The address space they work in, if any.
    pub(in crate::backend::software) space: Option<Space<'a>>,
    /// The memory they work on.
    pub(in crate::backend::software) memory: &'a Memory,
    /// What Discard does.
    pub(in crate::backend::software) discarded: Discarded,
    /// Called between steps.
    pub(in crate::backend::software) pass: P,
}

/// What an operation did.
pub(in crate::backend::software) struct Report {
    /// Which one it was.
    pub(in crate::backend::software) name: Name,
    /// The bytes it covered.
    pub(in crate::backend::software) bytes: u64,
}

impl<P: Fn() -> Result<(), Stopped>> Executor<'_, P> {
    /// Executes a packet, unless `skip` wants an operation of this name left out.
    pub(in crate::backend::software) fn packet(
        &mut self,
        packet: &[u32],
        skip: impl FnOnce(Name) -> bool,
    ) -> Result<Report, Halt> {
        let encoded = Encoded::decode(packet).ok_or(Halt::Wrong)?;
        let name = encoded.name();
        let bytes = if skip(name) {
            0
        } else {
            self.encoded(encoded)?
        };
        Ok(Report { name, bytes })
    }

    /// Executes what a packet says.
    fn encoded(&mut self, encoded: Encoded<'_>) -> Result<u64, Halt> {
        match encoded {
            Encoded::Fill(pattern, to) => self.fill(pattern, to.iter()),
            Encoded::Transfer(to, from) => self.transfer(to.iter(), from.iter()),
            Encoded::Discard(what) => self.discard(what.iter()),
            Encoded::FillVirtual(pattern, to, bytes) => self.fill_virtual(pattern, to, bytes),
            Encoded::TransferVirtual(to, from, bytes) => self.transfer_virtual(to, from, bytes),
            Encoded::UpdatePageTable(update) => self.update_encoded(&update),
            Encoded::FlushTlb(root, range) => self.flush(root, range),
            Encoded::MapAperture(at, pages) => self.map(at, pages.iter()),
            Encoded::UnmapAperture(at, bytes) => self.unmap(at, bytes),
        }
    }

    /// Executes an operation that is not encoded.
    pub(in crate::backend::software) fn operation(
        &mut self,
        operation: &Operation<'_>,
    ) -> Result<u64, Halt> {
        match *operation {
            Operation::Fill { pattern, to } => self.fill(pattern, to.iter().copied()),
            Operation::Transfer { from, to } => {
                self.transfer(to.iter().copied(), from.iter().copied())
            }
            Operation::Discard { what } => self.discard(what.iter().copied()),
            Operation::FillVirtual { pattern, to, bytes } => self.fill_virtual(pattern, to, bytes),
            Operation::TransferVirtual { from, to, bytes } => {
                self.transfer_virtual(to, from, bytes)
            }
            Operation::UpdatePageTable(update) => self.update(&update),
            Operation::FlushTlb { root, range } => self.flush(root, range),
            Operation::MapAperture { at, pages } => self.map(at, pages.iter().copied()),
            Operation::UnmapAperture { at, bytes } => self.unmap(at, bytes),
        }
    }

    /// Calls `work` with parts of the runs, each within one segment and no longer than a step.
    fn steps(
        &self,
        runs: impl Iterator<Item = Run>,
        work: impl Fn(Place, u64) -> Option<()>,
    ) -> Result<u64, Halt> {
        let mut total = 0;
        for run in runs {
            if !self.memory.contains(run.place, run.bytes) {
                return Err(Halt::Wrong);
            }
            let mut done = 0;
            while done < run.bytes {
                let bytes = STEP.min(run.bytes - done);
                work(run.place.forward(done), bytes).ok_or(Halt::Wrong)?;
                done += bytes;
                (self.pass)()?;
            }
            total += run.bytes;
        }
        Ok(total)
    }

    /// Executes Fill.
    fn fill(&self, pattern: u32, to: impl Iterator<Item = Run>) -> Result<u64, Halt> {
        self.steps(to, |place, bytes| self.memory.fill(place, bytes, pattern))
    }

    /// Executes Discard.
    fn discard(&self, what: impl Iterator<Item = Run>) -> Result<u64, Halt> {
        match self.discarded {
            Discarded::Left => Ok(what.map(|run| run.bytes).sum()),
            Discarded::Poisoned => self.steps(what, |place, bytes| {
                self.memory.poison(place, bytes, abi::MEMORY_POISON)
            }),
        }
    }

    /// Executes Transfer: the source list is consumed along the destination list.
    fn transfer(
        &self,
        to: impl Iterator<Item = Run>,
        mut from: impl Iterator<Item = Run>,
    ) -> Result<u64, Halt> {
        let mut source = Run::new(Place::new(SegmentId::SYSTEM, 0), 0);
        let mut total = 0;
        for mut target in to {
            while target.bytes > 0 {
                if source.bytes == 0 {
                    source = from.next().ok_or(Halt::Wrong)?;
                }
                let bytes = target.bytes.min(source.bytes).min(STEP);
                let inside = self.memory.contains(target.place, bytes)
                    && self.memory.contains(source.place, bytes);
                if !inside {
                    return Err(Halt::Wrong);
                }
                self.memory
                    .copy(target.place, source.place, bytes, Direction::Ascending)
                    .ok_or(Halt::Wrong)?;
                target = behind(target, bytes);
                source = behind(source, bytes);
                total += bytes;
                (self.pass)()?;
            }
        }
        Ok(total)
    }

    /// Executes MapAperture.
    fn map(&self, at: Place, pages: impl Iterator<Item = Run>) -> Result<u64, Halt> {
        let aperture = self.memory.aperture(at.segment).ok_or(Halt::Wrong)?;
        let mut offset = at.offset;
        for run in pages {
            if run.place.segment != SegmentId::SYSTEM {
                return Err(Halt::Wrong);
            }
            for address in run.offsets().step_by(PAGE) {
                aperture
                    .set(offset, Some(Frame::containing(address)))
                    .ok_or(Halt::Wrong)?;
                offset = offset.wrapping_add(PAGE_BYTES);
            }
        }
        Ok(offset.wrapping_sub(at.offset))
    }

    /// Executes UnmapAperture.
    fn unmap(&self, at: Place, bytes: u64) -> Result<u64, Halt> {
        let aperture = self.memory.aperture(at.segment).ok_or(Halt::Wrong)?;
        for offset in Run::new(at, bytes).offsets().step_by(PAGE) {
            aperture.set(offset, None).ok_or(Halt::Wrong)?;
        }
        Ok(bytes)
    }
}

/// Operations by virtual address, and those that change what addresses mean.
impl<P: Fn() -> Result<(), Stopped>> Executor<'_, P> {
    /// Calls `work` with what lies at each piece of a range, which does not cross a boundary of pieces
    /// of `to`, and how much is done before it.
    fn pieces(
        &mut self,
        to: GpuVirtualAddress,
        bytes: u64,
        work: impl Fn(&Memory, &mut Translator<'_>, &mut Scratch, u64, u64) -> Result<(), Halt>,
    ) -> Result<u64, Halt> {
        let Space { space, scratch } = self.space.as_mut().ok_or(Halt::Wrong)?;
        let mut done = 0;
        while done < bytes {
            let at = to.forward(done);
            let piece = (LONGEST - at.0 % LONGEST).min(bytes - done);
            let mut translator = space.hold()?;
            let target = &mut scratch.target;
            translator.translate(at, piece, FaultAccess::Write, target)?;
            work(self.memory, &mut translator, scratch, done, piece)?;
            drop(translator);
            done += piece;
            (self.pass)()?;
        }
        Ok(done)
    }

    /// Executes FillVirtual.
    fn fill_virtual(
        &mut self,
        pattern: u32,
        to: GpuVirtualAddress,
        bytes: u64,
    ) -> Result<u64, Halt> {
        self.pieces(to, bytes, |memory, _, scratch, _, _| {
            let filled = memory.fill_parts(&scratch.target, pattern);
            filled.ok_or(Halt::Wrong)
        })
    }

    /// Executes TransferVirtual.
    fn transfer_virtual(
        &mut self,
        to: GpuVirtualAddress,
        from: GpuVirtualAddress,
        bytes: u64,
    ) -> Result<u64, Halt> {
        self.pieces(to, bytes, |memory, translator, scratch, done, piece| {
            let Scratch { target, source, .. } = scratch;
            translator.translate(from.forward(done), piece, FaultAccess::Read, source)?;
            let copied = memory.copy_parts(target, source, Direction::Ascending);
            copied.ok_or(Halt::Wrong)
        })
    }

    /// Executes UpdatePageTable as it stands in a packet.
    fn update_encoded(&mut self, update: &EncodedUpdate<'_>) -> Result<u64, Halt> {
        match update.target {
            Target::Place(table) => {
                for index in 0..update.count {
                    let word = update.word(index).ok_or(Halt::Wrong)?;
                    self.write_entry(table, update.first.wrapping_add(index), word)?;
                }
            }
            Target::Window(table) => self.update_window(update, table)?,
        }
        Ok(update.bytes())
    }

    /// Writes entries of a table that is named by its address, one piece of it at a time.
    fn update_window(
        &mut self,
        update: &EncodedUpdate<'_>,
        table: GpuVirtualAddress,
    ) -> Result<(), Halt> {
        let start = table.forward(u64::from(update.first) * ENTRY_BYTES);
        let bytes = u64::from(update.count) * ENTRY_BYTES;
        self.pieces(start, bytes, |memory, _, scratch, done, piece| {
            for skip in (0..piece).step_by(ENTRY) {
                // CAST: less than the number of entries.
                let index = ((done + skip) / ENTRY_BYTES) as u32;
                let word = update.word(index).ok_or(Halt::Wrong)?;
                if let Some(place) = scratch.target.place(skip).ok_or(Halt::Wrong)? {
                    memory.store(place, word).ok_or(Halt::Wrong)?;
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Executes UpdatePageTable that is not encoded. The table is named by its place.
    fn update(&self, update: &Update<'_>) -> Result<u64, Halt> {
        let mut index = update.first;
        update.try_for_each(|entry| {
            self.write_entry(update.table.place, index, page_table::encode(entry))?;
            index = index.wrapping_add(1);
            Ok::<_, Halt>(())
        })?;
        Ok(update.bytes())
    }

    /// Writes an entry of a table.
    fn write_entry(&self, table: Place, index: u32, word: u64) -> Result<(), Halt> {
        let place = table.forward(u64::from(index) * ENTRY_BYTES);
        if !self.memory.contains(place, ENTRY_BYTES) {
            return Err(Halt::Wrong);
        }
        self.memory.store(place, word).ok_or(Halt::Wrong)
    }

    /// Executes FlushTLB.
    fn flush(&self, root: Place, range: FlushRange) -> Result<u64, Halt> {
        self.mmu.ok_or(Halt::Wrong)?.flush(root, range);
        Ok(range.bytes())
    }
}

/// Returns what is left of `run` behind `bytes` bytes.
const fn behind(run: Run, bytes: u64) -> Run {
    Run::new(run.place.forward(bytes), run.bytes.wrapping_sub(bytes))
}
