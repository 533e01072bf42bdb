// SPDX-License-Identifier: GPL-2.0

//! From trace events to stories of submissions.

use std::collections::BTreeMap;

use serde::Serialize;

/// What became of a submission.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Story {
    /// The id that the call returned.
    pub(crate) submission: u64,
    pub(crate) context: u64,
    pub(crate) portions: Vec<Portion>,
}

/// A portion of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Portion {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// When the work on it began.
    pub(crate) ready_ns: u64,
    /// When its node began and ended it.
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    /// Bytes that were brought in and pushed out meanwhile.
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// The allocation for which there was no room behind it.
    pub(crate) cut_by: Option<u64>,
    /// Slots and what they held when the portion ended.
    pub(crate) kept: BTreeMap<u64, u64>,
    node: u64,
    fence: u64,
}

impl Story {
    /// When the work on it began.
    pub(crate) fn first_ns(&self) -> u64 {
        self.portions.first().map_or(0, |portion| portion.ready_ns)
    }

    /// How long it took.
    pub(crate) fn took_ns(&self) -> u64 {
        let last = self.portions.last().map_or(0, |portion| portion.end_ns);
        last.saturating_sub(self.first_ns())
    }
}

impl Portion {
    /// How long it waited for its memory and its node.
    pub(crate) fn wait_ns(&self) -> u64 {
        self.begin_ns.saturating_sub(self.ready_ns)
    }

    /// How long it ran.
    pub(crate) fn run_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

/// One line of the trace.
struct Event<'a> {
    time_ns: u64,
    name: &'a str,
    text: &'a str,
}

impl<'a> Event<'a> {
    /// Takes a line apart: `comm-123 [001] ..... 12.345678: name: key=value …`.
    fn parse(line: &'a str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let (_, rest) = line.split_once(" [")?;
        let (head, rest) = rest.split_once(": ")?;
        let (seconds, fraction) = head.rsplit_once(' ')?.1.split_once('.')?;
        let (name, text) = rest.split_once(": ")?;
        let micros: u64 = fraction.parse().ok()?;
        let seconds: u64 = seconds.parse().ok()?;
        Some(Self {
            time_ns: seconds * 1_000_000_000 + micros * 1000,
            name,
            text,
        })
    }

    fn word(&self, key: &str) -> &'a str {
        let mut words = self.text.split(' ').filter_map(|word| word.split_once('='));
        words
            .find(|(name, _)| *name == key)
            .map_or("", |(_, value)| value)
    }

    fn number(&self, key: &str) -> u64 {
        self.word(key).parse().unwrap_or(0)
    }
}

/// What is known of a submission before its next portion goes to its node.
#[derive(Default)]
struct Draft {
    story: Story,
    ready_ns: Option<u64>,
    cut_by: Option<u64>,
    slots: BTreeMap<u64, u64>,
    paged: Paged,
}

/// Bytes that went in and out.
#[derive(Clone, Copy, Default)]
struct Paged {
    bytes_in: u64,
    bytes_out: u64,
}

impl Paged {
    /// Counts a paging operation.
    fn count(&mut self, event: &Event<'_>) {
        let bytes = event.number("bytes");
        match (
            event.word("op"),
            event.word("src_seg"),
            event.word("dst_seg"),
        ) {
            ("Transfer", "0", _) => self.bytes_in += bytes,
            ("Transfer", _, "0") => self.bytes_out += bytes,
            _ => {}
        }
    }
}

/// Tells the stories of all submissions in a trace that have run to an end.
pub(crate) fn tell(trace: &str) -> Vec<Story> {
    let mut drafts: BTreeMap<u64, Draft> = BTreeMap::new();
    // What was paged since a submission was dealt with last: it is for the next one that is.
    let mut paged = Paged::default();
    for event in trace.lines().filter_map(Event::parse) {
        match event.name {
            "paging_op" => paged.count(&event),
            "dma_prepare" | "dma_portion" => {
                let draft = drafts.entry(event.number("submit")).or_default();
                let more = std::mem::take(&mut paged);
                draft.paged.bytes_in += more.bytes_in;
                draft.paged.bytes_out += more.bytes_out;
                draft.ready_ns.get_or_insert(event.time_ns);
                if event.name == "dma_prepare" {
                    prepare(draft, &event);
                } else {
                    portion(draft, &event);
                }
            }
            "node_begin" | "node_end" if event.word("kind") == "dma" => {
                run(&mut drafts, &event);
            }
            _ => {}
        }
    }
    let stories = drafts.into_values().map(|draft| draft.story);
    stories
        .filter(|story| story.portions.last().is_some_and(|last| last.end_ns > 0))
        .collect()
}

