// SPDX-License-Identifier: GPL-2.0

//! Safe access to `/dev/vidmm`.
//!
//! Objects form a tree: an [`Adapter`] is an open file, a [`Device`] is made by an adapter, and
//! allocations, contexts, paging queues and fences are made by a device. Each owns its handle and
//! closes it on drop; each keeps the file open, so that no order of drops is wrong.
//!
//! ```no_run
//! use libvidmm::{allocation, commands::{Area, Commands}, context, Adapter, Deadline};
//!
//! # fn main() -> libvidmm::Result<()> {
//! let adapter = Adapter::open("/dev/vidmm")?;
//! let device = adapter.create_device()?;
//! let picture = allocation::Builder::new(4096)
//!     .cpu_visible()
//!     .accessed_physically()
//!     .create(&device)?;
//!
//! let context = context::Builder::new(2).create(&device)?;
//! let mut commands = Commands::new(adapter.info()?.patch_slots);
//! commands.fill(picture.at(0), 0xff00_ff00, Area { pitch: 256, width: 256, height: 16 });
//! let id = context.submission(commands.finish()).submit()?.id;
//! context.wait(id, Deadline::FOREVER)?;
//!
//! assert_eq!(picture.lock(libvidmm::Access::READ)?.read32(0), 0xff00_ff00);
//! # Ok(())
//! # }
//! ```
//!
//! Unsafe code lives in [`ioctl`] and [`mapping`] alone.

#![deny(missing_docs, unsafe_code)]

#[path = "../../../rust/uapi/abi/mod.rs"]
pub mod abi;

pub mod adapter;
pub mod allocation;
pub mod budget;
pub mod commands;
pub mod context;
pub mod device;
pub mod error;
pub mod events;
pub mod fence;
mod handle;
#[allow(unsafe_code)]
pub mod ioctl;
pub mod lock;
#[allow(unsafe_code)]
pub mod mapping;
pub mod offer;
pub mod paging_queue;
pub mod scanout;
pub mod submission;
pub mod time;

pub use adapter::Adapter;
pub use allocation::Allocation;
pub use budget::{
    Group,
    StatusPage, //
};
pub use context::Context;
pub use device::Device;
pub use error::{
    Blame,
    Errno,
    Error,
    Result, //
};
pub use fence::Fence;
pub use lock::{
    Access,
    Guard, //
};
pub use mapping::Mapping;
pub use paging_queue::PagingQueue;
pub use scanout::Scanout;
pub use submission::Submission;
pub use time::Deadline;
