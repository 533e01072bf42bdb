// SPDX-License-Identifier: GPL-2.0

//! What the kernel is given when it is short of memory.
//!
//! The kernel asks from whatever thread needs memory, perhaps one that holds locks of this driver. So every
//! lock is tried, nothing is waited for, and nothing is allocated. `Adapter::residency` is never held while
//! memory is allocated either. `Allocation::residence` may be: the kernel takes page tables when a fault
//! inserts a translation under it. Trying is enough.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::{
        oom,
        shmem::has_swap,
        shrinker::{
            Shrink,
            Shrinker, //
        },
    },
    object::adapter::Adapter,
    units::PAGE_BYTES,
};

/// What makes an adapter give memory back. Dropped before the adapter is taken apart.
pub(in crate::object) struct Relief {
    _shrinker: Shrinker<Adapter>,
    _last_resort: oom::Watch<Adapter>,
}

impl Relief {
    /// Lets the kernel ask `adapter`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(in crate::object) fn new(adapter: &Arc<Adapter>) -> Result<Self> {
        Ok(Self {
            _shrinker: Shrinker::new(c"vidmm", adapter.clone())?,
            _last_resort: oom::Watch::new(adapter.clone())?,
        })
    }
}

/// What a step of giving back has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::object) enum Step {
    /// So many pages were given back.
    Given(usize),
    /// Somebody works on what would be next.
    Busy,
    /// There is nothing.
    Nothing,
}

impl Adapter {
    /// Lets go what the CPU has touched, the one touched longest ago first, but not before `next`.
    fn try_let_go(&self, next: &mut u64) -> Step {
        let Some(mut residency) = self.residency().try_lock() else {
            return Step::Busy;
        };
        let Some((stamp, allocation)) = residency.idle.touched_from(*next) else {
            return Step::Nothing;
        };
        *next = stamp.saturating_add(1);
        let backing = allocation
            .residence()
            .try_lock()
            .and_then(|mut residence| self.take_idle(&mut residency, &allocation, &mut residence));
        let pages = match backing {
            Some(_) => allocation.size() / PAGE_BYTES,
            None => 0,
        };
        // It was in the order under this lock, so the registry knows it as well.
        drop(allocation);
        drop(residency);
        drop(backing);
        // CAST: `usize` has 64 bits wherever this driver runs.
        Step::Given(pages as usize)
    }

    /// Gives back `pages` pages, or as many as can be had: first what is offered, then what Linux may
    /// swap (RES-26).
    fn give_back(&self, pages: usize) -> Option<usize> {
        let (surrendered, surrender) = take_steps(pages, || self.surrender_first());
        let rest = pages.saturating_sub(surrendered);
        let mut next = 0;
        let (let_go, letting_go) = match surrender {
            Step::Nothing if has_swap() => take_steps(rest, || self.try_let_go(&mut next)),
            _ => (0, Step::Nothing),
        };
        self.count_let_go(let_go);
        let given = surrendered.saturating_add(let_go);
        let busy = surrender == Step::Busy || letting_go == Step::Busy;
        (given > 0 || !busy).then_some(given)
    }
}

/// Takes steps until `pages` pages are given back, or one gives nothing; returns how many there are, and
/// what the last step has come to.
fn take_steps(pages: usize, mut step: impl FnMut() -> Step) -> (usize, Step) {
    let mut given: usize = 0;
    let mut last = Step::Nothing;
    while given < pages {
        last = step();
        match last {
            Step::Given(more) => given = given.saturating_add(more),
            Step::Busy | Step::Nothing => break,
        }
    }
    (given, last)
}

impl Shrink for Adapter {
    fn count(&self) -> usize {
        let touched = if has_swap() { self.touched_pages() } else { 0 };
        let pages = touched.saturating_add(self.surrenderable() / PAGE_BYTES);
        // CAST: `usize` has 64 bits wherever this driver runs.
        pages as usize
    }

    fn scan(&self, pages: usize) -> Option<usize> {
        self.give_back(pages)
    }
}

impl oom::LastResort for Adapter {
    fn give(&self) -> usize {
        self.give_back(usize::MAX).unwrap_or(0)
    }
}
