// SPDX-License-Identifier: GPL-2.0

//! Contexts: node, mode, priority and privilege.

use crate::{
    abi,
    commands::{
        Commands,
        Refusal, //
    },
    fixture::{
        physical,
        Fixture,
        KIB,
        PAGING_NODE,
        PHYSICAL_NODE,
        VISIBLE_SEGMENT, //
    },
    suite::Suite, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "context",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" mode_that_a_node_lacks_is_not_supported,
        "" node_out_of_range_is_refused,
        "" priority_out_of_range_is_refused,
        "" timeout_beyond_the_default_is_accepted_with_privilege,
        "" privilege_is_asked_for,
        "" explicit_context_needs_residency,
        "[DMA-28]" explicit_refusal_puts_the_device_in_error,
    },
};

/// The errno of a context that is not made.
fn context_errno(change: impl FnOnce(&mut abi::ContextCreate)) -> Option<i32> {
    let fixture = Fixture::new();
    let mut argument = crate::client::context_argument(fixture.device, PHYSICAL_NODE, 0);
    change(&mut argument);
    fixture.client.try_create_context(&mut argument).err()
}

fn mode_that_a_node_lacks_is_not_supported() {
    let unsupported = Some(libc::EOPNOTSUPP);
    for mode in [abi::CONTEXT_MODE_VIRTUAL, 3, 4, u32::MAX] {
        assert_eq!(
            context_errno(|argument| argument.mode = mode),
            unsupported,
            "mode {mode}"
        );
    }
    for node in [0, PAGING_NODE, 3] {
        assert_eq!(
            context_errno(|argument| argument.node = node),
            unsupported,
            "node {node}"
        );
    }
    let virtual_mode = |argument: &mut abi::ContextCreate| {
        (argument.node, argument.mode) = (0, abi::CONTEXT_MODE_VIRTUAL);
    };
    assert_eq!(context_errno(virtual_mode), None);
    assert_eq!(
        context_errno(|argument| argument.companion_node = 3),
        unsupported
    );
}

fn node_out_of_range_is_refused() {
    for node in [4, 5, 255, u32::MAX] {
        assert_eq!(
            context_errno(|argument| argument.node = node),
            Some(libc::EINVAL)
        );
    }
}

fn priority_out_of_range_is_refused() {
    for priority in [-8, 8, i32::MIN, i32::MAX] {
        assert_eq!(
            context_errno(|argument| argument.priority = priority),
            Some(libc::EINVAL)
        );
    }
    for priority in [-7, 0, 7] {
        assert_eq!(context_errno(|argument| argument.priority = priority), None);
    }
}

fn timeout_beyond_the_default_is_accepted_with_privilege() {
    assert_eq!(
        context_errno(|argument| argument.timeout_ms = 100_000),
        None
    );
    assert_eq!(
        context_errno(|argument| argument.flags = abi::CONTEXT_NO_TIMEOUT),
        None
    );
    let fixture = Fixture::new();
    let context = fixture.context().handle;
    let set = |mask, priority, timeout_ms| {
        fixture.client.try_set_context(abi::ContextSet {
            context,
            mask,
            priority,
            timeout_ms,
        })
    };
    assert_eq!(set(abi::CONTEXT_SET_PRIORITY, 7, 0), Ok(()));
    assert_eq!(set(abi::CONTEXT_SET_TIMEOUT, 0, 1000), Ok(()));
    assert_eq!(set(abi::CONTEXT_SET_PRIORITY, 8, 0), Err(libc::EINVAL));
    assert_eq!(set(abi::CONTEXT_SET_PRIORITY, 0, 5), Err(libc::EINVAL));
    assert_eq!(set(abi::CONTEXT_SET_TIMEOUT, 1, 5), Err(libc::EINVAL));
}

fn privilege_is_asked_for() {
    let fixture = Fixture::new();
    let mut argument = crate::client::context_argument(fixture.device, PHYSICAL_NODE, 0);
    crate::process::Child::start(|_| {
        crate::process::drop_privileges();
        let refused = |change: &dyn Fn(&mut abi::ContextCreate)| {
            let mut changed = argument;
            change(&mut changed);
            fixture.client.try_create_context(&mut changed).err()
        };
        assert_eq!(
            refused(&|argument| argument.priority = 1),
            Some(libc::EPERM)
        );
        assert_eq!(refused(&|argument| argument.flags = 1), Some(libc::EPERM));
        assert_eq!(
            refused(&|argument| argument.timeout_ms = 2001),
            Some(libc::EPERM)
        );
        assert_eq!(refused(&|argument| argument.priority = -7), None);
        assert_eq!(refused(&|argument| argument.timeout_ms = 1999), None);
        let segment: abi::InfoSegment = fixture.client.query(abi::QUERY_SEGMENT, 1);
        assert_eq!((segment.used, segment.largest_free), (0, 0));
    })
    .join();
    fixture
        .client
        .try_create_context(&mut argument)
        .expect("with privileges");
}

fn explicit_context_needs_residency() {
    let fixture = Fixture::new();
    let mode = abi::CONTEXT_MODE_PATCHED_EXPLICIT;
    let context = fixture
        .client
        .create_context_of_mode(fixture.device, PHYSICAL_NODE, mode);
    let allocation = fixture.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 12);
    fixture.run(&context, &commands);
    assert_eq!(fixture.client.map(&allocation).read64(0), 12);
}

fn explicit_refusal_puts_the_device_in_error() {
    let fixture = Fixture::new();
    let mode = abi::CONTEXT_MODE_PATCHED_EXPLICIT;
    let context = fixture
        .client
        .create_context_of_mode(fixture.device, PHYSICAL_NODE, mode);
    let allocation = fixture.create(physical(4 * KIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 12);
    let refusal = commands
        .try_submit(&fixture.client, context.handle)
        .expect_err("no reference");
    let kind = abi::SUBMIT_ERROR_NOT_RESIDENT;
    assert_eq!(
        refusal,
        Refusal {
            errno: libc::EINVAL,
            kind,
            index: 0
        }
    );
    let state = fixture.client.device_state(fixture.device);
    assert_eq!(state.state, abi::DEVICE_STATE_ERROR_DMA);
    let refusal = commands
        .try_submit(&fixture.client, context.handle)
        .expect_err("in error");
    assert_eq!(refusal.errno, libc::EIO);
    let mapping = fixture.client.map(&allocation);
    assert_eq!(mapping.read64(0), 0);
    fixture.client.close(&[fixture.device]);
}
