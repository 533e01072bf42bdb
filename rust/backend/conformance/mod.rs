// SPDX-License-Identifier: GPL-2.0

//! What every backend that executes must pass (BCK-1, BCK-4, BCK-9).
//!
//! A check gets a backend of the shape that [`SHAPE`] describes, freshly made, and answers whether it
//! did the right thing. It knows the trait and the command set, nothing of the backend's inside; memory
//! it looks at by page frame.

mod bench;
mod model;
mod stream;

use kernel::prelude::*;

use self::{
    bench::{
        Bench,
        Numbers,
        Scattered, //
    },
    model::Pair,
    stream::{
        Side,
        Stream, //
    }, //
};
use super::{
    Backend,
    Failure,
    Flow,
    Operation,
    Outcome, //
};
use crate::{
    abstractions::{
        clock,
        params::Parameters, //
    },
    backend::operation::Name,
    uapi::abi::engine as abi,
    units::{
        NodeOrdinal,
        Place,
        Run,
        SegmentId, //
    }, //
};

/// The shape of a backend to be checked: two memory segments of different page sizes, an aperture, two
/// nodes for clients around the paging node.
pub(crate) fn shape() -> Parameters {
    Parameters {
        segments: Some(c"memory:1M:visible,memory:1M:page=64K:window=4,aperture:1M"),
        nodes: Some(c"render:physical,paging,copy:physical"),
        levels: Some(0),
        save_restore: Some(true),
        self_check: Some(true),
        ..Parameters::default()
    }
}

/// The first node for clients.
const RENDER: NodeOrdinal = NodeOrdinal(0);
/// The paging node.
const PAGING: NodeOrdinal = NodeOrdinal(1);
/// The other node for clients.
const COPY: NodeOrdinal = NodeOrdinal(2);

/// Bytes of a segment.
const SEGMENT: u64 = 1 << 20;

/// A check passed, did not, or could not be made.
pub(crate) type Verdict = Result<bool>;

/// Returns the place at `offset` in the segment with this number.
fn place(segment: u32, offset: u64) -> Place {
    Place::new(SegmentId::new(segment).unwrap_or(SegmentId::SYSTEM), offset)
}

