// SPDX-License-Identifier: GPL-2.0

//! Fuzzing: valid arguments with random changes, in random order, from several threads.
//!
//! What comes back does not matter as long as it is an errno of the interface. What matters is that
//! the machine goes on: the kernel log stays clean, and other clients keep their data.

use crate::{
    abi::nr,
    argument::Argument,
    call::{
        command,
        issue_at, //
    },
    calls::built,
    clock,
    commands::Commands,
    fixture::{
        pattern,
        physical,
        Fixture,
        KIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    memory::Mapping,
    random::Random,
    schema::{
        Call,
        Kind,
        TYPES, //
    },
    suite::Suite,
    world::World, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "fuzz",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" changed_arguments_harm_nobody,
        "[BCK-11]" changed_command_buffers_harm_nobody,
        "" random_mappings_harm_nobody,
    },
};

/// Errnos that a call may answer.
const ERRNOS: [i32; 22] = [
    libc::ENOTTY,
    libc::E2BIG,
    libc::EOPNOTSUPP,
    libc::EINVAL,
    libc::EFAULT,
    libc::EBADF,
    libc::EOVERFLOW,
    libc::ENOENT,
    libc::EXDEV,
    libc::EPERM,
    libc::EACCES,
    libc::EEXIST,
    libc::EBUSY,
    libc::EAGAIN,
    libc::ETIME,
    libc::EINTR,
    libc::ENOMEM,
    libc::ENOSPC,
    libc::ENOBUFS,
    libc::ECANCELED,
    libc::EIO,
    libc::ENODEV,
];

/// A number that is more interesting than others.
fn interesting(random: &mut Random, world: &World) -> u64 {
    let fixed = [
        0,
        1,
        2,
        7,
        8,
        0xff,
        0x1000,
        0xffff,
        1 << 31,
        u64::from(u32::MAX),
        1 << 32,
        1 << 44,
        u64::MAX,
        u64::MAX - 7,
        0xffff_8880_0000_0000,
        0x7fff_ffff_f000,
    ];
    match random.below(4) {
        0 => u64::from(world.handle(*random.pick(&TYPES))),
        1 => 1 << random.below(64),
        2 => random.next(),
        _ => *random.pick(&fixed),
    }
}

/// Changes some fields of an argument or of its lists.
fn change(random: &mut Random, world: &World, call: &Call, argument: &mut Argument) {
    for _ in 0..1 + random.below(3) {
        let value = interesting(random, world);
        let field = random.pick(call.fields);
        match field.kind {
            Kind::List(element, _) if argument.owns(field.offset) && random.once_in(2) => {
                let inner = random.pick(element.fields);
                argument.set_element(field, 0, inner, value);
            }
            Kind::List(..) => {
                let mut array = argument.array(field.offset);
                match random.below(3) {
                    0 => array.ptr = value,
                    1 => array.count = value as u32,
                    _ => array.stride = value as u32,
                }
                // Behind a list that grew there is memory that belongs to others; the kernel may
                // write to it only where the list is one that it writes. Keep those short.
                if element_is_written(field) && array.count > 1 {
                    array.count = 0;
                }
                argument.set_array(field.offset, array);
            }
            // The kernel writes where this points.
            Kind::Pointer if call.name == "QUERY" => {}
            Kind::InOut if call.name == "QUERY" => {}
            _ => argument.set(field, value),
        }
    }
}

fn element_is_written(field: &crate::schema::Field) -> bool {
    matches!(field.kind, Kind::List(element, _) if element.written)
}

/// Deadlines that end soon, so that no call waits.
fn cap_deadline(call: &Call, argument: &mut Argument) {
    if let Some(field) = call.fields.iter().find(|field| field.name == "deadline_ns") {
        let value = argument.get(field);
        if value > 1 << 32 && value < 1 << 63 {
            argument.set(field, crate::clock::deadline_in(1) as u64);
        }
    }
}

/// A client whose data must stay as it is.
struct Witness {
    fixture: Fixture,
    mappings: Vec<(crate::client::Allocation, Mapping)>,
}

impl Witness {
    fn new() -> Self {
        let fixture = Fixture::new();
        let mappings = [VISIBLE_SEGMENT, SYSTEM]
            .iter()
            .map(|mask| {
                let allocation = fixture.create_resident(physical(64 * KIB, *mask));
                let mapping = fixture.client.map(&allocation);
                mapping.write(0, &pattern(u64::from(*mask), 64 * KIB));
                (allocation, mapping)
            })
            .collect();
        Self { fixture, mappings }
    }

    fn assert_well(&self) {
        for ((_, mapping), mask) in self.mappings.iter().zip([VISIBLE_SEGMENT, SYSTEM]) {
            let intact = mapping.read(0, 65536) == pattern(u64::from(mask), 64 * KIB);
            assert!(intact, "data of another client has changed");
        }
        let (allocation, mapping) = &self.mappings[0];
        let mut commands = Commands::new();
        let value = mapping.read64(8);
        commands.store(allocation.at(8), value);
        self.fixture.run(&self.fixture.context(), &commands);
    }
}

