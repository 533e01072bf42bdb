// SPDX-License-Identifier: GPL-2.0

//! SET_NAME: gives a client or one of its objects a name for people to read.

use kernel::{
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    },
};

use crate::object::name::{
    self,
    Name, //
};

use super::{
    abi::SetName,
    dispatch::{
        argument,
        Silent, //
    },
    file::File, //
};

argument! {
    SetName:
    flags;
    zero;
    results;
    report
}

/// Names an object, or the client with handle 0.
///
/// # Errors
///
/// - `EINVAL`: the name is too long, or has a character that is not printable or is white space.
/// - `EFAULT`: the name cannot be read.
/// - `ENOENT`: no such object.
/// - `ENOMEM`: no memory.
pub(super) fn set_name(file: &File, argument: &mut SetName) -> Result<Silent> {
    let name = read(argument)?;
    if argument.object == 0 {
        file.client().name().set(name)?;
    } else {
        file.handles().get_any(argument.object)?.name().set(name)?;
    }
    Ok(Silent)
}

/// Copies the name in; none clears it.
fn read(argument: &SetName) -> Result<Option<Name>> {
    // CAST: `usize` has 64 bits wherever this driver runs.
    let length = argument.len as usize;
    if length == 0 {
        return if argument.ptr == 0 {
            Ok(None)
        } else {
            Err(EINVAL)
        };
    }
    let mut text = [0; name::MAX];
    let text = text.get_mut(..length).ok_or(EINVAL)?;
    let address = usize::try_from(argument.ptr).map_err(|_| EFAULT)?;
    UserSlice::new(UserPtr::from_addr(address), length)
        .reader()
        .read_slice(text)?;
    Name::new(text).map(Some)
}
