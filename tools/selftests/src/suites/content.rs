// SPDX-License-Identifier: GPL-2.0

//! Nothing leaks: memory that changes hands shows zeros to its new owner.

use crate::{
    commands::Commands,
    debugfs,
    fixture::{
        physical,
        plain,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    process::Child,
    suite::{
        Suite,
        TABLES_OUTSIDE, //
    },
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "content",
    parameters: Some(TABLES_OUTSIDE),
    cases: crate::cases! {
        "[RES-16]" memory_of_an_ended_client_reads_zero_by_the_cpu,
        "[RES-16]" memory_of_an_ended_client_reads_zero_by_the_gpu,
        "[RES-16]" early_reader_sees_only_zeros,
        "[RES-16]" backing_of_an_ended_client_reads_zero,
        "[RES-16]" early_engine_sees_only_zeros,
        "[RES-16]" what_a_killed_client_offered_reads_zero,
        "[RES-16]" place_that_was_left_reads_zero,
        "" rest_of_the_last_page_reads_zero,
        "" fence_slot_of_a_closed_fence_is_clean,
    },
};

/// A client that fills a segment with a pattern and ends.
fn soil(mask: u32, total: u64) {
    Child::start(|_| {
        let fixture = Fixture::new();
        let context = fixture.context();
        let size = total / 4;
        for _ in 0..4 {
            let allocation = fixture.create_resident(physical(size, mask));
            let mut commands = Commands::new();
            commands.fill_bytes(allocation.at(0), size as u32, 0x5ec2_e7ed);
            fixture.run(&context, &commands);
        }
    })
    .join();
    crate::clock::wait_until("the memory is free", || debugfs::placements().is_empty());
}

fn memory_of_an_ended_client_reads_zero_by_the_cpu() {
    soil(VISIBLE_SEGMENT, 16 * MIB);
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(16 * MIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    assert!(mapping.is_filled(0, 16 << 20, 0));
}

fn memory_of_an_ended_client_reads_zero_by_the_gpu() {
    for (mask, total) in [(VISIBLE_SEGMENT, 16 * MIB), (HIDDEN_SEGMENT, 4 * MIB)] {
        soil(mask, total);
        let fixture = Fixture::new();
        let context = fixture.context();
        let size = total / 4;
        let target = fixture.create_resident(physical(size, SYSTEM));
        let mapping = fixture.client.map(&target);
        for _ in 0..4 {
            let fresh = fixture.create_resident(physical(size, mask));
            let mut commands = Commands::new();
            commands.copy_bytes(target.at(0), fresh.at(0), size as u32);
            fixture.run(&context, &commands);
            assert!(mapping.is_filled(0, size as usize, 0), "set {mask:#x}");
        }
    }
}

fn early_reader_sees_only_zeros() {
    soil(VISIBLE_SEGMENT, 16 * MIB);
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(8 * MIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    // Nothing waits for the paging fence.
    fixture
        .client
        .make_resident(&fixture.queue, &[allocation.handle]);
    for round in 0..200 {
        let offset = round * 4096 * 37 % (8 << 20);
        assert_eq!(mapping.read32(offset), 0, "offset {offset:#x}");
    }
    assert!(mapping.is_filled(0, 8 << 20, 0));
}

fn early_engine_sees_only_zeros() {
    soil(VISIBLE_SEGMENT, 16 * MIB);
    let fixture = Fixture::new();
    let context = fixture.context();
    let target = fixture.create(physical(MIB, SYSTEM));
    let mapping = fixture.client.map(&target);
    let fresh: Vec<_> = (0..12)
        .map(|_| fixture.create(physical(MIB, VISIBLE_SEGMENT)))
        .collect();
    let handles: Vec<u32> = fresh.iter().map(|allocation| allocation.handle).collect();
    // Nothing waits for the paging fence.
    fixture.client.make_resident(&fixture.queue, &handles);
    for allocation in &fresh {
        let mut commands = Commands::new();
        commands.fill_bytes(target.at(0), 1 << 20, 0xffff_ffff);
        commands.copy_bytes(target.at(0), allocation.at(0), 1 << 20);
        fixture.run(&context, &commands);
        assert!(mapping.is_filled(0, 1 << 20, 0));
    }
}

fn what_a_killed_client_offered_reads_zero() {
    let mut child = Child::start(|says| {
        let fixture = Fixture::new();
        let context = fixture.context();
        for mask in [VISIBLE_SEGMENT, VISIBLE_SEGMENT, SYSTEM] {
            let allocation = fixture.create_resident(physical(5 * MIB, mask));
            let mut commands = Commands::new();
            commands.fill_bytes(allocation.at(0), 5 << 20, 0x5ec2_e7ed);
            fixture.run(&context, &commands);
            let level = crate::abi::OFFER_LEVEL_LOW;
            fixture
                .client
                .try_offer(fixture.device, &[allocation.handle], level, 0)
                .expect("OFFER");
        }
        says.line("offered");
        crate::process::wait_for_the_end();
    });
    assert_eq!(child.line(), "offered");
    // What leaves under pressure, and what goes with its client.
    let fixture = Fixture::new();
    let first = fixture.create_resident(physical(8 * MIB, VISIBLE_SEGMENT));
    assert!(fixture.client.map(&first).is_filled(0, 8 << 20, 0));
    child.kill();
    let second = fixture.create_resident(plain(7 * MIB, VISIBLE_SEGMENT));
    assert!(fixture.client.map(&second).is_filled(0, 7 << 20, 0));
    let third = fixture.create_resident(plain(8 * MIB, SYSTEM));
    assert!(fixture.client.map(&third).is_filled(0, 8 << 20, 0));
}

fn place_that_was_left_reads_zero() {
    let (one, other) = (Fixture::new(), Fixture::new());
    let context = one.context();
    let allocation = one.create_resident(physical(4 * MIB, VISIBLE_SEGMENT | SYSTEM));
    let mut commands = Commands::new();
    commands.fill_bytes(allocation.at(0), 4 << 20, 0x5ec2_e7ed);
    one.run(&context, &commands);
    for command in ["move", "evict"] {
        debugfs::inject(&format!("{command} {}", allocation.object_id));
        let fresh = other.create_resident(plain(10 * MIB, VISIBLE_SEGMENT));
        assert!(
            other.client.map(&fresh).is_filled(0, 10 << 20, 0),
            "after {command}"
        );
        other.client.push_out(other.device, &[fresh.handle]);
    }
    assert_eq!(one.client.map(&allocation).read32(0), 0x5ec2_e7ed);
}

fn backing_of_an_ended_client_reads_zero() {
    for _ in 0..3 {
        soil(SYSTEM, 4 * MIB);
        let fixture = Fixture::new();
        let allocation = fixture.create(plain(4 * MIB, SYSTEM));
        assert!(fixture.client.map(&allocation).is_filled(0, 4 << 20, 0));
    }
}

fn rest_of_the_last_page_reads_zero() {
    soil(VISIBLE_SEGMENT, 4 * MIB);
    let fixture = Fixture::new();
    for size in [1, 100, 4095, 4097, 70_001] {
        let allocation = fixture.create_resident(plain(size, VISIBLE_SEGMENT));
        let mapping = fixture.client.map(&allocation);
        assert!(
            mapping.is_filled(0, allocation.size as usize, 0),
            "size {size}"
        );
        assert_eq!(allocation.size, size.next_multiple_of(4 * KIB));
    }
}

fn fence_slot_of_a_closed_fence_is_clean() {
    let fixture = Fixture::new();
    for value in 1..100 {
        let mut argument = crate::abi::FenceCreate {
            device: fixture.device,
            ..Default::default()
        };
        let fence = fixture
            .client
            .try_create_fence(&mut argument)
            .expect("FENCE_CREATE");
        let offset = argument.mmap_offset;
        let page = crate::memory::Mapping::read_only(fixture.client.file(), offset, 4096);
        assert_eq!(page.read64(argument.slot as usize * 64), 0);
        fixture.client.signal(fence, value << 32);
        fixture.client.close(&[fence]);
    }
}
