// SPDX-License-Identifier: GPL-2.0

//! Measures vidmm.
//!
//! Nothing here is an absolute time: every result is a ratio between vidmm and something that the
//! same program measured in the same round, a *peer* that a user would pick instead or a *floor*,
//! the least that the machine can do. [`rows`] says what is measured and what the goals are, [`peers`]
//! what it is compared with, [`measure`] how; [`report`] prints one line per row.
//!
//! Unsafe code lives in [`call`], [`clock`], [`memory`], [`ring`] and [`scheduling`] alone.

mod arguments;
#[allow(unsafe_code)]
mod call;
mod catalogue;
mod cli;
#[allow(unsafe_code)]
mod clock;
mod cost;
mod evaluate;
mod failure;
mod measure;
#[allow(unsafe_code)]
mod memory;
mod mode;
mod modules;
mod peers;
mod report;
#[allow(unsafe_code)]
mod ring;
mod rows;
#[allow(unsafe_code)]
mod scheduling;
mod vidmm;

use std::process::ExitCode;

use clap::Parser;

use crate::{
    catalogue::Catalogue,
    cli::Arguments,
    clock::Clock,
    evaluate::Verdict,
    failure::Result,
    peers::Peers,
    report::Report,
    vidmm::Vidmm, //
};

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Measures and reports. A goal that is missed is no failure; a measurement that could not be made,
/// or whose result was wrong, is.
fn run(arguments: &Arguments) -> Result<ExitCode> {
    let files = arguments.files()?;
    modules::load_vidmm(&arguments.module)?;
    let clock = Clock::calibrate();
    let peers = Peers::open(clock);
    let vidmm = Vidmm::open(&arguments.device, clock)?;
    let mut catalogue = Catalogue::new();
    rows::add_all(&mut catalogue, &vidmm, &peers);
    if let Some(name) = &arguments.repeat {
        println!("{name}: {:?}", measure::for_long(catalogue.find(name)?)?);
        return Ok(ExitCode::SUCCESS);
    }
    catalogue.select(arguments.mode, arguments.row.as_deref());
    if arguments.list {
        report::list(&catalogue);
        return Ok(ExitCode::SUCCESS);
    }

    let measured = measure::all(&catalogue, arguments.mode, arguments.rounds);
    let results = evaluate::all(&catalogue, &measured, arguments.mode);
    let report = Report::new(arguments.mode, &measured, &results);
    report.print();
    for file in files {
        report.write(&file)?;
    }
    let broken = results
        .iter()
        .any(|result| result.verdict == Verdict::Broken);
    Ok(if broken {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
