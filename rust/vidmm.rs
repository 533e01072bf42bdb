// SPDX-License-Identifier: GPL-2.0

//! vidmm: the WDDM video memory manager as a Linux driver.
//!
//! This file is the root of the crate: it names the rooms, sets the lints that hold them apart, and
//! wires them together. Requests come in through [`uapi`], live in [`object`], are decided by
//! [`policy`] and executed by a [`backend`]; everything that is `unsafe` is in [`abstractions`].
//! Arrows between rooms point down, see `Documentation/overview.rst`.

#![deny(unsafe_code)]
#![deny(missing_docs)]
// The interface mirror and the policy are compiled for the host too, where their items are public.
#![allow(unreachable_pub)]

pub(crate) mod abstractions;
pub(crate) mod backend;
pub(crate) mod debugfs;
pub(crate) mod object;
// Compiled for the host too, where its tests look at more of it than the driver does.
#[allow(dead_code, unused_imports)]
pub(crate) mod policy;
pub(crate) mod uapi;
pub(crate) mod units;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::{
        misc_device::Registration,
        params, //
    },
    backend::{
        software::Engine,
        Backend, //
    },
    object::adapter::Attached,
    uapi::file::File,
};

module! {
    type: Vidmm,
    name: "vidmm",
    authors: ["The vidmm authors"],
    description: "Video memory manager",
    license: "GPL",
}

/// The loaded module. Fields are dropped in the order of declaration: first the door closes, then
/// the windows, then the adapter goes.
struct Vidmm {
    _door: Pin<KBox<Registration<File>>>,
    _windows: debugfs::Windows,
    _adapter: Attached,
}

impl kernel::Module for Vidmm {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let parameters = params::read();
        let backend: Arc<dyn Backend> = Engine::new(&parameters)?;
        let adapter = Attached::new(0, backend)?;
        let windows = debugfs::Windows::new(adapter.adapter())?;
        let door = KBox::pin_init(
            Registration::new(c"vidmm", adapter.adapter().clone()),
            GFP_KERNEL,
        )?;
        Ok(Self {
            _door: door,
            _windows: windows,
            _adapter: adapter,
        })
    }
}
