// SPDX-License-Identifier: GPL-2.0

//! Events: what a client is told without having asked, and how it reads it.

use std::os::fd::AsRawFd;

use crate::{
    abi::{
        self,
        Event, //
    },
    client::Client,
    clock,
    descriptor::{
        poll,
        read_at,
        read_from_start,
        set_waiting,
        Epoll,
        EventFd, //
    },
    events::{
        bit,
        drain,
        fail_a_device,
        is_readable,
        subscribe,
        try_read,
        try_subscribe,
        unsubscribe,
        wait_readable, //
    },
    memory::{
        Mapping,
        PAGE, //
    },
    process::{
        interrupted,
        wait_for_the_end,
        Child, //
    },
    suite::Suite, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "events",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[RES-20]" device_in_error_is_told,
        "[RES-20]" what_nobody_asked_for_is_not_told,
        "[RES-20]" eventfd_counts_the_records,
        "[RES-20]" second_subscription_replaces_the_first,
        "[RES-20]" subscription_ends_with_mask_zero,
        "" every_refusal_of_events,
        "" nothing_to_read_is_eagain,
        "" short_buffer_is_malformed,
        "" read_returns_whole_records_only,
        "[C8]" bad_buffer_leaves_the_record,
        "[C8]" bad_second_record_stays_queued,
        "" full_queue_ends_with_the_number_of_lost_records,
        "" read_waits_for_a_record,
        "" signal_ends_a_waiting_read,
        "[H12]" edge_triggered_epoll_sees_each_record,
        "" readers_of_shared_files_get_each_record_once,
        "" closed_eventfd_does_no_harm,
        "" file_has_no_position,
        "" killed_client_leaves_its_events_behind,
    },
};

fn device_events() -> Client {
    let client = Client::open();
    subscribe(&client, &[abi::EVENT_DEVICE_STATE]);
    client
}

fn objects(records: &[Event]) -> Vec<u32> {
    records.iter().map(|record| record.object).collect()
}

fn device_in_error_is_told() {
    let client = device_events();
    assert!(!is_readable(&client));
    let before = clock::now_ns() as u64;
    let device = fail_a_device(&client);
    let after = clock::now_ns() as u64;
    assert_eq!(poll(client.file(), 0), libc::POLLIN);
    let records = drain(&client);
    let [record] = records[..] else {
        panic!("{records:?}");
    };
    assert!((before..=after).contains(&record.time_ns), "{record:?}");
    assert_eq!(
        record,
        Event {
            r#type: abi::EVENT_DEVICE_STATE,
            length: 40,
            time_ns: record.time_ns,
            object: device,
            code: abi::DEVICE_STATE_ERROR_DMA,
            a: 0,
            b: 0,
        }
    );
    assert_eq!(poll(client.file(), 0), 0);
}

fn what_nobody_asked_for_is_not_told() {
    let client = Client::open();
    subscribe(&client, &[abi::EVENT_BUDGET, abi::EVENT_RESUMED]);
    let other = device_events();
    fail_a_device(&client);
    assert_eq!(drain(&client), []);
    assert!(!is_readable(&other), "told to another client");
}

fn eventfd_counts_the_records() {
    let client = device_events();
    let counter = EventFd::new();
    let mask = bit(abi::EVENT_DEVICE_STATE);
    assert_eq!(try_subscribe(&client, mask, counter.descriptor()), Ok(()));
    assert_eq!(counter.count(), 0);
    let devices = [(); 3].map(|()| fail_a_device(&client));
    assert_eq!(counter.count(), 3);
    assert_eq!(objects(&drain(&client)), devices);
}

fn second_subscription_replaces_the_first() {
    let client = device_events();
    let (first, second) = (EventFd::new(), EventFd::new());
    let mask = bit(abi::EVENT_DEVICE_STATE);
    assert_eq!(try_subscribe(&client, mask, first.descriptor()), Ok(()));
    let one = fail_a_device(&client);
    assert_eq!(try_subscribe(&client, mask, second.descriptor()), Ok(()));
    let two = fail_a_device(&client);
    assert_eq!((first.count(), second.count()), (1, 1));
    let others = bit(abi::EVENT_BUDGET);
    assert_eq!(try_subscribe(&client, others, second.descriptor()), Ok(()));
    fail_a_device(&client);
    assert_eq!(second.count(), 0);
    assert_eq!(objects(&drain(&client)), [one, two]);
}