/// Changed arguments.
pub fn changed_arguments_harm_nobody() {
    let witness = Witness::new();
    let mut random = Random::new(crate::effort::seed());
    let mut world = World::new();
    let calls = built(&world.client);
    for round in crate::effort::Rounds::new(4000) {
        let call = random.pick(&calls);
        // A device may be gone or in error by now: the argument needs a live world.
        if round % 64 == 0 {
            world = World::new();
        }
        let live =
            world.client.try_states(&[world.allocation.handle]).is_ok() && still_usable(&world);
        if !live {
            world = World::new();
        }
        let mut argument = (call.arrange)(&world);
        change(&mut random, &world, call, &mut argument);
        cap_deadline(call, &mut argument);
        let number = if random.once_in(50) {
            *random.pick(&nr::ALL)
        } else {
            call.number
        };
        if number != call.number && number == nr::QUERY {
            continue;
        }
        if number == nr::SCANOUT {
            // A switch that waits for its fence holds the next one up; it goes with its client.
            world = World::new();
            argument = (call.arrange)(&world);
            change(&mut random, &world, call, &mut argument);
        }
        if let Err(errno) =
            crate::call::issue_bytes(world.client.file(), number, &mut argument.bytes)
        {
            assert!(ERRNOS.contains(&errno), "{} answers {errno}", call.name);
        }
    }
    witness.assert_well();
}

/// Whether every object that arguments name is still there and its device in order.
fn still_usable(world: &World) -> bool {
    let mut state = crate::abi::DeviceState {
        device: world.device,
        ..Default::default()
    };
    let device = world
        .client
        .call(crate::abi::IOCTL_DEVICE_STATE, &mut state);
    let queue = world
        .client
        .try_make_resident(world.queue.handle, &[world.allocation.handle]);
    if queue.is_ok() {
        let _ = world
            .client
            .try_evict(world.device, &[world.allocation.handle], 0);
    }
    let fence = |handle| {
        world
            .client
            .try_wait(&[crate::client::point(handle, 0)], 0, 0)
            .is_ok()
    };
    // A changed wait list may hold the context back for ever.
    let flows = || {
        let context = world.context;
        let id = Commands::new().try_submit(&world.client, context.handle);
        let moment = std::time::Duration::from_millis(200);
        id.is_ok_and(|id| {
            clock::holds_within(moment, || world.client.is_reached(context.progress, id))
        })
    };
    device.is_ok()
        && state.state == crate::abi::DEVICE_STATE_ACTIVE
        && queue.is_ok()
        && fence(world.fence)
        && fence(world.other_fence)
        && flows()
}

/// Changed command buffers.
pub fn changed_command_buffers_harm_nobody() {
    let witness = Witness::new();
    let fixture = Fixture::new();
    let context = fixture.context();
    let one = fixture.create(physical(16 * KIB, VISIBLE_SEGMENT));
    let other = fixture.create(physical(16 * KIB, SYSTEM));
    let mut random = Random::new(crate::effort::seed());
    let mut last = 0;
    for _ in crate::effort::Rounds::new(3000) {
        let mut commands = Commands::new();
        commands
            .fill_bytes(one.at(0), 4096, 1)
            .copy_bytes(other.at(8), one.at(16), 512);
        commands
            .store(one.at(64), 2)
            .checksum(other.at(0), one.at(0), 256);
        for _ in 0..1 + random.below(3) {
            let value = random.next() as u32 >> random.below(32);
            match random.below(4) {
                0 => {
                    let index = random.index(commands.dwords.len());
                    commands.dwords[index] = value;
                }
                1 => {
                    let index = random.index(commands.patches.len());
                    let patch = &mut commands.patches[index];
                    match random.below(6) {
                        0 => patch.alloc_index = value,
                        1 => patch.slot = value % 10,
                        2 => patch.alloc_offset = u64::from(value),
                        3 => patch.patch_offset = value & !7,
                        4 => patch.split_offset = value & !7,
                        _ => patch.kind = value % 5,
                    }
                }
                2 => {
                    let index = random.index(commands.allocs.len());
                    commands.allocs[index].flags = value % 3;
                }
                _ => commands
                    .dwords
                    .truncate(1 + random.index(commands.dwords.len())),
            }
        }
        // A SPIN or POLL that came about would only take time.
        match commands.try_submit(&fixture.client, context.handle) {
            Ok(id) => last = id,
            Err(refusal) => assert!(ERRNOS.contains(&refusal.errno), "{refusal:?}"),
        }
    }
    fixture.client.wait(context.progress, last);
    witness.assert_well();
}

/// Random mappings.
pub fn random_mappings_harm_nobody() {
    let witness = Witness::new();
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(physical(64 * KIB, VISIBLE_SEGMENT));
    let mut random = Random::new(crate::effort::seed());
    for _ in crate::effort::Rounds::new(2000) {
        let offset = match random.below(3) {
            0 => (random.next() >> random.below(40)) & !4095,
            _ => allocation.mmap_offset.wrapping_add(random.below(64) * 4096) - 32 * 4096,
        };
        let length = (1 + random.below(40)) as usize * 4096;
        let protection = random.below(8) as i32;
        let flags = [
            libc::MAP_SHARED,
            libc::MAP_PRIVATE,
            libc::MAP_SHARED_VALIDATE,
        ];
        let flags = *random.pick(&flags);
        let file = fixture.client.file();
        let Ok(mapping) = Mapping::try_new(file, offset, length, protection, flags) else {
            continue;
        };
        if protection & libc::PROT_READ != 0 {
            mapping.read32(0);
        }
        if random.once_in(4) {
            let _ = mapping.protect(0, 4096, random.below(8) as i32);
        }
    }
    let command = command(0xff, 16383);
    assert!(issue_at(fixture.client.file(), command, 0).is_err());
    witness.assert_well();
}
