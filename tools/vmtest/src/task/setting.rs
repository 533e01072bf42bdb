// SPDX-License-Identifier: GPL-2.0
//! What the command line says about the VM, made ready for one or more boots.

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::Machine;
use crate::failure::{Failure, Result};
use crate::host::initramfs::{self, Content};
use crate::host::kernel::{Flavour, Kernel};
use crate::host::machine::{self, Listener, Outcome, Plan};
use crate::host::qemu::{Clock, Console, Hardware};
use crate::job::Step;
use crate::modules;

/// Where cargo leaves static programs, below the build directory.
const PROGRAMS: &str = "tools/x86_64-unknown-linux-gnu/release";

/// Name of the module in the kernel, and its file in the guest.
pub const MODULE: &str = "vidmm";
const MODULE_FILE: &str = "/vidmm.ko";

/// The command line's settings and the kernel that they name.
pub struct Setting {
    machine: Machine,
    cache: PathBuf,
    kernel: Kernel,
}

/// One boot.
pub struct Boot<'a> {
    /// Name for logs.
    pub name: &'a str,
    /// What to do.
    pub steps: Vec<Step>,
    /// Our programs that the steps use.
    pub programs: &'a [&'a str],
    /// Modules of the kernel that the steps need.
    pub kernel_modules: &'a [&'a str],
    /// Words for the kernel's command line.
    pub kernel_arguments: &'a [&'a str],
    /// What the clock counts, when the job and not the user decides.
    pub clock: Option<Clock>,
    /// Who talks on the console.
    pub console: Console,
    /// Where files of the guest go, below the build directory.
    pub results: &'a str,
    /// When to give up, unless the user says.
    pub limit: Duration,
}

impl<'a> Boot<'a> {
    /// A boot with nothing special about it.
    pub fn new(name: &'a str, steps: Vec<Step>) -> Self {
        Boot {
            name,
            steps,
            programs: &[],
            kernel_modules: &[],
            kernel_arguments: &[],
            clock: None,
            console: Console::Captured,
            results: "",
            limit: Duration::from_secs(900),
        }
    }
}

impl Setting {
    /// Finds the kernel that the command line names.
    pub fn new(machine: Machine) -> Result<Setting> {
        let cache = match &machine.cache {
            Some(cache) => cache.clone(),
            None => default_cache()?,
        };
        let kernel = Kernel::find(machine.kernel, &cache)?;
        Ok(Setting {
            machine,
            cache,
            kernel,
        })
    }

    /// Which kernel it is.
    pub fn flavour(&self) -> Flavour {
        self.kernel.flavour
    }

    /// A path below the build directory.
    pub fn build_path(&self, name: &str) -> PathBuf {
        self.machine.build.join(name)
    }

    /// A step that loads our module.
    pub fn load(&self, parameters: &str) -> Step {
        Step::Load {
            file: MODULE_FILE.to_owned(),
            parameters: parameters.to_owned(),
        }
    }

    /// Boots once and follows the VM to its end.
    pub fn boot(&self, boot: Boot<'_>, listener: &mut impl Listener) -> Result<Outcome> {
        let name = format!("{}-{}", boot.name, self.flavour().name());
        let initramfs = self.initramfs(&boot)?;
        let limit = self.machine.limit.map(Duration::from_secs);
        let plan = Plan {
            kernel: &self.kernel,
            hardware: self.hardware(&boot),
            initramfs,
            name,
            logs: self.build_path("logs"),
            results: self.build_path(boot.results),
            limit: limit.unwrap_or(boot.limit),
        };
        machine::run(&plan, listener)
    }

    fn hardware(&self, boot: &Boot<'_>) -> Hardware {
        let own = if self.machine.instructions {
            Clock::Instructions
        } else {
            Clock::Wall
        };
        let mut kernel_arguments = vec![format!("cma={}", self.machine.cma)];
        kernel_arguments.extend(boot.kernel_arguments.iter().map(|&word| word.to_owned()));
        kernel_arguments.extend(self.machine.append.iter().cloned());
        Hardware {
            memory: self.machine.memory.clone(),
            processors: self.machine.processors,
            clock: boot.clock.unwrap_or(own),
            console: boot.console,
            kernel_arguments,
            extra: self.machine.qemu.clone(),
        }
    }

    fn initramfs(&self, boot: &Boot<'_>) -> Result<Vec<u8>> {
        let mut names: Vec<String> = self.machine.kernel_module.clone();
        names.extend(boot.kernel_modules.iter().map(|&name| name.to_owned()));
        let kernel_modules = modules::with_dependencies(&self.kernel.modules, &names)?;
        let mut steps: Vec<Step> = kernel_modules
            .iter()
            .map(|module| Step::Load {
                file: initramfs::module_path(module),
                parameters: String::new(),
            })
            .collect();
        steps.extend(boot.steps.iter().cloned());
        initramfs::build(&Content {
            busybox: self.cache.join("root/bin/busybox"),
            module: self.module_file(&steps, boot.programs)?,
            programs: self.programs(boot.programs)?,
            files: self.files()?,
            kernel_modules: &kernel_modules,
            steps: &steps,
        })
    }

    /// Our module; only a job that does not load it can go without.
    fn module_file(&self, steps: &[Step], programs: &[&str]) -> Result<Option<PathBuf>> {
        let flavour = self.flavour().name();
        let usual = self.build_path(&format!("{flavour}/{MODULE}.ko"));
        let path = self.machine.module.clone().unwrap_or(usual);
        if path.exists() {
            return Ok(Some(path));
        }
        let loads = |step: &Step| matches!(step, Step::Load { file, .. } if file == MODULE_FILE);
        let needed =
            self.machine.module.is_some() || !programs.is_empty() || steps.iter().any(loads);
        if needed {
            return Err(Failure::new(format!(
                "{} is missing: run 'make module KERNEL={flavour}'",
                path.display()
            )));
        }
        Ok(None)
    }

    /// Our programs: those that the job needs, and all others that are built.
    fn programs(&self, needed: &[&str]) -> Result<Vec<PathBuf>> {
        let directory = self.build_path(PROGRAMS);
        let mut found = Vec::new();
        for name in ["vidmm", "selftests", "bench"] {
            let path = directory.join(name);
            if path.exists() {
                found.push(path);
            } else if needed.contains(&name) {
                return Err(Failure::new(format!(
                    "{} is missing: run 'make tools'",
                    path.display()
                )));
            }
        }
        Ok(found)
    }

    /// The user's further files, and the module that measurements compare with.
    fn files(&self) -> Result<Vec<(PathBuf, String)>> {
        let mut files = Vec::new();
        if let Ok(entries) = std::fs::read_dir(self.build_path("stock/peers")) {
            for path in entries.flatten().map(|entry| entry.path()) {
                if path.extension().is_some_and(|extension| extension == "ko") {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    files.push((path.clone(), format!("/lib/modules/{name}")));
                }
            }
        }
        for pair in &self.machine.file {
            let Some((here, there)) = pair.split_once(':') else {
                return Err(Failure::new(format!(
                    "--file {pair}: give a path here and one in the guest, as HERE:THERE"
                )));
            };
            files.push((PathBuf::from(here), there.to_owned()));
        }
        Ok(files)
    }
}

fn default_cache() -> Result<PathBuf> {
    match std::env::var_os("HOME") {
        Some(home) => Ok(PathBuf::from(home).join(".cache/vidmm")),
        None => Err(Failure::new("HOME is not set: set VIDMM_CACHE")),
    }
}
