// SPDX-License-Identifier: GPL-2.0

//! Fields that are wrong, one at a time with all else valid: flags, padding, handles; and the order
//! in which they are looked at.

use crate::{
    abi,
    argument::Argument,
    call::Errno,
    calls::{
        built,
        call_named, //
    },
    schema::{
        Call,
        Element,
        Field,
        Kind,
        Type, //
        TYPES,
    },
    suite::Suite,
    world::World, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "fields",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" each_unknown_flag_bit_is_not_supported,
        "[D6]" each_unknown_flag_bit_of_an_element_is_not_supported,
        "" each_padding_field_is_refused,
        "[D6]" each_padding_field_of_an_element_is_refused,
        "" handle_that_nobody_has_is_unknown,
        "" handle_of_another_type_is_unknown,
        "" stale_handle_is_unknown,
        "[D3]" handle_of_another_client_is_unknown,
        "[D5]" wrong_handle_in_a_list_is_named,
        "" handle_of_another_type_in_a_list_is_unknown,
        "" stale_handle_in_a_list_is_unknown,
        "[RES-10]" objects_of_two_devices_do_not_mix,
        "" flags_are_checked_before_padding,
        "" padding_is_checked_before_handles,
        "" handles_are_checked_before_ranges,
        "" refused_call_has_no_effect,
    },
};

/// Calls `check` for each field of each argument, with an argument that is valid up to then.
fn for_each_field(mut check: impl FnMut(&World, &Call, &Field, Argument)) {
    let world = World::new();
    for call in built(&world.client) {
        for field in call.fields {
            check(&world, call, field, (call.arrange)(&world));
        }
    }
}

/// Calls `check` for each field of each element of each list.
fn for_each_element_field(mut check: impl FnMut(&World, &Call, &Field, &Field, Argument)) {
    let world = World::new();
    for call in built(&world.client) {
        for (list, element, _) in call.lists() {
            let element: &Element = element;
            for field in element.fields {
                check(&world, call, list, field, (call.arrange)(&world));
            }
        }
    }
}

fn each_unknown_flag_bit_is_not_supported() {
    for_each_field(|world, call, field, first| {
        let Kind::Flags(known) = field.kind else {
            return;
        };
        let old = first.get(field);
        for bit in (0..field.size * 8).filter(|bit| known & (1 << bit) == 0) {
            let mut argument = (call.arrange)(world);
            argument.set(field, old | (1 << bit));
            let what = format!("bit {bit} of {}", field.name);
            world.assert_refused(call, &mut argument, libc::EOPNOTSUPP, &what);
        }
    });
}

fn each_unknown_flag_bit_of_an_element_is_not_supported() {
    for_each_element_field(|world, call, list, field, mut first| {
        let Kind::Flags(known) = field.kind else {
            return;
        };
        let old = first.get_element(list, 0, field);
        for bit in (0..field.size * 8).filter(|bit| known & (1 << bit) == 0) {
            let mut argument = (call.arrange)(world);
            argument.set_element(list, 0, field, old | (1 << bit));
            let what = format!("bit {bit} of {}.{}", list.name, field.name);
            world.assert_refused(call, &mut argument, libc::EOPNOTSUPP, &what);
        }
    });
}

fn each_padding_field_is_refused() {
    for_each_field(|world, call, field, mut argument| {
        if !matches!(field.kind, Kind::Zero) {
            return;
        }
        argument.set(field, 1);
        world.assert_refused(call, &mut argument, libc::EINVAL, field.name);
    });
}

fn each_padding_field_of_an_element_is_refused() {
    for_each_element_field(|world, call, list, field, mut argument| {
        if !matches!(field.kind, Kind::Zero) {
            return;
        }
        argument.set_element(list, 0, field, 1);
        world.assert_refused(call, &mut argument, libc::EINVAL, field.name);
    });
}

/// The type that a field names, if it is a handle that must be there.
fn named_type(field: &Field) -> Option<Type> {
    match field.kind {
        Kind::Handle(kind) | Kind::OptionalHandle(kind) => Some(kind),
        _ => None,
    }
}

const NOBODYS: [u64; 6] = [
    0,
    1 << 20,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
];

fn handle_that_nobody_has_is_unknown() {
    for_each_field(|world, call, field, _| {
        let optional = matches!(field.kind, Kind::OptionalHandle(_));
        if named_type(field).is_none() {
            return;
        }
        for handle in NOBODYS.iter().filter(|handle| !(optional && **handle == 0)) {
            let mut argument = (call.arrange)(world);
            argument.set(field, *handle);
            let what = format!("{} {handle:#x}", field.name);
            world.assert_refused(call, &mut argument, libc::ENOENT, &what);
        }
    });
}

