// SPDX-License-Identifier: GPL-2.0

//! The clock: the time stamp counter, calibrated once.
//!
//! A system call for the time costs a tenth of an ioctl, and would be measured along.

use std::arch::x86_64::{
    _mm_lfence,
    _rdtsc, //
};
use std::hint::black_box;

/// For how long the counter is compared with the system's clock, in nanoseconds.
const CALIBRATION: i64 = 20_000_000;
/// How often nothing is timed to find out what timing costs.
const EMPTY_RUNS: usize = 101;

/// Reads of the time stamp counter, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    nanoseconds_per_tick: f64,
    /// Ticks of timing itself.
    overhead: u64,
}

/// The counter, after all that comes before in the program.
fn ticks() -> u64 {
    // SAFETY: every processor that this program is built for has the instruction.
    unsafe { _mm_lfence() };
    // SAFETY: as above; Linux lets programs read the counter.
    unsafe { _rdtsc() }
}

impl Clock {
    /// Compares the counter with CLOCK_MONOTONIC.
    pub fn calibrate() -> Self {
        let (start, first) = (libvidmm::time::now(), ticks());
        let (mut end, mut last) = (start, first);
        while end - start < CALIBRATION {
            (end, last) = (libvidmm::time::now(), ticks());
        }
        let mut empty: Vec<u64> = (0..EMPTY_RUNS)
            .map(|_| {
                let start = ticks();
                ticks() - start
            })
            .collect();
        empty.sort_unstable();
        Self {
            nanoseconds_per_tick: (end - start) as f64 / (last - first) as f64,
            overhead: empty[EMPTY_RUNS / 2],
        }
    }

    /// Returns what ticks are in nanoseconds.
    pub fn nanoseconds(self, ticks: u64) -> f64 {
        ticks as f64 * self.nanoseconds_per_tick
    }

    /// Runs `work` and returns how long it took, in nanoseconds, and what it returned.
    pub fn time<T>(self, work: impl FnOnce() -> T) -> (f64, T) {
        let start = ticks();
        let result = black_box(work());
        let taken = ticks() - start;
        (
            self.nanoseconds(taken.saturating_sub(self.overhead)),
            result,
        )
    }

    /// Runs `work` so many times, until it fails, and returns how long one run took.
    pub fn time_each<E>(
        self,
        times: u32,
        mut work: impl FnMut(u32) -> Result<(), E>,
    ) -> Result<f64, E> {
        let (taken, result) = self.time(|| (0..times).try_for_each(&mut work));
        result.map(|()| taken / f64::from(times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_seen() {
        let clock = Clock::calibrate();

        let (taken, ()) = clock.time(|| std::thread::sleep(std::time::Duration::from_millis(20)));

        assert!((15e6..2e9).contains(&taken), "{taken} ns");
    }

    #[test]
    fn failure_ends_repetitions() {
        let clock = Clock::calibrate();
        let mut runs = 0;

        let result = clock.time_each(10, |index| {
            runs += 1;
            if index == 3 {
                Err("fourth")
            } else {
                Ok(())
            }
        });

        assert_eq!((result.unwrap_err(), runs), ("fourth", 4));
    }
}
