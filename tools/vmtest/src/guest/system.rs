// SPDX-License-Identifier: GPL-2.0
//! File systems of the guest, and the end of it.

use std::env;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::mount::{mount, MountFlags};
use rustix::system::{reboot, RebootCommand};

use crate::failure::{Failure, Result};

/// Where, which file system, and whether the kernel may lack it.
const MOUNTS: &[(&str, &str, bool)] = &[
    ("/proc", "proc", false),
    ("/sys", "sysfs", false),
    ("/dev", "devtmpfs", false),
    ("/dev/pts", "devpts", true),
    ("/dev/shm", "tmpfs", false),
    ("/tmp", "tmpfs", false),
    ("/out", "tmpfs", false),
    ("/sys/kernel/debug", "debugfs", true),
    ("/sys/kernel/tracing", "tracefs", true),
    ("/sys/fs/cgroup", "cgroup2", true),
];

/// Mounts everything and installs the small tools and the kernel's own modules.
pub fn mount_all() -> Result<()> {
    env::set_var("PATH", "/bin:/sbin:/usr/bin:/usr/sbin");
    env::set_var("HOME", "/");
    for &(directory, kind, may_lack) in MOUNTS {
        let _ = fs::create_dir_all(directory);
        let mounted = mount(kind, directory, kind, MountFlags::empty(), None);
        if let (Err(error), false) = (mounted, may_lack) {
            return Err(Failure::new(format!("cannot mount {directory}: {error}")));
        }
    }
    let _ = Command::new("/bin/busybox")
        .args(["--install", "-s", "/bin"])
        .status();
    let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory +pids");
    // From here on everything but debug messages is on the console.
    let _ = fs::write("/proc/sys/kernel/printk", "7");
    Ok(())
}

/// Ends the VM.
pub fn power_off() {
    rustix::fs::sync();
    let _ = reboot(RebootCommand::PowerOff);
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}
