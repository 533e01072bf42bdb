// SPDX-License-Identifier: GPL-2.0

//! L1: access of the CPU to an idle allocation.

use libvidmm::{
    abi,
    Allocation, //
};

use super::floors::{
    F64,
    N0, //
};
use crate::{
    catalogue::{
        Catalogue,
        Goal,
        Row, //
    },
    cost::Cost,
    failure::{
        check,
        Result, //
    },
    peers::Peers,
    vidmm::{
        Vidmm,
        Where, //
    }, //
};

const PAIR: &str = "lock and unlock";
const LOCK: &str = "lock";
const SYNC: &str = "dma-buf SYNC";

/// Locks of one repetition.
const LOCKS: u32 = 32;

/// Adds the rows.
pub fn add(catalogue: &mut Catalogue, vidmm: &Vidmm, peers: &Peers) {
    catalogue.operation_of(SYNC, &peers.heap, |heap| heap.sync());
    let (client, other) = (vidmm.clone(), vidmm.clone());
    catalogue.operation(PAIR, move || pair(client.clone()));
    catalogue.operation(LOCK, move || lock_alone(other.clone()));
    catalogue.row(
        Row::new("L1", "lock and unlock, idle and mapped", PAIR)
            .peer(SYNC)
            .floor(2.0 * Cost::of(N0))
            .goal(Goal::instructions(1.10, SYNC)),
    );
    catalogue.row(
        Row::new("L1 lock", "lock alone, idle and mapped", LOCK)
            .floor(F64)
            .goal(Goal::instructions(1.20, F64)),
    );
}

/// An allocation that is mapped and touched.
fn mapped(vidmm: &Vidmm) -> Result<Allocation> {
    let description = vidmm.describe(64 << 10, Where::Anywhere);
    let allocation = description.create(vidmm.device())?;
    allocation.write(0, &[1; 64 << 10])?;
    Ok(allocation)
}

/// Locks and unlocks in turn.
fn pair(vidmm: Vidmm) -> Result<impl FnMut() -> Result<f64>> {
    let allocation = mapped(&vidmm)?;
    Ok(move || {
        let handle = allocation.handle();
        let cost = vidmm.clock.time_each(LOCKS, |_| {
            vidmm.lock(handle)?;
            vidmm.unlock(handle)
        })?;
        let flags = allocation.state()?.flags;
        check(flags & abi::ALLOC_STATE_LOCKED == 0, || {
            format!("flags {flags:#x}")
        })?;
        Ok(cost)
    })
}

/// Locks; locks nest.
fn lock_alone(vidmm: Vidmm) -> Result<impl FnMut() -> Result<f64>> {
    let allocation = mapped(&vidmm)?;
    Ok(move || {
        let handle = allocation.handle();
        let mut last = abi::Lock::default();
        let cost = vidmm.clock.time_each(LOCKS, |_| {
            last = vidmm.lock(handle)?;
            Ok::<_, libvidmm::Error>(())
        })?;
        let offset = allocation.info().mmap_offset;
        check(last.mmap_offset == offset, || format!("{last:?}"))?;
        for _ in 0..LOCKS {
            vidmm.unlock(handle)?;
        }
        Ok(cost)
    })
}
