// SPDX-License-Identifier: GPL-2.0

//! SCANOUT: what a switch waits for, in which order switches come, and what ends them early.

use std::thread;

use crate::{
    abi::{
        self,
        Scanout, //
    },
    client::{
        point,
        Allocation, //
    },
    clock,
    commands::Commands,
    debugfs,
    display::{
        assert_all_free,
        physical_picture,
        picture,
        show,
        show_after,
        PICTURE, //
    },
    fixture::{
        physical,
        Fixture,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    process::{
        interrupted,
        Child, //
    },
    suite::Suite,
    trace::Recording,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "scanout_order",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[SEG-23]" switch_waits_for_its_fence,
        "[SEG-23]" switch_waits_for_the_paging_of_its_range,
        "" switch_waits_for_work_that_writes_the_primary,
        "" work_that_only_reads_holds_no_switch_up,
        "" work_that_comes_later_holds_no_switch_up,
        "" poisoned_fence_holds_no_switch_up,
        "" signal_comes_when_the_old_one_is_gone,
        "" call_waits_for_the_switch_before_it,
        "" signals_end_a_waiting_call,
        "" killed_caller_leaves_nothing,
        "" failing_flips_keep_no_memory,
        "" pages_that_linux_may_swap_are_let_go_again,
        "" error_of_the_device_cancels_its_switch,
        "" first_switch_that_is_cancelled_frees_the_source,
        "" blank_waits_for_its_turn,
        "" threads_flip_as_fast_as_they_can,
        "" same_primaries_on_two_sources_in_opposite_order,
    },
};

/// What source 0 shows.
fn shown(fixture: &Fixture) -> u32 {
    fixture.client.source(0).alloc
}

fn chain(fixture: &Fixture, count: usize) -> Vec<Allocation> {
    (0..count)
        .map(|_| fixture.create(picture(PICTURE, SYSTEM)))
        .collect()
}

fn switch_waits_for_its_fence() {
    let fixture = Fixture::new();
    let images = chain(&fixture, 2);
    fixture.show(0, images[0].handle);
    let fence = fixture.client.create_fence(fixture.device, 0);
    let recording = Recording::start();
    let mut argument = show_after(0, images[1].handle, point(fence, 3));
    argument.signal = point(fence, 4);
    let answer = fixture.client.scanout(argument);
    assert_eq!(answer.previous, images[0].handle);
    // Both have a range, and the old one is shown.
    assert_eq!(debugfs::segment(3).mapped, 2 * PICTURE);
    fixture.client.signal(fence, 2);
    assert_eq!(shown(&fixture), images[0].handle);
    assert_eq!(fixture.client.source(0).sequence, answer.sequence);
    fixture.client.signal(fence, 3);
    fixture.client.wait(fence, 4);
    assert_eq!(shown(&fixture), images[1].handle);
    assert_eq!(debugfs::segment(3).mapped, PICTURE);
    let (old, new) = (images[0].object_id, images[1].object_id);
    recording.stop().assert_order(&[
        format!("paging_op op=MapAperture alloc={new}"),
        "fence_wait value=3 action=begin".to_owned(),
        "fence value=3 origin=cpu".to_owned(),
        "fence_wait value=3 action=end".to_owned(),
        format!("scanout alloc={new} action=start"),
        format!("scanout alloc={old} action=stop"),
        format!("paging_op op=UnmapAperture alloc={old}"),
        "fence value=4".to_owned(),
    ]);
}

fn switch_waits_for_the_paging_of_its_range() {
    let fixture = Fixture::new();
    let image = fixture.create(picture(PICTURE, VISIBLE_SEGMENT));
    fixture.client.map(&image).write64(0, 1);
    debugfs::inject("pause 1");
    let recording = Recording::start();
    fixture.client.scanout(show(0, image.handle));
    thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(fixture.client.source(0).flags, abi::SOURCE_OWNED);
    recording.so_far().assert_none("scanout", &[]);
    debugfs::inject("resume 1");
    clock::wait_until("the primary is shown", || shown(&fixture) == image.handle);
}

/// Submits a write of `image` that waits for `value` of `fence`.
fn write_after(fixture: &Fixture, image: &Allocation, fence: u32, value: u64) -> u64 {
    let context = fixture.context();
    let mut commands = Commands::new();
    commands.store(image.at(0), value).wait_for(fence, value);
    commands.submit(&fixture.client, &context)
}

