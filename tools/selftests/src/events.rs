// SPDX-License-Identifier: GPL-2.0

//! Events of a client: subscriptions and records.

use crate::{
    abi::{
        self,
        Event,
        Events, //
    },
    call::{
        bytes_of_mut,
        Errno, //
    },
    client::Client,
    clock,
    commands::Commands,
    descriptor::{
        poll,
        read_at,
        set_waiting, //
    },
    fixture::{
        physical,
        PHYSICAL_NODE,
        SYSTEM, //
    }, //
};

/// The bit of an event type in the mask of EVENTS.
pub const fn bit(kind: u32) -> u64 {
    1 << (kind - 1)
}

/// Asks for events.
pub fn try_subscribe(client: &Client, mask: u64, eventfd: i32) -> Result<(), Errno> {
    client.call(
        abi::IOCTL_EVENTS,
        &mut Events {
            mask,
            eventfd,
            flags: 0,
        },
    )
}

/// Asks for events of these types, without an eventfd.
pub fn subscribe(client: &Client, kinds: &[u32]) {
    let mask = kinds.iter().map(|kind| bit(*kind)).sum();
    try_subscribe(client, mask, abi::EVENTS_NO_EVENTFD)
        .unwrap_or_else(|errno| panic!("EVENTS {mask:#x}: errno {errno}"));
    set_waiting(client.file(), false);
}

/// Ends the subscription.
pub fn unsubscribe(client: &Client) {
    try_subscribe(client, 0, abi::EVENTS_NO_EVENTFD)
        .unwrap_or_else(|errno| panic!("EVENTS 0: errno {errno}"));
}

/// Reads up to `most` records in one call.
pub fn try_read(client: &Client, most: usize) -> Result<Vec<Event>, Errno> {
    let mut records = vec![Event::default(); most];
    let bytes = bytes_of_mut(&mut records);
    let length = read_at(client.file(), bytes.as_mut_ptr() as u64, bytes.len())?;
    assert_eq!(length % size_of::<Event>(), 0, "a part of a record");
    records.truncate(length / size_of::<Event>());
    Ok(records)
}

/// Reads everything that is queued.
pub fn drain(client: &Client) -> Vec<Event> {
    let mut records = Vec::new();
    loop {
        match try_read(client, 16) {
            Ok(more) => records.extend(more),
            Err(libc::EAGAIN) => return records,
            Err(errno) => panic!("read: errno {errno}"),
        }
    }
}

/// Whether there is something to read.
pub fn is_readable(client: &Client) -> bool {
    poll(client.file(), 0) & libc::POLLIN != 0
}

/// Waits until there is something to read.
pub fn wait_readable(client: &Client) {
    let limit = i32::try_from(clock::patience().as_millis()).unwrap_or(i32::MAX);
    assert_eq!(poll(client.file(), limit), libc::POLLIN, "not readable");
}

/// Puts a new device of a client in error, and returns its handle.
pub fn fail_a_device(client: &Client) -> u32 {
    let device = client.create_device();
    fail(client, device);
    device
}

/// Puts a device of a client in error.
pub fn fail(client: &Client, device: u32) {
    let mode = abi::CONTEXT_MODE_PATCHED_EXPLICIT;
    let context = client.create_context_of_mode(device, PHYSICAL_NODE, mode);
    let allocation = client.create(device, physical(4096, SYSTEM));
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 1);
    let refusal = commands
        .try_submit(client, context.handle)
        .expect_err("it is not on the residency list");
    assert_eq!(refusal.errno, libc::EINVAL);
}
