// SPDX-License-Identifier: GPL-2.0

//! Where an allocation is, and what may be done with it there.
//!
//! [`Residence`] is the state behind `Allocation::residence` (rank 2). Its transitions are made by
//! [`super::placement`], which holds `Adapter::residency` (rank 1) as well; the references of the
//! residency requirement list are counted by [`super::residency`].
//!
//! | location | backing pages | content | GPU reaches it by |
//! |---|---|---|---|
//! | `Nowhere` | maybe | none, or in the backing store | nothing |
//! | `System` | yes, pinned | none, or in the backing | (GPU virtual addresses) |
//! | `Aperture` | yes, pinned | none, or in the backing | a range of the aperture |
//! | `Segment` | yes | in the segment | its pages there |
//!
//! A place is *decided* at once and *in force* when the paging buffer `settled` has completed.
//! Operations run in the order in which they were built, so the next decision need not wait for the
//! last one; the CPU has to.

use crate::{
    abstractions::trace,
    object::{
        backing::Backing,
        budget::Group,
        fixed,
        offer::{
            Offer,
            Surrender, //
        },
        order::{
            Entry,
            EntryNodes, //
        },
        reclaim::{
            IdleNode,
            Position, //
        },
    },
    policy::{
        eviction::{
            Bond,
            History,
            Need, //
        },
        placement::Chain, //
    },
    units::SegmentId,
};

/// Where an allocation is.
pub(crate) enum Location {
    /// Not resident.
    Nowhere,
    /// Resident in system memory, without an aperture range.
    System,
    /// Resident in system memory, behind a range of the aperture (SEG-16).
    Aperture(Chain),
    /// In a memory segment.
    Segment(SegmentId, Chain),
}

/// Where the content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// There is none: it reads as zero.
    Empty,
    /// In the backing pages.
    Backing,
    /// In the memory segment where the allocation lies.
    Segment,
}

/// Who may have changed the content since it came to where it is, the surest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Written {
    /// Nobody could: what it was brought from is as good.
    Never,
    /// The CPU could: it has been given a translation, and may have stored through it.
    Perhaps,
    /// The CPU: the client says so.
    ByCpu,
    /// The GPU: a submission lists it as written.
    ByGpu,
}

/// What becomes of content that leaves a memory segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is copied to the backing pages.
    Copied,
    /// It is still where it came from.
    Unchanged,
    /// The client can do without it.
    GivenUp,
}

/// Why the worker shall look at an allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nobody wants anything.
    None,
    /// Its residency references are gone: it leaves at the first chance.
    Leave,
    /// The CPU wants to touch it where the CPU cannot reach.
    Reach,
    /// It is offered, and the pages behind it are needed.
    GiveUp,
}

/// Which translations of the CPU an allocation may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Translations {
    /// None.
    None,
    /// To its pages.
    Direct,
    /// To pages of the window onto this segment.
    Window(SegmentId),
}

/// The residency of one allocation.
pub(crate) struct Residence {
    /// Where it is.
    pub(super) location: Location,
    /// Where its content is.
    pub(super) content: Content,
    /// Residency references held by its device (RES-10).
    pub(super) references: u64,
    /// Whether the last MAKE_RESIDENT found no place for it.
    pub(super) unplaced: bool,
    /// Whether its client has given it up by EVICT, although it may still be somewhere.
    pub(super) given_up: bool,
    /// The budget in which it is counted.
    pub(super) counted_in: Option<Group>,
    /// Where it is counted as fixed.
    pub(super) counted_fixed: Option<fixed::Counted>,
    /// Whether its handle is gone, so that it gets no more references.
    pub(super) forgotten: bool,
    /// Queued commands that will bring it in.
    pub(super) commands: u64,
    /// Portions that are about to run or running and need it where it is.
    pub(super) pins: u32,
    /// Submissions between two portions whose slots hold it where it is.
    pub(super) held: u32,
    /// Reasons for which it never moves while they last: it was created PINNED and has its place.
    pub(super) fixed: u32,
    /// Submissions that the worker prepares and that need it. After a change: [`Allocation::sink`].
    ///
    /// [`Allocation::sink`]: super::allocation::Allocation::sink
    pub(super) required: u32,
    /// Whether the request that is carried out needs it where it is.
    pub(super) wanted: bool,
    /// Whether the client can do without its content.
    pub(super) offer: Offer,
    /// Where it stands among those whose pages may go.
    pub(super) surrender: Surrender,
    /// Number of the paging buffer with which the place comes into force.
    pub(super) settled: u64,
    /// What is wanted from the worker.
    pub(super) wish: Wish,
    /// Which translations of the CPU may exist.
    pub(super) translations: Translations,
    /// Whether it is held in system memory for residency, from step A1 on.
    pub(super) pinned_in_system: bool,
    /// Where its content was before it came to the memory segment it is in.
    origin: Content,
    /// Who may have changed the content since it came.
    written: Written,
    /// The first backing page that may hold something although there is no content; [`None`] if all are
    /// zero.
    stained_from: Option<u64>,
    /// How it was used, also while it is not resident.
    pub(super) history: History,
    /// Where it stands in the order of the segment where it lies.
    pub(super) entry: Option<Entry>,
    /// Memory for that.
    pub(super) nodes: EntryNodes,
    /// Who relies on the backing pages of a swappable allocation staying where they are.
    pub(super) keepers: u32,
    /// Its place among swappable allocations that lie nowhere and have their pages.
    pub(super) idle: Option<Position>,
    /// Memory for that place, of a swappable allocation that has none.
    pub(super) idle_node: Option<IdleNode>,
    /// Whether it is forgotten already.
    gone: bool,
    /// Whether it has had backing pages.
    committed: bool,
    backing: Option<Backing>,
}