fn subscription_ends_with_mask_zero() {
    let client = device_events();
    let counter = EventFd::new();
    let mask = bit(abi::EVENT_DEVICE_STATE);
    assert_eq!(try_subscribe(&client, mask, counter.descriptor()), Ok(()));
    fail_a_device(&client);
    unsubscribe(&client);
    fail_a_device(&client);
    assert_eq!(counter.count(), 1);
    assert!(!is_readable(&client));
    assert_eq!(try_read(&client, 1), Err(libc::EAGAIN));
    unsubscribe(&client);
}

fn every_refusal_of_events() {
    let client = Client::open();
    let none = abi::EVENTS_NO_EVENTFD;
    let counter = EventFd::new();
    let mask = bit(abi::EVENT_DEVICE_STATE);
    for unknown in [0x80, 1 << 32, 1 << 63] {
        assert_eq!(
            try_subscribe(&client, mask | unknown, none),
            Err(libc::EOPNOTSUPP),
            "mask {unknown:#x}"
        );
    }
    assert_eq!(try_subscribe(&client, mask, 999), Err(libc::EBADF));
    assert_eq!(try_subscribe(&client, mask, -2), Err(libc::EBADF));
    let wrong = client.file().as_raw_fd();
    assert_eq!(try_subscribe(&client, mask, wrong), Err(libc::EINVAL));
    for eventfd in [counter.descriptor(), -2] {
        assert_eq!(try_subscribe(&client, 0, eventfd), Err(libc::EINVAL));
    }
    assert_eq!(try_subscribe(&client, 0, 0), Ok(()));
    assert_eq!(try_subscribe(&client, 0x7f, none), Ok(()));
}

fn nothing_to_read_is_eagain() {
    let client = Client::open();
    set_waiting(client.file(), false);
    assert_eq!(try_read(&client, 1), Err(libc::EAGAIN));
    assert_eq!(try_subscribe(&client, 0x7f, -1), Ok(()));
    assert_eq!(try_read(&client, 1), Err(libc::EAGAIN));
}

fn short_buffer_is_malformed() {
    let client = device_events();
    let device = fail_a_device(&client);
    let memory = Mapping::anonymous(1);
    for length in [0, 1, 39] {
        assert_eq!(
            read_at(client.file(), memory.address(), length),
            Err(libc::EINVAL),
            "{length} bytes"
        );
    }
    assert_eq!(objects(&drain(&client)), [device]);
}

fn read_returns_whole_records_only() {
    let client = device_events();
    let devices = [(); 3].map(|()| fail_a_device(&client));
    let memory = Mapping::anonymous(1);
    memory.write(0, &[0xa5; 200]);
    assert_eq!(read_at(client.file(), memory.address(), 119), Ok(80));
    assert!(memory.is_filled(80, 120, 0xa5));
    assert_eq!(objects(&drain(&client)), devices[2..]);
}

fn bad_buffer_leaves_the_record() {
    let client = device_events();
    let device = fail_a_device(&client);
    let counter = EventFd::new();
    for address in [0, 8, 1 << 46, u64::MAX - 4095] {
        for _ in 0..100 {
            assert_eq!(
                read_at(client.file(), address, 40),
                Err(libc::EFAULT),
                "address {address:#x}"
            );
        }
    }
    assert!(is_readable(&client));
    assert_eq!(counter.count(), 0);
    assert_eq!(objects(&drain(&client)), [device]);
}

fn bad_second_record_stays_queued() {
    let client = device_events();
    let devices = [(); 3].map(|()| fail_a_device(&client));
    let memory = Mapping::anonymous(2);
    memory.unmap_part(PAGE, PAGE);
    let start = memory.address() + PAGE as u64 - 60;
    assert_eq!(read_at(client.file(), start, 120), Ok(40));
    assert_eq!(objects(&drain(&client)), devices[1..]);
}

