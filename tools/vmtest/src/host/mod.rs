// SPDX-License-Identifier: GPL-2.0
//! The host's half: prepares a VM, runs a job in it and judges what came out.

pub mod host_tests;
pub mod initramfs;
pub mod kernel;
pub mod machine;
pub mod qemu;
pub mod terminal;
pub mod verdict;
