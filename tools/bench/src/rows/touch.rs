// SPDX-License-Identifier: GPL-2.0

//! A7 to A10, C1 and C2: memory is mapped and touched page by page.
//!
//! In A7 to A10 it is new each time: created, locked, mapped, touched, unmapped, unlocked, destroyed. In
//! C1 and C2 it is there already.

use libvidmm::{
    abi,
    Deadline,
    Mapping, //
};

use super::{
    floors::{
        pages,
        N0, //
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
    memory,
    peers::Peers,
    vidmm::{
        Vidmm,
        Where, //
    }, //
};

const SIZES: [u64; 4] = [4 << 10, 64 << 10, 2 << 20, 64 << 20];

/// Bytes that are mapped again and again.
const MAPPED: u64 = 8 << 20;

const MAP: &str = "map, touch, unmap 8 MiB";
const MAP_HEAP: &str = "heap map 8 MiB";
const MAP_HUGE: &str = "huge tmpfs map 8 MiB";
const MAP_PAGES: &str = "map, touch, unmap 8 MiB in pages";
const MAP_MEMFD: &str = "memfd map 8 MiB";

/// Adds the rows.
pub fn add(catalogue: &mut Catalogue, vidmm: &Vidmm, peers: &Peers) {
    for bytes in SIZES {
        catalogue.operation_of(heap(bytes), &peers.heap, move |peer| Ok(peer.touch(bytes)));
        catalogue.operation_of(private(bytes), &peers.private, move |peer| {
            Ok(peer.touch(bytes))
        });
        let client = vidmm.clone();
        catalogue.operation(touched(bytes), move || touch(client.clone(), bytes));
    }
    for row in new_rows() {
        catalogue.row(row);
    }
    catalogue.operation_of(MAP_HEAP, &peers.heap, |peer| peer.map(MAPPED));
    catalogue.operation_of(MAP_HUGE, &peers.memfd, |peer| peer.map_huge(MAPPED));
    let client = vidmm.clone();
    catalogue.operation(MAP, move || map(client.clone(), 0));
    catalogue.row(
        Row::new("C1", "map, touch and unmap 8 MiB in blocks of 2 MiB", MAP)
            .peer(MAP_HEAP)
            .floor(MAP_HUGE)
            .goal(Goal::instructions(1.25, MAP_HUGE))
            .goal(Goal::instructions(0.05, MAP_HEAP)),
    );
    catalogue.operation_of(MAP_MEMFD, &peers.memfd, |peer| peer.map(MAPPED));
    // What can be swapped is kept in single pages.
    let swappable = vidmm.with(abi::FEATURE_SWAPPABLE, "SWAPPABLE");
    catalogue.operation_of(MAP_PAGES, &swappable, |vidmm| {
        map(vidmm, abi::ALLOC_SWAPPABLE)
    });
    catalogue.row(
        Row::new("C2", "map, touch and unmap 8 MiB in pages", MAP_PAGES)
            .peer(MAP_HEAP)
            .goal(Goal::instructions(0.75, MAP_HEAP))
            .goal(Goal::instructions(0.15, MAP_MEMFD)),
    );
}

fn touched(bytes: u64) -> String {
    format!("create and touch {}", size(bytes))
}

fn heap(bytes: u64) -> String {
    format!("heap touch {}", size(bytes))
}

fn private(bytes: u64) -> String {
    format!("anon touch {}", size(bytes))
}

/// A7 to A10.
fn new_rows() -> [Row; 4] {
    let [kib4, kib64, mib2, mib64] = SIZES;
    let row = |name: &str, bytes: u64, order: u64, blocks: f64| {
        Row::new(
            format!("{name} {}", size(bytes)),
            "create, lock, touch every page, unlock, destroy",
            touched(bytes),
        )
        .peer(heap(bytes))
        .floor(blocks * Cost::of(pages(order)) + 4.0 * Cost::of(N0))
    };
    [
        row("A7", kib4, 0, 1.0)
            .goal(Goal::instructions(0.60, heap(kib4)))
            .goal(Goal::instructions(0.80, private(kib4))),
        row("A8", kib64, 4, 1.0).goal(Goal::instructions(0.65, heap(kib64))),
        row("A9", mib2, 9, 1.0)
            .goal(Goal::instructions(0.95, private(mib2)))
            .goal(Goal::instructions(0.53, heap(mib2))),
        row("A10", mib64, 9, 32.0)
            .goal(Goal::instructions(0.95, private(mib64)))
            .goal(Goal::instructions(0.54, heap(mib64)))
            .goal(Goal::wall(0.75, heap(mib64))),
    ]
}

/// How often something of this size is done in one repetition.
fn times(bytes: u64) -> u32 {
    match bytes {
        0..0x10_0000 => 16,
        _ => 2,
    }
}

/// Creates, touches and destroys. Storage goes behind the call, so the last one is waited for.
fn touch(vidmm: Vidmm, bytes: u64) -> Result<impl FnMut() -> Result<f64>> {
    let info = *vidmm.describe(bytes, Where::System).info();
    check_touched(&vidmm, info)?;
    let times = times(bytes);
    Ok(move || {
        vidmm.clock.time_each(times, |number| {
            let made = vidmm.create_described(info)?;
            vidmm.lock(made.handle)?;
            memory::touch(&mapping_of(&vidmm, &made)?);
            vidmm.unlock(made.handle)?;
            let is_last = number + 1 == times;
            vidmm.close(made.handle, if is_last { abi::CLOSE_SYNC } else { 0 })?;
            Ok(())
        })
    })
}

fn mapping_of(vidmm: &Vidmm, info: &abi::AllocInfo) -> libvidmm::Result<Mapping> {
    // CAST: `usize` has 64 bits.
    vidmm.adapter().map(info.mmap_offset, info.size as usize)
}

/// What is touched was clear before, and is an allocation of these bytes.
fn check_touched(vidmm: &Vidmm, info: abi::AllocInfo) -> Result<()> {
    let made = vidmm.create_described(info)?;
    let mapping = mapping_of(vidmm, &made)?;
    for page in (0..mapping.len()).step_by(memory::PAGE) {
        check(mapping.read64(page) == 0, || {
            "memory that is not cleared".into()
        })?;
    }
    // A mapping keeps the storage.
    drop(mapping);
    let state = vidmm.adapter().allocation_states(&[made.handle])?[0];
    check(state.size == info.size, || format!("{state:?}"))?;
    Ok(vidmm.close(made.handle, abi::CLOSE_SYNC)?)
}

/// Maps, touches and unmaps an allocation that is in system memory.
fn map(vidmm: Vidmm, flags: u32) -> Result<impl FnMut() -> Result<f64>> {
    let description = vidmm.describe(MAPPED, Where::System).flags(flags);
    let allocation = description.create(vidmm.device())?;
    let made = vidmm.queue().make_resident(&[allocation.handle()], 0)?;
    vidmm.queue().wait(made.progress, Deadline::FOREVER)?;
    Ok(move || {
        let cost = vidmm.clock.time_each(2, |_| {
            memory::touch(&mapping_of(&vidmm, allocation.info())?);
            Ok::<_, libvidmm::Error>(())
        })?;
        let mapping = mapping_of(&vidmm, allocation.info())?;
        check(mapping.read8(mapping.len() - memory::PAGE) == 1, || {
            "a page that is not touched".into()
        })?;
        Ok(cost)
    })
}
