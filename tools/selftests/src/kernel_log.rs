// SPDX-License-Identifier: GPL-2.0

//! The kernel log, watched for reports of defects.
//!
//! A test during which the kernel warns has failed, whatever the test itself saw.

use std::{
    fs::{
        File,
        OpenOptions, //
    },
    io::{
        Read,
        Seek,
        SeekFrom, //
    },
    os::unix::fs::OpenOptionsExt, //
};

/// What a report of a defect contains.
const REPORTS: [&str; 19] = [
    "WARNING:",
    "BUG:",
    "BUG ",
    "Oops",
    "KASAN",
    "UBSAN",
    "KCSAN",
    "kernel panic",
    "general protection fault",
    "refcount_t:",
    "list_add corruption",
    "list_del corruption",
    "possible circular locking",
    "possible recursive locking",
    "blocked for more than",
    "soft lockup",
    "rcu_preempt detected",
    "page allocation failure",
    "self-check",
];

/// A reader of the log that starts at its end.
pub struct KernelLog(Option<File>);

impl KernelLog {
    /// Starts to watch; a machine without a readable log is watched in vain.
    pub fn watch() -> Self {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let mut file = options.open("/dev/kmsg").ok();
        if let Some(file) = &mut file {
            let _ = file.seek(SeekFrom::End(0));
        }
        Self(file)
    }

    /// Reports that came since the last call.
    pub fn reports(&mut self) -> Vec<String> {
        let mut reports = Vec::new();
        let Some(file) = &mut self.0 else {
            return reports;
        };
        let mut record = [0; 8192];
        loop {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    let message = text.split_once(';').map_or(&*text, |parts| parts.1);
                    let message = message.lines().next().unwrap_or("");
                    if REPORTS.iter().any(|report| message.contains(report)) {
                        reports.push(message.to_owned());
                    }
                }
                // Records were overwritten before they were read: the next read goes on.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => break,
            }
        }
        reports
    }
}
