// SPDX-License-Identifier: GPL-2.0

//! Packets that only the kernel writes: paging operations.
//!
//! The core says what shall happen to which memory in the vocabulary of
//! [`operation`](crate::backend::operation). Here the words are encoded into buffers
//! ([`encoding`]) and carried out, from a buffer on a node or at once ([`execution`]). What an
//! operation costs beside the bytes themselves does not depend on how many pages it covers; the
//! aperture's table, with one entry for each page, is the exception.
//!
//! The encoding is no contract with anyone.

mod encoding;
mod execution;

pub(in crate::backend) use self::encoding::build;
pub(super) use self::{
    encoding::SMALLEST_BUFFER,
    execution::{
        Discarded,
        Executor,
        Halt,
        Space, //
    }, //
};
