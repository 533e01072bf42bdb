// SPDX-License-Identifier: GPL-2.0

//! The trace events of the module, recorded while a test runs.
//!
//! Events are kept in the order of one clock for all CPUs. The parser takes the text apart strictly:
//! words of `key=value` with one blank between two of them, since that form is part of what is
//! tested.

use std::{
    fs,
    path::Path, //
};

use crate::debugfs::parse_number;

const DIRECTORY: &str = "/sys/kernel/tracing";

/// Fields of every event, in the order in which they are printed.
pub const EVENTS: [(&str, &[&str]); 22] = [
    ("backend_call", &["name", "process", "alloc"]),
    ("alloc", &["alloc", "action", "size", "flags", "cookie"]),
    (
        "va_range",
        &["space", "process", "purpose", "start", "size", "action"],
    ),
    (
        "paging_op",
        &[
            "seq",
            "buf",
            "op",
            "space",
            "process",
            "alloc",
            "src_seg",
            "src_off",
            "dst_seg",
            "dst_off",
            "va",
            "bytes",
            "mode",
            "cause",
            "level",
            "count",
            "protection",
            "driver",
            "flags",
        ],
    ),
    (
        "paging_submit",
        &["buf", "ctx", "node", "first_seq", "last_seq", "fence"],
    ),
    (
        "resident_step",
        &["where", "step", "alloc", "queue", "fence"],
    ),
    (
        "residency",
        &[
            "alloc", "instance", "from_seg", "from_off", "to_seg", "to_off", "cause",
        ],
    ),
    (
        "dma_prepare",
        &["submit", "entry", "slot", "alloc", "result"],
    ),
    (
        "dma_portion",
        &[
            "submit",
            "ctx",
            "node",
            "start",
            "end",
            "first_entry",
            "entries",
            "fence",
            "submission",
        ],
    ),
    ("dma_patch", &["submit", "offset", "seg", "seg_off"]),
    ("node_begin", &["node", "ctx", "kind", "fence"]),
    ("node_end", &["node", "ctx", "kind", "fence"]),
    ("lock", &["alloc", "instance", "decision", "wait_ns"]),
    ("rename", &["alloc", "instance", "action", "length"]),
    ("fence", &["fence", "value", "origin"]),
    ("fence_wait", &["fence", "value", "ctx", "action"]),
    ("companion", &["ctx", "node", "process", "action"]),
    ("scanout", &["alloc", "seg", "off", "action"]),
    ("fault", &["ctx", "va", "reason"]),
    ("device_state", &["device", "state"]),
    ("budget", &["process", "group", "budget", "usage"]),
    ("trim", &["process", "flags", "bytes"]),
];

/// Prepares tracing for the whole run.
pub fn set_up() {
    write("tracing_on", "0");
    write("trace_clock", "mono");
    write("buffer_size_kb", "8192");
    // Names of threads would need probes in the scheduler.
    write("options/record-cmd", "0");
}

fn write(file: &str, text: &str) {
    let path = format!("{DIRECTORY}/{file}");
    fs::write(&path, text).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// Lets the events of the module be on from its load on, which comes next, and starts to record.
pub fn record_load() -> Recording {
    write("tracing_on", "0");
    write("trace", "");
    write("set_event", "*:mod:vidmm");
    write("tracing_on", "1");
    Recording(())
}

/// Switches the events of the module on, once per load: switching patches code, which is slow and,
/// under emulation, a risk.
fn enable() {
    let on = fs::read_to_string(format!("{DIRECTORY}/events/vidmm/enable"));
    if on.map_or(true, |text| text.trim() != "1") {
        write("events/vidmm/enable", "1");
    }
}

/// One event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Thread that was running.
    pub thread: i32,
    /// Name of the event.
    pub name: String,
    /// Its fields as text.
    pub text: String,
    fields: Vec<(String, String)>,
}

