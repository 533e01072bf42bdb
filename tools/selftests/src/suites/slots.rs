// SPDX-License-Identifier: GPL-2.0

//! What slots hold: who stays across a cut, who leaves, who makes way, and when there is no way.

use crate::{
    abi,
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        Fixture,
        MIB, //
    },
    portions::{
        bounds,
        concerns,
        cuts,
        edge,
        only_submission,
        portions_of,
        trace_run,
        Piece,
        TableModel,
        BUFFER, //
    },
    suite::Suite,
    trace::Recording, //
};

/// The suite where contexts are saved.
pub const SUITE: Suite = Suite {
    name: "slots",
    parameters: Some("profile=DISC"),
    cases: CASES,
};

/// The suite where they are not.
pub const BACK_TO_BACK_SUITE: Suite = Suite {
    name: "slots_nsr",
    parameters: Some("profile=DISC-NSR"),
    cases: CASES,
};

/// The suite on an adapter without GPU MMU.
pub const PHYSICAL_SUITE: Suite = Suite {
    name: "slots_phys",
    parameters: Some("profile=PHYS"),
    cases: CASES,
};

const CASES: &[crate::suite::Case] = crate::cases! {
    "[DMA-9]" table_is_empty_at_the_start_of_a_submission,
    "[DMA-11]" replaced_allocation_leaves_behind_its_portion,
    "[DMA-11] [DMA-25]" second_slot_keeps_an_allocation,
    "[DMA-15] [DMA-16]" bound_allocations_are_held_across_the_cut,
    "[DMA-19]" unbound_allocation_leaves,
    "[DMA-20]" unbinding_makes_room,
    "[DMA-21]" bound_allocation_in_the_way_is_not_moved,
    "[DMA-22]" allocation_bound_anew_makes_way,
    "[DMA-25]" what_never_fits_at_one_point_is_refused,
    "[DMA-25]" what_does_not_fit_at_run_time_ends_the_device,
};

fn table_is_empty_at_the_start_of_a_submission() {
    let fixture = Fixture::new();
    let [one, two] = [0, 1].map(|_| Piece::new(&fixture, 10 * MIB));
    let context = fixture.context();
    let mut first = Commands::new();
    first.store_in(0, &one.allocation, 0, 1);
    let mut second = Commands::new();
    second.store_in(1, &two.allocation, 0, 2);
    let recording = Recording::start();
    first.submit(&fixture.client, &context);
    fixture.run(&context, &second);
    let events = recording.stop();
    assert!(events
        .0
        .iter()
        .any(|event| concerns(event, one.object) && event.word("to_seg") == "-1"));
    assert_eq!((one.mapping.read64(0), two.mapping.read64(0)), (1, 2));
}

fn replaced_allocation_leaves_behind_its_portion() {
    let fixture = Fixture::new();
    let [one, two] = [0, 1].map(|_| Piece::new(&fixture, 10 * MIB));
    let mut commands = Commands::new();
    commands.store_in(0, &one.allocation, 0, 1).pad_to(512);
    commands.store_in(0, &two.allocation, 0, 2).pad_to(BUFFER);
    let events = trace_run(&fixture, &commands);
    assert_eq!(cuts(&events), bounds(&[512, 1024]));
    let portions = portions_of(&events, only_submission(&events));
    let end = edge(&events, "node_end", &portions[0]);
    let leaves = events
        .0
        .iter()
        .position(|event| concerns(event, one.object) && event.word("to_seg") == "-1");
    assert!(
        leaves.expect("it leaves") > end,
        "it left before the portion had run"
    );
    assert_eq!((one.mapping.read64(0), two.mapping.read64(0)), (1, 2));
}

fn second_slot_keeps_an_allocation() {
    let fixture = Fixture::new();
    let [one, two] = [0, 1].map(|_| Piece::new(&fixture, 10 * MIB));
    let mut commands = Commands::new();
    commands.store_in(0, &one.allocation, 0, 1).pad_to(256);
    commands.bind(1, &one.allocation).pad_to(512);
    commands.store_in(0, &two.allocation, 0, 2).pad_to(BUFFER);
    let context = fixture.context();
    let refusal = commands
        .try_submit(&fixture.client, context.handle)
        .expect_err("20 of 16 MiB");
    assert_eq!(
        (refusal.errno, refusal.kind),
        (libc::ENOSPC, abi::SUBMIT_ERROR_TOO_LARGE)
    );
}

