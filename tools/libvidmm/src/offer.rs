// SPDX-License-Identifier: GPL-2.0

//! Offers: memory whose contents the program can do without until it wants the memory back.

use crate::abi;

/// Who loses contents first when memory is short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// First.
    Low,
    /// After [`Level::Low`].
    #[default]
    Normal,
    /// Last.
    High,
    /// The kernel chooses from use.
    Auto,
}

impl Level {
    /// Returns the value of the interface.
    pub fn value(self) -> u32 {
        match self {
            Self::Low => abi::OFFER_LEVEL_LOW,
            Self::Normal => abi::OFFER_LEVEL_NORMAL,
            Self::High => abi::OFFER_LEVEL_HIGH,
            Self::Auto => abi::OFFER_LEVEL_AUTO,
        }
    }
}

/// What became of an offered allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Contents are intact, or it was not offered.
    Intact,
    /// Storage is there, contents are zero.
    Discarded,
    /// There is no memory for it; it stays offered.
    NotCommitted,
}

impl Outcome {
    /// Reads the `result` of an element. A value that only a newer kernel knows is taken as lost
    /// contents, which is safe whatever it means.
    pub(crate) fn read(item: &abi::ReclaimItem) -> Self {
        match item.result {
            abi::RECLAIM_RESULT_OK => Self::Intact,
            abi::RECLAIM_RESULT_NOT_COMMITTED => Self::NotCommitted,
            _ => Self::Discarded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcome_that_nobody_knows_counts_as_lost_contents() {
        let outcome = |result| Outcome::read(&abi::ReclaimItem { alloc: 1, result });

        assert_eq!(outcome(abi::RECLAIM_RESULT_OK), Outcome::Intact);
        assert_eq!(outcome(77), Outcome::Discarded);
    }
}