fn handle_of_another_type_is_unknown() {
    for_each_field(|world, call, field, _| {
        let Some(kind) = named_type(field).filter(|kind| *kind != Type::Any) else {
            return;
        };
        for other in TYPES.iter().filter(|other| **other != kind) {
            let mut argument = (call.arrange)(world);
            argument.set(field, u64::from(world.handle(*other)));
            let what = format!("{} is {other:?}", field.name);
            world.assert_refused(call, &mut argument, libc::ENOENT, &what);
        }
    });
}

fn stale_handle_is_unknown() {
    for_each_field(|world, call, field, _| {
        let Some(kind) = named_type(field) else {
            return;
        };
        let mut argument = (call.arrange)(world);
        argument.set(field, u64::from(world.stale_handle(kind)));
        world.assert_refused(call, &mut argument, libc::ENOENT, field.name);
    });
}

fn handle_of_another_client_is_unknown() {
    // The other client has more objects, so that its handles are none of the first one's.
    let other = World::new();
    for _ in 0..64 {
        other.client.create_fence(other.device, 0);
    }
    let foreign_world = |kind| match kind {
        Type::Device | Type::Any => other.client.create_device(),
        Type::Allocation => {
            let info = crate::fixture::physical(4096, crate::fixture::SYSTEM);
            other.client.create(other.device, info).handle
        }
        Type::Context => {
            other
                .client
                .create_context(other.device, crate::fixture::PHYSICAL_NODE)
                .handle
        }
        Type::Queue => other.client.create_queue(other.device).handle,
        Type::Fence => other.client.create_fence(other.device, 0),
    };
    for_each_field(|world, call, field, mut argument| {
        let Some(kind) = named_type(field) else {
            return;
        };
        argument.set(field, u64::from(foreign_world(kind)));
        world.assert_refused(call, &mut argument, libc::ENOENT, field.name);
    });
}

/// Makes the list of a call three elements long, all valid.
fn with_three_elements(world: &World, call: &Call, list: &Field) -> Argument {
    let mut argument = (call.arrange)(world);
    let array = argument.array(list.offset);
    let size = array.stride as usize;
    let index = argument.memory_of(list.offset);
    let one = argument.list_bytes(index)[..size].to_vec();
    let mut three = Vec::new();
    match call.name {
        "CLOSE" => {
            for _ in 0..3 {
                let fence = world.client.create_fence(world.device, 0);
                three.extend_from_slice(&fence.to_le_bytes());
            }
        }
        "EVICT" => {
            world
                .client
                .bring_in(&world.queue, &[world.allocation.handle; 2]);
            three = one.repeat(3);
        }
        _ => three = one.repeat(3),
    }
    let words: Vec<u32> = three
        .chunks(4)
        .map(|word| u32::from_le_bytes(word.try_into().expect("four")))
        .collect();
    let mut argument = argument.with_list(list.offset, &words);
    let with = argument.array(list.offset);
    argument.set_array(
        list.offset,
        abi::Array {
            count: 3,
            stride: size as u32,
            ..with
        },
    );
    argument
}

/// Calls whose only list holds handles, so that it can be made longer, with that list's field.
fn handle_lists(world: &World) -> Vec<(&'static Call, &'static Field, &'static Field)> {
    let mut found = Vec::new();
    let calls = built(&world.client).into_iter();
    for call in calls.filter(|call| call.name != "SUBMIT_PATCHED") {
        for (list, element, _) in call.lists() {
            for field in element.fields {
                if matches!(field.kind, Kind::Handle(_)) {
                    found.push((call, list, field));
                }
            }
        }
    }
    found
}

fn wrong_handle_in_a_list_is_named() {
    let world = World::new();
    for (call, list, field) in handle_lists(&world) {
        for place in 0..3 {
            let mut argument = with_three_elements(&world, call, list);
            argument.set_element(list, place, field, 0xdead_beef);
            let what = format!("element {place} of {}", list.name);
            world.assert_refused(call, &mut argument, libc::ENOENT, &what);
            let output = call
                .fields
                .iter()
                .find(|field| matches!(field.name, "fail_index" | "first"));
            if let Some(output) = output.filter(|field| field.name == "fail_index") {
                assert_eq!(argument.get(output), place as u64, "{}: {what}", call.name);
            }
        }
    }
}

fn handle_of_another_type_in_a_list_is_unknown() {
    let world = World::new();
    for (call, list, field) in handle_lists(&world) {
        let Kind::Handle(kind) = field.kind else {
            continue;
        };
        for other in TYPES
            .iter()
            .filter(|other| kind != Type::Any && **other != kind)
        {
            let mut argument = (call.arrange)(&world);
            argument.set_element(list, 0, field, u64::from(world.handle(*other)));
            let what = format!("{} with {other:?}", list.name);
            world.assert_refused(call, &mut argument, libc::ENOENT, &what);
        }
    }
}

