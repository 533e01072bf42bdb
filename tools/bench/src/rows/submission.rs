// SPDX-License-Identifier: GPL-2.0

//! S1 to S5: submissions with patch lists. A row times the call alone; what was queued runs before
//! the next repetition.

use libvidmm::{
    abi,
    abi::engine,
    commands::{
        Buffer,
        Commands, //
    },
    ioctl,
    ioctl::PatchedLists,
    Allocation,
    Context,
    Deadline, //
};

use super::floors::{
    F64,
    ROUND_TRIP, //
};
use crate::{
    catalogue::{
        Catalogue,
        Goal,
        Row, //
    },
    clock::Clock,
    cost::Cost,
    failure::{
        check,
        Result, //
    },
    measure::calls,
    peers::{
        PatchShape,
        Peers, //
    },
    ring::Ring,
    scheduling::Alone,
    vidmm::Vidmm, //
};

/// Jobs that are queued before the last one is waited for.
const QUEUED: u32 = 256;
const SCHED: &str = "drm_sched queued, per job";
const SCHED_ONE: &str = "drm_sched one at a time";

/// Patches and references of each row.
const S1: (u32, u32) = (1, 1);
const S2: (u32, u32) = (16, 16);
const S3: (u32, u32) = (256, 64);
pub(super) const S4: (u32, u32) = (4096, 64);
const S5: (u32, u32) = (4096, 4096);

/// Adds the rows.
pub fn add(catalogue: &mut Catalogue, vidmm: &Vidmm, peers: &Peers) {
    for shape in [S1, S2, S3, S4, S5] {
        let client = vidmm.clone();
        catalogue.operation(submitted(shape), move || submit(client.clone(), shape));
        let floor = PatchShape {
            patches: shape.0,
            allocations: shape.1,
            // CAST: a small constant.
            dwords: engine::STORE_DWORDS as u32,
        };
        catalogue.operation_of(patched(shape), &peers.floor, move |peer| peer.patch(floor));
        catalogue.operation_of(looked_up(shape), &peers.floor, move |peer| {
            peer.lookup(floor)
        });
    }
    for count in [1, 16, 256, 4096] {
        catalogue.operation_of(exec(count), &peers.graphics, move |peer| {
            Ok(peer.exec(count))
        });
        catalogue.operation_of(syncobj(count), &peers.syncobjs, move |peer| {
            peer.reset(count)
        });
        let clock = vidmm.clock;
        catalogue.operation(uring(count), move || no_ops(clock, count));
    }
    catalogue.operation_of(SCHED, &peers.graphics, |peer| Ok(peer.sched(QUEUED)));
    catalogue.operation_of(SCHED_ONE, &peers.graphics, |peer| Ok(peer.sched(1)));
    for (name, count) in [(RETIRED, 1), (RETIRED_QUEUED, QUEUED)] {
        let client = vidmm.clone();
        catalogue.operation(name, move || retire(client.clone(), count));
    }
    for row in alone() {
        catalogue.row(row);
    }
    for row in whole() {
        catalogue.row(row);
    }
}

const RETIRED: &str = "submit and wait, one at a time";
const RETIRED_QUEUED: &str = "submit queued, then wait, per submission";

pub(super) fn submitted((patches, references): (u32, u32)) -> String {
    format!("submit {patches}/{references}")
}

fn patched((patches, references): (u32, u32)) -> String {
    format!("copy and patch {patches}/{references}")
}

fn looked_up((patches, references): (u32, u32)) -> String {
    format!("lookup and patch {patches}/{references}")
}

fn exec(count: u32) -> String {
    format!("drm_exec {count}")
}

fn syncobj(count: u32) -> String {
    format!("syncobj reset {count}")
}

fn uring(count: u32) -> String {
    format!("io_uring {count}")
}

/// S1 to S5.
fn alone() -> Vec<Row> {
    let row = |name: &str, shape: (u32, u32)| {
        let what = format!("submit, {} patches, {} references", shape.0, shape.1);
        Row::new(name, what, submitted(shape)).floor(patched(shape))
    };
    vec![
        row("S1", S1)
            .peer(SCHED)
            .goal(Goal::instructions(2.5, patched(S1)))
            .goal(Goal::instructions(0.45, SCHED)),
        row("S2", S2)
            .peer(exec(16))
            .goal(Goal::instructions(1.0, exec(16)))
            .goal(Goal::instructions(0.92, uring(16))),
        row("S3", S3)
            .peer(uring(256))
            .goal(Goal::instructions(3.2, patched(S3)))
            .goal(Goal::instructions(0.23, uring(256)))
            .goal(Goal::instructions(0.26, exec(256))),
        row("S4", S4)
            .peer(looked_up(S4))
            .goal(Goal::instructions(1.45, patched(S4)))
            .goal(Goal::instructions(0.20, looked_up(S4)))
            .goal(Goal::instructions(0.10, uring(4096)))
            .goal(Goal::instructions(0.10, syncobj(4096)))
            .goal(Goal::wall(1.6, patched(S4))),
        row("S5", S5)
            .peer(exec(4096))
            .goal(Goal::instructions(0.65, exec(4096))),
    ]
}

