// SPDX-License-Identifier: GPL-2.0

//! A world for arguments: one object of each type, and calls that should succeed or fail.

use crate::{
    argument::Argument,
    call::{
        issue_bytes,
        Errno, //
    },
    client::{
        Allocation,
        Client,
        Context,
        Queue, //
    },
    commands::Commands,
    fixture::{
        physical,
        Fixture,
        PHYSICAL_NODE,
        SYSTEM, //
    },
    schema::{
        Call,
        Type, //
    }, //
};

/// One object of each type, which arguments can name.
pub struct World {
    /// The client.
    pub client: Client,
    /// A device.
    pub device: u32,
    /// A paging queue.
    pub queue: Queue,
    /// A context that has run one submission.
    pub context: Context,
    /// An allocation in system memory that engines reach physically.
    pub allocation: Allocation,
    /// A fence.
    pub fence: u32,
    /// Another one, to be signalled.
    pub other_fence: u32,
}

impl World {
    /// Makes the objects.
    pub fn new() -> Self {
        let Fixture {
            client,
            device,
            queue,
        } = Fixture::new();
        let context = client.create_context(device, PHYSICAL_NODE);
        let allocation = client.create(device, physical(4096, SYSTEM));
        let fence = client.create_fence(device, 0);
        let other_fence = client.create_fence(device, 0);
        let id = Commands::new().submit(&client, &context);
        client.wait(context.progress, id);
        Self {
            client,
            device,
            queue,
            context,
            allocation,
            fence,
            other_fence,
        }
    }

    /// A handle of an object of a type.
    pub fn handle(&self, kind: Type) -> u32 {
        match kind {
            Type::Device | Type::Any => self.device,
            Type::Allocation => self.allocation.handle,
            Type::Context => self.context.handle,
            Type::Queue => self.queue.handle,
            Type::Fence => self.fence,
        }
    }

    /// A handle of a type that was closed.
    pub fn stale_handle(&self, kind: Type) -> u32 {
        let handle = match kind {
            Type::Device | Type::Any => self.client.create_device(),
            Type::Allocation => {
                self.client
                    .create(self.device, physical(4096, SYSTEM))
                    .handle
            }
            Type::Context => {
                self.client
                    .create_context(self.device, PHYSICAL_NODE)
                    .handle
            }
            Type::Queue => self.client.create_queue(self.device).handle,
            Type::Fence => self.client.create_fence(self.device, 0),
        };
        self.client.close(&[handle]);
        handle
    }

    /// Issues a call.
    pub fn issue(&self, call: &Call, argument: &mut Argument) -> Result<(), Errno> {
        issue_bytes(self.client.file(), call.number, &mut argument.bytes)
    }

    /// Asserts that a call with this argument is refused.
    #[track_caller]
    pub fn assert_refused(&self, call: &Call, argument: &mut Argument, errno: Errno, what: &str) {
        let result = self.issue(call, argument);
        assert_eq!(result, Err(errno), "{}: {what}", call.name);
    }

    /// Asserts that a call with this argument succeeds.
    #[track_caller]
    pub fn assert_accepted(&self, call: &Call, argument: &mut Argument, what: &str) {
        let result = self.issue(call, argument);
        assert_eq!(result, Ok(()), "{}: {what}", call.name);
    }
}
