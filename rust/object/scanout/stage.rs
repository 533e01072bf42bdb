// SPDX-License-Identifier: GPL-2.0

//! What the worker does for display sources: it answers switches, carries them out, and blanks the
//! sources of clients that are gone.
//!
//! Everything here runs in the worker. Nothing allocates, and nothing waits: a switch that is not due
//! stays on its list, and whatever it waits for asks for another pass.

use kernel::{
    list::{
        List,
        ListArc, //
    },
    prelude::*,
    sync::{
        atomic::{
            Full,
            Release, //
        },
        Arc, //
    },
};

use crate::{
    abstractions::trace,
    object::{
        adapter::Adapter,
        allocation::{
            Allocation,
            Hold, //
        },
        events::Event,
        fence::OnReset,
        placement::{
            Refusal,
            Room, //
        },
        worker::Desk, //
    },
};

use super::{
    Answer,
    Granted,
    Owner,
    Purpose,
    Source,
    Switch, //
};

/// The switches that the worker has before it.
pub(in crate::object) struct Stage {
    /// Not answered yet, in the order of arrival.
    asked: List<Switch>,
    /// Accepted and not over; one per source at most.
    coming: List<Switch>,
}

/// What becomes of a switch that was asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    /// It is looked at again when something has changed.
    Later,
    /// It is accepted.
    Coming,
    /// It is answered, and that was all, or nobody wants to know.
    Ended,
}

impl Stage {
    /// Returns a stage with nothing to do.
    pub(in crate::object) fn new() -> Self {
        Self {
            asked: List::new(),
            coming: List::new(),
        }
    }

    /// Takes in what has arrived.
    pub(in crate::object) fn take_in(&mut self, arrived: &mut List<Switch>) {
        self.asked.push_all_back(arrived);
    }

    fn is_coming(&self, source: &Arc<Source>) -> bool {
        self.coming
            .iter()
            .any(|switch| Arc::ptr_eq(switch.source(), source))
    }

    fn is_idle(&self) -> bool {
        self.asked.is_empty() && self.coming.is_empty()
    }
}

impl Source {
    fn notify(&self) {
        self.answered.notify_all();
    }

    fn answer(&self, switch: &Switch, answer: Answer) {
        switch.respond(answer);
        self.notify();
    }

    /// Returns what an accepted call would say now.
    fn grant(&self) -> Granted {
        let inner = self.inner.lock();
        Granted {
            previous: inner
                .shown
                .as_ref()
                .map_or(0, |shown| shown.name().handle()),
            sequence: inner.sequence,
        }
    }

    /// Accepts a switch; says whether it was not taken back.
    fn accept(&self, switch: &Switch) -> bool {
        let granted = self.grant();
        let granted = Granted {
            sequence: granted.sequence + 1,
            ..granted
        };
        let mut owner = Owner::Client(switch.client().clone());
        let mut inner = self.inner.lock();
        // Whoever is told sees it in the books.
        let accepted = switch.respond(Answer::Granted(granted));
        if accepted {
            inner.sequence = granted.sequence;
            core::mem::swap(&mut inner.owner, &mut owner);
        }
        drop(inner);
        drop(owner);
        self.notify();
        accepted
    }

    /// Shows something else, or nothing, and returns what was shown.
    fn replace(&self, new: Option<Hold>) -> Option<Hold> {
        let mut shown = new;
        core::mem::swap(&mut self.inner.lock().shown, &mut shown);
        shown
    }

    /// Belongs to nobody if it shows nothing.
    fn free_if_blank(&self) {
        let mut owner = Owner::Nobody;
        let mut inner = self.inner.lock();
        if inner.shown.is_none() {
            core::mem::swap(&mut inner.owner, &mut owner);
        }
        drop(inner);
        drop(owner);
    }

    fn is_deserted(&self) -> bool {
        matches!(self.inner.lock().owner, Owner::Gone)
    }
}

impl Desk {
    /// Does for the sources what can be done.
    pub(in crate::object) fn serve_sources(&mut self, adapter: &Adapter) {
        self.blank_deserted(adapter);
        if self.stage.is_idle() {
            return;
        }
        loop {
            self.answer_all(adapter);
            let carried_out = self.carry_out_all(adapter);
            // What is shown next may go where a range has just been given up: into a buffer of its own.
            self.builder.flush(adapter.paging());
            if carried_out == 0 {
                break;
            }
        }
    }

