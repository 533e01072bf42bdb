// SPDX-License-Identifier: GPL-2.0

//! Numbers, sizes and addresses of arguments: the rules that hold for every call alike.

use crate::{
    abi::{
        self,
        nr,
        InfoAdapter,
        InfoIoctl, //
    },
    call::{
        command,
        issue_at,
        issue_bytes, //
    },
    calls::{
        built,
        described, //
    },
    memory::{
        Guarded,
        PAGE, //
    },
    schema::{
        Call,
        Kind, //
    },
    suite::Suite,
    world::World, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "abi",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" valid_argument_of_every_call_is_accepted,
        "" unknown_number_is_no_call,
        "" number_of_a_later_call_is_not_supported,
        "" call_is_there_when_its_feature_is,
        "" other_direction_or_type_is_no_call,
        "[C4]" smaller_argument_than_first_is_malformed,
        "" argument_beyond_a_page_is_too_big,
        "" longer_argument_with_zero_tail_is_accepted,
        "" longer_argument_with_non_zero_tail_is_too_big,
        "" argument_of_a_whole_page_is_accepted,
        "" argument_at_a_bad_address_is_a_fault,
        "" argument_that_runs_into_a_hole_is_a_fault,
        "[C4]" argument_that_ends_at_a_hole_is_accepted,
        "" read_only_argument_with_outputs_is_a_fault,
        "[C3]" outputs_leave_nothing_of_the_caller,
        "[C3]" refused_call_leaves_inputs_and_outputs,
        "" ioctl_record_tells_sizes_and_flags,
        "" size_is_checked_before_everything_else,
    },
};

fn valid_argument_of_every_call_is_accepted() {
    let world = World::new();
    for call in built(&world.client) {
        let mut argument = (call.arrange)(&world);
        world.assert_accepted(call, &mut argument, "a valid argument");
    }
}

fn unknown_number_is_no_call() {
    let world = World::new();
    for number in 0..=u8::MAX {
        if nr::ALL.contains(&number) {
            continue;
        }
        for size in [0, 8, 64] {
            let mut bytes = vec![0; size];
            let result = issue_bytes(world.client.file(), number, &mut bytes);
            assert_eq!(result, Err(libc::ENOTTY), "number {number:#x}, size {size}");
        }
    }
}

fn number_of_a_later_call_is_not_supported() {
    let world = World::new();
    let calls = built(&world.client);
    for number in nr::ALL {
        if calls.iter().any(|call| call.number == number) {
            continue;
        }
        for size in [8, 56, 64] {
            let mut bytes = vec![0; size];
            let result = issue_bytes(world.client.file(), number, &mut bytes);
            assert_eq!(result, Err(libc::EOPNOTSUPP), "number {number:#x}");
        }
    }
}

/// Calls that come with a feature; the others that are described are always there.
const FEATURES: [(u64, &[u8]); 5] = [
    (abi::FEATURE_PATCHED, &[nr::SUBMIT_PATCHED]),
    (
        abi::FEATURE_VIRTUAL,
        &[
            nr::SUBMIT_VIRTUAL,
            nr::VA_RESERVE,
            nr::VA_FREE,
            nr::VA_MAP,
            nr::VA_QUERY,
        ],
    ),
    (
        abi::FEATURE_BUDGET_EVENTS,
        &[nr::BUDGET, nr::RESERVE_BUDGET, nr::EVENTS],
    ),
    // SET_PRIORITY has no feature of its own; it is as old as OFFER.
    (
        abi::FEATURE_OFFER,
        &[nr::OFFER, nr::RECLAIM, nr::SET_PRIORITY],
    ),
    (abi::FEATURE_SCANOUT, &[nr::SCANOUT]),
];

fn call_is_there_when_its_feature_is() {
    let world = World::new();
    let record: InfoAdapter = world.client.query(abi::QUERY_ADAPTER, 0);
    let calls = built(&world.client);
    for call in described() {
        let feature = FEATURES.iter().find(|(_, of)| of.contains(&call.number));
        if feature.is_none_or(|(bit, _)| record.features & bit != 0) {
            let is_there = calls.iter().any(|built| built.number == call.number);
            assert!(is_there, "{}", call.name);
        }
    }
}

