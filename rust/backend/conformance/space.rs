// SPDX-License-Identifier: GPL-2.0

//! Two address spaces on the bench: one for a client, one for paging operations.
//!
//! All tables lie in segment 1. The space of paging operations shows the leaves of both spaces from
//! [`WINDOW`] on, so that entries can be written by address.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    bench::Bench,
    place, //
};
use crate::{
    backend::{
        operation::FlushRange,
        page_table::{
            Entries,
            Entry,
            Phase,
            Rights,
            Root,
            Table,
            Update, //
        },
        Backend,
        EngineContext,
        Fetch,
        Operation,
        Outcome, //
    },
    units::{
        GpuVirtualAddress,
        NodeOrdinal,
        PageSize,
        Place,
        Run, //
    }, //
};

/// What one leaf covers.
pub(super) const LEAF: u64 = 2 << 20;

/// Where paging operations see the leaves.
const WINDOW: u64 = 0x1000;

/// The part of the paging space that its second leaf covers.
pub(super) const SCRATCH: u64 = LEAF;

/// Everything that a page can be used for.
pub(super) const ALL: Rights = Rights {
    write: true,
    execute: true,
    driver: 0,
};

/// Reading only.
pub(super) const READ: Rights = Rights {
    write: false,
    execute: false,
    driver: 0,
};

/// How a table is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// By its place.
    Place,
    /// By its address in the paging space.
    Address,
}

/// A leaf: of the client's space the first or the second one, of the paging space that of the scratch
/// area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    /// Addresses below 2 MiB of the client.
    First,
    /// Addresses below 4 MiB of the client.
    Second,
    /// Addresses from [`SCRATCH`] on of paging operations.
    Scratch,
}

impl Leaf {
    /// Returns its place.
    fn place(self) -> Place {
        place(1, 0xe0000 + 0x1000 * self.index())
    }

    /// Returns its number in the window.
    fn index(self) -> u64 {
        match self {
            Leaf::First => 0,
            Leaf::Second => 1,
            Leaf::Scratch => 2,
        }
    }

    /// Returns the first address that it translates.
    fn start(self) -> u64 {
        match self {
            Leaf::First => 0,
            Leaf::Second => LEAF,
            Leaf::Scratch => SCRATCH,
        }
    }
}

/// The spaces.
pub(super) struct Spaces<'a> {
    /// The bench they stand on.
    pub(super) bench: Bench<'a>,
    /// The root of the client.
    pub(super) root: Root,
    /// The root of paging operations.
    paging: Root,
}

impl<'a> Spaces<'a> {
    /// Sets up both spaces; nothing is mapped but the window.
    pub(super) fn new(backend: &'a dyn Backend) -> Result<Self> {
        let root = |offset| Root {
            place: place(1, offset),
            entries: 512,
        };
        let spaces = Self {
            bench: Bench::new(backend)?,
            root: root(0xe8000),
            paging: root(0xec000),
        };
        let window = place(1, 0xf0000);
        for leaf in [Leaf::First, Leaf::Second, Leaf::Scratch] {
            spaces.initialise(leaf.place(), 0)?;
        }
        spaces.initialise(window, 0)?;
        spaces.build(spaces.root, [Leaf::First.place(), Leaf::Second.place()])?;
        spaces.build(spaces.paging, [window, Leaf::Scratch.place()])?;
        let shown = [Run::new(Leaf::First.place(), 3 << 12)];
        spaces.execute(Update {
            table: by_place(window),
            level: 0,
            page: PageSize::Small,
            first: 1,
            address: GpuVirtualAddress(WINDOW),
            root: spaces.paging.place,
            phase: Phase::Normal,
            entries: Entries::Pages {
                runs: &shown,
                rights: ALL,
            },
        })?;
        backend.set_root(&**spaces.bench.system(), spaces.paging);
        Ok(spaces)
    }

    /// Writes entries at once, as the core does it when it sets up its own tables.
    fn execute(&self, update: Update<'_>) -> Result {
        let operation = Operation::UpdatePageTable(update);
        self.bench.backend.execute(&operation)
    }

    /// Makes all entries of a table invalid.
    fn initialise(&self, table: Place, level: u32) -> Result {
        self.execute(Update {
            table: by_place(table),
            level,
            page: PageSize::Small,
            first: 0,
            address: GpuVirtualAddress(0),
            root: table,
            phase: Phase::Initialise,
            entries: Entries::Repeat {
                entry: Entry::Invalid,
                count: 512,
            },
        })
    }

