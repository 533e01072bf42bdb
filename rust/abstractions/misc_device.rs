// SPDX-License-Identifier: GPL-2.0

//! Device nodes whose file operations are all our own.
//!
//! The kernel crate has misc devices, but without `poll` and without a choice of the address of a
//! mapping. A [`Registration`] makes `/dev/NAME` appear; a [`FileOperations`] value is what one open
//! file holds. The value is made in open and dropped in release; everything in between borrows it.
//! While a file is open the module cannot be unloaded.
//!
//! C header: [`include/linux/miscdevice.h`](srctree/include/linux/miscdevice.h),
//! [`include/linux/fs.h`](srctree/include/linux/fs.h).
//! Upstream: `rust/kernel/miscdevice.rs`.

use super::{
    mapping_anchor::{
        Attached,
        MappingAnchor, //
    },
    poll::{
        Ready,
        Request, //
    },
    vm_area::{
        Installed,
        NewArea, //
    }, //
};
use core::marker::PhantomData;
use kernel::{
    bindings,
    error::to_result,
    ffi,
    fs::File,
    module::this_module,
    prelude::*,
    seq_file::SeqFile,
    sync::Arc,
    types::{
        ForeignOwnable,
        Opaque, //
    },
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

/// Who may open a device node: its owner and its group.
const MODE: bindings::umode_t = 0o660;

/// What one open file holds, and what happens when it is used.
///
/// All calls but [`FileOperations::release`] may run at the same time as others on the same file.
pub trait FileOperations: Sized + Send + Sync + 'static {
    /// What the registration lends to [`FileOperations::open`].
    type Device: Send + Sync + 'static;

    /// Opens the device: makes what the file holds.
    fn open(device: &Self::Device, file: &File) -> Result<Self>;

    /// Returns what brings the mappings of all files of the device together.
    fn anchor(device: &Self::Device) -> &Arc<MappingAnchor>;

    /// Closes the file: the last call, after all mappings are gone.
    fn release(self, _file: &File) {}

    /// Carries out an ioctl.
    ///
    /// A call of a 32-bit program arrives here with its pointer converted.
    fn ioctl(&self, file: &File, command: u32, argument: usize) -> Result<isize>;

    /// Reads from the file, which has no position; returns the number of bytes.
    fn read(&self, file: &File, to: UserSlice) -> Result<usize>;

    /// Maps a range of the file.
    fn mmap<'a>(&self, file: &File, area: NewArea<'a>) -> Result<Installed<'a>>;

    /// Says what the file is ready for, after naming what will change it.
    fn poll(&self, request: &Request<'_>) -> Ready;

    /// Writes lines for `/proc/PID/fdinfo/N`.
    fn show_fdinfo(&self, seq: &SeqFile);
}

/// The private data of an open file.
struct OpenFile<T> {
    /// What the driver made of it.
    operations: T,
    /// Its share in the common address space.
    _attached: Attached,
}

/// A device node.
///
/// # Invariants
///
/// `misc` is registered from the end of the initialisation until the drop.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Registration<T: FileOperations> {
    /// First, so that its address, which the kernel passes to open, is that of the whole.
    #[pin]
    misc: Opaque<bindings::miscdevice>,
    device: T::Device,
}

// SAFETY: Registering and deregistering may happen in different tasks.
unsafe impl<T: FileOperations> Send for Registration<T> {}

// SAFETY: A shared reference gives access to `device` alone, which is `Sync`.
unsafe impl<T: FileOperations> Sync for Registration<T> {}

impl<T: FileOperations> Registration<T> {
    /// Makes `/dev/NAME` appear.
    ///
    /// Programs may open it before the initialisation returns.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: no device number is free.
    /// - `EEXIST`: the name is taken.
    /// - `ENOMEM`: no memory.
    pub fn new(name: &'static CStr, device: T::Device) -> impl PinInit<Self, Error> {
        // The node comes last: from then on `open` uses the rest.
        try_pin_init!(Self {
            device,
            misc <- Opaque::try_ffi_init(move |slot: *mut bindings::miscdevice| {
                let misc = bindings::miscdevice {
                    // CAST: A small constant.
                    minor: bindings::MISC_DYNAMIC_MINOR as ffi::c_int,
                    name: name.as_char_ptr(),
                    fops: &Operations::<T>::TABLE,
                    mode: MODE,
                    ..pin_init::zeroed()
                };

                // SAFETY: `slot` is valid for writes.
                unsafe { slot.write(misc) };

                // SAFETY: `slot` is initialised; it is pinned, and the drop deregisters it. What
                // `open` finds behind it is initialised too.
                to_result(unsafe { bindings::misc_register(slot) })
            }),
        })
    }

