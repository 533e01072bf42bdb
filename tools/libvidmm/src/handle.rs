// SPDX-License-Identifier: GPL-2.0

//! Handles: names of objects in one open file, closed when their owner is dropped.

use std::os::fd::{
    AsFd,
    BorrowedFd,
    OwnedFd, //
};
use std::sync::Arc;

use crate::{
    abi,
    ioctl::{
        call,
        Request, //
    },
    Result, //
};

/// An open file of an adapter, shared by all objects that were made through it.
#[derive(Clone, Debug)]
pub(crate) struct File(Arc<OwnedFd>);

impl File {
    /// Shares an open descriptor.
    pub(crate) fn new(descriptor: OwnedFd) -> Self {
        Self(Arc::new(descriptor))
    }

    /// Returns the descriptor.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Carries out a request that points to no memory.
    pub(crate) fn call<'a, R>(&self, mut argument: R) -> Result<R>
    where
        R: Request<Lists<'a> = ()> + 'a,
    {
        call(self.fd(), &mut argument, ())?;
        Ok(argument)
    }

    /// Carries out a request that points to `lists`.
    pub(crate) fn call_with<R: Request>(&self, mut argument: R, lists: R::Lists<'_>) -> Result<R> {
        call(self.fd(), &mut argument, lists)?;
        Ok(argument)
    }
}

/// A handle that its object owns.
#[derive(Debug)]
pub(crate) struct Handle {
    file: File,
    value: u32,
}

impl Handle {
    /// Takes over a handle that a call has just returned.
    pub(crate) fn new(file: &File, value: u32) -> Self {
        Self {
            file: file.clone(),
            value,
        }
    }

    /// Returns the file that the handle belongs to.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the number.
    pub(crate) fn value(&self) -> u32 {
        self.value
    }

    /// Closes the handle and says how that went.
    pub(crate) fn close(mut self, flags: u32) -> Result<()> {
        let value = std::mem::take(&mut self.value);
        let argument = abi::Close {
            flags,
            ..Default::default()
        };
        self.file.call_with(argument, &[value]).map(|_| ())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.value != 0 {
            // A handle can be gone already: closing a device closes what it owns.
            let _ = self.file.call_with(abi::Close::default(), &[self.value]);
        }
    }
}
