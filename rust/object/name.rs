// SPDX-License-Identifier: GPL-2.0

//! Names that clients give to their objects, for people who read debug files.

use kernel::{
    fmt,
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

/// The longest name, in bytes.
pub(crate) const MAX: usize = 63;

/// A name: printable ASCII without blanks.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    text: [u8; MAX],
    len: u8,
}

impl Name {
    /// Checks and takes a name.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: too long, or a byte that is not printable ASCII, or a blank.
    pub(crate) fn new(bytes: &[u8]) -> Result<Self> {
        if bytes.iter().any(|byte| !byte.is_ascii_graphic()) {
            return Err(EINVAL);
        }
        let mut text = [0; MAX];
        text.get_mut(..bytes.len())
            .ok_or(EINVAL)?
            .copy_from_slice(bytes);
        Ok(Self {
            text,
            // CAST: at most `MAX`, checked above.
            len: bytes.len() as u8,
        })
    }
}

impl Name {
    /// Returns the text.
    pub(crate) fn as_str(&self) -> &str {
        let bytes = self.text.get(..usize::from(self.len)).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an object is called, by people and by its client; nothing else depends on it.
#[pin_data]
pub(crate) struct Slot {
    handle: Atomic<u32>,
    #[pin]
    name: SpinLock<Option<KBox<Name>>>,
}

impl Slot {
    /// Returns a slot without a name.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            handle: Atomic::new(0),
            name <- new_spinlock!(None, "Slot::name"),
        })
    }

    /// Sets or clears the name.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(crate) fn set(&self, name: Option<Name>) -> Result {
        let mut name = match name {
            Some(name) => Some(KBox::new(name, GFP_KERNEL_ACCOUNT)?),
            None => None,
        };
        core::mem::swap(&mut *self.name.lock(), &mut name);
        Ok(())
    }

    /// Notes the handle by which the client knows the object; 0 when it is gone.
    pub(crate) fn set_handle(&self, handle: u32) {
        self.handle.store(handle, Relaxed);
    }

    /// Returns the handle, for the debug files.
    pub(crate) fn handle(&self) -> u32 {
        self.handle.load(Relaxed)
    }

    /// Returns the name.
    pub(crate) fn get(&self) -> Option<Name> {
        self.name.lock().as_deref().copied()
    }
}
