// SPDX-License-Identifier: GPL-2.0

//! Physical memory that the driver owns: blocks of pages, and contiguous stretches.
//!
//! A [`PageBlock`] is `2^order` pages of ordinary RAM; the backing store of clients and most of a
//! segment consist of them. A [`ContiguousBlock`] is any number of pages in a row, taken from the area
//! that the kernel keeps movable for that purpose (CMA, `cma=` on the kernel's command line).
//! Both are named by the number of their first page, a [`Frame`], and given back on drop.
//!
//! High orders are asked for without any reclaim or compaction and without a warning. Such a request
//! either succeeds at once or fails at once, and the caller falls back to smaller orders, down to
//! single pages, which do try hard. Pages come zeroed.
//!
//! Blocks are not compound pages (`__GFP_COMP`). User mappings name their pages by frame number
//! (VM_PFNMAP) and nobody takes a reference on a page, so a common reference count in a head page has
//! no reader, and setting it up would write to every page's descriptor twice, once when the block comes
//! and once when it goes. The price: nobody may take a reference on a page inside of a block.
//!
//! C header: [`include/linux/gfp.h`](srctree/include/linux/gfp.h),
//! [`include/linux/cma.h`](srctree/include/linux/cma.h).
//! Upstream: `rust/kernel/page.rs`, which has single pages only.

use super::{
    bindings as local,
    memory::Window, //
};
use core::{
    fmt,
    num::NonZeroU64, //
};
use kernel::{
    alloc::Flags,
    bindings,
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    prelude::*, //
};

/// The number of a physical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame(pub u64);

impl Frame {
    /// Returns the frame that holds the physical address.
    pub const fn containing(address: u64) -> Self {
        Self(address >> PAGE_SHIFT)
    }

    /// Returns the physical address of the first byte.
    pub const fn address(self) -> u64 {
        self.0 << PAGE_SHIFT
    }

    /// Returns the frame `pages` further on.
    pub const fn forward(self, pages: u64) -> Self {
        Self(self.0.wrapping_add(pages))
    }

    /// Returns the descriptor of the page.
    fn page(self) -> *mut bindings::page {
        // SAFETY: Arithmetic on the number; the result is not dereferenced here.
        unsafe { local::vidmm_pfn_to_page(self.0) }
    }
}

/// Who pays for pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// The memory cgroup of the calling task: memory that lives because a client asked for it.
    Client,
    /// Nobody: memory of the driver itself.
    Driver,
}

impl Charge {
    /// Returns the flags for objects of the kernel heap.
    pub const fn heap(self) -> Flags {
        match self {
            Self::Client => GFP_KERNEL_ACCOUNT,
            Self::Driver => GFP_KERNEL,
        }
    }

    /// Returns the allocation flags for blocks of `order`.
    const fn flags(self, order: u32) -> bindings::gfp_t {
        /// What makes an allocation try hard.
        const RECLAIM: bindings::gfp_t =
            1 << bindings::___GFP_DIRECT_RECLAIM_BIT | 1 << bindings::___GFP_KSWAPD_RECLAIM_BIT;

        let flags = match self {
            Self::Client => bindings::GFP_KERNEL_ACCOUNT,
            Self::Driver => bindings::GFP_KERNEL,
        } | bindings::__GFP_ZERO
            | bindings::__GFP_NOWARN;

        if order == 0 {
            // Whoever asks for too much is told so, and nobody is killed for it.
            flags | 1 << bindings::___GFP_RETRY_MAYFAIL_BIT
        } else {
            flags & !RECLAIM | 1 << bindings::___GFP_NORETRY_BIT
        }
    }
}

/// `2^order` pages of RAM, aligned to their size.
///
/// The pages come zeroed. Reading and writing goes through a [`Window`], since the memory may be
/// mapped by programs and addressed by an engine.
///
/// # Invariants
///
/// `word` is the physical address of the first page with the order in the bits below the page size.
/// The block was allocated with this order and is owned by this value.
pub struct PageBlock {
    word: NonZeroU64,
}

/// A block takes no more room than its address.
const _: () = assert!(size_of::<Option<PageBlock>>() == 8);

impl PageBlock {
    /// The largest order that the kernel hands out.
    pub const MAX_ORDER: u32 = bindings::MAX_PAGE_ORDER;

    /// Takes `2^order` zeroed pages. May sleep.
    ///
    /// An order above zero is an attempt: it fails fast when no such block is free.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no such block, or the memory cgroup is at its limit.
    pub fn new(order: u32, charge: Charge) -> Result<Self> {
        if order > Self::MAX_ORDER {
            return Err(ENOMEM);
        }

        // SAFETY: The flags are those of sleeping allocations, and the order is one that exists.
        let page = unsafe { bindings::alloc_pages(charge.flags(order), order) };

        if page.is_null() {
            return Err(ENOMEM);
        }

        // SAFETY: `page` is the descriptor that the allocator has just returned.
        let frame = Frame(unsafe { local::vidmm_page_to_pfn(page) });

        // INVARIANT: Both parts are those of the allocation, which is ours from here on. Page zero is
        // never handed out, as physical address zero stands for failure in the kernel's interfaces.
        let word = NonZeroU64::new(frame.address() | u64::from(order)).ok_or(ENOMEM)?;

        Ok(Self { word })
    }

