// SPDX-License-Identifier: GPL-2.0

//! Cutting submissions that do not fit: where they are cut, what stays, what leaves, and when there is no way.
//!
//! All of it holds on any engine that works in physical mode, so the tests are run on nodes that save
//! contexts and on nodes that do not.

use crate::{
    abi,
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        Fixture,
        KIB,
        MIB, //
    },
    portions::{
        bounds,
        concerns,
        cuts,
        edge,
        leave_free,
        only_submission,
        portions_of,
        trace_run,
        Piece,
        BUFFER, //
    },
    suite::Suite,
    trace::Recording, //
};

/// The suite where contexts are saved.
pub const SUITE: Suite = Suite {
    name: "splitting",
    parameters: Some("profile=DISC"),
    cases: CASES,
};

/// The suite where they are not.
pub const BACK_TO_BACK_SUITE: Suite = Suite {
    name: "splitting_nsr",
    parameters: Some("profile=DISC-NSR"),
    cases: CASES,
};

/// The suite on an adapter without GPU MMU.
pub const PHYSICAL_SUITE: Suite = Suite {
    name: "splitting_phys",
    parameters: Some("profile=PHYS"),
    cases: CASES,
};

const CASES: &[crate::suite::Case] = crate::cases! {
    "[DMA-1] [DMA-2]" four_large_allocations_run_in_portions,
    "[DMA-4]" paging_runs_between_portions,
    "[DMA-5]" every_split_point_can_be_a_cut,
    "[DMA-10]" bytes_before_the_split_run_without_the_allocation,
    "[DMA-12]" allocations_come_in_the_order_of_the_list,
    "[DMA-14]" cut_is_at_the_entry_that_failed,
    "[DMA-17]" thousand_entries_with_a_hundred_cuts_are_right,
    "[DMA-18]" each_bind_and_unbind_can_be_a_cut,
    "[DMA-26]" patches_follow_places,
    "" query_tells_of_cuts,
    "" statistics_count_cuts,
    "" null_render_is_cut_too,
    "" closing_a_context_between_portions_leaves_nothing,
    "" entries_at_the_end_need_nothing,
};

/// Four allocations of 6 MiB, each copied inside itself in one packet at its point.
fn four_copies(fixture: &Fixture) -> (Vec<Piece>, Commands) {
    let pieces: Vec<Piece> = (0..4).map(|_| Piece::new(fixture, 6 * MIB)).collect();
    let mut commands = Commands::new();
    for (slot, piece) in [0, 1, 2, 0].into_iter().zip(&pieces) {
        piece.mapping.write64(0, piece.object);
        let first = commands.patches.len();
        commands.copy_bytes(piece.allocation.at(MIB), piece.allocation.at(0), 8);
        commands.in_slot(first, slot);
        commands.unbind(slot);
        commands.pad_to(commands.bytes().next_multiple_of(256));
    }
    (pieces, commands)
}

fn four_large_allocations_run_in_portions() {
    let fixture = Fixture::new();
    let (pieces, commands) = four_copies(&fixture);
    assert_eq!(commands.bytes(), BUFFER);
    let events = trace_run(&fixture, &commands);
    assert_eq!(cuts(&events), bounds(&[512, 1024]));
    for piece in &pieces {
        assert_eq!(piece.mapping.read64(MIB as usize), piece.object);
    }
    // Nobody was asked to give way.
    assert_eq!(debugfs::stat("preemptions"), 0);
}

fn paging_runs_between_portions() {
    let fixture = Fixture::new();
    let (pieces, commands) = four_copies(&fixture);
    let events = trace_run(&fixture, &commands);
    let portions = portions_of(&events, only_submission(&events));
    assert_eq!(portions.len(), 2);
    let end = edge(&events, "node_end", &portions[0]);
    let begin = edge(&events, "node_begin", &portions[1]);
    let between = &events.0[end..begin];
    let edges = ["node_begin", "node_end"].map(|name| {
        between
            .iter()
            .filter(|event| event.name == name && event.word("kind") == "paging")
            .count()
    });
    assert!(
        edges[0] > 0 && edges[1] == edges[0],
        "paging buffers between portions: {edges:?}"
    );
    for piece in &pieces[2..] {
        assert!(between.iter().any(|event| {
            concerns(event, piece.object)
                && event.word("cause") == "split"
                && event.word("to_seg") == "1"
        }));
    }
    assert!(between
        .iter()
        .any(|event| { concerns(event, pieces[0].object) && event.word("to_seg") == "-1" }));
}