fn other_direction_or_type_is_no_call() {
    let world = World::new();
    for call in built(&world.client) {
        let right = command(call.number, call.size);
        let no_write = right & !(1 << 30);
        let no_read = right & !(2 << 30);
        let other_type = right ^ 0x0100;
        for wrong in [no_write, no_read, right & !(3 << 30), other_type] {
            let mut argument = (call.arrange)(&world);
            let address = argument.bytes.as_mut_ptr() as u64;
            let result = issue_at(world.client.file(), wrong, address);
            assert_eq!(
                result,
                Err(libc::ENOTTY),
                "{}: command {wrong:#x}",
                call.name
            );
        }
    }
}

/// Issues a call with the argument cut or extended to `size` bytes.
fn issue_sized(world: &World, call: &Call, size: usize, tail: u8) -> (Result<(), i32>, Vec<u8>) {
    let mut argument = (call.arrange)(world);
    argument.bytes.resize(size.max(call.size), 0);
    if let Some(last) = argument.bytes.last_mut().filter(|_| size > call.size) {
        *last = tail;
    }
    let address = argument.bytes.as_mut_ptr() as u64;
    let result = issue_at(world.client.file(), command(call.number, size), address);
    (result, argument.bytes)
}

fn smaller_argument_than_first_is_malformed() {
    let world = World::new();
    for call in built(&world.client) {
        for size in (0..call.size).step_by(4).chain([call.size - 1]) {
            let (result, _) = issue_sized(&world, call, size, 0);
            assert_eq!(result, Err(libc::EINVAL), "{}: size {size}", call.name);
        }
    }
}

fn argument_beyond_a_page_is_too_big() {
    let world = World::new();
    for call in built(&world.client) {
        for size in [PAGE + 1, PAGE + 8, 16383] {
            let (result, _) = issue_sized(&world, call, size, 0);
            assert_eq!(result, Err(libc::E2BIG), "{}: size {size}", call.name);
        }
    }
}

fn longer_argument_with_zero_tail_is_accepted() {
    let world = World::new();
    for call in built(&world.client) {
        for more in [1, 4, 8, 64, 100] {
            let (result, bytes) = issue_sized(&world, call, call.size + more, 0);
            assert_eq!(result, Ok(()), "{}: {more} more bytes", call.name);
            let clear = bytes[call.size..].iter().all(|byte| *byte == 0);
            assert!(clear, "{}: the tail is not clear", call.name);
        }
    }
}

fn longer_argument_with_non_zero_tail_is_too_big() {
    let world = World::new();
    for call in built(&world.client) {
        for more in [1, 4, 8, 64, 100] {
            let (result, _) = issue_sized(&world, call, call.size + more, 1);
            assert_eq!(result, Err(libc::E2BIG), "{}: {more} more bytes", call.name);
        }
    }
}

fn argument_of_a_whole_page_is_accepted() {
    let world = World::new();
    for call in built(&world.client) {
        let (result, _) = issue_sized(&world, call, PAGE, 0);
        assert_eq!(result, Ok(()), "{}: a page", call.name);
        let (result, _) = issue_sized(&world, call, PAGE, 1);
        assert_eq!(
            result,
            Err(libc::E2BIG),
            "{}: a page with a tail",
            call.name
        );
    }
}

fn argument_at_a_bad_address_is_a_fault() {
    let world = World::new();
    for call in built(&world.client) {
        let command = command(call.number, call.size);
        for address in [
            0,
            0x1000,
            0x7fff_ffff_f000,
            0xffff_8880_0000_0000,
            u64::MAX - 7,
        ] {
            let result = issue_at(world.client.file(), command, address);
            assert_eq!(
                result,
                Err(libc::EFAULT),
                "{}: address {address:#x}",
                call.name
            );
        }
    }
}

fn argument_that_runs_into_a_hole_is_a_fault() {
    let world = World::new();
    let memory = Guarded::new(1);
    for call in built(&world.client) {
        let argument = (call.arrange)(&world);
        for missing in [1, 4, call.size - 4] {
            let address = memory.place(&argument.bytes[..call.size - missing]);
            let command = command(call.number, call.size);
            let result = issue_at(world.client.file(), command, address);
            assert_eq!(
                result,
                Err(libc::EFAULT),
                "{}: {missing} bytes missing",
                call.name
            );
        }
    }
}

fn argument_that_ends_at_a_hole_is_accepted() {
    let world = World::new();
    let memory = Guarded::new(1);
    for call in built(&world.client) {
        let argument = (call.arrange)(&world);
        let address = memory.place(&argument.bytes);
        let result = issue_at(
            world.client.file(),
            command(call.number, call.size),
            address,
        );
        assert_eq!(result, Ok(()), "{}", call.name);
    }
}

