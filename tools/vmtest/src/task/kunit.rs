// SPDX-License-Identifier: GPL-2.0
//! The module's KUnit suites: they run when it is loaded, and report into the
//! kernel's log.

use std::time::Duration;

use super::setting::{Boot, Setting, MODULE};
use crate::failure::{Failure, Result};
use crate::host::kernel::Flavour;
use crate::host::machine::Listener;
use crate::host::verdict::Verdict;
use crate::job::{Step, JOB_BEGINS};
use crate::kernel_log::without_timestamp;

const SUITE: &str = "kunit";

/// Loads the module on the debug kernel and judges what its suites say.
pub fn run(setting: &Setting) -> Result<u8> {
    if setting.flavour() != Flavour::Debug {
        return Err(Failure::new(
            "KUnit is in the debug kernel only: use KERNEL=debug",
        ));
    }
    let steps = vec![
        setting.load(""),
        Step::Unload(MODULE.to_owned()),
        Step::Leaks,
    ];
    let mut boot = Boot::new("kunit", steps);
    boot.limit = Duration::from_secs(1800);
    boot.results = "out";
    let mut log = LogReader {
        verdict: Verdict::new(setting.flavour()),
        begun: false,
    };
    let outcome = setting.boot(boot, &mut log)?;
    log.verdict.end_suite(SUITE, 0);
    log.verdict.machine(&outcome);
    Ok(u8::from(!log.verdict.print()))
}

/// Takes the KTAP lines out of the console.
struct LogReader {
    verdict: Verdict,
    begun: bool,
}

impl Listener for LogReader {
    fn console(&mut self, line: &str) {
        let line = without_timestamp(line);
        if line.contains(JOB_BEGINS) {
            self.begun = true;
        } else if self.begun && is_ktap(line) {
            self.verdict.line(SUITE, line);
        }
    }
}

fn is_ktap(line: &str) -> bool {
    const STARTS: &[&str] = &["KTAP version", "1..", "ok ", "not ok ", "#", "Bail out!"];
    let text = line.trim_start();
    // Every test tells its speed; nobody wants to know.
    STARTS.iter().any(|start| text.starts_with(start)) && !text.ends_with("speed: normal")
}
