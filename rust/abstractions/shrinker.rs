// SPDX-License-Identifier: GPL-2.0

//! Being asked for memory when the kernel is short of it.
//!
//! Whoever holds memory that is nice to have registers a [`Shrinker`]. The kernel counts what there is and
//! asks for some of it, from the thread that needs memory: any thread, with any locks held, the driver's
//! own included. So what is called here never waits: it tries its locks, and it neither allocates nor drops
//! anything that would wait for somebody else's end.
//!
//! C header: [`include/linux/shrinker.h`](srctree/include/linux/shrinker.h).
//! Upstream: `rust/kernel/mm/shrinker.rs`.

use core::ptr::NonNull;
use kernel::{
    bindings,
    ffi,
    prelude::*,
    sync::Arc, //
};

/// Who has something to give.
pub trait Shrink: Send + Sync {
    /// Returns how many pages could be given back. Takes no lock.
    fn count(&self) -> usize;

    /// Gives back about `pages` pages and returns how many it were; [`None`] if a lock was not to be
    /// had and nothing was given. Never waits and never allocates.
    fn scan(&self, pages: usize) -> Option<usize>;
}

/// A registration; ends with this value, which waits for calls that are running.
///
/// # Invariants
///
/// `raw` is a registered shrinker whose private data points to what `_target` holds.
pub struct Shrinker<T: Shrink + 'static> {
    raw: NonNull<bindings::shrinker>,
    _target: Arc<T>,
}

// SAFETY: A shrinker may be freed from any task; the target is shared.
unsafe impl<T: Shrink> Send for Shrinker<T> {}

// SAFETY: Nothing can be done with a shared reference.
unsafe impl<T: Shrink> Sync for Shrinker<T> {}

impl<T: Shrink> Shrinker<T> {
    /// Registers `target`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub fn new(name: &CStr, target: Arc<T>) -> Result<Self> {
        // SAFETY: The format has one string, which is passed and ends in NUL; it is copied.
        let raw = unsafe { bindings::shrinker_alloc(0, c"%s".as_char_ptr(), name.as_char_ptr()) };
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        let private_data = Arc::as_ptr(&target).cast_mut().cast();

        // SAFETY: The shrinker is new and not registered yet, so nobody else uses it.
        let fields = unsafe { &mut *raw.as_ptr() };

        fields.count_objects = Some(count::<T>);
        fields.scan_objects = Some(scan::<T>);
        fields.private_data = private_data;

        // SAFETY: The shrinker is set up and not registered yet.
        unsafe { bindings::shrinker_register(raw.as_ptr()) };

        // INVARIANT: It has just been registered with a pointer into `target`.
        Ok(Self {
            raw,
            _target: target,
        })
    }
}

impl<T: Shrink> Drop for Shrinker<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants it is registered. The target is dropped after this call, which
        // waits until nobody uses it any more.
        unsafe { bindings::shrinker_free(self.raw.as_ptr()) }
    }
}

/// Returns the target of a call.
///
/// # Safety
///
/// `shrinker` is the one of a [`Shrinker`] of the same type that stays for `'a`.
unsafe fn target<'a, T: Shrink>(shrinker: *mut bindings::shrinker) -> &'a T {
    // SAFETY: By the caller's contract and the type invariants of `Shrinker`.
    unsafe { &*(*shrinker).private_data.cast::<T>() }
}

/// Counts.
///
/// # Safety
///
/// For use as the operation alone.
unsafe extern "C" fn count<T: Shrink>(
    shrinker: *mut bindings::shrinker,
    _control: *mut bindings::shrink_control,
) -> ffi::c_ulong {
    // SAFETY: The kernel calls this with a shrinker that was registered with it, and `shrinker_free`
    // waits for the call.
    match unsafe { target::<T>(shrinker) }.count() {
        // CAST: The constant is a negative number that stands for one close to the end of the range.
        0 => bindings::SHRINK_EMPTY as isize as ffi::c_ulong,
        pages => pages,
    }
}

/// Scans.
///
/// # Safety
///
/// For use as the operation alone.
unsafe extern "C" fn scan<T: Shrink>(
    shrinker: *mut bindings::shrinker,
    control: *mut bindings::shrink_control,
) -> ffi::c_ulong {
    /// What a caller must permit: removing translations takes locks of file systems.
    const NEEDED: bindings::gfp_t = 1 << bindings::___GFP_FS_BIT | 1 << bindings::___GFP_IO_BIT;

    // CAST: The constant is a negative number that stands for one close to the end of the range.
    let stop = bindings::SHRINK_STOP as isize as ffi::c_ulong;
    // SAFETY: The kernel passes a valid description, which this call alone uses.
    let control = unsafe { &*control };

    if control.gfp_mask & NEEDED != NEEDED {
        return stop;
    }

    // SAFETY: As in `count`.
    let target = unsafe { target::<T>(shrinker) };

    target.scan(control.nr_to_scan).unwrap_or(stop)
}
