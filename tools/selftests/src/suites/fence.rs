// SPDX-License-Identifier: GPL-2.0

//! Monitored fences: values, waits, and who may signal.

use std::sync::Barrier;

use crate::{
    abi::{
        self,
        FenceCreate,
        FenceSlot,
        FenceWait, //
    },
    call::{
        array,
        from_bytes, //
    },
    client::{
        point,
        Client, //
    },
    clock,
    fixture::Fixture,
    memory::{
        Mapping,
        PAGE, //
    },
    suite::Suite,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "fence",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" first_value_is_visible_in_the_page,
        "" signal_is_visible_in_the_page,
        "" fences_of_a_client_share_pages,
        "" signal_of_a_lower_value_is_refused,
        "" signal_of_the_same_value_is_no_error,
        "[H2]" rewind_lowers_the_value,
        "" rewound_fence_can_be_waited_for_again,
        "[H8]" refused_list_signals_nothing,
        "" list_signals_every_fence,
        "" reached_value_does_not_wait,
        "" value_that_nobody_queued_times_out,
        "" deadline_in_the_past_polls,
        "" negative_deadline_is_refused,
        "" wait_for_all_needs_all,
        "" wait_for_any_names_a_reached_one,
        "" signal_wakes_a_waiter,
        "[H3]" signal_beyond_the_value_wakes_too,
        "" every_waiter_is_woken,
        "" no_cpu_signal_is_refused,
        "[SYN-9]" paging_fence_is_not_signalled_by_clients,
        "" progress_fence_is_not_signalled_by_clients,
        "" signal_interrupts_a_wait,
        "" fence_serves_every_device_of_its_client,
        "" sharing_is_not_supported,
        "" ping_pong_of_two_threads_loses_nothing,
        "[H4]" value_never_falls_by_racing_signals,
    },
};

/// A fence with its page.
struct Visible {
    fixture: Fixture,
    fence: u32,
    page: Mapping,
    slot: usize,
}

impl Visible {
    fn new(initial: u64) -> Self {
        let fixture = Fixture::new();
        let mut argument = FenceCreate {
            device: fixture.device,
            initial,
            ..Default::default()
        };
        let fence = fixture
            .client
            .try_create_fence(&mut argument)
            .expect("FENCE_CREATE");
        assert_eq!(argument.gpu_va, 0);
        let page = Mapping::read_only(fixture.client.file(), argument.mmap_offset, PAGE);
        Self {
            fixture,
            fence,
            page,
            slot: argument.slot as usize,
        }
    }

    fn read(&self) -> FenceSlot {
        let stride = abi::FENCE_SLOT_STRIDE as usize;
        let bytes = self.page.read(self.slot * stride, stride);
        assert!(
            bytes[size_of::<FenceSlot>()..]
                .iter()
                .all(|byte| *byte == 0),
            "rest of the slot"
        );
        from_bytes(&bytes)
    }
}

fn first_value_is_visible_in_the_page() {
    for initial in [0, 1, 77, u64::MAX] {
        let visible = Visible::new(initial);
        let slot = visible.read();
        assert_eq!(
            (slot.value, slot.state, slot.error),
            (initial, abi::FENCE_STATE_LIVE, 0)
        );
    }
}

fn signal_is_visible_in_the_page() {
    let visible = Visible::new(0);
    let before = clock::now_ns() as u64;
    visible.fixture.client.signal(visible.fence, 1 << 40);
    let slot = visible.read();
    assert_eq!(slot.value, 1 << 40);
    assert!((before..=clock::now_ns() as u64).contains(&slot.changed_ns));
}

fn fences_of_a_client_share_pages() {
    let fixture = Fixture::new();
    let mut offsets = std::collections::BTreeSet::new();
    let mut slots = std::collections::BTreeSet::new();
    for value in 0..32 {
        let device = fixture.device;
        let mut argument = FenceCreate {
            device,
            initial: value,
            ..Default::default()
        };
        fixture
            .client
            .try_create_fence(&mut argument)
            .expect("FENCE_CREATE");
        assert!(slots.insert((argument.mmap_offset, argument.slot)));
        offsets.insert(argument.mmap_offset);
        assert!(argument.slot < 64);
        let page = Mapping::read_only(fixture.client.file(), argument.mmap_offset, PAGE);
        assert_eq!(page.read64(argument.slot as usize * 64), value);
    }
    assert!(offsets.len() <= 2, "{} pages for 32 fences", offsets.len());
}

fn signal_of_a_lower_value_is_refused() {
    let visible = Visible::new(10);
    let client = &visible.fixture.client;
    assert_eq!(
        client.try_signal(&[point(visible.fence, 9)], 0),
        Err((libc::EINVAL, 0))
    );
    assert_eq!(visible.read().value, 10);
}

