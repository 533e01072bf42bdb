// SPDX-License-Identifier: GPL-2.0

//! ALLOC_CREATE, ALLOC_QUERY, SET_PRIORITY.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::capability,
    object::{
        allocation::{
            self,
            Allocation,
            Description,
            Flag,
            Flags,
            Format,
            Hold,
            Picture, //
        },
        device::Device,
        residence::Location, //
    },
};

use super::{
    abi::{
        self,
        AllocCreate,
        AllocInfo,
        AllocQuery,
        AllocState,
        PriorityItem,
        SetPriority,
        FAIL_INDEX_NONE, //
    },
    dispatch::{
        argument,
        Answered,
        Done, //
    },
    file::File,
    handle::{
        Kind,
        Object,
        Publication,
        Publications, //
    },
    list::{
        self,
        Blame,
        Empty,
        List,
        Refused, //
    },
};

/// Allocation flags whose features are there.
const FLAGS_KNOWN: u32 = abi::ALLOC_CPU_VISIBLE
    | abi::ALLOC_ACCESSED_PHYSICALLY
    | abi::ALLOC_READ_ONLY
    | abi::ALLOC_PRIMARY
    | abi::ALLOC_SWAPPABLE
    | abi::ALLOC_PINNED;

argument! {
    AllocCreate:
    flags flags;
    zero pad;
    results;
    report fail_index = FAIL_INDEX_NONE
}

argument! {
    AllocQuery:
    flags flags;
    zero;
    results;
    report fail_index = FAIL_INDEX_NONE
}

argument! {
    SetPriority:
    flags flags;
    zero;
    results;
    report fail_index = FAIL_INDEX_NONE
}

/// Makes allocations: all of the list, or none.
///
/// # Errors
///
/// - `EOPNOTSUPP`: a flag, a kind of caching or a segment list whose feature is not there, or an
///   unknown format of pixels.
/// - `EINVAL`: a field that does not apply is not zero, or what [`allocation::create`] says.
/// - `ENOENT`: no such device.
/// - `EIO`, `ENODEV`: the device is in error, or gone.
/// - `EPERM`: PINNED without the right to it.
/// - `ENOSPC`: no permitted segment could ever hold it, or the client has too many objects.
/// - `ENOMEM`: no memory.
pub(super) fn create<'a>(file: &'a File, argument: &mut AllocCreate) -> Result<Publications<'a>> {
    let fail_index = &mut argument.fail_index;
    let mut infos: List<AllocInfo, 1> =
        List::read(&argument.infos, list::CREATIONS, Empty::Refused).blame(fail_index)?;
    list::check_each(infos.as_slice(), check_known).blame(fail_index)?;
    list::check_each(infos.as_slice(), check_applicable).blame(fail_index)?;
    let device: Arc<Device> = file.handles().get(argument.device)?;
    device.ensure_active()?;
    list::check_each(infos.as_slice(), check_rights).blame(fail_index)?;

    let create = |index: usize, info: &mut AllocInfo| {
        create_one(file, argument.device, &device, info).map_err(|error| Refused::at(index, error))
    };
    let created = create_all(infos.as_mut_slice(), create).blame(fail_index)?;
    infos.write_back()?;
    Ok(created)
}

fn create_all<'a>(
    infos: &mut [AllocInfo],
    mut create: impl FnMut(usize, &mut AllocInfo) -> Result<Publication<'a>, Refused>,
) -> Result<Publications<'a>, Refused> {
    if let [info] = infos {
        return create(0, info).map(Publications::One);
    }
    let mut created = KVVec::with_capacity(infos.len(), GFP_KERNEL_ACCOUNT)?;
    for (index, info) in infos.iter_mut().enumerate() {
        created.push(create(index, info)?, GFP_KERNEL_ACCOUNT)?;
    }
    Ok(Publications::Many(created))
}

