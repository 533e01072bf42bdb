// SPDX-License-Identifier: GPL-2.0

//! Memory files: memory that is taken when it is touched.

use std::fs;
use std::os::fd::{
    AsFd,
    OwnedFd, //
};

use libvidmm::Mapping;
use rustix::fs::{
    ftruncate,
    memfd_create,
    MemfdFlags, //
};

use crate::{
    clock::Clock,
    failure::{
        check,
        Failure,
        Result, //
    },
    memory, //
};

/// Where the kernel is told that memory files take huge pages where a program advises it.
const HUGE_POLICY: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

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

    /// Maps, touches page by page and unmaps a file whose pages are there.
    pub fn map(self, bytes: u64) -> Result<impl FnMut() -> Result<f64>> {
        let file = file_of(bytes)?;
        super::map_and_touch(&file, bytes)?;
        Ok(self.again(file, bytes))
    }

    /// The same where the pages are huge ones.
    pub fn map_huge(self, bytes: u64) -> Result<impl FnMut() -> Result<f64>> {
        fs::write(HUGE_POLICY, "advise")
            .map_err(|error| Failure::from(error).during(HUGE_POLICY))?;
        let file = file_of(bytes)?;
        // CAST: `usize` has 64 bits.
        let mapping = Mapping::new(file.as_fd(), 0, bytes as usize)?;
        memory::advise_huge(&mapping)?;
        memory::touch(&mapping);
        let huge = memory::huge_bytes(&mapping)?;
        check(huge == bytes, || format!("{huge} bytes of huge pages"))?;
        drop(mapping);
        Ok(self.again(file, bytes))
    }

    fn again(self, file: OwnedFd, bytes: u64) -> impl FnMut() -> Result<f64> {
        move || {
            self.clock
                .time_each(2, |_| super::map_and_touch(&file, bytes))
        }
    }
}

/// Makes a file of this size.
fn file_of(bytes: u64) -> Result<OwnedFd> {
    let file = memfd_create("bench", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, bytes)?;
    Ok(file)
}
