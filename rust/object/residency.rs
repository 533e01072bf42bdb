// SPDX-License-Identifier: GPL-2.0

//! MAKE_RESIDENT and EVICT: the part of the application thread.
//!
//! Residency is a reference count per device and allocation (RES-10). The application thread does
//! steps A1 to A4 of RES-1 and nothing else: it takes backing pages that are missing, counts the
//! references, checks in sums that what the device wants fits together, takes the next value of the
//! paging fence and hands a command to the worker. It neither builds operations nor waits.
//!
//! A call that fails has changed nothing: pages are taken before anything is counted, and counting
//! is undone when the sums do not fit.
//!
//! # Locking
//!
//! `Device::demands` (rank 1, before `Allocation::residence`) is held while references change, so
//! that counts and list agree.

use kernel::{
    list::ListArc,
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::trace,
    object::{
        allocation::{
            Allocation,
            Hold, //
        },
        backing::Backing,
        budget::Group,
        client::Client,
        command::Command,
        demand::{
            Demands,
            Entry, //
        },
        device::{
            self,
            Device, //
        },
        paging_queue::PagingQueue,
        reclaim::Kept,
        residence::Wish,
        worker::Worker, //
    },
    policy::heap_sort::heap_sort,
};

/// How MAKE_RESIDENT answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Everything is usable now.
    Ready,
    /// Everything is usable when the paging fence of the queue reaches this value.
    Pending(u64),
}

/// Why a list was refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    /// The errno.
    pub(crate) error: Error,
    /// The element that is to blame.
    pub(crate) index: Option<usize>,
    /// How much the client should give up.
    pub(crate) bytes_to_trim: u64,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self {
            error,
            index: None,
            bytes_to_trim: 0,
        }
    }
}

impl From<kernel::alloc::AllocError> for Refused {
    fn from(_: kernel::alloc::AllocError) -> Self {
        ENOMEM.into()
    }
}

impl Refused {
    pub(super) fn at(error: Error, index: usize) -> Self {
        Self {
            index: Some(index),
            ..error.into()
        }
    }
}

/// What it means that a device cannot have what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// The call fails.
    MayFail,
    /// The call fails; but what others have reserved is not spared for them.
    LastAttempt,
    /// As for a last attempt, and the device is in error.
    MustSucceed,
}

/// How allocations leave whose last reference is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// At the first chance after the work queued so far.
    AtOnce,
    /// When somebody wants the space.
    IfNeeded,
}

/// What the client says of the content of allocations whose last reference it drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// Nothing.
    Nothing,
    /// The CPU has not written it since it came in, whatever it could have done.
    NotWritten,
}

/// Adds one residency reference per element of the list.
///
/// # Errors
///
/// - `EXDEV`: an allocation of another device.
/// - `EBUSY`: an allocation is offered.
/// - `ENOMEM`: no memory for the pages behind an allocation.
/// - `ENOSPC`: together with what the device holds already, and what others may count on, it would
///   not fit.
/// - `EINTR`: the caller is being killed.
///
/// Requirements: RES-1 to RES-4, RES-10, RES-13.
pub(crate) fn make_resident(
    queue: &Arc<PagingQueue>,
    allocations: KVVec<Hold>,
    urgency: Urgency,
) -> Result<Answer, Refused> {
    let answer = request(queue, allocations, urgency);
    queue.device().adapter().budgets().settle();
    if let Err(refused) = &answer {
        let no_memory = refused.error == ENOSPC || refused.error == ENOMEM;
        if urgency == Urgency::MustSucceed && no_memory {
            queue.device().fail(device::Offence {
                state: device::State::ErrorMemory,
                context: 0,
                node: None,
                submission: 0,
                offset: 0,
                fault: None,
            });
        }
    }
    answer
}

fn request(
    queue: &Arc<PagingQueue>,
    allocations: KVVec<Hold>,
    urgency: Urgency,
) -> Result<Answer, Refused> {
    let device = queue.device();
    check_device(device, &allocations)?;
    if let Some(index) = allocations.iter().position(|hold| hold.is_offered()) {
        return Err(Refused::at(EBUSY, index));
    }
    for hold in &allocations {
        trace_step(1, hold, queue, 0);
    }
    if count_ready(device, &allocations) {
        return Ok(Answer::Ready);
    }
    let kept = keep(&allocations)?;
    let backings = missing_backings(&allocations)?;
    let mut entries = KVVec::with_capacity(allocations.len(), GFP_KERNEL_ACCOUNT)?;
    for hold in &allocations {
        entries.push(Demands::entry(hold.allocation())?, GFP_KERNEL_ACCOUNT)?;
    }
    let command = Command::new(queue, allocations, urgency, kept)?;
    count(device, command.allocations(), entries, backings, urgency)?;
    pin_in_system(command.allocations());
    Ok(Answer::Pending(send(queue, command)))
}