/// S9 and S10, the calls with what they queue.
fn whole() -> [Row; 2] {
    let round_trip = Cost::of(ROUND_TRIP) + 2.0 * Cost::of(F64);
    [
        Row::new("S9", "submit and wait until it has run", RETIRED)
            .peer(SCHED_ONE)
            .floor(round_trip.clone())
            .goal(Goal::instructions(0.85, SCHED_ONE))
            .goal(Goal::instructions(1.30, round_trip)),
        Row::new(
            "S10",
            "256 submissions, then wait for the last",
            RETIRED_QUEUED,
        )
        .peer(SCHED)
        .floor(submitted(S1))
        .goal(Goal::instructions(0.70, SCHED))
        .goal(Goal::wall(0.70, SCHED)),
    ]
}

/// A context, and a buffer of stores to some allocations.
struct Load {
    vidmm: Vidmm,
    context: Context,
    allocations: Vec<Allocation>,
    buffer: Buffer,
    patches: u32,
}

/// What the store with this number stores.
fn stored(index: u32) -> u64 {
    0x5a00_0000_0000 + u64::from(index)
}

impl Load {
    fn new(vidmm: &Vidmm, (patches, references): (u32, u32)) -> Result<Self> {
        let allocations = (0..references)
            .map(|_| vidmm.physical(4 << 10))
            .collect::<Result<Vec<_>>>()?;
        let mut commands = Commands::new(vidmm.patch_slots());
        for index in 0..patches {
            // CAST: `usize` has 64 bits.
            let allocation = &allocations[(index % references) as usize];
            let offset = 8 * u64::from(index / references);
            commands.store(allocation.at(offset), stored(index));
        }
        Ok(Self {
            context: vidmm.context()?,
            buffer: commands.finish(),
            allocations,
            patches,
            vidmm: vidmm.clone(),
        })
    }

    /// Submits by one call with a copy of the allocation list, and returns the id.
    fn submit(&self, list: &mut [abi::SubmitAlloc]) -> libvidmm::Result<u64> {
        let mut argument = abi::SubmitPatched {
            context: self.context.handle(),
            ..Default::default()
        };
        let lists = PatchedLists {
            dwords: &self.buffer.dwords,
            allocations: list,
            patches: &self.buffer.patches,
            waits: &[],
            signals: &[],
        };
        ioctl::call(self.vidmm.adapter(), &mut argument, lists)?;
        Ok(argument.submission)
    }

    /// Copies of the allocation list that presume nothing about where allocations are.
    fn lists(&self, count: u32) -> Vec<Vec<abi::SubmitAlloc>> {
        (0..count)
            .map(|_| self.buffer.allocations.clone())
            .collect()
    }

    /// Makes it and sees that it does what it shall.
    fn checked(vidmm: &Vidmm, shape: (u32, u32)) -> Result<Self> {
        let load = Self::new(vidmm, shape)?;
        let id = load.submit(&mut load.buffer.allocations.clone())?;
        load.wait(id)?;
        load.check()?;
        Ok(load)
    }

    fn wait(&self, id: u64) -> Result<()> {
        Ok(self.context.wait(id, Deadline::FOREVER)?)
    }

    /// Checks that every store has been done.
    fn check(&self) -> Result<()> {
        // CAST: there are as many as a `u32` says.
        let references = self.allocations.len() as u32;
        for (number, allocation) in (0..).zip(&self.allocations) {
            let guard = allocation.lock(libvidmm::Access::READ)?;
            let indices = (number..self.patches).step_by(references as usize);
            for (row, index) in indices.enumerate() {
                let found = guard.read64(8 * row);
                check(found == stored(index), || {
                    format!("store {index} of {}: {found:#x}", self.patches)
                })?;
            }
        }
        Ok(())
    }
}

/// The call alone.
fn submit(vidmm: Vidmm, shape: (u32, u32)) -> Result<impl FnMut() -> Result<f64>> {
    let load = Load::checked(&vidmm, shape)?;
    Ok(move || {
        let mut last = 0;
        let mut lists = load.lists(calls(shape.0));
        let mut lists = lists.iter_mut();
        let alone = Alone::begin()?;
        let cost = vidmm.clock.time_each(calls(shape.0), |_| {
            if let Some(list) = lists.next() {
                last = load.submit(list)?;
            }
            Ok::<_, libvidmm::Error>(())
        });
        drop(alone);
        load.wait(last)?;
        Ok(cost?)
    })
}

/// So many calls, and everything that they cause: per submission.
fn retire(vidmm: Vidmm, count: u32) -> Result<impl FnMut() -> Result<f64>> {
    let load = Load::checked(&vidmm, S1)?;
    Ok(move || {
        let mut last = 0;
        let mut lists = load.lists(count);
        let (cost, result) = vidmm.clock.time(|| {
            for list in &mut lists {
                last = load.submit(list)?;
            }
            load.wait(last)
        });
        result?;
        Ok(cost / f64::from(count))
    })
}

/// No-ops of io_uring by one call.
fn no_ops(clock: Clock, count: u32) -> Result<impl FnMut() -> Result<f64>> {
    let ring = Ring::new(calls(count) * count)?;
    Ok(move || {
        let alone = Alone::begin()?;
        let cost = clock.time_each(calls(count), |_| ring.submit(count));
        drop(alone);
        ring.reap(calls(count) * count)?;
        cost
    })
}
