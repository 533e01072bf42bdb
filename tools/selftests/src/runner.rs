// SPDX-License-Identifier: GPL-2.0

//! Runs tests: each in a child process of its own, with a time limit.
//!
//! A test that crashes or hangs fails alone. After each test the runner takes back what it may have
//! left in the module (paused nodes, reserved memory), looks into the kernel log, and waits until
//! memory and objects are back at the state after loading.

use std::{
    fs::File,
    io::{
        Read,
        Write, //
    },
    panic,
    time::{
        Duration,
        Instant, //
    },
};

use crate::{
    clock,
    debugfs::{
        self,
        Baseline, //
    },
    kernel_log::KernelLog,
    ktap::{
        Outcome,
        Report, //
    },
    module,
    process::{
        self,
        End, //
    },
    suite::{
        Case,
        Skip,
        Suite, //
    },
};

/// Time limit of one test in the normal run.
pub fn time_limit() -> Duration {
    clock::scaled(Duration::from_secs(150))
}

const PASSED: i32 = 0;
const FAILED: i32 = 1;
const SKIPPED: i32 = 4;

/// Runs the tests of `suite` whose full name contains `filter`.
pub fn run_suite(suite: &'static Suite, filter: &str, limit: Duration, report: &mut Report) {
    let chosen: Vec<&Case> = suite.chosen(filter).collect();
    report.begin_suite(
        suite.name,
        chosen.len() + usize::from(suite.parameters.is_some()),
    );
    let mut log = KernelLog::watch();
    let loaded = suite.parameters.map(module::try_load);
    let mut broken = match loaded {
        Some(Err(errno)) => Some(format!("the module does not load: errno {errno}")),
        Some(Ok(())) if !clock::holds_within(clock::patience(), module::node_exists) => {
            Some("the device node does not appear".to_owned())
        }
        _ => None,
    };
    let baseline = suite.parameters.and_then(|_| Baseline::take());
    for case in chosen {
        let outcome = match &broken {
            Some(reason) => Outcome::Failed(reason.clone()),
            None => run_case(suite, case, limit, baseline.as_ref(), &mut log, &mut broken),
        };
        report.test(&suite.title(case), case.ids, &outcome);
    }
    if suite.parameters.is_some() {
        let outcome = unload(&mut log);
        report.test(&format!("{}.module_unloads", suite.name), "", &outcome);
    }
    report.end_suite(suite.name);
}

/// Runs one test and cleans up behind it; sets `broken` when no later test makes sense.
fn run_case(
    suite: &Suite,
    case: &Case,
    limit: Duration,
    baseline: Option<&Baseline>,
    log: &mut KernelLog,
    broken: &mut Option<String>,
) -> Outcome {
    let (mut outcome, ended) = run_in_child(case.run, limit);
    let mut reasons = Vec::new();
    if !ended {
        *broken = Some("an earlier test cannot be killed".to_owned());
        return outcome;
    }
    if module::is_loaded() {
        debugfs::reset_injections();
    }
    if let Some(baseline) = baseline {
        let mut rest = String::new();
        if !clock::holds_within(clock::patience(), || baseline.holds(&mut rest)) {
            reasons.push(format!("left behind: {rest}"));
        }
    } else if suite.parameters.is_none() && module::is_loaded() {
        let unloaded = clock::holds_within(clock::patience(), || module::try_unload().is_ok());
        if !unloaded {
            reasons.push("left the module loaded and in use".to_owned());
        }
    }
    reasons.extend(
        log.reports()
            .into_iter()
            .map(|text| format!("kernel log: {text}")),
    );
    if !reasons.is_empty() {
        let mut text = match outcome {
            Outcome::Failed(reason) => reason + "\n",
            _ => String::new(),
        };
        text.push_str(&reasons.join("\n"));
        outcome = Outcome::Failed(text);
    }
    outcome
}

/// Unloads the module at the end of a suite.
fn unload(log: &mut KernelLog) -> Outcome {
    let mut errno = 0;
    let unloaded = clock::holds_within(clock::patience(), || match module::try_unload() {
        Ok(()) => true,
        Err(number) => {
            errno = number;
            errno == libc::ENOENT
        }
    });
    let reports = log.reports();
    if !unloaded {
        return Outcome::Failed(format!("the module does not unload: errno {errno}"));
    }
    if errno == libc::ENOENT {
        return Outcome::Failed("the module was not loaded any more".to_owned());
    }
    if !reports.is_empty() {
        return Outcome::Failed(format!("kernel log: {}", reports.join("\nkernel log: ")));
    }
    Outcome::Passed
}

/// Runs `test` in a child process; the second value says whether the child is gone.
fn run_in_child(test: fn(), limit: Duration) -> (Outcome, bool) {
    let (mut reader, writer) = process::pipe();
    let child = process::fork(|| child_main(test, writer));
    let mut text = Vec::new();
    let end = Instant::now() + limit;
    let mut killed = false;
    loop {
        drain(&mut reader, &mut text);
        if let Some(how) = process::reap(child) {
            // What the test started goes with it.
            process::kill_group(child);
            drain(&mut reader, &mut text);
            return (outcome_of(how, killed, limit, &text), true);
        }
        if !killed && Instant::now() >= end {
            process::kill_group(child);
            killed = true;
        } else if killed && Instant::now() >= end + clock::patience() {
            return (
                Outcome::Failed("hangs and cannot be killed".to_owned()),
                false,
            );
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn outcome_of(how: End, killed: bool, limit: Duration, text: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(text).into_owned();
    if killed {
        return Outcome::Failed(format!("{text}killed after {limit:?}"));
    }
    match how {
        End::Code(PASSED) => Outcome::Passed,
        End::Code(SKIPPED) => Outcome::Skipped(text.trim().to_owned()),
        End::Code(_) => Outcome::Failed(text),
        End::Signal(signal) => Outcome::Failed(format!("{text}died of signal {signal}")),
    }
}

/// The child: runs the test and returns its exit code.
fn child_main(test: fn(), mut writer: File) -> i32 {
    process::lead_group();
    let voice = writer.try_clone().expect("a descriptor");
    panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<Skip>() {
            let _ = (&voice).write_all(format!("{info}\n").as_bytes());
        }
    }));
    match panic::catch_unwind(test) {
        Ok(()) => PASSED,
        Err(payload) => match payload.downcast_ref::<Skip>() {
            Some(Skip(reason)) => {
                let _ = writer.write_all(reason.as_bytes());
                SKIPPED
            }
            None => FAILED,
        },
    }
}

fn drain(reader: &mut File, text: &mut Vec<u8>) {
    let mut part = [0; 4096];
    while let Ok(length @ 1..) = reader.read(&mut part) {
        text.extend_from_slice(&part[..length]);
    }
}
