// SPDX-License-Identifier: GPL-2.0

//! Hostile scenarios of class C: what crosses between a program and the kernel.

use std::sync::atomic::{
    AtomicBool,
    Ordering, //
};

use crate::{
    abi::{
        self,
        Array,
        Evict,
        FenceSignal,
        FenceWait,
        InfoNode,
        MakeResident,
        Query, //
    },
    call::{
        bytes_of,
        command,
        issue_as_32_bit,
        issue_at,
        Errno, //
    },
    calls::built,
    client::point,
    commands::Commands,
    effort::Rounds,
    fixture::{
        plain,
        Fixture,
        PHYSICAL_NODE,
        SYSTEM, //
    },
    memory::{
        Guarded,
        Mapping, //
    },
    suite::Suite,
    world::World,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "faults_copying",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[C2]" handles_rewritten_during_the_call_are_never_trusted,
        "[C2]" points_rewritten_during_the_call_are_never_trusted,
        "[C3]" records_of_query_are_whole,
        "[C4]" query_keeps_to_the_declared_size,
        "[C5]" calls_of_a_32_bit_program_are_the_same,
        "[C7]" points_of_every_count_are_taken,
    },
};

/// What no list may do: name this.
const WILD: u32 = 0xdead_beef;

/// Runs `attack` while the word at `offset` of a list flips between two values.
fn while_flipping(list: &Mapping, offset: usize, values: [u32; 2], attack: impl FnOnce()) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                for value in values {
                    list.write32(offset, value);
                }
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attack));
        done.store(true, Ordering::Release);
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

fn handles_rewritten_during_the_call_are_never_trusted() {
    let fixture = Fixture::new();
    let handles: Vec<u32> = (0..8)
        .map(|_| fixture.create(plain(4096, SYSTEM)).handle)
        .collect();
    let list = Mapping::anonymous(1);
    list.write(0, bytes_of(&handles));
    let array = Array {
        ptr: list.address(),
        count: 8,
        stride: 4,
    };
    let mut references = 0_u32;
    while_flipping(&list, 20, [handles[5], WILD], || {
        for _ in Rounds::new(3000) {
            let mut argument = MakeResident {
                queue: fixture.queue.handle,
                handles: array,
                ..Default::default()
            };
            match fixture.client.call(abi::IOCTL_MAKE_RESIDENT, &mut argument) {
                Ok(()) => references += 1,
                Err(errno) => assert_eq!((errno, argument.fail_index), (libc::ENOENT, 5)),
            }
            let mut argument = Evict {
                device: fixture.device,
                handles: array,
                ..Default::default()
            };
            match fixture.client.call(abi::IOCTL_EVICT, &mut argument) {
                Ok(()) => references -= 1,
                Err(libc::EINVAL) => assert_eq!((references, argument.fail_index), (0, 0)),
                Err(errno) => assert_eq!((errno, argument.fail_index), (libc::ENOENT, 5)),
            }
        }
    });
    let states = fixture.client.try_states(&handles).expect("ALLOC_QUERY");
    for state in states {
        assert_eq!(state.resident_refs, references);
    }
}

fn points_rewritten_during_the_call_are_never_trusted() {
    let fixture = Fixture::new();
    let fences: Vec<u32> = (0..8)
        .map(|_| fixture.client.create_fence(fixture.device, 0))
        .collect();
    let points: Vec<_> = fences.iter().map(|fence| point(*fence, 7)).collect();
    let list = Mapping::anonymous(1);
    list.write(0, bytes_of(&points));
    let array = Array {
        ptr: list.address(),
        count: 8,
        stride: 16,
    };
    // The handle of the fourth point.
    while_flipping(&list, 48, [fences[3], WILD], || {
        for _ in Rounds::new(3000) {
            let mut argument = FenceSignal {
                points: array,
                ..Default::default()
            };
            match fixture.client.call(abi::IOCTL_FENCE_SIGNAL, &mut argument) {
                Ok(()) => {}
                Err(errno) => assert_eq!((errno, argument.fail_index), (libc::ENOENT, 3)),
            }
            let mut argument = FenceWait {
                points: array,
                ..Default::default()
            };
            let result = fixture.client.call(abi::IOCTL_FENCE_WAIT, &mut argument);
            assert!(
                matches!(result, Ok(()) | Err(libc::ENOENT | libc::ETIME)),
                "{result:?}"
            );
        }
    });
    // The flags of the second point: none is known.
    while_flipping(&list, 20, [0, u32::MAX], || {
        for _ in Rounds::new(1000) {
            let mut argument = FenceSignal {
                points: array,
                ..Default::default()
            };
            let result = fixture.client.call(abi::IOCTL_FENCE_SIGNAL, &mut argument);
            let answers = [Ok(()), Err(libc::EOPNOTSUPP), Err(libc::ENOENT)];
            assert!(answers.contains(&result), "{result:?}");
        }
    });
    for fence in fences {
        assert!(!fixture.client.is_reached(fence, 8));
    }
}