fn bound_allocations_are_held_across_the_cut() {
    let fixture = Fixture::new();
    let anchor = Piece::new(&fixture, MIB);
    let pieces: Vec<Piece> = (0..4).map(|_| Piece::new(&fixture, 8 * MIB)).collect();
    let mut commands = Commands::new();
    commands.store_in(7, &anchor.allocation, 0, 77);
    for (number, piece) in (0..).zip(&pieces) {
        commands.pad_to(256 * number + 64);
        commands.store_in(0, &piece.allocation, 0, piece.object);
    }
    commands.pad_to(BUFFER);
    let context = fixture.context();
    debugfs::inject("pause 2");
    let recording = Recording::start();
    let id = commands.submit(&fixture.client, &context);
    clock::wait_until("the first portion is ready", || {
        !recording
            .so_far()
            .0
            .iter()
            .all(|event| event.name != "dma_portion")
    });
    let held: Vec<u64> = debugfs::placements()
        .iter()
        .filter(|one| one.record.number("slot") > 0)
        .map(|one| one.allocation)
        .collect();
    let kept = TableModel::kept(&commands, 256 + 64);
    assert_eq!(kept, [anchor.allocation.handle]);
    assert_eq!(held, [anchor.object]);
    assert_eq!(
        debugfs::try_inject(&format!("move {}", anchor.object)),
        Err(libc::EBUSY)
    );
    debugfs::inject("resume 2");
    fixture.client.wait(context.progress, id);
    let events = recording.stop();
    let ends: Vec<u64> = [1, 2, 3]
        .iter()
        .map(|number| 256 * number + 64)
        .chain([1024])
        .collect();
    assert_eq!(cuts(&events), bounds(&ends));
    assert_eq!(
        events
            .0
            .iter()
            .filter(|event| concerns(event, anchor.object))
            .count(),
        1,
        "it moved"
    );
    let portions = portions_of(&events, only_submission(&events));
    for (piece, portion) in pieces.iter().zip(&portions[..3]) {
        let leaves = events
            .0
            .iter()
            .position(|event| concerns(event, piece.object) && event.word("to_seg") == "-1");
        assert!(leaves.expect("it leaves") > edge(&events, "node_end", portion));
    }
    assert_eq!(anchor.mapping.read64(0), 77);
    assert!(debugfs::placements()
        .iter()
        .all(|one| one.record.number("slot") == 0));
}

fn unbound_allocation_leaves() {
    let fixture = Fixture::new();
    let [one, two] = [0, 1].map(|_| Piece::new(&fixture, 10 * MIB));
    let build = |unbinds: bool| {
        let mut commands = Commands::new();
        commands.store_in(0, &one.allocation, 0, 1).pad_to(256);
        if unbinds {
            commands.unbind(0);
        }
        commands.store_in(1, &two.allocation, 0, 2).pad_to(BUFFER);
        // Unbinding what is empty is no error.
        commands.unbind(5);
        commands
    };
    let events = trace_run(&fixture, &build(true));
    assert_eq!(cuts(&events), bounds(&[256, 1024]));
    assert_eq!((one.mapping.read64(0), two.mapping.read64(0)), (1, 2));
    let context = fixture.context();
    let refusal = build(false)
        .try_submit(&fixture.client, context.handle)
        .expect_err("20 of 16 MiB");
    assert_eq!(refusal.errno, libc::ENOSPC);
}

fn unbinding_makes_room() {
    let fixture = Fixture::new();
    let texture = Piece::new(&fixture, 12 * MIB);
    let [one, two] = [0, 1].map(|_| Piece::new(&fixture, 7 * MIB));
    let build = |unbinds: bool| {
        let mut commands = Commands::new();
        commands.store_in(0, &texture.allocation, 0, 1).pad_to(512);
        if unbinds {
            commands.unbind(0);
        }
        commands.store_in(1, &one.allocation, 0, 2);
        commands.store_in(2, &two.allocation, 0, 3).pad_to(BUFFER);
        commands
    };
    let events = trace_run(&fixture, &build(true));
    assert_eq!(cuts(&events), bounds(&[512, 1024]));
    let values = [&texture, &one, &two].map(|piece| piece.mapping.read64(0));
    assert_eq!(values, [1, 2, 3]);
    let context = fixture.context();
    let refusal = build(false)
        .try_submit(&fixture.client, context.handle)
        .expect_err("26 of 16 MiB");
    assert_eq!(refusal.errno, libc::ENOSPC);
}

/// A small allocation in the middle of segment 1 and a large one that fits on neither side of it.
fn small_in_the_way(fixture: &Fixture) -> (Piece, Piece) {
    let small = Piece::new(fixture, MIB);
    let large = Piece::new(fixture, 12 * MIB);
    debugfs::inject(&format!("move {} 1 {:#x}", small.object, 8 * MIB));
    assert_eq!(small.place(), (1, 8 * MIB));
    (small, large)
}

