// SPDX-License-Identifier: GPL-2.0

//! `residency`: the residency requirement list of each device.

use kernel::fmt;

use crate::object::{
    adapter::Adapter,
    device::Device, //
};

pub(super) fn show(adapter: &Adapter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let devices = &adapter.registries().devices;
    devices.for_each(|device| show_device(device, f))
}

fn show_device(device: &Device, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let demands = device.demands().lock();
    for allocation in demands.iter() {
        let (references, resident) = {
            let residence = allocation.residence().lock();
            (residence.references(), residence.is_resident())
        };
        writeln!(
            f,
            "device={} process={} allocation={} size={} refs={references} resident={}",
            device.number(),
            device.client().id(),
            allocation.object_id(),
            allocation.size(),
            u32::from(resident),
        )?;
    }
    Ok(())
}
