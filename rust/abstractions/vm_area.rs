// SPDX-License-Identifier: GPL-2.0

//! Memory that programs map and the driver moves.
//!
//! A program maps a range of the device file, and nothing happens: pages come one by one, when they
//! are touched. The kernel then asks the [`Mapping`] behind the area, which looks where the memory is
//! *now* and inserts the number of that page ([`Fault::insert`]). When the memory moves, one call of
//! [`MappingAnchor::unmap`](super::mapping_anchor::MappingAnchor::unmap) removes all entries of all
//! programs, and the next touch asks again.
//!
//! Such areas have no page descriptors to count (VM_PFNMAP): the kernel takes no reference on what is
//! inserted, so the driver keeps the pages until it has unmapped them. Areas are shared, cannot grow,
//! and stay out of core dumps. The mapping is shared by the pieces into which an area is split and by
//! the copies that `fork()` makes; it is dropped with the last of them.
//!
//! # Locking
//!
//! A handler runs with the memory map of the program locked for reading. Whoever moves memory makes
//! the two exclude each other with a mutex of its own: the handler looks up and inserts under it, the
//! mover changes the place and unmaps under it. Order: memory map, that mutex, then the kernel's locks
//! inside of inserting and unmapping. So nobody touches user memory under that mutex: a fault on it
//! would take the first lock after the second.
//!
//! C header: [`include/linux/mm.h`](srctree/include/linux/mm.h),
//! [`include/linux/huge_mm.h`](srctree/include/linux/huge_mm.h).
//! Upstream: `rust/kernel/mm/virt.rs`.

use super::{
    bindings as bindings_of_ours,
    pages::Frame, //
};
use core::{
    marker::PhantomData,
    mem, //
};
use kernel::{
    bindings,
    ffi,
    mm::virt::{
        flags,
        VmaNew, //
    },
    page::PAGE_SHIFT,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::ForeignOwnable, //
};

/// The order of a huge page.
const HUGE_ORDER: u32 = 9;

/// Bytes of a huge page.
// CAST: a small number.
pub const HUGE_BYTES: u64 = 1 << (HUGE_ORDER + PAGE_SHIFT as u32);

/// What is behind a mapped area.
pub trait Mapping: Send + Sync {
    /// Puts the page at [`Fault::offset`] in place. May sleep.
    fn fault(&self, fault: &mut Fault<'_>) -> Outcome;

    /// Puts the huge page at [`HugeFault::offset`] in place, or falls back to small ones. May sleep.
    fn huge_fault(&self, _fault: &mut HugeFault<'_>) -> Outcome {
        Outcome::FALLBACK
    }
}

/// What a kind of memory allows programs to do with a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading, now and later.
    Read,
    /// Reading and writing.
    Write,
}

/// The answer to a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Outcome(bindings::vm_fault_t);

impl Outcome {
    /// The page is in place, or the program may touch it again at once.
    pub const DONE: Self = Self(bindings::vm_fault_reason_VM_FAULT_NOPAGE);
    /// There is nothing there: the program gets SIGBUS, a call of it `EFAULT`.
    pub const BUS_ERROR: Self = Self(bindings::vm_fault_reason_VM_FAULT_SIGBUS);
    /// No memory for the page.
    pub const OUT_OF_MEMORY: Self = Self(bindings::vm_fault_reason_VM_FAULT_OOM);
    /// The handler has let the memory map go, so the kernel looks again at everything.
    const RETRY: Self = Self(bindings::vm_fault_reason_VM_FAULT_RETRY);
    /// Not as a huge page: ask for a small one.
    pub const FALLBACK: Self = Self(bindings::vm_fault_reason_VM_FAULT_FALLBACK);
    /// The task is about to die and the handler has given up waiting.
    ///
    /// The same as a bus error: that also ends an access from inside the kernel, which would be tried
    /// again for ever otherwise, and the task does not live to see the signal.
    pub const KILLED: Self = Self::BUS_ERROR;
}

/// A touch of a page that is not in place.
///
/// # Invariants
///
/// `raw` is what the kernel gave to the `fault` operation that is running, on an area that was set up
/// by [`Installed::commit`]. The area is there while `held`.
pub struct Fault<'a> {
    raw: *mut bindings::vm_fault,
    /// Whether the lock on the memory map is still held, so that the area is still there.
    held: bool,
    _call: PhantomData<&'a mut bindings::vm_fault>,
}

