// SPDX-License-Identifier: GPL-2.0

//! The CPU host aperture: memory that the CPU does not see, page by page through a window.

use std::os::unix::fs::FileExt;

use crate::{
    abi::{
        self,
        InfoAdapter,
        InfoSegment, //
    },
    client::Allocation,
    commands::Commands,
    debugfs,
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    memory::{
        self,
        touch,
        Mapping,
        PAGE,
        READ, //
    },
    process::Child,
    suite::Suite,
    trace::{
        Events,
        Recording, //
    },
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "host_aperture",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[SEG-7]" adapter_says_that_it_has_a_window,
        "[SEG-7]" hidden_memory_is_reached_through_the_window,
        "[SEG-7]" other_segments_use_no_window,
        "[SEG-7]" cpu_and_gpu_write_the_same_memory,
        "[SEG-28]" scattered_pages_are_one_linear_mapping,
        "" memory_that_moves_gives_its_pages_back,
        "" reused_page_of_the_segment_is_not_seen_through_an_old_mapping,
        "" last_mapping_gives_the_pages_back,
        "" forked_process_shares_the_pages,
        "" holes_and_protection_inside_a_page_are_kept,
        "" moved_and_shrunk_mapping_goes_on,
        "" kernel_reads_and_writes_through_the_window,
        "" other_processes_read_data_or_nothing,
    },
};

/// The suite on a segment that the CPU cannot reach in any way.
pub const UNREACHABLE_SUITE: Suite = Suite {
    name: "host_aperture_none",
    parameters: Some(
        "profile=DISC segments=memory:16M:visible:contiguous=8M,\
         memory:4M:page=64K:contiguous=1M,aperture:16M",
    ),
    cases: crate::cases! {
        "" adapter_says_that_it_has_none,
        "" touch_of_unreachable_memory_makes_it_leave,
    },
};

/// Bytes of a page of the window.
pub const WINDOW_PAGE: u64 = 64 * KIB;
/// A page of the window as a length in memory.
pub const STEP: usize = 64 << 10;
/// Pages of the window on DISC.
pub const WINDOW_PAGES: u64 = 16;

/// Bytes that the window shows.
pub fn shown() -> u64 {
    debugfs::segment(2).window.expect("a window in segments")
}

/// How often the backend was called for a page of an allocation.
fn calls(events: &Events, name: &str, object_id: u64) -> usize {
    let words = [format!("name={name}"), format!("alloc={object_id}")];
    events
        .named("backend_call")
        .filter(|event| event.is("backend_call", &words))
        .count()
}

