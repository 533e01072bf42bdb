// SPDX-License-Identifier: GPL-2.0

//! Runs a property on generated cases.
//!
//! By default a fixed number of cases from a fixed seed, the same each time. With
//! `VIDMM_SOAK_MINUTES=n` new seeds follow until the share of this property is over; the seed of a
//! failure is part of the report.

use std::time::{
    Duration,
    Instant, //
};

use proptest::strategy::Strategy;
use proptest::test_runner::{
    Config,
    RngAlgorithm,
    TestCaseResult,
    TestRng,
    TestRunner, //
};

/// Test programs, which run one after the other and share the minutes.
const PROGRAMS: u32 = 10;

/// Checks `property` on `cases` values of `strategy`, or for as long as the environment says.
pub fn check<S: Strategy>(
    cases: u32,
    strategy: S,
    property: impl Fn(S::Value) -> TestCaseResult + Copy,
) {
    let end = Instant::now() + soak_time();
    let mut seed = 0;
    loop {
        run(seed, cases, &strategy, property);
        seed += 1;
        if Instant::now() >= end {
            break;
        }
    }
}

/// Returns how long to go on.
fn soak_time() -> Duration {
    let minutes = std::env::var("VIDMM_SOAK_MINUTES").unwrap_or_default();
    if minutes.is_empty() {
        return Duration::ZERO;
    }
    let minutes: f64 = minutes.parse().expect("VIDMM_SOAK_MINUTES is no number");
    Duration::from_secs_f64(minutes * 60.0) / PROGRAMS
}

/// Checks one batch of cases.
fn run<S: Strategy>(
    seed: u64,
    cases: u32,
    strategy: &S,
    property: impl Fn(S::Value) -> TestCaseResult,
) {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 5_000,
        max_shrink_time: 10_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, random);
    if let Err(failure) = runner.run(strategy, property) {
        panic!("seed {seed}: {failure}");
    }
}
