// SPDX-License-Identifier: GPL-2.0

//! The paging process: on whose behalf memory work is done, and the address space in which it runs.
//!
//! It is there before any client, and on an adapter with an MMU it has a space like one. Its tables
//! are written at once, by the CPU, before there is a paging buffer (VA-8): nothing but them could show
//! where a buffer shall write. They cover the window onto the leaf tables of the scratch area and the
//! scratch area itself ([`crate::policy::paging_space`]), and stay where they are.
//!
//! ```text
//! create_process, create_device, [VA(backend)], alloc(tables)+, residency(tables)+, UPT(paging)+
//! ```
//!
//! Requirements: VA-1 to VA-5, VA-8, VA-9.

use core::ops::Range;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::{
        pages::Charge,
        trace, //
    },
    backend::{
        capabilities::{
            Translation,
            UpdateMode, //
        },
        page_table::{
            Entries,
            Entry,
            Phase,
            Rights,
            Update, //
        },
        Backend,
        ObjectCall,
        Operation,
        Root, //
    },
    object::{
        page_table::{
            self,
            PageTable, //
        },
        paging::{
            Builder,
            Reason, //
        },
        presence::Presence,
        segment::Segment,
    },
    policy::{
        page_table::{
            entry_bytes,
            LEAF_BYTES,
            TABLE_ENTRIES, //
        },
        paging_space::{
            Layout,
            Unfit,
            Wish, //
        },
    },
    units::{
        GpuVirtualAddress,
        PageSize,
        Place,
        PAGE_BYTES, //
    },
};

/// The number of the paging process.
const PROCESS: u64 = 1;
/// The number of its context.
const CONTEXT: u64 = 2;
/// The first number for anything else.
pub(super) const FIRST_NUMBER: u64 = 3;

/// Why its tables are written.
const CAUSE: trace::Cause = trace::Cause::Power;

/// The paging process.
pub(crate) struct PagingProcess {
    space: Option<Space>,
    /// The system device; before the process, so that it goes first.
    _device: Presence,
    _process: Presence,
}

/// The address space of the paging process.
pub(crate) struct Space {
    number: u64,
    mode: UpdateMode,
    levels: u32,
    layout: Layout,
    /// The root first, then the tables of each level downwards, each level by ascending address.
    tables: KVec<PageTable>,
    root: Root,
}

impl PagingProcess {
    /// Makes the process; `number` gives numbers to what is made. Operations are built by `builder` and
    /// executed at once.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: what the backend says of its MMU cannot be had.
    /// - `ENOSPC`: the segment for the tables is too small.
    /// - `ENOMEM`: no memory.
    // Kept apart, so that its temporaries are off the stack before the next step.
    #[inline(never)]
    pub(super) fn new(
        backend: &Arc<dyn Backend>,
        segments: &mut [Segment],
        builder: &mut Builder,
        number: impl Fn() -> u64,
    ) -> Result<Self> {
        let process = Presence::new(
            backend,
            ObjectCall::CreateProcess { process: PROCESS },
            ObjectCall::DestroyProcess { process: PROCESS },
        )?;
        let device = Presence::new(
            backend,
            ObjectCall::CreateDevice { process: PROCESS },
            ObjectCall::DestroyDevice { process: PROCESS },
        )?;
        let space = match &backend.capabilities().translation {
            Some(translation) => {
                let mut space = Space::new(translation, &number)?;
                space.place(segments)?;
                space.initialise(&**backend, builder)?;
                Some(space)
            }
            None => None,
        };
        Ok(Self {
            space,
            _device: device,
            _process: process,
        })
    }

    /// Returns its number.
    pub(crate) fn number(&self) -> u64 {
        PROCESS
    }

    /// Returns the number of its context.
    pub(crate) fn context(&self) -> u64 {
        CONTEXT
    }

    /// Returns its address space, if the adapter has an MMU.
    pub(crate) fn space(&self) -> Option<&Space> {
        self.space.as_ref()
    }
}

impl From<Unfit> for Error {
    fn from(_: Unfit) -> Self {
        EINVAL
    }
}

impl Space {
    /// Lays the space out and makes its tables.
    fn new(translation: &Translation, number: impl Fn() -> u64) -> Result<Self> {
        let layout = Layout::new(&Wish {
            levels: translation.levels,
            root_entries: translation.root_entries.clone(),
            // Tables that the CPU writes at once cannot keep step with what a node does.
            scratch_bytes: match translation.update_mode {
                UpdateMode::GpuVirtual | UpdateMode::GpuPhysical => translation.scratch_bytes,
                UpdateMode::CpuVirtual => 0,
            },
            reserved_bytes: translation.reserved_bytes,
            reserved_at: translation.reserved_at,
        })?;
        let space = number();
        if !layout.reserved.is_empty() {
            trace_reserved(space, &layout.reserved, trace::Hold::Alloc);
        }
        let mut tables = KVec::new();
        for level in (0..translation.levels).rev() {
            let is_root = level + 1 == translation.levels;
            for index in 0..count(&layout, level) {
                let description = page_table::Description {
                    number: number(),
                    level,
                    entries: match is_root {
                        true => layout.root_entries,
                        false => TABLE_ENTRIES,
                    },
                    address: GpuVirtualAddress(u64::from(index) * entry_bytes(level + 1)),
                    segment: translation.paging_tables,
                    charge: Charge::Driver,
                };
                tables.push(PageTable::new(&description)?, GFP_KERNEL)?;
            }
        }
        Ok(Self {
            number: space,
            mode: translation.update_mode,
            levels: translation.levels,
            root: Root {
                place: Place::new(translation.paging_tables, 0),
                entries: layout.root_entries,
            },
            layout,
            tables,
        })
    }