impl Fault<'_> {
    /// Returns the offset of the page in the device file, in bytes.
    pub fn offset(&self) -> u64 {
        // SAFETY: Valid by the type invariants.
        let page = unsafe { (*self.raw).__bindgen_anon_1.pgoff };

        // CAST: `usize` has 64 bits.
        (page as u64) << PAGE_SHIFT
    }

    /// Returns whether the program is about to write.
    ///
    /// That it reads first says nothing about what follows: the entry of a writable area is writable
    /// from the start.
    pub fn is_write(&self) -> bool {
        // SAFETY: Valid by the type invariants.
        let flags = unsafe { (*self.raw).flags };

        flags & bindings::fault_flag_FAULT_FLAG_WRITE != 0
    }

    /// Waits for something that takes long: `wait` runs without the lock on the memory map, where the
    /// kernel allows that, so that nobody else is held up meanwhile. Returns what the handler then
    /// returns, or [`None`] if it still has the lock and may go on.
    ///
    /// `wait` says whether the wait came to its end; if not, the task is about to die.
    pub fn wait(&mut self, wait: impl FnOnce() -> bool) -> Option<Outcome> {
        if !self.held {
            return Some(Outcome::RETRY);
        }

        // SAFETY: Valid by the type invariants.
        if !unsafe { bindings_of_ours::vidmm_fault_may_retry(self.raw) } {
            return if wait() { None } else { Some(Outcome::KILLED) };
        }

        self.held = false;

        // SAFETY: Valid by the type invariants, and `held` said that the lock is held. Nothing uses the
        // area from here on, and the caller of the handler keeps the mapping alive.
        unsafe { bindings_of_ours::vidmm_release_fault_lock(self.raw) };
        let _ = wait();

        // A task that is being killed is found out by the kernel.
        Some(Outcome::RETRY)
    }

    /// Inserts a page; returns what the handler then returns.
    ///
    /// The page stays owned by the driver until it has been unmapped. A page that somebody else has
    /// put in place meanwhile stays.
    pub fn insert(&mut self, frame: Frame) -> Outcome {
        if !self.held {
            return Outcome::RETRY;
        }

        // SAFETY: Valid by the type invariants.
        let raw = unsafe { &(*self.raw).__bindgen_anon_1 };
        // CAST: `usize` has 64 bits.
        let frame = frame.0 as usize;

        // SAFETY: By the type invariants this is the `fault` operation of an area with VM_PFNMAP that
        // cannot be written privately; the address is the one inside that the kernel asks for.
        Outcome(unsafe { bindings::vmf_insert_pfn(raw.vma, raw.address, frame) })
    }

    /// Inserts the page at `offset` of the device file too, which was not touched, if the area has it.
    ///
    /// It is no harm if that does not succeed: it will be asked for when it is touched.
    pub fn insert_also(&mut self, offset: u64, frame: Frame) {
        if !self.held {
            return;
        }

        // SAFETY: Valid by the type invariants.
        let raw = unsafe { &(*self.raw).__bindgen_anon_1 };
        // SAFETY: By the type invariants the area is there while the lock is held, and does not change.
        let ends = unsafe { &(*raw.vma).__bindgen_anon_1.__bindgen_anon_1 };
        // CAST: `usize` has 64 bits.
        let distance = offset.wrapping_sub(self.offset()) as usize;
        let address = raw.address.wrapping_add(distance);

        if !(ends.vm_start..ends.vm_end).contains(&address) {
            return;
        }

        // CAST: `usize` has 64 bits.
        let frame = frame.0 as usize;

        // SAFETY: As in `insert`; the address was found to lie inside the area.
        let _ = unsafe { bindings::vmf_insert_pfn(raw.vma, address, frame) };
    }
}

/// A touch of a stretch that may be put in place as one huge page.
///
/// # Invariants
///
/// As for [`Fault`], for the `huge_fault` operation; the huge page round the address lies inside the
/// area.
pub struct HugeFault<'a>(Fault<'a>);

