// SPDX-License-Identifier: GPL-2.0

//! Mapping offsets and deadlines.
//!
//! `mmap` on the device file takes offsets that earlier calls returned. They are tokens, not
//! addresses: page aligned and unique per adapter.

// Mapping offsets. Offsets that calls return lie between MIN and END, so that 32-bit programs can
// pass them. Only `MAP_SHARED` is allowed.

/// The `StatusPage` of this client: one page, read-only. Needs `FEATURE_STATUS_PAGE`.
pub const MMAP_OFFSET_STATUS_PAGE: u64 = 0;
/// Least offset that a call returns.
pub const MMAP_OFFSET_MIN: u64 = 1 << 32;
/// End of the offsets.
pub const MMAP_OFFSET_END: u64 = 1 << 44;

// Deadlines. A special value of every `deadline_ns`. Deadlines are absolute nanoseconds of
// CLOCK_MONOTONIC; 0 polls, a negative one is `EINVAL`.

/// Waits for ever.
pub const WAIT_FOREVER: i64 = i64::MAX;
