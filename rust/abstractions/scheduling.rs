// SPDX-License-Identifier: GPL-2.0

//! Long loops that stay polite: giving up the CPU, and noticing signals.
//!
//! C header: [`include/linux/sched.h`](srctree/include/linux/sched.h),
//! [`include/linux/sched/signal.h`](srctree/include/linux/sched/signal.h).
//! Upstream: `rust/kernel/task.rs`.

use super::bindings as local;
use kernel::current;

/// Lets others run if the scheduler wants it. May sleep: call it without spinlocks.
#[inline]
pub fn yield_cpu() {
    // SAFETY: May sleep, which callers of this function can: Rust code that may not is checked by the
    // kernel's own sleep checker, as everywhere in the kernel crate.
    unsafe { local::vidmm_cond_resched() }
}

/// Returns whether the scheduler wants this task to stop; cheap enough for every turn of a loop.
#[inline]
pub fn should_yield() -> bool {
    // SAFETY: Reads a flag of `current`, which exists in every context.
    unsafe { local::vidmm_need_resched() }
}

/// Returns whether the calling task has a signal to handle.
#[inline]
pub fn signal_pending() -> bool {
    // SAFETY: Reads flags of `current`, which exists in every context.
    unsafe { local::vidmm_signal_pending() }
}

/// Returns whether the calling task is about to die.
#[inline]
pub fn fatal_signal_pending() -> bool {
    // SAFETY: Reads flags of `current`, which exists in every context.
    unsafe { local::vidmm_fatal_signal_pending() }
}

/// Returns a number of the calling task, which no other task has at the same time.
pub fn current_task() -> u64 {
    // CAST: The number is positive.
    current!().pid() as u64
}
