// SPDX-License-Identifier: GPL-2.0

//! Monitored fences.
//!
//! A monitored fence is a 64-bit value that normally only rises. Its value lives in a page that
//! programs map read-only ([`super::fence_page`]), so that looking at it costs a load. Whoever
//! waits leaves a [`Wake`] behind, sorted by the value it waits for, and is called when the value
//! is reached or the fence is poisoned. A fence never blocks anything by itself: a GPU wait holds
//! back the context it was queued on and nothing else (SYN-4).
//!
//! # Locking
//!
//! `Fence::inner` (rank 7, spinlock) protects the value and the waiters. Waiters are called after
//! it is released.

use kernel::{
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        Arc,
        SpinLock, //
    },
};

use crate::{
    abstractions::{
        clock,
        trace, //
    },
    object::{
        client::Client,
        fence_page::{
            Access,
            Slot, //
        },
        name, //
    },
    units::FenceValue,
};

/// Somebody who waits for a fence.
pub(crate) trait Wake: Send + Sync {
    /// The value is reached, or the fence is poisoned. Called once for each waiter, with the ticket
    /// it was made with and no lock held.
    fn wake(&self, ticket: u64);
}

/// What orders waiters: the value they wait for, then a number of their own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitKey {
    value: u64,
    ticket: u64,
}

/// Memory for one waiter, taken before any lock.
pub(crate) type Waiter = RBTreeNode<WaitKey, Arc<dyn Wake>>;

/// What a fence is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Made by a client.
    Client {
        /// Whether FENCE_SIGNAL may raise it.
        cpu_signal: CpuSignal,
        /// What poisoning does to the value.
        on_reset: OnReset,
    },
    /// Tells how far a paging queue is; raised by the worker alone (SYN-9).
    Paging,
    /// Tells which submission of a context finished last.
    Progress,
}

/// Whether the CPU may signal a fence.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CpuSignal {
    /// FENCE_SIGNAL works.
    Allowed,
    /// FENCE_SIGNAL is refused.
    Refused,
}

/// What happens to the value when a fence is poisoned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnReset {
    /// It becomes the largest number, so that spinning readers come free.
    Saturate,
    /// It stays.
    Keep,
}

/// How a value comes to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rewind {
    /// A lower value is an error.
    Refused,
    /// A lower value is taken.
    Allowed,
}

/// How a fence answers a question about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// Not there yet.
    No,
    /// There, or beyond.
    Yes,
    /// It never will be: the work that should have signalled it is gone.
    Poisoned(Error),
}

/// A monitored fence.
#[pin_data]
pub(crate) struct Fence {
    number: u64,
    process: u64,
    purpose: Purpose,
    value_slot: Slot,
    #[pin]
    name: name::Slot,
    #[pin]
    inner: SpinLock<Inner>,
}

struct Inner {
    value: u64,
    poison: Option<Error>,
    waiters: RBTree<WaitKey, Arc<dyn Wake>>,
}

