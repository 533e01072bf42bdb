// SPDX-License-Identifier: GPL-2.0

//! Budgets: how much a client may keep resident, asked for by a call or followed in a page.
//!
//! A budget is a promise about pressure: a client may go over it, and pays first when memory is short.

use std::mem::offset_of;
use std::sync::atomic::{
    fence,
    Ordering, //
};

use crate::{
    abi,
    handle::File,
    Mapping,
    Result, //
};

/// Bytes of the status page.
const PAGE_BYTES: usize = 4096;

/// A group of segments that share a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Memory segments.
    Local,
    /// The aperture and system memory.
    NonLocal,
}

impl Group {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Local, Self::NonLocal];

    /// Returns the value of the interface.
    pub fn value(self) -> u32 {
        match self {
            Self::Local => abi::GROUP_LOCAL,
            Self::NonLocal => abi::GROUP_NON_LOCAL,
        }
    }

    /// Returns the group with this value, [`None`] for others.
    pub fn from_value(value: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.value() == value)
    }
}

/// The status page of a client: what its budget is, without a call.
#[derive(Debug)]
pub struct StatusPage {
    page: Mapping,
}

impl StatusPage {
    /// Maps the page of the client that `file` is.
    pub(crate) fn map(file: &File) -> Result<Self> {
        let page = Mapping::read_only(file.fd(), abi::MMAP_OFFSET_STATUS_PAGE, PAGE_BYTES)?;
        Ok(Self { page })
    }

    /// Returns what the page says, all of it of one moment.
    pub fn read(&self) -> abi::StatusPage {
        read_consistent(&self.page)
    }

    /// Returns the number of budget changes so far: as long as it stays, so does the budget.
    pub fn generation(&self) -> u64 {
        self.read().budget_generation
    }
}

/// Copies the page while its `sequence` is even and stays what it is.
fn read_consistent(page: &Mapping) -> abi::StatusPage {
    let sequence = page.atomic32(offset_of!(abi::StatusPage, sequence));
    loop {
        let before = sequence.load(Ordering::Acquire);
        if before % 2 == 0 {
            let copy = copy(page);
            // Orders the copy before the second look.
            fence(Ordering::Acquire);
            if sequence.load(Ordering::Relaxed) == before {
                return copy;
            }
        }
        std::hint::spin_loop();
    }
}

/// Copies the page field by field, whatever the kernel does with it meanwhile.
fn copy(page: &Mapping) -> abi::StatusPage {
    macro_rules! fields {
        ($read32:ident: $($small:ident)+; $read64:ident: $($large:ident)+) => {
            abi::StatusPage {
                $($small: page.$read32(offset_of!(abi::StatusPage, $small)),)+
                $($large: page.$read64(offset_of!(abi::StatusPage, $large)),)+
            }
        };
    }
    fields! {
        read32: version sequence state reset_count;
        read64: budget_local usage_local trim_local budget_nonlocal usage_nonlocal trim_nonlocal
            budget_generation
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::mapping::Protection;

    /// Writes as the kernel does: odd, the fields, even.
    fn write(page: &Mapping, sequence: u32, value: u64) {
        let at = page.atomic32(offset_of!(abi::StatusPage, sequence));
        at.store(sequence + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        page.write64(offset_of!(abi::StatusPage, budget_local), value);
        page.write64(offset_of!(abi::StatusPage, budget_generation), value);
        at.store(sequence + 2, Ordering::Release);
    }

    #[test]
    fn all_fields_are_of_one_moment() {
        let page = Mapping::anonymous(PAGE_BYTES, Protection::ReadWrite).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..20_000 {
                    write(&page, 2 * round, u64::from(round));
                }
                done.store(true, Ordering::Release);
            });
            let mut last = 0;
            while !done.load(Ordering::Acquire) {
                let status = read_consistent(&page);
                assert_eq!(status.budget_local, status.budget_generation);
                assert!(status.budget_generation >= last && status.sequence % 2 == 0);
                last = status.budget_generation;
            }
        });
        assert_eq!(read_consistent(&page).budget_local, 19_999);
    }

    #[test]
    fn group_is_known_by_its_value() {
        assert_eq!(Group::from_value(1), Some(Group::NonLocal));
        assert_eq!(Group::from_value(2), None);
    }
}
