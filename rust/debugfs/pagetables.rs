// SPDX-License-Identifier: GPL-2.0

//! `pagetables`: where the page tables are, and what stands in them.
//!
//! After the line of a table come its entries as they are in memory, those that say something: like
//! neighbours in one line with their number in `count`. `to` is what the first of them names, as
//! `SEGMENT+OFFSET`, and each further one names the next page or table of the same length behind it.
//! `rights` is how VA_MAP puts it. A table that has no place at the moment has `at=-` and no entries.

use kernel::fmt;

use crate::{
    object::{
        adapter::Adapter,
        page_table::{
            Entry,
            PageTable, //
        }, //
    },
    units::{
        Place,
        PAGE_BYTES, //
    },
};

pub(super) fn show(adapter: &Adapter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some(space) = adapter.paging_process().space() {
        let owner = Owner {
            space: space.number(),
            process: space.process(),
        };
        // Tables change their places under this lock alone.
        let residency = adapter.residency().lock();
        for table in space.tables() {
            show_table(adapter, owner, table, f)?;
        }
        drop(residency);
    }
    adapter.registries().clients.for_each(|client| {
        let Some(space) = client.space() else {
            return Ok(());
        };
        let owner = Owner {
            space: space.number(),
            process: client.id(),
        };
        let _residency = adapter.residency().lock();
        space
            .tables()
            .try_for_each(|table| show_table(adapter, owner, table, f))
    })
}

/// Whose tables they are.
#[derive(Clone, Copy)]
struct Owner {
    space: u64,
    process: u64,
}

fn show_table(
    adapter: &Adapter,
    owner: Owner,
    table: &PageTable,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(
        f,
        "space={} process={} table={} level={} address={:#x} entries={} at=",
        owner.space,
        owner.process,
        table.number(),
        table.level(),
        table.address().0,
        table.entries(),
    )?;
    match table.place() {
        Some(place) => {
            write_place(f, place)?;
            f.write_str("\n")?;
            show_entries(adapter, table, f)
        }
        None => f.write_str("-\n"),
    }
}

/// Shows what stands in a table.
fn show_entries(adapter: &Adapter, table: &PageTable, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let backend = &**adapter.backend();
    let mut first = 0;
    while first < table.entries() {
        let said = table.entry(backend, first);
        let behind = (first + 1..table.entries())
            .find(|index| table.entry(backend, *index) != follower(said, index - first))
            .unwrap_or(table.entries());
        if said != Entry::Invalid {
            write!(
                f,
                "entry={first} table={} count={} address={:#x} ",
                table.number(),
                behind - first,
                table.translates(first).0,
            )?;
            show_entry(said, f)?;
        }
        first = behind;
    }
    Ok(())
}

fn show_entry(entry: Entry, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match entry {
        Entry::Invalid => writeln!(f, "kind=invalid"),
        Entry::Zero => writeln!(f, "kind=zero"),
        Entry::Page { place, rights } => {
            f.write_str("kind=page to=")?;
            write_place(f, place)?;
            writeln!(
                f,
                " rights={:#x} driver={:#x}",
                rights.protection(),
                rights.driver
            )
        }
        Entry::Table { place, leaves } => {
            f.write_str("kind=table to=")?;
            write_place(f, place)?;
            writeln!(f, " page={}", leaves.bytes())
        }
    }
}

/// Returns what an entry says that stands `steps` behind `entry` in the same line.
fn follower(entry: Entry, steps: u32) -> Entry {
    let forward = |place: Place| place.forward(u64::from(steps) * PAGE_BYTES);
    match entry {
        Entry::Page { place, rights } => Entry::Page {
            place: forward(place),
            rights,
        },
        Entry::Table { place, leaves } => Entry::Table {
            place: forward(place),
            leaves,
        },
        other => other,
    }
}

fn write_place(f: &mut fmt::Formatter<'_>, place: Place) -> fmt::Result {
    write!(f, "{}+{:#x}", place.segment, place.offset)
}
