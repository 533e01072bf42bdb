// SPDX-License-Identifier: GPL-2.0

//! Budgets: BUDGET and its neighbours, and the answers of MAKE_RESIDENT and EVICT in full.

use crate::{
    abi::{
        self,
        Budget,
        Evict,
        InfoSegment,
        MakeResident,
        ReserveBudget, //
    },
    call::{
        array,
        Errno, //
    },
    client::{
        Client,
        Queue, //
    },
    memory::{
        Mapping,
        PAGE, //
    }, //
};

/// Reads what a client may keep in a group, and keeps.
pub fn try_budget(client: &Client, group: u32) -> Result<Budget, Errno> {
    let mut argument = Budget {
        group,
        ..Default::default()
    };
    client.call(abi::IOCTL_BUDGET, &mut argument)?;
    Ok(argument)
}

/// Reads what a client may keep in a group, and keeps.
pub fn budget(client: &Client, group: u32) -> Budget {
    try_budget(client, group).unwrap_or_else(|errno| panic!("BUDGET {group}: errno {errno}"))
}

/// What a client may keep of the local group, and keeps.
pub fn local(client: &Client) -> Budget {
    budget(client, abi::GROUP_LOCAL)
}

/// Replaces a reservation.
pub fn try_reserve(client: &Client, group: u32, bytes: u64) -> Result<(), Errno> {
    client.call(
        abi::IOCTL_RESERVE_BUDGET,
        &mut ReserveBudget {
            group,
            flags: 0,
            bytes,
        },
    )
}

/// Replaces a reservation in the local group.
pub fn reserve(client: &Client, bytes: u64) {
    try_reserve(client, abi::GROUP_LOCAL, bytes)
        .unwrap_or_else(|errno| panic!("RESERVE_BUDGET {bytes}: errno {errno}"));
}

/// The bytes of all segments that count to the local budget.
pub fn marked_memory(client: &Client) -> u64 {
    let adapter: abi::InfoAdapter = client.query(abi::QUERY_ADAPTER, 0);
    let segments = (1..=adapter.segments).map(|id| client.query(abi::QUERY_SEGMENT, id));
    segments
        .filter(|segment: &InfoSegment| segment.flags & abi::SEGMENT_BUDGETED != 0)
        .map(|segment| segment.size)
        .sum()
}

/// Adds residency references; the argument as it came back, also from a failure.
pub fn make_resident(
    client: &Client,
    queue: &Queue,
    handles: &[u32],
    flags: u32,
) -> Result<MakeResident, (Errno, MakeResident)> {
    let mut argument = MakeResident {
        queue: queue.handle,
        flags,
        handles: array(handles),
        ..Default::default()
    };
    match client.call(abi::IOCTL_MAKE_RESIDENT, &mut argument) {
        Ok(()) => Ok(argument),
        Err(errno) => Err((errno, argument)),
    }
}

/// Drops residency references; says how much there is still to be given up.
pub fn evict(client: &Client, device: u32, handles: &[u32], flags: u32) -> u64 {
    let mut argument = Evict {
        device,
        flags,
        handles: array(handles),
        ..Default::default()
    };
    client
        .call(abi::IOCTL_EVICT, &mut argument)
        .unwrap_or_else(|errno| panic!("EVICT: errno {errno}"));
    argument.bytes_to_trim
}

/// A mapped status page.
pub struct Status(Mapping);

impl Status {
    /// Maps the status page of a client.
    pub fn map(client: &Client) -> Self {
        let offset = abi::MMAP_OFFSET_STATUS_PAGE;
        Self(Mapping::read_only(client.file(), offset, PAGE))
    }

    /// The mapping.
    pub fn mapping(&self) -> &Mapping {
        &self.0
    }

    /// Copies the page as the interface says.
    pub fn read(&self) -> abi::StatusPage {
        use std::sync::atomic::{
            fence,
            Ordering, //
        };
        let sequence = self.0.word(4);
        loop {
            let before = sequence.load(Ordering::Acquire);
            let page = abi::StatusPage {
                version: self.0.read32(0),
                sequence: before,
                state: self.0.read32(8),
                reset_count: self.0.read32(12),
                budget_local: self.0.read64(16),
                usage_local: self.0.read64(24),
                trim_local: self.0.read64(32),
                budget_nonlocal: self.0.read64(40),
                usage_nonlocal: self.0.read64(48),
                trim_nonlocal: self.0.read64(56),
                budget_generation: self.0.read64(64),
            };
            fence(Ordering::Acquire);
            if before % 2 == 0 && sequence.load(Ordering::Relaxed) == before {
                return page;
            }
        }
    }
}
