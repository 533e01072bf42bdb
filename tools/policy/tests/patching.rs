// SPDX-License-Identifier: GPL-2.0

//! The checker of patched submissions against one that goes through everything for every rule.
//!
//! Of several defects one is reported, which one is not promised. So the naive checker lists all
//! of them, and the answer must be one of its list.

use std::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use policy::policy::patching::{
    Checker,
    Kind,
    Listed,
    Lists,
    Operand,
    Patch,
    PatchKind,
    Refused,
    Scratch,
    Use,
    NO_ALLOCATION, //
};
use proptest::prelude::*;
use proptest::sample::Index;

mod soak;

/// Slots of the adapter.
const SLOTS: u32 = 4;

/// A submission as the reader of packets sees it.
#[derive(Clone, Debug, Default)]
struct Submission {
    bytes: u32,
    /// Where each packet begins, and its operands.
    packets: Vec<(u32, Vec<Operand>)>,
    listed: Vec<Listed>,
    patches: Vec<Patch>,
}

impl Submission {
    fn lists(&self) -> Lists<'_> {
        Lists {
            bytes: self.bytes,
            listed: &self.listed,
            patches: &self.patches,
        }
    }

    /// Runs the checker under test.
    fn check(&self) -> Result<(), Refused> {
        let lists = self.lists();
        let (places, elements) = (self.bytes as usize / 8, self.listed.len());
        let scratch = Scratch {
            operands: &mut vec![99; places],
            slots: &mut [99; SLOTS as usize],
            uses: &mut vec![Use::default(); elements],
            order: &mut vec![99; 2 * elements],
        };
        let mut checker = Checker::new(lists, scratch.cut_to(&lists).unwrap())?;
        for (start, operands) in &self.packets {
            checker.packet(*start)?;
            for operand in operands {
                checker.operand(operand)?;
            }
        }
        checker.finish()
    }

    fn is_patching(&self, position: usize) -> bool {
        self.patches[position].kind == PatchKind::Full64
    }

    fn element(&self, index: u32) -> Option<&Listed> {
        let listed = self.listed.get(index as usize)?;
        (listed.object != 0).then_some(listed)
    }

    /// Whether some slot holds `index` once all entries up to byte `start` are processed.
    fn is_bound(&self, index: u32, start: u32) -> bool {
        (0..SLOTS).any(|slot| {
            let mut bindings = self.patches.iter().rev();
            let last = bindings.find(|patch| patch.slot == slot && patch.split_offset <= start);
            last.is_some_and(|patch| patch.alloc_index == index)
        })
    }

    /// All defects of the lists by themselves.
    fn list_defects(&self) -> Vec<Refused> {
        let mut defects = Vec::new();
        let mut note = |kind, index: usize| {
            let index = index as u32;
            defects.push(Refused { kind, index });
        };
        for (position, patch) in self.patches.iter().enumerate() {
            let before = &self.patches[..position];
            let patching = self.is_patching(position);
            let index = patch.alloc_index as usize;
            let outside = patch.alloc_index != NO_ALLOCATION && index >= self.listed.len();
            if patch.slot >= SLOTS {
                note(Kind::SlotRange, position);
            }
            if outside || patching && self.element(patch.alloc_index).is_none() {
                note(Kind::AllocIndex, position);
            }
            let end = u64::from(patch.patch_offset) + 8;
            if patching && (patch.patch_offset % 8 != 0 || end > self.bytes.into()) {
                note(Kind::PatchRange, position);
            }
            let decreases = before
                .iter()
                .any(|one| one.split_offset > patch.split_offset);
            if decreases || patching && patch.split_offset > patch.patch_offset {
                note(Kind::SplitOrder, position);
            }
            let at_packet = self
                .packets
                .iter()
                .any(|(start, _)| *start == patch.split_offset);
            if !at_packet && (patching || patch.split_offset != self.bytes) {
                note(Kind::SplitBoundary, position);
            }
            let same = |one: &Patch| {
                one.kind == PatchKind::Full64 && one.patch_offset == patch.patch_offset
            };
            let operands = self.packets.iter().flat_map(|(_, operands)| operands);
            let hits = operands
                .filter(|one| one.dword * 4 == patch.patch_offset)
                .count();
            if patching && (hits == 0 || before.iter().any(same)) {
                note(Kind::PatchNotOperand, position);
            }
        }
        for (position, listed) in self.listed.iter().enumerate() {
            let mut names = self.patches.iter().map(|patch| patch.alloc_index as usize);
            if listed.object != 0 && !names.any(|index| index == position) {
                note(Kind::Unused, position);
            }
            let same =
                |one: &Listed| (one.object, one.instance) == (listed.object, listed.instance);
            if listed.object != 0 && self.listed[..position].iter().any(same) {
                note(Kind::Duplicate, position);
            }
        }
        defects
    }

    /// All defects of one operand of the packet at `start`.
    fn operand_defects(&self, start: u32, operand: &Operand) -> Vec<Refused> {
        let mut defects = Vec::new();
        let mut note = |kind, index| defects.push(Refused { kind, index });
        let mut covered = false;
        for (position, patch) in self.patches.iter().enumerate() {
            if !self.is_patching(position) || patch.patch_offset != operand.dword * 4 {
                continue;
            }
            covered = true;
            let Some(listed) = self.element(patch.alloc_index) else {
                continue;
            };
            let end = u128::from(patch.alloc_offset) + u128::from(operand.reach);
            let misaligned = patch.alloc_offset % u64::from(operand.align) != 0;
            if misaligned || end > listed.size.into() {
                note(Kind::AllocRange, position as u32);
            }
            if operand.write && !listed.writable {
                note(Kind::Access, patch.alloc_index);
            }
            if !self.is_bound(patch.alloc_index, start) {
                note(Kind::NotBound, position as u32);
            }
        }
        if !covered {
            note(Kind::UnpatchedOperand, operand.dword * 4);
        }
        defects
    }

    /// All defects.
    fn defects(&self) -> Vec<Refused> {
        let mut defects = self.list_defects();
        for (start, operands) in &self.packets {
            for operand in operands {
                defects.extend(self.operand_defects(*start, operand));
            }
        }
        defects
    }
}

