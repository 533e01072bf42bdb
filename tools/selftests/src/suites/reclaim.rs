// SPDX-License-Identifier: GPL-2.0

//! RECLAIM: what has become of offered content.

use super::offer::{
    drawn,
    flags_of,
    offer,
    press_out,
    reclaim,
    residency_of, //
};
use crate::{
    abi::{
        self,
        AllocInfo, //
    },
    client::{
        Allocation,
        Answer, //
    },
    commands::Commands,
    debugfs,
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    suite::Suite,
    trace::Recording, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "reclaim",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[RES-22]" content_is_intact_without_pressure,
        "[RES-22]" discarded_memory_is_paged_in_behind_the_fence,
        "[RES-22] [RES-16]" discarded_memory_reads_zero,
        "[RES-22] [RES-16]" discarded_memory_reads_zero_by_the_gpu,
        "[RES-22]" reclaim_of_what_is_not_offered_does_nothing,
        "[RES-22]" bad_list_reclaims_nothing,
        "[RES-22]" each_element_has_its_own_result,
    },
};

fn content_is_intact_without_pressure() {
    let fixture = Fixture::new();
    for mask in [VISIBLE_SEGMENT, HIDDEN_SEGMENT, SYSTEM] {
        let allocation = fixture.create(physical(256 * KIB, mask));
        let data = pattern(41, allocation.size);
        fixture.client.map(&allocation).write(0, &data);
        for resident in [false, true] {
            if resident {
                fixture.bring_in(&allocation);
            }
            for flags in [0, abi::OFFER_NOW, abi::OFFER_ALLOW_DECOMMIT] {
                fixture
                    .client
                    .try_offer(fixture.device, &[allocation.handle], 1, flags)
                    .expect("OFFER");
                let reclaimed = fixture
                    .client
                    .try_reclaim(fixture.queue.handle, &[allocation.handle])
                    .expect("RECLAIM");
                assert_eq!(reclaimed, (vec![abi::RECLAIM_RESULT_OK], Answer::Ready));
                let found = fixture.read(&allocation, &fixture.client.map(&allocation));
                assert!(found == data, "set {mask:#x}");
                fixture.bring_in(&allocation);
            }
        }
    }
}

fn discarded_memory_is_paged_in_behind_the_fence() {
    let fixture = Fixture::new();
    let allocation = drawn(&fixture, physical(MIB, VISIBLE_SEGMENT), 0xdead_beef);
    let mapping = fixture.client.map(&allocation);
    offer(&fixture, &[allocation], abi::OFFER_LEVEL_NORMAL);
    press_out(&allocation);
    debugfs::inject("pause 1");
    let recording = Recording::start();
    let (results, answer) = fixture
        .client
        .try_reclaim(fixture.queue.handle, &[allocation.handle])
        .expect("RECLAIM");
    assert_eq!(results, [abi::RECLAIM_RESULT_DISCARDED]);
    let Answer::Pending(value) = answer else {
        panic!("READY, but it is on the requirement list and not in place");
    };
    fixture.client.lock(allocation.handle, abi::LOCK_READ);
    fixture.client.unlock(allocation.handle);
    assert!(!fixture.client.is_reached(fixture.queue.fence, value));
    debugfs::inject("resume 1");
    fixture.client.wait(fixture.queue.fence, value);
    let events = recording.stop();
    assert_eq!(events.bytes("Fill", allocation.object_id), MIB);
    assert_eq!(fixture.client.state_of(allocation.handle).segment, 1);
    assert!(mapping.is_filled(0, MIB as usize, 0));
}

/// Content that has been in the backing pages as well, and was given up in a segment.
fn given_up(fixture: &Fixture, info: AllocInfo) -> Allocation {
    let allocation = fixture.create(info);
    let mapping = fixture.client.map(&allocation);
    mapping.write(0, &pattern(42, allocation.size));
    fixture.bring_in(&allocation);
    assert_eq!(
        residency_of(fixture, &allocation),
        abi::ALLOC_RESIDENCY_MEMORY
    );
    fixture
        .client
        .try_evict(
            fixture.device,
            &[allocation.handle],
            abi::EVICT_ONLY_IF_NEEDED,
        )
        .expect("EVICT");
    offer(fixture, &[allocation], abi::OFFER_LEVEL_NORMAL);
    press_out(&allocation);
    allocation
}

