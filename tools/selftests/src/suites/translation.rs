// SPDX-License-Identifier: GPL-2.0

//! The MMU of the software engine: states of pages, stale translations, and the shapes it comes in.

use crate::{
    abi::{
        self,
        VaMap,
        VaReserve, //
    },
    addresses::{
        address,
        Ground,
        VIRTUAL_NODE, //
    },
    client::Allocation,
    commands::Commands,
    debugfs,
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    module::{
        self,
        Loaded, //
    },
    random::Random,
    suite::Suite,
    trace::Recording,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "translation",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[VA-16]" each_state_of_a_page_does_what_it_says,
        "[VA-16]" driver_bits_reach_the_tables,
        "[BCK-8]" root_is_compared_at_every_buffer,
        "[BCK-9]" content_survives_every_operation,
        "[BCK-10]" stale_translation_lasts_until_a_flush,
        "[BCK-10]" each_node_counts_its_lookups,
    },
};

/// The suite of shapes, each a load of its own.
pub const SHAPES_SUITE: Suite = Suite {
    name: "translation_shapes",
    parameters: None,
    cases: crate::cases! {
        "[BCK-5]" tables_are_written_at_once_without_a_paging_node,
        "[BCK-5]" gpu_modes_without_a_paging_node_do_not_load,
        "[BCK-10]" results_do_not_depend_on_seed_or_shape,
    },
};

/// An argument that maps all of `allocation`.
fn mapping(ground: &Ground, allocation: &Allocation) -> VaMap {
    VaMap {
        queue: ground.fixture.queue.handle,
        alloc: allocation.handle,
        protection: abi::VA_WRITE,
        size: allocation.size,
        ..Default::default()
    }
}

/// Reserves addresses and waits until they are.
fn reserve(ground: &Ground, kind: u32, size: u64) -> u64 {
    let (va, answer) = ground
        .fixture
        .client
        .try_reserve_addresses(VaReserve {
            queue: ground.fixture.queue.handle,
            kind,
            size,
            ..Default::default()
        })
        .unwrap_or_else(|errno| panic!("VA_RESERVE: errno {errno}"));
    ground.fixture.client.settle(&ground.fixture.queue, answer);
    va
}

fn each_state_of_a_page_does_what_it_says() {
    // Read and write, read only, and zero pages work; each that does not ends a device of its own.
    let ground = Ground::new(VISIBLE_SEGMENT);
    let (data, va) = ground.create(plain(64 * KIB, VISIBLE_SEGMENT));
    let fixed = ground
        .fixture
        .create_resident(plain(64 * KIB, VISIBLE_SEGMENT));
    ground.fixture.client.map(&fixed).write64(0x2008, 21);
    let fixed_va = ground.map(&fixed, 0);
    let zero = reserve(&ground, abi::VA_RESERVE_ZERO, 128 * KIB);
    let mut commands = Commands::new();
    commands
        .store(address(va), 1)
        .store(address(zero), 2)
        .fill_bytes(address(zero + 0xf000), 0x2000, 3)
        .copy_bytes(address(va + 8), address(zero), 64)
        .copy_bytes(address(va + 128), address(fixed_va + 0x2008), 8)
        .checksum(address(va + 136), address(zero + 0x1_0000), 0x1_0000);
    ground.run(&commands);
    let mapping = ground.fixture.client.map(&data);
    assert_eq!((mapping.read64(0), mapping.read64(8)), (1, 0));
    assert_eq!(mapping.read64(128), 21);
    let zeros = u64::from(crate::reference::crc32c(&[0; 0x1_0000]));
    assert_eq!(mapping.read64(136), zeros);

    let protection = abi::DEVICE_STATE_FAULT_WRITE | abi::DEVICE_STATE_FAULT_PROTECTION;
    let mut commands = Commands::new();
    commands.store(address(fixed_va), 1);
    assert_eq!(ground.run_into_fault(&commands).fault_flags, protection);

    let ground = Ground::new(VISIBLE_SEGMENT);
    let none = reserve(&ground, abi::VA_RESERVE_NO_ACCESS, 64 * KIB);
    let mut commands = Commands::new();
    commands.store(address(none + 8), 1);
    let state = ground.run_into_fault(&commands);
    let missing = abi::DEVICE_STATE_FAULT_WRITE | abi::DEVICE_STATE_FAULT_NOT_MAPPED;
    assert_eq!((state.fault_va, state.fault_flags), (none + 8, missing));
}