/// Raw material of an operand: allocation, offset, slot, reach, whether it writes.
type RawOperand = (Index, u64, u32, u64, bool);

/// Raw material of a packet: NOP or operands, and whether all its slots are bound anew.
type RawPacket = (Vec<RawOperand>, u32);

/// Builds a submission without defects.
fn build(packets: Vec<RawPacket>, allocations: Vec<(u64, bool)>) -> Submission {
    let mut made = Submission::default();
    for ((size, writable), object) in allocations.into_iter().zip(1..) {
        made.listed.push(Listed {
            object: object / 2 + 1,
            instance: object as u32 % 2,
            writable,
            size,
        });
    }
    let elements = made.listed.len();
    for (operands, extra) in packets {
        let start = made.bytes;
        let mut read = Vec::new();
        for ((which, offset, slot, reach, write), number) in operands.into_iter().zip(0..) {
            let element = which.index(elements);
            let listed = made.listed[element];
            let align = if reach % 2 == 0 { 4 } else { 8 };
            let patch_offset = start + 8 + 8 * number;
            read.push(Operand {
                dword: patch_offset / 4,
                align,
                reach,
                write: write && listed.writable,
            });
            made.patches.push(Patch {
                alloc_index: element as u32,
                // Operands of one packet use different slots.
                slot: slot % 2 * 2 + number,
                kind: PatchKind::Full64,
                driver_id: 0,
                alloc_offset: offset % (listed.size - reach + 1) / 8 * 8,
                patch_offset,
                split_offset: start,
            });
        }
        made.bytes += 8 + 8 * read.len() as u32 + 8 * extra;
        made.packets.push((start, read));
    }
    // What no packet uses is bound at the end, and a slot is emptied.
    let binding = |alloc_index| Patch {
        alloc_index,
        slot: 0,
        kind: PatchKind::None,
        driver_id: 0,
        alloc_offset: 0,
        patch_offset: 0,
        split_offset: made.bytes,
    };
    let unused = (0..elements as u32).filter(|index| {
        let mut names = made.patches.iter().map(|patch| patch.alloc_index);
        !names.any(|name| name == *index)
    });
    let bindings: Vec<Patch> = unused.chain([NO_ALLOCATION]).map(binding).collect();
    made.patches.extend(bindings);
    made
}

fn valid() -> impl Strategy<Value = Submission> {
    let operand = (
        any::<Index>(),
        0..300_u64,
        0..8_u32,
        1..65_u64,
        any::<bool>(),
    );
    let packet = (prop::collection::vec(operand, 0..3), 0..3_u32);
    let packets = prop::collection::vec(packet, 0..12);
    let allocations = prop::collection::vec((64..300_u64, prop::bool::weighted(0.8)), 1..8);
    (packets, allocations).prop_map(|(packets, allocations)| build(packets, allocations))
}

