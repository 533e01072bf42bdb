// SPDX-License-Identifier: GPL-2.0

//! Contexts: ordered streams of submissions on one node.

use crate::{
    abi,
    commands::Buffer,
    fence::{
        self,
        Slot, //
    },
    handle::Handle,
    Deadline,
    Device,
    Result,
    Submission, //
};

/// How a context names memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The lists of each submission decide residency.
    #[default]
    PatchedList,
    /// Lists only patch; everything named holds a residency reference.
    PatchedExplicit,
    /// GPU virtual addresses.
    Virtual,
}

impl Mode {
    /// Returns the value of the interface.
    pub fn value(self) -> u32 {
        match self {
            Self::PatchedList => abi::CONTEXT_MODE_PATCHED_LIST,
            Self::PatchedExplicit => abi::CONTEXT_MODE_PATCHED_EXPLICIT,
            Self::Virtual => abi::CONTEXT_MODE_VIRTUAL,
        }
    }

    /// Says whether a node offers the mode.
    pub fn is_offered(self, node: &abi::InfoNode) -> bool {
        node.modes & (1 << self.value()) != 0
    }
}

/// Describes a context that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Builder {
    argument: abi::ContextCreate,
}

impl Builder {
    /// Describes a context of mode PATCHED_LIST on the node with this ordinal.
    pub fn new(node: u32) -> Self {
        Self {
            argument: abi::ContextCreate {
                node,
                companion_node: abi::NODE_NONE,
                ..Default::default()
            },
        }
    }

    /// Chooses how memory is named.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.argument.mode = mode.value();
        self
    }

    /// Adds `CONTEXT_` flags.
    pub fn flags(mut self, flags: u32) -> Self {
        self.argument.flags |= flags;
        self
    }

    /// Sets the priority, -7 to 7.
    pub fn priority(mut self, priority: i32) -> Self {
        self.argument.priority = priority;
        self
    }

    /// Sets the time limit of one portion; 0 is the default of the node.
    pub fn timeout_ms(mut self, milliseconds: u32) -> Self {
        self.argument.timeout_ms = milliseconds;
        self
    }

    /// Returns the argument for changes that the builder has no method for.
    pub fn argument_mut(&mut self) -> &mut abi::ContextCreate {
        &mut self.argument
    }

    /// Makes the context.
    pub fn create(&self, device: &Device) -> Result<Context> {
        let file = device.file();
        let reply = file.call(abi::ContextCreate {
            device: device.handle(),
            ..self.argument
        })?;
        // The handles first: they are closed if the page cannot be mapped.
        let handle = Handle::new(file, reply.context);
        let progress = Handle::new(file, reply.progress);
        Ok(Context {
            slot: Slot::map(file, reply.progress_mmap, reply.progress_slot)?,
            handle,
            progress,
        })
    }
}

/// A context of a device.
#[derive(Debug)]
pub struct Context {
    handle: Handle,
    progress: Handle,
    slot: Slot,
}

impl Context {
    /// Returns the handle.
    pub fn handle(&self) -> u32 {
        self.handle.value()
    }

    /// Returns the handle of the progress fence.
    pub fn progress_fence(&self) -> u32 {
        self.progress.value()
    }

    /// Returns the slot of the progress fence.
    pub fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Returns the id of the last finished submission.
    pub fn finished(&self) -> u64 {
        self.slot.value()
    }

    /// Returns the point at which the submission with this id has finished.
    pub fn point(&self, submission: u64) -> abi::Point {
        fence::point(self.progress_fence(), submission)
    }

    /// Begins a submission of `buffer`.
    pub fn submission(&self, buffer: Buffer) -> Submission<'_> {
        Submission::new(&self.handle, buffer)
    }

    /// Waits until the submission with this id has finished.
    pub fn wait(&self, submission: u64, deadline: Deadline) -> Result<()> {
        let points = [self.point(submission)];
        fence::wait(self.handle.file(), &points, deadline, 0).map(|_| ())
    }

    /// Returns what became of a submission.
    pub fn query(&self, submission: u64) -> Result<abi::SubmitQuery> {
        self.handle.file().call(abi::SubmitQuery {
            context: self.handle(),
            submission,
            ..Default::default()
        })
    }

    /// Changes the priority.
    pub fn set_priority(&self, priority: i32) -> Result<()> {
        self.set(abi::ContextSet {
            mask: abi::CONTEXT_SET_PRIORITY,
            priority,
            ..Default::default()
        })
    }

    /// Changes the time limit of one portion.
    pub fn set_timeout(&self, milliseconds: u32) -> Result<()> {
        self.set(abi::ContextSet {
            mask: abi::CONTEXT_SET_TIMEOUT,
            timeout_ms: milliseconds,
            ..Default::default()
        })
    }

    fn set(&self, argument: abi::ContextSet) -> Result<()> {
        self.handle.file().call(abi::ContextSet {
            context: self.handle(),
            ..argument
        })?;
        Ok(())
    }

    /// Closes the context and its progress fence, and says how that went.
    pub fn close(self) -> Result<()> {
        self.handle.close(0)?;
        self.progress.close(0)
    }
}
