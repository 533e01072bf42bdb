// SPDX-License-Identifier: GPL-2.0

//! SUBMIT_VIRTUAL: what is taken, what is in its place while commands run, and how they fail.

use std::{
    thread,
    time::Duration, //
};

use crate::{
    abi::{
        self,
        SubmitVirtual,
        VaMap, //
    },
    addresses::{
        address,
        Ground,
        VIRTUAL_NODE, //
    },
    call::array,
    client::point,
    clock,
    commands::{
        Commands,
        Refusal, //
    },
    debugfs,
    display::{
        picture,
        show,
        PICTURE, //
    },
    fixture::{
        pattern,
        plain,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    suite::Suite,
    trace::Recording,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "virtual_submission",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[DMA-29]" calls_of_the_other_kind_are_not_supported,
        "[DMA-29]" wrong_arguments_are_refused,
        "[DMA-29]" wrong_primaries_are_refused,
        "[DMA-29]" display_change_waits_for_a_listed_write,
        "[RES-12]" primary_without_a_reference_is_refused,
        "[RES-12]" list_of_the_device_is_in_its_place,
        "[RES-12]" what_is_not_on_the_list_is_not_brought_in,
        "" what_commands_wrote_survives_its_eviction,
        "" waits_and_signals_alone_need_no_commands,
        "" nothing_runs_of_work_that_executes_nothing,
        "" commands_are_read_when_they_run,
        "" long_commands_match_the_reference,
        "[VA-21]" unmapped_read_is_a_fault_of_its_device_alone,
        "[VA-21]" each_fault_says_what_it_was,
        "" malformed_packet_is_no_fault,
    },
};

/// The refusal of a submission.
#[track_caller]
fn refusal(fixture: &Fixture, argument: SubmitVirtual) -> Refusal {
    let result = fixture.client.try_submit_virtual(argument);
    result.expect_err("the submission was accepted")
}

/// A refusal because of an element of the list of primaries.
fn because_of(errno: i32, kind: u32, index: u32) -> Refusal {
    Refusal { errno, kind, index }
}

fn calls_of_the_other_kind_are_not_supported() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let refused = Commands::new()
        .try_submit(&ground.fixture.client, ground.context.handle)
        .expect_err("SUBMIT_PATCHED was accepted");
    assert_eq!(refused.errno, libc::EOPNOTSUPP);
    let mut commands = Commands::new();
    commands.nop(2);
    let argument = ground.prepare(0, &commands);
    for mode in [
        abi::CONTEXT_MODE_PATCHED_LIST,
        abi::CONTEXT_MODE_PATCHED_EXPLICIT,
    ] {
        let fixture = &ground.fixture;
        let context = fixture
            .client
            .create_context_of_mode(fixture.device, 2, mode)
            .handle;
        let refused = refusal(
            fixture,
            SubmitVirtual {
                context,
                ..argument
            },
        );
        assert_eq!(refused.errno, libc::EOPNOTSUPP, "mode {mode}");
    }
    let mode = abi::CONTEXT_MODE_PATCHED_LIST;
    let mut argument = crate::client::context_argument(ground.fixture.device, VIRTUAL_NODE, mode);
    let refused = ground.fixture.client.try_create_context(&mut argument);
    assert_eq!(refused.err(), Some(libc::EOPNOTSUPP));
    ground.run(&commands);
}

fn wrong_arguments_are_refused() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let mut commands = Commands::new();
    commands.nop(4);
    let good = ground.prepare(0, &commands);
    let seventeen = [0u32; 17];
    let changes: [fn(&mut SubmitVirtual); 6] = [
        |argument| argument.cmd_va += 4,
        |argument| argument.cmd_size = 12,
        |argument| argument.cmd_size = 0,
        |argument| argument.pad = 1,
        |argument| (argument.cmd_va, argument.cmd_size) = (8, 0),
        |argument| (argument.cmd_va, argument.cmd_size) = (7, 8),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut argument = good;
        change(&mut argument);
        let refused = refusal(&ground.fixture, argument);
        assert_eq!(refused.errno, libc::EINVAL, "change {number}");
    }
    for flags in [2, 1 << 31] {
        let refused = refusal(&ground.fixture, SubmitVirtual { flags, ..good });
        assert_eq!(refused.errno, libc::EOPNOTSUPP);
    }
    let primaries = array(&seventeen);
    let refused = refusal(&ground.fixture, SubmitVirtual { primaries, ..good });
    assert_eq!(refused, because_of(libc::EINVAL, 0, 0));
    let context = ground.code.handle;
    let refused = refusal(&ground.fixture, SubmitVirtual { context, ..good });
    assert_eq!(refused.errno, libc::ENOENT);
    ground.run(&commands);
}

