// SPDX-License-Identifier: GPL-2.0

//! BUDGET, RESERVE_BUDGET.

use kernel::prelude::*;

use crate::object::budget::Group;

use super::{
    abi::{
        self,
        Budget,
        ReserveBudget, //
    },
    dispatch::{
        argument,
        Answered,
        Silent, //
    },
    file::File,
};

argument! {
    Budget:
    flags flags;
    zero;
    results budget, usage, reservation, reservable, bytes_to_trim, generation;
    report
}

argument! {
    ReserveBudget:
    flags flags;
    zero;
    results;
    report
}

/// Returns the group with this number.
fn group(number: u32) -> Result<Group> {
    match number {
        abi::GROUP_LOCAL => Ok(Group::Local),
        abi::GROUP_NON_LOCAL => Ok(Group::NonLocal),
        _ => Err(EINVAL),
    }
}

/// Says how much of a group the client may keep, and keeps.
///
/// # Errors
///
/// - `EINVAL`: no such group.
///
/// Requirement: RES-19.
pub(super) fn budget(file: &File, argument: &mut Budget) -> Result<Answered> {
    let group = group(argument.group)?;
    let statement = file.adapter().budgets().statement(file.client(), group);
    argument.budget = statement.budget;
    argument.usage = statement.usage;
    argument.reservation = statement.reservation;
    argument.reservable = statement.reservable;
    argument.bytes_to_trim = statement.excess();
    argument.generation = statement.generation;
    Ok(Answered)
}

/// Reserves a part of the budget, which will not be taken away, instead of what was reserved before.
///
/// # Errors
///
/// - `EINVAL`: no such group.
/// - `ENOSPC`: more than can be reserved.
///
/// Requirement: RES-19.
pub(super) fn reserve(file: &File, argument: &mut ReserveBudget) -> Result<Silent> {
    let group = group(argument.group)?;
    file.adapter()
        .budgets()
        .reserve(file.client(), group, argument.bytes)?;
    Ok(Silent)
}