/// Eight allocations in as many slots, each used between its binding and the next point.
fn eight_points(fixture: &Fixture, size: u64) -> (Vec<Piece>, Commands) {
    let pieces: Vec<Piece> = (0..8).map(|_| Piece::new(fixture, size)).collect();
    let mut commands = Commands::new();
    for (slot, piece) in (0..).zip(&pieces) {
        if slot > 0 {
            commands.unbind(slot - 1);
        }
        commands.store_in(slot, &piece.allocation, size - 8, piece.object);
        commands.pad_to((slot + 1) * 128);
    }
    (pieces, commands)
}

fn every_split_point_can_be_a_cut() {
    let size = 256 * KIB;
    let every = |step: usize| -> Vec<u64> {
        (1..=8)
            .map(|point| point * 128)
            .skip(step - 1)
            .step_by(step)
            .collect()
    };
    for room in [1_usize, 2, 4] {
        let fixture = Fixture::new();
        let (pieces, commands) = eight_points(&fixture, size);
        leave_free(room as u64 * size);
        let events = trace_run(&fixture, &commands);
        assert_eq!(cuts(&events), bounds(&every(room)), "room for {room}");
        for piece in &pieces {
            assert_eq!(piece.mapping.read64(size as usize - 8), piece.object);
        }
        debugfs::inject("reserve 1 0");
    }
}

fn bytes_before_the_split_run_without_the_allocation() {
    let fixture = Fixture::new();
    let [one, two] = [0, 1].map(|_| Piece::new(&fixture, 10 * MIB));
    let mut commands = Commands::new();
    commands.store_in(0, &one.allocation, 0, 1);
    commands.pad_to(512).unbind(0);
    commands.store_in(1, &two.allocation, 0, 2).pad_to(BUFFER);
    let events = trace_run(&fixture, &commands);
    let portions = portions_of(&events, only_submission(&events));
    assert_eq!(cuts(&events), bounds(&[512, 1024]));
    let end = edge(&events, "node_end", &portions[0]);
    let comes = events
        .0
        .iter()
        .position(|event| concerns(event, two.object));
    assert!(
        comes.expect("it comes") > end,
        "it came before the portion had run"
    );
}

fn allocations_come_in_the_order_of_the_list() {
    let fixture = Fixture::new();
    let sizes = [3 * MIB, 2 * MIB, MIB];
    let pieces = sizes.map(|size| Piece::new(&fixture, size));
    let mut commands = Commands::new();
    // The allocation list has them the other way round.
    for piece in pieces.iter().rev() {
        commands.list(piece.allocation.handle, crate::commands::Write::Yes);
    }
    for (slot, piece) in (0..).zip(&pieces) {
        commands.store_in(slot, &piece.allocation, 0, 1);
    }
    let events = trace_run(&fixture, &commands);
    let come: Vec<u64> = events
        .named("residency")
        .map(|event| event.number("alloc"))
        .collect();
    assert_eq!(come, pieces.each_ref().map(|piece| piece.object));
    let entries: Vec<u64> = events
        .named("dma_prepare")
        .map(|event| event.number("entry"))
        .collect();
    assert_eq!(entries, [0, 1, 2]);
}

fn cut_is_at_the_entry_that_failed() {
    let fixture = Fixture::new();
    let (_pieces, commands) = eight_points(&fixture, 256 * KIB);
    leave_free(2 * 256 * KIB);
    let events = trace_run(&fixture, &commands);
    debugfs::inject("reserve 1 0");
    let of_interest = ["dma_prepare", "dma_portion"];
    let story: Vec<_> = events
        .0
        .iter()
        .filter(|event| of_interest.contains(&event.name.as_str()))
        .collect();
    let mut last_end = 0;
    let mut last_entry = 0;
    for (index, event) in story.iter().enumerate() {
        if event.name == "dma_prepare" {
            let entry = event.number("entry");
            assert!(entry >= last_entry, "entries out of order");
            last_entry = entry;
            let offset = commands.patches[entry as usize].split_offset;
            let next = story[index + 1];
            if event.word("result") == "no-memory" {
                assert_eq!(next.name, "dma_portion");
                assert_eq!(next.number("end"), u64::from(offset));
            }
            continue;
        }
        assert_eq!(event.number("start"), last_end);
        last_end = event.number("end");
        assert!(last_end > event.number("start"), "an empty portion");
    }
    assert_eq!(last_end, u64::from(commands.bytes()));
    let failed = story
        .iter()
        .filter(|event| event.name == "dma_prepare" && event.word("result") == "no-memory");
    assert_eq!(failed.count(), 3);
}

