// SPDX-License-Identifier: GPL-2.0

//! Names of the values that the interface gives numbers to.

use libvidmm::abi;

/// Returns the names of the bits that are set, in the order of the list.
pub(crate) fn of_bits(bits: u64, list: &[(u64, &'static str)]) -> Vec<&'static str> {
    list.iter()
        .filter(|(bit, _)| bits & bit != 0)
        .map(|(_, name)| *name)
        .collect()
}

/// Returns the name of an adapter state.
pub(crate) fn adapter_state(state: u32) -> &'static str {
    match state {
        abi::ADAPTER_STATE_RUNNING => "running",
        abi::ADAPTER_STATE_SUSPENDED => "suspended",
        abi::ADAPTER_STATE_RESETTING => "resetting",
        abi::ADAPTER_STATE_GONE => "gone",
        _ => "unknown",
    }
}

/// Returns the name of a kind of segment.
pub(crate) fn segment_kind(kind: u32) -> &'static str {
    match kind {
        abi::SEGMENT_KIND_MEMORY => "memory",
        abi::SEGMENT_KIND_APERTURE => "aperture",
        abi::SEGMENT_KIND_SYSTEM => "system",
        _ => "unknown",
    }
}

/// Returns the name of a group of segments.
pub(crate) fn group(group: u32) -> &'static str {
    match group {
        abi::GROUP_LOCAL => "local",
        abi::GROUP_NON_LOCAL => "non-local",
        _ => "unknown",
    }
}

/// Returns the name of a kind of node.
pub(crate) fn node_kind(kind: u32) -> &'static str {
    match kind {
        abi::NODE_KIND_RENDER => "render",
        abi::NODE_KIND_COMPUTE => "compute",
        abi::NODE_KIND_COPY => "copy",
        abi::NODE_KIND_PAGING => "paging",
        _ => "unknown",
    }
}

/// Flags of segments, by their bits.
pub(crate) const SEGMENT_FLAGS: [(u64, &str); 6] = [
    (abi::SEGMENT_CPU_VISIBLE as u64, "CPU_VISIBLE"),
    (abi::SEGMENT_HOST_APERTURE as u64, "HOST_APERTURE"),
    (abi::SEGMENT_CACHE_COHERENT as u64, "CACHE_COHERENT"),
    (abi::SEGMENT_CONTIGUOUS_ONLY as u64, "CONTIGUOUS_ONLY"),
    (abi::SEGMENT_SCANOUT as u64, "SCANOUT"),
    (abi::SEGMENT_BUDGETED as u64, "BUDGETED"),
];

/// Flags of display sources, by their bits.
pub(crate) const SOURCE_FLAGS: [(u64, &str); 2] = [
    (abi::SOURCE_ENABLED as u64, "ENABLED"),
    (abi::SOURCE_OWNED as u64, "OWNED"),
];

/// Flags of nodes, by their bits.
pub(crate) const NODE_FLAGS: [(u64, &str); 4] = [
    (abi::NODE_PREEMPTIBLE as u64, "PREEMPTIBLE"),
    (abi::NODE_SPLIT as u64, "SPLIT"),
    (abi::NODE_FENCE_64BIT as u64, "FENCE_64BIT"),
    (abi::NODE_SAVES_CONTEXT as u64, "SAVES_CONTEXT"),
];

/// Modes of contexts, by their bits.
pub(crate) const CONTEXT_MODES: [(u64, &str); 3] = [
    (1 << abi::CONTEXT_MODE_PATCHED_LIST, "PATCHED_LIST"),
    (1 << abi::CONTEXT_MODE_PATCHED_EXPLICIT, "PATCHED_EXPLICIT"),
    (1 << abi::CONTEXT_MODE_VIRTUAL, "VIRTUAL"),
];

/// Features, by their bits.
pub(crate) const FEATURES: [(u64, &str); 29] = [
    (abi::FEATURE_PATCHED, "PATCHED"),
    (abi::FEATURE_SPLIT, "SPLIT"),
    (abi::FEATURE_VIRTUAL, "VIRTUAL"),
    (abi::FEATURE_TILES, "TILES"),
    (abi::FEATURE_RENAME, "RENAME"),
    (abi::FEATURE_RENAME_USERPICK, "RENAME_USERPICK"),
    (abi::FEATURE_BUDGET_EVENTS, "BUDGET_EVENTS"),
    (abi::FEATURE_OFFER, "OFFER"),
    (abi::FEATURE_HOST_APERTURE, "HOST_APERTURE"),
    (abi::FEATURE_ACCESSED_PHYSICALLY, "ACCESSED_PHYSICALLY"),
    (abi::FEATURE_SYNC_FILE, "SYNC_FILE"),
    (abi::FEATURE_DMABUF_EXPORT, "DMABUF_EXPORT"),
    (abi::FEATURE_DMABUF_IMPORT, "DMABUF_IMPORT"),
    (abi::FEATURE_SCANOUT, "SCANOUT"),
    (abi::FEATURE_CGROUP, "CGROUP"),
    (abi::FEATURE_RECOVERY, "RECOVERY"),
    (abi::FEATURE_USER_MEMORY, "USER_MEMORY"),
    (abi::FEATURE_STATUS_PAGE, "STATUS_PAGE"),
    (abi::FEATURE_SWAPPABLE, "SWAPPABLE"),
    (abi::FEATURE_WRITE_SEGMENTS, "WRITE_SEGMENTS"),
    (abi::FEATURE_EVICT_SEGMENTS, "EVICT_SEGMENTS"),
    (abi::FEATURE_ALLOC_UPDATE, "ALLOC_UPDATE"),
    (abi::FEATURE_CACHING, "CACHING"),
    (abi::FEATURE_VA_PROTECT, "VA_PROTECT"),
    (abi::FEATURE_LAST_USE, "LAST_USE"),
    (abi::FEATURE_COMPANION_CHOICE, "COMPANION_CHOICE"),
    (abi::FEATURE_SPLIT_ADDRESS, "SPLIT_ADDRESS"),
    (abi::FEATURE_FENCE_SHARE, "FENCE_SHARE"),
    (abi::FEATURE_PERIODIC_TRIM, "PERIODIC_TRIM"),
];

/// Returns the name of a device state.
pub(crate) fn device_state(state: u32) -> &'static str {
    match state {
        abi::DEVICE_STATE_ACTIVE => "ACTIVE",
        abi::DEVICE_STATE_RESET => "RESET",
        abi::DEVICE_STATE_HUNG => "HUNG",
        abi::DEVICE_STATE_STOPPED => "STOPPED",
        abi::DEVICE_STATE_ERROR_MEMORY => "ERROR_MEMORY",
        abi::DEVICE_STATE_ERROR_DMA => "ERROR_DMA",
        abi::DEVICE_STATE_ERROR_FAULT => "ERROR_FAULT",
        abi::DEVICE_STATE_ADAPTER_GONE => "ADAPTER_GONE",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_listed_bit_by_bit() {
        let bits: Vec<_> = FEATURES.iter().map(|(bit, _)| *bit).collect();

        assert_eq!(bits, (0..29).map(|bit| 1 << bit).collect::<Vec<u64>>());
    }

    #[test]
    fn only_set_bits_have_names() {
        let bits = abi::FEATURE_PATCHED | abi::FEATURE_ACCESSED_PHYSICALLY;

        assert_eq!(of_bits(bits, &FEATURES), ["PATCHED", "ACCESSED_PHYSICALLY"]);
    }
}
