// SPDX-License-Identifier: GPL-2.0

//! io_uring with no-ops: what a batch costs that the kernel does nothing for.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use rustix::io_uring::{
    io_uring_cqe,
    io_uring_enter,
    io_uring_params,
    io_uring_setup,
    io_uring_sqe,
    IoringEnterFlags,
    IoringFeatureFlags,
    IoringOp,
    IORING_OFF_SQES,
    IORING_OFF_SQ_RING, //
};
use rustix::mm::{
    mmap,
    munmap,
    MapFlags,
    ProtFlags, //
};

use crate::failure::{
    check,
    Failure,
    Result, //
};

/// A ring whose submission entries are all no-ops.
///
/// # Invariants
///
/// `rings` and `entries` map the queues as the kernel described them in `parameters`.
pub struct Ring {
    fd: OwnedFd,
    parameters: io_uring_params,
    rings: Mapping,
    _entries: Mapping,
}

/// What `mmap` gave.
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    fn new(fd: &OwnedFd, offset: u64, length: usize) -> Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        let anywhere = std::ptr::null_mut();
        // SAFETY: without a wanted address the kernel picks a range that nothing else uses.
        let start = unsafe { mmap(anywhere, length, protection, flags, fd, offset) }?;
        let start = NonNull::new(start.cast()).ok_or(Failure::new("mmap gave nothing"))?;
        Ok(Self { start, length })
    }

    /// Returns the pointer to the value with index `index` of an array at byte `offset`.
    ///
    /// # Panics
    ///
    /// It is not inside.
    fn at<T>(&self, offset: u32, index: usize) -> *mut T {
        let start = offset as usize + index * size_of::<T>();
        assert!(start + size_of::<T>() <= self.length && start % align_of::<T>() == 0);
        // SAFETY: inside the mapping, as just checked.
        unsafe { self.start.as_ptr().add(start).cast() }
    }

    fn counter(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: `at` checked range and alignment; the kernel accesses counters by whole values.
        unsafe { AtomicU32::from_ptr(self.at(offset, 0)) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is this value's own, and nothing borrows it any more.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok(), "munmap of an owned range: {unmapped:?}");
    }
}

impl Ring {
    /// Makes a ring for `entries` no-ops, a power of two.
    pub fn new(entries: u32) -> Result<Self> {
        let mut parameters = io_uring_params::default();
        // SAFETY: no flag asks for memory of ours, and the descriptor is used with its own rings.
        let fd = unsafe { io_uring_setup(entries, &mut parameters) }
            .map_err(|errno| Failure::from(errno).during("io_uring_setup"))?;
        if !parameters
            .features
            .contains(IoringFeatureFlags::SINGLE_MMAP)
        {
            return Err(Failure::new("io_uring: the rings are not one mapping"));
        }
        let array =
            |offset: u32, count: u32, bytes: usize| offset as usize + count as usize * bytes;
        let length = array(
            parameters.sq_off.array,
            parameters.sq_entries,
            size_of::<u32>(),
        )
        .max(array(
            parameters.cq_off.cqes,
            parameters.cq_entries,
            size_of::<io_uring_cqe>(),
        ));
        let rings = Mapping::new(&fd, IORING_OFF_SQ_RING, length)?;
        let length = array(0, parameters.sq_entries, size_of::<io_uring_sqe>());
        let queue = Mapping::new(&fd, IORING_OFF_SQES, length)?;
        for index in 0..parameters.sq_entries {
            let entry = io_uring_sqe {
                opcode: IoringOp::Nop,
                ..Default::default()
            };
            // SAFETY: `at` checked the range; the kernel reads entries after the tail moves.
            unsafe { queue.at::<io_uring_sqe>(0, index as usize).write(entry) };
            // SAFETY: as above.
            unsafe {
                rings
                    .at::<u32>(parameters.sq_off.array, index as usize)
                    .write(index)
            };
        }
        // INVARIANT: mapped with the offsets and lengths in `parameters`.
        Ok(Self {
            fd,
            parameters,
            rings,
            _entries: queue,
        })
    }

    /// Lets the kernel do `count` no-ops.
    pub fn submit(&self, count: u32) -> Result<()> {
        let tail = self.rings.counter(self.parameters.sq_off.tail);
        tail.fetch_add(count, Ordering::Release);
        let flags = IoringEnterFlags::empty();
        // SAFETY: the entries up to the tail are no-ops, which use no memory.
        let taken = unsafe { io_uring_enter(&self.fd, count, 0, flags) }?;
        if taken == count {
            Ok(())
        } else {
            Err(Failure::new(format!("io_uring took {taken} of {count}")))
        }
    }

    /// Takes the completions off the ring, and checks that there are `count` good ones.
    pub fn reap(&self, count: u32) -> Result<()> {
        let head = self.rings.counter(self.parameters.cq_off.head);
        let tail = self.rings.counter(self.parameters.cq_off.tail);
        let (first, end) = (head.load(Ordering::Relaxed), tail.load(Ordering::Acquire));
        let done = end.wrapping_sub(first);
        let mask = self.parameters.cq_entries - 1;
        let mut good = 0;
        for number in 0..done {
            let index = (first.wrapping_add(number) & mask) as usize;
            let entry: *mut io_uring_cqe = self.rings.at(self.parameters.cq_off.cqes, index);
            // SAFETY: `at` checked the range; the kernel wrote it before it moved the tail, and
            // writes there again only after the head has moved.
            let entry = unsafe { &*entry };
            good += u32::from(entry.res == 0);
        }
        head.store(end, Ordering::Release);
        check(good == count, || format!("{good} of {count} no-ops"))
    }
}
