// SPDX-License-Identifier: GPL-2.0
//! Loading and unloading of modules.

use std::fs::{self, File};

use rustix::system::{delete_module, finit_module};

use crate::failure::{Failure, Result};

/// Loads a module file with parameters, as `insmod` does.
pub fn load(file: &str, parameters: &str) -> Result<()> {
    let failed = |error: String| Failure::new(format!("cannot load {file}: {error}"));
    let module = File::open(file).map_err(|error| failed(error.to_string()))?;
    let parameters =
        std::ffi::CString::new(parameters).map_err(|error| failed(error.to_string()))?;
    finit_module(&module, &parameters, 0).map_err(|error| failed(error.to_string()))
}

/// Unloads a module if it is loaded.
pub fn unload(name: &str) -> Result<()> {
    if !is_loaded(name) {
        return Ok(());
    }
    let c_name = std::ffi::CString::new(name).map_err(|error| Failure::new(error.to_string()))?;
    // O_NONBLOCK, as rmmod: do not wait for users to go away.
    delete_module(&c_name, 0o4000)
        .map_err(|error| Failure::new(format!("cannot unload {name}: {error}")))
}

/// Whether a module of this name is loaded.
pub fn is_loaded(name: &str) -> bool {
    fs::read_to_string("/proc/modules")
        .unwrap_or_default()
        .lines()
        .any(|line| line.split_whitespace().next() == Some(name))
}
