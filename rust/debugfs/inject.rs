// SPDX-License-Identifier: GPL-2.0

//! `inject`: one command per write, for tests that want to see something happen.
//!
//! | command | effect |
//! |---|---|
//! | `pause NODE`, `resume NODE` | the node starts no further buffer; goes on |
//! | `hold worker`, `release worker` | the worker takes no further command; goes on |
//! | `reserve SEGMENT BYTES` | takes free memory out of use; 0 gives all back |
//! | `fragment SEGMENT` | takes every second free page out of use |
//! | `move ALLOCATION [SEGMENT [OFFSET]]` | moves an allocation |
//! | `evict ALLOCATION` | pushes it out as pressure would |
//! | `fail WHAT COUNT` | the next COUNT times WHAT fails |
//!
//! Numbers are decimal or begin with `0x`. A command that is malformed is `EINVAL` and changes
//! nothing; one whose feature is not there is `EOPNOTSUPP`.

use kernel::{
    debugfs::Reader,
    prelude::*,
    sync::Arc,
    uaccess::UserSliceReader, //
};

use crate::{
    object::{
        adapter::Adapter,
        inject::{
            Destination,
            EngineFailure,
            Failure,
            Flow,
            OperationName, //
        },
    },
    units::{
        NodeOrdinal,
        SegmentId, //
    },
};

/// Bytes of the longest command.
const LONGEST: usize = 128;

/// The file.
pub(super) struct Inject {
    adapter: Arc<Adapter>,
}

impl Inject {
    /// Returns the file of an adapter.
    pub(super) fn new(adapter: Arc<Adapter>) -> Self {
        Self { adapter }
    }
}

impl Reader for Inject {
    fn read_from_slice(&self, reader: &mut UserSliceReader) -> Result {
        let mut text = [0; LONGEST];
        let text = text.get_mut(..reader.len()).ok_or(EINVAL)?;
        reader.read_slice(text)?;
        let text = core::str::from_utf8(text).map_err(|_| EINVAL)?;
        Command::parse(text)?.run(&self.adapter)
    }
}

/// A command, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Flow(NodeOrdinal, Flow),
    Hold(bool),
    Reserve(SegmentId, u64),
    Fragment(SegmentId),
    Move(u64, Destination),
    Evict(u64),
    Fail(Failure, u32),
}

impl Command {
    fn parse(text: &str) -> Result<Self> {
        let mut words = text.split_ascii_whitespace();
        let verb = words.next().ok_or(EINVAL)?;
        let words: [Option<&str>; 4] = core::array::from_fn(|_| words.next());
        match (verb, words) {
            ("pause", [Some(node), None, ..]) => Ok(Self::Flow(parse_node(node)?, Flow::Paused)),
            ("resume", [Some(node), None, ..]) => Ok(Self::Flow(parse_node(node)?, Flow::Running)),
            ("hold", [Some("worker"), None, ..]) => Ok(Self::Hold(true)),
            ("release", [Some("worker"), None, ..]) => Ok(Self::Hold(false)),
            ("reserve", [Some(segment), Some(bytes), None, _]) => {
                Ok(Self::Reserve(parse_segment(segment)?, parse_number(bytes)?))
            }
            ("fragment", [Some(segment), None, ..]) => Ok(Self::Fragment(parse_segment(segment)?)),
            ("move", [Some(allocation), segment, offset, None]) => Ok(Self::Move(
                parse_number(allocation)?,
                parse_destination(segment, offset)?,
            )),
            ("evict", [Some(allocation), None, ..]) => Ok(Self::Evict(parse_number(allocation)?)),
            ("fail", [Some(what), Some(count), None, _]) => {
                let count = u32::try_from(parse_number(count)?).map_err(|_| EINVAL)?;
                Ok(Self::Fail(parse_failure(what)?, count))
            }
            ("power", [Some("d0" | "d3"), None, ..]) => Err(EOPNOTSUPP),
            _ => Err(EINVAL),
        }
    }

    fn run(self, adapter: &Adapter) -> Result {
        match self {
            Self::Flow(node, flow) => adapter.inject_flow(node, flow),
            Self::Hold(held) => {
                adapter.inject_hold(held);
                Ok(())
            }
            Self::Reserve(segment, bytes) => adapter.inject_reserve(segment, bytes),
            Self::Fragment(segment) => adapter.inject_fragment(segment),
            Self::Move(allocation, destination) => adapter.inject_move(allocation, destination),
            Self::Evict(allocation) => adapter.inject_evict(allocation),
            Self::Fail(failure, count) => {
                adapter.inject_failure(failure, count);
                Ok(())
            }
        }
    }
}

