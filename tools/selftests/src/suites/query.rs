// SPDX-License-Identifier: GPL-2.0

//! QUERY: what an adapter says of itself.

use crate::{
    abi::{
        self,
        InfoAdapter,
        InfoClient,
        InfoClock,
        InfoIoctl,
        InfoLimits,
        InfoNode,
        InfoSegment,
        Query, //
    },
    call::bytes_of,
    client::Client,
    clock,
    fixture::{
        physical,
        Fixture,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    suite::Suite,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "query",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" adapter_is_that_of_the_profile,
        "[SEG-1] [SEG-2]" segments_are_those_of_the_profile,
        "[SEG-2]" only_id_zero_is_a_system_segment,
        "[SEG-1]" segments_stay_the_same_after_work,
        "[SEG-10]" system_segment_is_there_without_being_counted,
        "[BCK-6]" nodes_tell_their_modes,
        "[DMA-8] [BCK-2]" patch_slots_are_those_of_the_profile,
        "" features_are_those_of_the_stage,
        "" limits_are_at_least_what_is_guaranteed,
        "" clock_is_now,
        "" client_id_is_its_own,
        "" usage_of_a_segment_counts_own_memory,
        "" unknown_query_is_not_supported,
        "" index_out_of_range_is_unknown,
        "" index_where_none_belongs_is_malformed,
        "" size_zero_returns_the_record_size,
        "" shorter_record_is_cut,
        "" longer_record_is_left_alone_behind,
        "" unknown_ioctl_number_is_unknown,
    },
};

fn adapter_is_that_of_the_profile() {
    let adapter: InfoAdapter = Client::open().query(abi::QUERY_ADAPTER, 0);
    assert_eq!(adapter.uapi_major, abi::UAPI_MAJOR);
    assert_eq!(adapter.uapi_minor, abi::UAPI_MINOR);
    assert_eq!(adapter.reset_count, 0);
    assert_eq!(adapter.state, abi::ADAPTER_STATE_RUNNING);
    assert_eq!(adapter.page_size, 4096);
    assert_eq!(adapter.segments, 3);
    assert_eq!(adapter.nodes, 4);
}

fn segments() -> Vec<InfoSegment> {
    let client = Client::open();
    let adapter: InfoAdapter = client.query(abi::QUERY_ADAPTER, 0);
    (0..=adapter.segments)
        .map(|id| client.query(abi::QUERY_SEGMENT, id))
        .collect()
}

/// What does not change: everything but usage.
fn shape(segment: &InfoSegment) -> InfoSegment {
    InfoSegment {
        used: 0,
        largest_free: 0,
        own: 0,
        ..*segment
    }
}

fn segments_are_those_of_the_profile() {
    let segments = segments();
    let visible = InfoSegment {
        id: 1,
        kind: abi::SEGMENT_KIND_MEMORY,
        flags: abi::SEGMENT_CPU_VISIBLE | abi::SEGMENT_SCANOUT | abi::SEGMENT_BUDGETED,
        group: abi::GROUP_LOCAL,
        size: 16 * MIB,
        commit_limit: 16 * MIB,
        cpu_window: 16 * MIB,
        page_size: 4 * KIB,
        contiguous: 16 * MIB,
        base: segments[1].base,
        ..Default::default()
    };
    assert_eq!(shape(&segments[1]), visible);
    let hidden = InfoSegment {
        id: 2,
        flags: abi::SEGMENT_HOST_APERTURE | abi::SEGMENT_BUDGETED,
        cpu_window: MIB,
        page_size: 64 * KIB,
        contiguous: 4 * MIB,
        base: segments[2].base,
        ..visible
    };
    assert_eq!(shape(&segments[2]), hidden);
    let aperture = segments[3];
    assert_eq!(aperture.id, 3);
    assert_eq!(aperture.kind, abi::SEGMENT_KIND_APERTURE);
    assert_eq!(aperture.group, abi::GROUP_NON_LOCAL);
    assert_eq!(
        aperture.flags & !abi::SEGMENT_CACHE_COHERENT,
        abi::SEGMENT_SCANOUT
    );
    assert_eq!((aperture.size, aperture.commit_limit), (16 * MIB, 16 * MIB));
    assert_eq!(aperture.page_size, 4 * KIB);
    for (one, other) in [(1, 2), (1, 3), (2, 3)] {
        let (one, other): (InfoSegment, InfoSegment) = (segments[one], segments[other]);
        let apart = one.base + one.size <= other.base || other.base + other.size <= one.base;
        assert!(apart, "segments {} and {} overlap", one.id, other.id);
    }
}

