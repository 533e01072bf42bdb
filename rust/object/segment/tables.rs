// SPDX-License-Identifier: GPL-2.0

//! Pages of a segment that tables of clients have.
//!
//! The tables know their own pages ([`super::super::client_tables`]); here is known which pages are
//! somebody's, for who looks for a run that is free or can be freed.

use super::{
    Chain,
    End,
    Segment, //
};

impl Segment {
    /// Takes pages for a table of a client, at the high end.
    pub(in crate::object) fn take_table(&mut self, bytes: u64) -> Option<Chain> {
        let pages = self.pages_for(bytes)?;
        if self.bytes_used().checked_add(bytes)? > self.commit_limit {
            return None;
        }
        let chain = self
            .pool
            .take_run(pages, 1, 0..self.pool.pages(), End::High)?;
        self.mark_table(&chain, u64::MAX);
        self.tables = self.tables.saturating_add(pages);
        Some(chain)
    }

    /// Gives the pages of a table of a client back.
    pub(in crate::object) fn give_table(&mut self, chain: Chain) {
        self.mark_table(&chain, 0);
        self.tables = self.tables.saturating_sub(chain.pages());
        self.pool.give(chain);
    }

    /// Notes for each page of a chain whether a table of a client has it: all ones or nothing.
    fn mark_table(&mut self, chain: &Chain, value: u64) {
        let Self {
            pool, table_bits, ..
        } = self;
        for page in pool.runs(chain).flatten() {
            // CAST: `usize` has 64 bits wherever this driver runs.
            if let Some(word) = table_bits.get_mut((page / u64::BITS) as usize) {
                let bit = 1_u64 << (page % u64::BITS);
                *word = (*word & !bit) | (value & bit);
            }
        }
    }

    /// Returns the pages that tables of clients have.
    pub(super) fn table_pages(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.table_bits.iter().zip(0_u32..);
        words
            .filter(|(word, _)| **word != 0)
            .flat_map(|(word, index)| {
                let bits = (0..u64::BITS).filter(move |bit| word & (1_u64 << bit) != 0);
                bits.map(move |bit| index * u64::BITS + bit)
            })
    }
}
