// SPDX-License-Identifier: GPL-2.0

//! Adapters: open files of `/dev/vidmm`.
//!
//! Every open file is a client: a name space of handles, a budget and an accounting line of its own.

use std::io;
use std::os::fd::{
    AsFd,
    AsRawFd,
    BorrowedFd,
    OwnedFd, //
};
use std::path::Path;

use rustix::fs::{
    open,
    Mode,
    OFlags, //
};

use crate::{
    abi,
    error::{
        Errno,
        Error, //
    },
    events::{
        self,
        Events,
        Subscription, //
    },
    fence,
    handle::File,
    ioctl::query,
    Deadline,
    Device,
    Group,
    Mapping,
    Result,
    Scanout,
    StatusPage, //
};

/// Where the first adapter is.
pub const DEFAULT_PATH: &str = "/dev/vidmm";

/// A client of an adapter.
#[derive(Clone, Debug)]
pub struct Adapter {
    file: File,
}

impl Adapter {
    /// Opens the adapter at `path`, as a new client.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, OFlags::RDWR)
    }

    /// Opens the adapter so that reading events does not wait.
    pub fn open_nonblocking(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, OFlags::RDWR | OFlags::NONBLOCK)
    }

    /// Opens the adapter for reading alone: mappings cannot be written.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, OFlags::RDONLY)
    }

    fn open_with(path: impl AsRef<Path>, flags: OFlags) -> Result<Self> {
        let descriptor = open(path.as_ref(), flags | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| Error::new("open", errno))?;
        Ok(Self::from(descriptor))
    }

    /// Returns what the adapter is.
    pub fn info(&self) -> Result<abi::InfoAdapter> {
        query(self, 0)
    }

    /// Returns one segment; id 0 is system memory.
    pub fn segment(&self, id: u32) -> Result<abi::InfoSegment> {
        query(self, id)
    }

    /// Returns system memory and all segments, in the order of their ids.
    pub fn segments(&self) -> Result<Vec<abi::InfoSegment>> {
        (0..=self.info()?.segments)
            .map(|id| self.segment(id))
            .collect()
    }

    /// Returns one node.
    pub fn node(&self, ordinal: u32) -> Result<abi::InfoNode> {
        query(self, ordinal)
    }

    /// Returns all nodes.
    pub fn nodes(&self) -> Result<Vec<abi::InfoNode>> {
        (0..self.info()?.nodes)
            .map(|ordinal| self.node(ordinal))
            .collect()
    }

    /// Returns what is known of one call.
    pub fn ioctl(&self, number: u8) -> Result<abi::InfoIoctl> {
        query(self, u32::from(number))
    }

    /// Returns the limits of lists and queues.
    pub fn limits(&self) -> Result<abi::InfoLimits> {
        query(self, 0)
    }

    /// Returns both clocks at one moment.
    pub fn clock(&self) -> Result<abi::InfoClock> {
        query(self, 0)
    }

    /// Returns a display source.
    pub fn source(&self, id: u32) -> Result<abi::InfoSource> {
        query(self, id)
    }

    /// Returns the counters of this client.
    pub fn client(&self) -> Result<abi::InfoClient> {
        query(self, 0)
    }

    /// Says whether all of these `FEATURE_` bits are set.
    pub fn has(&self, features: u64) -> Result<bool> {
        Ok(self.info()?.features & features == features)
    }

    /// Names the client, or an object of it by its handle. An empty name clears it.
    pub fn set_name(&self, object: u32, name: &str) -> Result<()> {
        let argument = abi::SetName {
            object,
            ..Default::default()
        };
        self.file.call_with(argument, name.as_bytes())?;
        Ok(())
    }

    /// Makes a device.
    pub fn create_device(&self) -> Result<Device> {
        Device::create(&self.file)
    }

    /// Closes handles that nothing owns: those that were taken out of their owner.
    pub fn close(&self, handles: &[u32], flags: u32) -> Result<()> {
        let argument = abi::Close {
            flags,
            ..Default::default()
        };
        self.file.call_with(argument, handles)?;
        Ok(())
    }

    /// Returns the state of the allocations with these handles.
    pub fn allocation_states(&self, handles: &[u32]) -> Result<Vec<abi::AllocState>> {
        let mut items: Vec<_> = handles
            .iter()
            .map(|&handle| abi::AllocState {
                handle,
                ..Default::default()
            })
            .collect();
        self.file
            .call_with(abi::AllocQuery::default(), &mut items[..])?;
        Ok(items)
    }

    /// Gives allocations their priorities, pairs of a handle and an `ALLOC_PRIORITY_`.
    pub fn set_priorities(&self, priorities: &[(u32, u32)]) -> Result<()> {
        let items: Vec<_> = priorities
            .iter()
            .map(|&(alloc, priority)| abi::PriorityItem { alloc, priority })
            .collect();
        self.file
            .call_with(abi::SetPriority::default(), &items[..])?;
        Ok(())
    }

    /// Returns the budget of this client in a group of segments.
    pub fn budget(&self, group: Group) -> Result<abi::Budget> {
        self.file.call(abi::Budget {
            group: group.value(),
            ..Default::default()
        })
    }

    /// Reserves a part of the budget that the kernel will not take away, in place of an earlier
    /// reservation.
    pub fn reserve_budget(&self, group: Group, bytes: u64) -> Result<()> {
        self.file.call(abi::ReserveBudget {
            group: group.value(),
            flags: 0,
            bytes,
        })?;
        Ok(())
    }

    /// Maps the page that shows the budgets of this client.
    pub fn status_page(&self) -> Result<StatusPage> {
        StatusPage::map(&self.file)
    }

    /// Says which events this client wants, in place of what it said before.
    pub fn subscribe(&self, subscription: Subscription<'_>) -> Result<()> {
        subscription.subscribe(&self.file)
    }

    /// Waits until an event is queued, and says whether one is: `false` when the deadline has
    /// passed. The file can be given to a poll of the program's own as well.
    pub fn wait_for_event(&self, deadline: Deadline) -> Result<bool> {
        events::wait(&self.file, deadline)
    }

    /// Returns the queued events, oldest first.
    pub fn events(&self) -> Events<'_> {
        Events::new(&self.file)
    }

    /// Begins a change of what a source shows; without more it blanks the source.
    pub fn scanout(&self, source: u32) -> Scanout<'_> {
        Scanout::new(&self.file, source)
    }

    /// Waits until all points are reached.
    pub fn wait_all(&self, points: &[abi::Point], deadline: Deadline) -> Result<()> {
        fence::wait(&self.file, points, deadline, 0).map(|_| ())
    }

    /// Waits until a point is reached, and returns which.
    pub fn wait_any(&self, points: &[abi::Point], deadline: Deadline) -> Result<usize> {
        let first = fence::wait(&self.file, points, deadline, abi::FENCE_WAIT_ANY)?;
        // CAST: `usize` has at least 32 bits on Linux.
        Ok(first as usize)
    }

    /// Signals all points.
    pub fn signal_all(&self, points: &[abi::Point]) -> Result<()> {
        fence::signal(&self.file, points, 0)
    }

    /// Maps `length` bytes of the object that `token` stands for, for reading and writing.
    pub fn map(&self, token: u64, length: usize) -> Result<Mapping> {
        Mapping::new(self, token, length)
    }

    /// Returns the accounting lines of this client, as other programs see them.
    pub fn fdinfo(&self) -> Result<String> {
        let path = format!("/proc/self/fdinfo/{}", self.as_fd().as_raw_fd());
        std::fs::read_to_string(path).map_err(|error| from_io("fdinfo", &error))
    }
}

/// Turns an error of the standard library into one of ours.
fn from_io(request: &'static str, error: &io::Error) -> Error {
    Error::new(request, Errno::from_io_error(error).unwrap_or(Errno::IO))
}

impl AsFd for Adapter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.fd()
    }
}

/// Takes over a descriptor that another program or an earlier `dup` has given.
impl From<OwnedFd> for Adapter {
    fn from(descriptor: OwnedFd) -> Self {
        Self {
            file: File::new(descriptor),
        }
    }
}
