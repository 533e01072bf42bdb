// SPDX-License-Identifier: GPL-2.0

//! SCANOUT: ranges for what is shown, how long they last, and who makes room for them.

use crate::{
    abi::{
        self,
        MakeResident, //
    },
    call::array,
    client::{
        point,
        Allocation, //
    },
    clock,
    commands::Commands,
    debugfs,
    display::{
        assert_all_free,
        picture,
        place,
        show,
        PICTURE, //
    },
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    suite::{
        Suite,
        TABLES_OUTSIDE, //
    },
    trace::Recording,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "scanout",
    parameters: Some(TABLES_OUTSIDE),
    cases: crate::cases! {
        "[SEG-22]" primary_in_system_memory_is_mapped_while_displayed,
        "[SEG-22]" primary_that_nobody_asked_for_leaves_when_hidden,
        "[SEG-22]" primary_shown_twice_is_mapped_once,
        "[SEG-23]" range_is_there_before_and_after_the_display,
        "[SEG-23]" display_is_unchanged_when_no_range_can_be_had,
        "[SEG-23]" others_leave_for_the_display_as_many_as_it_needs,
        "[SEG-23]" memory_of_other_devices_makes_room,
        "[SEG-23]" pinned_memory_makes_no_room,
        "[SEG-23]" memory_segment_serves_where_the_aperture_is_full,
        "[SEG-25]" swap_chain_needs_two_ranges,
        "[SEG-25]" fast_flips_need_two_ranges,
        "[RES-18]" displayed_primary_stays_under_pressure,
        "[RES-18]" newcomer_beside_a_displayed_primary_is_refused,
        "" displayed_primary_cannot_be_pushed_out_or_moved,
        "" evicted_primary_leaves_when_it_is_hidden,
        "" same_primary_again_moves_nothing,
        "" content_is_right_wherever_it_is_shown,
    },
};

fn primary_in_system_memory_is_mapped_while_displayed() {
    let fixture = Fixture::new();
    let recording = Recording::start();
    let allocation = fixture.create_resident(picture(PICTURE, SYSTEM));
    let object = allocation.object_id;
    let segment = || fixture.client.state_of(allocation.handle).segment;
    assert_eq!(
        recording.so_far().operations("MapAperture", object).count(),
        0
    );
    assert_eq!((segment(), debugfs::segment(3).mapped), (0, 0));

    fixture.show(0, allocation.handle);
    assert_eq!((segment(), debugfs::segment(3).mapped), (3, PICTURE));
    let flags = fixture.client.state_of(allocation.handle).flags;
    assert_eq!(
        flags & abi::ALLOC_STATE_ON_SCREEN,
        abi::ALLOC_STATE_ON_SCREEN
    );

    fixture.blank(0);
    assert_eq!((segment(), debugfs::segment(3).mapped), (0, 0));
    let flags = fixture.client.state_of(allocation.handle).flags;
    assert_eq!(flags & abi::ALLOC_STATE_ON_SCREEN, 0);

    let events = recording.stop();
    assert_eq!(events.bytes("MapAperture", object), PICTURE);
    assert_eq!(events.bytes("UnmapAperture", object), PICTURE);
    for op in ["Fill", "Transfer"] {
        assert_eq!(events.operations(op, object).count(), 0, "{op}");
    }
}

fn primary_that_nobody_asked_for_leaves_when_hidden() {
    let fixture = Fixture::new();
    let allocation = fixture.create(picture(PICTURE, SYSTEM));
    fixture.show(0, allocation.handle);
    let state = fixture.client.state_of(allocation.handle);
    assert_eq!((state.segment, state.resident_refs), (3, 0));
    fixture.blank(0);
    let state = fixture.client.state_of(allocation.handle);
    assert_eq!(state.residency, abi::ALLOC_RESIDENCY_NOT_RESIDENT);
}

fn primary_shown_twice_is_mapped_once() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(picture(PICTURE, SYSTEM));
    fixture.show(0, allocation.handle);
    let before = place(&allocation);
    fixture.show(1, allocation.handle);
    assert_eq!(debugfs::segment(3).mapped, PICTURE);
    fixture.blank(0);
    assert_eq!(place(&allocation), before);
    fixture.blank(1);
    assert_eq!(debugfs::segment(3).mapped, 0);
}

