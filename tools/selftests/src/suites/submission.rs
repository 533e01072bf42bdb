// SPDX-License-Identifier: GPL-2.0

//! Submissions: what they reach, what becomes of them, what does not fit.

use crate::{
    abi,
    clock,
    commands::Commands,
    fixture::{
        pattern,
        physical,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    submitter::Submitter,
    suite::Suite, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "submission",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[SEG-17]" flagged_allocation_is_usable_in_memory_and_aperture,
        "" what_cannot_fit_is_too_large,
        "" submission_ids_rise_by_one,
        "" query_tells_the_life_of_a_submission,
        "" unknown_submission_is_unknown,
        "" null_render_executes_nothing,
        "" empty_submission_runs,
    },
};

fn flagged_allocation_is_usable_in_memory_and_aperture() {
    let fixture = Fixture::new();
    let context = fixture.context();
    for mask in [VISIBLE_SEGMENT, HIDDEN_SEGMENT, SYSTEM] {
        let source = fixture.create(physical(128 * KIB, mask));
        let target = fixture.create(physical(128 * KIB, VISIBLE_SEGMENT | SYSTEM));
        let data = pattern(u64::from(mask), source.size);
        fixture.client.map(&source).write(0, &data);
        let mut commands = Commands::new();
        commands.copy_bytes(target.at(0), source.at(0), source.size as u32);
        fixture.run(&context, &commands);
        let segment = mask.trailing_zeros();
        assert_eq!(fixture.client.state_of(source.handle).segment, segment);
        let copy = fixture.read(&target, &fixture.client.map(&target));
        assert!(
            copy[..data.len()] == data[..],
            "the copy from segment {segment} differs"
        );
    }
}

/// A buffer that binds allocations of these sizes at once and uses each.
fn bind_all(fixture: &Fixture, sizes: &[u64]) -> Commands {
    let mut commands = Commands::new();
    for (slot, size) in sizes.iter().enumerate() {
        let allocation = fixture.create(physical(*size, VISIBLE_SEGMENT));
        commands.store(allocation.at(0), 1);
        commands.patches[slot].slot = slot as u32;
        commands.patches[slot].split_offset = 0;
    }
    commands
}

fn what_cannot_fit_is_too_large() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let commands = bind_all(&fixture, &[6 * MIB, 6 * MIB, 6 * MIB]);
    let refusal = commands
        .try_submit(&fixture.client, context.handle)
        .expect_err("18 of 16 MiB");
    assert_eq!(
        (refusal.errno, refusal.kind),
        (libc::ENOSPC, abi::SUBMIT_ERROR_TOO_LARGE)
    );
    let commands = bind_all(&fixture, &[6 * MIB, 6 * MIB, 3 * MIB]);
    fixture.run(&context, &commands);
}

fn submission_ids_rise_by_one() {
    let setup = Submitter::new();
    let other = setup.fixture.context();
    for id in 1..=20 {
        assert_eq!(
            setup
                .two_stores()
                .submit(&setup.fixture.client, &setup.context),
            id
        );
    }
    assert_eq!(setup.two_stores().submit(&setup.fixture.client, &other), 1);
    setup.fixture.client.wait(setup.context.progress, 20);
    assert!(!setup.fixture.client.is_reached(setup.context.progress, 21));
    setup.fixture.client.wait(other.progress, 1);
}

fn query_tells_the_life_of_a_submission() {
    let setup = Submitter::new();
    let client = &setup.fixture.client;
    let fence = client.create_fence(setup.fixture.device, 0);
    let mut commands = setup.two_stores();
    commands.wait_for(fence, 1);
    let before = clock::now_ns() as u64;
    let id = commands.submit(client, &setup.context);
    let waiting = client
        .try_submission(setup.context.handle, id)
        .expect("SUBMIT_QUERY");
    assert_eq!(
        (waiting.state, waiting.error),
        (abi::SUBMIT_STATE_WAITING, 0)
    );
    assert_eq!((waiting.start_ns, waiting.end_ns), (0, 0));
    assert!(waiting.queued_ns >= before);
    client.signal(fence, 1);
    client.wait(setup.context.progress, id);
    let done = client
        .try_submission(setup.context.handle, id)
        .expect("SUBMIT_QUERY");
    assert_eq!(
        (done.state, done.error, done.splits),
        (abi::SUBMIT_STATE_DONE, 0, 1)
    );
    assert_eq!(done.queued_ns, waiting.queued_ns);
    assert!(done.queued_ns <= done.start_ns && done.start_ns <= done.end_ns);
    assert_eq!(done.patches_written, 2);
}

fn unknown_submission_is_unknown() {
    let setup = Submitter::new();
    let id = setup
        .two_stores()
        .submit(&setup.fixture.client, &setup.context);
    let query = |id| {
        setup
            .fixture
            .client
            .try_submission(setup.context.handle, id)
            .err()
    };
    assert_eq!(
        [query(0), query(id + 1), query(u64::MAX)],
        [Some(libc::ENOENT); 3]
    );
    assert_eq!(query(id), None);
}

fn null_render_executes_nothing() {
    let setup = Submitter::new();
    let fresh = setup.another();
    let mut commands = setup.two_stores();
    commands.store(fresh.at(0), 3);
    commands.flags = abi::SUBMIT_PATCHED_NULL_RENDER;
    setup.assert_accepted(&commands);
    assert_eq!(setup.mapping.read64(0), 0);
    assert_eq!(setup.fixture.client.state_of(fresh.handle).segment, 1);
    commands.patches[2].alloc_offset = 4096;
    let refusal = commands.try_submit(&setup.fixture.client, setup.context.handle);
    assert_eq!(
        refusal.expect_err("checked all the same").errno,
        libc::EINVAL
    );
}

fn empty_submission_runs() {
    let setup = Submitter::new();
    let fence = setup.fixture.client.create_fence(setup.fixture.device, 0);
    let mut commands = Commands::new();
    commands.then_signal(fence, 3);
    setup.assert_accepted(&commands);
    setup.fixture.client.wait(fence, 3);
}
