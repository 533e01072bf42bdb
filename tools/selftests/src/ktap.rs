// SPDX-License-Identifier: GPL-2.0

//! The kernel's test output format, version 1: a plan, numbered results, comments.
//!
//! Suites are nested one level deep. Every line is flushed at once, so that a machine that dies
//! leaves the name of the test that killed it on the console.

use std::io::Write;

/// What became of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything held.
    Passed,
    /// It cannot run here, and this is why.
    Skipped(String),
    /// Something did not hold; one reason per line.
    Failed(String),
}

/// Results of one run, and the printer of its lines.
#[derive(Default)]
pub struct Report {
    passed: u32,
    skipped: u32,
    failed: u32,
    number: u32,
    suite_number: u32,
    suite_failed: u32,
}

impl Report {
    /// Prints the head of a run of `suites` suites.
    pub fn begin(suites: usize) -> Self {
        line(&format!("KTAP version 1\n1..{suites}"));
        Self::default()
    }

    /// Prints the head of a suite of `tests` tests.
    pub fn begin_suite(&mut self, name: &str, tests: usize) {
        self.number = 0;
        self.suite_failed = 0;
        line(&format!(
            "    KTAP version 1\n    # Subtest: {name}\n    1..{tests}"
        ));
    }

    /// Prints the result of a test; `name` carries the suite, `ids` the requirements in brackets.
    pub fn test(&mut self, name: &str, ids: &str, outcome: &Outcome) {
        self.number += 1;
        let number = self.number;
        let tail = if ids.is_empty() {
            String::new()
        } else {
            format!(" {ids}")
        };
        match outcome {
            Outcome::Passed => {
                self.passed += 1;
                line(&format!("    ok {number} {name}{tail}"));
            }
            Outcome::Skipped(reason) => {
                self.skipped += 1;
                line(&format!("    ok {number} {name}{tail} # SKIP {reason}"));
            }
            Outcome::Failed(reason) => {
                self.failed += 1;
                self.suite_failed += 1;
                for part in reason.lines() {
                    line(&format!("    # {part}"));
                }
                line(&format!("    not ok {number} {name}{tail}"));
            }
        }
    }

    /// Prints the result of the suite that is open.
    pub fn end_suite(&mut self, name: &str) {
        self.suite_number += 1;
        let word = if self.suite_failed == 0 {
            "ok"
        } else {
            "not ok"
        };
        line(&format!("{word} {} {name}", self.suite_number));
    }

    /// Prints the totals and returns the exit code of the program.
    pub fn end(&self) -> i32 {
        line(&format!(
            "# Totals: pass:{} fail:{} skip:{}",
            self.passed, self.failed, self.skipped
        ));
        i32::from(self.failed != 0)
    }
}

/// Prints a comment that belongs to no test.
pub fn comment(text: &str) {
    for part in text.lines() {
        line(&format!("# {part}"));
    }
}

fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    // A closed standard output leaves nobody to tell.
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}