/// Fields of an operation or a display at a place.
fn at(allocation: &Allocation, place: (u64, u64)) -> (String, String) {
    let (segment, offset) = place;
    let object = allocation.object_id;
    (
        format!("alloc={object} dst_seg={segment} dst_off={offset:#x}"),
        format!("alloc={object} seg={segment} off={offset:#x}"),
    )
}

fn range_is_there_before_and_after_the_display() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(picture(PICTURE, SYSTEM));
    let recording = Recording::start();
    fixture.show(0, allocation.handle);
    let shown_at = place(&allocation);
    fixture.blank(0);
    let events = recording.stop();
    let (operation, display) = at(&allocation, shown_at);
    let places = events.assert_order(&[
        format!("paging_op op=MapAperture {operation} cause=display"),
        format!("scanout {display} action=start"),
        format!("scanout {display} action=stop"),
        format!("paging_op op=UnmapAperture {operation} cause=display"),
    ]);
    // In force, not only decided.
    let map = events.0[places[0]].number("seq");
    assert!(events.end_of_buffer(map) < places[1]);
}

/// Fills the aperture with what engines reach physically, and returns it.
fn fill_aperture(fixture: &Fixture) -> Vec<Allocation> {
    (0..8)
        .map(|_| fixture.create_resident(physical(2 * MIB, SYSTEM)))
        .collect()
}

fn display_is_unchanged_when_no_range_can_be_had() {
    let fixture = Fixture::new();
    let shown = fixture.create_resident(picture(PICTURE, VISIBLE_SEGMENT));
    fixture.show(0, shown.handle);
    let before = fixture.client.source(0);
    fill_aperture(&fixture);
    let other = fixture.create_resident(picture(PICTURE, SYSTEM));
    let recording = Recording::start();
    for flags in [0, abi::SCANOUT_TEST] {
        let mut argument = show(0, other.handle);
        argument.flags = flags;
        let refused = fixture.client.try_scanout(argument);
        assert_eq!(refused, Err(libc::ENOSPC), "flags {flags}");
    }
    assert_eq!(fixture.client.source(0), before);
    let events = recording.stop();
    events.assert_none("scanout", &[]);
    assert_eq!(events.named("paging_op").count(), 0);
    assert_eq!(fixture.client.state_of(other.handle).segment, 0);
}

fn others_leave_for_the_display_as_many_as_it_needs() {
    let fixture = Fixture::new();
    let others = fill_aperture(&fixture);
    let handles: Vec<_> = others.iter().map(|other| other.handle).collect();
    let shown = fixture.create_resident(picture(3 * MIB, SYSTEM));
    assert_eq!(
        fixture.client.try_scanout(show(0, shown.handle)),
        Err(libc::ENOSPC)
    );
    fixture
        .client
        .try_evict(fixture.device, &handles, abi::EVICT_ONLY_IF_NEEDED)
        .expect("EVICT");
    let mut test = show(0, shown.handle);
    test.flags = abi::SCANOUT_TEST;
    fixture.client.scanout(test);
    let resident = || {
        let states = fixture.client.try_states(&handles).expect("ALLOC_QUERY");
        states.iter().filter(|state| state.segment == 3).count()
    };
    assert_eq!(resident(), 8);
    fixture.show(0, shown.handle);
    assert_eq!(resident(), 6);
    assert_eq!(fixture.client.source(0).alloc, shown.handle);
}

fn memory_of_other_devices_makes_room() {
    let other = Fixture::new();
    fill_aperture(&other);
    let fixture = Fixture::new();
    let shown = fixture.create(picture(PICTURE, SYSTEM));
    fixture.show(0, shown.handle);
    assert_eq!(fixture.client.state_of(shown.handle).segment, 3);
}

fn pinned_memory_makes_no_room() {
    let other = Fixture::new();
    let context = other.context();
    let busy = other.create(physical(16 * MIB, SYSTEM));
    debugfs::inject("pause 2");
    let mut commands = Commands::new();
    commands.store(busy.at(0), 1);
    let id = commands.submit(&other.client, &context);
    clock::wait_until("the work is ready", || {
        let state = other.client.try_submission(context.handle, id);
        state.is_ok_and(|state| state.state == abi::SUBMIT_STATE_READY)
    });
    let fixture = Fixture::new();
    let shown = fixture.create(picture(PICTURE, SYSTEM));
    assert_eq!(
        fixture.client.try_scanout(show(0, shown.handle)),
        Err(libc::ENOSPC)
    );
    debugfs::inject("resume 2");
    other.client.wait(context.progress, id);
    fixture.show(0, shown.handle);
}

