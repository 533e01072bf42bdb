// SPDX-License-Identifier: GPL-2.0

//! Lists: address, count and stride of each list of each call.

use crate::{
    abi::{
        self,
        AllocInfo,
        Array,
        InfoLimits,
        InfoNode, //
    },
    argument::Argument,
    call::{
        command,
        issue_at, //
    },
    calls::built,
    fixture::{
        plain,
        PHYSICAL_NODE,
        SYSTEM, //
    },
    memory::{
        Guarded,
        Mapping,
        PAGE, //
    },
    schema::{
        Call,
        Element,
        Empty,
        Field, //
    },
    suite::Suite,
    world::World, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "lists",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" empty_list_is_refused_where_it_is_the_point,
        "" empty_list_with_an_address_is_malformed,
        "" list_without_an_address_is_a_fault,
        "" stride_below_first_size_is_malformed,
        "" stride_that_is_not_aligned_is_malformed,
        "" stride_beyond_a_page_is_too_big,
        "" longer_elements_with_zero_tails_are_accepted,
        "" longer_elements_with_a_tail_are_too_big,
        "" count_beyond_the_limit_is_malformed,
        "" list_at_a_bad_address_is_a_fault,
        "" list_that_runs_into_a_hole_is_a_fault,
        "" list_that_ends_at_a_hole_is_accepted,
        "" read_only_output_list_is_a_fault_and_undone,
        "" address_that_wraps_is_refused,
        "" longest_handle_list_is_accepted,
        "" pointer_of_query_and_name_is_checked,
    },
};

/// Calls `check` for each list of each call, with a valid argument.
fn for_each_list(mut check: impl FnMut(&World, &Call, &Field, &Element, Empty, Argument)) {
    let world = World::new();
    for call in built(&world.client) {
        for (list, element, empty) in call.lists() {
            check(&world, call, list, element, empty, (call.arrange)(&world));
        }
    }
}

fn empty_list_is_refused_where_it_is_the_point() {
    for_each_list(|world, call, list, element, empty, mut argument| {
        if call.name == "SUBMIT_PATCHED" && matches!(list.name, "allocs" | "patches") {
            return;
        }
        let array = Array {
            ptr: 0,
            count: 0,
            stride: element.size as u32,
        };
        argument.set_array(list.offset, array);
        match empty {
            Empty::Refused => world.assert_refused(call, &mut argument, libc::EINVAL, list.name),
            Empty::Allowed => world.assert_accepted(call, &mut argument, list.name),
        }
    });
}

fn empty_list_with_an_address_is_malformed() {
    for_each_list(|world, call, list, _, _, mut argument| {
        let array = argument.array(list.offset);
        argument.set_array(list.offset, Array { count: 0, ..array });
        world.assert_refused(call, &mut argument, libc::EINVAL, list.name);
    });
}

fn list_without_an_address_is_a_fault() {
    for_each_list(|world, call, list, _, _, mut argument| {
        let array = argument.array(list.offset);
        argument.set_array(list.offset, Array { ptr: 0, ..array });
        world.assert_refused(call, &mut argument, libc::EFAULT, list.name);
    });
}

fn stride_below_first_size_is_malformed() {
    for_each_list(|world, call, list, element, _, _| {
        for stride in [0, element.size as u32 - element.align as u32] {
            let mut argument = (call.arrange)(world);
            let array = argument.array(list.offset);
            argument.set_array(list.offset, Array { stride, ..array });
            let what = format!("{} with stride {stride}", list.name);
            world.assert_refused(call, &mut argument, libc::EINVAL, &what);
        }
    });
}

fn stride_that_is_not_aligned_is_malformed() {
    for_each_list(|world, call, list, element, _, _| {
        let odd = if element.align == 8 { [1, 4] } else { [1, 2] };
        for more in odd {
            let mut argument = (call.arrange)(world);
            argument.restride(list.offset, element.size + 8);
            let array = argument.array(list.offset);
            let stride = element.size as u32 + more;
            argument.set_array(list.offset, Array { stride, ..array });
            let what = format!("{} with stride {stride}", list.name);
            world.assert_refused(call, &mut argument, libc::EINVAL, &what);
        }
    });
}

fn stride_beyond_a_page_is_too_big() {
    for_each_list(|world, call, list, _, _, mut argument| {
        argument.restride(list.offset, PAGE + 8);
        world.assert_refused(call, &mut argument, libc::E2BIG, list.name);
    });
}

fn longer_elements_with_zero_tails_are_accepted() {
    for_each_list(|world, call, list, element, _, _| {
        for more in [8, 64] {
            let mut argument = (call.arrange)(world);
            argument.restride(list.offset, element.size + more);
            let what = format!("{} with {more} more bytes", list.name);
            world.assert_accepted(call, &mut argument, &what);
        }
    });
}

fn longer_elements_with_a_tail_are_too_big() {
    for_each_list(|world, call, list, element, _, mut argument| {
        argument.restride(list.offset, element.size + 8);
        let index = argument.memory_of(list.offset);
        argument.list_bytes(index)[element.size + 7] = 1;
        world.assert_refused(call, &mut argument, libc::E2BIG, list.name);
    });
}

/// The most elements that a list may have.
fn limit_of(world: &World, call: &Call, list: &Field) -> u32 {
    let limits: InfoLimits = world.client.query(abi::QUERY_LIMITS, 0);
    let node: InfoNode = world.client.query(abi::QUERY_NODE, PHYSICAL_NODE);
    match (call.name, list.name) {
        ("ALLOC_CREATE", _) => limits.allocs_per_create,
        ("SUBMIT_PATCHED", "allocs") => node.max_allocs,
        ("SUBMIT_PATCHED", "patches") => node.max_patches,
        ("SUBMIT_PATCHED", _) => node.max_points,
        _ => limits.handles_per_list,
    }
}

