// SPDX-License-Identifier: GPL-2.0

//! The memory behind the segments.
//!
//! A memory segment is made of pages of the host, taken once when the engine is set up: at the
//! lowest offsets one block of the contiguous area, behind it blocks of pages of the largest orders
//! that can be had. The aperture is made of no memory: it shows pages of others
//! ([`Aperture`]). System memory is addressed directly.
//!
//! Whoever wants to touch a range asks for one [`Stretch`] after the other: the part of the range,
//! from its start on, that is adjacent in the host's memory. Stretches are long, so ranges are
//! worked on at the speed of the host's own `memset` and `memmove`.

use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use super::{
    aperture::Aperture,
    host_aperture::HostAperture, //
};
use crate::{
    abstractions::{
        memory::Window,
        pages::{
            Charge,
            ContiguousBlock,
            Frame,
            PageBlock, //
        }, //
    },
    backend::{
        capabilities::{
            Segment,
            SegmentFlag,
            SegmentKind, //
        },
        Frames, //
    },
    units::{
        Place,
        SegmentId,
        PAGE_BYTES,
        SEGMENT_IDS, //
    }, //
};

/// A part of a range that is adjacent in the host's memory.
#[derive(Clone, Copy)]
pub(super) enum Stretch {
    /// Memory.
    Memory(Window),
    /// So many bytes of the dummy page: they read as zero and swallow what is written (SEG-31).
    Dummy(usize),
}

impl Stretch {
    /// Returns how long it is; never zero.
    pub(super) const fn len(&self) -> usize {
        match self {
            Stretch::Memory(window) => window.len(),
            Stretch::Dummy(bytes) => *bytes,
        }
    }

    /// Returns its first `bytes` bytes, or all if there are fewer.
    pub(super) fn first(self, bytes: usize) -> Self {
        match self {
            Stretch::Memory(window) => Stretch::Memory(window.sub(0, bytes).unwrap_or(window)),
            Stretch::Dummy(length) => Stretch::Dummy(length.min(bytes)),
        }
    }

    /// Returns its last `bytes` bytes, or all if there are fewer.
    pub(super) fn last(self, bytes: usize) -> Self {
        match self {
            Stretch::Memory(window) => {
                let start = window.len().saturating_sub(bytes);
                Stretch::Memory(window.sub(start, bytes).unwrap_or(window))
            }
            Stretch::Dummy(length) => Stretch::Dummy(length.min(bytes)),
        }
    }
}

/// All memory that addresses can reach.
pub(super) struct Memory {
    /// What is behind each segment, by id. System memory has no entry.
    segments: [Option<Backing>; SEGMENT_IDS],
    /// Accesses to the dummy page.
    dummy_hits: Atomic<u64>,
}

/// What is behind one segment.
enum Backing {
    /// Memory of its own.
    Pages(Pages),
    /// Pages of others.
    Aperture(Aperture),
}

impl Memory {
    /// Takes the memory of `segments`, zeroed. Writes down how much of each is contiguous, which is
    /// less than asked for when the contiguous area is too small; this is said once.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: not even single pages are left.
    pub(super) fn new(segments: &mut [Segment]) -> Result<Self> {
        let mut memory = Self {
            segments: [const { None }; SEGMENT_IDS],
            dummy_hits: Atomic::new(0),
        };
        let mut missing = 0;
        for segment in segments {
            let backing = match segment.kind {
                SegmentKind::Memory => {
                    let pages = Pages::new(segment)?;
                    missing += segment.contiguous.saturating_sub(pages.contiguous());
                    segment.contiguous = pages.contiguous();
                    Backing::Pages(pages)
                }
                SegmentKind::Aperture => Backing::Aperture(Aperture::new(segment.bytes)?),
            };
            if let Some(slot) = memory.segments.get_mut(segment.id.index()) {
                *slot = Some(backing);
            }
        }
        if missing > 0 {
            pr_notice!(
                "the contiguous area is {} KiB too small: segments have a smaller contiguous part (see cma=)\n",
                missing / 1024
            );
        }
        Ok(memory)
    }

    /// Returns what is behind a segment.
    fn backing(&self, segment: SegmentId) -> Option<&Backing> {
        self.segments.get(segment.index())?.as_ref()
    }

    /// Returns the aperture, if `segment` is one.
    pub(super) fn aperture(&self, segment: SegmentId) -> Option<&Aperture> {
        match self.backing(segment)? {
            Backing::Aperture(aperture) => Some(aperture),
            Backing::Pages(_) => None,
        }
    }