fn thousand_entries_with_a_hundred_cuts_are_right() {
    let fixture = Fixture::new();
    let size = 64 * KIB;
    let pieces: Vec<Piece> = (0..20).map(|_| Piece::new(&fixture, size)).collect();
    let mut commands = Commands::new();
    // Ten stores for each binding; a hundred bindings, of which one fits at a time.
    for round in 0..100_u64 {
        let piece = &pieces[(round * 7 % 20) as usize];
        for entry in 0..10 {
            commands.store_in(
                0,
                &piece.allocation,
                (round / 20 * 10 + entry) * 8,
                round * 10 + entry,
            );
        }
    }
    leave_free(size);
    let events = trace_run(&fixture, &commands);
    debugfs::inject("reserve 1 0");
    assert_eq!(commands.patches.len(), 1000);
    assert_eq!(cuts(&events).len(), 100);
    for round in 0..100_u64 {
        let piece = &pieces[(round * 7 % 20) as usize];
        for entry in 0..10 {
            let offset = (round / 20 * 10 + entry) * 8;
            assert_eq!(piece.mapping.read64(offset as usize), round * 10 + entry);
        }
    }
}

fn each_bind_and_unbind_can_be_a_cut() {
    let size = 256 * KIB;
    let fixture = Fixture::new();
    let pieces: Vec<Piece> = (0..6).map(|_| Piece::new(&fixture, size)).collect();
    let mut commands = Commands::new();
    for (slot, piece) in (0..).zip(&pieces) {
        commands
            .store_in(slot, &piece.allocation, 0, piece.object)
            .nop(2);
        commands.unbind(slot).nop(2);
    }
    let offsets: Vec<u64> = commands
        .patches
        .iter()
        .map(|patch| u64::from(patch.split_offset))
        .collect();
    assert_eq!(offsets.len(), 12);
    // With room for one, the binds are the cuts.
    leave_free(size);
    let events = trace_run(&fixture, &commands);
    let binds: Vec<u64> = offsets
        .iter()
        .copied()
        .step_by(2)
        .skip(1)
        .chain([u64::from(commands.bytes())])
        .collect();
    assert_eq!(cuts(&events), bounds(&binds));
    // Where something is bound at an unbind, that is a cut.
    for (number, unbind) in offsets.iter().copied().enumerate().skip(1).step_by(2) {
        let mut commands = commands.clone();
        let extra = Piece::new(&fixture, size);
        let alloc_index = commands.list(extra.allocation.handle, crate::commands::Write::No);
        let bind = abi::SubmitPatch {
            alloc_index,
            slot: 7,
            split_offset: unbind as u32,
            ..Default::default()
        };
        let behind = abi::SubmitPatch {
            alloc_index: abi::ALLOC_INDEX_NONE,
            split_offset: unbind as u32 + 8,
            ..bind
        };
        commands.patches.insert(number + 1, bind);
        if number + 2 < commands.patches.len() {
            commands.patches.insert(number + 2, behind);
        }
        let events = trace_run(&fixture, &commands);
        assert!(
            cuts(&events).iter().any(|(start, _)| *start == unbind),
            "no cut at {unbind}"
        );
    }
    debugfs::inject("reserve 1 0");
}

