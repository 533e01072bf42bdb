// SPDX-License-Identifier: GPL-2.0

//! Where an allocation stands among those that may leave: its priority, and what else makes its rank.

use kernel::sync::{
    atomic::Relaxed,
    Arc, //
};

use crate::{
    object::residence::Residence,
    policy::eviction::{
        Rank,
        Standing, //
    },
};

use super::Allocation;

impl Allocation {
    /// Returns its priority.
    pub(crate) fn priority(&self) -> u32 {
        self.priority.load(Relaxed)
    }

    /// Changes its priority: the next choice of who leaves goes by it.
    pub(crate) fn set_priority(this: &Arc<Self>, priority: u32) {
        this.priority.store(priority, Relaxed);
        Self::sink(this);
    }

    /// Returns when it leaves its segment, compared with others of its client.
    pub(in crate::object) fn rank(&self, residence: &Residence) -> Rank {
        Standing {
            bond: residence.bond(),
            need: residence.need(),
            offer: self.offer_due(residence).rank(),
            priority: self.priority(),
        }
        .rank()
    }

    /// Returns whether its rank is lower than it stands.
    pub(super) fn is_sunk(&self, residence: &Residence) -> bool {
        let entry = residence.entry.as_ref();
        entry.is_some_and(|entry| self.rank(residence) < entry.rank())
    }

    /// Notes that the request that is carried out needs it.
    pub(in crate::object) fn want(this: &Arc<Self>) {
        this.residence.lock().wanted = true;
    }

    /// Notes that no request needs it any more.
    pub(in crate::object) fn unwant(this: &Arc<Self>) {
        this.residence.lock().wanted = false;
        Self::sink(this);
    }

    /// Makes sure that it leaves when its turn has come. To be called, with no lock above rank 1, after
    /// anything has changed that may have lowered its rank: something that tied it to its place
    /// ended, no work requires it any more, it was offered, its priority fell.
    pub(in crate::object) fn sink(this: &Arc<Self>) {
        let sunk = this.is_sunk(&this.residence.lock());
        if sunk {
            this.adapter().sunk().push(this);
        }
    }
}
