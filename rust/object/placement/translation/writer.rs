// SPDX-License-Identifier: GPL-2.0

//! Sequences of operations that write a range of one space, table by table.

use core::ops::Range;

use kernel::sync::Arc;

use crate::{
    backend::{
        operation::FlushRange,
        page_table::{
            Entry,
            Phase,
            Rights, //
        }, //
    },
    object::{
        adapter::Adapter,
        address_space::AddressSpace,
        client_tables::{
            ClientTables,
            Known,
            State, //
        },
        paging::{
            Builder,
            Line,
            Position,
            Reason, //
        },
        standing::Root,
    },
    policy::page_table::{
        cut,
        entry_bytes, //
    },
    units::{
        GpuVirtualAddress,
        PageSize,
        Place,
        Run,
        PAGE_BYTES, //
    },
};

/// What a range of addresses is to say.
pub(super) enum Content<I> {
    /// The same throughout.
    Same(Entry),
    /// Pages.
    Pages(I, Rights),
}

/// What the entries of a range said before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing: every access faulted.
    Nothing,
    /// Anything.
    Anything,
}

/// Writes entries of one space.
pub(super) struct Writer<'a> {
    pub(super) adapter: &'a Adapter,
    pub(super) space: &'a AddressSpace,
    pub(super) tables: &'a ClientTables,
    pub(super) builder: &'a mut Builder,
    pub(super) line: &'a Arc<Line>,
    pub(super) why: Reason,
}