    fn answer_all(&mut self, adapter: &Adapter) {
        let mut asked = List::new();
        asked.push_all_back(&mut self.stage.asked);
        let mut later = List::new();
        while let Some(mut switch) = asked.pop_front() {
            match self.consider(adapter, &mut switch) {
                Course::Later => later.push_back(switch),
                Course::Coming => self.stage.coming.push_back(switch),
                Course::Ended => drop(switch),
            }
        }
        self.stage.asked.push_all_back(&mut later);
    }

    /// Answers a switch, if it can be answered now.
    fn consider(&mut self, adapter: &Adapter, switch: &mut ListArc<Switch>) -> Course {
        let source = switch.source().clone();
        if switch.is_withdrawn() {
            return Course::Ended;
        }
        if let Err(error) = source.check_owner(switch.client()) {
            source.answer(switch, Answer::Refused(error));
            return Course::Ended;
        }
        let waits = switch.purpose() == Purpose::Show && self.stage.is_coming(&source);
        if waits || !adapter.paging().is_roomy() {
            return Course::Later;
        }
        if let Err(answer) = self.place(adapter, switch) {
            source.answer(switch, answer);
            return Course::Ended;
        }
        if switch.purpose() == Purpose::Test {
            source.answer(switch, Answer::Granted(source.grant()));
            return Course::Ended;
        }
        let primary = switch.primary().cloned();
        if let Some(primary) = primary.as_ref().and_then(|hold| hold.primary()) {
            switch.progress_mut().writes = primary.next_write();
        }
        // Whoever is told that it is accepted finds it waiting.
        Switch::begin_wait(switch);
        if source.accept(switch) {
            return Course::Coming;
        }
        Switch::end_wait(switch, trace::Waiting::Cancel);
        if let Some(primary) = primary {
            self.hide(adapter, &primary);
        }
        Course::Ended
    }

    /// Finds a range for what is to be shown, and fixes it there; for a test, only finds it.
    fn place(&mut self, adapter: &Adapter, switch: &Switch) -> Result<(), Answer> {
        let Some(primary) = switch.primary() else {
            return Ok(());
        };
        if primary.residence().lock().forgotten {
            return Err(Answer::Refused(ENOENT));
        }
        if primary.device().ensure_active().is_err() {
            return Err(Answer::Refused(EIO));
        }
        let refused = |refusal: Refusal| match refusal {
            // What is pinned now may go soon, but nobody knows when.
            Refusal::Occupied | Refusal::NoPlace => Answer::Refused(ENOSPC),
            Refusal::GivenUp => Answer::Refused(EIO),
        };
        match self.expose(adapter, switch.purpose(), primary, Room::Free) {
            Err(_) if primary.is_offered() => return Err(Answer::Refused(EBUSY)),
            Err(Refusal::Occupied | Refusal::NoPlace) => {}
            other => return other.map_err(refused),
        }
        let kept = switch.kept().ok_or(Answer::NeedsList)?;
        let others = kept
            .iter()
            .filter(|kept| !Arc::ptr_eq(kept.allocation(), primary.allocation()));
        for one in others.clone() {
            one.residence().lock().pins += 1;
        }
        let made = self.expose(adapter, switch.purpose(), primary, Room::Made);
        for one in others {
            Allocation::unpin(one.allocation());
        }
        made.map_err(refused)
    }

    fn expose(
        &mut self,
        adapter: &Adapter,
        purpose: Purpose,
        primary: &Hold,
        room: Room,
    ) -> Result<(), Refusal> {
        self.resort(adapter);
        let mut residency = adapter.residency().lock();
        // Offers are made under this lock, and not of what is fixed.
        if primary.is_offered() {
            return Err(Refusal::NoPlace);
        }
        let mut mover = self.mover(adapter, &mut residency, trace::Cause::Display);
        match purpose {
            Purpose::Show => mover.expose(primary.allocation(), room),
            Purpose::Test => mover.could_expose(primary.allocation(), room),
        }
    }

    /// Ends one display of a primary.
    fn hide(&mut self, adapter: &Adapter, primary: &Hold) {
        let mut residency = adapter.residency().lock();
        self.mover(adapter, &mut residency, trace::Cause::Display)
            .hide(primary.allocation());
        drop(residency);
        adapter.make_room();
    }

