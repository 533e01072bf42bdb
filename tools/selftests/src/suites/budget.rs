// SPDX-License-Identifier: GPL-2.0

//! Budgets: what each client may keep, what it keeps, and who is told.

use std::sync::atomic::{
    AtomicBool,
    Ordering, //
};

use crate::{
    abi::{
        self,
        Event, //
    },
    budget::{
        budget,
        evict,
        local,
        make_resident,
        marked_memory,
        reserve,
        try_budget,
        try_reserve,
        Status, //
    },
    client::{
        Allocation,
        Client, //
    },
    clock,
    commands::Commands,
    debugfs,
    descriptor::{
        set_waiting,
        EventFd, //
    },
    events::{
        bit,
        drain,
        is_readable,
        try_subscribe,
        wait_readable, //
    },
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
    memory::{
        Mapping,
        PAGE, //
    },
    process::{
        wait_for_the_end,
        Child, //
    },
    suite::{
        Suite,
        TABLES_OUTSIDE, //
    },
    trace::Recording, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "budget",
    parameters: Some(TABLES_OUTSIDE),
    cases: crate::cases! {
        "[RES-19]" single_client_has_all_marked_memory,
        "[RES-19]" second_active_client_lowers_the_budget,
        "[RES-19]" usage_follows_make_resident_and_evict,
        "[RES-19]" usage_follows_what_lists_bring_in,
        "[RES-19]" usage_counts_each_group_for_itself,
        "[RES-19]" budget_is_not_enforced_without_pressure,
        "[RES-19]" reservation_beyond_reservable_is_refused,
        "[RES-19]" reservation_is_not_taken_away,
        "[RES-19]" reserved_memory_of_the_adapter_lowers_the_budget,
        "[RES-19]" killed_client_leaves_its_budget_to_others,
        "[RES-19]" accounts_in_fdinfo_are_those_of_budget,
        "" every_refusal_of_budgets,
        "[RES-20]" client_that_is_exceeded_is_told_how_much_to_give_up,
        "[RES-20]" storm_of_changes_leaves_the_newest_records,
        "" status_page_says_what_budget_says,
        "" status_page_is_one_page_to_read,
        "" status_page_keeps_the_client,
        "" status_page_is_read_consistently_in_a_storm,
    },
};

const BOTH: u32 = VISIBLE_SEGMENT | HIDDEN_SEGMENT;

/// A client that keeps so many pieces of 4 MiB resident in the two memory segments.
fn keeper(pieces: usize) -> (Fixture, Vec<Allocation>) {
    let fixture = Fixture::new();
    let allocations: Vec<Allocation> = (0..pieces)
        .map(|_| fixture.create_resident(plain(4 * MIB, BOTH)))
        .collect();
    (fixture, allocations)
}

fn client_id(client: &Client) -> u64 {
    let record: abi::InfoClient = client.query(abi::QUERY_CLIENT, 0);
    record.client_id
}

fn single_client_has_all_marked_memory() {
    let fixture = Fixture::new();
    let marked = marked_memory(&fixture.client);
    assert_eq!(marked, 32 * MIB);
    let idle = local(&fixture.client);
    assert_eq!(
        (idle.budget, idle.usage, idle.bytes_to_trim),
        (marked, 0, 0)
    );
    let kept = fixture.create_resident(plain(4 * MIB, VISIBLE_SEGMENT));
    let active = local(&fixture.client);
    assert_eq!((active.budget, active.usage), (marked, kept.size));
    let system: abi::InfoSegment = fixture.client.query(abi::QUERY_SEGMENT, 0);
    let other = budget(&fixture.client, abi::GROUP_NON_LOCAL);
    assert_eq!((other.budget, other.usage), (system.commit_limit, 0));
}

