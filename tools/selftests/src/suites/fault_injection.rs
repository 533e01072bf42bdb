// SPDX-License-Identifier: GPL-2.0

//! Failing allocations: every call, with each allocation and copy inside it failing once.

use std::{fs, path::Path};

use crate::{
    call::Errno,
    calls::built,
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
