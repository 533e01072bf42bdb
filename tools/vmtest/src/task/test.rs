// SPDX-License-Identifier: GPL-2.0
//! Jobs that run the test program.

use std::time::Duration;

use super::setting::{Boot, Setting, MODULE};
use super::simple::NO_KUNIT;
use crate::cli::Backend;
use crate::failure::{Failure, Result};
use crate::host::host_tests;
use crate::host::kernel::Flavour;
use crate::host::verdict::Verdict;
use crate::job::Step;

/// What tests that swap need: a swap device in memory.
const SWAP: &[&str] = &["zram"];

/// Events of the kernel's own memory, on from the start: switching them on later patches code that
/// runs all the time, and the emulator sometimes loses a breakpoint then. Nothing is recorded until a
/// test says so.
const MEMORY_EVENTS: &str =
    "trace_instance=vidmm-memory^traceoff,kmem:kmalloc,kmem:kmem_cache_alloc,\
    kmem:mm_page_alloc,workqueue:workqueue_execute_start,workqueue:workqueue_execute_end";

/// The suite that runs on the host.
const HOST_SUITE: &str = "policy";

/// Runs all suites, or one; first those that need no kernel.
pub fn run(
    setting: &Setting,
    suite: &str,
    backend: Backend,
    host_tests: Option<&str>,
) -> Result<u8> {
    if backend == Backend::VirtioGpu {
        return Err(Failure::new(
            "the virtio-gpu backend does not exist yet: use BACKEND=soft",
        ));
    }
    let mut verdict = Verdict::new(setting.flavour());
    if let Some(command) = host_tests.filter(|_| suite.is_empty() || suite == HOST_SUITE) {
        host_tests::run(HOST_SUITE, command, &mut verdict)?;
    }
    if suite != HOST_SUITE {
        let suites = Step::Suites {
            only: suite.to_owned(),
            seconds: suite_limit(setting.flavour()),
        };
        boot(
            setting,
            "test",
            suites,
            run_limit(setting.flavour()),
            &mut verdict,
        )?;
    }
    Ok(exit_code(&verdict))
}

/// Runs suites over and over.
pub fn soak(setting: &Setting, suite: &str, minutes: u64) -> Result<u8> {
    let only = if suite.is_empty() {
        String::new()
    } else {
        format!(" --suite {suite}")
    };
    let command = format!("exec selftests --soak --minutes {minutes}{only}");
    long_run(setting, "soak", command, minutes * 60)
}

/// Sends random requests.
pub fn fuzz(setting: &Setting, seconds: u64) -> Result<u8> {
    let command = format!("exec selftests --fuzz --seconds {seconds}");
    long_run(setting, "fuzz", command, seconds)
}

fn long_run(setting: &Setting, name: &str, command: String, seconds: u64) -> Result<u8> {
    let mut verdict = Verdict::new(setting.flavour());
    let limit = seconds + suite_limit(setting.flavour());
    let step = Step::KtapCommand {
        name: name.to_owned(),
        command,
        seconds: limit,
    };
    let limit = Duration::from_secs(limit + 300);
    boot(setting, name, step, limit, &mut verdict)?;
    Ok(exit_code(&verdict))
}

fn boot(
    setting: &Setting,
    name: &str,
    tests: Step,
    limit: Duration,
    verdict: &mut Verdict,
) -> Result<()> {
    let steps = vec![tests, Step::Unload(MODULE.to_owned()), Step::Leaks];
    let mut boot = Boot::new(name, steps);
    boot.programs = &["selftests"];
    boot.kernel_arguments = &[NO_KUNIT, MEMORY_EVENTS];
    boot.kernel_modules = SWAP;
    boot.results = "out";
    boot.limit = limit;
    let outcome = setting.boot(boot, verdict)?;
    verdict.machine(&outcome);
    Ok(())
}

/// Seconds for one suite; the debug kernel is several times slower.
fn suite_limit(flavour: Flavour) -> u64 {
    match flavour {
        Flavour::Stock => 600,
        Flavour::Debug => 2400,
    }
}

fn run_limit(flavour: Flavour) -> Duration {
    match flavour {
        Flavour::Stock => Duration::from_secs(2400),
        Flavour::Debug => Duration::from_secs(7200),
    }
}

fn exit_code(verdict: &Verdict) -> u8 {
    u8::from(!verdict.print())
}
