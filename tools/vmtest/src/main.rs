// SPDX-License-Identifier: GPL-2.0
//! Boots a kernel in a virtual machine, does a job in it and gives one verdict.
//!
//! The program is both halves: on the host it builds an initramfs, starts QEMU
//! and judges; in the guest it is the first process and does the job. What the
//! guest has to say comes through a virtio port, see [`channel`].

mod channel;
mod cli;
mod cpio;
mod failure;
mod guest;
mod host;
mod job;
mod kernel_log;
mod ktap;
mod modules;
mod task;

use std::process::ExitCode;

use clap::Parser;

/// Exit code when the job could not even begin.
const NOT_STARTED: u8 = 2;

fn main() -> ExitCode {
    if std::process::id() == 1 {
        guest::main();
    }
    match task::run(cli::Arguments::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(NOT_STARTED)
        }
    }
}
