// SPDX-License-Identifier: GPL-2.0

//! The GPU virtual addresses of a client: what is mapped where, and the part of the application thread.
//!
//! What is mapped is what [`Mappings`] says ([`policy::mapping`](crate::policy::mapping)), from the moment
//! at which a call returns. What engines see are page tables; the worker writes them. A change adds its
//! range to what is *stale*, and the worker writes for stale ranges whatever is mapped there when it
//! comes to it. So what was mapped and freed before the worker came to it never appears (VA-18), and a
//! call that frees needs no memory and does not wait.
//!
//! Before an allocation moves or leaves, the worker writes what is stale in the space of its client. So
//! an entry that leads to a page is either of a mapping, and found through the allocation, or stale.
//!
//! Requests grow the memory of the space before they take the lock ([`AddressSpace::change`]).
//!
//! # Locking
//!
//! `AddressSpace::mappings` is a mutex of rank 4: what is mapped, and what is stale. The worker takes it
//! for one mapping at a time and never waits for a paging buffer under it.

use core::ops::Range;

use kernel::{
    list::{
        impl_list_arc_safe,
        impl_list_item,
        AtomicTracker,
        ListLinks,
        TryNewListArc, //
    },
    new_mutex,
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc,
        Mutex, //
    },
};

use crate::{
    abstractions::trace,
    backend::capabilities::Translation,
    object::{
        adapter::Adapter,
        allocation::Allocation,
        client::Client,
        client_tables::{
            Claim,
            ClientTables, //
        },
        standing::Standing,
        worker::Worker, //
    },
    policy::{
        mapping::{
            self,
            Freed,
            Owner,
            Piece,
            Slot,
            Space,
            SLOTS, //
        },
        stale::Stale,
    },
    units::{
        SegmentId,
        PAGE_BYTES, //
    },
};

pub(crate) use crate::backend::page_table::Rights;
pub(crate) use crate::policy::mapping::{
    Kind,
    Place,
    Rights as Packed, //
};

mod request;

pub(crate) use self::request::{
    free,
    map,
    query,
    reserve, //
};

/// The least page: what addresses and sizes are multiples of.
pub(crate) const LEAST_PAGE: u64 = PAGE_BYTES;

/// Slots of a new space.
const FIRST_SLOTS: usize = 32;

/// What [`Allocation::mapped`] says of one that is closed: it gets no more mappings.
const CLOSED: u32 = u32::MAX;

/// Bits of [`mapping::Rights`].
const WRITE: u32 = 1 << 0;
const EXECUTE: u32 = 1 << 1;
const DRIVER_SHIFT: u32 = 2;

/// The space of a client.
#[pin_data]
pub(crate) struct AddressSpace {
    number: u64,
    /// The client.
    process: u64,
    #[pin]
    mappings: Mutex<Mappings>,
    tables: Claim,
    #[pin]
    standing: Standing,
    #[pin]
    links: ListLinks,
    #[pin]
    tracker: AtomicTracker,
}

impl_list_arc_safe! {
    impl ListArcSafe<0> for AddressSpace { tracked_by tracker: AtomicTracker; }
}

impl_list_item! {
    impl ListItem<0> for AddressSpace { using ListLinks { self.links }; }
}

/// What is mapped, and what has changed since entries were written.
pub(super) struct Mappings {
    space: Space<KVVec<Slot<Arc<Allocation>>>, Arc<Allocation>>,
    stale: Stale,
}

/// A mapping that is asked for.
pub(crate) struct Wish {
    /// Where.
    pub(crate) place: Place,
    /// How long it is.
    pub(crate) bytes: u64,
    /// Where in the allocation it begins.
    pub(crate) offset: u64,
    /// What engines may do.
    pub(crate) rights: Packed,
}

/// What VA_QUERY tells of a run of addresses.
pub(crate) struct Description {
    /// The run.
    pub(crate) piece: Piece,
    /// Whose memory.
    pub(crate) allocation: Option<Arc<Allocation>>,
}

impl From<mapping::Refused> for Error {
    fn from(refused: mapping::Refused) -> Self {
        match refused {
            mapping::Refused::Overlap => EEXIST,
            mapping::Refused::Zero | mapping::Refused::NotMapped | mapping::Refused::Outside => {
                EINVAL
            }
            mapping::Refused::NoPlace => ENOSPC,
            // There was room when the request began.
            mapping::Refused::Slots => ENOMEM,
        }
    }
}

/// Returns the rights that a mapping keeps.
pub(super) fn unpack(packed: Packed) -> Rights {
    Rights {
        write: packed.0 & WRITE != 0,
        execute: packed.0 & EXECUTE != 0,
        driver: (packed.0 >> DRIVER_SHIFT).into(),
    }
}

