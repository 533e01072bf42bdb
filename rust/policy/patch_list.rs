// SPDX-License-Identifier: GPL-2.0

//! The lists that come with a command buffer.
//!
//! A submission of physical-mode commands names what it uses in an allocation list, and where and
//! from when on it uses it in a patch list. Here are both, what can be wrong with them by
//! themselves, and the kinds of refusal that the interface knows for a submission.

use super::resource_table::{
    to_index,
    NO_ALLOCATION, //
};

/// Bytes that a patch writes, and to which its offset is aligned.
pub(super) const PATCH_BYTES: u32 = 8;

/// An element of the allocation list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// A number that no other allocation has; 0 for an element without allocation (NULL).
    pub object: u64,
    /// Which instance of it, never "the current one".
    pub instance: u32,
    /// Whether the list says that it will be written.
    pub writable: bool,
    /// Its size in bytes, rounded up.
    pub size: u64,
}

/// What a patch entry does besides binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// Nothing.
    None,
    /// It writes the 64-bit address of its allocation.
    Full64,
}

/// A patch entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The element of the allocation list, or [`NO_ALLOCATION`] to unbind the slot.
    pub alloc_index: u32,
    /// The slot.
    pub slot: u32,
    /// What it does besides binding.
    pub kind: PatchKind,
    /// A number of the client's, for diagnosis.
    pub driver_id: u32,
    /// Where in the allocation the address points.
    pub alloc_offset: u64,
    /// Where in the buffer the operand is, in bytes.
    pub patch_offset: u32,
    /// From which byte of the buffer on the allocation is needed.
    pub split_offset: u32,
}

/// Why a submission is refused: the submit error kinds of the interface (section 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A packet is malformed; the index is its byte offset.
    BadPacket = 1,
    /// No entry covers an operand; the index is its byte offset.
    UnpatchedOperand = 2,
    /// An entry covers no operand, or one that another entry covers.
    PatchNotOperand = 3,
    /// A patch offset is misaligned or outside the buffer.
    PatchRange = 4,
    /// An address is misaligned or its reach leaves the allocation.
    AllocRange = 5,
    /// Split offsets decrease, or one is above its patch offset.
    SplitOrder = 6,
    /// A split offset is not the start of a packet.
    SplitBoundary = 7,
    /// There is no such slot.
    SlotRange = 8,
    /// An allocation instance is listed twice; the index is that of the allocation list.
    Duplicate = 9,
    /// It may not be used so; the index is that of the allocation list.
    Access = 10,
    /// There is no such instance; the index is that of the allocation list.
    Instance = 11,
    /// It is offered; the index is that of the allocation list.
    Offered = 12,
    /// It is not resident; the index is that of the allocation list.
    NotResident = 13,
    /// More is bound at one split offset than an empty adapter could hold.
    TooLarge = 14,
    /// A wait or signal is not possible; the index is that of the point.
    BadPoint = 15,
    /// There is no such element of the allocation list, or an entry that patches names none.
    AllocIndex = 16,
    /// No slot holds the allocation where a packet uses it.
    NotBound = 17,
    /// No entry names an allocation; the index is that of the allocation list.
    Unused = 18,
    /// There is no such allocation; the index is that of the allocation list.
    BadHandle = 19,
}

impl Kind {
    /// Returns the number that the interface gives to it.
    pub const fn number(self) -> u32 {
        // CAST: the discriminants are the numbers.
        self as u32
    }
}

/// The refusal of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub kind: Kind,
    /// Index of the patch entry, or what [`Kind`] says.
    pub index: u32,
}

impl Refused {
    /// Refuses because of `kind` at position `index` of a list.
    pub(super) fn at(kind: Kind, index: usize) -> Self {
        // Lists are shorter than 2^32.
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        Self { kind, index }
    }
}

/// What is submitted, as far as it concerns patching.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a> {
    /// Bytes of the command buffer, a multiple of 8.
    pub bytes: u32,
    /// The allocation list.
    pub listed: &'a [Listed],
    /// The patch list.
    pub patches: &'a [Patch],
}

impl Lists<'_> {
    /// Returns the element of the allocation list that an entry binds, or [`None`] if it unbinds.
    pub fn target(&self, patch: &Patch) -> Option<u32> {
        let listed = self.listed.get(to_index(patch.alloc_index))?;
        (listed.object != 0).then_some(patch.alloc_index)
    }
}

/// Checks each entry by itself and against the one before.
pub(super) fn check_entries(lists: &Lists<'_>, slots: usize) -> Result<(), Refused> {
    let mut last_split = 0;
    for (position, patch) in lists.patches.iter().enumerate() {
        check_entry(lists, slots, patch).map_err(|kind| Refused::at(kind, position))?;
        if patch.split_offset < last_split {
            return Err(Refused::at(Kind::SplitOrder, position));
        }
        last_split = patch.split_offset;
    }
    Ok(())
}

