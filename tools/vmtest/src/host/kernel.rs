// SPDX-License-Identifier: GPL-2.0
//! The prepared kernels, as the set-up scripts leave them in the cache.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::failure::{Failure, Result};

/// Which prepared kernel to boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Flavour {
    /// Debian's own kernel.
    Stock,
    /// Our build with KASAN, lockdep, KUnit and more.
    Debug,
}

impl Flavour {
    /// Its name in the cache, in `build/` and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Flavour::Stock => "stock",
            Flavour::Debug => "debug",
        }
    }
}

/// A prepared kernel.
pub struct Kernel {
    /// Which one it is.
    pub flavour: Flavour,
    /// Its release, such as `7.3.4+deb13-amd64`.
    pub release: String,
    /// The image to boot.
    pub image: PathBuf,
    /// Directory of its modules.
    pub modules: PathBuf,
}

impl Kernel {
    /// Finds a prepared kernel in the cache.
    pub fn find(flavour: Flavour, cache: &Path) -> Result<Kernel> {
        let entry = cache.join(flavour.name());
        let release = fs::read_to_string(entry.join("release")).map_err(|_| {
            Failure::new(format!(
                "the {name} kernel is not prepared: run 'make setup KERNEL={name}'",
                name = flavour.name()
            ))
        })?;
        Ok(Kernel {
            flavour,
            release: release.trim().to_owned(),
            image: entry.join("vmlinuz"),
            modules: entry.join("modules"),
        })
    }
}
