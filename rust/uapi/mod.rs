// SPDX-License-Identifier: GPL-2.0

//! The door: integers become requests, replies become integers.
//!
//! A program opens the device node and makes calls on it. Each call takes the same way: [`dispatch`]
//! finds it in the table of [`calls`], copies its argument in and checks what can be checked without
//! knowing more; the handler, in the file of its family, decodes what is left, resolves handles with
//! [`handle`], and asks the objects; what they answer is encoded and copied out. This room decides
//! nothing about memory and keeps no state but the handles.
//!
//! What enters here: addresses in user memory, handles, numbers of the interface. What does not:
//! segments' contents, residency, scheduling. Nothing below this room sees a handle or a user
//! address, and after a handler has decoded its argument nothing is raw any more.

pub(crate) mod abi;

mod address_space;
mod allocation;
mod budget;
mod calls;
mod close;
mod context;
mod device;
mod dispatch;
mod events;
mod fdinfo;
mod fence;
pub(crate) mod file;
mod handle;
mod list;
mod lock;
mod mmap;
mod name;
mod offer;
mod paging_queue;
mod query;
mod residency;
mod scanout;
mod submission;
mod virtual_submission;
