// SPDX-License-Identifier: GPL-2.0

//! Could all of this be in memory at once?
//!
//! Some requests are refused at once because no amount of eviction would make room for them: a
//! submission that binds too much at one split point (TOO_LARGE, DMA-25), a MAKE_RESIDENT of more
//! than there is. The test is a bound: it never refuses what could be placed, and what it lets
//! through may still fail later, for alignment or for what others have pinned.
//!
//! The bound is one half of Hall's theorem. Take any set of segments: the allocations that may be
//! nowhere else must fit into it together. Here the sets are the segment masks of the allocations
//! themselves. For each of them a [`Ledger`] keeps how much room is left for the allocations whose
//! masks lie inside it, once for all of them, and once for those that need contiguous memory and
//! the contiguous parts of the segments.
//!
//! An adapter has few segments and a list few masks. The ledger remembers the first [`MASKS`] of
//! them; that is every mask of five segments. Masks beyond that are counted inside the others but
//! get no line of their own, which makes the bound weaker, never wrong, and keeps the work per
//! allocation constant.

/// The number of different masks of which a [`Ledger`] keeps account.
pub const MASKS: usize = 32;

/// What one allocation asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Its size.
    pub bytes: u64,
    /// The segments in which it may be; bit 0 (system memory as such) has no capacity.
    pub mask: u32,
    /// Whether it must be one run of addresses wherever it is.
    pub contiguous: bool,
}

/// What one segment can hold when it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Everything; of the aperture, the system memory behind it.
    pub bytes: u64,
    /// What contiguous allocations can have of it; of the aperture, the commit limit.
    pub contiguous: u64,
}

/// The account of one segment mask.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// The mask.
    mask: u32,
    /// Bytes of the allocations with exactly this mask.
    own: Sums<u64>,
    /// Capacity of the segments, less the allocations whose masks lie inside this one.
    left: Sums<i64>,
}

/// A figure for all allocations and one for the contiguous ones among them.
#[derive(Clone, Copy, Debug, Default)]
struct Sums<T> {
    /// Of all of them.
    all: T,
    /// Of those that are contiguous.
    contiguous: T,
}

impl Line {
    /// A line that is not in use.
    const UNUSED: Self = Self {
        mask: 0,
        own: Sums {
            all: 0,
            contiguous: 0,
        },
        left: Sums {
            all: 0,
            contiguous: 0,
        },
    };

    /// Returns whether allocations with `mask` can be in the segments of this line only.
    fn covers(&self, mask: u32) -> bool {
        mask & !self.mask == 0
    }

    /// Returns whether more is asked for than there is.
    fn is_overdrawn(&self) -> bool {
        self.left.all < 0 || self.left.contiguous < 0
    }

    /// Takes `bytes` away from what is left.
    fn charge(&mut self, bytes: Sums<u64>) {
        self.left.all = self.left.all.saturating_sub_unsigned(bytes.all);
        self.left.contiguous = self
            .left
            .contiguous
            .saturating_sub_unsigned(bytes.contiguous);
    }

    /// Gives `bytes` back to what is left.
    fn refund(&mut self, bytes: Sums<u64>) {
        self.left.all = self.left.all.saturating_add_unsigned(bytes.all);
        self.left.contiguous = self
            .left
            .contiguous
            .saturating_add_unsigned(bytes.contiguous);
    }
}

impl Demand {
    /// Returns the bytes it adds to either sum.
    fn sums(&self) -> Sums<u64> {
        Sums {
            all: self.bytes,
            contiguous: if self.contiguous { self.bytes } else { 0 },
        }
    }

    /// Returns whether some segment that it permits could hold it, were it alone.
    pub fn fits_alone(&self, capacities: &[Capacity]) -> bool {
        permitted(self.mask, capacities).any(|capacity| {
            let room = if self.contiguous {
                capacity.contiguous
            } else {
                capacity.bytes
            };
            self.bytes <= room
        })
    }
}

/// Returns the capacities of the segments in `mask`; a segment's id is its index.
fn permitted(mask: u32, capacities: &[Capacity]) -> impl Iterator<Item = &Capacity> {
    capacities
        .iter()
        .zip(0..u32::BITS)
        .filter(move |(_, id)| mask & 1_u32.wrapping_shl(*id) != 0)
        .map(|(capacity, _)| capacity)
}

