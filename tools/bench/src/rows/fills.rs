// SPDX-License-Identifier: GPL-2.0

//! R7 and R8: fills, whose cost is the bytes, and what is added to them.

use libvidmm::{
    commands::{
        Area,
        Commands, //
    },
    Deadline, //
};

use super::{
    floors::{
        F64,
        SET, //
    },
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
    cost::Cost,
    failure::{
        check,
        Result, //
    },
    memory::{
        Range,
        Start,
        HUGE, //
    },
    peers::{
        Peers,
        Work, //
    },
    vidmm::Vidmm, //
};

const USER_SET: &str = "user memset 2 MiB";

/// Adds the rows.
pub fn add(catalogue: &mut Catalogue, vidmm: &Vidmm, peers: &Peers) {
    let clock = vidmm.clock;
    catalogue.operation(USER_SET, move || user_set(clock));
    let mut add = |bytes: u64, fills: u32, row: Row| {
        let client = vidmm.clone();
        catalogue.operation(filled(bytes), move || fill(client.clone(), bytes, fills));
        catalogue.row(row);
    };
    add(2 << 20, 16, large(2 << 20));
    add(16 << 20, 1, large(16 << 20));
    add(64 << 10, 64, small(64 << 10, 1.15));
    add(4 << 10, 256, small(4 << 10, 1.5));
    for bytes in [64 << 10, 4 << 10] {
        catalogue.operation_of(set(bytes), &peers.floor, move |floor| {
            Ok(floor.work(Work::Memset(bytes)))
        });
    }
}

fn filled(bytes: u64) -> String {
    format!("fill {}", size(bytes))
}

/// The name of setting bytes inside the kernel.
fn set(bytes: u64) -> String {
    format!("kernel memset {}", size(bytes))
}

/// R7.
fn large(bytes: u64) -> Row {
    Row::new(format!("R7 {}", size(bytes)), "fill", filled(bytes))
        .peer(scaled(bytes, USER_SET))
        .floor(scaled(bytes, SET))
        .goal(Goal::bandwidth(0.92, scaled(bytes, SET)))
        .goal(Goal::bandwidth(1.4, scaled(bytes, USER_SET)))
}

/// R8.
fn small(bytes: u64, limit: f64) -> Row {
    let floor = Cost::of(F64) + Cost::of(set(bytes));
    Row::new(
        format!("R8 {}", size(bytes)),
        "fill, many by one submission",
        filled(bytes),
    )
    .floor(floor.clone())
    .goal(Goal::wall(limit, floor))
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