/// One change to a submission.
#[derive(Clone, Debug)]
enum Mutation {
    /// A field of an entry.
    Patch(Index, PatchField),
    /// A field of an element.
    Listed(Index, ListedField),
    /// A field of an operand.
    Operand(Index, OperandField),
    /// An entry less.
    Remove(Index),
    /// An entry twice.
    Repeat(Index),
    /// Two entries exchanged.
    Swap(Index, Index),
    /// A packet that the reader joins to the one before.
    Join(Index),
}

#[derive(Clone, Debug)]
enum PatchField {
    AllocIndex(u32),
    Slot(u32),
    Binds,
    AllocOffset(u64),
    PatchOffset(u32),
    SplitOffset(u32),
}

#[derive(Clone, Debug)]
enum ListedField {
    Null,
    Object(u64),
    Instance(u32),
    ReadOnly,
    Size(u64),
}

#[derive(Clone, Debug)]
enum OperandField {
    Align,
    Reach(u64),
    Write,
    Gone,
}

/// Byte offsets: on and off the grid, inside and outside.
fn offset() -> impl Strategy<Value = u32> {
    prop_oneof![
        6 => (0..40_u32).prop_map(|units| units * 8),
        1 => 0..320_u32,
        1 => u32::MAX - 20..=u32::MAX,
    ]
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let wide = || prop_oneof![0..320_u64, u64::MAX - 9..=u64::MAX];
    let index = prop_oneof![0..9_u32, Just(NO_ALLOCATION)];
    let patch = prop_oneof![
        index.prop_map(PatchField::AllocIndex),
        (0..6_u32).prop_map(PatchField::Slot),
        Just(PatchField::Binds),
        wide().prop_map(PatchField::AllocOffset),
        offset().prop_map(PatchField::PatchOffset),
        offset().prop_map(PatchField::SplitOffset),
    ];
    let listed = prop_oneof![
        Just(ListedField::Null),
        (1..5_u64).prop_map(ListedField::Object),
        (0..2_u32).prop_map(ListedField::Instance),
        Just(ListedField::ReadOnly),
        wide().prop_map(ListedField::Size),
    ];
    let operand = prop_oneof![
        Just(OperandField::Align),
        wide().prop_map(OperandField::Reach),
        Just(OperandField::Write),
        Just(OperandField::Gone),
    ];
    let which = any::<Index>;
    prop_oneof![
        6 => (which(), patch).prop_map(|(which, field)| Mutation::Patch(which, field)),
        3 => (which(), listed).prop_map(|(which, field)| Mutation::Listed(which, field)),
        3 => (which(), operand).prop_map(|(which, field)| Mutation::Operand(which, field)),
        1 => which().prop_map(Mutation::Remove),
        1 => which().prop_map(Mutation::Repeat),
        1 => (which(), which()).prop_map(|(one, other)| Mutation::Swap(one, other)),
        1 => which().prop_map(Mutation::Join),
    ]
}

/// Applies a change; without something to change it does nothing.
fn mutate(made: &mut Submission, mutation: Mutation) {
    let patches = made.patches.len();
    match mutation {
        Mutation::Patch(which, field) if patches != 0 => {
            mutate_patch(&mut made.patches[which.index(patches)], field);
        }
        Mutation::Listed(which, field) => {
            let listed = which.index(made.listed.len());
            mutate_listed(&mut made.listed[listed], field);
        }
        Mutation::Operand(which, field) if !made.packets.is_empty() => {
            let packet = which.index(made.packets.len());
            mutate_operand(&mut made.packets[packet].1, field);
        }
        Mutation::Remove(which) if patches != 0 => {
            made.patches.remove(which.index(patches));
        }
        Mutation::Repeat(which) if patches != 0 => {
            let position = which.index(patches);
            made.patches.insert(position, made.patches[position]);
        }
        Mutation::Swap(one, other) if patches != 0 => {
            made.patches.swap(one.index(patches), other.index(patches));
        }
        Mutation::Join(which) if made.packets.len() > 1 => {
            let position = which.index(made.packets.len() - 1);
            let (_, operands) = made.packets.remove(position + 1);
            made.packets[position].1.extend(operands);
        }
        _ => {}
    }
}

