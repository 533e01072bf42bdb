// SPDX-License-Identifier: GPL-2.0

//! Running one portion of client commands, packet by packet.
//!
//! In physical mode everything was checked when the commands were submitted, so nothing can go wrong
//! here that is the client's fault. An address outside of its segment, or outside of the memory that
//! the portion was given, is a defect of the driver: the portion ends there, and in self-check mode
//! the kernel log says so.
//!
//! In virtual mode nothing was checked. Commands are fetched packet by packet, each dword once, into
//! a copy that is checked and used from there; every access is translated, and one that is not
//! possible ends the portion with a fault.

use kernel::prelude::*;

use super::{
    context::Registers,
    interruption::{
        Interruption,
        Stopped, //
    },
    memory::Memory,
    mmu::{
        AddressSpace,
        Refused,
        Translator, //
    },
    parts::{
        Part,
        Parts, //
    },
    random::Delays,
    raster::Scratch, //
};
use crate::{
    abstractions::clock,
    backend::{
        address,
        packet::{
            self,
            Packet,
            Register, //
        },
        Fault,
        FaultAccess,
        Fetch,
        Outcome, //
    },
    uapi::abi::engine as abi,
    units::{
        GpuVirtualAddress,
        Place,
        Run,
        SegmentId, //
    }, //
};

/// Why a packet was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// It was asked to end.
    Stopped,
    /// It is no packet of a client.
    Unknown,
    /// It names memory that it may not touch.
    OutOfRange(u64),
    /// Its address space does not allow an access.
    Fault(Fault),
}

impl From<Refused> for Halt {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Fault(fault) => Halt::Fault(fault),
            Refused::Outside(address) => Halt::OutOfRange(address.0),
        }
    }
}

impl From<Stopped> for Halt {
    fn from(_: Stopped) -> Self {
        Halt::Stopped
    }
}

/// The memory that a portion may touch.
pub(super) struct Grants<'a> {
    /// All of it; with none nothing is checked.
    runs: &'a [Run],
    /// The one that was used last, which is often the next one too.
    last: Run,
}

impl<'a> Grants<'a> {
    /// Returns the check against `runs`.
    pub(super) fn new(runs: &'a [Run]) -> Self {
        Self {
            runs,
            last: Run::new(Place::new(SegmentId::SYSTEM, 0), 0),
        }
    }

    /// Returns whether `bytes` bytes at `place` lie inside one of the runs.
    fn allow(&mut self, place: Place, bytes: u64) -> bool {
        let inside = |run: &Run| {
            run.place.segment == place.segment
                && place
                    .offset
                    .checked_sub(run.place.offset)
                    .and_then(|skipped| run.bytes.checked_sub(skipped))
                    .is_some_and(|left| left >= bytes)
        };
        if self.runs.is_empty() || inside(&self.last) {
            return true;
        }
        match self.runs.iter().find(|run| inside(run)) {
            Some(run) => {
                self.last = *run;
                true
            }
            None => false,
        }
    }
}

