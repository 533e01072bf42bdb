// SPDX-License-Identifier: GPL-2.0

//! Sleeping until something becomes true.
//!
//! A [`WaitQueue`] is the place where sleepers meet whoever changes the state they wait for. The state
//! itself belongs to the caller: a sleeper brings a *condition* that looks at it, and whoever changes
//! it calls [`WaitQueue::notify_all`] afterwards. A change between the look and the sleep is not lost,
//! because the sleeper is on the queue before it looks.
//!
//! Unlike a condition variable no lock is tied to the queue, and waits have absolute deadlines, which
//! a call that is interrupted and made again can repeat unchanged.
//!
//! C header: [`include/linux/wait.h`](srctree/include/linux/wait.h).
//! Upstream: next to `rust/kernel/sync/condvar.rs`.

use core::{
    marker::PhantomPinned,
    pin::pin,
    ptr, //
};
use kernel::{
    bindings,
    ffi,
    prelude::*,
    sync::LockClassKey,
    types::Opaque, //
};

/// Creates the initialiser of a [`WaitQueue`] with the given name and a lock class of its own.
macro_rules! new_wait_queue {
    ($name:literal) => {
        $crate::abstractions::wait_queue::WaitQueue::new(
            kernel::optional_name!($name),
            kernel::static_lock_class!(),
        )
    };
}
pub(crate) use new_wait_queue;

/// What may wake a sleeper before its condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Any signal: for calls of programs.
    Interruptible,
    /// A signal that kills the task: for page faults and calls that must not be torn.
    Killable,
    /// Nothing: only where the end of the wait is certain.
    Uninterruptible,
}

impl Sleep {
    /// Returns the task state.
    const fn state(self) -> u32 {
        match self {
            Self::Interruptible => bindings::TASK_INTERRUPTIBLE,
            Self::Killable => bindings::TASK_KILLABLE,
            Self::Uninterruptible => bindings::TASK_UNINTERRUPTIBLE,
        }
    }
}

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// As long as it takes.
    Never,
    /// Not at all: look once.
    Poll,
    /// Until this point of CLOCK_MONOTONIC, in nanoseconds.
    At(u64),
}

/// Why a wait ended although its condition did not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// A signal arrived.
    Signal,
    /// The deadline has passed.
    Deadline,
}

/// A meeting place of sleepers and whoever wakes them.
///
/// # Invariants
///
/// `head` is an initialised wait-queue head. It is empty when the value is dropped, since every
/// sleeper borrows it.
#[pin_data]
pub struct WaitQueue {
    #[pin]
    head: Opaque<bindings::wait_queue_head>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The head has a lock of its own, which every function used here takes.
unsafe impl Send for WaitQueue {}

// SAFETY: As for `Send`.
unsafe impl Sync for WaitQueue {}

impl WaitQueue {
    /// Returns an initialiser; [`new_wait_queue!`] makes up the lock class.
    pub fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        pin_init!(Self {
            head <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes, and name and key live for ever.
                unsafe {
                    bindings::__init_waitqueue_head(slot, name.as_char_ptr(), key.as_ptr())
                }
            }),
            _pin: PhantomPinned,
        })
    }

    /// Wakes all sleepers, so that they look at their conditions again.
    ///
    /// Call it after the change that they may be waiting for. Callable from any context.
    pub fn notify_all(&self) {
        // SAFETY: By the type invariants the head is initialised.
        unsafe { bindings::__wake_up(self.head.get(), bindings::TASK_NORMAL, 0, ptr::null_mut()) };
    }

    /// Sleeps until `condition` returns a value, and returns it.
    ///
    /// The condition is looked at before anything else, so that a wait for something that has happened
    /// already costs no more than that; and once more after the deadline or a signal, so that neither
    /// wins over a condition that holds.
    ///
    /// `condition` may take spinlocks. It must not sleep: no mutex, no allocation that may reclaim, no
    /// user memory.
    ///
    /// # Errors
    ///
    /// - [`Woken::Signal`]: a signal of the kind that `sleep` names is pending.
    /// - [`Woken::Deadline`]: `deadline` has passed.
    pub fn wait<R>(
        &self,
        sleep: Sleep,
        deadline: Deadline,
        mut condition: impl FnMut() -> Option<R>,
    ) -> Result<R, Woken> {
        if let Some(value) = condition() {
            return Ok(value);
        }

        if deadline == Deadline::Poll {
            return Err(Woken::Deadline);
        }

        let entry = pin!(Entry::uninit());
        let sleeper = Sleeper::new(self, entry.into_ref());
        let mut expired = false;

        loop {
            let signal = sleeper.prepare(sleep);

            if let Some(value) = condition() {
                return Ok(value);
            }

            if signal {
                return Err(Woken::Signal);
            }

            if expired {
                return Err(Woken::Deadline);
            }

            expired = sleep_until(deadline);
        }
    }
}

/// Gives up the CPU until somebody wakes the task; returns whether the deadline has passed.
fn sleep_until(deadline: Deadline) -> bool {
    let at = match deadline {
        Deadline::Never => {
            // SAFETY: Called by a task that may sleep and has prepared for it.
            unsafe { bindings::schedule() };
            return false;
        }
        Deadline::Poll => return true,
        Deadline::At(at) => at,
    };

    // A deadline beyond the end of the clock never comes.
    let mut at: bindings::ktime_t = i64::try_from(at).unwrap_or(i64::MAX);

    // SAFETY: `at` outlives the call, which returns only when the timer is gone.
    let left =
        unsafe { bindings::schedule_hrtimeout(&mut at, bindings::hrtimer_mode_HRTIMER_MODE_ABS) };

    left == 0
}

/// The entry of a sleeper, which lives in the frame of [`WaitQueue::wait`].
type Entry = Opaque<bindings::wait_queue_entry>;

/// A task on its way to sleep. Leaves the queue on drop.
///
/// # Invariants
///
/// `entry` is initialised, and on no queue but that of `queue`.
struct Sleeper<'a> {
    queue: &'a WaitQueue,
    entry: Pin<&'a Entry>,
}

impl<'a> Sleeper<'a> {
    /// Makes the calling task the sleeper of `entry`.
    fn new(queue: &'a WaitQueue, entry: Pin<&'a Entry>) -> Self {
        // SAFETY: `entry` is borrowed, so it is valid for writes, and pinned, so that the list head in
        // it may point to itself.
        unsafe { bindings::init_wait_entry(entry.get(), 0) };

        // INVARIANT: The entry is initialised and on no queue.
        Self { queue, entry }
    }

    /// Enters the queue and announces the sleep; returns whether a signal forbids it.
    fn prepare(&self, sleep: Sleep) -> bool {
        let queue = self.queue.head.get();
        // CAST: Task states are small bit masks.
        let state = sleep.state() as ffi::c_int;

        // SAFETY: By the type invariants both are initialised, and the entry is on no other queue.
        unsafe { bindings::prepare_to_wait_event(queue, self.entry.get(), state) != 0 }
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants both are initialised, and the entry is on no other queue.
        unsafe { bindings::finish_wait(self.queue.head.get(), self.entry.get()) };
    }
}
