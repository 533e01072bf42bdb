// SPDX-License-Identifier: GPL-2.0

//! Hostile scenarios of class B that no rule of a list is about: neighbours in memory, and content that was given up.
//!
//! What is wrong in a buffer or its lists by itself is tried rule by rule beside the rules (`command_buffer`,
//! `patch_list`, `allocation_list`).

use crate::{
    abi,
    client::Allocation,
    commands::{
        Commands,
        Extent,
        Refusal,
        Side, //
    },
    debugfs,
    fixture::{
        pattern,
        physical,
        Fixture,
        KIB,
        MIB,
        VISIBLE_SEGMENT, //
    },
    memory::Mapping,
    suite::Suite, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "faults_commands",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[B9]" last_byte_is_reached_and_none_beyond,
        "[B10]" content_that_was_given_up_is_refused_and_then_zero,
    },
};

/// Bytes of each small allocation.
const SIZE: u64 = 4 * KIB;

/// A page of pixels, 64 bytes wide.
const PAGE: Extent = Extent {
    width: 64,
    height: 64,
};

fn side(allocation: &Allocation, offset: u64) -> Side {
    Side {
        at: allocation.at(offset),
        pitch: 64,
    }
}

/// Appends one packet that ends `beyond` bytes behind the end of `to`, by each command that writes.
fn writers(to: &Allocation, from: &Allocation, beyond: u64) -> Vec<Commands> {
    let packets: [&dyn Fn(&mut Commands); 7] = [
        &|commands| {
            commands.fill(side(to, beyond), PAGE, 0x0101_0101);
        },
        &|commands| {
            commands.copy(side(to, beyond), side(from, 0), PAGE);
        },
        &|commands| {
            commands.blend(side(to, beyond), side(from, 0), PAGE);
        },
        &|commands| {
            commands.store(to.at(SIZE - 8 + beyond), 3);
        },
        &|commands| {
            commands.add(to.at(SIZE - 8 + beyond), 3);
        },
        &|commands| {
            commands.checksum(to.at(SIZE - 8 + beyond), from.at(0), 64);
        },
        &|commands| {
            commands.timestamp(to.at(SIZE - 8 + beyond));
        },
    ];
    packets
        .iter()
        .map(|packet| {
            let mut commands = Commands::new();
            packet(&mut commands);
            commands
        })
        .collect()
}

fn last_byte_is_reached_and_none_beyond() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let neighbours: Vec<(Allocation, Mapping)> = (0..9)
        .map(|seed| {
            let one = fixture.create_resident(physical(SIZE, VISIBLE_SEGMENT));
            let mapping = fixture.client.map(&one);
            mapping.write(0, &pattern(seed, SIZE));
            (one, mapping)
        })
        .collect();
    let (middle, from) = (&neighbours[4].0, &neighbours[8].0);
    for commands in writers(middle, from, 0) {
        fixture.run(&context, &commands);
    }
    // The smallest step beyond that the alignment of each operand permits.
    for (number, commands) in writers(middle, from, 8).iter().enumerate() {
        let refusal = commands.try_submit(&fixture.client, context.handle);
        let Refusal { errno, kind, .. } = refusal.expect_err("beyond the end");
        let expected = (libc::EINVAL, abi::SUBMIT_ERROR_ALLOC_RANGE);
        assert_eq!((errno, kind), expected, "packet {number}");
    }
    for (seed, (_, mapping)) in (0..).zip(&neighbours) {
        if seed != 4 {
            assert_eq!(
                mapping.read(0, SIZE as usize),
                pattern(seed, SIZE),
                "neighbour {seed}"
            );
        }
    }
}

fn content_that_was_given_up_is_refused_and_then_zero() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let offered = fixture.create_resident(physical(MIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&offered);
    mapping.write64(0, 77);
    let mut commands = Commands::new();
    commands.store(offered.at(8), 5);
    let object = fixture.client.state_of(offered.handle).object_id;
    fixture
        .client
        .try_offer(fixture.device, &[offered.handle], abi::OFFER_LEVEL_LOW, 0)
        .expect("OFFER");
    debugfs::inject(&format!("evict {object}"));
    let refusal = commands
        .try_submit(&fixture.client, context.handle)
        .expect_err("it is offered");
    assert_eq!(
        (refusal.errno, refusal.kind),
        (libc::EBUSY, abi::SUBMIT_ERROR_OFFERED)
    );
    let refused = fixture
        .client
        .try_make_resident(fixture.queue.handle, &[offered.handle]);
    assert_eq!(refused.err().map(|(errno, _)| errno), Some(libc::EBUSY));
    let state = fixture.client.device_state(fixture.device);
    assert_eq!(state.state, abi::DEVICE_STATE_ACTIVE);
    let (results, _) = fixture
        .client
        .try_reclaim(fixture.queue.handle, &[offered.handle])
        .expect("RECLAIM");
    assert_eq!(results, [abi::RECLAIM_RESULT_DISCARDED]);
    fixture.run(&context, &commands);
    assert_eq!((mapping.read64(0), mapping.read64(8)), (0, 5));
}
