// SPDX-License-Identifier: GPL-2.0
//! Runs programs, forwards what they print and keeps their time limit.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{kill_process_group, pidfd_open, Pid, PidfdFlags, Signal};

use super::port::Port;
use crate::channel::Message;
use crate::failure::{Failure, Result};

/// How long output of children left behind is waited for.
const DRAIN: Duration = Duration::from_secs(2);

/// Runs a shell command; both its outputs go to the user's terminal.
pub fn command(command: &str, port: &Port) -> Result<i32> {
    let merged = format!("exec 2>&1\n{command}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &merged]);
    run(&mut shell, None, port, Message::Output)
}

/// Starts a shell on the console and waits for its end. How its last command
/// ended says nothing about the machine.
pub fn shell() -> Result<i32> {
    // The leader of a new session gets the terminal that it opens.
    Command::new("setsid")
        .args(["sh", "-c", "exec sh -l </dev/ttyS0 >/dev/ttyS0 2>&1"])
        .status()?;
    Ok(0)
}

/// Runs a program. What it prints on its standard output is sent as `wrap` says,
/// errors go to the user's terminal. After `limit` it is killed, with -1.
pub fn run(
    program: &mut Command,
    limit: Option<Duration>,
    port: &Port,
    wrap: impl Fn(Vec<u8>) -> Message + Send + 'static,
) -> Result<i32> {
    let mut child = program
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| Failure::new(format!("cannot start {program:?}: {error}")))?;
    let (done, all_done) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        forward(output, port.clone(), wrap, done.clone());
    }
    if let Some(errors) = child.stderr.take() {
        forward(errors, port.clone(), Message::Output, done);
    }
    let code = match wait(&mut child, limit)? {
        Some(status) => code(status),
        None => -1,
    };
    for _ in 0..2 {
        let _ = all_done.recv_timeout(DRAIN);
    }
    Ok(code)
}

/// Waits for the end of a child; kills its process group at the limit.
fn wait(child: &mut Child, limit: Option<Duration>) -> Result<Option<ExitStatus>> {
    let Some(limit) = limit else {
        return Ok(Some(child.wait()?));
    };
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| Failure::new("a child without a process id"))?;
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    let timeout = Timespec::try_from(limit).map_err(|_| Failure::new("time limit too long"))?;
    let ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout))?;
    if ended == 0 {
        let _ = kill_process_group(pid, Signal::KILL);
        child.wait()?;
        return Ok(None);
    }
    Ok(Some(child.wait()?))
}

fn forward(
    mut from: impl Read + Send + 'static,
    port: Port,
    wrap: impl Fn(Vec<u8>) -> Message + Send + 'static,
    done: mpsc::Sender<()>,
) {
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            port.send(&wrap(buffer[..length].to_vec()));
        }
        let _ = done.send(());
    });
}

/// The exit code as a shell gives it.
fn code(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
