// SPDX-License-Identifier: GPL-2.0

//! Rows: what is measured, and what the goals are.

mod access;
mod allocation;
mod bulk;
mod floors;
mod residency;
mod submission;

use crate::{
    catalogue::Catalogue,
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

/// Adds all rows and their operations.
pub fn add_all(catalogue: &mut Catalogue, vidmm: &Vidmm, peers: &Peers) {
    floors::add(catalogue, peers);
    allocation::add(catalogue, vidmm, peers);
    access::add(catalogue, vidmm, peers);
    residency::add(catalogue, vidmm, peers);
    submission::add(catalogue, vidmm, peers);
    bulk::add(catalogue, vidmm, peers);
}
