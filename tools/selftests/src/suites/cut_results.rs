// SPDX-License-Identifier: GPL-2.0

//! Results of cut submissions: whatever the cuts, memory is what it would be without them.

use crate::{
    abi::{
        self,
        engine, //
    },
    client::{
        Allocation,
        Context, //
    },
    clock,
    commands::{
        Commands,
        Extent, //
        Write,
    },
    debugfs,
    effort::Rounds,
    fixture::{
        pattern,
        Fixture,
        KIB,
        MIB,
        PHYSICAL_NODE, //
    },
    lab::side,
    portions::{
        bounds,
        cuts,
        leave_free,
        trace_run,
        Piece, //
    },
    random::Random,
    reference::Machine,
    suite::Suite, //
};

/// The suite where contexts are saved.
pub const SUITE: Suite = Suite {
    name: "cut_results",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[BCK-4]" buffer_cut_at_every_point_equals_the_uncut_one,
        "[BCK-4] [DMA-17]" random_programs_do_not_depend_on_memory,
        "[DMA-6]" registers_survive_cuts_where_contexts_are_saved,
    },
};

/// The suite where they are not.
pub const BACK_TO_BACK_SUITE: Suite = Suite {
    name: "cut_results_nsr",
    parameters: Some("profile=DISC-NSR"),
    cases: LOSING,
};

/// The suite on an adapter without GPU MMU.
pub const PHYSICAL_SUITE: Suite = Suite {
    name: "cut_results_phys",
    parameters: Some("profile=PHYS"),
    cases: LOSING,
};

const LOSING: &[crate::suite::Case] = crate::cases! {
    "[BCK-4]" buffer_cut_at_every_point_equals_the_uncut_one,
    "[BCK-4] [DMA-17]" random_programs_do_not_depend_on_memory,
    "[DMA-6]" registers_are_poison_behind_a_cut_and_only_there,
};

/// Allocations with equal content on the GPU and in the reference.
struct Bench {
    fixture: Fixture,
    context: Context,
    pieces: Vec<Piece>,
    machine: Machine,
}

impl Bench {
    fn new(sizes: &[u64]) -> Self {
        let fixture = Fixture::new();
        let context = fixture.context();
        let node: abi::InfoNode = fixture.client.query(abi::QUERY_NODE, PHYSICAL_NODE);
        let machine = Machine::new(node.flags & abi::NODE_SAVES_CONTEXT != 0);
        let pieces = sizes
            .iter()
            .map(|size| Piece::new(&fixture, *size))
            .collect();
        let mut bench = Self {
            fixture,
            context,
            pieces,
            machine,
        };
        bench.restore();
        bench
    }

    /// Gives every allocation its first content.
    fn restore(&mut self) {
        for (seed, piece) in (1..).zip(&self.pieces) {
            let content = pattern(seed, piece.allocation.size);
            piece.mapping.write(0, &content);
            self.machine.set(piece.allocation.handle, content);
        }
    }

    fn allocations(&self) -> Vec<Allocation> {
        self.pieces.iter().map(|piece| piece.allocation).collect()
    }

    #[track_caller]
    fn assert_equal(&self, what: &str) {
        for (number, piece) in self.pieces.iter().enumerate() {
            let found = piece.mapping.read(0, piece.allocation.size as usize);
            let expected = self.machine.content(piece.allocation.handle);
            let differs = found
                .iter()
                .zip(expected)
                .position(|(one, other)| one != other);
            assert_eq!(differs, None, "{what}: allocation {number} differs");
        }
    }
}

/// Appends random packets. Each binds what it uses at its start, or keeps what an earlier one has
/// bound; registers are set in the same breath in which they are stored. There are so many `pairs` of slots.
fn append(
    commands: &mut Commands,
    random: &mut Random,
    allocations: &[Allocation],
    packets: u32,
    pairs: u64,
) {
    for _ in 0..packets {
        let to = *random.pick(allocations);
        let from = *random.pick(allocations);
        let first = commands.patches.len();
        let start = commands.bytes();
        let extent = Extent {
            width: 4 * (1 + random.below(60)) as u32,
            height: 1 + random.below(8) as u32,
        };
        let mut place =
            |allocation: &Allocation, reach: u64| 8 * random.below((allocation.size - reach) / 8);
        let (there, here) = (place(&to, 4096), place(&from, 4096));
        match random.below(8) {
            0 => commands.fill(side(&to, there, 256), extent, random.next() as u32),
            1 | 2 => commands.copy(side(&to, there, 256), side(&from, here, 260), extent),
            3 | 4 => commands.blend(side(&to, there, 256), side(&from, here, 256), extent),
            5 => commands.checksum(
                to.at(there),
                from.at(here),
                4 * (1 + random.below(1000)) as u32,
            ),
            6 => commands.add(to.at(there), random.next()),
            _ => {
                let index = 1 + random.below(15) as u32;
                commands.set_register(index, random.next());
                commands.store_register(index, to.at(there))
            }
        };
        let pair = 2 * random.below(pairs) as u32;
        for patch in &mut commands.patches[first..] {
            patch.slot += pair;
            patch.split_offset = start;
        }
        if random.once_in(4) {
            commands.unbind(random.below(2 * pairs) as u32);
        }
    }
}

