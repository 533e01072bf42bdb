// SPDX-License-Identifier: GPL-2.0

//! LOCK and UNLOCK: the CPU asks when it may touch an allocation.
//!
//! A lock waits for queued work that uses the memory in a conflicting way, and says so; it neither
//! pins nor maps. The mapping follows the memory by itself ([`super::cpu_access`]).

use kernel::{
    prelude::*,
    sync::atomic::Relaxed, //
};

use crate::{
    abstractions::{
        clock, trace,
        wait_queue::{
            Deadline,
            Sleep,
            Woken, //
        },
    },
    object::allocation::{
        Access,
        Allocation,
        Flag, //
    },
};

/// What the CPU is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Read: waits for GPU writes.
    Read,
    /// Write, and perhaps read: waits for all GPU use.
    Write,
    /// Touch only what no queued work uses: waits for nothing.
    NoOverwrite,
}

/// How long a lock may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Not at all: `EAGAIN`.
    DoNotWait,
    /// Until this deadline: `ETIME`.
    Until(Deadline),
}

/// Whether a lock had to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locked {
    /// It was idle.
    AtOnce,
    /// It waited.
    Waited,
}

/// Locks an allocation.
///
/// # Errors
///
/// - `EOPNOTSUPP`: the CPU cannot map it.
/// - `EBUSY`: it is offered.
/// - `EAGAIN`: it is in use and [`Patience::DoNotWait`].
/// - `ETIME`: it is in use until the deadline.
/// - `EINTR`: a signal.
pub(crate) fn lock(
    allocation: &Allocation,
    purpose: Purpose,
    patience: Patience,
) -> Result<Locked> {
    if !allocation.flags().contains(Flag::CpuVisible) {
        return Err(EOPNOTSUPP);
    }
    let idle = || {
        let busy = match purpose {
            Purpose::NoOverwrite => false,
            Purpose::Read => allocation.is_used(Access::Write),
            Purpose::Write => allocation.is_busy(),
        };
        match (allocation.is_offered(), busy) {
            (true, _) => Some(Err(EBUSY)),
            (false, true) => None,
            (false, false) => Some(Ok(())),
        }
    };
    if let Some(answer) = idle() {
        answer?;
        allocation.locks().fetch_add(1, Relaxed);
        report(allocation, trace::Decision::Direct, 0);
        return Ok(Locked::AtOnce);
    }
    let Patience::Until(deadline) = patience else {
        report(allocation, trace::Decision::WouldBlock, 0);
        return Err(EAGAIN);
    };
    let begin = clock::now_ns();
    let waited = allocation
        .adapter()
        .idle()
        .wait(Sleep::Interruptible, deadline, idle);
    let wait_ns = clock::now_ns().saturating_sub(begin);
    report(allocation, trace::Decision::Stall, wait_ns);
    match waited {
        Ok(answer) => {
            answer?;
            allocation.locks().fetch_add(1, Relaxed);
            Ok(Locked::Waited)
        }
        Err(Woken::Signal) => Err(EINTR),
        Err(Woken::Deadline) => Err(ETIME),
    }
}

fn report(allocation: &Allocation, decision: trace::Decision, wait_ns: u64) {
    allocation.adapter().statistics().locked(decision);
    trace::lock(|| trace::Lock {
        allocation: allocation.object_id(),
        instance: 0,
        decision,
        wait_ns,
    });
}

/// What the client says it did under a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stores {
    /// It wrote nothing.
    None,
    /// It wrote something.
    Some,
}

/// Takes one lock back. With the last one, pages that Linux may swap are no longer kept for the CPU.
///
/// # Errors
///
/// - `EINVAL`: it is not locked.
pub(crate) fn unlock(allocation: &Allocation, stores: Stores) -> Result {
    let locks = allocation.locks();
    let mut held = locks.load(Relaxed);
    while held > 0 {
        match locks.cmpxchg(held, held - 1, Relaxed) {
            Ok(last) => {
                if stores == Stores::Some {
                    allocation.residence().lock().note_stores();
                }
                if last == 1 && allocation.is_swappable() {
                    allocation.adapter().let_go(allocation);
                }
                return Ok(());
            }
            Err(now) => held = now,
        }
    }
    Err(EINVAL)
}