fn driver_bits_reach_the_tables() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let data = ground
        .fixture
        .create_resident(plain(16 * KIB, VISIBLE_SEGMENT));
    let recording = Recording::start();
    let va = ground
        .map_as(VaMap {
            driver_protection: 0xa,
            ..mapping(&ground, &data)
        })
        .expect("VA_MAP");
    let events = recording.stop();
    let update = events
        .operations("UpdatePageTable", data.object_id)
        .find(|event| event.number("va") == va)
        .expect("an update of the mapping");
    assert_eq!(update.number("driver"), 0xa);
    assert_eq!(update.number("protection"), u64::from(abi::VA_WRITE));
    for driver_protection in [0x10, 1 << 63] {
        let refused = ground.map_as(VaMap {
            driver_protection,
            ..mapping(&ground, &data)
        });
        assert_eq!(refused, Err(libc::EOPNOTSUPP));
    }
}

fn root_is_compared_at_every_buffer() {
    let before = debugfs::stat("roots_compared");
    let recording = Recording::start();
    let ground = Ground::new(VISIBLE_SEGMENT);
    let (data, va) = ground.create(plain(64 * KIB, VISIBLE_SEGMENT));
    for round in 0..4 {
        let mut commands = Commands::new();
        commands.store(address(va), round);
        ground.run(&commands);
        ground.fixture.push_out(&data);
        ground.fixture.bring_in(&data);
    }
    let events = recording.stop();
    let compared = debugfs::stat("roots_compared") - before;
    let paging = events.named("paging_submit").count();
    let portions = events.named("dma_portion").count();
    assert_eq!(portions, 4);
    assert_eq!(compared as usize, paging + portions);
    // Every paging buffer belongs to the paging process.
    let system = debugfs::system_context();
    let own = events.named("paging_submit");
    assert!(own.into_iter().all(|event| event.number("ctx") == system));
}

fn content_survives_every_operation() {
    let fixture = Fixture::new();
    let mut random = Random::new(9);
    for segments in [VISIBLE_SEGMENT, HIDDEN_SEGMENT] {
        for _ in 0..12 {
            let size = (1 + random.below(160)) * 4 * KIB;
            let fresh = fixture.create_resident(plain(size, segments));
            let zeros = fixture.client.map(&fresh).read(0, size as usize);
            assert!(zeros.iter().all(|byte| *byte == 0), "not filled");
            let any = VISIBLE_SEGMENT | HIDDEN_SEGMENT | SYSTEM;
            let moved = fixture.create_resident(physical(size, any));
            let content = pattern(random.next(), size);
            fixture.client.map(&moved).write(0, &content);
            let to = random.below(3) + 1;
            debugfs::inject(&format!("move {} {to}", moved.object_id));
            debugfs::inject(&format!("evict {}", moved.object_id));
            let segment = if segments == VISIBLE_SEGMENT { 1 } else { 2 };
            debugfs::inject(&format!("move {} {segment}", moved.object_id));
            let found = fixture.client.map(&moved).read(0, size as usize);
            assert!(found == content, "content differs");
            fixture.client.close_and_wait(&[fresh.handle, moved.handle]);
        }
    }
}

fn stale_translation_lasts_until_a_flush() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let data = [1u64, 2].map(|value| {
        let allocation = ground
            .fixture
            .create_resident(plain(64 * KIB, VISIBLE_SEGMENT));
        ground.fixture.client.map(&allocation).write64(0, value);
        allocation
    });
    let (result, result_va) = ground.create(plain(4 * KIB, VISIBLE_SEGMENT));
    let va = ground.map(&data[0], abi::VA_WRITE);
    let seen = || {
        let mut commands = Commands::new();
        commands.copy_bytes(address(result_va), address(va), 8);
        ground.run(&commands);
        ground.fixture.client.map(&result).read64(0)
    };
    let remap = |allocation: &Allocation| {
        let argument = VaMap {
            base: va,
            ..mapping(&ground, allocation)
        };
        ground.map_as(argument).expect("VA_MAP");
    };
    assert_eq!(seen(), 1);
    // The engine ignores both flushes of the sequence: that of the paging process, which meets no stale
    // translation here, and that of the client.
    debugfs::inject("fail FlushTLB 2");
    remap(&data[1]);
    debugfs::inject("fail FlushTLB 0");
    assert_eq!(seen(), 1, "a translation went without a flush");
    remap(&data[1]);
    assert_eq!(seen(), 2);
    remap(&data[0]);
    assert_eq!(seen(), 1);
}

