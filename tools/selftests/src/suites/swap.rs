// SPDX-License-Identifier: GPL-2.0

//! Allocations whose pages Linux may swap.

use crate::{
    abi::{
        self,
        AllocInfo, //
    },
    cgroup::Group,
    client::Allocation,
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    memory::Mapping,
    process::Child,
    suite::Suite,
    swap_device::{
        swapped_out,
        SwapDevice, //
    },
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "swap",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[RES-26]" evicted_content_survives_below_a_memory_limit,
        "[RES-26]" pages_are_pinned_while_resident_or_locked_only,
        "[RES-26]" queued_work_keeps_its_pages,
        "[RES-26]" pages_of_other_allocations_stay,
        "[RES-26]" touches_without_a_lock_share_a_limit,
        "[RES-26]" limit_that_is_too_low_fails_the_call_and_changes_nothing,
        "[RES-26]" offered_memory_goes_before_swappable_pages,
        "[RES-26]" touched_pages_go_when_memory_is_short_and_no_others,
        "" reclaim_that_comes_back_into_the_driver_harms_nobody,
    },
};

fn swappable(size: u64, segments: u32) -> AllocInfo {
    let mut info = physical(size, segments);
    info.flags |= abi::ALLOC_SWAPPABLE;
    info
}

/// Whether the backing pages are in memory for the module.
fn has_pages(allocation: &Allocation) -> bool {
    debugfs::placement(allocation.object_id).backing_pages() > 0
}

fn wait_until_let_go(allocation: &Allocation) {
    clock::wait_until("the pages are let go", || !has_pages(allocation));
}

/// Runs `body` in a group with a memory limit, while there is swap.
fn within(limit: u64, body: impl FnOnce()) {
    let _swap = SwapDevice::new(64 * MIB);
    let group = Group::new("vidmm-swap", limit);
    let mut child = Child::start(|says| {
        group.enter();
        body();
        says.line("done");
    });
    assert_eq!(child.line(), "done");
    child.join();
}

/// Writes a pattern under a lock.
fn write(fixture: &Fixture, allocation: &Allocation, mapping: &Mapping, seed: u64) {
    fixture
        .client
        .lock(allocation.handle, abi::LOCK_READ | abi::LOCK_WRITE);
    mapping.write(0, &pattern(seed, allocation.size));
    fixture.client.unlock(allocation.handle);
}

fn evicted_content_survives_below_a_memory_limit() {
    within(12 * MIB, || {
        let fixture = Fixture::new();
        let context = fixture.context();
        let sum = fixture.create_resident(physical(4 * KIB, SYSTEM));
        let allocations: Vec<_> = (0..10)
            .map(|seed| {
                let allocation = fixture.create(swappable(2 * MIB, VISIBLE_SEGMENT));
                let mapping = fixture.client.map(&allocation);
                write(&fixture, &allocation, &mapping, seed);
                fixture.bring_in(&allocation);
                fixture.push_out(&allocation);
                wait_until_let_go(&allocation);
                (allocation, mapping)
            })
            .collect();
        let before = debugfs::stat("pages_swapped_in");
        for (seed, (allocation, mapping)) in (0..).zip(&allocations) {
            // Once by an engine, once by the CPU where the engine left it.
            let mut commands = Commands::new();
            commands.checksum(sum.at(0), allocation.at(0), 2 * MIB as u32);
            fixture.run(&context, &commands);
            fixture.bring_in(allocation);
            assert!(
                fixture.read(allocation, mapping) == pattern(seed, 2 * MIB),
                "allocation {seed} has changed"
            );
            fixture.push_out(allocation);
            assert!(
                fixture.read(allocation, mapping) == pattern(seed, 2 * MIB),
                "allocation {seed} has changed where it is nowhere"
            );
        }
        let swapped = debugfs::stat("pages_swapped_in") - before;
        assert!(swapped >= 1024, "only {swapped} pages were swapped in");
    });
}

fn pages_are_pinned_while_resident_or_locked_only() {
    let fixture = Fixture::new();
    for mask in [SYSTEM, VISIBLE_SEGMENT] {
        let allocation = fixture.create(swappable(256 * KIB, mask));
        let mapping = fixture.client.map(&allocation);
        assert!(!has_pages(&allocation), "pages at creation");
        fixture.bring_in(&allocation);
        let placement = debugfs::placement(allocation.object_id);
        assert_eq!(placement.pins, u64::from(mask == SYSTEM), "set {mask:#x}");
        mapping.write32(0, 0x1234);
        fixture.push_out(&allocation);
        wait_until_let_go(&allocation);
        fixture.client.lock(allocation.handle, abi::LOCK_READ);
        assert_eq!(mapping.read32(0), 0x1234);
        assert!(has_pages(&allocation), "no pages under a lock");
        fixture.client.lock(allocation.handle, abi::LOCK_READ);
        fixture.client.unlock(allocation.handle);
        assert!(has_pages(&allocation), "no pages under the other lock");
        fixture.client.unlock(allocation.handle);
        assert!(!has_pages(&allocation), "pages after the last unlock");
        assert_eq!(mapping.read32(0), 0x1234);
        assert!(has_pages(&allocation), "no pages after a touch");
    }
}