/// Keeps account of the allocations that are to be in memory at one time.
///
/// [`add`](Self::add) and [`remove`](Self::remove) take constant time: a few steps for each of up
/// to [`MASKS`] masks. It takes about 1.3 KiB.
#[derive(Debug)]
pub struct Ledger<'a> {
    /// What the segments can hold, by segment id.
    capacities: &'a [Capacity],
    /// One line for each mask that occurred.
    lines: [Line; MASKS],
    /// How many of them are in use.
    used: usize,
    /// How many of them are overdrawn.
    overdrawn: usize,
    /// How many of the allocations would not even fit alone.
    stuck: usize,
}

impl<'a> Ledger<'a> {
    /// Begins with empty segments; `capacities` has one entry for each segment id.
    pub fn new(capacities: &'a [Capacity]) -> Self {
        Self {
            capacities,
            lines: [Line::UNUSED; MASKS],
            used: 0,
            overdrawn: 0,
            stuck: 0,
        }
    }

    /// Returns whether what was added and not removed might be in memory together.
    pub fn fits(&self) -> bool {
        self.overdrawn == 0 && self.stuck == 0
    }

    /// Returns how many bytes too few there are: 0 if what was added by its sums might be in memory
    /// together, otherwise the most that any set of segments is overdrawn.
    pub fn lacking(&self) -> u64 {
        let lines = self.lines.iter().take(self.used);
        let overdrafts = lines.map(|line| line.left.all.min(line.left.contiguous));
        overdrafts.fold(0, |most, left| most.max(left.min(0).unsigned_abs()))
    }

    /// Opens an account for `mask`, unless there is one or no room for it.
    ///
    /// [`add`](Self::add) does it for the mask of the allocation. Doing it before for all masks that
    /// will occur makes the answers independent of the order of allocations.
    pub fn watch(&mut self, mask: u32) {
        if self.line(mask).is_some() {
            return;
        }
        let mut line = Line {
            mask,
            ..Line::UNUSED
        };
        for capacity in permitted(mask, self.capacities) {
            line.refund(Sums {
                all: capacity.bytes,
                contiguous: capacity.contiguous,
            });
        }
        for other in self.lines.iter().take(self.used) {
            if line.covers(other.mask) {
                line.charge(other.own);
            }
        }
        if let Some(place) = self.lines.get_mut(self.used) {
            *place = line;
            self.used = self.used.saturating_add(1);
        }
    }

    /// Adds an allocation.
    pub fn add(&mut self, demand: &Demand) {
        if !demand.fits_alone(self.capacities) {
            self.stuck = self.stuck.saturating_add(1);
        }
        self.add_sum(demand);
    }

    /// Adds several allocations with the same mask, each of which fits alone, by their sum.
    pub fn add_sum(&mut self, sum: &Demand) {
        self.watch(sum.mask);
        let sums = sum.sums();
        self.change(sum.mask, |line| line.charge(sums));
        if let Some(line) = self.line(sum.mask) {
            line.own.all = line.own.all.saturating_add(sums.all);
            line.own.contiguous = line.own.contiguous.saturating_add(sums.contiguous);
        }
    }

    /// Removes an allocation that was added.
    pub fn remove(&mut self, demand: &Demand) {
        if !demand.fits_alone(self.capacities) {
            self.stuck = self.stuck.saturating_sub(1);
        }
        let sums = demand.sums();
        self.change(demand.mask, |line| line.refund(sums));
        if let Some(line) = self.line(demand.mask) {
            line.own.all = line.own.all.saturating_sub(sums.all);
            line.own.contiguous = line.own.contiguous.saturating_sub(sums.contiguous);
        }
    }

    /// Returns the line of `mask`, if it has one.
    fn line(&mut self, mask: u32) -> Option<&mut Line> {
        self.lines
            .iter_mut()
            .take(self.used)
            .find(|line| line.mask == mask)
    }

    /// Applies `change` to each line of which allocations with `mask` are part.
    fn change(&mut self, mask: u32, change: impl Fn(&mut Line)) {
        let mut overdrawn: usize = 0;
        for line in self.lines.iter_mut().take(self.used) {
            if line.covers(mask) {
                change(line);
            }
            overdrawn = overdrawn.saturating_add(usize::from(line.is_overdrawn()));
        }
        self.overdrawn = overdrawn;
    }
}

