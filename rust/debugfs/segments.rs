// SPDX-License-Identifier: GPL-2.0

//! `segments`: how full they are. All numbers are bytes.
//!
//! `reserved` is what the commands `reserve` and `fragment` of `inject` took out of use; `mapped`
//! is what allocations and page tables occupy, in the aperture the ranges in force; `tables` is the page
//! tables' part of that. Segment 0 is system memory,
//! with what is pinned in it for residency. `window` is what a CPU host aperture shows at the moment.

use kernel::fmt;

use crate::object::{
    adapter::Adapter,
    host_aperture::HostAperture, //
};

use super::{
    caps::segment_word,
    write_or_dash, //
};

pub(super) fn show(adapter: &Adapter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let residency = adapter.residency().lock();
    writeln!(f, "segment=0 kind=system mapped={}", residency.system_bytes)?;
    for segment in &residency.segments {
        write!(
            f,
            "segment={} kind={} total={} free={} largest_free={} contiguous={} mapped={} \
             tables={} reserved={} window=",
            segment.id.get(),
            segment_word(segment.kind),
            segment.bytes(),
            segment.bytes_free(),
            segment.largest_free(),
            segment.bytes_contiguous(),
            segment.bytes_used(),
            segment.bytes_of_tables(),
            segment.bytes_withheld(),
        )?;
        let window = adapter.host_aperture(segment.id);
        write_or_dash(f, window.map(HostAperture::bytes_mapped))?;
        f.write_str("\n")?;
    }
    Ok(())
}
