// SPDX-License-Identifier: GPL-2.0

//! R1: making resident what is resident already.

use libvidmm::{
    abi,
    paging_queue::Progress,
    Allocation,
    Deadline, //
};

use super::floors::N0;
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

const RESIDENT: &str = "make resident again, per handle";
const VALIDATE: &str = "drm_exec + TTM validate, per object";

/// Handles of one call.
const HANDLES: u32 = 256;

/// Adds the row.
pub fn add(catalogue: &mut Catalogue, vidmm: &Vidmm, peers: &Peers) {
    catalogue.operation_of(VALIDATE, &peers.graphics, |peer| Ok(peer.validate(HANDLES)));
    let client = vidmm.clone();
    catalogue.operation(RESIDENT, move || again(client.clone()));
    catalogue.row(
        Row::new(
            "R1",
            "make resident what is resident, 256 handles",
            RESIDENT,
        )
        .peer(VALIDATE)
        .floor((1.0 / f64::from(HANDLES)) * Cost::of(N0))
        .goal(Goal::instructions(0.50, VALIDATE)),
    );
}

fn again(vidmm: Vidmm) -> Result<impl FnMut() -> Result<f64>> {
    let description = vidmm.describe(4 << 10, Where::Memory);
    let allocations = (0..HANDLES).map(|_| description.create(vidmm.device()));
    let allocations = allocations.collect::<libvidmm::Result<Vec<_>>>()?;
    let handles: Vec<_> = allocations.iter().map(Allocation::handle).collect();
    let made = vidmm.queue().make_resident(&handles, 0)?;
    vidmm.queue().wait(made.progress, Deadline::FOREVER)?;
    Ok(move || {
        // The allocations live as long as the turn.
        let handles = &handles[..allocations.len()];
        let (cost, made) = vidmm.clock.time(|| vidmm.queue().make_resident(handles, 0));
        let progress = made?.progress;
        check(progress == Progress::Ready, || format!("{progress:?}"))?;
        vidmm.device().evict(handles, abi::EVICT_ONLY_IF_NEEDED)?;
        Ok(cost / f64::from(HANDLES))
    })
}