/// A resident allocation of the hidden segment and a mapping of it.
pub fn hidden(fixture: &Fixture, size: u64) -> (Allocation, Mapping) {
    let allocation = fixture.create_resident(plain(size, HIDDEN_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    (allocation, mapping)
}

fn has_window() -> bool {
    let client = crate::client::Client::open();
    let adapter: InfoAdapter = client.query(abi::QUERY_ADAPTER, 0);
    adapter.features & abi::FEATURE_HOST_APERTURE != 0
}

fn adapter_says_that_it_has_a_window() {
    assert!(has_window());
    let segment: InfoSegment = crate::client::Client::open().query(abi::QUERY_SEGMENT, 2);
    assert_eq!(
        segment.flags & (abi::SEGMENT_CPU_VISIBLE | abi::SEGMENT_HOST_APERTURE),
        abi::SEGMENT_HOST_APERTURE
    );
    assert_eq!(segment.cpu_window, WINDOW_PAGES * WINDOW_PAGE);
    assert_eq!(debugfs::segment(1).window, None);
}

fn adapter_says_that_it_has_none() {
    assert!(!has_window());
    assert_eq!(debugfs::segment(2).window, None);
}

fn hidden_memory_is_reached_through_the_window() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let size = 8 * WINDOW_PAGE;
    let allocation = fixture.create_resident(physical(size, HIDDEN_SEGMENT));
    let mut commands = Commands::new();
    for page in 0..8 {
        commands.fill_bytes(
            allocation.at(page * WINDOW_PAGE),
            WINDOW_PAGE as u32,
            0x1000 + page as u32,
        );
    }
    fixture.run(&context, &commands);
    let recording = Recording::start();
    let mapping = fixture.client.map(&allocation);
    for offset in (0..size as usize).step_by(PAGE) {
        assert_eq!(
            mapping.read32(offset),
            0x1000 + (offset / STEP) as u32,
            "at {offset:#x}"
        );
    }
    let id = allocation.object_id;
    let events = recording.so_far();
    assert_eq!(calls(&events, "map_host_aperture", id), 8);
    assert_eq!(calls(&events, "unmap_host_aperture", id), 0);
    let placement = debugfs::placement(id);
    assert_eq!(placement.path, "host-aperture");
    assert_eq!(placement.window.len(), 8);
    assert_eq!(shown(), size);
    drop(mapping);
    let events = recording.stop();
    assert!(calls(&events, "unmap_host_aperture", id) > 0);
    events.assert_none("paging_op", &[]);
    events.assert_none("residency", &[]);
    assert_eq!(shown(), 0);
    assert_eq!(fixture.client.state_of(allocation.handle).segment, 2);
}

fn other_segments_use_no_window() {
    let fixture = Fixture::new();
    let recording = Recording::start();
    for mask in [VISIBLE_SEGMENT, SYSTEM] {
        let allocation = fixture.create_resident(plain(WINDOW_PAGE, mask));
        fixture.client.map(&allocation).write32(0, 1);
        assert_eq!(
            calls(
                &recording.so_far(),
                "map_host_aperture",
                allocation.object_id
            ),
            0
        );
    }
    assert_eq!(shown(), 0);
}

fn cpu_and_gpu_write_the_same_memory() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let size = 4 * WINDOW_PAGE;
    let hidden = fixture.create_resident(physical(size, HIDDEN_SEGMENT));
    let copy = fixture.create_resident(physical(size, VISIBLE_SEGMENT));
    let (mapping, seen) = (fixture.client.map(&hidden), fixture.client.map(&copy));
    for round in 0..4 {
        let data = pattern(round, size);
        mapping.write(0, &data);
        let mut commands = Commands::new();
        commands.copy_bytes(copy.at(0), hidden.at(0), size as u32);
        commands.fill_bytes(hidden.at(WINDOW_PAGE), 4096, round as u32);
        fixture.run(&context, &commands);
        assert!(seen.read(0, data.len()) == data, "round {round}");
        assert_eq!(mapping.read32(STEP + 4092), round as u32);
        assert!(mapping.read(STEP + 4096, 4096) == data[STEP + 4096..STEP + 8192]);
    }
    assert_eq!(fixture.client.state_of(hidden.handle).segment, 2);
}

/// Whether no element of a list follows the one before it in memory.
fn is_scattered(runs: &[debugfs::Range]) -> bool {
    runs.windows(2).all(|pair| pair[0].end() != pair[1].start)
}

fn scattered_pages_are_one_linear_mapping() {
    let fixture = Fixture::new();
    debugfs::inject("fragment 2");
    // Of the window every second page is free.
    let mut users: Vec<(Allocation, Option<Mapping>)> = (0..WINDOW_PAGES)
        .map(|_| {
            let (allocation, mapping) = hidden(&fixture, WINDOW_PAGE);
            mapping.write32(0, 7);
            (allocation, Some(mapping))
        })
        .collect();
    assert_eq!(shown(), WINDOW_PAGES * WINDOW_PAGE);
    for (_, mapping) in users.iter_mut().step_by(2) {
        *mapping = None;
    }
    assert_eq!(shown(), WINDOW_PAGES / 2 * WINDOW_PAGE);
    let (allocation, mapping) = hidden(&fixture, 256 * KIB);
    fixture
        .client
        .lock(allocation.handle, abi::LOCK_READ | abi::LOCK_WRITE);
    let data = pattern(3, allocation.size);
    mapping.write(0, &data);
    let placement = debugfs::placement(allocation.object_id);
    assert_eq!(placement.runs.len(), 4);
    assert!(is_scattered(&placement.runs));
    assert_eq!(placement.window.len(), 4);
    assert!(is_scattered(&placement.window), "{:?}", placement.window);
    assert!(mapping.read(0, data.len()) == data);
    fixture.client.unlock(allocation.handle);
    // Its pages in order are what the backend moves, and what is seen elsewhere.
    debugfs::inject(&format!("evict {}", allocation.object_id));
    assert!(mapping.read(0, data.len()) == data);
    for (number, (_, mapping)) in users.iter().enumerate() {
        if let Some(mapping) = mapping {
            assert_eq!(mapping.read32(0), 7, "user {number}");
        }
    }
}

