// SPDX-License-Identifier: GPL-2.0

//! A1 to A6: allocations are created, committed and destroyed.
//!
//! What is committed is destroyed by the worker, behind the call. A repetition therefore makes
//! several allocations, waits until they are usable, closes them and waits until the storage of the
//! last one is gone: the cost of the worker is in the result.

use libvidmm::{
    abi,
    paging_queue::Progress,
    Deadline, //
};

use super::{
    floors::{
        pages,
        F64,
        ID,
        KMALLOC,
        SET_64K, //
    },
    size, //
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

const SIZES: [u64; 4] = [4 << 10, 64 << 10, 2 << 20, 64 << 20];

/// Allocations that a repetition of A1 makes, one after the other.
const CREATIONS: u32 = 16;

/// Bytes that a repetition of the others commits at most; one allocation at least.
const COMMITTED: u64 = 16 << 20;
/// Allocations that it makes at most.
const COMMITTED_COUNT: u64 = 16;

/// Adds the rows.
pub fn add(catalogue: &mut Catalogue, vidmm: &Vidmm, peers: &Peers) {
    for bytes in SIZES {
        add_peers(catalogue, peers, bytes);
        let (client, other) = (vidmm.clone(), vidmm.clone());
        catalogue.operation(created(bytes), move || create(client.clone(), bytes));
        catalogue.operation(committed(bytes), move || {
            commit(other.clone(), bytes, Where::System)
        });
    }
    let (kib64, client) = (SIZES[1], vidmm.clone());
    catalogue.operation(placed(kib64), move || {
        commit(client.clone(), kib64, Where::Memory)
    });
    for bytes in SIZES {
        catalogue.row(untouched(bytes));
    }
    for row in in_system() {
        catalogue.row(row);
    }
    catalogue.row(in_memory(kib64));
}

fn created(bytes: u64) -> String {
    format!("create {}", size(bytes))
}

fn committed(bytes: u64) -> String {
    format!("create and commit {}", size(bytes))
}

fn placed(bytes: u64) -> String {
    format!("create and place {}", size(bytes))
}

fn memfd(bytes: u64) -> String {
    format!("memfd {}", size(bytes))
}

fn heap(bytes: u64) -> String {
    format!("heap {}", size(bytes))
}

fn vgem(bytes: u64) -> String {
    format!("vgem {}", size(bytes))
}

fn ttm_system(bytes: u64) -> String {
    format!("TTM system {}", size(bytes))
}

fn ttm_memory(bytes: u64) -> String {
    format!("TTM VRAM {}", size(bytes))
}

fn add_peers(catalogue: &mut Catalogue, peers: &Peers, bytes: u64) {
    catalogue.operation_of(memfd(bytes), &peers.memfd, move |peer| {
        Ok(peer.create(bytes))
    });
    catalogue.operation_of(heap(bytes), &peers.heap, move |peer| Ok(peer.create(bytes)));
    catalogue.operation_of(vgem(bytes), &peers.vgem, move |peer| Ok(peer.create(bytes)));
    if bytes <= 2 << 20 {
        catalogue.operation_of(ttm_system(bytes), &peers.graphics, move |peer| {
            Ok(peer.system(bytes))
        });
        catalogue.operation_of(ttm_memory(bytes), &peers.graphics, move |peer| {
            Ok(peer.memory(bytes))
        });
    }
}

/// What two calls and an object with a handle cost at least.
fn a1_floor() -> Cost {
    2.0 * Cost::of(F64) + 2.0 * Cost::of(KMALLOC) + Cost::of(ID)
}

/// A1.
fn untouched(bytes: u64) -> Row {
    let row = Row::new(
        format!("A1 {}", size(bytes)),
        "create and destroy, never touched",
        created(bytes),
    )
    .peer(memfd(bytes))
    .floor(a1_floor())
    .goal(Goal::instructions(0.50, memfd(bytes)));
    if bytes == SIZES[3] {
        row.goal(Goal::instructions(1.15, created(SIZES[0])))
    } else {
        row
    }
}

/// A2 to A5.
fn in_system() -> [Row; 4] {
    let [kib4, kib64, mib2, mib64] = SIZES;
    let row = |name: &str, bytes: u64, floor: Cost| {
        Row::new(
            format!("{name} {}", size(bytes)),
            "create, commit to system memory, destroy",
            committed(bytes),
        )
        .peer(heap(bytes))
        .floor(floor)
    };
    let with_calls = |order| a1_floor() + Cost::of(F64) + Cost::of(pages(order));
    let blocks = |count| count * Cost::of(pages(9));
    let ttm = Cost::of(ttm_system(kib4)) + 2.0 * Cost::of(F64);
    [
        row("A2", kib4, with_calls(0))
            .goal(Goal::instructions(0.65, heap(kib4)))
            .goal(Goal::instructions(0.70, ttm)),
        row("A3", kib64, with_calls(4)).goal(Goal::instructions(0.80, heap(kib64))),
        row("A4", mib2, with_calls(9))
            .goal(Goal::instructions(0.93, heap(mib2)))
            .goal(Goal::instructions(1.03, blocks(1.0))),
        row("A5", mib64, blocks(32.0))
            .goal(Goal::instructions(0.94, heap(mib64)))
            .goal(Goal::instructions(1.03, blocks(32.0)))
            .goal(Goal::wall(0.90, heap(mib64))),
    ]
}

/// A6.
fn in_memory(bytes: u64) -> Row {
    let floor = Cost::of(ttm_memory(bytes)) + Cost::of(SET_64K);
    Row::new(
        format!("A6 {}", size(bytes)),
        "create, commit to a memory segment cleared, destroy",
        placed(bytes),
    )
    .peer(ttm_memory(bytes))
    .floor(floor.clone())
    .goal(Goal::instructions(1.0, 2.0 * Cost::of(F64) + floor))
    .goal(Goal::instructions(0.90, heap(bytes)))
}

/// Creates and destroys.
fn create(vidmm: Vidmm, bytes: u64) -> Result<impl FnMut() -> Result<f64>> {
    let info = *vidmm.describe(bytes, Where::Anywhere).info();
    check_created(&vidmm, info)?;
    Ok(move || {
        let once = |_| {
            let handle = vidmm.create(info)?;
            vidmm.close(handle, 0)
        };
        Ok(vidmm.clock.time_each(CREATIONS, once)?)
    })
}

fn check_created(vidmm: &Vidmm, info: abi::AllocInfo) -> Result<()> {
    let handle = vidmm.create(info)?;
    let state = vidmm.adapter().allocation_states(&[handle])?[0];
    vidmm.close(handle, abi::CLOSE_SYNC)?;
    let nowhere = state.residency == abi::ALLOC_RESIDENCY_NOT_RESIDENT;
    check(nowhere && state.size == info.size, || format!("{state:?}"))
}

/// Creates, makes resident and destroys.
fn commit(vidmm: Vidmm, bytes: u64, place: Where) -> Result<impl FnMut() -> Result<f64>> {
    let info = *vidmm.describe(bytes, place).info();
    // CAST: at most `COMMITTED_COUNT`.
    let count = (COMMITTED / bytes).clamp(1, COMMITTED_COUNT) as usize;
    let mut handles = Vec::with_capacity(count);
    let mut is_checked = false;
    Ok(move || {
        let clock = vidmm.clock;
        let (making, made) = clock.time(|| make_resident(&vidmm, info, count, &mut handles));
        made?;
        if !is_checked {
            check_committed(&vidmm, &handles, place)?;
            is_checked = true;
        }
        let (closing, closed) = clock.time(|| close_all(&vidmm, &mut handles));
        closed?;
        // CAST: a small number.
        Ok((making + closing) / count as f64)
    })
}

fn make_resident(
    vidmm: &Vidmm,
    info: abi::AllocInfo,
    count: usize,
    handles: &mut Vec<u32>,
) -> libvidmm::Result<()> {
    let mut progress = Progress::Ready;
    for _ in 0..count {
        let handle = vidmm.create(info)?;
        handles.push(handle);
        progress = vidmm.queue().make_resident(&[handle], 0)?.progress;
    }
    vidmm.queue().wait(progress, Deadline::FOREVER)
}

fn close_all(vidmm: &Vidmm, handles: &mut Vec<u32>) -> libvidmm::Result<()> {
    let last = handles.pop();
    for handle in handles.drain(..) {
        vidmm.close(handle, 0)?;
    }
    last.map_or(Ok(()), |handle| vidmm.close(handle, abi::CLOSE_SYNC))
}

fn check_committed(vidmm: &Vidmm, handles: &[u32], place: Where) -> Result<()> {
    let expected = match place {
        Where::Memory => abi::ALLOC_RESIDENCY_MEMORY,
        Where::System | Where::Anywhere => abi::ALLOC_RESIDENCY_SYSTEM,
    };
    for state in vidmm.adapter().allocation_states(handles)? {
        check(state.residency == expected, || format!("{state:?}"))?;
        let mapping = vidmm.adapter().map(state.mmap_offset, 4096)?;
        check(mapping.read64(0) == 0, || {
            "memory that is not cleared".into()
        })?;
    }
    Ok(())
}
