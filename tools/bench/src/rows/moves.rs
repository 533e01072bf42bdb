// SPDX-License-Identifier: GPL-2.0

//! R2 to R5: moves, whose cost is the bytes.
//!
//! Moves are made by pressure: more buffers than the segment holds are used in turn, so each submission
//! brings a buffer in and lets another one leave for it: a written one has to be copied out, one that
//! was only read since it came in has not. SUBMIT_QUERY says what was moved.

use libvidmm::{
    abi,
    commands::{
        Commands,
        Rectangle, //
    },
    Access,
    Allocation,
    Context,
    Deadline, //
};

use super::{
    floors::COPY,
    scaled,
    size, //
};
use crate::{
    catalogue::{
        Catalogue,
        Goal,
        Row, //
    },
    clock::Clock,
    failure::{
        check,
        Failure,
        Result, //
    },
    memory::{
        Range,
        Start,
        HUGE, //
    },
    peers::Peers,
    vidmm::{
        Vidmm,
        Where, //
    }, //
};

const USER_COPY: &str = "user memcpy 2 MiB";
/// A number of 64 bits.
const NUMBER: Rectangle = Rectangle {
    dst_pitch: 8,
    src_pitch: 8,
    width: 8,
    height: 1,
};

const PRESSURE: &str = "pressure 1 MiB";
const TTM_PRESSURE: &str = "TTM pressure 1 MiB";
const CLEAN: &str = "pressure 1 MiB, read only";

/// Bytes of a buffer under pressure.
const BUFFER: u64 = 1 << 20;
/// Submissions that are queued at a time under pressure.
const QUEUED: u64 = 8;

/// Adds the rows.
pub fn add(catalogue: &mut Catalogue, vidmm: &Vidmm, peers: &Peers) {
    let clock = vidmm.clock;
    catalogue.operation(USER_COPY, move || user_copy(clock));
    for bytes in [2 << 20, 16 << 20, 64 << 10] {
        catalogue.operation_of(ttm_move(bytes), &peers.graphics, move |peer| {
            Ok(peer.moves(bytes))
        });
        let client = vidmm.clone();
        catalogue.operation(moved(bytes), move || moves(client.clone(), bytes));
    }
    catalogue.row(move_row("R2", 2 << 20, 0.90, 1.6));
    catalogue.row(move_row("R2", 16 << 20, 0.90, 1.6));
    catalogue.row(move_row("R3", 64 << 10, 0.70, 1.5));
    catalogue.operation_of(TTM_PRESSURE, &peers.graphics, |peer| {
        Ok(peer.pressure(BUFFER))
    });
    let client = vidmm.clone();
    catalogue.operation(PRESSURE, move || pressure(client.clone()));
    catalogue.row(
        Row::new(
            "R4",
            "1.5 x the segment in a cycle, 1 MiB buffers, all written",
            PRESSURE,
        )
        .peer(TTM_PRESSURE)
        .floor(COPY)
        .goal(Goal::wall(1.15, COPY))
        .goal(Goal::wall(0.60, TTM_PRESSURE)),
    );
    let client = vidmm.with(abi::FEATURE_OFFER, "OFFER");
    catalogue.operation_of(CLEAN, &client, clean_pressure);
    catalogue.row(
        Row::new("R5", "the same, buffers that are only read", CLEAN)
            .peer(TTM_PRESSURE)
            .floor(scaled(BUFFER, COPY))
            .goal(Goal::wall(1.15, scaled(BUFFER, COPY))),
    );
}

fn moved(bytes: u64) -> String {
    format!("move {}", size(bytes))
}

fn ttm_move(bytes: u64) -> String {
    format!("TTM move {}", size(bytes))
}

/// R2 and R3.
fn move_row(name: &str, bytes: u64, of_limit: f64, of_ttm: f64) -> Row {
    Row::new(
        format!("{name} {}", size(bytes)),
        "move in or out, by pressure",
        moved(bytes),
    )
    .peer(ttm_move(bytes))
    .floor(scaled(bytes, COPY))
    .goal(Goal::bandwidth(of_limit, scaled(bytes, COPY)))
    .goal(Goal::bandwidth(of_ttm, ttm_move(bytes)))
}

fn user_copy(clock: Clock) -> Result<impl FnMut() -> Result<f64>> {
    let mut source = Range::new(HUGE, Start::Aligned)?;
    let mut target = Range::new(HUGE, Start::OddPage)?;
    let mut value = 0u8;
    Ok(move || {
        value = value.wrapping_add(1);
        source.fill(value);
        let (cost, ()) = clock.time(|| target.copy_from(&source));
        check(target.ends_are(value), || {
            "bytes that are not copied".into()
        })?;
        Ok(cost)
    })
}

/// What a submission does with its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// It stores the number of the turn in it.
    Write,
    /// It copies a number out of it.
    Read,
}

impl Use {
    /// Says whether a submission moves what it must: nothing for a buffer that is there, or the buffer
    /// in, and a written one out for it.
    fn is_right(self, report: &abi::SubmitQuery, bytes: u64) -> bool {
        let out = match self {
            Self::Write => report.paged_in,
            Self::Read => 0,
        };
        [0, bytes].contains(&report.paged_in) && report.paged_out == out
    }
}

/// Buffers that are used in turn.
struct Cycle {
    context: Context,
    allocations: Vec<Allocation>,
    /// Where numbers that are read go.
    target: Allocation,
    bytes: u64,
    /// Number of the next turn.
    turn: u64,
}

impl Cycle {
    /// So many buffers.
    fn new(vidmm: &Vidmm, bytes: u64, count: u64) -> Result<Self> {
        let allocations = (0..count).map(|_| vidmm.physical(bytes));
        let target = vidmm.describe(4096, Where::System).accessed_physically();
        Ok(Self {
            context: vidmm.context()?,
            allocations: allocations.collect::<Result<_>>()?,
            target: target.create(vidmm.device())?,
            bytes,
            turn: 0,
        })
    }

