// SPDX-License-Identifier: GPL-2.0

//! SCANOUT: refusals, who owns a source, and what else a displayed primary forbids.

use crate::{
    abi::{
        self,
        AllocInfo,
        Scanout, //
    },
    client::{
        point,
        Client, //
    },
    clock, debugfs,
    display::{
        assert_all_free,
        physical_picture,
        picture,
        place,
        show,
        PICTURE, //
    },
    events::{
        drain,
        subscribe, //
    },
    fixture::{
        plain,
        primary,
        Fixture,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    module::{
        self,
        Loaded, //
    },
    process::{
        wait_for_the_end,
        Child, //
    },
    suite::Suite,
    trace::Recording,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "scanout_calls",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" source_out_of_range_is_refused,
        "[SEG-23]" what_is_no_primary_is_refused,
        "" picture_that_no_source_shows_is_refused,
        "" value_without_a_fence_is_refused,
        "" fence_of_the_kernel_cannot_be_signalled,
        "" device_in_error_shows_nothing,
        "" source_says_what_it_shows,
        "" debug_file_says_what_sources_show,
        "" blank_of_a_blank_source_is_accepted,
        "" test_changes_nothing,
        "" first_client_owns_the_source,
        "" owner_who_blanks_gives_the_source_away,
        "" owner_who_closes_gives_the_source_away,
        "" killed_owner_gives_the_source_away,
        "" sources_have_owners_of_their_own,
        "" close_of_a_displayed_primary_is_busy,
        "" close_of_its_device_is_busy,
        "" refused_close_of_a_list_closes_nothing,
        "" replaced_primary_can_be_closed,
        "" offered_primary_is_not_shown,
        "" displayed_primary_is_not_offered,
        "" mapping_of_a_displayed_primary_goes_on,
        "" switch_is_told_as_an_event,
        "" failed_device_keeps_its_picture,
    },
};

/// Loads the module by itself.
pub const LOAD_SUITE: Suite = Suite {
    name: "scanout_load",
    parameters: None,
    cases: crate::cases! {
        "" number_of_sources_is_a_parameter,
        "" module_unloads_after_a_display,
    },
};

fn source_out_of_range_is_refused() {
    let fixture = Fixture::new();
    let info: abi::InfoAdapter = fixture.client.query(abi::QUERY_ADAPTER, 0);
    assert_eq!(info.sources, 2);
    assert_ne!(info.features & abi::FEATURE_SCANOUT, 0);
    let alloc = fixture.create(picture(PICTURE, 0)).handle;
    for source in [2, 3, 16, 1 << 31, u32::MAX] {
        for alloc in [0, alloc] {
            let refused = fixture.client.try_scanout(show(source, alloc));
            assert_eq!(refused, Err(libc::EINVAL), "source {source}");
        }
        let query: Result<abi::InfoSource, _> = fixture.client.try_query(abi::QUERY_SOURCE, source);
        assert_eq!(query.err(), Some(libc::ENOENT), "source {source}");
    }
}

fn what_is_no_primary_is_refused() {
    let fixture = Fixture::new();
    let before = fixture.client.source(0);
    for flags in [0, abi::ALLOC_ACCESSED_PHYSICALLY] {
        let mut info = plain(PICTURE, VISIBLE_SEGMENT);
        info.flags |= flags;
        let alloc = fixture.create_resident(info).handle;
        let refused = fixture.client.try_scanout(show(0, alloc));
        assert_eq!(refused, Err(libc::EINVAL));
    }
    assert_eq!(fixture.client.source(0), before);
}

fn picture_that_no_source_shows_is_refused() {
    let fixture = Fixture::new();
    let limits = fixture.client.source(0);
    let high = AllocInfo {
        size: 64 * u64::from(limits.max_height + 1),
        ..primary(1, limits.max_height + 1)
    };
    for info in [primary(limits.max_width + 1, 1), high] {
        let info = AllocInfo {
            size: info.size + 4096,
            ..info
        };
        let alloc = fixture.create(info).handle;
        let refused = fixture.client.try_scanout(show(0, alloc));
        assert_eq!(refused, Err(libc::EINVAL));
    }
    let widest = fixture.create(primary(limits.max_width, 1));
    fixture.show(0, widest.handle);
}

fn value_without_a_fence_is_refused() {
    let fixture = Fixture::new();
    let with = |change: fn(&mut Scanout)| {
        let mut argument = show(0, 0);
        change(&mut argument);
        fixture.client.try_scanout(argument).err()
    };
    assert_eq!(with(|argument| argument.wait.value = 1), Some(libc::EINVAL));
    assert_eq!(
        with(|argument| argument.signal.value = 1),
        Some(libc::EINVAL)
    );
}