impl HugeFault<'_> {
    /// Waits, as [`Fault::wait`] does.
    pub fn wait(&mut self, wait: impl FnOnce() -> bool) -> Option<Outcome> {
        self.0.wait(wait)
    }

    /// Returns the offset of the huge page in the device file, in bytes.
    pub fn offset(&self) -> u64 {
        // SAFETY: Valid by the type invariants.
        let address = unsafe { (*self.0.raw).__bindgen_anon_1.address };

        // CAST: Widening. OVERFLOW: By the type invariants the area begins before the huge page.
        self.0.offset() - (address as u64 & (HUGE_BYTES - 1))
    }

    /// Returns whether the program is about to write.
    pub fn is_write(&self) -> bool {
        self.0.is_write()
    }

    /// Inserts the huge page that begins at `frame`, or falls back where that is not aligned.
    pub fn insert(&mut self, frame: Frame) -> Outcome {
        if !self.0.held {
            return Outcome::RETRY;
        }

        if frame.address() % HUGE_BYTES != 0 {
            return Outcome::FALLBACK;
        }

        self.insert_aligned(frame)
    }

    /// Inserts the huge page at a frame that is known to be aligned.
    #[cfg(CONFIG_TRANSPARENT_HUGEPAGE)]
    fn insert_aligned(&mut self, frame: Frame) -> Outcome {
        let write = self.is_write();
        // CAST: `usize` has 64 bits.
        let frame = frame.0 as usize;

        // SAFETY: By the type invariants this is the `huge_fault` operation of an area with VM_PFNMAP
        // that cannot be written privately, and the huge page lies inside. The caller has checked
        // the alignment of the frame.
        Outcome(unsafe { bindings::vmf_insert_pfn_pmd(self.0.raw, frame, write) })
    }

    /// Falls back: this kernel has no huge pages.
    #[cfg(not(CONFIG_TRANSPARENT_HUGEPAGE))]
    fn insert_aligned(&mut self, _frame: Frame) -> Outcome {
        Outcome::FALLBACK
    }
}

/// An area that a call of `mmap()` is about to create.
pub struct NewArea<'a> {
    vma: &'a VmaNew,
}

impl<'a> NewArea<'a> {
    /// Wraps what the file operation receives.
    ///
    /// # Safety
    ///
    /// `vma` is undergoing its set-up in an `mmap` operation for the duration of `'a`.
    pub(super) unsafe fn from_raw(vma: *mut bindings::vm_area_struct) -> Self {
        Self {
            // SAFETY: The caller's contract.
            vma: unsafe { VmaNew::from_raw(vma) },
        }
    }

    /// Returns the offset in the device file, in bytes.
    pub fn offset(&self) -> u64 {
        // SAFETY: The area is valid, and this call is the only one that works on it.
        let page = unsafe { (*self.vma.as_ptr()).vm_pgoff };

        // CAST: `usize` has 64 bits.
        (page as u64) << PAGE_SHIFT
    }

    /// Returns the length in bytes.
    pub fn bytes(&self) -> u64 {
        // CAST: `usize` has 64 bits. OVERFLOW: An area ends after its start.
        (self.vma.end() - self.vma.start()) as u64
    }

    /// Puts `mapping` behind the area.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the program asks for a private copy.
    /// - `EPERM`: the program asks to execute what is there.
    /// - `EACCES`: the program asks to write where `access` is for reading.
    /// - `ENOMEM`: no memory.
    pub fn install(self, mapping: Arc<dyn Mapping>, access: Access) -> Result<Installed<'a>> {
        // A file that is open for reading alone loses VM_SHARED, but not this.
        if self.vma.flags() & flags::MAYSHARE == 0 {
            return Err(EINVAL);
        }

        self.vma.try_clear_mayexec().map_err(|_| EPERM)?;

        if access == Access::Read {
            self.vma.try_clear_maywrite().map_err(|_| EACCES)?;
        }

        Ok(Installed {
            vma: self.vma,
            mapping: Arc::new(Holder { mapping }, GFP_KERNEL_ACCOUNT)?,
        })
    }
}

/// Proof that an `mmap()` has passed all checks and has something behind it.
pub struct Installed<'a> {
    vma: &'a VmaNew,
    mapping: Arc<Holder>,
}

impl Installed<'_> {
    /// Makes the area one of this file. Nothing may fail afterwards.
    pub(super) fn commit(self) {
        let vma = self.vma.as_ptr();
        let set = flags::PFNMAP | flags::DONTEXPAND | flags::DONTDUMP;
        let flags = self.vma.flags() | set;

        // SAFETY: The area is undergoing its set-up, so nobody else uses it. It is shared, so that
        // VM_PFNMAP makes no private writes possible.
        unsafe { (*vma).__bindgen_anon_2.vm_flags = flags };
        // SAFETY: The area is undergoing its set-up. The reference that it gets is that of `close`.
        unsafe { (*vma).vm_private_data = self.mapping.into_foreign() };
        // SAFETY: The area is undergoing its set-up, and the operations stay as long as the module,
        // which the open file holds.
        unsafe { (*vma).vm_ops = &OPERATIONS };
    }
}

