// SPDX-License-Identifier: GPL-2.0

//! `segments`: how full they are. All numbers are bytes.
//!
//! `reserved` is what the commands `reserve` and `fragment` of `inject` took out of use; `mapped`
//! is what allocations occupy, in the aperture the ranges in force. Segment 0 is system memory,
//! with what is pinned in it for residency.

use kernel::fmt;

use crate::object::adapter::Adapter;

use super::caps::segment_word;

pub(super) fn show(adapter: &Adapter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let residency = adapter.residency().lock();
    writeln!(f, "segment=0 kind=system mapped={}", residency.system_bytes)?;
    for segment in &residency.segments {
        writeln!(
            f,
            "segment={} kind={} total={} free={} largest_free={} contiguous={} mapped={} \
             reserved={}",
            segment.id.get(),
            segment_word(segment.kind),
            segment.bytes(),
            segment.bytes_free(),
            segment.largest_free(),
            segment.bytes_contiguous(),
            segment.bytes_used(),
            segment.bytes_withheld(),
        )?;
    }
    Ok(())
}