impl Residence {
    /// Returns the residency of a new allocation: nowhere, without content.
    pub(super) fn new(nodes: EntryNodes, idle_node: Option<IdleNode>) -> Self {
        Self {
            location: Location::Nowhere,
            content: Content::Empty,
            references: 0,
            unplaced: false,
            given_up: false,
            counted_in: None,
            counted_fixed: None,
            forgotten: false,
            commands: 0,
            pins: 0,
            held: 0,
            fixed: 0,
            required: 0,
            wanted: false,
            offer: Offer::None,
            surrender: Surrender::Unequipped,
            settled: 0,
            wish: Wish::None,
            translations: Translations::None,
            pinned_in_system: false,
            origin: Content::Empty,
            written: Written::Never,
            stained_from: None,
            history: History::default(),
            entry: None,
            nodes,
            keepers: 0,
            idle: None,
            idle_node,
            gone: false,
            committed: false,
            backing: None,
        }
    }

    /// Returns the backing store.
    pub(crate) fn backing(&self) -> Option<&Backing> {
        self.backing.as_ref()
    }

    /// Installs `backing` unless there is one; gives back what is not needed.
    pub(super) fn install(&mut self, backing: Backing) -> Option<Backing> {
        match self.backing {
            Some(_) => Some(backing),
            None => {
                self.backing = Some(backing);
                None
            }
        }
    }

    /// Notes that the allocation is forgotten; says whether that is news.
    pub(super) fn bury(&mut self) -> bool {
        !core::mem::replace(&mut self.gone, true)
    }

    /// Notes that it has had backing pages; says whether that is news.
    pub(super) fn note_commitment(&mut self) -> bool {
        !core::mem::replace(&mut self.committed, true)
    }

    /// Returns whether it has had backing pages.
    pub(super) fn is_committed(&self) -> bool {
        self.committed
    }

    /// Takes the backing store.
    pub(super) fn take_backing(&mut self) -> Option<Backing> {
        self.backing.take()
    }

    /// Returns what ties it to its place.
    pub(super) fn bond(&self) -> Bond {
        match (self.fixed, self.wanted, self.is_tied()) {
            (0, false, false) => Bond::Loose,
            (0, false, true) => Bond::Pinned,
            (0, true, _) => Bond::Wanted,
            _ => Bond::Fixed,
        }
    }

    /// Returns whether work that is about to run needs it.
    pub(super) fn need(&self) -> Need {
        match self.required {
            0 => Need::Idle,
            _ => Need::Required,
        }
    }

    /// Returns whether it is resident.
    pub(crate) fn is_resident(&self) -> bool {
        !matches!(self.location, Location::Nowhere)
    }

    /// Returns whether the place is in force, given the last completed paging buffer.
    pub(crate) fn is_settled(&self, completed: u64) -> bool {
        self.settled <= completed
    }

    /// Returns whether it is usable now and will stay unless somebody decides otherwise.
    pub(super) fn is_ready(&self, completed: u64) -> bool {
        self.is_resident() && self.is_settled(completed) && self.wish == Wish::None
    }

    /// Returns whether it must stay where it is: work that is about to run or running needs it
    /// there, or it never moves.
    pub(super) fn stays(&self) -> bool {
        self.is_tied() || self.fixed > 0
    }

    /// Returns whether submissions need it where it is, which ends one day.
    pub(super) fn is_tied(&self) -> bool {
        self.pins > 0 || self.held > 0
    }

    /// Returns how many submissions hold it across a cut.
    pub(crate) fn slot_holds(&self) -> u32 {
        self.held
    }

    /// Returns whether it takes no place and no operation on its pages is outstanding.
    pub(super) fn is_idle_nowhere(&self, completed: u64) -> bool {
        matches!(self.location, Location::Nowhere) && self.is_settled(completed)
    }

    /// Returns whether the last MAKE_RESIDENT found no place for it.
    pub(crate) fn is_unplaced(&self) -> bool {
        self.unplaced
    }