fn create_one<'a>(
    file: &'a File,
    owner: u32,
    device: &Arc<Device>,
    info: &mut AllocInfo,
) -> Result<Publication<'a>> {
    let reservation = file.handles().reserve(Some(owner))?;
    let hold = allocation::create(device, &describe(info))?;
    let (offset, span) = hold.mapping();
    info.handle = reservation.handle(Kind::Allocation);
    info.object_id = hold.object_id();
    info.mmap_offset = offset;
    info.mmap_span = span;
    info.slot_stride = span;
    info.busy_offset = 0;
    info.pitch = hold.primary().map_or(0, |primary| primary.picture().pitch);
    Ok(Publication::new(
        file.client(),
        reservation,
        Object::Allocation(hold),
    ))
}

/// Refuses what needs a feature that is not there.
fn check_known(info: &AllocInfo) -> Result {
    let writes_where_it_reads =
        info.write_segments == 0 || info.write_segments == info.read_segments;
    let caching = matches!(
        info.caching,
        abi::ALLOC_CACHING_DEFAULT | abi::ALLOC_CACHING_WRITE_BACK
    );
    let shown = info.flags & abi::ALLOC_PRIMARY != 0 && info.format != 0;
    if info.flags & !FLAGS_KNOWN != 0
        || (shown && Format::from_code(info.format).is_none())
        || !writes_where_it_reads
        || info.evict_segments != 0
        || !caching
    {
        return Err(EOPNOTSUPP);
    }
    Ok(())
}

/// Refuses fields that do not apply.
fn check_applicable(info: &AllocInfo) -> Result {
    let picture = [info.width, info.height, info.pitch, info.format];
    let applies = match info.flags & abi::ALLOC_PRIMARY {
        0 => picture == [0; 4],
        // Its pitch may be left to us, and how pixels lie may not.
        _ => info.format != 0,
    };
    if info.rename_max != 0 || info.user_addr != 0 || !applies {
        return Err(EINVAL);
    }
    if info.priority > abi::ALLOC_PRIORITY_MAXIMUM {
        return Err(EINVAL);
    }
    Ok(())
}

/// Refuses what the caller has no right to: memory that never moves is taken from everybody.
fn check_rights(info: &AllocInfo) -> Result {
    if info.flags & abi::ALLOC_PINNED != 0 && !capability::sys_admin() {
        return Err(EPERM);
    }
    Ok(())
}

fn describe(info: &AllocInfo) -> Description {
    let mut flags = Flags::default();
    for flag in [
        Flag::CpuVisible,
        Flag::AccessedPhysically,
        Flag::ReadOnly,
        Flag::Primary,
        Flag::Swappable,
        Flag::Pinned,
    ] {
        // CAST: the number of a variant.
        if info.flags & flag as u32 != 0 {
            flags |= flag;
        }
    }
    Description {
        size: info.size,
        align: info.align,
        flags,
        segments: info.read_segments,
        preferred: info.preferred,
        priority: match info.priority {
            0 => abi::ALLOC_PRIORITY_NORMAL,
            priority => priority,
        },
        picture: Format::from_code(info.format).map(|format| Picture {
            width: info.width,
            height: info.height,
            pitch: info.pitch,
            format,
        }),
    }
}

/// Says where allocations are and what they are doing.
///
/// # Errors
///
/// - `ENOENT`: no such allocation.
/// - `EIO`: the device of one is in error.
pub(super) fn query(file: &File, argument: &mut AllocQuery) -> Result<Answered> {
    let fail_index = &mut argument.fail_index;
    let mut items: List<AllocState> =
        List::read(&argument.items, list::HANDLES, Empty::Refused).blame(fail_index)?;
    for (index, item) in items.as_mut_slice().iter_mut().enumerate() {
        let allocation: Hold = file
            .handles()
            .get(item.handle)
            .map_err(|error| Refused::at(index, error))
            .blame(fail_index)?;
        allocation
            .device()
            .ensure_active()
            .map_err(|error| Refused::at(index, error))
            .blame(fail_index)?;
        *item = describe_state(item.handle, &allocation);
    }
    items.write_back()?;
    Ok(Answered)
}