fn second_active_client_lowers_the_budget() {
    let (first, _) = keeper(1);
    let before = local(&first.client);
    let second = Fixture::new();
    assert_eq!(local(&first.client), before, "an idle client changes it");
    let recording = Recording::start();
    let allocation = second.create_resident(plain(4 * MIB, BOTH));
    let events = recording.stop();
    let now = local(&first.client);
    assert!(now.budget < before.budget && now.generation > before.generation);
    assert!(now.budget >= 4 * MIB);
    assert!(now.budget + local(&second.client).budget <= before.budget);
    let words = [
        format!("process={}", client_id(&first.client)),
        "group=0".to_owned(),
        format!("budget={}", now.budget),
        format!("usage={}", now.usage),
    ];
    assert!(
        events.find(0, "budget", &words).is_some(),
        "{}",
        events.listing()
    );
    second.client.evict(second.device, &[allocation.handle]);
    assert_eq!(local(&first.client).budget, before.budget);
}

fn usage_follows_make_resident_and_evict() {
    let fixture = Fixture::new();
    let client = &fixture.client;
    let usage = || local(client).usage;
    let one = fixture.create(plain(3 * MIB, VISIBLE_SEGMENT));
    let other = fixture.create(plain(64 * KIB, HIDDEN_SEGMENT));
    assert_eq!(usage(), 0);
    debugfs::inject("hold worker");
    client.make_resident(&fixture.queue, &[one.handle, other.handle]);
    assert_eq!(usage(), 3 * MIB + 64 * KIB);
    debugfs::inject("release worker");
    client.bring_in(&fixture.queue, &[one.handle]);
    assert_eq!(usage(), 3 * MIB + 64 * KIB);
    client.evict(fixture.device, &[one.handle]);
    assert_eq!(usage(), 3 * MIB + 64 * KIB);
    client.evict(fixture.device, &[one.handle]);
    assert_eq!(usage(), 64 * KIB);
    evict(
        client,
        fixture.device,
        &[other.handle],
        abi::EVICT_ONLY_IF_NEEDED,
    );
    assert_eq!(usage(), 0);
    client.bring_in(&fixture.queue, &[one.handle, other.handle]);
    debugfs::inject(&format!("evict {}", one.object_id));
    assert_eq!(usage(), 3 * MIB + 64 * KIB, "a reference is a claim");
    client.close(&[one.handle]);
    assert_eq!(usage(), 64 * KIB);
}

fn usage_follows_what_lists_bring_in() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create(physical(2 * MIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 1);
    fixture.run(&context, &commands);
    assert_eq!(local(&fixture.client).usage, 2 * MIB);
    debugfs::inject(&format!("evict {}", allocation.object_id));
    assert_eq!(local(&fixture.client).usage, 0);
    fixture.run(&context, &commands);
    assert_eq!(local(&fixture.client).usage, 2 * MIB);
    fixture.client.close(&[allocation.handle]);
    assert_eq!(local(&fixture.client).usage, 0);
}

fn usage_counts_each_group_for_itself() {
    let fixture = Fixture::new();
    let groups = || {
        [abi::GROUP_LOCAL, abi::GROUP_NON_LOCAL].map(|group| budget(&fixture.client, group).usage)
    };
    let loose = fixture.create_resident(plain(64 * KIB, SYSTEM));
    let ranged = fixture.create_resident(physical(128 * KIB, SYSTEM));
    assert_eq!(groups(), [0, 192 * KIB]);
    let either = fixture.create_resident(plain(64 * KIB, VISIBLE_SEGMENT | SYSTEM));
    assert_eq!(groups(), [64 * KIB, 192 * KIB]);
    debugfs::inject(&format!("move {} 0", either.object_id));
    assert_eq!(groups(), [0, 256 * KIB]);
    fixture.client.evict(
        fixture.device,
        &[loose.handle, ranged.handle, either.handle],
    );
    assert_eq!(groups(), [0, 0]);
}

