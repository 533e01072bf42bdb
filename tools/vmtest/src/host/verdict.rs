// SPDX-License-Identifier: GPL-2.0
//! Adds up results and says whether a run was good.

use std::collections::BTreeMap;

use super::kernel::Flavour;
use super::machine::{Listener, Outcome};
use super::terminal;
use crate::channel::Message;
use crate::ktap::{below, Outcome as TestOutcome, Parser};

/// Reasons for which a test may be skipped, and on which kernel.
const PERMITTED_SKIPS: &[(&str, Flavour)] = &[
    ("needs-debug-kernel", Flavour::Stock),
    ("needs-stock-kernel", Flavour::Debug),
];

/// Results of all suites of a run.
pub struct Verdict {
    flavour: Flavour,
    suites: BTreeMap<String, Suite>,
    passed: usize,
    failures: Vec<String>,
    skipped: Vec<String>,
}

/// A suite that is running.
struct Suite {
    parser: Parser,
    /// The beginning of a line whose end has not come yet.
    pending: Vec<u8>,
    /// Whether its name is on the terminal.
    shown: bool,
}

impl Suite {
    fn new() -> Self {
        Suite {
            parser: Parser::new(),
            pending: Vec::new(),
            shown: false,
        }
    }
}

impl Verdict {
    /// A verdict on nothing.
    pub fn new(flavour: Flavour) -> Self {
        Verdict {
            flavour,
            suites: BTreeMap::new(),
            passed: 0,
            failures: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// Takes a line of a suite's KTAP output and shows it.
    pub fn line(&mut self, suite: &str, line: &str) {
        if !self.suite(suite).shown {
            self.suite(suite).shown = true;
            terminal::line(&format!("# suite {suite}"));
        }
        terminal::line(line);
        self.suite(suite).parser.line(line);
    }

    /// Ends a suite with the exit code of its program.
    pub fn end_suite(&mut self, name: &str, code: i32) {
        let mut suite = self.suites.remove(name).unwrap_or_else(Suite::new);
        if !suite.pending.is_empty() {
            let line = String::from_utf8_lossy(&suite.pending).into_owned();
            suite.parser.line(&line);
        }
        let (results, defects) = suite.parser.finish();
        let mut failed = false;
        for test in results {
            let full = below(name, &test.name);
            match test.outcome {
                TestOutcome::Passed => self.passed += 1,
                TestOutcome::Failed => {
                    failed = true;
                    self.failures.push(full);
                }
                TestOutcome::Skipped(reason) => self.skip(full, &reason),
            }
        }
        for defect in defects {
            self.failures.push(format!("{name}: {defect}"));
        }
        if code == -1 {
            self.failures
                .push(format!("{name}: killed at its time limit"));
        } else if code != 0 && !failed {
            self.failures
                .push(format!("{name}: ended with exit code {code}"));
        }
    }

    /// Adds everything that the VM itself has to be blamed for.
    pub fn machine(&mut self, outcome: &Outcome) {
        for name in std::mem::take(&mut self.suites).into_keys() {
            self.failures
                .push(format!("{name}: did not run to its end"));
        }
        self.failures.extend(blame(outcome));
    }

    /// Prints the summary; true when nothing failed.
    pub fn print(&self) -> bool {
        terminal::line("");
        for test in &self.skipped {
            terminal::line(&format!("skipped  {test}"));
        }
        for failure in &self.failures {
            terminal::line(&format!("FAILED   {failure}"));
        }
        if !self.skipped.is_empty() {
            terminal::line(&format!("{} skipped", self.skipped.len()));
        }
        terminal::line(&format!(
            "{} passed, {} failed",
            self.passed,
            self.failures.len()
        ));
        self.failures.is_empty()
    }

    fn skip(&mut self, test: String, reason: &str) {
        let permitted = PERMITTED_SKIPS
            .iter()
            .any(|&(declared, flavour)| flavour == self.flavour && reason.contains(declared));
        if permitted {
            self.skipped.push(format!("{test}: {reason}"));
        } else {
            self.failures.push(format!("{test}: skipped: {reason}"));
        }
    }

    fn suite(&mut self, name: &str) -> &mut Suite {
        self.suites
            .entry(name.to_owned())
            .or_insert_with(Suite::new)
    }

    /// Takes output of a suite, in pieces as they come.
    fn bytes(&mut self, name: &str, bytes: &[u8]) {
        self.suite(name).pending.extend_from_slice(bytes);
        while let Some(line) = self.suite(name).take_line() {
            self.line(name, &line);
        }
    }
}

impl Suite {
    fn take_line(&mut self) -> Option<String> {
        let end = self.pending.iter().position(|&byte| byte == b'\n')?;
        let line: Vec<u8> = self.pending.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }
}

/// What the VM itself has to be blamed for, one line each; shows the details.
pub fn blame(outcome: &Outcome) -> Vec<String> {
    let mut failures = outcome.complaints.clone();
    for report in &outcome.reports {
        terminal::line(&format!(
            "\n--- {} (from {})",
            report.kind,
            outcome.log.display()
        ));
        report
            .lines
            .iter()
            .for_each(|line| terminal::line(&format!("    {line}")));
        failures.push(format!("kernel log: {}", report.kind));
    }
    for leak in &outcome.leaks {
        terminal::line("\n--- kmemleak suspects");
        leak.lines()
            .for_each(|line| terminal::line(&format!("    {line}")));
        failures.push("kmemleak: suspected leaks".to_owned());
    }
    failures
}

impl Listener for Verdict {
    fn message(&mut self, message: &Message) {
        match message {
            Message::Suites(names) => names.lines().for_each(|name| {
                self.suite(name);
            }),
            Message::Ktap(suite, bytes) => self.bytes(suite, bytes),
            Message::SuiteEnd(suite, code) => self.end_suite(suite, *code),
            _ => {}
        }
    }
}
