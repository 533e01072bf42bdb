// SPDX-License-Identifier: GPL-2.0

//! Budgets: BUDGET, RESERVE_BUDGET, and the status page that shows them without a call.
//!
//! A budget is a promise about pressure, not a quota: going over it works until memory is short, and
//! then this client pays first.

/// Argument of BUDGET.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// in: segment group, `GROUP_LOCAL` or `GROUP_NON_LOCAL`.
    pub group: u32,
    /// in: must be zero.
    pub flags: u32,
    /// out: bytes this client may keep resident now.
    pub budget: u64,
    /// out: bytes it keeps resident now.
    pub usage: u64,
    /// out: bytes it reserved.
    pub reservation: u64,
    /// out: bytes it could still reserve.
    pub reservable: u64,
    /// out: usage above budget, 0 if inside.
    pub bytes_to_trim: u64,
    /// out: rises with every budget change.
    pub generation: u64,
}

layout!(Budget, size 56, first 56, {
    group: 0,
    flags: 4,
    budget: 8,
    usage: 16,
    reservation: 24,
    reservable: 32,
    bytes_to_trim: 40,
    generation: 48,
});

/// Argument of RESERVE_BUDGET.
///
/// A reservation is a part of the budget that the kernel will not take away.
///
/// Also: `ENOSPC` for more than BUDGET calls `reservable`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReserveBudget {
    /// in: segment group, `GROUP_LOCAL` or `GROUP_NON_LOCAL`.
    pub group: u32,
    /// in: must be zero.
    pub flags: u32,
    /// in: new reservation; it replaces the old one.
    pub bytes: u64,
}

layout!(ReserveBudget, size 16, first 16, {
    group: 0,
    flags: 4,
    bytes: 8,
});

// Status page.

/// `version` of the layout of `StatusPage`.
pub const STATUS_PAGE_VERSION: u32 = 1;

/// The page at `MMAP_OFFSET_STATUS_PAGE`.
///
/// Not an argument: the kernel writes it, programs read it. Read `sequence` with acquire ordering
/// until it is even, copy, read `sequence` again, and start anew if it has changed. So a program
/// follows its budget without a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusPage {
    /// out: `STATUS_PAGE_VERSION`.
    pub version: u32,
    /// out: odd while being written.
    pub sequence: u32,
    /// out: adapter state, `ADAPTER_STATE_RUNNING` and so on.
    pub state: u32,
    /// out: adapter resets since load.
    pub reset_count: u32,
    /// out: as in BUDGET, of `GROUP_LOCAL`.
    pub budget_local: u64,
    /// out: as in BUDGET, of `GROUP_LOCAL`.
    pub usage_local: u64,
    /// out: as `bytes_to_trim` in BUDGET, of `GROUP_LOCAL`.
    pub trim_local: u64,
    /// out: as in BUDGET, of `GROUP_NON_LOCAL`.
    pub budget_nonlocal: u64,
    /// out: as in BUDGET, of `GROUP_NON_LOCAL`.
    pub usage_nonlocal: u64,
    /// out: as `bytes_to_trim` in BUDGET, of `GROUP_NON_LOCAL`.
    pub trim_nonlocal: u64,
    /// out: rises with every budget change.
    pub budget_generation: u64,
}

layout!(StatusPage, size 72, {
    version: 0,
    sequence: 4,
    state: 8,
    reset_count: 12,
    budget_local: 16,
    usage_local: 24,
    trim_local: 32,
    budget_nonlocal: 40,
    usage_nonlocal: 48,
    trim_nonlocal: 56,
    budget_generation: 64,
});