fn budget_is_not_enforced_without_pressure() {
    let other = Fixture::new();
    reserve(&other.client, 16 * MIB);
    let (first, kept) = keeper(5);
    let extra = first.create(plain(4 * MIB, BOTH));
    assert_eq!(local(&first.client).budget, 16 * MIB);
    let answer = make_resident(&first.client, &first.queue, &[extra.handle], 0);
    let answer = answer.expect("there is room");
    assert_eq!(answer.bytes_to_trim, 8 * MIB);
    first.client.wait(first.queue.fence, answer.fence_value);
    for allocation in kept.iter().chain([&extra]) {
        let state = first.client.state_of(allocation.handle);
        assert_eq!(state.residency, abi::ALLOC_RESIDENCY_MEMORY);
    }
    let handles = [kept[0].handle];
    assert_eq!(evict(&first.client, first.device, &handles, 0), 4 * MIB);
    let flags = abi::EVICT_ONLY_IF_NEEDED;
    let handles = [kept[1].handle];
    assert_eq!(evict(&first.client, first.device, &handles, flags), 0);
}

fn reservation_beyond_reservable_is_refused() {
    let (one, two) = (Client::open(), Client::open());
    let reservable = local(&one).reservable;
    assert!(reservable > 0 && reservable < marked_memory(&one));
    assert_eq!(
        try_reserve(&one, abi::GROUP_LOCAL, reservable + 1),
        Err(libc::ENOSPC)
    );
    assert_eq!(local(&one).reservation, 0);
    reserve(&one, reservable - MIB);
    assert_eq!(local(&two).reservable, MIB);
    assert_eq!(
        try_reserve(&two, abi::GROUP_LOCAL, 2 * MIB),
        Err(libc::ENOSPC)
    );
    reserve(&two, MIB);
    let full = local(&one);
    assert_eq!((full.reservation, full.reservable), (reservable - MIB, 0));
    reserve(&one, MIB);
    assert_eq!(local(&two).reservable, reservable - 2 * MIB);
    drop(one);
    clock::wait_until("its reservation ends", || {
        local(&two).reservable == reservable - MIB
    });
    assert_eq!(
        try_reserve(&two, abi::GROUP_LOCAL, u64::MAX),
        Err(libc::ENOSPC)
    );
    let system = budget(&two, abi::GROUP_NON_LOCAL);
    assert_eq!(
        try_reserve(&two, abi::GROUP_NON_LOCAL, system.reservable),
        Ok(())
    );
    assert_eq!(
        budget(&two, abi::GROUP_NON_LOCAL).reservation,
        system.reservable
    );
}

fn reservation_is_not_taken_away() {
    let careful = Fixture::new();
    reserve(&careful.client, 12 * MIB);
    let hogs = [keeper(8), keeper(8)];
    let kept = local(&careful.client);
    assert!(kept.budget >= 12 * MIB, "{kept:?}");
    let sum: u64 = hogs.iter().map(|(hog, _)| local(&hog.client).budget).sum();
    assert!(sum + kept.budget <= marked_memory(&careful.client));
    let set: Vec<u32> = (0..3)
        .map(|_| careful.create(plain(4 * MIB, BOTH)).handle)
        .collect();
    let answer = make_resident(&careful.client, &careful.queue, &set, 0).expect("it is reserved");
    assert_eq!(answer.bytes_to_trim, 0);
    careful.client.wait(careful.queue.fence, answer.fence_value);
    assert_eq!(local(&careful.client).bytes_to_trim, 0);
}

fn reserved_memory_of_the_adapter_lowers_the_budget() {
    let client = Client::open();
    let before = local(&client).budget;
    debugfs::inject("reserve 1 4194304");
    assert_eq!(local(&client).budget, before - 4 * MIB);
    debugfs::inject("reserve 1 0");
    assert_eq!(local(&client).budget, before);
}

fn killed_client_leaves_its_budget_to_others() {
    let (fixture, _) = keeper(1);
    let before = local(&fixture.client).budget;
    let mut child = Child::start(|says| {
        let (other, _) = keeper(2);
        reserve(&other.client, 8 * MIB);
        says.line("kept");
        wait_for_the_end();
    });
    assert_eq!(child.line(), "kept");
    assert!(local(&fixture.client).budget < before);
    child.kill();
    clock::wait_until("its budget comes back", || {
        local(&fixture.client).budget == before
    });
}

