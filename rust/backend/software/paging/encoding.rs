// SPDX-License-Identifier: GPL-2.0

//! How paging operations stand in a buffer.
//!
//! A packet carries whole runs, so its length does not depend on how many pages they have. An
//! operation that does not fit in what is left of a buffer is continued in the next one (PAG-17):
//! each packet covers a part of the operation, in ascending order.

use crate::{
    backend::{
        address::{
            address,
            place,
            wide, //
        },
        operation::{
            FlushRange,
            Full,
            Name,
            Operation,
            Progress, //
        },
        page_table::{
            span,
            Entries,
            Entry,
            Phase,
            Update, //
        },
        software::page_table,
        Commands, //
    },
    uapi::abi::engine as abi,
    units::{
        GpuVirtualAddress,
        PageSize,
        Place,
        Run, //
    }, //
};

/// Opcode of Fill: pattern, number of runs, 0; runs.
const FILL: u32 = 0x40;
/// Opcode of Transfer: 0, numbers of destination and source runs; destination runs, source runs.
const TRANSFER: u32 = 0x41;
/// Opcode of Discard: 0, number of runs, 0; runs.
const DISCARD: u32 = 0x42;
/// Opcode of FillVirtual: pattern; address, bytes.
const FILL_VIRTUAL: u32 = 0x43;
/// Opcode of TransferVirtual: 0; destination, source, bytes.
const TRANSFER_VIRTUAL: u32 = 0x44;
/// Opcode of UpdatePageTable: level and flags, count, first index; table, address, root; entries.
const UPDATE_PAGE_TABLE: u32 = 0x45;
/// Opcode of FlushTLB: 0; root, start, end.
const FLUSH_TLB: u32 = 0x46;
/// Opcode of MapAperture: 0, number of runs, 0, place in the aperture; runs of system memory.
const MAP_APERTURE: u32 = 0x48;
/// Opcode of UnmapAperture: 0, place in the aperture, bytes.
const UNMAP_APERTURE: u32 = 0x49;

/// Dwords in front of the runs of Fill, Transfer and Discard.
const LIST_DWORDS: usize = 4;
/// Dwords in front of the runs of MapAperture.
const MAP_DWORDS: usize = 6;
/// Dwords of UnmapAperture.
const UNMAP_DWORDS: usize = 6;
/// Dwords in front of the entries of UpdatePageTable.
const UPDATE_DWORDS: usize = 10;
/// Dwords of one entry of a page table.
const ENTRY_DWORDS: usize = 2;
/// Dwords of one run.
const RUN_DWORDS: usize = 4;

/// UpdatePageTable: the level.
const UPDATE_LEVEL: u32 = 0xff;
/// UpdatePageTable: one entry for all.
const UPDATE_REPEAT: u32 = 1 << 8;
/// UpdatePageTable: one entry, each further one names the page behind.
const UPDATE_RUN: u32 = 1 << 9;
/// UpdatePageTable: the table is new.
const UPDATE_INITIALISE: u32 = 1 << 10;
/// UpdatePageTable: the table is named by its place.
const UPDATE_PLACE: u32 = 1 << 12;
/// UpdatePageTable: pages of the leaf are large.
const UPDATE_LARGE: u32 = 1 << 13;

/// The smallest paging buffer in which every operation makes progress.
pub(in crate::backend::software) const SMALLEST_BUFFER: usize = 4 * (LIST_DWORDS + 2 * RUN_DWORDS);

