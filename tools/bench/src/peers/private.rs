// SPDX-License-Identifier: GPL-2.0

//! Private memory of a program: what it takes when it needs no sharing.

use crate::{
    clock::Clock,
    failure::Result,
    memory::{
        self,
        Range,
        Start, //
    }, //
};

/// Private memory.
#[derive(Clone)]
pub struct Private {
    clock: Clock,
}

impl Private {
    /// Private memory, which is always there.
    pub fn new(clock: Clock) -> Self {
        Self { clock }
    }

    /// Offers memory to the kernel, and touches it page by page to have it back.
    pub fn offer(self, bytes: u64) -> Result<impl FnMut() -> Result<f64>> {
        // CAST: `usize` has 64 bits.
        let mut range = Range::new(bytes as usize, Start::OddPage)?;
        Ok(move || {
            self.clock.time_each(2, |_| {
                range.give_up()?;
                range.touch();
                Ok(())
            })
        })
    }

    /// Takes, touches page by page and gives back, in huge pages from 2 MiB on.
    pub fn touch(self, bytes: u64) -> impl FnMut() -> Result<f64> {
        let times = super::memfd::times(bytes);
        move || {
            // CAST: `usize` has 64 bits.
            let length = bytes as usize;
            self.clock
                .time_each(times, |_| memory::take_touch_and_return(length))
        }
    }
}