fn bound_allocation_in_the_way_is_not_moved() {
    let fixture = Fixture::new();
    let (small, large) = small_in_the_way(&fixture);
    let mut commands = Commands::new();
    commands.store_in(0, &small.allocation, 0, 1).pad_to(256);
    commands.store_in(1, &large.allocation, 0, 2).pad_to(BUFFER);
    let context = fixture.context();
    let recording = Recording::start();
    let id = commands.submit(&fixture.client, &context);
    clock::wait_until("the device fails", || {
        fixture.client.device_state(fixture.device).state == abi::DEVICE_STATE_ERROR_MEMORY
    });
    let events = recording.stop();
    assert!(
        !events.0.iter().any(|event| concerns(event, small.object)),
        "it was moved"
    );
    let state = fixture.client.device_state(fixture.device);
    assert_eq!(
        (state.guilty, state.submission, state.context),
        (1, id, context.handle)
    );
    assert_eq!(
        cuts(&events),
        bounds(&[256]),
        "the portion before the cut has run"
    );
    assert_eq!(small.mapping.read64(0), 1);
}

fn allocation_bound_anew_makes_way() {
    let fixture = Fixture::new();
    let (small, large) = small_in_the_way(&fixture);
    let mut commands = Commands::new();
    commands.store_in(0, &small.allocation, 0, 1).pad_to(256);
    commands.store_in(0, &small.allocation, 8, 3);
    let at = commands.patches.len();
    commands.store_in(1, &large.allocation, 0, 2).pad_to(BUFFER);
    commands.patches[at].split_offset = 256;
    let events = trace_run(&fixture, &commands);
    assert_eq!(cuts(&events), bounds(&[256, 1024]));
    let portions = portions_of(&events, only_submission(&events));
    let moves: Vec<_> = events
        .0
        .iter()
        .enumerate()
        .filter(|(_, event)| concerns(event, small.object))
        .collect();
    assert_eq!(moves.len(), 1);
    assert!(moves[0].0 > edge(&events, "node_end", &portions[0]));
    assert_eq!(moves[0].1.word("cause"), "split");
    for (offset, piece) in [(264, &small), (288, &large)] {
        let patch = events
            .named("dma_patch")
            .filter(|event| event.number("offset") == offset)
            .last();
        let patch = patch.expect("patched");
        let added = if offset == 264 { 8 } else { 0 };
        assert_eq!(
            (patch.number("seg"), patch.number("seg_off") - added),
            piece.place()
        );
    }
    let values = [
        small.mapping.read64(0),
        small.mapping.read64(8),
        large.mapping.read64(0),
    ];
    assert_eq!(values, [1, 3, 2]);
}

fn what_never_fits_at_one_point_is_refused() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let [one, two] = [0, 1].map(|_| Piece::new(&fixture, 12 * MIB));
    let mut commands = Commands::new();
    commands.store_in(0, &one.allocation, 0, 1);
    commands.store_in(1, &two.allocation, 0, 2);
    let refusal = commands
        .try_submit(&fixture.client, context.handle)
        .expect_err("24 of 16 MiB");
    assert_eq!(
        (refusal.errno, refusal.kind),
        (libc::ENOSPC, abi::SUBMIT_ERROR_TOO_LARGE)
    );
    commands.patches[1].slot = 0;
    fixture.run(&context, &commands);
    assert_eq!((one.mapping.read64(0), two.mapping.read64(0)), (1, 2));
}

fn what_does_not_fit_at_run_time_ends_the_device() {
    let fixture = Fixture::new();
    let bystander = Fixture::new();
    let context = fixture.context();
    let fence = fixture.client.create_fence(fixture.device, 0);
    let piece = Piece::new(&fixture, 12 * MIB);
    let mut commands = Commands::new();
    commands
        .store_in(0, &piece.allocation, 0, 1)
        .wait_for(fence, 1);
    let id = commands.submit(&fixture.client, &context);
    debugfs::inject(&format!("reserve 1 {}", 8 * MIB));
    fixture.client.signal(fence, 1);
    clock::wait_until("the device fails", || {
        fixture.client.device_state(fixture.device).state == abi::DEVICE_STATE_ERROR_MEMORY
    });
    let report = fixture.client.try_submission(context.handle, id);
    assert_eq!(report.err(), Some(libc::EIO));
    let mut good = Commands::new();
    good.store_in(0, &piece.allocation, 0, 1);
    let refusal = good
        .try_submit(&fixture.client, context.handle)
        .expect_err("a device in error");
    assert_eq!(refusal.errno, libc::EIO);
    let other = Piece::new(&bystander, MIB);
    let mut good = Commands::new();
    good.store_in(0, &other.allocation, 0, 9);
    bystander.run(&bystander.context(), &good);
    assert_eq!(other.mapping.read64(0), 9);
    debugfs::inject("reserve 1 0");
}
