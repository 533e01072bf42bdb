// SPDX-License-Identifier: GPL-2.0

//! `poll()` on an open file: what it is ready for, and who tells when that changes.
//!
//! The handler of a file watches one or more [`PollCondVar`]s through the [`Request`] it is given, then
//! looks at its state and returns a [`Ready`]. Whoever changes the state notifies the condition
//! variable afterwards. Objects that come and go while files stay use the kernel crate's
//! `PollCondVarBox`, which goes without waiting for a grace period.
//!
//! C header: [`include/linux/poll.h`](srctree/include/linux/poll.h).
//! Upstream: `rust/kernel/sync/poll.rs`, together with a `poll` method of misc devices.

use core::ops::BitOr;
use kernel::{
    bindings,
    fs::File,
    sync::poll::{
        PollCondVar,
        PollTable, //
    }, //
};

/// A call of `poll()`, or of one of its relatives, on one file.
pub struct Request<'a> {
    file: &'a File,
    table: PollTable<'a>,
}

impl<'a> Request<'a> {
    /// Wraps what the file operation receives.
    ///
    /// # Safety
    ///
    /// `table` is null or valid for `'a`.
    pub(super) unsafe fn from_raw(file: &'a File, table: *mut bindings::poll_table_struct) -> Self {
        Self {
            file,
            // SAFETY: The caller's contract.
            table: unsafe { PollTable::from_raw(table) },
        }
    }

    /// Lets `changes` wake the caller. Comes before the look at the state.
    pub fn watch(&self, changes: &PollCondVar) {
        self.table.register_wait(self.file, changes);
    }
}

/// What a file is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready(u32);

impl Ready {
    /// Nothing.
    pub const NOTHING: Self = Self(0);
    /// There is something to read.
    pub const READ: Self = Self(bindings::POLLIN | bindings::POLLRDNORM);
    /// What is behind the file is broken.
    pub const ERROR: Self = Self(bindings::POLLERR);
    /// What is behind the file is gone.
    pub const HANG_UP: Self = Self(bindings::POLLHUP);

    /// Returns the mask of the file operation.
    pub(super) const fn mask(self) -> bindings::__poll_t {
        self.0
    }
}

impl BitOr for Ready {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
