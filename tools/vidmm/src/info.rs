// SPDX-License-Identifier: GPL-2.0

//! `vidmm info`: what an adapter is and what it can do.

use std::path::Path;

use clap::Args;
use libvidmm::{
    abi,
    Adapter,
    Group, //
};
use serde::Serialize;

use crate::failure::{
    open,
    Failure, //
};
use crate::names;
use crate::quantity::{
    bytes,
    count,
    counted, //
};
use crate::table::{
    Align,
    Table, //
};

/// Show what the adapter is: segments, nodes, features and limits.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

/// Shows the adapter at `path`.
pub(crate) fn run(path: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let description = Description::read(&open(path)?)?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&description)
            .map_err(|error| Failure(format!("cannot write JSON: {error}")))?;
        println!("{text}");
    } else {
        print!("{}", description.text(path));
    }
    Ok(())
}

/// What there is to say about an adapter.
#[derive(Debug, Serialize)]
struct Description {
    interface: String,
    adapter_id: u64,
    state: &'static str,
    resets: u32,
    page_bytes: u32,
    large_page_bytes: u32,
    binding_slots: u32,
    display_sources: Vec<Source>,
    budgets: Vec<Budget>,
    first_gpu_address: u64,
    end_of_gpu_addresses: u64,
    features: Vec<&'static str>,
    segments: Vec<Segment>,
    nodes: Vec<Node>,
    source_count: u32,
    limits: Limits,
}

/// A display source.
#[derive(Debug, Serialize)]
struct Source {
    id: u32,
    flags: Vec<&'static str>,
    max_width: u32,
    max_height: u32,
    pitch_alignment: u32,
    sequence: u64,
}

/// What a client that has nothing may keep resident in a group of segments.
#[derive(Debug, Serialize)]
struct Budget {
    group: &'static str,
    budget_bytes: u64,
    reservable_bytes: u64,
}

/// A segment of memory.
#[derive(Debug, Serialize)]
struct Segment {
    id: u32,
    kind: &'static str,
    group: &'static str,
    base: u64,
    bytes: u64,
    contiguous_bytes: u64,
    commit_limit_bytes: u64,
    cpu_window_bytes: u64,
    page_bytes: u64,
    used_bytes: u64,
    largest_free_bytes: u64,
    own_bytes: u64,
    flags: Vec<&'static str>,
}

/// A node that executes work.
#[derive(Debug, Serialize)]
struct Node {
    ordinal: u32,
    kind: &'static str,
    context_modes: Vec<&'static str>,
    flags: Vec<&'static str>,
    companion_node: Option<u32>,
    timeout_ms: u32,
    longest_buffer_bytes: u32,
    longest_allocation_list: u32,
    longest_patch_list: u32,
    longest_point_list: u32,
}

/// Limits of lists and queues.
#[derive(Debug, Serialize)]
struct Limits {
    handles_per_list: u32,
    allocations_per_call: u32,
    instances_per_allocation: u32,
    address_operations_per_call: u32,
    address_updates_queued: u32,
    submissions_remembered: u32,
    events_queued: u32,
    handles_per_client: u32,
}

impl Description {
    /// Asks the adapter.
    fn read(adapter: &Adapter) -> Result<Self, Failure> {
        let info = adapter.info()?;
        let limits = adapter.limits()?;
        Ok(Self {
            interface: format!("{}.{}", info.uapi_major, info.uapi_minor),
            adapter_id: info.adapter_id,
            state: names::adapter_state(info.state),
            resets: info.reset_count,
            page_bytes: info.page_size,
            large_page_bytes: info.large_page_size,
            binding_slots: info.patch_slots,
            display_sources: sources(adapter, &info)?,
            budgets: budgets(adapter, &info)?,
            first_gpu_address: info.va_start,
            end_of_gpu_addresses: info.va_end,
            features: names::of_bits(info.features, &names::FEATURES),
            segments: adapter.segments()?.iter().map(Segment::from).collect(),
            nodes: adapter.nodes()?.iter().map(Node::from).collect(),
            source_count: info.sources,
            limits: Limits::from(&limits),
        })
    }

    /// Returns the tables.
    fn text(&self, path: &Path) -> String {
        [
            format!("vidmm adapter {}\n", path.display()),
            self.adapter_table().to_string(),
            "\nSegments\n".to_owned(),
            self.segment_table().to_string(),
            "\nNodes\n".to_owned(),
            self.node_table().to_string(),
            self.budget_text(),
            self.source_text(),
            "\nLimits\n".to_owned(),
            self.limits.table().to_string(),
        ]
        .concat()
    }

