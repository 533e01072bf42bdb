// SPDX-License-Identifier: GPL-2.0

//! The cellar: every unsafe line of the driver, one C facility per file.
//!
//! A file here wraps one facility of the kernel that the kernel crate does not offer yet, names its
//! C header, and says where upstream it could move one day. What it hands out is safe: a caller who
//! compiles cannot break memory safety with it. Reasons of unsafe blocks are type invariants,
//! contracts of callers, or a lock or borrow in scope, and nothing else.
//!
//! What enters here: mechanism. What does not: video memory, policy, meaning. Two files know names of
//! the driver, because their business is names: `trace` and `params`; one, `bytes`, knows the
//! structures of the interface, because it vouches for them being plain bytes.

#![allow(unsafe_code)]
// Each stage of the driver uses a part of what the facilities offer.
#![allow(dead_code)]

mod bindings;

pub mod bytes;
pub mod capability;
pub mod clock;
pub mod eventfd;
pub mod mapping_anchor;
pub mod memory;
pub mod memory_cgroup;
pub mod misc_device;
pub mod oom;
pub mod pages;
pub mod params;
pub mod poll;
pub mod scheduling;
pub mod shmem;
pub mod shrinker;
pub mod trace;
pub mod vm_area;
pub mod wait_queue;
pub mod work;

#[cfg(CONFIG_KUNIT)]
mod tests;
