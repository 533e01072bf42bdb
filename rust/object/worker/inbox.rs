// SPDX-License-Identifier: GPL-2.0

//! What arrives for the worker: requests, and what it has to look at or to drop.
//!
//! # Locking
//!
//! `Worker::inbox` is a spinlock of rank 6.

use kernel::{
    list::{
        List,
        ListArc, //
    },
    sync::Arc, //
};

use crate::object::{
    address_space::AddressSpace,
    allocation::Allocation,
    client_tables::ClientTables,
    command::Command,
    scanout::Switch,
    submission::Submission, //
};

use super::Worker;

/// What has arrived.
pub(super) struct Inbox {
    /// Commands by priority, the lowest first.
    pub(super) commands: [List<Command>; 3],
    pub(super) submissions: List<Submission>,
    pub(super) attention: List<Allocation>,
    /// Spaces that have changed, without a command.
    pub(super) spaces: List<AddressSpace>,
    /// Tables of clients that are gone.
    pub(super) buried: List<ClientTables>,
    pub(super) switches: List<Switch>,
    /// Commands that are done.
    pub(super) finished: List<Command>,
}

impl Inbox {
    /// Returns an empty one.
    pub(super) fn new() -> Self {
        Self {
            commands: [const { List::new() }; 3],
            submissions: List::new(),
            attention: List::new(),
            spaces: List::new(),
            buried: List::new(),
            switches: List::new(),
            finished: List::new(),
        }
    }
}

impl Worker {
    /// Hands a command over. The caller kicks.
    pub(in crate::object) fn push_command(this: &Arc<Self>, command: ListArc<Command>) {
        let priority = command.queue().priority();
        let mut inbox = this.inbox.lock();
        if let Some(commands) = inbox.commands.get_mut(priority.index()) {
            commands.push_back(command);
        }
    }

    /// Takes a command that is done, to drop it. The caller kicks.
    pub(in crate::object) fn retire_command(&self, command: ListArc<Command>) {
        self.inbox.lock().finished.push_back(command);
    }

    /// Hands over a submission that is next on its context.
    pub(in crate::object) fn push_submission(this: &Arc<Self>, submission: ListArc<Submission>) {
        this.inbox.lock().submissions.push_back(submission);
        Self::kick(this);
    }

    /// Hands over a switch of a display source.
    pub(in crate::object) fn push_switch(this: &Arc<Self>, switch: ListArc<Switch>) {
        this.inbox.lock().switches.push_back(switch);
        Self::kick(this);
    }

    /// Asks the worker to look at an allocation.
    pub(in crate::object) fn attend(this: &Arc<Self>, allocation: &Arc<Allocation>) {
        // An allocation that is on the list already will be looked at anyway.
        if let Some(entry) = ListArc::try_from_arc_or_drop(allocation.clone()) {
            this.inbox.lock().attention.push_back(entry);
        }
        Self::kick(this);
    }

    /// Asks the worker to write what is stale in the tables of a space.
    pub(in crate::object) fn attend_space(this: &Arc<Self>, space: &Arc<AddressSpace>) {
        if let Some(entry) = ListArc::try_from_arc_or_drop(space.clone()) {
            this.inbox.lock().spaces.push_back(entry);
        }
        Self::kick(this);
    }

    /// Asks the worker to take the places of tables back. Called from anywhere.
    pub(in crate::object) fn bury_tables(this: &Arc<Self>, tables: &Arc<ClientTables>) {
        if let Some(entry) = ListArc::try_from_arc_or_drop(tables.clone()) {
            this.inbox.lock().buried.push_back(entry);
        }
        Self::kick(this);
    }
}
