// SPDX-License-Identifier: GPL-2.0

//! GPU virtual addresses: what can be mapped where, and what engines then meet.
//!
//! Size: one test for each case of four calls; they share how an address is looked at.

use crate::{
    abi::{
        self,
        VaMap,
        VaReserve, //
    },
    addresses::{
        address,
        Ground, //
    },
    call::Errno,
    client::{
        Allocation,
        Client, //
    },
    commands::Commands,
    debugfs,
    fixture::{
        plain,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        MIB,
        PAGING_NODE,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    suite::{
        Case,
        Suite, //
    },
    trace::{
        Events,
        Recording, //
    },
};

/// The suite with two levels.
pub const SUITE: Suite = Suite {
    name: "address_space",
    parameters: Some("profile=DISC"),
    cases: CASES,
};

/// The suite with four levels.
pub const FOUR_SUITE: Suite = Suite {
    name: "address_space_four",
    parameters: Some("profile=DISC-4L"),
    cases: CASES,
};

/// The suite of what an adapter without an MMU answers.
pub const PHYSICAL_SUITE: Suite = Suite {
    name: "address_space_physical",
    parameters: Some("profile=PHYS"),
    cases: crate::cases! {
        "[VA-14]" calls_are_refused_without_an_mmu,
    },
};

const CASES: &[Case] = crate::cases! {
    "[VA-6]" tables_of_a_client_are_made_when_it_appears,
    "[VA-7]" tables_are_initialised_with_the_first_residency_and_once,
    "[VA-10]" same_address_in_two_clients_is_two_places,
    "[VA-12]" root_is_told_before_the_first_commands,
    "[VA-14]" places_obey_their_limits,
    "[VA-14]" each_violation_is_refused,
    "[VA-14]" mapping_of_absent_memory_works_when_it_comes,
    "[VA-15]" fixed_base_replaces_inside_one_range_only,
    "[VA-15]" part_left_over_stays_mapped,
    "[VA-17]" reservations_are_aligned_and_do_not_overlap,
    "[VA-18]" freed_map_never_appears,
    "[VA-18]" each_part_is_freed_as_it_was_made,
    "[VA-19] [VA-20]" mappings_follow_a_hundred_moves,
    "[VA-19]" closing_frees_all_mappings,
};

/// A client with a queue on which nothing is held up.
fn map(ground: &Ground, argument: VaMap) -> Result<u64, Errno> {
    ground.map_as(argument)
}

/// An argument that maps `bytes` of an allocation at `base`, for reading and writing.
fn at(ground: &Ground, allocation: &Allocation, base: u64, bytes: u64) -> VaMap {
    VaMap {
        queue: ground.fixture.queue.handle,
        alloc: allocation.handle,
        protection: abi::VA_WRITE,
        base,
        size: bytes,
        ..Default::default()
    }
}

fn try_reserve(ground: &Ground, kind: u32, base: u64, size: u64) -> Result<u64, Errno> {
    let argument = VaReserve {
        queue: ground.fixture.queue.handle,
        kind,
        base,
        size,
        ..Default::default()
    };
    let (va, answer) = ground.fixture.client.try_reserve_addresses(argument)?;
    ground.fixture.client.settle(&ground.fixture.queue, answer);
    Ok(va)
}

/// Reads eight bytes at each address through the engine.
fn read(ground: &Ground, addresses: &[u64]) -> Vec<u64> {
    let (result, va) = ground.create(plain(4 * KIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    for (from, to) in addresses.iter().zip((va..).step_by(8)) {
        commands.load_register(1, address(*from));
        commands.store_register(1, address(to));
    }
    ground.run(&commands);
    let mapping = ground.fixture.client.map(&result);
    let values = (0..addresses.len()).map(|index| mapping.read64(index * 8));
    let values = values.collect();
    // A mapping of the CPU would keep the storage.
    drop(mapping);
    ground.fixture.client.close_and_wait(&[result.handle]);
    values
}

/// Reads an address in a device of its own, which does not survive it; returns the kind of the fault.
fn fault(ground: &Ground, from: u64) -> u32 {
    let client = ground.fixture.client.try_clone().expect("a clone");
    let device = client.create_device();
    let queue = client.create_queue(device);
    let probe = Ground::on(
        Fixture {
            client,
            device,
            queue,
        },
        VISIBLE_SEGMENT,
    );
    let mut commands = Commands::new();
    commands.load_register(1, address(from));
    let state = probe.run_into_fault(&commands);
    assert_eq!(state.fault_va, from);
    probe.fixture.client.close(&[probe.fixture.device]);
    state.fault_flags & !abi::DEVICE_STATE_FAULT_READ
}

const NOT_MAPPED: u32 = abi::DEVICE_STATE_FAULT_NOT_MAPPED;
const NOT_RESIDENT: u32 = abi::DEVICE_STATE_FAULT_NOT_RESIDENT;

/// Makes an allocation of pages that begin with `seed` and their number.
fn numbered(ground: &Ground, seed: u64, pages: u64, segments: u32) -> Allocation {
    let allocation = ground
        .fixture
        .create_resident(plain(pages * 4 * KIB, segments));
    let mapping = ground.fixture.client.map(&allocation);
    for page in 0..pages {
        mapping.write64((page * 4 * KIB) as usize, seed * 1000 + page);
    }
    allocation
}

fn tables_of_a_client_are_made_when_it_appears() {
    let recording = Recording::start();
    let client = Client::open();
    let events = recording.stop();
    let at = events.find(0, "backend_call", &["name=create_process".to_owned()]);
    let made = events.find(
        at.expect("a process"),
        "alloc",
        &["action=create".to_owned()],
    );
    assert!(made.is_some(), "{}", events.listing());
    events.assert_none("paging_op", &["op=UpdatePageTable".to_owned()]);
    drop(client);
}

fn tables_are_initialised_with_the_first_residency_and_once() {
    let fixture = Fixture::new();
    let first = fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    let argument = VaMap {
        queue: fixture.queue.handle,
        alloc: first.handle,
        size: first.size,
        ..Default::default()
    };
    let recording = Recording::start();
    let (_, answer) = fixture.client.try_map_addresses(argument).expect("VA_MAP");
    fixture.client.settle(&fixture.queue, answer);
    let fresh = |events: &Events| {
        let updates = events.named("paging_op").filter(|event| {
            event.word("op") == "UpdatePageTable" && event.number("flags") & 2 != 0
        });
        updates.count()
    };
    assert_eq!(fresh(&recording.so_far()), 0);
    fixture.bring_in(&first);
    let events = recording.stop();
    assert!(fresh(&events) >= 2, "{}", events.listing());
    let step = events.find(
        0,
        "resident_step",
        &["where=worker".to_owned(), "step=3".to_owned()],
    );
    let last = events.0.iter().rposition(|event| {
        event.name == "paging_op"
            && event.word("op") == "UpdatePageTable"
            && event.number("flags") & 2 != 0
    });
    assert!(last < step, "{}", events.listing());
    let second = fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    let argument = VaMap {
        alloc: second.handle,
        ..argument
    };
    let recording = Recording::start();
    let (_, answer) = fixture.client.try_map_addresses(argument).expect("VA_MAP");
    fixture.client.settle(&fixture.queue, answer);
    fixture.bring_in(&second);
    assert_eq!(fresh(&recording.stop()), 0);
}

fn same_address_in_two_clients_is_two_places() {
    let grounds = [Ground::new(VISIBLE_SEGMENT), Ground::new(VISIBLE_SEGMENT)];
    let base = 0x40_0000;
    for (ground, seed) in grounds.iter().zip([1, 2]) {
        let data = numbered(ground, seed, 1, VISIBLE_SEGMENT);
        assert_eq!(map(ground, at(ground, &data, base, data.size)), Ok(base));
    }
    assert_eq!(read(&grounds[0], &[base]), [1000]);
    assert_eq!(read(&grounds[1], &[base]), [2000]);
}

fn root_is_told_before_the_first_commands() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let recording = Recording::start();
    ground.run(Commands::new().nop(2));
    recording.stop().assert_order(&[
        "backend_call name=set_root".to_owned(),
        "node_begin kind=dma".to_owned(),
    ]);
}

fn places_obey_their_limits() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let data = ground.fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    let within = |min, max, size| {
        let argument = VaMap {
            min,
            max,
            ..at(&ground, &data, 0, size)
        };
        map(&ground, argument)
    };
    let (low, high) = (0x123_4000, 0x123_a000);
    for page in 0..3 {
        let va = within(low, high, 8 * KIB).expect("a place");
        assert!(va >= low && va + 8 * KIB <= high, "{va:#x}");
        assert_eq!((va - low) % (4 * KIB), 0, "place {page}");
    }
    assert_eq!(within(low, high, 4 * KIB), Err(libc::ENOSPC));
    assert_eq!(within(low, low + 0x4000, 64 * KIB), Err(libc::ENOSPC));
    let anywhere = within(0, 0, 64 * KIB).expect("a place");
    let info: abi::InfoAdapter = ground.fixture.client.query(abi::QUERY_ADAPTER, 0);
    assert!(anywhere >= info.va_start && anywhere + 64 * KIB <= info.va_end);
}

fn each_violation_is_refused() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let data = ground.fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    let info: abi::InfoAdapter = ground.fixture.client.query(abi::QUERY_ADAPTER, 0);
    let good = at(&ground, &data, 0x40_0000, 64 * KIB);
    let refuse = |argument: VaMap, errno: Errno, what: &str| {
        assert_eq!(map(&ground, argument), Err(errno), "{what}");
    };
    let other = ground.fixture.client.create_device();
    let foreign = ground
        .fixture
        .client
        .create(other, plain(64 * KIB, VISIBLE_SEGMENT));
    let inval = libc::EINVAL;
    refuse(
        VaMap {
            base: 0x40_0800,
            ..good
        },
        inval,
        "misaligned base",
    );
    refuse(
        VaMap {
            size: 0x800,
            ..good
        },
        inval,
        "misaligned size",
    );
    refuse(VaMap { size: 0, ..good }, inval, "no size");
    refuse(
        VaMap {
            alloc_offset: 8,
            size: 4096,
            ..good
        },
        inval,
        "misaligned offset",
    );
    refuse(
        VaMap {
            alloc_offset: 4096,
            ..good
        },
        inval,
        "beyond the allocation",
    );
    refuse(
        VaMap {
            alloc_offset: !0xfff,
            ..good
        },
        inval,
        "offset and size overflow",
    );
    refuse(VaMap { base: 4096, ..good }, inval, "below the space");
    refuse(
        VaMap {
            base: info.va_end - 4096,
            ..good
        },
        inval,
        "beyond the space",
    );
    refuse(
        VaMap {
            base: !0xfff,
            ..good
        },
        inval,
        "address and size overflow",
    );
    refuse(VaMap { min: 4096, ..good }, inval, "base and limits");
    refuse(
        VaMap {
            base: 0,
            min: 8192,
            max: 4096,
            ..good
        },
        inval,
        "limits crossed",
    );
    refuse(
        VaMap {
            base: 0,
            max: info.va_end + 4096,
            ..good
        },
        inval,
        "limit beyond the space",
    );
    refuse(
        VaMap {
            base: 0,
            min: 100,
            ..good
        },
        inval,
        "misaligned limit",
    );
    refuse(
        VaMap {
            protection: 4,
            ..good
        },
        libc::EOPNOTSUPP,
        "unknown right",
    );
    refuse(
        VaMap {
            driver_protection: 16,
            ..good
        },
        libc::EOPNOTSUPP,
        "unknown driver bits",
    );
    refuse(
        VaMap {
            alloc: foreign.handle,
            ..good
        },
        libc::EXDEV,
        "another device",
    );
    refuse(VaMap { alloc: 77, ..good }, libc::ENOENT, "no allocation");
    refuse(VaMap { pad: 1, ..good }, inval, "padding");
    let mut read_only = plain(64 * KIB, VISIBLE_SEGMENT);
    read_only.flags |= abi::ALLOC_READ_ONLY;
    let read_only = ground.fixture.create(read_only);
    refuse(
        VaMap {
            alloc: read_only.handle,
            ..good
        },
        libc::EACCES,
        "writing what is to be read",
    );
    assert_eq!(
        ground.fixture.client.query_addresses(0x40_0000, MIB).len(),
        0
    );
    assert_eq!(map(&ground, good), Ok(good.base));
}