fn mutate_patch(patch: &mut Patch, field: PatchField) {
    match field {
        PatchField::AllocIndex(value) => patch.alloc_index = value,
        PatchField::Slot(value) => patch.slot = value,
        PatchField::Binds => patch.kind = PatchKind::None,
        PatchField::AllocOffset(value) => patch.alloc_offset = value,
        PatchField::PatchOffset(value) => patch.patch_offset = value,
        PatchField::SplitOffset(value) => patch.split_offset = value,
    }
}

fn mutate_listed(listed: &mut Listed, field: ListedField) {
    match field {
        ListedField::Null => *listed = Listed::default(),
        ListedField::Object(value) => listed.object = value,
        ListedField::Instance(value) => listed.instance = value,
        ListedField::ReadOnly => listed.writable = false,
        ListedField::Size(value) => listed.size = value,
    }
}

fn mutate_operand(operands: &mut Vec<Operand>, field: OperandField) {
    let Some(operand) = operands.first_mut() else {
        return;
    };
    match field {
        OperandField::Align => operand.align = 4096,
        OperandField::Reach(value) => operand.reach = value,
        OperandField::Write => operand.write = true,
        OperandField::Gone => {
            operands.remove(0);
        }
    }
}

/// The kinds that this checker knows.
const KINDS: [Kind; 12] = [
    Kind::UnpatchedOperand,
    Kind::PatchNotOperand,
    Kind::PatchRange,
    Kind::AllocRange,
    Kind::SplitOrder,
    Kind::SplitBoundary,
    Kind::SlotRange,
    Kind::Duplicate,
    Kind::Access,
    Kind::AllocIndex,
    Kind::NotBound,
    Kind::Unused,
];

/// Which kinds were seen, a bit for each number, and bit 0 for an accepted one.
static SEEN: AtomicU32 = AtomicU32::new(0);

#[test]
fn valid_submissions_pass() {
    soak::check(1500, valid(), |made| {
        prop_assert_eq!(made.defects(), vec![]);
        prop_assert_eq!(made.check(), Ok(()));
        Ok(())
    });
}

#[test]
fn mutated_submissions_are_judged_as_by_the_naive_checker() {
    let mutations = prop::collection::vec(mutation(), 1..4);
    soak::check(4000, (valid(), mutations), |(mut made, mutations)| {
        for mutation in mutations {
            mutate(&mut made, mutation);
        }
        let defects = made.defects();
        match made.check() {
            Ok(()) => {
                prop_assert_eq!(defects, vec![]);
                SEEN.fetch_or(1, Ordering::Relaxed);
            }
            Err(refused) => {
                prop_assert!(
                    defects.contains(&refused),
                    "{:?} not in {:?}",
                    refused,
                    defects
                );
                SEEN.fetch_or(1 << refused.kind.number(), Ordering::Relaxed);
            }
        }
        Ok(())
    });
    let seen = SEEN.load(Ordering::Relaxed);
    assert!(seen & 1 != 0, "no mutated submission was accepted");
    for kind in KINDS {
        assert!(seen & 1 << kind.number() != 0, "{kind:?} was never reached");
    }
}

/// The largest lists that every node takes, in a buffer of 1 MiB: quadratic work would not end.
#[test]
fn largest_submission_takes_linear_time() {
    let (elements, entries, bytes) = (1 << 16, 1 << 20, 1 << 20);
    let mut made = Submission {
        bytes,
        ..Submission::default()
    };
    made.listed.extend((0..elements).map(|element| Listed {
        // Every digit differs somewhere, and instances collide.
        object: (u64::from(element) | 1 << 16).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        instance: element % 3 * 0x1234_5678,
        writable: true,
        size: 4096,
    }));
    let packets = bytes / 16;
    for packet in 0..packets {
        let operand = Operand {
            dword: packet * 4 + 2,
            align: 8,
            reach: 8,
            write: true,
        };
        made.packets.push((packet * 16, vec![operand]));
        for number in 0..entries / packets {
            let patching = number == 0;
            made.patches.push(Patch {
                alloc_index: packet,
                slot: number % SLOTS,
                kind: if patching {
                    PatchKind::Full64
                } else {
                    PatchKind::None
                },
                driver_id: 0,
                alloc_offset: 0,
                patch_offset: if patching { packet * 16 + 8 } else { 0 },
                split_offset: packet * 16,
            });
        }
    }
    assert_eq!(made.patches.len(), 1 << 20);
    assert_eq!(made.check(), Ok(()));
    let last = made.listed.len() - 1;
    made.listed[last] = made.listed[0];
    let index = last as u32;
    let kind = Kind::Duplicate;
    assert_eq!(made.check(), Err(Refused { kind, index }));
}
