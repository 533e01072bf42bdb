// SPDX-License-Identifier: GPL-2.0

//! What must hold before a submission is accepted (section 9.1 of the interface).
//!
//! The backend reads the packets and finds the operands; the policy checks them against the lists;
//! this file brings the two together, adds what depends on the state of the allocations, and takes
//! the backing pages that list paging can need (RES-2). Time is linear in buffer and lists.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    backend::{
        self,
        Event,
        Stop,
        Unparsed, //
    },
    object::{
        adapter::Adapter,
        allocation::{
            Access,
            Flag, //
        },
        backing::Backing,
        context::{
            Context,
            Mode, //
        },
        device,
        need::Need,
        submission::{
            Named,
            Refused,
            Request, //
        },
    },
    policy::{
        self,
        patching::{
            Checker,
            Kind,
            Listed,
            Lists,
            Operand,
            Scratch,
            Table,
            Use,
            NO_ALLOCATION, //
        },
        residency::Demand,
        splitting,
    },
    units::Place,
};

/// Backing pages for allocations that had none.
#[must_use]
pub(super) struct Commitment(KVVec<(usize, Backing)>);

/// What a submission has that passed all checks.
pub(super) struct Checked {
    /// Its allocation list, as the policy wants it.
    pub(super) listed: KVVec<Listed>,
    /// Pages for what it names.
    pub(super) commitment: Commitment,
}

/// Checks everything, in the order rights, ranges, state, resources.
pub(super) fn check(context: &Context, request: &Request) -> Result<Checked, Refused> {
    check_rights(&request.named)?;
    let listed = listed(&request.named)?;
    check_patches(context, request, &listed)?;
    check_offers(&request.named)?;
    check_references(context, &request.named)?;
    Ok(Checked {
        listed,
        commitment: commit(&request.named)?,
    })
}

/// Returns the refusal because of element `index` of the allocation list.
pub(super) fn refuse(kind: Kind, index: usize) -> Refused {
    policy::patching::Refused {
        kind,
        // Lists are shorter than 2^32.
        index: u32::try_from(index).unwrap_or(u32::MAX),
    }
    .into()
}

/// Only allocations made for physical access may be named, and only writable ones for writing.
fn check_rights(named: &[Named]) -> Result<(), Refused> {
    for (index, element) in named.iter().enumerate() {
        let Some(hold) = &element.hold else { continue };
        let written = element.access == Access::Write;
        if !hold.is_physical() || (written && hold.flags().contains(Flag::ReadOnly)) {
            return Err(refuse(Kind::Access, index));
        }
        if element.instance != 0 && element.instance != u32::MAX {
            return Err(refuse(Kind::Instance, index));
        }
    }
    Ok(())
}

/// Returns the allocation list as the policy wants it.
fn listed(named: &[Named]) -> Result<KVVec<Listed>, Refused> {
    let mut listed = KVVec::with_capacity(named.len(), GFP_KERNEL_ACCOUNT)?;
    for element in named {
        let element = match &element.hold {
            Some(hold) => Listed {
                object: hold.object_id(),
                instance: 0,
                writable: element.access == Access::Write,
                size: hold.size(),
            },
            None => Listed::default(),
        };
        listed.push(element, GFP_KERNEL_ACCOUNT)?;
    }
    Ok(listed)
}

/// Reads the packets and checks each operand against the lists.
fn check_patches(context: &Context, request: &Request, listed: &[Listed]) -> Result<(), Refused> {
    let adapter = context.device().adapter();
    let backend = adapter.backend();
    let words = request.commands.len();
    // CAST: `usize` has 64 bits wherever this driver runs.
    let slots = backend.capabilities().patch_slots as usize;
    let lists = Lists {
        // Commands are no longer than the interface permits, far below 2^32 bytes.
        bytes: u32::try_from(words.saturating_mul(4)).map_err(|_| EINVAL)?,
        listed,
        patches: &request.patches,
    };
    let mut operands = KVVec::from_elem(0, words.div_ceil(2), GFP_KERNEL_ACCOUNT)?;
    let mut slots = KVVec::from_elem(0, slots, GFP_KERNEL_ACCOUNT)?;
    let mut uses = KVVec::from_elem(Use::default(), listed.len(), GFP_KERNEL_ACCOUNT)?;
    let mut order = KVVec::from_elem(0, listed.len().saturating_mul(2), GFP_KERNEL_ACCOUNT)?;
    let scratch = Scratch {
        operands: &mut operands,
        slots: &mut slots,
        uses: &mut uses,
        order: &mut order,
    };
    let scratch = scratch.cut_to(&lists).map_err(|_| ENOMEM)?;
    let mut checker = Checker::new(lists, scratch)?;
    let mut refused = None;
    let parsed = backend.parse(&request.commands, &mut |event| {
        let result = match event {
            Event::Packet { offset } => checker.packet(offset),
            Event::Operand(operand) => checker.operand(&Operand {
                dword: operand.dword,
                align: operand.align,
                reach: operand.reach,
                write: operand.access == backend::Access::Write,
            }),
        };
        result.map_err(|error| {
            refused = Some(error);
            Stop
        })
    });
    match (parsed, refused) {
        (_, Some(refused)) => return Err(refused.into()),
        (Err(Unparsed::BadPacket { offset }), None) => {
            return Err(policy::patching::Refused {
                kind: Kind::BadPacket,
                index: offset,
            }
            .into())
        }
        (_, None) => checker.finish()?,
    }
    check_room(context, request, &lists, &mut slots, &mut uses)
}

