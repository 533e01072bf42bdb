// SPDX-License-Identifier: GPL-2.0

//! May this command buffer run with these lists?
//!
//! A client of an engine without GPU virtual addresses hands in commands, a list of allocations and
//! a list of patch entries. Each entry names an allocation, the slot to which it is bound from a
//! split offset on, and, unless it only binds, one address operand in the commands that will be
//! overwritten with the allocation's place. Before the submission is accepted, each operand must be
//! covered, each reach inside its allocation, and each allocation bound where a packet uses it
//! (section 9.1 of the interface, DMA-24). What passes can be cut at any of its split offsets and
//! cannot touch memory that was not listed for it.
//!
//! The reader of packets knows the operands, this file knows the lists. They meet in a [`Checker`]:
//! it looks at the lists when it is made, is then told packets and operands in the order of the
//! stream, and says at the end whether anything was left over. Patch entries are in the order of
//! their split offsets, operands in that of the stream, so a lent table with one place for each
//! eight bytes of the buffer leads from an operand to its entry. All is linear in the buffer and
//! the lists.
//!
//! What is not checked here: that handles are known, instances exist and nothing is offered, which
//! takes the objects; and that fields which do not apply are zero, which the decoder has seen to.

use super::duplicates::find_duplicate;
use super::patch_list::{
    check_entries,
    find_unused,
    PATCH_BYTES, //
};
use super::resource_table::to_index;

pub use super::patch_list::{
    Kind,
    Listed,
    Lists,
    Patch,
    PatchKind,
    Refused, //
};
pub use super::resource_table::{
    Change,
    Table,
    Use,
    NO_ALLOCATION, //
};

/// An address operand that the reader of packets found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Index of its first dword in the buffer.
    pub dword: u32,
    /// Alignment that its address must have, in bytes; a power of two.
    pub align: u32,
    /// Bytes from its address on that the packet may touch.
    pub reach: u64,
    /// Whether the packet writes there.
    pub write: bool,
}

/// Memory lent to a [`Checker`]; its content does not matter.
#[derive(Debug)]
pub struct Scratch<'a> {
    /// One number for each 8 bytes of the buffer.
    pub operands: &'a mut [u32],
    /// One number for each slot that there is: this *is* the number of slots.
    pub slots: &'a mut [u32],
    /// One for each element of the allocation list.
    pub uses: &'a mut [Use],
    /// Two numbers for each element of the allocation list.
    pub order: &'a mut [u32],
}

/// The memory lent does not suffice for the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScratchTooSmall;

impl<'a> Scratch<'a> {
    /// Cuts the lent memory to what `lists` need.
    ///
    /// # Errors
    ///
    /// [`ScratchTooSmall`] if there is too little of it.
    pub fn cut_to(self, lists: &Lists<'_>) -> Result<Self, ScratchTooSmall> {
        let places = to_index(lists.bytes / PATCH_BYTES);
        let elements = lists.listed.len();
        let both = elements.saturating_mul(2);
        Ok(Self {
            operands: self.operands.get_mut(..places).ok_or(ScratchTooSmall)?,
            slots: self.slots,
            uses: self.uses.get_mut(..elements).ok_or(ScratchTooSmall)?,
            order: self.order.get_mut(..both).ok_or(ScratchTooSmall)?,
        })
    }
}

/// Checks a command buffer against its lists while its packets are read.
///
/// Requirement: DMA-7, DMA-8, DMA-13, DMA-24.
#[derive(Debug)]
pub struct Checker<'a> {
    /// What is checked.
    lists: Lists<'a>,
    /// For each 8 bytes of the buffer the number of the entry that patches them, counted from 1, as
    /// long as no operand was seen there; else 0.
    operands: &'a mut [u32],
    /// What is bound at the packet being read.
    table: Table<'a>,
    /// The first entry that is not bound yet.
    next: usize,
}

impl<'a> Checker<'a> {
    /// Looks at the lists.
    ///
    /// `scratch` was cut to the same lists ([`Scratch::cut_to`]). A few steps for each entry,
    /// each element of the allocation list and each 8 bytes of the buffer.
    ///
    /// # Errors
    ///
    /// - [`Kind::SlotRange`], [`Kind::AllocIndex`], [`Kind::SplitOrder`], [`Kind::PatchRange`],
    ///   [`Kind::PatchNotOperand`] (two entries for one operand): an entry.
    /// - [`Kind::Unused`], [`Kind::Duplicate`]: an element of the allocation list.
    pub fn new(lists: Lists<'a>, scratch: Scratch<'a>) -> Result<Self, Refused> {
        let Scratch {
            operands,
            slots,
            uses,
            order,
        } = scratch;
        check_entries(&lists, slots.len())?;
        spread(&lists, operands)?;
        find_unused(&lists, order)?;
        if let Some(index) = find_duplicate(lists.listed, order) {
            let kind = Kind::Duplicate;
            return Err(Refused { kind, index });
        }
        Ok(Self {
            lists,
            operands,
            table: Table::new(slots, uses),
            next: 0,
        })
    }

