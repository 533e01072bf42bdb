// SPDX-License-Identifier: GPL-2.0

//! The bench on which a backend is tried: it submits buffers, waits for them, and looks at memory.

use kernel::{
    list::ListArc,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

use core::ops::Range;

use crate::{
    abstractions::{
        clock,
        memory::Window,
        pages::{
            Charge,
            PageBlock, //
        },
        wait_queue::{
            new_wait_queue,
            Deadline,
            Sleep,
            WaitQueue, //
        }, //
    },
    backend::{
        Backend,
        Buffer,
        Commands,
        Completion,
        ContextDescription,
        EngineContext,
        Fetch,
        Kind,
        Operation,
        Outcome,
        Progress, //
    },
    units::{
        NodeOrdinal,
        Place,
        Run,
        SegmentId,
        PAGE_BYTES, //
    }, //
};

/// How long to wait for anything, in nanoseconds.
const PATIENCE: u64 = 30_000_000_000;

/// How many completions are remembered.
const MEMORY: usize = 1024;

/// A buffer that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Returned {
    /// The number it was given.
    pub(super) cookie: u64,
    /// What became of it.
    pub(super) outcome: Outcome,
    /// Its completion value.
    pub(super) fence: u64,
}

/// What a node is given to run.
pub(super) struct Portion<'a> {
    /// The core's own number of it.
    pub(super) cookie: u64,
    /// Client commands.
    pub(super) words: &'a [u32],
    /// The dwords of them that run.
    pub(super) range: Range<usize>,
    /// The memory they may touch; empty: all.
    pub(super) grants: &'a [Run],
}

/// Takes buffers back and remembers their order.
#[pin_data]
pub(super) struct Collector {
    /// What came back.
    #[pin]
    returned: SpinLock<KVec<Returned>>,
    /// Notified for each.
    #[pin]
    changed: WaitQueue,
}

