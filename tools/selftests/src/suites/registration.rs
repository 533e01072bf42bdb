// SPDX-License-Identifier: GPL-2.0

//! Registration: profiles that load, and parameters that break a rule.
//!
//! Each test loads the module by itself.

use crate::{
    abi::{
        self,
        InfoAdapter,
        InfoNode,
        InfoSegment, //
    },
    client::Client,
    clock,
    commands::Commands,
    fixture::{
        physical,
        Fixture,
        KIB,
        MIB,
        VISIBLE_SEGMENT, //
    },
    module::{
        self,
        Loaded, //
    },
    suite::Suite,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "registration",
    parameters: None,
    cases: crate::cases! {
        "[SEG-1]" overlapping_segments_do_not_load,
        "[SEG-1]" segment_without_size_does_not_load,
        "[SEG-1]" empty_segment_list_does_not_load,
        "[SEG-4]" page_size_of_8_kib_does_not_load,
        "[SEG-8]" no_aperture_does_not_load,
        "[SEG-8]" two_apertures_do_not_load,
        "[SEG-10]" segment_with_id_zero_does_not_load,
        "[SEG-27]" visible_segment_with_a_window_does_not_load,
        "" window_that_is_too_small_does_not_load,
        "" window_that_is_too_small_does_not_load,
        "[SEG-27]" coherent_window_without_a_window_does_not_load,
        "[SEG-27]" coherent_memory_does_not_load,
        "[SEG-27]" flags_that_break_no_rule_load,
        "[BCK-2]" zero_slots_with_a_physical_node_do_not_load,
        "[BCK-2]" too_many_slots_do_not_load,
        "[BCK-6]" virtual_node_without_mmu_does_not_load,
        "" unknown_words_do_not_load,
        "[SEG-8]" one_aperture_and_two_memories_load,
        "[SEG-1]" segments_with_a_base_keep_it,
        "[SEG-10]" system_segment_is_there_in_every_profile,
        "[DMA-8] [BCK-2]" sixteen_slots_are_usable,
        "[BCK-6]" nodes_of_phys_are_physical,
        "" load_and_unload_repeat,
        "" unload_in_use_is_refused,
    },
};

/// Memory and aperture segments in the form of the profile DISC.
const MEMORY: &str = "memory:4M:page=4K:visible:contiguous=4M";

/// Asserts that the module does not load with these parameters and leaves no node.
#[track_caller]
fn assert_refused(parameters: &str) {
    assert_eq!(
        module::try_load(parameters),
        Err(libc::EINVAL),
        "{parameters}"
    );
    let gone = clock::holds_within(clock::patience(), || !module::node_exists());
    assert!(gone, "a device node is left by {parameters}");
    assert!(!module::is_loaded());
}

fn overlapping_segments_do_not_load() {
    let first = format!("{MEMORY}:at=0x1000000");
    for at in ["0x1000000", "0x1001000", "0x13ff000", "0x0c01000"] {
        assert_refused(&format!(
            "segments={first},memory:4M:page=4K:at={at},aperture:4M"
        ));
    }
    assert_refused(&format!("segments={first},aperture:4M:at=0x1200000"));
}

fn segment_without_size_does_not_load() {
    assert_refused("segments=memory:0:page=4K:visible,aperture:4M");
    assert_refused(&format!("segments={MEMORY},aperture:0"));
}

fn empty_segment_list_does_not_load() {
    assert_refused("segments=,");
}

fn page_size_of_8_kib_does_not_load() {
    for page in ["8K", "2K", "128K", "0", "4095"] {
        assert_refused(&format!(
            "segments=memory:4M:page={page}:visible,aperture:4M"
        ));
    }
}

fn no_aperture_does_not_load() {
    assert_refused(&format!("segments={MEMORY}"));
}

fn two_apertures_do_not_load() {
    assert_refused(&format!("segments={MEMORY},aperture:4M,aperture:4M"));
}

fn segment_with_id_zero_does_not_load() {
    assert_refused(&format!("segments={MEMORY}:id=0,aperture:4M"));
    assert_refused(&format!("segments={MEMORY},aperture:4M:id=0"));
    assert_refused(&format!("segments={MEMORY}:id=5,aperture:4M:id=5"));
}

fn visible_segment_with_a_window_does_not_load() {
    assert_refused("segments=memory:4M:page=64K:visible:window=16,aperture:4M");
}

fn window_that_is_too_small_does_not_load() {
    assert_refused("segments=memory:4M:page=64K:window=3,aperture:4M");
    assert_refused("segments=memory:4M:page=64K:window=64,aperture:4M");
}

fn coherent_window_without_a_window_does_not_load() {
    assert_refused("segments=memory:4M:page=64K:coherent-window,aperture:4M");
    assert_refused("segments=memory:4M:page=64K:visible:coherent-window,aperture:4M");
    assert_refused("segments=memory:4M,aperture:4M:coherent-window");
}

fn coherent_memory_does_not_load() {
    assert_refused("segments=memory:4M:coherent,aperture:4M");
    assert_refused("segments=memory:4M:page=64K:window=16:coherent,aperture:4M:coherent");
}

fn flags_that_break_no_rule_load() {
    for segments in [
        "memory:4M:page=64K:visible,aperture:4M",
        "memory:4M:page=64K:window=16,aperture:4M",
        "memory:4M:page=64K:window=16:coherent-window,aperture:4M",
        "memory:4M,aperture:4M:coherent",
    ] {
        let _loaded = Loaded::new(&format!("profile=PHYS segments={segments}"));
        let adapter: InfoAdapter = Client::open().query(abi::QUERY_ADAPTER, 0);
        assert_eq!(adapter.segments, 2, "{segments}");
    }
}