fn each_node_counts_its_lookups() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let (_, va) = ground.create(plain(64 * KIB, VISIBLE_SEGMENT));
    let read = || {
        ["hits", "misses", "walks"].map(|what| debugfs::stat(&format!("tlb_{what}_{VIRTUAL_NODE}")))
    };
    let mut commands = Commands::new();
    for page in 0..16 {
        commands.load_register(1, address(va + page * 4096));
    }
    let first = read();
    ground.run(&commands);
    let second = read();
    ground.run(&commands);
    let third = read();
    // The page of the commands and each page of memory, with two levels.
    assert!(second[1] > first[1]);
    assert_eq!(second[2] - first[2], 2 * (second[1] - first[1]));
    // The second time all are remembered.
    assert_eq!((third[1], third[2]), (second[1], second[2]));
    assert_eq!(third[0] - second[0], 3 * 16);
}

fn tables_are_written_at_once_without_a_paging_node() {
    let _loaded = Loaded::new("profile=INT");
    let recording = Recording::start();
    let memory = 1 << 1;
    let ground = Ground::new(memory);
    let (data, va) = ground.create(plain(64 * KIB, memory));
    let mut commands = Commands::new();
    commands.fill_bytes(address(va), 64 << 10, 0x0707_0707);
    ground.run(&commands);
    let events = recording.stop();
    let mut updates = events
        .named("paging_op")
        .filter(|event| event.word("op") == "UpdatePageTable")
        .peekable();
    assert!(updates.peek().is_some());
    assert!(updates.all(|event| event.word("mode") == "cpu_virtual" && event.number("buf") == 0));
    events.assert_none("paging_submit", &[]);
    events.assert_none("paging_op", &["op=CopyPageTableEntries".to_owned()]);
    let mapping = ground.fixture.client.map(&data);
    assert!(mapping.is_filled(0, 64 << 10, 7));
}

fn gpu_modes_without_a_paging_node_do_not_load() {
    for parameters in [
        "profile=DISC nodes=render:virtual",
        "profile=INT update_mode=0 scratch=1048576",
        "profile=INT update_mode=1 scratch=1048576",
    ] {
        assert_eq!(
            module::try_load(parameters),
            Err(libc::EINVAL),
            "{parameters}"
        );
    }
}

/// What commands that remap, write and move leave behind.
fn random_result(segments: u32) -> Vec<u8> {
    let ground = Ground::new(segments);
    let mut random = Random::new(10);
    let data = [(); 3].map(|()| ground.create(plain(64 * KIB, segments)));
    let (target, target_va) = ground.create(plain(256 * KIB, segments));
    let window = reserve(&ground, abi::VA_RESERVE_NO_ACCESS, 192 * KIB);
    for _ in 0..30 {
        let mut shown = [0; 3];
        for (index, shown) in shown.iter_mut().enumerate() {
            *shown = random.below(3) as usize;
            let argument = VaMap {
                base: window + index as u64 * 64 * KIB,
                ..mapping(&ground, &data[*shown].0)
            };
            ground.map_as(argument).expect("VA_MAP");
        }
        let mut commands = Commands::new();
        for _ in 0..8 {
            let at = random.below(40_000) * 4;
            let to = random.below(60_000) * 4;
            commands.fill_bytes(address(window + at), 4096, random.next() as u32);
            commands.copy_bytes(address(target_va + to), address(window + at / 8 * 4), 8192);
        }
        ground.run(&commands);
        if random.once_in(4) {
            let (allocation, _) = &data[random.index(3)];
            debugfs::inject(&format!("evict {}", allocation.object_id));
            ground.fixture.bring_in(allocation);
        }
    }
    let bytes = target.size as usize;
    ground.fixture.client.map(&target).read(0, bytes)
}

fn results_do_not_depend_on_seed_or_shape() {
    let mut first: Option<Vec<u8>> = None;
    for (parameters, segments) in [
        ("profile=DISC", VISIBLE_SEGMENT),
        ("profile=DISC seed=1 delay_us=50", VISIBLE_SEGMENT),
        (
            "profile=DISC seed=2 delay_us=50 tlb_entries=2",
            HIDDEN_SEGMENT,
        ),
        ("profile=DISC tlb_holds_invalid=0", SYSTEM),
        ("profile=DISC update_mode=1", VISIBLE_SEGMENT),
        ("profile=DISC-NSR seed=3 delay_us=20", VISIBLE_SEGMENT),
        ("profile=DISC-4L", HIDDEN_SEGMENT),
        ("profile=INT seed=4 delay_us=20", 1 << 1),
    ] {
        let _loaded = Loaded::new(parameters);
        let result = random_result(segments);
        match &first {
            None => first = Some(result),
            Some(first) => assert!(*first == result, "{parameters}"),
        }
    }
}
