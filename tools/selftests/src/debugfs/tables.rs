// SPDX-License-Identifier: GPL-2.0

//! Page tables, as the file `pagetables` shows them.

use super::{
    parse_number,
    read,
    Record, //
};

/// A page table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its address space.
    pub space: u64,
    /// The process that has the space.
    pub process: u64,
    /// Its object id.
    pub table: u64,
    /// Its level, 0 for a leaf.
    pub level: u64,
    /// The first address that it translates.
    pub address: u64,
    /// How many entries it has.
    pub entries: u64,
    /// Segment and offset, if it has a place.
    pub place: Option<(u64, u64)>,
}

/// Like neighbours among the entries of a page table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entries {
    /// The table.
    pub table: u64,
    /// Index of the first one.
    pub first: u64,
    /// How many there are.
    pub count: u64,
    /// The first address that the first one translates.
    pub address: u64,
    /// `page`, `table` or `zero`.
    pub kind: String,
    /// What the first one names; each further one names what lies behind.
    pub to: Option<(u64, u64)>,
    /// `protection` as in VA_MAP.
    pub rights: u64,
}

/// Reads `segment+offset`; `-` is none.
fn parse_place(text: &str) -> Option<(u64, u64)> {
    let (segment, offset) = text.split_once('+')?;
    Some((parse_number(segment)?, parse_number(offset)?))
}

/// Reads all page tables.
pub fn tables() -> Vec<Table> {
    let records = read("pagetables");
    let records = records.iter().filter(|record| record.word("at").is_some());
    let parse = |record: &Record| Table {
        space: record.number("space"),
        process: record.number("process"),
        table: record.number("table"),
        level: record.number("level"),
        address: record.number("address"),
        entries: record.number("entries"),
        place: record.word("at").and_then(parse_place),
    };
    records.map(parse).collect()
}

/// Reads what stands in all page tables; invalid entries are left out.
pub fn table_entries() -> Vec<Entries> {
    let records = read("pagetables");
    let records = records
        .iter()
        .filter(|record| record.word("kind").is_some());
    let parse = |record: &Record| Entries {
        table: record.number("table"),
        first: record.number("entry"),
        count: record.number("count"),
        address: record.number("address"),
        kind: record.word("kind").unwrap_or_default().to_owned(),
        to: record.word("to").and_then(parse_place),
        rights: record.try_number("rights").unwrap_or(0),
    };
    records.map(parse).collect()
}

/// The address space of the paging process.
pub fn paging_space() -> u64 {
    let records = read("processes");
    let mut spaces = records
        .iter()
        .filter(|record| record.word("kind") == Some("paging"))
        .filter_map(|record| record.try_number("space"));
    spaces.next().expect("the paging process has a space")
}
