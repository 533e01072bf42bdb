// SPDX-License-Identifier: GPL-2.0

//! Sync objects: what a call with a list of handles costs that does next to nothing with each.

use std::fs::File;
use std::rc::Rc;

use crate::{
    arguments::{
        self,
        Syncobj, //
    },
    call,
    clock::Clock,
    failure::Result,
    measure::calls,
    scheduling::Alone, //
};

/// Sync objects that are closed together.
struct Objects {
    file: Rc<File>,
    handles: Vec<u32>,
}

impl Objects {
    fn new(file: &Rc<File>, count: u32) -> Result<Self> {
        let mut objects = Self {
            file: file.clone(),
            handles: Vec::new(),
        };
        for _ in 0..count {
            let mut argument = Syncobj::default();
            call::call(&**file, arguments::SYNCOBJ_CREATE, &mut argument)?;
            objects.handles.push(argument.handle);
        }
        Ok(objects)
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        for &handle in &self.handles {
            // They go with the file at the latest.
            let mut argument = Syncobj { handle, flags: 0 };
            let _ = call::call(&*self.file, arguments::SYNCOBJ_DESTROY, &mut argument);
        }
    }
}

/// The open device that offers them.
#[derive(Clone)]
pub struct Syncobjs {
    file: Rc<File>,
    clock: Clock,
}

impl Syncobjs {
    /// Opens the device of the module `bench_drm`.
    pub fn open(clock: Clock) -> Result<Self> {
        Ok(Self {
            file: Rc::new(super::open_drm("bench")?),
            clock,
        })
    }

    /// Resets `count` of them in one call.
    pub fn reset(self, count: u32) -> Result<impl FnMut() -> Result<f64>> {
        let objects = Objects::new(&self.file, count)?;
        Ok(move || {
            let call = |_| call::syncobj_reset(&*objects.file, &objects.handles);
            let _alone = Alone::begin()?;
            Ok(self.clock.time_each(calls(count), call)?)
        })
    }
}
