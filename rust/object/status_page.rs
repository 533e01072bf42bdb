// SPDX-License-Identifier: GPL-2.0

//! The status page: budgets and usage where a client reads them without a call.
//!
//! The page is made when it is first mapped, and goes with the client and its mappings. A program
//! copies it while `sequence` is even and does not change; so whoever writes makes the number odd
//! first and even afterwards. What is written is what the counters say at that moment, under a lock,
//! so the last writer leaves the newest.
//!
//! # Locking
//!
//! `StatusPage::page` is a leaf spinlock.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        barrier::{
            smp_mb,
            Write, //
        },
        Arc,
        SpinLock, //
    },
};

use crate::{
    abstractions::{
        memory::Window,
        pages::{
            Charge,
            PageBlock, //
        },
        vm_area::{
            Fault,
            Mapping,
            Outcome, //
        },
    },
    object::{
        budget::Group,
        client::Client, //
    },
};

/// The layout that is written.
const LAYOUT: u32 = 1;
/// The state of an adapter in service.
const RUNNING: u32 = 0;
/// Offset of `version`.
const VERSION: usize = 0;
/// Offset of `sequence`.
const SEQUENCE: usize = 4;
/// Offset of `state`.
const STATE: usize = 8;
/// Offset of `budget_generation`.
const GENERATION: usize = 64;

/// Returns the offset of `budget`, `usage` and `trim` of a group.
const fn offset_of(group: Group) -> usize {
    match group {
        Group::Local => 16,
        Group::NonLocal => 40,
    }
}

/// The status page of one client.
#[pin_data]
pub(crate) struct StatusPage {
    /// Whether there is one, so that most changes end here.
    mapped: Atomic<bool>,
    #[pin]
    page: SpinLock<Option<Arc<PageBlock>>>,
}

impl StatusPage {
    /// Returns the status page of a client that has not mapped it.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            mapped: Atomic::new(false),
            page <- new_spinlock!(None, "StatusPage::page"),
        })
    }

    /// Returns what is behind a mapping of the page of `client`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(crate) fn mapping(client: &Client) -> Result<StatusMapping> {
        let status = client.status();
        let fresh = PageBlock::new(0, Charge::Client)?;
        let mut fresh = Some(Arc::new(fresh, GFP_KERNEL_ACCOUNT)?);
        let page = {
            let mut page = status.page.lock();
            match page.as_ref().or(fresh.as_ref()) {
                Some(found) => {
                    let found = found.clone();
                    if page.is_none() {
                        *page = fresh.take();
                    }
                    found
                }
                None => return Err(ENOMEM),
            }
        };
        status.mapped.store(true, Release);
        // From here on it has a budget.
        let _ = client.adapter().budgets().statement(client, Group::Local);
        status.update(client);
        Ok(StatusMapping { page })
    }

    /// Writes down what has changed. Callable under spinlocks.
    pub(super) fn update(&self, client: &Client) {
        if !self.mapped.load(Acquire) {
            return;
        }
        let page = self.page.lock();
        if let Some(page) = &*page {
            let _ = write(&page.window(), client);
        }
    }
}

fn write(window: &Window, client: &Client) -> Option<()> {
    let sequence = window.read32(SEQUENCE)?;
    window.write32(SEQUENCE, sequence.wrapping_add(1))?;
    smp_mb(Write);
    window.write32(VERSION, LAYOUT)?;
    window.write32(STATE, RUNNING)?;
    for group in Group::ALL {
        let statement = client.account().statement(group);
        let offset = offset_of(group);
        window.write64(offset, statement.budget)?;
        window.write64(offset + 8, statement.usage)?;
        window.write64(offset + 16, statement.excess())?;
        window.write64(GENERATION, statement.generation)?;
    }
    smp_mb(Write);
    window.write32(SEQUENCE, sequence.wrapping_add(2))
}

/// A mapping of a status page.
pub(crate) struct StatusMapping {
    page: Arc<PageBlock>,
}

impl Mapping for StatusMapping {
    fn fault(&self, fault: &mut Fault<'_>) -> Outcome {
        fault.insert(self.page.frame())
    }
}
