// SPDX-License-Identifier: GPL-2.0

//! What a demonstration has to tell: tables with a sentence at the end, or JSON.

use std::time::Duration;

use serde::Serialize;

use super::counters::Counters;
use super::painter::Work;
use super::pressure::Pressure;
use crate::quantity::{
    bytes,
    count,
    counted,
    time, //
};
use crate::statistics::{
    Line,
    Statistics, //
};
use crate::table::{
    Align,
    Table, //
};

/// The result of a demonstration.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) picture: Picture,
    pub(crate) textures: Textures,
    pub(crate) segment: Segment,
    pub(crate) node: u32,
    pub(crate) work: Work,
    pub(crate) pressure: Option<Pressure>,
    pub(crate) paging: Counters,
    pub(crate) seconds: Seconds,
}

/// The picture, compared with what it must be.
#[derive(Debug, Serialize)]
pub(crate) struct Picture {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) pixels: u64,
    pub(crate) differing_pixels: u64,
    /// Column and row.
    pub(crate) first_difference: Option<(u32, u32)>,
}

/// All textures together.
#[derive(Debug, Serialize)]
pub(crate) struct Textures {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

/// The segment that everything went through.
#[derive(Debug, Serialize)]
pub(crate) struct Segment {
    pub(crate) id: u32,
    pub(crate) kind: &'static str,
    pub(crate) bytes: u64,
}

/// How long each part took.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Seconds {
    pub(crate) drawing: f64,
    pub(crate) uploading: f64,
    pub(crate) painting: f64,
    pub(crate) comparing: f64,
}

impl Report {
    /// Returns the tables and the sentence.
    pub(crate) fn text(&self) -> String {
        format!(
            "{}\n{}\n{}\n{}{}\n",
            self.parts(),
            self.memory(),
            self.moves(),
            self.engine(),
            self.sentence()
        )
    }

    /// Returns the sentence that sums it up.
    pub(crate) fn sentence(&self) -> String {
        format!(
            "{}, {} through a {} {}: {} of {} pixels differ",
            counted(self.textures.count, "texture"),
            bytes(self.textures.bytes),
            bytes(self.segment.bytes),
            self.segment.kind,
            self.picture.differing_pixels,
            self.picture.pixels
        )
    }

    /// Says what is wrong, if anything is.
    pub(crate) fn complaint(&self) -> Option<String> {
        let (x, y) = self.picture.first_difference?;
        Some(format!(
            "the picture of the GPU is wrong: {} of {} pixels differ from what the CPU made, the \
             first at column {x}, row {y}",
            self.picture.differing_pixels, self.picture.pixels
        ))
    }

    /// Returns what was done and how long it took.
    fn parts(&self) -> Table {
        let mut table = Table::new([
            ("part", Align::Left),
            ("time", Align::Right),
            ("work", Align::Left),
        ]);
        let mut part = |name: &str, seconds, work: String| {
            let duration = time(Duration::from_secs_f64(seconds));
            table.row([name.to_owned(), duration, work]);
        };
        let textures = counted(self.textures.count, "texture");
        part(
            "draw",
            self.seconds.drawing,
            format!("{textures} by the CPU"),
        );
        part(
            "upload",
            self.seconds.uploading,
            format!("{} through LOCK and mmap", bytes(self.textures.bytes)),
        );
        part(
            "paint",
            self.seconds.painting,
            format!(
                "{} on node {}, {}, {} operands patched",
                counted(self.work.submissions, "submission"),
                self.node,
                counted(self.work.portions, "portion"),
                count(self.work.patches_written),
            ),
        );
        part(
            "compare",
            self.seconds.comparing,
            format!("{} pixels", count(self.picture.pixels)),
        );
        table
    }

    /// Returns how short memory was, and what became of that.
    fn memory(&self) -> Table {
        let mut table = Table::new([("memory", Align::Left), ("", Align::Left)]);
        let mut line = |name: &str, value: String| table.value(name, value);
        // CAST: numbers of bytes far below the precision of the type.
        let times = self.textures.bytes as f64 / self.segment.bytes.max(1) as f64;
        line(
            "working set",
            format!(
                "{}, {times:.1} x the {} of {}",
                bytes(self.textures.bytes),
                self.segment.kind,
                bytes(self.segment.bytes)
            ),
        );
        line(
            "hit rate",
            format!(
                "{:.1} % of {} that submissions named were there",
                100.0 * self.hit_rate(),
                bytes(self.work.named_bytes)
            ),
        );
        if let Some(pressure) = &self.pressure {
            line(
                "budget",
                format!(
                    "{} to {}, used up to {}",
                    bytes(pressure.least_budget_bytes),
                    bytes(pressure.most_budget_bytes),
                    bytes(pressure.most_usage_bytes)
                ),
            );
            line(
                "events",
                format!(
                    "{}, {}, up to {} at once",
                    counted(pressure.budget_events, "budget change"),
                    counted(pressure.trim_events, "trim request"),
                    bytes(pressure.most_trim_bytes)
                ),
            );
        }
        table
    }

