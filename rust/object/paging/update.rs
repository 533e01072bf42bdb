// SPDX-License-Identifier: GPL-2.0

//! Entries of the tables of clients: scenario U.
//!
//! ```text
//! VA(root) VA(tables)+ UPT(paging)+ FLUSH(paging) UPT(client)+ FLUSH(client)
//! ```
//!
//! The paging process reaches the tables of a client through addresses of its own, so it takes
//! ranges for them and lets their entries name the tables first. Where tables are named by their places the
//! first half falls away, and where the CPU writes them each operation takes effect at once (PAG-18).
//!
//! Requirements: PAG-4 to PAG-7, PAG-19.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::trace,
    backend::{
        capabilities::UpdateMode,
        operation::FlushRange,
        page_table::{
            Entries,
            Entry,
            Phase,
            Rights,
            Table,
            Update, //
        },
        Operation, //
    },
    object::client_tables::Known,
    policy::scratch::{
        Part,
        Purpose, //
    },
    units::{
        GpuVirtualAddress,
        PageSize,
        Place,
        Run,
        PAGE_BYTES, //
    },
};

use super::{
    chopped::Chopped,
    scenario::Side,
    Builder,
    Line,
    Reason, //
};

/// Tables that one sequence is about.
pub(in crate::object) const TABLES: usize = 32;

/// A table that is written.
pub(super) struct Shown {
    known: Known,
    /// Where the paging process sees it.
    window: Option<GpuVirtualAddress>,
}

/// What is written from an entry on.
#[derive(Clone, Copy)]
pub(in crate::object) struct Position {
    /// The root of the space.
    pub(in crate::object) root: Place,
    /// The place of the table among those of the sequence.
    pub(in crate::object) table: usize,
    /// The first entry.
    pub(in crate::object) first: u32,
}

impl Builder {
    /// Forgets the tables of the last sequence.
    pub(in crate::object) fn clear_tables(&mut self) {
        self.shown.clear();
    }

    /// Adds a table to the next sequence, the root first; says whether there was room.
    pub(in crate::object) fn add_table(&mut self, line: &Line, known: Known) -> bool {
        if let Some(scratch) = line.scratch.as_ref().filter(|scratch| scratch.is_seen()) {
            let pages = self.shown.iter().map(|shown| shown.known.pages());
            let sum = pages.fold(known.pages(), u32::saturating_add);
            if sum > scratch.pages() {
                return false;
            }
        }
        let shown = Shown {
            known,
            window: None,
        };
        self.shown.push_within_capacity(shown).is_ok()
    }

    /// Returns a table of the sequence.
    pub(in crate::object) fn table(&self, index: usize) -> Option<Known> {
        self.shown.get(index).map(|shown| shown.known)
    }

    /// Returns which table of the sequence is of this level and begins at this address.
    pub(in crate::object) fn table_at(&self, level: u32, address: u64) -> Option<usize> {
        self.shown
            .iter()
            .position(|shown| shown.known.level == level && shown.known.address.0 == address)
    }

    /// Lets the paging process see the tables (U1 to U4).
    pub(in crate::object) fn show_tables(&mut self, line: &Arc<Line>, why: Reason) {
        let Some(scratch) = line.scratch.as_ref().filter(|scratch| scratch.is_seen()) else {
            return;
        };
        let mut parts = core::mem::take(&mut self.parts);
        parts.clear();
        let mut pages: u32 = 0;
        for shown in &self.shown {
            let length = shown.known.pages();
            let purpose = match parts.is_empty() {
                true => Purpose::Root,
                false => Purpose::Table,
            };
            pages = pages.saturating_add(length);
            let _ = parts.push_within_capacity(Part {
                pages: length,
                purpose,
            });
        }
        let why = why.through(scratch);
        if let Some(start) = self.take_addresses(line, scratch, &parts) {
            let mut next = start;
            for shown in &mut self.shown {
                shown.window = Some(next);
                next = next.forward(u64::from(shown.known.pages()) * PAGE_BYTES);
            }
            let list = core::mem::take(&mut self.shown);
            let runs = list.iter().map(|shown| shown.known.run());
            let bytes = u64::from(pages) * PAGE_BYTES;
            let side = Side::written(start, bytes);
            self.show(line, scratch, &side, &mut Chopped::new(runs), why);
            self.shown = list;
            self.flush_translations(line, scratch, FlushRange::new(start, bytes), why);
        }
        self.parts = parts;
    }