fn mapping_of_absent_memory_works_when_it_comes() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let data = numbered(&ground, 5, 16, VISIBLE_SEGMENT);
    ground.fixture.push_out(&data);
    let va = ground.map(&data, 0);
    let entry = ground.fixture.client.query_addresses(va, data.size)[0];
    assert_eq!(
        (entry.va, entry.size, entry.alloc),
        (va, data.size, data.handle)
    );
    assert_eq!(entry.flags & abi::VA_ENTRY_VALID, 0);
    assert_eq!(entry.segment, abi::SEGMENT_ID_NONE);
    assert_eq!(fault(&ground, va + 0x3000), NOT_RESIDENT);
    ground.fixture.bring_in(&data);
    assert_eq!(read(&ground, &[va + 0x3000]), [5003]);
    let entry = ground.fixture.client.query_addresses(va, data.size)[0];
    assert_eq!(
        (entry.flags & abi::VA_ENTRY_VALID, entry.segment),
        (abi::VA_ENTRY_VALID, 1)
    );
}

fn fixed_base_replaces_inside_one_range_only() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let data = numbered(&ground, 1, 64, VISIBLE_SEGMENT);
    let fixed = |base: u64, bytes: u64| map(&ground, at(&ground, &data, base, bytes));
    let base = 0x40_0000;
    // One range made by VA_MAP, and another one right behind it.
    assert_eq!(fixed(base, 64 * KIB), Ok(base));
    assert_eq!(fixed(base + 64 * KIB, 64 * KIB), Ok(base + 64 * KIB));
    assert_eq!(fixed(base + 0x8000, 0x8000), Ok(base + 0x8000));
    assert_eq!(fixed(base, 64 * KIB), Ok(base));
    assert_eq!(fixed(base + 0x8000, 64 * KIB), Err(libc::EEXIST));
    assert_eq!(fixed(base - 4096, 8192), Err(libc::EEXIST));
    // A NO_ACCESS reservation, with free addresses between its mappings.
    let quiet = 0x80_0000;
    assert_eq!(
        try_reserve(&ground, abi::VA_RESERVE_NO_ACCESS, quiet, 256 * KIB),
        Ok(quiet)
    );
    assert_eq!(fixed(quiet + 0x1000, 0x1000), Ok(quiet + 0x1000));
    assert_eq!(fixed(quiet + 0x5000, 0x1000), Ok(quiet + 0x5000));
    assert_eq!(fixed(quiet, 64 * KIB), Ok(quiet));
    assert_eq!(fixed(quiet + 0x3_f000, 0x2000), Err(libc::EEXIST));
    assert_eq!(
        read(&ground, &[quiet + 0x1000, quiet + 0xf000]),
        [1001, 1015]
    );
    // A ZERO reservation.
    let zero = 0xc0_0000;
    assert_eq!(
        try_reserve(&ground, abi::VA_RESERVE_ZERO, zero, 64 * KIB),
        Ok(zero)
    );
    assert_eq!(fixed(zero, 4096), Err(libc::EINVAL));
    assert_eq!(fixed(zero - 4096, 8192), Err(libc::EEXIST));
}

