// SPDX-License-Identifier: GPL-2.0

//! Lists of all living objects of an adapter, by number.
//!
//! Every object is entered when it is made and taken out when its name is gone. The debug files
//! read these lists; nothing finds its way through them in normal work.
//!
//! # Locking
//!
//! `Registry::objects` is a leaf spinlock. References are dropped after it is released.

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

/// All living objects of one kind, by number.
#[pin_data]
pub(crate) struct Registry<T> {
    #[pin]
    objects: SpinLock<RBTree<u64, Arc<T>>>,
}

impl<T: Send + Sync> Registry<T> {
    /// Returns an empty list.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            objects <- new_spinlock!(RBTree::new(), "Registry::objects"),
        })
    }

    /// Enters `object`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(crate) fn add(&self, number: u64, object: &Arc<T>) -> Result {
        let node = RBTreeNode::new(number, object.clone(), GFP_KERNEL_ACCOUNT)?;
        let replaced = self.objects.lock().insert(node);
        drop(replaced);
        Ok(())
    }

    /// Takes the object with this number out; says whether it was there.
    pub(crate) fn remove(&self, number: u64) -> bool {
        let node = self.objects.lock().remove_node(&number);
        node.is_some()
    }

    /// Returns the object with this number.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<T>> {
        self.objects.lock().get(&number).cloned()
    }

    /// Returns whether an object with this number is entered.
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.objects.lock().get(&number).is_some()
    }

    /// Returns the first object with a number of at least `number`: the way to walk the list
    /// without holding its lock.
    pub(crate) fn at_least(&self, number: u64) -> Option<(u64, Arc<T>)> {
        let objects = self.objects.lock();
        let cursor = objects.cursor_lower_bound(&number)?;
        let (number, object) = cursor.current();
        Some((*number, object.clone()))
    }

    /// Returns whether no object is entered.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.lock().is_empty()
    }

    /// Walks the list in the order of the numbers, holding no lock while `visit` runs.
    pub(crate) fn for_each<E>(
        &self,
        mut visit: impl FnMut(&Arc<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut next = 0;
        while let Some((number, object)) = self.at_least(next) {
            visit(&object)?;
            match number.checked_add(1) {
                Some(number) => next = number,
                None => break,
            }
        }
        Ok(())
    }
}
