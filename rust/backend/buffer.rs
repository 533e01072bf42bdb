// SPDX-License-Identifier: GPL-2.0

//! Work for a node: one buffer in its queue, and what becomes of it.
//!
//! A [`Buffer`] is owned by exactly one [`ListArc`], and that owner alone may look inside: the core
//! while it fills the buffer, the node while it runs it, the core again when it is complete. So a
//! buffer can be used again and again without an allocation, and nobody can change commands that
//! are being executed.

use kernel::{
    list::{
        define_list_arc_field_getter,
        impl_list_arc_safe,
        impl_list_item,
        ListArc,
        ListArcField,
        ListLinks, //
    },
    prelude::*,
    sync::Arc, //
};

use core::ops::Range;

use super::{
    operation::Full,
    EngineContext,
    Fault, //
};
use crate::{
    abstractions::pages::Charge,
    units::{
        GpuVirtualAddress,
        Place,
        Run, //
    }, //
};

/// One thing for a node to do.
#[pin_data]
pub(crate) struct Buffer {
    /// What is to be done; belongs to whoever holds the [`ListArc`].
    contents: ListArcField<Contents>,
    /// Place in the queue of a node, or in a list of the core.
    #[pin]
    links: ListLinks,
}

impl_list_arc_safe! {
    impl ListArcSafe<0> for Buffer { untracked; }
}

impl_list_item! {
    impl ListItem<0> for Buffer { using ListLinks { self.links }; }
}

impl Buffer {
    /// Creates an empty buffer with room for `dwords` of commands; waits and signals need none.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(crate) fn new(dwords: usize, charge: Charge) -> Result<ListArc<Self>> {
        Self::with_commands(Commands::with_capacity(dwords, charge)?, charge)
    }

    /// Creates a buffer around `commands`; all of them are its portion.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(crate) fn with_commands(commands: Commands, charge: Charge) -> Result<ListArc<Self>> {
        let contents = Contents::new(commands);
        ListArc::pin_init(
            try_pin_init!(Self {
                contents: ListArcField::new(contents),
                links <- ListLinks::new(),
            }),
            charge.heap(),
        )
    }

    /// Hands a complete buffer to whoever submitted it.
    pub(super) fn give_back(self: ListArc<Self>, outcome: Outcome) {
        if let Some(completion) = self.contents().completion.clone() {
            completion.complete(self, outcome);
        }
    }

    define_list_arc_field_getter! {
        pub(crate) fn contents(&self) -> &Contents { contents }
        pub(crate) fn contents_mut(&mut self) -> &mut Contents { contents }
    }
}

/// What a buffer is; a word of the events `node_begin` and `node_end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Commands of a client.
    Dma,
    /// Paging operations of the core.
    Paging,
    /// A wait that is satisfied; keeps its place in the order of the node, runs nothing.
    Wait,
    /// A signal; keeps its place in the order of the node, runs nothing. The core signals when it
    /// is complete.
    Signal,
}

/// The inside of a [`Buffer`].
pub(crate) struct Contents {
    /// What it is.
    pub(crate) kind: Kind,
    /// A number for the core's own use; the backend hands it back untouched.
    pub(crate) cookie: u64,
    /// On whose behalf it runs. A buffer without a context completes as stopped.
    pub(crate) context: Option<Arc<dyn EngineContext>>,
    /// Who is told when it is complete.
    pub(crate) completion: Option<Arc<dyn Completion>>,
    /// What the node executes.
    pub(crate) commands: Commands,
    /// The part of the commands that runs, in dwords (BCK-4): whole packets.
    pub(crate) portion: Range<usize>,
    /// Commands that the node fetches from the space of the context and runs instead (DMA-29).
    pub(crate) fetch: Option<Fetch>,
    /// The root of that space, if the buffer uses virtual addresses: the same that the context was
    /// told (BCK-8).
    pub(crate) root: Option<Place>,
    /// Memory the portion was given, for the self-check: each access lies inside one of these
    /// runs. Empty means that nothing is checked. Kernel packets are not checked.
    pub(crate) grants: KVVec<Run>,
    /// The completion value on the node, set by `submit`; zero for waits and signals.
    pub(crate) fence: u64,
}