fn part_left_over_stays_mapped() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let old = numbered(&ground, 1, 16, VISIBLE_SEGMENT);
    let new = numbered(&ground, 2, 16, HIDDEN_SEGMENT);
    let base = 0x40_0000;
    assert_eq!(map(&ground, at(&ground, &old, base, old.size)), Ok(base));
    let middle = VaMap {
        alloc_offset: 0x2000,
        ..at(&ground, &new, base + 0x4000, 0x8000)
    };
    assert_eq!(map(&ground, middle), Ok(base + 0x4000));
    let pages: Vec<u64> = (0..16).map(|page| base + page * 4096).collect();
    let expected: Vec<u64> = (0..16)
        .map(|page| match page {
            4..12 => 2000 + page - 2,
            _ => 1000 + page,
        })
        .collect();
    assert_eq!(read(&ground, &pages), expected);
}

fn reservations_are_aligned_and_do_not_overlap() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let quiet = abi::VA_RESERVE_NO_ACCESS;
    let base = 0x100_0000;
    assert_eq!(try_reserve(&ground, quiet, base, 128 * KIB), Ok(base));
    for (start, size) in [
        (base, 64 * KIB),
        (base - 64 * KIB, 128 * KIB),
        (base + 64 * KIB, MIB),
    ] {
        assert_eq!(try_reserve(&ground, quiet, start, size), Err(libc::EEXIST));
    }
    for (start, size) in [
        (base + MIB + 4096, 64 * KIB),
        (base + MIB, 4096),
        (base + MIB, 0),
    ] {
        assert_eq!(try_reserve(&ground, quiet, start, size), Err(libc::EINVAL));
    }
    assert_eq!(
        try_reserve(&ground, 2, base + MIB, 64 * KIB),
        Err(libc::EOPNOTSUPP)
    );
    let data = ground.fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    let mapped = map(&ground, at(&ground, &data, base + MIB, 64 * KIB));
    assert_eq!(mapped, Ok(base + MIB));
    assert_eq!(
        try_reserve(&ground, quiet, base + MIB, 64 * KIB),
        Err(libc::EEXIST)
    );
    let argument = VaReserve {
        queue: ground.fixture.queue.handle,
        min: base,
        max: base + 8 * MIB,
        size: 64 * KIB,
        align: MIB,
        ..Default::default()
    };
    let (va, _) = ground
        .fixture
        .client
        .try_reserve_addresses(argument)
        .expect("a place");
    assert_eq!(va, base + 2 * MIB);
    assert_eq!(fault(&ground, base + 64 * KIB), NOT_MAPPED);
    let entries = ground.fixture.client.query_addresses(base, 128 * KIB);
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (entries[0].size, entries[0].flags),
        (128 * KIB, abi::VA_ENTRY_RESERVED)
    );
}

