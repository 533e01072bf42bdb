// SPDX-License-Identifier: GPL-2.0

//! Virtual addresses: what accesses find, when they fault, and how long translations last (BCK-10).

use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use super::{
    bench::Numbers,
    model,
    place,
    space::{
        Leaf,
        Naming,
        Spaces,
        ALL,
        LEAF,
        READ,
        SCRATCH, //
    },
    stream::{
        Side,
        Stream, //
    },
    Verdict,
    COPY,
    RENDER,
    SEGMENT, //
};
use crate::{
    backend::{
        operation::{
            FlushRange,
            Name, //
        },
        page_table::{
            Entries,
            Entry,
            Root, //
        },
        Backend,
        EngineContext,
        Failure,
        Fault,
        FaultAccess,
        FaultReason,
        Operation,
        Outcome, //
    },
    uapi::abi::engine as abi,
    units::{
        GpuVirtualAddress,
        Place,
        Run,
        SegmentId, //
    }, //
};

/// Where commands lie: the start of segment 2.
const COMMANDS: u64 = 0x8_0000;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Returns what stands in a packet for an address.
fn at(address: u64) -> Place {
    Place::new(SegmentId::SYSTEM, address)
}

/// Returns one page at `place`.
fn page(place: Place) -> Run {
    Run::new(place, PAGE)
}

/// Returns the end of a run of commands whose packet at `offset` met a fault.
fn fault(offset: u32, address: u64, access: FaultAccess, reason: FaultReason) -> Outcome {
    Outcome::Fault {
        offset,
        fault: Fault {
            address: GpuVirtualAddress(address),
            access,
            reason,
        },
    }
}

/// Writes commands where the client fetches them from, and runs them.
fn run(spaces: &Spaces<'_>, context: &Arc<dyn EngineContext>, stream: &Stream) -> Result<Outcome> {
    put(spaces, 0, stream)?;
    spaces.run(RENDER, context, COMMANDS, stream.words().len() * 4)
}

/// Writes commands `skip` bytes behind where the client fetches them from.
fn put(spaces: &Spaces<'_>, skip: u64, stream: &Stream) -> Result {
    let bytes = stream.words().as_bytes();
    spaces.bench.write(place(2, skip), bytes)
}

/// Sets up spaces in which the client has 16 pages of commands.
fn with_commands(backend: &dyn Backend) -> Result<Spaces<'_>> {
    let spaces = Spaces::new(backend)?;
    spaces.map(COMMANDS, Run::new(place(2, 0), 16 * PAGE), ALL)?;
    Ok(spaces)
}

/// Each state of a page does what it says, and nothing else is reached.
pub(crate) fn page_states_are_kept(backend: &dyn Backend) -> Verdict {
    let spaces = with_commands(backend)?;
    let context = spaces.context(7, RENDER)?;
    let (free, fixed, zero, none) = (0x1_0000, 0x1_1000, 0x1_2000, 0x1_3000);
    spaces.map(free, page(place(1, 0x2000)), ALL)?;
    spaces.map(fixed, page(place(1, 0x5000)), READ)?;
    spaces.update(
        Naming::Place,
        Leaf::First,
        zero,
        Entries::Repeat {
            entry: Entry::Zero,
            count: 1,
        },
    )?;
    spaces.bench.write(place(1, 0x5008), &77u64.to_le_bytes())?;
    let mut stream = Stream::new();
    stream
        .store(abi::OP_STORE, at(free), 5)?
        .store(abi::OP_STORE, at(zero), 6)?
        .register(abi::OP_LOAD_REGISTER, 1, at(zero))?
        .register(abi::OP_STORE_REGISTER, 1, at(free + 8))?
        .copy(at(free + 16), at(fixed + 8), 8)?;
    let mut expected = KVVec::from_elem(0, 24, GFP_KERNEL)?;
    expected[0] = 5;
    expected[16] = 77;
    let mut right = run(&spaces, &context, &stream)? == Outcome::Done
        && spaces.bench.holds(place(1, 0x2000), &expected)?;

    let (read, write) = (FaultAccess::Read, FaultAccess::Write);
    let levels = backend.capabilities().translation.as_ref();
    let beyond = match levels.ok_or(EINVAL)?.levels {
        2 => 512 * LEAF,
        _ => 1 << 48,
    };
    for (address, access, reason) in [
        (fixed, write, FaultReason::Protection),
        (none, read, FaultReason::NotMapped),
        (none, write, FaultReason::NotMapped),
        (0, read, FaultReason::NotMapped),
        (LEAF + PAGE, write, FaultReason::NotMapped),
        (3 * LEAF, read, FaultReason::NotMapped),
        (beyond, write, FaultReason::NotMapped),
        (u64::MAX - 7, read, FaultReason::NotMapped),
    ] {
        let mut stream = Stream::new();
        stream.store(abi::OP_ADD, at(free), 1)?;
        let side = |address| {
            let segment = SegmentId::new((address >> 56) as u32);
            segment.map(|segment| Place::new(segment, address & abi::ADDRESS_OFFSET_MASK))
        };
        match (side(address), access) {
            (Some(place), FaultAccess::Write) => stream.store(abi::OP_STORE, place, 1)?,
            (Some(place), _) => stream.register(abi::OP_LOAD_REGISTER, 1, place)?,
            // No place has these addresses.
            (None, _) => {
                let rest = [address as u32, (address >> 32) as u32];
                stream.packet(abi::OP_LOAD_REGISTER, 1, &rest)?
            }
        };
        let outcome = run(&spaces, &context, &stream)?;
        if outcome != fault(24, address, access, reason) {
            pr_err!("{address:#x}: {outcome:?}\n");
            right = false;
        }
    }
    Ok(right && spaces.bench.holds(place(1, 0x2000), &13u64.to_le_bytes())?)
}