    /// Returns the first page.
    pub const fn frame(&self) -> Frame {
        Frame::containing(self.word.get())
    }

    /// Returns the order.
    pub const fn order(&self) -> u32 {
        // CAST: Masked to below the page size.
        (self.word.get() & (PAGE_SIZE as u64 - 1)) as u32
    }

    /// Returns the number of pages.
    pub const fn pages(&self) -> u64 {
        1 << self.order()
    }

    /// Returns the number of bytes.
    pub const fn bytes(&self) -> u64 {
        self.pages() << PAGE_SHIFT
    }

    /// Returns a view of the whole block. Views do not keep the block.
    pub fn window(&self) -> Window {
        // CAST: Not more than what the largest order has, and `usize` has 64 bits.
        Window::owned(self.frame(), self.bytes() as usize)
    }
}

impl Drop for PageBlock {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the block was allocated with this order and is ours.
        unsafe { bindings::__free_pages(self.frame().page(), self.order()) }
    }
}

impl fmt::Debug for PageBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageBlock({:#x}, {})", self.frame().0, self.order())
    }
}

/// Pages in a row from the kernel's contiguous area.
///
/// The pages hold whatever they held before: clear them with [`Window::zero`].
///
/// # Invariants
///
/// `frame` is the first of `pages` pages that were taken from the default area and are owned by this
/// value.
#[derive(Debug)]
pub struct ContiguousBlock {
    frame: Frame,
    pages: u64,
}

#[cfg(CONFIG_DMA_CMA)]
impl ContiguousBlock {
    /// The highest alignment asked for: that of a huge page, so that the block can be mapped by
    /// huge pages.
    const ALIGN_ORDER: u32 = 9;

    /// Takes `pages` contiguous pages. May sleep, and for long: others may have to move away.
    ///
    /// The block is aligned to its size rounded down to a power of two, at most 2 MiB.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: no pages are asked for.
    /// - `ENOMEM`: there is no area or no room in it.
    pub fn new(pages: u64) -> Result<Self> {
        let order = pages.checked_ilog2().ok_or(EINVAL)?;
        let area = Self::area().ok_or(ENOMEM)?;
        // CAST: `usize` has 64 bits.
        let count = pages as usize;

        // SAFETY: `area` is a valid area; sizes that are too large make the call return null.
        let page = unsafe { local::cma_alloc(area, count, order.min(Self::ALIGN_ORDER), true) };

        if page.is_null() {
            return Err(ENOMEM);
        }

        // INVARIANT: The pages come from the default area and are ours from here on.
        Ok(Self {
            // SAFETY: `page` is the descriptor that the allocator has just returned.
            frame: Frame(unsafe { local::vidmm_page_to_pfn(page) }),
            pages,
        })
    }

    /// Returns the default area.
    fn area() -> Option<*mut local::Cma> {
        // SAFETY: A null device stands for the default area.
        let area = unsafe { local::dev_get_cma_area(core::ptr::null_mut()) };

        (!area.is_null()).then_some(area)
    }
}

#[cfg(not(CONFIG_DMA_CMA))]
impl ContiguousBlock {
    /// A kernel without a contiguous area has nothing to give.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: always.
    pub fn new(_pages: u64) -> Result<Self> {
        Err(ENOMEM)
    }
}

impl ContiguousBlock {
    /// Returns the first page.
    pub const fn frame(&self) -> Frame {
        self.frame
    }

    /// Returns the number of pages.
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the number of bytes.
    pub const fn bytes(&self) -> u64 {
        self.pages << PAGE_SHIFT
    }

    /// Returns a view of the whole block. Views do not keep the block.
    pub fn window(&self) -> Window {
        // CAST: The area lies in memory, and `usize` has 64 bits.
        Window::owned(self.frame, self.bytes() as usize)
    }
}

impl Drop for ContiguousBlock {
    fn drop(&mut self) {
        #[cfg(CONFIG_DMA_CMA)]
        if let Some(area) = Self::area() {
            // CAST: `usize` has 64 bits.
            let count = self.pages as usize;

            // SAFETY: By the type invariants these pages came from this area and are ours.
            unsafe { local::cma_release(area, self.frame.page(), count) };
        }
    }
}

/// Returns the bytes of memory that the system has.
pub fn system_bytes() -> u64 {
    let mut info = bindings::sysinfo::default();

    // SAFETY: The function fills the structure.
    unsafe { bindings::si_meminfo(&mut info) };

    // CAST: widening.
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit))
}
