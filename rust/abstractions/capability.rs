// SPDX-License-Identifier: GPL-2.0

//! What the calling task may do beyond others.
//!
//! A privileged call asks for one capability of the task that makes it. Asking marks the task as
//! having used super-user rights, so ask last, after all other checks have passed.
//!
//! C header: [`include/linux/capability.h`](srctree/include/linux/capability.h).
//! Upstream: `rust/kernel/cred.rs`.

use kernel::{
    bindings,
    ffi, //
};

/// Returns whether the task has the capability in the initial user namespace.
fn capable(number: u32) -> bool {
    // CAST: Capability numbers are below 64.
    let number = number as ffi::c_int;

    // SAFETY: The function acts on `current` alone and knows every number below `CAP_LAST_CAP`.
    unsafe { bindings::capable(number) }
}

/// Returns whether the calling task may raise priorities (CAP_SYS_NICE).
pub fn sys_nice() -> bool {
    capable(bindings::CAP_SYS_NICE)
}

/// Returns whether the calling task administrates the system (CAP_SYS_ADMIN).
pub fn sys_admin() -> bool {
    capable(bindings::CAP_SYS_ADMIN)
}

/// Returns whether the calling task may see what others use (CAP_PERFMON or CAP_SYS_ADMIN).
pub fn perfmon() -> bool {
    capable(bindings::CAP_PERFMON) || sys_admin()
}