/// The records of QUERY, each with an index that is there.
const RECORDS: [(u32, u32); 6] = [
    (abi::QUERY_ADAPTER, 0),
    (abi::QUERY_SEGMENT, 1),
    (abi::QUERY_NODE, 2),
    (abi::QUERY_IOCTL, 1),
    (abi::QUERY_LIMITS, 0),
    (abi::QUERY_CLIENT, 0),
];

/// Asks for a record of at most `room` bytes at `data`; success carries the size.
fn query(world: &World, record: (u32, u32), data: u64, room: u32) -> Result<u32, Errno> {
    let mut argument = Query {
        query: record.0,
        index: record.1,
        data,
        size: room,
        flags: 0,
    };
    world.client.call(abi::IOCTL_QUERY, &mut argument)?;
    Ok(argument.size)
}

fn records_of_query_are_whole() {
    let world = World::new();
    for record in RECORDS {
        let read = |garbage: u8| {
            let mut bytes = vec![garbage; 512];
            let size = query(&world, record, bytes.as_mut_ptr() as u64, 512);
            (size.expect("QUERY") as usize, bytes)
        };
        let ((size, one), (_, other)) = (read(0xa5), read(0x5a));
        assert_eq!(one[..size], other[..size], "record {record:?}");
        let untouched = |bytes: &[u8], garbage| {
            let mut rest = bytes[size..].iter();
            rest.all(|byte| *byte == garbage || *byte == 0)
        };
        assert!(
            untouched(&one, 0xa5) && untouched(&other, 0x5a),
            "{record:?}"
        );
    }
}

fn query_keeps_to_the_declared_size() {
    let world = World::new();
    let memory = Guarded::new(1);
    for record in RECORDS {
        let mut whole = vec![0; 512];
        let full = query(&world, record, whole.as_mut_ptr() as u64, 512).expect("QUERY") as usize;
        for size in 0..=full {
            let address = memory.place(&vec![0xa5; size]);
            match query(&world, record, address, size as u32) {
                Ok(told) => {
                    assert!(told as usize <= size.max(full), "{record:?}: {told}");
                    assert_eq!(memory.read(size), whole[..size], "{record:?}, size {size}");
                }
                Err(errno) => assert_eq!(errno, libc::EINVAL, "{record:?}, size {size}"),
            }
        }
    }
}

fn calls_of_a_32_bit_program_are_the_same() {
    let world = World::new();
    let memory = Mapping::low(1);
    for call in built(&world.client) {
        let argument = (call.arrange)(&world);
        memory.write(0, &argument.bytes);
        let address = u32::try_from(memory.address()).expect("memory below 4 GiB");
        let number = command(call.number, call.size);
        let result = issue_as_32_bit(world.client.file(), number, address);
        assert_eq!(result, Ok(()), "{}", call.name);
        let result = issue_as_32_bit(world.client.file(), number ^ 0x100, address);
        assert_eq!(result, Err(libc::ENOTTY), "{} of another type", call.name);
        let result = issue_as_32_bit(world.client.file(), number, 0x1000);
        assert_eq!(result, Err(libc::EFAULT), "{} at a bad address", call.name);
    }
}

fn points_of_every_count_are_taken() {
    let fixture = Fixture::new();
    let client = &fixture.client;
    let context = fixture.context();
    let node: InfoNode = client.query(abi::QUERY_NODE, PHYSICAL_NODE);
    let most = node.max_points as usize;
    let fence = client.create_fence(fixture.device, 0);
    for count in [1, 2, 3, most] {
        let points = vec![point(fence, 1); count];
        client.try_signal(&points, 0).expect("FENCE_SIGNAL");
        client.try_wait(&points, 0, 0).expect("FENCE_WAIT");
    }
    for count in [0, 1, 2, most] {
        let mut commands = Commands::new();
        commands.waits = vec![point(fence, 1); count];
        commands.signals = vec![point(fence, 2); count];
        fixture.run(&context, &commands);
    }
    let mut argument = FenceSignal::default();
    let empty = issue_at(
        client.file(),
        abi::IOCTL_FENCE_SIGNAL,
        (&raw mut argument) as u64,
    );
    assert_eq!(empty, Err(libc::EINVAL));
}
