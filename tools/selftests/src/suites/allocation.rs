// SPDX-License-Identifier: GPL-2.0

//! ALLOC_CREATE and ALLOC_QUERY: what may be asked for, what comes back.

use crate::{
    abi::{
        self,
        AllocInfo, //
    },
    debugfs,
    fixture::{
        physical,
        plain,
        Fixture,
        APERTURE,
        HIDDEN_SEGMENT,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    suite::Suite,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "allocation",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[SEG-11]" set_with_system_bit_is_refused,
        "[SEG-11]" preference_of_system_memory_is_refused,
        "[SEG-11]" set_of_the_aperture_means_system_memory,
        "[SEG-30]" size_zero_is_refused,
        "[SEG-30]" size_that_wraps_is_an_overflow,
        "[SEG-30]" alignment_that_is_no_power_of_two_is_refused,
        "[SEG-30]" unknown_segment_is_refused,
        "[SEG-30]" preference_outside_the_set_is_refused,
        "[SEG-30]" small_size_is_rounded_to_the_largest_page,
        "" size_that_fits_nowhere_is_refused,
        "" contiguous_size_that_fits_nowhere_is_refused,
        "" priority_out_of_range_is_refused,
        "" other_write_segments_are_not_supported,
        "" other_caching_is_not_supported,
        "" flags_of_later_stages_are_not_supported,
        "" outputs_describe_the_mapping,
        "" list_with_a_bad_element_creates_nothing,
        "" creation_commits_no_pages,
        "[RES-23]" query_tells_where_an_allocation_is,
        "" query_tells_priority_and_references,
        "" query_of_a_list_keeps_its_order,
        "" memory_of_a_created_allocation_reads_zero,
    },
};

fn refused(info: AllocInfo) -> i32 {
    let fixture = Fixture::new();
    fixture
        .client
        .try_create(fixture.device, info)
        .expect_err("ALLOC_CREATE succeeded")
}

fn set_with_system_bit_is_refused() {
    for mask in [1, 1 | VISIBLE_SEGMENT, 1 | SYSTEM] {
        assert_eq!(refused(plain(4096, mask)), libc::EINVAL, "set {mask:#x}");
    }
}

fn preference_of_system_memory_is_refused() {
    for preferred in [0x80, 0x8001, 0x80_0301] {
        let mut info = plain(4096, VISIBLE_SEGMENT | SYSTEM);
        info.preferred = preferred;
        assert_eq!(refused(info), libc::EINVAL, "preference {preferred:#x}");
    }
}

fn set_of_the_aperture_means_system_memory() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(4096, SYSTEM));
    let state = fixture.client.state_of(allocation.handle);
    assert_eq!(
        (state.segment, state.residency),
        (0, abi::ALLOC_RESIDENCY_SYSTEM)
    );
    let flagged = fixture.create_resident(physical(4096, SYSTEM));
    let state = fixture.client.state_of(flagged.handle);
    assert_eq!(
        (state.segment, state.residency),
        (APERTURE, abi::ALLOC_RESIDENCY_SYSTEM)
    );
}

fn size_zero_is_refused() {
    assert_eq!(refused(plain(0, SYSTEM)), libc::EINVAL);
}

fn size_that_wraps_is_an_overflow() {
    for size in [u64::MAX, u64::MAX - 4094] {
        assert_eq!(
            refused(plain(size, VISIBLE_SEGMENT)),
            libc::EOVERFLOW,
            "{size:#x}"
        );
        assert_eq!(refused(plain(size, SYSTEM)), libc::EOVERFLOW, "{size:#x}");
    }
    assert_eq!(
        refused(plain(u64::MAX - 65534, HIDDEN_SEGMENT)),
        libc::EOVERFLOW
    );
}

fn alignment_that_is_no_power_of_two_is_refused() {
    for align in [3, 4097, 12288, u64::MAX] {
        let mut info = plain(4096, VISIBLE_SEGMENT);
        info.align = align;
        assert_eq!(refused(info), libc::EINVAL, "alignment {align}");
    }
}

fn unknown_segment_is_refused() {
    for mask in [1 << 4, VISIBLE_SEGMENT | (1 << 5), 1 << 31] {
        assert_eq!(refused(plain(4096, mask)), libc::EINVAL, "set {mask:#x}");
    }
}

fn preference_outside_the_set_is_refused() {
    for preferred in [2, 0x82, 0x0201, 4, 0x1f, 0x21, 0x41] {
        let mut info = plain(4096, VISIBLE_SEGMENT | SYSTEM);
        info.preferred = preferred;
        assert_eq!(refused(info), libc::EINVAL, "preference {preferred:#x}");
    }
}

