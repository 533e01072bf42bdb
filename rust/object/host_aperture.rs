// SPDX-License-Identifier: GPL-2.0

//! The CPU host aperture: memory that the CPU does not see, page by page through a window (SEG-7).
//!
//! The window belongs to one segment and has pages of the segment's size. A touch of a mapping gets a
//! page of the window for the page of the segment behind it, and translations for all of it; so the
//! program sees one linear mapping, wherever both pages lie (SEG-28). When no page of the window is
//! free, one is taken back from whoever asked longest ago ([`policy`](crate::policy::host_aperture)):
//! the CPU's translations of exactly that page first, then the mapping of the backend. Nothing is
//! moved for want of a page, and no lock fails (SEG-29).
//!
//! Pages of the window come back when the allocation leaves its place, and with its last mapping.
//!
//! # Locking
//!
//! `HostAperture::window` (rank 3, mutex) protects which page of the window shows what. Translations
//! through the window are inserted under it, under `Allocation::residence` as all translations, and
//! removed under either: under the latter when the allocation leaves, under this one when somebody
//! else needs the page. So nobody inserts what is being removed.

use core::num::NonZeroU64;

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
};

use crate::{
    abstractions::{
        clock::{
            self,
            NANOSECONDS_PER_MILLISECOND, //
        },
        scheduling::current_task,
        wait_queue::{
            new_wait_queue,
            Deadline,
            Sleep,
            WaitQueue,
            Woken, //
        },
    },
    backend::{
        capabilities::{
            Capabilities,
            SegmentFlag, //
        },
        Backend,
        Frames,
        User,
        WindowPage, //
    },
    object::{
        adapter::Adapter,
        allocation::Allocation, //
    },
    policy::host_aperture::{
        Answer,
        Pages,
        Slot,
        Times,
        Touch, //
    },
    units::{
        Place,
        SegmentId, //
    },
};

/// How long tasks that need more pages than there are take turns. A lease is much longer than it takes
/// to touch a page again, and a turn is about as long as a task may keep the CPU.
const TIMES: Times = Times {
    lease: NANOSECONDS_PER_MILLISECOND / 2,
    turn: 10 * NANOSECONDS_PER_MILLISECOND,
};

/// Pages that are given back to the backend in one call.
const BATCH: usize = 16;

/// Whose page it is that a page of the window shows.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Owner {
    user: User,
    /// Where its translations are, as an offset of the device file.
    start: u64,
}

impl Owner {
    fn new(allocation: &Allocation, offset: u64) -> Self {
        Self {
            user: user(allocation),
            // OVERFLOW: mapping offsets end far below.
            start: allocation.mapping_start() + offset,
        }
    }
}

fn user(allocation: &Allocation) -> User {
    User {
        process: allocation.device().client().id(),
        allocation: allocation.object_id(),
    }
}

/// Which page of a window shows what.
type Window = Pages<KVVec<Slot<Owner>>, KVVec<u32>, Owner>;

/// The window onto one segment.
#[pin_data]
pub(crate) struct HostAperture {
    segment: SegmentId,
    page_bytes: NonZeroU64,
    /// Goes up whenever pages become free.
    freed: Atomic<u64>,
    /// How often a page was taken back because another one was needed.
    recycled: Atomic<u64>,
    #[pin]
    window: Mutex<Window>,
    #[pin]
    crowd: WaitQueue,
}

/// A page of an allocation that is touched.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// The allocation.
    pub(super) allocation: &'a Allocation,
    /// Offset of the page in it.
    pub(super) offset: u64,
    /// Where the page lies in the segment.
    pub(super) place: Place,
}

/// What a page of the window shows: the way of the CPU to it.
pub(super) struct View<'a> {
    backend: &'a dyn Backend,
    segment: SegmentId,
    page: u32,
    bytes: u64,
}

impl View<'_> {
    /// Returns how many bytes it shows.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the page frames from the byte `offset` on, as far as they are adjacent.
    pub(super) fn frames(&self, offset: u64) -> Option<Frames> {
        self.backend.window_frames(self.segment, self.page, offset)
    }
}

/// All pages of the window are in use, and it is another task's turn to take one back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowded {
    until: u64,
    freed: u64,
}

impl HostAperture {
    /// Returns the windows of an adapter, in the order of the ids of their segments.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `EINVAL`: a window has too few pages, or too many to be counted.
    pub(super) fn all(capabilities: &Capabilities) -> Result<KVec<Arc<Self>>> {
        let mut all = KVec::new();
        for segment in &capabilities.segments {
            if !segment.flags.contains(SegmentFlag::HostAperture) {
                continue;
            }
            let page_bytes = NonZeroU64::new(segment.page_bytes).ok_or(EINVAL)?;
            let count = |bytes: u64| usize::try_from(bytes / page_bytes).map_err(|_| EINVAL);
            let slots = KVVec::from_elem(Slot::UNUSED, count(segment.cpu_window)?, GFP_KERNEL)?;
            let index = KVVec::from_elem(0, count(segment.bytes)?, GFP_KERNEL)?;
            let window = Pages::new(slots, index, TIMES).map_err(|_| EINVAL)?;
            all.push(Self::new(segment.id, page_bytes, window)?, GFP_KERNEL)?;
        }
        Ok(all)
    }