    fn adapter_table(&self) -> Table {
        let mut table = Table::of_values();
        table.value("interface", &self.interface);
        table.value("identity", self.adapter_id.to_string());
        table.value(
            "state",
            format!(
                "{}, {}",
                self.state,
                counted(u64::from(self.resets), "reset")
            ),
        );
        table.value(
            "GPU pages",
            match self.large_page_bytes {
                0 => bytes(u64::from(self.page_bytes)),
                large => format!(
                    "{} to {}",
                    bytes(u64::from(self.page_bytes)),
                    bytes(u64::from(large))
                ),
            },
        );
        table.value(
            "GPU addresses",
            match self.end_of_gpu_addresses {
                0 => "none".to_owned(),
                end => format!("{:#x} to {end:#x}", self.first_gpu_address),
            },
        );
        table.value("binding slots", self.binding_slots.to_string());
        table.value("display sources", self.source_count.to_string());
        for (line, features) in self.features.chunks(4).enumerate() {
            let heading = if line == 0 { "features" } else { "" };
            table.value(heading, features.join(" "));
        }
        table
    }

    /// Returns the table of budgets; nothing on an adapter without them.
    fn budget_text(&self) -> String {
        let mut table = Table::new([
            ("group", Align::Left),
            ("budget", Align::Right),
            ("reservable", Align::Right),
        ]);
        for budget in &self.budgets {
            table.row([
                budget.group.to_owned(),
                bytes(budget.budget_bytes),
                bytes(budget.reservable_bytes),
            ]);
        }
        match self.budgets[..] {
            [] => String::new(),
            _ => format!("\nBudgets of a new client\n{table}"),
        }
    }

    /// Returns the table of sources; nothing on an adapter that can show nothing.
    fn source_text(&self) -> String {
        let mut table = Table::new([
            ("source", Align::Right),
            ("largest picture", Align::Right),
            ("pitch", Align::Right),
            ("changes", Align::Right),
            ("flags", Align::Left),
        ]);
        for source in &self.display_sources {
            table.row([
                source.id.to_string(),
                format!("{} x {}", source.max_width, source.max_height),
                bytes(u64::from(source.pitch_alignment)),
                count(source.sequence),
                source.flags.join(" "),
            ]);
        }
        match self.display_sources[..] {
            [] => String::new(),
            _ => format!("\nDisplay sources\n{table}"),
        }
    }

    fn segment_table(&self) -> Table {
        let mut table = Table::new([
            ("id", Align::Right),
            ("kind", Align::Left),
            ("group", Align::Left),
            ("size", Align::Right),
            ("contiguous", Align::Right),
            ("CPU window", Align::Right),
            ("page", Align::Right),
            ("used", Align::Right),
            ("flags", Align::Left),
        ]);
        for segment in &self.segments {
            table.row([
                segment.id.to_string(),
                segment.kind.to_owned(),
                segment.group.to_owned(),
                bytes(segment.bytes),
                bytes_or_dash(segment.contiguous_bytes),
                bytes_or_dash(segment.cpu_window_bytes),
                bytes(segment.page_bytes),
                bytes(segment.used_bytes),
                segment.flags.join(" "),
            ]);
        }
        table
    }

    fn node_table(&self) -> Table {
        let mut table = Table::new([
            ("node", Align::Right),
            ("kind", Align::Left),
            ("contexts", Align::Left),
            ("companion", Align::Right),
            ("time limit", Align::Right),
            ("longest buffer", Align::Right),
            ("flags", Align::Left),
        ]);
        for node in &self.nodes {
            table.row([
                node.ordinal.to_string(),
                node.kind.to_owned(),
                match &node.context_modes[..] {
                    [] => "kernel only".to_owned(),
                    modes => modes.join(" "),
                },
                node.companion_node
                    .map_or("-".to_owned(), |companion| companion.to_string()),
                format!("{} ms", node.timeout_ms),
                bytes_or_dash(u64::from(node.longest_buffer_bytes)),
                node.flags.join(" "),
            ]);
        }
        table
    }
}

/// Asks for the sources of an adapter that has SCANOUT.
fn sources(adapter: &Adapter, info: &abi::InfoAdapter) -> Result<Vec<Source>, Failure> {
    let ids = match info.features & abi::FEATURE_SCANOUT {
        0 => 0..0,
        _ => 0..info.sources,
    };
    ids.map(|id| Ok(Source::from(&adapter.source(id)?)))
        .collect()
}

