// SPDX-License-Identifier: GPL-2.0

//! Waits and signals by the CPU, over lists of points.
//!
//! A call that waits leaves a waiter at each fence that is not there yet, all of them pointing at
//! the sleeping task, and takes them back before it returns. Memory for them is taken before
//! anything is registered.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Release, //
        },
        Arc, //
    },
};

use crate::{
    abstractions::{
        trace,
        wait_queue::{
            new_wait_queue,
            Deadline,
            Sleep,
            WaitQueue,
            Woken, //
        },
    },
    object::{
        adapter::Adapter,
        fence::{
            CpuSignal,
            Fence,
            Purpose,
            Reached,
            Rewind,
            Wake, //
        },
        submission::Point,
    },
    policy::heap_sort::heap_sort,
};

/// Which points of a list have to be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quorum {
    /// All of them.
    All,
    /// Any of them.
    Any,
}

/// Why a wait or a signal failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    /// The errno.
    pub(crate) error: Error,
    /// The point that is to blame.
    pub(crate) index: Option<usize>,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self { error, index: None }
    }
}

impl From<kernel::alloc::AllocError> for Refused {
    fn from(_: kernel::alloc::AllocError) -> Self {
        ENOMEM.into()
    }
}

/// A task that sleeps until a fence calls it.
#[pin_data]
struct Sleeper {
    called: Atomic<bool>,
    /// Which points were reached; that a fence falls again does not take it back.
    hits: KVVec<Atomic<bool>>,
    #[pin]
    queue: WaitQueue,
}

