// SPDX-License-Identifier: GPL-2.0

//! The engine's side of a context: its registers, and whether it is stopped.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        SpinLock, //
    }, //
};

use core::any::Any;

use crate::{
    backend::{
        ContextDescription,
        EngineContext,
        Root, //
    },
    uapi::abi::engine as abi, //
};

/// The registers of a context.
pub(super) type Registers = [u64; abi::REGISTERS];

/// What registers hold that were not saved (engine.md, registers).
pub(super) const POISONED: Registers = [abi::REGISTER_POISON; abi::REGISTERS];

/// A context of the software engine.
#[pin_data]
pub(super) struct Context {
    /// What it was created from.
    description: ContextDescription,
    /// Whether its buffers shall end.
    stopped: Atomic<bool>,
    /// The root of its address space.
    ///
    /// Leaf lock.
    #[pin]
    root: SpinLock<Option<Root>>,
    /// Registers, while no portion of it runs.
    ///
    /// Leaf lock.
    #[pin]
    registers: SpinLock<Registers>,
}

impl Context {
    /// Returns an initialiser of a context whose registers are zero.
    pub(super) fn new(description: ContextDescription) -> impl PinInit<Self> {
        pin_init!(Self {
            description,
            stopped: Atomic::new(false),
            root <- new_spinlock!(None, "vidmm::Context::root"),
            registers <- new_spinlock!([0; abi::REGISTERS], "vidmm::Context::registers"),
        })
    }

    /// Returns whether its buffers shall end.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Returns the root of its address space, if it has one.
    pub(super) fn root(&self) -> Option<Root> {
        *self.root.lock()
    }

    /// Lets it work in the address space below `root`.
    pub(super) fn set_root(&self, root: Root) {
        *self.root.lock() = Some(root);
    }

    /// Returns the registers as the last portion left them.
    pub(super) fn registers(&self) -> Registers {
        *self.registers.lock()
    }

    /// Keeps the registers for the next portion.
    pub(super) fn save(&self, registers: &Registers) {
        *self.registers.lock() = *registers;
    }
}

impl EngineContext for Context {
    fn number(&self) -> u64 {
        self.description.number
    }

    fn process(&self) -> u64 {
        self.description.process
    }

    fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