/// What the private data of an area points to; a thin pointer, so that splitting an area need not
/// allocate.
struct Holder {
    mapping: Arc<dyn Mapping>,
}

/// The operations of all areas of this driver.
///
/// Their `vm_private_data` owns a reference on a [`Holder`].
const OPERATIONS: bindings::vm_operations_struct = bindings::vm_operations_struct {
    open: Some(open),
    close: Some(close),
    fault: Some(fault),
    huge_fault: Some(huge_fault),
    ..pin_init::zeroed()
};

/// Borrows the reference that an area owns.
///
/// # Safety
///
/// `vma` is an area of [`OPERATIONS`] that stays for `'a`.
unsafe fn holder<'a>(vma: *mut bindings::vm_area_struct) -> ArcBorrow<'a, Holder> {
    // SAFETY: The caller's contract; the field does not change while the area has these operations.
    let private = unsafe { (*vma).vm_private_data };

    // SAFETY: An area of these operations owns a reference, from `commit` or `open` until `close`.
    unsafe { <Arc<Holder> as ForeignOwnable>::borrow(private) }
}

/// Takes a reference for an area that is the copy of another one.
///
/// # Safety
///
/// For use as the operation alone: `vma` is an area whose private data was copied from one that has
/// a reference and still exists.
unsafe extern "C" fn open(vma: *mut bindings::vm_area_struct) {
    // SAFETY: The area that was copied still owns its reference.
    let holder = unsafe { holder(vma) };

    // This reference is the one of the copy.
    mem::forget(Arc::from(holder));
}

/// Drops the reference of an area.
///
/// # Safety
///
/// For use as the operation alone: the last one that is called for `vma`.
unsafe extern "C" fn close(vma: *mut bindings::vm_area_struct) {
    // SAFETY: The area is going, and this call alone works on it.
    let private = unsafe { (*vma).vm_private_data };

    // SAFETY: The area owns a reference, which nobody uses after this last call.
    drop(unsafe { <Arc<Holder> as ForeignOwnable>::from_foreign(private) });
}

/// Asks the mapping for a page.
///
/// # Safety
///
/// For use as the operation alone.
unsafe extern "C" fn fault(raw: *mut bindings::vm_fault) -> bindings::vm_fault_t {
    // SAFETY: The kernel passes a valid description of the fault.
    let vma = unsafe { (*raw).__bindgen_anon_1.vma };
    // SAFETY: The area cannot go while its operation runs. A reference of its own, since the area may
    // go once the handler lets go of the memory map.
    let holder = Arc::from(unsafe { holder(vma) });
    // INVARIANT: This is the operation.
    let mut fault = Fault {
        raw,
        held: true,
        _call: PhantomData,
    };

    holder.mapping.fault(&mut fault).0
}

/// Asks the mapping for a huge page, where one fits.
///
/// # Safety
///
/// For use as the operation alone.
unsafe extern "C" fn huge_fault(
    raw: *mut bindings::vm_fault,
    order: ffi::c_uint,
) -> bindings::vm_fault_t {
    // SAFETY: The kernel passes a valid description of the fault.
    let place = unsafe { &(*raw).__bindgen_anon_1 };
    // SAFETY: The area cannot go or change while its operation runs.
    let ends = unsafe { &(*place.vma).__bindgen_anon_1.__bindgen_anon_1 };
    // CAST: `usize` has 64 bits.
    let start = place.address & !(HUGE_BYTES as usize - 1);
    // CAST: `usize` has 64 bits. OVERFLOW: User addresses end far below.
    let end = start + HUGE_BYTES as usize;

    if order != HUGE_ORDER || start < ends.vm_start || ends.vm_end < end {
        return Outcome::FALLBACK.0;
    }

    // SAFETY: The area cannot go while its operation runs. A reference of its own, as in `fault`.
    let holder = Arc::from(unsafe { holder(place.vma) });
    // INVARIANT: This is the operation, and the huge page was found to lie inside the area.
    let mut fault = HugeFault(Fault {
        raw,
        held: true,
        _call: PhantomData,
    });

    holder.mapping.huge_fault(&mut fault).0
}
