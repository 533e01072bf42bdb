// SPDX-License-Identifier: GPL-2.0

//! A neighbour: another client, which wants a part of the segment while the picture is being painted.

use std::path::Path;

use libvidmm::{
    allocation,
    Allocation,
    Deadline,
    Device, //
};

use super::place::Place;
use crate::failure::{
    open,
    while_doing,
    Failure, //
};

/// Bytes of one allocation.
const PIECE: u64 = 512 << 10;

/// A client with resident memory. It leaves when it is dropped.
pub(crate) struct Neighbour {
    /// Takes what it owns along when it goes.
    _device: Device,
    _memory: Vec<Allocation>,
}

impl Neighbour {
    /// Opens the adapter at `path` once more and makes so many bytes resident.
    pub(crate) fn arrive(path: &Path, place: &Place, bytes: u64) -> Result<Self, Failure> {
        let adapter = open(path)?;
        adapter.set_name(0, "neighbour")?;
        let device = adapter.create_device()?;
        let queue = device.create_paging_queue(0)?;
        let memory = (0..bytes / PIECE).map(|_| {
            allocation::Builder::new(PIECE)
                .accessed_physically()
                .segments(1 << place.segment.id)
                .create(&device)
                .map_err(while_doing("making memory of a neighbour"))
        });
        let memory = memory.collect::<Result<Vec<_>, _>>()?;
        let handles: Vec<_> = memory.iter().map(Allocation::handle).collect();
        if !handles.is_empty() {
            let made = queue
                .make_resident(&handles, 0)
                .map_err(while_doing("making a neighbour resident"))?;
            queue.wait(made.progress, Deadline::FOREVER)?;
        }
        Ok(Self {
            _device: device,
            _memory: memory,
        })
    }
}
