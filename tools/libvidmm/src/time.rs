// SPDX-License-Identifier: GPL-2.0

//! Deadlines: absolute nanoseconds of CLOCK_MONOTONIC, as every waiting call takes them.

use std::time::Duration;

use rustix::time::{
    clock_gettime,
    ClockId, //
};

use crate::abi;

/// Until when a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(i64);

impl Deadline {
    /// Does not wait: what is not reached yet is `ETIME`.
    pub const POLL: Self = Self(0);
    /// Waits as long as it takes.
    pub const FOREVER: Self = Self(abi::WAIT_FOREVER);

    /// Waits until the clock shows this many nanoseconds.
    pub const fn at(nanoseconds: i64) -> Self {
        Self(nanoseconds)
    }

    /// Waits for this long from now.
    pub fn after(duration: Duration) -> Self {
        let duration = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Self(now().saturating_add(duration))
    }

    /// Returns the value that the interface takes.
    pub const fn nanoseconds(self) -> i64 {
        self.0
    }
}

/// Returns what CLOCK_MONOTONIC shows, in nanoseconds.
pub fn now() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
