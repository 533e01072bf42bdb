// SPDX-License-Identifier: GPL-2.0

//! What is bound to which slot at one point of a command buffer.
//!
//! The entries of a patch list bind allocations to numbered slots, each from its split offset on,
//! until the slot is bound again or unbound (DMA-9, DMA-11). The table begins empty for each
//! submission. An allocation is needed as long as *some* slot holds it, so the table counts for
//! each element of the allocation list how many slots do.

/// An empty slot, and an index that names no allocation.
pub const NO_ALLOCATION: u32 = u32::MAX;

/// What a [`Table`] knows about one element of the allocation list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// How many slots hold it.
    slots: u32,
}

/// What the binding of a slot changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The element that no slot held before.
    pub bound: Option<u32>,
    /// The element that no slot holds any more.
    pub released: Option<u32>,
}

/// The slots and what they hold.
///
/// Requirement: DMA-9, DMA-11, DMA-19.
#[derive(Debug)]
pub struct Table<'a> {
    /// The element that each slot holds, or [`NO_ALLOCATION`].
    slots: &'a mut [u32],
    /// One for each element of the allocation list.
    uses: &'a mut [Use],
}

impl<'a> Table<'a> {
    /// Empties the lent memory: one number for each slot, one use for each element of the list.
    pub fn new(slots: &'a mut [u32], uses: &'a mut [Use]) -> Self {
        let mut table = Self { slots, uses };
        table.clear();
        table
    }

    /// Empties all slots.
    pub fn clear(&mut self) {
        self.slots.fill(NO_ALLOCATION);
        self.uses.fill(Use::default());
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Binds element `index`, or [`None`], to `slot`, in place of what it held. Constant time.
    ///
    /// Slots and elements that do not exist change nothing.
    pub fn bind(&mut self, slot: u32, index: Option<u32>) -> Change {
        let new = index.unwrap_or(NO_ALLOCATION);
        let Some(place) = self.slots.get_mut(to_index(slot)) else {
            return Change::default();
        };
        let old = core::mem::replace(place, new);
        if old == new {
            return Change::default();
        }
        Change {
            bound: self.count(new, |slots| slots.saturating_add(1), 1),
            released: self.count(old, |slots| slots.saturating_sub(1), 0),
        }
    }

    /// Returns whether some slot holds element `index`.
    pub fn holds(&self, index: u32) -> bool {
        self.uses
            .get(to_index(index))
            .is_some_and(|one| one.slots != 0)
    }

    /// Returns what each slot holds, in the order of slots.
    pub fn contents(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.slots
            .iter()
            .map(|index| (*index != NO_ALLOCATION).then_some(*index))
    }

    /// Counts for element `index`; returns it if the count has become `turning`.
    fn count(&mut self, index: u32, step: impl FnOnce(u32) -> u32, turning: u32) -> Option<u32> {
        let one = self.uses.get_mut(to_index(index))?;
        one.slots = step(one.slots);
        (one.slots == turning).then_some(index)
    }
}

/// Returns a number of the lists as an index.
pub(super) const fn to_index(number: u32) -> usize {
    // CAST: `usize` has 64 bits wherever this driver runs.
    number as usize
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_resource_table))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    fn change(bound: Option<u32>, released: Option<u32>) -> Change {
        Change { bound, released }
    }

    #[test]
    fn table_begins_empty() {
        let (mut slots, mut uses) = ([3; 4], [Use { slots: 9 }; 4]);
        let table = Table::new(&mut slots, &mut uses);
        assert!(table.contents().all(|held| held.is_none()));
        assert!(!table.holds(3));
        assert_eq!(table.slots(), 4);
    }

    #[test]
    fn occupant_is_replaced() {
        let (mut slots, mut uses) = ([0; 2], [Use::default(); 3]);
        let mut table = Table::new(&mut slots, &mut uses);
        assert_eq!(table.bind(0, Some(1)), change(Some(1), None));
        assert_eq!(table.bind(0, Some(2)), change(Some(2), Some(1)));
        assert_eq!(table.bind(0, Some(2)), change(None, None));
        assert!(table.contents().eq([Some(2), None]));
    }

    #[test]
    fn last_slot_releases() {
        let (mut slots, mut uses) = ([0; 2], [Use::default(); 3]);
        let mut table = Table::new(&mut slots, &mut uses);
        table.bind(0, Some(1));
        assert_eq!(table.bind(1, Some(1)), change(None, None));
        assert_eq!(table.bind(0, None), change(None, None));
        assert!(table.holds(1));
        assert_eq!(table.bind(1, None), change(None, Some(1)));
        assert!(!table.holds(1));
    }

    #[test]
    fn unbinding_an_empty_slot_changes_nothing() {
        let (mut slots, mut uses) = ([0; 2], [Use::default(); 3]);
        let mut table = Table::new(&mut slots, &mut uses);
        assert_eq!(table.bind(1, None), change(None, None));
        assert_eq!(table.bind(2, Some(1)), change(None, None));
    }
}