    /// Returns where it is.
    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// Returns the segment in which its pages are when it is resident.
    pub(crate) fn segment(&self) -> Option<SegmentId> {
        match self.location {
            Location::Nowhere => None,
            Location::System | Location::Aperture(_) => Some(SegmentId::SYSTEM),
            Location::Segment(id, _) => Some(id),
        }
    }

    /// Returns where its content is.
    pub(crate) fn content(&self) -> Content {
        self.content
    }

    /// Returns its residency references.
    pub(crate) fn references(&self) -> u32 {
        u32::try_from(self.references).unwrap_or(u32::MAX)
    }

    /// Returns its pins, as the debug file shows them: portions, reasons never to move, and
    /// residency in system memory.
    pub(crate) fn pins(&self) -> u32 {
        let resident = self.pinned_in_system
            || matches!(self.location, Location::System | Location::Aperture(_));
        self.pins
            .saturating_add(self.held)
            .saturating_add(self.fixed)
            .saturating_add(u32::from(resident))
    }

    /// Returns how many rely on the backing pages of a swappable allocation, beside its place.
    pub(crate) fn keepers(&self) -> u32 {
        self.keepers
    }

    /// Returns whether it is offered, and what has become of that.
    pub(crate) fn offer(&self) -> Offer {
        self.offer
    }

    /// Returns whether the GPU may have written it since it came.
    pub(crate) fn gpu_dirty(&self) -> bool {
        self.written == Written::ByGpu
    }

    /// Notes that it has come to a new place, to which its content went along if it is in a memory
    /// segment.
    pub(super) fn arrive(&mut self, location: Location) {
        if matches!(location, Location::Segment(..)) {
            self.origin = self.content;
            self.content = Content::Segment;
        }
        self.location = location;
        self.written = Written::Never;
    }

    /// Returns what becomes of its content when it leaves a memory segment for this reason; [`None`] if
    /// its content is not in one.
    pub(super) fn fate(&self, cause: trace::Cause) -> Option<Fate> {
        if self.content != Content::Segment {
            return None;
        }
        let under_pressure = matches!(cause, trace::Cause::Pressure | trace::Cause::Split);
        Some(match (self.offer.is_in_force(), self.written) {
            (true, _) if under_pressure => Fate::GivenUp,
            (_, Written::Never) => Fate::Unchanged,
            _ => Fate::Copied,
        })
    }

    /// Notes that it has left its place, and its content with it.
    pub(super) fn part(&mut self, fate: Option<Fate>) {
        match fate {
            Some(Fate::Copied) => self.keep_in_backing(),
            Some(Fate::Unchanged) => self.content = self.origin,
            Some(Fate::GivenUp) => self.give_up_content(),
            None => {}
        }
        self.written = Written::Never;
    }

    /// Notes that its content is written where it is.
    pub(super) fn note_written(&mut self, written: Written) {
        self.written = self.written.max(written);
        // Outside of a memory segment that means the backing pages.
        if self.content == Content::Empty {
            self.keep_in_backing();
        }
    }

    /// Notes that its content is in the backing pages.
    pub(super) fn keep_in_backing(&mut self) {
        self.content = Content::Backing;
        self.stained_from = Some(0);
    }

    /// Notes that its content is given up: it reads as zero from now on.
    pub(super) fn give_up_content(&mut self) {
        self.offer.give_up();
        self.content = Content::Empty;
    }

    /// Returns whether the backing pages must be cleared before anybody sees them.
    pub(super) fn is_stained(&self) -> bool {
        self.content == Content::Empty && self.stained_from.is_some()
    }

    /// Notes that all backing pages are zero when the operations built so far are complete.
    pub(super) fn note_cleared(&mut self) {
        self.stained_from = None;
    }

    /// Clears some of the backing pages that must be.
    pub(super) fn clear_some(&mut self) {
        if self.content == Content::Empty {
            let cleared = self.stained_from.zip(self.backing.as_ref());
            if let Some((first, backing)) = cleared {
                self.stained_from = backing.clear_some(first);
            }
        }
    }

    /// Gives up the backing pages with what they hold.
    pub(super) fn give_up_backing(&mut self) -> Option<Backing> {
        self.stained_from = None;
        self.committed = false;
        self.backing.take()
    }

    /// Returns whether somebody waits until it is used no longer.
    pub(super) fn is_awaited(&self) -> bool {
        self.wish != Wish::None || matches!(self.offer, Offer::Announced(_))
    }

    /// Notes that the CPU is given a translation, through which it may write.
    pub(super) fn note_mapped(&mut self, translations: Translations) {
        self.translations = translations;
        self.note_written(Written::Perhaps);
    }

    /// Takes the client's word that the CPU has written it.
    pub(super) fn note_stores(&mut self) {
        if self.content == Content::Segment {
            self.note_written(Written::ByCpu);
        }
    }

    /// Takes the client's word that the CPU has written nothing since the content came. Translations
    /// were removed, so that what it writes from now on is noticed.
    pub(super) fn deny_stores(&mut self) {
        if self.written == Written::Perhaps {
            self.written = Written::Never;
        }
    }
}
