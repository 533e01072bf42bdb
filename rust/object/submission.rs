// SPDX-License-Identifier: GPL-2.0

//! Submissions: DMA buffers with their lists, from acceptance to their end.
//!
//! Acceptance copies nothing from user memory: the door has done that, and what is checked here is
//! what will run (DMA-24). After it, a submission owns everything its completion can need: its
//! commands, claims on its allocations, their backing pages, and the buffers that carry it through
//! the node. It is then moved along, never copied:
//!
//! | where | who moves it on |
//! |---|---|
//! | queue of its context | waits are satisfied and nothing is in front of it ([`super::context`]) |
//! | worker | its allocations are in their places and pinned ([`super::worker`]) |
//! | prepared | the paging in front of it is complete ([`super::scheduler`]) |
//! | node | it ends, or is stopped; or a portion of it ends, and the worker prepares the next one |
//!
//! A submission that does not fit into memory as a whole is cut at its split points
//! ([`super::worker`]). Nothing of its context comes between its portions, and what its slots hold across a
//! cut stays in its place.

use kernel::{
    list::{
        define_list_arc_field_getter,
        impl_list_arc_safe,
        impl_list_item,
        ListArc,
        ListArcField,
        ListLinks, //
    },
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    },
};

use crate::{
    abstractions::pages::Charge,
    backend::{
        buffer::Commands,
        Buffer, //
    },
    object::{
        acceptance::{
            self,
            Checked,
            Needs, //
        },
        address_space::AddressSpace,
        allocation::{Access, Allocation, Hold},
        context::Context,
        fence::{
            Fence,
            Waiter, //
        },
        need::Need,
    },
    units::Place,
};

mod record;

pub(crate) use self::record::{
    Record,
    State, //
};
// The lists of a submission and the kinds of its refusal, handed through to the door.
pub(crate) use crate::policy::patching::{
    Kind,
    Patch,
    PatchKind, //
};
use crate::policy::{
    patching::{
        Listed,
        Lists, //
    },
    splitting::{
        Cut,
        Portion, //
    },
};

/// A fence and a value.
#[derive(Clone)]
pub(crate) struct Point {
    /// The fence.
    pub(crate) fence: Arc<Fence>,
    /// The value.
    pub(crate) value: u64,
}

/// An element of the allocation list.
pub(crate) struct Named {
    /// The allocation; [`None`] is the NULL element.
    pub(crate) hold: Option<Hold>,
    /// How the list says it is used.
    pub(crate) access: Access,
    /// The instance; all ones is the current one.
    pub(crate) instance: u32,
}

/// Whether a submission can be in memory as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// It might, if nobody is in the way.
    Whole,
    /// It never can.
    Portions,
}

/// Whether the commands of a submission run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Execution {
    /// They do.
    Full,
    /// Everything is done but running them (NULL_RENDER).
    Null,
}

/// What SUBMIT_PATCHED asks for, decoded and resolved.
pub(crate) struct Request {
    /// The command buffer.
    pub(crate) commands: KVVec<u32>,
    /// Whether it runs.
    pub(crate) execution: Execution,
    /// The allocation list.
    pub(crate) named: KVVec<Named>,
    /// The patch list.
    pub(crate) patches: KVVec<Patch>,
    /// Fences to wait for.
    pub(crate) waits: KVVec<Point>,
    /// Fences to signal.
    pub(crate) signals: KVVec<Point>,
}

/// A submission that was accepted.
pub(crate) struct Accepted {
    /// Its number on the context.
    pub(crate) id: u64,
    /// The allocation list, with the places known at submit time.
    pub(crate) places: KVVec<Option<Place>>,
}

/// Why a submission was refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    /// The errno.
    pub(crate) error: Error,
    /// Submit error kind of the interface, 0 for none.
    pub(crate) kind: u32,
    /// What it is about.
    pub(crate) index: u32,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self {
            error,
            kind: 0,
            index: 0,
        }
    }
}

impl From<kernel::alloc::AllocError> for Refused {
    fn from(_: kernel::alloc::AllocError) -> Self {
        ENOMEM.into()
    }
}

