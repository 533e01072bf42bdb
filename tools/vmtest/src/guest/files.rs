// SPDX-License-Identifier: GPL-2.0
//! Sends the files that the job left in `/out`.

use std::fs;
use std::path::Path;

use super::port::Port;
use crate::channel::Message;

const DIRECTORY: &str = "/out";

/// Sends every file below the directory, by its path there.
pub fn send_all(port: &Port) {
    send(Path::new(DIRECTORY), port);
}

fn send(directory: &Path, port: &Port) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            send(&path, port);
            continue;
        }
        let name = path.strip_prefix(DIRECTORY).unwrap_or(&path);
        match fs::read(&path) {
            Ok(bytes) => port.send(&Message::File(name.to_string_lossy().into_owned(), bytes)),
            Err(error) => port.send(&Message::Complaint(format!("{}: {error}", path.display()))),
        }
    }
}