fn buffer_cut_at_every_point_equals_the_uncut_one() {
    let mut bench = Bench::new(&[64 * KIB, 64 * KIB, 128 * KIB]);
    let [one, other] = [0, 1].map(|_| Piece::new(&bench.fixture, 12 * MIB));
    let mut random = Random::new(7);
    let allocations = bench.allocations();
    let mut commands = Commands::new();
    append(&mut commands, &mut random, &allocations, 40, 3);
    // One of two that do not fit together is bound beside all else, the other one from the cut on.
    let mut points: Vec<u32> = commands
        .patches
        .iter()
        .map(|patch| patch.split_offset)
        .collect();
    points.dedup();
    let points: Vec<u32> = points
        .into_iter()
        .filter(|point| *point > 0 && *point < commands.bytes())
        .collect();
    assert!(points.len() > 30);
    for point in points {
        bench.restore();
        bench.machine.run(&commands);
        let mut cut = commands.clone();
        for (piece, offset) in [(&one, 0), (&other, point)] {
            let alloc_index = cut.list(piece.allocation.handle, Write::No);
            let entry = abi::SubmitPatch {
                alloc_index,
                // No packet of these buffers binds the last slot.
                slot: 7,
                split_offset: offset,
                ..Default::default()
            };
            let at = cut
                .patches
                .iter()
                .position(|patch| patch.split_offset >= offset);
            cut.patches.insert(at.unwrap_or(cut.patches.len()), entry);
        }
        let events = trace_run(&bench.fixture, &cut);
        assert_eq!(
            cuts(&events),
            bounds(&[u64::from(point), u64::from(commands.bytes())])
        );
        bench.assert_equal(&format!("cut at {point}"));
    }
}

/// Runs a random program with so much memory and compares the outcome. Returns the number of portions;
/// [`None`] if the memory did not suffice for one point.
fn run_program(seed: u64, sizes: &[u64], room: u64) -> Option<u32> {
    let mut bench = Bench::new(sizes);
    let mut random = Random::new(1000 + seed);
    let mut commands = Commands::new();
    append(&mut commands, &mut random, &bench.allocations(), 60, 1);
    leave_free(room);
    let id = commands.submit(&bench.fixture.client, &bench.context);
    let client = &bench.fixture.client;
    let state = || client.device_state(bench.fixture.device).state;
    clock::wait_until("it ends one way or the other", || {
        let report = client.try_submission(bench.context.handle, id);
        report.map_or(true, |report| report.state == abi::SUBMIT_STATE_DONE)
    });
    debugfs::inject("reserve 1 0");
    if state() == abi::DEVICE_STATE_ERROR_MEMORY {
        return None;
    }
    let report = client.try_submission(bench.context.handle, id);
    bench.machine.run(&commands);
    bench.assert_equal(&format!("program {seed} with {} KiB", room / KIB));
    Some(report.expect("SUBMIT_QUERY").splits)
}

fn random_programs_do_not_depend_on_memory() {
    let sizes = [
        64 * KIB,
        128 * KIB,
        192 * KIB,
        256 * KIB,
        320 * KIB,
        64 * KIB,
    ];
    let all: u64 = sizes.iter().sum();
    for seed in Rounds::new(5) {
        assert_eq!(run_program(seed, &sizes, all), Some(1));
        let rooms = (1..).map(|step| all - step * 64 * KIB);
        let portions: Vec<u32> = rooms
            .map_while(|room| run_program(seed, &sizes, room))
            .collect();
        // Less memory, more portions; in the end two of the largest do not fit.
        assert!(
            portions.last().is_some_and(|last| *last > 1),
            "{portions:?}"
        );
        assert!(portions.len() >= 4, "{portions:?}");
    }
}

/// A buffer that sets a register at each point, or only at its start, and stores it.
fn storing_registers(pieces: &[Piece], sets: Sets) -> Commands {
    let mut commands = Commands::new();
    for (number, piece) in (0..).zip(pieces) {
        let start = commands.bytes();
        if number == 0 || sets == Sets::AtEachPoint {
            commands.set_register(3, 77);
        }
        let first = commands.patches.len();
        commands.store_register(3, piece.allocation.at(0));
        commands.patches[first].split_offset = start;
    }
    commands
}

/// Where a buffer sets its register.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sets {
    AtTheStart,
    AtEachPoint,
}

fn values(pieces: &[Piece]) -> Vec<u64> {
    pieces.iter().map(|piece| piece.mapping.read64(0)).collect()
}

/// Runs a buffer with room for so many of its allocations; returns what was stored.
fn run_with_room(room: u64, sets: Sets) -> Vec<u64> {
    let size = 256 * KIB;
    let fixture = Fixture::new();
    let pieces: Vec<Piece> = (0..4).map(|_| Piece::new(&fixture, size)).collect();
    leave_free(room * size);
    fixture.run(&fixture.context(), &storing_registers(&pieces, sets));
    let values = values(&pieces);
    debugfs::inject("reserve 1 0");
    values
}

fn registers_are_poison_behind_a_cut_and_only_there() {
    let poison = engine::REGISTER_POISON;
    assert_eq!(run_with_room(4, Sets::AtTheStart), [77, 77, 77, 77]);
    assert_eq!(run_with_room(2, Sets::AtTheStart), [77, 77, poison, poison]);
    assert_eq!(
        run_with_room(1, Sets::AtTheStart),
        [77, poison, poison, poison]
    );
    for room in [1, 2, 3, 4] {
        assert_eq!(run_with_room(room, Sets::AtEachPoint), [77; 4]);
    }
}

fn registers_survive_cuts_where_contexts_are_saved() {
    for room in [1, 2, 4] {
        assert_eq!(run_with_room(room, Sets::AtTheStart), [77; 4]);
    }
}
