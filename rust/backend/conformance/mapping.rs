// SPDX-License-Identifier: GPL-2.0

//! Random mappings and random accesses, against a model that goes page by page.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    bench::Numbers,
    place,
    space::{
        Leaf,
        Naming,
        Spaces,
        ALL, //
    },
    stream::{
        Side,
        Stream, //
    },
    Verdict,
    RENDER, //
};
use crate::{
    backend::{
        operation::FlushRange,
        page_table::{
            Entries,
            Entry,
            Rights, //
        },
        Backend,
        EngineContext,
        Fault,
        FaultAccess,
        FaultReason,
        Outcome, //
    },
    units::{
        GpuVirtualAddress,
        Place,
        Run,
        SegmentId, //
    }, //
};

/// Pages that mappings and accesses are about.
const PAGES: usize = 64;
/// The first one of them.
const START: u64 = 0x10_0000;
/// Bytes of a page.
const PAGE: usize = 4096;
/// Where commands lie.
const COMMANDS: u64 = 0x8_0000;
/// Memory behind the pages: two for each, so that no two pages show the same.
const MEMORY: usize = 2 * PAGES * PAGE;
/// No piece of an access crosses a multiple of this address.
const PIECE: usize = 64 * 1024;

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Invalid,
    Zero,
    Mapped { offset: usize, write: bool },
}

/// The pages and the memory behind them.
struct Model {
    pages: [State; PAGES],
    memory: KVVec<u8>,
}

/// Changes mappings at random and looks what fills and copies do: rows of up to five pages, which meet
/// whatever the pages are. Faults are at the lowest byte of the first piece that meets one, and pieces
/// before it are complete.
pub(crate) fn mappings_match_model(backend: &dyn Backend) -> Verdict {
    let spaces = Spaces::new(backend)?;
    let context = spaces.context(7, RENDER)?;
    spaces.map(COMMANDS, Run::new(place(2, 0), PAGE as u64), ALL)?;
    let mut numbers = Numbers(11);
    let mut model = Model {
        pages: [State::Invalid; PAGES],
        memory: numbers.bytes(MEMORY)?,
    };
    spaces.bench.write(place(1, 0), &model.memory)?;
    for round in 0..200 {
        change(&spaces, &mut numbers, &mut model)?;
        let expected = access(&mut numbers, &mut model)?;
        let outcome = run(&spaces, &context, &expected.stream)?;
        if outcome != expected.outcome {
            pr_err!("round {round}: {outcome:?}, not {:?}\n", expected.outcome);
            return Ok(false);
        }
        if round % 8 == 7 && !spaces.bench.holds(place(1, 0), &model.memory)? {
            pr_err!("round {round}: memory differs\n");
            return Ok(false);
        }
    }
    Ok(true)
}

/// Runs commands.
fn run(spaces: &Spaces<'_>, context: &Arc<dyn EngineContext>, stream: &Stream) -> Result<Outcome> {
    let bytes = stream.words().as_bytes();
    spaces.bench.write(place(2, 0), bytes)?;
    spaces.run(RENDER, context, COMMANDS, bytes.len())
}

/// Changes what some adjacent pages are, and flushes.
fn change(spaces: &Spaces<'_>, numbers: &mut Numbers, model: &mut Model) -> Result {
    let mut number = |end: usize| numbers.below(end as u64) as usize;
    let first = number(PAGES);
    let count = 1 + number(PAGES - first);
    let naming = match number(2) {
        0 => Naming::Place,
        _ => Naming::Address,
    };
    let write = number(4) > 0;
    let rights = Rights {
        write,
        execute: false,
        driver: 3,
    };
    let address = START + (first * PAGE) as u64;
    let update = |entries| spaces.update(naming, Leaf::First, address, entries);
    let repeat = |entry| Entries::Repeat {
        entry,
        count: count as u32,
    };
    let kind = number(6);
    // Which half of the memory each page shows: one for all, or one for each.
    let half = number(2);
    let halves: [usize; PAGES] = core::array::from_fn(|_| if kind == 2 { half } else { number(2) });
    let offset = |page: usize| (halves[page] * PAGES + page) * PAGE;
    match kind {
        0 => update(repeat(Entry::Invalid))?,
        1 => update(repeat(Entry::Zero))?,
        2 => {
            let bytes = (count * PAGE) as u64;
            let runs = [Run::new(place(1, offset(first) as u64), bytes)];
            let runs = &runs;
            update(Entries::Pages { runs, rights })?;
        }
        3 => {
            let runs: [Run; PAGES] =
                core::array::from_fn(|page| Run::new(place(1, offset(page) as u64), PAGE as u64));
            let runs = &runs[first..first + count];
            update(Entries::Pages { runs, rights })?;
        }
        _ => {
            let entries: [Entry; PAGES] = core::array::from_fn(|page| Entry::Page {
                place: place(1, offset(page) as u64),
                rights,
            });
            update(Entries::Each(&entries[first..first + count]))?;
        }
    }
    for page in first..first + count {
        model.pages[page] = match kind {
            0 => State::Invalid,
            1 => State::Zero,
            _ => State::Mapped {
                offset: offset(page),
                write,
            },
        };
    }
    spaces.flush(match number(3) {
        0 => FlushRange::ALL,
        _ => FlushRange::new(GpuVirtualAddress(address), (count * PAGE) as u64),
    })
}