    fn new(segment: SegmentId, page_bytes: NonZeroU64, window: Window) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                segment,
                page_bytes,
                freed: Atomic::new(0),
                recycled: Atomic::new(0),
                window <- new_mutex!(window, "HostAperture::window"),
                crowd <- new_wait_queue!("HostAperture::crowd"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the segment it belongs to.
    pub(crate) fn segment(&self) -> SegmentId {
        self.segment
    }

    /// Returns the bytes of one of its pages.
    pub(crate) fn page_bytes(&self) -> NonZeroU64 {
        self.page_bytes
    }

    /// Returns the bytes it shows.
    pub(crate) fn bytes_mapped(&self) -> u64 {
        u64::from(self.window.lock().used()) * self.page_bytes.get()
    }

    /// Calls `each` with the offset in the window of each page that shows something of `allocation`,
    /// until it fails.
    ///
    /// # Errors
    ///
    /// What `each` fails with.
    pub(crate) fn for_each_page<E>(
        &self,
        allocation: &Allocation,
        mut each: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let user = user(allocation);
        let window = self.window.lock();
        let mut pages = window.owners().filter(|(_, owner)| owner.user == user);
        pages.try_for_each(|(page, _)| each(u64::from(page) * self.page_bytes.get()))
    }

    /// Returns how often a page was taken back because another one was needed.
    pub(crate) fn recycled(&self) -> u64 {
        self.recycled.load(Relaxed)
    }

    /// Lets the window show a page and calls `insert` while it does; [`None`] if there is no such
    /// page. The caller holds the allocation's `residence`, so that the page stays where it is.
    ///
    /// # Errors
    ///
    /// - [`Crowded`]: it has to wait, and ask again.
    ///
    /// Requirements: SEG-28, SEG-29.
    pub(super) fn show<R>(
        &self,
        adapter: &Adapter,
        wanted: Wanted<'_>,
        insert: impl FnOnce(&View<'_>) -> R,
    ) -> Result<Option<R>, Crowded> {
        let Ok(page) = u32::try_from(wanted.place.offset / self.page_bytes) else {
            return Ok(None);
        };
        let owner = Owner::new(wanted.allocation, wanted.offset);
        let mut window = self.window.lock();
        let answer = window.touch(Touch {
            page,
            owner,
            task: current_task(),
            now: clock::now_ns(),
        });
        let shown = match answer {
            Answer::Shown(shown) => shown,
            Answer::Given(given, lost) => {
                if let Some(lost) = lost {
                    self.take_away(adapter, given, lost);
                }
                let pages = [WindowPage {
                    window: given,
                    page,
                }];
                let backend = adapter.backend();
                if backend
                    .map_host_aperture(self.segment, owner.user, &pages)
                    .is_err()
                {
                    window.give_back(given);
                    return Ok(None);
                }
                given
            }
            Answer::Wait(until) => {
                let freed = self.freed.load(Acquire);
                return Err(Crowded { until, freed });
            }
        };
        Ok(Some(insert(&View {
            backend: &**adapter.backend(),
            segment: self.segment,
            page: shown,
            bytes: self.page_bytes.get(),
        })))
    }

    /// Takes a page of the window from who has it. The lock is held.
    fn take_away(&self, adapter: &Adapter, page: u32, from: Owner) {
        // OVERFLOW: mapping offsets end far below.
        adapter
            .anchor()
            .unmap(from.start..from.start + self.page_bytes.get());
        adapter
            .backend()
            .unmap_host_aperture(self.segment, from.user, &[page]);
        self.recycled.fetch_add(1, Relaxed);
    }

    /// Waits for a turn, or for a free page; false if the task is being killed.
    pub(super) fn wait(&self, crowded: Crowded) -> bool {
        let freed = || (self.freed.load(Acquire) != crowded.freed).then_some(());
        let woken = self
            .crowd
            .wait(Sleep::Killable, Deadline::At(crowded.until), freed);
        woken != Err(Woken::Signal)
    }

    /// Takes back all pages that show something of `allocation`. Its translations are removed, and its
    /// `residence` is held, so that no others come.
    pub(super) fn give_back(&self, adapter: &Adapter, allocation: &Allocation) {
        let user = user(allocation);
        let mut taken = [0; BATCH];
        let mut window = self.window.lock();
        loop {
            let count = window.take_back(&mut taken, |owner| owner.user == user);
            let pages = taken.get(..count).unwrap_or_default();
            if !pages.is_empty() {
                let backend = adapter.backend();
                backend.unmap_host_aperture(self.segment, user, pages);
            }
            if count < BATCH {
                break;
            }
        }
        drop(window);
        self.freed.fetch_add(1, Full);
        self.crowd.notify_all();
    }

    /// Takes the lock, for tests of the order of locks.
    #[cfg(CONFIG_KUNIT)]
    pub(super) fn with_lock(&self, task: impl FnOnce()) {
        let window = self.window.lock();
        task();
        drop(window);
    }
}