    /// Returns what was lent to `open`.
    pub fn device(&self) -> &T::Device {
        &self.device
    }
}

#[pinned_drop]
impl<T: FileOperations> PinnedDrop for Registration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariants it is registered.
        unsafe { bindings::misc_deregister(self.misc.get()) };
    }
}

/// The C side of [`FileOperations`].
///
/// The private data of a file is a [`Registration`] until open has run, and an [`OpenFile`] from then
/// on until release.
struct Operations<T>(PhantomData<T>);

impl<T: FileOperations> Operations<T> {
    /// The table that the kernel calls through.
    const TABLE: bindings::file_operations = bindings::file_operations {
        owner: this_module::<crate::LocalModule>().as_ptr(),
        open: Some(Self::open),
        release: Some(Self::release),
        read: Some(Self::read),
        unlocked_ioctl: Some(Self::ioctl),
        #[cfg(CONFIG_COMPAT)]
        compat_ioctl: bindings::compat_ptr_ioctl,
        mmap: Some(Self::mmap),
        // Addresses that allow huge pages.
        #[cfg(CONFIG_TRANSPARENT_HUGEPAGE)]
        get_unmapped_area: Some(bindings::thp_get_unmapped_area),
        poll: Some(Self::poll),
        show_fdinfo: Some(Self::show_fdinfo),
        ..pin_init::zeroed()
    };

    /// Borrows a file for the duration of one of its operations.
    ///
    /// # Safety
    ///
    /// `file` is the file that an operation was called on, which runs during all of `'a`.
    unsafe fn file<'a>(file: *mut bindings::file) -> &'a File {
        // SAFETY: The kernel holds the file during its operations; none of those here runs under
        // `fdget_pos`.
        unsafe { File::from_raw_file(file) }
    }

    /// Borrows what an open file holds.
    ///
    /// # Safety
    ///
    /// As for [`Self::file`]; the operation is neither open nor release.
    unsafe fn operations<'a>(file: *mut bindings::file) -> &'a T {
        // SAFETY: The caller's contract; open has set the field, which then does not change.
        let private = unsafe { (*file).private_data };
        // SAFETY: Between open and release the private data is a box of this type, which is only
        // ever borrowed shared.
        let open: &OpenFile<T> = unsafe { <KBox<OpenFile<T>> as ForeignOwnable>::borrow(private) };

        &open.operations
    }

    /// # Safety
    ///
    /// For use as the operation alone.
    unsafe extern "C" fn open(inode: *mut bindings::inode, raw: *mut bindings::file) -> ffi::c_int {
        // SAFETY: The kernel passes the two parts of a file that is being opened. This always succeeds.
        unsafe { bindings::stream_open(inode, raw) };

        // SAFETY: The file is being opened, and its private data is the misc device.
        let misc = unsafe { (*raw).private_data };
        // SAFETY: The misc device is the first field of a registration that cannot be deregistered
        // while the kernel opens it.
        let registration = unsafe { &*misc.cast::<Registration<T>>() };
        // SAFETY: This is an operation on the file.
        let file = unsafe { Self::file(raw) };

        match Self::make(registration.device(), file) {
            Ok(open) => {
                // SAFETY: The file is being opened, so nobody else uses the field.
                unsafe { (*raw).private_data = open.into_foreign() };
                0
            }
            Err(error) => error.to_errno(),
        }
    }

