// SPDX-License-Identifier: GPL-2.0

//! A device: the unit that owns work and that is put in error.
//!
//! A device holds its contexts, so that an error can stop all of them, and the demands of its
//! residency requirement list, so that admission (step A1 of RES-1) needs no walk over it.
//!
//! # Locking
//!
//! `Device::state` and `Device::contexts` are spinlocks of rank 5; `Device::demands` is a mutex of
//! rank 1, see [`super::residency`].

use kernel::{
    new_mutex, new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Release, //
        },
        Arc,
        Mutex,
        SpinLock, //
    },
};

use crate::{
    abstractions::{
        clock,
        trace, //
    },
    backend::ObjectCall,
    object::{
        adapter::Adapter,
        client::Client,
        context::Context,
        demand::Demands,
        events::Event,
        fixed::Fixed,
        name,
        need::Requirement,
        presence::Presence,
        worker::Worker, //
    },
    units::GpuVirtualAddress,
};

pub(crate) use crate::backend::FaultAccess;

/// What a device is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It works.
    Active,
    /// A portion could not be placed when it was to run.
    ErrorMemory,
    /// A packet or an address turned out wrong when it ran, or a list named something that is not
    /// on the residency list.
    ErrorDma,
    /// Work met a virtual address that it could not access.
    ErrorFault,
    /// A portion ran beyond its time limit.
    Hung,
    /// A reset of the adapter took it along.
    Reset,
}

/// An access by virtual address that was not possible (VA-21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The address.
    pub(crate) address: GpuVirtualAddress,
    /// What was to be done there.
    pub(crate) access: FaultAccess,
    /// Why it was not possible.
    pub(crate) reason: FaultReason,
}

/// Why an access was not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultReason {
    /// Nothing is mapped there.
    NotMapped,
    /// A mapping exists, and its memory is away.
    NotResident,
    /// The mapping does not allow it.
    Protection,
}

/// Everything DEVICE_STATE says.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot {
    /// The state.
    pub(crate) state: State,
    /// Handle-independent number of the context that was running, 0 if none.
    pub(crate) context: u64,
    /// Node ordinal, [`None`] if none.
    pub(crate) node: Option<u32>,
    /// Submission that was running.
    pub(crate) submission: u64,
    /// `ERROR_DMA`: byte offset of the packet.
    pub(crate) offset: u64,
    /// `ERROR_FAULT`: the access.
    pub(crate) fault: Option<Fault>,
    /// When it happened, CLOCK_MONOTONIC.
    pub(crate) time_ns: u64,
}

/// What put a device in error.
#[derive(Clone, Copy)]
pub(crate) struct Offence {
    /// The state it leads to.
    pub(crate) state: State,
    /// The context at fault.
    pub(crate) context: u64,
    /// Its node.
    pub(crate) node: Option<u32>,
    /// The submission at fault.
    pub(crate) submission: u64,
    /// Byte offset of the packet at fault.
    pub(crate) offset: u64,
    /// The access that was not possible, if that was it.
    pub(crate) fault: Option<Fault>,
}

/// One client of an adapter's engines.
#[pin_data]
pub(crate) struct Device {
    number: u64,
    client: Arc<Client>,
    #[pin]
    name: name::Slot,
    /// Whether it is in error: what every call asks, without the lock.
    failed: Atomic<bool>,
    /// Whether its handle is gone.
    closed: Atomic<bool>,
    /// How often sources show its primaries.
    displays: Atomic<u32>,
    #[pin]
    state: SpinLock<Snapshot>,
    #[pin]
    contexts: SpinLock<RBTree<u64, Arc<Context>>>,
    /// What of its residency requirement list never leaves its place.
    fixed: Fixed,
    #[pin]
    demands: Mutex<Demands>,
    _presence: Presence,
}

