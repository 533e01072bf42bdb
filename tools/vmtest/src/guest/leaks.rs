// SPDX-License-Identifier: GPL-2.0
//! The report of kmemleak, on kernels that have it.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::port::Port;
use crate::channel::Message;
use crate::failure::Result;

const CONTROL: &str = "/sys/kernel/debug/kmemleak";

/// kmemleak ignores what is younger than five seconds.
const MINIMUM_AGE: Duration = Duration::from_secs(6);

const CACHES: &str = "/sys/kernel/slab";

/// Scans and sends what is suspected. What has changed since the scan before is
/// not suspected yet, so it takes two.
pub fn report(port: &Port) -> Result<()> {
    if !Path::new(CONTROL).exists() {
        return Ok(());
    }
    thread::sleep(MINIMUM_AGE);
    shrink_caches();
    for _ in 0..2 {
        fs::write(CONTROL, "scan")?;
    }
    let leaks = fs::read_to_string(CONTROL)?;
    if !leaks.trim().is_empty() {
        port.send(&Message::Leak(leaks));
    }
    Ok(())
}

/// The allocator's per-processor arrays keep stale pointers to objects that they
/// have handed out, and those count as references: have the arrays freed.
fn shrink_caches() {
    let Ok(caches) = fs::read_dir(CACHES) else {
        return;
    };
    for cache in caches.flatten() {
        let _ = fs::write(cache.path().join("shrink"), "1");
    }
}