/// What the addresses of a portion mean.
pub(super) enum Space<'a> {
    /// Places in segments, of which the portion was given some.
    Physical(Grants<'a>),
    /// Addresses in the space of its context.
    Virtual(AddressSpace<'a>),
}

impl<'a> Space<'a> {
    /// Begins to work on a piece of a packet.
    pub(super) fn hold(&mut self) -> Result<Piece<'_, 'a>, Halt> {
        match self {
            Space::Physical(grants) => Ok(Piece::Physical(grants)),
            Space::Virtual(space) => Ok(Piece::Virtual(space.hold()?)),
        }
    }
}

/// The right to access what a piece consists of, until it is dropped.
pub(super) enum Piece<'s, 'a> {
    /// By place.
    Physical(&'s mut Grants<'a>),
    /// By virtual address.
    Virtual(Translator<'a>),
}

impl Piece<'_, '_> {
    /// Finds out what `bytes` bytes at `address` consist of.
    ///
    /// # Errors
    ///
    /// [`Halt`] if the portion may not touch all of them.
    pub(super) fn reach(
        &mut self,
        memory: &Memory,
        address: u64,
        bytes: u64,
        access: FaultAccess,
        parts: &mut Parts,
    ) -> Result<(), Halt> {
        match self {
            Piece::Physical(grants) => {
                let place = address::place(address)
                    .filter(|place| place.segment != SegmentId::SYSTEM)
                    .filter(|place| memory.contains(*place, bytes))
                    .filter(|place| grants.allow(*place, bytes));
                let place = Some(place.ok_or(Halt::OutOfRange(address))?);
                parts.clear();
                parts
                    .push(Part { place, bytes })
                    .ok_or(Halt::OutOfRange(address))
            }
            Piece::Virtual(translator) => {
                Ok(translator.translate(GpuVirtualAddress(address), bytes, access, parts)?)
            }
        }
    }
}

/// One portion while it runs.
pub(super) struct Execution<'a> {
    /// All memory.
    pub(super) memory: &'a Memory,
    /// What its addresses mean.
    pub(super) space: Space<'a>,
    /// Who can end it.
    pub(super) interruption: Interruption<'a>,
    /// Its registers.
    pub(super) registers: Registers,
    /// Room to work in.
    pub(super) scratch: &'a mut Scratch,
    /// How long to wait before packets.
    pub(super) delays: &'a mut Delays,
    /// Packets carried out.
    pub(super) packets: u64,
    /// Bytes written.
    pub(super) bytes: u64,
}

impl Execution<'_> {
    /// Runs `commands`, which begin at dword `start` of their buffer. Returns what became of them
    /// and, after an error, why.
    pub(super) fn run(&mut self, commands: &[u32], start: usize) -> (Outcome, Option<Halt>) {
        let mut rest = commands;
        while !rest.is_empty() {
            let at = start.wrapping_add(commands.len().wrapping_sub(rest.len()));
            let done = match Packet::take(rest) {
                Some((packet, behind)) => {
                    rest = behind;
                    self.step(packet)
                }
                None => Err(Halt::Unknown),
            };
            if let Err(halt) = done {
                // CAST: buffers are far smaller than 4 GiB.
                return ended((at as u32).wrapping_mul(4), halt);
            }
            self.packets += 1;
        }
        (Outcome::Done, None)
    }

    /// Runs commands that lie in the space of the context, and returns the same.
    pub(super) fn run_fetched(&mut self, fetch: Fetch) -> (Outcome, Option<Halt>) {
        let mut offset = 0;
        while offset < fetch.bytes {
            let at = fetch.address.forward(offset.into());
            match self.fetched(at, fetch.bytes - offset) {
                Ok(bytes) => offset += bytes,
                Err(halt) => return ended(offset, halt),
            }
            self.packets += 1;
        }
        (Outcome::Done, None)
    }

    /// Fetches the packet at `at`, no longer than `left` bytes, and carries it out; returns its length
    /// in bytes.
    fn fetched(&mut self, at: GpuVirtualAddress, left: u32) -> Result<u32, Halt> {
        /// Dwords that say how long a packet is, and what is all there is to know of a NOP.
        const FRONT: usize = 2;

        let mut copy = [0; packet::LONGEST];
        let (front, rest) = copy.split_at_mut(FRONT);
        self.fetch(at, front)?;
        let header = front.first().copied().unwrap_or(0);
        let length = packet::length(header).ok_or(Halt::Unknown)?;
        // CAST: 16 bits.
        let bytes = length as u32 * 4;
        if bytes > left {
            return Err(Halt::Unknown);
        }
        if Packet::is_nop(header) {
            self.step(Packet::Nop)?;
            return Ok(bytes);
        }
        let rest = rest
            .get_mut(..length.wrapping_sub(FRONT))
            .ok_or(Halt::Unknown)?;
        // CAST: a small constant.
        self.fetch(at.forward(FRONT as u64 * 4), rest)?;
        match Packet::take(&copy) {
            Some((packet, _)) if packet.is_aligned(&copy) => self.step(packet)?,
            _ => return Err(Halt::Unknown),
        }
        Ok(bytes)
    }

    /// Copies commands from the space of the context; none to no commands.
    fn fetch(&mut self, at: GpuVirtualAddress, to: &mut [u32]) -> Result<(), Halt> {
        let to = to.as_mut_bytes();
        let mut piece = self.space.hold()?;
        let parts = &mut *self.scratch.source;
        // CAST: the length of a packet.
        let bytes = to.len() as u64;
        piece.reach(self.memory, at.0, bytes, FaultAccess::Fetch, parts)?;
        self.memory
            .read_parts(parts, 0, to)
            .ok_or(Halt::OutOfRange(at.0))
    }

    /// Waits as long as this packet shall be late, and carries it out.
    fn step(&mut self, packet: Packet) -> Result<(), Halt> {
        match self.delays.next() {
            0 => self.interruption.check()?,
            delay => self.interruption.wait(Some(delay))?,
        }
        self.carry_out(packet)
    }

    /// Carries out a packet.
    fn carry_out(&mut self, packet: Packet) -> Result<(), Halt> {
        match packet {
            Packet::Nop => Ok(()),
            Packet::Fill {
                pattern,
                to,
                extent,
            } => self.fill(pattern, to, extent),
            Packet::Copy { to, from, extent } => self.copy(to, from, extent),
            Packet::Blend { to, from, extent } => self.blend(to, from, extent),
            Packet::Store { to, value } => self.store(to, value),
            Packet::Add { to, value } => self.add(to, value),
            Packet::SetRegister { index, value } => self.set_register(index, value),
            Packet::StoreRegister { index, to } => self.store(to, self.register(index)),
            Packet::LoadRegister { index, from } => {
                let value = self.load(from)?;
                self.set_register(index, value)
            }
            Packet::Checksum { bytes, to, from } => self.checksum(bytes, to, from),
            Packet::Timestamp { to } => self.store(to, clock::now_ns()),
            Packet::Spin { nanoseconds } => Ok(self.interruption.wait(nanoseconds)?),
            Packet::Poll { from, mask, value } => self.poll(from, mask, value),
        }
    }

    /// Returns the value of a register.
    fn register(&self, index: Register) -> u64 {
        self.registers.get(index.index()).copied().unwrap_or(0)
    }

    /// Sets a register.
    fn set_register(&mut self, index: Register, value: u64) -> Result<(), Halt> {
        if let Some(register) = self.registers.get_mut(index.index()) {
            *register = value;
        }
        Ok(())
    }

    /// Calls `work` with the place of 64 bits, which is none where zeros are shown.
    fn value<T>(
        &mut self,
        address: u64,
        access: FaultAccess,
        work: impl FnOnce(&Memory, Option<Place>) -> Option<T>,
    ) -> Result<T, Halt> {
        let mut piece = self.space.hold()?;
        let parts = &mut *self.scratch.target;
        piece.reach(self.memory, address, abi::VALUE_REACH, access, parts)?;
        parts
            .first()
            .and_then(|part| work(self.memory, part.place))
            .ok_or(Halt::OutOfRange(address))
    }

    /// Reads 64 bits.
    fn load(&mut self, address: u64) -> Result<u64, Halt> {
        self.value(address, FaultAccess::Read, |memory, place| match place {
            Some(place) => memory.load(place),
            None => Some(0),
        })
    }

    /// Writes 64 bits.
    pub(super) fn store(&mut self, address: u64, value: u64) -> Result<(), Halt> {
        self.value(address, FaultAccess::Write, |memory, place| match place {
            Some(place) => memory.store(place, value),
            None => Some(()),
        })?;
        self.bytes += abi::VALUE_REACH;
        Ok(())
    }

    /// Adds to 64 bits; the previous value goes to the first register.
    fn add(&mut self, address: u64, value: u64) -> Result<(), Halt> {
        let previous = self.value(address, FaultAccess::Write, |memory, place| match place {
            Some(place) => memory.add(place, value),
            None => Some(0),
        })?;
        self.bytes += abi::VALUE_REACH;
        if let Some(register) = self.registers.first_mut() {
            *register = previous;
        }
        Ok(())
    }

    /// Waits for a value in memory. Each look translates the address again.
    fn poll(&mut self, address: u64, mask: u64, value: u64) -> Result<(), Halt> {
        let interruption = self.interruption;
        interruption.poll(|| match self.load(address) {
            Ok(word) => (word & mask == value & mask).then_some(Ok(())),
            Err(halt) => Some(Err(halt)),
        })?
    }
}

/// Returns what becomes of a portion that ends at the packet at byte `offset`, and why.
fn ended(offset: u32, halt: Halt) -> (Outcome, Option<Halt>) {
    let outcome = match halt {
        Halt::Stopped => Outcome::Stopped,
        Halt::Fault(fault) => Outcome::Fault { offset, fault },
        Halt::Unknown | Halt::OutOfRange(_) => Outcome::Error { offset },
    };
    (outcome, Some(halt))
}
