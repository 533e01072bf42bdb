// SPDX-License-Identifier: GPL-2.0

//! The open file: one client and its handles.
//!
//! Whoever holds the descriptor shares the client; nothing depends on which process made what. When
//! the last descriptor is closed, all handles go as if CLOSE had named them, and what is still needed
//! by queued work is left to the worker: nobody waits for the GPU here.

use kernel::{
    fs,
    prelude::*,
    seq_file::SeqFile,
    sync::Arc,
    uaccess::UserSlice, //
};

use crate::{
    abstractions::{
        mapping_anchor::MappingAnchor,
        misc_device::FileOperations,
        poll::{
            Ready,
            Request, //
        },
        vm_area::{
            Installed,
            NewArea, //
        },
    },
    object::{
        adapter::Adapter,
        client::Client,
        events::Patience,
        scanout, //
    },
};

use super::{
    dispatch,
    events,
    fdinfo,
    handle::Table,
    mmap, //
};

/// A client and its handles.
pub(crate) struct File {
    client: Arc<Client>,
    handles: Pin<KBox<Table>>,
}

impl File {
    /// Returns the client.
    pub(super) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Returns the adapter.
    pub(super) fn adapter(&self) -> &Arc<Adapter> {
        self.client.adapter()
    }

    /// Returns the handles.
    pub(super) fn handles(&self) -> &Table {
        &self.handles
    }
}

impl FileOperations for File {
    type Device = Arc<Adapter>;

    fn open(adapter: &Arc<Adapter>, _file: &fs::File) -> Result<Self> {
        let handles = KBox::pin_init(Table::new(), GFP_KERNEL_ACCOUNT)?;
        let client = Client::new(adapter)?;
        Ok(Self { client, handles })
    }

    fn anchor(adapter: &Arc<Adapter>) -> &Arc<MappingAnchor> {
        adapter.anchor()
    }

    fn release(self, _file: &fs::File) {
        scanout::desert(&self.client);
        self.handles.close_all(|object| object.close(&self.client));
        self.client.close();
    }

    fn ioctl(&self, _file: &fs::File, command: u32, argument: usize) -> Result<isize> {
        dispatch::ioctl(self, command, argument).map(|()| 0)
    }

    fn mmap<'a>(&self, _file: &fs::File, area: NewArea<'a>) -> Result<Installed<'a>> {
        mmap::mmap(self, area)
    }

    fn read(&self, file: &fs::File, to: UserSlice) -> Result<usize> {
        let patience = match file.flags() & fs::file::flags::O_NONBLOCK {
            0 => Patience::Wait,
            _ => Patience::Poll,
        };
        events::read(self, to, patience)
    }

    /// Readable when an event is queued. An adapter does not go while a file is open.
    fn poll(&self, request: &Request<'_>) -> Ready {
        let events = self.client.events();
        request.watch(events.readable());
        if events.is_readable() {
            Ready::READ
        } else {
            Ready::NOTHING
        }
    }

    fn show_fdinfo(&self, seq: &SeqFile) {
        fdinfo::show(self, seq);
    }
}
