// SPDX-License-Identifier: GPL-2.0

//! The decisions of the vidmm module, compiled for a host.
//!
//! These are the module's own source files, not a copy. Here their unit tests run in a blink and
//! property tests (`tests/`) try what no list of cases would; `VIDMM_SOAK_MINUTES` makes the latter
//! go on for that long.

#![no_std]

#[path = "../../../rust/units.rs"]
pub mod units;

#[path = "../../../rust/policy/mod.rs"]
pub mod policy;