fn queued_work_keeps_its_pages() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create(swappable(256 * KIB, VISIBLE_SEGMENT));
    let fence = fixture.client.create_fence(fixture.device, 0);
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 5);
    commands.wait_for(fence, 1);
    let id = commands.submit(&fixture.client, &context);
    let before = debugfs::placement(allocation.object_id).backing;
    assert!(!before.is_empty(), "no pages behind accepted work");
    // The CPU comes and goes meanwhile.
    fixture
        .client
        .lock(allocation.handle, abi::LOCK_NO_OVERWRITE);
    fixture.client.map(&allocation).write32(8, 6);
    fixture.client.unlock(allocation.handle);
    assert_eq!(debugfs::placement(allocation.object_id).backing, before);
    fixture.client.signal(fence, 1);
    fixture.client.wait(context.progress, id);
    debugfs::inject(&format!("evict {}", allocation.object_id));
    wait_until_let_go(&allocation);
    let mapping = fixture.client.map(&allocation);
    assert_eq!((mapping.read32(0), mapping.read32(8)), (5, 6));

    debugfs::inject("hold worker");
    let other = fixture.create(swappable(256 * KIB, VISIBLE_SEGMENT));
    fixture
        .client
        .make_resident(&fixture.queue, &[other.handle]);
    assert!(has_pages(&other), "no pages behind a queued command");
    debugfs::inject("release worker");
}

fn pages_of_other_allocations_stay() {
    let fixture = Fixture::new();
    let allocation = fixture.create(physical(256 * KIB, VISIBLE_SEGMENT));
    fixture.bring_in(&allocation);
    fixture.push_out(&allocation);
    let before = debugfs::placement(allocation.object_id).backing;
    assert!(!before.is_empty(), "no pages");
    fixture.client.lock(allocation.handle, abi::LOCK_READ);
    fixture.client.unlock(allocation.handle);
    std::fs::write("/proc/sys/vm/drop_caches", "2").expect("drop_caches");
    assert_eq!(debugfs::placement(allocation.object_id).backing, before);
}

fn touches_without_a_lock_share_a_limit() {
    within(12 * MIB, || {
        let fixture = Fixture::new();
        let allocations: Vec<_> = (0..10)
            .map(|seed| {
                let allocation = fixture.create(swappable(2 * MIB, VISIBLE_SEGMENT));
                let mapping = fixture.client.map(&allocation);
                mapping.write(0, &pattern(seed, 2 * MIB));
                (allocation, mapping)
            })
            .collect();
        let kept = allocations.iter().filter(|(one, _)| has_pages(one)).count();
        assert!((1..=6).contains(&kept), "{kept} of 10 are in memory");
        for (seed, (_, mapping)) in (0..).zip(&allocations) {
            assert!(
                mapping.read(0, 2 * MIB as usize) == pattern(seed, 2 * MIB),
                "allocation {seed} has changed"
            );
        }
    });
}

fn limit_that_is_too_low_fails_the_call_and_changes_nothing() {
    let before = swapped_out();
    within(8 * MIB, || {
        let fixture = Fixture::new();
        let context = fixture.context();
        let small = fixture.create(swappable(MIB, VISIBLE_SEGMENT));
        let mapping = fixture.client.map(&small);
        write(&fixture, &small, &mapping, 1);
        let large = fixture.create(swappable(12 * MIB, SYSTEM | VISIBLE_SEGMENT));
        let result = fixture
            .client
            .try_make_resident(fixture.queue.handle, &[small.handle, large.handle]);
        assert_eq!(result, Err((libc::ENOMEM, 1)));
        let mut commands = Commands::new();
        commands.store(large.at(0), 1);
        let refusal = commands
            .try_submit(&fixture.client, context.handle)
            .expect_err("a limit");
        assert_eq!(refusal.errno, libc::ENOMEM);
        let states = fixture
            .client
            .try_states(&[small.handle, large.handle])
            .expect("states");
        assert!(states.iter().all(|state| state.resident_refs == 0));
        assert!(!has_pages(&small) && !has_pages(&large), "pages are left");
        assert!(fixture.read(&small, &mapping) == pattern(1, MIB));
    });
    assert!(swapped_out() > before, "nothing was swapped");
}

/// Lets the kernel look for memory as if it were short of it.
fn press() {
    // Not everything that is asked for may be there.
    let _ = std::fs::write("/sys/fs/cgroup/memory.reclaim", "4M");
}

