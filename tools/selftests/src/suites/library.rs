// SPDX-License-Identifier: GPL-2.0

//! The user library: its typed objects against the module.

use libvidmm::{
    allocation,
    commands::{
        Area,
        Commands,
        Rectangle, //
    },
    context,
    events::{
        Event,
        Subscription, //
    },
    offer::{
        Level,
        Outcome, //
    },
    Access,
    Adapter,
    Allocation,
    Deadline,
    Device,
    Errno,
    Group, //
};

use crate::{
    abi,
    debugfs,
    fixture::{
        MIB,
        PHYSICAL_NODE, //
    },
    suite::Suite, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "library",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" adapter_describes_itself,
        "" buffers_of_the_builder_run,
        "" residency_is_waited_for,
        "" fences_are_read_signalled_and_waited_for,
        "" budget_is_seen_by_call_page_and_event,
        "" reservation_replaces_the_one_before,
        "" offer_is_taken_back_with_and_without_content,
        "" priority_is_set,
        "" source_shows_tests_and_blanks,
        "" errors_name_the_request_and_the_element,
        "" objects_are_closed_when_they_are_dropped,
    },
};

/// Opens the adapter and makes a device.
fn open() -> (Adapter, Device) {
    let adapter = Adapter::open(crate::module::NODE).expect("the adapter");
    let device = adapter.create_device().expect("a device");
    (adapter, device)
}

/// Describes an allocation of a page that both sides reach.
fn page() -> allocation::Builder {
    allocation::Builder::new(4096)
        .cpu_visible()
        .accessed_physically()
        .segments(1 << 1)
}

fn patient() -> Deadline {
    Deadline::after(crate::clock::patience())
}

fn adapter_describes_itself() {
    let (adapter, _) = open();
    let info = adapter.info().expect("ADAPTER");
    let segments = adapter.segments().expect("SEGMENT");
    assert!(segments.len() >= info.segments as usize);
    assert_eq!(adapter.nodes().expect("NODE").len(), info.nodes as usize);
    assert!(adapter.has(abi::FEATURE_PATCHED).expect("ADAPTER"));
    assert!(!adapter
        .has(abi::FEATURE_PATCHED | abi::FEATURE_TILES)
        .expect("ADAPTER"));
}

fn buffers_of_the_builder_run() {
    let (adapter, device) = open();
    let slots = adapter.info().expect("ADAPTER").patch_slots;
    let source = page().create(&device).expect("an allocation");
    let target = page().create(&device).expect("an allocation");
    let context = context::Builder::new(PHYSICAL_NODE)
        .create(&device)
        .expect("a context");
    let mut commands = Commands::new(slots);
    let area = Area {
        pitch: 64,
        width: 64,
        height: 64,
    };
    commands.fill(source.at(0), 0xff00_ff00, area);
    let rectangle = Rectangle {
        dst_pitch: 64,
        src_pitch: 64,
        width: 64,
        height: 32,
    };
    commands.copy(target.at(0), source.at(0), rectangle);
    commands.store(target.at(4088), 77);
    let submitted = context
        .submission(commands.finish())
        .submit()
        .expect("SUBMIT_PATCHED");
    context.wait(submitted.id, patient()).expect("the work");
    assert_eq!(context.finished(), submitted.id);
    let guard = target.lock(Access::READ).expect("LOCK");
    assert_eq!(
        (guard.read32(0), guard.read32(2044), guard.read32(2048)),
        (0xff00_ff00, 0xff00_ff00, 0)
    );
    assert_eq!(guard.read64(4088), 77);
}

fn residency_is_waited_for() {
    let (_, device) = open();
    let queue = device.create_paging_queue(0).expect("a paging queue");
    let allocation = page().create(&device).expect("an allocation");
    let made = queue
        .make_resident(&[allocation.handle()], 0)
        .expect("MAKE_RESIDENT");
    queue
        .wait(made.progress, patient())
        .expect("the paging fence");
    let state = allocation.state().expect("ALLOC_QUERY");
    assert_eq!((state.segment, state.resident_refs), (1, 1));
    device.evict(&[allocation.handle()], 0).expect("EVICT");
}