    fn len(&self) -> u64 {
        // CAST: a small number.
        self.allocations.len() as u64
    }

    /// Uses each of the next buffers by a submission, waits until all have run, and returns how long
    /// that took, per buffer.
    fn steps(
        &mut self,
        vidmm: &Vidmm,
        what: Use,
        count: u64,
    ) -> Result<(f64, Vec<abi::SubmitQuery>)> {
        let buffers: Vec<_> = (self.turn..self.turn + count)
            .map(|turn| {
                // CAST: a small number.
                let allocation = &self.allocations[(turn % self.len()) as usize];
                let mut commands = Commands::new(vidmm.patch_slots());
                match what {
                    Use::Write => commands.store(allocation.at(0), turn),
                    Use::Read => commands.copy(self.target.at(0), allocation.at(0), NUMBER),
                };
                commands.finish()
            })
            .collect();
        self.turn += count;
        let (cost, result) = vidmm.clock.time(|| {
            let submit = |buffer| Ok(self.context.submission(buffer).submit()?.id);
            let ids: libvidmm::Result<Vec<_>> = buffers.into_iter().map(submit).collect();
            let ids = ids?;
            let last = ids.last().copied().unwrap_or(0);
            self.context.wait(last, Deadline::FOREVER)?;
            Ok::<_, libvidmm::Error>(ids)
        });
        let reports = result?.into_iter().map(|id| self.context.query(id));
        // CAST: a small number.
        Ok((
            cost / count as f64,
            reports.collect::<libvidmm::Result<_>>()?,
        ))
    }

    /// Uses all buffers so often that the segment is full of those that the use leaves behind.
    fn fill(&mut self, vidmm: &Vidmm, what: Use) -> Result<()> {
        for _ in 0..self.len() {
            self.steps(vidmm, what, 1)?;
        }
        Ok(())
    }

    /// Goes on; per buffer.
    fn go_on(mut self, vidmm: Vidmm, what: Use, queued: u64) -> impl FnMut() -> Result<f64> {
        move || {
            let (cost, reports) = self.steps(&vidmm, what, queued)?;
            for report in reports {
                check(what.is_right(&report, self.bytes), || {
                    let moved = (report.paged_in, report.paged_out);
                    format!("paged in and out {moved:?} bytes")
                })?;
            }
            if what == Use::Read {
                let number = (self.turn - 1) % self.len();
                let found = self.target.lock(Access::READ)?.read64(0);
                check(found % self.len() == number, || {
                    format!("{found} in buffer {number}")
                })?;
            }
            Ok(cost)
        }
    }

    /// Checks that every buffer holds what was stored last.
    fn check(&self) -> Result<()> {
        for (number, allocation) in (0..).zip(&self.allocations) {
            let rounds = (self.turn - 1 - number) / self.len();
            let expected = number + rounds * self.len();
            let found = allocation.lock(Access::READ)?.read64(0);
            check(found == expected, || {
                format!("{found} in buffer {number}, not {expected}")
            })?;
        }
        Ok(())
    }
}

/// Returns how many buffers the segment holds.
fn capacity(vidmm: &Vidmm, bytes: u64) -> Result<u64> {
    match vidmm.memory().contiguous / bytes {
        0 => Err(Failure::new("the memory segment is too small")),
        capacity => Ok(capacity),
    }
}

/// A cycle of buffers that hold numbers, written by the engine, which the segment is full of.
fn full_cycle(vidmm: &Vidmm, bytes: u64, count: u64) -> Result<Cycle> {
    let mut cycle = Cycle::new(vidmm, bytes, count)?;
    cycle.fill(vidmm, Use::Write)?;
    cycle.fill(vidmm, Use::Write)?;
    cycle.check()?;
    // The CPU had to have them elsewhere, perhaps.
    cycle.fill(vidmm, Use::Write)?;
    Ok(cycle)
}

/// Per move. Turns go on until a buffer was not there: then one has left and one has come.
fn moves(vidmm: Vidmm, bytes: u64) -> Result<impl FnMut() -> Result<f64>> {
    let mut cycle = full_cycle(&vidmm, bytes, capacity(&vidmm, bytes)? + 1)?;
    Ok(move || {
        for _ in 0..=cycle.len() {
            let (cost, reports) = cycle.steps(&vidmm, Use::Write, 1)?;
            let moved = reports
                .iter()
                .map(|report| (report.paged_in, report.paged_out));
            match moved.last() {
                Some((0, 0)) => {}
                moved => {
                    check(moved == Some((bytes, bytes)), || {
                        format!("paged in and out {moved:?} bytes")
                    })?;
                    return Ok(cost / 2.0);
                }
            }
        }
        Err(Failure::new(
            "more buffers than the segment holds are all in it",
        ))
    })
}

/// A cycle of half as many buffers again as the segment holds.
fn pressed_cycle(vidmm: &Vidmm) -> Result<Cycle> {
    full_cycle(vidmm, BUFFER, capacity(vidmm, BUFFER)? * 3 / 2)
}

/// Per buffer that is written.
fn pressure(vidmm: Vidmm) -> Result<impl FnMut() -> Result<f64>> {
    Ok(pressed_cycle(&vidmm)?.go_on(vidmm, Use::Write, QUEUED))
}

/// Per buffer that is read.
fn clean_pressure(vidmm: Vidmm) -> Result<impl FnMut() -> Result<f64>> {
    let mut cycle = pressed_cycle(&vidmm)?;
    cycle.fill(&vidmm, Use::Read)?;
    Ok(cycle.go_on(vidmm, Use::Read, QUEUED))
}