fn memory_that_moves_gives_its_pages_back() {
    let fixture = Fixture::new();
    let everywhere = VISIBLE_SEGMENT | HIDDEN_SEGMENT | SYSTEM;
    let allocation = fixture.create(plain(4 * WINDOW_PAGE, everywhere));
    let mapping = fixture.client.map(&allocation);
    let data = pattern(11, allocation.size);
    mapping.write(0, &data);
    let id = allocation.object_id;
    for away in [
        format!("move {id} 2"),
        format!("move {id} 1"),
        format!("move {id} 3"),
        format!("evict {id}"),
    ] {
        debugfs::inject(&format!("move {id} 2 0"));
        assert!(mapping.read(0, data.len()) == data, "before {away}");
        assert_eq!(shown(), allocation.size);
        let moved = debugfs::placement(id).runs[0].start == 0 && away.ends_with(" 2");
        let away = if moved {
            format!("move {id} 2 0x100000")
        } else {
            away
        };
        let recording = Recording::start();
        debugfs::inject(&away);
        let events = recording.stop();
        assert_eq!(shown(), 0, "after {away}");
        // The CPU loses the page before the first operation is built.
        events.assert_order(&[
            format!("backend_call name=unmap_host_aperture alloc={id}"),
            format!("paging_op op=TransferVirtual alloc={id}"),
        ]);
        assert!(mapping.read(0, data.len()) == data, "after {away}");
    }
    fixture.bring_in(&allocation);
    debugfs::inject(&format!("move {id} 2"));
    mapping.write32(0, 1);
    drop(mapping);
    fixture.client.close_and_wait(&[allocation.handle]);
    assert_eq!(shown(), 0);
}

fn reused_page_of_the_segment_is_not_seen_through_an_old_mapping() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let everywhere = HIDDEN_SEGMENT | SYSTEM;
    let old = fixture.create_resident(physical(WINDOW_PAGE, everywhere));
    let mapping = fixture.client.map(&old);
    mapping.write32(0, 1);
    let place = debugfs::placement(old.object_id).offset;
    debugfs::inject(&format!("evict {}", old.object_id));
    let new = fixture.create_resident(physical(WINDOW_PAGE, HIDDEN_SEGMENT));
    let id = new.object_id;
    debugfs::inject(&format!("move {id} 2 {place}"));
    let mut commands = Commands::new();
    commands.fill_bytes(new.at(0), WINDOW_PAGE as u32, 0xdead_beef);
    fixture.run(&context, &commands);
    mapping.write32(4, 2);
    assert_eq!((mapping.read32(0), mapping.read32(4)), (1, 2));
    let seen = fixture.client.map(&new);
    assert_eq!((seen.read32(0), seen.read32(4)), (0xdead_beef, 0xdead_beef));
}

fn last_mapping_gives_the_pages_back() {
    let fixture = Fixture::new();
    let (allocation, one) = hidden(&fixture, 2 * WINDOW_PAGE);
    let other = fixture.client.map(&allocation);
    one.write32(0, 1);
    other.write32(STEP, 2);
    assert_eq!(shown(), 2 * WINDOW_PAGE);
    drop(one);
    assert_eq!(shown(), 2 * WINDOW_PAGE);
    assert_eq!((other.read32(0), other.read32(STEP)), (1, 2));
    // A part that goes leaves the rest.
    other.unmap_part(0, STEP);
    assert_eq!(other.read32(STEP), 2);
    drop(other);
    assert_eq!(shown(), 0);
    let again = fixture.client.map(&allocation);
    assert_eq!((again.read32(0), again.read32(STEP)), (1, 2));
}

fn forked_process_shares_the_pages() {
    let fixture = Fixture::new();
    let (allocation, mapping) = hidden(&fixture, 2 * WINDOW_PAGE);
    mapping.write32(0, 1);
    Child::start(|_| {
        assert_eq!(mapping.read32(0), 1);
        mapping.write32(4, 2);
        mapping.write32(STEP, 3);
        debugfs::inject(&format!("move {} 2 0x200000", allocation.object_id));
        mapping.write32(8, 4);
    })
    .join();
    let words = [0, 4, 8, STEP].map(|offset| mapping.read32(offset));
    assert_eq!(words, [1, 2, 4, 3]);
    drop(mapping);
    assert_eq!(shown(), 0);
}

fn holes_and_protection_inside_a_page_are_kept() {
    let fixture = Fixture::new();
    let (_, mapping) = hidden(&fixture, WINDOW_PAGE);
    mapping.unmap_part(5 * PAGE, PAGE);
    mapping.protect(9 * PAGE, PAGE, READ).expect("mprotect");
    for page in (0..16).filter(|page| ![5, 9].contains(page)) {
        mapping.write32(page * PAGE, page as u32);
    }
    assert_eq!(touch(&mapping, 5 * PAGE, false), Err(libc::SIGSEGV));
    assert_eq!(touch(&mapping, 9 * PAGE, true), Err(libc::SIGSEGV));
    assert_eq!(touch(&mapping, 9 * PAGE, false), Ok(0));
    for page in (0..16).filter(|page| ![5, 9].contains(page)) {
        assert_eq!(mapping.read32(page * PAGE), page as u32);
    }
    assert_eq!(shown(), WINDOW_PAGE);
}

