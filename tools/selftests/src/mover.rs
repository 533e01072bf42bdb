// SPDX-License-Identifier: GPL-2.0

//! Ways in which memory moves: by debug commands, and because others need room.

use crate::{
    client::Allocation,
    debugfs,
    fixture::{
        physical,
        plain,
        Fixture,
        HIDDEN_SEGMENT,
        MIB,
        VISIBLE_SEGMENT, //
    },
    random::Random, //
};

/// A step that is no command: others ask for runs as long as all that is free, so that whoever lies
/// between goes aside.
pub const ASIDE: &str = "aside";

/// Lets an allocation move one step.
pub fn try_step(allocation: &Allocation, step: &str) -> Result<(), i32> {
    if step == ASIDE {
        make_runs();
        return Ok(());
    }
    debugfs::try_inject(&step.replace("{}", &allocation.object_id.to_string()))
}

/// Another client has a run of each memory segment that is nearly as long as the segment, for a
/// moment.
fn make_runs() {
    let fixture = Fixture::new();
    for (mask, size) in [
        (VISIBLE_SEGMENT, RUN_OF_THE_VISIBLE),
        (HIDDEN_SEGMENT, RUN_OF_THE_HIDDEN),
    ] {
        let run = fixture.create_resident(physical(size, mask));
        fixture.client.close_and_wait(&[run.handle]);
    }
}

/// No run as long as this is free when something lies at one of the starts, but as much is.
const RUN_OF_THE_VISIBLE: u64 = 15 * MIB;
/// As [`RUN_OF_THE_VISIBLE`].
const RUN_OF_THE_HIDDEN: u64 = 3 * MIB;

/// Takes an allocation from place to place: by commands, and by somebody who needs the room.
pub struct Mover {
    random: Random,
    crowd: Fixture,
    /// What needs the room, by turns.
    hogs: [Allocation; 2],
}

impl Mover {
    /// A mover whose choices follow from `seed`.
    pub fn new(seed: u64) -> Self {
        let crowd = Fixture::new();
        let hogs = [VISIBLE_SEGMENT, HIDDEN_SEGMENT].map(|mask| {
            let size = debugfs::segment(mask.trailing_zeros()).total;
            crowd.create(plain(size, mask))
        });
        Self {
            random: Random::new(seed),
            crowd,
            hogs,
        }
    }

    /// Moves an allocation once, if it can; says whether it has.
    pub fn step(&mut self, allocation: &Allocation) -> bool {
        let before = place(allocation);
        self.push(allocation);
        place(allocation) != before
    }

    fn push(&mut self, allocation: &Allocation) {
        if self.random.once_in(8) {
            return make_runs();
        }
        if self.random.once_in(6) {
            let hog = *self.random.pick(&self.hogs);
            self.crowd.bring_in(&hog);
            self.crowd.push_out(&hog);
            return;
        }
        let ways = ["move {} 1", "move {} 2", "move {} 3", "move {}", "evict {}"];
        let command = self.random.pick(&ways);
        let command = command.replace("{}", &allocation.object_id.to_string());
        let result = debugfs::try_inject(&command);
        let expected = matches!(result, Ok(()) | Err(libc::ENOSPC | libc::EBUSY));
        assert!(expected, "{command}: {result:?}");
    }
}

/// Segment and offset of an allocation.
fn place(allocation: &Allocation) -> (u64, u64) {
    let placement = debugfs::placement(allocation.object_id);
    (placement.segment, placement.offset)
}
