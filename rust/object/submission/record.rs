// SPDX-License-Identifier: GPL-2.0

//! What is remembered of a submission, and what SUBMIT_QUERY says of it.
//!
//! # Locking
//!
//! `Record::report` is a leaf spinlock.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
};

use crate::{
    abstractions::clock,
    object::placement::Paged, //
};

/// What a submission is doing; the states of SUBMIT_QUERY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// For fences, or for what is in front of it.
    Waiting,
    /// Its memory is being prepared.
    Paging,
    /// It is in the queue of its node.
    Ready,
    /// Its commands run.
    Running,
    /// It ended.
    Done,
    /// It was thrown away.
    Cancelled,
    /// It was at fault.
    Faulted,
}

/// Everything SUBMIT_QUERY says.
#[derive(Clone, Copy)]
pub(crate) struct Report {
    /// What it is doing.
    pub(crate) state: State,
    /// Why it did not run to its end.
    pub(crate) error: Option<Error>,
    /// Portions that ran.
    pub(crate) portions: u32,
    /// Operands that had to be written.
    pub(crate) patches_written: u32,
    /// What was paged for it.
    pub(in crate::object) paged: Paged,
    /// When it was accepted.
    pub(crate) queued_ns: u64,
    /// When its commands began to run.
    pub(crate) start_ns: u64,
    /// When it ended.
    pub(crate) end_ns: u64,
}

impl Report {
    /// Returns the bytes brought in on its behalf.
    pub(crate) fn paged_in(&self) -> u64 {
        self.paged.bytes_in
    }

    /// Returns the bytes pushed out on its behalf.
    pub(crate) fn paged_out(&self) -> u64 {
        self.paged.bytes_out
    }
}

/// What is remembered of a submission after its end.
#[pin_data]
pub(crate) struct Record {
    #[pin]
    report: SpinLock<Report>,
}

impl Record {
    /// Begins the record of a submission that is being accepted.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new() -> Result<Arc<Self>> {
        let report = Report {
            state: State::Waiting,
            error: None,
            portions: 0,
            patches_written: 0,
            paged: Paged::default(),
            queued_ns: clock::now_ns(),
            start_ns: 0,
            end_ns: 0,
        };
        Arc::pin_init(
            pin_init!(Self {
                report <- new_spinlock!(report, "Record::report"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Returns what is known.
    pub(crate) fn report(&self) -> Report {
        *self.report.lock()
    }

    /// Changes what is known.
    pub(in crate::object) fn update(&self, change: impl FnOnce(&mut Report)) {
        change(&mut self.report.lock());
    }
}
