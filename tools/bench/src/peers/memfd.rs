// SPDX-License-Identifier: GPL-2.0

//! Memory files: memory that is taken when it is touched.

use rustix::fs::{
    ftruncate,
    memfd_create,
    MemfdFlags, //
};

use crate::{
    clock::Clock,
    failure::Result, //
};

/// Memory files.
#[derive(Clone)]
pub struct Memfd {
    clock: Clock,
}

/// How often something of this size is created and destroyed in one repetition.
pub(super) fn times(bytes: u64) -> u32 {
    match bytes {
        0..=0xffff => 16,
        0x1_0000..=0x1f_ffff => 8,
        _ => 2,
    }
}

impl Memfd {
    /// Memory files, which are always there.
    pub fn new(clock: Clock) -> Self {
        Self { clock }
    }

    /// Creates and destroys a file of this size.
    pub fn create(self, bytes: u64) -> impl FnMut() -> Result<f64> {
        move || {
            self.clock.time_each(16, |_| {
                let file = memfd_create("bench", MemfdFlags::CLOEXEC)?;
                ftruncate(&file, bytes)?;
                Ok(())
            })
        }
    }
}