fn memory_segment_serves_where_the_aperture_is_full() {
    let fixture = Fixture::new();
    let mut info = picture(PICTURE, VISIBLE_SEGMENT | SYSTEM);
    info.preferred = 3;
    let shown = fixture.create_resident(info);
    let mapping = fixture.client.map(&shown);
    let content = pattern(3, shown.size);
    mapping.write(0, &content);
    assert_eq!(place(&shown).0, 0);
    fill_aperture(&fixture);
    fixture.show(0, shown.handle);
    assert_eq!(place(&shown).0, 1);
    assert_eq!(mapping.read(0, content.len()), content);
}

fn swap_chain_needs_two_ranges() {
    let fixture = Fixture::new();
    let chain: Vec<_> = (0..64)
        .map(|_| fixture.create(picture(PICTURE, SYSTEM)))
        .collect();
    let handles: Vec<_> = chain.iter().map(|image| image.handle).collect();
    fixture.client.bring_in(&fixture.queue, &handles);
    for (number, image) in chain.iter().enumerate() {
        fixture.client.map(image).write64(0, number as u64);
    }
    assert_eq!(debugfs::segment(3).mapped, 0);
    for image in &chain {
        fixture.client.scanout(show(0, image.handle));
        assert!(debugfs::segment(3).mapped <= 2 * PICTURE);
    }
    fixture.blank(0);
    assert_eq!(debugfs::segment(3).mapped, 0);
    for (number, image) in chain.iter().enumerate() {
        assert_eq!(fixture.client.map(image).read64(0), number as u64);
    }
}

fn fast_flips_need_two_ranges() {
    let fixture = Fixture::new();
    let chain: Vec<_> = (0..12)
        .map(|_| fixture.create(picture(PICTURE, SYSTEM)))
        .collect();
    let recording = Recording::start();
    for image in chain.iter().cycle().take(120) {
        fixture.client.scanout(show(0, image.handle));
    }
    fixture.blank(0);
    let events = recording.stop();
    let mut mapped = 0_u64;
    for event in events.named("paging_op") {
        match event.word("op") {
            "MapAperture" => mapped += event.number("bytes"),
            "UnmapAperture" => mapped -= event.number("bytes"),
            _ => {}
        }
        assert!(mapped <= 2 * PICTURE, "{}", event.text);
    }
    assert_eq!(mapped, 0);
    let starts = events.named("scanout");
    let starts = starts.filter(|event| event.word("action") == "start");
    assert_eq!(starts.count(), 120);
}

