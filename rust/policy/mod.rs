// SPDX-License-Identifier: GPL-2.0

//! Decisions.
//!
//! Which pages an allocation gets, who leaves to make room, whether a request could ever be met,
//! whether a command buffer touches only what its lists name. A decision is a function of a
//! description and answers with a plain value; objects describe, and apply the answer. Nothing here
//! has locks, clocks, kernel types or unsafe code, nothing fails for want of memory because callers
//! lend the buffers, and everything is compiled and tested on a host too (`tools/policy`).
//!
//! May enter: `core`, [`crate::units`]. May not: any other room.
//!
//! | file | question |
//! |---|---|
//! | [`placement`] | which pages; which segments in which order |
//! | [`eviction`] | who leaves |
//! | [`host_aperture`] | who has the pages of a CPU window, who gives one up |
//! | [`mapping`] | what is mapped and reserved where, what a request may replace |
//! | [`stale`] | which addresses have entries that are out of date |
//! | [`page_table`] | which tables and entries translate a range |
//! | [`budget`] | how much each user of a segment group may keep |
//! | [`picture`] | how the picture of a primary lies in its memory |
//! | [`residency`] | could all of this be in memory at once |
//! | [`paging_space`] | what lies where in the address space of the paging process |
//! | [`patching`] | is every operand covered, inside its allocation and bound |
//! | [`scratch`] | which addresses paging work goes through, and when they are free again |
//! | [`sharing`] | whose work goes to a node next |
//! | [`splitting`] | how far a buffer can run before it must be cut, and where everything lies meanwhile |
//!
//! # Why the pages of a segment are not kept by the kernel's GPU buddy allocator
//!
//! `gpu_buddy` allocates a descriptor (`GFP_KERNEL`) for each half of each block that it splits.
//! Placement happens in the worker, under the residency lock, often because memory is short:
//! paging that had to allocate there could wait for the reclaim that waits for paging. Here all
//! memory is lent when the segment is made, and giving out pages cannot fail for another reason
//! than that there are none.
//!
//! A buddy over lent bitmaps would do for that, but it rounds sizes up and sees only aligned
//! blocks. Engines in physical mode need one run of whatever length, and what the interface
//! promises about room ([`residency`]) is exact: lists of 1, 3 and 12 pages fit into 16. So
//! [`placement`] keeps runs, not blocks. A tree over the bitmap finds the lowest or highest run of
//! any length in O(log n) and always knows the longest one.

#![forbid(unsafe_code)]

pub mod budget;
mod duplicates;
pub mod eviction;
mod free_runs;
pub mod heap_sort;
pub mod host_aperture;
pub mod mapping;
pub mod page_table;
pub mod paging_space;
mod patch_list;
pub mod patching;
pub mod picture;
pub mod placement;
mod preference;
mod range_tree;
pub mod residency;
mod resource_table;
mod run_tree;
pub mod scratch;
pub mod sharing;
pub mod splitting;
pub mod stale;
mod tree_update;
mod window;
