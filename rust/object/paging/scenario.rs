// SPDX-License-Identifier: GPL-2.0

//! Content through addresses: scenarios T and F.
//!
//! ```text
//! T  VA(source) VA(destination) UPT(source)+ UPT(destination)+ FLUSH TransferVirtual
//! F  VA(destination)            UPT(destination)+              FLUSH FillVirtual
//! ```
//!
//! All of a piece is in the stream of the paging node in this order, so what the engine translates is
//! what was written right before. Content that is longer than the scratch area has room for goes in
//! several pieces, in ascending order; a piece waits until everything older has given back what is in
//! its way (PAG-8 to PAG-12, PAG-16).

use kernel::sync::Arc;

use crate::{
    abstractions::wait_queue::{
        Deadline,
        Sleep, //
    },
    backend::{
        operation::FlushRange,
        page_table::{
            Entries,
            Phase,
            Rights,
            Update, //
        },
        Operation, //
    },
    object::statistics::Direction,
    policy::scratch::{
        Part,
        Purpose, //
    },
    units::{
        GpuVirtualAddress,
        PageSize,
        Place,
        Run,
        PAGE_BYTES, //
    },
};

use super::{
    chopped::Chopped,
    scratch::Scratch,
    Builder,
    Line,
    Reason, //
};

/// A range of the scratch area for one side of a piece of work.
pub(super) struct Side {
    /// Its first address.
    address: GpuVirtualAddress,
    /// How long it is.
    bytes: u64,
    /// Whether it is written.
    rights: Rights,
}

impl Builder {
    /// Builds scenario F for `bytes` bytes.
    pub(super) fn fill_through(
        &mut self,
        line: &Arc<Line>,
        scratch: &Scratch,
        bytes: u64,
        to: impl Iterator<Item = Run>,
        why: Reason,
    ) {
        let why = why.through(scratch);
        let mut to = Chopped::new(to);
        let mut left = bytes;
        while left > 0 {
            let bytes = left.min(scratch.most_bytes(1));
            let parts = [part(bytes, Purpose::Destination)];
            let Some(address) = self.take_addresses(line, scratch, &parts) else {
                return;
            };
            self.show(line, scratch, &Side::written(address, bytes), &mut to, why);
            self.flush_translations(line, scratch, FlushRange::new(address, bytes), why);
            let operation = Operation::FillVirtual {
                pattern: 0,
                to: address,
                bytes,
            };
            self.build(line, &operation, why);
            self.settle_addresses(line);
            left -= bytes;
        }
    }

    /// Builds scenario T for `bytes` bytes.
    pub(super) fn transfer_through(
        &mut self,
        line: &Arc<Line>,
        scratch: &Scratch,
        bytes: u64,
        sides: (impl Iterator<Item = Run>, impl Iterator<Item = Run>),
        why: Reason,
    ) {
        let why = why.through(scratch);
        let (mut from, mut to) = (Chopped::new(sides.0), Chopped::new(sides.1));
        let mut left = bytes;
        while left > 0 {
            let bytes = left.min(scratch.most_bytes(2));
            let parts = [Purpose::Source, Purpose::Destination].map(|purpose| part(bytes, purpose));
            let Some(source) = self.take_addresses(line, scratch, &parts) else {
                return;
            };
            let target = source.forward(bytes);
            let was = self.show(line, scratch, &Side::read(source, bytes), &mut from, why);
            let shall = self.show(line, scratch, &Side::written(target, bytes), &mut to, why);
            self.flush_translations(line, scratch, FlushRange::new(source, 2 * bytes), why);
            let operation = Operation::TransferVirtual {
                from: source,
                to: target,
                bytes,
            };
            self.build(line, &operation, why);
            self.settle_addresses(line);
            if let (Some(was), Some(shall)) = (was, shall) {
                line.statistics
                    .transferred(Direction::between(was, shall), bytes);
            }
            left -= bytes;
        }
    }

    /// Takes the ranges `parts`, side by side; returns the first address. If there is no room now, sends
    /// what is built and waits for older work to give its ranges back.
    ///
    /// They are free again when what is built up to [`Self::settle_addresses`] is complete. Together they
    /// are not longer than the scratch area.
    pub(super) fn take_addresses(
        &mut self,
        line: &Arc<Line>,
        scratch: &Scratch,
        parts: &[Part],
    ) -> Option<GpuVirtualAddress> {
        let at_once = line.pool.lock().ring.take(parts);
        let first = match at_once {
            Some(first) => first,
            None => {
                self.flush(line);
                line.settled
                    .wait(Sleep::Uninterruptible, Deadline::Never, || {
                        line.pool.lock().ring.take(parts)
                    })
                    .ok()?
            }
        };
        let address = scratch.address(first);
        scratch.announce(address, parts);
        Some(address)
    }

    /// Notes that the ranges taken last are free when what is built now is complete.
    pub(super) fn settle_addresses(&mut self, line: &Arc<Line>) {
        line.pool.lock().ring.settle(self.number);
    }

    /// Lets the entries of `side` name the next of `runs`; returns the first place.
    pub(super) fn show(
        &mut self,
        line: &Arc<Line>,
        scratch: &Scratch,
        side: &Side,
        runs: &mut Chopped<impl Iterator<Item = Run>>,
        why: Reason,
    ) -> Option<Place> {
        let mut list = core::mem::take(&mut self.from);
        let mut first = None;
        let mut done = 0;
        while done < side.bytes {
            let address = side.address.forward(done);
            let Some(slot) = scratch.slot(address) else {
                break;
            };
            let bytes = runs.take_some(&mut list, slot.bytes.min(side.bytes - done));
            if bytes == 0 {
                break;
            }
            first = first.or(list.first().map(|run| run.place));
            let update = Update {
                table: slot.table,
                level: 0,
                page: PageSize::Small,
                first: slot.index,
                address,
                root: scratch.root,
                phase: Phase::Normal,
                entries: Entries::Pages {
                    runs: &list,
                    rights: side.rights,
                },
            };
            self.build(line, &Operation::UpdatePageTable(update), why);
            done += bytes;
        }
        self.from = list;
        first
    }

    /// Builds FlushTLB for a range of the space of the paging process. Entries of the scratch area are
    /// used again and again, so something old may be remembered of every one of them.
    pub(super) fn flush_translations(
        &mut self,
        line: &Arc<Line>,
        scratch: &Scratch,
        range: FlushRange,
        why: Reason,
    ) {
        let operation = Operation::FlushTlb {
            root: scratch.root,
            range,
        };
        self.build(line, &operation, why);
    }
}

/// Returns a range of `bytes` bytes, whole pages and less than the scratch area has.
fn part(bytes: u64, purpose: Purpose) -> Part {
    // CAST: the scratch area has fewer pages than that.
    let pages = (bytes / PAGE_BYTES) as u32;
    Part { pages, purpose }
}

impl Side {
    /// A range that is read.
    fn read(address: GpuVirtualAddress, bytes: u64) -> Self {
        Self {
            address,
            bytes,
            rights: Rights::default(),
        }
    }

    /// A range that is written.
    pub(super) fn written(address: GpuVirtualAddress, bytes: u64) -> Self {
        Self {
            rights: Rights {
                write: true,
                ..Rights::default()
            },
            ..Self::read(address, bytes)
        }
    }
}

impl Reason {
    /// Returns the same reason for an operation that goes through the space of the paging process.
    pub(super) fn through(self, scratch: &Scratch) -> Self {
        Self {
            space: scratch.space,
            process: scratch.process,
            ..self
        }
    }
}
