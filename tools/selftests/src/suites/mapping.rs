// SPDX-License-Identifier: GPL-2.0

//! Mappings: what `mmap` and its relatives allow.

use std::{
    fs::OpenOptions, //
};

use crate::{
    abi::{
        self,
        AllocInfo,
        FenceCreate, //
    },
    client::{
        Allocation,
        Client, //
    },
    fixture::{
        plain,
        Fixture,
        KIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    memory::{
        Mapping,
        PAGE,
        READ,
        READ_WRITE, //
    },
    module,
    suite::Suite, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "mapping",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[E1]" private_mapping_is_refused,
        "" mapping_beyond_the_object_is_refused,
        "" part_of_an_object_can_be_mapped,
        "" executable_mapping_is_refused,
        "[E2]" protection_to_execute_cannot_be_added,
        "[E4]" unknown_token_is_refused,
        "[E4]" token_of_another_client_is_refused,
        "[E4]" token_of_a_closed_allocation_is_refused,
        "" allocation_without_cpu_access_has_no_token,
        "[E2]" read_only_file_cannot_be_mapped_for_writing,
        "" fence_page_is_read_only,
        "" page_of_closed_fences_cannot_be_mapped_anew,
        "[E3]" mapping_cannot_grow,
        "" mapping_can_move_and_shrink,
        "[E5]" parts_can_be_removed_and_protected,
    },
};

fn try_map(client: &Client, offset: u64, length: usize, protection: i32) -> Result<Mapping, i32> {
    Mapping::try_new(client.file(), offset, length, protection, libc::MAP_SHARED)
}

/// A fixture with an allocation of two pages in system memory.
fn two_pages() -> (Fixture, Allocation) {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(8 * KIB, SYSTEM));
    (fixture, allocation)
}

fn private_mapping_is_refused() {
    let (fixture, allocation) = two_pages();
    for protection in [READ, READ_WRITE] {
        let flags = libc::MAP_PRIVATE;
        let file = fixture.client.file();
        let result = Mapping::try_new(file, allocation.mmap_offset, 8192, protection, flags);
        assert_eq!(result.err(), Some(libc::EINVAL));
    }
}

fn mapping_beyond_the_object_is_refused() {
    let (fixture, allocation) = two_pages();
    for (offset, length) in [(0, 12288), (4096, 8192), (8192, 4096), (0, 1 << 30)] {
        let result = try_map(
            &fixture.client,
            allocation.mmap_offset + offset,
            length,
            READ,
        );
        let errno = result.err();
        // Behind the object there may be another one, or nothing.
        let expected =
            matches!(errno, Some(libc::EINVAL)) || offset == 8192 && errno == Some(libc::EACCES);
        assert!(expected, "offset {offset}, length {length}: {errno:?}");
    }
}

fn part_of_an_object_can_be_mapped() {
    let (fixture, allocation) = two_pages();
    let whole = fixture.client.map(&allocation);
    let part = Mapping::new(fixture.client.file(), allocation.mmap_offset + 4096, 4096);
    part.write32(16, 99);
    assert_eq!(whole.read32(4096 + 16), 99);
}

fn executable_mapping_is_refused() {
    let (fixture, allocation) = two_pages();
    for protection in [READ | libc::PROT_EXEC, READ_WRITE | libc::PROT_EXEC] {
        let result = try_map(&fixture.client, allocation.mmap_offset, 8192, protection);
        assert_eq!(result.err(), Some(libc::EPERM));
    }
}

fn protection_to_execute_cannot_be_added() {
    let (fixture, allocation) = two_pages();
    let mapping = fixture.client.map(&allocation);
    let result = mapping.protect(0, 4096, READ | libc::PROT_EXEC);
    assert_eq!(result, Err(libc::EACCES));
    mapping.write32(0, 1);
}

fn unknown_token_is_refused() {
    let (fixture, allocation) = two_pages();
    let mut random = crate::random::Random::new(7);
    for _ in 0..500 {
        let token = abi::MMAP_OFFSET_MIN + random.below(1 << 30) * 4096;
        if token.abs_diff(allocation.mmap_offset) < 1 << 20 {
            continue;
        }
        let result = try_map(&fixture.client, token, 4096, READ);
        assert_eq!(result.err(), Some(libc::EACCES), "token {token:#x}");
    }
    for token in [4096, 1 << 31, abi::MMAP_OFFSET_END, 1 << 50] {
        assert_eq!(
            try_map(&fixture.client, token, 4096, READ).err(),
            Some(libc::EACCES)
        );
    }
    // Offset 0 is the status page, and nothing lies behind it.
    let behind = try_map(&fixture.client, 0, 8192, READ).err();
    assert!(
        matches!(behind, Some(libc::EACCES | libc::EINVAL)),
        "{behind:?}"
    );
}

