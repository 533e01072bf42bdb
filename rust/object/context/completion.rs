// SPDX-License-Identifier: GPL-2.0

//! The end of a submission: its buffers come back from the node, in order.
//!
//! A portion behind which the submission is cut goes back to the worker with it, which prepares the next
//! one. When the commands have run, the memory is used no longer and may move; when the last buffer is
//! back, the signals are given and the progress fence is raised. A submission that was stopped or
//! went wrong gives no signals.

use kernel::{
    list::ListArc,
    prelude::*,
    rbtree::RBTreeNode,
    sync::Arc, //
};

use crate::{
    abstractions::{
        clock,
        trace, //
    },
    backend::{
        Buffer,
        Completion,
        FaultReason,
        Kind,
        Outcome, //
    },
    object::{
        device,
        fence::OnReset,
        submission::{
            Record,
            State,
            Submission, //
        },
        watchdog::{
            Running,
            Watchdog, //
        },
        worker::Worker,
    },
    units::GpuVirtualAddress,
};

use super::{
    Context,
    Inner,
    CUT,
    LAST,
    REMEMBERED, //
};

impl Context {
    /// Writes down that a submission has ended, and forgets the oldest ones.
    pub(super) fn end(&self, submission: &Submission, error: Option<Error>) {
        let device_failed = self.device.state().state != device::State::Active;
        if error.is_some() && device_failed {
            for point in submission.signals() {
                point.fence.poison(EIO, OnReset::Saturate);
            }
        }
        submission.record().update(|report| {
            if report.state != State::Faulted {
                report.state = match error {
                    Some(_) => State::Cancelled,
                    None => State::Done,
                };
            }
            report.error = report.error.or(error);
            report.end_ns = clock::now_ns();
        });
        let forgotten = {
            let mut inner = self.inner.lock();
            inner.finished += 1;
            inner.forget_oldest()
        };
        drop(forgotten);
        self.device.adapter().notify_idle();
    }

    /// The node has given a portion back: what it took is charged.
    fn settle_charge(&self) {
        let adapter = self.device.adapter();
        adapter.watchdog().end(self.node);
        adapter.loads().end(self.node);
        let mut inner = self.inner.lock();
        let first = inner
            .flight
            .cursor_front()
            .peek_next()
            .map(|peek| peek.arc().charged());
        let begun = core::mem::replace(&mut inner.begun_ns, 0);
        let expected = first.unwrap_or(0);
        // One that was stopped before it began took nothing.
        let taken = match begun {
            0 => 0,
            begun => clock::now_ns().saturating_sub(begun),
        };
        inner.meter.end(expected, taken);
        inner.took_ns = taken;
        drop(inner);
        let client = self.device.client();
        let _ = client.with_meter(self.node, |meter| meter.end(expected, taken));
    }

    /// The memory of the first in flight is used no longer.
    fn stop_using(&self, outcome: Outcome) {
        let first = {
            let mut inner = self.inner.lock();
            inner
                .flight
                .cursor_front()
                .peek_next()
                .map(|peek| Arc::from(peek.arc()))
        };
        let Some(first): Option<Arc<Submission>> = first else {
            return;
        };
        self.judge(&first, outcome);
        first.end_use();
    }

    /// Notes how a portion of a submission has ended.
    fn judge(&self, submission: &Submission, outcome: Outcome) {
        if let Some((state, offset, fault)) = self.offence(outcome) {
            submission.record().update(|report| {
                report.state = State::Faulted;
                report.error = Some(EIO);
            });
            self.device.fail(device::Offence {
                state,
                context: self.number,
                node: Some(self.node.0),
                submission: submission.id(),
                offset: offset.into(),
                fault,
            });
        }
        if outcome != Outcome::Done {
            submission.fail();
        }
    }

    /// A portion of the first in flight has ended, and another one follows: the worker prepares it.
    fn go_on(&self, mut buffer: ListArc<Buffer>, outcome: Outcome) {
        let contents = buffer.contents_mut();
        contents.context = None;
        contents.completion = None;
        let first = self.inner.lock().flight.pop_front();
        let Some(mut first) = first else { return };
        self.judge(&first, outcome);
        first.progress_mut().dma = Some(buffer);
        first.record().update(|report| {
            if report.state != State::Faulted {
                report.state = State::Paging;
            }
        });
        Worker::push_submission(self.device.adapter().worker(), first);
    }