    /// Gives the tables their places.
    fn place(&mut self, segments: &mut [Segment]) -> Result {
        // From the last one on, which comes to lie highest.
        for table in self.tables.iter_mut().rev() {
            let place = table.settle(segments, CAUSE)?;
            if table.level() + 1 == self.levels {
                self.root.place = place;
            }
        }
        Ok(())
    }

    /// Writes the tables: first nothing into all of them, then what never changes.
    fn initialise(&self, backend: &dyn Backend, builder: &mut Builder) -> Result {
        for table in &self.tables {
            let nothing = Entries::Repeat {
                entry: Entry::Invalid,
                count: table.entries(),
            };
            self.write(backend, builder, table, 0, Phase::Initialise, nothing)?;
        }
        let mut entries = KVec::new();
        for level in (1..self.levels).rev() {
            for table in self.of_level(level) {
                entries.clear();
                for below in self
                    .of_level(level - 1)
                    .filter(|below| lies_in(below, table))
                {
                    let place = below.place().ok_or(EINVAL)?;
                    let leaves = PageSize::Small;
                    entries.push(Entry::Table { place, leaves }, GFP_KERNEL)?;
                }
                let tables = Entries::Each(&entries);
                self.write(backend, builder, table, 0, Phase::Normal, tables)?;
            }
        }
        self.open_window(backend, builder, &mut entries)
    }

    /// Lets the window show the leaf tables of the scratch area.
    fn open_window(
        &self,
        backend: &dyn Backend,
        builder: &mut Builder,
        entries: &mut KVec<Entry>,
    ) -> Result {
        let mut seen = self.scratch_leaves();
        let window = &self.layout.window;
        for leaf in self.of_level(0) {
            let covered = leaf.address().0..leaf.address().0 + LEAF_BYTES;
            let start = covered.start.max(window.start);
            let end = covered.end.min(window.end);
            entries.clear();
            for place in seen.by_ref().take(pages(start..end)) {
                let rights = Rights {
                    write: true,
                    ..Rights::default()
                };
                entries.push(Entry::Page { place, rights }, GFP_KERNEL)?;
            }
            if !entries.is_empty() {
                // CAST: an index in a table.
                let first = ((start - covered.start) / PAGE_BYTES) as u32;
                let shown = Entries::Each(entries);
                self.write(backend, builder, leaf, first, Phase::Normal, shown)?;
            }
        }
        Ok(())
    }

    /// Writes entries of a table at once, wherever the tables are.
    fn write(
        &self,
        backend: &dyn Backend,
        builder: &mut Builder,
        table: &PageTable,
        first: u32,
        phase: Phase,
        entries: Entries<'_>,
    ) -> Result {
        let update = Update {
            table: table.named(None).ok_or(EINVAL)?,
            level: table.level(),
            page: PageSize::Small,
            first,
            address: table.translates(first),
            root: self.root.place,
            phase,
            entries,
        };
        let why = Reason {
            space: self.number,
            process: PROCESS,
            allocation: 0,
            cause: CAUSE,
        };
        builder.execute(backend, &Operation::UpdatePageTable(update), why)
    }

    fn of_level(&self, level: u32) -> impl Iterator<Item = &PageTable> {
        self.tables
            .iter()
            .filter(move |table| table.level() == level)
    }

    /// Returns its number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the process it belongs to.
    pub(crate) fn process(&self) -> u64 {
        PROCESS
    }

    /// Returns the root.
    pub(crate) fn root(&self) -> Root {
        self.root
    }

    /// Returns how its tables are named when they are written in its own context.
    pub(super) fn mode(&self) -> UpdateMode {
        self.mode
    }

    /// Returns what lies where.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns its tables: the root first, then each level downwards, by ascending address.
    pub(crate) fn tables(&self) -> &[PageTable] {
        &self.tables
    }

    /// Returns where the leaf tables of the scratch area are, in order.
    pub(super) fn scratch_leaves(&self) -> impl Iterator<Item = Place> + '_ {
        let leaves = self.layout.scratch_leaves();
        let (first, count) = (leaves.start, leaves.end - leaves.start);
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.of_level(0)
            .skip(first as usize)
            .take(count as usize)
            .filter_map(PageTable::place)
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        if !self.layout.reserved.is_empty() {
            trace_reserved(self.number, &self.layout.reserved, trace::Hold::Free);
        }
    }
}

/// Returns how many tables of a level there are.
fn count(layout: &Layout, level: u32) -> u32 {
    // CAST: `usize` has 64 bits wherever this driver runs.
    layout.tables.get(level as usize).copied().unwrap_or(0)
}

/// Returns whether the addresses of one table are some of those of another one.
fn lies_in(below: &PageTable, above: &PageTable) -> bool {
    let bytes = u64::from(above.entries()) * entry_bytes(above.level());
    let inside = below.address().0.checked_sub(above.address().0);
    inside.is_some_and(|inside| inside < bytes)
}

/// Returns how many pages a range has, 0 if it ends before it begins.
fn pages(range: Range<u64>) -> usize {
    // CAST: `usize` has 64 bits wherever this driver runs.
    (range.end.saturating_sub(range.start) / PAGE_BYTES) as usize
}

fn trace_reserved(space: u64, range: &Range<u64>, action: trace::Hold) {
    trace::va_range(|| trace::VaRange {
        space,
        process: PROCESS,
        purpose: trace::Purpose::Backend,
        start: range.start,
        size: range.end - range.start,
        action,
    });
}