    /// Carries out what is due; returns how many switches are over.
    fn carry_out_all(&mut self, adapter: &Adapter) -> usize {
        let mut coming = List::new();
        coming.push_all_back(&mut self.stage.coming);
        let mut over = 0;
        let mut waiting = List::new();
        while let Some(switch) = coming.pop_front() {
            let failed = switch
                .primary()
                .is_some_and(|primary| primary.device().ensure_active().is_err());
            if !adapter.paging().is_roomy() || (!failed && !is_due(adapter, &switch)) {
                waiting.push_back(switch);
                continue;
            }
            over += 1;
            if failed {
                self.cancel(adapter, &switch);
                if let Some(point) = switch.signal() {
                    point.fence.poison(EIO, OnReset::Saturate);
                }
            } else {
                self.carry_out(adapter, &switch);
            }
        }
        self.stage.coming.push_all_back(&mut waiting);
        over
    }

    fn carry_out(&mut self, adapter: &Adapter, switch: &ListArc<Switch>) {
        Switch::end_wait(switch, trace::Waiting::End);
        let source = switch.source();
        let new = switch.primary();
        let old = source.replace(new.cloned());
        let same = match (new, &old) {
            (Some(new), Some(old)) => Arc::ptr_eq(new.allocation(), old.allocation()),
            _ => false,
        };
        if !same {
            trace_shown(adapter, new, trace::Shown::Start);
            trace_shown(adapter, old.as_ref(), trace::Shown::Stop);
        }
        source.free_if_blank();
        if let Some(old) = old {
            self.hide(adapter, &old);
        }
        // Who sees the signal finds the event.
        if let Some(Answer::Granted(granted)) = switch.answer() {
            switch.client().events().post(Event::Scanout {
                source: source.number(),
                sequence: granted.sequence,
            });
        }
        if let Some(point) = switch.signal() {
            point.fence.raise(point.value, trace::Origin::Worker);
        }
    }

    /// Gives up a switch that was accepted; the source goes on showing what it shows.
    fn cancel(&mut self, adapter: &Adapter, switch: &ListArc<Switch>) {
        Switch::end_wait(switch, trace::Waiting::Cancel);
        if let Some(primary) = switch.primary() {
            self.hide(adapter, primary);
        }
        switch.source().free_if_blank();
    }

    /// Blanks the sources whose owners are gone.
    fn blank_deserted(&mut self, adapter: &Adapter) {
        let sources = adapter.sources();
        // Whoever goes after this says so again: nothing is looked at before.
        if !sources.are_deserted() || !sources.deserted.xchg(false, Full) {
            return;
        }
        for source in sources.iter().filter(|source| source.is_deserted()) {
            if !adapter.paging().is_roomy() {
                sources.deserted.store(true, Release);
                break;
            }
            self.blank(adapter, source);
        }
        self.builder.flush(adapter.paging());
    }

    /// Blanks a source whose owner is gone, and gives up the switch that was coming.
    fn blank(&mut self, adapter: &Adapter, source: &Arc<Source>) {
        let mut coming = List::new();
        coming.push_all_back(&mut self.stage.coming);
        while let Some(switch) = coming.pop_front() {
            if Arc::ptr_eq(switch.source(), source) {
                self.cancel(adapter, &switch);
            } else {
                self.stage.coming.push_back(switch);
            }
        }
        let old = source.replace(None);
        trace_shown(adapter, old.as_ref(), trace::Shown::Stop);
        if let Some(old) = old {
            self.hide(adapter, &old);
        }
        source.free_if_blank();
    }
}

/// Returns whether the new primary of a switch can be shown now.
fn is_due(adapter: &Adapter, switch: &ListArc<Switch>) -> bool {
    let completed = adapter.paging().completed();
    let ready = |hold: &Hold| {
        let written = hold
            .primary()
            .is_none_or(|primary| primary.is_written(switch.progress().writes));
        written && hold.residence().lock().is_settled(completed)
    };
    switch.is_due() && switch.primary().is_none_or(ready)
}

/// Says in the trace that a source begins or ceases to show something.
fn trace_shown(adapter: &Adapter, primary: Option<&Hold>, action: trace::Shown) {
    let Some(primary) = primary else { return };
    trace::scanout(|| {
        let residency = adapter.residency().lock();
        let place = residency.place_of(&primary.residence().lock());
        trace::Scanout {
            allocation: primary.object_id(),
            place: place.map_or(trace::Place::NOWHERE, Into::into),
            action,
        }
    });
}