fn parse_number(word: &str) -> Result<u64> {
    let (digits, radix) = match word.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (word, 10),
    };
    // A sign would be taken otherwise.
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return Err(EINVAL);
    }
    u64::from_str_radix(digits, radix).map_err(|_| EINVAL)
}

fn parse_node(word: &str) -> Result<NodeOrdinal> {
    let ordinal = u32::try_from(parse_number(word)?).map_err(|_| EINVAL)?;
    Ok(NodeOrdinal(ordinal))
}

fn parse_segment(word: &str) -> Result<SegmentId> {
    let id = u32::try_from(parse_number(word)?).map_err(|_| EINVAL)?;
    SegmentId::new(id).ok_or(EINVAL)
}

fn parse_destination(segment: Option<&str>, offset: Option<&str>) -> Result<Destination> {
    match (segment, offset) {
        (None, _) => Ok(Destination::Elsewhere),
        (Some(segment), None) => Ok(Destination::Segment(parse_segment(segment)?)),
        (Some(segment), Some(offset)) => Ok(Destination::Place(
            parse_segment(segment)?,
            parse_number(offset)?,
        )),
    }
}

fn parse_failure(word: &str) -> Result<Failure> {
    let operation = OperationName::ALL
        .into_iter()
        .find(|name| name.as_str() == word);
    match (operation, word) {
        (Some(name), _) => Ok(Failure::Engine(EngineFailure::Operation(name))),
        (None, "completion") => Ok(Failure::Engine(EngineFailure::Completion)),
        (None, "buffer-full") => Ok(Failure::Engine(EngineFailure::BufferFull)),
        (None, "move") => Ok(Failure::Move),
        (None, "place") => Ok(Failure::Place),
        (None, "preempt") => Ok(Failure::Engine(EngineFailure::Preempt)),
        (None, "engine-reset") => Ok(Failure::Engine(EngineFailure::EngineReset)),
        (None, _) => Err(EINVAL),
    }
}

#[cfg(CONFIG_KUNIT)]
#[kernel::macros::kunit_tests(vidmm_inject)]
mod tests {
    use super::*;

    fn segment(id: u32) -> Result<SegmentId> {
        SegmentId::new(id).ok_or(EINVAL)
    }

    #[test]
    fn commands_are_understood() -> Result {
        let node = NodeOrdinal(2);
        let commands = [
            ("pause 2", Command::Flow(node, Flow::Paused)),
            ("resume 0x2\n", Command::Flow(node, Flow::Running)),
            ("hold worker\n", Command::Hold(true)),
            ("release worker", Command::Hold(false)),
            ("reserve 1 0x1000", Command::Reserve(segment(1)?, 4096)),
            ("fragment 3", Command::Fragment(segment(3)?)),
            ("move 7", Command::Move(7, Destination::Elsewhere)),
            (
                "move 7 1",
                Command::Move(7, Destination::Segment(segment(1)?)),
            ),
            (
                "move 7 1 8192",
                Command::Move(7, Destination::Place(segment(1)?, 8192)),
            ),
            ("evict 7", Command::Evict(7)),
            (
                "fail Transfer 2",
                Command::Fail(
                    Failure::Engine(EngineFailure::Operation(OperationName::Transfer)),
                    2,
                ),
            ),
            (
                "fail completion 1",
                Command::Fail(Failure::Engine(EngineFailure::Completion), 1),
            ),
            ("fail move 3", Command::Fail(Failure::Move, 3)),
            ("fail place 0", Command::Fail(Failure::Place, 0)),
        ];
        for (text, command) in commands {
            assert_eq!(Command::parse(text), Ok(command));
        }
        Ok(())
    }

    #[test]
    fn malformed_commands_are_invalid() {
        let commands = [
            "",
            " ",
            "pause",
            "pause x",
            "pause -1",
            "pause +1",
            "pause 1 2",
            "pause 0x",
            "hold",
            "hold 1",
            "reserve 1",
            "reserve 32 1",
            "fragment",
            "move",
            "move 1 2 3 4",
            "evict",
            "evict 1 2",
            "fail",
            "fail nonsense 1",
            "fail Fill",
            "fail Fill 4294967296",
            "fail Fill 1 1",
            "power",
            "power d1",
            "PAUSE 1",
            "pause 18446744073709551616",
        ];
        for text in commands {
            assert_eq!(Command::parse(text), Err(EINVAL));
        }
    }
}
