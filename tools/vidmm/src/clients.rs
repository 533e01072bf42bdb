// SPDX-License-Identifier: GPL-2.0

//! Clients of an adapter: the open files of all programs, as `/proc/PID/fdinfo` shows them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

/// Begins the key of what a client has in a region.
const RESIDENT: &str = "drm-resident-";

/// A client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Client {
    pub(crate) id: u64,
    /// The name that it has given itself.
    pub(crate) name: Option<String>,
    pub(crate) pid: u32,
    pub(crate) program: String,
    /// Resident bytes by the name of the region: `vram1`, `aperture3`, `memory`.
    pub(crate) resident_bytes: BTreeMap<String, u64>,
    pub(crate) local: Budget,
    pub(crate) nonlocal: Budget,
    pub(crate) backing_bytes: u64,
    pub(crate) offered_bytes: u64,
    pub(crate) paged_in_bytes: u64,
    pub(crate) paged_out_bytes: u64,
    pub(crate) evictions: u64,
}

/// The budget of a client in a group of segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Budget {
    pub(crate) budget_bytes: u64,
    pub(crate) usage_bytes: u64,
    pub(crate) trim_bytes: u64,
}

/// Returns the clients of the adapter at `device`, each once, by their ids. Programs whose files may not
/// be looked at are left out.
pub(crate) fn of(device: &Path) -> Vec<Client> {
    let mut clients = BTreeMap::new();
    for pid in numbers_in(Path::new("/proc")) {
        let process = Path::new("/proc").join(pid.to_string());
        for descriptor in numbers_in(&process.join("fd")) {
            let descriptor = descriptor.to_string();
            let is_ours = fs::read_link(process.join("fd").join(&descriptor))
                .is_ok_and(|file| file == device);
            if !is_ours {
                continue;
            }
            let text = fs::read_to_string(process.join("fdinfo").join(&descriptor));
            if let Some(client) = text.ok().and_then(|text| parse(&text)) {
                let program = fs::read_to_string(process.join("comm")).unwrap_or_default();
                let program = program.trim_end().to_owned();
                // A file that several processes share is one client, shown with the first of them.
                clients.entry(client.id).or_insert(Client {
                    pid,
                    program,
                    ..client
                });
            }
        }
    }
    clients.into_values().collect()
}

/// Returns the entries of a directory that are numbers, in ascending order.
fn numbers_in(directory: &Path) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut numbers: Vec<_> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Reads the lines of an open file; [`None`] if it is none of an adapter.
fn parse(text: &str) -> Option<Client> {
    let mut client = Client::default();
    let mut is_ours = false;
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    for (key, value) in lines.map(|(key, value)| (key, value.trim())) {
        match key {
            "drm-driver" => is_ours = value == "vidmm",
            "drm-client-id" => client.id = value.parse().ok()?,
            "drm-client-name" => client.name = Some(value.to_owned()),
            "vidmm-budget-local" => client.local.budget_bytes = bytes(value),
            "vidmm-usage-local" => client.local.usage_bytes = bytes(value),
            "vidmm-trim-local" => client.local.trim_bytes = bytes(value),
            "vidmm-budget-nonlocal" => client.nonlocal.budget_bytes = bytes(value),
            "vidmm-usage-nonlocal" => client.nonlocal.usage_bytes = bytes(value),
            "vidmm-trim-nonlocal" => client.nonlocal.trim_bytes = bytes(value),
            "vidmm-backing" => client.backing_bytes = bytes(value),
            "vidmm-offered" => client.offered_bytes = bytes(value),
            "vidmm-paged-in" => client.paged_in_bytes = bytes(value),
            "vidmm-paged-out" => client.paged_out_bytes = bytes(value),
            "vidmm-evictions" => client.evictions = bytes(value),
            _ => {
                if let Some(region) = key.strip_prefix(RESIDENT) {
                    let region = region.to_owned();
                    client.resident_bytes.insert(region, bytes(value));
                }
            }
        }
    }
    is_ours.then_some(client)
}

/// Reads a number with or without a unit.
fn bytes(value: &str) -> u64 {
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    let number: u64 = number.parse().unwrap_or(0);
    match unit {
        "KiB" => number << 10,
        "MiB" => number << 20,
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "pos:\t0\nflags:\t02100002\ndrm-driver:\tvidmm\ndrm-client-id:\t7\n\
        drm-client-name:\tgame\ndrm-resident-vram1:\t2048 KiB\ndrm-total-vram1:\t4096 KiB\n\
        vidmm-budget-local:\t16 MiB\nvidmm-paged-in:\t12 KiB\nvidmm-evictions:\t3\n";

    #[test]
    fn lines_of_a_client_are_read_with_their_units() {
        let client = parse(TEXT).unwrap();

        assert_eq!((client.id, client.name.as_deref()), (7, Some("game")));
        assert_eq!(client.resident_bytes["vram1"], 2 << 20);
        assert_eq!(client.resident_bytes.len(), 1);
        assert_eq!(client.local.budget_bytes, 16 << 20);
        assert_eq!((client.paged_in_bytes, client.evictions), (12 << 10, 3));
    }

    #[test]
    fn file_of_another_driver_is_no_client() {
        assert_eq!(parse("pos:\t0\n"), None);
        assert_eq!(parse("drm-driver:\ti915\ndrm-client-id:\t7\n"), None);
    }
}