    /// Returns whether `bytes` bytes at `place` lie inside their segment. System memory has no
    /// bounds of its own.
    pub(super) fn contains(&self, place: Place, bytes: u64) -> bool {
        let Some(end) = place.offset.checked_add(bytes) else {
            return false;
        };
        match self.backing(place.segment) {
            Some(Backing::Pages(pages)) => end <= pages.bytes,
            Some(Backing::Aperture(aperture)) => end <= aperture.bytes(),
            None => place.segment == SegmentId::SYSTEM,
        }
    }

    /// Returns the stretch at the start of `limit` bytes, at least one, at `place`.
    pub(super) fn stretch(&self, place: Place, limit: u64) -> Option<Stretch> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        let limit = limit as usize;
        match self.backing(place.segment) {
            Some(Backing::Pages(pages)) => pages.view(place.offset, limit).map(Stretch::Memory),
            Some(Backing::Aperture(aperture)) => {
                Some(self.counted(aperture.stretch(place.offset, limit)?))
            }
            None => Self::system(place, limit),
        }
    }

    /// Returns the stretch at the end of `limit` bytes, at least one, before `end`.
    pub(super) fn stretch_before(&self, end: Place, limit: u64) -> Option<Stretch> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        let limit = limit as usize;
        match self.backing(end.segment) {
            Some(Backing::Pages(pages)) => {
                pages.view_before(end.offset, limit).map(Stretch::Memory)
            }
            Some(Backing::Aperture(aperture)) => {
                Some(self.counted(aperture.stretch_before(end.offset, limit)?))
            }
            None => {
                // CAST: as above.
                let start = end.offset.checked_sub(limit as u64)?;
                Self::system(Place::new(end.segment, start), limit)
            }
        }
    }

    /// Returns directly addressed memory.
    fn system(place: Place, limit: usize) -> Option<Stretch> {
        (place.segment == SegmentId::SYSTEM)
            .then(|| Window::physical(place.offset, limit))?
            .map(Stretch::Memory)
    }

    /// Counts `stretch` if it belongs to the dummy page.
    fn counted(&self, stretch: Stretch) -> Stretch {
        if let Stretch::Dummy(_) = stretch {
            self.dummy_hits.fetch_add(1u64, Relaxed);
        }
        stretch
    }

    /// Returns how often the dummy page was met.
    pub(super) fn dummy_hits(&self) -> u64 {
        self.dummy_hits.load(Relaxed)
    }

    /// Returns the page frames that start at `place`; only memory segments have their own.
    pub(super) fn frames(&self, place: Place) -> Option<Frames> {
        match self.backing(place.segment)? {
            Backing::Pages(pages) => pages.frames(place.offset),
            Backing::Aperture(_) => None,
        }
    }

    /// Returns the window through which the CPU sees a segment.
    pub(super) fn window(&self, segment: SegmentId) -> Option<&HostAperture> {
        match self.backing(segment)? {
            Backing::Pages(pages) => pages.window.as_ref(),
            Backing::Aperture(_) => None,
        }
    }

    /// Returns the page frames behind the byte `offset` of a page of a window, and after it.
    pub(super) fn window_frames(
        &self,
        segment: SegmentId,
        page: u32,
        offset: u64,
    ) -> Option<Frames> {
        let window = self.window(segment)?;
        let frames = self.frames(Place::new(segment, window.locate(page, offset)?))?;
        Some(Frames {
            count: frames.count.min(window.rest(offset).div_ceil(PAGE_BYTES)),
            ..frames
        })
    }
}

/// The memory of one segment.
struct Pages {
    /// Its parts, by ascending offset, without gaps.
    parts: KVVec<Part>,
    /// The sum of their lengths.
    bytes: u64,
    /// The window through which the CPU sees it, unless it sees all or nothing.
    window: Option<HostAperture>,
}

/// A block of memory at its place in a segment.
struct Part {
    /// Offset of its first byte.
    start: u64,
    /// The view of it; does not outlive `block`.
    window: Window,
    /// The memory.
    block: Block,
}

/// Memory of the host.
enum Block {
    /// From the contiguous area.
    Contiguous(ContiguousBlock),
    /// Ordinary pages.
    Pages(PageBlock),
}

