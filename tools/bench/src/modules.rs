// SPDX-License-Identifier: GPL-2.0

//! Modules: vidmm with segments that are large enough, and the peers.

use std::ffi::CString;
use std::fs::{
    self,
    File, //
};
use std::path::Path;

use rustix::system::{
    delete_module,
    finit_module, //
};

use crate::failure::{
    Failure,
    Result, //
};

/// A shape of the software engine in which every row has room: a contiguous memory segment of
/// 32 MiB, and 64 MiB at once in system memory.
const SEGMENTS: &str =
    "segments=memory:32M:page=4K:visible:contiguous=32M:scanout:budget,aperture:160M:scanout";

/// As `rmmod`: does not wait for users to go away.
const NONBLOCK: i32 = 0o4000;

/// Where modules of the peers are.
const DIRECTORY: &str = "/lib/modules";

/// Loads vidmm from `file`, if that exists, in the shape that the rows need.
pub fn load_vidmm(file: &Path) -> Result<()> {
    if !file.exists() {
        return Ok(());
    }
    if is_loaded("vidmm") {
        delete_module(c"vidmm", NONBLOCK)
            .map_err(|errno| Failure::from(errno).during("unloading vidmm"))?;
    }
    load(file, SEGMENTS)
}

/// Loads a module of the peers, unless it is there already. It needs others: without them loading
/// is not tried, as the kernel would complain.
pub fn load_peer(name: &str, needs: &[&str]) -> Result<()> {
    if is_loaded(name) {
        return Ok(());
    }
    let missing: Vec<_> = needs
        .iter()
        .copied()
        .filter(|need| !is_loaded(need))
        .collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(Failure::new(format!("{name} needs the modules {missing}")));
    }
    load(Path::new(&format!("{DIRECTORY}/{name}.ko")), "")
}

fn load(file: &Path, parameters: &str) -> Result<()> {
    let during = |failure: Failure| failure.during(format!("loading {}", file.display()));
    let module = File::open(file).map_err(|error| during(error.into()))?;
    let parameters = CString::new(parameters)
        .map_err(|_| Failure::new("parameters of a module with a zero byte"))?;
    finit_module(&module, &parameters, 0).map_err(|errno| during(errno.into()))
}

fn is_loaded(name: &str) -> bool {
    fs::read_to_string("/proc/modules")
        .unwrap_or_default()
        .lines()
        .any(|line| line.split(' ').next() == Some(name))
}
