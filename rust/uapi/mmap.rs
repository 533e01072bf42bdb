// SPDX-License-Identifier: GPL-2.0

//! `mmap` on the device node: from the token of an object to what lies behind it.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::vm_area::{
        Access,
        Installed,
        NewArea, //
    },
    object::{
        allocation::Allocation,
        cpu_access::{
            AllocationMapping,
            FenceMapping, //
        },
        offsets::Target,
        status_page::StatusPage, //
    },
    units::PAGE_BYTES,
};

use super::{
    abi,
    file::File, //
};

/// Maps what the offset of `area` names.
///
/// # Errors
///
/// - `EACCES`: no object of the client has this offset, or writing is asked for where only reading
///   is possible.
/// - `EINVAL`: the range leaves the object, or a private copy is asked for.
/// - `EPERM`: executing is asked for.
/// - `ENOMEM`: no memory.
pub(super) fn mmap<'a>(file: &File, area: NewArea<'a>) -> Result<Installed<'a>> {
    let offset = area.offset();
    if offset == abi::MMAP_OFFSET_STATUS_PAGE {
        if area.bytes() > PAGE_BYTES {
            return Err(EINVAL);
        }
        let mapping = StatusPage::mapping(file.client())?;
        return area.install(Arc::new(mapping, GFP_KERNEL_ACCOUNT)?, Access::Read);
    }
    let found = file.adapter().offsets().find(offset).ok_or(EACCES)?;
    if found.client != file.client().id() {
        return Err(EACCES);
    }
    let end = offset.checked_add(area.bytes()).ok_or(EINVAL)?;
    // OVERFLOW: offsets end far below.
    if end > found.start + found.bytes {
        return Err(EINVAL);
    }
    match found.target {
        Target::Allocation(allocation) => {
            let hold = Allocation::hold(&allocation).ok_or(EACCES)?;
            let mapping = AllocationMapping::new(hold, found.start);
            area.install(Arc::new(mapping, GFP_KERNEL_ACCOUNT)?, Access::Write)
        }
        Target::Fences(page) => {
            let mapping = FenceMapping::new(page);
            area.install(Arc::new(mapping, GFP_KERNEL_ACCOUNT)?, Access::Read)
        }
    }
}
