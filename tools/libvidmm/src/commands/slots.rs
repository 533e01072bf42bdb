// SPDX-License-Identifier: GPL-2.0

//! Binding slots: which of them holds which allocation of a command buffer.
//!
//! An entry of the allocation list keeps its slot until another one needs it. A free slot is taken
//! first, then the one that was not used for the longest time.

/// The slots of a command buffer that is being written.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    bindings: Vec<Binding>,
    /// Number of the last use.
    uses: u64,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binding {
    Free,
    Holds {
        /// Index in the allocation list.
        entry: u32,
        /// Number of the use that was its last.
        used: u64,
    },
}

impl Binding {
    fn entry(&self) -> Option<u32> {
        match *self {
            Self::Free => None,
            Self::Holds { entry, .. } => Some(entry),
        }
    }

    /// Orders slots: those to be taken first are the least.
    fn age(&self) -> u64 {
        match *self {
            Self::Free => 0,
            Self::Holds { used, .. } => used,
        }
    }
}

impl Slots {
    /// Makes `count` free slots, one at least.
    pub(super) fn new(count: u32) -> Self {
        Self {
            // CAST: `usize` has at least 32 bits on Linux.
            bindings: vec![Binding::Free; count.max(1) as usize],
            uses: 0,
        }
    }

    /// Returns the slot that holds an entry from now on.
    pub(super) fn bind(&mut self, entry: u32) -> u32 {
        self.uses += 1;
        let holder = |binding: &Binding| binding.entry() == Some(entry);
        let slot = self.bindings.iter().position(holder).unwrap_or_else(|| {
            let ages = self.bindings.iter().map(Binding::age);
            ages.enumerate()
                .min_by_key(|(_, age)| *age)
                .map_or(0, |(slot, _)| slot)
        });
        self.bindings[slot] = Binding::Holds {
            entry,
            used: self.uses,
        };
        number(slot)
    }

    /// Frees the slot that holds an entry which `names` picks, and returns which one that was.
    pub(super) fn release(&mut self, names: impl Fn(u32) -> bool) -> Option<u32> {
        let is_named = |binding: &Binding| binding.entry().is_some_and(&names);
        let slot = self.bindings.iter().position(is_named)?;
        self.bindings[slot] = Binding::Free;
        Some(number(slot))
    }
}

/// Returns the number of a slot as the interface writes it.
fn number(slot: usize) -> u32 {
    // CAST: there are as many slots as a `u32` says.
    slot as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_keeps_its_slot() {
        let mut slots = Slots::new(3);

        let taken = [4, 5, 4, 6, 5].map(|entry| slots.bind(entry));

        assert_eq!(taken, [0, 1, 0, 2, 1]);
    }

    #[test]
    fn oldest_slot_is_taken_when_all_are_in_use() {
        let mut slots = Slots::new(2);

        let taken = [4, 5, 4, 6].map(|entry| slots.bind(entry));

        assert_eq!(taken, [0, 1, 0, 1]);
    }

    #[test]
    fn released_slot_is_taken_first() {
        let mut slots = Slots::new(3);
        slots.bind(4);
        slots.bind(5);

        assert_eq!(slots.release(|entry| entry == 5), Some(1));
        assert_eq!(slots.release(|entry| entry == 5), None);
        assert_eq!(slots.bind(6), 1);
    }
}
