// SPDX-License-Identifier: GPL-2.0

//! What tests of submissions start from: buffers that are right, and a check that a wrong one has no effect.

use crate::{
    abi::SubmitPatch,
    client::{
        Allocation,
        Context, //
    },
    commands::Commands,
    fixture::{
        physical,
        Fixture,
        KIB,
        VISIBLE_SEGMENT, //
    },
    memory::Mapping, //
};

/// A client with a context and a resident allocation of a page, for buffers that are refused.
pub struct Submitter {
    /// Client, device and queue.
    pub fixture: Fixture,
    /// A context with lists that page.
    pub context: Context,
    /// The allocation.
    pub allocation: Allocation,
    /// A mapping of it.
    pub mapping: Mapping,
}

impl Submitter {
    /// Makes them.
    pub fn new() -> Self {
        let fixture = Fixture::new();
        let context = fixture.context();
        let allocation = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
        let mapping = fixture.client.map(&allocation);
        Self {
            fixture,
            context,
            allocation,
            mapping,
        }
    }

    /// A buffer of two stores, at 0 and at 8.
    pub fn two_stores(&self) -> Commands {
        let mut commands = Commands::new();
        commands
            .store(self.allocation.at(0), 1)
            .store(self.allocation.at(8), 2);
        commands
    }

    /// Asserts that a buffer is refused for this reason, without effect, and that the device goes on.
    #[track_caller]
    pub fn assert_refused(&self, commands: &Commands, errno: i32, kind: u32, index: Option<u32>) {
        let before = self.mapping.read(0, 4096);
        let refusal = commands
            .try_submit(&self.fixture.client, self.context.handle)
            .expect_err("the buffer was accepted");
        assert_eq!(
            (refusal.errno, refusal.kind),
            (errno, kind),
            "index {}",
            refusal.index
        );
        if let Some(index) = index {
            assert_eq!(refusal.index, index, "error_index");
        }
        assert_eq!(
            self.mapping.read(0, 4096),
            before,
            "a refused buffer has run"
        );
        let mut good = Commands::new();
        good.store(self.allocation.at(4088), 9);
        self.fixture.run(&self.context, &good);
        self.mapping.write64(4088, 0);
    }

    /// Asserts that a buffer is accepted, and waits until it has run.
    #[track_caller]
    pub fn assert_accepted(&self, commands: &Commands) {
        self.fixture.run(&self.context, commands);
    }

    /// A second flagged allocation.
    pub fn another(&self) -> Allocation {
        self.fixture.create(physical(4 * KIB, VISIBLE_SEGMENT))
    }
}

/// An entry that only binds the first element.
pub fn bind_only(slot: u32, split_offset: u32) -> SubmitPatch {
    SubmitPatch {
        slot,
        split_offset,
        ..Default::default()
    }
}