fn switch_waits_for_work_that_writes_the_primary() {
    let fixture = Fixture::new();
    let image = fixture.create(physical_picture(PICTURE, SYSTEM));
    let fence = fixture.client.create_fence(fixture.device, 0);
    let recording = Recording::start();
    write_after(&fixture, &image, fence, 1);
    write_after(&fixture, &image, fence, 2);
    let over = fixture.client.create_fence(fixture.device, 0);
    fixture.client.scanout(Scanout {
        signal: point(over, 1),
        ..show(0, image.handle)
    });
    fixture.client.signal(fence, 1);
    clock::wait_until("the first write has ended", || {
        fixture.client.map(&image).read64(0) == 1
    });
    assert_eq!(fixture.client.source(0).flags, abi::SOURCE_OWNED);
    fixture.client.signal(fence, 2);
    fixture.client.wait(over, 1);
    assert_eq!(shown(&fixture), image.handle);
    let events = recording.stop();
    let start = events.find(0, "scanout", &["action=start".to_owned()]);
    let ends = events.0.iter().enumerate();
    let ends = ends.filter(|(_, event)| event.name == "node_end" && event.word("kind") == "dma");
    let last = ends.map(|(index, _)| index).max();
    assert!(last < start, "{last:?}, {start:?}");
}

fn work_that_only_reads_holds_no_switch_up() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let image = fixture.create(physical_picture(PICTURE, SYSTEM));
    let copy = fixture.create(physical(MIB, SYSTEM));
    let fence = fixture.client.create_fence(fixture.device, 0);
    let mut commands = Commands::new();
    commands
        .copy_bytes(copy.at(0), image.at(0), 4096)
        .wait_for(fence, 1);
    commands.submit(&fixture.client, &context);
    fixture.show(0, image.handle);
    fixture.client.signal(fence, 1);
}

fn work_that_comes_later_holds_no_switch_up() {
    let fixture = Fixture::new();
    let image = fixture.create(physical_picture(PICTURE, SYSTEM));
    let fence = fixture.client.create_fence(fixture.device, 0);
    write_after(&fixture, &image, fence, 1);
    fixture.client.scanout(show(0, image.handle));
    write_after(&fixture, &image, fence, 2);
    fixture.client.signal(fence, 1);
    clock::wait_until("the primary is shown", || shown(&fixture) == image.handle);
    fixture.client.signal(fence, 2);
}

fn poisoned_fence_holds_no_switch_up() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let image = fixture.create(picture(PICTURE, SYSTEM));
    fixture
        .client
        .scanout(show_after(0, image.handle, point(context.progress, 7)));
    assert_eq!(fixture.client.source(0).flags, abi::SOURCE_OWNED);
    // Nobody will ever raise it now.
    fixture.client.close(&[context.handle]);
    clock::wait_until("the primary is shown", || shown(&fixture) == image.handle);
    // One that is poisoned from the start.
    fixture
        .client
        .scanout(show_after(0, 0, point(context.progress, 7)));
    clock::wait_until("the source is blank", || shown(&fixture) == 0);
}

fn signal_comes_when_the_old_one_is_gone() {
    let fixture = Fixture::new();
    let images = chain(&fixture, 2);
    let fence = fixture.client.create_fence(fixture.device, 0);
    let steps = [images[0].handle, images[1].handle, images[1].handle, 0, 0];
    for (step, alloc) in (1..).zip(steps) {
        fixture.client.scanout(Scanout {
            signal: point(fence, step),
            ..show(0, alloc)
        });
        fixture.client.wait(fence, step);
        assert_eq!(shown(&fixture), alloc);
    }
    // It never lowers a value.
    fixture.client.signal(fence, 100);
    fixture.client.scanout(Scanout {
        signal: point(fence, 1),
        ..show(0, 0)
    });
    assert!(fixture.client.is_reached(fence, 100));
}

