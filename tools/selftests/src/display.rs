// SPDX-License-Identifier: GPL-2.0

//! Display sources, as a program uses them.

use crate::{
    abi::{
        self,
        AllocInfo,
        InfoSource,
        Point,
        Scanout, //
    },
    call::Errno,
    client::{
        point,
        Allocation,
        Client, //
    },
    clock, debugfs,
    fixture::{
        primary,
        Fixture,
        MIB, //
    },
};

/// Pixels of a line of the pictures that tests show: 2 KiB.
const WIDTH: u32 = 512;

/// A primary of `bytes` that engines do not reach physically, in these segments.
pub fn picture(bytes: u64, segments: u32) -> AllocInfo {
    let height = u32::try_from(bytes / (u64::from(WIDTH) * 4)).expect("a small picture");
    AllocInfo {
        flags: abi::ALLOC_CPU_VISIBLE | abi::ALLOC_PRIMARY,
        read_segments: segments,
        ..primary(WIDTH, height)
    }
}

/// A primary that engines reach physically.
pub fn physical_picture(bytes: u64, segments: u32) -> AllocInfo {
    AllocInfo {
        flags: abi::ALLOC_CPU_VISIBLE | abi::ALLOC_PRIMARY | abi::ALLOC_ACCESSED_PHYSICALLY,
        ..picture(bytes, segments)
    }
}

/// What an accepted call says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Handle of the primary that is replaced.
    pub previous: u32,
    /// Which accepted call on the source it is.
    pub sequence: u64,
}

/// A call that shows `alloc`; 0 blanks.
pub fn show(source: u32, alloc: u32) -> Scanout {
    Scanout {
        source,
        alloc,
        ..Default::default()
    }
}

/// A call that begins when `wait` is reached.
pub fn show_after(source: u32, alloc: u32, wait: Point) -> Scanout {
    Scanout {
        wait,
        ..show(source, alloc)
    }
}

impl Client {
    /// Asks a source to show something.
    pub fn try_scanout(&self, mut argument: Scanout) -> Result<Shown, Errno> {
        self.call(abi::IOCTL_SCANOUT, &mut argument)?;
        Ok(Shown {
            previous: argument.previous,
            sequence: argument.sequence,
        })
    }

    /// Asks a source to show something, without waiting until it does.
    pub fn scanout(&self, argument: Scanout) -> Shown {
        self.try_scanout(argument)
            .unwrap_or_else(|errno| panic!("SCANOUT: errno {errno}"))
    }

    /// What a source is doing.
    pub fn source(&self, source: u32) -> InfoSource {
        self.query(abi::QUERY_SOURCE, source)
    }
}

impl Fixture {
    /// Shows something and waits until it is shown, and what was shown before is not.
    pub fn show(&self, source: u32, alloc: u32) -> Shown {
        let fence = self.client.create_fence(self.device, 0);
        let shown = self.client.scanout(Scanout {
            signal: point(fence, 1),
            ..show(source, alloc)
        });
        self.client.wait(fence, 1);
        self.client.close(&[fence]);
        shown
    }

    /// Blanks a source and waits until it is blank.
    pub fn blank(&self, source: u32) -> Shown {
        self.show(source, 0)
    }
}

/// Segment and offset of an allocation.
pub fn place(allocation: &Allocation) -> (u64, u64) {
    let placement = debugfs::placement(allocation.object_id);
    (placement.segment, placement.offset)
}

/// Asserts that nothing of what was shown keeps memory: all of segment 1 and of the aperture is free.
pub fn assert_all_free() {
    clock::wait_until("all memory is free", || {
        let memory = debugfs::segment(1);
        memory.free == memory.room() && debugfs::segment(3).mapped == 0
    });
}

/// Bytes of a picture that two of make the bound of a source.
pub const PICTURE: u64 = 2 * MIB;
