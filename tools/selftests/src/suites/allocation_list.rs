// SPDX-License-Identifier: GPL-2.0

//! The allocation list of a submission: what may be named, and how.

use crate::{
    abi::{
        self,
        engine,
        SubmitPatch, //
    },
    commands::{
        listed,
        submit,
        Commands,
        Refusal, //
    },
    debugfs,
    fixture::{
        physical,
        plain,
        KIB,
        VISIBLE_SEGMENT, //
    },
    submitter::{
        bind_only,
        Submitter, //
    },
    suite::Suite,
    trace::Recording, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "allocation_list",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[SEG-20]" unflagged_allocation_is_refused_as_a_whole,
        "[DMA-24] [B7]" null_element_where_something_is_patched_is_refused,
        "[DMA-24]" null_elements_unbind,
        "[DMA-24]" unused_element_is_refused,
        "[DMA-24]" duplicate_element_is_refused,
        "[DMA-24]" instance_that_does_not_exist_is_refused,
        "[DMA-24] [B7]" unknown_handle_is_refused,
        "[DMA-24]" allocation_of_another_device_is_refused,
        "[DMA-24]" write_without_write_flag_is_refused,
        "[DMA-24]" write_to_a_read_only_allocation_is_refused,
        "" presumed_places_are_reported,
        "" false_presumption_is_overwritten,
    },
};

fn unflagged_allocation_is_refused_as_a_whole() {
    let setup = Submitter::new();
    let unflagged = setup
        .fixture
        .create_resident(plain(4 * KIB, VISIBLE_SEGMENT));
    let mut commands = setup.two_stores();
    commands.store(unflagged.at(0), 3);
    let recording = Recording::start();
    let refusal = commands
        .try_submit(&setup.fixture.client, setup.context.handle)
        .expect_err("an allocation without the flag was accepted");
    let events = recording.stop();
    assert_eq!(
        refusal,
        Refusal {
            errno: libc::EACCES,
            kind: abi::SUBMIT_ERROR_ACCESS,
            index: 1
        }
    );
    events.assert_none("dma_prepare", &[]);
    events.assert_none("dma_portion", &[]);
    assert_eq!(setup.mapping.read64(0), 0);
    setup.assert_accepted(&setup.two_stores());
    assert_eq!(setup.mapping.read64(0), 1);
}

/// An element that is NULL.
fn null_element() -> abi::SubmitAlloc {
    abi::SubmitAlloc::default()
}

fn null_element_where_something_is_patched_is_refused() {
    let setup = Submitter::new();
    let mut commands = setup.two_stores();
    commands.allocs.push(null_element());
    commands.patches[1].alloc_index = 1;
    let kind = abi::SUBMIT_ERROR_ALLOC_INDEX;
    setup.assert_refused(&commands, libc::EINVAL, kind, Some(1));
    commands.patches[1].alloc_index = abi::ALLOC_INDEX_NONE;
    setup.assert_refused(&commands, libc::EINVAL, kind, Some(1));
}

fn null_elements_unbind() {
    let setup = Submitter::new();
    let mut commands = setup.two_stores();
    commands.allocs.push(null_element());
    let end = commands.bytes();
    commands.patches.push(SubmitPatch {
        alloc_index: 1,
        ..bind_only(0, end)
    });
    let recording = Recording::start();
    setup.assert_accepted(&commands);
    let events = recording.stop();
    let words = [
        "entry=2".to_owned(),
        "alloc=0".to_owned(),
        "result=unbound".to_owned(),
    ];
    assert!(
        events.find(0, "dma_prepare", &words).is_some(),
        "{}",
        events.listing()
    );
}

fn unused_element_is_refused() {
    let setup = Submitter::new();
    let other = setup.another();
    let mut commands = setup.two_stores();
    commands.allocs.push(listed(other.handle));
    let kind = abi::SUBMIT_ERROR_UNUSED;
    setup.assert_refused(&commands, libc::EINVAL, kind, Some(1));
}

fn duplicate_element_is_refused() {
    let setup = Submitter::new();
    for instance in [abi::INSTANCE_CURRENT, 0] {
        let mut commands = setup.two_stores();
        commands.allocs.push(abi::SubmitAlloc {
            instance,
            ..listed(setup.allocation.handle)
        });
        commands.patches.push(SubmitPatch {
            alloc_index: 1,
            ..bind_only(1, 24)
        });
        let kind = abi::SUBMIT_ERROR_DUPLICATE;
        setup.assert_refused(&commands, libc::EINVAL, kind, Some(1));
    }
}

fn instance_that_does_not_exist_is_refused() {
    let setup = Submitter::new();
    let mut commands = setup.two_stores();
    commands.allocs[0].instance = 0;
    setup.assert_accepted(&commands);
    for instance in [1, 2, 0x7fff_ffff, 0xffff_fffe] {
        commands.allocs[0].instance = instance;
        let kind = abi::SUBMIT_ERROR_INSTANCE;
        setup.assert_refused(&commands, libc::EINVAL, kind, Some(0));
    }
}

