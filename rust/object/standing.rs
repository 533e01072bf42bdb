// SPDX-License-Identifier: GPL-2.0

//! Where the page tables of an address space begin.
//!
//! Contexts are told their root before they are scheduled first, and again when it has changed, while
//! they do not run (VA-12). Those that know a root are told here, when the worker brings another one into
//! force; the others when their work is handed to a node ([`super::scheduler`]).

use kernel::{
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

use crate::object::{
    adapter::Adapter,
    context::Mode, //
};

pub(crate) use crate::backend::page_table::Root;

/// The root of a space.
#[pin_data]
pub(crate) struct Standing {
    /// Leaf lock.
    #[pin]
    root: SpinLock<Option<Root>>,
}

impl Standing {
    /// Returns that of a space without tables.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            root <- new_spinlock!(None, "Standing::root"),
        })
    }

    /// Returns the root; [`None`] as long as it has no place.
    pub(crate) fn root(&self) -> Option<Root> {
        *self.root.lock()
    }

    /// Lets the space of the client `process` begin at `root` from now on; nothing runs in it. Contexts
    /// that knew another root are told.
    pub(super) fn relocate(&self, adapter: &Adapter, process: u64, root: Root) {
        *self.root.lock() = Some(root);
        let contexts = &adapter.registries().contexts;
        let _ = contexts.for_each(|context| {
            let client = context.device().client();
            if context.mode() == Mode::Virtual && client.id() == process {
                context.follow(root);
            }
            Ok::<_, Error>(())
        });
    }
}
