// SPDX-License-Identifier: GPL-2.0

//! A laboratory for the engine: allocations whose content the reference knows.

use crate::{
    abi,
    client::{
        Allocation,
        Context, //
    },
    commands::{
        Commands,
        Side, //
    },
    fixture::{
        pattern,
        physical,
        Fixture,
        HIDDEN_SEGMENT,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    reference::Machine, //
};

/// Allocations with equal content on the GPU and in the reference.
pub struct Lab {
    /// The client.
    pub fixture: Fixture,
    /// Its context.
    pub context: Context,
    /// The allocations.
    pub allocations: Vec<Allocation>,
    /// The reference.
    pub machine: Machine,
}

impl Lab {
    /// Two allocations of `size` bytes in each kind of place.
    pub fn new(size: u64, node: u32) -> Self {
        let fixture = Fixture::new();
        let context = fixture.client.create_context(fixture.device, node);
        let node: abi::InfoNode = fixture.client.query(abi::QUERY_NODE, node);
        let mut machine = Machine::new(node.flags & abi::NODE_SAVES_CONTEXT != 0);
        let mut allocations = Vec::new();
        for (number, mask) in [VISIBLE_SEGMENT, VISIBLE_SEGMENT, SYSTEM, HIDDEN_SEGMENT]
            .iter()
            .enumerate()
        {
            let allocation = fixture.create(physical(size, *mask));
            let content = pattern(number as u64, allocation.size);
            fixture.client.map(&allocation).write(0, &content);
            machine.set(allocation.handle, content);
            allocations.push(allocation);
        }
        Self {
            fixture,
            context,
            allocations,
            machine,
        }
    }

    /// Runs a buffer on both sides.
    pub fn run(&mut self, commands: &Commands) {
        self.fixture.run(&self.context, commands);
        self.machine.run(commands);
    }

    /// Asserts that memory is what the reference says.
    #[track_caller]
    pub fn assert_equal(&self, what: &str) {
        for (number, allocation) in self.allocations.iter().enumerate() {
            let found = self
                .fixture
                .read(allocation, &self.fixture.client.map(allocation));
            let expected = self.machine.content(allocation.handle);
            if found != expected {
                let place = found
                    .iter()
                    .zip(expected)
                    .position(|(one, other)| one != other);
                let place = place.unwrap_or(0);
                panic!(
                    "{what}: allocation {number} differs first at {place:#x}: {:02x?}, expected {:02x?}",
                    &found[place..(place + 16).min(found.len())],
                    &expected[place..(place + 16).min(expected.len())]
                );
            }
        }
    }
}

/// A place in an allocation as one end of a copy.
pub fn side(allocation: &Allocation, offset: u64, pitch: u32) -> Side {
    Side {
        at: allocation.at(offset),
        pitch,
    }
}