fn patches_follow_places() {
    let fixture = Fixture::new();
    let (pieces, commands) = eight_points(&fixture, 256 * KIB);
    leave_free(2 * 256 * KIB);
    let fence = fixture.client.create_fence(fixture.device, 0);
    let mut signalling = commands.clone();
    signalling.then_signal(fence, 1);
    let context = fixture.context();
    let recording = Recording::start();
    signalling.submit(&fixture.client, &context);
    fixture.client.wait(fence, 1);
    let events = recording.stop();
    debugfs::inject("reserve 1 0");
    let portions = portions_of(&events, only_submission(&events));
    assert!(portions
        .windows(2)
        .all(|pair| pair[0].fence < pair[1].fence));
    let mut places = std::collections::BTreeMap::new();
    let mut patched = 0;
    for (at, event) in events.0.iter().enumerate() {
        if event.name == "residency" {
            places.insert(
                event.number("alloc"),
                (event.number("to_seg"), event.number("to_off")),
            );
        }
        if event.name != "dma_patch" {
            continue;
        }
        let offset = event.number("offset");
        let piece = &pieces[(offset / 128) as usize];
        let (segment, start) = places[&piece.object];
        assert_eq!(
            (event.number("seg"), event.number("seg_off")),
            (segment, start + 256 * KIB - 8)
        );
        let portion = portions
            .iter()
            .find(|portion| (portion.start..portion.end).contains(&offset));
        let portion = portion.expect("a portion");
        assert!(at < edge(&events, "node_begin", portion) && at > portion.at);
        patched += 1;
    }
    assert_eq!(patched, 8);
    let last = portions.last().expect("portions");
    let signal = events.find(0, "fence", &["value=1".to_owned(), "origin=gpu".to_owned()]);
    assert!(signal.expect("the signal") > edge(&events, "node_end", last));
}

fn query_tells_of_cuts() {
    let fixture = Fixture::new();
    let (pieces, commands) = four_copies(&fixture);
    let context = fixture.context();
    let id = fixture.run(&context, &commands);
    let report = fixture
        .client
        .try_submission(context.handle, id)
        .expect("SUBMIT_QUERY");
    assert_eq!((report.state, report.error), (abi::SUBMIT_STATE_DONE, 0));
    assert_eq!((report.splits, report.patches_written), (2, 8));
    assert_eq!(report.paged_in, 4 * 6 * MIB);
    assert!(report.paged_out >= 2 * 6 * MIB);
    assert!(report.queued_ns <= report.start_ns && report.start_ns < report.end_ns);
    drop(pieces);
}

fn statistics_count_cuts() {
    let fixture = Fixture::new();
    let (_pieces, commands) = eight_points(&fixture, 256 * KIB);
    leave_free(256 * KIB);
    let before = (debugfs::stat("splits"), debugfs::stat("evictions_split"));
    fixture.run(&fixture.context(), &commands);
    debugfs::inject("reserve 1 0");
    let after = (debugfs::stat("splits"), debugfs::stat("evictions_split"));
    assert_eq!((after.0 - before.0, after.1 - before.1), (7, 7));
    let text = fixture.client.fdinfo().expect("fdinfo");
    assert!(text.contains("vidmm-splits:\t7\n"), "{text}");
}

fn null_render_is_cut_too() {
    let fixture = Fixture::new();
    let (pieces, mut commands) = eight_points(&fixture, 256 * KIB);
    leave_free(256 * KIB);
    commands.flags = abi::SUBMIT_PATCHED_NULL_RENDER;
    let events = trace_run(&fixture, &commands);
    debugfs::inject("reserve 1 0");
    assert_eq!(cuts(&events).len(), 8);
    assert!(pieces
        .iter()
        .all(|piece| piece.mapping.read64(256 * KIB as usize - 8) == 0));
}

fn closing_a_context_between_portions_leaves_nothing() {
    for round in 0..12_u64 {
        let fixture = Fixture::new();
        let (_pieces, commands) = eight_points(&fixture, 256 * KIB);
        leave_free(256 * KIB);
        let context = fixture.context();
        commands.submit(&fixture.client, &context);
        std::thread::sleep(std::time::Duration::from_micros(round * 300));
        fixture.client.close(&[context.handle]);
        clock::wait_until("nothing is held", || {
            debugfs::placements()
                .iter()
                .all(|one| one.record.number("slot") == 0 && one.record.number("busy") == 0)
        });
        // Others are cut as before.
        let other = fixture.context();
        fixture.run(&other, &commands);
        debugfs::inject("reserve 1 0");
    }
}

fn entries_at_the_end_need_nothing() {
    let fixture = Fixture::new();
    let [one, two] = [0, 1].map(|_| Piece::new(&fixture, 10 * MIB));
    let mut commands = Commands::new();
    commands.store_in(0, &one.allocation, 0, 1);
    commands.bind(0, &two.allocation);
    let events = trace_run(&fixture, &commands);
    assert_eq!(cuts(&events), bounds(&[u64::from(commands.bytes())]));
    assert_eq!(one.mapping.read64(0), 1);
}
