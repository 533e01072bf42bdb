// SPDX-License-Identifier: GPL-2.0
//! The guest's half: the first process of the VM.
//!
//! The same program is the initramfs' `/init`. It prepares the file systems, does
//! the steps of the job, reports over the virtio port and powers the VM off.

mod files;
mod leaks;
mod module;
mod port;
mod process;
mod suites;
mod system;

use std::fs;

use crate::channel::Message;
use crate::failure::{Failure, Result};
use crate::job::{self, Step, JOB_BEGINS, JOB_FILE};
use port::Port;

/// Exit code of a job whose guest half failed.
const BROKEN: i32 = 125;

/// Runs the job and powers off; never returns to a caller in the guest.
pub fn main() {
    if let Err(failure) = system::mount_all() {
        println!("vmtest: {failure}");
    }
    match Port::open() {
        Ok(port) => run(&port),
        Err(failure) => println!("vmtest: {failure}"),
    }
    system::power_off();
}

fn run(port: &Port) {
    port.send(&Message::Ready);
    let _ = fs::write("/dev/kmsg", JOB_BEGINS);
    let code = match steps().and_then(|steps| run_steps(&steps, port)) {
        Ok(code) => code,
        Err(failure) => {
            port.send(&Message::Complaint(failure.to_string()));
            BROKEN
        }
    };
    files::send_all(port);
    port.send(&Message::End(code));
    port.wait_for_receipt();
}

fn steps() -> Result<Vec<Step>> {
    let text = fs::read_to_string(JOB_FILE)?;
    job::decode(&text).ok_or_else(|| Failure::new("the job file is damaged"))
}

/// Does the steps in order. A failed command ends the job with its exit code;
/// what checks the state afterwards (unloading, leaks) runs all the same.
fn run_steps(steps: &[Step], port: &Port) -> Result<i32> {
    let mut code = 0;
    for step in steps {
        let afterwards = matches!(step, Step::Unload(_) | Step::Leaks);
        if code != 0 && !afterwards {
            continue;
        }
        let result = run_step(step, port)?;
        if code == 0 {
            code = result;
        }
    }
    Ok(code)
}

fn run_step(step: &Step, port: &Port) -> Result<i32> {
    match step {
        Step::Load { file, parameters } => module::load(file, parameters).map(|()| 0),
        Step::Unload(name) => module::unload(name).map(|()| 0),
        Step::Command(command) => process::command(command, port),
        Step::Suites { only, seconds } => suites::run(only, *seconds, port),
        Step::KtapCommand {
            name,
            command,
            seconds,
        } => suites::run_one(name, &["sh", "-c", command], *seconds, port),
        Step::Leaks => leaks::report(port).map(|()| 0),
        Step::Shell => process::shell(),
    }
}
