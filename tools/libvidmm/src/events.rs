// SPDX-License-Identifier: GPL-2.0

//! Events: what the kernel tells a client that has subscribed.
//!
//! ```no_run
//! use libvidmm::{events::{Event, Subscription}, Adapter, Deadline};
//!
//! # fn main() -> libvidmm::Result<()> {
//! let adapter = Adapter::open_nonblocking("/dev/vidmm")?;
//! adapter.subscribe(Subscription::new().budget().trim())?;
//! while adapter.wait_for_event(Deadline::FOREVER)? {
//!     for record in adapter.events() {
//!         if let Event::Trim { bytes, .. } = record?.event {
//!             println!("{bytes} bytes too many");
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```

use std::mem::{
    offset_of,
    size_of, //
};
use std::os::fd::{
    AsRawFd,
    BorrowedFd, //
};

use rustix::event::{
    poll,
    PollFd,
    PollFlags,
    Timespec, //
};

use crate::{
    abi,
    budget::Group,
    error::{
        Errno,
        Error, //
    },
    handle::File,
    time,
    Deadline,
    Result, //
};

/// Which events a client wants, and which eventfd is raised for each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subscription<'fd> {
    mask: u64,
    eventfd: Option<BorrowedFd<'fd>>,
}

impl<'fd> Subscription<'fd> {
    /// Wants nothing: subscribing to it ends a subscription.
    pub const fn new() -> Self {
        Self {
            mask: 0,
            eventfd: None,
        }
    }

    /// Wants the events of a type, an `EVENT_`.
    pub const fn kind(mut self, kind: u32) -> Self {
        self.mask |= 1 << (kind - 1);
        self
    }

    /// Wants to know each new budget.
    pub const fn budget(self) -> Self {
        self.kind(abi::EVENT_BUDGET)
    }

    /// Wants to know when it should give up memory.
    pub const fn trim(self) -> Self {
        self.kind(abi::EVENT_TRIM)
    }

    /// Wants to know when a device of it goes into another state.
    pub const fn device_state(self) -> Self {
        self.kind(abi::EVENT_DEVICE_STATE)
    }

    /// Wants to know when a source has carried out what it asked for.
    pub const fn scanout(self) -> Self {
        self.kind(abi::EVENT_SCANOUT)
    }

    /// Lets an eventfd be raised once per event. The descriptor may be closed after subscribing.
    pub const fn eventfd(mut self, eventfd: BorrowedFd<'fd>) -> Self {
        self.eventfd = Some(eventfd);
        self
    }

    /// Carries out the call.
    pub(crate) fn subscribe(self, file: &File) -> Result<()> {
        let eventfd = self.eventfd.map(|eventfd| eventfd.as_raw_fd());
        file.call(abi::Events {
            mask: self.mask,
            eventfd: eventfd.unwrap_or(abi::EVENTS_NO_EVENTFD),
            flags: 0,
        })?;
        Ok(())
    }
}

/// Something that has happened, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub time_ns: u64,
    /// What has happened.
    pub event: Event,
}

/// Something that has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The budget has changed.
    Budget {
        /// Of which group.
        group: Group,
        /// What it is now.
        budget: u64,
        /// What was used at that moment.
        usage: u64,
    },
    /// The client should give up memory.
    Trim {
        /// Of which group.
        group: Group,
        /// How much.
        bytes: u64,
        /// What was used at that moment.
        usage: u64,
    },
    /// A device has gone into another state.
    DeviceState {
        /// Its handle.
        device: u32,
        /// The state, a `DEVICE_STATE_`.
        state: u32,
    },
    /// The adapter was removed.
    AdapterGone,
    /// The machine has woken up.
    Resumed,
    /// Events are lost, because nobody read them in time.
    Overflow {
        /// How many.
        lost: u32,
    },
    /// A source has carried out what it was asked for.
    Scanout {
        /// Its id.
        source: u32,
        /// Which call it was.
        sequence: u64,
    },
    /// Something that this library does not know.
    Unknown {
        /// Its type.
        kind: u32,
    },
}

impl From<&abi::Event> for Record {
    fn from(record: &abi::Event) -> Self {
        let unknown = Event::Unknown {
            kind: record.r#type,
        };
        let with_group = |event: fn(Group, u64, u64) -> Event| {
            let group = Group::from_value(record.object);
            group.map_or(unknown, |group| event(group, record.a, record.b))
        };
        let event = match record.r#type {
            abi::EVENT_BUDGET => with_group(|group, budget, usage| Event::Budget {
                group,
                budget,
                usage,
            }),
            abi::EVENT_TRIM => with_group(|group, bytes, usage| Event::Trim {
                group,
                bytes,
                usage,
            }),
            abi::EVENT_DEVICE_STATE => Event::DeviceState {
                device: record.object,
                state: record.code,
            },
            abi::EVENT_ADAPTER_GONE => Event::AdapterGone,
            abi::EVENT_RESUMED => Event::Resumed,
            abi::EVENT_OVERFLOW => Event::Overflow { lost: record.code },
            abi::EVENT_SCANOUT => Event::Scanout {
                source: record.object,
                sequence: record.a,
            },
            _ => unknown,
        };
        Self {
            time_ns: record.time_ns,
            event,
        }
    }
}

/// The queued events, oldest first.
///
/// On an adapter that was opened with [`open_nonblocking`](crate::Adapter::open_nonblocking) they end
/// when the queue is empty; otherwise the next one is waited for.
#[derive(Debug)]
pub struct Events<'a> {
    file: &'a File,
    bytes: Vec<u8>,
    next: usize,
}

/// Bytes that are read at once.
const ROOM: usize = 64 * size_of::<abi::Event>();

impl<'a> Events<'a> {
    /// Begins with what the next read returns.
    pub(crate) fn new(file: &'a File) -> Self {
        Self {
            file,
            bytes: Vec::new(),
            next: 0,
        }
    }

    /// Reads as many records as there is room for.
    fn fill(&mut self) -> std::result::Result<(), Errno> {
        self.bytes.resize(ROOM, 0);
        self.next = 0;
        let read = rustix::io::retry_on_intr(|| rustix::io::read(self.file.fd(), &mut self.bytes));
        self.bytes.truncate(*read.as_ref().unwrap_or(&0));
        read.map(|_| ())
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.bytes.len() {
            match self.fill() {
                Ok(()) => {}
                Err(Errno::AGAIN) => return None,
                Err(errno) => return Some(Err(Error::new("read", errno))),
            }
        }
        let (record, length) = parse(&self.bytes[self.next..])?;
        self.next += length;
        Some(Ok(record))
    }
}

/// Reads the record at the start of `bytes`, and its length; a shorter one than known is completed
/// with zeros, a longer one is cut.
fn parse(bytes: &[u8]) -> Option<(Record, usize)> {
    let word = |offset: usize| {
        let word = bytes.get(offset..offset + 4)?;
        Some(u32::from_ne_bytes(word.try_into().ok()?))
    };
    // CAST: `usize` has at least 32 bits on Linux.
    let length = word(offset_of!(abi::Event, length))? as usize;
    let bytes = bytes.get(..length)?;
    let small = |offset: usize| {
        let word = bytes.get(offset..offset + 4);
        let word = word.and_then(|word| word.try_into().ok());
        word.map_or(0, u32::from_ne_bytes)
    };
    let large = |offset: usize| {
        let word = bytes.get(offset..offset + 8);
        let word = word.and_then(|word| word.try_into().ok());
        word.map_or(0, u64::from_ne_bytes)
    };
    let record = abi::Event {
        r#type: small(offset_of!(abi::Event, r#type)),
        length: small(offset_of!(abi::Event, length)),
        time_ns: large(offset_of!(abi::Event, time_ns)),
        object: small(offset_of!(abi::Event, object)),
        code: small(offset_of!(abi::Event, code)),
        a: large(offset_of!(abi::Event, a)),
        b: large(offset_of!(abi::Event, b)),
    };
    // A record without its own header would never end.
    (length >= 8).then(|| (Record::from(&record), length))
}

/// Waits until an event is queued, and says whether one is: `false` when the deadline has passed.
///
/// # Errors
///
/// `ENODEV` when the adapter is gone and nothing is left to be read.
pub(crate) fn wait(file: &File, deadline: Deadline) -> Result<bool> {
    loop {
        let fd = file.fd();
        let mut polled = [PollFd::new(&fd, PollFlags::IN)];
        match poll(&mut polled, timeout(deadline).as_ref()) {
            Ok(0) => return Ok(false),
            Ok(_) if polled[0].revents().contains(PollFlags::IN) => return Ok(true),
            Ok(_) => return Err(Error::new("poll", Errno::NODEV)),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::new("poll", errno)),
        }
    }
}

/// Returns the time that is left, [`None`] for ever.
fn timeout(deadline: Deadline) -> Option<Timespec> {
    if deadline == Deadline::FOREVER {
        return None;
    }
    let left = deadline.nanoseconds().saturating_sub(time::now()).max(0);
    Some(Timespec {
        tv_sec: left / 1_000_000_000,
        tv_nsec: left % 1_000_000_000,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a record of `length` bytes: its words, and zeros.
    fn record(words: [u32; 6], large: [u64; 2], length: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
        bytes.extend(large.into_iter().flat_map(u64::to_ne_bytes));
        bytes.resize(length, 0);
        bytes
    }

    #[test]
    fn records_follow_one_another_by_their_length() {
        let mut bytes = record([abi::EVENT_TRIM, 40, 5, 0, 1, 0], [4096, 8192], 40);
        bytes.extend(record([99, 48, 6, 0, 0, 0], [0, 0], 48));
        bytes.extend(record([abi::EVENT_OVERFLOW, 40, 7, 0, 0, 3], [0, 0], 40));

        let mut found = Vec::new();
        let mut at = 0;
        while let Some((record, length)) = parse(&bytes[at..]) {
            found.push((record.time_ns, record.event));
            at += length;
        }

        let trim = Event::Trim {
            group: Group::NonLocal,
            bytes: 4096,
            usage: 8192,
        };
        assert_eq!(
            found,
            [
                (5, trim),
                (6, Event::Unknown { kind: 99 }),
                (7, Event::Overflow { lost: 3 })
            ]
        );
    }

    #[test]
    fn record_that_is_cut_off_or_without_length_ends_the_list() {
        let whole = record([abi::EVENT_RESUMED, 40, 0, 0, 0, 0], [0, 0], 40);

        assert!(parse(&whole[..39]).is_none());
        assert!(parse(&record([5, 0, 0, 0, 0, 0], [0, 0], 40)).is_none());
        assert!(parse(&[]).is_none());
    }

    #[test]
    fn mask_has_the_bit_before_the_type() {
        assert_eq!(Subscription::new().budget().trim().scanout().mask, 0x43);
    }
}
