// SPDX-License-Identifier: GPL-2.0

//! Rows: what is measured, and what the goals are.

mod access;
mod allocation;
mod cuts;
mod fills;
mod floors;
mod moves;
mod offer;
mod residency;
mod submission;
mod touch;

use crate::{
    catalogue::Catalogue,
    cost::Cost,
    peers::Peers,
    vidmm::Vidmm, //
};

/// Bytes in words.
fn size(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// How much of `operation`, which is for 2 MiB, so many bytes are.
fn scaled(bytes: u64, operation: &str) -> Cost {
    // CAST: far below the precision of the type.
    (bytes as f64 / (2 << 20) as f64) * Cost::of(operation)
}

/// Adds all rows and their operations.
pub fn add_all(catalogue: &mut Catalogue, vidmm: &Vidmm, peers: &Peers) {
    floors::add(catalogue, peers);
    allocation::add(catalogue, vidmm, peers);
    touch::add(catalogue, vidmm, peers);
    access::add(catalogue, vidmm, peers);
    offer::add(catalogue, vidmm, peers);
    residency::add(catalogue, vidmm, peers);
    submission::add(catalogue, vidmm, peers);
    cuts::add(catalogue, vidmm);
    moves::add(catalogue, vidmm, peers);
    fills::add(catalogue, vidmm, peers);
}
