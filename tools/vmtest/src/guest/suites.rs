// SPDX-License-Identifier: GPL-2.0
//! Runs the suites of the test program, each in a process of its own.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::port::Port;
use super::{module, process};
use crate::channel::Message;
use crate::failure::{Failure, Result};

const PROGRAM: &str = "selftests";
const MODULE: &str = "vidmm";

/// Runs all suites, or only the named one. The result is not zero when one of
/// them failed; the host reads the details from the reports.
pub fn run(only: &str, seconds: u64, port: &Port) -> Result<i32> {
    let suites = names(only)?;
    port.send(&Message::Suites(suites.join("\n")));
    let mut worst = 0;
    for suite in &suites {
        let code = run_one(suite, &[PROGRAM, "--suite", suite], seconds, port)?;
        if code != 0 {
            worst = 1;
        }
    }
    Ok(worst)
}

/// Runs one program whose output is KTAP, under the name of a suite.
pub fn run_one(suite: &str, program: &[&str], seconds: u64, port: &Port) -> Result<i32> {
    let [name, arguments @ ..] = program else {
        return Err(Failure::new("a suite without a program"));
    };
    // So that the kernel's log says during which suite something happened.
    let _ = fs::write("/dev/kmsg", format!("vmtest: suite {suite}"));
    let label = suite.to_owned();
    let code = process::run(
        Command::new(name).args(arguments),
        Some(Duration::from_secs(seconds)),
        port,
        move |bytes| Message::Ktap(label.clone(), bytes),
    )?;
    port.send(&Message::SuiteEnd(suite.to_owned(), code));
    clean_up(suite, port);
    Ok(code)
}

/// A suite loads and unloads the module itself. What one leaves behind must not
/// disturb the next.
fn clean_up(suite: &str, port: &Port) {
    if !module::is_loaded(MODULE) {
        return;
    }
    let mut complaint = format!("suite {suite} left the module loaded");
    if let Err(failure) = module::unload(MODULE) {
        complaint = format!("{complaint}: {failure}");
    }
    port.send(&Message::Complaint(complaint));
}

fn names(only: &str) -> Result<Vec<String>> {
    let output = Command::new(PROGRAM)
        .arg("--list")
        .output()
        .map_err(|error| Failure::new(format!("cannot start {PROGRAM}: {error}")))?;
    let list = String::from_utf8_lossy(&output.stdout);
    let all: Vec<String> = list
        .lines()
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    if only.is_empty() {
        return Ok(all);
    }
    if all.iter().any(|name| name == only) {
        return Ok(vec![only.to_owned()]);
    }
    Err(Failure::new(format!(
        "there is no suite '{only}'; there are: {}",
        all.join(", ")
    )))
}
