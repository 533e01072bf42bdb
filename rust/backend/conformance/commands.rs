// SPDX-License-Identifier: GPL-2.0

//! Client commands: what they leave behind.

use kernel::prelude::*;

use super::{
    bench::{
        Bench,
        Numbers,
        Portion, //
    },
    model::{
        self,
        Pair, //
    },
    place,
    stream::{
        Side,
        Stream, //
    },
    Verdict,
    RENDER,
    SEGMENT, //
};
use crate::{
    backend::{
        Backend,
        Operation,
        Outcome, //
    },
    uapi::abi::engine as abi,
    units::Run, //
};

/// COPY, BLEND and FILL of random rectangles, overlapping ones too, do what the plain model does.
pub(crate) fn rectangles_match_model(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let context = bench.context(7, RENDER)?;
    let mut numbers = Numbers(6);
    for round in 0..20 {
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
        let portion = Portion {
            cookie,
            words,
            range: cut[0]..cut[1],
            grants: &[],
        };
        bench.submit_portion(RENDER, &context, &collector, portion)?;
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

/// On a node that does not save registers every portion begins with poison, and keeps them while it
/// runs.
pub(crate) fn registers_are_lost(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let context = bench.context(7, RENDER)?;
    let mut stream = Stream::new();
    stream
        .register(abi::OP_STORE_REGISTER, 5, place(1, 0))?
        .set_register(5, 77)?
        .register(abi::OP_STORE_REGISTER, 5, place(1, 8))?;
    let mut right = true;
    for _ in 0..2 {
        right &= bench.run(RENDER, &context, stream.words())? == Outcome::Done;
        right &= bench.holds(place(1, 0), &abi::REGISTER_POISON.to_le_bytes())?;
        right &= bench.holds(place(1, 8), &77u64.to_le_bytes())?;
    }
    Ok(right)
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

/// With grants, everything outside of them is an error.
pub(crate) fn grants_are_kept(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let context = bench.context(7, RENDER)?;
    let grants = [
        Run::new(place(1, 0x1000), 0x1000),
        Run::new(place(2, 0x10000), 0x10000),
    ];
    let inside = (place(1, 0x1000), place(2, 0x10000));
    let pairs = [
        (inside.0, inside.1, true),
        (inside.1, inside.0, true),
        (inside.0.forward(4), inside.1, false),
        (inside.0, place(2, 0xf000), false),
        (place(2, 0x1000), inside.1, false),
    ];
    let mut right = true;
    for (to, from, allowed) in pairs {
        let mut stream = Stream::new();
        stream.copy(to, from, 0x1000)?;
        let collector = bench.collector()?;
        let portion = Portion {
            cookie: 0,
            words: stream.words(),
            range: 0..stream.words().len(),
            grants: &grants,
        };
        bench.submit_portion(RENDER, &context, &collector, portion)?;
        let expected = if allowed {
            Outcome::Done
        } else {
            Outcome::Error { offset: 0 }
        };
        right &= collector.wait(1, 0).ok_or(ETIME)?.outcome == expected;
    }
    Ok(right)
}
