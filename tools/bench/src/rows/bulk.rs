// SPDX-License-Identifier: GPL-2.0

//! R2, R4 and R7: moves and fills, whose cost is the bytes.
//!
//! Moves are made by pressure: more buffers than the segment holds are written in turn, so each
//! submission pushes a written buffer out and brings one in. SUBMIT_QUERY says that it did.

use libvidmm::{
    abi,
    commands::{
        Area,
        Commands, //
    },
    Allocation,
    Context,
    Deadline, //
};

use super::{
    floors::{
        COPY,
        SET, //
    },
    size, //
};
use crate::{
    catalogue::{
        Catalogue,
        Goal,
        Row, //
    },
    clock::Clock,
    cost::Cost,
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
    vidmm::Vidmm, //
};

const USER_SET: &str = "user memset 2 MiB";
const USER_COPY: &str = "user memcpy 2 MiB";

/// Fills of one submission of the row for 2 MiB.
const FILLS: u32 = 16;

/// Adds the rows.
pub fn add(catalogue: &mut Catalogue, vidmm: &Vidmm, peers: &Peers) {
    let clock = vidmm.clock;
    catalogue.operation(USER_SET, move || user_set(clock));
    catalogue.operation(USER_COPY, move || user_copy(clock));
    for bytes in [2 << 20, 16 << 20] {
        catalogue.operation_of(ttm_move(bytes), &peers.graphics, move |peer| {
            Ok(peer.moves(bytes))
        });
        let client = vidmm.clone();
        catalogue.operation(moved(bytes), move || moves(client.clone(), bytes));
        catalogue.row(move_row(bytes));
    }
    for (bytes, fills) in [(2 << 20, FILLS), (16 << 20, 1)] {
        let client = vidmm.clone();
        catalogue.operation(filled(bytes), move || fill(client.clone(), bytes, fills));
        catalogue.row(fill_row(bytes));
    }
}

fn moved(bytes: u64) -> String {
    format!("move {}", size(bytes))
}

fn ttm_move(bytes: u64) -> String {
    format!("TTM move {}", size(bytes))
}

fn filled(bytes: u64) -> String {
    format!("fill {}", size(bytes))
}

/// How often `operation`, which is for 2 MiB, must be done for so many bytes.
fn scaled(bytes: u64, operation: &str) -> Cost {
    // CAST: a small number.
    (bytes >> 21) as f64 * Cost::of(operation)
}

/// R2.
fn move_row(bytes: u64) -> Row {
    Row::new(
        format!("R2 {}", size(bytes)),
        "move in or out, by pressure",
        moved(bytes),
    )
    .peer(ttm_move(bytes))
    .floor(scaled(bytes, COPY))
    .goal(Goal::bandwidth(0.90, scaled(bytes, COPY)))
    .goal(Goal::bandwidth(1.6, ttm_move(bytes)))
}

/// R7.
fn fill_row(bytes: u64) -> Row {
    Row::new(format!("R7 {}", size(bytes)), "fill", filled(bytes))
        .peer(scaled(bytes, USER_SET))
        .floor(scaled(bytes, SET))
        .goal(Goal::bandwidth(0.92, scaled(bytes, SET)))
        .goal(Goal::bandwidth(1.4, scaled(bytes, USER_SET)))
}

fn user_set(clock: Clock) -> Result<impl FnMut() -> Result<f64>> {
    let mut range = Range::new(HUGE, Start::Aligned)?;
    let mut value = 0u8;
    Ok(move || {
        value = value.wrapping_add(1);
        let (cost, ()) = clock.time(|| range.fill(value));
        check(range.ends_are(value), || "bytes that are not set".into())?;
        Ok(cost)
    })
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

/// Buffers that are written in turn.
struct Cycle {
    context: Context,
    allocations: Vec<Allocation>,
    /// Number of the next turn.
    turn: u64,
}

impl Cycle {
    /// One buffer more than the segment holds.
    fn new(vidmm: &Vidmm, bytes: u64) -> Result<Self> {
        let count = vidmm.memory().contiguous / bytes + 1;
        if count < 2 {
            return Err(Failure::new("the memory segment is too small"));
        }
        let allocations = (0..count).map(|_| vidmm.physical(bytes));
        Ok(Self {
            context: vidmm.context()?,
            allocations: allocations.collect::<Result<_>>()?,
            turn: 0,
        })
    }

    fn len(&self) -> u64 {
        // CAST: a small number.
        self.allocations.len() as u64
    }

    /// Submits a store to the next buffer and waits until it has run; returns how long that took.
    fn step(&mut self, vidmm: &Vidmm) -> Result<(f64, abi::SubmitQuery)> {
        // CAST: a small number.
        let allocation = &self.allocations[(self.turn % self.len()) as usize];
        let mut commands = Commands::new(vidmm.patch_slots());
        commands.store(allocation.at(0), self.turn);
        self.turn += 1;
        let submission = self.context.submission(commands.finish());
        let (cost, result) = vidmm.clock.time(|| {
            let id = submission.submit()?.id;
            self.context.wait(id, Deadline::FOREVER)?;
            Ok::<_, libvidmm::Error>(id)
        });
        Ok((cost, self.context.query(result?)?))
    }

    /// Checks that every buffer holds what was stored last.
    fn check(&self) -> Result<()> {
        for (number, allocation) in (0..).zip(&self.allocations) {
            let rounds = (self.turn - 1 - number) / self.len();
            let expected = number + rounds * self.len();
            let found = allocation.lock(libvidmm::Access::READ)?.read64(0);
            check(found == expected, || {
                format!("{found} in buffer {number}, not {expected}")
            })?;
        }
        Ok(())
    }
}

/// Per move: each turn is one out and one in.
fn moves(vidmm: Vidmm, bytes: u64) -> Result<impl FnMut() -> Result<f64>> {
    let mut cycle = Cycle::new(&vidmm, bytes)?;
    // Afterwards each buffer has content, and the segment is full of written ones.
    for _ in 0..2 * cycle.len() {
        cycle.step(&vidmm)?;
    }
    cycle.check()?;
    for _ in 0..cycle.len() {
        cycle.step(&vidmm)?;
    }
    Ok(move || {
        let (cost, report) = cycle.step(&vidmm)?;
        let moved = (report.paged_in, report.paged_out);
        check(moved == (bytes, bytes), || {
            format!("paged in and out {moved:?} bytes")
        })?;
        Ok(cost / 2.0)
    })
}

/// Fills an allocation several times by one submission; per fill.
fn fill(vidmm: Vidmm, bytes: u64, fills: u32) -> Result<impl FnMut() -> Result<f64>> {
    let context = vidmm.context()?;
    let allocation = vidmm.physical(bytes)?;
    let mut pattern = 0;
    Ok(move || {
        // CAST: at most 16 MiB.
        let row = bytes as u32;
        let area = Area {
            pitch: row,
            width: row,
            height: 1,
        };
        let mut commands = Commands::new(vidmm.patch_slots());
        for _ in 0..fills {
            pattern += 1;
            commands.fill(allocation.at(0), pattern, area);
        }
        let submission = context.submission(commands.finish());
        let (cost, result) = vidmm.clock.time(|| {
            let id = submission.submit()?.id;
            context.wait(id, Deadline::FOREVER)
        });
        result?;
        let guard = allocation.lock(libvidmm::Access::READ)?;
        // CAST: `usize` has 64 bits.
        let ends = (guard.read32(0), guard.read32(bytes as usize - 4));
        check(ends == (pattern, pattern), || {
            format!("{ends:x?}, not {pattern:x}")
        })?;
        Ok(cost / f64::from(fills))
    })
}