impl From<crate::policy::patching::Refused> for Refused {
    fn from(refused: crate::policy::patching::Refused) -> Self {
        let error = match refused.kind {
            Kind::Access => EACCES,
            Kind::Offered => EBUSY,
            Kind::TooLarge => ENOSPC,
            Kind::BadHandle => ENOENT,
            _ => EINVAL,
        };
        Self {
            error,
            kind: refused.kind.number(),
            index: refused.index,
        }
    }
}

/// What changes while a submission moves along. Belongs to whoever moves it.
pub(super) struct Progress {
    /// Kept place of a wait in the order of the node.
    pub(super) wait: Option<ListArc<Buffer>>,
    /// The commands.
    pub(super) dma: Option<ListArc<Buffer>>,
    /// Kept place of the signals in the order of the node.
    pub(super) signal: Option<ListArc<Buffer>>,
    /// Where the needs are that the portion has pinned.
    pub(super) places: KVVec<Option<Place>>,
    /// The portion that is prepared or runs, or ran last.
    pub(super) portion: Option<Portion>,
    /// The first entry of the patch list that the trace has not heard of.
    pub(super) announced: usize,
    /// The paging buffer behind which everything is in its place.
    pub(super) settled: u64,
    /// What [`Adapter::room`] said when no room was found last.
    ///
    /// [`Adapter::room`]: super::adapter::Adapter::room
    pub(super) tried: u64,
}

/// An accepted submission.
#[pin_data]
pub(crate) struct Submission {
    context: Arc<Context>,
    /// Its number on the adapter.
    number: u64,
    needs: KVVec<Need>,
    /// For each element of the allocation list, which need it is; all ones for NULL.
    elements: KVVec<u32>,
    listed: KVVec<Listed>,
    /// Whether everything it names might be in memory at once.
    extent: Extent,
    /// Bytes of commands.
    bytes: u32,
    patches: KVVec<Patch>,
    waits: KVVec<Point>,
    signals: KVVec<Point>,
    execution: Execution,
    record: Arc<Record>,
    /// Whether it was stopped or went wrong.
    failed: Atomic<bool>,
    /// Whether what it needs is counted as required.
    requires: Atomic<bool>,
    /// Whether its commands lie, and run, in the space of its client.
    fetches: bool,
    /// Its number on the context; written once, when it is accepted.
    id: Atomic<u64>,
    /// What the portion with the node was expected to take, in nanoseconds.
    charged: Atomic<u64>,
    /// Memory for the waits.
    #[pin]
    waiters: SpinLock<KVVec<Waiter>>,
    progress: ListArcField<Progress>,
    #[pin]
    links: ListLinks,
}

impl_list_arc_safe! {
    impl ListArcSafe<0> for Submission { untracked; }
}

impl_list_item! {
    impl ListItem<0> for Submission { using ListLinks { self.links }; }
}

/// Accepts a submission, or refuses it as a whole.
///
/// # Errors
///
/// [`Refused`]: nothing has changed, but for one case: in mode PATCHED_EXPLICIT, naming something
/// without a residency reference puts the device in error.
///
/// Requirements: DMA-7, DMA-8, DMA-13, DMA-24, SEG-20.
pub(crate) fn submit(context: &Arc<Context>, request: Request) -> Result<Accepted, Refused> {
    let device = context.device();
    device.ensure_active()?;
    let adapter = device.adapter();
    let Checked { listed, commitment } = acceptance::check(context, &request)?;
    let Needs {
        list: needs,
        elements,
    } = acceptance::needs(context, &request)?;
    let extent = if acceptance::fits_whole(context, &request.named) {
        Extent::Whole
    } else {
        Extent::Portions
    };
    let bytes = request.commands.len() * 4;
    let dma = if request.commands.is_empty() {
        None
    } else {
        let mut buffer =
            Buffer::with_commands(Commands::from_words(request.commands), Charge::Client)?;
        let grants = &mut buffer.contents_mut().grants;
        grants.reserve(needs.len(), GFP_KERNEL_ACCOUNT)?;
        Some(buffer)
    };
    let known = acceptance::places(adapter, &request.named)?;
    let draft = Draft {
        needs,
        elements,
        listed,
        extent,
        bytes: u32::try_from(bytes).map_err(|_| EINVAL)?,
        patches: request.patches,
        dma,
        waits: request.waits,
        signals: request.signals,
        execution: request.execution,
    };
    let submission = draft.finish(context)?;
    submission.begin_use()?;
    commitment.commit(&request.named);
    let id = context.accept(submission)?;
    Ok(Accepted { id, places: known })
}

