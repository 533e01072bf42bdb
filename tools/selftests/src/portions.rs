// SPDX-License-Identifier: GPL-2.0

//! What tests of cut submissions share: buffers with a binding at each of their points, and the portions
//! that the trace shows.

use std::collections::BTreeMap;

use crate::{
    abi::{
        self,
        SubmitPatch, //
    },
    client::Allocation,
    clock,
    commands::{
        Commands,
        Write, //
    },
    debugfs,
    fixture::{
        physical,
        Fixture,
        VISIBLE_SEGMENT, //
    },
    memory::Mapping,
    trace::{
        Event,
        Events,
        Recording, //
    }, //
};

/// Bytes of the buffers of most tests.
pub const BUFFER: u32 = 1024;

impl Commands {
    /// Fills the buffer up with packets that do nothing.
    pub fn pad_to(&mut self, bytes: u32) -> &mut Self {
        let missing = bytes
            .checked_sub(self.bytes())
            .expect("the buffer is longer");
        if missing > 0 {
            self.nop(missing as usize / 4);
        }
        self
    }

    /// Lets all entries from number `first` on bind to `slot`.
    pub fn in_slot(&mut self, first: usize, slot: u32) -> &mut Self {
        for patch in &mut self.patches[first..] {
            patch.slot = slot;
        }
        self
    }

    /// Binds an allocation to a slot from here on.
    pub fn bind(&mut self, slot: u32, allocation: &Allocation) -> &mut Self {
        let alloc_index = self.list(allocation.handle, Write::No);
        let split_offset = self.bytes();
        self.patches.push(SubmitPatch {
            alloc_index,
            slot,
            split_offset,
            ..Default::default()
        });
        self
    }

    /// Empties a slot from here on.
    pub fn unbind(&mut self, slot: u32) -> &mut Self {
        let split_offset = self.bytes();
        self.patches.push(SubmitPatch {
            alloc_index: abi::ALLOC_INDEX_NONE,
            slot,
            split_offset,
            ..Default::default()
        });
        self
    }

    /// Stores a value, binding to `slot`.
    pub fn store_in(
        &mut self,
        slot: u32,
        allocation: &Allocation,
        offset: u64,
        value: u64,
    ) -> &mut Self {
        let first = self.patches.len();
        self.store(allocation.at(offset), value);
        self.in_slot(first, slot)
    }
}

/// An allocation with a mapping.
pub struct Piece {
    /// The allocation.
    pub allocation: Allocation,
    /// A mapping of it.
    pub mapping: Mapping,
    /// Its number on the adapter.
    pub object: u64,
}

impl Piece {
    /// Makes one that may lie in segment 1 only.
    pub fn new(fixture: &Fixture, size: u64) -> Self {
        Self::within(fixture, size, VISIBLE_SEGMENT)
    }

    /// Makes one that may lie in these segments.
    pub fn within(fixture: &Fixture, size: u64, segments: u32) -> Self {
        let allocation = fixture.create(physical(size, segments));
        let mapping = fixture.client.map(&allocation);
        let object = fixture.client.state_of(allocation.handle).object_id;
        Self {
            allocation,
            mapping,
            object,
        }
    }

    /// Where it lies now: segment and offset.
    pub fn place(&self) -> (u64, u64) {
        let placement = debugfs::placement(self.object);
        (placement.segment, placement.offset)
    }
}

/// A portion, as the trace tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portion {
    /// Its first byte.
    pub start: u64,
    /// The byte behind it.
    pub end: u64,
    /// Its completion value.
    pub fence: u64,
    /// Its node.
    pub node: u64,
    /// Where in the trace its event is.
    pub at: usize,
}

/// The portions of one submission, by its number on the adapter.
pub fn portions_of(events: &Events, submit: u64) -> Vec<Portion> {
    let all = events.0.iter().enumerate();
    let mine =
        all.filter(|(_, event)| event.name == "dma_portion" && event.number("submit") == submit);
    mine.map(|(at, event)| Portion {
        start: event.number("start"),
        end: event.number("end"),
        fence: event.number("fence"),
        node: event.number("node"),
        at,
    })
    .collect()
}

/// The number on the adapter of the only submission whose portions are in the trace.
#[track_caller]
pub fn only_submission(events: &Events) -> u64 {
    let mut numbers: Vec<u64> = events
        .named("dma_portion")
        .map(|event| event.number("submit"))
        .collect();
    numbers.dedup();
    assert_eq!(numbers.len(), 1, "submissions with portions");
    numbers[0]
}

/// First and last byte of each portion of the only submission.
#[track_caller]
pub fn cuts(events: &Events) -> Vec<(u64, u64)> {
    let submit = only_submission(events);
    let portions = portions_of(events, submit);
    portions
        .iter()
        .map(|portion| (portion.start, portion.end))
        .collect()
}

/// Bounds of portions that end at these offsets, from 0 on.
pub fn bounds(ends: &[u64]) -> Vec<(u64, u64)> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends.iter().copied()).collect()
}

/// Place in the trace where a portion begins or ends on its node.
#[track_caller]
pub fn edge(events: &Events, name: &str, portion: &Portion) -> usize {
    let words = [
        format!("node={}", portion.node),
        "kind=dma".to_owned(),
        format!("fence={}", portion.fence),
    ];
    let found = events.find(portion.at, name, &words);
    found.unwrap_or_else(|| panic!("no {name} of {portion:?} in\n{}", events.listing()))
}

/// What each slot holds, as the lists say: a model of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableModel(pub BTreeMap<u32, u32>);

impl TableModel {
    /// The table in front of the entries that stand at `offset`.
    pub fn before(commands: &Commands, offset: u32) -> Self {
        let mut table = Self::default();
        for patch in commands
            .patches
            .iter()
            .filter(|patch| patch.split_offset < offset)
        {
            table.bind(patch, commands);
        }
        table
    }

    /// Handles of what is held across a cut at `offset` by a slot that is not bound anew there.
    pub fn kept(commands: &Commands, offset: u32) -> Vec<u32> {
        let mut table = Self::before(commands, offset);
        for patch in commands
            .patches
            .iter()
            .filter(|patch| patch.split_offset == offset)
        {
            table.0.remove(&patch.slot);
        }
        let mut kept: Vec<u32> = table.0.into_values().collect();
        kept.sort_unstable();
        kept.dedup();
        kept
    }

    fn bind(&mut self, patch: &SubmitPatch, commands: &Commands) {
        let handle = commands
            .allocs
            .get(patch.alloc_index as usize)
            .map_or(0, |listed| listed.alloc);
        if handle == 0 {
            self.0.remove(&patch.slot);
        } else {
            self.0.insert(patch.slot, handle);
        }
    }
}

/// Leaves so many bytes of segment 1 free, once everything that was closed before is gone.
pub fn leave_free(bytes: u64) {
    clock::wait_until("what was closed is gone", || {
        debugfs::placements().iter().all(|one| !one.orphan)
    });
    debugfs::inject("reserve 1 0");
    let free = debugfs::segment(1).free;
    debugfs::inject(&format!("reserve 1 {}", free - bytes));
}

/// Whether an event says that this allocation goes somewhere.
pub fn concerns(event: &Event, object: u64) -> bool {
    event.name == "residency" && event.number("alloc") == object
}

/// Runs a buffer and returns what the trace says.
pub fn trace_run(fixture: &Fixture, commands: &Commands) -> Events {
    let context = fixture.context();
    let recording = Recording::start();
    fixture.run(&context, commands);
    recording.stop()
}