fn displayed_primary_stays_under_pressure() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let shown = fixture.create(picture(PICTURE, VISIBLE_SEGMENT));
    fixture.show(0, shown.handle);
    let before = place(&shown);
    assert_eq!(before.0, 1);
    // Each needs everything else there is.
    for seed in 0..4 {
        let other = fixture.create(physical(14 * MIB, VISIBLE_SEGMENT));
        let mut commands = Commands::new();
        commands.fill_bytes(other.at(0), 4096, seed);
        fixture.run(&context, &commands);
        assert_eq!(place(&other).0, 1);
        assert_eq!(place(&shown), before);
    }
    // Nothing ever makes room for this one as long as the primary is shown.
    let big = fixture.create(physical(16 * MIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    commands.store(big.at(0), 1);
    commands.submit(&fixture.client, &context);
    clock::wait_until("the device is in error", || {
        let state = fixture.client.device_state(fixture.device).state;
        state == abi::DEVICE_STATE_ERROR_MEMORY
    });
    assert_eq!(place(&shown), before);
}

fn newcomer_beside_a_displayed_primary_is_refused() {
    let shows = Fixture::new();
    let shown = shows.create(picture(PICTURE, VISIBLE_SEGMENT));
    shows.show(0, shown.handle);
    let newcomer = Fixture::new();
    // Whoever asks: the primary is on no requirement list.
    for fixture in [&shows, &newcomer] {
        let everything = fixture.create(plain(debugfs::segment(1).total, VISIBLE_SEGMENT));
        let list = [everything.handle];
        let mut request = MakeResident {
            queue: fixture.queue.handle,
            handles: array(&list),
            ..Default::default()
        };
        let refused = fixture.client.call(abi::IOCTL_MAKE_RESIDENT, &mut request);
        assert_eq!(refused, Err(libc::ENOSPC));
        assert_eq!((request.bytes_to_trim, request.fail_index), (shown.size, 0));
        let references = fixture.client.state_of(everything.handle).resident_refs;
        assert_eq!(references, 0);
        // What is left is there for the asking.
        let rest = debugfs::segment(1).total - shown.size;
        let rest = fixture.create_resident(plain(rest, VISIBLE_SEGMENT));
        assert_eq!(fixture.client.state_of(rest.handle).segment, 1);
        fixture
            .client
            .close_and_wait(&[rest.handle, everything.handle]);
    }
    // A primary that is on the list counts once.
    shows.bring_in(&shown);
    let rest = debugfs::segment(1).total - shown.size;
    shows.create_resident(plain(rest, VISIBLE_SEGMENT));
    shows.blank(0);
    newcomer.create_resident(plain(debugfs::segment(1).total, VISIBLE_SEGMENT));
}

fn displayed_primary_cannot_be_pushed_out_or_moved() {
    let fixture = Fixture::new();
    for mask in [VISIBLE_SEGMENT, SYSTEM] {
        let shown = fixture.create_resident(picture(PICTURE, mask));
        fixture.show(0, shown.handle);
        let before = place(&shown);
        for command in ["evict", "move"] {
            let command = format!("{command} {}", shown.object_id);
            assert_eq!(debugfs::try_inject(&command), Err(libc::EBUSY), "{command}");
        }
        assert_eq!(place(&shown), before);
    }
}

fn evicted_primary_leaves_when_it_is_hidden() {
    let fixture = Fixture::new();
    for mask in [VISIBLE_SEGMENT, SYSTEM] {
        let shown = fixture.create_resident(picture(PICTURE, mask));
        let witness = fixture.create_resident(plain(MIB, VISIBLE_SEGMENT));
        fixture.show(0, shown.handle);
        let before = place(&shown);
        fixture.client.evict(fixture.device, &[shown.handle]);
        fixture.push_out(&witness);
        assert_eq!(place(&shown), before);
        fixture.blank(0);
        clock::wait_until("the primary leaves", || {
            let state = fixture.client.state_of(shown.handle);
            state.residency == abi::ALLOC_RESIDENCY_NOT_RESIDENT
        });
    }
    assert_all_free();
}

fn same_primary_again_moves_nothing() {
    let fixture = Fixture::new();
    let shown = fixture.create_resident(picture(PICTURE, SYSTEM));
    let first = fixture.show(0, shown.handle);
    assert_eq!((first.previous, first.sequence), (0, first.sequence));
    let before = place(&shown);
    let recording = Recording::start();
    let again = fixture.show(0, shown.handle);
    let events = recording.stop();
    assert_eq!(again.previous, shown.handle);
    assert_eq!(again.sequence, first.sequence + 1);
    assert_eq!(place(&shown), before);
    assert_eq!(events.named("paging_op").count(), 0);
    events.assert_none("scanout", &[]);
    let last = fixture.blank(0);
    assert_eq!(last.previous, shown.handle);
    assert_eq!(debugfs::segment(3).mapped, 0);
}

fn content_is_right_wherever_it_is_shown() {
    let fixture = Fixture::new();
    let shown = fixture.create(picture(PICTURE, VISIBLE_SEGMENT | SYSTEM));
    let mapping = fixture.client.map(&shown);
    let content = pattern(5, shown.size);
    mapping.write(0, &content);
    let fence = fixture.client.create_fence(fixture.device, 0);
    for (turn, segment) in [1, 3, 1].iter().enumerate() {
        debugfs::inject(&format!("move {} {segment}", shown.object_id));
        let mut argument = show(0, shown.handle);
        argument.signal = point(fence, turn as u64 + 1);
        fixture.client.scanout(argument);
        fixture.client.wait(fence, turn as u64 + 1);
        assert_eq!(place(&shown).0, *segment);
        assert_eq!(mapping.read(0, content.len()), content);
        fixture.blank(0);
    }
}
