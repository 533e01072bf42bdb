// SPDX-License-Identifier: GPL-2.0

//! Memory control groups: who pays for memory.
//!
//! An allocation with GFP_KERNEL_ACCOUNT is charged to the group of the task that makes it. Memory that
//! is taken late, by whoever happens to need it first, shall be charged to the group that it was meant
//! for from the start: a [`MemoryCgroup`] remembers that one, and [`MemoryCgroup::charge`] lets it pay.
//!
//! C header: [`include/linux/memcontrol.h`](srctree/include/linux/memcontrol.h),
//! [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h).
//! Upstream: a type in `rust/kernel/mm`.

use super::bindings as local;
use kernel::bindings;

/// A memory control group, or none where the kernel has no such groups.
///
/// # Invariants
///
/// The pointer is null, or that of a group on which this value owns a reference.
pub struct MemoryCgroup(*mut bindings::mem_cgroup);

// SAFETY: Groups are counted and may be used and given back from any task.
unsafe impl Send for MemoryCgroup {}

// SAFETY: The group is only compared and charged, which has locks of its own.
unsafe impl Sync for MemoryCgroup {}

impl MemoryCgroup {
    /// Returns the group that pays for the calling task.
    pub fn of_caller() -> Self {
        // SAFETY: The function looks at the calling task and takes a reference.
        // INVARIANT: The reference is ours.
        Self(unsafe { local::vidmm_caller_mem_cgroup() })
    }

    /// Runs `task`; what it allocates with GFP_KERNEL_ACCOUNT is charged to this group.
    pub fn charge<R>(&self, task: impl FnOnce() -> R) -> R {
        // SAFETY: By the type invariants the group is alive; it is in force in this task until the next
        // call alone, and the borrow of `self` lasts longer.
        let before = unsafe { local::vidmm_set_active_memcg(self.0) };
        let result = task();

        // SAFETY: What was in force before is in force again. Its owner keeps it alive: that call is
        // further out on this task's stack.
        unsafe { local::vidmm_set_active_memcg(before) };
        result
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the reference is ours; null is permitted.
        unsafe { local::vidmm_mem_cgroup_put(self.0) }
    }
}
