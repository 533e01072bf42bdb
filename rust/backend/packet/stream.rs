// SPDX-License-Identifier: GPL-2.0

//! Streams of packets: checked as a whole at submission, cut by their lengths on a node.

use super::{
    length,
    Packet, //
};
use crate::backend::{
    Event,
    Operand,
    Stop,
    Unparsed, //
};

/// Checks `commands` and reports what they consist of; see [`Backend::parse`], which is this function
/// behind two indirect calls per packet.
///
/// [`Backend::parse`]: crate::backend::Backend::parse
#[inline]
pub(crate) fn parse(
    commands: &[u32],
    mut visitor: impl FnMut(Event) -> Result<(), Stop>,
) -> Result<(), Unparsed> {
    let mut rest = commands;
    while !rest.is_empty() {
        // CAST: buffers are far smaller than 4 GiB.
        let at = commands.len().wrapping_sub(rest.len()) as u32;
        let offset = at.wrapping_mul(4);
        let Some((packet, behind)) = Packet::take(rest) else {
            return Err(Unparsed::BadPacket { offset });
        };
        visitor(Event::Packet { offset })?;
        packet.operands(|shape| {
            visitor(Event::Operand(Operand {
                dword: at.wrapping_add(shape.dword),
                packet: offset,
                align: shape.align,
                reach: shape.reach,
                access: shape.access,
            }))
        })?;
        rest = behind;
    }
    Ok(())
}

/// Packets cut by the lengths in their headers, whatever they mean.
pub(in crate::backend) struct Stream<'a> {
    /// What is left.
    rest: &'a [u32],
    /// Dwords before that.
    at: usize,
}

impl<'a> Stream<'a> {
    /// Returns the packets of `words`, whose first dword is dword `at` of its buffer.
    pub(in crate::backend) const fn new(words: &'a [u32], at: usize) -> Self {
        Self { rest: words, at }
    }
}

/// A packet as it lies in its buffer, or what is left where none could be cut off.
pub(in crate::backend) struct Cut<'a> {
    /// Dword of its header in the buffer.
    at: usize,
    /// The whole packet; [`None`] if its length is wrong.
    pub(in crate::backend) words: Option<&'a [u32]>,
}

impl Cut<'_> {
    /// Returns the byte offset of the packet in its buffer.
    pub(in crate::backend) const fn offset(&self) -> u32 {
        // CAST: buffers are far smaller than 4 GiB.
        (self.at as u32).wrapping_mul(4)
    }
}

impl<'a> Iterator for Stream<'a> {
    type Item = Cut<'a>;

    /// Cuts off the next packet. After a wrong length there is no next one.
    fn next(&mut self) -> Option<Cut<'a>> {
        let header = *self.rest.first()?;
        let at = self.at;
        let cut = length(header).and_then(|length| self.rest.split_at_checked(length));
        let words = match cut {
            Some((words, rest)) => {
                self.rest = rest;
                self.at = at.wrapping_add(words.len());
                Some(words)
            }
            None => {
                self.rest = &[];
                None
            }
        };
        Some(Cut { at, words })
    }
}
