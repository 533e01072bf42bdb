// SPDX-License-Identifier: GPL-2.0

//! The command line, and what the machine must offer.

use std::{
    fs,
    process::Command,
    time::Duration, //
};

use crate::trace;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Print the names of the suites.
    List,
    /// Print which test proves which requirement.
    Coverage,
    /// Run tests.
    Tests,
}

/// The command line.
pub struct Options {
    /// What to do.
    pub mode: Mode,
    /// The only suite to run.
    pub suite: Option<String>,
    /// A part of the names of the tests to run.
    pub filter: String,
    /// The module file.
    pub module: String,
    /// The time and seed of a long run.
    pub long: Option<Long>,
}

/// A long run.
pub struct Long {
    /// Time for all tests together.
    pub total: Duration,
    /// Seed of the random tests, if it is given.
    pub seed: Option<u64>,
}

const USAGE: &str = "\
usage: selftests [--list | --coverage] [--suite NAME] [--test PART] [--module FILE]
                 [--soak --minutes N] [--fuzz --seconds N] [--seed N]";

impl Options {
    /// Reads the words of the command line.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            mode: Mode::Tests,
            suite: None,
            filter: String::new(),
            module: "/vidmm.ko".to_owned(),
            long: None,
        };
        let mut soak = false;
        let mut fuzz = false;
        let mut seconds = None;
        let mut seed = None;
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| format!("{word} needs a value\n{USAGE}"))
            };
            match word.as_str() {
                "--list" => options.mode = Mode::List,
                "--coverage" => options.mode = Mode::Coverage,
                "--suite" => options.suite = Some(value()?),
                "--test" => options.filter = value()?,
                "--module" => options.module = value()?,
                "--soak" => soak = true,
                "--fuzz" => fuzz = true,
                "--minutes" => seconds = Some(number(&value()?)? * 60),
                "--seconds" => seconds = Some(number(&value()?)?),
                "--seed" => seed = Some(number(&value()?)?),
                _ => return Err(format!("what is {word}?\n{USAGE}")),
            }
        }
        if soak || fuzz {
            options.long = Some(Long {
                total: Duration::from_secs(seconds.unwrap_or(60)),
                seed,
            });
            options
                .suite
                .get_or_insert_with(|| if fuzz { "fuzz" } else { "soak" }.to_owned());
        }
        Ok(options)
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{text} is no number\n{USAGE}"))
}

/// Mounts what the tests read, and prepares tracing.
pub fn prepare_machine() -> Result<(), String> {
    mount("debugfs", "/sys/kernel/debug")?;
    mount("tracefs", "/sys/kernel/tracing")?;
    trace::set_up();
    Ok(())
}

fn mount(kind: &str, place: &str) -> Result<(), String> {
    let mounts = fs::read_to_string("/proc/mounts").map_err(|error| error.to_string())?;
    if mounts
        .lines()
        .any(|line| line.split(' ').nth(1) == Some(place))
    {
        return Ok(());
    }
    let status = Command::new("mount")
        .args(["-t", kind, kind, place])
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("{kind} cannot be mounted at {place}")),
    }
}
