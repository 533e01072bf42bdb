// SPDX-License-Identifier: GPL-2.0
//! Modules of the kernel itself that a job needs in its VM.
//!
//! The kernel packages carry no dependency list, so the order is found from the
//! `depends=` field of each module file.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};

/// A module file, uncompressed.
pub struct KernelModule {
    /// Its name, with underscores.
    pub name: String,
    /// The ELF file.
    pub content: Vec<u8>,
}

/// Finds the named modules and all that they depend on, in loading order.
///
/// Names of what is built into the kernel are passed over.
pub fn with_dependencies(directory: &Path, names: &[String]) -> Result<Vec<KernelModule>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut files = HashMap::new();
    list(&directory.join("kernel"), &mut files);
    let builtin = fs::read_to_string(directory.join("modules.builtin")).unwrap_or_default();
    let builtin: Vec<String> = builtin.lines().map(name_of).collect();
    let mut search = Search {
        files,
        builtin,
        found: Vec::new(),
    };
    for name in names {
        search.add(&normal(name))?;
    }
    Ok(search.found)
}

struct Search {
    files: HashMap<String, PathBuf>,
    builtin: Vec<String>,
    found: Vec<KernelModule>,
}

impl Search {
    fn add(&mut self, name: &str) -> Result<()> {
        let known = self.found.iter().any(|module| module.name == name);
        if known || self.builtin.iter().any(|builtin| builtin == name) {
            return Ok(());
        }
        let Some(path) = self.files.get(name).cloned() else {
            return Err(Failure::new(format!(
                "this kernel has no module '{name}', neither as a file nor built in"
            )));
        };
        let content = read(&path)?;
        for dependency in dependencies(&content) {
            self.add(&dependency)?;
        }
        self.found.push(KernelModule {
            name: name.to_owned(),
            content,
        });
        Ok(())
    }
}

/// Collects the module files below a directory, by name.
fn list(directory: &Path, files: &mut HashMap<String, PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            list(&path, files);
        } else {
            let text = path.to_string_lossy().into_owned();
            if text.ends_with(".ko") || text.ends_with(".ko.xz") {
                files.insert(name_of(&text), path);
            }
        }
    }
}

fn normal(name: &str) -> String {
    name.replace('-', "_")
}

fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    normal(file.split(".ko").next().unwrap_or(file))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    if path.extension().is_some_and(|extension| extension == "xz") {
        let output = Command::new("xz")
            .arg("-dc")
            .arg(path)
            .output()
            .map_err(|error| Failure::new(format!("cannot run xz: {error}")))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        return Err(Failure::new(format!("cannot unpack {}", path.display())));
    }
    fs::read(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// The `depends=` list of a module, which is a plain string in the file.
fn dependencies(module: &[u8]) -> Vec<String> {
    let mark = b"\0depends=";
    let Some(start) = module.windows(mark.len()).position(|window| window == mark) else {
        return Vec::new();
    };
    let field = &module[start + mark.len()..];
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&field[..end])
        .split(',')
        .filter(|name| !name.is_empty())
        .map(normal)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_module_information() {
        let file = b"\x7fELF..\0license=GPL\0depends=drm,drm-kms-helper\0name=vgem\0";
        assert_eq!(dependencies(file), ["drm", "drm_kms_helper"]);
        assert!(dependencies(b"x\0depends=\0y").is_empty());
    }

    #[test]
    fn names_come_from_paths() {
        assert_eq!(
            name_of("kernel/drivers/gpu/drm/gpu-sched.ko.xz"),
            "gpu_sched"
        );
    }
}