impl Event {
    /// Takes one line of the trace apart; comments and other events are none.
    fn parse(line: &str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        // `   comm-123     [001] ...1.    12.345678: name: key=value`, where comm may have blanks.
        let (head, rest) = line.split_once(" [")?;
        let thread = head.rsplit_once('-')?.1.trim().parse().ok()?;
        let (_, rest) = rest.split_once(": ")?;
        let (name, text) = rest.split_once(": ")?;
        let field = |word: &str| {
            let (key, value) = word.split_once('=')?;
            Some((key.to_owned(), value.to_owned()))
        };
        let fields = text.split(' ').map(field).collect::<Option<Vec<_>>>()?;
        Some(Self {
            thread,
            name: name.to_owned(),
            text: text.to_owned(),
            fields,
        })
    }

    /// The word of a field, which must be there.
    pub fn word(&self, key: &str) -> &str {
        let found = self.fields.iter().find(|(name, _)| name == key);
        found.map_or_else(
            || panic!("no {key} in {}: {}", self.name, self.text),
            |pair| &pair.1,
        )
    }

    /// The number of a field; -1 is all ones.
    pub fn number(&self, key: &str) -> u64 {
        let word = self.word(key);
        parse_number(word).unwrap_or_else(|| panic!("{key} in {}: {}", self.name, self.text))
    }

    /// Names of the fields in the order of the text.
    pub fn keys(&self) -> Vec<&str> {
        self.fields.iter().map(|(key, _)| key.as_str()).collect()
    }

    /// Whether this is an event `name` with these fields, written as `key=value` words.
    pub fn is(&self, name: &str, words: &[String]) -> bool {
        self.name == name
            && words.iter().all(|word| {
                self.fields.iter().any(|(key, value)| {
                    word.split_once('=') == Some((key.as_str(), value.as_str()))
                })
            })
    }
}

/// The segment of places that are addresses.
const VIRTUAL: u64 = 255;

/// Whether a paging operation has this name, or is the virtual form of what has it.
fn is_named(operation: &Event, op: &str) -> bool {
    let name = operation.word("op");
    name == op || (matches!(op, "Fill" | "Transfer") && name.strip_suffix("Virtual") == Some(op))
}

/// A recording that runs.
pub struct Recording(());

impl Recording {
    /// Starts to record with an empty buffer.
    pub fn start() -> Self {
        assert!(
            Path::new(DIRECTORY).join("events/vidmm").exists(),
            "no trace events of vidmm"
        );
        write("tracing_on", "0");
        write("trace", "");
        enable();
        write("tracing_on", "1");
        Self(())
    }

    /// The events up to now.
    pub fn so_far(&self) -> Events {
        let path = format!("{DIRECTORY}/trace");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(!text.contains("LOST"), "trace events were lost");
        Events(text.lines().filter_map(Event::parse).collect())
    }

    /// Ends the recording.
    pub fn stop(self) -> Events {
        write("tracing_on", "0");
        self.so_far()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = fs::write(format!("{DIRECTORY}/tracing_on"), "0");
    }
}

/// Recorded events, in order.
#[derive(Clone, Debug)]
pub struct Events(pub Vec<Event>);

