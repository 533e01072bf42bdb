// SPDX-License-Identifier: GPL-2.0
//! Jobs that show what the guest prints: a command, the demonstration, a shell.

use std::time::Duration;

use super::setting::{Boot, Setting, MODULE};
use crate::failure::Result;
use crate::host::machine::{Deaf, Outcome};
use crate::host::qemu::Console;
use crate::host::verdict::blame;
use crate::job::Step;

/// Exit code when the command succeeded and the machine did not.
const MACHINE_FAILED: u8 = 126;

/// Off on kernels that have it: the module's own suites are another job.
pub const NO_KUNIT: &str = "kunit.enable=0";

/// Runs one shell command, with the module loaded when parameters are given.
pub fn exec(setting: &Setting, parameters: Option<String>, command: &[String]) -> Result<u8> {
    let mut steps = Vec::new();
    steps.extend(parameters.map(|parameters| setting.load(&parameters)));
    steps.push(Step::Command(command.join(" ")));
    let mut boot = Boot::new("exec", steps);
    boot.kernel_arguments = &[NO_KUNIT];
    boot.results = "out";
    let outcome = setting.boot(boot, &mut Deaf)?;
    Ok(judge(&outcome))
}

/// Loads the module and runs the demonstration; its picture is saved.
pub fn demonstrate(setting: &Setting) -> Result<u8> {
    let steps = vec![
        setting.load(""),
        Step::Command("vidmm demo --out /out/demo.png".to_owned()),
        Step::Unload(MODULE.to_owned()),
    ];
    let mut boot = Boot::new("run", steps);
    boot.programs = &["vidmm"];
    boot.kernel_arguments = &[NO_KUNIT];
    let outcome = setting.boot(boot, &mut Deaf)?;
    let code = judge(&outcome);
    if code == 0 {
        let picture = setting.build_path("demo.png");
        if picture.exists() {
            println!("picture: {}", picture.display());
        }
    }
    Ok(code)
}

/// Starts a shell on the user's terminal.
pub fn shell(setting: &Setting, parameters: String) -> Result<u8> {
    eprintln!("leave with 'exit', or with Ctrl-A x if the guest hangs");
    let mut steps = vec![setting.load(&parameters)];
    steps.extend(terminal_size());
    steps.push(Step::Shell);
    let mut boot = Boot::new("shell", steps);
    boot.console = Console::Interactive;
    boot.kernel_arguments = &[NO_KUNIT];
    boot.results = "out";
    boot.limit = Duration::from_secs(30 * 24 * 3600);
    let outcome = setting.boot(boot, &mut Deaf)?;
    Ok(judge(&outcome))
}

/// A step that tells the guest how large the user's terminal is, if it is one.
fn terminal_size() -> Option<Step> {
    let size = rustix::termios::tcgetwinsize(std::io::stdin()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then(|| {
        Step::Command(format!(
            "stty -F /dev/ttyS0 rows {} cols {}",
            size.ws_row, size.ws_col
        ))
    })
}

/// Shows what is wrong and turns it into an exit code.
pub fn judge(outcome: &Outcome) -> u8 {
    let failures = blame(outcome);
    for failure in &failures {
        eprintln!("error: {failure}");
    }
    match outcome.code {
        Some(0) if failures.is_empty() => 0,
        Some(code) if code != 0 => u8::try_from(code).unwrap_or(MACHINE_FAILED),
        _ => MACHINE_FAILED,
    }
}
