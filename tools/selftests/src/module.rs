// SPDX-License-Identifier: GPL-2.0

//! Loading and unloading the module.
//!
//! Every load sets `self_check`, so that the engine compares each access with what it was given.

use std::{
    ffi::CString,
    fs::File,
    io,
    os::fd::AsRawFd,
    path::Path,
    sync::OnceLock, //
};

use crate::clock;

/// Where the module file is.
static FILE: OnceLock<String> = OnceLock::new();

/// The device node of the first adapter.
pub const NODE: &str = "/dev/vidmm";

/// Says where the module file is; the first word counts.
pub fn set_file(path: &str) {
    let _ = FILE.set(path.to_owned());
}

/// Loads the module and returns the errno of a load that failed.
pub fn try_load(parameters: &str) -> Result<(), i32> {
    let path = FILE.get().map_or("/vidmm.ko", String::as_str);
    let file = File::open(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let words = CString::new(format!("self_check=1 {parameters}")).expect("no zero bytes");
    // SAFETY: the descriptor and the string outlive the call.
    let result =
        unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), words.as_ptr(), 0) };
    if result == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Loads the module and waits for its device node.
///
/// # Panics
///
/// When it does not load.
pub fn load(parameters: &str) {
    try_load(parameters).unwrap_or_else(|errno| {
        panic!(
            "insmod {parameters}: {}",
            io::Error::from_raw_os_error(errno)
        )
    });
    clock::wait_until("the device node appears", node_exists);
}

/// Unloads the module and returns the errno of an unload that failed.
pub fn try_unload() -> Result<(), i32> {
    // SAFETY: the name is a constant string.
    let result =
        unsafe { libc::syscall(libc::SYS_delete_module, c"vidmm".as_ptr(), libc::O_NONBLOCK) };
    if result == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Whether the module is loaded.
pub fn is_loaded() -> bool {
    Path::new("/sys/module/vidmm/initstate").exists()
}

/// Whether the device node of the first adapter exists.
pub fn node_exists() -> bool {
    Path::new(NODE).exists()
}

/// A load of the module that ends with the scope.
pub struct Loaded(());

impl Loaded {
    /// Loads the module.
    pub fn new(parameters: &str) -> Self {
        load(parameters);
        Self(())
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // The last reference of a file may be dropped a moment after its close.
        let unloaded = clock::holds_within(clock::patience(), || try_unload().is_ok());
        if !std::thread::panicking() {
            assert!(unloaded, "the module does not unload");
        }
    }
}