fn freed_map_never_appears() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let first = numbered(&ground, 1, 4, VISIBLE_SEGMENT);
    let second = numbered(&ground, 2, 4, VISIBLE_SEGMENT);
    let client = &ground.fixture.client;
    let base = 0x40_0000;
    debugfs::inject("hold worker");
    debugfs::inject(&format!("pause {PAGING_NODE}"));
    let recording = Recording::start();
    let (_, early) = client
        .try_map_addresses(at(&ground, &first, base, 0x4000))
        .expect("VA_MAP");
    client.free_addresses(base, 0x4000);
    let (_, late) = client
        .try_map_addresses(at(&ground, &second, base, 0x4000))
        .expect("VA_MAP");
    debugfs::inject("release worker");
    debugfs::inject(&format!("resume {PAGING_NODE}"));
    client.settle(&ground.fixture.queue, early);
    client.settle(&ground.fixture.queue, late);
    let events = recording.stop();
    let words = [
        "op=UpdatePageTable".to_owned(),
        format!("alloc={}", first.object_id),
    ];
    events.assert_none("paging_op", &words);
    assert_eq!(read(&ground, &[base, base + 0x3000]), [2000, 2003]);
}

fn each_part_is_freed_as_it_was_made() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let data = numbered(&ground, 1, 16, VISIBLE_SEGMENT);
    let client = &ground.fixture.client;
    let base = 0x40_0000;
    assert_eq!(map(&ground, at(&ground, &data, base, 64 * KIB)), Ok(base));
    assert_eq!(
        client.try_free_addresses(base + 0x800, 4096),
        Err(libc::EINVAL)
    );
    assert_eq!(
        client.try_free_addresses(base - 4096, 8192),
        Err(libc::EINVAL)
    );
    assert_eq!(client.try_free_addresses(base, 0), Err(libc::EINVAL));
    client.free_addresses(base + 0x4000, 0x4000);
    assert_eq!(client.try_free_addresses(base, 64 * KIB), Err(libc::EINVAL));
    assert_eq!(read(&ground, &[base + 0x3000, base + 0x8000]), [1003, 1008]);
    assert_eq!(fault(&ground, base + 0x4000), NOT_MAPPED);
    // Inside of a reservation the addresses stay reserved.
    let quiet = 0x80_0000;
    assert_eq!(
        try_reserve(&ground, abi::VA_RESERVE_NO_ACCESS, quiet, 64 * KIB),
        Ok(quiet)
    );
    assert_eq!(map(&ground, at(&ground, &data, quiet, 64 * KIB)), Ok(quiet));
    client.free_addresses(quiet + 0x1000, 0x1000);
    assert_eq!(
        client.try_free_addresses(quiet + 0x1000, 0x1000),
        Err(libc::EINVAL)
    );
    assert_eq!(try_reserve(&ground, 0, quiet, 64 * KIB), Err(libc::EEXIST));
    // The whole range is the reservation.
    client.free_addresses(quiet, 64 * KIB);
    assert_eq!(fault(&ground, quiet), NOT_MAPPED);
    assert_eq!(try_reserve(&ground, 0, quiet, 64 * KIB), Ok(quiet));
    let zero = 0xc0_0000;
    assert_eq!(
        try_reserve(&ground, abi::VA_RESERVE_ZERO, zero, 128 * KIB),
        Ok(zero)
    );
    assert_eq!(client.try_free_addresses(zero, 64 * KIB), Err(libc::EINVAL));
    client.free_addresses(zero, 128 * KIB);
}

