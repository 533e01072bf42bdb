// SPDX-License-Identifier: GPL-2.0

//! Lists and points: the two 16-byte records that other structures embed.
//!
//! A list is an address, a count and a stride; the stride lets an element grow the way an argument
//! does. The kernel copies a list once and works on the copy. A point names a value of a fence.

// Lists. Special values of `Array`, and of every field that names an element of one.

/// `stride` of a plain list of `u32` handles, and the least one that is accepted.
pub const HANDLE_STRIDE: u32 = 4;
/// Value of `fail_index` on success, and when no single element is to blame.
pub const FAIL_INDEX_NONE: u32 = u32::MAX;

/// A list of elements in user memory.
///
/// The size rules of an argument hold for every element, with `stride` in the place of the size in
/// the command. A `count` of 0 with `ptr` 0 is an empty list; `count` 0 with `ptr` set is `EINVAL`,
/// `ptr` 0 with `count` set is `EFAULT`. `stride` is a multiple of 8, or of 4 when the element has
/// no 64-bit field. Counts are checked against the limits of `InfoLimits` before any memory is
/// taken (`EINVAL`); products and sums are checked for overflow (`EOVERFLOW`). No list points to
/// another list.
///
/// An empty list is `EINVAL` where the list is what the call is for: CLOSE, ALLOC_CREATE,
/// ALLOC_QUERY, SET_PRIORITY, MAKE_RESIDENT, EVICT, OFFER, RECLAIM, VA_UPDATE, FENCE_SIGNAL,
/// FENCE_WAIT.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Array {
    /// in: user address of the first element; 0 only when `count` is 0.
    pub ptr: u64,
    /// in: number of elements.
    pub count: u32,
    /// in: bytes per element as the caller knows it; at least the first published element size,
    /// `HANDLE_STRIDE` for plain handle lists.
    pub stride: u32,
}

layout!(Array, size 16, {
    ptr: 0,
    count: 8,
    stride: 12,
});

/// A value of a fence, to be waited for or signalled.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// in: fence handle.
    pub fence: u32,
    /// in: must be zero.
    pub flags: u32,
    /// in: fence value.
    pub value: u64,
}

layout!(Point, size 16, first 16, {
    fence: 0,
    flags: 4,
    value: 8,
});
