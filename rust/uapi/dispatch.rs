// SPDX-License-Identifier: GPL-2.0

//! The one way from an ioctl to its handler and back.
//!
//! A call is a line of the table in [`super::calls`]. Here the steps are taken that all calls have
//! in common, in the order that the interface promises: the number is looked up, the size checked,
//! the argument copied in, its unknown tail, its flags and its padding are checked, its outputs
//! cleared. Then the handler runs on the copy, and the copy goes back. Nothing reads the argument of
//! the caller a second time.
//!
//! A call that makes something can fail for the last time when its result is copied out. So a handler
//! returns its effect as a value, an [`Effect`] that is not in force yet: it is committed after the
//! copy, or dropped, and dropping it takes everything back. Where that is impossible the effect is
//! [`Done`], and the copy is tried before the handler runs.

use kernel::prelude::*;

use crate::abstractions::bytes::{
    self,
    Plain, //
};

use super::{
    abi,
    calls,
    file::File, //
};

/// An argument structure of the interface.
pub(super) trait Argument: Plain + PartialEq {
    /// Bytes when first published.
    const SIZE_FIRST: usize;

    /// Returns the flags.
    fn flags(&self) -> u32;

    /// Returns whether everything is zero that must be.
    fn padding_is_zero(&self) -> bool;

    /// Clears what is written on success only.
    fn clear_results(&mut self);

    /// Clears what is written on failure too.
    fn clear_report(&mut self);
}

/// Describes an argument structure: its flags, what must be zero, what is written on success, what
/// is written on failure too and what it says while there is nothing to report.
macro_rules! argument {
    (
        $name:ident:
        flags $($flags:ident)?;
        zero $($zero:ident),*;
        results $($result:ident),*;
        report $($report:ident = $nothing:expr),*
    ) => {
        impl $crate::uapi::dispatch::Argument for $crate::uapi::abi::$name {
            const SIZE_FIRST: usize = $crate::uapi::abi::$name::SIZE_FIRST;

            fn flags(&self) -> u32 {
                0 $(| self.$flags)?
            }

            fn padding_is_zero(&self) -> bool {
                true $(&& self.$zero == 0)*
            }

            fn clear_results(&mut self) {
                $(self.$result = 0;)*
            }

            fn clear_report(&mut self) {
                $(self.$report = $nothing;)*
            }
        }
    };
}
pub(super) use argument;

/// When the argument is copied out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Never: it has no outputs.
    Never,
    /// After the handler: until then its effect can be taken back.
    Last,
    /// Before the handler, to see whether it is possible, and again if there is something to say.
    Tried,
}

/// What a handler has prepared.
pub(super) trait Effect {
    /// When the argument is copied out.
    const DELIVERY: Delivery;

    /// Puts it in force. Everything has been delivered.
    fn commit(self);
}

/// An effect that cannot be taken back.
pub(super) struct Done;

impl Effect for Done {
    const DELIVERY: Delivery = Delivery::Tried;

    fn commit(self) {}
}

/// An effect of which there is nothing to say.
pub(super) struct Silent;

impl Effect for Silent {
    const DELIVERY: Delivery = Delivery::Never;

    fn commit(self) {}
}

/// No effect: the call only answers.
pub(super) struct Answered;

impl Effect for Answered {
    const DELIVERY: Delivery = Delivery::Last;

    fn commit(self) {}
}

/// The argument as the caller passes it.
#[derive(Clone, Copy)]
pub(super) struct Passed {
    address: usize,
    size: usize,
}

/// One call of the interface.
pub(super) struct Call {
    /// Bytes of the argument when first published.
    pub(super) size_first: usize,
    /// Bytes of the argument as it is known here.
    pub(super) size_known: usize,
    /// Flags that are understood.
    pub(super) flags_known: u32,
    /// Takes all further steps.
    pub(super) run: for<'a> fn(&'a File, Passed) -> Result,
}

/// What lies behind a number.
pub(super) enum Line {
    /// The interface does not know it.
    Unknown,
    /// The interface knows it, and its feature is not there.
    Missing,
    /// A call.
    Call(Call),
}

/// Runs the call with the number in `command`.
///
/// # Errors
///
/// - `ENOTTY`: there is no such call.
/// - `EOPNOTSUPP`: it is not there.
/// - Those of the call.
pub(super) fn ioctl(file: &File, command: u32, address: usize) -> Result {
    // CAST: takes the four fields of a command apart.
    let (direction, size) = (command >> 30, (command >> 16) & 0x3fff);
    let (kind, number) = ((command >> 8) as u8, command as u8);
    if kind != abi::IOC_TYPE || direction != 3 {
        return Err(ENOTTY);
    }
    match calls::line(number) {
        Line::Unknown => Err(ENOTTY),
        Line::Missing => Err(EOPNOTSUPP),
        Line::Call(call) => (call.run)(
            file,
            Passed {
                address,
                // CAST: fourteen bits.
                size: size as usize,
            },
        ),
    }
}

/// Runs `handler` on the argument of a call.
///
/// # Errors
///
/// - `EINVAL`: too short, or padding is not zero.
/// - `E2BIG`: too long, or an unknown tail is not zero.
/// - `EOPNOTSUPP`: a flag that is not in `flags_known`.
/// - `EFAULT`: the argument cannot be read or written.
/// - Those of the handler.
#[inline]
pub(super) fn run<'a, A: Argument, E: Effect>(
    file: &'a File,
    passed: Passed,
    flags_known: u32,
    handler: impl FnOnce(&'a File, &mut A) -> Result<E>,
) -> Result {
    let mut argument = passed.read::<A>()?;
    argument.clear_results();
    argument.clear_report();
    if let Err(error) = check(&argument, flags_known) {
        return passed.refuse::<A, E>(&argument, error);
    }
    let before = argument;
    if E::DELIVERY == Delivery::Tried {
        passed.write(&before)?;
    }
    match handler(file, &mut argument) {
        Ok(effect) => {
            let delivered = match E::DELIVERY {
                Delivery::Never => true,
                Delivery::Last => false,
                Delivery::Tried => argument == before,
            };
            if !delivered {
                passed.write(&argument)?;
            }
            effect.commit();
            Ok(())
        }
        Err(error) => {
            argument.clear_results();
            passed.refuse::<A, E>(&argument, error)
        }
    }
}

fn check<A: Argument>(argument: &A, flags_known: u32) -> Result {
    if argument.flags() & !flags_known != 0 {
        return Err(EOPNOTSUPP);
    }
    if !argument.padding_is_zero() {
        return Err(EINVAL);
    }
    Ok(())
}

impl Passed {
    fn read<A: Argument>(self) -> Result<A> {
        bytes::copy_struct_in(self.address, self.size, A::SIZE_FIRST)
    }

    fn write<A: Argument>(self, argument: &A) -> Result {
        bytes::copy_struct_out(self.address, self.size, argument)
    }

    /// Ends a call that has failed. A caller who cannot be told more gets the error all the same.
    fn refuse<A: Argument, E: Effect>(self, argument: &A, error: Error) -> Result {
        if E::DELIVERY != Delivery::Never {
            let _ = self.write(argument);
        }
        Err(error)
    }
}
