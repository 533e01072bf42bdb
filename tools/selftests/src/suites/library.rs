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
    Access,
    Adapter,
    Deadline,
    Device,
    Errno, //
};

use crate::{
    abi,
    debugfs,
    fixture::PHYSICAL_NODE,
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