impl Block {
    /// Returns the view of it.
    fn window(&self) -> Window {
        match self {
            Block::Contiguous(block) => block.window(),
            Block::Pages(block) => block.window(),
        }
    }

    /// Returns the first page.
    const fn frame(&self) -> Frame {
        match self {
            Block::Contiguous(block) => block.frame(),
            Block::Pages(block) => block.frame(),
        }
    }
}

impl Pages {
    /// Takes the memory of `segment`.
    fn new(segment: &Segment) -> Result<Self> {
        let mut pages = Self {
            parts: KVVec::new(),
            bytes: 0,
            window: None,
        };
        if segment.flags.contains(SegmentFlag::HostAperture) {
            pages.window = Some(HostAperture::new(segment)?);
        }
        if let Some(block) = contiguous(segment.contiguous, segment.page_bytes) {
            // Unlike ordinary pages these hold what they held before.
            block.window().zero();
            pages.append(Block::Contiguous(block))?;
        }
        let mut order = PageBlock::MAX_ORDER;
        while pages.bytes < segment.bytes {
            let left = (segment.bytes - pages.bytes) / PAGE_BYTES;
            order = order.min(left.checked_ilog2().ok_or(EINVAL)?);
            match PageBlock::new(order, Charge::Driver) {
                Ok(block) => pages.append(Block::Pages(block))?,
                Err(error) => order = order.checked_sub(1).ok_or(error)?,
            }
        }
        Ok(pages)
    }

    /// Puts `block` behind what is there.
    fn append(&mut self, block: Block) -> Result {
        let part = Part {
            start: self.bytes,
            window: block.window(),
            block,
        };
        // CAST: `usize` has 64 bits wherever this driver runs.
        self.bytes += part.window.len() as u64;
        Ok(self.parts.push(part, GFP_KERNEL)?)
    }

    /// Returns how many bytes at the start have adjacent frames.
    fn contiguous(&self) -> u64 {
        match self.parts.first() {
            Some(Part {
                block: Block::Contiguous(block),
                ..
            }) => block.bytes(),
            _ => 0,
        }
    }

    /// Returns the part that holds the byte at `offset`, and where in it.
    fn part(&self, offset: u64) -> Option<(&Part, usize)> {
        let behind = self.parts.partition_point(|part| part.start <= offset);
        let part = self.parts.get(behind.checked_sub(1)?)?;
        // CAST: `usize` has 64 bits wherever this driver runs.
        let inside = (offset - part.start) as usize;
        (inside < part.window.len()).then_some((part, inside))
    }

    /// Returns at most `limit` adjacent bytes from `offset` on.
    fn view(&self, offset: u64, limit: usize) -> Option<Window> {
        let (part, inside) = self.part(offset)?;
        part.window
            .sub(inside, limit.min(part.window.len() - inside))
    }

    /// Returns at most `limit` adjacent bytes that end at `end`.
    fn view_before(&self, end: u64, limit: usize) -> Option<Window> {
        let (part, inside) = self.part(end.checked_sub(1)?)?;
        let bytes = limit.min(inside + 1);
        part.window.sub(inside + 1 - bytes, bytes)
    }

    /// Returns the adjacent page frames from `offset` on.
    fn frames(&self, offset: u64) -> Option<Frames> {
        let (part, inside) = self.part(offset)?;
        // CAST: `usize` has 64 bits wherever this driver runs.
        let skipped = inside as u64 / PAGE_BYTES;
        // CAST: as above.
        let pages = part.window.len() as u64 / PAGE_BYTES;
        Some(Frames {
            first: part.block.frame().forward(skipped),
            count: pages - skipped,
        })
    }
}

/// Returns the largest block of the contiguous area that can be had, at most `bytes` bytes and a
/// multiple of `unit`.
fn contiguous(bytes: u64, unit: u64) -> Option<ContiguousBlock> {
    /// The step in which the largest size is searched.
    const STEP: u64 = 1 << 20;

    let take = |bytes: u64| ContiguousBlock::new(bytes / PAGE_BYTES).ok();
    if let Some(block) = take(bytes) {
        return Some(block);
    }
    // The size that can be had lies at or above `low` and below `high`, in steps.
    let step = unit.max(STEP);
    let (mut low, mut high) = (0, bytes.div_ceil(step));
    while high.saturating_sub(low) > 1 {
        let middle = low.midpoint(high);
        match take(middle * step) {
            Some(_) => low = middle,
            None => high = middle,
        }
    }
    take(low * step)
}
