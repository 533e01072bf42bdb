// SPDX-License-Identifier: GPL-2.0

//! O1: memory is offered and taken back before anybody wanted it.

use libvidmm::{
    abi,
    ioctl,
    Access, //
};

use super::{
    floors::F64,
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

const SIZES: [u64; 3] = [64 << 10, 2 << 20, 64 << 20];

/// Pairs of one repetition.
const PAIRS: u32 = 32;

/// What the memory holds.
const VALUE: u32 = 0x5a5a_5a5a;

/// Adds the rows.
pub fn add(catalogue: &mut Catalogue, vidmm: &Vidmm, peers: &Peers) {
    let client = vidmm.with(abi::FEATURE_OFFER, "OFFER");
    for bytes in SIZES {
        catalogue.operation_of(free(bytes), &peers.private, move |peer| peer.offer(bytes));
        catalogue.operation_of(offered(bytes), &client, move |vidmm| pair(vidmm, bytes));
        let calls = 2.0 * Cost::of(F64);
        let row = Row::new(
            format!("O1 {}", size(bytes)),
            "offer and reclaim, contents kept",
            offered(bytes),
        )
        .peer(free(bytes))
        .floor(calls.clone())
        .goal(Goal::instructions(1.25, calls));
        catalogue.row(match bytes {
            0x20_0000 => row.goal(Goal::instructions(0.03, free(bytes))),
            _ => row,
        });
    }
}

fn offered(bytes: u64) -> String {
    format!("offer and reclaim {}", size(bytes))
}

fn free(bytes: u64) -> String {
    format!("MADV_FREE and touch {}", size(bytes))
}

/// Offers and reclaims in turn.
fn pair(vidmm: Vidmm, bytes: u64) -> Result<impl FnMut() -> Result<f64>> {
    let description = vidmm.describe(bytes, Where::System);
    let allocation = description.create(vidmm.device())?;
    let mapping = allocation.map()?;
    mapping.fill(0, mapping.len(), 0x5a);
    let mut items = [abi::ReclaimItem {
        alloc: allocation.handle(),
        result: 0,
    }];
    Ok(move || {
        let cost = vidmm.clock.time_each(PAIRS, |_| {
            let mut offer = abi::Offer {
                device: vidmm.device().handle(),
                level: abi::OFFER_LEVEL_NORMAL,
                ..Default::default()
            };
            ioctl::call(vidmm.adapter(), &mut offer, &[allocation.handle()])?;
            let mut reclaim = abi::Reclaim {
                queue: vidmm.queue().handle(),
                ..Default::default()
            };
            ioctl::call(vidmm.adapter(), &mut reclaim, &mut items)
        })?;
        check(items[0].result == abi::RECLAIM_RESULT_OK, || {
            format!("{items:?}")
        })?;
        let guard = allocation.lock(Access::READ)?;
        // CAST: `usize` has 64 bits.
        let ends = (guard.read32(0), guard.read32(bytes as usize - 4));
        check(ends == (VALUE, VALUE), || "contents are lost".into())?;
        Ok(cost)
    })
}