fn moved_and_shrunk_mapping_goes_on() {
    let fixture = Fixture::new();
    let (allocation, mut mapping) = hidden(&fixture, 4 * WINDOW_PAGE);
    let data = pattern(2, allocation.size);
    mapping.write(0, &data);
    mapping.remap(2 * STEP).expect("mremap to less");
    assert!(mapping.read(0, 2 * STEP) == data[..2 * STEP]);
    assert_eq!(mapping.remap(8 * STEP), Err(libc::EFAULT));
    debugfs::inject(&format!("move {} 2 0x100000", allocation.object_id));
    assert!(mapping.read(0, 2 * STEP) == data[..2 * STEP]);
    assert_eq!(shown(), 2 * WINDOW_PAGE);
}

fn kernel_reads_and_writes_through_the_window() {
    let fixture = Fixture::new();
    let (_, mapping) = hidden(&fixture, 2 * WINDOW_PAGE);
    let argument = abi::DeviceCreate::default();
    // The argument lies across two pages of the window.
    let offset = STEP - 4;
    mapping.write(offset, crate::call::bytes_of(&[argument]));
    let address = mapping.address() + offset as u64;
    let result = crate::call::issue_at(fixture.client.file(), abi::IOCTL_DEVICE_CREATE, address);
    assert_eq!(result, Ok(()));
    let path = "/tmp/window";
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .expect(path);
    let data = pattern(4, 8192);
    mapping.write(STEP - 4096, &data);
    memory::write_out(&file, &mapping, STEP - 4096, 8192).expect("write from the mapping");
    let mut found = vec![0; 8192];
    file.read_exact_at(&mut found, 0).expect("read");
    assert!(found == data);
    std::fs::remove_file(path).expect(path);
}

fn other_processes_read_data_or_nothing() {
    let fixture = Fixture::new();
    let (allocation, mapping) = hidden(&fixture, 2 * WINDOW_PAGE);
    let data = pattern(5, allocation.size);
    mapping.write(0, &data);
    let memory = std::fs::File::open("/proc/self/mem").expect("/proc/self/mem");
    let end = allocation.size as usize;
    for command in ["move {} 2 0x100000", "evict {}", "move {} 2"] {
        for offset in [0, STEP - 8, end - 8, end] {
            let mut bytes = [0; 16];
            let address = mapping.address() + offset as u64;
            for read in [
                memory.read_at(&mut bytes, address).map_err(|error| {
                    let errno = error.raw_os_error();
                    errno.unwrap_or(0)
                }),
                memory::peek(address, &mut bytes),
            ] {
                match read {
                    Ok(length) => {
                        assert!(offset + length <= end);
                        assert!(bytes[..length] == data[offset..offset + length]);
                    }
                    Err(errno) => assert!([libc::EIO, libc::EFAULT].contains(&errno), "{errno}"),
                }
            }
        }
        let command = command.replace("{}", &allocation.object_id.to_string());
        let moved = debugfs::try_inject(&command);
        assert!(matches!(moved, Ok(()) | Err(libc::ENOSPC)), "{moved:?}");
    }
}

fn touch_of_unreachable_memory_makes_it_leave() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create_resident(physical(64 * KIB, HIDDEN_SEGMENT));
    let mut commands = Commands::new();
    commands.fill_bytes(allocation.at(0), 65536, 0x0bad_f00d);
    fixture.run(&context, &commands);
    assert_eq!(fixture.client.state_of(allocation.handle).segment, 2);
    let mapping = fixture.client.map(&allocation);
    assert_eq!(mapping.read32(65532), 0x0bad_f00d);
    assert_ne!(fixture.client.state_of(allocation.handle).segment, 2);
    mapping.write32(0, 1);
    // The next use by the GPU brings it back with what the CPU wrote.
    let copy = fixture.create(physical(64 * KIB, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    commands.copy_bytes(copy.at(0), allocation.at(0), 65536);
    fixture.run(&context, &commands);
    assert_eq!(fixture.client.map(&copy).read64(0), 0x0bad_f00d_0000_0001);
}