fn stale_handle_in_a_list_is_unknown() {
    let world = World::new();
    for (call, list, field) in handle_lists(&world) {
        let Kind::Handle(kind) = field.kind else {
            continue;
        };
        let mut argument = (call.arrange)(&world);
        argument.set_element(list, 0, field, u64::from(world.stale_handle(kind)));
        world.assert_refused(call, &mut argument, libc::ENOENT, list.name);
    }
}

fn objects_of_two_devices_do_not_mix() {
    let world = World::new();
    let device = world.client.create_device();
    let info = crate::fixture::physical(4096, crate::fixture::SYSTEM);
    let foreign = world.client.create(device, info);
    let queue = world.client.create_queue(device);

    let make = world
        .client
        .try_make_resident(world.queue.handle, &[foreign.handle]);
    assert_eq!(make, Err((libc::EXDEV, 0)));
    world.client.bring_in(&queue, &[foreign.handle]);
    let evict = world.client.try_evict(world.device, &[foreign.handle], 0);
    assert_eq!(evict, Err((libc::EXDEV, 0)));
    world.client.evict(device, &[foreign.handle]);
}

/// Breaks the first flags field, padding or handle of an argument.
fn break_first(call: &Call, argument: &mut Argument, which: fn(&Kind) -> bool, value: u64) -> bool {
    match call.fields.iter().find(|field| which(&field.kind)) {
        Some(field) => {
            argument.set(field, value);
            true
        }
        None => false,
    }
}

fn breaks_flags(call: &Call, argument: &mut Argument) -> bool {
    break_first(
        call,
        argument,
        |kind| matches!(kind, Kind::Flags(_)),
        1 << 31,
    )
}

fn breaks_padding(call: &Call, argument: &mut Argument) -> bool {
    break_first(call, argument, |kind| matches!(kind, Kind::Zero), 1)
}

fn breaks_handle(call: &Call, argument: &mut Argument) -> bool {
    break_first(
        call,
        argument,
        |kind| matches!(kind, Kind::Handle(_)),
        0xdead_beef,
    )
}

fn check_order(
    first: fn(&Call, &mut Argument) -> bool,
    second: fn(&Call, &mut Argument) -> bool,
    errno: Errno,
) {
    let world = World::new();
    for call in built(&world.client) {
        let mut argument = (call.arrange)(&world);
        if first(call, &mut argument) && second(call, &mut argument) {
            world.assert_refused(call, &mut argument, errno, "two things wrong");
        }
    }
}

fn flags_are_checked_before_padding() {
    check_order(breaks_flags, breaks_padding, libc::EOPNOTSUPP);
    check_order(breaks_flags, breaks_handle, libc::EOPNOTSUPP);
}

fn padding_is_checked_before_handles() {
    check_order(breaks_padding, breaks_handle, libc::EINVAL);
}

fn handles_are_checked_before_ranges() {
    let world = World::new();
    let lock = call_named("LOCK");
    let mut argument = (lock.arrange)(&world);
    argument.set(lock.field("alloc"), 0xdead_beef);
    argument.set(lock.field("offset"), 1 << 40);
    world.assert_refused(lock, &mut argument, libc::ENOENT, "handle and range");

    let context = call_named("CONTEXT_CREATE");
    let mut argument = (context.arrange)(&world);
    argument.set(context.field("device"), 0xdead_beef);
    argument.set(context.field("node"), 77);
    world.assert_refused(context, &mut argument, libc::ENOENT, "handle and node");

    let create = call_named("ALLOC_CREATE");
    let mut argument = (create.arrange)(&world);
    argument.set(create.field("device"), 0xdead_beef);
    let (list, element, _) = create.lists()[0];
    let size = element
        .fields
        .iter()
        .find(|field| field.name == "size")
        .expect("a size");
    argument.set_element(list, 0, size, 0);
    world.assert_refused(create, &mut argument, libc::ENOENT, "handle and size");
}

fn refused_call_has_no_effect() {
    let world = World::new();
    let handle = world.allocation.handle;

    // The last element is wrong, so the first two must not count.
    let list = [handle, handle, 0xdead_beef];
    let make = world.client.try_make_resident(world.queue.handle, &list);
    assert_eq!(make, Err((libc::ENOENT, 2)));
    assert_eq!(world.client.state_of(handle).resident_refs, 0);

    let points = [
        crate::client::point(world.fence, 5),
        crate::client::point(0xdead_beef, 1),
    ];
    assert_eq!(world.client.try_signal(&points, 0), Err((libc::ENOENT, 1)));
    assert!(!world.client.is_reached(world.fence, 1));

    assert_eq!(
        world.client.try_close(&[handle, 0xdead_beef], 0),
        Err((libc::ENOENT, 1))
    );
    assert_eq!(world.client.state_of(handle).handle, handle);
}
