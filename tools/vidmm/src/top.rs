// SPDX-License-Identifier: GPL-2.0

//! `vidmm top`: who uses the memory of an adapter, and what is moved for whom.

use std::collections::BTreeSet;
use std::io::{
    self,
    IsTerminal, //
};
use std::path::Path;
use std::thread;
use std::time::{
    Duration,
    Instant, //
};

use clap::Args;
use libvidmm::{
    abi,
    Adapter, //
};
use serde::Serialize;

use crate::clients::{
    self,
    Client, //
};
use crate::failure::{
    open,
    Failure, //
};
use crate::names;
use crate::quantity::{
    bytes,
    count, //
};
use crate::table::{
    Align,
    Table, //
};

/// Show segments and clients again and again: residency, budgets, paging.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Seconds between two looks.
    #[arg(long, value_name = "SECONDS", default_value = "1.0", value_parser = seconds)]
    interval: Duration,

    /// Look so many times and stop [default: for ever on a terminal, else once].
    #[arg(long, value_name = "TIMES")]
    times: Option<u32>,

    /// Print JSON, one object per look, instead of tables.
    #[arg(long)]
    json: bool,
}

/// Clears a terminal and goes to its upper left corner.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// Shows the adapter at `path`.
pub(crate) fn run(path: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let adapter = open(path)?;
    let is_terminal = io::stdout().is_terminal();
    let times = arguments
        .times
        .unwrap_or(if is_terminal { u32::MAX } else { 1 });
    let mut earlier: Option<Look> = None;
    for time in 1..=times {
        let look = Look::take(&adapter, path)?;
        if arguments.json {
            let text = serde_json::to_string(&look)
                .map_err(|error| Failure(format!("cannot write JSON: {error}")))?;
            println!("{text}");
        } else {
            let clear = if is_terminal && times > 1 { CLEAR } else { "" };
            print!("{clear}{}", look.text(path, earlier.as_ref()));
        }
        if time < times {
            thread::sleep(arguments.interval);
        }
        earlier = Some(look);
    }
    Ok(())
}

/// What is seen at one moment.
#[derive(Debug, Serialize)]
struct Look {
    #[serde(skip)]
    taken: Instant,
    segments: Vec<Segment>,
    clients: Vec<Client>,
}

/// How full a segment is.
#[derive(Debug, Serialize)]
struct Segment {
    id: u32,
    kind: &'static str,
    bytes: u64,
    used_bytes: u64,
    largest_free_bytes: u64,
}

impl Look {
    /// Asks the adapter and looks at all programs.
    fn take(adapter: &Adapter, path: &Path) -> Result<Self, Failure> {
        let segments = adapter.segments()?.iter().map(Segment::from).collect();
        let mut clients = clients::of(path);
        // This program itself uses nothing.
        let own = adapter.client()?.client_id;
        clients.retain(|client| client.id != own);
        Ok(Self {
            taken: Instant::now(),
            segments,
            clients,
        })
    }

    /// Returns the tables. What was moved is shown per second since `earlier`, or in total.
    fn text(&self, path: &Path, earlier: Option<&Self>) -> String {
        let clients = match self.clients.len() {
            0 => "  no other program has the adapter open\n".to_owned(),
            _ => self.client_table(earlier).to_string(),
        };
        format!(
            "vidmm adapter {}\n\nSegments\n{}\nClients\n{clients}",
            path.display(),
            self.segment_table(),
        )
    }

    fn segment_table(&self) -> Table {
        let mut table = Table::new([
            ("id", Align::Right),
            ("kind", Align::Left),
            ("size", Align::Right),
            ("used", Align::Right),
            ("largest free", Align::Right),
            ("", Align::Left),
        ]);
        for segment in &self.segments {
            table.row([
                segment.id.to_string(),
                segment.kind.to_owned(),
                bytes(segment.bytes),
                bytes(segment.used_bytes),
                match segment.largest_free_bytes {
                    0 => "-".to_owned(),
                    free => bytes(free),
                },
                bar(segment.used_bytes, segment.bytes),
            ]);
        }
        table
    }