fn wrong_primaries_are_refused() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let fixture = &ground.fixture;
    let mut commands = Commands::new();
    commands.nop(2);
    let good = ground.prepare(0, &commands);
    let primary = fixture.create_resident(picture(PICTURE, SYSTEM)).handle;
    let other_device = fixture.client.create_device();
    let foreign = fixture
        .client
        .create(other_device, picture(PICTURE, SYSTEM))
        .handle;
    let bad_handle = abi::SUBMIT_ERROR_BAD_HANDLE;
    for (second, errno) in [
        (ground.code.handle, libc::EINVAL),
        (fixture.device, libc::ENOENT),
        (0, libc::ENOENT),
        (foreign, libc::EXDEV),
    ] {
        let list = [primary, second];
        let primaries = array(&list);
        let refused = refusal(fixture, SubmitVirtual { primaries, ..good });
        assert_eq!(refused, because_of(errno, bad_handle, 1), "{second:#x}");
    }
    let list = [primary];
    let primaries = array(&list);
    let none = SubmitVirtual {
        cmd_va: 0,
        cmd_size: 0,
        primaries,
        ..good
    };
    assert_eq!(refusal(fixture, none).errno, libc::EINVAL);
    let many = [primary; 16];
    let primaries = array(&many);
    let taken = fixture
        .client
        .try_submit_virtual(SubmitVirtual { primaries, ..good })
        .expect("sixteen primaries");
    fixture.client.wait(ground.context.progress, taken);
}

fn display_change_waits_for_a_listed_write() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let fixture = &ground.fixture;
    let image = fixture.create_resident(picture(PICTURE, SYSTEM));
    let va = ground.map(&image, abi::VA_WRITE);
    let mut commands = Commands::new();
    commands.store(address(va), 7);
    let list = [image.handle];
    let argument = SubmitVirtual {
        primaries: array(&list),
        ..ground.prepare(0, &commands)
    };
    debugfs::inject(&format!("pause {VIRTUAL_NODE}"));
    let recording = Recording::start();
    let id = fixture
        .client
        .try_submit_virtual(argument)
        .expect("accepted");
    fixture.client.scanout(show(0, image.handle));
    thread::sleep(Duration::from_millis(50));
    recording.so_far().assert_none("scanout", &[]);
    debugfs::inject(&format!("resume {VIRTUAL_NODE}"));
    clock::wait_until("the primary is shown", || {
        fixture.client.source(0).alloc == image.handle
    });
    fixture.client.wait(ground.context.progress, id);
    recording.stop().assert_order(&[
        format!("dma_portion node={VIRTUAL_NODE} start=0 end=24 entries=0"),
        format!("node_begin node={VIRTUAL_NODE} kind=dma"),
        format!("node_end node={VIRTUAL_NODE} kind=dma"),
        format!("scanout alloc={} action=start", image.object_id),
    ]);
    assert_eq!(fixture.client.map(&image).read64(0), 7);
}

fn primary_without_a_reference_is_refused() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let fixture = &ground.fixture;
    let mut commands = Commands::new();
    commands.nop(2);
    let resident = fixture.create_resident(picture(PICTURE, VISIBLE_SEGMENT));
    let away = fixture.create(picture(PICTURE, VISIBLE_SEGMENT));
    let list = [resident.handle, away.handle];
    let argument = SubmitVirtual {
        primaries: array(&list),
        ..ground.prepare(0, &commands)
    };
    let not_resident = abi::SUBMIT_ERROR_NOT_RESIDENT;
    let expected = because_of(libc::EINVAL, not_resident, 1);
    assert_eq!(refusal(fixture, argument), expected);
    let state = fixture.client.state_of(away.handle);
    assert_eq!(state.residency, abi::ALLOC_RESIDENCY_NOT_RESIDENT);
    let state = fixture.client.device_state(fixture.device);
    assert_eq!(state.state, abi::DEVICE_STATE_ACTIVE);
    fixture.bring_in(&away);
    let id = fixture
        .client
        .try_submit_virtual(argument)
        .expect("accepted");
    fixture.client.wait(ground.context.progress, id);
}