/// Appends the rest of `operation`; see [`Backend::build`](crate::backend::Backend::build).
pub(in crate::backend) fn build(
    commands: &mut Commands,
    operation: &Operation<'_>,
    progress: &mut Progress,
) -> Result<(), Full> {
    let left = operation.steps().saturating_sub(progress.0);
    if left == 0 {
        return Ok(());
    }
    let room = commands.room().min(abi::PACKET_DWORDS_MAX);
    let done = progress.0;
    let built = match *operation {
        Operation::Fill { pattern, to } => build_list(commands, FILL, pattern, to, done, room)?,
        Operation::Discard { what } => build_list(commands, DISCARD, 0, what, done, room)?,
        Operation::Transfer { from, to } => build_transfer(commands, from, to, done, room)?,
        Operation::FillVirtual { pattern, to, bytes } => {
            build_fixed(commands, room, FILL_VIRTUAL, pattern, [to.0, bytes])?;
            bytes
        }
        Operation::TransferVirtual { from, to, bytes } => {
            build_fixed(commands, room, TRANSFER_VIRTUAL, 0, [to.0, from.0, bytes])?;
            bytes
        }
        Operation::UpdatePageTable(update) => build_update(commands, &update, done, room)?,
        Operation::FlushTlb { root, range } => {
            let operands = [address(root), range.start.0, range.end.0];
            build_fixed(commands, room, FLUSH_TLB, 0, operands)?;
            1
        }
        Operation::MapAperture { at, pages } => build_map(commands, at, pages, done, room)?,
        Operation::UnmapAperture { at, bytes } => build_unmap(commands, at, bytes, room)?,
    };
    progress.0 = done.saturating_add(built);
    if built < left {
        Err(Full)
    } else {
        Ok(())
    }
}

/// Appends the header of a packet.
fn header(commands: &mut Commands, opcode: u32, dwords: usize) -> Result<(), Full> {
    // CAST: at most the length of the longest packet, 16 bits.
    commands.push((dwords as u32) << abi::HEADER_LENGTH_SHIFT | opcode)
}

/// Appends an address.
fn push_place(commands: &mut Commands, place: Place) -> Result<(), Full> {
    commands.push64(address(place))
}

/// Appends runs.
fn push_runs(commands: &mut Commands, runs: impl Iterator<Item = Run>) -> Result<(), Full> {
    for run in runs {
        push_place(commands, run.place)?;
        commands.push64(run.bytes)?;
    }
    Ok(())
}

/// Returns how many runs have room behind `front` dwords.
fn runs_in(room: usize, front: usize) -> Result<usize, Full> {
    match room.saturating_sub(front) / RUN_DWORDS {
        0 => Err(Full),
        runs => Ok(runs),
    }
}

/// Appends a number of runs.
fn push_count(commands: &mut Commands, runs: usize) -> Result<(), Full> {
    // CAST: no more than what fits in a packet.
    commands.push(runs as u32)
}

/// Appends Fill or Discard; returns the bytes covered.
fn build_list(
    commands: &mut Commands,
    opcode: u32,
    pattern: u32,
    runs: &[Run],
    done: u64,
    room: usize,
) -> Result<u64, Full> {
    let part = clip(runs, done, u64::MAX).take(runs_in(room, LIST_DWORDS)?);
    let count = part.clone().count();
    header(commands, opcode, LIST_DWORDS + count * RUN_DWORDS)?;
    commands.push(pattern)?;
    push_count(commands, count)?;
    commands.push(0)?;
    push_runs(commands, part.clone())?;
    Ok(part.map(|run| run.bytes).sum())
}

/// Appends Transfer; returns the bytes covered.
fn build_transfer(
    commands: &mut Commands,
    from: &[Run],
    to: &[Run],
    done: u64,
    room: usize,
) -> Result<u64, Full> {
    let runs = runs_in(room, LIST_DWORDS)?;
    let bytes = common(clip(to, done, u64::MAX), clip(from, done, u64::MAX), runs);
    if bytes == 0 {
        return Err(Full);
    }
    let (to, from) = (clip(to, done, bytes), clip(from, done, bytes));
    let (targets, sources) = (to.clone().count(), from.clone().count());
    header(
        commands,
        TRANSFER,
        LIST_DWORDS + (targets + sources) * RUN_DWORDS,
    )?;
    commands.push(0)?;
    push_count(commands, targets)?;
    push_count(commands, sources)?;
    push_runs(commands, to)?;
    push_runs(commands, from)?;
    Ok(bytes)
}

/// Appends MapAperture; returns the bytes covered.
fn build_map(
    commands: &mut Commands,
    at: Place,
    pages: &[Run],
    done: u64,
    room: usize,
) -> Result<u64, Full> {
    let part = clip(pages, done, u64::MAX).take(runs_in(room, MAP_DWORDS)?);
    let count = part.clone().count();
    header(commands, MAP_APERTURE, MAP_DWORDS + count * RUN_DWORDS)?;
    commands.push(0)?;
    push_count(commands, count)?;
    commands.push(0)?;
    push_place(commands, at.forward(done))?;
    push_runs(commands, part.clone())?;
    Ok(part.map(|run| run.bytes).sum())
}