fn only_id_zero_is_a_system_segment() {
    let kinds: Vec<u32> = segments().iter().map(|segment| segment.kind).collect();
    let memory = abi::SEGMENT_KIND_MEMORY;
    let expected = [
        abi::SEGMENT_KIND_SYSTEM,
        memory,
        memory,
        abi::SEGMENT_KIND_APERTURE,
    ];
    assert_eq!(kinds, expected);
}

fn segments_stay_the_same_after_work() {
    let before: Vec<InfoSegment> = segments().iter().map(shape).collect();
    let fixture = Fixture::new();
    for segments in [VISIBLE_SEGMENT, 1 << 2, SYSTEM] {
        for size in [4 * KIB, 300 * KIB, 3 * MIB] {
            let allocation = fixture.create_resident(physical(size, segments));
            fixture.push_out(&allocation);
            fixture.client.close_and_wait(&[allocation.handle]);
        }
    }
    let after: Vec<InfoSegment> = segments().iter().map(shape).collect();
    assert_eq!(before, after);
}

fn system_segment_is_there_without_being_counted() {
    let client = Client::open();
    let adapter: InfoAdapter = client.query(abi::QUERY_ADAPTER, 0);
    let system: InfoSegment = client.query(abi::QUERY_SEGMENT, 0);
    assert_eq!(adapter.segments, 3);
    assert_eq!(system.id, 0);
    assert_eq!(system.kind, abi::SEGMENT_KIND_SYSTEM);
    assert_eq!(system.group, abi::GROUP_NON_LOCAL);
    assert_eq!(system.base, 0);
}

fn nodes_tell_their_modes() {
    let client = Client::open();
    let patched = (1 << abi::CONTEXT_MODE_PATCHED_LIST) | (1 << abi::CONTEXT_MODE_PATCHED_EXPLICIT);
    let expected = [
        (abi::NODE_KIND_RENDER, 1 << abi::CONTEXT_MODE_VIRTUAL),
        (abi::NODE_KIND_PAGING, 0),
        (abi::NODE_KIND_RENDER, patched),
    ];
    for (ordinal, (kind, modes)) in expected.iter().enumerate() {
        let node: InfoNode = client.query(abi::QUERY_NODE, ordinal as u32);
        assert_eq!(node.ordinal as usize, ordinal);
        assert_eq!((node.kind, node.modes), (*kind, *modes), "node {ordinal}");
    }
    let companion: InfoNode = client.query(abi::QUERY_NODE, 3);
    assert_eq!(companion.modes, 0);
    let node: InfoNode = client.query(abi::QUERY_NODE, 2);
    assert_ne!(node.flags & abi::NODE_SAVES_CONTEXT, 0);
    assert_eq!(node.timeout_ms, 2000);
    assert!(node.max_dma_bytes >= 1 << 20);
    assert!(node.max_points >= 64);
}

fn patch_slots_are_those_of_the_profile() {
    let adapter: InfoAdapter = Client::open().query(abi::QUERY_ADAPTER, 0);
    assert_eq!(adapter.patch_slots, 8);
}

fn features_are_those_of_the_stage() {
    let adapter: InfoAdapter = Client::open().query(abi::QUERY_ADAPTER, 0);
    assert_eq!(
        adapter.features,
        abi::FEATURE_PATCHED
            | abi::FEATURE_SPLIT
            | abi::FEATURE_VIRTUAL
            | abi::FEATURE_BUDGET_EVENTS
            | abi::FEATURE_OFFER
            | abi::FEATURE_HOST_APERTURE
            | abi::FEATURE_ACCESSED_PHYSICALLY
            | abi::FEATURE_SCANOUT
            | abi::FEATURE_RECOVERY
            | abi::FEATURE_STATUS_PAGE
            | abi::FEATURE_SWAPPABLE
    );
    assert_eq!(adapter.features_hi, 0);
}

fn limits_are_at_least_what_is_guaranteed() {
    let limits: InfoLimits = Client::open().query(abi::QUERY_LIMITS, 0);
    assert!(limits.handles_per_list >= 16384);
    assert!(limits.allocs_per_create >= 1024);
    assert!(limits.rename_max >= 1024);
    assert!(limits.va_ops >= 65536);
    assert_eq!(limits.va_updates_queued, 128);
    assert!(limits.submissions_remembered >= 256);
    assert!(limits.events_queued >= 256);
    assert!(limits.objects >= 2_097_152);
}

fn clock_is_now() {
    let client = Client::open();
    let before = clock::now_ns() as u64;
    let first: InfoClock = client.query(abi::QUERY_CLOCK, 0);
    let second: InfoClock = client.query(abi::QUERY_CLOCK, 0);
    let after = clock::now_ns() as u64;
    assert!(before <= first.cpu_ns && first.cpu_ns <= second.cpu_ns && second.cpu_ns <= after);
    assert!(first.gpu_ticks <= second.gpu_ticks);
    assert_ne!(first.gpu_hz, 0);
}

