// SPDX-License-Identifier: GPL-2.0

//! The command buffer of a submission: its packets, its size, its points, and when it is read.

use std::{
    sync::atomic::{
        AtomicBool,
        Ordering, //
    }, //
};

use crate::{
    abi::{
        self,
        engine,
        InfoNode,
        SubmitPatch, //
    },
    commands::{
        submit,
        Commands,
        Refusal, //
    },
    debugfs,
    fixture::{
        pattern,
        physical,
        KIB,
        PHYSICAL_NODE,
        VISIBLE_SEGMENT, //
    },
    memory::Mapping,
    submitter::Submitter,
    suite::Suite, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "command_buffer",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[DMA-24]" command_size_rules_hold,
        "[DMA-24]" buffer_beyond_the_maximum_is_refused,
        "[DMA-24] [B4]" bad_packets_are_refused,
        "[DMA-24] [B5]" packet_cut_by_the_end_is_refused,
        "[DMA-24]" bad_points_are_refused,
        "[DMA-24] [C2] [B3]" list_rewritten_during_the_call_is_never_trusted,
        "" lists_can_be_reused_at_once,
        "" full_size_lists_are_accepted,
    },
};

/// Submits `size` bytes of commands at `address`, without lists.
fn submit_bytes(setup: &Submitter, address: u64, size: u32) -> Result<u64, Refusal> {
    let mut argument = Commands::new().argument(setup.context.handle);
    (argument.cmd_ptr, argument.cmd_size) = (address, size);
    submit(&setup.fixture.client, &mut argument)
}

fn command_size_rules_hold() {
    let setup = Submitter::new();
    let mut commands = Commands::new();
    commands.nop(2).nop(2);
    let address = commands.dwords.as_ptr() as u64;
    for size in [1, 4, 7, 9, 12, 15] {
        let refusal = submit_bytes(&setup, address, size).expect_err("an odd size");
        assert_eq!(
            (refusal.errno, refusal.kind),
            (libc::EINVAL, 0),
            "size {size}"
        );
    }
    submit_bytes(&setup, address, 8).expect("one packet");
    submit_bytes(&setup, address, 16).expect("two packets");
    // Lists belong to commands.
    let mut lists = setup.two_stores();
    lists.dwords.clear();
    let refusal = lists.try_submit(&setup.fixture.client, setup.context.handle);
    assert_eq!(
        refusal.expect_err("lists without commands").errno,
        libc::EINVAL
    );
}

fn buffer_beyond_the_maximum_is_refused() {
    let setup = Submitter::new();
    let node: InfoNode = setup.fixture.client.query(abi::QUERY_NODE, PHYSICAL_NODE);
    let mut commands = Commands::new();
    while commands.bytes() < node.max_dma_bytes {
        let left = (node.max_dma_bytes - commands.bytes()) as usize / 4;
        commands.nop(left.min(32768));
    }
    setup.assert_accepted(&commands);
    commands.nop(2);
    let refusal = commands.try_submit(&setup.fixture.client, setup.context.handle);
    assert_eq!(
        refusal.expect_err("a buffer that is too long").errno,
        libc::EINVAL
    );
    for size in [0x4000_0000, 0x8000_0000, 0xffff_fff8] {
        let refusal = submit_bytes(&setup, commands.dwords.as_ptr() as u64, size);
        assert_eq!(
            refusal.expect_err("a huge buffer").errno,
            libc::EINVAL,
            "size {size:#x}"
        );
    }
}

