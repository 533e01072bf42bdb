// SPDX-License-Identifier: GPL-2.0

//! The clock of deadlines and measurements: CLOCK_MONOTONIC in nanoseconds.
//!
//! A deadline of the interface is a point of this clock, so it needs no conversion. The kernel crate's
//! `Instant` keeps its count to itself; that is why this file exists.
//!
//! C header: [`include/linux/timekeeping.h`](srctree/include/linux/timekeeping.h).
//! Upstream: a method of `rust/kernel/time.rs`.

use kernel::bindings;

/// Nanoseconds in a millisecond.
pub const NANOSECONDS_PER_MILLISECOND: u64 = 1_000_000;

/// Returns the nanoseconds of CLOCK_MONOTONIC.
#[inline]
pub fn now_ns() -> u64 {
    // SAFETY: Reading this clock needs nothing of its caller, in any context outside of NMI.
    let now = unsafe { bindings::ktime_get() };

    // CAST: The clock starts at zero and does not reach 2^63 within 292 years.
    now as u64
}