/// Commands are fetched packet by packet: they may cross pages and change what comes later, faults and
/// broken rules end them at the right packet, and fetching needs its right.
pub(crate) fn commands_are_fetched(backend: &dyn Backend) -> Verdict {
    let spaces = with_commands(backend)?;
    let context = spaces.context(7, RENDER)?;
    let data = 0x1_0000;
    spaces.map(data, page(place(1, 0)), ALL)?;
    let done = |value: u64| spaces.bench.holds(place(1, 0), &value.to_le_bytes());
    let mut right = true;

    // A packet across two pages that are not adjacent, behind a NOP that is not looked into.
    spaces.map(COMMANDS + PAGE, page(place(2, 0xb000)), ALL)?;
    let mut stream = Stream::new();
    let nop = KVVec::from_elem(u32::MAX, 1018, GFP_KERNEL)?;
    stream.packet(abi::OP_NOP, 9, &nop)?;
    stream.store(abi::OP_ADD, at(data), 1)?;
    let words = stream.words().as_bytes();
    let (front, behind) = words.split_at(4096);
    spaces.bench.write(place(2, 0), front)?;
    spaces.bench.write(place(2, 0xb000), behind)?;
    right &= spaces.run(RENDER, &context, COMMANDS, words.len())? == Outcome::Done && done(1)?;

    // The second packet becomes another one before it is fetched.
    let mut stream = Stream::new();
    let [add, nop] = [6 << 16 | u64::from(abi::OP_ADD), 6 << 16];
    stream
        .store(abi::OP_STORE, at(COMMANDS + 24), nop)?
        .store(abi::OP_ADD, at(data), 100)?
        .store(abi::OP_ADD, at(data), 1)?;
    right &= run(&spaces, &context, &stream)? == Outcome::Done && done(2)? && add != nop;

    // Rules are checked packet by packet.
    for wrong in [
        [4 << 16 | 0x40, 0],
        [4 << 16 | abi::OP_ADD, 0],
        [6 << 16 | 0x100 | abi::OP_ADD, 0],
        [3 << 16, 0],
        [0, 0],
        [6 << 16 | abi::OP_ADD, 7],
        [64 << 16, 0],
        [64 << 16 | abi::OP_COPY, 0],
    ] {
        let mut stream = Stream::new();
        stream.store(abi::OP_ADD, at(data), 0)?;
        stream.packet(0, 0, &[0, 0, 0, 0])?;
        put(&spaces, 0, &stream)?;
        spaces.bench.write(place(2, 24), wrong.as_bytes())?;
        let outcome = spaces.run(RENDER, &context, COMMANDS, 48)?;
        right &= outcome == Outcome::Error { offset: 24 };
    }
    for misaligned in [at(data + 4), at(data + 1)] {
        let mut stream = Stream::new();
        stream.store(abi::OP_ADD, misaligned, 100)?;
        right &= run(&spaces, &context, &stream)? == Outcome::Error { offset: 0 };
    }

    // Fetching faults at the dword, in the packet that it belongs to.
    spaces.map(COMMANDS + 2 * PAGE, page(place(2, 0)), READ)?;
    let mut stream = Stream::new();
    stream.store(abi::OP_ADD, at(data), 1)?.spin(0)?;
    let words = stream.words().as_bytes();
    let start = COMMANDS + 2 * PAGE - 24;
    spaces.bench.write(place(2, 0xc000 - 24), words)?;
    let (fetch, protection) = (FaultAccess::Fetch, FaultReason::Protection);
    let outcome = spaces.run(RENDER, &context, start, words.len())?;
    right &= outcome == fault(24, COMMANDS + 2 * PAGE, fetch, protection) && done(3)?;
    let outcome = spaces.run(RENDER, &context, 0x2_0000, 16)?;
    right &= outcome == fault(0, 0x2_0000, fetch, FaultReason::NotMapped);
    Ok(right && spaces.run(RENDER, &context, 0x2_0000, 0)? == Outcome::Done)
}

