// SPDX-License-Identifier: GPL-2.0

//! Peers and floors: what vidmm is compared with.
//!
//! Each may be missing on a machine; then it says why, and the rows that need it are not run.

mod floor;
mod graphics;
mod heap;
mod memfd;
mod private;
mod syncobj;
mod vgem;

pub use self::{
    floor::{
        Floor,
        PatchShape,
        Work, //
    },
    graphics::Graphics,
    heap::Heap,
    memfd::Memfd,
    private::Private,
    syncobj::Syncobjs,
    vgem::Vgem, //
};

use std::fs::{
    self,
    File,
    OpenOptions, //
};
use std::os::fd::AsFd;
use std::path::Path;

use libvidmm::Mapping;

use crate::{
    call,
    clock::Clock,
    failure::{
        Failure,
        Result, //
    },
    memory, //
};

/// All of them.
pub struct Peers {
    /// Floors inside the kernel.
    pub floor: Result<Floor>,
    /// Parts of other drivers inside the kernel.
    pub graphics: Result<Graphics>,
    /// Memory files.
    pub memfd: Result<Memfd>,
    /// Memory of a program alone.
    pub private: Result<Private>,
    /// The system heap.
    pub heap: Result<Heap>,
    /// Buffers of vgem.
    pub vgem: Result<Vgem>,
    /// Sync objects.
    pub syncobjs: Result<Syncobjs>,
}

impl Peers {
    /// Opens what there is.
    pub fn open(clock: Clock) -> Self {
        let graphics = Graphics::open(clock);
        Self {
            floor: Floor::open(clock),
            syncobjs: match &graphics {
                Ok(_) => Syncobjs::open(clock),
                Err(failure) => Err(failure.clone()),
            },
            graphics,
            memfd: Ok(Memfd::new(clock)),
            private: Ok(Private::new(clock)),
            heap: Heap::open(clock),
            vgem: Vgem::open(clock),
        }
    }
}

/// Maps a file, touches it page by page and unmaps it again.
fn map_and_touch(file: impl AsFd, bytes: u64) -> Result<()> {
    // CAST: `usize` has 64 bits.
    let mapping = Mapping::new(file, 0, bytes as usize)?;
    memory::touch(&mapping);
    Ok(())
}

/// Opens a device file for reading and writing.
fn open(path: &Path) -> Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| Failure::from(error).during(path.display()))
}

/// Opens the DRM device of a driver.
fn open_drm(driver: &str) -> Result<File> {
    let nothing = || Failure::new(format!("no DRM device of driver {driver}"));
    let mut paths: Vec<_> = fs::read_dir("/dev/dri")
        .map_err(|_| nothing())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().contains("card"))
        .collect();
    paths.sort();
    paths
        .iter()
        .filter_map(|path| open(path).ok())
        .find(|file| call::drm_driver(file).is_ok_and(|name| name == driver))
        .ok_or_else(nothing)
}
