// SPDX-License-Identifier: GPL-2.0

//! The residency list of a device: references, who may leave, and what does not fit.

use crate::{
    abi::{
        self,
        MakeResident, //
    },
    call::array,
    client::{
        Allocation,
        Answer,
        Context, //
    },
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        physical,
        plain,
        Fixture,
        KIB,
        MIB,
        PHYSICAL_NODE,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    suite::Suite,
    trace::{
        Event,
        Events,
        Recording, //
    },
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "residency_list",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[RES-10]" references_are_counted,
        "[RES-10] [F8]" evict_without_a_reference_is_refused,
        "[RES-10]" same_handle_twice_counts_twice,
        "[RES-10]" reference_list_shows_in_debugfs,
        "[RES-11]" work_runs_with_its_whole_list_resident,
        "[RES-11]" work_of_two_devices_alternates_behind_its_paging,
        "" resident_allocation_is_ready_at_once,
        "" list_that_does_not_fit_changes_nothing,
        "" must_succeed_needs_the_last_attempt,
        "" must_succeed_that_fails_puts_the_device_in_error,
        "" evict_if_needed_keeps_the_memory,
        "[F8]" evict_waits_for_queued_work,
        "" others_leave_to_make_room,
    },
};

fn references_are_counted() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(4 * KIB, VISIBLE_SEGMENT));
    fixture.bring_in(&allocation);
    let references = || fixture.client.state_of(allocation.handle).resident_refs;
    assert_eq!(references(), 2);
    fixture.client.evict(fixture.device, &[allocation.handle]);
    assert_eq!(references(), 1);
    assert_eq!(fixture.client.state_of(allocation.handle).segment, 1);
    fixture.push_out(&allocation);
    assert_eq!(references(), 0);
    let result = fixture
        .client
        .try_evict(fixture.device, &[allocation.handle], 0);
    assert_eq!(result, Err((libc::EINVAL, 0)));
    assert_eq!(references(), 0);
}

fn evict_without_a_reference_is_refused() {
    let fixture = Fixture::new();
    let (held, free) = (
        fixture.create_resident(plain(4096, SYSTEM)),
        fixture.create(plain(4096, SYSTEM)),
    );
    let list = [held.handle, free.handle];
    let result = fixture.client.try_evict(fixture.device, &list, 0);
    assert_eq!(result, Err((libc::EINVAL, 1)));
    let result = fixture
        .client
        .try_evict(fixture.device, &[held.handle; 2], 0);
    assert_eq!(result, Err((libc::EINVAL, 1)));
    assert_eq!(fixture.client.state_of(held.handle).resident_refs, 1);
}

fn same_handle_twice_counts_twice() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4096, VISIBLE_SEGMENT));
    fixture
        .client
        .bring_in(&fixture.queue, &[allocation.handle; 5]);
    assert_eq!(fixture.client.state_of(allocation.handle).resident_refs, 5);
    fixture
        .client
        .evict(fixture.device, &[allocation.handle; 4]);
    assert_eq!(fixture.client.state_of(allocation.handle).segment, 1);
    fixture.push_out(&allocation);
}

fn reference_list_shows_in_debugfs() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(4096, SYSTEM));
    let listed = || debugfs::is_required(allocation.object_id);
    assert!(listed());
    fixture.push_out(&allocation);
    assert!(!listed());
}

fn resident_allocation_is_ready_at_once() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(4 * KIB, VISIBLE_SEGMENT));
    let recording = Recording::start();
    let answer = fixture
        .client
        .make_resident(&fixture.queue, &[allocation.handle]);
    assert_eq!(answer, Answer::Ready);
    let events = recording.stop();
    events.assert_none("paging_op", &[]);
    let steps = events
        .named("resident_step")
        .filter(|event| event.number("step") > 1);
    assert_eq!(steps.count(), 0);
}

fn list_that_does_not_fit_changes_nothing() {
    let fixture = Fixture::new();
    let small: Vec<u32> = (0..2)
        .map(|_| fixture.create(plain(MIB, VISIBLE_SEGMENT)).handle)
        .collect();
    let room = debugfs::segment(1).room();
    let large = fixture.create(plain(room - MIB, VISIBLE_SEGMENT));
    let list = [small[0], small[1], large.handle];
    let mut argument = MakeResident {
        queue: fixture.queue.handle,
        handles: array(&list),
        ..Default::default()
    };
    let result = fixture.client.call(abi::IOCTL_MAKE_RESIDENT, &mut argument);
    assert_eq!((result, argument.fail_index), (Err(libc::ENOSPC), 2));
    for handle in list {
        assert_eq!(fixture.client.state_of(handle).resident_refs, 0);
    }
    fixture.client.bring_in(&fixture.queue, &list[1..]);
}