    /// Writes the same entry `count` times.
    pub(in crate::object) fn repeat(
        &mut self,
        line: &Arc<Line>,
        at: Position,
        entry: Entry,
        count: u32,
        phase: Phase,
        why: Reason,
    ) {
        let entries = Entries::Repeat { entry, count };
        self.update_entries(line, at, PageSize::Small, entries, phase, why);
    }

    /// Writes one entry for each page of `runs`; returns how many there are.
    pub(in crate::object) fn pages(
        &mut self,
        line: &Arc<Line>,
        at: Position,
        runs: impl Iterator<Item = Run>,
        rights: Rights,
        why: Reason,
    ) {
        let mut runs = Chopped::new(runs);
        let mut list = core::mem::take(&mut self.from);
        let mut at = at;
        while runs.take_all(&mut list) {
            let entries = Entries::Pages {
                runs: &list,
                rights,
            };
            self.update_entries(line, at, PageSize::Small, entries, Phase::Normal, why);
            let bytes = list
                .iter()
                .fold(0, |sum: u64, run| sum.saturating_add(run.bytes));
            let count = u32::try_from(bytes / PAGE_BYTES).unwrap_or(u32::MAX);
            at.first = at.first.saturating_add(count);
        }
        self.from = list;
    }

    fn update_entries(
        &mut self,
        line: &Arc<Line>,
        at: Position,
        page: PageSize,
        entries: Entries<'_>,
        phase: Phase,
        why: Reason,
    ) {
        let Some(shown) = self.shown.get(at.table) else {
            return;
        };
        let known = shown.known;
        let update = Update {
            table: Table {
                place: known.place,
                window: shown.window,
            },
            level: known.level,
            page,
            first: at.first,
            address: known.translates(at.first),
            root: at.root,
            phase,
            entries,
        };
        self.build_table(line, &Operation::UpdatePageTable(update), why);
    }

    /// Flushes a range of the space (U6), and ends the sequence.
    pub(in crate::object) fn flush_space(
        &mut self,
        line: &Arc<Line>,
        root: Place,
        range: FlushRange,
        why: Reason,
    ) {
        self.build_table(line, &Operation::FlushTlb { root, range }, why);
    }

    /// Flushes a space in which nobody works any more.
    pub(in crate::object) fn forget_space(&mut self, line: &Arc<Line>, root: Place) {
        let why = Reason {
            space: 0,
            process: 0,
            allocation: 0,
            cause: trace::Cause::Discard,
        };
        self.flush_space(line, root, FlushRange::ALL, why);
    }

    /// Gives the ranges of the sequence back when what is built is complete.
    pub(in crate::object) fn end_tables(&mut self, line: &Arc<Line>) {
        if line.scratch.is_some() {
            self.settle_addresses(line);
        }
    }

    fn build_table(&mut self, line: &Arc<Line>, operation: &Operation<'_>, why: Reason) {
        let translation = line.backend.capabilities().translation.as_ref();
        let mode = translation.map(|translation| translation.update_mode);
        if mode != Some(UpdateMode::CpuVirtual) {
            return self.build(line, operation, why);
        }
        if self.execute(&*line.backend, operation, why).is_err() {
            pr_err!("operation {} failed\n", operation.name().as_str());
        }
    }
}

impl Known {
    /// Returns the pages of its memory.
    fn pages(&self) -> u32 {
        // CAST: a table has at most 16384 entries of 8 bytes.
        (u64::from(self.entries) * 8).div_ceil(PAGE_BYTES) as u32
    }

    fn run(&self) -> Run {
        Run::new(self.place, u64::from(self.pages()) * PAGE_BYTES)
    }

    /// Returns the first address that an entry translates.
    fn translates(&self, index: u32) -> GpuVirtualAddress {
        let bytes = crate::policy::page_table::entry_bytes(self.level);
        self.address.forward(u64::from(index) * bytes)
    }
}
