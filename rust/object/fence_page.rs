// SPDX-License-Identifier: GPL-2.0

//! Pages of fence slots.
//!
//! The value of a fence lives in a slot of 64 bytes; the fences of one client share pages, which
//! the client maps read-only. Paging and progress fences have pages of their own, which no GPU will
//! ever write. A page lives as long as a fence or a mapping uses it.
//!
//! # Locking
//!
//! `FencePages::pages` (mutex) is a leaf that allocates: nothing else is held when it is taken.
//! The content of a slot is written under the lock of its fence.

use kernel::{
    new_mutex, new_spinlock,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SpinLock, //
    },
};

use crate::{
    abstractions::{
        memory::Window,
        pages::{
            Charge,
            Frame,
            PageBlock, //
        },
    },
    object::{
        client::Client,
        offsets::{
            Target,
            Token, //
        },
    },
    units::PAGE_BYTES,
};

/// Bytes from one slot to the next.
const STRIDE: u64 = 64;
/// Slots of one page.
const SLOTS: u32 = 64;
/// Offset of `value`.
const VALUE: usize = 0;
/// Offset of `state`.
const STATE: usize = 8;
/// Offset of `error`.
const ERROR: usize = 12;
/// Offset of `changed_ns`.
const CHANGED: usize = 16;
/// The state of a poisoned fence.
const POISONED: u32 = 1;

/// Who may write the values of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// The kernel, and later commands of the GPU.
    Gpu,
    /// The kernel alone.
    KernelOnly,
}

/// One page of slots.
#[pin_data]
pub(crate) struct FencePage {
    block: PageBlock,
    access: Access,
    /// Which slots are taken, one bit each.
    #[pin]
    taken: SpinLock<u64>,
}

impl FencePage {
    fn new(access: Access) -> Result<Arc<Self>> {
        let block = PageBlock::new(0, Charge::Client)?;
        Arc::pin_init(
            pin_init!(Self {
                block,
                access,
                taken <- new_spinlock!(0, "FencePage::taken"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Returns the page frame, for mappings.
    pub(crate) fn frame(&self) -> Frame {
        self.block.frame()
    }

    fn take(&self) -> Option<u32> {
        let mut taken = self.taken.lock();
        let index = taken.trailing_ones();
        if index >= SLOTS {
            return None;
        }
        *taken |= 1 << index;
        Some(index)
    }

    fn window(&self, index: u32) -> Option<Window> {
        // CAST: below the size of a page.
        self.block
            .window()
            .sub((u64::from(index) * STRIDE) as usize, STRIDE as usize)
    }
}

/// A place for the value of one fence. Dropping it frees the place.
pub(crate) struct Slot {
    page: Arc<FencePage>,
    offset: u64,
    index: u32,
}

impl Slot {
    /// Returns the number of the slot inside its page.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Returns the mapping offset of the page.
    pub(crate) fn mmap_offset(&self) -> u64 {
        self.offset
    }

    /// Writes a value and when it came to be. The value comes last: who sees it sees the rest.
    pub(super) fn write(&self, value: u64, changed_ns: u64) {
        if let Some(window) = self.page.window(self.index) {
            let _ = window.write64(CHANGED, changed_ns);
            let _ = window.release64(VALUE, value);
        }
    }

    /// Writes that the fence is poisoned.
    pub(super) fn write_poison(&self, error: Error) {
        if let Some(window) = self.page.window(self.index) {
            // CAST: the bits of a signed number.
            let _ = window.write32(ERROR, error.to_errno() as u32);
            let _ = window.write32(STATE, POISONED);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(window) = self.page.window(self.index) {
            window.zero();
        }
        *self.page.taken.lock() &= !(1 << self.index);
    }
}

/// The fence pages of one client.
#[pin_data]
pub(crate) struct FencePages {
    #[pin]
    pages: Mutex<KVec<Listed>>,
}

/// A page that can be mapped, because a fence on it has a handle.
struct Listed {
    page: Arc<FencePage>,
    token: Token,
    /// How many fences on it have a handle.
    handles: u32,
}

impl FencePages {
    /// Returns an empty set.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            pages <- new_mutex!(KVec::new(), "FencePages::pages"),
        })
    }

    /// Takes a slot that shows `initial`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `ENOSPC`: no mapping offset left.
    pub(crate) fn take(&self, client: &Arc<Client>, access: Access, initial: u64) -> Result<Slot> {
        let mut pages = self.pages.lock();
        let found = pages.iter_mut().find_map(|listed| {
            let page = &listed.page;
            let index = (page.access == access).then(|| page.take())??;
            listed.handles += 1;
            Some((page.clone(), listed.token.start(), index))
        });
        let (page, offset, index) = match found {
            Some(found) => found,
            None => {
                let page = FencePage::new(access)?;
                let index = page.take().ok_or(ENOSPC)?;
                pages.reserve(1, GFP_KERNEL_ACCOUNT)?;
                let token = client.adapter().offsets().take(
                    client,
                    PAGE_BYTES,
                    Target::Fences(page.clone()),
                )?;
                let offset = token.start();
                let listed = Listed {
                    page: page.clone(),
                    token,
                    handles: 1,
                };
                pages.push(listed, GFP_KERNEL_ACCOUNT)?;
                (page, offset, index)
            }
        };
        drop(pages);
        let slot = Slot {
            page,
            offset,
            index,
        };
        slot.write(initial, 0);
        Ok(slot)
    }

    /// Takes note that a fence has no handle any more. A page without such fences can no longer be
    /// mapped anew; it stays as long as something uses it.
    pub(super) fn close_one(&self, client: &Client, slot: &Slot) {
        let mut pages = self.pages.lock();
        let position = pages
            .iter()
            .position(|listed| Arc::ptr_eq(&listed.page, &slot.page));
        let Some(position) = position else { return };
        if let Some(listed) = pages.get_mut(position) {
            listed.handles = listed.handles.saturating_sub(1);
            if listed.handles > 0 {
                return;
            }
        }
        let removed = pages.remove(position);
        drop(pages);
        if let Ok(removed) = removed {
            client.adapter().offsets().give(client, removed.token);
        }
    }

    /// Takes back the mapping offsets of all pages, at the end of the client.
    pub(crate) fn close(&self, client: &Client) {
        let pages = core::mem::take(&mut *self.pages.lock());
        for listed in pages {
            client.adapter().offsets().give(client, listed.token);
        }
    }
}
