// SPDX-License-Identifier: GPL-2.0
//! Finds reports of the kernel's checkers in its log.

use std::collections::VecDeque;

/// What a line of a report contains, and what to call the report.
const REPORTS: &[(&str, &str)] = &[
    ("kernel BUG at", "kernel bug"),
    ("Oops: int3", "breakpoint lost by the emulator, run again"),
    ("Oops:", "oops"),
    ("Oops -", "oops"),
    ("general protection fault", "oops"),
    ("Kernel panic", "kernel panic"),
    ("panicked at", "Rust panic"),
    ("KASAN:", "memory error (KASAN)"),
    ("UBSAN:", "undefined behaviour (UBSAN)"),
    ("KFENCE:", "memory error (KFENCE)"),
    ("KCSAN:", "data race (KCSAN)"),
    ("ODEBUG:", "object life cycle error"),
    ("DMA-API:", "DMA mapping error"),
    ("possible circular locking", "lock order (lockdep)"),
    ("possible recursive locking", "lock order (lockdep)"),
    ("inconsistent lock state", "lock state (lockdep)"),
    ("suspicious RCU usage", "RCU usage (lockdep)"),
    (
        "sleeping function called from invalid context",
        "sleep in atomic context",
    ),
    ("scheduling while atomic", "sleep in atomic context"),
    ("detected stall", "RCU stall"),
    ("self-detected stall", "RCU stall"),
    ("blocked for more than", "hung task"),
    ("soft lockup", "soft lockup"),
    ("workqueue lockup", "workqueue lockup"),
    ("refcount_t:", "reference count error"),
    ("list_add corruption", "list corruption"),
    ("list_del corruption", "list corruption"),
    ("Bad page", "page state error"),
    ("Unknown symbol", "module does not fit this kernel"),
    // The general ones last: the first that fits names the report.
    ("WARNING:", "kernel warning"),
    ("BUG:", "kernel bug"),
];

/// Lines that look like a report and are none.
const HARMLESS: &[&str] = &[
    // Announcements of the checkers themselves.
    "DMA-API: preallocated",
    "DMA-API: debugging enabled",
    "DMA-API: debugging disabled",
    "KASAN: KernelAddressSanitizer initialized",
    "kasan: KernelAddressSanitizer initialized",
    // A configuration that a 1 GiB machine cannot have.
    "DMA-API: debugging out of memory",
];

/// How much of the log is shown around a report.
const LINES_BEFORE: usize = 3;
const LINES_AFTER: usize = 30;

/// One report, with the lines around it.
#[derive(Debug, Clone)]
pub struct Report {
    /// What kind of report it is.
    pub kind: &'static str,
    /// The lines around it, as printed.
    pub lines: Vec<String>,
}

/// Watches a log line by line.
pub struct Scanner {
    before: VecDeque<String>,
    reports: Vec<Report>,
    /// Lines that still belong to the last report.
    remaining: usize,
}

impl Scanner {
    /// A scanner that has seen nothing.
    pub fn new() -> Self {
        Scanner {
            before: VecDeque::new(),
            reports: Vec::new(),
            remaining: 0,
        }
    }

    /// Takes one line of the log.
    pub fn line(&mut self, line: &str) {
        if self.remaining > 0 {
            self.remaining -= 1;
            if let Some(report) = self.reports.last_mut() {
                report.lines.push(line.to_owned());
            }
        } else if let Some(kind) = classify(line) {
            let mut lines: Vec<String> = self.before.drain(..).collect();
            lines.push(line.to_owned());
            self.reports.push(Report { kind, lines });
            self.remaining = LINES_AFTER;
        } else {
            if self.before.len() == LINES_BEFORE {
                self.before.pop_front();
            }
            self.before.push_back(line.to_owned());
        }
    }

    /// Whether the kernel can no longer go on.
    pub fn has_panicked(&self) -> bool {
        self.reports
            .iter()
            .flat_map(|report| &report.lines)
            .any(|line| line.contains("Kernel panic"))
    }

    /// All reports so far.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }
}

/// The kind of report that a line begins, if it begins one.
fn classify(line: &str) -> Option<&'static str> {
    if HARMLESS.iter().any(|harmless| line.contains(harmless)) {
        return None;
    }
    REPORTS
        .iter()
        .find(|(mark, _)| line.contains(mark))
        .map(|&(_, kind)| kind)
}

/// A line without the kernel's time stamp.
pub fn without_timestamp(line: &str) -> &str {
    let trimmed = line.trim_start_matches('\r');
    match trimmed
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        Some((stamp, text)) if stamp.trim().parse::<f64>().is_ok() => {
            text.strip_prefix(' ').unwrap_or(text)
        }
        _ => trimmed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(log: &str) -> Vec<Report> {
        let mut scanner = Scanner::new();
        log.lines().for_each(|line| scanner.line(line));
        scanner.reports().to_vec()
    }

    #[test]
    fn warning_is_reported_with_context() {
        let found = reports("a\nb\n[ 1.0] WARNING: CPU: 0 at x.c:1\nCall Trace:\n");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind, "kernel warning");
        assert_eq!(found[0].lines.len(), 4);
    }

    #[test]
    fn lines_of_one_report_are_one_report() {
        let found = reports("BUG: KASAN: slab-use-after-free in f\nWARNING: again\n");
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn taint_is_harmless() {
        let log = "vidmm: loading out-of-tree module taints kernel.\n\
                   vidmm: module verification failed: signature and/or required key missing - tainting kernel\n";
        assert!(reports(log).is_empty());
    }

    #[test]
    fn rust_panic_is_reported() {
        let found = reports("rust_kernel: panicked at rust/vidmm.rs:3:4:\n");
        assert_eq!(found[0].kind, "Rust panic");
    }

    #[test]
    fn timestamp_is_stripped_and_indentation_kept() {
        assert_eq!(without_timestamp("[    3.140000]     ok 1 a"), "    ok 1 a");
        assert_eq!(without_timestamp("[drm] ready"), "[drm] ready");
    }
}