/// Translations last until a flush covers them, found ones and invalid ones; one that the engine was
/// told to ignore covers nothing. Each node remembers its own.
pub(crate) fn translations_last_until_flush(backend: &dyn Backend) -> Verdict {
    stale(backend, Invalid::Lasts)
}

/// An engine that does not hold invalid translations sees new pages without a flush.
pub(crate) fn invalid_translations_do_not_last(backend: &dyn Backend) -> Verdict {
    stale(backend, Invalid::Vanishes)
}

/// What becomes of a translation that found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Invalid {
    /// It lasts until a flush.
    Lasts,
    /// It vanishes at once.
    Vanishes,
}

/// Remaps a page, and one that nothing was mapped to, with and without flush.
fn stale(backend: &dyn Backend, invalid: Invalid) -> Verdict {
    let spaces = with_commands(backend)?;
    let contexts = [spaces.context(7, RENDER)?, spaces.context(8, COPY)?];
    let (moved, late) = (0x1_0000, 0x1_1000);
    let (old, new) = (place(1, 0x1000), place(1, 0x9000));
    let mut stream = Stream::new();
    stream.store(abi::OP_ADD, at(moved), 1)?;
    put(&spaces, 0, &stream)?;
    let mut other = Stream::new();
    other.store(abi::OP_ADD, at(late), 1)?;
    put(&spaces, 64, &other)?;
    let add = |target: u64| -> Result<[Outcome; 2]> {
        let start = COMMANDS + target;
        Ok([
            spaces.run(RENDER, &contexts[0], start, 24)?,
            spaces.run(COPY, &contexts[1], start, 24)?,
        ])
    };
    let counts = |first: u64, second: u64| -> Result<bool> {
        Ok(spaces.bench.holds(old, &first.to_le_bytes())?
            && spaces.bench.holds(new, &second.to_le_bytes())?)
    };
    let nothing = fault(0, late, FaultAccess::Write, FaultReason::NotMapped);

    spaces.map(moved, page(old), ALL)?;
    let mut right = add(0)? == [Outcome::Done; 2] && counts(2, 0)?;
    right &= add(64)? == [nothing; 2];

    spaces.map(moved, page(new), ALL)?;
    right &= add(0)? == [Outcome::Done; 2] && counts(4, 0)?;
    spaces.flush(FlushRange::new(GpuVirtualAddress(moved + PAGE), PAGE * 8))?;
    spaces.flush_paging()?;
    right &= add(0)? == [Outcome::Done; 2] && counts(6, 0)?;
    backend.fail_next(Failure::Operation(Name::FlushTlb), 1);
    spaces.flush(FlushRange::ALL)?;
    right &= add(0)? == [Outcome::Done; 2] && counts(8, 0)?;
    spaces.flush(FlushRange::new(GpuVirtualAddress(moved), PAGE))?;
    right &= add(0)? == [Outcome::Done; 2] && counts(8, 2)?;

    right &= add(64)? == [nothing; 2];
    spaces.map(late, page(new), ALL)?;
    right &= match invalid {
        Invalid::Lasts => add(64)? == [nothing; 2] && counts(8, 2)?,
        Invalid::Vanishes => add(64)? == [Outcome::Done; 2] && counts(8, 4)?,
    };
    spaces.flush(FlushRange::ALL)?;
    right &= add(64)? == [Outcome::Done; 2];
    right &= match invalid {
        Invalid::Lasts => counts(8, 4)?,
        Invalid::Vanishes => counts(8, 6)?,
    };
    Ok(right)
}

