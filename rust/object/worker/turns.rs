// SPDX-License-Identifier: GPL-2.0

//! Who may be between two portions.
//!
//! A submission between two portions holds what its slots have bound and waits for more memory. Two of
//! these could wait for each other for ever, so there is at most one on an adapter: the others are prepared as
//! a whole, or wait with nothing in their hands. While the one waits for memory nobody else is given any, so
//! what it waits for comes free.
//!
//! If its node cannot save contexts it has the node for itself until its last portion is there (DMA-3).

use kernel::list::ListArc;

use crate::{
    object::{
        adapter::Adapter,
        submission::Submission,
        worker::Worker, //
    },
    units::NodeOrdinal,
};

/// The submission that is, or is about to be, between two portions.
struct Cut {
    /// Its number.
    number: u64,
    /// Its node, if nothing else may run there.
    node: Option<NodeOrdinal>,
    /// Whether it waits for memory.
    waits: bool,
}

/// Whose turn it is to be cut.
pub(in crate::object) struct Turns {
    cut: Option<Cut>,
}

impl Turns {
    /// Begins with nobody.
    pub(super) fn new() -> Self {
        Self { cut: None }
    }

    /// Returns whether a submission has to stay behind the one that is cut.
    pub(super) fn bars(&self, submission: &Submission) -> bool {
        self.cut.as_ref().is_some_and(|cut| {
            let same_node = cut.node == Some(submission.context().node());
            cut.number != submission.number() && (cut.waits || same_node)
        })
    }

    /// Lets a submission be cut if nobody else is; says whether it may.
    pub(super) fn begin(&mut self, submission: &Submission) -> bool {
        if let Some(cut) = &self.cut {
            return cut.number == submission.number();
        }
        let context = submission.context();
        let capabilities = context.device().adapter().backend().capabilities();
        let saves = capabilities
            .node(context.node())
            .is_some_and(|node| node.saves_context());
        self.cut = Some(Cut {
            number: submission.number(),
            node: (!saves).then(|| context.node()),
            waits: false,
        });
        true
    }

    /// Notes whether a submission waits for memory.
    pub(super) fn note_waiting(&mut self, submission: &Submission, waits: bool) {
        if let Some(cut) = &mut self.cut {
            if cut.number == submission.number() {
                cut.waits = waits;
            }
        }
    }

    /// Ends the turn of a submission, if it has it: its last portion is with the node, or it will have
    /// none.
    pub(in crate::object) fn end(&mut self, adapter: &Adapter, submission: &ListArc<Submission>) {
        let had = self.cut.take_if(|cut| cut.number == submission.number());
        if had.is_some() {
            // Whoever was kept back is looked at again.
            adapter.make_room();
            Worker::kick(adapter.worker());
        }
    }

    /// Returns whether a submission is cut and has its node for itself.
    pub(in crate::object) fn is_exclusive(&self, submission: &Submission) -> bool {
        self.cut
            .as_ref()
            .is_some_and(|cut| cut.number == submission.number() && cut.node.is_some())
    }
}