fn mappings_follow_a_hundred_moves() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let data = numbered(&ground, 7, 16, VISIBLE_SEGMENT | HIDDEN_SEGMENT | SYSTEM);
    let (one, two) = (ground.map(&data, 0), ground.map(&data, abi::VA_WRITE));
    let mut random = crate::random::Random::new(19);
    for round in 0..100 {
        let to = *random.pick(&[0, 1, 1, 2]);
        debugfs::inject(&format!("move {} {to}", data.object_id));
        let page = random.below(16);
        let values = read(&ground, &[one + page * 4096, two + page * 4096]);
        assert_eq!(values, [7000 + page; 2], "round {round}, to {to}");
    }
}

fn closing_frees_all_mappings() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let data = numbered(&ground, 7, 16, VISIBLE_SEGMENT);
    let (one, two) = (ground.map(&data, 0), ground.map(&data, 0));
    let other = numbered(&ground, 8, 16, VISIBLE_SEGMENT);
    ground.fixture.client.close(&[data.handle]);
    assert_eq!(
        ground
            .fixture
            .client
            .query_addresses(one, two + 64 * KIB - one)
            .len(),
        0
    );
    // What looks there takes addresses of its own, so these are kept free of it.
    for va in [one, two] {
        let quiet = abi::VA_RESERVE_NO_ACCESS;
        assert_eq!(try_reserve(&ground, quiet, va, 64 * KIB), Ok(va));
    }
    assert_eq!(fault(&ground, one), NOT_MAPPED);
    assert_eq!(fault(&ground, two + 0xf000), NOT_MAPPED);
    for va in [one, two] {
        ground.fixture.client.free_addresses(va, 64 * KIB);
        assert_eq!(map(&ground, at(&ground, &other, va, 64 * KIB)), Ok(va));
    }
    assert_eq!(read(&ground, &[one, two + 0xf000]), [8000, 8015]);
}

fn calls_are_refused_without_an_mmu() {
    let fixture = Fixture::new();
    let data = fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    let client = &fixture.client;
    let refused = Err(libc::EOPNOTSUPP);
    let map = VaMap {
        queue: fixture.queue.handle,
        alloc: data.handle,
        size: data.size,
        ..Default::default()
    };
    assert_eq!(client.try_map_addresses(map).map(|_| ()), refused);
    let reserve = VaReserve {
        queue: fixture.queue.handle,
        size: 64 * KIB,
        ..Default::default()
    };
    assert_eq!(client.try_reserve_addresses(reserve).map(|_| ()), refused);
    assert_eq!(client.try_free_addresses(0x1_0000, 4096), refused);
    let mut query = abi::VaQuery {
        size: 4096,
        ..Default::default()
    };
    assert_eq!(client.call(abi::IOCTL_VA_QUERY, &mut query), refused);
}