/// Asks for the budgets of an adapter that has them.
fn budgets(adapter: &Adapter, info: &abi::InfoAdapter) -> Result<Vec<Budget>, Failure> {
    let groups = match info.features & abi::FEATURE_BUDGET_EVENTS {
        0 => &[][..],
        _ => &Group::ALL[..],
    };
    let budget = |group: &Group| {
        let budget = adapter.budget(*group)?;
        Ok(Budget {
            group: names::group(budget.group),
            budget_bytes: budget.budget,
            reservable_bytes: budget.reservable,
        })
    };
    groups.iter().map(budget).collect()
}

impl From<&abi::InfoSource> for Source {
    fn from(info: &abi::InfoSource) -> Self {
        Self {
            id: info.source,
            flags: names::of_bits(u64::from(info.flags), &names::SOURCE_FLAGS),
            max_width: info.max_width,
            max_height: info.max_height,
            pitch_alignment: info.pitch_align,
            sequence: info.sequence,
        }
    }
}

impl From<&abi::InfoSegment> for Segment {
    fn from(info: &abi::InfoSegment) -> Self {
        Self {
            id: info.id,
            kind: names::segment_kind(info.kind),
            group: names::group(info.group),
            base: info.base,
            bytes: info.size,
            contiguous_bytes: info.contiguous,
            commit_limit_bytes: info.commit_limit,
            cpu_window_bytes: info.cpu_window,
            page_bytes: info.page_size,
            used_bytes: info.used,
            largest_free_bytes: info.largest_free,
            own_bytes: info.own,
            flags: names::of_bits(u64::from(info.flags), &names::SEGMENT_FLAGS),
        }
    }
}

impl From<&abi::InfoNode> for Node {
    fn from(info: &abi::InfoNode) -> Self {
        Self {
            ordinal: info.ordinal,
            kind: names::node_kind(info.kind),
            context_modes: names::of_bits(u64::from(info.modes), &names::CONTEXT_MODES),
            flags: names::of_bits(u64::from(info.flags), &names::NODE_FLAGS),
            companion_node: (info.companion_node != abi::NODE_NONE).then_some(info.companion_node),
            timeout_ms: info.timeout_ms,
            longest_buffer_bytes: info.max_dma_bytes,
            longest_allocation_list: info.max_allocs,
            longest_patch_list: info.max_patches,
            longest_point_list: info.max_points,
        }
    }
}

impl Limits {
    fn table(&self) -> Table {
        let mut table = Table::new([("", Align::Left), ("", Align::Right)]);
        let rows = [
            ("handles per list", self.handles_per_list),
            ("allocations per call", self.allocations_per_call),
            ("instances per allocation", self.instances_per_allocation),
            (
                "address operations per call",
                self.address_operations_per_call,
            ),
            ("address updates queued", self.address_updates_queued),
            ("submissions remembered", self.submissions_remembered),
            ("events queued", self.events_queued),
            ("handles per client", self.handles_per_client),
        ];
        for (name, limit) in rows {
            table.value(name, count(u64::from(limit)));
        }
        table
    }
}

impl From<&abi::InfoLimits> for Limits {
    fn from(limits: &abi::InfoLimits) -> Self {
        Self {
            handles_per_list: limits.handles_per_list,
            allocations_per_call: limits.allocs_per_create,
            instances_per_allocation: limits.rename_max,
            address_operations_per_call: limits.va_ops,
            address_updates_queued: limits.va_updates_queued,
            submissions_remembered: limits.submissions_remembered,
            events_queued: limits.events_queued,
            handles_per_client: limits.objects,
        }
    }
}

/// Returns a number of bytes, or a dash for none.
fn bytes_or_dash(number: u64) -> String {
    match number {
        0 => "-".to_owned(),
        number => bytes(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_without_a_contiguous_part_shows_a_dash() {
        let segment = Segment::from(&abi::InfoSegment {
            kind: abi::SEGMENT_KIND_SYSTEM,
            group: abi::GROUP_NON_LOCAL,
            size: 1 << 30,
            page_size: 4096,
            ..Default::default()
        });
        assert_eq!((segment.kind, segment.group), ("system", "non-local"));
        assert_eq!(bytes_or_dash(segment.contiguous_bytes), "-");
    }
}
