// SPDX-License-Identifier: GPL-2.0

//! Running one portion of client commands, packet by packet.
//!
//! In physical mode everything was checked when the commands were submitted, so nothing can go wrong
//! here that is the client's fault. An address outside of its segment, or outside of the memory that
//! the portion was given, is a defect of the driver: the portion ends there, and in self-check mode
//! the kernel log says so.

use super::{
    context::Registers,
    interruption::{
        Interruption,
        Stopped, //
    },
    memory::Memory,
    random::Delays,
    raster::Scratch, //
};
use crate::{
    abstractions::clock,
    backend::{
        address,
        packet::{
            Packet,
            Register, //
        },
        Outcome, //
    },
    units::{
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

/// One portion while it runs.
pub(super) struct Execution<'a> {
    /// All memory.
    pub(super) memory: &'a Memory,
    /// The memory it may touch.
    pub(super) grants: Grants<'a>,
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
            match done {
                Ok(()) => self.packets += 1,
                Err(Halt::Stopped) => return (Outcome::Stopped, None),
                Err(halt) => {
                    // CAST: buffers are far smaller than 4 GiB.
                    let offset = (at as u32).wrapping_mul(4);
                    return (Outcome::Error { offset }, Some(halt));
                }
            }
        }
        (Outcome::Done, None)
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

    /// Returns the place that `address` names if the portion may touch `bytes` bytes there.
    pub(super) fn reach(&mut self, address: u64, bytes: u64) -> Result<Place, Halt> {
        address::place(address)
            .filter(|place| place.segment != SegmentId::SYSTEM)
            .filter(|place| self.memory.contains(*place, bytes))
            .filter(|place| self.grants.allow(*place, bytes))
            .ok_or(Halt::OutOfRange(address))
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

    /// Reads 64 bits.
    fn load(&mut self, address: u64) -> Result<u64, Halt> {
        let place = self.reach(address, 8)?;
        self.memory.load(place).ok_or(Halt::OutOfRange(address))
    }

    /// Writes 64 bits.
    pub(super) fn store(&mut self, address: u64, value: u64) -> Result<(), Halt> {
        let place = self.reach(address, 8)?;
        self.bytes += 8;
        self.memory
            .store(place, value)
            .ok_or(Halt::OutOfRange(address))
    }

    /// Adds to 64 bits; the previous value goes to the first register.
    fn add(&mut self, address: u64, value: u64) -> Result<(), Halt> {
        let place = self.reach(address, 8)?;
        self.bytes += 8;
        let previous = self
            .memory
            .add(place, value)
            .ok_or(Halt::OutOfRange(address))?;
        if let Some(register) = self.registers.first_mut() {
            *register = previous;
        }
        Ok(())
    }

    /// Waits for a value in memory.
    fn poll(&mut self, address: u64, mask: u64, value: u64) -> Result<(), Halt> {
        let place = self.reach(address, 8)?;
        let memory = self.memory;
        self.interruption.poll(|| match memory.load(place) {
            Some(word) => (word & mask == value & mask).then_some(Ok(())),
            None => Some(Err(Halt::OutOfRange(address))),
        })?
    }
}
