// SPDX-License-Identifier: GPL-2.0

//! Counters of an adapter, as its debug directory shows them.
//!
//! The file has one `name: value` per line. It is for diagnosis: where it cannot be read, programs do
//! without it. `operations_Fill` and `operation_bytes_Fill` are number and size of the paging
//! operation Fill; `packets` and `packet_bytes` are number and size of anything else.

use std::fs;
use std::path::Path;

use serde::{
    Serialize,
    Serializer, //
};

/// The counters of one moment, or what was added between two, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statistics(Vec<(String, u64)>);

/// Number and size of one thing, as far as they are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its name, with blanks between the words.
    pub(crate) what: String,
    pub(crate) count: Option<u64>,
    pub(crate) bytes: Option<u64>,
}

/// Begins the name of the number of a paging operation.
const OPERATIONS: &str = "operations_";
/// Begins the name of the size of a paging operation.
const OPERATION_BYTES: &str = "operation_bytes_";
/// Numbers of objects that are alive.
const LIVING: [&str; 6] = [
    "clients",
    "devices",
    "allocations",
    "contexts",
    "queues",
    "fences",
];
/// Ends the name of the size of anything else.
const BYTES: &str = "_bytes";

impl Statistics {
    /// Reads the counters of the adapter at `device`, [`None`] where they cannot be read.
    pub(crate) fn read(device: &Path) -> Option<Self> {
        let adapter = adapter_number(device)?;
        let path = format!("/sys/kernel/debug/vidmm/{adapter}/stats");
        fs::read_to_string(path).ok().map(|text| Self::parse(&text))
    }

    /// Takes the counters out of the text; lines of another form are none.
    fn parse(text: &str) -> Self {
        let counters = text.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_owned(), value.trim().parse().ok()?))
        });
        Self(counters.collect())
    }

    /// Returns a counter, 0 if there is none of that name.
    fn get(&self, name: &str) -> u64 {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or(0, |(_, value)| *value)
    }

    /// Returns by how much the counters grew since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let growth = self.0.iter().map(|(name, value)| {
            let growth = value.saturating_sub(earlier.get(name));
            (name.clone(), growth)
        });
        Self(growth.collect())
    }

    /// Returns the paging operations that were carried out.
    pub(crate) fn operations(&self) -> Vec<Line> {
        self.grown()
            .filter_map(|(name, count)| {
                let operation = name.strip_prefix(OPERATIONS)?;
                Some(Line {
                    what: operation.to_owned(),
                    count: Some(count),
                    bytes: Some(self.get(&format!("{OPERATION_BYTES}{operation}"))),
                })
            })
            .collect()
    }

    /// Returns all other counters that are not zero, without the numbers of living objects: those go
    /// up and down.
    pub(crate) fn others(&self) -> Vec<Line> {
        let is_left_out = |name: &str| {
            name.starts_with(OPERATIONS)
                || name.starts_with(OPERATION_BYTES)
                || LIVING.contains(&name)
        };
        let mut lines: Vec<Line> = Vec::new();
        for (name, value) in self.grown().filter(|(name, _)| !is_left_out(name)) {
            let Some(stem) = name.strip_suffix(BYTES) else {
                lines.push(Line {
                    what: name.replace('_', " "),
                    count: Some(value),
                    bytes: None,
                });
                continue;
            };
            let what = format!("{}s", stem.replace('_', " "));
            match lines.iter_mut().find(|line| line.what == what) {
                Some(line) => line.bytes = Some(value),
                None => lines.push(Line {
                    what,
                    count: None,
                    bytes: Some(value),
                }),
            }
        }
        lines
    }

    /// Returns the counters that are not zero.
    fn grown(&self) -> impl Iterator<Item = (&str, u64)> {
        let counters = self.0.iter().filter(|(_, value)| *value != 0);
        counters.map(|(name, value)| (name.as_str(), *value))
    }
}

impl Serialize for Statistics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Returns the number of an adapter: `vidmm` is 0, `vidmm1` is 1.
fn adapter_number(device: &Path) -> Option<u32> {
    match device.file_name()?.to_str()?.strip_prefix("vidmm")? {
        "" => Some(0),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(what: &str, count: Option<u64>, bytes: Option<u64>) -> Line {
        Line {
            what: what.to_owned(),
            count,
            bytes,
        }
    }

    #[test]
    fn number_of_an_adapter_is_in_its_name() {
        let number = |path| adapter_number(Path::new(path));

        assert_eq!(number("/dev/vidmm"), Some(0));
        assert_eq!(number("/dev/vidmm12"), Some(12));
        assert_eq!(number("/dev/null"), None);
    }

    #[test]
    fn lines_of_another_form_are_no_counters() {
        let statistics = Statistics::parse("fill_bytes: 4096\nmode: soft\nempty\nevictions: 3\n");

        assert_eq!(statistics.get("fill_bytes"), 4096);
        assert_eq!(statistics.get("evictions"), 3);
        assert_eq!(statistics.0.len(), 2);
    }

    #[test]
    fn growth_is_counted_from_zero_where_a_counter_is_new() {
        let earlier = Statistics::parse("a: 5\n");
        let later = Statistics::parse("a: 7\nb: 2\n");

        let growth = later.since(&earlier);

        assert_eq!((growth.get("a"), growth.get("b")), (2, 2));
    }

    #[test]
    fn operations_have_number_and_size() {
        let statistics = Statistics::parse(
            "packets: 3\noperations_Fill: 2\noperation_bytes_Fill: 8192\noperations_Discard: 0\n\
             operation_bytes_Discard: 0\n",
        );

        let fill = line("Fill", Some(2), Some(8192));
        assert_eq!(statistics.operations(), [fill]);
    }

    #[test]
    fn size_of_other_things_stands_beside_their_number() {
        let statistics = Statistics::parse(
            "packets: 3\npacket_bytes: 4096\noperations_Fill: 2\nfaults: 0\nallocations: 8\npage_bytes: 5\n\
             paging_completed: 7\n",
        );

        assert_eq!(
            statistics.others(),
            [
                line("packets", Some(3), Some(4096)),
                line("pages", None, Some(5)),
                line("paging completed", Some(7), None),
            ]
        );
    }

    #[test]
    fn json_is_an_object_of_names_and_numbers() {
        let statistics = Statistics::parse("b: 1\na: 2\n");

        let json = serde_json::to_string(&statistics);

        assert_eq!(json.ok().as_deref(), Some(r#"{"b":1,"a":2}"#));
    }
}