fn fence_of_the_kernel_cannot_be_signalled() {
    let fixture = Fixture::new();
    let context = fixture.context();
    for fence in [fixture.queue.fence, context.progress] {
        let mut argument = show(0, 0);
        argument.signal = point(fence, 1);
        let refused = fixture.client.try_scanout(argument);
        assert_eq!(refused, Err(libc::EACCES));
        // To wait for it is another matter.
        let mut argument = show(0, 0);
        argument.wait = point(fence, 0);
        fixture.client.scanout(argument);
    }
}

fn device_in_error_shows_nothing() {
    let fixture = Fixture::new();
    let alloc = fixture.create(picture(PICTURE, 0)).handle;
    crate::events::fail(&fixture.client, fixture.device);
    let refused = fixture.client.try_scanout(show(0, alloc));
    assert_eq!(refused, Err(libc::EIO));
    // Where nothing is named, no device is in error.
    fixture.client.scanout(show(0, 0));
}

fn source_says_what_it_shows() {
    let fixture = Fixture::new();
    let other = Client::open();
    let before = fixture.client.source(1);
    assert_eq!((before.source, before.flags, before.alloc), (1, 0, 0));
    let alloc = fixture.create(picture(PICTURE, 0)).handle;
    let shown = fixture.show(1, alloc);
    let both = abi::SOURCE_ENABLED | abi::SOURCE_OWNED;
    let own = fixture.client.source(1);
    assert_eq!((own.flags, own.alloc), (both, alloc));
    assert_eq!(own.sequence, shown.sequence);
    assert_eq!(shown.sequence, before.sequence + 1);
    let foreign = other.source(1);
    assert_eq!((foreign.flags, foreign.alloc), (both, 0));
    fixture.blank(1);
    let after = fixture.client.source(1);
    assert_eq!((after.flags, after.alloc), (0, 0));
    assert_eq!(after.sequence, shown.sequence + 1);
}

fn debug_file_says_what_sources_show() {
    let fixture = Fixture::new();
    let shown = fixture.create(picture(PICTURE, SYSTEM));
    let answer = fixture.show(1, shown.handle);
    let id = fixture
        .client
        .query::<abi::InfoClient>(abi::QUERY_CLIENT, 0)
        .client_id;
    let records = debugfs::read("sources");
    let [blank, showing] = &records[..] else {
        panic!("{records:?}");
    };
    assert_eq!(blank.word("owner"), Some("-"));
    assert_eq!(blank.word("allocation"), Some("-"));
    assert_eq!(showing.number("source"), 1);
    assert_eq!(showing.number("owner"), id);
    assert_eq!(showing.number("allocation"), shown.object_id);
    assert_eq!(showing.number("sequence"), answer.sequence);
    let place_shown = (showing.number("segment"), showing.number("offset"));
    assert_eq!(place_shown, place(&shown));
}

fn blank_of_a_blank_source_is_accepted() {
    let fixture = Fixture::new();
    let before = fixture.client.source(0).sequence;
    let shown = fixture.blank(0);
    assert_eq!((shown.previous, shown.sequence), (0, before + 1));
    assert_eq!(fixture.client.source(0).flags, 0);
}

fn test_changes_nothing() {
    let fixture = Fixture::new();
    let other = Fixture::new();
    let alloc = fixture.create(picture(PICTURE, SYSTEM)).handle;
    let fence = fixture.client.create_fence(fixture.device, 0);
    let before = fixture.client.source(0);
    let recording = Recording::start();
    let tested = fixture.client.scanout(Scanout {
        flags: abi::SCANOUT_TEST,
        wait: point(fence, 1),
        signal: point(fence, 2),
        ..show(0, alloc)
    });
    let events = recording.stop();
    assert_eq!((tested.previous, tested.sequence), (0, before.sequence));
    assert_eq!(fixture.client.source(0), before);
    assert!(!fixture.client.is_reached(fence, 1));
    for name in ["scanout", "paging_op", "residency", "fence_wait"] {
        events.assert_none(name, &[]);
    }
    let state = fixture.client.state_of(alloc);
    assert_eq!(state.residency, abi::ALLOC_RESIDENCY_NOT_RESIDENT);
    // The source is nobody's.
    let foreign = other.create(picture(PICTURE, 0)).handle;
    other.show(0, foreign);
    let mut test = show(0, alloc);
    test.flags = abi::SCANOUT_TEST;
    assert_eq!(fixture.client.try_scanout(test), Err(libc::EBUSY));
}

fn assert_busy(fixture: &Fixture, source: u32) {
    let alloc = fixture.create(picture(PICTURE, 0)).handle;
    for alloc in [alloc, 0] {
        let refused = fixture.client.try_scanout(show(source, alloc));
        assert_eq!(refused, Err(libc::EBUSY));
    }
}

