// SPDX-License-Identifier: GPL-2.0
//! What is said to the user while a VM runs.

use std::io::{self, IsTerminal, Write};
use std::time::Instant;

/// Progress lines on standard error, with the seconds since the start.
pub struct Progress {
    start: Instant,
    /// Whether an unfinished line is on the terminal.
    waiting: bool,
}

impl Progress {
    /// Starts the clock.
    pub fn new() -> Self {
        Progress {
            start: Instant::now(),
            waiting: false,
        }
    }

    /// Prints one line.
    pub fn say(&mut self, text: &str) {
        self.clear();
        eprintln!("[{:4}s] {text}", self.start.elapsed().as_secs());
    }

    /// Shows, on a terminal, that something still goes on.
    pub fn tick(&mut self, text: &str) {
        if io::stderr().is_terminal() {
            eprint!("\r[{:4}s] {text}", self.start.elapsed().as_secs());
            let _ = io::stderr().flush();
            self.waiting = true;
        }
    }

    /// Removes an unfinished line before other output.
    pub fn clear(&mut self) {
        if self.waiting {
            eprint!("\r\x1b[K");
            self.waiting = false;
        }
    }
}

/// Writes bytes of the guest to standard output at once.
pub fn output(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(bytes);
    let _ = stdout.flush();
}

/// Writes one line to standard output.
pub fn line(text: &str) {
    output(format!("{text}\n").as_bytes());
}
