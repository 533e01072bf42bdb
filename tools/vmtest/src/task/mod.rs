// SPDX-License-Identifier: GPL-2.0
//! The jobs: what goes into the VM, which steps it does, what makes it a success.

mod bench;
mod kunit;
mod setting;
mod simple;
mod test;

use crate::cli::{Arguments, Job};
use crate::failure::Result;
use setting::Setting;

/// Does the job; the result is the exit code of the program.
pub fn run(arguments: Arguments) -> Result<u8> {
    let setting = Setting::new(arguments.machine)?;
    match arguments.job {
        Job::Exec {
            load,
            parameters,
            command,
        } => simple::exec(&setting, load.then_some(parameters), &command),
        Job::Run => simple::demonstrate(&setting),
        Job::Shell { parameters } => simple::shell(&setting, parameters),
        Job::Test {
            suite,
            backend,
            host_tests,
        } => test::run(&setting, &suite, backend, host_tests.as_deref()),
        Job::Kunit => kunit::run(&setting),
        Job::Bench { arguments } => bench::run(&setting, &arguments),
        Job::Soak { suite, minutes } => test::soak(&setting, &suite, minutes),
        Job::Fuzz { seconds } => test::fuzz(&setting, seconds),
    }
}