/// Two clients whose lists do not fit beside each other take turns, and each finds what is its own.
fn list_of_the_device_is_in_its_place() {
    let grounds = [(); 2].map(|()| Ground::new(VISIBLE_SEGMENT));
    let create = |ground: &Ground| ground.create(plain(10 * MIB, VISIBLE_SEGMENT));
    let places = [create(&grounds[0]), create(&grounds[1])];
    for round in 0..6 {
        for (ground, (_, va)) in grounds.iter().zip(&places) {
            let last = va + 10 * MIB - 8;
            let mut commands = Commands::new();
            commands.add(address(*va), 1).add(address(last), 2);
            commands.load_register(1, address(*va));
            commands.store_register(1, address(va + 4096));
            ground.run(&commands);
        }
        for (ground, (large, _)) in grounds.iter().zip(&places) {
            let mapping = ground.fixture.client.map(large);
            assert_eq!(mapping.read64(0), round + 1);
            assert_eq!(mapping.read64(4096), round + 1);
            assert_eq!(mapping.read64(10 * MIB as usize - 8), 2 * (round + 1));
        }
    }
}

fn what_is_not_on_the_list_is_not_brought_in() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let (data, va) = ground.create(plain(64 * KIB, VISIBLE_SEGMENT));
    ground.fixture.push_out(&data);
    let recording = Recording::start();
    let mut commands = Commands::new();
    commands.nop(2).load_register(0, address(va + 0x3000));
    let state = ground.run_into_fault(&commands);
    assert_eq!(state.state, abi::DEVICE_STATE_ERROR_FAULT);
    assert_eq!(state.fault_va, va + 0x3000);
    let expected = abi::DEVICE_STATE_FAULT_READ | abi::DEVICE_STATE_FAULT_NOT_RESIDENT;
    assert_eq!(state.fault_flags, expected);
    let events = recording.stop();
    let words = [format!("alloc={}", data.object_id)];
    events.assert_none("residency", &words);
    assert_eq!(
        events
            .named("fault")
            .next()
            .map(|fault| fault.word("reason")),
        Some("NOT_RESIDENT")
    );
}

fn what_commands_wrote_survives_its_eviction() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    for segments in [VISIBLE_SEGMENT, HIDDEN_SEGMENT] {
        let (data, va) = ground.create(plain(128 * KIB, segments));
        for round in 1..4 {
            let mut commands = Commands::new();
            commands.fill_bytes(address(va + 0x1000), 0x1_8000, round * 0x0101_0101);
            ground.run(&commands);
            ground.fixture.push_out(&data);
            let mapping = ground.fixture.client.map(&data);
            let written = mapping.read(0x1000, 0x1_8000);
            assert!(written.iter().all(|byte| u32::from(*byte) == round));
            ground.fixture.bring_in(&data);
        }
    }
}

fn waits_and_signals_alone_need_no_commands() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let client = &ground.fixture.client;
    let fence = client.create_fence(ground.fixture.device, 0);
    let mut commands = Commands::new();
    commands.wait_for(fence, 1).then_signal(fence, 2);
    let recording = Recording::start();
    let id = ground.submit(&commands);
    client.signal(fence, 1);
    client.wait(fence, 2);
    client.wait(ground.context.progress, id);
    recording.stop().assert_none("dma_portion", &[]);
    let wrong = [point(fence, 9), point(ground.code.handle, 1)];
    let refused = refusal(
        &ground.fixture,
        SubmitVirtual {
            context: ground.context.handle,
            waits: array(&wrong),
            ..Default::default()
        },
    );
    let bad_point = abi::SUBMIT_ERROR_BAD_POINT;
    assert_eq!(refused, because_of(libc::ENOENT, bad_point, 1));
}

