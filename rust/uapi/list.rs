// SPDX-License-Identifier: GPL-2.0

//! Lists in arguments: an address, a count and a stride.
//!
//! A list is checked before any memory is taken for it, copied once, and only the copy is used. Its
//! elements grow as arguments do: a caller may know less of an element, then the rest is zero, or
//! more, then that must be zero. Short lists, the usual ones, live on the stack.

use kernel::prelude::*;

use crate::{
    abstractions::bytes::{
        self,
        Plain, //
    },
    object::{
        fence_wait,
        residency, //
    },
};

use super::abi::{
    self,
    Array,
    FAIL_INDEX_NONE, //
};

/// The longest list of handles, and of everything that has no limit of its own.
pub(super) const HANDLES: u32 = 16384;
/// The longest list of allocations to create.
pub(super) const CREATIONS: u32 = 1024;

/// An element of a list.
pub(super) trait Element: Plain + Default {
    /// Bytes when first published.
    const SIZE_FIRST: usize;
}

impl Element for u32 {
    // CAST: widening; `From` is not const.
    const SIZE_FIRST: usize = abi::HANDLE_STRIDE as usize;
}

/// Makes structures of the interface elements of lists.
macro_rules! elements {
    ($($name:ident,)+) => {
        $(impl Element for abi::$name {
            const SIZE_FIRST: usize = abi::$name::SIZE_FIRST;
        })+
    };
}

elements! {
    AllocInfo,
    AllocState,
    Point,
    PriorityItem,
    ReclaimItem,
    SubmitAlloc,
    SubmitPatch,
    VaEntry,
}

/// Whether a list may be empty.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Empty {
    /// It is an extra.
    Allowed,
    /// It is what the call is for.
    Refused,
}

/// Why a list was refused, or an element of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// The reason.
    pub(super) error: Error,
    /// The element, if one is to blame.
    pub(super) index: Option<usize>,
}

impl Refused {
    /// Blames an element.
    pub(super) fn at(index: usize, error: Error) -> Self {
        Self {
            error,
            index: Some(index),
        }
    }

    /// Returns the value of `fail_index`.
    pub(super) fn fail_index(&self) -> u32 {
        self.index
            .and_then(|index| u32::try_from(index).ok())
            .unwrap_or(FAIL_INDEX_NONE)
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self { error, index: None }
    }
}

impl From<kernel::alloc::AllocError> for Refused {
    fn from(error: kernel::alloc::AllocError) -> Self {
        Error::from(error).into()
    }
}

impl From<fence_wait::Refused> for Refused {
    fn from(refused: fence_wait::Refused) -> Self {
        Self {
            error: refused.error,
            index: refused.index,
        }
    }
}

impl From<residency::Refused> for Refused {
    fn from(refused: residency::Refused) -> Self {
        Self {
            error: refused.error,
            index: refused.index,
        }
    }
}

/// Writes the element to blame into the report of a call.
pub(super) trait Blame<T> {
    /// Sets `fail_index` and leaves the reason.
    fn blame(self, fail_index: &mut u32) -> Result<T>;
}

impl<T, R: Into<Refused>> Blame<T> for Result<T, R> {
    fn blame(self, fail_index: &mut u32) -> Result<T> {
        self.map_err(|refused| {
            let refused = refused.into();
            *fail_index = refused.fail_index();
            refused.error
        })
    }
}

/// Applies a check to all elements.
///
/// # Errors
///
/// Those of the check, with the first element that fails it.
pub(super) fn check_each<T>(elements: &[T], check: impl Fn(&T) -> Result) -> Result<(), Refused> {
    for (index, element) in elements.iter().enumerate() {
        check(element).map_err(|error| Refused::at(index, error))?;
    }
    Ok(())
}

/// A copy of a list; up to `SHORT` elements need no memory.
pub(super) struct List<T: Element, const SHORT: usize = 4> {
    user: bytes::List,
    short: [T; SHORT],
    long: KVVec<T>,
}

