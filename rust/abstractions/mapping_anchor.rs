// SPDX-License-Identifier: GPL-2.0

//! One address space for all mappings of an adapter.
//!
//! The kernel finds the user mappings of a range through the *address space* of the inode that was
//! mapped. The open files of an adapter may come from different inodes: several device nodes, or one
//! that was removed and made again. A [`MappingAnchor`] brings them together. The first file that is
//! opened lends the address space of its inode, all later ones are pointed at the same, and so one
//! call of [`MappingAnchor::unmap`] finds every mapping of the adapter. With the last file the inode
//! is given back.
//!
//! Files are attached and detached by `misc_device`, in open and release.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h),
//! [`include/linux/mm.h`](srctree/include/linux/mm.h).
//! Upstream: part of `rust/kernel/mm/virt.rs`, with an inode type in `rust/kernel/fs`.

use core::{
    ops::Range,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    fs::File,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

/// A counted reference on an inode.
///
/// # Invariants
///
/// The pointer is that of an inode on which this value owns a reference.
struct Inode(NonNull<bindings::inode>);

// SAFETY: Inodes are counted and may be used and given back from any task.
unsafe impl Send for Inode {}

impl Inode {
    /// Takes a reference on the inode of an open file.
    fn of_file(file: &File) -> Option<Self> {
        // SAFETY: The file is open, as it is borrowed, and its inode does not change.
        let inode = unsafe { (*file.as_ptr()).f_inode };

        // SAFETY: An open file holds its inode.
        NonNull::new(unsafe { bindings::igrab(inode) }).map(Self)
    }

    /// Takes another reference.
    fn grab(&self) -> Option<Self> {
        // SAFETY: By the type invariants the inode is alive.
        NonNull::new(unsafe { bindings::igrab(self.0.as_ptr()) }).map(Self)
    }

    /// Returns the address space of what is mapped through the inode.
    fn mapping(&self) -> *mut bindings::address_space {
        // SAFETY: By the type invariants the inode is alive; the field does not change for a
        // character device.
        unsafe { (*self.0.as_ptr()).i_mapping }
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the reference is ours.
        unsafe { bindings::iput(self.0.as_ptr()) }
    }
}

/// What the open files have in common.
#[derive(Default)]
struct Shared {
    /// The inode whose address space all files use; there is one while `files` is not 0.
    inode: Option<Inode>,
    /// Files attached.
    files: usize,
}

/// The address space that all open files of an adapter share.
#[pin_data]
pub struct MappingAnchor {
    /// Leaf: nothing else is locked inside but the inode's own lock.
    #[pin]
    shared: SpinLock<Shared>,
}

impl MappingAnchor {
    /// Returns an initialiser of an anchor without files.
    pub fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            shared <- new_spinlock!(Shared::default(), "MappingAnchor::shared"),
        })
    }

    /// Removes all user mappings of a range of bytes of the device file; does nothing while no file
    /// is open.
    ///
    /// The next touch of the range asks the mapping again. Both ends are multiples of the page size.
    ///
    /// # Locking
    ///
    /// May sleep. Takes the kernel's locks of the address space and of page tables, none of which is
    /// held while a fault handler runs: so a mutex may be held that fault handlers take, and must be
    /// if they are not to insert again what is being removed (see `vm_area`).
    pub fn unmap(&self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }

        let Some(inode) = self.shared.lock().inode.as_ref().and_then(Inode::grab) else {
            return;
        };
        // CAST: Offsets of files are below 2^63. OVERFLOW: The range is not empty.
        let (start, bytes) = (range.start as i64, (range.end - range.start) as i64);

        // SAFETY: The inode, and with it its address space, is held until the end of this function.
        unsafe { bindings::unmap_mapping_range(inode.mapping(), start, bytes, 1) };
    }

    /// Points a file that is being opened at the common address space.
    ///
    /// # Safety
    ///
    /// `file` is in its open operation, and the result is dropped no earlier than in its release
    /// operation, or after a failed open.
    pub(super) unsafe fn attach(self: &Arc<Self>, file: &File) -> Result<Attached> {
        // Dropped after the lock, if it is not needed.
        let mut own = Some(Inode::of_file(file).ok_or(ENODEV)?);
        let mapping = {
            let mut shared = self.shared.lock();

            if shared.inode.is_none() {
                shared.inode = own.take();
            }

            // OVERFLOW: Far fewer files can be open.
            shared.files += 1;
            shared.inode.as_ref().map(Inode::mapping)
        };
        let attached = Attached {
            anchor: self.clone(),
        };

        if let Some(mapping) = mapping {
            // SAFETY: The file is being opened, so nobody else uses the field. The inode of the
            // mapping is held until the result is dropped, that is, as long as the file is open.
            unsafe { (*file.as_ptr()).f_mapping = mapping };
        }

        Ok(attached)
    }
}

/// An open file's share in the anchor.
pub(super) struct Attached {
    anchor: Arc<MappingAnchor>,
}

impl Drop for Attached {
    fn drop(&mut self) {
        // The inode goes after the lock.
        let _inode = {
            let mut shared = self.anchor.shared.lock();

            // OVERFLOW: This file was counted.
            shared.files -= 1;

            if shared.files == 0 {
                shared.inode.take()
            } else {
                None
            }
        };
    }
}
