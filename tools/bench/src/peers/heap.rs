// SPDX-License-Identifier: GPL-2.0

//! The system heap: dma-bufs whose pages are taken and cleared when they are made.

use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use crate::{
    arguments::{
        self,
        BufferSync, //
    },
    call,
    clock::Clock,
    failure::Result, //
};

/// Reading and writing.
const SYNC_BOTH: u64 = 3;
/// The end of it; the start is 0.
const SYNC_END: u64 = 1 << 2;
/// Pairs of one repetition.
const PAIRS: u32 = 32;

/// The open heap.
#[derive(Clone)]
pub struct Heap {
    file: Rc<File>,
    clock: Clock,
}

impl Heap {
    /// Opens the system heap.
    pub fn open(clock: Clock) -> Result<Self> {
        Ok(Self {
            file: Rc::new(super::open(Path::new("/dev/dma_heap/system"))?),
            clock,
        })
    }

    /// Creates and destroys a buffer.
    pub fn create(self, bytes: u64) -> impl FnMut() -> Result<f64> {
        let times = super::memfd::times(bytes);
        move || {
            self.clock.time_each(times, |_| {
                drop(call::heap_alloc(&*self.file, bytes)?);
                Ok(())
            })
        }
    }

    /// Creates, maps, touches page by page and destroys a buffer.
    pub fn touch(self, bytes: u64) -> impl FnMut() -> Result<f64> {
        let times = super::memfd::times(bytes);
        move || {
            self.clock.time_each(times, |_| {
                let buffer = call::heap_alloc(&*self.file, bytes)?;
                super::map_and_touch(&buffer, bytes)
            })
        }
    }

    /// Maps, touches page by page and unmaps a buffer that is there.
    pub fn map(self, bytes: u64) -> Result<impl FnMut() -> Result<f64>> {
        let buffer = call::heap_alloc(&*self.file, bytes)?;
        Ok(move || {
            self.clock
                .time_each(2, |_| super::map_and_touch(&buffer, bytes))
        })
    }

    /// Starts and ends an access of the CPU.
    pub fn sync(self) -> Result<impl FnMut() -> Result<f64>> {
        let buffer = call::heap_alloc(&*self.file, 1 << 16)?;
        Ok(move || {
            let sync =
                |flags| call::call(&buffer, arguments::BUFFER_SYNC, &mut BufferSync { flags });
            let pair = |_| {
                sync(SYNC_BOTH)?;
                sync(SYNC_BOTH | SYNC_END)
            };
            Ok(self.clock.time_each(PAIRS, pair)?)
        })
    }
}
