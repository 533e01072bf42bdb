// SPDX-License-Identifier: GPL-2.0

//! What a touch of a mapping finds: content follows the memory, and the mapping keeps it.

use crate::{
    abi,
    client::Allocation,
    commands::Commands,
    debugfs,
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        KIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    memory::touch,
    process::Child,
    suite::Suite,
    trace::Recording, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "cpu_access",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[SEG-6]" visible_segment_is_mapped_directly,
        "[SEG-6]" gpu_writes_show_without_paging,
        "" touch_brings_pages_of_zeros,
        "" forked_process_shares_the_mapping,
        "" mapping_keeps_the_storage_of_a_closed_allocation,
        "" mapping_keeps_storage_after_the_file_is_closed,
        "[E14]" touch_without_memory_is_a_bus_error,
        "" content_follows_eviction_and_return,
        "" two_mappings_show_the_same_memory,
        "[E13]" mapping_works_as_argument_of_calls,
        "[E9]" other_process_reads_through_proc_mem,
    },
};

/// A fixture with an allocation of two pages in system memory.
fn two_pages() -> (Fixture, Allocation) {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(8 * KIB, SYSTEM));
    (fixture, allocation)
}

fn visible_segment_is_mapped_directly() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(64 * KIB, VISIBLE_SEGMENT));
    fixture.client.lock(allocation.handle, abi::LOCK_WRITE);
    let recording = Recording::start();
    let mapping = fixture.client.map(&allocation);
    mapping.write(0, &pattern(3, 64 * KIB));
    assert_eq!(debugfs::placement(allocation.object_id).path, "direct");
    recording.stop().assert_none("paging_op", &[]);
    assert_eq!(fixture.client.state_of(allocation.handle).segment, 1);
    fixture.client.unlock(allocation.handle);
}

fn gpu_writes_show_without_paging() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create_resident(physical(64 * KIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    assert_eq!(mapping.read32(4096), 0);
    let recording = Recording::start();
    let mut commands = Commands::new();
    commands.fill_bytes(allocation.at(4096), 4096, 0x600d_cafe);
    fixture.run(&context, &commands);
    assert_eq!(
        (mapping.read32(4096), mapping.read32(8188)),
        (0x600d_cafe, 0x600d_cafe)
    );
    assert_eq!((mapping.read32(4092), mapping.read32(8192)), (0, 0));
    recording.stop().assert_none("paging_op", &[]);
    assert_eq!(debugfs::placement(allocation.object_id).path, "direct");
}

fn touch_brings_pages_of_zeros() {
    let (fixture, allocation) = two_pages();
    assert_eq!(debugfs::placement(allocation.object_id).backing_pages(), 0);
    let mapping = fixture.client.map(&allocation);
    assert_eq!(mapping.read32(4), 0);
    assert_eq!(debugfs::placement(allocation.object_id).backing_pages(), 2);
    let state = fixture.client.state_of(allocation.handle);
    assert_eq!(state.residency, abi::ALLOC_RESIDENCY_NOT_RESIDENT);
}

fn forked_process_shares_the_mapping() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(8 * KIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    mapping.write32(0, 1);
    Child::start(|_| {
        assert_eq!(mapping.read32(0), 1);
        mapping.write32(4, 2);
        fixture.push_out(&allocation);
        mapping.write32(8, 3);
    })
    .join();
    assert_eq!(
        (mapping.read32(0), mapping.read32(4), mapping.read32(8)),
        (1, 2, 3)
    );
}

fn mapping_keeps_the_storage_of_a_closed_allocation() {
    for mask in [VISIBLE_SEGMENT, SYSTEM] {
        let fixture = Fixture::new();
        let allocation = fixture.create_resident(plain(8 * KIB, mask));
        let mapping = fixture.client.map(&allocation);
        mapping.write32(0, 11);
        fixture.client.close(&[allocation.handle]);
        mapping.write32(4096, 22);
        // Whoever got the memory meanwhile would write zeros into it.
        for _ in 0..4 {
            fixture.create_resident(plain(8 * KIB, mask));
        }
        assert_eq!((mapping.read32(0), mapping.read32(4096)), (11, 22));
        assert!(debugfs::find_placement(allocation.object_id).is_some());
        drop(mapping);
        crate::clock::wait_until("the storage goes with the mapping", || {
            debugfs::find_placement(allocation.object_id).is_none()
        });
    }
}

fn mapping_keeps_storage_after_the_file_is_closed() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(8 * KIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    mapping.write32(0, 11);
    drop(fixture);
    assert_eq!(mapping.read32(0), 11);
    mapping.write32(4, 12);
    assert_eq!(mapping.read32(4), 12);
}

fn touch_without_memory_is_a_bus_error() {
    let (fixture, allocation) = two_pages();
    let mapping = fixture.client.map(&allocation);
    debugfs::inject("reserve 0 1");
    assert_eq!(touch(&mapping, 0, false), Err(libc::SIGBUS));
    assert_eq!(touch(&mapping, 4096, true), Err(libc::SIGBUS));
    debugfs::inject("reserve 0 0");
    assert_eq!(touch(&mapping, 0, true), Ok(0));
}

fn content_follows_eviction_and_return() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(256 * KIB, VISIBLE_SEGMENT | SYSTEM));
    let mapping = fixture.client.map(&allocation);
    for round in 0..4 {
        let data = pattern(round, allocation.size);
        mapping.write(0, &data);
        fixture.bring_in(&allocation);
        assert!(
            mapping.read(0, data.len()) == data,
            "round {round} after the return"
        );
        mapping.write(0, &data[1000..]);
        fixture.push_out(&allocation);
        let after = mapping.read(0, data.len() - 1000);
        assert!(after == data[1000..], "round {round} after the eviction");
    }
}

fn two_mappings_show_the_same_memory() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(8 * KIB, VISIBLE_SEGMENT));
    let (one, other) = (
        fixture.client.map(&allocation),
        fixture.client.map(&allocation),
    );
    one.write32(0, 5);
    assert_eq!(other.read32(0), 5);
    fixture.push_out(&allocation);
    other.write32(0, 6);
    assert_eq!(one.read32(0), 6);
}

fn mapping_works_as_argument_of_calls() {
    let fixture = Fixture::new();
    for mask in [VISIBLE_SEGMENT, SYSTEM] {
        let allocation = fixture.create_resident(plain(4 * KIB, mask));
        let mapping = fixture.client.map(&allocation);
        let argument = abi::DeviceCreate::default();
        mapping.write(64, crate::call::bytes_of(&[argument]));
        let address = mapping.address() + 64;
        let result =
            crate::call::issue_at(fixture.client.file(), abi::IOCTL_DEVICE_CREATE, address);
        assert!(matches!(result, Ok(()) | Err(libc::EFAULT)), "{result:?}");
    }
}

fn other_process_reads_through_proc_mem() {
    use std::os::unix::fs::FileExt;
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(8 * KIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    mapping.write32(0, 0x1234_5678);
    let memory = std::fs::File::open("/proc/self/mem").expect("/proc/self/mem");
    let mut word = [0; 4];
    match memory.read_at(&mut word, mapping.address()) {
        Ok(_) => assert_eq!(u32::from_le_bytes(word), 0x1234_5678),
        Err(error) => assert!(matches!(
            error.raw_os_error(),
            Some(libc::EIO | libc::EFAULT)
        )),
    }
    let end = memory.read_at(&mut word, mapping.address() + 8190);
    assert!(end.map_or(true, |length| length <= 4));
}
