// SPDX-License-Identifier: GPL-2.0
//! The virtio port that all reports leave through.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::channel::{Message, PORT_NAME};
use crate::failure::{Failure, Result};

/// The port, shared by the threads that forward output.
#[derive(Clone)]
pub struct Port(Arc<Mutex<File>>);

impl Port {
    /// Opens the port; waits a moment for the driver to announce it.
    pub fn open() -> Result<Port> {
        for _ in 0..100 {
            if let Some(device) = find() {
                let file = File::options().read(true).write(true).open(device)?;
                return Ok(Port(Arc::new(Mutex::new(file))));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Err(Failure::new("the VM has no report port"))
    }

    /// Sends one message. When the host is gone there is nobody left to tell.
    pub fn send(&self, message: &Message) {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = message.write(&mut *file) {
            println!("vmtest: report port: {error}");
        }
    }

    /// Waits until the host has all that was sent: the kernel only queues it, and
    /// powering off would lose the rest.
    pub fn wait_for_receipt(&self) {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = file.read_exact(&mut [0]);
    }
}

fn find() -> Option<PathBuf> {
    let ports = fs::read_dir("/sys/class/virtio-ports").ok()?;
    for port in ports.flatten() {
        let name = fs::read_to_string(port.path().join("name")).unwrap_or_default();
        if name.trim() == PORT_NAME {
            return Some(PathBuf::from("/dev").join(port.file_name()));
        }
    }
    None
}
