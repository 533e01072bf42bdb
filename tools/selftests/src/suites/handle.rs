// SPDX-License-Identifier: GPL-2.0

//! Handles, names and the end of objects.

use std::{
    collections::BTreeSet,
    fs::OpenOptions, //
};

use crate::{
    abi,
    client::{
        Client,
        Queue, //
    },
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        physical,
        plain,
        Fixture,
        PHYSICAL_NODE,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    module,
    process::Child,
    suite::Suite,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "handle",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" handles_are_not_zero_and_differ,
        "" handle_is_not_reused_at_once,
        "" object_ids_are_unique_on_the_adapter,
        "[D3]" two_clients_do_not_see_each_other,
        "[D4]" forked_process_shares_the_client,
        "[D4]" passed_descriptor_outlives_its_opener,
        "" close_of_nothing_twice_names_the_second,
        "" same_handle_twice_in_a_close_changes_nothing,
        "" close_takes_mixed_types,
        "" close_of_a_device_closes_what_it_owns,
        "" paging_fence_is_not_closed_alone,
        "" paging_fence_goes_with_its_queue,
        "" progress_fence_outlives_its_context,
        "" name_shows_in_debugfs_and_can_be_cleared,
        "" name_with_bad_characters_is_refused,
        "" name_that_is_too_long_is_refused,
        "" device_is_active_at_first,
        "" call_works_whatever_the_open_mode,
        "" fdinfo_has_the_standard_keys,
        "" thousands_of_objects_come_and_go,
    },
};

fn handles_are_not_zero_and_differ() {
    let fixture = Fixture::new();
    let mut handles = BTreeSet::from([fixture.device, fixture.queue.handle, fixture.queue.fence]);
    for _ in 0..100 {
        handles.insert(fixture.client.create_fence(fixture.device, 0));
        handles.insert(fixture.create(plain(4096, SYSTEM)).handle);
    }
    assert_eq!(handles.len(), 203);
    assert!(!handles.contains(&0));
}

fn handle_is_not_reused_at_once() {
    let fixture = Fixture::new();
    let mut seen = BTreeSet::new();
    for _ in 0..200 {
        let fence = fixture.client.create_fence(fixture.device, 0);
        assert!(seen.insert(fence), "{fence:#x} came again");
        fixture.client.close(&[fence]);
    }
    for stale in seen {
        assert_eq!(
            fixture.client.try_close(&[stale], 0),
            Err((libc::ENOENT, 0))
        );
    }
}

fn object_ids_are_unique_on_the_adapter() {
    let (one, other) = (Fixture::new(), Fixture::new());
    let mut ids = BTreeSet::new();
    for _ in 0..50 {
        ids.insert(one.create(plain(4096, SYSTEM)).object_id);
        let short = other.create(plain(4096, SYSTEM));
        ids.insert(short.object_id);
        other.client.close(&[short.handle]);
    }
    assert_eq!(ids.len(), 100);
}

fn two_clients_do_not_see_each_other() {
    let (one, other) = (Fixture::new(), Fixture::new());
    let allocation = one.create(plain(4096, SYSTEM));
    // The same number in the other client is nothing, or another object.
    for _ in 0..8 {
        let mine = other.create(plain(8192, SYSTEM));
        assert_ne!(mine.object_id, allocation.object_id);
    }
    match other.client.try_states(&[allocation.handle]) {
        Ok(states) => assert_ne!(states[0].object_id, allocation.object_id),
        Err(error) => assert_eq!(error, (libc::ENOENT, 0)),
    }
    let _ = other.client.try_close(&[allocation.handle], 0);
    assert_eq!(
        one.client.state_of(allocation.handle).object_id,
        allocation.object_id
    );
}

fn forked_process_shares_the_client() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4096, SYSTEM));
    Child::start(|_| {
        let mapping = fixture.client.map(&allocation);
        mapping.write32(0, 77);
        let more = fixture.create(plain(4096, SYSTEM));
        fixture.client.close(&[more.handle]);
    })
    .join();
    assert_eq!(fixture.client.map(&allocation).read32(0), 77);
    fixture.client.close(&[allocation.handle]);
}

