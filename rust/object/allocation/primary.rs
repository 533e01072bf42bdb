// SPDX-License-Identifier: GPL-2.0

//! What makes an allocation a primary: a picture, how many sources show it, and who writes it.
//!
//! A source waits with showing a primary until the work that was accepted before and writes it has
//! ended ([`super::super::scanout`]). So each accepted submission that writes one leaves a *write*
//! here, numbered in the order of acceptance, for as long as it is under way; whoever wants to know
//! notes the next number, and all is written when no earlier one is left.
//!
//! # Locking
//!
//! `Primary::writes` is a leaf spinlock.

use kernel::{
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full, //
        },
        Arc,
        SpinLock, //
    },
};

use crate::object::worker::Worker;

use super::Allocation;

pub(crate) use crate::policy::picture::{
    Format,
    Picture, //
};

/// What a primary is beyond memory.
#[pin_data]
pub(crate) struct Primary {
    picture: Picture,
    /// Sources that show it or are about to.
    displays: Atomic<u32>,
    #[pin]
    writes: SpinLock<Writes>,
}

/// Writes that are under way, by their numbers.
struct Writes {
    under_way: RBTree<u64, ()>,
    next: u64,
}

impl Primary {
    /// Makes a primary with this picture.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new(picture: Picture) -> Result<Pin<KBox<Self>>> {
        let writes = Writes {
            under_way: RBTree::new(),
            next: 0,
        };
        KBox::pin_init(
            pin_init!(Self {
                picture,
                displays: Atomic::new(0),
                writes <- new_spinlock!(writes, "Primary::writes"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Returns the picture.
    pub(crate) fn picture(&self) -> &Picture {
        &self.picture
    }

    /// Returns how many sources show it or are about to.
    pub(crate) fn displays(&self) -> u32 {
        self.displays.load(Acquire)
    }

    /// One more source shows it.
    pub(super) fn begin_display(&self) {
        self.displays.fetch_add(1, Full);
    }

    /// One source less shows it.
    pub(super) fn end_display(&self) {
        self.displays.fetch_sub(1, Full);
    }

    /// Returns the number that the next write gets.
    pub(in crate::object) fn next_write(&self) -> u64 {
        self.writes.lock().next
    }

    /// Returns whether all writes with numbers below `end` have ended.
    pub(in crate::object) fn is_written(&self, end: u64) -> bool {
        let writes = self.writes.lock();
        let first = writes.under_way.keys().next();
        first.is_none_or(|first| *first >= end)
    }
}

/// A write to a primary that is under way, for as long as this lives.
pub(in crate::object) struct Write {
    allocation: Arc<Allocation>,
    number: u64,
}

impl Write {
    /// Begins a write, if the allocation is a primary.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(in crate::object) fn begin(allocation: &Arc<Allocation>) -> Result<Option<Self>> {
        let Some(primary) = allocation.primary() else {
            return Ok(None);
        };
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let number = {
            let mut writes = primary.writes.lock();
            let number = writes.next;
            writes.next += 1;
            writes.under_way.insert(node.into_node(number, ()));
            number
        };
        Ok(Some(Self {
            allocation: allocation.clone(),
            number,
        }))
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        let Some(primary) = self.allocation.primary() else {
            return;
        };
        let node = primary.writes.lock().under_way.remove_node(&self.number);
        drop(node);
        if primary.displays() > 0 {
            // A source may wait for it.
            Worker::kick(self.allocation.adapter().worker());
        }
    }
}
