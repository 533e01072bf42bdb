// SPDX-License-Identifier: GPL-2.0

//! The list of segments: `kind:size[:option]…`, with commas between.
//!
//! Everything that can be wrong with a segment by itself is found here; what is wrong with several of
//! them together is found by [`check`].

use kernel::prelude::*;

use super::{
    number,
    size, //
};
use crate::{
    backend::capabilities::{
        Segment,
        SegmentFlag,
        SegmentFlags,
        SegmentKind, //
    },
    units::{
        SegmentId,
        PAGE_BYTES,
        SEGMENT_IDS, //
    }, //
};

/// The other page size of memory segments (SEG-4).
const LARGE_PAGE_BYTES: u64 = 64 * 1024;

/// The smallest window of the CPU, in pages: one instruction may touch two of its source and two of
/// its destination, and needs them all at once.
const LEAST_WINDOW: u64 = 4;

/// The largest segment: what an address can name.
const LARGEST: u64 = 1 << 56;

/// One element of the list as it was written.
#[derive(Default)]
struct Options {
    /// `page`.
    page: Option<u64>,
    /// `visible`.
    visible: bool,
    /// `window`, in pages.
    window: Option<u64>,
    /// `coherent`.
    coherent: bool,
    /// `coherent-window`.
    coherent_window: bool,
    /// `contiguous`.
    contiguous: Option<u64>,
    /// `scanout`.
    scanout: bool,
    /// `budget`.
    budget: bool,
    /// `limit`.
    limit: Option<u64>,
    /// `id`.
    id: Option<u64>,
    /// `at`.
    at: Option<u64>,
}

impl Options {
    /// Reads the options of a segment.
    fn read<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self> {
        let mut options = Self::default();
        for word in words {
            match word.split_once('=') {
                Some((name, value)) => options.value(name, value)?,
                None => options.flag(word)?,
            }
        }
        Ok(options)
    }

    /// Takes an option with a value; each at most once.
    fn value(&mut self, name: &str, text: &str) -> Result {
        let (slot, value) = match name {
            "page" => (&mut self.page, size(text)?),
            "window" => (&mut self.window, number(text)?),
            "contiguous" => (&mut self.contiguous, size(text)?),
            "limit" => (&mut self.limit, size(text)?),
            "id" => (&mut self.id, number(text)?),
            "at" => (&mut self.at, size(text)?),
            _ => return Err(EINVAL),
        };
        match slot.replace(value) {
            None => Ok(()),
            Some(_) => Err(EINVAL),
        }
    }

    /// Takes an option without a value.
    fn flag(&mut self, name: &str) -> Result {
        let slot = match name {
            "visible" => &mut self.visible,
            "coherent" => &mut self.coherent,
            "coherent-window" => &mut self.coherent_window,
            "scanout" => &mut self.scanout,
            "budget" => &mut self.budget,
            _ => return Err(EINVAL),
        };
        *slot = true;
        Ok(())
    }

    /// Checks the rules for flags (SEG-27), and what only memory can have.
    fn check_flags(&self, kind: SegmentKind) -> Result {
        let memory = kind == SegmentKind::Memory;
        let wrong = self.visible && self.window.is_some()
            || self.coherent_window && self.window.is_none()
            || self.coherent && memory
            || !memory && (self.window.is_some() || self.contiguous.is_some());
        if wrong {
            Err(EINVAL)
        } else {
            Ok(())
        }
    }

    /// Returns the flags of the segment.
    fn flags(&self) -> SegmentFlags {
        let mut flags = SegmentFlags::default();
        let properties = [
            (self.visible, SegmentFlag::CpuVisible),
            (self.window.is_some(), SegmentFlag::HostAperture),
            (self.coherent, SegmentFlag::CacheCoherent),
            (self.scanout, SegmentFlag::Scanout),
            (self.budget, SegmentFlag::Budgeted),
        ];
        for (has, flag) in properties {
            if has {
                flags |= flag;
            }
        }
        flags
    }
}

/// Returns `bytes` if it is a multiple of the page size.
fn paged(bytes: u64, page_bytes: u64) -> Result<u64> {
    if bytes % page_bytes == 0 {
        Ok(bytes)
    } else {
        Err(EINVAL)
    }
}

/// Returns `bytes` if it is a multiple of the page size and not more than the `whole`.
fn part(bytes: u64, page_bytes: u64, whole: u64) -> Result<u64> {
    if bytes <= whole {
        paged(bytes, page_bytes)
    } else {
        Err(EINVAL)
    }
}