    /// Makes the private data of a file that is being opened.
    fn make(device: &T::Device, file: &File) -> Result<KBox<OpenFile<T>>> {
        // SAFETY: The file is in its open operation. The result goes to the private data, which
        // release drops, or is dropped when this open fails.
        let attached = unsafe { T::anchor(device).attach(file) }?;
        let operations = T::open(device, file)?;
        let open = OpenFile {
            operations,
            _attached: attached,
        };

        Ok(KBox::new(open, GFP_KERNEL_ACCOUNT)?)
    }

    /// # Safety
    ///
    /// For use as the operation alone.
    unsafe extern "C" fn release(
        _inode: *mut bindings::inode,
        raw: *mut bindings::file,
    ) -> ffi::c_int {
        // SAFETY: This is the last operation on the file.
        let private = unsafe { (*raw).private_data };
        // SAFETY: Open has put a box of this type there, and no operation uses it any more.
        let open = unsafe { <KBox<OpenFile<T>> as ForeignOwnable>::from_foreign(private) };
        let OpenFile {
            operations,
            _attached,
        } = KBox::into_inner(open);

        // SAFETY: This is an operation on the file.
        operations.release(unsafe { Self::file(raw) });
        0
    }

    /// # Safety
    ///
    /// For use as the operation alone.
    unsafe extern "C" fn read(
        raw: *mut bindings::file,
        buffer: *mut ffi::c_char,
        length: usize,
        _position: *mut bindings::loff_t,
    ) -> isize {
        // SAFETY: This is an operation on the file.
        let file = unsafe { Self::file(raw) };
        // SAFETY: This is an operation between open and release.
        let operations = unsafe { Self::operations(raw) };
        let to = UserSlice::new(UserPtr::from_ptr(buffer.cast()), length);

        match operations.read(file, to) {
            // CAST: The kernel limits lengths to what fits.
            Ok(bytes) => bytes as isize,
            // CAST: Widening.
            Err(error) => error.to_errno() as isize,
        }
    }

    /// # Safety
    ///
    /// For use as the operation alone.
    unsafe extern "C" fn ioctl(
        raw: *mut bindings::file,
        command: ffi::c_uint,
        argument: ffi::c_ulong,
    ) -> ffi::c_long {
        // SAFETY: This is an operation on the file.
        let file = unsafe { Self::file(raw) };
        // SAFETY: This is an operation between open and release.
        let operations = unsafe { Self::operations(raw) };

        match operations.ioctl(file, command, argument) {
            Ok(value) => value,
            // CAST: Widening.
            Err(error) => error.to_errno() as ffi::c_long,
        }
    }

    /// # Safety
    ///
    /// For use as the operation alone.
    unsafe extern "C" fn mmap(
        raw: *mut bindings::file,
        vma: *mut bindings::vm_area_struct,
    ) -> ffi::c_int {
        // SAFETY: This is an operation on the file.
        let file = unsafe { Self::file(raw) };
        // SAFETY: This is an operation between open and release.
        let operations = unsafe { Self::operations(raw) };
        // SAFETY: The area is being set up by this operation.
        let area = unsafe { NewArea::from_raw(vma) };

        match operations.mmap(file, area) {
            Ok(installed) => {
                installed.commit();
                0
            }
            Err(error) => error.to_errno(),
        }
    }

    /// # Safety
    ///
    /// For use as the operation alone.
    unsafe extern "C" fn poll(
        raw: *mut bindings::file,
        table: *mut bindings::poll_table_struct,
    ) -> bindings::__poll_t {
        // SAFETY: This is an operation on the file.
        let file = unsafe { Self::file(raw) };
        // SAFETY: This is an operation between open and release.
        let operations = unsafe { Self::operations(raw) };
        // SAFETY: The kernel passes null or a table that stays during the operation.
        let request = unsafe { Request::from_raw(file, table) };

        operations.poll(&request).mask()
    }

    /// # Safety
    ///
    /// For use as the operation alone.
    unsafe extern "C" fn show_fdinfo(seq: *mut bindings::seq_file, raw: *mut bindings::file) {
        // SAFETY: This is an operation between open and release.
        let operations = unsafe { Self::operations(raw) };
        // SAFETY: The kernel passes a sequence that nobody else uses during the operation.
        let seq = unsafe { SeqFile::from_raw(seq) };

        operations.show_fdinfo(seq);
    }
}
