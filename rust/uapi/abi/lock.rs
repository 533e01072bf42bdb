// SPDX-License-Identifier: GPL-2.0

//! CPU access: LOCK, UNLOCK.
//!
//! A lock orders the CPU with queued work and may give another instance. It does not pin: the
//! mapping follows the memory.

// LOCK flags. Bits of `flags` in `Lock`. At least one of READ, WRITE, DISCARD, NO_OVERWRITE is set;
// DISCARD means writing and excludes READ and NO_OVERWRITE (`EINVAL`).

/// Waits for GPU writes to the current instance.
pub const LOCK_READ: u32 = 1 << 0;
/// Waits for all GPU use of the current instance.
pub const LOCK_WRITE: u32 = 1 << 1;
/// Gives an instance that no queued work uses, contents undefined but never those of another
/// client. Needs `FEATURE_RENAME`.
pub const LOCK_DISCARD: u32 = 1 << 2;
/// Waits for nothing; the caller promises to touch only bytes that no queued work uses.
pub const LOCK_NO_OVERWRITE: u32 = 1 << 3;
/// Fails with `EAGAIN` where the call would wait; `deadline_ns` must be 0.
pub const LOCK_DO_NOT_WAIT: u32 = 1 << 4;

// LOCK results. Bits of `result` in `Lock`.

/// The instance is another one than before.
pub const LOCK_RESULT_RENAMED: u32 = 1 << 0;
/// The call had to wait.
pub const LOCK_RESULT_WAITED: u32 = 1 << 1;
/// The instance is handed out for the first time.
pub const LOCK_RESULT_FIRST_USE: u32 = 1 << 2;
/// DISCARD waited like WRITE: the allocation is not RENAMABLE, is PINNED, or has a GPU virtual
/// address mapping.
pub const LOCK_RESULT_NOT_RENAMABLE: u32 = 1 << 3;

/// Argument of LOCK.
///
/// Locks nest and do not pin; the mapping follows the memory. A range outside the allocation is
/// `EINVAL`.
///
/// Also: `EAGAIN` (DO_NOT_WAIT), `ETIME`, `EBUSY` (offered), `EACCES` (WRITE on a read-only
/// import), `EOPNOTSUPP` (not mappable).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// in: allocation handle.
    pub alloc: u32,
    /// in: LOCK flags.
    pub flags: u32,
    /// in: first byte that will be touched.
    pub offset: u64,
    /// in: bytes that will be touched, 0 means to the end.
    pub length: u64,
    /// in: absolute CLOCK_MONOTONIC; `WAIT_FOREVER` waits for ever, 0 polls (`ETIME`); must be 0
    /// with `LOCK_DO_NOT_WAIT` (`EAGAIN`).
    pub deadline_ns: i64,
    /// out: instance to touch.
    pub instance: u32,
    /// out: LOCK results.
    pub result: u32,
    /// out: mapping offset of that instance.
    pub mmap_offset: u64,
    /// out: goes up by one with each rename of this allocation.
    pub generation: u64,
}

layout!(Lock, size 56, first 56, {
    alloc: 0,
    flags: 4,
    offset: 8,
    length: 16,
    deadline_ns: 24,
    instance: 32,
    result: 36,
    mmap_offset: 40,
    generation: 48,
});

/// Argument of UNLOCK.
///
/// The written range tells the kernel what is newer in CPU memory; it is not a synchronisation.
/// `EINVAL` if not locked.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unlock {
    /// in: allocation handle.
    pub alloc: u32,
    /// in: instance returned by LOCK.
    pub instance: u32,
    /// in: first byte written, 0 with `length` 0 if nothing was written.
    pub offset: u64,
    /// in: bytes written.
    pub length: u64,
    /// in: must be zero.
    pub flags: u32,
    /// in: must be zero.
    pub pad: u32,
}

layout!(Unlock, size 32, first 32, {
    alloc: 0,
    instance: 4,
    offset: 8,
    length: 16,
    flags: 24,
    pad: 28,
});