fn read_only_argument_with_outputs_is_a_fault() {
    let world = World::new();
    for call in built(&world.client) {
        let written = |kind: &Kind| matches!(kind, Kind::Out | Kind::OutAlways | Kind::InOut);
        if !call.fields.iter().any(|field| written(&field.kind)) {
            continue;
        }
        let memory = Guarded::new(1);
        let argument = (call.arrange)(&world);
        let address = memory.place(&argument.bytes);
        memory.seal();
        let result = issue_at(
            world.client.file(),
            command(call.number, call.size),
            address,
        );
        assert_eq!(result, Err(libc::EFAULT), "{}", call.name);
    }
}

fn outputs_leave_nothing_of_the_caller() {
    let world = World::new();
    for call in built(&world.client) {
        let mut argument = (call.arrange)(&world);
        let outputs = call.fields.iter();
        let outputs: Vec<_> = outputs
            .filter(|field| matches!(field.kind, Kind::Out | Kind::OutAlways))
            .collect();
        for field in &outputs {
            argument.set(field, 0xa5a5_a5a5_a5a5_a5a5);
        }
        world.assert_accepted(call, &mut argument, "outputs filled by the caller");
        for field in &outputs {
            let left = 0xa5a5_a5a5_a5a5_a5a5 >> (64 - 8 * field.size);
            assert_ne!(
                argument.get(field),
                left,
                "{}.{} is not written",
                call.name,
                field.name
            );
        }
    }
}

fn refused_call_leaves_inputs_and_outputs() {
    let world = World::new();
    for call in built(&world.client) {
        let Some(handle) = call
            .fields
            .iter()
            .find(|field| matches!(field.kind, Kind::Handle(_)))
        else {
            continue;
        };
        let mut argument = (call.arrange)(&world);
        argument.set(handle, 0xdead_beef);
        for field in call
            .fields
            .iter()
            .filter(|field| matches!(field.kind, Kind::Out))
        {
            argument.set(field, 0xa5a5_a5a5_a5a5_a5a5);
        }
        let before = argument.bytes.clone();
        world.assert_refused(
            call,
            &mut argument,
            libc::ENOENT,
            "a handle that nobody has",
        );
        for field in call.fields {
            let range = field.offset..field.offset + field.size;
            let same = argument.bytes[range.clone()] == before[range.clone()];
            let cleared = argument.bytes[range].iter().all(|byte| *byte == 0);
            match field.kind {
                Kind::OutAlways => {}
                Kind::Out => assert!(same || cleared, "{}.{}", call.name, field.name),
                _ => assert!(same, "{}.{} has changed", call.name, field.name),
            }
        }
    }
}

fn ioctl_record_tells_sizes_and_flags() {
    let world = World::new();
    for call in built(&world.client) {
        let record: InfoIoctl = world.client.query(abi::QUERY_IOCTL, u32::from(call.number));
        assert_eq!(record.nr, u32::from(call.number));
        assert_eq!(record.supported, 1, "{}", call.name);
        assert_eq!(record.size_first as usize, call.size, "{}", call.name);
        assert_eq!(record.size_known as usize, call.size, "{}", call.name);
        let flags = call.fields.iter().find(|field| field.name == "flags");
        if let Some(Kind::Flags(known)) = flags.map(|field| field.kind) {
            assert_eq!(record.flags_known, known, "{}", call.name);
        }
    }
    for number in nr::ALL {
        if described().all(|call| call.number != number) {
            let record: InfoIoctl = world.client.query(abi::QUERY_IOCTL, u32::from(number));
            assert_eq!(record.supported, 0, "number {number:#x}");
        }
    }
}

fn size_is_checked_before_everything_else() {
    let world = World::new();
    for call in built(&world.client) {
        let mut bytes = vec![0xff; call.size + 8];
        let result = issue_bytes(world.client.file(), call.number, &mut bytes);
        assert_eq!(
            result,
            Err(libc::E2BIG),
            "{}: everything wrong and a tail",
            call.name
        );
        let mut bytes = vec![0xff; call.size - 4];
        let result = issue_bytes(world.client.file(), call.number, &mut bytes);
        assert_eq!(
            result,
            Err(libc::EINVAL),
            "{}: everything wrong and too short",
            call.name
        );
    }
}
