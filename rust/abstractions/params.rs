// SPDX-License-Identifier: GPL-2.0

//! Module parameters: what was said when the module was loaded.
//!
//! [`read`] returns all of them as options: [`None`] is what was not given, so that a profile can
//! choose all values and each parameter override one. The values are as the loader parsed them;
//! whether they make sense is for their reader to say.
//!
//! They are declared in `rust/helpers/params.c`, since the module macro of the kernel crate has
//! neither strings nor numbers that know whether they were given. The values are set before the module
//! starts and never change.
//!
//! C header: [`include/linux/moduleparam.h`](srctree/include/linux/moduleparam.h).
//! Upstream: `rust/kernel/module_param.rs`.

use kernel::{
    ffi,
    prelude::*, //
};

/// Mirror of `struct vidmm_number`.
#[repr(C)]
struct Number {
    value: u64,
    given: bool,
}

/// Declares the parameters that are numbers: the mirror of the C side, and what readers get.
macro_rules! parameters {
    (
        strings { $($(#[$string_doc:meta])* $string:ident,)+ }
        numbers { $($(#[$number_doc:meta])* $number:ident: $type:ident,)+ }
    ) => {
        /// Mirror of `struct vidmm_parameters`.
        ///
        /// # Invariants
        ///
        /// The strings are null or end in NUL, and stay until the module is unloaded.
        #[repr(C)]
        struct Raw {
            $($string: *const ffi::c_char,)+
            $($number: Number,)+
        }

        /// The parameters that were given.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Parameters {
            $($(#[$string_doc])* pub $string: Option<&'static CStr>,)+
            $($(#[$number_doc])* pub $number: Option<$type>,)+
        }

        impl From<&'static Raw> for Parameters {
            fn from(raw: &'static Raw) -> Self {
                Self {
                    $($string: string(raw, raw.$string),)+
                    $($number: raw.$number.given.then_some(number!(raw.$number.value, $type)),)+
                }
            }
        }
    };
}

/// Narrows a value to the type that its parser checked.
macro_rules! number {
    ($value:expr, bool) => {
        $value != 0
    };
    ($value:expr, u64) => {
        $value
    };
    // CAST: Parsed as a `u32`.
    ($value:expr, u32) => {
        $value as u32
    };
}

parameters! {
    strings {
        /// `soft`, `virtio-gpu` or `auto`.
        backend,
        /// Name of a profile.
        profile,
        /// List of segments.
        segments,
        /// List of nodes.
        nodes,
    }

    numbers {
        /// Page-table levels, 0 for no GPU MMU.
        levels: u32,
        /// 0 GPU_VIRTUAL, 1 GPU_PHYSICAL, 2 CPU_VIRTUAL.
        update_mode: u32,
        /// Segment of client page tables.
        client_tables: u32,
        /// Segment of the paging process's page tables.
        paging_tables: u32,
        /// Nodes save and restore contexts.
        save_restore: bool,
        /// Nodes can be preempted.
        preemption: bool,
        /// Page tables have zero entries.
        zero_pages: bool,
        /// Translation caches may hold invalid translations.
        tlb_holds_invalid: bool,
        /// Binding slots of a patched buffer.
        slots: u32,
        /// Node of companion contexts.
        companion: u32,
        /// Software display sources.
        sources: u32,
        /// Bytes of the scratch area.
        scratch: u64,
        /// Bytes of one paging buffer.
        paging_buffer: u64,
        /// Bytes that the backend keeps in the paging process's space.
        reserve_va: u64,
        /// Time limit of one portion.
        timeout_ms: u32,
        /// Translations that one node remembers.
        tlb_entries: u32,
        /// Seed of the random delays.
        seed: u64,
        /// Upper bound of the random delay before each packet.
        delay_us: u32,
        /// The engine checks every physical access.
        self_check: bool,
    }
}

extern "C" {
    /// Defined in `params.c`.
    static vidmm_parameters: Raw;
}

// SAFETY: Plain data that nobody writes while the module runs.
unsafe impl Sync for Raw {}

/// Returns the parameters.
pub fn read() -> Parameters {
    // SAFETY: Written by the loader of the module alone, before any of its code runs: the parameters
    // are read-only in sysfs.
    let raw = unsafe { &vidmm_parameters };

    Parameters::from(raw)
}

/// Returns a string of `_raw`, or [`None`] when it was not given.
fn string(_raw: &'static Raw, text: *const ffi::c_char) -> Option<&'static CStr> {
    if text.is_null() {
        return None;
    }

    // SAFETY: By the type invariants of `Raw` the string ends in NUL and stays.
    Some(unsafe { CStr::from_char_ptr(text) })
}
