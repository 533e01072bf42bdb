// SPDX-License-Identifier: GPL-2.0

//! `sources`: what each display source shows, where that lies, and who owns the source.

use kernel::fmt;

use crate::object::adapter::Adapter;

pub(super) fn show(adapter: &Adapter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for source in adapter.sources().iter() {
        let snapshot = source.snapshot();
        let place = snapshot.shown.as_ref().and_then(|shown| {
            let residency = adapter.residency().lock();
            let residence = shown.residence().lock();
            residency.place_of(&residence)
        });
        write!(f, "source={} owner=", source.number())?;
        super::write_or_dash(f, snapshot.owner)?;
        f.write_str(" allocation=")?;
        super::write_or_dash(f, snapshot.shown.as_ref().map(|shown| shown.object_id()))?;
        f.write_str(" segment=")?;
        super::write_or_dash(f, place.map(|place| place.segment.get().into()))?;
        f.write_str(" offset=")?;
        match place {
            Some(place) => write!(f, "{:#x}", place.offset)?,
            None => f.write_str("-")?,
        }
        writeln!(f, " sequence={}", snapshot.sequence)?;
    }
    Ok(())
}