fn nothing_runs_of_work_that_executes_nothing() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let (data, va) = ground.create(plain(4 * KIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    commands.store(address(va), 5);
    commands.flags = abi::SUBMIT_VIRTUAL_NULL_RENDER;
    ground.run(&commands);
    assert_eq!(ground.fixture.client.map(&data).read64(0), 0);
    // Not even commands that are not there are fetched.
    let id = ground
        .fixture
        .client
        .try_submit_virtual(SubmitVirtual {
            context: ground.context.handle,
            flags: abi::SUBMIT_VIRTUAL_NULL_RENDER,
            cmd_va: 0x7_0000_0000,
            cmd_size: 64,
            ..Default::default()
        })
        .expect("accepted");
    ground.fixture.client.wait(ground.context.progress, id);
}

fn commands_are_read_when_they_run() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let (data, va) = ground.create(plain(4 * KIB, VISIBLE_SEGMENT));
    let client = &ground.fixture.client;
    let fence = client.create_fence(ground.fixture.device, 0);
    let mut first = Commands::new();
    first.store(address(va), 1).wait_for(fence, 1);
    let id = ground.submit(&first);
    let mut second = Commands::new();
    second.store(address(va), 2);
    ground.prepare(0, &second);
    client.signal(fence, 1);
    client.wait(ground.context.progress, id);
    assert_eq!(client.map(&data).read64(0), 2);
}

fn long_commands_match_the_reference() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let places = [VISIBLE_SEGMENT, HIDDEN_SEGMENT, SYSTEM].map(|segments| {
        let (data, va) = ground.create(plain(256 * KIB, segments));
        let content = pattern(u64::from(segments), 256 * KIB);
        ground.fixture.client.map(&data).write(0, &content);
        (data, va, content)
    });
    let mut expected: Vec<Vec<u8>> = places.iter().map(|place| place.2.clone()).collect();
    let mut random = crate::random::Random::new(29);
    for _ in 0..20 {
        let mut commands = Commands::new();
        for _ in 0..100 {
            let (to, from) = (random.below(3) as usize, random.below(3) as usize);
            let bytes = 4 + random.below(1 << 14) * 4;
            let room = (256 * KIB - bytes) / 4 + 1;
            let (at, source) = (random.below(room) * 4, random.below(room) * 4);
            let (at, source) = (at as usize, source as usize);
            let end = at + bytes as usize;
            if random.below(2) == 0 {
                let value = random.below(1 << 32) as u32;
                commands.fill_bytes(address(places[to].1 + at as u64), bytes as u32, value);
                let bytes = value.to_le_bytes();
                for (index, byte) in expected[to][at..end].iter_mut().enumerate() {
                    *byte = bytes[index % 4];
                }
            } else {
                let target = address(places[to].1 + at as u64);
                let origin = address(places[from].1 + source as u64);
                commands.copy_bytes(target, origin, bytes as u32);
                let copied = expected[from][source..source + bytes as usize].to_vec();
                expected[to][at..end].copy_from_slice(&copied);
            }
        }
        ground.run(&commands);
    }
    for ((data, _, _), expected) in places.iter().zip(&expected) {
        let found = ground.fixture.client.map(data).read(0, expected.len());
        assert!(found == *expected, "memory differs");
    }
}

