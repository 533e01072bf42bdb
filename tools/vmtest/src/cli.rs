// SPDX-License-Identifier: GPL-2.0
//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::host::kernel::Flavour;

/// Boots a kernel in a virtual machine, does a job in it and gives one verdict.
#[derive(Parser)]
#[command(version)]
pub struct Arguments {
    /// Where and how to boot.
    #[command(flatten)]
    pub machine: Machine,
    /// The job.
    #[command(subcommand)]
    pub job: Job,
}

/// Where and how to boot.
#[derive(Args)]
pub struct Machine {
    /// Kernel to boot
    #[arg(long, value_enum, global = true, default_value = "stock")]
    pub kernel: Flavour,
    /// Directory of the prepared kernels [default: ~/.cache/vidmm]
    #[arg(long, global = true, env = "VIDMM_CACHE")]
    pub cache: Option<PathBuf>,
    /// Directory of build results and logs
    #[arg(long, global = true, default_value = "build")]
    pub build: PathBuf,
    /// Module file [default: BUILD/KERNEL/vidmm.ko]
    #[arg(long, global = true)]
    pub module: Option<PathBuf>,
    /// Memory of the VM
    #[arg(long, global = true, default_value = "1G")]
    pub memory: String,
    /// Size of the contiguous area that the kernel sets aside
    #[arg(long, global = true, default_value = "64M")]
    pub cma: String,
    /// Processors of the VM
    #[arg(long, global = true, default_value_t = 2)]
    pub processors: u32,
    /// Let the guest's clock count instructions: repeatable times, one processor
    #[arg(long, global = true)]
    pub instructions: bool,
    /// Words for the kernel's command line
    #[arg(long, global = true, value_name = "WORD", allow_hyphen_values = true)]
    pub append: Vec<String>,
    /// Words for QEMU's command line
    #[arg(long, global = true, value_name = "WORD", allow_hyphen_values = true)]
    pub qemu: Vec<String>,
    /// Module of the kernel itself to load first, with what it depends on
    #[arg(long, global = true, value_name = "NAME")]
    pub kernel_module: Vec<String>,
    /// Further file for the guest
    #[arg(long, global = true, value_name = "HERE:THERE")]
    pub file: Vec<String>,
    /// Seconds after which to give up
    #[arg(long, global = true)]
    pub limit: Option<u64>,
}

/// What the module drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The software engine.
    Soft,
    /// A virtio-gpu device.
    VirtioGpu,
}

/// The job.
#[derive(Subcommand)]
pub enum Job {
    /// Run one shell command in the guest
    Exec {
        /// Load the module first
        #[arg(long)]
        load: bool,
        /// Parameters of the module
        #[arg(long, default_value = "")]
        parameters: String,
        /// The command
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Load the module and show what it can do
    Run,
    /// Start an interactive shell with the module loaded
    Shell {
        /// Parameters of the module
        #[arg(long, default_value = "")]
        parameters: String,
    },
    /// Run the suites of the test program
    Test {
        /// The only suite to run
        #[arg(long, default_value = "")]
        suite: String,
        /// Backend to test
        #[arg(long, value_enum, default_value = "soft")]
        backend: Backend,
        /// Command of cargo that tests what needs no kernel; suite `policy`
        #[arg(long)]
        host_tests: Option<String>,
    },
    /// Run the module's KUnit suites (debug kernel)
    Kunit,
    /// Measure: once counting instructions, once with the real clock
    Bench {
        /// Further arguments of the measuring program
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run suites over and over
    Soak {
        /// The only suite to run
        #[arg(long, default_value = "")]
        suite: String,
        /// How long
        #[arg(long, default_value_t = 10)]
        minutes: u64,
    },
    /// Send random requests
    Fuzz {
        /// How long
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
}
