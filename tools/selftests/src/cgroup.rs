// SPDX-License-Identifier: GPL-2.0

//! A control group with a memory limit.

use std::{
    fs,
    path::{
        Path,
        PathBuf, //
    },
    process::Command,
};

const ROOT: &str = "/sys/fs/cgroup";

/// A control group, removed at the end of the scope.
pub struct Group(PathBuf);

impl Group {
    /// Makes a group whose processes may use `limit` bytes of memory.
    pub fn new(name: &str, limit: u64) -> Self {
        let controllers = Path::new(ROOT).join("cgroup.controllers");
        if !controllers.exists() {
            let _ = fs::create_dir_all(ROOT);
            let status = Command::new("mount")
                .args(["-t", "cgroup2", "cgroup2", ROOT])
                .status();
            assert!(status.is_ok_and(|status| status.success()), "no cgroup2");
        }
        write(&Path::new(ROOT).join("cgroup.subtree_control"), "+memory");
        let group = Self(Path::new(ROOT).join(name));
        let _ = fs::create_dir(&group.0);
        write(&group.0.join("memory.max"), &limit.to_string());
        group
    }

    /// The bytes that are charged to it.
    pub fn used(&self) -> u64 {
        let path = self.0.join("memory.current");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        text.trim().parse().expect("a number")
    }

    /// Moves the calling process into the group.
    pub fn enter(&self) {
        write(&self.0.join("cgroup.procs"), "0");
    }
}

/// Moves the calling process out of all groups.
pub fn leave() {
    write(&Path::new(ROOT).join("cgroup.procs"), "0");
}

impl Drop for Group {
    fn drop(&mut self) {
        let removed = crate::clock::holds_within(crate::clock::patience(), || {
            fs::remove_dir(&self.0).is_ok()
        });
        assert!(
            removed || std::thread::panicking(),
            "the control group stays busy"
        );
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
