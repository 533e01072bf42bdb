// SPDX-License-Identifier: GPL-2.0

//! Black-box tests of the vidmm module.
//!
//! The program runs as root on a machine where the module may be loaded and unloaded. It uses what
//! users and operators have: the device file, `mmap`, trace events and debugfs. Results come as KTAP
//! on standard output; the exit code is 0 when nothing failed.
//!
//! Tests are functions in tables ([`suite`]); [`runner`] gives each a process of its own. Under
//! [`suites`] there is one file per concept; the other files are the tools they work with.

#![deny(unsafe_code)]

mod addresses;
mod argument;
mod budget;
#[allow(unsafe_code)]
mod call;
mod calls;
mod cgroup;
mod client;
#[allow(unsafe_code)]
mod clock;
mod commands;
mod debugfs;
#[allow(unsafe_code)]
mod descriptor;
mod display;
mod effort;
mod elements;
mod events;
mod fixture;
mod kernel_log;
mod kernel_memory;
mod ktap;
mod lab;
#[allow(unsafe_code)]
mod memory;
#[allow(unsafe_code)]
mod module;
mod mover;
mod options;
mod portions;
#[allow(unsafe_code)]
mod process;
mod random;
mod reference;
mod runner;
mod schema;
mod submitter;
mod suite;
mod suites;
mod swap_device;
mod trace;
mod world;

use libvidmm::abi;

use options::{
    Mode,
    Options, //
};

fn main() {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            std::process::exit(2);
        }
    };
    module::set_file(&options.module);
    let code = match options.mode {
        Mode::List => list(),
        Mode::Coverage => coverage(),
        Mode::Tests => run(&options),
    };
    std::process::exit(code);
}

/// Prints the names of the suites.
fn list() -> i32 {
    for suite in suites::ALL {
        println!("{}", suite.name);
    }
    0
}

/// Prints which test proves which requirement.
fn coverage() -> i32 {
    for suite in suites::ALL {
        for case in suite.cases {
            for id in case.ids.split_whitespace() {
                println!("{} {}", id.trim_matches(['[', ']']), suite.title(case));
            }
        }
    }
    0
}

/// Runs what was asked for.
fn run(options: &Options) -> i32 {
    if let Err(message) = options::prepare_machine() {
        eprintln!("{message}");
        return 2;
    }
    let chosen: Vec<&suite::Suite> = match &options.suite {
        None => suites::ALL.to_vec(),
        Some(name) => {
            let all = suites::ALL.iter().chain(suites::LONG);
            all.copied().filter(|suite| suite.name == name).collect()
        }
    };
    if chosen.is_empty() {
        eprintln!("there is no such suite; --list names them");
        return 2;
    }
    let mut limit = runner::time_limit();
    if let Some(long) = &options.long {
        let tests: usize = chosen
            .iter()
            .map(|suite| suite.chosen(&options.filter).count())
            .sum();
        let share = long.total / tests.max(1) as u32;
        effort::set(share, long.seed);
        // A test may have two loops, and slow work behind them.
        limit = share * 3 + runner::time_limit();
    }
    let mut report = ktap::Report::begin(chosen.len());
    for suite in chosen {
        runner::run_suite(suite, &options.filter, limit, &mut report);
    }
    report.end()
}