/// Returns the page size of a segment: that of the CPU, or 64 KiB in memory (SEG-4).
fn page_bytes(kind: SegmentKind, page: Option<u64>) -> Result<u64> {
    match (kind, page.unwrap_or(PAGE_BYTES)) {
        (_, PAGE_BYTES) => Ok(PAGE_BYTES),
        (SegmentKind::Memory, LARGE_PAGE_BYTES) => Ok(LARGE_PAGE_BYTES),
        _ => Err(EINVAL),
    }
}

/// Returns how much the CPU sees at once: nothing, a window smaller than the segment, or all. What is
/// smaller than [`LEAST_WINDOW`] would let a program touch the same pages for ever.
fn cpu_window(options: &Options, page_bytes: u64, bytes: u64) -> Result<u64> {
    match (options.window, options.visible) {
        (None, false) => Ok(0),
        (None, true) => Ok(bytes),
        (Some(pages), _) => match pages.checked_mul(page_bytes) {
            Some(window) if pages >= LEAST_WINDOW && window < bytes => Ok(window),
            _ => Err(EINVAL),
        },
    }
}

/// Returns the id with this number; 0 is system memory and never listed (SEG-10).
fn id(number: u64) -> Result<SegmentId> {
    u32::try_from(number)
        .ok()
        .and_then(SegmentId::new)
        .filter(|id| *id != SegmentId::SYSTEM)
        .ok_or(EINVAL)
}

/// Reads one element of the list. A segment that does not say its number has number `next_id`, one
/// that does not say its base begins at `next_base`, or at the next page.
fn segment(text: &str, next_id: u64, next_base: u64) -> Result<Segment> {
    let mut words = text.split(':');
    let kind = match words.next() {
        Some("memory") => SegmentKind::Memory,
        Some("aperture") => SegmentKind::Aperture,
        _ => return Err(EINVAL),
    };
    let bytes = size(words.next().ok_or(EINVAL)?)?;
    let options = Options::read(words)?;
    options.check_flags(kind)?;
    let page_bytes = page_bytes(kind, options.page)?;
    let base = match options.at {
        Some(base) => base,
        None => next_base
            .checked_next_multiple_of(page_bytes)
            .ok_or(EINVAL)?,
    };
    let limit = options.limit.unwrap_or(bytes);
    if bytes == 0 || bytes > LARGEST || limit == 0 {
        return Err(EINVAL);
    }
    Ok(Segment {
        id: id(options.id.unwrap_or(next_id))?,
        kind,
        flags: options.flags(),
        base: paged(base, page_bytes)?,
        bytes: paged(bytes, page_bytes)?,
        commit_limit: part(limit, page_bytes, bytes)?,
        cpu_window: cpu_window(&options, page_bytes, bytes)?,
        page_bytes,
        contiguous: part(options.contiguous.unwrap_or(0), page_bytes, bytes)?,
    })
}

/// Reads the list and returns the segments by ascending id.
///
/// # Errors
///
/// - `EINVAL`: it breaks a rule.
/// - `ENOMEM`: no memory.
pub(super) fn read(text: &str) -> Result<KVec<Segment>> {
    let mut segments = KVec::new();
    let (mut next_id, mut next_base) = (1, 0);
    for element in text.split(',') {
        let segment = segment(element, next_id, next_base)?;
        next_id += 1;
        next_base = segment.base.checked_add(segment.bytes).ok_or(EINVAL)?;
        if segments.len() == SEGMENT_IDS {
            return Err(EINVAL);
        }
        segments.push(segment, GFP_KERNEL)?;
    }
    let segments = by_id(segments)?;
    check(&segments)?;
    Ok(segments)
}

/// Returns the segments in the order of their ids, which count from 1 without gaps.
fn by_id(segments: KVec<Segment>) -> Result<KVec<Segment>> {
    let mut sorted = KVec::with_capacity(segments.len(), GFP_KERNEL)?;
    for (id, _) in (1u32..).zip(&segments) {
        let mut named = segments.iter().filter(|segment| segment.id.get() == id);
        match (named.next(), named.next()) {
            (Some(segment), None) => sorted.push(segment.clone(), GFP_KERNEL)?,
            _ => return Err(EINVAL),
        }
    }
    Ok(sorted)
}

/// Checks the rules for segments together: ranges do not overlap (SEG-1), and there is exactly one
/// aperture (SEG-8).
fn check(segments: &[Segment]) -> Result {
    let apart = |a: &Segment, b: &Segment| {
        a.id == b.id || a.base + a.bytes <= b.base || b.base + b.bytes <= a.base
    };
    let disjoint = segments
        .iter()
        .all(|a| segments.iter().all(|b| apart(a, b)));
    let apertures = segments
        .iter()
        .filter(|segment| segment.kind == SegmentKind::Aperture)
        .count();
    if disjoint && apertures == 1 {
        Ok(())
    } else {
        Err(EINVAL)
    }
}