fn offer_is_taken_back_with_and_without_content() {
    let (_, device) = open();
    let queue = device.create_paging_queue(0).expect("a paging queue");
    let allocation = page().create(&device).expect("an allocation");
    allocation.write(0, &[7; 16]).expect("a write");
    let handles = [allocation.handle()];
    let made = queue.make_resident(&handles, 0).expect("MAKE_RESIDENT");
    queue
        .wait(made.progress, patient())
        .expect("the paging fence");
    allocation.offer(Level::High).expect("OFFER");
    let refused = allocation
        .lock(Access::READ)
        .expect_err("a lock of what is offered");
    assert_eq!(refused.errno, Errno::BUSY);
    let outcome = allocation.reclaim(&queue).expect("RECLAIM");
    assert_eq!(outcome, Outcome::Intact);
    assert_eq!(allocation.read(0, 16).expect("a read"), [7; 16]);
    device.offer(&handles, Level::Low, 0).expect("OFFER");
    debugfs::inject(&format!("evict {}", allocation.info().object_id));
    let outcome = allocation.reclaim(&queue).expect("RECLAIM");
    assert_eq!(outcome, Outcome::Discarded);
    assert_eq!(allocation.read(0, 16).expect("a read"), [0; 16]);
}

fn priority_is_set() {
    let (adapter, device) = open();
    let [one, other] = [(); 2].map(|()| page().create(&device).expect("an allocation"));
    one.set_priority(abi::ALLOC_PRIORITY_HIGH)
        .expect("SET_PRIORITY");
    adapter
        .set_priorities(&[(other.handle(), abi::ALLOC_PRIORITY_MINIMUM)])
        .expect("SET_PRIORITY");
    let states = adapter.allocation_states(&[one.handle(), other.handle()]);
    let priorities = states.expect("ALLOC_QUERY");
    let priorities: Vec<u32> = priorities.iter().map(|state| state.priority).collect();
    assert_eq!(
        priorities,
        [abi::ALLOC_PRIORITY_HIGH, abi::ALLOC_PRIORITY_MINIMUM]
    );
}

fn source_shows_tests_and_blanks() {
    let (adapter, device) = open();
    let picture = allocation::Picture {
        width: 64,
        height: 64,
        pitch: 0,
        format: *b"XR24",
    };
    let primary = allocation::Builder::new(64 * 64 * 4)
        .cpu_visible()
        .primary(picture)
        .create(&device)
        .expect("a primary");
    let over = device.create_fence(0).expect("a fence");
    let tested = adapter
        .scanout(0)
        .show(&primary)
        .test()
        .expect("a test of SCANOUT");
    let shown = adapter
        .scanout(0)
        .show(&primary)
        .signal(over.point(1))
        .commit()
        .expect("SCANOUT");
    assert_eq!((shown.previous, shown.sequence), (0, tested.sequence + 1));
    over.wait(1, patient()).expect("the switch");
    let source = adapter.source(0).expect("SOURCE");
    assert_eq!(source.alloc, primary.handle());
    let refused = primary.close(0).expect_err("a close of what is shown");
    assert_eq!(refused.errno, Errno::BUSY);
    let blank = adapter.scanout(0).signal(over.point(2)).commit();
    assert_eq!(blank.expect("SCANOUT").previous, source.alloc);
    over.wait(2, patient()).expect("the switch");
    assert_eq!(adapter.source(0).expect("SOURCE").alloc, 0);
}

fn fences_are_read_signalled_and_waited_for() {
    let (_, device) = open();
    let fence = device.create_fence(3).expect("a fence");
    assert_eq!(fence.value(), 3);
    fence.signal(5).expect("FENCE_SIGNAL");
    fence.wait(5, Deadline::POLL).expect("FENCE_WAIT");
    let late = fence
        .wait(6, Deadline::POLL)
        .expect_err("a value that nobody has signalled");
    assert_eq!(late.errno, Errno::TIME);
    fence.rewind(1).expect("a rewind");
    assert_eq!(fence.value(), 1);
}

