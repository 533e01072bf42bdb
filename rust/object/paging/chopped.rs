// SPDX-License-Identifier: GPL-2.0

//! Runs in pieces: lists of an operation are bounded, what they describe is not.

use kernel::prelude::*;

use crate::units::Run;

/// Runs that are taken piece by piece.
pub(super) struct Chopped<I> {
    runs: I,
    /// What was taken from `runs` and given back.
    rest: Option<Run>,
}

impl<I: Iterator<Item = Run>> Chopped<I> {
    pub(super) fn new(runs: I) -> Self {
        Self { runs, rest: None }
    }

    /// Moves one run to `list`, if there is one and the list has room; returns its length.
    fn next_into(&mut self, list: &mut KVec<Run>) -> Option<u64> {
        if list.len() == list.capacity() {
            return None;
        }
        let run = self.rest.take().or_else(|| self.runs.next())?;
        list.push_within_capacity(run).ok()?;
        Some(run.bytes)
    }

    /// Fills `list` as far as there is room; returns whether there was anything.
    pub(super) fn take_all(&mut self, list: &mut KVec<Run>) -> bool {
        list.clear();
        while self.next_into(list).is_some() {}
        !list.is_empty()
    }

    /// Fills `list` with at most `bytes` bytes, as far as there is room; returns how many there are.
    pub(super) fn take_some(&mut self, list: &mut KVec<Run>, bytes: u64) -> u64 {
        list.clear();
        let mut taken = 0;
        while taken < bytes {
            match self.next_into(list) {
                Some(more) => taken += more,
                None => return taken,
            }
        }
        self.give_back(list, taken - bytes);
        bytes
    }

    /// Fills both lists with pieces of the same total length; returns whether there was anything.
    pub(super) fn take_with<J: Iterator<Item = Run>>(
        &mut self,
        list: &mut KVec<Run>,
        other: &mut Chopped<J>,
        others: &mut KVec<Run>,
    ) -> bool {
        list.clear();
        others.clear();
        let (mut mine, mut theirs) = (0, 0);
        // The shorter side goes on, so that a surplus lies in the last run of the longer one.
        loop {
            let next = if mine <= theirs {
                self.next_into(list).map(|bytes| mine += bytes)
            } else {
                other.next_into(others).map(|bytes| theirs += bytes)
            };
            if next.is_none() {
                break;
            }
        }
        self.give_back(list, mine.saturating_sub(theirs));
        other.give_back(others, theirs.saturating_sub(mine));
        !list.is_empty()
    }

    /// Takes the last `bytes` of `list`, which are part of its last run, back.
    fn give_back(&mut self, list: &mut KVec<Run>, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let Some(last) = list.pop() else { return };
        let kept = last.bytes.saturating_sub(bytes);
        if kept > 0 {
            let _ = list.push_within_capacity(Run::new(last.place, kept));
        }
        self.rest = Some(Run::new(last.place.forward(kept), bytes));
    }
}
