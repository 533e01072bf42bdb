// SPDX-License-Identifier: GPL-2.0
//! The file system that the VM starts with.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cpio::Archive;
use crate::failure::{Failure, Result};
use crate::job::{self, Step, JOB_FILE};
use crate::modules::KernelModule;

const DIRECTORIES: &[&str] = &[
    "bin",
    "sbin",
    "usr",
    "usr/bin",
    "dev",
    "proc",
    "sys",
    "tmp",
    "out",
    "root",
    "etc",
    "lib",
    "lib/modules",
];

/// What goes into the initramfs besides the fixed parts.
pub struct Content<'a> {
    /// The static busybox.
    pub busybox: PathBuf,
    /// Our module, which is `/vidmm.ko` in the guest, where there is one.
    pub module: Option<PathBuf>,
    /// Static programs, by their file name in `/bin`.
    pub programs: Vec<PathBuf>,
    /// Further files: path here, path in the guest.
    pub files: Vec<(PathBuf, String)>,
    /// Modules of the kernel itself, `/lib/modules/NAME.ko` in the guest.
    pub kernel_modules: &'a [KernelModule],
    /// What to do in the guest.
    pub steps: &'a [Step],
}

/// Where the guest finds a module of the kernel.
pub fn module_path(module: &KernelModule) -> String {
    format!("/lib/modules/{}.ko", module.name)
}

/// Builds the archive.
pub fn build(content: &Content<'_>) -> Result<Vec<u8>> {
    let mut archive = Archive::new();
    for directory in DIRECTORIES {
        archive.directory(directory);
    }
    archive.character_device("dev/console", 5, 1);
    archive.character_device("dev/null", 1, 3);
    archive.file("bin/busybox", 0o755, &read(&content.busybox)?);
    archive.symlink("bin/sh", "busybox");
    let this_program = std::env::current_exe()?;
    archive.file("init", 0o755, &read(&this_program)?);
    archive.file(
        "etc/passwd",
        0o644,
        b"root::0:0:root:/root:/bin/sh\nuser::1000:1000::/tmp:/bin/sh\n",
    );
    archive.file("etc/group", 0o644, b"root:x:0:\nuser:x:1000:\n");
    archive.file(JOB_FILE, 0o644, job::encode(content.steps).as_bytes());
    if let Some(module) = &content.module {
        archive.file("vidmm.ko", 0o644, &read(module)?);
    }
    for module in content.kernel_modules {
        archive.file(&module_path(module), 0o644, &module.content);
    }
    for program in &content.programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        archive.file(&format!("bin/{name}"), 0o755, &read(program)?);
    }
    let mut made: Vec<String> = DIRECTORIES.iter().map(|&name| name.to_owned()).collect();
    for (source, target) in &content.files {
        add_parents(&mut archive, target, &mut made);
        archive.file(target, 0o755, &read(source)?);
    }
    Ok(archive.finish())
}

/// Adds the directories above a path that are not there yet.
fn add_parents(archive: &mut Archive, path: &str, made: &mut Vec<String>) {
    let path = path.trim_start_matches('/');
    for (position, _) in path.match_indices('/') {
        let directory = path[..position].to_owned();
        if !made.contains(&directory) {
            archive.directory(&directory);
            made.push(directory);
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}
