// SPDX-License-Identifier: GPL-2.0

//! Peers and floors: what vidmm is compared with.
//!
//! Each may be missing on a machine; then it says why, and the rows that need it are not run.

mod floor;
mod graphics;
mod heap;
mod memfd;
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
    syncobj::Syncobjs,
    vgem::Vgem, //
};

use std::fs::{
    self,
    File,
    OpenOptions, //
};
use std::path::Path;

use crate::{
    call,
    clock::Clock,
    failure::{
        Failure,
        Result, //
    }, //
};

/// All of them.
pub struct Peers {
    /// Floors inside the kernel.
    pub floor: Result<Floor>,
    /// Parts of other drivers inside the kernel.
    pub graphics: Result<Graphics>,
    /// Memory files.
    pub memfd: Result<Memfd>,
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
            heap: Heap::open(clock),
            vgem: Vgem::open(clock),
        }
    }
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