fn small_size_is_rounded_to_the_largest_page() {
    let fixture = Fixture::new();
    for (mask, size) in [
        (HIDDEN_SEGMENT, 64 * KIB),
        (VISIBLE_SEGMENT | HIDDEN_SEGMENT, 64 * KIB),
        (VISIBLE_SEGMENT, 4 * KIB),
        (SYSTEM, 4 * KIB),
        (VISIBLE_SEGMENT | SYSTEM, 4 * KIB),
    ] {
        assert_eq!(fixture.create(plain(1, mask)).size, size, "set {mask:#x}");
    }
}

fn size_that_fits_nowhere_is_refused() {
    for mask in [
        VISIBLE_SEGMENT,
        HIDDEN_SEGMENT,
        VISIBLE_SEGMENT | HIDDEN_SEGMENT,
    ] {
        assert_eq!(
            refused(plain(16 * MIB + 1, mask)),
            libc::ENOSPC,
            "set {mask:#x}"
        );
    }
    let fixture = Fixture::new();
    fixture.create(plain(16 * MIB, VISIBLE_SEGMENT));
    fixture.create(plain(64 * MIB, SYSTEM));
}

fn contiguous_size_that_fits_nowhere_is_refused() {
    assert_eq!(refused(physical(4 * MIB + 1, HIDDEN_SEGMENT)), libc::ENOSPC);
    assert_eq!(
        refused(physical(16 * MIB + 1, VISIBLE_SEGMENT)),
        libc::ENOSPC
    );
    assert_eq!(refused(physical(16 * MIB + 1, SYSTEM)), libc::ENOSPC);
    let fixture = Fixture::new();
    fixture.create(physical(4 * MIB, HIDDEN_SEGMENT));
    fixture.create(physical(16 * MIB, SYSTEM));
}

fn priority_out_of_range_is_refused() {
    for priority in [6, 100, u32::MAX] {
        let mut info = plain(4096, SYSTEM);
        info.priority = priority;
        assert_eq!(refused(info), libc::EINVAL, "priority {priority}");
    }
}

fn other_write_segments_are_not_supported() {
    let mut info = plain(4096, VISIBLE_SEGMENT | SYSTEM);
    info.write_segments = SYSTEM;
    assert_eq!(refused(info), libc::EOPNOTSUPP);
    let fixture = Fixture::new();
    info.write_segments = info.read_segments;
    fixture.create(info);
}

fn other_caching_is_not_supported() {
    for caching in [2, 3, 4, u32::MAX] {
        let mut info = plain(4096, SYSTEM);
        info.caching = caching;
        assert_eq!(refused(info), libc::EOPNOTSUPP, "caching {caching}");
    }
    let fixture = Fixture::new();
    let mut info = plain(4096, SYSTEM);
    info.caching = abi::ALLOC_CACHING_WRITE_BACK;
    fixture.create(info);
}

fn flags_of_later_stages_are_not_supported() {
    for flag in [
        abi::ALLOC_RENAMABLE,
        abi::ALLOC_USER_MEMORY,
        abi::ALLOC_TILE_POOL,
        abi::ALLOC_SHAREABLE,
    ] {
        let mut info = plain(4096, SYSTEM);
        info.flags |= flag;
        assert_eq!(refused(info), libc::EOPNOTSUPP, "flag {flag:#x}");
    }
}

fn outputs_describe_the_mapping() {
    let fixture = Fixture::new();
    let mut infos = [plain(5000, SYSTEM), plain(5000, SYSTEM)];
    infos[1].flags = 0;
    fixture
        .client
        .try_create_all(fixture.device, &mut infos)
        .expect("ALLOC_CREATE");
    let [visible, hidden] = infos;
    assert_ne!(visible.object_id, hidden.object_id);
    assert_eq!(visible.mmap_offset % 4096, 0);
    assert!((abi::MMAP_OFFSET_MIN..abi::MMAP_OFFSET_END).contains(&visible.mmap_offset));
    assert!(visible.mmap_span >= 8192);
    assert_eq!((hidden.mmap_offset, hidden.mmap_span), (0, 0));
    assert_eq!((visible.busy_offset, visible.pitch), (0, 0));
    let state = fixture.client.state_of(visible.handle);
    assert_eq!(
        (state.mmap_offset, state.mmap_span),
        (visible.mmap_offset, visible.mmap_span)
    );
    assert_eq!((state.object_id, state.size), (visible.object_id, 8192));
}

