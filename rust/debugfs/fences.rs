// SPDX-License-Identifier: GPL-2.0

//! `fences`: their values, and how many wait.

use kernel::fmt;

use crate::object::{
    adapter::Adapter,
    fence::{
        Fence,
        Purpose,
        Reached, //
    },
};

use super::end_with_name;

pub(super) fn show(adapter: &Adapter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    adapter
        .registries()
        .fences
        .for_each(|fence| show_fence(fence, f))
}

fn show_fence(fence: &Fence, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let purpose = match fence.purpose() {
        Purpose::Client { .. } => "client",
        Purpose::Paging => "paging",
        Purpose::Progress => "progress",
    };
    let error = match fence.reached(u64::MAX) {
        Reached::Poisoned(error) => error.to_errno(),
        Reached::Yes | Reached::No => 0,
    };
    write!(
        f,
        "fence={} purpose={purpose} value={} error={error} waiters={} slot={} page={:#x}",
        fence.number(),
        fence.value().0,
        fence.waiters(),
        fence.slot().index(),
        fence.slot().mmap_offset(),
    )?;
    end_with_name(f, fence.name())
}
