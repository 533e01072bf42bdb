// SPDX-License-Identifier: GPL-2.0

//! Failing allocations: every call, with each allocation and copy inside it failing once.

use std::{fs, path::Path};

use crate::{
    call::Errno,
    calls::built,
    fixture::{
        plain,
        Fixture,
        KIB,
        VISIBLE_SEGMENT, //
    },
    memory::{
        Mapping,
        READ_WRITE, //
    },
    schema::Call,
    suite::{
        skip,
        Suite, //
    },
    world::World, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "fault_injection",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" every_failing_allocation_fails_the_call_cleanly,
        "[E11]" every_failing_allocation_fails_mmap_cleanly,
    },
};

/// The file of a thread that lets its n-th chance of a failure be one.
const FAIL_NTH: &str = "/proc/thread-self/fail-nth";

/// Lets allocations fail that may wait, too; the mechanism leaves them out by default.
fn prepare() {
    if !Path::new(FAIL_NTH).exists() {
        skip("needs-debug-kernel");
    }
    for (file, value) in [
        ("failslab/ignore-gfp-wait", "N"),
        ("fail_page_alloc/ignore-gfp-wait", "N"),
        ("fail_page_alloc/min-order", "0"),
        ("failslab/verbose", "0"),
        ("fail_page_alloc/verbose", "0"),
        ("fail_usercopy/verbose", "0"),
    ] {
        let _ = fs::write(format!("/sys/kernel/debug/{file}"), value);
    }
}

/// Issues a call whose `number`-th chance fails; the second value says whether there were as many.
fn issue_failing(world: &World, call: &Call, number: u32) -> (Result<(), Errno>, bool) {
    let mut argument = (call.arrange)(world);
    fs::write(FAIL_NTH, number.to_string()).expect("fail-nth");
    let result = world.issue(call, &mut argument);
    let left = fs::read_to_string(FAIL_NTH).unwrap_or_default();
    fs::write(FAIL_NTH, "0").expect("fail-nth");
    (result, left.trim() == "0")
}

fn every_failing_allocation_fails_the_call_cleanly() {
    prepare();
    let world = World::new();
    for call in built(&world.client) {
        for number in 1..1000 {
            let (result, reached) = issue_failing(&world, call, number);
            let clean = matches!(result, Ok(()) | Err(libc::ENOMEM | libc::EFAULT));
            assert!(clean, "{} with failure {number}: {result:?}", call.name);
            if !reached {
                assert_eq!(result, Ok(()), "{} without a failure", call.name);
                break;
            }
        }
    }
}

fn every_failing_allocation_fails_mmap_cleanly() {
    prepare();
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(64 * KIB, VISIBLE_SEGMENT));
    let (file, offset) = (fixture.client.file(), allocation.mmap_offset);
    for number in 1..1000 {
        fs::write(FAIL_NTH, number.to_string()).expect("fail-nth");
        let result = Mapping::try_new(file, offset, 65536, READ_WRITE, libc::MAP_SHARED);
        let left = fs::read_to_string(FAIL_NTH).unwrap_or_default();
        fs::write(FAIL_NTH, "0").expect("fail-nth");
        match result {
            Ok(mapping) => mapping.write32(4096, number),
            Err(errno) => assert_eq!(errno, libc::ENOMEM, "failure {number}"),
        }
        if left.trim() != "0" {
            break;
        }
    }
    let mapping = fixture.client.map(&allocation);
    mapping.write32(0, 1);
    drop(mapping);
    fixture.client.close_and_wait(&[allocation.handle]);
    let again = fixture.client.try_close(&[allocation.handle], 0);
    assert_eq!(again, Err((libc::ENOENT, 0)));
}
