// SPDX-License-Identifier: GPL-2.0

//! What other graphics drivers are made of: the work of the module `bench_drm`.

use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use crate::{
    arguments,
    call,
    clock::Clock,
    failure::{
        check,
        Failure,
        Result, //
    },
    measure::calls,
    modules,
    scheduling::Alone, //
};

/// Lock objects, reserve room for a fence, add it, unlock.
const EXEC: u32 = 0;
/// Lock objects and validate them where they are.
const TTM_VALIDATE: u32 = 1;
/// Create and destroy in system pages.
const TTM_SYSTEM: u32 = 2;
/// Create and destroy in memory of the device.
const TTM_MEMORY: u32 = 3;
/// Move to the device and back.
const TTM_MOVE: u32 = 4;
/// Queue jobs and wait for the last.
const SCHED: u32 = 5;

/// Evict one buffer and bring another one in.
const TTM_PRESSURE: u32 = 6;

/// Turns of one repetition of creating and destroying.
const CREATIONS: u32 = 16;
/// Turns of one repetition of the cycle.
const CYCLE_TURNS: u32 = 96;

/// The open device of the module.
#[derive(Clone)]
pub struct Graphics {
    file: Rc<File>,
    clock: Clock,
}

impl Graphics {
    /// Loads the module and opens its device.
    pub fn open(clock: Clock) -> Result<Self> {
        modules::load_peer("bench_drm", &["ttm", "drm_exec", "gpu_sched"])?;
        Ok(Self {
            file: Rc::new(super::open(Path::new("/dev/bench-drm"))?),
            clock,
        })
    }

    /// `drm_exec` on `objects` objects: one call.
    pub fn exec(self, objects: u32) -> impl FnMut() -> Result<f64> {
        self.batch(EXEC, objects)
    }

    /// `drm_exec` and `ttm_bo_validate` on `objects` objects: per object.
    pub fn validate(self, objects: u32) -> impl FnMut() -> Result<f64> {
        let mut batch = self.batch(TTM_VALIDATE, objects);
        move || Ok(batch()? / f64::from(objects))
    }

    /// Creates and destroys in system pages.
    pub fn system(self, bytes: u64) -> impl FnMut() -> Result<f64> {
        self.turns(TTM_SYSTEM, bytes, CREATIONS)
    }

    /// Creates and destroys in memory of the device, without clearing.
    pub fn memory(self, bytes: u64) -> impl FnMut() -> Result<f64> {
        self.turns(TTM_MEMORY, bytes, CREATIONS)
    }

    /// Moves to the device and back: per move.
    pub fn moves(self, bytes: u64) -> impl FnMut() -> Result<f64> {
        let mut turns = self.turns(TTM_MOVE, bytes, 1);
        move || Ok(turns()? / 2.0)
    }

    /// Goes through more buffers than fit: per buffer that comes in and one that leaves for it.
    pub fn pressure(self, bytes: u64) -> impl FnMut() -> Result<f64> {
        self.turns(TTM_PRESSURE, bytes, CYCLE_TURNS)
    }

    /// Queues jobs and waits for the last: per job.
    pub fn sched(self, jobs: u32) -> impl FnMut() -> Result<f64> {
        self.turns(SCHED, 0, jobs)
    }

    /// Calls that are timed here.
    fn batch(self, what: u32, objects: u32) -> impl FnMut() -> Result<f64> {
        move || {
            let mut argument = arguments::Graphics {
                what,
                objects,
                ..Default::default()
            };
            let alone = Alone::begin()?;
            let cost = self.clock.time_each(calls(objects), |_| {
                call::call(&*self.file, arguments::GRAPHICS, &mut argument)
            });
            drop(alone);
            let cost = cost.map_err(|errno| Failure::from(errno).during("BENCH_DRM"))?;
            check(argument.done == objects, || format!("{argument:?}"))?;
            Ok(cost)
        }
    }

    /// A call that times itself.
    fn turns(self, what: u32, bytes: u64, count: u32) -> impl FnMut() -> Result<f64> {
        move || {
            let mut argument = arguments::Graphics {
                what,
                count,
                bytes,
                ..Default::default()
            };
            call::call(&*self.file, arguments::GRAPHICS, &mut argument)
                .map_err(|errno| Failure::from(errno).during("BENCH_DRM"))?;
            check(argument.done == count, || format!("{argument:?}"))?;
            Ok(self.clock.nanoseconds(argument.ticks) / f64::from(count))
        }
    }
}