    /// Returns which part of what submissions named was in the segment already.
    fn hit_rate(&self) -> f64 {
        let missed = self.work.paged_in_bytes.min(self.work.named_bytes);
        // CAST: as above.
        1.0 - missed as f64 / self.work.named_bytes.max(1) as f64
    }

    /// Returns what was moved for this program, and the operations that did it.
    fn moves(&self) -> Table {
        let paging = &self.paging;
        let line = |what: &str, count, bytes| Line {
            what: what.to_owned(),
            count,
            bytes,
        };
        let mut lines = vec![
            line("paged in", None, Some(paging.paged_in_bytes)),
            line("paged out", None, Some(paging.paged_out_bytes)),
            line("evictions", Some(paging.evictions), None),
        ];
        lines.extend(paging.adapter.iter().flat_map(Statistics::operations));
        counts("paging", &lines)
    }

    /// Returns what else the adapter counted; nothing where that cannot be read.
    fn engine(&self) -> String {
        let lines = self.paging.adapter.iter().flat_map(Statistics::others);
        let lines: Vec<_> = lines.collect();
        match lines[..] {
            [] => String::new(),
            _ => format!("{}\n", counts("engine", &lines)),
        }
    }
}

/// Makes a table of numbers and sizes.
fn counts(heading: &'static str, lines: &[Line]) -> Table {
    let dash = || "-".to_owned();
    let mut table = Table::new([
        (heading, Align::Left),
        ("count", Align::Right),
        ("bytes", Align::Right),
    ]);
    for line in lines {
        table.row([
            line.what.clone(),
            line.count.map_or_else(dash, count),
            line.bytes.map_or_else(dash, bytes),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(differing_pixels: u64) -> Report {
        Report {
            seed: 1,
            picture: Picture {
                width: 1024,
                height: 768,
                pixels: 1024 * 768,
                differing_pixels,
                first_difference: (differing_pixels > 0).then_some((3, 4)),
            },
            textures: Textures {
                count: 48,
                bytes: 48 << 20,
            },
            segment: Segment {
                id: 1,
                kind: "segment",
                bytes: 16 << 20,
            },
            node: 2,
            work: Work {
                submissions: 20,
                portions: 20,
                patches_written: 500,
                named_bytes: 200 << 20,
                paged_in_bytes: 90 << 20,
                running_ns: 0,
            },
            pressure: Some(Pressure {
                least_budget_bytes: 12 << 20,
                most_budget_bytes: 16 << 20,
                most_usage_bytes: 15 << 20,
                budget_events: 2,
                trim_events: 1,
                most_trim_bytes: 3 << 20,
            }),
            paging: Counters {
                evictions: 61,
                paged_in_bytes: 90 << 20,
                paged_out_bytes: 70 << 20,
                adapter: None,
            },
            seconds: Seconds {
                painting: 2.5,
                ..Default::default()
            },
        }
    }

    #[test]
    fn sentence_names_textures_segment_and_pixels() {
        assert_eq!(
            report(0).sentence(),
            "48 textures, 48 MiB through a 16 MiB segment: 0 of 786432 pixels differ"
        );
    }

    #[test]
    fn right_picture_gives_no_complaint() {
        assert_eq!(report(0).complaint(), None);
    }

    #[test]
    fn wrong_picture_is_complained_about_with_a_place() {
        let complaint = report(7).complaint().unwrap_or_default();

        assert!(complaint.contains("7 of 786432 pixels differ"));
        assert!(complaint.contains("column 3, row 4"));
    }

    #[test]
    fn text_has_aligned_tables_and_ends_with_the_sentence() {
        let text = report(0).text();

        assert!(text.contains(
            "  paint    2.50 s  20 submissions on node 2, 20 portions, 500 operands patched\n"
        ));
        assert!(text.contains("  working set  48 MiB, 3.0 x the segment of 16 MiB\n"));
        assert!(text.contains("  hit rate     55.0 % of 200 MiB that"));
        assert!(text.contains("  budget       12 MiB to 16 MiB, used up to 15 MiB\n"));
        assert!(text.contains("2 budget changes, 1 trim request, up to 3 MiB at once\n"));
        assert!(text.contains("  paged out      -  70 MiB\n"));
        assert!(text.contains("  evictions     61       -\n"));
        assert!(text.ends_with(" differ\n"));
    }
}