impl Sleeper {
    fn new(points: usize) -> Result<Arc<Self>> {
        let mut hits = KVVec::with_capacity(points, GFP_KERNEL_ACCOUNT)?;
        for _ in 0..points {
            let _ = hits.push_within_capacity(Atomic::new(false));
        }
        Arc::pin_init(
            pin_init!(Self {
                called: Atomic::new(false),
                hits,
                queue <- new_wait_queue!("Sleeper::queue"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }
}

impl Sleeper {
    /// Notes that a point was reached.
    fn hit(&self, index: usize) {
        if let Some(hit) = self.hits.get(index) {
            hit.store(true, Release);
        }
        self.called.store(true, Release);
    }
}

impl Wake for Sleeper {
    fn wake(&self, ticket: u64) {
        // CAST: masked to the bits of the index.
        self.hit((ticket & INDEX_MASK) as usize);
        self.queue.notify_all();
    }
}

/// Waits for points; returns a satisfied one when any will do.
///
/// # Errors
///
/// - `ETIME`: the deadline, also when polling.
/// - `EINTR`: a signal.
/// - `EIO`, `ECANCELED`, `ENODEV`: a fence is poisoned; its point is named.
/// - `ENOMEM`: no memory.
pub(crate) fn wait(
    adapter: &Adapter,
    points: &[Point],
    quorum: Quorum,
    deadline: Deadline,
) -> Result<usize, Refused> {
    if let Some(index) = look(points, &[], quorum)? {
        return Ok(index);
    }
    if deadline == Deadline::Poll {
        return Err(ETIME.into());
    }
    let sleeper = Sleeper::new(points.len())?;
    let ticket = adapter.next_number();
    let mut waiters = KVVec::with_capacity(points.len(), GFP_KERNEL_ACCOUNT)?;
    for (index, point) in points.iter().enumerate() {
        // The index makes the key of each point different, where two name the same value.
        let waiter = Fence::waiter(point.value, key(ticket, index), sleeper.clone())?;
        let _ = waiters.push_within_capacity(waiter);
    }
    for (index, (point, waiter)) in points.iter().zip(waiters).enumerate() {
        trace_wait(point, trace::Waiting::Begin);
        match point.fence.wait_for(point.value, waiter) {
            Reached::No => {}
            // Nobody calls for it: it may fall again before it is looked at.
            Reached::Yes => sleeper.hit(index),
            Reached::Poisoned(_) => sleeper.called.store(true, Release),
        }
    }
    let result = loop {
        let woken = sleeper.queue.wait(Sleep::Interruptible, deadline, || {
            sleeper.called.xchg(false, Full).then_some(())
        });
        match (look(points, &sleeper.hits, quorum), woken) {
            (Ok(None), Ok(())) => {}
            (Ok(None), Err(Woken::Signal)) => break Err(EINTR.into()),
            (Ok(None), Err(Woken::Deadline)) => break Err(ETIME.into()),
            (Ok(Some(index)), _) => break Ok(index),
            (Err(refused), _) => break Err(refused),
        }
    };
    let action = match result {
        Ok(_) => trace::Waiting::End,
        Err(_) => trace::Waiting::Cancel,
    };
    for (index, point) in points.iter().enumerate() {
        point.fence.forget(point.value, key(ticket, index));
        trace_wait(point, action);
    }
    result
}

/// Bits of a ticket that hold the index of a point: lists are far shorter.
const INDEX_BITS: u32 = 20;
/// The bits of the index.
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

fn key(ticket: u64, index: usize) -> u64 {
    // CAST: widening. Tickets are numbers of the adapter.
    ticket.wrapping_shl(INDEX_BITS) | (index as u64 & INDEX_MASK)
}

/// Looks whether the points are reached as wanted.
///
/// `hits` says which were reached before, even if they are not any more.
fn look(points: &[Point], hits: &[Atomic<bool>], quorum: Quorum) -> Result<Option<usize>, Refused> {
    let mut first = None;
    let mut all = true;
    for (index, point) in points.iter().enumerate() {
        match point.fence.reached(point.value) {
            Reached::Yes => first = first.or(Some(index)),
            Reached::No if hits.get(index).is_some_and(|hit| hit.load(Acquire)) => {
                first = first.or(Some(index));
            }
            Reached::No => all = false,
            Reached::Poisoned(error) => {
                return Err(Refused {
                    error,
                    index: Some(index),
                })
            }
        }
    }
    Ok(match quorum {
        Quorum::Any => first,
        Quorum::All if all => first,
        Quorum::All => None,
    })
}

fn trace_wait(point: &Point, action: trace::Waiting) {
    trace::fence_wait(|| trace::FenceWait {
        fence: point.fence.number(),
        value: point.value,
        context: 0,
        action,
    });
}

/// Signals points, all or none.
///
/// # Errors
///
/// - `EACCES`: a fence that the CPU may not signal.
/// - `EINVAL`: a value below the one the fence has, or is to get from an earlier point of the list.
pub(crate) fn signal(points: &[Point], rewind: Rewind) -> Result<(), Refused> {
    for (index, point) in points.iter().enumerate() {
        may_signal(point).map_err(|error| Refused {
            error,
            index: Some(index),
        })?;
    }
    if rewind == Rewind::Refused {
        check_rising(points)?;
    }
    for point in points {
        // Somebody else may have raised it beyond meanwhile; then it stays there.
        let _ = point.fence.set(point.value, rewind, trace::Origin::Cpu);
    }
    Ok(())
}

/// Says whether the CPU may signal the fence of a point.
///
/// # Errors
///
/// - `EACCES`: it may not.
pub(crate) fn may_signal(point: &Point) -> Result {
    match point.fence.purpose() {
        Purpose::Client {
            cpu_signal: CpuSignal::Allowed,
            ..
        } => Ok(()),
        _ => Err(EACCES),
    }
}

/// Checks that no point lowers a value.
fn check_rising(points: &[Point]) -> Result<(), Refused> {
    if let [point] = points {
        return if point.value < point.fence.value().0 {
            Err(Refused {
                error: EINVAL,
                index: Some(0),
            })
        } else {
            Ok(())
        };
    }
    let mut order = KVVec::with_capacity(points.len(), GFP_KERNEL_ACCOUNT)?;
    for (index, point) in points.iter().enumerate() {
        if point.value < point.fence.value().0 {
            return Err(Refused {
                error: EINVAL,
                index: Some(index),
            });
        }
        let _ = order.push_within_capacity((point.fence.number(), index, point.value));
    }
    heap_sort(&mut order, |point| *point);
    let mut before: Option<(u64, u64)> = None;
    for &(fence, index, value) in &order {
        if before.is_some_and(|(other, most)| other == fence && value < most) {
            return Err(Refused {
                error: EINVAL,
                index: Some(index),
            });
        }
        before = Some((fence, value));
    }
    Ok(())
}
