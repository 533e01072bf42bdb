// SPDX-License-Identifier: GPL-2.0

//! `stats`: counters since the module was loaded, and what is alive: objects, and pages of system
//! memory behind them.

use kernel::fmt;

use crate::object::{
    adapter::Adapter,
    inject::OperationName,
    registry::Registry, //
};

pub(super) fn show(adapter: &Adapter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let registries = adapter.registries();
    let alive = [
        ("clients", count(&registries.clients)),
        ("devices", count(&registries.devices)),
        ("allocations", count(&registries.allocations)),
        ("contexts", count(&registries.contexts)),
        ("queues", count(&registries.queues)),
        ("fences", count(&registries.fences)),
    ];
    for (what, count) in alive {
        writeln!(f, "{what}: {count}")?;
    }
    let core = adapter.statistics();
    writeln!(f, "pages_pinned: {}", core.backing_pages())?;
    for (cause, count) in core.departures() {
        writeln!(f, "evictions_{cause}: {count}")?;
    }
    for (decision, count) in core.locks() {
        writeln!(f, "locks_{decision}: {count}")?;
    }
    for (direction, bytes) in core.transfers() {
        writeln!(f, "transferred_{direction}: {bytes}")?;
    }
    let statistics = adapter.backend().statistics();
    let operations = statistics.operations.iter().zip(statistics.operation_bytes);
    for (name, (count, bytes)) in OperationName::ALL.iter().zip(operations) {
        writeln!(f, "operations_{}: {count}", name.as_str())?;
        writeln!(f, "operation_bytes_{}: {bytes}", name.as_str())?;
    }
    for node in &adapter.backend().capabilities().nodes {
        if let Some(lookups) = adapter.backend().lookups(node.ordinal) {
            writeln!(f, "tlb_hits_{}: {}", node.ordinal, lookups.hits)?;
            writeln!(f, "tlb_misses_{}: {}", node.ordinal, lookups.misses)?;
            writeln!(f, "tlb_walks_{}: {}", node.ordinal, lookups.walks)?;
        }
    }
    let recycled = adapter
        .host_apertures()
        .iter()
        .fold(0, |sum: u64, window| sum.wrapping_add(window.recycled()));
    let counters = [
        ("packets", statistics.packets),
        ("packet_bytes", statistics.packet_bytes),
        ("buffers", statistics.buffers),
        ("roots_compared", statistics.roots),
        ("dummy_hits", statistics.dummy_hits),
        ("window_recycled", recycled),
        ("offers_surrenderable_bytes", adapter.surrenderable()),
        ("offers_discarded_bytes", adapter.discarded()),
        ("splits", core.splits()),
        ("preemptions", adapter.watchdog().preemptions()),
        ("engine_resets", adapter.watchdog().engine_resets()),
        ("adapter_resets", adapter.watchdog().adapter_resets().into()),
        ("paging_completed", adapter.paging().completed()),
        ("pages_swapped_in", adapter.swapped_in()),
        ("pages_touched", adapter.touched_pages()),
        ("pages_let_go", adapter.pages_let_go()),
    ];
    for (what, count) in counters {
        writeln!(f, "{what}: {count}")?;
    }
    Ok(())
}

fn count<T: Send + Sync>(registry: &Registry<T>) -> u64 {
    let mut count = 0;
    let _ = registry.for_each(|_| {
        count += 1;
        Ok::<_, fmt::Error>(())
    });
    count
}