/// An entry was dealt with.
fn prepare(draft: &mut Draft, event: &Event<'_>) {
    let (slot, allocation) = (event.number("slot"), event.number("alloc"));
    match event.word("result") {
        "no-memory" => draft.cut_by = Some(allocation),
        "unbound" => {
            draft.slots.remove(&slot);
        }
        _ => {
            draft.slots.insert(slot, allocation);
        }
    }
}

/// A portion goes to its node.
fn portion(draft: &mut Draft, event: &Event<'_>) {
    draft.story.submission = event.number("submission");
    draft.story.context = event.number("ctx");
    let last_end = draft.story.portions.last().map(|portion| portion.end_ns);
    // Behind a cut the work begins when the portion before has ended.
    let ready_ns = last_end.or(draft.ready_ns).unwrap_or(event.time_ns);
    let paged = std::mem::take(&mut draft.paged);
    draft.story.portions.push(Portion {
        start: event.number("start"),
        end: event.number("end"),
        ready_ns,
        bytes_in: paged.bytes_in,
        bytes_out: paged.bytes_out,
        cut_by: draft.cut_by.take(),
        kept: draft.slots.clone(),
        node: event.number("node"),
        fence: event.number("fence"),
        ..Portion::default()
    });
}

/// A node begins or ends a portion.
fn run(drafts: &mut BTreeMap<u64, Draft>, event: &Event<'_>) {
    let (node, fence) = (event.number("node"), event.number("fence"));
    let portions = drafts
        .values_mut()
        .filter_map(|draft| draft.story.portions.last_mut());
    for portion in portions.filter(|portion| (portion.node, portion.fence) == (node, fence)) {
        match event.name {
            "node_begin" => portion.begin_ns = event.time_ns,
            _ => portion.end_ns = event.time_ns,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two portions with paging in front of each.
    pub(crate) const TEXT: &str = "\
# tracer: nop
  kworker/1-12 [001] ..... 1.000000: dma_prepare: submit=9 entry=0 slot=7 alloc=13 result=resident
  kworker/1-12 [001] ..... 1.000100: paging_op: op=Transfer src_seg=0 dst_seg=1 bytes=4096
  kworker/1-12 [001] ..... 1.000200: dma_prepare: submit=9 entry=1 slot=0 alloc=11 result=paged-in
  kworker/1-12 [001] ..... 1.000300: dma_prepare: submit=9 entry=2 slot=0 alloc=12 result=no-memory
  kworker/1-12 [001] ..... 1.000400: dma_portion: submit=9 ctx=70 node=2 start=0 end=512 fence=5 submission=3
  kworker/2-13 [000] ..... 1.001000: node_begin: node=2 ctx=70 kind=dma fence=5
  kworker/2-13 [000] ..... 1.002000: node_end: node=2 ctx=70 kind=dma fence=5
  kworker/1-12 [001] ..... 1.002100: paging_op: op=Transfer src_seg=1 dst_seg=0 bytes=8192
  kworker/1-12 [001] ..... 1.002200: paging_op: op=Transfer src_seg=0 dst_seg=1 bytes=8192
  kworker/1-12 [001] ..... 1.002300: dma_prepare: submit=9 entry=2 slot=0 alloc=12 result=paged-in
  kworker/1-12 [001] ..... 1.002400: dma_portion: submit=9 ctx=70 node=2 start=512 end=1024 fence=6 submission=3
  kworker/2-13 [000] ..... 1.003000: node_begin: node=2 ctx=70 kind=dma fence=6
  kworker/2-13 [000] ..... 1.004000: node_end: node=2 ctx=70 kind=dma fence=6
";

    #[test]
    fn portions_are_told_with_their_paging() {
        let stories = tell(TEXT);
        assert_eq!(stories.len(), 1);
        let story = &stories[0];
        assert_eq!(
            (story.submission, story.context, story.took_ns()),
            (3, 70, 4_000_000)
        );
        let [first, second] = &story.portions[..] else {
            panic!("two portions");
        };
        assert_eq!((first.start, first.end, first.cut_by), (0, 512, Some(12)));
        assert_eq!((first.bytes_in, first.bytes_out), (4096, 0));
        assert_eq!((first.wait_ns(), first.run_ns()), (1_000_000, 1_000_000));
        assert_eq!((second.bytes_in, second.bytes_out), (8192, 8192));
        assert_eq!(second.cut_by, None);
        assert_eq!(second.wait_ns(), 1_000_000);
        assert_eq!(second.kept, BTreeMap::from([(0, 12), (7, 13)]));
    }

    #[test]
    fn submission_that_has_not_ended_has_no_story() {
        let cut = TEXT.lines().count() - 1;
        let text: Vec<&str> = TEXT.lines().take(cut).collect();
        assert_eq!(tell(&text.join("\n")), []);
        assert_eq!(tell("no trace"), []);
    }
}
