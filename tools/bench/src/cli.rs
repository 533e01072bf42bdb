// SPDX-License-Identifier: GPL-2.0

//! The command line.

use std::fs;
use std::path::PathBuf;

use clap::Parser;
use libvidmm::adapter::DEFAULT_PATH;

use crate::{
    failure::{
        Failure,
        Result, //
    },
    mode::Mode, //
};

/// Measures vidmm against its peers and against the least that the machine can do.
#[derive(Parser)]
#[command(version)]
pub struct Arguments {
    /// What the clock of this machine counts
    #[arg(long, value_enum, default_value = "wall")]
    pub mode: Mode,
    /// Directory for results.json
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// File for the results, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Rows whose names begin like this, and no others
    #[arg(long, value_name = "NAME")]
    pub row: Option<String>,
    /// Names rows and operations, and measures nothing
    #[arg(long)]
    pub list: bool,
    /// Repeats one operation for two seconds of the clock, for a profiler to look at
    #[arg(long, value_name = "OPERATION")]
    pub repeat: Option<String>,
    /// How often everything is measured, in turn
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// The adapter
    #[arg(long, default_value = DEFAULT_PATH)]
    pub device: PathBuf,
    /// The module, to be loaded again with segments that are large enough; if it exists
    #[arg(long, default_value = "/vidmm.ko")]
    pub module: PathBuf,
}

impl Arguments {
    /// Returns where results are written, after making sure that they can be.
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files: Vec<_> = self.json.iter().cloned().collect();
        if let Some(directory) = &self.out {
            fs::create_dir_all(directory)
                .map_err(|error| Failure::from(error).during(directory.display()))?;
            files.push(directory.join("results.json"));
        }
        Ok(files)
    }
}