fn count_beyond_the_limit_is_malformed() {
    for_each_list(|world, call, list, _, _, _| {
        let limit = limit_of(world, call, list);
        for count in [limit + 1, 1 << 28, 0x4000_0000, 0x8000_0000, u32::MAX] {
            let mut argument = (call.arrange)(world);
            let array = argument.array(list.offset);
            argument.set_array(list.offset, Array { count, ..array });
            let what = format!("{} with {count} elements", list.name);
            world.assert_refused(call, &mut argument, libc::EINVAL, &what);
        }
    });
}

fn list_at_a_bad_address_is_a_fault() {
    for_each_list(|world, call, list, _, _, _| {
        for ptr in [0x1000, 0x7fff_ffff_f000, 0xffff_8880_0000_0000] {
            let mut argument = (call.arrange)(world);
            let array = argument.array(list.offset);
            argument.set_array(list.offset, Array { ptr, ..array });
            let what = format!("{} at {ptr:#x}", list.name);
            world.assert_refused(call, &mut argument, libc::EFAULT, &what);
        }
    });
}

/// Moves the only element of a list in front of a hole, `missing` bytes into it.
fn move_to_hole(argument: &mut Argument, list: &Field, memory: &Guarded, missing: usize) {
    let array = argument.array(list.offset);
    let index = argument.memory_of(list.offset);
    let length = array.stride as usize * array.count as usize - missing;
    let bytes = argument.list_bytes(index)[..length].to_vec();
    argument.set_array(
        list.offset,
        Array {
            ptr: memory.place(&bytes),
            ..array
        },
    );
}

fn list_that_runs_into_a_hole_is_a_fault() {
    let memory = Guarded::new(1);
    for_each_list(|world, call, list, _, _, mut argument| {
        move_to_hole(&mut argument, list, &memory, 4);
        world.assert_refused(call, &mut argument, libc::EFAULT, list.name);
    });
}

fn list_that_ends_at_a_hole_is_accepted() {
    let memory = Guarded::new(1);
    for_each_list(|world, call, list, _, _, mut argument| {
        move_to_hole(&mut argument, list, &memory, 0);
        world.assert_accepted(call, &mut argument, list.name);
    });
}

fn read_only_output_list_is_a_fault_and_undone() {
    for_each_list(|world, call, list, element, _, mut argument| {
        if !element.written {
            return;
        }
        let memory = Guarded::new(1);
        move_to_hole(&mut argument, list, &memory, 0);
        memory.seal();
        let before = crate::debugfs::placements().len();
        world.assert_refused(call, &mut argument, libc::EFAULT, list.name);
        assert_eq!(
            crate::debugfs::placements().len(),
            before,
            "{} left something",
            call.name
        );
    });
}

fn address_that_wraps_is_refused() {
    for_each_list(|world, call, list, _, _, mut argument| {
        let array = argument.array(list.offset);
        argument.set_array(
            list.offset,
            Array {
                ptr: u64::MAX - 7,
                count: 2,
                ..array
            },
        );
        let result = world.issue(call, &mut argument);
        let refused = matches!(result, Err(libc::EFAULT | libc::EOVERFLOW));
        assert!(refused, "{} {}: {result:?}", call.name, list.name);
    });
}

fn longest_handle_list_is_accepted() {
    let world = World::new();
    let limits: InfoLimits = world.client.query(abi::QUERY_LIMITS, 0);
    let handles = vec![world.allocation.handle; limits.handles_per_list as usize];
    world.client.bring_in(&world.queue, &handles);
    let state = world.client.state_of(world.allocation.handle);
    assert_eq!(state.resident_refs, limits.handles_per_list);
    world.client.evict(world.device, &handles);

    let count = limits.allocs_per_create as usize;
    let mut infos: Vec<AllocInfo> = vec![plain(4096, SYSTEM); count];
    world
        .client
        .try_create_all(world.device, &mut infos)
        .expect("the longest creation list");
    let handles: Vec<u32> = infos.iter().map(|info| info.handle).collect();
    world.client.close_and_wait(&handles);
}

fn pointer_of_query_and_name_is_checked() {
    let world = World::new();
    for name in ["QUERY", "SET_NAME", "SUBMIT_PATCHED"] {
        let call = crate::calls::call_named(name);
        let field = match name {
            "QUERY" => call.field("data"),
            "SET_NAME" => call.field("ptr"),
            _ => call.field("cmd_ptr"),
        };
        for ptr in [0, 0x1000, 0x7fff_ffff_f000, 0xffff_8880_0000_0000] {
            let mut argument = (call.arrange)(&world);
            argument.set(field, ptr);
            world.assert_refused(call, &mut argument, libc::EFAULT, &format!("{ptr:#x}"));
        }
    }
    // A record that would run into a page where nothing is mapped, and one that just does not.
    let memory = Mapping::anonymous(2);
    memory.unmap_part(PAGE, PAGE);
    let call = crate::calls::call_named("QUERY");
    for (room, result) in [(40, Err(libc::EFAULT)), (80, Ok(()))] {
        let mut argument = (call.arrange)(&world);
        argument.set(call.field("data"), memory.address() + PAGE as u64 - room);
        let address = argument.bytes.as_mut_ptr() as u64;
        let answer = issue_at(
            world.client.file(),
            command(call.number, call.size),
            address,
        );
        assert_eq!(answer, result, "room for {room} bytes");
    }
}
