// SPDX-License-Identifier: GPL-2.0

//! Stop requests, and time that passes on a node.
//!
//! Whatever may take long on a node asks between its steps whether it shall end: the watchdog,
//! closing and removal stop a context, the end of the adapter stops a node. A node never sleeps
//! longer than [`LONGEST_SLEEP`] between two questions.

use kernel::{
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use super::context::Context;
use crate::abstractions::{
    clock,
    scheduling::yield_cpu, //
};

/// The longest sleep of a node, in nanoseconds. Well below the 10 ms of a stop request, since timers
/// are late on a busy machine.
const LONGEST_SLEEP: u64 = 2_000_000;

/// The shortest time worth a sleep, in nanoseconds.
const SHORTEST_SLEEP: u64 = 20_000;

/// The buffer shall end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stopped;

/// Who can end what a node is doing.
#[derive(Clone, Copy)]
pub(super) struct Interruption<'a> {
    /// Set when the context is stopped.
    context: &'a Context,
    /// Set when the node is.
    node: &'a Atomic<bool>,
    /// The completion value of the buffer that is to be given up.
    given_up: &'a Atomic<u64>,
    /// The completion value of the one that runs.
    fence: u64,
}

impl<'a> Interruption<'a> {
    /// Returns the interruption of the buffer `fence` of `context` on a node. It ends when the context or the
    /// node is stopped, or when it is the one that is `given_up`.
    pub(super) const fn new(
        context: &'a Context,
        node: &'a Atomic<bool>,
        given_up: &'a Atomic<u64>,
        fence: u64,
    ) -> Self {
        Self {
            context,
            node,
            given_up,
            fence,
        }
    }

    /// Returns whether the buffer is to be given up.
    pub(super) fn is_given_up(&self) -> bool {
        self.fence != 0 && self.given_up.load(Relaxed) == self.fence
    }

    /// Answers whether the work shall end.
    ///
    /// # Errors
    ///
    /// [`Stopped`]: it shall.
    pub(super) fn check(&self) -> Result<(), Stopped> {
        if self.context.is_stopped() || self.node.load(Relaxed) || self.is_given_up() {
            Err(Stopped)
        } else {
            Ok(())
        }
    }

    /// Lets others have the CPU, then asks like [`Interruption::check`].
    ///
    /// # Errors
    ///
    /// [`Stopped`]: the work shall end.
    pub(super) fn pass(&self) -> Result<(), Stopped> {
        yield_cpu();
        self.check()
    }

    /// Lets `nanoseconds` pass; [`None`] is for ever.
    ///
    /// # Errors
    ///
    /// [`Stopped`]: the work shall end.
    pub(super) fn wait(&self, nanoseconds: Option<u64>) -> Result<(), Stopped> {
        let end = nanoseconds.and_then(|time| clock::now_ns().checked_add(time));
        loop {
            self.pass()?;
            let left = match end {
                Some(end) => end.saturating_sub(clock::now_ns()),
                None => LONGEST_SLEEP,
            };
            if left == 0 {
                return Ok(());
            }
            if left >= SHORTEST_SLEEP {
                sleep(left.min(LONGEST_SLEEP));
            }
        }
    }

    /// Waits until `look` answers with a value, looking at least every 100 microseconds.
    ///
    /// # Errors
    ///
    /// [`Stopped`]: the work shall end.
    pub(super) fn poll<T>(&self, mut look: impl FnMut() -> Option<T>) -> Result<T, Stopped> {
        /// Time between two looks, in nanoseconds; timers add a quarter and their own delay.
        const INTERVAL: u64 = 40_000;

        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            self.pass()?;
            sleep(INTERVAL);
        }
    }
}

/// Sleeps for a short time.
fn sleep(nanoseconds: u64) {
    // CAST: a few milliseconds at most.
    fsleep(Delta::from_nanos(nanoseconds as i64));
}
