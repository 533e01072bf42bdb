// SPDX-License-Identifier: GPL-2.0

//! debugfs: what the module shows of its objects, and the file through which faults are injected.
//!
//! This is the only place that knows how these files are written. Each line is an object of
//! `key=value` words; `stats` has `name: value` lines.

mod tables;

use std::{
    collections::BTreeMap,
    fs,
    fs::OpenOptions,
    io::{
        self,
        Write, //
    },
    path::Path, //
};

pub use self::tables::{
    paging_space,
    table_entries,
    tables,
    Table, //
};

const DIRECTORY: &str = "/sys/kernel/debug/vidmm/0";

/// One line of a file.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The line as it was read.
    pub text: String,
    /// Where keys and values begin and end.
    words: Vec<[usize; 3]>,
}

impl Record {
    fn parse(line: &str) -> Self {
        let mut words = Vec::with_capacity(32);
        let mut start = 0;
        for word in line.split(' ') {
            if let Some(equals) = word.find('=') {
                words.push([start, start + equals, start + word.len()]);
            }
            start += word.len() + 1;
        }
        Self {
            text: line.to_owned(),
            words,
        }
    }

    /// The text of a value.
    pub fn word(&self, key: &str) -> Option<&str> {
        let mut words = self.words.iter();
        let [_, equals, end] =
            words.find(|[start, equals, _]| self.text[*start..*equals] == *key)?;
        Some(&self.text[equals + 1..*end])
    }

    /// A number, which must be there.
    pub fn number(&self, key: &str) -> u64 {
        self.try_number(key)
            .unwrap_or_else(|| panic!("no number {key} in: {}", self.text))
    }

    /// A number, if it is there; all ones is written as -1 or -.
    pub fn try_number(&self, key: &str) -> Option<u64> {
        parse_number(self.word(key)?)
    }

    /// A list of runs.
    fn pieces(&self, key: &str) -> Vec<Piece> {
        let text = self.word(key).unwrap_or("-");
        parse_pieces(text).unwrap_or_else(|| panic!("no runs in {key} of: {}", self.text))
    }
}

/// A half-open range of bytes or of page frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First element.
    pub start: u64,
    /// How many.
    pub length: u64,
}

impl Range {
    /// End of the range.
    pub fn end(&self) -> u64 {
        self.start + self.length
    }
}

/// Reads a number as the module writes it.
pub fn parse_number(text: &str) -> Option<u64> {
    if matches!(text, "-1" | "-") {
        return Some(u64::MAX);
    }
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A run of bytes with the page frames behind it, where they are shown.
struct Piece {
    bytes: Range,
    frames: Option<Range>,
}

/// Reads `offset+bytes` and `offset+bytes@frame` words with commas between them; `-` is none.
fn parse_pieces(text: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    for part in text.split(',').filter(|part| !matches!(*part, "" | "-")) {
        let (place, frame) = match part.split_once('@') {
            Some((place, frame)) => (place, Some(parse_number(frame)?)),
            None => (part, None),
        };
        let (start, length) = place.split_once('+')?;
        let (start, length) = (parse_number(start)?, parse_number(length)?);
        let frames = frame.map(|start| Range {
            start,
            length: length / 4096,
        });
        let bytes = Range { start, length };
        pieces.push(Piece { bytes, frames });
    }
    Some(pieces)
}

/// Joins ranges that follow each other.
fn join(ranges: impl Iterator<Item = Range>) -> Vec<Range> {
    let mut joined: Vec<Range> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end() == range.start => last.length += range.length,
            _ => joined.push(range),
        }
    }
    joined
}

/// Reads a file of one object per line.
pub fn read(file: &str) -> Vec<Record> {
    let path = format!("{DIRECTORY}/{file}");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(Record::parse)
        .collect()
}

/// Occupancy of one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Segment id.
    pub id: u64,
    /// All bytes.
    pub total: u64,
    /// Bytes that are free.
    pub free: u64,
    /// Longest free run in bytes.
    pub largest: u64,
    /// Bytes whose page frames are contiguous.
    pub contiguous: u64,
    /// Bytes of ranges in force; aperture only.
    pub mapped: u64,
    /// Bytes that page tables have.
    pub tables: u64,
    /// Bytes that a CPU host aperture shows, if the segment has one.
    pub window: Option<u64>,
}

/// Reads the occupancy of all segments but system memory.
pub fn segments() -> Vec<Segment> {
    let parse = |record: &Record| Segment {
        id: record.number("segment"),
        total: record.number("total"),
        free: record.number("free"),
        largest: record.number("largest_free"),
        contiguous: record.number("contiguous"),
        mapped: record.number("mapped"),
        tables: record.number("tables"),
        window: record
            .try_number("window")
            .filter(|bytes| *bytes != u64::MAX),
    };
    let records = read("segments");
    let records = records
        .iter()
        .filter(|record| record.try_number("segment") != Some(0));
    records.map(parse).collect()
}