impl Events {
    /// Events of one name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Event> {
        self.0.iter().filter(move |event| event.name == name)
    }

    /// Paging operations with one name that concern one allocation. `Fill` and `Transfer` stand for
    /// their virtual forms too: which one is used is a matter of the adapter.
    pub fn operations<'a>(
        &'a self,
        op: &'a str,
        object_id: u64,
    ) -> impl Iterator<Item = &'a Event> {
        self.named("paging_op")
            .filter(move |event| is_named(event, op) && event.number("alloc") == object_id)
            .filter(|event| event.word("cause") != "scrub")
    }

    /// Sum of the bytes of paging operations.
    pub fn bytes(&self, op: &str, object_id: u64) -> u64 {
        self.operations(op, object_id)
            .map(|event| event.number("bytes"))
            .sum()
    }

    /// Where a paging operation reads: segment and offset, also if it goes through addresses.
    pub fn source(&self, operation: &Event) -> (u64, u64) {
        self.place(operation, "src_seg", "src_off")
    }

    /// Where a paging operation writes: segment and offset, also if it goes through addresses.
    pub fn destination(&self, operation: &Event) -> (u64, u64) {
        self.place(operation, "dst_seg", "dst_off")
    }

    /// The place that an operation names, or that the last update before it let its address name.
    fn place(&self, operation: &Event, segment: &str, offset: &str) -> (u64, u64) {
        let (segment, offset) = (operation.number(segment), operation.number(offset));
        if segment != VIRTUAL {
            return (segment, offset);
        }
        let update = self
            .named("paging_op")
            .take_while(|event| event.number("seq") < operation.number("seq"))
            .filter(|event| event.word("op") == "UpdatePageTable" && event.number("level") == 0)
            .filter(|event| event.number("space") == operation.number("space"))
            .filter(|event| offset.wrapping_sub(event.number("va")) < event.number("bytes"))
            .last();
        let update = update.unwrap_or_else(|| panic!("no entry for: {}", operation.text));
        let inside = offset - update.number("va");
        (update.number("dst_seg"), update.number("dst_off") + inside)
    }

    /// Place of the first event, from index `from` on, with these fields.
    pub fn find(&self, from: usize, name: &str, words: &[String]) -> Option<usize> {
        let rest = self.0.get(from..)?;
        rest.iter()
            .position(|event| event.is(name, words))
            .map(|index| from + index)
    }

    /// Asserts that events like these come in this order, whatever stands between them, and
    /// returns the place of each.
    ///
    /// A step is the name of an event followed by fields: `paging_op op=Fill alloc=3`.
    pub fn assert_order(&self, steps: &[String]) -> Vec<usize> {
        let mut from = 0;
        let mut places = Vec::new();
        for step in steps {
            let mut words = step.split(' ').map(str::to_owned);
            let name = words.next().unwrap_or_default();
            let words: Vec<String> = words.collect();
            let Some(place) = self.find(from, &name, &words) else {
                panic!(
                    "no event \"{step}\" after number {from} of:\n{}",
                    self.listing()
                );
            };
            places.push(place);
            from = place + 1;
        }
        places
    }

    /// Place of the `node_end` of the paging buffer that held the operation `sequence`.
    pub fn end_of_buffer(&self, sequence: u64) -> usize {
        self.edge_of_buffer(sequence, "node_end")
    }

    /// Place of the `node_begin` of the paging buffer that held the operation `sequence`.
    pub fn begin_of_buffer(&self, sequence: u64) -> usize {
        self.edge_of_buffer(sequence, "node_begin")
    }

    fn edge_of_buffer(&self, sequence: u64, edge: &str) -> usize {
        let holds = |event: &&Event| {
            (event.number("first_seq")..=event.number("last_seq")).contains(&sequence)
        };
        let submit = self.named("paging_submit").find(holds);
        let submit = submit.unwrap_or_else(|| panic!("operation {sequence} is in no buffer"));
        let words = [
            format!("node={}", submit.word("node")),
            format!("fence={}", submit.word("fence")),
            "kind=paging".to_owned(),
        ];
        let found = self.find(0, edge, &words);
        found.unwrap_or_else(|| panic!("no {edge} of the buffer of operation {sequence}"))
    }

    /// Asserts that no event has this name and these fields.
    pub fn assert_none(&self, name: &str, words: &[String]) {
        if let Some(place) = self.find(0, name, words) {
            panic!("unexpected event {name}: {}", self.0[place].text);
        }
    }

    /// The events as text, for messages.
    pub fn listing(&self) -> String {
        let lines = self.0.iter().enumerate();
        let lines = lines.map(|(number, event)| format!("{number} {}: {}", event.name, event.text));
        lines.take(200).collect::<Vec<_>>().join("\n")
    }
}
