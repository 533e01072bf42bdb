// SPDX-License-Identifier: GPL-2.0

//! Submissions: a command buffer with what it waits for and what it signals.

use crate::{
    abi,
    commands::Buffer,
    handle::Handle,
    ioctl::PatchedLists,
    Result, //
};

/// A submission that is being put together.
#[derive(Debug)]
pub struct Submission<'a> {
    context: &'a Handle,
    flags: u32,
    buffer: Buffer,
    waits: Vec<abi::Point>,
    signals: Vec<abi::Point>,
}

/// A submission that was accepted.
#[derive(Clone, Debug)]
pub struct Submitted {
    /// Its id, which rises by one per context.
    pub id: u64,
    /// The buffer, whose allocation list shows the places that were known when it was accepted.
    pub buffer: Buffer,
}

impl<'a> Submission<'a> {
    /// Begins a submission to `context`.
    pub(crate) fn new(context: &'a Handle, buffer: Buffer) -> Self {
        Self {
            context,
            flags: 0,
            buffer,
            waits: Vec::new(),
            signals: Vec::new(),
        }
    }

    /// Waits for a point before the first byte runs.
    pub fn wait(mut self, point: abi::Point) -> Self {
        self.waits.push(point);
        self
    }

    /// Signals a point after the last byte.
    pub fn signal(mut self, point: abi::Point) -> Self {
        self.signals.push(point);
        self
    }

    /// Checks, pages and schedules, but executes nothing.
    pub fn null_render(self) -> Self {
        self.flags(abi::SUBMIT_PATCHED_NULL_RENDER)
    }

    /// Adds `SUBMIT_PATCHED_` flags.
    pub fn flags(mut self, flags: u32) -> Self {
        self.flags |= flags;
        self
    }

    /// Hands the submission to the kernel.
    pub fn submit(mut self) -> Result<Submitted> {
        let argument = abi::SubmitPatched {
            context: self.context.value(),
            flags: self.flags,
            ..Default::default()
        };
        let lists = PatchedLists {
            dwords: &self.buffer.dwords,
            allocations: &mut self.buffer.allocations,
            patches: &self.buffer.patches,
            waits: &self.waits,
            signals: &self.signals,
        };
        let reply = self.context.file().call_with(argument, lists)?;
        Ok(Submitted {
            id: reply.submission,
            buffer: self.buffer,
        })
    }
}