fn offered_memory_goes_before_swappable_pages() {
    let _swap = SwapDevice::new(64 * MIB);
    let fixture = Fixture::new();
    let make = |info: AllocInfo, seed: u64| {
        let allocation = fixture.create(info);
        let mapping = fixture.client.map(&allocation);
        mapping.write(0, &pattern(seed, MIB));
        (allocation, mapping)
    };
    let offer = |allocation: &Allocation, flags| {
        let list = [allocation.handle];
        let level = abi::OFFER_LEVEL_HIGH;
        let offered = fixture
            .client
            .try_offer(fixture.device, &list, level, flags);
        assert_eq!(offered, Ok(()));
    };
    let discarded = debugfs::stat("offers_discarded_bytes");
    let touched = [0, 1].map(|seed| make(swappable(MIB, SYSTEM), seed));
    let kept = make(plain(MIB, SYSTEM), 2);
    let given = [3, 4, 5].map(|seed| make(plain(MIB, SYSTEM), seed));
    offer(&kept.0, 0);
    for (allocation, _) in &given {
        offer(allocation, abi::OFFER_ALLOW_DECOMMIT);
    }
    clock::wait_until("everything goes that may", || {
        press();
        let any_let_go = touched.iter().any(|(one, _)| !has_pages(one));
        let all_given = given.iter().all(|(one, _)| !has_pages(one));
        assert!(all_given || !any_let_go, "swappable pages went first");
        all_given && touched.iter().all(|(one, _)| !has_pages(one))
    });
    assert!(has_pages(&kept.0));
    assert_eq!(debugfs::stat("offers_discarded_bytes") - discarded, 3 * MIB);
    assert_eq!(
        super::offer::reclaim(&fixture, &kept.0),
        abi::RECLAIM_RESULT_OK
    );
    assert!(kept.1.read(0, MIB as usize) == pattern(2, MIB));
    for (allocation, mapping) in &given {
        let result = super::offer::reclaim(&fixture, allocation);
        assert_eq!(result, abi::RECLAIM_RESULT_DISCARDED);
        assert!(mapping.read(0, MIB as usize) == vec![0; MIB as usize]);
    }
    for (seed, (_, mapping)) in (0..).zip(&touched) {
        assert!(mapping.read(0, MIB as usize) == pattern(seed, MIB));
    }
}

fn touched_pages_go_when_memory_is_short_and_no_others() {
    let _swap = SwapDevice::new(64 * MIB);
    let fixture = Fixture::new();
    let make = |seed: u64| {
        let allocation = fixture.create(swappable(MIB, VISIBLE_SEGMENT));
        let mapping = fixture.client.map(&allocation);
        mapping.write(0, &pattern(seed, MIB));
        (allocation, mapping)
    };
    let touched: Vec<_> = (0..4).map(make).collect();
    let (locked, _) = make(4);
    fixture.client.lock(locked.handle, abi::LOCK_READ);
    let (resident, _) = make(5);
    fixture.bring_in(&resident);
    let before = (
        debugfs::placement(locked.object_id).backing,
        debugfs::placement(resident.object_id).frames,
        debugfs::stat("pages_let_go"),
    );
    clock::wait_until("everything that was touched goes", || {
        press();
        touched.iter().all(|(one, _)| !has_pages(one))
    });
    assert_eq!(debugfs::placement(locked.object_id).backing, before.0);
    assert_eq!(debugfs::placement(resident.object_id).frames, before.1);
    let let_go = debugfs::stat("pages_let_go") - before.2;
    assert_eq!(let_go, 4 * 256, "pages");
    for (seed, (_, mapping)) in (0..).zip(&touched) {
        assert!(
            mapping.read(0, MIB as usize) == pattern(seed, MIB),
            "allocation {seed} has changed"
        );
    }
}

/// Creates, touches, evicts and submits below a limit, so that its own allocations reclaim.
fn churn(seed: u64, until: i64) {
    let fixture = Fixture::new();
    let context = fixture.context();
    let mut random = crate::random::Random::new(seed);
    let mut round = 0;
    while round < 4 || clock::now_ns() < until {
        let size = MIB << random.below(3);
        let allocation = fixture.create(swappable(size, VISIBLE_SEGMENT | SYSTEM));
        let mapping = fixture.client.map(&allocation);
        mapping.write(0, &pattern(round, size));
        let other = fixture.create(swappable(size, VISIBLE_SEGMENT));
        let mut commands = Commands::new();
        commands.copy_bytes(other.at(0), allocation.at(0), size as u32);
        fixture.run(&context, &commands);
        fixture.bring_in(&allocation);
        fixture.push_out(&allocation);
        let copy = fixture.client.map(&other);
        assert!(
            copy.read(0, size as usize) == pattern(round, size),
            "round {round}"
        );
        assert!(
            mapping.read(0, size as usize) == pattern(round, size),
            "round {round}"
        );
        fixture.client.close(&[allocation.handle, other.handle]);
        round += 1;
    }
}

fn reclaim_that_comes_back_into_the_driver_harms_nobody() {
    let _swap = SwapDevice::new(64 * MIB);
    let group = Group::new("vidmm-churn", 32 * MIB);
    let until = clock::now_ns() + 4_000_000_000;
    let children: Vec<Child> = (0..2)
        .map(|seed| {
            Child::start(|_| {
                group.enter();
                churn(seed, until);
            })
        })
        .collect();
    while clock::now_ns() < until {
        press();
        std::fs::write("/proc/sys/vm/drop_caches", "2").expect("drop_caches");
    }
    for child in children {
        child.join();
    }
}