fn passed_descriptor_outlives_its_opener() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(physical(4096, VISIBLE_SEGMENT));
    let context = fixture.context();
    let mut heir = Child::start(|says| {
        says.line("ready");
        // The opener is gone by now; everything goes on.
        clock::wait_until("the opener has closed", || {
            fixture.client.is_reached(fixture.queue.fence, 0)
        });
        let mut commands = Commands::new();
        commands.store(allocation.at(8), 5);
        fixture.run(&context, &commands);
        assert_eq!(fixture.client.map(&allocation).read64(8), 5);
    });
    assert_eq!(heir.line(), "ready");
    drop(fixture);
    heir.join();
    clock::wait_until("the last close frees everything", || {
        debugfs::find_placement(allocation.object_id).is_none()
    });
}

fn close_of_nothing_twice_names_the_second() {
    let fixture = Fixture::new();
    let fence = fixture.client.create_fence(fixture.device, 0);
    fixture.client.close(&[fence]);
    let device = fixture.device;
    assert_eq!(
        fixture.client.try_close(&[device, fence], 0),
        Err((libc::ENOENT, 1))
    );
    assert_eq!(
        fixture.client.device_state(device).state,
        abi::DEVICE_STATE_ACTIVE
    );
}

fn same_handle_twice_in_a_close_changes_nothing() {
    let fixture = Fixture::new();
    let fence = fixture.client.create_fence(fixture.device, 3);
    assert_eq!(
        fixture.client.try_close(&[fence, fence], 0),
        Err((libc::ENOENT, 1))
    );
    assert!(fixture.client.is_reached(fence, 3));
}

fn close_takes_mixed_types() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4096, SYSTEM)).handle;
    let fence = fixture.client.create_fence(fixture.device, 0);
    let context = fixture.context();
    let Queue { handle: queue, .. } = fixture.client.create_queue(fixture.device);
    let handles = [fence, allocation, context.handle, queue];
    fixture.client.close_and_wait(&handles);
    for handle in handles {
        assert_eq!(
            fixture.client.try_close(&[handle], 0),
            Err((libc::ENOENT, 0))
        );
    }
}

fn close_of_a_device_closes_what_it_owns() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(4096, VISIBLE_SEGMENT));
    let context = fixture.context();
    fixture.client.close_and_wait(&[fixture.device]);
    for handle in [
        allocation.handle,
        context.handle,
        fixture.queue.handle,
        fixture.device,
    ] {
        assert_eq!(
            fixture.client.try_close(&[handle], 0),
            Err((libc::ENOENT, 0)),
            "{handle:#x}"
        );
    }
    clock::wait_until("the memory is free", || {
        debugfs::find_placement(allocation.object_id).is_none()
    });
}

fn paging_fence_is_not_closed_alone() {
    let fixture = Fixture::new();
    let fence = fixture.queue.fence;
    assert_eq!(fixture.client.try_close(&[fence], 0), Err((libc::EBUSY, 0)));
    assert!(fixture.client.is_reached(fence, 0));
}

fn paging_fence_goes_with_its_queue() {
    let fixture = Fixture::new();
    fixture.client.close(&[fixture.queue.handle]);
    let fence = fixture.queue.fence;
    assert_eq!(
        fixture.client.try_close(&[fence], 0),
        Err((libc::ENOENT, 0))
    );
}

fn progress_fence_outlives_its_context() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let id = fixture.run(&context, &Commands::new());
    fixture.client.close(&[context.handle]);
    assert!(fixture.client.is_reached(context.progress, id));
    let more = [crate::client::point(context.progress, id + 1)];
    let wait = fixture.client.try_wait(&more, clock::patient_deadline(), 0);
    assert_eq!(wait, Err(libc::ECANCELED));
    fixture.client.close(&[context.progress]);
}

