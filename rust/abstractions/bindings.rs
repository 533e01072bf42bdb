// SPDX-License-Identifier: GPL-2.0

//! Symbols that `kernel::bindings` does not know.
//!
//! Two kinds: functions that the kernel exports without being in the headers of the kernel crate's
//! bindings, and the wrappers of `rust/helpers/helpers.c`, which stand for macros and inline
//! functions. A declaration here leaves the day the kernel crate has it.
//!
//! C headers: [`include/linux/cma.h`](srctree/include/linux/cma.h),
//! [`include/linux/dma-map-ops.h`](srctree/include/linux/dma-map-ops.h),
//! [`include/linux/oom.h`](srctree/include/linux/oom.h),
//! [`include/linux/shmem_fs.h`](srctree/include/linux/shmem_fs.h),
//! [`include/linux/crc32c.h`](srctree/include/linux/crc32c.h).

// Empty lock types of the kernel make its structures "improper".
#![allow(improper_ctypes)]

use kernel::{
    bindings,
    ffi, //
};

/// The contiguous memory area of the kernel; opaque.
#[repr(C)]
pub(super) struct Cma {
    _opaque: [u8; 0],
}

extern "C" {
    /// Returns the contiguous area of a device, or the default one for a null device. May be null.
    #[cfg(CONFIG_DMA_CMA)]
    pub(super) fn dev_get_cma_area(device: *mut bindings::device) -> *mut Cma;

    /// Takes `count` contiguous pages, aligned to `2^align` pages, or returns null.
    #[cfg(CONFIG_DMA_CMA)]
    pub(super) fn cma_alloc(
        area: *mut Cma,
        count: ffi::c_ulong,
        align: ffi::c_uint,
        no_warn: bool,
    ) -> *mut bindings::page;

    /// Gives pages back; false if they do not belong to the area.
    #[cfg(CONFIG_DMA_CMA)]
    pub(super) fn cma_release(
        area: *mut Cma,
        pages: *const bindings::page,
        count: ffi::c_ulong,
    ) -> bool;

    /// Continues the CRC-32C `crc` over `length` bytes.
    pub(super) fn crc32c(crc: u32, data: *const ffi::c_void, length: usize) -> u32;

    pub(super) fn vidmm_page_to_pfn(page: *const bindings::page) -> u64;
    pub(super) fn vidmm_pfn_to_page(pfn: u64) -> *mut bindings::page;
    pub(super) fn vidmm_pfn_to_virtual(pfn: u64) -> *mut ffi::c_void;
    pub(super) fn vidmm_pfn_valid(pfn: u64) -> bool;
    pub(super) fn vidmm_cond_resched();
    pub(super) fn vidmm_need_resched() -> bool;
    pub(super) fn vidmm_signal_pending() -> bool;
    pub(super) fn vidmm_fatal_signal_pending() -> bool;
    pub(super) fn vidmm_fault_may_retry(fault: *const bindings::vm_fault) -> bool;
    pub(super) fn vidmm_release_fault_lock(fault: *mut bindings::vm_fault);
    pub(super) fn vidmm_caller_mem_cgroup() -> *mut bindings::mem_cgroup;
    pub(super) fn vidmm_set_active_memcg(
        group: *mut bindings::mem_cgroup,
    ) -> *mut bindings::mem_cgroup;
    pub(super) fn vidmm_mem_cgroup_put(group: *mut bindings::mem_cgroup);

    /// Returns a page of a tmpfs file, read back from swap if need be, with a reference.
    pub(super) fn shmem_read_mapping_page_gfp(
        mapping: *mut bindings::address_space,
        index: ffi::c_ulong,
        flags: bindings::gfp_t,
    ) -> *mut bindings::page;

    /// Adds to those who are told that the system is out of memory.
    pub(super) fn register_oom_notifier(block: *mut bindings::notifier_block) -> ffi::c_int;

    /// Takes it out, and waits for calls that are running.
    pub(super) fn unregister_oom_notifier(block: *mut bindings::notifier_block) -> ffi::c_int;

    pub(super) fn vidmm_has_swap() -> bool;
    pub(super) fn vidmm_swap_file(name: *const ffi::c_char, bytes: i64) -> *mut bindings::file;
    pub(super) fn vidmm_mapping_set_unevictable(mapping: *mut bindings::address_space);
    pub(super) fn vidmm_mapping_clear_unevictable(mapping: *mut bindings::address_space);
    pub(super) fn vidmm_pfn_to_folio(pfn: u64) -> *mut bindings::folio;
}
