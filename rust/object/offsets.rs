// SPDX-License-Identifier: GPL-2.0

//! Mapping offsets: what `mmap` on the device file is given to say what it wants.
//!
//! An offset is a token, not an address. Tokens are unique on the adapter, because all clients map
//! through one address space of the kernel, and one call can so remove every translation of an
//! object. Those of large objects begin at a multiple of 2 MiB, so that large blocks can be mapped by
//! one entry; all lie where 32-bit programs can name them. Each client has a share that it cannot
//! exceed.
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
    client::{
        Client,
        Sum, //
    },
    fence_page::FencePage, //
};

/// The lowest offset.
const FIRST: u64 = 1 << 32;
/// The end of the offsets.
const END: u64 = 1 << 44;
/// Objects of at least this size begin at a multiple of it, so that one entry can map so much.
const LARGE: u64 = 2 << 20;
/// The most that one client can have, so that nobody takes the offsets of everybody.
const SHARE: u64 = (END - FIRST) / 64;

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
    pub(crate) fn take(&self, client: &Client, bytes: u64, target: Target) -> Result<Token> {
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
    pub(crate) fn reserve(&self, client: &Client, bytes: u64) -> Result<Token> {
        let usage = client.usage();
        usage.add(Sum::Mappable, bytes);
        if usage.get(Sum::Mappable) > SHARE {
            usage.sub(Sum::Mappable, bytes);
            return Err(ENOSPC);
        }
        self.search(client.id(), bytes)
            .inspect_err(|_| usage.sub(Sum::Mappable, bytes))
    }

    fn search(&self, client: u64, bytes: u64) -> Result<Token> {
        let reservation = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let entry = Entry {
            bytes,
            client,
            target: None,
        };
        let mut search = Search::default();
        loop {
            let mut ranges = self.ranges.lock();
            match ranges.find(&mut search, bytes) {
                // So many ranges were stepped over that others shall have the lock first.
                Step::Further => continue,
                Step::Nothing => return Err(ENOSPC),
                Step::Found(start) => {
                    ranges.next = start.saturating_add(bytes);
                    ranges.tree.insert(reservation.into_node(start, entry));
                    return Ok(Token { start, bytes });
                }
            }
        }
    }

    /// Lets `mmap` find `target` behind `token`.
    pub(crate) fn publish(&self, token: &Token, target: Target) {
        if let Some(entry) = self.ranges.lock().tree.get_mut(&token.start) {
            entry.target = Some(target);
        }
    }

    /// Gives a token back. Existing mappings stay; new ones are refused.
    pub(crate) fn give(&self, client: &Client, token: Token) {
        client.usage().sub(Sum::Mappable, token.bytes);
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

/// Ranges that a search steps over before it lets the lock go.
const STRIDE: usize = 256;

/// How far the search for a free range has come.
#[derive(Default)]
struct Search {
    /// Where it goes on; [`None`] before the first step.
    at: Option<u64>,
    /// Whether it has begun again at the lowest offset.
    wrapped: bool,
}

/// What a stretch of a search found.
enum Step {
    /// A free range begins here.
    Found(u64),
    /// Nothing yet.
    Further,
    /// There is none.
    Nothing,
}

impl Ranges {
    /// Goes on searching for a free range. It begins where the last search ended, so that taking and
    /// giving in turn costs one step; only when all offsets have been used once are occupied ranges
    /// stepped over.
    fn find(&self, search: &mut Search, bytes: u64) -> Step {
        let mut start = match search.at {
            None => self.next,
            // Somebody may have taken what was passed before, and more.
            Some(at) => match self.containing(at) {
                Some((occupied, entry)) => occupied.saturating_add(entry.bytes),
                None => at,
            },
        };
        for _ in 0..STRIDE {
            if bytes >= LARGE {
                start = start.next_multiple_of(LARGE);
            }
            let end = start.checked_add(bytes);
            if end.is_none_or(|end| end > END) {
                if search.wrapped {
                    return Step::Nothing;
                }
                search.wrapped = true;
                start = FIRST;
                continue;
            }
            let Some(cursor) = self.tree.cursor_lower_bound(&start) else {
                return Step::Found(start);
            };
            let (&occupied, entry) = cursor.current();
            if occupied.saturating_sub(start) >= bytes {
                return Step::Found(start);
            }
            start = occupied.saturating_add(entry.bytes);
        }
        search.at = Some(start);
        Step::Further
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