impl Writer<'_> {
    /// Writes a range, as far as there are tables for it.
    pub(super) fn write<I: Iterator<Item = Run> + Clone>(
        &mut self,
        range: Range<u64>,
        content: Content<I>,
        before: Before,
    ) {
        let Some(root) = self.tables.find(self.tables.shape().root(), 0) else {
            return;
        };
        let adds = !matches!(content, Content::Same(Entry::Invalid));
        // Beyond the reach of the root nothing is mapped.
        let reach = self.tables.shape().reach(root.entries);
        let range = range.start..range.end.min(reach);
        if range.is_empty() || (root.state == State::Fresh && !adds) {
            return;
        }
        let mut rest = range.clone();
        while rest.start < rest.end {
            self.builder.clear_tables();
            self.builder
                .add_table(self.line, root_now(self.tables, root));
            let end = self.gather(rest.clone(), adds);
            let part = rest.start..end;
            rest.start = end;
            if self.is_void(&part, &content) {
                continue;
            }
            let skip = part.start.saturating_sub(range.start);
            self.sequence(root.place, part, &content, skip, before);
        }
        self.tables.settle(self.builder.settles(self.line));
    }

    /// Adds the tables of a range to the sequence; returns how far they go.
    fn gather(&mut self, range: Range<u64>, adds: bool) -> u64 {
        let shape = self.tables.shape();
        let mut next = range.start;
        while next < range.end {
            let mut jump = range.end;
            for level in (0..shape.root()).rev() {
                let found = self.tables.find(level, next);
                let counts = |known: &Known| adds || known.state == State::Linked;
                if let Some(known) = found.filter(counts) {
                    let listed = self.builder.table_at(level, known.address.0).is_some();
                    if !listed && !self.builder.add_table(self.line, known) {
                        // Never without one step forward.
                        return if next > range.start { next } else { range.end };
                    }
                }
                // The next table behind the one that was looked for.
                let end = shape.span(level, GpuVirtualAddress(next)).end;
                jump = match found {
                    Some(_) => jump.min(end),
                    None => {
                        let behind = self.tables.first_in(level, &(end..range.end));
                        jump.min(behind.map_or(range.end, |known| known.address.0))
                    }
                };
            }
            next = jump.max(next.saturating_add(PAGE_BYTES)).min(range.end);
        }
        range.end
    }

    /// Returns whether there is nothing to write.
    fn is_void<I>(&self, part: &Range<u64>, content: &Content<I>) -> bool {
        let bytes = entry_bytes(self.tables.shape().root());
        let whole = part.start.next_multiple_of(bytes) < part.end & !bytes.wrapping_sub(1);
        self.builder.table(1).is_none() && !(whole && matches!(content, Content::Same(_)))
    }

    /// Builds one sequence.
    fn sequence<I: Iterator<Item = Run> + Clone>(
        &mut self,
        root: Place,
        part: Range<u64>,
        content: &Content<I>,
        skip: u64,
        before: Before,
    ) {
        self.builder.show_tables(self.line, self.why);
        self.initialise(root);
        self.descend(root, 0, part.clone(), content, (part.start, skip));
        self.link(root);
        let translation = self.line.translation();
        let holds_invalid = translation.is_none_or(|translation| translation.holds_invalid);
        if holds_invalid || before == Before::Anything {
            let bytes = part.end.saturating_sub(part.start);
            let range = FlushRange::new(GpuVirtualAddress(part.start), bytes);
            self.builder.flush_space(self.line, root, range, self.why);
        }
        self.builder.end_tables(self.line);
    }

    /// Lets fresh tables say nothing.
    fn initialise(&mut self, root: Place) {
        let mut index = 0;
        while let Some(known) = self.builder.table(index) {
            if known.state == State::Fresh {
                let at = Position {
                    root,
                    table: index,
                    first: 0,
                };
                let (entry, phase) = (Entry::Invalid, Phase::Initialise);
                self.builder
                    .repeat(self.line, at, entry, known.entries, phase, self.why);
            }
            index += 1;
        }
    }

    /// Lets the tables above lead to fresh ones, the lowest first.
    fn link(&mut self, root: Place) {
        let shape = self.tables.shape();
        for level in 0..shape.levels() {
            let mut index = 0;
            while let Some(known) = self.builder.table(index) {
                index += 1;
                if known.level != level || known.state != State::Fresh {
                    continue;
                }
                let above = level + 1;
                let span = shape.span(above, known.address);
                if let Some(table) = self.builder.table_at(above, span.start) {
                    let inside = known.address.0.saturating_sub(span.start);
                    let at = Position {
                        root,
                        table,
                        // CAST: an index in a table.
                        first: (inside / entry_bytes(above)) as u32,
                    };
                    let entry = Entry::Table {
                        place: known.place,
                        leaves: PageSize::Small,
                    };
                    self.builder
                        .repeat(self.line, at, entry, 1, Phase::Normal, self.why);
                }
                self.tables.note_linked(level, known.address);
                if level == shape.root() {
                    let root = Root {
                        place: known.place,
                        entries: known.entries,
                    };
                    let standing = self.space.standing();
                    standing.relocate(self.adapter, self.space.process(), root);
                }
            }
        }
    }

    /// Writes what lies below the table number `table` of the sequence. `origin` is an address and where
    /// its page is in the content.
    fn descend<I: Iterator<Item = Run> + Clone>(
        &mut self,
        root: Place,
        table: usize,
        range: Range<u64>,
        content: &Content<I>,
        origin: (u64, u64),
    ) {
        let Some(known) = self.builder.table(table) else {
            return;
        };
        let bytes = entry_bytes(known.level);
        // CAST: an index in a table.
        let index = |address: u64| (address.saturating_sub(known.address.0) / bytes) as u32;
        if known.level == 0 {
            let at = Position {
                root,
                table,
                first: index(range.start),
            };
            return self.leaf(at, range, content, origin);
        }
        let mut run: Range<u64> = range.start..range.start;
        let mut next = range.start;
        while next < range.end {
            let start = next & !bytes.wrapping_sub(1);
            let end = start.saturating_add(bytes);
            let inner = next..end.min(range.end);
            next = inner.end;
            let below = self.builder.table_at(known.level - 1, start);
            if let Some(below) = below {
                self.above(root, table, &run, known, content);
                self.descend(root, below, inner, content, origin);
                run = next..next;
            } else if inner.start == start && inner.end == end {
                run.end = end;
            } else {
                self.above(root, table, &run, known, content);
                run = next..next;
            }
        }
        self.above(root, table, &run, known, content);
    }

    /// Writes entries of a table above leaves that say the same as everything below them.
    fn above<I>(
        &mut self,
        root: Place,
        table: usize,
        run: &Range<u64>,
        known: Known,
        content: &Content<I>,
    ) {
        let Content::Same(entry) = content else {
            return;
        };
        if run.is_empty() {
            return;
        }
        let bytes = entry_bytes(known.level);
        // CAST: indices in a table.
        let first = (run.start.saturating_sub(known.address.0) / bytes) as u32;
        let count = (run.end.saturating_sub(run.start) / bytes) as u32;
        let at = Position { root, table, first };
        self.builder
            .repeat(self.line, at, *entry, count, Phase::Normal, self.why);
    }

    /// Writes entries of a leaf.
    fn leaf<I: Iterator<Item = Run> + Clone>(
        &mut self,
        at: Position,
        range: Range<u64>,
        content: &Content<I>,
        (address, skip): (u64, u64),
    ) {
        let bytes = range.end.saturating_sub(range.start);
        match content {
            Content::Same(entry) => {
                // CAST: a leaf has 512 entries.
                let count = (bytes / PAGE_BYTES) as u32;
                self.builder
                    .repeat(self.line, at, *entry, count, Phase::Normal, self.why);
            }
            Content::Pages(runs, rights) => {
                let start = range.start.saturating_sub(address).saturating_add(skip);
                let runs = cut(runs.clone(), start..start.saturating_add(bytes));
                self.builder.pages(self.line, at, runs, *rights, self.why);
            }
        }
    }
}

/// Returns what is known of the root now.
fn root_now(tables: &ClientTables, before: Known) -> Known {
    tables.find(before.level, 0).unwrap_or(before)
}