impl Device {
    /// Makes a device of `client`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(crate) fn new(client: &Arc<Client>) -> Result<Arc<Self>> {
        let adapter = client.adapter();
        let process = client.id();
        let presence = Presence::new(
            adapter.backend(),
            ObjectCall::CreateDevice { process },
            ObjectCall::DestroyDevice { process },
        )?;
        let active = Snapshot {
            state: State::Active,
            context: 0,
            node: None,
            submission: 0,
            offset: 0,
            fault: None,
            time_ns: 0,
        };
        let device = Arc::pin_init(
            pin_init!(Self {
                number: adapter.next_number(),
                client: client.clone(),
                name <- name::Slot::new(),
                failed: Atomic::new(false),
                closed: Atomic::new(false),
                displays: Atomic::new(0),
                state <- new_spinlock!(active, "Device::state"),
                contexts <- new_spinlock!(RBTree::new(), "Device::contexts"),
                fixed: Fixed::new(),
                demands <- new_mutex!(Demands::new(), "Device::demands"),
                _presence: presence,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        adapter.registries().devices.add(device.number, &device)?;
        Ok(device)
    }

    /// Takes the device off the list that the debug files show. Called when its handle goes.
    pub(crate) fn closed(&self) {
        self.closed.store(true, Release);
        // Commands of its queues end without being carried out.
        Worker::kick(self.adapter().worker());
        self.adapter().registries().devices.remove(self.number);
    }

    /// Returns its number, unique on the adapter.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the client it belongs to.
    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Returns the adapter.
    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        self.client.adapter()
    }

    /// Returns where its name is.
    pub(crate) fn name(&self) -> &name::Slot {
        &self.name
    }

    /// Returns what of its residency requirement list never leaves its place.
    pub(super) fn fixed(&self) -> &Fixed {
        &self.fixed
    }

    /// Returns what its residency requirement list asks for, behind its lock.
    pub(crate) fn demands(&self) -> &Mutex<Demands> {
        &self.demands
    }

    /// Returns its state.
    pub(crate) fn state(&self) -> Snapshot {
        *self.state.lock()
    }

    /// Returns whether nobody is left to see what is done for it.
    pub(super) fn is_over(&self) -> bool {
        self.closed.load(Acquire) || self.failed.load(Acquire)
    }

    /// A source begins to show one of its primaries.
    pub(super) fn begin_display(&self) {
        self.displays.fetch_add(1, Full);
    }

    /// A source ceases to show one of its primaries.
    pub(super) fn end_display(&self) {
        self.displays.fetch_sub(1, Full);
    }

    /// Returns whether a source shows one of its primaries or is about to.
    pub(crate) fn is_on_screen(&self) -> bool {
        self.displays.load(Acquire) > 0
    }

    /// Refuses calls on a device that is in error.
    ///
    /// # Errors
    ///
    /// - `EIO`: it is in error.
    pub(crate) fn ensure_active(&self) -> Result {
        if self.failed.load(Acquire) {
            return Err(EIO);
        }
        Ok(())
    }

    /// Returns claims on everything it holds residency references to and has not offered.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn required(&self) -> Result<KVVec<Requirement>> {
        let mut required = KVVec::new();
        loop {
            let demands = self.demands.lock();
            if required.capacity() < demands.len() {
                let len = demands.len();
                drop(demands);
                required.reserve(len, GFP_KERNEL_ACCOUNT)?;
                continue;
            }
            for one in demands.iter().filter_map(Requirement::new) {
                let _ = required.push_within_capacity(one);
            }
            return Ok(required);
        }
    }

    /// Enters a context, so that errors of the device reach it.
    pub(super) fn add_context(&self, context: &Arc<Context>) -> Result {
        let node = RBTreeNode::new(context.number(), context.clone(), GFP_KERNEL_ACCOUNT)?;
        let replaced = self.contexts.lock().insert(node);
        drop(replaced);
        Ok(())
    }

    /// Takes a context out.
    pub(super) fn remove_context(&self, number: u64) {
        let node = self.contexts.lock().remove_node(&number);
        drop(node);
    }

    /// Puts the device in error: its work is thrown away and what that work should have signalled
    /// is poisoned. Only the first error counts.
    pub(crate) fn fail(&self, offence: Offence) {
        let mut state = self.state.lock();
        if state.state != State::Active {
            // What hangs and cannot be ended by itself is to blame for the reset.
            if (state.state, offence.state) == (State::Hung, State::Reset) {
                state.state = State::Reset;
                drop(state);
                self.announce(offence.state);
            }
            return;
        }
        *state = Snapshot {
            state: offence.state,
            context: offence.context,
            node: offence.node,
            submission: offence.submission,
            offset: offence.offset,
            fault: offence.fault,
            time_ns: clock::now_ns(),
        };
        self.failed.store(true, Release);
        drop(state);
        if let Some(fault) = offence.fault {
            trace::fault(|| trace::Fault {
                context: offence.context,
                address: fault.address.0,
                reason: fault.reason.word(),
            });
        }
        self.announce(offence.state);
        let mut next = 0;
        while let Some(context) = self.context_at_least(next) {
            context.cancel(EIO);
            match context.number().checked_add(1) {
                Some(number) => next = number,
                None => break,
            }
        }
    }

    fn announce(&self, state: State) {
        trace::device_state(|| trace::DeviceState {
            device: self.number,
            state: state.word(),
        });
        self.client.events().post(Event::DeviceState {
            device: self.name.handle(),
            state,
        });
    }

    fn context_at_least(&self, number: u64) -> Option<Arc<Context>> {
        let contexts = self.contexts.lock();
        let cursor = contexts.cursor_lower_bound(&number)?;
        Some(cursor.current().1.clone())
    }
}

impl State {
    fn word(self) -> trace::State {
        match self {
            State::Active => trace::State::Active,
            State::ErrorMemory => trace::State::ErrorMemory,
            State::ErrorDma => trace::State::ErrorDma,
            State::ErrorFault => trace::State::ErrorFault,
            State::Hung => trace::State::Hung,
            State::Reset => trace::State::Reset,
        }
    }
}

impl FaultReason {
    fn word(self) -> trace::FaultReason {
        match self {
            FaultReason::NotMapped => trace::FaultReason::NotMapped,
            FaultReason::NotResident => trace::FaultReason::NotResident,
            FaultReason::Protection => trace::FaultReason::Protection,
        }
    }
}
