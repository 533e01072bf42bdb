// SPDX-License-Identifier: GPL-2.0

//! What never leaves its place, in sums.
//!
//! Displayed primaries and placed PINNED allocations neither move nor leave, whoever needs the room.
//! MAKE_RESIDENT has to know how much of each segment they take (RES-13, RES-18), without looking at each
//! of them. So there is a sum for the adapter, and one for each device of what is on its own residency
//! requirement list, which its demands count already.
//!
//! Sums follow each allocation under its `Allocation::residence`; each is a number of its own.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

use crate::{
    object::{
        allocation::Allocation,
        device::Device,
        residence::{
            Location,
            Residence, //
        },
        segment::Contiguity,
    },
    policy::residency::Capacity,
    units::{
        SegmentId,
        SEGMENT_IDS, //
    },
};

/// Bytes that are fixed, by segment.
pub(crate) struct Fixed([Sums; SEGMENT_IDS]);

/// Bytes that are fixed in one segment.
struct Sums {
    /// All of them.
    all: Atomic<i64>,
    /// Those of allocations in one run.
    contiguous: Atomic<i64>,
}

/// Where an allocation is counted as fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    segment: SegmentId,
    listing: Listing,
}

/// Whether an allocation is on the residency requirement list of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listing {
    Listed,
    Unlisted,
}

impl Fixed {
    /// Returns sums of nothing.
    pub(super) fn new() -> Self {
        Self(
            [const {
                Sums {
                    all: Atomic::new(0),
                    contiguous: Atomic::new(0),
                }
            }; SEGMENT_IDS],
        )
    }

    fn change(&self, segment: SegmentId, contiguity: Contiguity, bytes: i64) {
        if let Some(sums) = self.0.get(segment.index()) {
            sums.all.add(bytes, Relaxed);
            if contiguity == Contiguity::Contiguous {
                sums.contiguous.add(bytes, Relaxed);
            }
        }
    }

    /// Returns what is fixed in a segment beyond what `device` counts among its demands.
    pub(super) fn beside(&self, device: &Device, segment: SegmentId) -> Capacity {
        let zero = Capacity::default();
        let (Some(sums), Some(own)) = (
            self.0.get(segment.index()),
            device.fixed().0.get(segment.index()),
        ) else {
            return zero;
        };
        let beyond = |all: &Atomic<i64>, own: &Atomic<i64>| {
            let rest = all.load(Relaxed).saturating_sub(own.load(Relaxed));
            rest.max(0).unsigned_abs()
        };
        Capacity {
            bytes: beyond(&sums.all, &own.all),
            contiguous: beyond(&sums.contiguous, &own.contiguous),
        }
    }
}

impl Allocation {
    /// Counts it as fixed where it is, or no longer. Follows every change of place, of references, and of
    /// what fixes it.
    pub(super) fn count_fixed(&self, residence: &mut Residence) {
        let counted = self.fixed_in(residence);
        let old = core::mem::replace(&mut residence.counted_fixed, counted);
        if old == counted {
            return;
        }
        // CAST: sizes are below 2^63.
        let bytes = self.size() as i64;
        if let Some(old) = old {
            self.change_fixed(old, bytes.wrapping_neg());
        }
        if let Some(counted) = counted {
            self.change_fixed(counted, bytes);
        }
    }

    fn change_fixed(&self, counted: Counted, bytes: i64) {
        let contiguity = self.shape().contiguity;
        let device = self.device();
        device
            .adapter()
            .fixed()
            .change(counted.segment, contiguity, bytes);
        if counted.listing == Listing::Listed {
            device.fixed().change(counted.segment, contiguity, bytes);
        }
    }

    /// Returns where it is to be counted as fixed; [`None`] if nothing fixes it in a segment.
    fn fixed_in(&self, residence: &Residence) -> Option<Counted> {
        if residence.fixed == 0 {
            return None;
        }
        let segment = match residence.location() {
            Location::Segment(id, _) => *id,
            Location::Aperture(_) => self.adapter().backend().capabilities().aperture()?.id,
            Location::System | Location::Nowhere => return None,
        };
        let listing = match residence.references {
            0 => Listing::Unlisted,
            _ => Listing::Listed,
        };
        Some(Counted { segment, listing })
    }
}