    /// Returns what commands at fault put their device in, with the offset of the packet.
    fn offence(&self, outcome: Outcome) -> Option<(device::State, u32, Option<device::Fault>)> {
        match outcome {
            Outcome::Done | Outcome::Stopped | Outcome::Preempted => None,
            Outcome::Error { offset } => Some((device::State::ErrorDma, offset, None)),
            Outcome::Fault { offset, fault } => {
                let fault = device::Fault {
                    address: fault.address,
                    access: fault.access,
                    reason: match fault.reason {
                        FaultReason::NotMapped if self.is_mapped(fault.address) => {
                            device::FaultReason::NotResident
                        }
                        FaultReason::NotMapped => device::FaultReason::NotMapped,
                        FaultReason::Protection => device::FaultReason::Protection,
                    },
                };
                Some((device::State::ErrorFault, offset, Some(fault)))
            }
        }
    }

    /// Returns whether something is mapped at an address of the client: its memory is away.
    fn is_mapped(&self, address: GpuVirtualAddress) -> bool {
        let window = address.0..address.0.saturating_add(1);
        let space = self.device.client().space();
        let found = space.and_then(|space| space.first_piece(window));
        found.is_some_and(|found| found.allocation.is_some())
    }

    /// The first in flight has ended.
    fn arrive(&self) {
        let first = self.inner.lock().flight.pop_front();
        let Some(first) = first else { return };
        let error = first.has_failed().then_some(ECANCELED);
        // Who sees a signal finds the submission done.
        self.end(&first, error);
        if error.is_none() {
            for point in first.signals() {
                point.fence.raise(point.value, trace::Origin::Gpu);
            }
            self.progress.raise(first.id(), trace::Origin::Gpu);
        }
        Worker::kick(self.device.adapter().worker());
        self.fall_back();
    }
}

impl Completion for Context {
    fn begin(&self, kind: Kind) {
        if kind != Kind::Dma {
            return;
        }
        let mut inner = self.inner.lock();
        let limit_ms = inner.tuning.limit_ms(|| self.default_limit_ms());
        let mut running = None;
        if let Some(first) = inner.flight.cursor_front().peek_next() {
            running = limit_ms.map(|limit_ms| Running {
                context: self.number,
                submission: first.arc().id(),
                limit_ns: u64::from(limit_ms) * 1_000_000,
            });
            first.arc().record().update(|report| {
                report.state = State::Running;
                if report.start_ns == 0 {
                    report.start_ns = clock::now_ns();
                }
            });
        }
        inner.begun_ns = clock::now_ns();
        drop(inner);
        Watchdog::begin(self.device.adapter().watchdog(), self.node, running);
    }

    fn complete(&self, mut buffer: ListArc<Buffer>, outcome: Outcome) {
        let contents = buffer.contents_mut();
        let (kind, last) = (contents.kind, contents.cookie == LAST);
        if kind == Kind::Dma {
            self.settle_charge();
        }
        if contents.cookie == CUT {
            self.go_on(buffer, outcome);
            return;
        }
        drop(buffer);
        match kind {
            Kind::Dma => self.stop_using(outcome),
            // Without commands, the signals end the use.
            Kind::Signal if outcome != Outcome::Done => self.fail_first(),
            _ => {}
        }
        if last {
            self.arrive();
        }
    }
}

impl Inner {
    /// Forgets the oldest submission, if enough finished ones are remembered.
    fn forget_oldest(&mut self) -> Option<RBTreeNode<u64, Arc<Record>>> {
        if self.finished <= REMEMBERED {
            return None;
        }
        let oldest = self.known.cursor_front_mut()?;
        if oldest.current().1.report().end_ns == 0 {
            return None;
        }
        self.finished -= 1;
        Some(oldest.remove_current().1)
    }
}

impl Context {
    fn fail_first(&self) {
        let mut inner = self.inner.lock();
        if let Some(first) = inner.flight.cursor_front().peek_next() {
            first.arc().fail();
        }
    }
}