impl Collector {
    /// Returns a collector that has nothing.
    fn new() -> Result<Arc<Self>> {
        let returned = KVec::with_capacity(MEMORY, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                returned <- new_spinlock!(returned),
                changed <- new_wait_queue!("vidmm::Collector::changed"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns how many came back.
    pub(super) fn count(&self) -> usize {
        self.returned.lock().len()
    }

    /// Waits until `count` buffers came back, and returns the one at `index`.
    pub(super) fn wait(&self, count: usize, index: usize) -> Option<Returned> {
        let deadline = Deadline::At(clock::now_ns() + PATIENCE);
        self.changed
            .wait(Sleep::Uninterruptible, deadline, || {
                let returned = self.returned.lock();
                (returned.len() >= count).then(|| returned.get(index).copied())
            })
            .ok()?
    }
}

impl Completion for Collector {
    fn complete(&self, buffer: ListArc<Buffer>, outcome: Outcome) {
        let contents = buffer.contents();
        let returned = Returned {
            cookie: contents.cookie,
            outcome,
            fence: contents.fence,
        };
        let _ = self.returned.lock().push_within_capacity(returned);
        self.changed.notify_all();
    }
}

/// The bench.
pub(super) struct Bench<'a> {
    /// What is tried.
    pub(super) backend: &'a dyn Backend,
    /// The context of paging operations.
    system: Arc<dyn EngineContext>,
}

impl<'a> Bench<'a> {
    /// Returns the bench for `backend`.
    pub(super) fn new(backend: &'a dyn Backend) -> Result<Self> {
        let node = backend.capabilities().paging_node.unwrap_or(NodeOrdinal(0));
        let system = backend.create_context(ContextDescription {
            number: 1,
            process: 1,
            node,
            charge: Charge::Driver,
        })?;
        Ok(Self { backend, system })
    }

    /// Returns the context of paging operations.
    pub(super) fn system(&self) -> &Arc<dyn EngineContext> {
        &self.system
    }

    /// Creates a context.
    pub(super) fn context(&self, number: u64, node: NodeOrdinal) -> Result<Arc<dyn EngineContext>> {
        self.backend.create_context(ContextDescription {
            number,
            process: 2,
            node,
            charge: Charge::Client,
        })
    }

    /// Returns a collector.
    pub(super) fn collector(&self) -> Result<Arc<Collector>> {
        Collector::new()
    }

    /// Submits client commands.
    pub(super) fn submit(
        &self,
        node: NodeOrdinal,
        context: &Arc<dyn EngineContext>,
        collector: &Arc<Collector>,
        cookie: u64,
        words: &[u32],
    ) -> Result<u64> {
        let whole = Portion {
            cookie,
            words,
            range: 0..words.len(),
            grants: &[],
        };
        self.submit_portion(node, context, collector, whole)
    }

    /// Submits a portion of client commands.
    pub(super) fn submit_portion(
        &self,
        node: NodeOrdinal,
        context: &Arc<dyn EngineContext>,
        collector: &Arc<Collector>,
        portion: Portion<'_>,
    ) -> Result<u64> {
        let mut words = KVVec::with_capacity(portion.words.len(), GFP_KERNEL)?;
        words.extend_from_slice(portion.words, GFP_KERNEL)?;
        let mut buffer = Buffer::with_commands(Commands::from_words(words), Charge::Client)?;
        let contents = buffer.contents_mut();
        contents
            .grants
            .extend_from_slice(portion.grants, GFP_KERNEL)?;
        contents.kind = Kind::Dma;
        contents.portion = portion.range;
        contents.cookie = portion.cookie;
        contents.context = Some(context.clone());
        contents.completion = Some(collector.clone());
        Ok(self.backend.submit(node, buffer))
    }

    /// Submits commands that lie in the space of a context, whose root is at `root`.
    pub(super) fn submit_fetch(
        &self,
        node: NodeOrdinal,
        context: &Arc<dyn EngineContext>,
        collector: &Arc<Collector>,
        root: Place,
        fetch: Fetch,
    ) -> Result<u64> {
        let mut buffer = Buffer::new(0, Charge::Client)?;
        let contents = buffer.contents_mut();
        contents.kind = Kind::Dma;
        contents.fetch = Some(fetch);
        contents.root = Some(root);
        contents.context = Some(context.clone());
        contents.completion = Some(collector.clone());
        Ok(self.backend.submit(node, buffer))
    }

    /// Runs client commands to their end.
    pub(super) fn run(
        &self,
        node: NodeOrdinal,
        context: &Arc<dyn EngineContext>,
        words: &[u32],
    ) -> Result<Outcome> {
        let collector = self.collector()?;
        self.submit(node, context, &collector, 0, words)?;
        let returned = collector.wait(1, 0).ok_or(ETIME)?;
        Ok(returned.outcome)
    }

    /// Carries out an operation in buffers of `dwords` dwords, or at once where that is the way;
    /// returns how many buffers it took.
    pub(super) fn operate_in(&self, operation: &Operation<'_>, dwords: usize) -> Result<usize> {
        let Some(node) = self.backend.capabilities().paging_node else {
            return self.backend.execute(operation).map(|()| 0);
        };
        let collector = self.collector()?;
        let mut progress = Progress::default();
        let mut buffers = 0;
        loop {
            let mut buffer = Buffer::new(dwords, Charge::Driver)?;
            let contents = buffer.contents_mut();
            let built = self
                .backend
                .build(&mut contents.commands, operation, &mut progress);
            contents.whole();
            contents.context = Some(self.system.clone());
            contents.completion = Some(collector.clone());
            if contents.commands.used() == 0 {
                return Err(EINVAL);
            }
            self.backend.submit(node, buffer);
            buffers += 1;
            if built.is_ok() {
                break;
            }
        }
        for index in 0..buffers {
            match collector.wait(buffers, index).ok_or(ETIME)?.outcome {
                Outcome::Done => {}
                _ => return Err(EIO),
            }
        }
        Ok(buffers)
    }

    /// Carries out an operation.
    pub(super) fn operate(&self, operation: &Operation<'_>) -> Result {
        self.operate_in(operation, 16384).map(|_| ())
    }

    /// Calls `work` with the view of each part of a range, and where the part begins in it.
    fn each(
        &self,
        place: Place,
        bytes: usize,
        mut work: impl FnMut(Window, usize) -> Option<()>,
    ) -> Result {
        let mut done = 0;
        while done < bytes {
            let at = place.forward(done as u64);
            let window = if at.segment == SegmentId::SYSTEM {
                Window::physical(at.offset, bytes - done)
            } else {
                let frames = self.backend.frames(at).ok_or(EINVAL)?;
                let inside = at.offset % PAGE_BYTES;
                let left = (frames.count * PAGE_BYTES - inside) as usize;
                Window::physical(frames.first.address() + inside, left.min(bytes - done))
            };
            let window = window.ok_or(EINVAL)?;
            work(window, done).ok_or(EINVAL)?;
            done += window.len();
        }
        Ok(())
    }

    /// Reads memory behind the back of the backend.
    pub(super) fn read(&self, place: Place, bytes: usize) -> Result<KVVec<u8>> {
        let mut content = KVVec::from_elem(0, bytes, GFP_KERNEL)?;
        self.each(place, bytes, |window, at| {
            window.read_into(content.get_mut(at..at + window.len())?)
        })?;
        Ok(content)
    }

    /// Writes memory behind the back of the backend.
    pub(super) fn write(&self, place: Place, content: &[u8]) -> Result {
        self.each(place, content.len(), |window, at| {
            window.write_from(content.get(at..at + window.len())?)
        })
    }

    /// Returns whether memory holds `content`.
    pub(super) fn holds(&self, place: Place, content: &[u8]) -> Result<bool> {
        Ok(self.read(place, content.len())?.as_slice() == content)
    }
}

/// Pages of system memory that are not adjacent.
pub(super) struct Scattered {
    /// The pages.
    blocks: KVec<PageBlock>,
}

impl Scattered {
    /// Takes so many pages.
    pub(super) fn new(pages: usize) -> Result<Self> {
        let mut blocks = KVec::with_capacity(pages, GFP_KERNEL)?;
        // Every other page is given back at the end, so that the rest is not adjacent.
        let mut gaps = KVec::with_capacity(pages, GFP_KERNEL)?;
        for _ in 0..pages {
            blocks.push(PageBlock::new(0, Charge::Driver)?, GFP_KERNEL)?;
            gaps.push(PageBlock::new(0, Charge::Driver)?, GFP_KERNEL)?;
        }
        Ok(Self { blocks })
    }

    /// Returns the pages as runs.
    pub(super) fn runs(&self) -> Result<KVec<Run>> {
        let mut runs = KVec::with_capacity(self.blocks.len(), GFP_KERNEL)?;
        for block in &self.blocks {
            let place = Place::new(SegmentId::SYSTEM, block.frame().address());
            runs.push(Run::new(place, block.bytes()), GFP_KERNEL)?;
        }
        Ok(runs)
    }
}

/// Numbers that look random and are the same each time.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    /// Returns the next number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        // Xorshift; the state is never zero.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    /// Returns so many bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Result<KVVec<u8>> {
        let mut bytes = KVVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            bytes.push(self.below(256) as u8, GFP_KERNEL)?;
        }
        Ok(bytes)
    }
}