fn call_waits_for_the_switch_before_it() {
    let fixture = Fixture::new();
    let images = chain(&fixture, 3);
    let fence = fixture.client.create_fence(fixture.device, 0);
    fixture.show(0, images[0].handle);
    let first = fixture
        .client
        .scanout(show_after(0, images[1].handle, point(fence, 1)));
    thread::scope(|scope| {
        let second = scope.spawn(|| fixture.client.scanout(show(0, images[2].handle)));
        // The other source is not held up, and a test never is.
        fixture.show(1, images[0].handle);
        let mut test = show(0, images[2].handle);
        test.flags = abi::SCANOUT_TEST;
        assert_eq!(fixture.client.scanout(test).sequence, first.sequence);
        assert!(!second.is_finished());
        fixture.client.signal(fence, 1);
        let second = second.join().expect("SCANOUT");
        assert_eq!(second.previous, images[1].handle);
        assert_eq!(second.sequence, first.sequence + 1);
    });
    clock::wait_until("the last one is shown", || {
        shown(&fixture) == images[2].handle
    });
}

fn signals_end_a_waiting_call() {
    let fixture = Fixture::new();
    let images = chain(&fixture, 3);
    fixture.show(0, images[0].handle);
    let before = fixture.client.source(0);
    debugfs::inject("hold worker");
    let answer = interrupted(|| fixture.client.try_scanout(show(0, images[1].handle)));
    assert_eq!(answer, Err(libc::EINTR));
    debugfs::inject("release worker");
    assert_eq!(fixture.client.source(0), before);
    // And one that waits for its turn.
    let fence = fixture.client.create_fence(fixture.device, 0);
    let first = fixture
        .client
        .scanout(show_after(0, images[1].handle, point(fence, 1)));
    let answer = interrupted(|| fixture.client.try_scanout(show(0, images[2].handle)));
    assert_eq!(answer, Err(libc::EINTR));
    fixture.client.signal(fence, 1);
    clock::wait_until("the first is shown", || shown(&fixture) == images[1].handle);
    assert_eq!(fixture.client.source(0).sequence, first.sequence);
    clock::wait_until("the old one has left", || {
        debugfs::segment(3).mapped == PICTURE
    });
}

fn killed_caller_leaves_nothing() {
    let mut caller = Child::start(|says| {
        let fixture = Fixture::new();
        let images = chain(&fixture, 2);
        let never = fixture.client.create_fence(fixture.device, 0);
        fixture
            .client
            .scanout(show_after(0, images[0].handle, point(never, 1)));
        says.line("waits");
        fixture.client.scanout(show(0, images[1].handle));
    });
    assert_eq!(caller.line(), "waits");
    thread::sleep(std::time::Duration::from_millis(20));
    caller.kill();
    assert_all_free();
    let fixture = Fixture::new();
    let images = chain(&fixture, 1);
    fixture.show(0, images[0].handle);
}

fn failing_flips_keep_no_memory() {
    let fixture = Fixture::new();
    let image = fixture.create(picture(PICTURE, SYSTEM));
    // No backing pages.
    debugfs::inject("reserve 0 1");
    let refused = fixture.client.try_scanout(show(0, image.handle));
    assert_eq!(refused, Err(libc::ENOMEM));
    debugfs::inject("reserve 0 0");
    // No range.
    debugfs::inject(&format!("reserve 3 {}", 15 * MIB));
    let refused = fixture.client.try_scanout(show(0, image.handle));
    assert_eq!(refused, Err(libc::ENOSPC));
    debugfs::inject("reserve 3 0");
    // No range for another reason, and a range that cannot be mapped.
    for (failure, errno) in [("place", libc::ENOSPC), ("move", libc::EIO)] {
        debugfs::inject(&format!("fail {failure} 1"));
        let refused = fixture.client.try_scanout(show(0, image.handle));
        assert_eq!(refused, Err(errno), "{failure}");
    }
    // A signal.
    debugfs::inject("hold worker");
    let refused = interrupted(|| fixture.client.try_scanout(show(0, image.handle)));
    assert_eq!(refused, Err(libc::EINTR));
    debugfs::inject("release worker");
    assert_eq!(fixture.client.source(0).flags, 0);
    // Everything can be had by somebody else.
    let context = fixture.context();
    let all = fixture.create(physical(16 * MIB, SYSTEM));
    let mut commands = Commands::new();
    commands.store(all.at(0), 1);
    fixture.run(&context, &commands);
    fixture.client.close_and_wait(&[image.handle]);
}