fn signal_of_the_same_value_is_no_error() {
    let visible = Visible::new(10);
    visible.fixture.client.signal(visible.fence, 10);
    assert_eq!(visible.read().value, 10);
}

fn rewind_lowers_the_value() {
    let visible = Visible::new(10);
    let flags = abi::FENCE_SIGNAL_ALLOW_REWIND;
    visible
        .fixture
        .client
        .try_signal(&[point(visible.fence, 3)], flags)
        .expect("a rewind");
    assert_eq!(visible.read().value, 3);
    assert!(!visible.fixture.client.is_reached(visible.fence, 4));
}

fn rewound_fence_can_be_waited_for_again() {
    let fixture = Fixture::new();
    let client = &fixture.client;
    let fence = client.create_fence(fixture.device, 0);
    for _ in 0..50 {
        client.signal(fence, 5);
        assert!(client.is_reached(fence, 3));
        client
            .try_signal(&[point(fence, 0)], abi::FENCE_SIGNAL_ALLOW_REWIND)
            .expect("a rewind");
        assert!(!client.is_reached(fence, 3));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| client.wait(fence, 3));
            client.signal(fence, 3);
            waiter.join().expect("the waiter");
        });
    }
}

fn refused_list_signals_nothing() {
    let fixture = Fixture::new();
    let client = &fixture.client;
    let (one, other) = (
        client.create_fence(fixture.device, 0),
        client.create_fence(fixture.device, 5),
    );
    let list = [point(one, 1), point(other, 4)];
    assert_eq!(client.try_signal(&list, 0), Err((libc::EINVAL, 1)));
    assert!(!client.is_reached(one, 1));
}

fn list_signals_every_fence() {
    let fixture = Fixture::new();
    let fences: Vec<u32> = (0..20)
        .map(|_| fixture.client.create_fence(fixture.device, 0))
        .collect();
    let points: Vec<_> = fences
        .iter()
        .map(|fence| point(*fence, u64::from(*fence)))
        .collect();
    fixture.client.try_signal(&points, 0).expect("FENCE_SIGNAL");
    fixture
        .client
        .try_wait(&points, 0, 0)
        .expect("all are reached");
}

fn reached_value_does_not_wait() {
    let fixture = Fixture::new();
    let fence = fixture.client.create_fence(fixture.device, 5);
    for value in [0, 1, 5] {
        assert!(fixture.client.is_reached(fence, value));
    }
    assert!(!fixture.client.is_reached(fence, 6));
}

fn value_that_nobody_queued_times_out() {
    let fixture = Fixture::new();
    let fence = fixture.client.create_fence(fixture.device, 0);
    let deadline = clock::deadline_in(20);
    let result = fixture
        .client
        .try_wait(&[point(fence, u64::MAX)], deadline, 0);
    assert_eq!(result, Err(libc::ETIME));
    assert!(clock::now_ns() >= deadline);
}

fn deadline_in_the_past_polls() {
    let fixture = Fixture::new();
    let fence = fixture.client.create_fence(fixture.device, 0);
    assert_eq!(
        fixture.client.try_wait(&[point(fence, 1)], 1, 0),
        Err(libc::ETIME)
    );
    assert_eq!(fixture.client.try_wait(&[point(fence, 0)], 1, 0), Ok(0));
}

fn negative_deadline_is_refused() {
    let fixture = Fixture::new();
    let fence = fixture.client.create_fence(fixture.device, 0);
    for deadline in [-1, i64::MIN] {
        let result = fixture.client.try_wait(&[point(fence, 0)], deadline, 0);
        assert_eq!(result, Err(libc::EINVAL));
    }
}

fn wait_for_all_needs_all() {
    let fixture = Fixture::new();
    let client = &fixture.client;
    let (one, other) = (
        client.create_fence(fixture.device, 0),
        client.create_fence(fixture.device, 0),
    );
    let points = [point(one, 1), point(other, 1), point(one, 2)];
    client.signal(one, 2);
    assert_eq!(client.try_wait(&points, 0, 0), Err(libc::ETIME));
    client.signal(other, 1);
    client.try_wait(&points, 0, 0).expect("all are reached");
}

fn wait_for_any_names_a_reached_one() {
    let fixture = Fixture::new();
    let client = &fixture.client;
    let fences: Vec<u32> = (0..5)
        .map(|_| client.create_fence(fixture.device, 0))
        .collect();
    let points: Vec<_> = fences.iter().map(|fence| point(*fence, 1)).collect();
    let any = abi::FENCE_WAIT_ANY;
    assert_eq!(client.try_wait(&points, 0, any), Err(libc::ETIME));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| client.try_wait(&points, clock::patient_deadline(), any));
        client.signal(fences[3], 1);
        assert_eq!(waiter.join().expect("the waiter"), Ok(3));
    });
}

