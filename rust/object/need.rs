// SPDX-License-Identifier: GPL-2.0

//! What a submission needs in its place while it runs.
//!
//! It uses the allocations that it names. In the modes PATCHED_EXPLICIT and VIRTUAL it also needs everything
//! its device holds references to. Nobody knows whether it uses that: locks need not wait for it, but an
//! offer has to, and in mode VIRTUAL it may be written.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc, //
    },
};

use crate::object::{
    allocation::{
        Access,
        Allocation,
        Hold,
        Write, //
    },
    reclaim::Kept,
};

/// Why an allocation must be in its place while a submission runs.
enum Claim {
    /// The commands use it like this.
    Named(Hold, Access),
    /// The device holds references to it, and the commands may use it like this.
    Required(Requirement, Access),
}

/// An allocation that must be in its place while a submission runs.
pub(super) struct Need {
    claim: Claim,
    paged_in: Atomic<bool>,
    /// Whether a portion has it pinned.
    pinned: Atomic<bool>,
    /// Whether slots hold it across a cut.
    held: Atomic<bool>,
    /// That it writes a primary, for the sources that are going to show it.
    _write: Option<Write>,
    /// Keeps its pages, if Linux may swap them.
    _kept: Option<Kept>,
}

impl Need {
    /// Returns the need of something that the commands use; takes the backing pages that it can need, if
    /// Linux may swap them.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - As [`Kept::new`].
    pub(super) fn named(hold: Hold, access: Access) -> Result<Self> {
        let write = match access {
            Access::Write => Write::begin(hold.allocation())?,
            Access::Read => None,
        };
        Ok(Self {
            _kept: Kept::new(hold.allocation())?,
            claim: Claim::Named(hold, access),
            paged_in: Atomic::new(false),
            pinned: Atomic::new(false),
            held: Atomic::new(false),
            _write: write,
        })
    }

    /// Returns the need of something that has to be there although the commands do not name it.
    ///
    /// # Errors
    ///
    /// As [`Kept::new`].
    pub(super) fn required(requirement: Requirement, access: Access) -> Result<Self> {
        Ok(Self {
            _kept: Kept::new(requirement.hold().allocation())?,
            claim: Claim::Required(requirement, access),
            paged_in: Atomic::new(false),
            pinned: Atomic::new(false),
            held: Atomic::new(false),
            _write: None,
        })
    }

    /// Returns the allocation.
    pub(super) fn allocation(&self) -> &Arc<Allocation> {
        match &self.claim {
            Claim::Named(hold, _) => hold.allocation(),
            Claim::Required(requirement, _) => requirement.hold().allocation(),
        }
    }

    /// Returns whether the commands may write it.
    pub(super) fn is_written(&self) -> bool {
        match self.claim {
            Claim::Named(_, access) | Claim::Required(_, access) => access == Access::Write,
        }
    }

    /// Counts the use.
    pub(super) fn begin(&self) {
        if let Claim::Named(hold, access) = &self.claim {
            hold.begin_use(*access);
        }
    }

    /// Ends the use.
    pub(super) fn end(&self) {
        match &self.claim {
            Claim::Named(hold, access) => hold.end_use(*access),
            Claim::Required(requirement, _) => requirement.end(),
        }
    }

    /// Notes that it was pinned for a portion.
    pub(super) fn note_pinned(&self) {
        self.pinned.store(true, Relaxed);
    }

    /// Returns whether it is pinned for a portion.
    pub(super) fn is_pinned(&self) -> bool {
        self.pinned.load(Relaxed)
    }

    /// Unpins it, if it is pinned for a portion.
    pub(super) fn unpin(&self) {
        if self.pinned.xchg(false, Relaxed) {
            Allocation::unpin(self.allocation());
        }
    }

    /// Holds it in its place across a cut.
    pub(super) fn hold(&self) {
        if !self.held.xchg(true, Relaxed) {
            self.allocation().residence().lock().held += 1;
        }
    }

    /// Returns whether it is held across a cut.
    pub(super) fn is_held(&self) -> bool {
        self.held.load(Relaxed)
    }

    /// Ends what [`Self::hold`] began, if it has not ended.
    pub(super) fn let_go(&self) {
        if self.held.xchg(false, Relaxed) {
            Allocation::let_go(self.allocation());
        }
    }

    /// Notes whether content was brought in for the submission.
    pub(super) fn note(&self, paged_in: bool) {
        self.paged_in.store(paged_in, Relaxed);
    }

    /// Returns whether content was brought in for the submission; only the first to ask is told.
    pub(super) fn take_note(&self) -> bool {
        self.paged_in.xchg(false, Relaxed)
    }
}

/// A claim on an allocation that has to be in its place while something runs. It is counted until it ends,
/// or is dropped.
pub(super) struct Requirement {
    hold: Hold,
    lasts: Atomic<bool>,
}

impl Requirement {
    /// Requires an allocation, unless nobody claims it any more or it is offered: then nobody needs it.
    pub(super) fn new(allocation: &Arc<Allocation>) -> Option<Self> {
        if allocation.is_offered() {
            return None;
        }
        let hold = Allocation::hold(allocation)?;
        hold.requirements().fetch_add(1, Full);
        let requirement = Self {
            hold,
            lasts: Atomic::new(true),
        };
        // An offer that came meanwhile has not seen the count.
        (!requirement.hold.is_offered()).then_some(requirement)
    }

    /// Returns what is required.
    pub(super) fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Ends it.
    pub(super) fn end(&self) {
        if self.lasts.xchg(false, Relaxed) {
            self.hold.requirements().fetch_sub(1, Full);
            Allocation::reconsider(self.hold.allocation());
        }
    }
}

impl Drop for Requirement {
    fn drop(&mut self) {
        self.end();
    }
}
