// SPDX-License-Identifier: GPL-2.0

//! Mapping offsets: what `mmap` on the device file is given to say what it wants.
//!
//! An offset is a token, not an address. Tokens are unique on the adapter, because all clients map
//! through one address space of the kernel, and one call can so remove every translation of an
//! object. They come in steps of 2 MiB, so that large blocks can be mapped by one entry, and lie
//! where 32-bit programs can name them.
//!
//! # Locking
//!
//! `Offsets::ranges` is a leaf spinlock; memory for an entry is taken before it.

use kernel::{
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        SpinLock, //
    },
};

use crate::object::{
    allocation::Allocation,
    fence_page::FencePage, //
};

/// The lowest offset.
const FIRST: u64 = 1 << 32;
/// The end of the offsets.
const END: u64 = 1 << 44;
/// The distance between the starts of two tokens is a multiple of this.
const STEP: u64 = 2 << 20;

/// What lies behind a token.
#[derive(Clone)]
pub(crate) enum Target {
    /// The instances of an allocation.
    Allocation(Arc<Allocation>),
    /// A page of fence slots.
    Fences(Arc<FencePage>),
}

/// A range of offsets that belongs to one object.
pub(crate) struct Token {
    start: u64,
    bytes: u64,
}

impl Token {
    /// Returns the first offset.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Returns how much can be mapped from there.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// What `mmap` finds at an offset.
pub(crate) struct Found {
    /// The object.
    pub(crate) target: Target,
    /// The client whose object it is.
    pub(crate) client: u64,
    /// First offset of the object.
    pub(crate) start: u64,
    /// Bytes of the object.
    pub(crate) bytes: u64,
}

struct Entry {
    bytes: u64,
    client: u64,
    target: Option<Target>,
}

/// All mapping offsets of an adapter.
#[pin_data]
pub(crate) struct Offsets {
    #[pin]
    ranges: SpinLock<Ranges>,
}

struct Ranges {
    tree: RBTree<u64, Entry>,
    /// Where the next search begins.
    next: u64,
}

impl Offsets {
    /// Returns an empty set.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            ranges <- new_spinlock!(
                Ranges {
                    tree: RBTree::new(),
                    next: FIRST,
                },
                "Offsets::ranges"
            ),
        })
    }

    /// Takes a token for `bytes` of an object of `client`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    /// - `ENOSPC`: no range is left.
    pub(crate) fn take(&self, client: u64, bytes: u64, target: Target) -> Result<Token> {
        let token = self.reserve(client, bytes)?;
        self.publish(&token, target);
        Ok(token)
    }

    /// Takes a token for an object that does not exist yet: nothing can be mapped there before
    /// [`Self::publish`].
    ///
    /// # Errors
    ///
    /// As [`Self::take`].
    pub(crate) fn reserve(&self, client: u64, bytes: u64) -> Result<Token> {
        let reserved = bytes.checked_next_multiple_of(STEP).ok_or(ENOSPC)?;
        let reservation = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let entry = Entry {
            bytes,
            client,
            target: None,
        };
        let mut ranges = self.ranges.lock();
        let start = ranges.find(reserved).ok_or(ENOSPC)?;
        ranges.next = start.saturating_add(reserved);
        ranges.tree.insert(reservation.into_node(start, entry));
        Ok(Token { start, bytes })
    }

    /// Lets `mmap` find `target` behind `token`.
    pub(crate) fn publish(&self, token: &Token, target: Target) {
        if let Some(entry) = self.ranges.lock().tree.get_mut(&token.start) {
            entry.target = Some(target);
        }
    }

    /// Gives a token back. Existing mappings stay; new ones are refused.
    pub(crate) fn give(&self, token: Token) {
        let node = self.ranges.lock().tree.remove_node(&token.start);
        drop(node);
    }

    /// Returns what lies behind `offset`.
    pub(crate) fn find(&self, offset: u64) -> Option<Found> {
        let ranges = self.ranges.lock();
        let (start, entry) = ranges.containing(offset)?;
        Some(Found {
            target: entry.target.clone()?,
            client: entry.client,
            start,
            bytes: entry.bytes,
        })
    }
}

impl Ranges {
    /// Finds a free range, beginning where the last search ended. Taking and giving in turn costs
    /// one step; only when all offsets have been used once are occupied ranges stepped over.
    fn find(&self, reserved: u64) -> Option<u64> {
        self.find_between(self.next, END, reserved)
            .or_else(|| self.find_between(FIRST, self.next, reserved))
    }

    fn find_between(&self, first: u64, end: u64, reserved: u64) -> Option<u64> {
        let mut start = first;
        while start.checked_add(reserved)? <= end {
            let Some(cursor) = self.tree.cursor_lower_bound(&start) else {
                return Some(start);
            };
            let (occupied, entry) = cursor.current();
            if occupied.checked_sub(start)? >= reserved {
                return Some(start);
            }
            start = occupied.checked_add(entry.bytes.checked_next_multiple_of(STEP)?)?;
        }
        None
    }

    fn containing(&self, offset: u64) -> Option<(u64, &Entry)> {
        // The last range that begins at `offset` or before it.
        let start = match self.tree.cursor_lower_bound(&offset) {
            Some(cursor) if *cursor.current().0 == offset => offset,
            Some(cursor) => *cursor.peek_prev()?.0,
            None => *self.tree.cursor_back()?.current().0,
        };
        let entry = self.tree.get(&start)?;
        (offset < start.checked_add(entry.bytes)?).then_some((start, entry))
    }
}