impl AddressSpace {
    /// Makes the space of the client `process`, in which nothing is.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn new(
        adapter: &Adapter,
        process: u64,
        translation: &Translation,
    ) -> Result<Arc<Self>> {
        let mappings = Mappings {
            space: Space::new(slots(FIRST_SLOTS)?, translation.addresses.clone()),
            stale: Stale::new(),
        };
        Arc::pin_init(
            try_pin_init!(Self {
                number: adapter.next_number(),
                process,
                mappings <- new_mutex!(mappings, "AddressSpace::mappings"),
                tables: Claim::new(adapter, translation)?,
                standing <- Standing::new(),
                links <- ListLinks::new(),
                tracker <- AtomicTracker::new(),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Returns its number, unique on the adapter.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns its page tables.
    pub(crate) fn tables(&self) -> &Arc<ClientTables> {
        self.tables.tables()
    }

    /// Returns where its tables begin, and who walks them.
    pub(super) fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Returns the number of its client.
    pub(crate) fn process(&self) -> u64 {
        self.process
    }

    /// Makes a change that takes at most [`SLOTS`] slots.
    fn change<R>(&self, what: impl FnOnce(&mut Mappings) -> Result<R>) -> Result<R> {
        loop {
            let mut mappings = self.mappings.lock();
            if mappings.space.spare() >= SLOTS {
                return what(&mut mappings);
            }
            let count = mappings.space.capacity();
            drop(mappings);
            let longer = slots(count.checked_add(count / 2).ok_or(ENOMEM)?)?;
            let old = self.mappings.lock().space.grow(longer);
            drop(old);
        }
    }

    fn trace(&self, purpose: trace::Purpose, range: &Range<u64>, action: trace::Hold) {
        trace::va_range(|| trace::VaRange {
            space: self.number,
            process: self.process,
            purpose,
            start: range.start,
            size: range.end.saturating_sub(range.start),
            action,
        });
    }

    /// Takes every mapping away from an allocation whose handle is gone; it gets no more.
    ///
    /// Requirement: VA-19.
    pub(super) fn forget(this: &Arc<Self>, allocation: &Allocation) {
        let mut mappings = this.mappings.lock();
        let number = allocation.mapped().xchg(CLOSED, Relaxed);
        let Some(owner) = Owner::from_number(number).filter(|_| number != CLOSED) else {
            return;
        };
        let Mappings { space, stale } = &mut *mappings;
        for (range, _) in space.mappings_of(owner) {
            stale.add(range);
        }
        let gone = space.detach(owner, |range| {
            this.trace(trace::Purpose::Map, &range, trace::Hold::Free);
        });
        drop(mappings);
        drop(gone);
        Worker::attend_space(allocation.adapter().worker(), this);
    }

    /// Passes a result on; if it is an error, frees a range that was just made.
    fn or_free(&self, range: Range<u64>, result: Result) -> Result {
        if result.is_err() {
            let _ = self.change(|mappings| {
                let freed = mappings.space.free(range.clone(), |_| ())?;
                let purpose = match freed {
                    Freed::Reservation(_) => trace::Purpose::Reservation,
                    Freed::Mappings => trace::Purpose::Map,
                };
                self.trace(purpose, &range, trace::Hold::Free);
                Ok(())
            });
        }
        result
    }

    /// Notes that entries of a range may not say what is mapped.
    pub(super) fn add_stale(&self, range: Range<u64>) {
        self.mappings.lock().stale.add(range);
    }

    /// Notes that entries of ranges that read as zero may not say so.
    pub(super) fn add_zero_stale(&self) {
        let mut mappings = self.mappings.lock();
        let Mappings { space, stale } = &mut *mappings;
        for piece in space.pieces(space.limits()) {
            if piece.reserved == Some(Kind::Zero) {
                stale.add(piece.range);
            }
        }
    }

    /// Takes the lowest stale range out.
    pub(super) fn take_stale(&self) -> Option<Range<u64>> {
        self.mappings.lock().stale.take()
    }

    /// Returns what lies first in a window.
    pub(super) fn first_piece(&self, window: Range<u64>) -> Option<Description> {
        let mappings = self.mappings.lock();
        let piece = mappings.space.pieces(window).next()?;
        Some(mappings.describe(piece))
    }

    /// Calls `each` with the mappings of an allocation, without the lock.
    pub(super) fn for_each_mapping(
        &self,
        allocation: &Allocation,
        mut each: impl FnMut(Range<u64>, mapping::Mapped),
    ) {
        let owner = || {
            let number = allocation.mapped().load(Relaxed);
            Owner::from_number(number).filter(|_| number != CLOSED)
        };
        if let Some(owner) = owner() {
            self.mappings.lock().space.begin_walk(owner);
        }
        loop {
            let mut mappings = self.mappings.lock();
            // It may be closed by now.
            let Some((range, mapped)) =
                owner().and_then(|owner| mappings.space.next_in_walk(owner))
            else {
                return;
            };
            drop(mappings);
            each(range, mapped);
        }
    }
}

impl Mappings {
    fn describe(&self, piece: Piece) -> Description {
        let owner = piece
            .mapped
            .and_then(|mapped| self.space.owner(mapped.owner));
        Description {
            allocation: owner.cloned(),
            piece,
        }
    }

    /// Returns the owner that stands for an allocation.
    ///
    /// # Errors
    ///
    /// - `ENOENT`: its handle is gone.
    fn owner(&mut self, allocation: &Arc<Allocation>) -> Result<Owner> {
        let number = allocation.mapped().load(Relaxed);
        if number == CLOSED {
            return Err(ENOENT);
        }
        if let Some(owner) = Owner::from_number(number) {
            return Ok(owner);
        }
        let owner = self.space.attach(allocation.clone())?;
        allocation.mapped().store(owner.number(), Relaxed);
        Ok(owner)
    }
}

/// Returns memory for this many ranges, charged to the caller.
fn slots(count: usize) -> Result<KVVec<Slot<Arc<Allocation>>>> {
    let mut slots = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT)?;
    for _ in 0..count {
        slots.push(Slot::UNUSED, GFP_KERNEL_ACCOUNT)?;
    }
    Ok(slots)
}

/// Returns the space of a client, and what its engines can do.
///
/// # Errors
///
/// - `EOPNOTSUPP`: the adapter has no GPU MMU.
fn of(client: &Client) -> Result<(&Arc<AddressSpace>, &Translation)> {
    let capabilities = client.adapter().backend().capabilities();
    let translation = capabilities.translation.as_ref();
    client.space().zip(translation).ok_or(EOPNOTSUPP)
}

/// Returns the addresses that a client can use.
///
/// # Errors
///
/// - `EOPNOTSUPP`: the adapter has no GPU MMU.
pub(crate) fn addresses(client: &Client) -> Result<Range<u64>> {
    Ok(of(client)?.1.addresses.clone())
}

/// Checks that reservations of this kind can be made.
///
/// # Errors
///
/// - `EOPNOTSUPP`: they cannot.
pub(crate) fn check_kind(client: &Client, kind: Kind) -> Result {
    match (kind, of(client)?.1.zero_pages) {
        (Kind::Zero, false) => Err(EOPNOTSUPP),
        _ => Ok(()),
    }
}

/// Packs rights into what a mapping keeps.
///
/// # Errors
///
/// - `EOPNOTSUPP`: driver bits that the backend does not know.
pub(crate) fn pack(client: &Client, rights: Rights) -> Result<Packed> {
    let known = of(client)?.1.driver_bits;
    let driver = u32::try_from(rights.driver).map_err(|_| EOPNOTSUPP)?;
    if rights.driver & !known != 0 || driver >> (u32::BITS - DRIVER_SHIFT) != 0 {
        return Err(EOPNOTSUPP);
    }
    let write = if rights.write { WRITE } else { 0 };
    let execute = if rights.execute { EXECUTE } else { 0 };
    Ok(mapping::Rights(write | execute | driver << DRIVER_SHIFT))
}

impl Description {
    /// Returns the segment behind it, if there is memory behind it now.
    pub(crate) fn segment(&self) -> Option<SegmentId> {
        let allocation = self.allocation.as_ref()?;
        allocation.residence().lock().segment()
    }

    /// Returns whether reads give zero and writes vanish.
    pub(crate) fn is_zero(&self) -> bool {
        self.piece.reserved == Some(Kind::Zero) && self.piece.mapped.is_none()
    }

    /// Returns what engines may do.
    pub(crate) fn rights(&self) -> Rights {
        let mapped = self.piece.mapped;
        mapped
            .map(|mapped| unpack(mapped.rights))
            .unwrap_or_default()
    }

    /// Returns the handle of the allocation, 0 if there is none.
    pub(crate) fn handle(&self) -> u32 {
        self.allocation
            .as_ref()
            .map_or(0, |allocation| allocation.name().handle())
    }
}

/// Returns whether a value is a multiple of the least page.
pub(crate) fn is_page_multiple(value: u64) -> bool {
    value % PAGE_BYTES == 0
}
