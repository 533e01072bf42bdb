// SPDX-License-Identifier: GPL-2.0

//! Recording trace events of the module.

use std::fs;

use crate::failure::Failure;

/// Where the kernel's tracing is.
const DIRECTORY: &str = "/sys/kernel/tracing";

/// A recording that runs. It ends with the scope.
pub(crate) struct Recording(());

impl Recording {
    /// Starts to record with an empty buffer.
    pub(crate) fn start() -> Result<Self, Failure> {
        write("tracing_on", "0")?;
        write("trace_clock", "mono")?;
        write("trace", "")?;
        write("events/vidmm/enable", "1")?;
        let recording = Self(());
        write("tracing_on", "1")?;
        Ok(recording)
    }

    /// Ends it and returns what was recorded.
    pub(crate) fn stop(self) -> Result<String, Failure> {
        write("tracing_on", "0")?;
        let path = format!("{DIRECTORY}/trace");
        fs::read_to_string(&path).map_err(|error| Failure(format!("{path}: {error}")))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = write("tracing_on", "0");
        let _ = write("events/vidmm/enable", "0");
    }
}

fn write(file: &str, text: &str) -> Result<(), Failure> {
    let path = format!("{DIRECTORY}/{file}");
    fs::write(&path, text).map_err(|error| Failure(format!("{path}: {error}")))
}