/// What a node remembers and what it walks for is counted; remembering little changes no result.
pub(crate) fn lookups_are_counted(backend: &dyn Backend) -> Verdict {
    let levels = backend.capabilities().translation.as_ref();
    let levels = u64::from(levels.ok_or(EINVAL)?.levels);
    let spaces = with_commands(backend)?;
    let context = spaces.context(7, RENDER)?;
    spaces.map(0x1_0000, Run::new(place(1, 0), 8 * PAGE), ALL)?;
    let side = Side {
        place: at(0x1_0000),
        pitch: 8 * 4096,
    };
    let mut stream = Stream::new();
    stream.fill(0x1111_1111, side, 8 * 4096, 1)?;
    let before = backend.lookups(RENDER).ok_or(EINVAL)?;
    let mut right = run(&spaces, &context, &stream)? == Outcome::Done;
    let first = backend.lookups(RENDER).ok_or(EINVAL)?;
    right &= run(&spaces, &context, &stream)? == Outcome::Done;
    let second = backend.lookups(RENDER).ok_or(EINVAL)?;
    // The page of the commands is looked up twice for each packet, each page of memory once.
    right &= first.misses - before.misses == 9 && first.hits - before.hits == 1;
    right &= first.walks - before.walks == 9 * levels;
    right &= second.misses == first.misses && second.hits - first.hits == 10;
    Ok(right && second.walks == first.walks && backend.lookups(COPY).is_some())
}

/// A flush is complete when no node works with what it removed: a node that looks at a page again and
/// again sees the new page from then on.
pub(crate) fn flush_reaches_busy_nodes(backend: &dyn Backend) -> Verdict {
    let spaces = with_commands(backend)?;
    let context = spaces.context(7, RENDER)?;
    let watched = 0x1_0000;
    spaces.map(watched, page(place(1, 0x1000)), READ)?;
    let mut stream = Stream::new();
    stream.poll(at(watched), u64::MAX, 7)?;
    put(&spaces, 0, &stream)?;
    let collector = spaces.bench.collector()?;
    let fetch = crate::backend::Fetch {
        address: GpuVirtualAddress(COMMANDS),
        bytes: 32,
    };
    let root = spaces.root.place;
    spaces
        .bench
        .submit_fetch(RENDER, &context, &collector, root, fetch)?;
    fsleep(Delta::from_millis(2));
    spaces.bench.write(place(1, 0x9000), &7u64.to_le_bytes())?;
    spaces.map(watched, page(place(1, 0x9000)), READ)?;
    fsleep(Delta::from_millis(5));
    let waiting = collector.count() == 0;
    spaces.flush(FlushRange::new(GpuVirtualAddress(watched), PAGE))?;
    let seen = collector.wait(1, 0).ok_or(ETIME)?;
    Ok(waiting && seen.outcome == Outcome::Done)
}

/// Large pages translate 64 KiB, and a leaf of them has 32 entries.
pub(crate) fn large_pages_translate(backend: &dyn Backend) -> Verdict {
    let spaces = with_commands(backend)?;
    let context = spaces.context(7, RENDER)?;
    spaces.enlarge()?;
    let last = 2 * LEAF - 0x1_0000;
    spaces.map_large(LEAF + 0x1_0000, Run::new(place(2, 0x4_0000), 0x2_0000), ALL)?;
    spaces.map_large(last, Run::new(place(2, 0x8_0000), 0x1_0000), ALL)?;
    let content = Numbers(3).bytes(0x1_8000)?;
    spaces.bench.write(place(1, 0x2_0000), &content)?;
    spaces.map(0x10_0000, Run::new(place(1, 0x2_0000), 0x1_8000), READ)?;
    let mut stream = Stream::new();
    stream
        .copy(at(LEAF + 0x1_4004), at(0x10_0000), 0x1_8000 - 4)?
        .copy(at(last + 0xfff0), at(0x10_0000), 16)?;
    let mut right = run(&spaces, &context, &stream)? == Outcome::Done;
    let copied = &content[..0x1_8000 - 4];
    right &= spaces.bench.holds(place(2, 0x4_4004), copied)?;
    right &= spaces.bench.holds(place(2, 0x8_fff0), &content[..16])?;
    let mut stream = Stream::new();
    stream.copy(at(LEAF + 0x2_fff8), at(0x10_0000), 16)?;
    let behind = fault(
        0,
        LEAF + 0x3_0000,
        FaultAccess::Write,
        FaultReason::NotMapped,
    );
    right &= run(&spaces, &context, &stream)? == behind;

    // A flush of one small page inside covers the large one.
    spaces.map_large(last, Run::new(place(2, 0xa_0000), 0x1_0000), ALL)?;
    spaces.flush(FlushRange::new(GpuVirtualAddress(last + 0x3000), PAGE))?;
    let mut stream = Stream::new();
    stream.copy(at(last), at(0x10_0000), 16)?;
    right &= run(&spaces, &context, &stream)? == Outcome::Done;
    Ok(right && spaces.bench.holds(place(2, 0xa_0000), &content[..16])?)
}

