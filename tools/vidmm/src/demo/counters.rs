// SPDX-License-Identifier: GPL-2.0

//! What was moved: counters of this client, and of the adapter where they can be read.

use std::path::Path;

use libvidmm::Adapter;
use serde::Serialize;

use crate::failure::Failure;
use crate::statistics::Statistics;

/// The counters of one moment, or what was added between two.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Counters {
    /// Allocations of this client that were pushed out.
    pub(crate) evictions: u64,
    pub(crate) paged_in_bytes: u64,
    pub(crate) paged_out_bytes: u64,
    /// Counters of the adapter, all clients together.
    pub(crate) adapter: Option<Statistics>,
}

impl Counters {
    /// Reads the counters of `adapter`, which was opened at `path`.
    pub(crate) fn read(adapter: &Adapter, path: &Path) -> Result<Self, Failure> {
        let client = adapter.client()?;
        Ok(Self {
            evictions: client.evictions,
            paged_in_bytes: client.paged_in,
            paged_out_bytes: client.paged_out,
            adapter: Statistics::read(path),
        })
    }

    /// Returns by how much the counters grew since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let adapter = self.adapter.as_ref().zip(earlier.adapter.as_ref());
        Self {
            evictions: self.evictions.saturating_sub(earlier.evictions),
            paged_in_bytes: self.paged_in_bytes.saturating_sub(earlier.paged_in_bytes),
            paged_out_bytes: self.paged_out_bytes.saturating_sub(earlier.paged_out_bytes),
            adapter: adapter.map(|(now, earlier)| now.since(earlier)),
        }
    }
}