/// Appends UnmapAperture; returns the bytes covered.
fn build_unmap(commands: &mut Commands, at: Place, bytes: u64, room: usize) -> Result<u64, Full> {
    if room < UNMAP_DWORDS {
        return Err(Full);
    }
    header(commands, UNMAP_APERTURE, UNMAP_DWORDS)?;
    commands.push(0)?;
    push_place(commands, at)?;
    commands.push64(bytes)?;
    Ok(bytes)
}

/// Appends a packet whose operands behind the first are a fixed number of 64-bit values.
fn build_fixed<const N: usize>(
    commands: &mut Commands,
    room: usize,
    opcode: u32,
    first: u32,
    operands: [u64; N],
) -> Result<(), Full> {
    let dwords = 2 + 2 * N;
    if room < dwords {
        return Err(Full);
    }
    header(commands, opcode, dwords)?;
    commands.push(first)?;
    operands
        .into_iter()
        .try_for_each(|operand| commands.push64(operand))
}

/// Appends UpdatePageTable; returns the entries covered. Entries that follow from the first one take
/// no room of their own.
fn build_update(
    commands: &mut Commands,
    update: &Update<'_>,
    done: u64,
    room: usize,
) -> Result<u64, Full> {
    let left = update.count().saturating_sub(done);
    let (pattern, count, listed) = match update.entries {
        Entries::Repeat { .. } => (UPDATE_REPEAT, left, 1),
        Entries::Pages { runs, .. } if is_adjacent(runs) => (UPDATE_RUN, left, 1),
        Entries::Pages { .. } | Entries::Each(_) => {
            // CAST: `usize` has 64 bits wherever this driver runs.
            let fitting = (room.saturating_sub(UPDATE_DWORDS) / ENTRY_DWORDS) as u64;
            (0, left.min(fitting), left.min(fitting))
        }
    };
    // CAST: at most the length of a packet.
    let dwords = UPDATE_DWORDS + listed as usize * ENTRY_DWORDS;
    if count == 0 || room < dwords {
        return Err(Full);
    }
    header(commands, UPDATE_PAGE_TABLE, dwords)?;
    commands.push(pattern | update_flags(update))?;
    // CAST: no table has so many entries.
    commands.push(count as u32)?;
    // CAST: as above.
    commands.push(update.first.wrapping_add(done as u32))?;
    commands.push64(match update.table.window {
        Some(window) => window.0,
        None => address(update.table.place),
    })?;
    commands.push64(update.address.forward(done.saturating_mul(update.span())).0)?;
    push_place(commands, update.root)?;
    for index in done..done.saturating_add(listed) {
        let entry = update.entry(index).unwrap_or(Entry::Invalid);
        commands.push64(page_table::encode(entry))?;
    }
    Ok(count)
}

/// Returns whether each of the runs begins where the one before it ends.
fn is_adjacent(runs: &[Run]) -> bool {
    runs.iter()
        .zip(runs.iter().skip(1))
        .all(|(run, next)| run.place.forward(run.bytes) == next.place)
}

/// Returns level and flags of a packet that carries `update`.
fn update_flags(update: &Update<'_>) -> u32 {
    let phase = match update.phase {
        Phase::Initialise => UPDATE_INITIALISE,
        Phase::Normal => 0,
    };
    let table = match update.table.window {
        Some(_) => 0,
        None => UPDATE_PLACE,
    };
    let page = match update.page {
        PageSize::Small => 0,
        PageSize::Large => UPDATE_LARGE,
    };
    update.level & UPDATE_LEVEL | phase | table | page
}

/// Returns the runs that cover `bytes` bytes, or as many as there are, after `skip` bytes.
fn clip(runs: &[Run], skip: u64, bytes: u64) -> impl Iterator<Item = Run> + Clone + '_ {
    let (mut skip, mut left) = (skip, bytes);
    runs.iter().filter_map(move |run| {
        let skipped = skip.min(run.bytes);
        skip -= skipped;
        let bytes = (run.bytes - skipped).min(left);
        left -= bytes;
        (bytes > 0).then(|| Run::new(run.place.forward(skipped), bytes))
    })
}