/// What a submission is made from, checked.
pub(super) struct Draft {
    /// What must be in its place while it runs.
    pub(super) needs: KVVec<Need>,
    /// For each element of the list that the caller gave, which need it is; all ones for NULL.
    pub(super) elements: KVVec<u32>,
    /// The allocation list, as the policy wants it.
    pub(super) listed: KVVec<Listed>,
    /// Whether everything it names might be in memory at once.
    pub(super) extent: Extent,
    /// Bytes of commands.
    pub(super) bytes: u32,
    /// The patch list.
    pub(super) patches: KVVec<Patch>,
    /// The commands; [`None`] if there are only waits and signals.
    pub(super) dma: Option<ListArc<Buffer>>,
    /// Fences to wait for.
    pub(super) waits: KVVec<Point>,
    /// Fences to signal.
    pub(super) signals: KVVec<Point>,
    /// Whether the commands run.
    pub(super) execution: Execution,
}

impl Draft {
    /// Makes the submission, with everything it will need until its end.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn finish(self, context: &Arc<Context>) -> Result<ListArc<Submission>> {
        let mut waiters = KVVec::with_capacity(self.waits.len(), GFP_KERNEL_ACCOUNT)?;
        for point in self.waits.iter().rev() {
            let waiter = Fence::waiter(point.value, context.number(), context.clone())?;
            waiters.push(waiter, GFP_KERNEL_ACCOUNT)?;
        }
        let places = KVVec::with_capacity(self.needs.len(), GFP_KERNEL_ACCOUNT)?;
        let wait = match self.waits.is_empty() {
            true => None,
            false => Some(Buffer::new(0, Charge::Client)?),
        };
        let signal = match self.dma.is_some() && self.signals.is_empty() {
            true => None,
            false => Some(Buffer::new(0, Charge::Client)?),
        };
        let record = Record::new()?;
        let fetches = self
            .dma
            .as_ref()
            .is_some_and(|dma| dma.contents().fetch.is_some());
        let progress = Progress {
            wait,
            dma: self.dma,
            signal,
            places,
            portion: None,
            announced: 0,
            settled: 0,
            tried: 0,
        };
        ListArc::pin_init(
            try_pin_init!(Submission {
                context: context.clone(),
                number: context.device().adapter().next_submission(),
                needs: self.needs,
                elements: self.elements,
                listed: self.listed,
                extent: self.extent,
                bytes: self.bytes,
                patches: self.patches,
                waits: self.waits,
                signals: self.signals,
                execution: self.execution,
                record,
                failed: Atomic::new(false),
                requires: Atomic::new(false),
                fetches,
                id: Atomic::new(0),
                charged: Atomic::new(0),
                waiters <- new_spinlock!(waiters, "Submission::waiters"),
                progress: ListArcField::new(progress),
                links <- ListLinks::new(),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }
}

impl Submission {
    define_list_arc_field_getter! {
        pub(super) fn progress(&self) -> &Progress { progress }
        pub(super) fn progress_mut(&mut self) -> &mut Progress { progress }
    }

    /// Returns its context.
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Returns its number on the adapter.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns its number on the context.
    pub(super) fn id(&self) -> u64 {
        self.id.load(Relaxed)
    }

    /// Gives it its number on the context.
    pub(super) fn set_id(&self, id: u64) {
        self.id.store(id, Relaxed);
    }

    /// Returns what the portion with the node was expected to take, in nanoseconds.
    pub(super) fn charged(&self) -> u64 {
        self.charged.load(Relaxed)
    }

    /// Notes what the portion that goes to the node is expected to take.
    pub(super) fn note_charge(&self, expected: u64) {
        self.charged.store(expected, Relaxed);
    }

    /// Returns what must be in its place while it runs.
    pub(super) fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// Returns the need that element `index` of the allocation list is, or [`None`] for NULL.
    pub(super) fn element(&self, index: u32) -> Option<(usize, &Need)> {
        // CAST: `usize` has 64 bits wherever this driver runs.
        let need = *self.elements.get(index as usize)? as usize;
        Some((need, self.needs.get(need)?))
    }

    /// Returns its lists, as the policy wants them.
    pub(super) fn lists(&self) -> Lists<'_> {
        Lists {
            bytes: self.bytes,
            listed: &self.listed,
            patches: &self.patches,
        }
    }

    /// Returns whether everything it names might be in memory at once.
    pub(super) fn extent(&self) -> Extent {
        self.extent
    }

    /// Returns the portion that is all of it.
    pub(super) fn whole(&self) -> Portion {
        Portion {
            start: Cut::default(),
            end: Cut {
                offset: self.bytes,
                entry: self.patches.len(),
            },
            failed: None,
        }
    }

    /// Returns where its next portion begins.
    pub(super) fn next_cut(self: &ListArc<Self>) -> Cut {
        self.progress()
            .portion
            .map_or(Cut::default(), |portion| portion.end)
    }

    /// Returns whether no portion comes behind the one that is prepared.
    pub(super) fn is_at_last_portion(self: &ListArc<Self>) -> bool {
        let portion = self.progress().portion;
        portion.is_none_or(|portion| portion.end.offset >= self.bytes)
    }

    /// Returns its patch list.
    pub(super) fn patches(&self) -> &[Patch] {
        &self.patches
    }

    /// Returns what it waits for.
    pub(super) fn waits(&self) -> &[Point] {
        &self.waits
    }

    /// Returns what it signals.
    pub(super) fn signals(&self) -> &[Point] {
        &self.signals
    }

    /// Returns whether its commands run.
    pub(super) fn execution(&self) -> Execution {
        self.execution
    }

    /// Returns what will be remembered of it.
    pub(super) fn record(&self) -> &Arc<Record> {
        &self.record
    }

    /// Takes the memory for its next wait; waits come in the order of the list.
    pub(super) fn take_waiter(&self) -> Option<Waiter> {
        self.waiters.lock().pop()
    }

    /// Counts it as a user of everything it names.
    ///
    /// # Errors
    ///
    /// - [`Kind::Offered`]: something has been offered meanwhile; nothing is counted.
    pub(super) fn begin_use(&self) -> Result<(), Refused> {
        self.needs.iter().for_each(Need::begin);
        let is_offered = |index: &u32| match self.element(*index) {
            Some((_, need)) => need.allocation().is_offered(),
            None => false,
        };
        let mut elements = 0..self.elements.len();
        // CAST: lists are shorter than 2^32.
        let offered = elements.find(|index| is_offered(&(*index as u32)));
        match offered {
            Some(index) => {
                self.end_use();
                // Somebody may have waited for it.
                self.context.device().adapter().notify_idle();
                Err(acceptance::refuse(Kind::Offered, index))
            }
            None => Ok(()),
        }
    }

    /// Counts everything it needs as required, from now on until it is pinned.
    pub(super) fn require(&self) {
        self.requires.store(true, Relaxed);
        for need in &self.needs {
            need.allocation().residence().lock().required += 1;
        }
    }

    /// Ends what [`Self::require`] began, if it has not ended.
    pub(super) fn dismiss(&self) {
        if !self.requires.xchg(false, Relaxed) {
            return;
        }
        for need in &self.needs {
            need.allocation().residence().lock().required -= 1;
            Allocation::sink(need.allocation());
        }
    }

    /// Ends its use of everything, whatever is pinned of it.
    pub(super) fn end_use(&self) {
        self.dismiss();
        for need in &self.needs {
            need.end();
            need.unpin();
            need.let_go();
            Allocation::reconsider(need.allocation());
        }
        self.context.device().adapter().make_room();
    }

    /// Returns the space in which its commands run, if they use one.
    pub(super) fn space(&self) -> Option<&Arc<AddressSpace>> {
        let client = self.context.device().client();
        client.space().filter(|_| self.fetches)
    }

    /// Unpins what a portion had pinned; what slots hold across the cut behind it stays.
    pub(super) fn unpin(&self) {
        self.needs.iter().for_each(Need::unpin);
        self.context.device().adapter().make_room();
    }

    /// Returns whether it shall not run any more.
    pub(super) fn is_cancelled(&self) -> bool {
        self.context.is_closed()
    }

    /// Notes that it was stopped or went wrong.
    pub(super) fn fail(&self) {
        self.failed.store(true, Relaxed);
    }

    /// Returns whether it was stopped or went wrong.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }
}