fn must_succeed_needs_the_last_attempt() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4 * KIB, SYSTEM));
    let mut argument = MakeResident {
        queue: fixture.queue.handle,
        flags: abi::MAKE_RESIDENT_MUST_SUCCEED,
        handles: array(&[allocation.handle]),
        ..Default::default()
    };
    let list = [allocation.handle];
    argument.handles = array(&list);
    let result = fixture.client.call(abi::IOCTL_MAKE_RESIDENT, &mut argument);
    assert_eq!(result, Err(libc::EINVAL));
}

fn must_succeed_that_fails_puts_the_device_in_error() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4 * MIB, VISIBLE_SEGMENT));
    let other_device = fixture.client.create_device();
    debugfs::inject(&format!("reserve 1 {}", debugfs::segment(1).free));
    let list = [allocation.handle];
    let mut argument = MakeResident {
        queue: fixture.queue.handle,
        flags: abi::MAKE_RESIDENT_MUST_SUCCEED | abi::MAKE_RESIDENT_CANT_TRIM_FURTHER,
        handles: array(&list),
        ..Default::default()
    };
    let result = fixture.client.call(abi::IOCTL_MAKE_RESIDENT, &mut argument);
    assert_eq!(result, Err(libc::ENOSPC));
    let state = fixture.client.device_state(fixture.device);
    assert_eq!(state.state, abi::DEVICE_STATE_ERROR_MEMORY);
    debugfs::inject("reserve 1 0");
    let result = fixture
        .client
        .try_make_resident(fixture.queue.handle, &list);
    assert_eq!(result.err().map(|error| error.0), Some(libc::EIO));
    let state = fixture.client.device_state(other_device);
    assert_eq!(state.state, abi::DEVICE_STATE_ACTIVE);
    fixture.client.close(&[fixture.device]);
}

fn evict_if_needed_keeps_the_memory() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(4 * MIB, VISIBLE_SEGMENT));
    let flags = abi::EVICT_ONLY_IF_NEEDED;
    fixture
        .client
        .try_evict(fixture.device, &[allocation.handle], flags)
        .expect("EVICT");
    let recording = Recording::start();
    // The worker has passed the point where it would have left.
    fixture.create_resident(plain(4 * KIB, VISIBLE_SEGMENT));
    assert_eq!(fixture.client.state_of(allocation.handle).segment, 1);
    fixture.bring_in(&allocation);
    let events = recording.stop();
    assert_eq!(events.bytes("Transfer", allocation.object_id), 0);
    fixture
        .client
        .try_evict(fixture.device, &[allocation.handle], flags)
        .expect("EVICT");
    fixture.create_resident(plain(14 * MIB, VISIBLE_SEGMENT));
    assert_ne!(fixture.client.state_of(allocation.handle).segment, 1);
}

fn evict_waits_for_queued_work() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create_resident(physical(64 * KIB, VISIBLE_SEGMENT));
    debugfs::inject("pause 2");
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 7);
    let recording = Recording::start();
    let id = commands.submit(&fixture.client, &context);
    fixture.client.evict(fixture.device, &[allocation.handle]);
    debugfs::inject("resume 2");
    fixture.client.wait(context.progress, id);
    clock::wait_until("it leaves behind the work", || {
        let state = fixture.client.state_of(allocation.handle);
        state.residency == abi::ALLOC_RESIDENCY_NOT_RESIDENT
    });
    let events = recording.stop();
    events.assert_order(&[
        "node_end node=2 kind=dma".to_owned(),
        format!(
            "paging_op op=TransferVirtual alloc={}",
            allocation.object_id
        ),
    ]);
    assert_eq!(fixture.client.map(&allocation).read64(0), 7);
}

fn others_leave_to_make_room() {
    let (one, other) = (Fixture::new(), Fixture::new());
    let idle = one.create_resident(plain(12 * MIB, VISIBLE_SEGMENT | SYSTEM));
    one.client.map(&idle).write32(0, 3);
    one.client.evict(one.device, &[idle.handle]);
    let fresh = other.create_resident(plain(12 * MIB, VISIBLE_SEGMENT));
    assert_eq!(other.client.state_of(fresh.handle).segment, 1);
    assert_eq!(one.client.map(&idle).read32(0), 3);
}

/// A client that requires three quarters of segment 1 and works on all of it.
struct Requirer {
    fixture: Fixture,
    context: Context,
    allocations: Vec<Allocation>,
}

