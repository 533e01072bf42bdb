// SPDX-License-Identifier: GPL-2.0

//! A swap device in compressed memory.

use std::{
    fs,
    process::Command, //
};

const DEVICE: &str = "/dev/zram0";
const CONTROL: &str = "/sys/block/zram0";

/// Swap that is on until the end of the scope.
pub struct SwapDevice(());

impl SwapDevice {
    /// Makes a device of `bytes` bytes and swaps to it.
    pub fn new(bytes: u64) -> Self {
        write("disksize", &bytes.to_string());
        run("mkswap");
        run("swapon");
        Self(())
    }
}

impl Drop for SwapDevice {
    fn drop(&mut self) {
        let off = Command::new("swapoff").arg(DEVICE).status();
        let reset = fs::write(format!("{CONTROL}/reset"), "1");
        let ended = off.is_ok_and(|status| status.success()) && reset.is_ok();
        assert!(ended || std::thread::panicking(), "swap stays in use");
    }
}

fn write(file: &str, text: &str) {
    let path = format!("{CONTROL}/{file}");
    fs::write(&path, text).unwrap_or_else(|error| panic!("{path}: {error}"));
}

fn run(program: &str) {
    let output = Command::new(program).arg(DEVICE).output();
    let done = output.is_ok_and(|output| output.status.success());
    assert!(done, "{program} {DEVICE} failed");
}

/// Pages that were written to swap since the start of the system.
pub fn swapped_out() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").expect("/proc/vmstat");
    let line = text.lines().find_map(|line| line.strip_prefix("pswpout "));
    let number = line.and_then(|number| number.trim().parse().ok());
    number.expect("pswpout in /proc/vmstat")
}