/// Hands a command to the worker; returns the value of the paging fence that announces its completion.
pub(super) fn send(queue: &Arc<PagingQueue>, command: ListArc<Command>) -> u64 {
    let first = command.allocations().first().cloned();
    let announce = |value| {
        if let Some(first) = &first {
            trace_step(2, first, queue, value);
            trace_step(3, first, queue, value);
        }
    };
    let value = queue.push(command, announce);
    if let Some(first) = &first {
        trace_step(4, first, queue, value);
    }
    value
}

fn trace_step(step: u32, hold: &Hold, queue: &PagingQueue, value: u64) {
    trace::resident_step(|| trace::ResidentStep {
        at: trace::Where::Application,
        step,
        allocation: hold.object_id(),
        queue: queue.number(),
        fence: value,
    });
}

fn check_device(device: &Arc<Device>, allocations: &[Hold]) -> Result<(), Refused> {
    let foreign = allocations
        .iter()
        .position(|hold| !Arc::ptr_eq(hold.device(), device));
    match foreign {
        Some(index) => Err(Refused::at(EXDEV, index)),
        None => Ok(()),
    }
}

/// Counts the references if everything is on the list and usable already; says whether it was.
fn count_ready(device: &Device, allocations: &[Hold]) -> bool {
    let completed = device.adapter().paging().completed();
    let demands = device.demands().lock();
    for (index, hold) in allocations.iter().enumerate() {
        let mut residence = hold.residence().lock();
        let usable = residence.references > 0 && residence.is_ready(completed);
        if usable && !hold.is_offered() {
            residence.references += 1;
            continue;
        }
        drop(residence);
        for counted in allocations.iter().take(index) {
            counted.residence().lock().references -= 1;
        }
        drop(demands);
        return false;
    }
    drop(demands);
    true
}

/// Pins the pages of those that Linux may swap.
pub(super) fn keep(allocations: &[Hold]) -> Result<KVVec<Kept>, Refused> {
    let mut kept = KVVec::new();
    for (index, hold) in allocations.iter().enumerate() {
        let one = Kept::new(hold.allocation()).map_err(|error| Refused::at(error, index))?;
        if let Some(one) = one {
            kept.push(one, GFP_KERNEL_ACCOUNT)?;
        }
    }
    Ok(kept)
}

/// Takes pages for every allocation that has none; once, where a list names one more than once.
fn missing_backings(allocations: &[Hold]) -> Result<KVVec<(usize, Backing)>, Refused> {
    let mut order = KVVec::with_capacity(allocations.len(), GFP_KERNEL_ACCOUNT)?;
    for (index, hold) in allocations.iter().enumerate() {
        let missing = hold.residence().lock().backing().is_none();
        if missing {
            let _ = order.push_within_capacity((hold.object_id(), index));
        }
    }
    heap_sort(&mut order, |element| *element);
    let mut backings = KVVec::new();
    let mut last = None;
    for &(object_id, index) in &order {
        if last.replace(object_id) == Some(object_id) {
            continue;
        }
        let Some(hold) = allocations.get(index) else {
            continue;
        };
        let backing = hold
            .take_backing()
            .map_err(|error| Refused::at(error, index))?;
        backings.push((index, backing), GFP_KERNEL_ACCOUNT)?;
    }
    Ok(backings)
}

/// Counts the references, checks the sums, and gives the allocations their pages: whoever finds an
/// allocation on the list finds its pages too.
fn count(
    device: &Device,
    allocations: &[Hold],
    entries: KVVec<Entry>,
    backings: KVVec<(usize, Backing)>,
    urgency: Urgency,
) -> Result<(), Refused> {
    let adapter = device.adapter();
    let capacities = adapter.free_capacities(device);
    let promised = match urgency {
        Urgency::MayFail => adapter.promised_to_others(device.client()),
        Urgency::LastAttempt | Urgency::MustSucceed => Default::default(),
    };
    let mut surplus = KVVec::with_capacity(entries.len(), GFP_KERNEL_ACCOUNT)?;
    let mut demands = device.demands().lock();
    demands.reserve(allocations.len())?;
    for (index, (hold, entry)) in allocations.iter().zip(entries).enumerate() {
        let mut residence = hold.residence().lock();
        let refusal = match (residence.forgotten, hold.is_offered()) {
            (true, _) => Some(ENOENT),
            (false, true) => Some(EBUSY),
            (false, false) => None,
        };
        if let Some(error) = refusal {
            drop(residence);
            let counted = allocations.get(..index).unwrap_or_default();
            uncount(&mut demands, counted, &mut surplus, |_, _| ());
            return Err(Refused::at(error, index));
        }
        residence.references += 1;
        residence.commands += 1;
        if residence.references == 1 {
            demands.add(hold.demand(), entry);
            if residence.wish == Wish::Leave {
                residence.wish = Wish::None;
            }
        } else {
            let _ = surplus.push_within_capacity(entry);
        }
    }
    let lacking = demands.lacking(&promised, &capacities);
    if lacking == 0 {
        for (index, backing) in backings {
            if let Some(hold) = allocations.get(index) {
                hold.install(backing);
            }
        }
        for hold in allocations {
            hold.account(&mut hold.residence().lock());
        }
        return Ok(());
    }
    // Taken back from the end: the last one without which the rest fits is the first too many.
    let mut index = None;
    let mut additions = [0_u64; 2];
    uncount(
        &mut demands,
        allocations,
        &mut surplus,
        |demands, position| {
            if index.is_none() && demands.lacking(&promised, &capacities) == 0 {
                index = Some(position);
            }
            if let Some(hold) = allocations.get(position) {
                for (sum, group) in additions.iter_mut().zip(Group::ALL) {
                    *sum = sum.saturating_add(hold.addition(group));
                }
            }
        },
    );
    drop(demands);
    Err(Refused {
        error: ENOSPC,
        index,
        bytes_to_trim: lacking.max(excess_with(device.client(), additions)),
    })
}

