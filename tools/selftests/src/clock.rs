// SPDX-License-Identifier: GPL-2.0

//! Time: the clock of deadlines, and patience.
//!
//! No test waits for a fixed time. It waits for a condition, up to a limit that is far beyond what
//! the slowest machine needs, and fails when the limit is reached.

use std::{
    path::Path,
    time::{
        Duration,
        Instant, //
    },
};

/// How long a condition may take to come true on a stock kernel, emulated on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much slower a debug kernel may be.
const SLOWNESS: u32 = 6;

/// `limit`, or what it is on a debug kernel.
pub fn scaled(limit: Duration) -> Duration {
    if is_debug_kernel() {
        limit * SLOWNESS
    } else {
        limit
    }
}

/// Whether the kernel can inject faults, as only the debug kernel can.
pub fn is_debug_kernel() -> bool {
    Path::new("/proc/thread-self/fail-nth").exists()
}

/// How long a condition may take to come true.
pub fn patience() -> Duration {
    scaled(PATIENCE)
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn now_ns() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a local that the call fills.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    assert_eq!(result, 0, "clock_gettime failed");
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A deadline `milliseconds` from now.
pub fn deadline_in(milliseconds: i64) -> i64 {
    now_ns() + milliseconds * 1_000_000
}

/// The deadline of a wait that is expected to end by itself.
pub fn patient_deadline() -> i64 {
    now_ns() + patience().as_nanos() as i64
}

/// Waits until `condition` holds.
///
/// # Panics
///
/// When it does not hold in time; `what` says what was expected.
pub fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    let limit = patience();
    assert!(
        holds_within(limit, condition),
        "not within {limit:?}: {what}"
    );
}

/// Whether `condition` comes true within `limit`.
pub fn holds_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_micros(50);
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}