fn zero_slots_with_a_physical_node_do_not_load() {
    assert_refused("profile=DISC slots=0");
    assert_refused("profile=PHYS slots=0");
}

fn too_many_slots_do_not_load() {
    assert_refused("profile=PHYS slots=16777217");
    assert_refused("profile=PHYS slots=4294967295");
}

fn virtual_node_without_mmu_does_not_load() {
    assert_refused("profile=PHYS nodes=render:virtual,paging,render:physical");
    assert_refused("profile=DISC levels=0");
}

fn unknown_words_do_not_load() {
    assert_refused("profile=NONSENSE");
    assert_refused("segments=memory:4M:page=4K:sparkling,aperture:4M");
    assert_refused("segments=tape:4M,aperture:4M");
    assert_refused("segments=memory:4X:page=4K,aperture:4M");
    assert_refused("profile=PHYS nodes=kitchen");
    assert_refused("profile=PHYS nodes=render:sideways,paging");
}

fn one_aperture_and_two_memories_load() {
    let segments = format!("segments={MEMORY},memory:2M:page=64K:contiguous=1M,aperture:8M");
    let _loaded = Loaded::new(&format!("profile=PHYS {segments}"));
    let client = Client::open();
    let adapter: InfoAdapter = client.query(abi::QUERY_ADAPTER, 0);
    assert_eq!(adapter.segments, 3);
    let shapes: Vec<(u32, u64, u64, u64)> = (1..=3)
        .map(|id| client.query::<InfoSegment>(abi::QUERY_SEGMENT, id))
        .map(|segment| {
            (
                segment.kind,
                segment.size,
                segment.page_size,
                segment.contiguous,
            )
        })
        .collect();
    assert_eq!(
        shapes[0],
        (abi::SEGMENT_KIND_MEMORY, 4 * MIB, 4 * KIB, 4 * MIB)
    );
    assert_eq!(
        shapes[1],
        (abi::SEGMENT_KIND_MEMORY, 2 * MIB, 64 * KIB, MIB)
    );
    assert_eq!(shapes[2].0, abi::SEGMENT_KIND_APERTURE);
    assert_eq!(shapes[2].1, 8 * MIB);
}

fn segments_with_a_base_keep_it() {
    let segments = format!("segments={MEMORY}:at=0x10000000,aperture:4M:at=0x20000000");
    let _loaded = Loaded::new(&format!("profile=PHYS {segments}"));
    let client = Client::open();
    let memory: InfoSegment = client.query(abi::QUERY_SEGMENT, 1);
    let aperture: InfoSegment = client.query(abi::QUERY_SEGMENT, 2);
    assert_eq!((memory.base, aperture.base), (0x1000_0000, 0x2000_0000));
}

fn system_segment_is_there_in_every_profile() {
    for profile in ["DISC", "DISC-NSR", "DISC-4L", "PHYS"] {
        let _loaded = Loaded::new(&format!("profile={profile}"));
        let client = Client::open();
        let system: InfoSegment = client.query(abi::QUERY_SEGMENT, 0);
        assert_eq!(
            (system.id, system.kind),
            (0, abi::SEGMENT_KIND_SYSTEM),
            "{profile}"
        );
        let adapter: InfoAdapter = client.query(abi::QUERY_ADAPTER, 0);
        assert_eq!(adapter.segments, 3, "{profile}");
    }
}

fn sixteen_slots_are_usable() {
    let _loaded = Loaded::new("profile=DISC slots=16");
    let fixture = Fixture::new();
    let adapter: InfoAdapter = fixture.client.query(abi::QUERY_ADAPTER, 0);
    assert_eq!(adapter.patch_slots, 16);
    let allocation = fixture.create(physical(4 * KIB, VISIBLE_SEGMENT));
    let context = fixture.context();
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 15);
    commands.patches[0].slot = 15;
    fixture.run(&context, &commands);
    assert_eq!(fixture.client.map(&allocation).read64(0), 15);
    commands.patches[0].slot = 16;
    let refusal = commands
        .try_submit(&fixture.client, context.handle)
        .expect_err("slot 16");
    assert_eq!(
        (refusal.errno, refusal.kind),
        (libc::EINVAL, abi::SUBMIT_ERROR_SLOT_RANGE)
    );
}

fn nodes_of_phys_are_physical() {
    let _loaded = Loaded::new("profile=PHYS");
    let client = Client::open();
    let adapter: InfoAdapter = client.query(abi::QUERY_ADAPTER, 0);
    assert_eq!((adapter.nodes, adapter.va_start, adapter.va_end), (3, 0, 0));
    let modes: Vec<u32> = (0..3)
        .map(|ordinal| client.query::<InfoNode>(abi::QUERY_NODE, ordinal).modes)
        .collect();
    assert_eq!(modes, [3, 0, 3]);
}

fn load_and_unload_repeat() {
    let rounds = crate::effort::Rounds::new(5);
    for _ in rounds {
        let _loaded = Loaded::new("profile=PHYS");
        let fixture = Fixture::new();
        fixture.create_resident(physical(64 * KIB, VISIBLE_SEGMENT));
    }
}

fn unload_in_use_is_refused() {
    let loaded = Loaded::new("profile=PHYS");
    let fixture = Fixture::new();
    let allocation = fixture.create(physical(4 * KIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    let refused = |result| matches!(result, Err(libc::EBUSY | libc::EAGAIN));
    assert!(refused(module::try_unload()), "unloaded with an open file");
    drop(fixture);
    mapping.write32(0, 1);
    assert!(refused(module::try_unload()), "unloaded with a mapping");
    drop(mapping);
    drop(loaded);
}
