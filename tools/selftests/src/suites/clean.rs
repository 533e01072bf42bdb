// SPDX-License-Identifier: GPL-2.0

//! Content that nobody has changed since it came in: it leaves without a copy.

use crate::{
    abi,
    client::Allocation,
    commands::{
        Commands,
        Write, //
    },
    debugfs,
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        KIB,
        MIB,
        VISIBLE_SEGMENT, //
    },
    suite::Suite,
    trace::Recording, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "clean",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[PAG-21] [PAG-15]" unchanged_content_leaves_by_discard,
        "[PAG-21]" memory_without_content_leaves_by_discard,
        "[PAG-21]" content_declared_unwritten_is_the_system_copy_again,
        "[PAG-21]" what_unlock_declares_written_is_kept,
        "[PAG-21]" store_after_the_declaration_is_kept,
        "[PAG-21]" store_through_an_old_mapping_is_kept,
        "[PAG-21] [DMA-31]" write_flag_outweighs_the_declaration,
        "[DMA-31]" write_flag_alone_decides_how_it_leaves,
        "[DMA-31]" waiting_work_marks_when_its_turn_comes,
        "[DMA-31]" state_tells_that_the_gpu_has_written,
        "[PAG-21]" clean_memory_moves_with_its_content,
    },
};

/// Bytes that an operation covered.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    discarded: u64,
    transferred: u64,
}

/// How `allocation` left while `act` ran.
fn how_it_left(allocation: &Allocation, act: impl FnOnce()) -> Left {
    let recording = Recording::start();
    act();
    let events = recording.stop();
    Left {
        discarded: events.bytes("Discard", allocation.object_id),
        transferred: events.bytes("Transfer", allocation.object_id),
    }
}

fn by_discard(allocation: &Allocation) -> Left {
    Left {
        discarded: allocation.size,
        transferred: 0,
    }
}

fn by_transfer(allocation: &Allocation) -> Left {
    Left {
        discarded: 0,
        transferred: allocation.size,
    }
}

/// Drops the reference with these flags, and pushes the allocation out if it has not left by itself.
fn evict(fixture: &Fixture, allocation: &Allocation, flags: u32) {
    fixture
        .client
        .try_evict(fixture.device, &[allocation.handle], flags)
        .expect("EVICT");
    debugfs::inject(&format!("evict {}", allocation.object_id));
}

/// An allocation in the visible segment, with content that came from system memory.
fn brought_in(fixture: &Fixture, content: &[u8]) -> Allocation {
    let allocation = fixture.create(physical(content.len() as u64, VISIBLE_SEGMENT));
    fixture.client.map(&allocation).write(0, content);
    fixture.bring_in(&allocation);
    allocation
}

fn content_of(fixture: &Fixture, allocation: &Allocation) -> Vec<u8> {
    fixture.read(allocation, &fixture.client.map(allocation))
}

/// A buffer that reads `from`; it lists it as written if `write` says so.
fn reader(from: &Allocation, to: &Allocation, write: Write) -> Commands {
    let mut commands = Commands::new();
    commands.list(from.handle, write);
    commands.copy_bytes(to.at(0), from.at(0), 4096);
    commands
}

fn unchanged_content_leaves_by_discard() {
    let fixture = Fixture::new();
    let content = pattern(31, MIB);
    let allocation = brought_in(&fixture, &content);
    for flags in [0, abi::EVICT_NOT_WRITTEN, abi::EVICT_ONLY_IF_NEEDED] {
        let evictions = fixture
            .client
            .query::<abi::InfoClient>(abi::QUERY_CLIENT, 0);
        let left = how_it_left(&allocation, || evict(&fixture, &allocation, flags));
        assert_eq!(left, by_discard(&allocation), "flags {flags:#x}");
        let now = fixture
            .client
            .query::<abi::InfoClient>(abi::QUERY_CLIENT, 0);
        assert_eq!(now.evictions, evictions.evictions + 1);
        assert_eq!(now.paged_out, evictions.paged_out, "nothing was copied");
        fixture.bring_in(&allocation);
    }
    assert!(content_of(&fixture, &allocation) == content);
}

fn memory_without_content_leaves_by_discard() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(MIB, VISIBLE_SEGMENT));
    let left = how_it_left(&allocation, || evict(&fixture, &allocation, 0));
    assert_eq!(left, by_discard(&allocation));
    let recording = Recording::start();
    fixture.bring_in(&allocation);
    assert_eq!(recording.stop().bytes("Fill", allocation.object_id), MIB);
    assert!(content_of(&fixture, &allocation)
        .iter()
        .all(|byte| *byte == 0));
}

fn content_declared_unwritten_is_the_system_copy_again() {
    let fixture = Fixture::new();
    let content = pattern(32, 64 * KIB);
    let allocation = brought_in(&fixture, &content);
    let mapping = fixture.client.map(&allocation);
    // A store that is denied afterwards.
    mapping.write32(0, 0x0bad_0bad);
    let left = how_it_left(&allocation, || {
        evict(&fixture, &allocation, abi::EVICT_NOT_WRITTEN);
    });
    assert_eq!(left, by_discard(&allocation));
    fixture.bring_in(&allocation);
    assert!(fixture.read(&allocation, &mapping) == content);
}