/// Returns how many bytes of both lists at most `runs` runs cover together.
fn common(
    mut to: impl Iterator<Item = Run>,
    mut from: impl Iterator<Item = Run>,
    runs: usize,
) -> u64 {
    let (mut used, mut covered) = (0, 0);
    let (mut target, mut source) = (0, 0);
    loop {
        if target == 0 {
            target = to.next().map_or(0, |run| run.bytes);
            used += 1;
        }
        if source == 0 {
            source = from.next().map_or(0, |run| run.bytes);
            used += 1;
        }
        let bytes = target.min(source);
        if bytes == 0 || used > runs {
            return covered;
        }
        covered += bytes;
        target -= bytes;
        source -= bytes;
    }
}

/// A paging operation as it stands in a packet.
#[derive(Clone, Copy)]
pub(super) enum Encoded<'a> {
    /// Fill with a pattern.
    Fill(u32, Runs<'a>),
    /// Transfer to the first list from the second.
    Transfer(Runs<'a>, Runs<'a>),
    /// Discard.
    Discard(Runs<'a>),
    /// FillVirtual with a pattern: address and bytes.
    FillVirtual(u32, GpuVirtualAddress, u64),
    /// TransferVirtual: destination, source and bytes.
    TransferVirtual(GpuVirtualAddress, GpuVirtualAddress, u64),
    /// UpdatePageTable.
    UpdatePageTable(EncodedUpdate<'a>),
    /// FlushTLB of the space with this root.
    FlushTlb(Place, FlushRange),
    /// MapAperture at a place.
    MapAperture(Place, Runs<'a>),
    /// UnmapAperture at a place.
    UnmapAperture(Place, u64),
}

/// Runs as they stand in a packet.
#[derive(Clone, Copy)]
pub(super) struct Runs<'a>(&'a [u32]);

impl<'a> Runs<'a> {
    /// Cuts `count` runs from the front of `words`.
    fn cut(words: &'a [u32], count: u32) -> Option<(Self, &'a [u32])> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        let (runs, rest) = words.split_at_checked((count as usize).checked_mul(RUN_DWORDS)?)?;
        Some((Self(runs), rest))
    }

    /// Returns `count` runs that are all of `words`.
    fn whole(words: &'a [u32], count: u32) -> Option<Self> {
        match Self::cut(words, count)? {
            (runs, []) => Some(runs),
            _ => None,
        }
    }

    /// Returns the runs; one whose segment cannot exist has no place anywhere.
    pub(super) fn iter(self) -> impl Iterator<Item = Run> + Clone + 'a {
        self.0.chunks_exact(RUN_DWORDS).map_while(|words| {
            let &[low, high, bytes_low, bytes_high] = words else {
                return None;
            };
            let at = place(wide(low, high))?;
            Some(Run::new(at, wide(bytes_low, bytes_high)))
        })
    }
}

/// Where a table is written.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// By place.
    Place(Place),
    /// By address.
    Window(GpuVirtualAddress),
}

/// UpdatePageTable as it stands in a packet.
#[derive(Clone, Copy)]
pub(super) struct EncodedUpdate<'a> {
    /// The table.
    pub(super) target: Target,
    /// Index of the first entry.
    pub(super) first: u32,
    /// How many entries are written.
    pub(super) count: u32,
    flags: u32,
    entries: &'a [u32],
}

impl<'a> EncodedUpdate<'a> {
    /// Returns what the operands of a packet say.
    fn decode(flags: u32, count: u32, first: u32, rest: &'a [u32]) -> Option<Self> {
        // The address that is translated first, and the root, are for the trace of a capture.
        let &[low, high, _, _, _, _, ref entries @ ..] = rest else {
            return None;
        };
        let listed = if flags & (UPDATE_REPEAT | UPDATE_RUN) == 0 {
            count
        } else {
            1
        };
        // CAST: `usize` has 64 bits wherever this driver runs.
        if entries.len() != (listed as usize).checked_mul(ENTRY_DWORDS)? {
            return None;
        }
        let target = if flags & UPDATE_PLACE == 0 {
            Target::Window(GpuVirtualAddress(wide(low, high)))
        } else {
            Target::Place(place(wide(low, high))?)
        };
        Some(Self {
            target,
            first,
            count,
            flags,
            entries,
        })
    }