fn first_client_owns_the_source() {
    let fixture = Fixture::new();
    let other = Fixture::new();
    let alloc = fixture.create(picture(PICTURE, 0)).handle;
    fixture.show(0, alloc);
    let before = fixture.client.source(0);
    assert_busy(&other, 0);
    assert_eq!(fixture.client.source(0), before);
}

fn owner_who_blanks_gives_the_source_away() {
    let fixture = Fixture::new();
    let other = Fixture::new();
    let alloc = fixture.create(picture(PICTURE, 0)).handle;
    fixture.show(0, alloc);
    fixture.blank(0);
    let foreign = other.create(picture(PICTURE, 0)).handle;
    other.show(0, foreign);
    assert_busy(&fixture, 0);
}

fn owner_who_closes_gives_the_source_away() {
    let other = Fixture::new();
    let recording = Recording::start();
    let (object, shown_at) = {
        let fixture = Fixture::new();
        let shown = fixture.create(picture(PICTURE, SYSTEM));
        fixture.show(0, shown.handle);
        (shown.object_id, place(&shown))
    };
    clock::wait_until("the source is free", || other.client.source(0).flags == 0);
    assert_eq!(debugfs::segment(3).mapped, 0);
    let (segment, offset) = shown_at;
    recording.stop().assert_order(&[
        format!("scanout alloc={object} seg={segment} off={offset:#x} action=start"),
        format!("scanout alloc={object} seg={segment} off={offset:#x} action=stop"),
        format!("paging_op op=UnmapAperture alloc={object}"),
    ]);
    let alloc = other.create(picture(PICTURE, 0)).handle;
    other.show(0, alloc);
}

fn killed_owner_gives_the_source_away() {
    let mut owner = Child::start(|says| {
        let fixture = Fixture::new();
        let never = fixture.client.create_fence(fixture.device, 0);
        for source in [0, 1] {
            let shown = fixture.create(picture(PICTURE, VISIBLE_SEGMENT));
            fixture.show(source, shown.handle);
            // And another one that waits for ever.
            let next = fixture.create(picture(PICTURE, SYSTEM));
            let mut argument = show(source, next.handle);
            argument.wait = point(never, 1);
            fixture.client.scanout(argument);
        }
        says.line("shown");
        wait_for_the_end();
    });
    assert_eq!(owner.line(), "shown");
    assert_eq!(debugfs::segment(3).mapped, 2 * PICTURE);
    owner.kill();
    let client = Client::open();
    for source in [0, 1] {
        clock::wait_until("the source is free", || client.source(source).flags == 0);
    }
    assert_all_free();
}

fn sources_have_owners_of_their_own() {
    let one = Fixture::new();
    let other = Fixture::new();
    let alloc = one.create(picture(PICTURE, 0)).handle;
    one.show(0, alloc);
    let alloc = other.create(picture(PICTURE, 0)).handle;
    other.show(1, alloc);
    assert_busy(&one, 1);
    assert_busy(&other, 0);
}

fn close_of_a_displayed_primary_is_busy() {
    let fixture = Fixture::new();
    let alloc = fixture.create(picture(PICTURE, 0)).handle;
    fixture.show(0, alloc);
    let refused = fixture.client.try_close(&[alloc], 0);
    assert_eq!(refused, Err((libc::EBUSY, 0)));
    let refused = fixture.client.try_close(&[alloc], abi::CLOSE_SYNC);
    assert_eq!(refused, Err((libc::EBUSY, 0)));
    assert_eq!(fixture.client.source(0).alloc, alloc);
    fixture.blank(0);
    fixture.client.close_and_wait(&[alloc]);
}

fn close_of_its_device_is_busy() {
    let fixture = Fixture::new();
    let device = fixture.client.create_device();
    let alloc = fixture.client.create(device, picture(PICTURE, 0)).handle;
    fixture.show(0, alloc);
    let refused = fixture.client.try_close(&[device], 0);
    assert_eq!(refused, Err((libc::EBUSY, 0)));
    assert_eq!(fixture.client.source(0).alloc, alloc);
    fixture.blank(0);
    fixture.client.close(&[device]);
}

fn refused_close_of_a_list_closes_nothing() {
    let fixture = Fixture::new();
    let first = fixture.create(plain(4096, SYSTEM)).handle;
    let shown = fixture.create(picture(PICTURE, 0)).handle;
    let last = fixture.create(plain(4096, SYSTEM)).handle;
    fixture.show(0, shown);
    let refused = fixture.client.try_close(&[first, shown, last], 0);
    assert_eq!(refused, Err((libc::EBUSY, 1)));
    // A handle that nobody has comes before what is busy.
    let refused = fixture.client.try_close(&[first, shown, 1], 0);
    assert_eq!(refused, Err((libc::ENOENT, 2)));
    fixture
        .client
        .try_states(&[first, shown, last])
        .expect("all are there");
    fixture.blank(0);
    fixture.client.close(&[first, shown, last]);
}

