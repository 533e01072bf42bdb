// SPDX-License-Identifier: GPL-2.0

//! The argument structures of the peers, and the commands that take them.
//!
//! Those of the peer modules mirror `peers/interface.h`, the others are the kernel's.

use libvidmm::ioctl::raw::{
    encode,
    Direction, //
};

/// Type byte of the peer modules.
const BENCH: u8 = 0xdb;
/// Type byte of DRM.
const DRM: u8 = b'd';

/// Returns a read-write command for an argument of type `A`.
const fn command<A>(kind: u8, number: u8) -> u32 {
    encode(Direction::ReadWrite, kind, number, size_of::<A>())
}

/// Does nothing, and says so.
pub const NULL: u32 = encode(Direction::None, BENCH, 0, 0);
/// Takes [`Words`].
pub const WORDS: u32 = command::<Words>(BENCH, 1);
/// Takes [`Work`].
pub const WORK: u32 = command::<Work>(BENCH, 2);
/// Takes [`Patch`].
pub const PATCH: u32 = command::<Patch>(BENCH, 3);
/// Takes [`Graphics`].
pub const GRAPHICS: u32 = command::<Graphics>(BENCH, 16);
/// DMA_HEAP_IOCTL_ALLOC: takes [`HeapAllocation`].
pub const HEAP_ALLOC: u32 = command::<HeapAllocation>(b'H', 0);
/// DMA_BUF_IOCTL_SYNC: takes [`BufferSync`].
pub const BUFFER_SYNC: u32 = encode(Direction::Write, b'b', 0, size_of::<BufferSync>());
/// DRM_IOCTL_MODE_CREATE_DUMB: takes [`CreateDumb`].
pub const CREATE_DUMB: u32 = command::<CreateDumb>(DRM, 0xb2);
/// DRM_IOCTL_MODE_DESTROY_DUMB: takes [`DestroyDumb`].
pub const DESTROY_DUMB: u32 = command::<DestroyDumb>(DRM, 0xb4);
/// DRM_IOCTL_SYNCOBJ_CREATE: takes [`Syncobj`].
pub const SYNCOBJ_CREATE: u32 = command::<Syncobj>(DRM, 0xbf);
/// DRM_IOCTL_SYNCOBJ_DESTROY: takes [`Syncobj`].
pub const SYNCOBJ_DESTROY: u32 = command::<Syncobj>(DRM, 0xc0);
/// DRM_IOCTL_VERSION: takes [`Version`].
pub const VERSION: u32 = command::<Version>(DRM, 0x00);
/// DRM_IOCTL_SYNCOBJ_RESET: takes [`SyncobjArray`].
pub const SYNCOBJ_RESET: u32 = command::<SyncobjArray>(DRM, 0xc4);

/// `struct bench_words`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Words {
    /// In and out, each one higher.
    pub words: [u64; 8],
}

/// `struct bench_work`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Which work.
    pub what: u32,
    /// How often.
    pub count: u32,
    /// Bytes, or an order.
    pub argument: u64,
    /// Out: ticks of all turns.
    pub ticks: u64,
    /// Out: what the work has left behind.
    pub check: u64,
}

/// `struct bench_drm`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Graphics {
    /// Which work.
    pub what: u32,
    /// How often.
    pub count: u32,
    /// Bytes of an object.
    pub bytes: u64,
    /// Number of objects.
    pub objects: u32,
    /// Out: how much was done.
    pub done: u32,
    /// Out: ticks of all turns.
    pub ticks: u64,
}

/// `struct dma_heap_allocation_data`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HeapAllocation {
    /// Bytes.
    pub len: u64,
    /// Out: descriptor.
    pub fd: i32,
    /// Flags of the descriptor.
    pub fd_flags: u32,
    /// None.
    pub heap_flags: u64,
}

/// `struct dma_buf_sync`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BufferSync {
    /// Start or end, of reading or writing.
    pub flags: u64,
}

