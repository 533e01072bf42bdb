// SPDX-License-Identifier: GPL-2.0

//! The command set: every packet against the reference.

use crate::{
    client::Allocation,
    commands::{
        Commands,
        Extent, //
    },
    fixture::KIB,
    lab::{
        side,
        Lab, //
    },
    random::Random,
    reference::crc32c,
    suite::Suite, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "engine",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" fill_matches_the_reference,
        "" copy_matches_the_reference,
        "" overlapping_copies_match_the_reference,
        "" blend_matches_the_reference,
        "" store_and_add_match_the_reference,
        "" checksum_is_crc_32c,
        "" random_buffers_match_the_reference,
        "" memory_outside_a_rectangle_is_left_alone,
        "" large_ranges_are_right_at_every_piece,
    },
};

/// The suite on nodes that do not save registers.
pub const PHYSICAL_SUITE: Suite = Suite {
    name: "engine_phys",
    parameters: Some("profile=PHYS"),
    cases: crate::cases! {
        "" random_buffers_match_on_both_nodes,
    },
};

const SIZE: u64 = 64 * KIB;

fn fill_matches_the_reference() {
    let mut lab = Lab::new(SIZE, 2);
    let mut commands = Commands::new();
    for (index, allocation) in lab.allocations.clone().iter().enumerate() {
        let pattern = 0x0403_0201 * (index as u32 + 1);
        commands.fill(
            side(allocation, 4, 4),
            Extent {
                width: 4,
                height: 1,
            },
            pattern,
        );
        commands.fill(
            side(allocation, 100, 256),
            Extent {
                width: 60,
                height: 30,
            },
            !pattern,
        );
        commands.fill(
            side(allocation, 20000, 64),
            Extent {
                width: 64,
                height: 100,
            },
            pattern,
        );
        commands.fill_bytes(allocation.at(65536 - 4), 4, pattern);
    }
    lab.run(&commands);
    lab.assert_equal("FILL");
}

fn copy_matches_the_reference() {
    let mut lab = Lab::new(SIZE, 2);
    let allocations = lab.allocations.clone();
    let mut commands = Commands::new();
    for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)] {
        let (from, to) = (&allocations[from], &allocations[to]);
        let extent = Extent {
            width: 100,
            height: 50,
        };
        commands.copy(side(to, 4096, 512), side(from, 256, 128), extent);
        commands.copy_bytes(to.at(60000), from.at(4), 5532);
    }
    lab.run(&commands);
    lab.assert_equal("COPY");
}

fn overlapping_copies_match_the_reference() {
    let mut lab = Lab::new(SIZE, 2);
    let allocations = lab.allocations.clone();
    for (to, from) in [
        (0, 4),
        (4, 0),
        (0, 64),
        (64, 0),
        (256, 0),
        (0, 256),
        (1000, 1004),
    ] {
        let mut commands = Commands::new();
        for allocation in &allocations {
            let extent = Extent {
                width: 200,
                height: 40,
            };
            commands.copy(
                side(allocation, to, 256),
                side(allocation, from, 256),
                extent,
            );
            commands.copy_bytes(
                allocation.at(30000 + to),
                allocation.at(30000 + from),
                20000,
            );
        }
        lab.run(&commands);
        lab.assert_equal(&format!("COPY from {from} to {to}"));
    }
    // Rows that run into each other, with different pitches.
    let mut commands = Commands::new();
    let extent = Extent {
        width: 64,
        height: 32,
    };
    commands.copy(
        side(&allocations[0], 512, 64),
        side(&allocations[0], 0, 96),
        extent,
    );
    commands.copy(
        side(&allocations[1], 0, 96),
        side(&allocations[1], 512, 64),
        extent,
    );
    lab.run(&commands);
    lab.assert_equal("COPY with different pitches");
}

fn blend_matches_the_reference() {
    let mut lab = Lab::new(SIZE, 2);
    let allocations = lab.allocations.clone();
    let mut commands = Commands::new();
    for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 0)] {
        let extent = Extent {
            width: 256,
            height: 30,
        };
        let (from, to) = (
            side(&allocations[from], 0, 256),
            side(&allocations[to], 1024, 300),
        );
        commands.blend(to, from, extent);
    }
    let extent = Extent {
        width: 128,
        height: 16,
    };
    commands.blend(
        side(&allocations[0], 64, 256),
        side(&allocations[0], 0, 256),
        extent,
    );
    commands.blend(
        side(&allocations[1], 0, 256),
        side(&allocations[1], 64, 256),
        extent,
    );
    lab.run(&commands);
    lab.assert_equal("BLEND");
}

fn store_and_add_match_the_reference() {
    let mut lab = Lab::new(SIZE, 2);
    let allocations = lab.allocations.clone();
    let mut commands = Commands::new();
    for allocation in &allocations {
        commands.store(allocation.at(0), 0x0123_4567_89ab_cdef);
        commands
            .add(allocation.at(8), u64::MAX)
            .store_register(0, allocation.at(16));
        commands
            .add(allocation.at(8), 1 << 63)
            .store_register(0, allocation.at(24));
        commands
            .load_register(5, allocation.at(32))
            .store_register(5, allocation.at(65528));
    }
    lab.run(&commands);
    lab.assert_equal("STORE and ADD");
}