/// Fill writes its pattern to all runs and to nothing else.
pub(crate) fn fill_writes_runs_only(backend: &dyn Backend) -> Verdict {
    /// The part of the segment that is looked at.
    const AREA: u64 = 160 * 1024;

    let bench = Bench::new(backend)?;
    let mut numbers = Numbers(1);
    for round in 0..12 {
        let base = place(1 + round % 2, 0);
        let start = numbers.below(AREA / 8) * 4;
        let bytes = 4 + numbers.below(AREA / 8) * 4;
        let first = bytes / 8 * 4;
        let pattern = numbers.below(1 << 32) as u32;
        let mut expected = bench.read(base, AREA as usize)?;
        let to = (start as usize, 0);
        model::fill(&mut expected, pattern, to, bytes as usize, 1);
        let runs = [
            Run::new(base.forward(start), first),
            Run::new(base.forward(start + first), bytes - first),
        ];
        bench.operate(&Operation::Fill { pattern, to: &runs })?;
        if !bench.holds(base, &expected)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Transfer moves content between memory and scattered system pages, whose runs are cut differently, and
/// between segments.
pub(crate) fn transfer_moves_content(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let pages = Scattered::new(32)?;
    let system = pages.runs()?;
    let bytes = 32 * 4096;
    let content = Numbers(2).bytes(bytes as usize)?;

    let first = [
        Run::new(place(1, 0x3000), 0x2000),
        Run::new(place(1, 0x10000), bytes - 0x2000 - 0x6000),
        Run::new(place(1, 0x8000), 0x6000),
    ];
    let mut at = 0;
    for run in first {
        bench.write(run.place, &content[at..at + run.bytes as usize])?;
        at += run.bytes as usize;
    }
    let second = [Run::new(place(2, 0x20000), bytes)];
    let steps: [(&[Run], &[Run]); 3] = [(&first, &system), (&system, &second), (&second, &first)];
    for (from, to) in steps {
        bench.operate(&Operation::Fill {
            pattern: 0x5555_5555,
            to,
        })?;
        bench.operate(&Operation::Transfer { from, to })?;
        let mut at = 0;
        for run in to {
            if !bench.holds(run.place, &content[at..at + run.bytes as usize])? {
                return Ok(false);
            }
            at += run.bytes as usize;
        }
    }
    Ok(true)
}

/// An operation with more runs than a buffer holds takes several buffers and is complete.
pub(crate) fn full_buffers_are_continued(backend: &dyn Backend) -> Verdict {
    /// Pages, and runs of system memory.
    const PAGES: usize = 40;

    let bench = Bench::new(backend)?;
    let pages = Scattered::new(PAGES)?;
    let system = pages.runs()?;
    let bytes = PAGES as u64 * 4096;
    let content = Numbers(3).bytes(bytes as usize)?;
    bench.write(place(1, 0), &content)?;
    let memory = [Run::new(place(1, 0), bytes)];
    let back = [Run::new(place(2, 0), bytes)];
    for dwords in [12, 16, 64, 100] {
        bench.operate(&Operation::Fill {
            pattern: 0,
            to: &back,
        })?;
        let out = Operation::Transfer {
            from: &memory,
            to: &system,
        };
        let buffers = bench.operate_in(&out, dwords)?;
        let expected = PAGES.div_ceil((dwords - 4) / 4 - 1);
        if buffers != expected {
            return Ok(false);
        }
        bench.operate_in(
            &Operation::Transfer {
                from: &system,
                to: &back,
            },
            dwords,
        )?;
        if !bench.holds(place(2, 0), &content)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Discard touches nothing but what is given up.
pub(crate) fn discard_spares_neighbours(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let content = Numbers(4).bytes(0x3000)?;
    bench.write(place(1, 0), &content)?;
    let what = [Run::new(place(1, 0x1000), 0x1000)];
    bench.operate(&Operation::Discard { what: &what })?;
    Ok(bench.holds(place(1, 0), &content[..0x1000])?
        && bench.holds(place(1, 0x2000), &content[0x2000..])?)
}

/// Scattered pages are one range through the aperture, and none once they are unmapped (SEG-31).
pub(crate) fn aperture_shows_pages(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let context = bench.context(7, RENDER)?;
    let pages = Scattered::new(16)?;
    let system = pages.runs()?;
    let bytes: u32 = 16 * 4096;
    let content = Numbers(5).bytes(bytes as usize)?;
    bench.write(place(1, 0), &content)?;
    let at = place(3, 0x20000);
    bench.operate(&Operation::MapAperture { at, pages: &system })?;

    let mut stream = Stream::new();
    stream
        .copy(at, place(1, 0), bytes)?
        .copy(place(2, 4), at.forward(4), bytes - 4)?;
    if bench.run(RENDER, &context, stream.words())? != Outcome::Done {
        return Ok(false);
    }
    let mut shown = true;
    for (index, run) in system.iter().enumerate() {
        shown &= bench.holds(run.place, &content[index * 4096..][..4096])?;
    }
    shown &= bench.holds(place(2, 4), &content[4..])?;
    let hits = backend.statistics().dummy_hits;

    bench.operate(&Operation::UnmapAperture {
        at,
        bytes: bytes.into(),
    })?;
    let mut stream = Stream::new();
    stream
        .copy(at, place(1, 4096), bytes)?
        .copy(place(2, 0), at, bytes)?;
    let zeros = KVVec::from_elem(0, bytes as usize, GFP_KERNEL)?;
    let hidden = bench.run(RENDER, &context, stream.words())? == Outcome::Done
        && bench.holds(place(2, 0), &zeros)?
        && bench.holds(system[3].place, &content[3 * 4096..4 * 4096])?;
    Ok(shown && hidden && hits == 0 && backend.statistics().dummy_hits > 0)
}

/// An operation that the engine was told to ignore has no effect, and only so often.
pub(crate) fn ignored_operation_has_no_effect(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let to = [Run::new(place(1, 0), 4096)];
    let zeros = KVVec::from_elem(0, 4096, GFP_KERNEL)?;
    let ones = KVVec::from_elem(0x11, 4096, GFP_KERNEL)?;
    let fill = Operation::Fill {
        pattern: 0x1111_1111,
        to: &to,
    };
    backend.fail_next(Failure::Operation(Name::Fill), 1);
    bench.operate(&fill)?;
    let ignored = bench.holds(place(1, 0), &zeros)?;
    bench.operate(&fill)?;
    Ok(ignored && bench.holds(place(1, 0), &ones)?)
}

/// COPY, BLEND and FILL of random rectangles, overlapping ones too, do what the plain model does.
pub(crate) fn rectangles_match_model(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let context = bench.context(7, RENDER)?;
    let mut numbers = Numbers(6);
    for round in 0..40 {
        let base = place(1 + round % 2, 0);
        let mut memory = numbers.bytes(RECTANGLES)?;
        bench.write(base, &memory)?;
        let pair = random_pair(&mut numbers, round);
        let side = |(offset, pitch): (usize, usize)| Side {
            place: base.forward(offset as u64),
            pitch: pitch as u32,
        };
        let (to, from) = (side(pair.to), side(pair.from));
        let (width, height) = (pair.width as u32, pair.height as u32);

        let mut stream = Stream::new();
        if round % 3 == 0 {
            stream.pair(abi::OP_BLEND, to, from, width, height)?;
            model::pair(&mut memory, pair, model::blended)?;
        } else {
            stream.pair(abi::OP_COPY, to, from, width, height)?;
            model::pair(&mut memory, pair, model::copied)?;
        }
        let paired = bench.run(RENDER, &context, stream.words())? == Outcome::Done
            && bench.holds(base, &memory)?;

        let mut stream = Stream::new();
        stream.fill(0x1234_5678, to, width, height)?;
        model::fill(&mut memory, 0x1234_5678, pair.to, pair.width, pair.height);
        let filled = bench.run(RENDER, &context, stream.words())? == Outcome::Done
            && bench.holds(base, &memory)?;
        if !paired || !filled {
            pr_err!("round {round}: {pair:?}\n");
            return Ok(false);
        }
    }
    Ok(true)
}

/// Bytes in which rectangles lie: more than one piece of a row.
const RECTANGLES: usize = 160 * 1024;

/// Returns two random rectangles. Some are wide enough for several pieces, some have no gaps between
/// their rows, some overlap, some have different pitches.
fn random_pair(numbers: &mut Numbers, round: u32) -> Pair {
    let (widest, highest) = match round % 4 {
        0 => (18_000, 2),
        _ => (300, 24),
    };
    let gap = if round % 5 == 0 { 1 } else { 16 };
    let mut number = |end: u64| numbers.below(end) as usize;
    let width = 4 + number(widest) * 4;
    let height = 1 + number(highest);
    let to_pitch = width + number(gap) * 4;
    let from_pitch = if round % 2 == 0 {
        to_pitch
    } else {
        width + number(gap) * 4
    };
    let room = |pitch: usize| (RECTANGLES - (height - 1) * pitch - width) / 4;
    let to = number(room(to_pitch) as u64) * 4;
    let near = to.saturating_sub(2000) + number(1000) * 4;
    let from = if round % 3 == 2 {
        number(room(from_pitch) as u64) * 4
    } else {
        near.min(room(from_pitch) * 4)
    };
    Pair {
        to: (to, to_pitch),
        from: (from, from_pitch),
        width,
        height,
    }
}

/// Registers, ADD, STORE and CHECKSUM leave the right values.
pub(crate) fn values_are_right(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let context = bench.context(7, RENDER)?;
    let content = Numbers(7).bytes(200_000)?;
    bench.write(place(2, 4), &content)?;
    bench.write(place(1, 0x100), b"123456789abc")?;
    let at = |index: u64| place(1, index * 8);
    let mut stream = Stream::new();
    stream
        .store(abi::OP_STORE, at(0), 40)?
        .store(abi::OP_ADD, at(0), 2)?
        .register(abi::OP_STORE_REGISTER, 0, at(1))?
        .set_register(15, u64::MAX)?
        .register(abi::OP_STORE_REGISTER, 15, at(2))?
        .register(abi::OP_LOAD_REGISTER, 3, at(0))?
        .register(abi::OP_STORE_REGISTER, 3, at(3))?
        .store(abi::OP_ADD, at(2), 3)?
        .checksum(at(4), place(2, 4), 200_000)?
        .checksum(at(5), place(1, 0x100), 9)?
        .packet(abi::OP_NOP, 9, &[1, 2])?;
    if bench.run(RENDER, &context, stream.words())? != Outcome::Done {
        return Ok(false);
    }
    let expected = [
        42,
        40,
        2,
        42,
        u64::from(model::crc32c(&content)),
        0xe306_9283,
    ];
    let mut right = true;
    for (index, value) in (0..).zip(expected) {
        right &= bench.holds(at(index), &value.to_le_bytes())?;
    }
    Ok(right)
}

/// A buffer that is cut at every packet does what it does in one piece (BCK-4).
pub(crate) fn portions_match_whole(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let mut stream = Stream::new();
    let mut cuts = KVec::new();
    for index in 0..16u32 {
        let side = Side {
            place: place(1, u64::from(index) * 64),
            pitch: 64,
        };
        cuts.push(stream.words().len(), GFP_KERNEL)?;
        stream.fill(index, side, 64, 2)?;
        cuts.push(stream.words().len(), GFP_KERNEL)?;
        stream.set_register(index, u64::from(index) + 7)?;
        cuts.push(stream.words().len(), GFP_KERNEL)?;
        stream.register(
            abi::OP_STORE_REGISTER,
            index,
            place(1, 0x2000 + u64::from(index) * 8),
        )?;
    }
    let words = stream.words();
    cuts.push(words.len(), GFP_KERNEL)?;
    let clear = [Run::new(place(1, 0), 0x4000)];
    let erase = Operation::Fill {
        pattern: 0,
        to: &clear,
    };

    bench.operate(&erase)?;
    let context = bench.context(7, RENDER)?;
    let whole = bench.run(RENDER, &context, words)? == Outcome::Done;
    let expected = bench.read(place(1, 0), 0x4000)?;

    bench.operate(&erase)?;
    let context = bench.context(8, RENDER)?;
    let collector = bench.collector()?;
    for (cookie, cut) in (0..).zip(cuts.windows(2)) {
        bench.submit_portion(RENDER, &context, &collector, cookie, words, cut[0]..cut[1])?;
    }
    let count = cuts.len() - 1;
    let done = (0..count).all(|index| {
        collector
            .wait(count, index)
            .map(|returned| returned.outcome)
            == Some(Outcome::Done)
    });
    Ok(whole && done && bench.holds(place(1, 0), &expected)?)
}

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
        kernel::time::delay::fsleep(kernel::time::Delta::from_millis(5));
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

/// An address outside of its segment, or outside of what the portion was given, is an error of that
/// packet; what came before it is complete.
pub(crate) fn outside_is_an_error(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let context = bench.context(7, RENDER)?;
    let mut right = true;
    for bad in [
        place(1, SEGMENT),
        place(4, 0),
        place(0, 0x100000),
        place(2, SEGMENT - 4),
    ] {
        let mut stream = Stream::new();
        stream
            .store(abi::OP_ADD, place(1, 0), 1)?
            .copy(place(1, 8), bad, 8)?
            .store(abi::OP_ADD, place(1, 0), 1)?;
        let outcome = bench.run(RENDER, &context, stream.words())?;
        right &= outcome == Outcome::Error { offset: 24 };
    }
    Ok(right && bench.holds(place(1, 0), &4u64.to_le_bytes())?)
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
    kernel::time::delay::fsleep(kernel::time::Delta::from_millis(20));
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

/// What [`shape`] asks for is what the backend says about itself.
pub(crate) fn capabilities_match_shape(backend: &dyn Backend) -> Verdict {
    let capabilities = backend.capabilities();
    Ok(capabilities.segments.len() == 3
        && capabilities.nodes.len() == 3
        && capabilities.paging_node == Some(PAGING)
        && capabilities.aperture().map(|segment| segment.id) == SegmentId::new(3)
        && backend.frame(place(1, 0)).is_some()
        && backend.frame(place(1, SEGMENT)).is_none()
        && backend.frame(place(3, 0)).is_none())
}
