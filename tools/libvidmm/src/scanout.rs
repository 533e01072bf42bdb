// SPDX-License-Identifier: GPL-2.0

//! Scan-out: which primary a display source shows.

use crate::{
    abi,
    handle::File,
    Allocation,
    Result, //
};

/// A change of what a source shows that is being put together.
#[derive(Debug)]
pub struct Scanout<'a> {
    file: &'a File,
    argument: abi::Scanout,
}

/// A change that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Handle of the primary that was shown, 0 if there was none.
    pub previous: u32,
    /// Number of the change, which rises by one per source.
    pub sequence: u64,
}

impl<'a> Scanout<'a> {
    /// Begins a change that blanks a source.
    pub(crate) fn new(file: &'a File, source: u32) -> Self {
        Self {
            file,
            argument: abi::Scanout {
                source,
                ..Default::default()
            },
        }
    }

    /// Shows a primary.
    pub fn show(mut self, primary: &Allocation) -> Self {
        self.argument.alloc = primary.handle();
        self
    }

    /// Waits for a point before the switch.
    pub fn wait(mut self, point: abi::Point) -> Self {
        self.argument.wait = point;
        self
    }

    /// Signals a point when the previous primary is no longer shown.
    pub fn signal(mut self, point: abi::Point) -> Self {
        self.argument.signal = point;
        self
    }

    /// Carries out the change.
    pub fn commit(self) -> Result<Accepted> {
        self.call(0)
    }

    /// Checks the change, and does nothing.
    pub fn test(self) -> Result<Accepted> {
        self.call(abi::SCANOUT_TEST)
    }

    fn call(self, flags: u32) -> Result<Accepted> {
        let reply = self.file.call(abi::Scanout {
            flags,
            ..self.argument
        })?;
        Ok(Accepted {
            previous: reply.previous,
            sequence: reply.sequence,
        })
    }
}
