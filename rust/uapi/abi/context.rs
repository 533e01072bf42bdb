// SPDX-License-Identifier: GPL-2.0

//! Contexts: CONTEXT_CREATE, CONTEXT_SET.
//!
//! A context is an ordered stream of submissions on one node. Its mode says how a submission names
//! memory.

// Context modes. Values of `mode` in `ContextCreate`; bit n of `modes` in `InfoNode` stands for
// mode n. A mode that the node does not offer is `EOPNOTSUPP`, and so is a submission call of the
// other kind.

/// The lists of each submission decide residency; splitting may happen.
pub const CONTEXT_MODE_PATCHED_LIST: u32 = 0;
/// Lists only patch; everything named must hold a residency reference, or the submission is refused
/// and the device goes to ERROR_DMA. Nothing is cut.
pub const CONTEXT_MODE_PATCHED_EXPLICIT: u32 = 1;
/// GPU virtual addresses, no lists; residency through MAKE_RESIDENT.
pub const CONTEXT_MODE_VIRTUAL: u32 = 2;

// Context flags. Bits of `flags` in `ContextCreate`.

/// No time limit. Needs `CAP_SYS_ADMIN`.
pub const CONTEXT_NO_TIMEOUT: u32 = 1 << 0;

// Context priorities. Range of `priority`. Above 0 needs `CAP_SYS_NICE`.

/// Lowest priority.
pub const CONTEXT_PRIORITY_MIN: i32 = -7;
/// Highest priority.
pub const CONTEXT_PRIORITY_MAX: i32 = 7;

/// Argument of CONTEXT_CREATE.
///
/// The progress fence outlives its context: it stays until its own handle is closed, its value no
/// longer changes, and a wait for more answers `ECANCELED`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextCreate {
    /// in: device handle.
    pub device: u32,
    /// in: node ordinal.
    pub node: u32,
    /// in: context mode.
    pub mode: u32,
    /// in: context flags.
    pub flags: u32,
    /// in: `CONTEXT_PRIORITY_MIN` to `CONTEXT_PRIORITY_MAX`, above 0 is privileged.
    pub priority: i32,
    /// in: `NODE_NONE`: the backend names the node of the companion context (`companion_node` of
    /// `InfoNode`); others later.
    pub companion_node: u32,
    /// in: 0 is the node default; a longer one than the default is privileged.
    pub timeout_ms: u32,
    /// out: context handle.
    pub context: u32,
    /// out: fence handle that carries the id of the last finished submission.
    pub progress: u32,
    /// out: slot of that fence inside its page.
    pub progress_slot: u32,
    /// out: mapping offset of the page.
    pub progress_mmap: u64,
}

layout!(ContextCreate, size 48, first 48, {
    device: 0,
    node: 4,
    mode: 8,
    flags: 12,
    priority: 16,
    companion_node: 20,
    timeout_ms: 24,
    context: 28,
    progress: 32,
    progress_slot: 36,
    progress_mmap: 40,
});

// CONTEXT_SET mask. Bits of `mask` in `ContextSet`. A field whose bit is clear does not apply and
// is zero.

/// Set `priority`.
pub const CONTEXT_SET_PRIORITY: u32 = 1 << 0;
/// Set `timeout_ms`.
pub const CONTEXT_SET_TIMEOUT: u32 = 1 << 1;

/// Argument of CONTEXT_SET.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextSet {
    /// in: context handle.
    pub context: u32,
    /// in: CONTEXT_SET mask.
    pub mask: u32,
    /// in: as in `ContextCreate`.
    pub priority: i32,
    /// in: as in `ContextCreate`.
    pub timeout_ms: u32,
}

layout!(ContextSet, size 16, first 16, {
    context: 0,
    mask: 4,
    priority: 8,
    timeout_ms: 12,
});