fn full_queue_ends_with_the_number_of_lost_records() {
    let client = device_events();
    let limits: abi::InfoLimits = client.query(abi::QUERY_LIMITS, 0);
    let kept = limits.events_queued as usize;
    assert!(kept >= 256);
    let counter = EventFd::new();
    let mask = bit(abi::EVENT_DEVICE_STATE);
    assert_eq!(try_subscribe(&client, mask, counter.descriptor()), Ok(()));
    let devices: Vec<u32> = (0..kept + 44).map(|_| fail_a_device(&client)).collect();
    assert_eq!(counter.count() as usize, kept + 1);
    let records = try_read(&client, kept).expect("records");
    assert_eq!(objects(&records), devices[..kept]);
    let late = fail_a_device(&client);
    let rest = drain(&client);
    let [overflow, record] = rest[..] else {
        panic!("{rest:?}");
    };
    assert_eq!(
        (overflow.r#type, overflow.object, overflow.code),
        (abi::EVENT_OVERFLOW, 0, 44)
    );
    assert_eq!(
        (record.r#type, record.object),
        (abi::EVENT_DEVICE_STATE, late)
    );
    client.close(&devices);
}

fn read_waits_for_a_record() {
    let client = device_events();
    set_waiting(client.file(), true);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| try_read(&client, 4).expect("a record"));
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!reader.is_finished());
        let device = fail_a_device(&client);
        let records = reader.join().expect("the reader");
        assert_eq!(objects(&records), [device]);
    });
}

fn signal_ends_a_waiting_read() {
    let client = device_events();
    set_waiting(client.file(), true);
    let result = interrupted(|| try_read(&client, 1));
    assert_eq!(result, Err(libc::EINTR));
    set_waiting(client.file(), false);
    let device = fail_a_device(&client);
    assert_eq!(objects(&drain(&client)), [device]);
}

fn edge_triggered_epoll_sees_each_record() {
    let client = device_events();
    let epoll = Epoll::of_edges(client.file());
    assert_eq!(epoll.reported(), 0);
    for _ in 0..2 {
        fail_a_device(&client);
        assert_eq!(epoll.reported(), 1);
        assert_eq!(epoll.reported(), 0);
    }
    // The poll set outlives the file.
    drop(client);
    assert_eq!(epoll.reported(), 0);
}

fn readers_of_shared_files_get_each_record_once() {
    const RECORDS: usize = 200;
    let client = device_events();
    set_waiting(client.file(), true);
    let child = |client: &Client| {
        let file = client.file().try_clone_to_owned().expect("dup");
        Child::start(move |says| {
            let client = Client::from_file(file.into());
            loop {
                for record in try_read(&client, 3).expect("records") {
                    if record.code != abi::DEVICE_STATE_ERROR_DMA {
                        panic!("{record:?}");
                    }
                    says.line(&record.object.to_string());
                }
            }
        })
    };
    let mut children = [child(&client), child(&client)];
    let devices: Vec<u32> = (0..RECORDS).map(|_| fail_a_device(&client)).collect();
    clock::wait_until("everything is read", || !is_readable(&client));
    let [one, other] = &mut children;
    let mut seen = Vec::new();
    clock::wait_until("all records arrive", || {
        seen.extend(one.heard());
        seen.extend(other.heard());
        seen.len() >= RECORDS
    });
    let mut seen: Vec<u32> = seen
        .iter()
        .map(|line| line.parse().expect("a handle"))
        .collect();
    let mut expected = devices.clone();
    seen.sort_unstable();
    expected.sort_unstable();
    assert_eq!(seen, expected);
    for child in children {
        child.kill();
    }
    client.close(&devices);
}

fn closed_eventfd_does_no_harm() {
    let client = device_events();
    let mask = bit(abi::EVENT_DEVICE_STATE);
    let counter = EventFd::new();
    assert_eq!(try_subscribe(&client, mask, counter.descriptor()), Ok(()));
    drop(counter);
    let device = fail_a_device(&client);
    assert_eq!(objects(&drain(&client)), [device]);
}

fn file_has_no_position() {
    let client = device_events();
    fail_a_device(&client);
    let memory = Mapping::anonymous(1);
    assert_eq!(
        read_from_start(client.file(), memory.address(), 40),
        Err(libc::ESPIPE)
    );
    assert!(is_readable(&client));
}

fn killed_client_leaves_its_events_behind() {
    let counter = EventFd::new();
    let mut child = Child::start(|says| {
        let client = device_events();
        let mask = bit(abi::EVENT_DEVICE_STATE);
        assert_eq!(try_subscribe(&client, mask, counter.descriptor()), Ok(()));
        fail_a_device(&client);
        says.line("queued");
        wait_for_the_end();
    });
    assert_eq!(child.line(), "queued");
    child.kill();
    assert_eq!(counter.count(), 1);
    let client = device_events();
    fail_a_device(&client);
    wait_readable(&client);
}