fn bad_packets_are_refused() {
    let setup = Submitter::new();
    let kind = abi::SUBMIT_ERROR_BAD_PACKET;
    let refuse = |dwords: &[u32]| {
        let mut commands = Commands::new();
        commands.nop(2);
        commands.dwords.extend_from_slice(dwords);
        setup.assert_refused(&commands, libc::EINVAL, kind, Some(8));
    };
    let header = |opcode: u32, length: u32| opcode | (length << engine::HEADER_LENGTH_SHIFT);
    // Unknown and kernel-only opcodes.
    for opcode in [0x0d, 0x3f, 0x40, 0x41, 0x45, 0x4f, 0x50, 0xff] {
        refuse(&[header(opcode, 2), 0]);
    }
    // Lengths: zero, odd, not the one of the opcode.
    for length in [0, 1, 3] {
        refuse(&[header(engine::OP_NOP, length), 0, 0, 0]);
    }
    for (opcode, right) in [
        (engine::OP_FILL, 8),
        (engine::OP_COPY, 10),
        (engine::OP_BLEND, 10),
        (engine::OP_STORE, 6),
        (engine::OP_ADD, 6),
        (engine::OP_SET_REGISTER, 4),
        (engine::OP_STORE_REGISTER, 4),
        (engine::OP_LOAD_REGISTER, 4),
        (engine::OP_CHECKSUM, 6),
        (engine::OP_TIMESTAMP, 4),
        (engine::OP_SPIN, 4),
        (engine::OP_POLL, 8),
    ] {
        for length in (0..right).chain([right + 1, right + 2]) {
            let mut dwords = vec![0; 12];
            dwords[0] = header(opcode, length);
            refuse(&dwords);
        }
    }
    // Flags, dwords that must be zero, a register that does not exist.
    for bit in 8..16 {
        refuse(&[header(engine::OP_NOP, 2) | (1 << bit), 0]);
    }
    refuse(&[header(engine::OP_SPIN, 4), 1, 0, 0]);
    refuse(&[header(engine::OP_SET_REGISTER, 4), 16, 0, 0]);
    refuse(&[header(engine::OP_SET_REGISTER, 4), u32::MAX, 0, 0]);
    // Rectangles: no width, no height, odd width, pitch below width or odd.
    for (pitch, width, height) in [
        (64, 0, 1),
        (64, 64, 0),
        (64, 62, 1),
        (60, 64, 1),
        (66, 64, 1),
        (0, 4, 1),
    ] {
        refuse(&[header(engine::OP_FILL, 8), 0, 0, 0, pitch, width, height, 0]);
    }
    refuse(&[header(engine::OP_FILL, 8), 0, 0, 0, 64, 64, 1, 1]);
    refuse(&[header(engine::OP_CHECKSUM, 6), 0, 0, 0, 0, 0]);
}

fn packet_cut_by_the_end_is_refused() {
    let setup = Submitter::new();
    let whole = setup.two_stores();
    for missing in [2, 4] {
        let mut commands = setup.two_stores();
        commands.dwords.truncate(whole.dwords.len() - missing);
        commands.patches.truncate(1);
        let kind = abi::SUBMIT_ERROR_BAD_PACKET;
        setup.assert_refused(&commands, libc::EINVAL, kind, Some(24));
    }
    let mut commands = Commands::new();
    commands.dwords = vec![65534 << engine::HEADER_LENGTH_SHIFT, 0];
    let kind = abi::SUBMIT_ERROR_BAD_PACKET;
    setup.assert_refused(&commands, libc::EINVAL, kind, Some(0));
    // The last bytes of the memory before a hole.
    let memory = crate::memory::Guarded::new(1);
    let address = memory.place(crate::call::bytes_of(&commands.dwords));
    let refusal = submit_bytes(&setup, address, 8).expect_err("a packet beyond the end");
    assert_eq!((refusal.errno, refusal.kind), (libc::EINVAL, kind));
}

fn bad_points_are_refused() {
    let setup = Submitter::new();
    let client = &setup.fixture.client;
    let kind = abi::SUBMIT_ERROR_BAD_POINT;
    let fence = client.create_fence(setup.fixture.device, 10);
    let refuse = |errno: i32, index: u32, change: &dyn Fn(&mut Commands)| {
        let mut commands = setup.two_stores();
        commands.wait_for(fence, 1).then_signal(fence, 11);
        change(&mut commands);
        setup.assert_refused(&commands, errno, kind, Some(index));
    };
    refuse(libc::ENOENT, 1, &|commands| {
        _ = commands.wait_for(0xdead_beef, 1)
    });
    refuse(libc::ENOENT, 2, &|commands| {
        _ = commands.then_signal(0xdead_beef, 1)
    });
    refuse(libc::ENOENT, 0, &|commands| {
        commands.waits[0].fence = setup.fixture.device
    });
    let paging = setup.fixture.queue.fence;
    refuse(libc::EACCES, 2, &|commands| {
        _ = commands.then_signal(paging, 1)
    });
    refuse(libc::EACCES, 1, &|commands| {
        commands.signals[0].fence = setup.context.progress
    });
    assert!(!client.is_reached(fence, 11));
    // A signal below the current value is no error, and no rewind.
    let mut commands = setup.two_stores();
    commands.then_signal(fence, 5);
    setup.assert_accepted(&commands);
    assert!(client.is_reached(fence, 10));
}