fn unknown_handle_is_refused() {
    let setup = Submitter::new();
    let stale = setup.another();
    setup.fixture.client.close(&[stale.handle]);
    for handle in [
        0xdead_beef,
        stale.handle,
        setup.fixture.device,
        setup.context.handle,
    ] {
        let mut commands = setup.two_stores();
        commands.allocs[0].alloc = handle;
        let kind = abi::SUBMIT_ERROR_BAD_HANDLE;
        setup.assert_refused(&commands, libc::ENOENT, kind, Some(0));
    }
}

fn allocation_of_another_device_is_refused() {
    let setup = Submitter::new();
    let device = setup.fixture.client.create_device();
    let foreign = setup
        .fixture
        .client
        .create(device, physical(4 * KIB, VISIBLE_SEGMENT));
    let mut commands = setup.two_stores();
    commands.allocs[0].alloc = foreign.handle;
    setup.assert_refused(
        &commands,
        libc::EXDEV,
        abi::SUBMIT_ERROR_BAD_HANDLE,
        Some(0),
    );
}

fn write_without_write_flag_is_refused() {
    let setup = Submitter::new();
    let at = setup.allocation.at(0);
    let side = crate::commands::Side { at, pitch: 8 };
    let extent = crate::commands::Extent {
        width: 8,
        height: 1,
    };
    let writers: [&dyn Fn(&mut Commands); 7] = [
        &|commands| _ = commands.fill_bytes(at, 8, 0),
        &|commands| _ = commands.copy(side, side, extent),
        &|commands| _ = commands.blend(side, side, extent),
        &|commands| _ = commands.store(at, 0),
        &|commands| _ = commands.add(at, 0),
        &|commands| _ = commands.store_register(0, at),
        &|commands| _ = commands.timestamp(at),
    ];
    for write in writers {
        let mut commands = Commands::new();
        write(&mut commands);
        commands.allocs[0].flags = 0;
        setup.assert_refused(&commands, libc::EACCES, abi::SUBMIT_ERROR_ACCESS, Some(0));
    }
}

fn write_to_a_read_only_allocation_is_refused() {
    let setup = Submitter::new();
    let mut info = physical(4 * KIB, VISIBLE_SEGMENT);
    info.flags |= abi::ALLOC_READ_ONLY;
    let sealed = setup.fixture.create(info);
    setup.fixture.client.map(&sealed).write64(0, 77);
    let mut commands = Commands::new();
    commands.store(sealed.at(0), 1);
    setup.assert_refused(&commands, libc::EACCES, abi::SUBMIT_ERROR_ACCESS, Some(0));
    let mut commands = Commands::new();
    commands.copy_bytes(setup.allocation.at(0), sealed.at(0), 8);
    setup.assert_accepted(&commands);
    assert_eq!(setup.mapping.read64(0), 77);
}

fn presumed_places_are_reported() {
    let setup = Submitter::new();
    let commands = setup.two_stores();
    let mut allocs = commands.allocs.clone();
    let mut argument = commands.argument(setup.context.handle);
    argument.allocs.ptr = allocs.as_mut_ptr() as u64;
    let id = submit(&setup.fixture.client, &mut argument).expect("SUBMIT_PATCHED");
    setup.fixture.client.wait(setup.context.progress, id);
    let placement = debugfs::placement(setup.allocation.object_id);
    assert_eq!(allocs[0].presumed_segment, 1);
    let shift = engine::ADDRESS_SEGMENT_SHIFT;
    assert_eq!(
        allocs[0].presumed_address & engine::ADDRESS_OFFSET_MASK,
        placement.offset
    );
    assert!(matches!(allocs[0].presumed_address >> shift, 0 | 1));
    assert_eq!(
        (allocs[0].alloc, allocs[0].instance),
        (setup.allocation.handle, u32::MAX)
    );
}

fn false_presumption_is_overwritten() {
    let setup = Submitter::new();
    let guard = setup
        .fixture
        .create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let wrong = debugfs::placement(guard.object_id).offset;
    let mut commands = setup.two_stores();
    commands.allocs[0].presumed_segment = 1;
    commands.allocs[0].presumed_address = wrong;
    for dword in [engine::STORE_DST, engine::STORE_DWORDS + engine::STORE_DST] {
        commands.dwords[dword] = wrong as u32;
        commands.dwords[dword + 1] = 1 << 24;
    }
    setup.assert_accepted(&commands);
    assert_eq!((setup.mapping.read64(0), setup.mapping.read64(8)), (1, 2));
    assert!(setup.fixture.client.map(&guard).is_filled(0, 4096, 0));
    // The right place in the operands, as an earlier submission reported it.
    let right = debugfs::placement(setup.allocation.object_id).offset;
    commands.allocs[0].presumed_address = right;
    setup.mapping.write64(0, 0);
    setup.assert_accepted(&commands);
    assert_eq!(setup.mapping.read64(0), 1);
}