    fn client_table(&self, earlier: Option<&Self>) -> Table {
        let regions: BTreeSet<&str> = self
            .clients
            .iter()
            .flat_map(|client| client.resident_bytes.keys().map(String::as_str))
            .collect();
        let moved = |what: &str| match earlier {
            Some(_) => format!("{what}/s"),
            None => what.to_owned(),
        };
        let left = |name: &str| (name.to_owned(), Align::Left);
        let right = |name: &str| (name.to_owned(), Align::Right);
        let mut columns = vec![right("client"), right("pid"), left("program"), left("name")];
        columns.extend(regions.iter().copied().map(right));
        columns.extend(["budget", "usage", "to trim", "offered"].map(right));
        columns.extend(
            ["in", "out", "evictions"]
                .map(moved)
                .map(|name| right(&name)),
        );
        let mut table = Table::with(columns);
        for client in &self.clients {
            let mut cells = vec![
                client.id.to_string(),
                client.pid.to_string(),
                client.program.clone(),
                client.name.clone().unwrap_or_default(),
            ];
            let resident = |region: &&str| client.resident_bytes.get(*region).copied();
            cells.extend(regions.iter().map(|r| bytes(resident(r).unwrap_or(0))));
            cells.extend([
                bytes(client.local.budget_bytes),
                bytes(client.local.usage_bytes),
                bytes(client.local.trim_bytes),
                bytes(client.offered_bytes),
            ]);
            cells.extend(self.moved(client, earlier));
            table.row_of(cells);
        }
        table
    }

    /// Returns what was moved for a client: bytes in, bytes out, evictions.
    fn moved(&self, client: &Client, earlier: Option<&Self>) -> [String; 3] {
        let Some(earlier) = earlier else {
            return [
                bytes(client.paged_in_bytes),
                bytes(client.paged_out_bytes),
                count(client.evictions),
            ];
        };
        let nothing = Client::default();
        let found = earlier.clients.iter().find(|other| other.id == client.id);
        let before = found.unwrap_or(&nothing);
        let seconds = self.taken.duration_since(earlier.taken).as_secs_f64();
        let rate = |now: u64, before: u64| {
            // CAST: rates are far below the precision of the type.
            (now.saturating_sub(before) as f64 / seconds.max(1e-3)) as u64
        };
        [
            bytes(rate(client.paged_in_bytes, before.paged_in_bytes)),
            bytes(rate(client.paged_out_bytes, before.paged_out_bytes)),
            count(rate(client.evictions, before.evictions)),
        ]
    }
}

impl From<&abi::InfoSegment> for Segment {
    fn from(info: &abi::InfoSegment) -> Self {
        Self {
            id: info.id,
            kind: names::segment_kind(info.kind),
            bytes: info.size,
            used_bytes: info.used,
            largest_free_bytes: info.largest_free,
        }
    }
}

/// Returns a bar that is filled in proportion.
fn bar(part: u64, whole: u64) -> String {
    const WIDTH: u64 = 24;
    let filled = match whole {
        0 => 0,
        // Something is a stroke at least.
        whole => (part.min(whole) * WIDTH).div_ceil(whole),
    };
    // CAST: at most `WIDTH`.
    let (filled, rest) = (filled as usize, (WIDTH - filled) as usize);
    format!("{}{}", "━".repeat(filled), "─".repeat(rest))
}

/// Reads an interval.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    seconds
        .filter(|seconds| (0.01..=3600.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "a number from 0.01 to 3600 is wanted, for example 1.0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(taken: Instant, paged_in_bytes: u64) -> Look {
        let client = Client {
            id: 5,
            program: "game".to_owned(),
            resident_bytes: [("vram1".to_owned(), 2 << 20)].into(),
            paged_in_bytes,
            ..Default::default()
        };
        Look {
            taken,
            segments: Vec::new(),
            clients: vec![client],
        }
    }

    #[test]
    fn moves_are_shown_per_second() {
        let now = Instant::now();
        let earlier = look(now, 1 << 20);
        let later = look(now + Duration::from_secs(2), 9 << 20);

        let text = later.text(Path::new("/dev/vidmm"), Some(&earlier));

        assert!(text.contains("in/s") && text.contains("vram1"), "{text}");
        let [paged_in, ..] = later.moved(&later.clients[0], Some(&earlier));
        assert_eq!(paged_in, "4 MiB");
        let [paged_in, ..] = later.moved(&later.clients[0], None);
        assert_eq!(paged_in, "9 MiB");
    }

    #[test]
    fn bar_is_never_longer_than_it_may_be() {
        assert_eq!(bar(0, 10), "─".repeat(24));
        assert_eq!(bar(20, 10), "━".repeat(24));
        assert!(bar(1, 1 << 30).starts_with('━'));
        assert_eq!(bar(5, 0), "─".repeat(24));
    }

    #[test]
    fn interval_is_a_number_in_reason() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0", "-1", "nan", "1e9"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