/// A thread rewrites the lists of submissions while they are read.
pub fn list_rewritten_during_the_call_is_never_trusted() {
    let setup = Submitter::new();
    let guard = setup
        .fixture
        .create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let guard_mapping = setup.fixture.client.map(&guard);
    guard_mapping.write(0, &pattern(99, 4 * KIB));
    let commands = setup.two_stores();
    // The lists and the buffer lie in shared memory that another thread rewrites all the time.
    let shared = Mapping::anonymous(1);
    let place = |offset: usize, bytes: &[u8]| {
        shared.write(offset, bytes);
        shared.address() + offset as u64
    };
    let mut argument = commands.argument(setup.context.handle);
    argument.cmd_ptr = place(0, crate::call::bytes_of(&commands.dwords));
    argument.allocs.ptr = place(512, crate::call::bytes_of(&commands.allocs));
    argument.patches.ptr = place(1024, crate::call::bytes_of(&commands.patches));
    let stop = AtomicBool::new(false);
    let rounds = crate::effort::Rounds::new(3000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Word, good value, wild value: offset and index of the first entry, slot, header of the
            // second packet, handle.
            let size = size_of::<SubmitPatch>();
            let words = [
                (1024 + 16, 0, 0x7fff_f000_u32),
                (1024 + 20, 0, 0x1000),
                (1024, 0, 1),
                (1024 + 4, 0, 8),
                (1024 + size + 24, 32, 40),
                (
                    24,
                    engine::OP_STORE | (6 << 16),
                    engine::OP_STORE | (60 << 16),
                ),
                (512, setup.allocation.handle, guard.handle ^ 0x5555),
                (512 + 8, u32::MAX, 3),
            ];
            let mut number = 0;
            while !stop.load(Ordering::Acquire) {
                let (offset, good, wild) = words[number / 2 % words.len()];
                shared.write32(offset, if number % 2 == 0 { wild } else { good });
                number += 1;
            }
        });
        let (mut accepted, mut refused) = (0, 0);
        for _ in rounds {
            let mut copy = argument;
            match submit(&setup.fixture.client, &mut copy) {
                Ok(id) => {
                    accepted += 1;
                    if accepted % 64 == 0 {
                        setup.fixture.client.wait(setup.context.progress, id);
                    }
                }
                Err(refusal) => {
                    refused += 1;
                    let known = matches!(
                        refusal.errno,
                        libc::EINVAL | libc::ENOENT | libc::EACCES | libc::EXDEV
                    );
                    assert!(known, "{refusal:?}");
                }
            }
            // What the kernel wrote back is no handle.
            shared.write32(512 + 12, abi::SEGMENT_ID_NONE);
        }
        stop.store(true, Ordering::Release);
        assert!(
            accepted > 0 && refused > 0,
            "accepted {accepted}, refused {refused}"
        );
    });
    let state = setup.fixture.client.device_state(setup.fixture.device);
    assert_eq!(state.state, abi::DEVICE_STATE_ACTIVE);
    setup.fixture.client.lock(guard.handle, abi::LOCK_READ);
    assert!(
        guard_mapping.read(0, 4096) == pattern(99, 4 * KIB),
        "the guard was written"
    );
    assert!(
        setup.mapping.is_filled(16, 4096 - 16 - 8, 0),
        "a store went astray"
    );
}

fn lists_can_be_reused_at_once() {
    let setup = Submitter::new();
    debugfs::inject("pause 2");
    let mut commands = setup.two_stores();
    let mut argument = commands.argument(setup.context.handle);
    let id = submit(&setup.fixture.client, &mut argument).expect("SUBMIT_PATCHED");
    commands.dwords.fill(0xffff_ffff);
    commands.patches.fill(SubmitPatch::default());
    debugfs::inject("resume 2");
    setup.fixture.client.wait(setup.context.progress, id);
    assert_eq!((setup.mapping.read64(0), setup.mapping.read64(8)), (1, 2));
}

fn full_size_lists_are_accepted() {
    let setup = Submitter::new();
    let node: InfoNode = setup.fixture.client.query(abi::QUERY_NODE, PHYSICAL_NODE);
    let mut commands = Commands::new();
    let stores = (node.max_patches as usize).min(node.max_dma_bytes as usize / 24);
    for number in 0..stores as u64 {
        commands.store(setup.allocation.at(number % 64 * 8), number);
    }
    let fence = setup.fixture.client.create_fence(setup.fixture.device, 0);
    for value in 1..=u64::from(node.max_points) {
        commands.wait_for(fence, 0).then_signal(fence, value);
    }
    setup.assert_accepted(&commands);
    assert!(setup
        .fixture
        .client
        .is_reached(fence, u64::from(node.max_points)));
}
