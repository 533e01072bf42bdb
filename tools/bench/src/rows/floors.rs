// SPDX-License-Identifier: GPL-2.0

//! Floors and peers that several groups of rows use.

use crate::{
    catalogue::Catalogue,
    peers::{
        Peers,
        Work, //
    }, //
};

/// A call that does nothing.
pub const N0: &str = "N0";
/// A call with 64 bytes in and out.
pub const F64: &str = "F64";
/// Taking and giving back 1 KiB.
pub const KMALLOC: &str = "kmalloc(1k)";
/// Taking and giving back an id.
pub const ID: &str = "id";
/// Copying 2 MiB inside the kernel.
pub const COPY: &str = "kernel memcpy 2 MiB";
/// Setting 2 MiB inside the kernel.
pub const SET: &str = "kernel memset 2 MiB";
/// Setting 64 KiB inside the kernel.
pub const SET_64K: &str = "kernel memset 64 KiB";

/// Waking a thread of the kernel and being woken by it.
pub const ROUND_TRIP: &str = "completion round trip";

/// The name of taking and giving back pages.
pub fn pages(order: u64) -> String {
    format!("order-{order} pages")
}

/// Adds the operations.
pub fn add(catalogue: &mut Catalogue, peers: &Peers) {
    catalogue.operation_of(N0, &peers.floor, |floor| Ok(floor.null()));
    catalogue.operation_of(F64, &peers.floor, |floor| Ok(floor.words()));
    let works = [
        (KMALLOC.to_owned(), Work::Kmalloc(1024)),
        (ID.to_owned(), Work::Id),
        (pages(0), Work::Pages(0)),
        (pages(4), Work::Pages(4)),
        (pages(9), Work::Pages(9)),
        (ROUND_TRIP.to_owned(), Work::RoundTrip),
        (SET_64K.to_owned(), Work::Memset(64 << 10)),
        (SET.to_owned(), Work::Memset(2 << 20)),
        (COPY.to_owned(), Work::Memcpy(2 << 20)),
    ];
    for (name, work) in works {
        catalogue.operation_of(name, &peers.floor, move |floor| Ok(floor.work(work)));
    }
}
