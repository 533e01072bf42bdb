// SPDX-License-Identifier: GPL-2.0

//! Being told that the system is out of memory, before a task is killed for it.
//!
//! C header: [`include/linux/oom.h`](srctree/include/linux/oom.h).
//! Upstream: beside a shrinker abstraction, in `rust/kernel/mm`.

use super::bindings as local;
use kernel::{
    bindings,
    error::to_result,
    ffi,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

/// Who has something to give at the last moment.
pub trait LastResort: Send + Sync {
    /// Gives back whatever it can and returns how many pages that were. Called by any thread, with any
    /// locks held: never waits and never allocates.
    fn give(&self) -> usize;
}

/// A registration; ends with this value, which waits for calls that are running.
pub struct Watch<T: LastResort + 'static>(Pin<KBox<Notifier<T>>>);

/// What the kernel knows of a registration.
///
/// # Invariants
///
/// `block` is registered from [`Watch::new`] until the value is dropped.
#[repr(C)]
#[pin_data]
struct Notifier<T: LastResort + 'static> {
    #[pin]
    block: Opaque<bindings::notifier_block>,
    target: Arc<T>,
}

// SAFETY: The block is used by the kernel, under its own locks; the target is shared.
unsafe impl<T: LastResort> Send for Notifier<T> {}

// SAFETY: As for `Send`.
unsafe impl<T: LastResort> Sync for Notifier<T> {}

impl<T: LastResort> Watch<T> {
    /// Registers `target`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub fn new(target: Arc<T>) -> Result<Self> {
        let block = bindings::notifier_block {
            notifier_call: Some(call::<T>),
            ..pin_init::zeroed()
        };
        let notifier = KBox::pin_init(
            pin_init!(Notifier {
                block: Opaque::new(block),
                target,
            }),
            GFP_KERNEL,
        )?;

        // SAFETY: The block is pinned and stays until it is unregistered. INVARIANT: It is registered now.
        to_result(unsafe { local::register_oom_notifier(notifier.block.get()) })?;

        Ok(Self(notifier))
    }
}

impl<T: LastResort> Drop for Watch<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants of `Notifier` the block is registered. The call waits for those
        // that are running.
        unsafe { local::unregister_oom_notifier(self.0.block.get()) };
    }
}

/// Gives, and adds to what others gave.
///
/// # Safety
///
/// For use as the notifier of a [`Notifier`] of the same type alone.
unsafe extern "C" fn call<T: LastResort + 'static>(
    block: *mut bindings::notifier_block,
    _action: ffi::c_ulong,
    freed: *mut ffi::c_void,
) -> ffi::c_int {
    // SAFETY: The block is the first field of a `Notifier`, which stays while it is registered.
    let notifier = unsafe { &*block.cast::<Notifier<T>>() };
    let given = notifier.target.give();

    // SAFETY: The kernel passes a number to add to, which nobody else uses meanwhile.
    unsafe { *freed.cast::<ffi::c_ulong>() += given };

    // CAST: A small number.
    bindings::NOTIFY_OK as ffi::c_int
}
