// SPDX-License-Identifier: GPL-2.0

//! Floors: the calls and the work of the module `bench_floor`.

use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use crate::{
    arguments::{
        self,
        PatchAllocation,
        PatchEntry,
        Words, //
    },
    call::{
        self,
        PatchLists, //
    },
    clock::Clock,
    failure::{
        check,
        Failure,
        Result, //
    },
    measure::calls,
    modules,
    scheduling::Alone, //
};

/// Calls that one repetition consists of.
const CALLS: u32 = 64;

/// Finds the allocation of each entry by its handle.
const LOOKUP: u32 = 1 << 0;
/// Returns the sum of the patched buffer.
const CHECK: u32 = 1 << 1;

/// The open device of the module.
#[derive(Clone)]
pub struct Floor {
    file: Rc<File>,
    clock: Clock,
}

/// Work inside the kernel, timed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Allocates and frees so many bytes.
    Kmalloc(u64),
    /// Takes an id and gives it back.
    Id,
    /// Takes zeroed pages of this order and gives them back.
    Pages(u64),
    /// Sets so many bytes.
    Memset(u64),
    /// Copies so many bytes.
    Memcpy(u64),
    /// Wakes a thread and is woken by it.
    RoundTrip,
}

impl Work {
    fn number(self) -> (u32, u64) {
        match self {
            Self::Kmalloc(bytes) => (0, bytes),
            Self::Id => (1, 0),
            Self::Pages(order) => (2, order),
            Self::Memset(bytes) => (3, bytes),
            Self::Memcpy(bytes) => (4, bytes),
            Self::RoundTrip => (5, 0),
        }
    }

    /// How often it is done in one repetition.
    fn times(self) -> u32 {
        match self {
            Self::Kmalloc(_) | Self::Id | Self::RoundTrip => 64,
            Self::Pages(order) => 64 >> order.min(5),
            Self::Memset(bytes) | Self::Memcpy(bytes) => {
                if bytes > 1 << 18 {
                    2
                } else {
                    16
                }
            }
        }
    }
}

/// How large a submission is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchShape {
    /// Entries of the patch list.
    pub patches: u32,
    /// Elements of the allocation list.
    pub allocations: u32,
    /// Dwords of the packet that each entry patches.
    pub dwords: u32,
}

impl Floor {
    /// Loads the module and opens its device.
    pub fn open(clock: Clock) -> Result<Self> {
        modules::load_peer("bench_floor", &[])?;
        Ok(Self {
            file: Rc::new(super::open(Path::new("/dev/bench-floor"))?),
            clock,
        })
    }

    /// A call that does nothing.
    pub fn null(self) -> impl FnMut() -> Result<f64> {
        move || {
            let call = |_| call::call_plain(&*self.file, arguments::NULL);
            Ok(self.clock.time_each(CALLS, call)?)
        }
    }

    /// A call with 64 bytes in and out.
    pub fn words(self) -> impl FnMut() -> Result<f64> {
        move || {
            let mut argument = Words::default();
            let cost = self.clock.time_each(CALLS, |_| {
                call::call(&*self.file, arguments::WORDS, &mut argument)
            })?;
            let expected = u64::from(CALLS);
            check(argument.words == [expected; 8], || format!("{argument:?}"))?;
            Ok(cost)
        }
    }

    /// Work inside the kernel.
    pub fn work(self, work: Work) -> impl FnMut() -> Result<f64> {
        move || {
            let (what, amount) = work.number();
            let mut argument = arguments::Work {
                what,
                count: work.times(),
                argument: amount,
                ..Default::default()
            };
            call::call(&*self.file, arguments::WORK, &mut argument)?;
            let good = match work {
                Work::Kmalloc(_) => true,
                Work::RoundTrip => argument.check == u64::from(argument.count),
                Work::Id | Work::Memset(_) | Work::Memcpy(_) => argument.check != 0,
                Work::Pages(_) => argument.check == 0,
            };
            check(good, || format!("{work:?}: {}", argument.check))?;
            Ok(self.clock.nanoseconds(argument.ticks) / f64::from(argument.count))
        }
    }

    /// The floor of a submission.
    pub fn patch(self, shape: PatchShape) -> Result<impl FnMut() -> Result<f64>> {
        self.patch_with(shape, 0)
    }

    /// The same with a lookup per entry of the patch list.
    pub fn lookup(self, shape: PatchShape) -> Result<impl FnMut() -> Result<f64>> {
        self.patch_with(shape, LOOKUP)
    }

    fn patch_with(self, shape: PatchShape, flags: u32) -> Result<impl FnMut() -> Result<f64>> {
        let mut lists = Lists::new(shape);
        self.check_patch(&mut lists, flags)?;
        Ok(move || {
            let mut lists = lists.borrow();
            let call = |_| call::patch(&*self.file, &mut lists, flags).map(|_| ());
            let _alone = Alone::begin()?;
            Ok(self.clock.time_each(calls(shape.patches), call)?)
        })
    }

    fn check_patch(&self, lists: &mut Lists, flags: u32) -> Result<()> {
        let expected = lists.expected();
        let sum = call::patch(&*self.file, &mut lists.borrow(), flags | CHECK)
            .map_err(|errno| Failure::from(errno).during("BENCH_PATCH"))?;
        check(sum == expected, || {
            format!("sum {sum:#x}, not {expected:#x}")
        })
    }
}

/// The lists of the floor of a submission.
struct Lists {
    commands: Vec<u32>,
    allocations: Vec<PatchAllocation>,
    patches: Vec<PatchEntry>,
}

impl Lists {
    fn new(shape: PatchShape) -> Self {
        let allocations = (1..=shape.allocations).map(|handle| PatchAllocation {
            handle,
            ..Default::default()
        });
        let patches = (0..shape.patches).map(|index| PatchEntry {
            allocation: index % shape.allocations,
            allocation_offset: 8 * u64::from(index / shape.allocations),
            patch_offset: 4 * shape.dwords * index + 8,
            ..Default::default()
        });
        Self {
            // CAST: `usize` has 64 bits.
            commands: vec![0; (shape.dwords * shape.patches) as usize],
            allocations: allocations.collect(),
            patches: patches.collect(),
        }
    }

    fn borrow(&mut self) -> PatchLists<'_> {
        PatchLists {
            commands: &self.commands,
            allocations: &mut self.allocations,
            patches: &self.patches,
        }
    }

    /// The sum of the patched buffer, which was zero. A handle lies at its number times 1 MiB.
    fn expected(&self) -> u64 {
        let words = self.patches.iter().map(|entry| {
            let handle = self.allocations[entry.allocation as usize].handle;
            (u64::from(handle) << 20) + entry.allocation_offset
        });
        words.sum()
    }
}