impl<T: Element, const SHORT: usize> List<T, SHORT> {
    /// Checks and copies a list of at most `limit` elements.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: too many elements, none where there must be some, an address without elements, or
    ///   a stride that is too short or misaligned.
    /// - `E2BIG`: a stride of more than a page, or an unknown tail of an element that is not zero.
    /// - `EOVERFLOW`: the list leaves the address space.
    /// - `EFAULT`: it cannot be read.
    /// - `ENOMEM`: no memory.
    pub(super) fn read(array: &Array, limit: u32, empty: Empty) -> Result<Self> {
        let user = bytes::List::new::<T>(*array, T::SIZE_FIRST, limit)?;
        if user.is_empty() && empty == Empty::Refused {
            return Err(EINVAL);
        }
        let mut short = [T::default(); SHORT];
        let mut long = KVVec::new();
        match short.get_mut(..user.len()) {
            Some(elements) => user.read_into(elements)?,
            None => long = user.read()?,
        }
        Ok(Self { user, short, long })
    }

    /// Returns the elements.
    pub(super) fn as_slice(&self) -> &[T] {
        match self.short.get(..self.user.len()) {
            Some(elements) => elements,
            None => &self.long,
        }
    }

    /// Returns the elements for changing.
    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        match self.short.get_mut(..self.user.len()) {
            Some(elements) => elements,
            None => &mut self.long,
        }
    }

    /// Copies the elements back to where the list came from, as much of each as the caller knows.
    ///
    /// # Errors
    ///
    /// - `EFAULT`: it cannot be written.
    pub(super) fn write_back(&self) -> Result {
        self.user.write_all(self.as_slice())
    }
}

/// What can be said about a list without reading it.
#[cfg(CONFIG_KUNIT)]
#[kernel::macros::kunit_tests(vidmm_list)]
mod tests {
    use super::*;

    fn array(ptr: u64, count: u32, stride: u32) -> Array {
        Array { ptr, count, stride }
    }

    /// Returns how a list of points is answered.
    fn answer(ptr: u64, count: u32, stride: u32) -> Result<usize> {
        let list = List::<abi::Point, 4>::read(&array(ptr, count, stride), 100, Empty::Allowed)?;
        Ok(list.as_slice().len())
    }

    #[test]
    fn all_zero_is_an_empty_list() {
        assert_eq!(answer(0, 0, 0), Ok(0));
    }

    #[test]
    fn empty_list_is_refused_where_it_makes_no_sense() {
        let list = List::<u32, 4>::read(&array(0, 0, 4), 100, Empty::Refused);
        assert_eq!(list.map(|_| ()), Err(EINVAL));
    }

    #[test]
    fn address_without_elements_is_invalid() {
        assert_eq!(answer(4096, 0, 16), Err(EINVAL));
    }

    #[test]
    fn elements_without_address_are_a_bad_address() {
        assert_eq!(answer(0, 1, 16), Err(EFAULT));
    }

    #[test]
    fn one_more_than_the_limit_is_invalid() {
        assert_eq!(answer(4096, 101, 16), Err(EINVAL));
        assert_eq!(answer(4096, u32::MAX, 16), Err(EINVAL));
    }

    #[test]
    fn short_or_odd_strides_are_invalid() {
        assert_eq!(answer(4096, 1, 8), Err(EINVAL));
        assert_eq!(answer(4096, 1, 20), Err(EINVAL));
        assert_eq!(answer(4096, 1, 0), Err(EINVAL));
    }

    #[test]
    fn stride_of_more_than_a_page_is_too_big() {
        assert_eq!(answer(4096, 1, 4104), Err(E2BIG));
    }

    #[test]
    fn list_beyond_the_address_space_overflows() {
        assert_eq!(answer(u64::MAX - 7, 1, 16), Err(EOVERFLOW));
    }

    #[test]
    fn kernel_addresses_are_bad_addresses() {
        assert_eq!(answer(0xffff_8000_0000_0000, 1, 16), Err(EFAULT));
        assert_eq!(answer(0xffff_8000_0000_0000, 50, 16), Err(EFAULT));
    }
}
