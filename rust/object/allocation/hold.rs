// SPDX-License-Identifier: GPL-2.0

//! Claims on an allocation.
//!
//! Whoever needs the storage to stay, holds it: a handle, a submission, a queued command, a mapping.
//! When the last claim goes, the allocation is abandoned and its storage goes.

use core::ops::Deref;

use kernel::sync::{
    atomic::{
        Full,
        Relaxed, //
    },
    Arc, //
};

use super::Allocation;

/// A claim on an allocation: as long as there is one, its storage stays.
pub(crate) struct Hold(Arc<Allocation>);

impl Hold {
    /// Returns the first claim on a new allocation, which counts it already.
    pub(super) fn first(allocation: Arc<Allocation>) -> Self {
        Self(allocation)
    }

    /// Returns the allocation.
    pub(crate) fn allocation(&self) -> &Arc<Allocation> {
        &self.0
    }
}

impl Deref for Hold {
    type Target = Allocation;

    fn deref(&self) -> &Allocation {
        &self.0
    }
}

impl Clone for Hold {
    fn clone(&self) -> Self {
        self.0.holds.fetch_add(1, Relaxed);
        Self(self.0.clone())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.0.holds.fetch_sub(1, Full) == 1 {
            Allocation::abandon(&self.0);
        }
    }
}

impl Allocation {
    /// Returns a claim on it, unless the last one is gone.
    pub(crate) fn hold(this: &Arc<Self>) -> Option<Hold> {
        let mut holds = this.holds.load(Relaxed);
        while holds > 0 {
            match this.holds.cmpxchg(holds, holds + 1, Full) {
                Ok(_) => return Some(Hold(this.clone())),
                Err(now) => holds = now,
            }
        }
        None
    }
}