impl Requirer {
    fn new() -> Self {
        let fixture = Fixture::new();
        let mode = abi::CONTEXT_MODE_PATCHED_EXPLICIT;
        let context = fixture
            .client
            .create_context_of_mode(fixture.device, PHYSICAL_NODE, mode);
        let allocations: Vec<Allocation> = (0..3)
            .map(|_| fixture.create_resident(physical(4 * MIB, VISIBLE_SEGMENT)))
            .collect();
        Self {
            fixture,
            context,
            allocations,
        }
    }

    /// Commands that add 1 to a number in each allocation.
    fn count(&self) -> Commands {
        let mut commands = Commands::new();
        for allocation in &self.allocations {
            commands.add(allocation.at(allocation.size - 8), 1);
        }
        commands
    }

    /// Queues work that begins, and does not end before its gate is open; returns its number.
    fn submit_behind_gate(&self, number: u64) -> u64 {
        let mut commands = self.count();
        commands.poll(self.allocations[0].at(0), u64::MAX, number);
        commands.submit(&self.fixture.client, &self.context)
    }

    fn open_gate(&self, number: u64) {
        let mapping = self.fixture.client.map(&self.allocations[0]);
        mapping.write64(0, number);
    }

    fn runs(&self, id: u64) -> bool {
        let state = self
            .fixture
            .client
            .try_submission(self.context.handle, id)
            .expect("SUBMIT_QUERY");
        state.state == abi::SUBMIT_STATE_RUNNING
    }

    fn assert_counted(&self, count: u64) {
        for allocation in &self.allocations {
            let mapping = self.fixture.client.map(allocation);
            assert_eq!(mapping.read64(allocation.size as usize - 8), count);
        }
    }

    /// Asserts that `residency` lists all of this client as resident.
    fn assert_resident(&self) {
        for allocation in &self.allocations {
            let listed = debugfs::required(allocation.object_id).expect("an entry of the list");
            assert_eq!(listed.number("resident"), 1, "{}", listed.text);
        }
    }
}

/// Asserts that all paging for a client that was decided before its work began was complete then.
fn assert_paging_is_over(events: &Events, requirer: &Requirer) {
    let ours = |event: &Event| {
        let id = event.number("alloc");
        requirer.allocations.iter().any(|each| each.object_id == id)
    };
    let device = debugfs::placement(requirer.allocations[0].object_id)
        .record
        .number("device");
    let context = debugfs::context_of_device(device);
    let mut began = 0;
    for (place, event) in events.0.iter().enumerate() {
        let words = [format!("ctx={context}"), "kind=dma".to_owned()];
        if !event.is("node_begin", &words) {
            continue;
        }
        began += 1;
        let paging = events.0[..place].iter().filter(|event| {
            event.name == "paging_op" && event.number("dst_seg") == 1 && ours(event)
        });
        for operation in paging {
            let end = events.end_of_buffer(operation.number("seq"));
            assert!(
                end < place,
                "{} begins before {}",
                event.text,
                operation.text
            );
        }
    }
    assert!(began > 0, "no work of context {context}");
}

fn work_runs_with_its_whole_list_resident() {
    let requirers = [Requirer::new(), Requirer::new()];
    for round in 0..8_u64 {
        let requirer = &requirers[(round % 2) as usize];
        let id = requirer.submit_behind_gate(round + 1);
        clock::wait_until("the work runs", || requirer.runs(id));
        requirer.assert_resident();
        requirer.open_gate(round + 1);
        requirer.fixture.client.wait(requirer.context.progress, id);
        requirer.assert_counted(round / 2 + 1);
    }
}

fn work_of_two_devices_alternates_behind_its_paging() {
    const EACH: usize = 6;
    let requirers = [Requirer::new(), Requirer::new()];
    let recording = Recording::start();
    let mut queued = [Vec::new(), Vec::new()];
    for number in 1..=EACH as u64 {
        for (requirer, queued) in requirers.iter().zip(&mut queued) {
            queued.push(requirer.submit_behind_gate(number));
        }
    }
    // Whoever runs stands before its gate: a look at the list, then it goes on.
    let mut done = [0; 2];
    while done != [EACH; 2] {
        let mut who = 0;
        clock::wait_until("work runs", || {
            let runs = |index: &usize| {
                let next = queued[*index].get(done[*index]);
                next.is_some_and(|id| requirers[*index].runs(*id))
            };
            who = (0..2).find(runs).unwrap_or(2);
            who < 2
        });
        let requirer = &requirers[who];
        requirer.assert_resident();
        requirer.open_gate(done[who] as u64 + 1);
        let id = queued[who][done[who]];
        requirer.fixture.client.wait(requirer.context.progress, id);
        done[who] += 1;
    }
    let events = recording.stop();
    for requirer in &requirers {
        assert_paging_is_over(&events, requirer);
        requirer.assert_counted(EACH as u64);
    }
}