fn accounts_in_fdinfo_are_those_of_budget() {
    let other = Client::open();
    reserve(&other, 16 * MIB);
    let (fixture, _) = keeper(5);
    let text = fixture.client.fdinfo().expect("fdinfo");
    let record = local(&fixture.client);
    for (key, bytes) in [
        ("vidmm-budget-local", record.budget),
        ("vidmm-usage-local", record.usage),
        ("vidmm-trim-local", record.bytes_to_trim),
        ("vidmm-usage-nonlocal", 0),
        ("vidmm-trim-nonlocal", 0),
    ] {
        let line = format!("{key}:\t{} KiB", bytes / KIB);
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    assert_eq!(record.bytes_to_trim, 4 * MIB);
}

fn every_refusal_of_budgets() {
    let client = Client::open();
    for group in [2, u32::MAX] {
        assert_eq!(try_budget(&client, group), Err(libc::EINVAL));
        assert_eq!(try_reserve(&client, group, 0), Err(libc::EINVAL));
    }
}

fn client_that_is_exceeded_is_told_how_much_to_give_up() {
    let (first, kept) = keeper(8);
    let counter = EventFd::new();
    set_waiting(first.client.file(), false);
    let mask = bit(abi::EVENT_BUDGET) | bit(abi::EVENT_TRIM);
    assert_eq!(
        try_subscribe(&first.client, mask, counter.descriptor()),
        Ok(())
    );
    assert!(!is_readable(&first.client));
    let second = Fixture::new();
    let wanted = second.create(plain(4 * MIB, BOTH));
    let recording = Recording::start();
    second.client.bring_in(&second.queue, &[wanted.handle]);
    wait_readable(&first.client);
    let events = recording.stop();
    let records = drain(&first.client);
    assert_eq!(counter.count() as usize, records.len());
    let account = local(&first.client);
    let of_kind = |kind: u32| -> Event {
        let found = records.iter().find(|record| record.r#type == kind);
        *found.unwrap_or_else(|| panic!("no record of type {kind}: {records:?}"))
    };
    let lowered = of_kind(abi::EVENT_BUDGET);
    assert_eq!(
        (lowered.object, lowered.a),
        (abi::GROUP_LOCAL, account.budget)
    );
    let trim = of_kind(abi::EVENT_TRIM);
    assert_eq!((trim.object, trim.b), (abi::GROUP_LOCAL, 32 * MIB));
    assert_eq!(trim.a, trim.b - account.budget);
    assert_eq!((trim.a, account.bytes_to_trim), (4 * MIB, 4 * MIB));
    let words = [
        format!("process={}", client_id(&first.client)),
        "flags=0x4".to_owned(),
        format!("bytes={}", trim.a),
    ];
    assert!(
        events.find(0, "trim", &words).is_some(),
        "{}",
        events.listing()
    );
    let left = evict(&first.client, first.device, &[kept[0].handle], 0);
    assert_eq!(left, 0);
    let account = local(&first.client);
    assert_eq!((account.usage, account.bytes_to_trim), (28 * MIB, 0));
}

fn storm_of_changes_leaves_the_newest_records() {
    let (first, _) = keeper(8);
    let counter = EventFd::new();
    set_waiting(first.client.file(), false);
    let mask = bit(abi::EVENT_BUDGET) | bit(abi::EVENT_TRIM);
    assert_eq!(
        try_subscribe(&first.client, mask, counter.descriptor()),
        Ok(())
    );
    let second = Client::open();
    for number in 0..100_000_u64 {
        reserve(&second, (number % 1024 + 1) * 4 * KIB);
    }
    let account = local(&first.client);
    let records = drain(&first.client);
    assert_eq!(counter.count() as usize, records.len());
    assert_eq!(records.len(), 2, "{records:?}");
    for record in records {
        match record.r#type {
            abi::EVENT_BUDGET => assert_eq!(record.a, account.budget),
            abi::EVENT_TRIM => assert_eq!(record.a, account.bytes_to_trim),
            _ => panic!("{record:?}"),
        }
    }
}

fn status_page_says_what_budget_says() {
    let (fixture, kept) = keeper(2);
    let status = Status::map(&fixture.client);
    let other = Client::open();
    let assert_same = |what: &str| {
        let page = status.read();
        let record = local(&fixture.client);
        let system = budget(&fixture.client, abi::GROUP_NON_LOCAL);
        assert_eq!(
            (page.version, page.state, page.reset_count),
            (abi::STATUS_PAGE_VERSION, abi::ADAPTER_STATE_RUNNING, 0)
        );
        assert_eq!(
            (page.budget_local, page.usage_local, page.trim_local),
            (record.budget, record.usage, record.bytes_to_trim),
            "{what}"
        );
        assert_eq!(
            (
                page.budget_nonlocal,
                page.usage_nonlocal,
                page.trim_nonlocal
            ),
            (system.budget, system.usage, system.bytes_to_trim),
            "{what}"
        );
        assert_eq!(page.budget_generation, record.generation, "{what}");
    };
    assert_same("mapped");
    reserve(&other, 16 * MIB);
    assert_same("another client reserves");
    let more: Vec<Allocation> = (0..3)
        .map(|_| fixture.create_resident(plain(4 * MIB, BOTH)))
        .collect();
    assert_same("beyond the budget");
    assert_eq!(status.read().trim_local, 4 * MIB);
    fixture.create_resident(plain(4 * KIB, SYSTEM));
    assert_same("system memory");
    evict(&fixture.client, fixture.device, &[kept[0].handle], 0);
    fixture.client.close(&[more[0].handle]);
    assert_same("after EVICT and CLOSE");
}

fn status_page_is_one_page_to_read() {
    let client = Client::open();
    let offset = abi::MMAP_OFFSET_STATUS_PAGE;
    let attempt = |length, protection, flags| {
        Mapping::try_new(client.file(), offset, length, protection, flags).err()
    };
    let write = libc::PROT_READ | libc::PROT_WRITE;
    assert_eq!(attempt(PAGE, write, libc::MAP_SHARED), Some(libc::EACCES));
    assert_eq!(
        attempt(PAGE, libc::PROT_READ, libc::MAP_PRIVATE),
        Some(libc::EINVAL)
    );
    assert_eq!(
        attempt(2 * PAGE, libc::PROT_READ, libc::MAP_SHARED),
        Some(libc::EINVAL)
    );
    let execute = libc::PROT_READ | libc::PROT_EXEC;
    assert_eq!(attempt(PAGE, execute, libc::MAP_SHARED), Some(libc::EPERM));
    let status = Status::map(&client);
    assert_eq!(status.mapping().protect(0, PAGE, write), Err(libc::EACCES));
    assert!(status.mapping().is_filled(72, PAGE - 72, 0));
    let again = Status::map(&client);
    assert_eq!(again.read(), status.read());
}

fn status_page_keeps_the_client() {
    let client = Client::open();
    let status = Status::map(&client);
    let before = status.read();
    // A mapping keeps the file open.
    drop(client);
    let other = Client::open();
    reserve(&other, MIB);
    assert_eq!(status.read().budget_local, before.budget_local - MIB);
}

fn status_page_is_read_consistently_in_a_storm() {
    let (fixture, _) = keeper(5);
    let status = Status::map(&fixture.client);
    let other = Client::open();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..20_000_u64 {
                reserve(&other, (number % 4096 + 1) * 4 * KIB);
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            let page = status.read();
            let excess = page.usage_local.saturating_sub(page.budget_local);
            assert_eq!(page.trim_local, excess, "{page:?}");
        }
    });
}
