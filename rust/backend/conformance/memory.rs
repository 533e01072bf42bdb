// SPDX-License-Identifier: GPL-2.0

//! Paging operations: what they do to memory.

use kernel::prelude::*;

use super::{
    bench::{
        Bench,
        Numbers,
        Scattered, //
    },
    model,
    place,
    stream::Stream,
    Verdict,
    RENDER, //
};
use crate::{
    backend::{
        operation::Name,
        Backend,
        Failure,
        Operation,
        Outcome,
        User,
        WindowPage, //
    },
    uapi::abi::engine as abi,
    units::Run, //
};

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

/// Discard touches nothing but what is given up, which becomes poison in self-check mode.
pub(crate) fn discard_spares_neighbours(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let content = Numbers(4).bytes(0x3000)?;
    bench.write(place(1, 0), &content)?;
    let what = [Run::new(place(1, 0x1000), 0x1000)];
    bench.operate(&Operation::Discard { what: &what })?;
    let poison = KVVec::from_elem(abi::MEMORY_POISON, 0x1000, GFP_KERNEL)?;
    Ok(bench.holds(place(1, 0), &content[..0x1000])?
        && bench.holds(place(1, 0x1000), &poison)?
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

/// A window of the CPU shows scattered pages, each where it was mapped and no longer (SEG-28).
pub(crate) fn window_shows_pages(backend: &dyn Backend) -> Verdict {
    /// Bytes of a page of the window.
    const PAGE: u64 = 64 * 1024;

    let (visible, hidden) = (place(1, 0).segment, place(2, 0).segment);
    let user = User {
        process: 2,
        allocation: 3,
    };
    let show = |window, page| WindowPage { window, page };
    // What the CPU sees of a page is what lies in the segment.
    let is_shown = |window: u32, page: u64| {
        (0..PAGE).step_by(4096).all(|inside| {
            let seen = backend.window_frames(hidden, window, inside);
            let there = backend.frames(place(2, page * PAGE + inside));
            let (Some(seen), Some(there)) = (seen, there) else {
                return false;
            };
            let left = (PAGE - inside) / 4096;
            seen.first == there.first && seen.count > 0 && seen.count <= left
        })
    };
    let nothing = |window| backend.window_frames(hidden, window, 0).is_none();
    let at_first = (0..4).all(nothing);
    backend.map_host_aperture(hidden, user, &[show(3, 9), show(0, 2)])?;
    let mapped = is_shown(3, 9) && is_shown(0, 2) && nothing(1) && nothing(2);
    let refused = [
        backend.map_host_aperture(hidden, user, &[show(1, 5), show(3, 4)]),
        backend.map_host_aperture(hidden, user, &[show(1, 5), show(4, 4)]),
        backend.map_host_aperture(hidden, user, &[show(1, 16)]),
        backend.map_host_aperture(visible, user, &[show(0, 0)]),
    ];
    let unchanged = is_shown(3, 9) && nothing(1);
    backend.unmap_host_aperture(hidden, user, &[3]);
    backend.map_host_aperture(hidden, user, &[show(3, 4)])?;
    let changed = is_shown(3, 4) && is_shown(0, 2);
    backend.unmap_host_aperture(hidden, user, &[0, 3]);
    Ok(at_first
        && mapped
        && refused.iter().all(|result| *result == Err(EINVAL))
        && unchanged
        && changed
        && (0..4).all(nothing)
        && backend.window_frames(visible, 0, 0).is_none())
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

/// Operations work on system memory alone, in buffers or at once.
pub(crate) fn system_memory_is_reached(backend: &dyn Backend) -> Verdict {
    let bench = Bench::new(backend)?;
    let (first, second) = (Scattered::new(4)?, Scattered::new(4)?);
    let (from, to) = (first.runs()?, second.runs()?);
    bench.operate(&Operation::Fill {
        pattern: 0x0102_0304,
        to: &from,
    })?;
    bench.operate(&Operation::Transfer {
        from: &from,
        to: &to,
    })?;
    let mut expected = KVVec::from_elem(0, 4096, GFP_KERNEL)?;
    model::fill(&mut expected, 0x0102_0304, (0, 0), 4096, 1);
    let mut right = true;
    for run in &to {
        right &= bench.holds(run.place, &expected)?;
    }
    Ok(right)
}