fn token_of_another_client_is_refused() {
    let (fixture, allocation) = two_pages();
    let other = Fixture::new();
    other.create(plain(8 * KIB, SYSTEM));
    let result = try_map(&other.client, allocation.mmap_offset, 8192, READ);
    assert_eq!(result.err(), Some(libc::EACCES));
    drop(fixture);
}

fn token_of_a_closed_allocation_is_refused() {
    let (fixture, allocation) = two_pages();
    let mapping = fixture.client.map(&allocation);
    fixture.client.close(&[allocation.handle]);
    let result = try_map(&fixture.client, allocation.mmap_offset, 8192, READ);
    assert_eq!(result.err(), Some(libc::EACCES));
    drop(mapping);
    let result = try_map(&fixture.client, allocation.mmap_offset, 8192, READ);
    assert_eq!(result.err(), Some(libc::EACCES));
}

fn allocation_without_cpu_access_has_no_token() {
    let fixture = Fixture::new();
    let allocation = fixture.create(AllocInfo {
        flags: 0,
        ..plain(4096, SYSTEM)
    });
    assert_eq!(allocation.mmap_offset, 0);
}

fn read_only_file_cannot_be_mapped_for_writing() {
    let file = OpenOptions::new()
        .read(true)
        .open(module::NODE)
        .expect("open");
    let client = Client::from_file(file);
    let device = client.create_device();
    let allocation = client.create(device, plain(4096, SYSTEM));
    let result = try_map(&client, allocation.mmap_offset, 4096, READ_WRITE);
    assert_eq!(result.err(), Some(libc::EACCES));
    let mapping = try_map(&client, allocation.mmap_offset, 4096, READ).expect("mmap");
    assert_eq!(mapping.protect(0, 4096, READ_WRITE), Err(libc::EACCES));
}

fn fence_page_is_read_only() {
    let fixture = Fixture::new();
    let mut argument = FenceCreate {
        device: fixture.device,
        initial: 5,
        ..Default::default()
    };
    fixture
        .client
        .try_create_fence(&mut argument)
        .expect("FENCE_CREATE");
    let result = try_map(&fixture.client, argument.mmap_offset, PAGE, READ_WRITE);
    assert_eq!(result.err(), Some(libc::EACCES));
    let page = Mapping::read_only(fixture.client.file(), argument.mmap_offset, PAGE);
    assert_eq!(page.protect(0, PAGE, READ_WRITE), Err(libc::EACCES));
    assert_eq!(page.read64(argument.slot as usize * 64), 5);
    let result = try_map(&fixture.client, argument.mmap_offset, 2 * PAGE, READ);
    assert_eq!(result.err(), Some(libc::EINVAL));
}

fn page_of_closed_fences_cannot_be_mapped_anew() {
    let fixture = Fixture::new();
    let fence = || {
        let mut argument = FenceCreate {
            device: fixture.device,
            initial: 5,
            ..Default::default()
        };
        let made = fixture.client.try_create_fence(&mut argument);
        (made.expect("FENCE_CREATE"), argument.mmap_offset)
    };
    let (first, offset) = fence();
    let (second, same) = fence();
    assert_eq!(offset, same);
    let page = Mapping::read_only(fixture.client.file(), offset, PAGE);
    fixture.client.close(&[first]);
    assert!(try_map(&fixture.client, offset, PAGE, READ).is_ok());
    fixture.client.close(&[second]);
    let result = try_map(&fixture.client, offset, PAGE, READ);
    assert_eq!(result.err(), Some(libc::EACCES));
    // The mapping keeps the page.
    assert_eq!(page.read64(0), 0);
}

fn mapping_cannot_grow() {
    let (fixture, allocation) = two_pages();
    let mut mapping = fixture.client.map(&allocation);
    for length in [12288, 1 << 20] {
        let result = mapping.remap(length);
        assert!(
            matches!(result, Err(libc::EFAULT | libc::EINVAL)),
            "{length}: {result:?}"
        );
    }
    mapping.write32(8188, 1);
}

fn mapping_can_move_and_shrink() {
    let (fixture, allocation) = two_pages();
    let mut mapping = fixture.client.map(&allocation);
    mapping.write32(8, 4711);
    mapping.remap(4096).expect("mremap to a smaller size");
    assert_eq!(mapping.read32(8), 4711);
}

fn parts_can_be_removed_and_protected() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(20 * KIB, VISIBLE_SEGMENT));
    let mapping = fixture.client.map(&allocation);
    mapping.unmap_part(2 * PAGE, PAGE);
    for page in [0, 1, 3, 4] {
        mapping.write32(page * PAGE, page as u32 + 1);
    }
    mapping.protect(PAGE, PAGE, READ).expect("mprotect");
    assert_eq!(mapping.read32(PAGE), 2);
    mapping.unmap_part(4 * PAGE, PAGE);
    mapping.unmap_part(0, PAGE);
    assert_eq!(mapping.read32(3 * PAGE), 4);
    let again = fixture.client.map(&allocation);
    assert_eq!((again.read32(0), again.read32(4 * PAGE)), (1, 5));
}
