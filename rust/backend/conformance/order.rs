// SPDX-License-Identifier: GPL-2.0

//! Nodes: the order in which work runs and comes back, and how it ends.

use kernel::{
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use super::{
    bench::Bench,
    place,
    stream::{
        Side,
        Stream, //
    },
    Verdict,
    COPY,
    RENDER, //
};
use crate::{
    abstractions::clock,
    backend::{
        Backend,
        Failure,
        Flow,
        Outcome, //
    },
    uapi::abi::engine as abi, //
};

/// Buffers complete in the order of submission, each once, with ascending values; a paused node starts
/// none.
pub(crate) fn node_keeps_order(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let context = bench.context(7, RENDER)?;
    let collector = bench.collector()?;
    backend.set_flow(RENDER, Flow::Paused)?;
    let mut stream = Stream::new();
    stream.store(abi::OP_ADD, place(1, 0), 1)?;
    for cookie in 0..200 {
        let fence = bench.submit(RENDER, &context, &collector, cookie, stream.words())?;
        if fence != cookie + 1 {
            return Ok(false);
        }
    }
    let other = bench.context(8, COPY)?;
    let running = bench.run(COPY, &other, stream.words())? == Outcome::Done;
    let held = collector.count() == 0;
    backend.set_flow(RENDER, Flow::Running)?;
    let mut ordered = true;
    for index in 0..200 {
        let returned = collector.wait(200, index as usize).ok_or(ETIME)?;
        ordered &= returned.cookie == index
            && returned.fence == index + 1
            && returned.outcome == Outcome::Done;
    }
    Ok(running
        && held
        && ordered
        && collector.count() == 200
        && bench.holds(place(1, 0), &201u64.to_le_bytes())?)
}

/// Nodes run at the same time: one waits for what another one writes.
pub(crate) fn nodes_run_at_once(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let waiting = bench.context(7, RENDER)?;
    let writing = bench.context(8, COPY)?;
    let collector = bench.collector()?;
    let mut stream = Stream::new();
    stream.poll(place(1, 8), 0xff00, 0xab00)?;
    bench.submit(RENDER, &waiting, &collector, 1, stream.words())?;
    let mut stream = Stream::new();
    stream
        .spin(1_000_000)?
        .store(abi::OP_STORE, place(1, 8), 0xffff_ab77)?;
    let written = bench.run(COPY, &writing, stream.words())? == Outcome::Done;
    let seen = collector.wait(1, 0).ok_or(ETIME)?;
    Ok(written && seen.outcome == Outcome::Done)
}

/// Stopping a context ends SPIN, POLL and long copies soon; what is queued of it does not run, and
/// others go on.
pub(crate) fn stop_ends_work(backend: &dyn Backend) -> Verdict {
    /// What a stop may take, in nanoseconds; much more than the rule says, for machines under load.
    const SOON: u64 = 1_000_000_000;

    let bench = Bench::new(backend)?;
    let mut spin = Stream::new();
    spin.spin(abi::SPIN_FOREVER)?;
    let mut poll = Stream::new();
    poll.poll(place(1, 0), u64::MAX, 1)?;
    let mut long = Stream::new();
    let side = Side {
        place: place(1, 4096),
        pitch: 4,
    };
    for _ in 0..4000 {
        long.fill(0, side, 4, 100_000)?;
    }
    let mut mark = Stream::new();
    mark.store(abi::OP_STORE, place(1, 16), 1)?;

    for stream in [spin, poll, long] {
        let context = bench.context(7, RENDER)?;
        let collector = bench.collector()?;
        bench.submit(RENDER, &context, &collector, 1, stream.words())?;
        bench.submit(RENDER, &context, &collector, 2, mark.words())?;
        fsleep(Delta::from_millis(5));
        let busy = collector.count() == 0;
        let start = clock::now_ns();
        context.stop();
        let first = collector.wait(2, 0).ok_or(ETIME)?;
        let second = collector.wait(2, 1).ok_or(ETIME)?;
        let took = clock::now_ns() - start;
        let stopped = first.outcome == Outcome::Stopped && second.outcome == Outcome::Stopped;
        if !busy || !stopped || took > SOON {
            return Ok(false);
        }
    }
    let unmarked = bench.holds(place(1, 16), &0u64.to_le_bytes())?;
    let other = bench.context(8, RENDER)?;
    Ok(unmarked && bench.run(RENDER, &other, mark.words())? == Outcome::Done)
}

/// A buffer whose completion is lost comes back when its context is stopped, and no earlier.
pub(crate) fn lost_completion_needs_stop(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let context = bench.context(7, RENDER)?;
    let collector = bench.collector()?;
    let mut stream = Stream::new();
    stream.store(abi::OP_STORE, place(1, 0), 1)?;
    backend.fail_next(Failure::Completion, 1);
    bench.submit(RENDER, &context, &collector, 1, stream.words())?;
    fsleep(Delta::from_millis(20));
    let lost = collector.count() == 0;
    context.stop();
    let returned = collector.wait(1, 0).ok_or(ETIME)?;
    let other = bench.context(8, RENDER)?;
    Ok(lost
        && returned.outcome == Outcome::Stopped
        && bench.run(RENDER, &other, stream.words())? == Outcome::Done)
}

/// At the end every buffer comes back, those of a paused node too, and those that come later.
pub(crate) fn shut_down_gives_back_all(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let spinning = bench.context(7, RENDER)?;
    let paused = bench.context(8, COPY)?;
    let collector = bench.collector()?;
    let mut stream = Stream::new();
    stream.spin(abi::SPIN_FOREVER)?;
    backend.set_flow(COPY, Flow::Paused)?;
    for cookie in 0..10 {
        bench.submit(RENDER, &spinning, &collector, cookie, stream.words())?;
        bench.submit(COPY, &paused, &collector, cookie, stream.words())?;
    }
    backend.shut_down();
    let back = collector.count() == 20;
    bench.submit(COPY, &paused, &collector, 20, stream.words())?;
    let last = collector.wait(21, 20).ok_or(ETIME)?;
    Ok(back && last.outcome == Outcome::Stopped)
}