/// `struct drm_mode_create_dumb`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateDumb {
    /// Lines.
    pub height: u32,
    /// Pixels.
    pub width: u32,
    /// Bits of a pixel.
    pub bpp: u32,
    /// None.
    pub flags: u32,
    /// Out: handle.
    pub handle: u32,
    /// Out: bytes of a line.
    pub pitch: u32,
    /// Out: bytes.
    pub size: u64,
}

/// `struct drm_mode_destroy_dumb`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct DestroyDumb {
    /// Handle.
    pub handle: u32,
}

/// `struct drm_syncobj_create` and `struct drm_syncobj_destroy`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Syncobj {
    /// Out of one, in to the other.
    pub handle: u32,
    /// None.
    pub flags: u32,
}

/// `struct bench_patch_allocation`: as long as an element of an allocation list.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PatchAllocation {
    /// Which one.
    pub handle: u32,
    /// Nothing.
    pub pad: [u32; 3],
    /// Out: where it is.
    pub address: u64,
}

/// `struct bench_patch_entry`: as long as an entry of a patch list.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PatchEntry {
    /// Index in the allocation list.
    pub allocation: u32,
    /// Nothing.
    pub pad: [u32; 3],
    /// Byte inside the allocation.
    pub allocation_offset: u64,
    /// Byte in the command buffer.
    pub patch_offset: u32,
    /// Nothing.
    pub pad2: u32,
}

/// `struct bench_patch`: as long as the argument of a submission.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Patch {
    /// Address of the commands.
    pub commands: u64,
    /// Their length.
    pub command_bytes: u32,
    /// What to do.
    pub flags: u32,
    /// Address of the allocation list.
    pub allocations: u64,
    /// Its elements.
    pub allocation_count: u32,
    /// Nothing.
    pub pad: u32,
    /// Address of the patch list.
    pub patches: u64,
    /// Its entries.
    pub patch_count: u32,
    /// Nothing.
    pub pad2: u32,
    /// Out: sum of the patched buffer.
    pub sum: u64,
    /// Nothing.
    pub pad3: [u64; 6],
}

/// `struct drm_version`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Version {
    /// Out: version.
    pub numbers: [i32; 3],
    /// Nothing.
    pub pad: u32,
    /// Room for the name; out: its length.
    pub name_len: u64,
    /// Address of the name.
    pub name: u64,
    /// Room for the date.
    pub date_len: u64,
    /// Address of the date.
    pub date: u64,
    /// Room for the description.
    pub desc_len: u64,
    /// Address of the description.
    pub desc: u64,
}

/// `struct drm_syncobj_array`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncobjArray {
    /// Address of the handles.
    pub handles: u64,
    /// How many.
    pub count: u32,
    /// Nothing.
    pub pad: u32,
}

#[cfg(test)]
mod tests {
    use libvidmm::abi;

    use super::*;

    #[test]
    fn floor_has_the_record_sizes_of_the_interface() {
        assert_eq!(size_of::<Patch>(), size_of::<abi::SubmitPatched>());
        assert_eq!(size_of::<PatchAllocation>(), size_of::<abi::SubmitAlloc>());
        assert_eq!(size_of::<PatchEntry>(), size_of::<abi::SubmitPatch>());
    }

    #[test]
    fn commands_are_those_of_the_kernel() {
        assert_eq!(HEAP_ALLOC, 0xc018_4800);
        assert_eq!(BUFFER_SYNC, 0x4008_6200);
        assert_eq!(CREATE_DUMB, 0xc020_64b2);
        assert_eq!(DESTROY_DUMB, 0xc004_64b4);
        assert_eq!(VERSION, 0xc040_6400);
        assert_eq!(SYNCOBJ_CREATE, 0xc008_64bf);
        assert_eq!(SYNCOBJ_RESET, 0xc010_64c4);
    }
}