/// Reads how many bytes of system memory are pinned for residency.
pub fn system_bytes() -> u64 {
    let records = read("segments");
    let mut system = records
        .iter()
        .filter(|record| record.try_number("segment") == Some(0));
    system.next().map_or(0, |record| record.number("mapped"))
}

/// Reads the occupancy of one segment.
pub fn segment(id: u32) -> Segment {
    let found = segments()
        .into_iter()
        .find(|segment| segment.id == u64::from(id));
    found.unwrap_or_else(|| panic!("no segment {id} in segments"))
}

impl Segment {
    /// Bytes that allocations can have: all but those of page tables.
    pub fn room(&self) -> u64 {
        self.total - self.tables
    }
}

/// Where an instance of an allocation is.
#[derive(Clone, Debug)]
pub struct Placement {
    /// `object_id` of the allocation.
    pub allocation: u64,
    /// Segment id, `u64::MAX` when not resident.
    pub segment: u64,
    /// Where its first byte is: offset in the segment, or guest physical address.
    pub offset: u64,
    /// Runs of offsets in the memory segment.
    pub runs: Vec<Range>,
    /// Page frames behind the runs; `length` counts frames.
    pub frames: Vec<Range>,
    /// Page frames of the backing store, unless it is in a memory segment.
    pub backing: Vec<Range>,
    /// Aperture range, if there is one.
    pub aperture: Option<Range>,
    /// How the CPU reaches it.
    pub path: String,
    /// Pages of a CPU host aperture that show something of it.
    pub window: Vec<Range>,
    /// Pins of the backing pages.
    pub pins: u64,
    /// Whether only queued work or a mapping keeps it.
    pub orphan: bool,
    /// The line itself.
    pub record: Record,
}

impl Placement {
    fn parse(record: &Record) -> Self {
        let segment = record.number("segment");
        let in_memory = record.word("location") == Some("memory");
        let pieces = record.pieces("runs");
        let aperture = join(record.pieces("aperture").iter().map(|piece| piece.bytes));
        assert!(
            aperture.len() <= 1,
            "several aperture ranges: {}",
            record.text
        );
        let runs = join(pieces.iter().map(|piece| piece.bytes));
        let frames = join(pieces.iter().filter_map(|piece| piece.frames));
        let first = if in_memory || segment == 0 {
            runs.first()
        } else {
            aperture.first()
        };
        Self {
            allocation: record.number("allocation"),
            segment,
            offset: first.map_or(u64::MAX, |range| range.start),
            runs: if in_memory { runs } else { Vec::new() },
            frames: if in_memory {
                frames.clone()
            } else {
                Vec::new()
            },
            backing: if in_memory { Vec::new() } else { frames },
            aperture: aperture.first().copied(),
            path: record.word("cpu").unwrap_or("-").to_owned(),
            window: record
                .pieces("window")
                .iter()
                .map(|piece| piece.bytes)
                .collect(),
            pins: record.number("pins"),
            orphan: record.number("handle") == 0,
            record: record.clone(),
        }
    }

    /// Number of page frames of the backing store.
    pub fn backing_pages(&self) -> u64 {
        self.backing.iter().map(|range| range.length).sum()
    }
}

/// Reads where all allocations are.
pub fn placements() -> Vec<Placement> {
    read("allocations").iter().map(Placement::parse).collect()
}

/// Reads where one allocation is, if it exists.
pub fn find_placement(object_id: u64) -> Option<Placement> {
    placements()
        .into_iter()
        .find(|placement| placement.allocation == object_id)
}

/// Reads where one allocation is.
pub fn placement(object_id: u64) -> Placement {
    find_placement(object_id).unwrap_or_else(|| panic!("no allocation {object_id} in allocations"))
}

/// Reads all counters.
pub fn stats() -> BTreeMap<String, u64> {
    let path = format!("{DIRECTORY}/stats");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let parse = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_owned(), parse_number(value.trim())?))
    };
    let values = text.lines().map(|line| parse(line).expect("a counter"));
    values.collect()
}

/// Reads one counter.
pub fn stat(name: &str) -> u64 {
    let found = stats().get(name).copied();
    found.unwrap_or_else(|| panic!("no {name} in stats"))
}

/// Writes one command to `inject` and returns the errno of a failure.
pub fn try_inject(command: &str) -> Result<(), i32> {
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .open(format!("{DIRECTORY}/inject"))?;
        // One command per write.
        let written = file.write(command.as_bytes())?;
        assert_eq!(written, command.len(), "a short write to inject");
        Ok(())
    };
    write().map_err(|error| error.raw_os_error().unwrap_or(0))
}

/// Writes one command to `inject`.
pub fn inject(command: &str) {
    try_inject(command).unwrap_or_else(|errno| panic!("inject {command}: errno {errno}"));
}

/// Takes back everything that a test may have injected.
pub fn reset_injections() {
    let _ = try_inject("release worker");
    for node in 0..4 {
        let _ = try_inject(&format!("resume {node}"));
    }
    for segment in 0..4 {
        let _ = try_inject(&format!("reserve {segment} 0"));
    }
    for what in [
        "Fill",
        "Transfer",
        "Discard",
        "FillVirtual",
        "TransferVirtual",
        "UpdatePageTable",
        "FlushTLB",
        "MapAperture",
        "UnmapAperture",
        "place",
        "move",
        "completion",
        "preempt",
        "engine-reset",
        "buffer-full",
    ] {
        let _ = try_inject(&format!("fail {what} 0"));
    }
}