fn pages_that_linux_may_swap_are_let_go_again() {
    let fixture = Fixture::new();
    let mut info = picture(PICTURE, SYSTEM);
    info.flags |= abi::ALLOC_SWAPPABLE;
    let image = fixture.create(info);
    let has_pages = || debugfs::placement(image.object_id).backing_pages() > 0;
    debugfs::inject("hold worker");
    let refused = interrupted(|| fixture.client.try_scanout(show(0, image.handle)));
    assert_eq!(refused, Err(libc::EINTR));
    debugfs::inject("release worker");
    clock::wait_until("the pages are let go", || !has_pages());
    fixture.show(0, image.handle);
    assert!(has_pages());
    fixture.blank(0);
    clock::wait_until("the pages are let go", || !has_pages());
}

fn error_of_the_device_cancels_its_switch() {
    let fixture = Fixture::new();
    let device = fixture.client.create_device();
    let old = fixture.create(picture(PICTURE, SYSTEM));
    let new = fixture.client.create(device, picture(PICTURE, SYSTEM));
    let fence = fixture.client.create_fence(fixture.device, 0);
    let signal = fixture.client.create_fence(fixture.device, 0);
    fixture.show(0, old.handle);
    let mut argument = show_after(0, new.handle, point(fence, 1));
    argument.signal = point(signal, 1);
    fixture.client.scanout(argument);
    crate::events::fail(&fixture.client, device);
    clock::wait_until("its range is gone", || {
        debugfs::segment(3).mapped == PICTURE
    });
    let waited = fixture
        .client
        .try_wait(&[point(signal, 1)], clock::patient_deadline(), 0);
    assert_eq!(waited, Err(libc::EIO));
    assert_eq!(shown(&fixture), old.handle);
    fixture.client.signal(fence, 1);
    fixture.client.close_and_wait(&[new.handle]);
    fixture.blank(0);
}

fn first_switch_that_is_cancelled_frees_the_source() {
    let fixture = Fixture::new();
    let device = fixture.client.create_device();
    let image = fixture.client.create(device, picture(PICTURE, SYSTEM));
    let fence = fixture.client.create_fence(fixture.device, 0);
    fixture
        .client
        .scanout(show_after(0, image.handle, point(fence, 1)));
    assert_eq!(fixture.client.source(0).flags, abi::SOURCE_OWNED);
    crate::events::fail(&fixture.client, device);
    clock::wait_until("the source is free", || fixture.client.source(0).flags == 0);
    let other = Fixture::new();
    let images = chain(&other, 1);
    other.show(0, images[0].handle);
}

fn blank_waits_for_its_turn() {
    let fixture = Fixture::new();
    let images = chain(&fixture, 1);
    let fence = fixture.client.create_fence(fixture.device, 0);
    fixture.show(0, images[0].handle);
    fixture.client.scanout(show_after(0, 0, point(fence, 1)));
    assert_eq!(shown(&fixture), images[0].handle);
    // It is owned until it is blank.
    let other = Fixture::new();
    assert_eq!(other.client.try_scanout(show(0, 0)), Err(libc::EBUSY));
    fixture.client.signal(fence, 1);
    clock::wait_until("the source is free", || fixture.client.source(0).flags == 0);
    other.client.scanout(show(0, 0));
}

fn threads_flip_as_fast_as_they_can() {
    let fixture = Fixture::new();
    let images = chain(&fixture, 8);
    let before = fixture.client.source(0).sequence;
    thread::scope(|scope| {
        for image in &images {
            scope.spawn(|| {
                for _ in 0..50 {
                    fixture.client.scanout(show(0, image.handle));
                    assert!(debugfs::segment(3).mapped <= 2 * PICTURE);
                }
            });
        }
    });
    fixture.blank(0);
    assert_eq!(fixture.client.source(0).sequence, before + 401);
    let handles: Vec<_> = images.iter().map(|image| image.handle).collect();
    fixture.client.close_and_wait(&handles);
    assert_all_free();
}

fn same_primaries_on_two_sources_in_opposite_order() {
    let fixture = Fixture::new();
    let images = chain(&fixture, 2);
    let [one, other] = [images[0].handle, images[1].handle];
    thread::scope(|scope| {
        for (source, order) in [(0, [one, other]), (1, [other, one])] {
            let client = &fixture.client;
            scope.spawn(move || {
                for alloc in order.iter().cycle().take(100) {
                    client.scanout(show(source, *alloc));
                }
            });
        }
    });
    fixture.blank(0);
    fixture.blank(1);
    assert_eq!(debugfs::segment(3).mapped, 0);
    fixture.client.close_and_wait(&[one, other]);
    assert_all_free();
}