/// Returns how far `client` would be beyond its budgets if it kept these bytes in addition.
fn excess_with(client: &Client, additions: [u64; 2]) -> u64 {
    let budgets = client.adapter().budgets();
    let excesses = Group::ALL.iter().zip(additions).map(|(group, addition)| {
        let statement = budgets.statement(client, *group);
        let usage = statement.usage.saturating_add(addition);
        usage.saturating_sub(statement.budget)
    });
    excesses.fold(0, u64::saturating_add)
}

/// Takes back what was counted, from the end; `removed` is told each element whose allocation has
/// left the list. Entries go to `surplus`, to be dropped later.
fn uncount(
    demands: &mut Demands,
    counted: &[Hold],
    surplus: &mut KVVec<Entry>,
    mut removed: impl FnMut(&Demands, usize),
) {
    for (position, hold) in counted.iter().enumerate().rev() {
        let mut residence = hold.residence().lock();
        residence.references -= 1;
        residence.commands -= 1;
        if residence.references > 0 {
            continue;
        }
        drop(residence);
        if let Some(entry) = demands.remove(&hold.demand(), hold.object_id()) {
            let _ = surplus.push_within_capacity(entry);
        }
        removed(demands, position);
    }
}

/// Pins what can be resident in system memory only.
fn pin_in_system(allocations: &[Hold]) {
    for hold in allocations {
        if hold.is_system_only() {
            hold.residence().lock().pinned_in_system = true;
        }
    }
}

/// Drops one residency reference per element of the list.
///
/// # Errors
///
/// - `EXDEV`: an allocation of another device.
/// - `EINVAL`: an allocation without a reference left.
/// - `ENOMEM`: no memory.
///
/// Requirements: RES-10, RES-14, PAG-21.
pub(crate) fn evict(
    device: &Arc<Device>,
    allocations: &[Hold],
    leaving: Leaving,
    statement: Statement,
) -> Result<(), Refused> {
    check_device(device, allocations)?;
    let mut dropped = KVVec::with_capacity(allocations.len(), GFP_KERNEL_ACCOUNT)?;
    let mut demands = device.demands().lock();
    for (index, hold) in allocations.iter().enumerate() {
        let mut residence = hold.residence().lock();
        if residence.references > 0 {
            residence.references -= 1;
            continue;
        }
        drop(residence);
        for counted in allocations.iter().take(index) {
            counted.residence().lock().references += 1;
        }
        return Err(Refused::at(EINVAL, index));
    }
    for hold in allocations {
        let mut residence = hold.residence().lock();
        if residence.references > 0 {
            continue;
        }
        if let Some(entry) = demands.remove(&hold.demand(), hold.object_id()) {
            let _ = dropped.push_within_capacity(entry);
        }
        if statement == Statement::NotWritten {
            hold.adapter().unmap(hold.allocation(), &mut residence);
            residence.deny_stores();
        }
        residence.given_up = true;
        hold.account(&mut residence);
        if leaving == Leaving::AtOnce {
            residence.wish = Wish::Leave;
            drop(residence);
            Worker::attend(device.adapter().worker(), hold.allocation());
        }
    }
    drop(demands);
    device.adapter().budgets().settle();
    Ok(())
}

/// Drops all references to an allocation whose handle goes.
pub(crate) fn forget(allocation: &Allocation) {
    let device = allocation.device();
    let mut demands = device.demands().lock();
    let queued = {
        let mut residence = allocation.residence().lock();
        residence.references = 0;
        residence.forgotten = true;
        allocation.account(&mut residence);
        residence.commands > 0
    };
    let entry = demands.remove(&allocation.demand(), allocation.object_id());
    drop(demands);
    drop(entry);
    if queued {
        // A command that names nothing else ends without being carried out.
        Worker::kick(allocation.adapter().worker());
    }
}
