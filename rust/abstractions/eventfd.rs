// SPDX-License-Identifier: GPL-2.0

//! Eventfds: counters that a program waits on together with other descriptors.
//!
//! A program passes a descriptor once; what is kept is the counter behind it, which stays however the
//! descriptor is closed. Raising it never sleeps and never fails: a counter that is full stays full.
//!
//! C header: [`include/linux/eventfd.h`](srctree/include/linux/eventfd.h).
//! Upstream: next to `rust/kernel/sync/poll.rs`.

use core::ptr::NonNull;
use kernel::{
    bindings,
    error::from_err_ptr,
    ffi,
    prelude::*, //
};

/// The counter behind an eventfd.
///
/// # Invariants
///
/// `counter` is valid, and this value owns one reference to it.
pub struct EventFd {
    counter: NonNull<bindings::eventfd_ctx>,
}

// SAFETY: The counter has a lock of its own, which every function used here takes.
unsafe impl Send for EventFd {}

// SAFETY: As for `Send`.
unsafe impl Sync for EventFd {}

impl EventFd {
    /// Takes hold of the counter behind a descriptor of the calling task.
    ///
    /// # Errors
    ///
    /// - `EBADF`: the descriptor is not open.
    /// - `EINVAL`: it is not an eventfd.
    pub fn from_descriptor(descriptor: ffi::c_int) -> Result<Self> {
        // SAFETY: Any number may be asked about.
        let counter = from_err_ptr(unsafe { bindings::eventfd_ctx_fdget(descriptor) })?;

        // INVARIANT: The call has returned a reference that is ours.
        Ok(Self {
            counter: NonNull::new(counter).ok_or(EINVAL)?,
        })
    }

    /// Adds one to the counter and wakes who waits for it. Callable under spinlocks.
    pub fn raise(&self) {
        // SAFETY: Valid by the type invariants.
        unsafe { bindings::eventfd_signal_mask(self.counter.as_ptr(), 0) };
    }
}

impl Drop for EventFd {
    /// Gives the reference back. Callable under spinlocks.
    fn drop(&mut self) {
        // SAFETY: By the type invariants the reference is ours.
        unsafe { bindings::eventfd_ctx_put(self.counter.as_ptr()) };
    }
}
