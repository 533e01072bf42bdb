// SPDX-License-Identifier: GPL-2.0

//! The living things: state, lifetimes, locks.
//!
//! What enters here are requests in which nothing is raw any more: handles are references, lists are
//! copies, flags are types. What leaves are values and small errors. Only this room sees both the
//! policy, which it asks, and the backend, which it lets work; it never sees user memory.
//!
//! # Who holds whom
//!
//! ```text
//! module -> Attached -> Adapter -> backend, Worker, Line, registries
//! handle, submission, command, mapping -> Hold -> Allocation -> Device -> Client -> Adapter
//! Context -> Device;  PagingQueue -> Device, Fence;  Submission -> Context, Holds, Fences
//! Worker -> Adapter (until it is out of service)
//! Adapter -> Source -> Hold, Client (while it shows something)
//! ```
//!
//! Registries, the order of use and the contexts of a device point back; each of them is cleared when
//! its object is closed.
//!
//! # Lock order, outermost first
//!
//! | rank | lock | protects |
//! |---|---|---|
//! | 0 | `Worker::desk` (mutex) | what the worker has before it |
//! | 0 | `Budgets::members` (mutex) | who shares budgets; never together with the one above |
//! | 1 | `Adapter::residency` (mutex) | occupancy of the segments, every change of a place |
//! | 1 | `Device::demands` (mutex) | residency requirement list; never together with the one above |
//! | 2 | `Allocation::residence` (mutex) | where one allocation is; CPU translations of it |
//! | 3 | `HostAperture::window` (mutex) | which page of a CPU window shows what |
//! | 4 | `AddressSpace::mappings` (mutex) | what is mapped at the addresses of a client |
//! | 4 | `ClientTables::inner` (mutex) | which tables a client has, and where; never together with the one above |
//! | 5 | `PagingQueue::last`, `Context::inner`, `Device::state`, `Device::contexts` (spinlocks) | order of requests |
//! | 6 | `Worker::inbox` (spinlock) | what has arrived for the worker |
//! | 7 | `Fence::inner` (spinlock) | value and waiters |
//! | leaf | registries, offsets, records, watched nodes, names, pools, turns of clients (spinlocks) | one list or value each |

mod acceptance;
pub(crate) mod adapter;
pub(crate) mod address_space;
pub(crate) mod allocation;
mod backing;
pub(crate) mod budget;
pub(crate) mod client;
pub(crate) mod client_tables;
mod command;
pub(crate) mod context;
pub(crate) mod cpu_access;
pub(crate) mod demand;
pub(crate) mod device;
pub(crate) mod events;
pub(crate) mod fence;
pub(crate) mod fence_page;
pub(crate) mod fence_wait;
pub(crate) mod fixed;
pub(crate) mod host_aperture;
pub(crate) mod inject;
pub(crate) mod lock;
pub(crate) mod name;
mod need;
pub(crate) mod node_load;
pub(crate) mod offer;
pub(crate) mod offsets;
pub(crate) mod order;
pub(crate) mod page_table;
pub(crate) mod paging;
pub(crate) mod paging_process;
pub(crate) mod paging_queue;
pub(crate) mod placement;
mod presence;
pub(crate) mod reclaim;
pub(crate) mod registry;
pub(crate) mod residence;
pub(crate) mod residency;
pub(crate) mod scanout;
mod scheduler;
pub(crate) mod segment;
pub(crate) mod standing;
pub(crate) mod statistics;
pub(crate) mod status_page;
pub(crate) mod submission;
#[cfg(CONFIG_KUNIT)]
mod tests;
pub(crate) mod virtual_submission;
pub(crate) mod watchdog;
pub(crate) mod worker;