impl Contents {
    /// Returns the inside of a fresh buffer.
    fn new(commands: Commands) -> Self {
        Self {
            kind: Kind::Paging,
            cookie: 0,
            context: None,
            completion: None,
            portion: 0..commands.used(),
            fetch: None,
            root: None,
            commands,
            grants: KVVec::new(),
            fence: 0,
        }
    }

    /// Makes the buffer empty again, keeping its memory.
    ///
    /// The references to context and completion are dropped here, so not under a lock.
    pub(crate) fn reset(&mut self) {
        self.context = None;
        self.completion = None;
        self.commands.clear();
        self.portion = 0..0;
        self.fetch = None;
        self.root = None;
        self.grants.clear();
        self.cookie = 0;
        self.fence = 0;
    }

    /// Lets the portion be everything that the commands hold.
    pub(crate) fn whole(&mut self) {
        self.portion = 0..self.commands.used();
    }
}

/// Commands in an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fetch {
    /// Where they begin; a multiple of 8.
    pub(crate) address: GpuVirtualAddress,
    /// How long they are, a multiple of 8.
    pub(crate) bytes: u32,
}

/// Commands in memory of the kernel: room that is fixed at the start, and a used part.
pub(crate) struct Commands(KVVec<u32>);

impl Commands {
    /// Returns empty commands with room for `dwords`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(crate) fn with_capacity(dwords: usize, charge: Charge) -> Result<Self> {
        Ok(Self(KVVec::with_capacity(dwords, charge.heap())?))
    }

    /// Returns commands that hold `words`.
    pub(crate) fn from_words(words: KVVec<u32>) -> Self {
        Self(words)
    }

    /// Returns the number of dwords in use.
    pub(crate) fn used(&self) -> usize {
        self.0.len()
    }

    /// Returns how many more dwords have room.
    pub(crate) fn room(&self) -> usize {
        self.0.capacity().saturating_sub(self.0.len())
    }

    /// Forgets the content and keeps the room.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the used part.
    pub(crate) fn words(&self) -> &[u32] {
        &self.0
    }

    /// Returns the used part, to be patched.
    pub(crate) fn words_mut(&mut self) -> &mut [u32] {
        &mut self.0
    }

    /// Adds `word`, never allocating.
    pub(crate) fn push(&mut self, word: u32) -> Result<(), Full> {
        self.0.push_within_capacity(word).map_err(|_| Full)
    }

    /// Adds a 64-bit operand, low half first.
    pub(crate) fn push64(&mut self, value: u64) -> Result<(), Full> {
        // CAST: the low half.
        self.push(value as u32)?;
        // CAST: the high half.
        self.push((value >> 32) as u32)
    }
}

/// What became of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ran to its end.
    Done,
    /// It was stopped, before its start or in the middle.
    Stopped,
    /// It gave way, before its end, and is to be submitted again; it begins anew then. Paging buffers only.
    Preempted,
    /// A packet could not be executed; the ones before it are complete.
    Error {
        /// Byte offset of the packet in the buffer.
        offset: u32,
    },
    /// A packet, or the fetch of one, met an address that it could not access; the ones before it are
    /// complete, and so are its own earlier pieces (VA-21).
    Fault {
        /// Byte offset of the packet in the buffer.
        offset: u32,
        /// The access.
        fault: Fault,
    },
}

/// Who is told that a buffer is complete.
pub(crate) trait Completion: Send + Sync {
    /// The node begins to run the buffer at the head of its queue, which is of this kind.
    ///
    /// Called at most once for each submitted buffer, before it is complete, from process context
    /// with no lock held.
    fn begin(&self, _kind: Kind) {}

    /// Takes the buffer back.
    ///
    /// Called exactly once for each submitted buffer, in the order of submission on each node, from
    /// process context with no lock held.
    fn complete(&self, buffer: ListArc<Buffer>, outcome: Outcome);
}
