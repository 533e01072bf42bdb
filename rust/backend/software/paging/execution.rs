// SPDX-License-Identifier: GPL-2.0

//! Carrying out paging operations.
//!
//! Whole runs are worked on at once, at the speed of the host's own `memset` and `memmove`. Between
//! steps of a run others get the CPU, and a stop request is obeyed.

use super::encoding::Encoded;
use crate::{
    abstractions::pages::Frame,
    backend::{
        operation::{
            Name,
            Operation, //
        },
        software::{
            access::Direction,
            interruption::Stopped,
            memory::Memory, //
        },
    },
    uapi::abi::engine as abi,
    units::{
        Place,
        Run,
        SegmentId,
        PAGE_BYTES, //
    }, //
};

/// Bytes that are worked on between two questions whether to stop.
const STEP: u64 = 256 * 1024;

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

/// What happens to the content of discarded memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend::software) enum Discarded {
    /// Nothing.
    Left,
    /// It becomes poison, so that a later use shows.
    Poisoned,
}

/// Carries out paging operations.
pub(in crate::backend::software) struct Executor<'a, P: Fn() -> Result<(), Stopped>> {
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
        &self,
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
    fn encoded(&self, encoded: Encoded<'_>) -> Result<u64, Halt> {
        match encoded {
            Encoded::Fill(pattern, to) => self.fill(pattern, to.iter()),
            Encoded::Transfer(to, from) => self.transfer(to.iter(), from.iter()),
            Encoded::Discard(what) => self.discard(what.iter()),
            Encoded::MapAperture(at, pages) => self.map(at, pages.iter()),
            Encoded::UnmapAperture(at, bytes) => self.unmap(at, bytes),
        }
    }

    /// Executes an operation that is not encoded.
    pub(in crate::backend::software) fn operation(
        &self,
        operation: &Operation<'_>,
    ) -> Result<u64, Halt> {
        match *operation {
            Operation::Fill { pattern, to } => self.fill(pattern, to.iter().copied()),
            Operation::Transfer { from, to } => {
                self.transfer(to.iter().copied(), from.iter().copied())
            }
            Operation::Discard { what } => self.discard(what.iter().copied()),
            Operation::FillVirtual { .. }
            | Operation::TransferVirtual { .. }
            | Operation::UpdatePageTable(_)
            | Operation::FlushTlb { .. } => Err(Halt::Wrong),
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

/// Returns what is left of `run` behind `bytes` bytes.
const fn behind(run: Run, bytes: u64) -> Run {
    Run::new(run.place.forward(bytes), run.bytes.wrapping_sub(bytes))
}