fn client_id_is_its_own() {
    let (one, other) = (Client::open(), Client::open());
    let first: InfoClient = one.query(abi::QUERY_CLIENT, 0);
    let second: InfoClient = other.query(abi::QUERY_CLIENT, 0);
    assert_ne!(first.client_id, second.client_id);
    assert_eq!(first.backing, 0);
}

fn usage_of_a_segment_counts_own_memory() {
    let fixture = Fixture::new();
    let other = Client::open();
    let before: InfoSegment = fixture.client.query(abi::QUERY_SEGMENT, 1);
    fixture.create_resident(physical(MIB, VISIBLE_SEGMENT));
    let own: InfoSegment = fixture.client.query(abi::QUERY_SEGMENT, 1);
    let foreign: InfoSegment = other.query(abi::QUERY_SEGMENT, 1);
    assert_eq!((before.own, own.own, foreign.own), (0, MIB, 0));
    assert_eq!(own.used, before.used + MIB);
    assert!(own.largest_free <= own.size - own.used);
}

fn unknown_query_is_not_supported() {
    let client = Client::open();
    for query in [abi::QUERY_CLIENT + 1, 100, u32::MAX] {
        assert_eq!(
            client.try_query::<u32>(query, 0),
            Err(libc::EOPNOTSUPP),
            "query {query}"
        );
    }
}

fn index_out_of_range_is_unknown() {
    let client = Client::open();
    let counts = [
        (abi::QUERY_SEGMENT, 4),
        (abi::QUERY_NODE, 4),
        (abi::QUERY_SOURCE, 2),
    ];
    for (query, first) in counts {
        for index in [first, 32, 255, 256, u32::MAX] {
            let result = client.try_query::<u32>(query, index);
            assert_eq!(result, Err(libc::ENOENT), "query {query}, index {index}");
        }
    }
}

fn index_where_none_belongs_is_malformed() {
    let client = Client::open();
    for query in [
        abi::QUERY_ADAPTER,
        abi::QUERY_LIMITS,
        abi::QUERY_CLOCK,
        abi::QUERY_CLIENT,
    ] {
        let result = client.try_query::<u32>(query, 1);
        assert_eq!(result, Err(libc::EINVAL), "query {query}");
    }
}

/// Queries the adapter into a buffer of `size` bytes that are 0xa5 at first.
fn query_into(size: u32) -> (Query, [u8; 128]) {
    let client = Client::open();
    let mut buffer = [0xa5; 128];
    let mut argument = Query {
        query: abi::QUERY_ADAPTER,
        size,
        ..Default::default()
    };
    argument.data = buffer.as_mut_ptr() as u64;
    client.call(abi::IOCTL_QUERY, &mut argument).expect("QUERY");
    (argument, buffer)
}

fn size_zero_returns_the_record_size() {
    let client = Client::open();
    let mut argument = Query {
        query: abi::QUERY_ADAPTER,
        ..Default::default()
    };
    client.call(abi::IOCTL_QUERY, &mut argument).expect("QUERY");
    assert_eq!(argument.size as usize, size_of::<InfoAdapter>());
    // The address does not matter then.
    let mut argument = Query {
        query: abi::QUERY_NODE,
        data: 0x1000,
        ..Default::default()
    };
    client.call(abi::IOCTL_QUERY, &mut argument).expect("QUERY");
    assert_eq!(argument.size as usize, size_of::<InfoNode>());
}

fn shorter_record_is_cut() {
    let whole: InfoAdapter = Client::open().query(abi::QUERY_ADAPTER, 0);
    for size in [1, 4, 33, 79] {
        let (argument, buffer) = query_into(size);
        assert_eq!(argument.size as usize, size_of::<InfoAdapter>());
        let size = size as usize;
        assert_eq!(buffer[..size], bytes_of(&[whole])[..size]);
        assert!(
            buffer[size..].iter().all(|byte| *byte == 0xa5),
            "size {size}"
        );
    }
}

fn longer_record_is_left_alone_behind() {
    let whole: InfoAdapter = Client::open().query(abi::QUERY_ADAPTER, 0);
    let (argument, buffer) = query_into(128);
    let size = size_of::<InfoAdapter>();
    assert_eq!(argument.size as usize, size);
    assert_eq!(buffer[..size], *bytes_of(&[whole]));
    assert!(buffer[size..].iter().all(|byte| *byte == 0xa5));
}

fn unknown_ioctl_number_is_unknown() {
    let client = Client::open();
    for number in [0x03, 0x12, 0x9f, 0xa0, 0xff, 0x100, u32::MAX] {
        let result = client.try_query::<InfoIoctl>(abi::QUERY_IOCTL, number);
        assert_eq!(result, Err(libc::ENOENT), "number {number:#x}");
    }
}