/// Whether a debug file shows a name.
fn shows(name: &str) -> bool {
    ["processes", "allocations", "fences", "queues"]
        .iter()
        .any(|file| {
            debugfs::read(file)
                .iter()
                .any(|record| record.text.contains(name))
        })
}

fn name_shows_in_debugfs_and_can_be_cleared() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4096, SYSTEM)).handle;
    for (object, name) in [
        (0, "Client-name_1"),
        (fixture.device, "dev#2"),
        (allocation, "tex/3"),
    ] {
        fixture
            .client
            .try_set_name(object, name.as_bytes())
            .expect("SET_NAME");
        assert!(shows(name), "{name} is not shown");
        fixture.client.try_set_name(object, b"").expect("SET_NAME");
        assert!(!shows(name), "{name} is still shown");
    }
    let longest = [b'x'; 63];
    fixture
        .client
        .try_set_name(0, &longest)
        .expect("the longest name");
}

fn name_with_bad_characters_is_refused() {
    let client = Client::open();
    for bad in [b' ', b'\t', b'\n', 0, 0x7f, 0x80, 0xff, 0x1f] {
        let name = [b'a', bad, b'b'];
        assert_eq!(
            client.try_set_name(0, &name),
            Err(libc::EINVAL),
            "character {bad:#x}"
        );
    }
}

fn name_that_is_too_long_is_refused() {
    let client = Client::open();
    assert_eq!(client.try_set_name(0, &[b'x'; 64]), Err(libc::EINVAL));
    let mut argument = abi::SetName {
        object: 0,
        len: u32::MAX,
        ptr: 0x1000,
    };
    assert_eq!(
        client.call(abi::IOCTL_SET_NAME, &mut argument),
        Err(libc::EINVAL)
    );
}

fn device_is_active_at_first() {
    let fixture = Fixture::new();
    let state = fixture.client.device_state(fixture.device);
    assert_eq!(state.state, abi::DEVICE_STATE_ACTIVE);
    assert_eq!((state.guilty, state.context, state.submission), (0, 0, 0));
    assert_eq!(
        (state.node, state.fault_va, state.fault_flags),
        (abi::NODE_NONE, 0, 0)
    );
}

fn call_works_whatever_the_open_mode() {
    for (read, write) in [(true, false), (false, true)] {
        let file = OpenOptions::new()
            .read(read)
            .write(write)
            .open(module::NODE)
            .expect("open");
        let client = Client::from_file(file);
        let device = client.create_device();
        let allocation = client.create(device, plain(4096, SYSTEM));
        client.create_context(device, PHYSICAL_NODE);
        client.signal(client.create_fence(device, 0), 1);
        client.close(&[allocation.handle, device]);
    }
}

fn fdinfo_has_the_standard_keys() {
    let fixture = Fixture::new();
    fixture.create_resident(plain(8192, VISIBLE_SEGMENT));
    let text = fixture.client.fdinfo().expect("fdinfo");
    for key in [
        "drm-driver:",
        "drm-client-id:",
        "drm-total-vram1:",
        "drm-resident-vram1:",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(key)),
            "no {key} in:\n{text}"
        );
    }
    let driver = text.lines().find(|line| line.starts_with("drm-driver:"));
    assert_eq!(driver.map(|line| line[11..].trim()), Some("vidmm"));
    let resident = text
        .lines()
        .find(|line| line.starts_with("drm-resident-vram1:"));
    assert_eq!(
        resident.map(|line| line[19..].trim()),
        Some("8 KiB"),
        "{text}"
    );
}

fn thousands_of_objects_come_and_go() {
    let fixture = Fixture::new();
    let mut infos = vec![plain(4096, SYSTEM); 1000];
    for _ in 0..3 {
        fixture
            .client
            .try_create_all(fixture.device, &mut infos)
            .expect("ALLOC_CREATE");
        let mut handles: Vec<u32> = infos.iter().map(|info| info.handle).collect();
        for _ in 0..500 {
            handles.push(fixture.client.create_fence(fixture.device, 0));
        }
        fixture.client.close(&handles);
    }
}