fn what_unlock_declares_written_is_kept() {
    let fixture = Fixture::new();
    let allocation = brought_in(&fixture, &pattern(33, 64 * KIB));
    let mapping = fixture.client.map(&allocation);
    fixture.client.lock(allocation.handle, abi::LOCK_WRITE);
    mapping.write32(0, 0x600d_600d);
    let unlock = abi::Unlock {
        alloc: allocation.handle,
        length: 4,
        ..Default::default()
    };
    fixture.client.try_unlock(unlock).expect("UNLOCK");
    let left = how_it_left(&allocation, || {
        evict(&fixture, &allocation, abi::EVICT_NOT_WRITTEN);
    });
    assert_eq!(left, by_transfer(&allocation));
    assert_eq!(mapping.read32(0), 0x600d_600d);
}

fn store_after_the_declaration_is_kept() {
    let fixture = Fixture::new();
    let allocation = brought_in(&fixture, &pattern(34, 64 * KIB));
    let mapping = fixture.client.map(&allocation);
    mapping.read32(0);
    let flags = abi::EVICT_NOT_WRITTEN | abi::EVICT_ONLY_IF_NEEDED;
    fixture
        .client
        .try_evict(fixture.device, &[allocation.handle], flags)
        .expect("EVICT");
    mapping.write32(0, 0x600d_600d);
    let left = how_it_left(&allocation, || {
        debugfs::inject(&format!("evict {}", allocation.object_id));
    });
    assert_eq!(left, by_transfer(&allocation));
    assert_eq!(mapping.read32(0), 0x600d_600d);
}

fn store_through_an_old_mapping_is_kept() {
    let fixture = Fixture::new();
    let allocation = fixture.create(physical(64 * KIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    for round in 1..4 {
        fixture.bring_in(&allocation);
        mapping.write32(4096, round);
        let left = how_it_left(&allocation, || evict(&fixture, &allocation, 0));
        assert_eq!(left, by_transfer(&allocation), "round {round}");
        assert_eq!(mapping.read32(4096), round);
    }
}

fn write_flag_outweighs_the_declaration() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = brought_in(&fixture, &pattern(35, 64 * KIB));
    let mut commands = Commands::new();
    commands.store(allocation.at(8), 77);
    fixture.run(&context, &commands);
    let left = how_it_left(&allocation, || {
        evict(&fixture, &allocation, abi::EVICT_NOT_WRITTEN);
    });
    assert_eq!(left, by_transfer(&allocation));
    assert_eq!(fixture.client.map(&allocation).read64(8), 77);
}

fn write_flag_alone_decides_how_it_leaves() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let content = pattern(36, 64 * KIB);
    let target = fixture.create(physical(4 * KIB, VISIBLE_SEGMENT));
    let allocation = brought_in(&fixture, &content);
    for write in [Write::No, Write::Yes, Write::No] {
        fixture.run(&context, &reader(&allocation, &target, write));
        let left = how_it_left(&allocation, || evict(&fixture, &allocation, 0));
        let expected = match write {
            Write::Yes => by_transfer(&allocation),
            Write::No => by_discard(&allocation),
        };
        assert_eq!(left, expected);
        assert!(content_of(&fixture, &allocation) == content);
        fixture.bring_in(&allocation);
    }
}

fn waiting_work_marks_when_its_turn_comes() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = brought_in(&fixture, &pattern(37, 64 * KIB));
    let fence = fixture.client.create_fence(fixture.device, 0);
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 5).wait_for(fence, 1);
    let id = commands.submit(&fixture.client, &context);
    let left = how_it_left(&allocation, || {
        debugfs::inject(&format!("evict {}", allocation.object_id));
    });
    assert_eq!(left, by_discard(&allocation), "nothing has run yet");
    fixture.client.signal(fence, 1);
    fixture.client.wait(context.progress, id);
    let left = how_it_left(&allocation, || evict(&fixture, &allocation, 0));
    assert_eq!(left, by_transfer(&allocation));
    assert_eq!(fixture.client.map(&allocation).read64(0), 5);
}

fn state_tells_that_the_gpu_has_written() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = brought_in(&fixture, &pattern(38, 64 * KIB));
    let is_dirty = || {
        let state = fixture.client.state_of(allocation.handle);
        state.flags & abi::ALLOC_STATE_GPU_DIRTY != 0
    };
    fixture.client.map(&allocation).write32(0, 1);
    assert!(!is_dirty(), "the CPU is not the GPU");
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 5);
    fixture.run(&context, &commands);
    assert!(is_dirty());
    evict(&fixture, &allocation, 0);
    assert!(!is_dirty());
    fixture.bring_in(&allocation);
    assert!(!is_dirty());
}

fn clean_memory_moves_with_its_content() {
    let fixture = Fixture::new();
    let content = pattern(39, 64 * KIB);
    let allocation = brought_in(&fixture, &content);
    for _ in 0..3 {
        debugfs::inject(&format!("move {}", allocation.object_id));
    }
    evict(&fixture, &allocation, 0);
    assert!(content_of(&fixture, &allocation) == content);
}
