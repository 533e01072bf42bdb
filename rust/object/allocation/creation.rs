// SPDX-License-Identifier: GPL-2.0

//! The birth of an allocation: what is asked for, whether it could ever be had, and the object.

use kernel::{
    list::{
        AtomicTracker,
        ListLinks, //
    },
    new_mutex,
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    },
    types::ScopeGuard,
};

use crate::{
    abstractions::{
        memory_cgroup::MemoryCgroup,
        shmem::SwapFile,
        trace, //
    },
    backend::{
        capabilities::{
            Segment,
            SegmentFlag,
            SegmentKind, //
        },
        ObjectCall, //
    },
    object::{
        adapter::Adapter,
        client::Sum,
        device::Device,
        name,
        offsets::{
            Target,
            Token, //
        },
        order::EntryNodes,
        presence::Presence,
        reclaim::IdleNode,
        residence::Residence,
    },
    policy::{
        placement,
        residency::Demand, //
    },
    units::PAGE_BYTES,
};

use super::{
    Allocation,
    Flag,
    Flags,
    Hold,
    Picture,
    Primary, //
};

/// What ALLOC_CREATE asks for.
#[derive(Clone, Copy)]
pub(crate) struct Description {
    /// Bytes, not rounded yet.
    pub(crate) size: u64,
    /// Alignment, a power of two, or 0.
    pub(crate) align: u64,
    /// Properties.
    pub(crate) flags: Flags,
    /// Permitted segments, or 0 for all.
    pub(crate) segments: u32,
    /// Order of preference.
    pub(crate) preferred: u64,
    /// 1 to 5.
    pub(crate) priority: u32,
    /// What a primary shows.
    pub(crate) picture: Option<Picture>,
}

/// Creates an allocation of `device`. Nothing is committed: no page is taken (RES-2).
///
/// # Errors
///
/// - `EINVAL`: size 0, an alignment that is no power of two, an unknown segment, segment 0, a
///   preference outside the set, or a picture that is empty, larger than the allocation, or of a
///   pitch that is not aligned or below its lines.
/// - `EOVERFLOW`: the size overflows when rounded.
/// - `ENOSPC`: no permitted segment could ever hold it, or it may not move and would be out of
///   reach of the CPU wherever it may be; no mapping offset is left.
/// - `ENOMEM`: no memory.
///
/// Requirements: SEG-11, SEG-21, SEG-24, SEG-30.
pub(crate) fn create(device: &Arc<Device>, description: &Description) -> Result<Hold> {
    let adapter = device.adapter();
    let fitted = fit(adapter, description)?;
    let client = device.client();
    let token = if description.flags.contains(Flag::CpuVisible) {
        Some(adapter.offsets().reserve(client, fitted.size)?)
    } else {
        None
    };
    let token = ScopeGuard::new_with_data(token, |token| {
        if let Some(token) = token {
            adapter.offsets().give(client, token);
        }
    });
    let mapping_start = token.as_ref().map_or(0, Token::start);
    let nodes = EntryNodes::new()?;
    let primary = fitted.picture.map(Primary::new).transpose()?;
    let swappable = description.flags.contains(Flag::Swappable);
    let (swap, idle_node) = match swappable {
        true => {
            let file = SwapFile::new(fitted.size / PAGE_BYTES)?;
            (Some(file), Some(IdleNode::new(GFP_KERNEL_ACCOUNT)?))
        }
        false => (None, None),
    };
    let object_id = adapter.next_number();
    let process = client.id();
    let presence = Presence::new(
        adapter.backend(),
        ObjectCall::CreateAllocation {
            process,
            allocation: object_id,
        },
        ObjectCall::DestroyAllocation {
            process,
            allocation: object_id,
        },
    )?;
    let allocation = Arc::pin_init(
        pin_init!(Allocation {
            object_id,
            device: device.clone(),
            size: fitted.size,
            align: fitted.align,
            flags: description.flags,
            segments: fitted.segments,
            preferred: description.preferred,
            priority: Atomic::new(description.priority),
            primary,
            payer: MemoryCgroup::of_caller(),
            swap,
            holds: Atomic::new(1),
            readers: Atomic::new(0),
            writers: Atomic::new(0),
            requirements: Atomic::new(0),
            offered: Atomic::new(false),
            locks: Atomic::new(0),
            mappings: Atomic::new(0),
            mapped: Atomic::new(0),
            moves: Atomic::new(0),
            mapping_start,
            name <- name::Slot::new(),
            token <- new_mutex!(None, "Allocation::token"),
            residence <- new_mutex!(Residence::new(nodes, idle_node), "Allocation::residence"),
            links <- ListLinks::new(),
            tracker <- AtomicTracker::new(),
            sunk_links <- ListLinks::new(),
            sunk_tracker <- AtomicTracker::new(),
            _presence: presence,
        }),
        GFP_KERNEL_ACCOUNT,
    )?;
    adapter
        .registries()
        .allocations
        .add(object_id, &allocation)?;
    allocation.trace(trace::Life::Create);
    client.usage().add(Sum::Total, fitted.size);
    if let Some(token) = token.dismiss() {
        let target = Target::Allocation(allocation.clone());
        adapter.offsets().publish(&token, target);
        *allocation.token.lock() = Some(token);
    }
    Ok(Hold::first(allocation))
}