fn discarded_memory_reads_zero() {
    let fixture = Fixture::new();
    for size in [4 * KIB, 68 * KIB, 2 * MIB, 7 * MIB + 4 * KIB] {
        let allocation = given_up(&fixture, plain(size, VISIBLE_SEGMENT));
        let mapping = fixture.client.map(&allocation);
        assert_eq!(
            reclaim(&fixture, &allocation),
            abi::RECLAIM_RESULT_DISCARDED
        );
        assert_eq!(
            residency_of(&fixture, &allocation),
            abi::ALLOC_RESIDENCY_NOT_RESIDENT
        );
        assert!(mapping.is_filled(0, size as usize, 0), "{size} bytes");
        // What is written then is the content.
        mapping.write32(0, 7);
        fixture.bring_in(&allocation);
        assert_eq!((mapping.read32(0), mapping.read32(4)), (7, 0));
        drop(mapping);
        fixture.client.close_and_wait(&[allocation.handle]);
    }
}

fn discarded_memory_reads_zero_by_the_gpu() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let target = fixture.create(physical(256 * KIB, SYSTEM));
    let mapping = fixture.client.map(&target);
    for (mask, blocked) in [
        (VISIBLE_SEGMENT, false),
        (HIDDEN_SEGMENT, false),
        (VISIBLE_SEGMENT | SYSTEM, true),
    ] {
        mapping.write(0, &pattern(43, target.size));
        let allocation = given_up(&fixture, physical(256 * KIB, mask));
        assert_eq!(
            reclaim(&fixture, &allocation),
            abi::RECLAIM_RESULT_DISCARDED
        );
        if blocked {
            debugfs::inject(&format!("reserve 1 {}", debugfs::segment(1).free));
        }
        let mut commands = Commands::new();
        commands.copy_bytes(target.at(0), allocation.at(0), 256 << 10);
        fixture.run(&context, &commands);
        debugfs::inject("reserve 1 0");
        assert!(
            mapping.is_filled(0, 256 << 10, 0),
            "set {mask:#x}, in system memory: {blocked}"
        );
    }
}

fn reclaim_of_what_is_not_offered_does_nothing() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    let recording = Recording::start();
    for _ in 0..2 {
        let reclaimed = fixture
            .client
            .try_reclaim(fixture.queue.handle, &[allocation.handle]);
        assert_eq!(reclaimed, Ok((vec![abi::RECLAIM_RESULT_OK], Answer::Ready)));
    }
    let events = recording.stop();
    events.assert_none("resident_step", &[]);
    events.assert_none("paging_op", &[]);
    assert_eq!(debugfs::placement(allocation.object_id).backing_pages(), 0);
}

fn bad_list_reclaims_nothing() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    offer(&fixture, &[allocation], abi::OFFER_LEVEL_NORMAL);
    let device = fixture.client.create_device();
    let foreign = fixture.client.create(device, plain(4 * KIB, SYSTEM));
    for (bad, errno) in [(0, libc::ENOENT), (foreign.handle, libc::EXDEV)] {
        let handles = [allocation.handle, bad];
        let result = fixture.client.try_reclaim(fixture.queue.handle, &handles);
        assert_eq!(result, Err((errno, 1)));
        assert_ne!(
            flags_of(&fixture, &allocation) & abi::ALLOC_STATE_OFFERED,
            0
        );
    }
    assert_eq!(reclaim(&fixture, &allocation), abi::RECLAIM_RESULT_OK);
}

fn each_element_has_its_own_result() {
    let fixture = Fixture::new();
    let kept = drawn(&fixture, physical(64 * KIB, VISIBLE_SEGMENT), 1);
    let lost = drawn(&fixture, physical(64 * KIB, VISIBLE_SEGMENT), 2);
    let free = fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    offer(&fixture, &[kept, lost], abi::OFFER_LEVEL_NORMAL);
    press_out(&lost);
    let handles = [lost, kept, free, lost].map(|allocation| allocation.handle);
    let (results, answer) = fixture
        .client
        .try_reclaim(fixture.queue.handle, &handles)
        .expect("RECLAIM");
    assert_eq!(
        results,
        [
            abi::RECLAIM_RESULT_DISCARDED,
            abi::RECLAIM_RESULT_OK,
            abi::RECLAIM_RESULT_OK,
            abi::RECLAIM_RESULT_OK
        ]
    );
    let Answer::Pending(value) = answer else {
        panic!("READY although one has to come back");
    };
    fixture.client.wait(fixture.queue.fence, value);
    for allocation in [kept, lost] {
        assert_eq!(fixture.client.state_of(allocation.handle).segment, 1);
    }
    assert_eq!(fixture.client.state_of(free.handle).segment, u32::MAX);
}