impl Fence {
    /// Makes a fence of `client` with a first value.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `ENOSPC`: no mapping offset left for a page of fences.
    pub(crate) fn new(client: &Arc<Client>, purpose: Purpose, initial: u64) -> Result<Arc<Self>> {
        let access = match purpose {
            Purpose::Client { .. } => Access::Gpu,
            Purpose::Paging | Purpose::Progress => Access::KernelOnly,
        };
        let value_slot = client.fence_pages().take(client, access, initial)?;
        let adapter = client.adapter();
        let fence = Arc::pin_init(
            pin_init!(Self {
                number: adapter.next_number(),
                process: client.id(),
                purpose,
                value_slot,
                name <- name::Slot::new(),
                inner <- new_spinlock!(
                    Inner {
                        value: initial,
                        poison: None,
                        waiters: RBTree::new(),
                    },
                    "Fence::inner"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        adapter.registries().fences.add(fence.number, &fence)?;
        Ok(fence)
    }

    /// Takes the fence off the list that the debug files show, and its page out of reach if no other
    /// fence on it has a handle. Called when its handle goes.
    pub(crate) fn unlist(&self, client: &Client) {
        client.fence_pages().close_one(client, &self.value_slot);
        client.adapter().registries().fences.remove(self.number);
    }

    /// Returns its number, unique on the adapter.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the number of the client it belongs to.
    pub(crate) fn process(&self) -> u64 {
        self.process
    }

    /// Returns what it is for.
    pub(crate) fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Returns its place in the page that programs map.
    pub(crate) fn slot(&self) -> &Slot {
        &self.value_slot
    }

    /// Returns where its name is.
    pub(crate) fn name(&self) -> &name::Slot {
        &self.name
    }

    /// Returns the current value.
    pub(crate) fn value(&self) -> FenceValue {
        FenceValue(self.inner.lock().value)
    }

    /// Returns how many wait.
    pub(crate) fn waiters(&self) -> usize {
        self.inner.lock().waiters.iter().count()
    }

    /// Says whether `value` has been reached.
    pub(crate) fn reached(&self, value: u64) -> Reached {
        self.inner.lock().reached(value)
    }

    /// Takes memory for somebody who will wait for `value`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(crate) fn waiter(value: u64, ticket: u64, wake: Arc<dyn Wake>) -> Result<Waiter> {
        RBTreeNode::new(WaitKey { value, ticket }, wake, GFP_KERNEL_ACCOUNT)
    }

    /// Leaves `waiter` behind unless `value`, which it was made for, is reached already.
    pub(crate) fn wait_for(&self, value: u64, waiter: Waiter) -> Reached {
        let mut inner = self.inner.lock();
        let reached = inner.reached(value);
        let unused = match reached {
            Reached::No => inner.waiters.insert(waiter),
            _ => Some(waiter),
        };
        drop(inner);
        drop(unused);
        reached
    }

    /// Takes a waiter away again, if it is still there.
    pub(crate) fn forget(&self, value: u64, ticket: u64) {
        let waiter = self
            .inner
            .lock()
            .waiters
            .remove_node(&WaitKey { value, ticket });
        drop(waiter);
    }

    /// Sets the value, as FENCE_SIGNAL does.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it would lower the value and `rewind` does not allow that.
    pub(crate) fn set(&self, value: u64, rewind: Rewind, origin: trace::Origin) -> Result {
        let mut inner = self.inner.lock();
        if inner.poison.is_some() {
            return Ok(());
        }
        if value < inner.value && rewind == Rewind::Refused {
            return Err(EINVAL);
        }
        if value != inner.value {
            self.store(&mut inner, value, origin);
        }
        drop(inner);
        self.wake_reached();
        Ok(())
    }

    /// Raises the value, as a queued signal does: a fence that is there already stays as it is
    /// (SYN-8).
    pub(crate) fn raise(&self, value: u64, origin: trace::Origin) {
        let mut inner = self.inner.lock();
        if inner.poison.is_some() || value <= inner.value {
            return;
        }
        self.store(&mut inner, value, origin);
        drop(inner);
        self.wake_reached();
    }

    /// Poisons the fence: the work that should have signalled it is gone for `error`.
    ///
    /// `on_reset` says what becomes of the value, unless the fence was made to keep it.
    pub(crate) fn poison(&self, error: Error, on_reset: OnReset) {
        let mut inner = self.inner.lock();
        if inner.poison.is_some() {
            return;
        }
        inner.poison = Some(error);
        self.value_slot.write_poison(error);
        let keeps = matches!(
            self.purpose,
            Purpose::Client {
                on_reset: OnReset::Keep,
                ..
            }
        );
        if on_reset == OnReset::Saturate && !keeps {
            self.store(&mut inner, u64::MAX, trace::Origin::Reset);
        }
        drop(inner);
        self.wake_reached();
    }

    /// Writes a new value. `&mut Inner` proves the lock.
    fn store(&self, inner: &mut Inner, value: u64, origin: trace::Origin) {
        inner.value = value;
        self.value_slot.write(value, clock::now_ns());
        trace::fence(|| trace::Fence {
            fence: self.number,
            value,
            origin,
        });
    }

    /// Calls everybody whose value is reached, one by one, with the lock released for each.
    fn wake_reached(&self) {
        loop {
            let waiter = self.inner.lock().pop_reached();
            match waiter {
                Some(waiter) => {
                    let (key, wake) = waiter.to_key_value();
                    wake.wake(key.ticket);
                }
                None => return,
            }
        }
    }
}

impl Inner {
    fn reached(&self, value: u64) -> Reached {
        match self.poison {
            // Whoever closed a context has reached what it had reached.
            Some(error) if error == ECANCELED && self.value >= value => Reached::Yes,
            Some(error) => Reached::Poisoned(error),
            None if self.value >= value => Reached::Yes,
            None => Reached::No,
        }
    }

    fn pop_reached(&mut self) -> Option<Waiter> {
        let poisoned = self.poison.is_some();
        let value = self.value;
        let cursor = self.waiters.cursor_front_mut()?;
        if poisoned || cursor.current().0.value <= value {
            Some(cursor.remove_current().1)
        } else {
            None
        }
    }
}