/// What is bound at once must fit together; where nothing is cut, everything named.
fn check_room(
    context: &Context,
    request: &Request,
    lists: &Lists<'_>,
    slots: &mut [u32],
    uses: &mut [Use],
) -> Result<(), Refused> {
    let capacities = context.device().adapter().whole_capacities();
    let nothing = Demand {
        bytes: 0,
        mask: u32::MAX,
        contiguous: false,
    };
    let demand = |index: u32| {
        // CAST: `usize` has 64 bits wherever this driver runs.
        let named = request.named.get(index as usize);
        named
            .and_then(|named| named.hold.as_ref())
            .map_or(nothing, |hold| hold.demand())
    };
    if fits_whole(context, &request.named) {
        return Ok(());
    }
    let mut table = Table::new(slots, uses);
    splitting::check_room(lists, demand, capacities, &mut table)?;
    if context.mode() == Mode::PatchedList {
        return Ok(());
    }
    let last = request.patches.len().saturating_sub(1);
    Err(refuse(Kind::TooLarge, last))
}

/// Returns whether everything that is named might be in memory at once.
pub(super) fn fits_whole(context: &Context, named: &[Named]) -> bool {
    let capacities = context.device().adapter().whole_capacities();
    let demands = named
        .iter()
        .filter_map(|named| named.hold.as_ref().map(|hold| hold.demand()));
    policy::residency::fits(demands, capacities).is_ok()
}

/// Nothing that is named may be offered.
fn check_offers(named: &[Named]) -> Result<(), Refused> {
    let is_offered = |element: &Named| element.hold.as_ref().is_some_and(|hold| hold.is_offered());
    match named.iter().position(is_offered) {
        Some(index) => Err(refuse(Kind::Offered, index)),
        None => Ok(()),
    }
}

/// In mode PATCHED_EXPLICIT everything named must be on the residency list.
fn check_references(context: &Context, named: &[Named]) -> Result<(), Refused> {
    if context.mode() != Mode::PatchedExplicit {
        return Ok(());
    }
    for (index, element) in named.iter().enumerate() {
        let Some(hold) = &element.hold else { continue };
        let references = hold.residence().lock().references();
        if references == 0 {
            context.device().fail(device::Offence {
                state: device::State::ErrorDma,
                context: context.number(),
                node: Some(context.node().0),
                submission: 0,
                offset: 0,
                fault: None,
            });
            return Err(refuse(Kind::NotResident, index));
        }
    }
    Ok(())
}

/// Takes the backing pages of everything named that has none.
fn commit(named: &[Named]) -> Result<Commitment, Refused> {
    let mut backings = KVVec::new();
    for (index, element) in named.iter().enumerate() {
        let Some(hold) = &element.hold else { continue };
        // Those that Linux may swap are pinned where the needs are listed.
        let missing = !hold.is_swappable() && hold.residence().lock().backing().is_none();
        if missing {
            let backing = hold.take_backing()?;
            backings.push((index, backing), GFP_KERNEL_ACCOUNT)?;
        }
    }
    Ok(Commitment(backings))
}

impl Commitment {
    /// Gives the pages to their allocations: from now on they are their own.
    pub(super) fn commit(self, named: &[Named]) {
        for (index, backing) in self.0 {
            if let Some(hold) = named.get(index).and_then(|named| named.hold.as_ref()) {
                hold.install(backing);
            }
        }
    }
}

/// What must be in its place while a submission runs.
pub(super) struct Needs {
    /// What it names, in the order in which the patch list names it first, and in mode PATCHED_EXPLICIT
    /// everything its device holds references to.
    pub(super) list: KVVec<Need>,
    /// For each element of the allocation list, which of them it is; all ones for NULL.
    pub(super) elements: KVVec<u32>,
}

/// Returns what must be in its place while the submission runs.
pub(super) fn needs(context: &Context, request: &Request) -> Result<Needs, Refused> {
    let named = &request.named;
    let mut list = KVVec::with_capacity(named.len(), GFP_KERNEL_ACCOUNT)?;
    let mut elements = KVVec::from_elem(NO_ALLOCATION, named.len(), GFP_KERNEL_ACCOUNT)?;
    for patch in &request.patches {
        // CAST: `usize` has 64 bits wherever this driver runs.
        let index = patch.alloc_index as usize;
        let element = named.get(index).zip(elements.get_mut(index));
        let Some((element, place)) = element.filter(|(_, place)| **place == NO_ALLOCATION) else {
            continue;
        };
        if let Some(hold) = &element.hold {
            // Lists are shorter than 2^32.
            *place = u32::try_from(list.len()).unwrap_or(NO_ALLOCATION);
            list.push(
                Need::named(hold.clone(), element.access)?,
                GFP_KERNEL_ACCOUNT,
            )?;
        }
    }
    // Without commands nothing is touched.
    if context.mode() == Mode::PatchedExplicit && !request.commands.is_empty() {
        let required = context.device().required()?;
        for requirement in required {
            let need = Need::required(requirement, Access::Read)?;
            list.push(need, GFP_KERNEL_ACCOUNT)?;
        }
    }
    Ok(Needs { list, elements })
}

/// Returns where each named allocation is now.
pub(super) fn places(
    adapter: &Arc<Adapter>,
    named: &[Named],
) -> Result<KVVec<Option<Place>>, Refused> {
    let mut places = KVVec::with_capacity(named.len(), GFP_KERNEL_ACCOUNT)?;
    let residency = adapter.residency().lock();
    for element in named {
        let place = element.hold.as_ref().and_then(|hold| {
            let residence = hold.residence().lock();
            residency.place_of(&residence)
        });
        let _ = places.push_within_capacity(place);
    }
    Ok(places)
}
