// SPDX-License-Identifier: GPL-2.0
//! Measurements: two boots, which differ in what the guest's clock counts.

use std::time::Duration;

use super::setting::{Boot, Setting};
use super::simple::{judge, NO_KUNIT};
use crate::failure::Result;
use crate::host::machine::Deaf;
use crate::host::qemu::Clock;
use crate::job::Step;

/// What the measuring program compares the module with.
const PEERS: &[&str] = &["vgem", "ttm", "drm_exec", "drm_gpuvm", "gpu_sched"];

/// Name of the mode, its clock, and where its results go.
const MODES: &[(&str, Clock, &str)] = &[
    ("instructions", Clock::Instructions, "bench/instructions"),
    ("wall", Clock::Wall, "bench/wall"),
];

/// Measures in both modes; the measuring program loads the module itself; results are files below `build/bench/`.
pub fn run(setting: &Setting, arguments: &[String]) -> Result<u8> {
    for &(mode, clock, results) in MODES {
        let command = format!("bench --mode {mode} --out /out {}", arguments.join(" "));
        let name = format!("bench-{mode}");
        let mut boot = Boot::new(&name, vec![Step::Command(command)]);
        boot.programs = &["bench"];
        boot.kernel_modules = PEERS;
        boot.kernel_arguments = &[NO_KUNIT];
        boot.clock = Some(clock);
        boot.results = results;
        boot.limit = Duration::from_secs(3600);
        let outcome = setting.boot(boot, &mut Deaf)?;
        let code = judge(&outcome);
        if code != 0 {
            return Ok(code);
        }
    }
    Ok(0)
}