    /// A packet begins at byte `offset`; packets come in the order of the stream.
    ///
    /// Binds what is needed from there on.
    ///
    /// # Errors
    ///
    /// [`Kind::SplitBoundary`]: an entry's split offset is inside the packet before.
    pub fn packet(&mut self, offset: u32) -> Result<(), Refused> {
        while let Some(patch) = self.lists.patches.get(self.next) {
            if patch.split_offset > offset {
                break;
            }
            if patch.split_offset != offset {
                return Err(Refused::at(Kind::SplitBoundary, self.next));
            }
            self.table.bind(patch.slot, self.lists.target(patch));
            self.next = self.next.saturating_add(1);
        }
        Ok(())
    }

    /// The packet that began last has this operand.
    ///
    /// # Errors
    ///
    /// - [`Kind::UnpatchedOperand`]: the index is the operand's byte offset.
    /// - [`Kind::AllocRange`], [`Kind::NotBound`]: an entry.
    /// - [`Kind::Access`]: the packet writes; an element of the allocation list.
    pub fn operand(&mut self, operand: &Operand) -> Result<(), Refused> {
        let offset = operand.dword.saturating_mul(4);
        let unpatched = Refused {
            kind: Kind::UnpatchedOperand,
            index: offset,
        };
        if offset % PATCH_BYTES != 0 {
            return Err(unpatched);
        }
        let place = self.operands.get_mut(to_index(offset / PATCH_BYTES));
        let number = place.map_or(0, core::mem::take);
        let position = to_index(number).checked_sub(1).ok_or(unpatched)?;
        let patch = self.lists.patches.get(position).ok_or(unpatched)?;
        let element = to_index(patch.alloc_index);
        let listed = self.lists.listed.get(element).ok_or(unpatched)?;
        if !reaches(patch.alloc_offset, operand, listed.size) {
            return Err(Refused::at(Kind::AllocRange, position));
        }
        if operand.write && !listed.writable {
            return Err(Refused::at(Kind::Access, element));
        }
        if !self.table.holds(patch.alloc_index) {
            return Err(Refused::at(Kind::NotBound, position));
        }
        Ok(())
    }

    /// The stream has ended.
    ///
    /// # Errors
    ///
    /// - [`Kind::SplitBoundary`]: an entry's split offset is inside the last packet or beyond the
    ///   end.
    /// - [`Kind::PatchNotOperand`]: an entry patches something that is no operand.
    pub fn finish(self) -> Result<(), Refused> {
        let rest = self.lists.patches.get(self.next..).unwrap_or_default();
        for (patch, position) in rest.iter().zip(self.next..usize::MAX) {
            // Only entries that bind come as far as the end: others split before what they patch.
            if patch.split_offset != self.lists.bytes {
                return Err(Refused::at(Kind::SplitBoundary, position));
            }
        }
        let left = self.operands.iter().find(|number| **number != 0);
        match left {
            Some(number) => Err(Refused {
                kind: Kind::PatchNotOperand,
                index: number.saturating_sub(1),
            }),
            None => Ok(()),
        }
    }
}

/// Notes in `operands` which entry patches which part of the buffer.
fn spread(lists: &Lists<'_>, operands: &mut [u32]) -> Result<(), Refused> {
    operands.fill(0);
    for (position, patch) in lists.patches.iter().enumerate() {
        if patch.kind == PatchKind::None {
            continue;
        }
        let twice = Refused::at(Kind::PatchNotOperand, position);
        let place = operands.get_mut(to_index(patch.patch_offset / PATCH_BYTES));
        let place = place.filter(|place| **place == 0).ok_or(twice)?;
        *place = twice.index.saturating_add(1);
    }
    Ok(())
}