/// What becomes of a description on a given adapter.
struct Fitted {
    size: u64,
    align: u64,
    segments: u32,
    picture: Option<Picture>,
}

/// Checks a description and rounds it to what the permitted segments can hold.
fn fit(adapter: &Adapter, description: &Description) -> Result<Fitted> {
    let capabilities = adapter.backend().capabilities();
    let align = description.align;
    if description.size == 0 || (align != 0 && !align.is_power_of_two()) {
        return Err(EINVAL);
    }
    let picture = description
        .picture
        .map(|picture| picture.lay_out(capabilities.picture.pitch_align, description.size))
        .transpose()
        .map_err(|_| EINVAL)?;
    let all = capabilities
        .segments
        .iter()
        .fold(0, |mask, segment| mask | segment.id.bit());
    let segments = match description.segments {
        0 => all,
        mask if mask & !all == 0 => mask,
        _ => return Err(EINVAL),
    };
    placement::check_preference(description.preferred, segments).map_err(|_| EINVAL)?;
    let segments = capabilities
        .segments
        .iter()
        .filter(|segment| serves(segment, description.flags))
        .fold(0, |mask, segment| mask | (segments & segment.id.bit()));
    let granule = capabilities
        .segments
        .iter()
        .filter(|segment| segments & segment.id.bit() != 0)
        .fold(PAGE_BYTES, |granule, segment| {
            granule.max(segment.page_bytes)
        });
    let size = description
        .size
        .checked_next_multiple_of(granule)
        .ok_or(EOVERFLOW)?;
    // A size beyond this cannot be held as pages, and its sums could overflow.
    if size > i64::MAX.unsigned_abs() {
        return Err(EOVERFLOW);
    }
    // A display reads one run, in a memory segment or of the aperture (SEG-21, SEG-22).
    let flags = description.flags;
    let contiguous = flags.contains(Flag::AccessedPhysically) || flags.contains(Flag::Primary);
    let demand = Demand {
        bytes: size,
        mask: segments,
        contiguous,
    };
    let aligned = align <= granule || adapter.could_align(segments, align);
    if !aligned || !adapter.could_hold(&demand) {
        return Err(ENOSPC);
    }
    Ok(Fitted {
        size,
        align: align.max(granule),
        segments,
        picture,
    })
}

/// Returns whether an allocation with these properties can do in `segment` what it is made for.
fn serves(segment: &Segment, flags: Flags) -> bool {
    if flags.contains(Flag::Primary) && !segment.flags.contains(SegmentFlag::Scanout) {
        return false;
    }
    // What never moves, or not while it is shown, cannot come where the CPU reaches it when it is
    // touched.
    let stationary = flags.contains(Flag::Pinned) || flags.contains(Flag::Primary);
    let reachable = segment.kind == SegmentKind::Aperture || segment.cpu_window > 0;
    !stationary || !flags.contains(Flag::CpuVisible) || reachable
}