/// Checks what an entry says by itself.
fn check_entry(lists: &Lists<'_>, slots: usize, patch: &Patch) -> Result<(), Kind> {
    if to_index(patch.slot) >= slots {
        return Err(Kind::SlotRange);
    }
    let names_element = to_index(patch.alloc_index) < lists.listed.len();
    if !names_element && patch.alloc_index != NO_ALLOCATION {
        return Err(Kind::AllocIndex);
    }
    if patch.kind == PatchKind::None {
        return Ok(());
    }
    if lists.target(patch).is_none() {
        return Err(Kind::AllocIndex);
    }
    let end = patch.patch_offset.checked_add(PATCH_BYTES);
    let inside = end.is_some_and(|end| end <= lists.bytes);
    if patch.patch_offset % PATCH_BYTES != 0 || !inside {
        return Err(Kind::PatchRange);
    }
    if patch.split_offset > patch.patch_offset {
        return Err(Kind::SplitOrder);
    }
    Ok(())
}

/// Looks for an allocation that no entry names; `named` has a place for each element.
pub(super) fn find_unused(lists: &Lists<'_>, named: &mut [u32]) -> Result<(), Refused> {
    named.fill(0);
    for patch in lists.patches {
        if let Some(place) = named.get_mut(to_index(patch.alloc_index)) {
            *place = 1;
        }
    }
    let mut elements = lists.listed.iter().zip(named.iter());
    let unused = elements.position(|(listed, named)| listed.object != 0 && *named == 0);
    match unused {
        Some(position) => Err(Refused::at(Kind::Unused, position)),
        None => Ok(()),
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_patch_list))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    const LISTED: [Listed; 3] = [listed(5, 0), listed(0, 0), listed(5, 1)];

    const fn listed(object: u64, instance: u32) -> Listed {
        Listed {
            object,
            instance,
            writable: true,
            size: 4096,
        }
    }

    /// An entry that patches a buffer of 64 bytes, with all right.
    const PATCH: Patch = Patch {
        alloc_index: 0,
        slot: 0,
        kind: PatchKind::Full64,
        driver_id: 0,
        alloc_offset: 0,
        patch_offset: 56,
        split_offset: 56,
    };

    /// An entry that only binds.
    const BINDING: Patch = Patch {
        kind: PatchKind::None,
        patch_offset: 0,
        ..PATCH
    };

    /// Checks an entry by itself with 4 slots.
    fn check(patch: Patch) -> Result<(), Kind> {
        check_entry(&lists(&LISTED, &[]), 4, &patch)
    }

    fn lists<'a>(listed: &'a [Listed], patches: &'a [Patch]) -> Lists<'a> {
        Lists {
            bytes: 64,
            listed,
            patches,
        }
    }

    #[test]
    fn good_entries_pass() {
        assert_eq!(check(PATCH), Ok(()));
        assert_eq!(check(BINDING), Ok(()));
        let alloc_index = NO_ALLOCATION;
        assert_eq!(
            check(Patch {
                alloc_index,
                ..BINDING
            }),
            Ok(())
        );
        assert_eq!(
            check(Patch {
                alloc_index: 1,
                ..BINDING
            }),
            Ok(())
        );
    }

    #[test]
    fn slot_must_exist() {
        assert_eq!(check(Patch { slot: 3, ..PATCH }), Ok(()));
        assert_eq!(check(Patch { slot: 4, ..PATCH }), Err(Kind::SlotRange));
    }

    #[test]
    fn element_must_exist() {
        let alloc_index = 3;
        let expected = Err(Kind::AllocIndex);
        assert_eq!(
            check(Patch {
                alloc_index,
                ..BINDING
            }),
            expected
        );
        assert_eq!(
            check(Patch {
                alloc_index,
                ..PATCH
            }),
            expected
        );
    }

    #[test]
    fn only_bindings_name_null() {
        let expected = Err(Kind::AllocIndex);
        assert_eq!(
            check(Patch {
                alloc_index: 1,
                ..PATCH
            }),
            expected
        );
        let alloc_index = NO_ALLOCATION;
        assert_eq!(
            check(Patch {
                alloc_index,
                ..PATCH
            }),
            expected
        );
    }

    #[test]
    fn patch_must_be_inside_and_aligned() {
        let expected = Err(Kind::PatchRange);
        for patch_offset in [60, 64, 4, u32::MAX - 7, u32::MAX] {
            let patch = Patch {
                patch_offset,
                split_offset: 0,
                ..PATCH
            };
            assert_eq!(check(patch), expected);
        }
    }

    #[test]
    fn split_must_not_be_behind_the_patch() {
        let patch = Patch {
            split_offset: 64,
            ..PATCH
        };
        assert_eq!(check(patch), Err(Kind::SplitOrder));
        assert_eq!(
            check(Patch {
                kind: PatchKind::None,
                ..patch
            }),
            Ok(())
        );
    }

    #[test]
    fn splits_must_not_decrease() {
        let early = Patch {
            split_offset: 8,
            ..PATCH
        };
        let good = [early, early, PATCH];
        assert_eq!(check_entries(&lists(&LISTED, &good), 4), Ok(()));
        let bad = [early, PATCH, early];
        let expected = Err(Refused::at(Kind::SplitOrder, 2));
        assert_eq!(check_entries(&lists(&LISTED, &bad), 4), expected);
    }

    #[test]
    fn every_allocation_must_be_named() {
        let patches = [PATCH];
        let expected = Err(Refused::at(Kind::Unused, 2));
        let lists = lists(&LISTED, &patches);
        assert_eq!(find_unused(&lists, &mut [9; 3]), expected);
    }
}