fn replaced_primary_can_be_closed() {
    let fixture = Fixture::new();
    let old = fixture.create(picture(PICTURE, SYSTEM)).handle;
    let new = fixture.create(picture(PICTURE, SYSTEM)).handle;
    fixture.show(0, old);
    assert_eq!(fixture.show(0, new).previous, old);
    fixture.client.close_and_wait(&[old]);
    assert_eq!(fixture.client.source(0).alloc, new);
}

fn offered_primary_is_not_shown() {
    let fixture = Fixture::new();
    let alloc = fixture.create(picture(PICTURE, 0)).handle;
    let offer = |alloc| {
        let level = abi::OFFER_LEVEL_LOW;
        fixture.client.try_offer(fixture.device, &[alloc], level, 0)
    };
    offer(alloc).expect("OFFER");
    for flags in [0, abi::SCANOUT_TEST] {
        let mut argument = show(0, alloc);
        argument.flags = flags;
        assert_eq!(fixture.client.try_scanout(argument), Err(libc::EBUSY));
    }
    fixture
        .client
        .try_reclaim(fixture.queue.handle, &[alloc])
        .expect("RECLAIM");
    fixture.show(0, alloc);
}

fn displayed_primary_is_not_offered() {
    let fixture = Fixture::new();
    let alloc = fixture.create(picture(PICTURE, 0)).handle;
    fixture.show(0, alloc);
    let offer = || {
        let level = abi::OFFER_LEVEL_LOW;
        fixture.client.try_offer(fixture.device, &[alloc], level, 0)
    };
    assert_eq!(offer(), Err((libc::EBUSY, 0)));
    fixture.blank(0);
    offer().expect("OFFER");
}

fn mapping_of_a_displayed_primary_goes_on() {
    let fixture = Fixture::new();
    for mask in [VISIBLE_SEGMENT, SYSTEM] {
        let shown = fixture.create(physical_picture(PICTURE, mask));
        let mapping = fixture.client.map(&shown);
        mapping.write64(0, 1);
        fixture.show(0, shown.handle);
        assert_eq!(mapping.read64(0), 1);
        mapping.write64(0, 2);
        fixture.blank(0);
        assert_eq!(mapping.read64(0), 2);
    }
}

fn switch_is_told_as_an_event() {
    let fixture = Fixture::new();
    let other = Client::open();
    subscribe(&fixture.client, &[abi::EVENT_SCANOUT]);
    subscribe(&other, &[abi::EVENT_SCANOUT]);
    let alloc = fixture.create(picture(PICTURE, 0)).handle;
    let shown = fixture.show(1, alloc);
    let blank = fixture.blank(1);
    let told = drain(&fixture.client);
    let told: Vec<_> = told
        .iter()
        .map(|event| (event.r#type, event.object, event.a))
        .collect();
    let expected = [shown, blank].map(|shown| (abi::EVENT_SCANOUT, 1, shown.sequence));
    assert_eq!(told, expected);
    assert_eq!(drain(&other), []);
}

fn failed_device_keeps_its_picture() {
    let fixture = Fixture::new();
    let device = fixture.client.create_device();
    let shown = fixture.client.create(device, picture(PICTURE, 0));
    fixture.show(0, shown.handle);
    let before = place(&shown);
    crate::events::fail(&fixture.client, device);
    let source = fixture.client.source(0);
    assert_eq!(source.alloc, shown.handle);
    assert_eq!(place(&shown), before);
    fixture.blank(0);
    fixture.client.close(&[device]);
}

fn number_of_sources_is_a_parameter() {
    {
        let _loaded = Loaded::new("profile=DISC sources=16");
        let fixture = Fixture::new();
        let alloc = fixture.create(picture(PICTURE, SYSTEM)).handle;
        fixture.show(15, alloc);
        let refused = fixture.client.try_scanout(show(16, alloc));
        assert_eq!(refused, Err(libc::EINVAL));
    }
    {
        let _loaded = Loaded::new("profile=DISC sources=0");
        let client = Client::open();
        assert_eq!(client.try_scanout(show(0, 0)), Err(libc::EINVAL));
    }
    assert_eq!(module::try_load("sources=17"), Err(libc::EINVAL));
}

fn module_unloads_after_a_display() {
    for _ in 0..3 {
        let _loaded = Loaded::new("profile=DISC");
        let fixture = Fixture::new();
        let never = fixture.client.create_fence(fixture.device, 0);
        let shown = fixture.create(picture(PICTURE, SYSTEM));
        fixture.show(0, shown.handle);
        let next = fixture.create(picture(PICTURE, SYSTEM));
        let mut argument = show(0, next.handle);
        argument.wait = point(never, 1);
        fixture.client.scanout(argument);
        assert_eq!(module::try_unload(), Err(libc::EAGAIN));
    }
}
