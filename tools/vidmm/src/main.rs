// SPDX-License-Identifier: GPL-2.0

//! `vidmm`: looks at video memory adapters and shows what they do.
//!
//! Each subcommand has a file of its own. Results go to standard output, as tables or with `--json`
//! for programs; progress goes to standard error, and only to a terminal.

mod clients;
mod demo;
mod explain;
mod failure;
mod info;
mod names;
mod quantity;
mod statistics;
mod table;
mod top;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{
    Parser,
    Subcommand, //
};
use libvidmm::adapter::DEFAULT_PATH;

use crate::failure::Failure;

/// Looks at vidmm adapters and shows what they do.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    /// Device file of the adapter.
    #[arg(long, global = true, value_name = "PATH", default_value = DEFAULT_PATH)]
    device: PathBuf,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Info(info::Arguments),
    Top(top::Arguments),
    Demo(demo::Arguments),
    Explain(explain::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.command {
        Command::Info(command) => info::run(&arguments.device, &command),
        Command::Top(command) => top::run(&arguments.device, &command),
        Command::Demo(command) => demo::run(&arguments.device, &command),
        Command::Explain(command) => explain::run(&arguments.device, &command),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(sentence)) => {
            eprintln!("error: {sentence}");
            ExitCode::FAILURE
        }
    }
}