fn checksum_is_crc_32c() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    let mut lab = Lab::new(SIZE, 2);
    let allocations = lab.allocations.clone();
    let mut commands = Commands::new();
    for allocation in &allocations {
        for (slot, (offset, bytes)) in [(4096, 9), (8192, 1), (4100, 4096), (100, 7), (1024, 64512)]
            .iter()
            .enumerate()
        {
            commands.checksum(
                allocations[0].at(slot as u64 * 8),
                allocation.at(*offset),
                *bytes,
            );
        }
    }
    lab.run(&commands);
    lab.assert_equal("CHECKSUM");
    let first = &allocations[0];
    lab.fixture.client.map(first).write(512, b"123456789");
    let mut commands = Commands::new();
    commands.checksum(first.at(0), first.at(512), 9);
    lab.fixture.run(&lab.context, &commands);
    assert_eq!(lab.fixture.client.map(first).read64(0), 0xe306_9283);
}

/// Appends a random packet that is legal.
fn random_packet(commands: &mut Commands, random: &mut Random, allocations: &[Allocation]) {
    let size = allocations[0].size;
    let (one, other) = (*random.pick(allocations), *random.pick(allocations));
    let long = |random: &mut Random| random.below(size / 8) * 8;
    match random.below(8) {
        0 => {
            let at = one.at(long(random));
            commands.store(at, random.next());
        }
        1 => {
            let at = one.at(long(random));
            commands.add(at, random.next());
        }
        2 => {
            let index = random.below(16) as u32;
            commands.set_register(index, random.next());
        }
        3 => {
            let at = one.at(long(random));
            commands.store_register(random.below(16) as u32, at);
        }
        4 => {
            let at = one.at(long(random));
            commands.load_register(random.below(16) as u32, at);
        }
        5 => {
            let start = random.below(size / 8) * 4;
            let bytes = 1 + random.below(size - start) as u32;
            let at = one.at(long(random));
            commands.checksum(at, other.at(start), bytes.min(2000));
        }
        number => {
            let width = 4 * (1 + random.below(64)) as u32;
            let height = 1 + random.below(32) as u32;
            let pitch = width + 4 * random.below(16) as u32;
            let room = size - u64::from(pitch) * u64::from(height);
            let to = side(&one, random.below(room / 4) * 4, pitch);
            let from = side(&other, random.below(room / 4) * 4, pitch);
            let extent = Extent { width, height };
            match (number, random.below(2)) {
                (6, 0) => _ = commands.fill(to, extent, random.next() as u32),
                (6, _) => _ = commands.copy(to, from, extent),
                _ => _ = commands.blend(to, from, extent),
            }
        }
    }
}

fn run_random_buffers(node: u32, rounds: u64) {
    let mut lab = Lab::new(32 * KIB, node);
    let mut random = Random::new(crate::effort::seed());
    for round in crate::effort::Rounds::new(rounds) {
        let allocations = lab.allocations.clone();
        let mut commands = Commands::new();
        for _ in 0..1 + random.below(30) {
            random_packet(&mut commands, &mut random, &allocations);
        }
        lab.run(&commands);
        if round % 8 == 7 {
            lab.assert_equal(&format!("round {round}"));
        }
    }
    lab.assert_equal("the end");
}

/// Random command buffers against the reference.
pub fn random_buffers_match_the_reference() {
    run_random_buffers(2, 40);
}

fn random_buffers_match_on_both_nodes() {
    run_random_buffers(0, 16);
    run_random_buffers(2, 16);
}

fn memory_outside_a_rectangle_is_left_alone() {
    let mut lab = Lab::new(SIZE, 2);
    let allocations = lab.allocations.clone();
    let mut commands = Commands::new();
    // The last legal bytes of each.
    for allocation in &allocations {
        commands.fill_bytes(allocation.at(SIZE - 8), 8, 0xaaaa_aaaa);
        let extent = Extent {
            width: 4,
            height: 16,
        };
        commands.fill(
            side(allocation, SIZE - 4 - 15 * 256, 256),
            extent,
            0xbbbb_bbbb,
        );
        commands.store(allocation.at(SIZE - 8), 0);
    }
    lab.run(&commands);
    lab.assert_equal("the last bytes");
}

fn large_ranges_are_right_at_every_piece() {
    let mut lab = Lab::new(512 * KIB, 2);
    let allocations = lab.allocations.clone();
    let mut commands = Commands::new();
    for (index, allocation) in allocations.iter().enumerate() {
        let start = 4 * (index as u64 + 1);
        commands.fill_bytes(allocation.at(start), 200_000, 0x5a5a_0000 + index as u32);
        let next = &allocations[(index + 1) % allocations.len()];
        commands.copy_bytes(next.at(250_000), allocation.at(start + 4), 260_000);
        commands.copy_bytes(allocation.at(65_532), allocation.at(65_528), 131_080);
        commands.copy_bytes(allocation.at(65_528), allocation.at(65_540), 131_080);
    }
    lab.run(&commands);
    lab.assert_equal("ranges of many pieces");
}