/// FillVirtual and TransferVirtual do to the memory behind addresses what they say, over pages in any
/// order and of any segment.
pub(crate) fn virtual_operations_move_content(backend: &dyn Backend) -> Verdict {
    /// Pages of the scratch area.
    const PAGES: u64 = 48;

    let spaces = Spaces::new(backend)?;
    let mut numbers = Numbers(9);
    let mut memory = KVVec::from_elem(0, (PAGES * PAGE) as usize, GFP_KERNEL)?;
    for round in 0..10 {
        // Pages in a random order, in both segments.
        let mut frames = [0; PAGES as usize];
        for index in 0..PAGES {
            frames[index as usize] = index;
        }
        for index in 1..PAGES {
            frames.swap(index as usize, numbers.below(index + 1) as usize);
        }
        let frame = |page: usize| place(1 + frames[page] as u32 % 2, frames[page] * PAGE);
        let entries: [Entry; PAGES as usize] = core::array::from_fn(|page| Entry::Page {
            place: frame(page),
            rights: ALL,
        });
        for page in 0..PAGES as usize {
            let bytes = &memory[page * 4096..(page + 1) * 4096];
            spaces.bench.write(frame(page), bytes)?;
        }
        let naming = match round % 2 {
            0 => Naming::Place,
            _ => Naming::Address,
        };
        spaces.update(naming, Leaf::Scratch, SCRATCH, Entries::Each(&entries))?;
        spaces.flush_paging()?;

        let half = PAGES * PAGE / 2;
        let bytes = 4 + numbers.below(half / 4 - 1) * 4;
        let to = numbers.below((half - bytes) / 4 + 1) * 4;
        let pattern = numbers.below(1 << 32) as u32;
        model::fill(&mut memory, pattern, (to as usize, 0), bytes as usize, 1);
        spaces.bench.operate(&Operation::FillVirtual {
            pattern,
            to: GpuVirtualAddress(SCRATCH + to),
            bytes,
        })?;
        let from = numbers.below((half - bytes) / 4 + 1) * 4;
        let to = half + numbers.below((half - bytes) / 4 + 1) * 4;
        memory.copy_within(from as usize..(from + bytes) as usize, to as usize);
        spaces.bench.operate(&Operation::TransferVirtual {
            from: GpuVirtualAddress(SCRATCH + from),
            to: GpuVirtualAddress(SCRATCH + to),
            bytes,
        })?;
        for page in 0..PAGES as usize {
            let bytes = &memory[page * 4096..(page + 1) * 4096];
            if !spaces.bench.holds(frame(page), bytes)? {
                pr_err!("round {round}: page {page}\n");
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A buffer does not run in another space than the one it was built for (BCK-8), and operations by
/// address fail where nothing is mapped.
pub(crate) fn wrong_space_is_an_error(backend: &dyn Backend) -> Verdict {
    let spaces = with_commands(backend)?;
    let context = spaces.context(7, RENDER)?;
    spaces.map(0x1_0000, page(place(1, 0)), ALL)?;
    let mut stream = Stream::new();
    stream.store(abi::OP_ADD, at(0x1_0000), 1)?;
    let mut right = run(&spaces, &context, &stream)? == Outcome::Done;
    let elsewhere = Root {
        place: place(1, SEGMENT / 2),
        ..spaces.root
    };
    backend.set_root(&*context, elsewhere);
    right &= run(&spaces, &context, &stream)? == Outcome::Error { offset: 0 };
    backend.set_root(&*context, spaces.root);
    right &= run(&spaces, &context, &stream)? == Outcome::Done;
    right &= spaces.bench.holds(place(1, 0), &2u64.to_le_bytes())?;
    // No more entries than the context was told.
    let narrow = Root {
        entries: 0,
        ..spaces.root
    };
    spaces.flush(FlushRange::ALL)?;
    backend.set_root(&*context, narrow);
    let missing = fault(0, COMMANDS, FaultAccess::Fetch, FaultReason::NotMapped);
    right &= run(&spaces, &context, &stream)? == missing;
    let fill = spaces.bench.operate(&Operation::FillVirtual {
        pattern: 0,
        to: GpuVirtualAddress(SCRATCH),
        bytes: 4096,
    });
    Ok(right && fill == Err(EIO))
}
