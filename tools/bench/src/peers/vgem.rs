// SPDX-License-Identifier: GPL-2.0

//! Buffers of vgem: those of a driver that keeps them in shared memory of the system.

use std::fs::File;
use std::rc::Rc;

use crate::{
    arguments::{
        self,
        CreateDumb,
        DestroyDumb, //
    },
    call,
    clock::Clock,
    failure::{
        check,
        Result, //
    }, //
};

/// The open device.
#[derive(Clone)]
pub struct Vgem {
    file: Rc<File>,
    clock: Clock,
}

impl Vgem {
    /// Opens the device.
    pub fn open(clock: Clock) -> Result<Self> {
        Ok(Self {
            file: Rc::new(super::open_drm("vgem")?),
            clock,
        })
    }

    /// Creates and destroys a buffer of whole pages.
    pub fn create(self, bytes: u64) -> impl FnMut() -> Result<f64> {
        move || {
            let mut size = 0;
            let cost = self.clock.time_each(16, |_| {
                let mut argument = CreateDumb {
                    // CAST: at most some thousand pages.
                    height: (bytes / 4096) as u32,
                    width: 1024,
                    bpp: 32,
                    ..Default::default()
                };
                call::call(&*self.file, arguments::CREATE_DUMB, &mut argument)?;
                size = argument.size;
                let handle = argument.handle;
                call::call(
                    &*self.file,
                    arguments::DESTROY_DUMB,
                    &mut DestroyDumb { handle },
                )
            })?;
            check(size == bytes, || format!("{size} bytes, not {bytes}"))?;
            Ok(cost)
        }
    }
}