/// Whether the module shows its objects.
pub fn exists() -> bool {
    Path::new(DIRECTORY).exists()
}

/// Numbers of `stats` that say what is alive, and go down again.
const ALIVE: [&str; 7] = [
    "clients",
    "devices",
    "allocations",
    "contexts",
    "queues",
    "fences",
    "pages_pinned",
];

/// Files that list what clients have.
const LISTS: [&str; 5] = ["processes", "allocations", "residency", "queues", "fences"];

/// What the module holds right after loading.
pub struct Baseline {
    segments: Vec<Segment>,
    alive: Vec<u64>,
    lists: Vec<Vec<String>>,
}

impl Baseline {
    /// Reads it, where debugfs is there.
    pub fn take() -> Option<Self> {
        exists().then(Self::read)
    }

    fn read() -> Self {
        let stats = stats();
        let lines = |file| -> Vec<String> {
            let records = read(file).into_iter();
            records.map(|record| record.text).collect()
        };
        Self {
            segments: segments(),
            alive: ALIVE.map(|name| stats[name]).to_vec(),
            lists: LISTS.map(lines).to_vec(),
        }
    }

    /// Whether everything is back; says in `rest` what is not.
    pub fn holds(&self, rest: &mut String) -> bool {
        let now = Self::read();
        for (file, (found, first)) in LISTS.iter().zip(now.lists.iter().zip(&self.lists)) {
            if found != first {
                *rest = format!("in {file}: {found:?}, at first {first:?}");
                return false;
            }
        }
        for (name, (found, first)) in ALIVE.iter().zip(now.alive.iter().zip(&self.alive)) {
            if found != first {
                *rest = format!("{name}: {found}, at first {first}");
                return false;
            }
        }
        for (found, first) in now.segments.iter().zip(&self.segments) {
            if found != first {
                *rest = format!("segment {found:?}, at first {first:?}");
                return false;
            }
        }
        true
    }
}

/// Bytes that all paging operations of one kind have had so far.
pub fn operation_bytes(op: &str) -> u64 {
    stat(&format!("operation_bytes_{op}"))
}

/// How many wait for a value of any fence.
pub fn fence_waiters() -> u64 {
    let records = read("fences");
    records.iter().map(|fence| fence.number("waiters")).sum()
}

/// Number of the context in which paging buffers run.
pub fn system_context() -> u64 {
    let records = read("processes");
    let paging = records
        .iter()
        .filter(|record| record.word("kind") == Some("paging"));
    let found = paging
        .filter_map(|record| record.try_number("context"))
        .next();
    found.expect("the system context in processes")
}

/// What `processes` says of a client.
#[derive(Clone, Debug)]
pub struct ClientSums {
    /// Its number.
    pub number: u64,
    /// Bytes of all its allocations.
    pub total: u64,
    /// Bytes of those that have backing pages.
    pub backing: u64,
    /// Resident bytes by segment.
    pub resident: BTreeMap<u64, u64>,
}

/// Reads the sums of all clients.
pub fn clients() -> Vec<ClientSums> {
    let records = read("processes").into_iter();
    let clients = records.filter(|record| {
        record.word("process").is_some()
            && record.word("context").is_none()
            && record.word("kind") == Some("client")
    });
    let pair = |word: &str| {
        let (segment, bytes) = word.split_once('+')?;
        Some((parse_number(segment)?, parse_number(bytes)?))
    };
    let parse = |record: Record| ClientSums {
        number: record.number("process"),
        total: record.number("total"),
        backing: record.number("backing"),
        resident: record
            .word("resident")
            .unwrap_or("")
            .split(',')
            .map(|word| pair(word).expect("bytes in a segment"))
            .collect(),
    };
    clients.map(parse).collect()
}

/// Number of the only context of the device with this number.
pub fn context_of_device(device: u64) -> u64 {
    let records = read("processes");
    let mut found = records.iter().filter_map(|record| {
        let context = record.try_number("context")?;
        (record.number("device") == device).then_some(context)
    });
    found.next().expect("a context of the device in processes")
}

/// The entry of an allocation on the residency list of its device, if it is there.
pub fn required(object_id: u64) -> Option<Record> {
    let mut records = read("residency").into_iter();
    records.find(|record| record.try_number("allocation") == Some(object_id))
}

/// Whether an allocation is on the residency list of a device.
pub fn is_required(object_id: u64) -> bool {
    required(object_id).is_some()
}

/// Of each paging queue the value of its last command and the value reached.
pub fn queue_values() -> Vec<(u64, u64)> {
    let records = read("queues");
    let queues = records
        .iter()
        .filter(|record| record.word("queue").is_some());
    queues
        .map(|record| (record.number("last"), record.number("reached")))
        .collect()
}