fn list_with_a_bad_element_creates_nothing() {
    let fixture = Fixture::new();
    let before = debugfs::placements().len();
    for place in 0..4 {
        let mut infos = [plain(4096, SYSTEM); 4];
        infos[place].size = 0;
        let result = fixture.client.try_create_all(fixture.device, &mut infos);
        assert_eq!(result, Err((libc::EINVAL, place as u32)));
        assert_eq!(debugfs::placements().len(), before);
    }
}

fn creation_commits_no_pages() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(256 * MIB, SYSTEM));
    let placement = debugfs::placement(allocation.object_id);
    assert_eq!(placement.backing_pages(), 0);
    assert_eq!(placement.segment, u64::MAX);
}

fn query_tells_where_an_allocation_is() {
    let fixture = Fixture::new();
    let memory = fixture.create(plain(4096, VISIBLE_SEGMENT));
    let system = fixture.create(plain(4096, SYSTEM));
    let where_is = |handle| {
        let state = fixture.client.state_of(handle);
        (state.residency, state.segment)
    };
    let nowhere = (abi::ALLOC_RESIDENCY_NOT_RESIDENT, abi::SEGMENT_ID_NONE);
    assert_eq!(
        (where_is(memory.handle), where_is(system.handle)),
        (nowhere, nowhere)
    );
    fixture
        .client
        .bring_in(&fixture.queue, &[memory.handle, system.handle]);
    assert_eq!(where_is(memory.handle), (abi::ALLOC_RESIDENCY_MEMORY, 1));
    assert_eq!(where_is(system.handle), (abi::ALLOC_RESIDENCY_SYSTEM, 0));
    fixture.push_out(&memory);
    fixture.push_out(&system);
    assert_eq!(
        (where_is(memory.handle), where_is(system.handle)),
        (nowhere, nowhere)
    );
}

fn query_tells_priority_and_references() {
    let fixture = Fixture::new();
    let mut info = plain(4096, SYSTEM);
    info.priority = abi::ALLOC_PRIORITY_HIGH;
    let high = fixture.create(info);
    let normal = fixture.create(plain(4096, SYSTEM));
    fixture.client.bring_in(&fixture.queue, &[high.handle; 3]);
    let state = fixture.client.state_of(high.handle);
    assert_eq!(
        (state.priority, state.resident_refs),
        (abi::ALLOC_PRIORITY_HIGH, 3)
    );
    assert_eq!((state.instances, state.current), (1, 0));
    let state = fixture.client.state_of(normal.handle);
    assert_eq!(
        (state.priority, state.resident_refs),
        (abi::ALLOC_PRIORITY_NORMAL, 0)
    );
    fixture.client.lock(normal.handle, abi::LOCK_READ);
    assert_ne!(
        fixture.client.state_of(normal.handle).flags & abi::ALLOC_STATE_LOCKED,
        0
    );
    fixture.client.unlock(normal.handle);
    assert_eq!(
        fixture.client.state_of(normal.handle).flags & abi::ALLOC_STATE_LOCKED,
        0
    );
}

fn query_of_a_list_keeps_its_order() {
    let fixture = Fixture::new();
    let sizes = [4096, 8192, 12288, 16384];
    let made: Vec<_> = sizes
        .iter()
        .map(|size| fixture.create(plain(*size, SYSTEM)))
        .collect();
    let handles: Vec<u32> = made
        .iter()
        .rev()
        .map(|allocation| allocation.handle)
        .collect();
    let states = fixture.client.try_states(&handles).expect("ALLOC_QUERY");
    let found: Vec<u64> = states.iter().map(|state| state.size).collect();
    assert_eq!(found, [16384, 12288, 8192, 4096]);
    let mut wrong = handles;
    wrong[2] = 0xdead_beef;
    assert_eq!(
        fixture.client.try_states(&wrong).err(),
        Some((libc::ENOENT, 2))
    );
}

fn memory_of_a_created_allocation_reads_zero() {
    let fixture = Fixture::new();
    for mask in [VISIBLE_SEGMENT, SYSTEM] {
        let allocation = fixture.create(plain(64 * KIB, mask));
        let mapping = fixture.client.map(&allocation);
        assert!(mapping.is_filled(0, 64 * KIB as usize, 0));
        fixture.bring_in(&allocation);
        assert!(mapping.is_filled(0, 64 * KIB as usize, 0));
    }
}
