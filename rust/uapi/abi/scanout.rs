// SPDX-License-Identifier: GPL-2.0

//! Showing primaries: SCANOUT.

use super::Point;

// SCANOUT flags. Bits of `flags` in `Scanout`.

/// Checks only; neither waits nor signals.
pub const SCANOUT_TEST: u32 = 1 << 0;

/// Argument of SCANOUT.
///
/// Makes a primary the one to show on a source: it is brought into a segment with
/// `SEGMENT_SCANOUT`, does not move, and is released when replaced. Showing the same one again is
/// accepted and moves nothing. Work that writes a primary is ordered against the switch by the
/// kernel. The client that first shows something on a source owns it until it blanks it or is
/// closed.
///
/// Also: `EBUSY` for a source of another client, `EINVAL` for an allocation that is no primary,
/// `ENOSPC` when there is no place for it, even after paging; the source then goes on showing what
/// it showed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanout {
    /// in: source id.
    pub source: u32,
    /// in: primary to show, 0 blanks.
    pub alloc: u32,
    /// in: SCANOUT flags.
    pub flags: u32,
    /// out: primary it replaces, 0 if none.
    pub previous: u32,
    /// in: reached before the switch; `fence` 0 for none.
    pub wait: Point,
    /// in: signalled when `previous` is no longer shown, or at the switch if there is none or it is
    /// the same; `fence` 0 for none.
    pub signal: Point,
    /// out: rises by one per accepted call on this source.
    pub sequence: u64,
}

layout!(Scanout, size 56, first 56, {
    source: 0,
    alloc: 4,
    flags: 8,
    previous: 12,
    wait: 16,
    signal: 32,
    sequence: 48,
});