    /// Returns what is written for the entry number `index`.
    pub(super) fn word(&self, index: u32) -> Option<u64> {
        let listed = if self.flags & (UPDATE_REPEAT | UPDATE_RUN) == 0 {
            index
        } else {
            0
        };
        // CAST: `usize` has 64 bits wherever this driver runs.
        let at = (listed as usize).checked_mul(ENTRY_DWORDS)?;
        let word = wide(*self.entries.get(at)?, *self.entries.get(at + 1)?);
        let step = if self.flags & UPDATE_RUN == 0 {
            0
        } else {
            self.page().bytes()
        };
        Some(word.wrapping_add(u64::from(index).wrapping_mul(step)))
    }

    /// Returns the pages of the entries.
    const fn page(&self) -> PageSize {
        if self.flags & UPDATE_LARGE == 0 {
            PageSize::Small
        } else {
            PageSize::Large
        }
    }

    /// Returns how many bytes of addresses the entries cover.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.count).saturating_mul(span(self.flags & UPDATE_LEVEL, self.page()))
    }
}

impl<'a> Encoded<'a> {
    /// Returns what `packet` says.
    pub(super) fn decode(packet: &'a [u32]) -> Option<Self> {
        let &[header, first, second, third, ref rest @ ..] = packet else {
            return None;
        };
        match header & abi::HEADER_OPCODE_MASK {
            FILL => Some(Encoded::Fill(first, Runs::whole(rest, second)?)),
            TRANSFER => {
                let (to, rest) = Runs::cut(rest, second)?;
                Some(Encoded::Transfer(to, Runs::whole(rest, third)?))
            }
            DISCARD => Some(Encoded::Discard(Runs::whole(rest, second)?)),
            FILL_VIRTUAL => {
                let &[low, high] = rest else {
                    return None;
                };
                let to = GpuVirtualAddress(wide(second, third));
                Some(Encoded::FillVirtual(first, to, wide(low, high)))
            }
            TRANSFER_VIRTUAL => {
                let &[from_low, from_high, low, high] = rest else {
                    return None;
                };
                let to = GpuVirtualAddress(wide(second, third));
                let from = GpuVirtualAddress(wide(from_low, from_high));
                Some(Encoded::TransferVirtual(to, from, wide(low, high)))
            }
            UPDATE_PAGE_TABLE => {
                let update = EncodedUpdate::decode(first, second, third, rest)?;
                Some(Encoded::UpdatePageTable(update))
            }
            FLUSH_TLB => {
                let &[start_low, start_high, end_low, end_high] = rest else {
                    return None;
                };
                let range = FlushRange {
                    start: GpuVirtualAddress(wide(start_low, start_high)),
                    end: GpuVirtualAddress(wide(end_low, end_high)),
                };
                Some(Encoded::FlushTlb(place(wide(second, third))?, range))
            }
            MAP_APERTURE => {
                let &[low, high, ref rest @ ..] = rest else {
                    return None;
                };
                let at = place(wide(low, high))?;
                Some(Encoded::MapAperture(at, Runs::whole(rest, second)?))
            }
            UNMAP_APERTURE => {
                let &[low, high] = rest else {
                    return None;
                };
                let at = place(wide(second, third))?;
                Some(Encoded::UnmapAperture(at, wide(low, high)))
            }
            _ => None,
        }
    }

    /// Returns which operation it is.
    pub(super) const fn name(&self) -> Name {
        match self {
            Encoded::Fill(..) => Name::Fill,
            Encoded::Transfer(..) => Name::Transfer,
            Encoded::Discard(..) => Name::Discard,
            Encoded::FillVirtual(..) => Name::FillVirtual,
            Encoded::TransferVirtual(..) => Name::TransferVirtual,
            Encoded::UpdatePageTable(..) => Name::UpdatePageTable,
            Encoded::FlushTlb(..) => Name::FlushTlb,
            Encoded::MapAperture(..) => Name::MapAperture,
            Encoded::UnmapAperture(..) => Name::UnmapAperture,
        }
    }
}
