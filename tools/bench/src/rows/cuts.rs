// SPDX-License-Identifier: GPL-2.0

//! S11: a submission that must be cut. The row times the call alone, which must not care.

use libvidmm::{
    abi,
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

use super::submission::{
    submitted,
    S4, //
};
use crate::{
    catalogue::{
        Catalogue,
        Goal,
        Row, //
    },
    failure::{
        check,
        Result, //
    },
    scheduling::Alone,
    vidmm::Vidmm, //
};

const CUT: &str = "submit 4096, cut in 16";
/// Portions of the buffer.
const PORTIONS: u64 = 16;
/// Patches of each.
const PATCHES: u64 = 256;
/// Calls of one repetition: each moves all memory several times.
const CALLS: u32 = 2;

/// Adds the row.
pub fn add(catalogue: &mut Catalogue, vidmm: &Vidmm) {
    let client = vidmm.clone();
    catalogue.operation(CUT, move || {
        submit(client.with(abi::FEATURE_SPLIT, "SPLIT")?)
    });
    catalogue.row(
        Row::new("S11", "submit, 4096 patches, to be cut in 16", CUT)
            .goal(Goal::instructions(1.25, submitted(S4))),
    );
}

/// Makes allocations of which memory holds one at a time.
fn allocations(vidmm: &Vidmm) -> Result<Vec<Allocation>> {
    let bytes = vidmm.memory().contiguous / 8 * 5;
    (0..PORTIONS).map(|_| vidmm.physical(bytes)).collect()
}

/// What the store with this number in a portion stores.
fn stored(portion: u64, index: u64) -> u64 {
    portion << 32 | index
}

/// Submits by one call with a copy of the allocation list, and returns the id.
fn call(
    vidmm: &Vidmm,
    context: &Context,
    buffer: &Buffer,
    list: &mut [abi::SubmitAlloc],
) -> libvidmm::Result<u64> {
    let mut argument = abi::SubmitPatched {
        context: context.handle(),
        ..Default::default()
    };
    let lists = PatchedLists {
        dwords: &buffer.dwords,
        allocations: list,
        patches: &buffer.patches,
        waits: &[],
        signals: &[],
    };
    ioctl::call(vidmm.adapter(), &mut argument, lists)?;
    Ok(argument.submission)
}

fn submit(vidmm: Vidmm) -> Result<impl FnMut() -> Result<f64>> {
    let context: Context = vidmm.context()?;
    let allocations = allocations(&vidmm)?;
    let mut commands = Commands::new(vidmm.patch_slots());
    for (portion, allocation) in (0..).zip(&allocations) {
        for index in 0..PATCHES {
            commands.store(allocation.at(8 * index), stored(portion, index));
        }
        commands.unbind(allocation.handle());
    }
    let buffer = commands.finish();
    let id = call(&vidmm, &context, &buffer, &mut buffer.allocations.clone())?;
    context.wait(id, Deadline::FOREVER)?;
    let portions = context.query(id)?.splits;
    check(u64::from(portions) == PORTIONS, || {
        format!("it ran in {portions} portions")
    })?;
    for (portion, allocation) in (0..).zip(&allocations) {
        let guard = allocation.lock(libvidmm::Access::READ)?;
        // CAST: a small constant.
        let last = guard.read64(8 * (PATCHES as usize - 1));
        check(last == stored(portion, PATCHES - 1), || {
            format!("portion {portion}: {last:#x}")
        })?;
    }
    Ok(move || {
        let mut last = 0;
        let mut lists: Vec<_> = (0..CALLS).map(|_| buffer.allocations.clone()).collect();
        let mut lists = lists.iter_mut();
        let alone = Alone::begin()?;
        let cost = vidmm.clock.time_each(CALLS, |_| {
            let Some(list) = lists.next() else {
                return Ok(());
            };
            last = call(&vidmm, &context, &buffer, list)?;
            Ok::<_, libvidmm::Error>(())
        });
        drop(alone);
        context.wait(last, Deadline::FOREVER)?;
        Ok(cost?)
    })
}
