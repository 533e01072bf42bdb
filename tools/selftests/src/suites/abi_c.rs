// SPDX-License-Identifier: GPL-2.0

//! The header in C: a plain C program that uses the interface.
//!
//! The program is compiled with the tests, as C99 and without warnings, and carried inside them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::Command, //
};

use crate::suite::Suite;

/// The program.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/abi-c"));

/// Where it is put to be run.
const PLACE: &str = "/tmp/vidmm-abi-c";

/// The suite.
pub const SUITE: Suite = Suite {
    name: "abi_c",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" program_in_c_uses_the_interface,
    },
};

fn program_in_c_uses_the_interface() {
    fs::write(PLACE, PROGRAM).unwrap_or_else(|error| panic!("{PLACE}: {error}"));
    fs::set_permissions(PLACE, fs::Permissions::from_mode(0o755)).expect("chmod");
    let output = Command::new(PLACE).output();
    let output = output.unwrap_or_else(|error| panic!("{PLACE}: {error}"));
    let _ = fs::remove_file(PLACE);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}\n{text}",
        String::from_utf8_lossy(&output.stderr)
    );
    for expected in [
        "uapi 1.0",
        "segment 1 kind 1 size 16777216",
        "stored 0x1122334455667788",
    ] {
        assert!(text.contains(expected), "no \"{expected}\" in:\n{text}");
    }
}
