// SPDX-License-Identifier: GPL-2.0

//! `allocations`: where each instance is.
//!
//! `location` is `memory`, `aperture`, `system` or `nowhere`. `runs` are the stretches of pages that
//! hold the content, or would: in a memory segment `OFFSET+BYTES@FRAME`, otherwise the backing pages
//! as `ADDRESS+BYTES@FRAME`; a stretch ends where page frames stop being adjacent. `aperture` is the
//! range `OFFSET+BYTES` there. `cpu` says how the CPU reaches it: `direct`, `host-aperture`, `backing`,
//! or `-`. `window` are the pages of a CPU host aperture that show something of it at the moment, the one
//! that was asked for longest ago first. `pins` counts all that ties it to its place; `slot` are those of
//! them that are submissions between two portions, whose slots hold it.

use kernel::fmt;

use crate::{
    object::{
        adapter::Adapter,
        allocation::Allocation,
        offer::Offer,
        placement::Residency,
        residence::{
            Content,
            Location,
            Residence, //
        },
    },
    units::{
        Place,
        Run,
        PAGE_BYTES, //
    },
};

use super::end_with_name;

pub(super) fn show(adapter: &Adapter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut next = 0;
    while let Some((number, allocation)) = adapter.registries().allocations.at_least(next) {
        next = number.saturating_add(1);
        show_allocation(adapter, &allocation, f)?;
    }
    Ok(())
}

fn show_allocation(
    adapter: &Adapter,
    allocation: &Allocation,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let device = allocation.device();
    write!(
        f,
        "allocation={} instance=0 process={} device={} handle={} size={} flags={:#x} \
         segments={:#x} priority={} ",
        allocation.object_id(),
        device.client().id(),
        device.number(),
        allocation.name().handle(),
        allocation.size(),
        allocation.flags().bits(),
        allocation.segments(),
        allocation.priority(),
    )?;
    {
        let residency = adapter.residency().lock();
        let residence = allocation.residence().lock();
        show_place(adapter, &residency, &residence, f)?;
        show_window(adapter, allocation, &residence, f)?;
        write!(
            f,
            " content={} offer={} pins={} slot={} kept={} refs={} dirty={}",
            content_word(residence.content()),
            offer_word(residence.offer()),
            residence.pins(),
            residence.slot_holds(),
            residence.keepers(),
            residence.references(),
            u32::from(residence.gpu_dirty()),
        )?;
    }
    write!(
        f,
        " busy={} locked={}",
        u32::from(allocation.is_busy()),
        u32::from(allocation.is_locked()),
    )?;
    end_with_name(f, allocation.name())
}

fn content_word(content: Content) -> &'static str {
    match content {
        Content::Empty => "empty",
        Content::Backing => "backing",
        Content::Segment => "segment",
    }
}

fn offer_word(offer: Offer) -> &'static str {
    match offer {
        Offer::None => "none",
        Offer::Announced(_) => "announced",
        Offer::InForce(_) => "in-force",
        Offer::GivenUp(_) => "given-up",
    }
}

fn show_place(
    adapter: &Adapter,
    residency: &Residency,
    residence: &Residence,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let (location, id) = match residence.location() {
        Location::Nowhere => ("nowhere", None),
        Location::System => ("system", Some(0)),
        Location::Aperture(_) => ("aperture", residency.aperture().map(|id| id.get())),
        Location::Segment(id, _) => ("memory", Some(id.get())),
    };
    write!(f, "location={location} segment=")?;
    super::write_or_dash(f, id.map(u64::from))?;
    f.write_str(" runs=")?;
    let mut list = List::new(f);
    let mut cpu = "-";
    if let Location::Segment(id, chain) = residence.location() {
        if let Some(segment) = residency.segment(*id) {
            for run in segment.runs(chain) {
                list.add_run(adapter, run)?;
            }
            if segment.visible {
                cpu = "direct";
            } else if adapter.host_aperture(*id).is_some() {
                cpu = "host-aperture";
            }
        }
    } else if let Some(backing) = residence.backing() {
        for run in backing.runs() {
            list.add(run, run.place.offset / PAGE_BYTES)?;
        }
        cpu = "backing";
    }
    list.end()?;
    f.write_str(" aperture=")?;
    let mut list = List::new(f);
    if let Location::Aperture(chain) = residence.location() {
        let segment = residency.aperture().and_then(|id| residency.segment(id));
        for run in segment.iter().flat_map(|segment| segment.runs(chain)) {
            list.add_range(run)?;
        }
    }
    list.end()?;
    write!(f, " cpu={cpu}")
}

fn show_window(
    adapter: &Adapter,
    allocation: &Allocation,
    residence: &Residence,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let Location::Segment(id, _) = residence.location() else {
        return f.write_str(" window=-");
    };
    f.write_str(" window=")?;
    let mut list = List::new(f);
    if let Some(window) = adapter.host_aperture(*id) {
        window.for_each_page(allocation, |offset| {
            list.add_range(Run::new(Place::new(*id, offset), window.page_bytes().get()))
        })?;
    }
    list.end()
}

/// A list in the making.
struct List<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    separator: &'static str,
}

impl<'a, 'b> List<'a, 'b> {
    fn new(f: &'a mut fmt::Formatter<'b>) -> Self {
        Self { f, separator: "" }
    }

    fn add_range(&mut self, run: Run) -> fmt::Result {
        let separator = core::mem::replace(&mut self.separator, ",");
        write!(
            self.f,
            "{separator}{:#x}+{:#x}",
            run.place.offset, run.bytes
        )
    }

    fn add(&mut self, run: Run, frame: u64) -> fmt::Result {
        self.add_range(run)?;
        write!(self.f, "@{frame:#x}")
    }

    /// Adds a run of a memory segment, in as many pieces as it has adjacent frames.
    fn add_run(&mut self, adapter: &Adapter, run: Run) -> fmt::Result {
        let (mut place, mut left) = (run.place, run.bytes);
        while left > 0 {
            let Some(frames) = adapter.backend().frames(place) else {
                return self.add_range(Run::new(place, left));
            };
            let bytes = frames.count.saturating_mul(PAGE_BYTES).clamp(1, left);
            self.add(Run::new(place, bytes), frames.first.0)?;
            place = place.forward(bytes);
            left -= bytes;
        }
        Ok(())
    }

    fn end(self) -> fmt::Result {
        if self.separator.is_empty() {
            self.f.write_str("-")?;
        }
        Ok(())
    }
}