fn unmapped_read_is_a_fault_of_its_device_alone() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let other = Ground::new(VISIBLE_SEGMENT);
    let (data, va) = ground.create(plain(4 * KIB, VISIBLE_SEGMENT));
    let (mine, my_va) = other.create(plain(4 * KIB, VISIBLE_SEGMENT));
    let recording = Recording::start();
    let missing = 0x1_2345_6000;
    let mut commands = Commands::new();
    commands
        .store(address(va), 3)
        .load_register(4, address(missing + 8))
        .store(address(va), 9);
    let state = ground.run_into_fault(&commands);
    assert_eq!(state.state, abi::DEVICE_STATE_ERROR_FAULT);
    assert_eq!(state.fault_va, missing + 8);
    let flags = abi::DEVICE_STATE_FAULT_READ | abi::DEVICE_STATE_FAULT_NOT_MAPPED;
    assert_eq!(state.fault_flags, flags);
    assert_eq!((state.guilty, state.node), (1, VIRTUAL_NODE));
    assert_eq!(
        (state.context, state.submission),
        (ground.context.handle, 1)
    );
    assert_eq!(ground.fixture.client.map(&data).read64(0), 3);
    recording.stop().assert_order(&[
        format!("fault va={:#x} reason=NOT_MAPPED", missing + 8),
        "device_state state=ERROR_FAULT".to_owned(),
    ]);
    let refused = refusal(&ground.fixture, ground.prepare(0, &commands));
    assert_eq!(refused.errno, libc::EIO);

    let mut commands = Commands::new();
    commands.store(address(my_va), 4);
    other.run(&commands);
    assert_eq!(other.fixture.client.map(&mine).read64(0), 4);
    let state = other.fixture.client.device_state(other.fixture.device);
    assert_eq!(state.state, abi::DEVICE_STATE_ACTIVE);
    // Another device of the same client works on as well.
    let fixture = Fixture {
        device: ground.fixture.client.create_device(),
        queue: ground.fixture.queue,
        client: ground.fixture.client,
    };
    let queue = fixture.client.create_queue(fixture.device);
    let again = Ground::on(Fixture { queue, ..fixture }, VISIBLE_SEGMENT);
    let mut commands = Commands::new();
    commands.nop(2);
    again.run(&commands);
}

fn each_fault_says_what_it_was() {
    let read = abi::DEVICE_STATE_FAULT_READ;
    let write = abi::DEVICE_STATE_FAULT_WRITE;
    let not_mapped = abi::DEVICE_STATE_FAULT_NOT_MAPPED;
    let protection = abi::DEVICE_STATE_FAULT_PROTECTION;
    let ground = || {
        let ground = Ground::new(VISIBLE_SEGMENT);
        let allocation = ground
            .fixture
            .create_resident(plain(64 * KIB, VISIBLE_SEGMENT));
        let va = ground.map(&allocation, 0);
        (ground, va)
    };
    // A write to a page that is only to be read.
    let (it, va) = ground();
    let mut commands = Commands::new();
    commands.store(address(va + 16), 1);
    let state = it.run_into_fault(&commands);
    assert_eq!(
        (state.fault_va, state.fault_flags),
        (va + 16, write | protection)
    );
    // The first byte of a copy that leaves the mapping.
    let (it, va) = ground();
    let beyond = va + 64 * KIB;
    let to = it
        .fixture
        .create_resident(plain(128 * KIB, VISIBLE_SEGMENT));
    let target = it
        .map_as(VaMap {
            queue: it.fixture.queue.handle,
            alloc: to.handle,
            protection: abi::VA_WRITE,
            base: beyond + MIB,
            size: to.size,
            ..Default::default()
        })
        .expect("VA_MAP");
    let mut commands = Commands::new();
    commands.copy_bytes(address(target), address(va + 0x8000), 0x9000);
    let state = it.run_into_fault(&commands);
    assert_eq!(
        (state.fault_va, state.fault_flags),
        (beyond, read | not_mapped)
    );
    // Commands that are not to be executed, and such that are not there.
    for (start, reason) in [(Some(0), protection), (None, not_mapped)] {
        let (it, va) = ground();
        let cmd_va = start.map_or(0x7_0000_0000, |offset: u64| va + offset);
        it.fixture
            .client
            .try_submit_virtual(SubmitVirtual {
                context: it.context.handle,
                cmd_va,
                cmd_size: 64,
                ..Default::default()
            })
            .expect("accepted");
        let state = it.wait_for_error();
        assert_eq!((state.fault_va, state.fault_flags), (cmd_va, read | reason));
    }
}

fn malformed_packet_is_no_fault() {
    let ground = Ground::new(VISIBLE_SEGMENT);
    let (data, va) = ground.create(plain(4 * KIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    commands.store(address(va), 3).store(address(va), 4);
    let second = commands.dwords.len() / 2;
    commands.dwords[second] = 0x0002_0040;
    let state = ground.run_into_fault(&commands);
    assert_eq!(state.state, abi::DEVICE_STATE_ERROR_DMA);
    assert_eq!((state.fault_va, state.fault_flags), (24, 0));
    assert_eq!(ground.fixture.client.map(&data).read64(0), 3);
}