/// Returns whether an operand that points at `offset` stays inside an allocation of `size` bytes.
fn reaches(offset: u64, operand: &Operand, size: u64) -> bool {
    let aligned = offset & u64::from(operand.align.max(1)).wrapping_sub(1) == 0;
    let end = offset.checked_add(operand.reach);
    aligned && end.is_some_and(|end| end <= size)
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_patching))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    /// Three packets of 32 bytes, each with one operand at its bytes 8 to 15.
    const PACKETS: [u32; 3] = [0, 32, 64];

    /// Bytes of the buffer.
    const BYTES: u32 = 96;

    const LISTED: [Listed; 2] = [
        Listed {
            object: 5,
            instance: 0,
            writable: true,
            size: 4096,
        },
        Listed {
            object: 6,
            instance: 0,
            writable: true,
            size: 4096,
        },
    ];

    /// An entry that patches the operand of the packet at `packet`.
    const fn patch(alloc_index: u32, slot: u32, packet: u32) -> Patch {
        Patch {
            alloc_index,
            slot,
            kind: PatchKind::Full64,
            driver_id: 0,
            alloc_offset: 0,
            patch_offset: packet + 8,
            split_offset: packet,
        }
    }

    /// An entry that only binds.
    const fn binding(alloc_index: u32, slot: u32, split_offset: u32) -> Patch {
        Patch {
            kind: PatchKind::None,
            patch_offset: 0,
            split_offset,
            ..patch(alloc_index, slot, 0)
        }
    }

    /// Entries with nothing wrong.
    const GOOD: [Patch; 3] = [patch(0, 0, 0), patch(1, 1, 32), patch(0, 0, 64)];

    fn run(listed: &[Listed], patches: &[Patch], reach: u64) -> Result<(), Refused> {
        let lists = Lists {
            bytes: BYTES,
            listed,
            patches,
        };
        let scratch = Scratch {
            operands: &mut [77; 20],
            slots: &mut [77; 2],
            uses: &mut [Use::default(); 2],
            order: &mut [77; 4],
        };
        let mut checker = Checker::new(lists, scratch.cut_to(&lists).unwrap())?;
        for packet in PACKETS {
            checker.packet(packet)?;
            checker.operand(&Operand {
                dword: packet / 4 + 2,
                align: 8,
                reach,
                write: true,
            })?;
        }
        checker.finish()
    }

    fn check(patches: &[Patch]) -> Result<(), Refused> {
        run(&LISTED, patches, 8)
    }

    fn refused(kind: Kind, index: u32) -> Result<(), Refused> {
        Err(Refused { kind, index })
    }

    #[test]
    fn good_lists_pass() {
        assert_eq!(check(&GOOD), Ok(()));
        let [one, two, three] = GOOD;
        let unbinding = binding(NO_ALLOCATION, 0, BYTES);
        assert_eq!(check(&[one, two, three, unbinding]), Ok(()));
    }

    #[test]
    fn operand_without_entry_is_refused() {
        let [one, _, three] = GOOD;
        let two = binding(1, 1, 32);
        let expected = refused(Kind::UnpatchedOperand, 40);
        assert_eq!(check(&[one, two, three]), expected);
    }

    #[test]
    fn entry_without_operand_is_refused() {
        let [one, two, three] = GOOD;
        let stray = Patch {
            patch_offset: 80,
            ..three
        };
        let expected = refused(Kind::PatchNotOperand, 3);
        assert_eq!(check(&[one, two, three, stray]), expected);
    }

    #[test]
    fn two_entries_for_one_operand_are_refused() {
        let [one, two, three] = GOOD;
        let expected = refused(Kind::PatchNotOperand, 1);
        assert_eq!(check(&[one, one, two, three]), expected);
    }

    #[test]
    fn split_inside_a_packet_is_refused() {
        let [one, two, three] = GOOD;
        let expected = refused(Kind::SplitBoundary, 1);
        let inside = binding(0, 0, 8);
        assert_eq!(check(&[one, inside, two, three]), expected);
        let expected = refused(Kind::SplitBoundary, 3);
        let inside_last = binding(0, 0, 88);
        assert_eq!(check(&[one, two, three, inside_last]), expected);
        let beyond = binding(0, 0, BYTES + 8);
        assert_eq!(check(&[one, two, three, beyond]), expected);
    }

    #[test]
    fn reach_must_end_inside() {
        assert_eq!(run(&LISTED, &GOOD, 4096), Ok(()));
        let expected = refused(Kind::AllocRange, 0);
        assert_eq!(run(&LISTED, &GOOD, 4097), expected);
        assert_eq!(run(&LISTED, &GOOD, u64::MAX), expected);
    }

    #[test]
    fn address_must_be_aligned() {
        let [one, two, three] = GOOD;
        let alloc_offset = 4;
        let expected = refused(Kind::AllocRange, 1);
        let two = Patch {
            alloc_offset,
            ..two
        };
        assert_eq!(check(&[one, two, three]), expected);
    }

    #[test]
    fn write_needs_the_right() {
        let [one, two] = LISTED;
        let two = Listed {
            writable: false,
            ..two
        };
        assert_eq!(run(&[one, two], &GOOD, 8), refused(Kind::Access, 1));
    }

    #[test]
    fn allocation_must_be_bound_at_its_packet() {
        let [one, two, three] = GOOD;
        let early = Patch {
            split_offset: 32,
            slot: 1,
            ..three
        };
        // Element 1 is replaced in its slot by the entry for the last packet.
        let expected = refused(Kind::NotBound, 1);
        assert_eq!(check(&[one, two, early]), expected);
    }

    #[test]
    fn binding_in_another_slot_is_enough() {
        let [one, two, three] = GOOD;
        let early = Patch {
            split_offset: 32,
            slot: 1,
            ..three
        };
        let other = binding(1, 0, 32);
        assert_eq!(check(&[one, two, early, other]), Ok(()));
    }

    #[test]
    fn short_scratch_is_told() {
        let lists = Lists {
            bytes: BYTES,
            listed: &LISTED,
            patches: &GOOD,
        };
        let scratch = Scratch {
            operands: &mut [0; 11],
            slots: &mut [0; 2],
            uses: &mut [Use::default(); 2],
            order: &mut [0; 4],
        };
        assert!(scratch.cut_to(&lists).is_err());
    }
}