/// Returns whether all of `demands` might be in memory together.
///
/// Linear in their number.
///
/// # Errors
///
/// The index of the first one with which those up to it do not fit.
///
/// Requirement: DMA-25, RES-13.
pub fn fits(
    demands: impl IntoIterator<Item = Demand>,
    capacities: &[Capacity],
) -> Result<(), usize> {
    let mut ledger = Ledger::new(capacities);
    for (index, demand) in demands.into_iter().enumerate() {
        ledger.add(&demand);
        if !ledger.fits() {
            return Err(index);
        }
    }
    Ok(())
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_residency))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Segment 1: 16 MiB, half of it contiguous. Segment 2: 32 MiB. Segment 3: an aperture of 8
    /// MiB.
    const CAPACITIES: [Capacity; 4] = [
        capacity(0, 0),
        capacity(16, 8),
        capacity(32, 0),
        capacity(1 << 20, 8),
    ];

    const fn capacity(all: u64, contiguous: u64) -> Capacity {
        Capacity {
            bytes: all * MIB,
            contiguous: contiguous * MIB,
        }
    }

    fn loose(mib: u64, mask: u32) -> Demand {
        Demand {
            bytes: mib * MIB,
            mask,
            contiguous: false,
        }
    }

    fn contiguous(mib: u64, mask: u32) -> Demand {
        Demand {
            contiguous: true,
            ..loose(mib, mask)
        }
    }

    #[test]
    fn what_fits_is_accepted() {
        let demands = [loose(8, 0b10), contiguous(8, 0b10), loose(32, 0b110)];
        assert_eq!(fits(demands, &CAPACITIES), Ok(()));
        assert_eq!(fits([], &CAPACITIES), Ok(()));
    }

    #[test]
    fn first_that_does_not_fit_is_named() {
        let demands = [loose(12, 0b10), loose(4, 0b10), loose(1, 0b10)];
        assert_eq!(fits(demands, &CAPACITIES), Err(2));
    }

    #[test]
    fn contiguous_memory_is_counted_apart() {
        let demands = [contiguous(8, 0b10), contiguous(1, 0b10)];
        assert_eq!(fits(demands, &CAPACITIES), Err(1));
        let demands = [contiguous(8, 0b1010), contiguous(8, 0b1010)];
        assert_eq!(fits(demands, &CAPACITIES), Ok(()));
    }

    #[test]
    fn one_that_fits_nowhere_is_refused() {
        assert_eq!(fits([loose(40, 0b110)], &CAPACITIES), Err(0));
        assert_eq!(fits([contiguous(1, 0b100)], &CAPACITIES), Err(0));
        assert_eq!(fits([loose(1, 0)], &CAPACITIES), Err(0));
        assert_eq!(fits([loose(1, 1 << 31)], &CAPACITIES), Err(0));
    }

    #[test]
    fn narrow_masks_count_inside_wide_ones() {
        let demands = [loose(16, 0b10), loose(32, 0b100), loose(1, 0b110)];
        assert_eq!(fits(demands, &CAPACITIES), Err(2));
        let demands = [loose(1, 0b110), loose(16, 0b10), loose(32, 0b100)];
        assert_eq!(fits(demands, &CAPACITIES), Err(2));
    }

    #[test]
    fn removed_allocations_make_room() {
        let mut ledger = Ledger::new(&CAPACITIES);
        ledger.add(&loose(12, 0b10));
        ledger.add(&loose(12, 0b10));
        assert!(!ledger.fits());
        ledger.remove(&loose(12, 0b10));
        assert!(ledger.fits());
        ledger.add(&loose(40, 0b110));
        assert!(!ledger.fits());
        ledger.remove(&loose(40, 0b110));
        assert!(ledger.fits());
    }

    #[test]
    fn what_is_lacking_is_what_must_go() {
        let mut ledger = Ledger::new(&CAPACITIES);
        ledger.add_sum(&loose(12, 0b10));
        assert_eq!(ledger.lacking(), 0);
        ledger.add_sum(&loose(10, 0b10));
        assert_eq!(ledger.lacking(), 6 * MIB);
        ledger.remove(&loose(6, 0b10));
        assert_eq!(ledger.lacking(), 0);
        ledger.add_sum(&contiguous(9, 0b10));
        assert_eq!(ledger.lacking(), 9 * MIB);
    }

    #[test]
    fn more_masks_than_lines_weaken_the_bound_only() {
        let capacities = [capacity(1, 1); 32];
        let mut ledger = Ledger::new(&capacities);
        for mask in 1..100 {
            ledger.add(&loose(0, mask << 1));
        }
        ledger.add(&loose(1, 0xc000_0000));
        assert!(ledger.fits());
        ledger.add(&loose(2, 0xc000_0000));
        assert!(!ledger.fits());
    }
}
