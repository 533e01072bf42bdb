// SPDX-License-Identifier: GPL-2.0

//! Compiles the C program that the tests carry along, as strictly as the header promises.

use std::path::Path;
use std::process::Command;
use std::{env, io};

const SOURCE: &str = "c/abi.c";
const HEADERS: &str = "../../include/uapi";

fn main() -> io::Result<()> {
    for input in [SOURCE, HEADERS] {
        println!("cargo::rerun-if-changed={input}");
    }
    println!("cargo::rerun-if-env-changed=CC");
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let directory = env::var("OUT_DIR").map_err(io::Error::other)?;
    let status = Command::new(&compiler)
        .args(["-static", "-O2", "-std=c99", "-pedantic"])
        .args(["-Wall", "-Wextra", "-Werror", "-I", HEADERS])
        .arg("-o")
        .arg(Path::new(&directory).join("abi-c"))
        .arg(SOURCE)
        .status()
        .map_err(|error| io::Error::other(format!("{compiler}: {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{SOURCE} does not compile")))
    }
}