/// Starts `count` waiters and signals when all are about to wait.
fn wake(count: usize, value: u64, signalled: u64) {
    let fixture = Fixture::new();
    let client: &Client = &fixture.client;
    let fence = client.create_fence(fixture.device, 0);
    let barrier = Barrier::new(count + 1);
    std::thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                barrier.wait();
                client.wait(fence, value);
            });
        }
        barrier.wait();
        client.signal(fence, signalled);
    });
}

fn signal_wakes_a_waiter() {
    for _ in 0..50 {
        wake(1, 1, 1);
    }
}

fn signal_beyond_the_value_wakes_too() {
    for _ in 0..50 {
        wake(1, 5, 7);
    }
}

fn every_waiter_is_woken() {
    wake(32, 3, 3);
}

fn no_cpu_signal_is_refused() {
    let fixture = Fixture::new();
    let mut argument = FenceCreate {
        device: fixture.device,
        flags: abi::FENCE_NO_CPU_SIGNAL,
        ..Default::default()
    };
    let fence = fixture
        .client
        .try_create_fence(&mut argument)
        .expect("FENCE_CREATE");
    assert_eq!(
        fixture.client.try_signal(&[point(fence, 1)], 0),
        Err((libc::EACCES, 0))
    );
    // The GPU may.
    let mut commands = crate::commands::Commands::new();
    commands.then_signal(fence, 1);
    commands.submit(&fixture.client, &fixture.context());
    fixture.client.wait(fence, 1);
}

fn paging_fence_is_not_signalled_by_clients() {
    let fixture = Fixture::new();
    let points = [point(fixture.queue.fence, 1)];
    for flags in [0, abi::FENCE_SIGNAL_ALLOW_REWIND] {
        assert_eq!(
            fixture.client.try_signal(&points, flags),
            Err((libc::EACCES, 0))
        );
    }
    assert!(!fixture.client.is_reached(fixture.queue.fence, 1));
}

fn progress_fence_is_not_signalled_by_clients() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let result = fixture.client.try_signal(&[point(context.progress, 1)], 0);
    assert_eq!(result, Err((libc::EACCES, 0)));
}

fn signal_interrupts_a_wait() {
    let fixture = Fixture::new();
    let fence = fixture.client.create_fence(fixture.device, 0);
    let points = [point(fence, 1)];
    let deadline_ns = abi::WAIT_FOREVER;
    let mut argument = FenceWait {
        points: array(&points),
        deadline_ns,
        ..Default::default()
    };
    let result =
        crate::process::interrupted(|| fixture.client.call(abi::IOCTL_FENCE_WAIT, &mut argument));
    assert_eq!(result, Err(libc::EINTR));
}

fn fence_serves_every_device_of_its_client() {
    let fixture = Fixture::new();
    let device = fixture.client.create_device();
    let fence = fixture.client.create_fence(device, 0);
    let mut commands = crate::commands::Commands::new();
    commands.then_signal(fence, 4);
    commands.submit(&fixture.client, &fixture.context());
    fixture.client.wait(fence, 4);
}

fn sharing_is_not_supported() {
    let fixture = Fixture::new();
    let flags = abi::FENCE_SHARED;
    let mut argument = FenceCreate {
        device: fixture.device,
        flags,
        ..Default::default()
    };
    assert_eq!(
        fixture.client.try_create_fence(&mut argument),
        Err(libc::EOPNOTSUPP)
    );
}

fn ping_pong_of_two_threads_loses_nothing() {
    let fixture = Fixture::new();
    let client: &Client = &fixture.client;
    let (ping, pong) = (
        client.create_fence(fixture.device, 0),
        client.create_fence(fixture.device, 0),
    );
    let rounds = 300;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=rounds {
                client.wait(ping, round);
                client.signal(pong, round);
            }
        });
        for round in 1..=rounds {
            client.signal(ping, round);
            client.wait(pong, round);
        }
    });
}

fn value_never_falls_by_racing_signals() {
    let visible = Visible::new(0);
    let client = &visible.fixture.client;
    std::thread::scope(|scope| {
        for start in 0..2 {
            let fence = visible.fence;
            scope.spawn(move || {
                for value in (start..600).step_by(2) {
                    // The other thread may be ahead.
                    let _ = client.try_signal(&[point(fence, value)], 0);
                }
            });
        }
        let mut last = 0;
        while last < 598 {
            let value = visible.read().value;
            assert!(value >= last, "{value} after {last}");
            last = value;
        }
    });
}