    /// Lets two tables be the first leaves below a root, whatever lies between.
    fn build(&self, root: Root, leaves: [Place; 2]) -> Result {
        let levels = self.bench.backend.capabilities().translation.as_ref();
        let levels = levels.ok_or(EINVAL)?.levels;
        let small = |place| Entry::Table {
            place,
            leaves: PageSize::Small,
        };
        let mut entries: [Entry; 2] = leaves.map(small);
        for level in 1..levels {
            // Tables of higher levels lie behind each other; the last one is the root.
            let offset = u64::from(levels - 1 - level) << 12;
            let table = root.place.forward(offset);
            self.initialise(table, level)?;
            self.execute(Update {
                table: by_place(table),
                level,
                page: PageSize::Small,
                first: 0,
                address: GpuVirtualAddress(0),
                root: root.place,
                phase: Phase::Normal,
                entries: Entries::Each(&entries),
            })?;
            entries = [small(table), Entry::Invalid];
        }
        Ok(())
    }

    /// Creates a context of the client.
    pub(super) fn context(&self, number: u64, node: NodeOrdinal) -> Result<Arc<dyn EngineContext>> {
        let context = self.bench.context(number, node)?;
        self.bench.backend.set_root(&*context, self.root);
        Ok(context)
    }

    /// Changes entries of a leaf, from that of `address` on, in a buffer of the paging node.
    pub(super) fn update(
        &self,
        naming: Naming,
        leaf: Leaf,
        address: u64,
        entries: Entries<'_>,
    ) -> Result {
        let window = WINDOW + 0x1000 * leaf.index();
        self.bench.operate(&Operation::UpdatePageTable(Update {
            table: Table {
                place: leaf.place(),
                window: (naming == Naming::Address).then_some(GpuVirtualAddress(window)),
            },
            level: 0,
            page: PageSize::Small,
            first: ((address - leaf.start()) >> 12) as u32,
            address: GpuVirtualAddress(address),
            root: self.root.place,
            phase: Phase::Normal,
            entries,
        }))
    }

    /// Maps a run of memory for the client, without flush.
    pub(super) fn map(&self, address: u64, run: Run, rights: Rights) -> Result {
        let leaf = if address < LEAF {
            Leaf::First
        } else {
            Leaf::Second
        };
        let runs = &[run];
        self.update(
            Naming::Address,
            leaf,
            address,
            Entries::Pages { runs, rights },
        )
    }

    /// Lets the second leaf be one of large pages, all invalid.
    pub(super) fn enlarge(&self) -> Result {
        let levels = self.bench.backend.capabilities().translation.as_ref();
        let levels = u64::from(levels.ok_or(EINVAL)?.levels);
        self.initialise(Leaf::Second.place(), 0)?;
        self.execute(Update {
            table: by_place(self.root.place.forward((levels - 2) << 12)),
            level: 1,
            page: PageSize::Small,
            first: 1,
            address: GpuVirtualAddress(LEAF),
            root: self.root.place,
            phase: Phase::Normal,
            entries: Entries::Each(&[Entry::Table {
                place: Leaf::Second.place(),
                leaves: PageSize::Large,
            }]),
        })?;
        self.flush(FlushRange::ALL)
    }

    /// Maps large pages in the second leaf, by place, without flush.
    pub(super) fn map_large(&self, address: u64, run: Run, rights: Rights) -> Result {
        self.bench.operate(&Operation::UpdatePageTable(Update {
            table: by_place(Leaf::Second.place()),
            level: 0,
            page: PageSize::Large,
            first: ((address - LEAF) >> 16) as u32,
            address: GpuVirtualAddress(address),
            root: self.root.place,
            phase: Phase::Normal,
            entries: Entries::Pages {
                runs: &[run],
                rights,
            },
        }))
    }

    /// Flushes translations of the client.
    pub(super) fn flush(&self, range: FlushRange) -> Result {
        let root = self.root.place;
        self.bench.operate(&Operation::FlushTlb { root, range })
    }

    /// Flushes translations of paging operations.
    pub(super) fn flush_paging(&self) -> Result {
        self.bench.operate(&Operation::FlushTlb {
            root: self.paging.place,
            range: FlushRange::ALL,
        })
    }

    /// Runs commands that lie at an address.
    pub(super) fn run(
        &self,
        node: NodeOrdinal,
        context: &Arc<dyn EngineContext>,
        address: u64,
        bytes: usize,
    ) -> Result<Outcome> {
        let collector = self.bench.collector()?;
        let fetch = Fetch {
            address: GpuVirtualAddress(address),
            bytes: bytes as u32,
        };
        self.bench
            .submit_fetch(node, context, &collector, self.root.place, fetch)?;
        Ok(collector.wait(1, 0).ok_or(ETIME)?.outcome)
    }
}

/// Returns the table at a place, named by it.
fn by_place(place: Place) -> Table {
    Table {
        place,
        window: None,
    }
}