fn describe_state(handle: u32, allocation: &Allocation) -> AllocState {
    let (residency, segment, dirty, references) = {
        let residence = allocation.residence().lock();
        let (residency, segment) = match residence.location() {
            Location::Segment(id, _) => (abi::ALLOC_RESIDENCY_MEMORY, id.get()),
            Location::Aperture(_) => (abi::ALLOC_RESIDENCY_SYSTEM, aperture(allocation)),
            Location::System => (abi::ALLOC_RESIDENCY_SYSTEM, abi::SEGMENT_ID_SYSTEM),
            Location::Nowhere if residence.offer().is_given_up() => {
                (abi::ALLOC_RESIDENCY_DISCARDED, abi::SEGMENT_ID_NONE)
            }
            Location::Nowhere => (abi::ALLOC_RESIDENCY_NOT_RESIDENT, abi::SEGMENT_ID_NONE),
        };
        let dirty = residence.gpu_dirty();
        (residency, segment, dirty, residence.references())
    };
    let pinned = allocation.flags().contains(Flag::Pinned);
    let flags = [
        (allocation.is_offered(), abi::ALLOC_STATE_OFFERED),
        (pinned, abi::ALLOC_STATE_PINNED),
        (allocation.is_on_screen(), abi::ALLOC_STATE_ON_SCREEN),
        (dirty, abi::ALLOC_STATE_GPU_DIRTY),
        (allocation.is_locked(), abi::ALLOC_STATE_LOCKED),
        (allocation.is_busy(), abi::ALLOC_STATE_BUSY),
        (
            allocation.residence().lock().is_unplaced(),
            abi::ALLOC_STATE_NO_PLACE,
        ),
    ];
    let (mmap_offset, mmap_span) = allocation.mapping();
    AllocState {
        handle,
        residency,
        segment,
        flags: flags
            .iter()
            .filter(|(set, _)| *set)
            .fold(0, |flags, (_, flag)| flags | flag),
        priority: allocation.priority(),
        resident_refs: references,
        instances: 1,
        current: 0,
        size: allocation.size(),
        object_id: allocation.object_id(),
        mmap_offset,
        mmap_span,
    }
}

/// Returns the id of the aperture.
fn aperture(allocation: &Allocation) -> u32 {
    let capabilities = allocation.adapter().backend().capabilities();
    capabilities
        .aperture()
        .map_or(abi::SEGMENT_ID_NONE, |aperture| aperture.id.get())
}

/// Changes how much it matters that allocations stay where engines reach them: all of the list, or
/// none.
///
/// # Errors
///
/// - `ENOENT`: no such allocation.
/// - `EINVAL`: no such priority.
/// - `EIO`: the device of one is in error.
/// - `ENOMEM`: no memory.
pub(super) fn set_priority(file: &File, argument: &mut SetPriority) -> Result<Done> {
    let fail_index = &mut argument.fail_index;
    let items: List<PriorityItem> =
        List::read(&argument.items, list::HANDLES, Empty::Refused).blame(fail_index)?;
    let items = items.as_slice();
    let mut holds = KVVec::with_capacity(items.len(), GFP_KERNEL_ACCOUNT)?;
    let handles = items.iter().map(|item| item.alloc);
    file.handles()
        .visit(handles, |index, hold: Option<Hold>| {
            let hold = hold.ok_or(Refused::at(index, ENOENT))?;
            holds
                .push_within_capacity(hold)
                .map_err(|_| Refused::at(index, ENOMEM))
        })
        .blame(fail_index)?;
    list::check_each(items, check_priority).blame(fail_index)?;
    list::check_each(&holds, |hold| hold.device().ensure_active()).blame(fail_index)?;
    for (hold, item) in holds.iter().zip(items) {
        Allocation::set_priority(hold.allocation(), item.priority);
    }
    Ok(Done)
}

fn check_priority(item: &PriorityItem) -> Result {
    match item.priority {
        abi::ALLOC_PRIORITY_MINIMUM..=abi::ALLOC_PRIORITY_MAXIMUM => Ok(()),
        _ => Err(EINVAL),
    }
}