/// Memory of a client in the two memory segments, resident as long as its device lives.
fn keep(adapter: &Adapter, bytes: u64) -> (Device, Allocation) {
    let device = adapter.create_device().expect("a device");
    let queue = device.create_paging_queue(0).expect("a paging queue");
    let description = allocation::Builder::new(bytes).segments(1 << 1 | 1 << 2);
    let allocation = description.create(&device).expect("an allocation");
    let made = queue
        .make_resident(&[allocation.handle()], 0)
        .expect("MAKE_RESIDENT");
    queue
        .wait(made.progress, patient())
        .expect("the paging fence");
    (device, allocation)
}

fn budget_is_seen_by_call_page_and_event() {
    let adapter = Adapter::open_nonblocking(crate::module::NODE).expect("the adapter");
    adapter
        .subscribe(Subscription::new().budget().trim())
        .expect("EVENTS");
    let page = adapter.status_page().expect("the status page");
    let _mine = keep(&adapter, 8 * MIB);
    while adapter.events().next().is_some() {}
    let before = adapter.budget(Group::Local).expect("BUDGET");
    assert_eq!(before.usage, 8 * MIB);
    let status = page.read();
    assert_eq!(
        (status.budget_local, status.usage_local),
        (before.budget, before.usage)
    );
    assert!(!adapter.wait_for_event(Deadline::POLL).expect("poll"));

    let other = Adapter::open(crate::module::NODE).expect("the adapter");
    let _theirs = keep(&other, 8 * MIB);
    assert!(adapter.wait_for_event(patient()).expect("poll"));
    let records: Vec<_> = adapter.events().collect::<Result<_, _>>().expect("read");
    let now = adapter.budget(Group::Local).expect("BUDGET");
    assert!(now.budget < before.budget, "{now:?}");
    let newest = Event::Budget {
        group: Group::Local,
        budget: now.budget,
        usage: now.usage,
    };
    assert!(
        records.iter().any(|record| record.event == newest),
        "{records:?}"
    );
    assert_eq!(page.generation(), now.generation);
    assert!(!adapter.wait_for_event(Deadline::POLL).expect("poll"));
}

fn reservation_replaces_the_one_before() {
    let (adapter, _) = open();
    let reservation = || adapter.budget(Group::Local).expect("BUDGET").reservation;
    for bytes in [4 * MIB, MIB] {
        adapter
            .reserve_budget(Group::Local, bytes)
            .expect("RESERVE_BUDGET");
        assert_eq!(reservation(), bytes);
    }
    let error = adapter
        .reserve_budget(Group::Local, 1 << 40)
        .expect_err("more than there is");
    assert_eq!(
        (error.request, error.errno),
        ("RESERVE_BUDGET", Errno::NOSPC)
    );
    assert_eq!(reservation(), MIB);
}

fn errors_name_the_request_and_the_element() {
    let (adapter, device) = open();
    let good = *page().info();
    let infos = [good, abi::AllocInfo { size: 0, ..good }];
    let error = device
        .create_allocations(&infos)
        .expect_err("an allocation without size");
    assert_eq!((error.request, error.errno), ("ALLOC_CREATE", Errno::INVAL));
    assert!(error.to_string().contains("element 1"), "{error}");
    let error = adapter
        .close(&[0xdead_beef], 0)
        .expect_err("a handle that nobody has");
    assert_eq!(error.errno, Errno::NOENT);
}

fn objects_are_closed_when_they_are_dropped() {
    let (_, device) = open();
    let before = debugfs::stat("allocations");
    let allocation = page().create(&device).expect("an allocation");
    allocation.write(0, &[1, 2, 3]).expect("a mapping");
    assert_eq!(debugfs::stat("allocations"), before + 1);
    drop(allocation);
    crate::clock::wait_until("the allocation goes", || {
        debugfs::stat("allocations") == before
    });
}