/// Commands, and what becomes of them.
struct Expected {
    stream: Stream,
    outcome: Outcome,
}

/// Returns a random access, after the model has carried it out.
fn access(numbers: &mut Numbers, model: &mut Model) -> Result<Expected> {
    let mut number = |end: usize| numbers.below(end as u64) as usize;
    let width = 4 + number(5 * PAGE / 4) * 4;
    let room = (PAGES * PAGE - width) / 4 + 1;
    let to = number(room) * 4;
    let from = number(room) * 4;
    let pattern = number(1 << 32) as u32;
    let side = |offset: usize| Side {
        place: Place::new(SegmentId::SYSTEM, START + offset as u64),
        pitch: width as u32,
    };
    let mut stream = Stream::new();
    let copies = number(3) > 0;
    if copies {
        let opcode = crate::uapi::abi::engine::OP_COPY;
        stream.pair(opcode, side(to), side(from), width as u32, 1)?;
    } else {
        stream.fill(pattern, side(to), width as u32, 1)?;
    }
    let descending = copies && to > from;
    let source = |skip: usize| {
        if copies {
            Source::Address(from + skip)
        } else {
            Source::Pattern(pattern, skip)
        }
    };
    let mut outcome = Outcome::Done;
    let (mut done, mut left) = (0, width);
    while left > 0 {
        // The next piece, from one end or the other.
        let bytes = if descending {
            let end = to + left;
            (end - (end - 1) / PIECE * PIECE).min(left)
        } else {
            (PIECE - (to + done) % PIECE).min(left)
        };
        let skip = if descending { left - bytes } else { done };
        if let Some(fault) = model.piece(to + skip, source(skip), bytes)? {
            outcome = Outcome::Fault { offset: 0, fault };
            break;
        }
        done += bytes;
        left -= bytes;
    }
    Ok(Expected { stream, outcome })
}

/// Where bytes come from.
#[derive(Clone, Copy)]
enum Source {
    Pattern(u32, usize),
    Address(usize),
}

impl Model {
    /// Returns the fault of an access, at the lowest byte that has one.
    fn check(&self, start: usize, bytes: usize, access: FaultAccess) -> Option<Fault> {
        cuts(start, bytes).find_map(|(at, _)| {
            let reason = match (self.pages[at / PAGE], access) {
                (State::Invalid, _) => FaultReason::NotMapped,
                (State::Mapped { write: false, .. }, FaultAccess::Write) => FaultReason::Protection,
                _ => return None,
            };
            Some(Fault {
                address: GpuVirtualAddress(START + at as u64),
                access,
                reason,
            })
        })
    }

    /// Carries out a piece, or answers with its fault.
    fn piece(&mut self, to: usize, source: Source, bytes: usize) -> Result<Option<Fault>> {
        let fault = self.check(to, bytes, FaultAccess::Write);
        let fault = match source {
            Source::Address(from) => fault.or_else(|| self.check(from, bytes, FaultAccess::Read)),
            Source::Pattern(..) => fault,
        };
        if fault.is_some() {
            return Ok(fault);
        }
        let content = self.content(source, bytes)?;
        let mut rest = content.as_slice();
        for (at, length) in cuts(to, bytes) {
            let (now, behind) = rest.split_at(length);
            if let State::Mapped { offset, .. } = self.pages[at / PAGE] {
                self.memory[offset + at % PAGE..][..length].copy_from_slice(now);
            }
            rest = behind;
        }
        Ok(None)
    }

    /// Returns what is written.
    fn content(&self, source: Source, bytes: usize) -> Result<KVVec<u8>> {
        let mut content = KVVec::from_elem(0, bytes, GFP_KERNEL)?;
        match source {
            Source::Pattern(pattern, skip) => {
                for (index, byte) in (skip..).zip(content.iter_mut()) {
                    *byte = pattern.to_le_bytes()[index % 4];
                }
            }
            Source::Address(from) => {
                let mut done = 0;
                for (at, length) in cuts(from, bytes) {
                    if let State::Mapped { offset, .. } = self.pages[at / PAGE] {
                        let memory = &self.memory[offset + at % PAGE..][..length];
                        content[done..done + length].copy_from_slice(memory);
                    }
                    done += length;
                }
            }
        }
        Ok(content)
    }
}

/// Returns start and length of the parts of a range that lie in one page each.
fn cuts(start: usize, bytes: usize) -> impl Iterator<Item = (usize, usize)> {
    let end = start + bytes;
    let mut at = start;
    core::iter::from_fn(move || {
        let cut = (at, (PAGE - at % PAGE).min(end - at));
        at += cut.1;
        (cut.1 > 0).then_some(cut)
    })
}
