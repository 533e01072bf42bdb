// SPDX-License-Identifier: GPL-2.0
//! Runs one VM from start to end and gathers what came out of it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::kernel::Kernel;
use super::qemu::{self, Hardware, Vm};
use super::terminal::{self, Progress};
use crate::channel::Message;
use crate::failure::{Failure, Result};
use crate::kernel_log::{Report, Scanner};

/// How long a VM may take to go away after its job.
const POWER_OFF: Duration = Duration::from_secs(10);

/// Says to the guest that its last message has arrived.
const RECEIPT: &[u8] = b"!";

/// A VM to run.
pub struct Plan<'a> {
    /// What to boot.
    pub kernel: &'a Kernel,
    /// On what.
    pub hardware: Hardware,
    /// With which first file system.
    pub initramfs: Vec<u8>,
    /// Name of the job, for log files and progress lines.
    pub name: String,
    /// Directory of the console log.
    pub logs: PathBuf,
    /// Directory for the files that the job produces.
    pub results: PathBuf,
    /// When to give up.
    pub limit: Duration,
}

/// How a run ended.
pub struct Outcome {
    /// Exit code of the job; none when the VM ended before it.
    pub code: Option<i32>,
    /// What is wrong besides the exit code: one sentence each.
    pub complaints: Vec<String>,
    /// Reports in the kernel log.
    pub reports: Vec<Report>,
    /// Suspected leaks, as kmemleak prints them.
    pub leaks: Vec<String>,
    /// Where the console log is.
    pub log: PathBuf,
}

/// What a task sees while the VM runs.
pub trait Listener {
    /// A message that the run itself has no use for.
    fn message(&mut self, _message: &Message) {}

    /// A line of the console.
    fn console(&mut self, _line: &str) {}
}

/// A listener that does not listen.
pub struct Deaf;

impl Listener for Deaf {}

enum Event {
    Message(Message),
    Console(String),
    Broken(String),
}

/// How often a boot is tried that the emulator spoils.
const BOOTS: usize = 4;

/// How long the console of a kernel that boots says nothing at most, on a busy
/// machine as well.
const SILENCE: Duration = Duration::from_secs(180);

/// Boots the VM and follows it to its end.
///
/// QEMU's multi-threaded emulator sometimes runs a breakpoint that the kernel,
/// patching its own code, has already taken back; the kernel then dies of an
/// unexpected "int3", mostly while it boots. Such a boot has told nothing about
/// the module, so it is done again, and so is one that falls silent. Once the
/// guest is up nothing is repeated.
pub fn run(plan: &Plan<'_>, listener: &mut impl Listener) -> Result<Outcome> {
    fs::create_dir_all(&plan.logs)?;
    let mut progress = Progress::new();
    for _ in 1..BOOTS {
        let run = run_once(plan, progress, listener)?;
        let why = match run {
            Run { ready: true, .. } => return Ok(run.finish()),
            Run { silent: true, .. } => "the boot fell silent",
            _ if run.is_lost_breakpoint() => "the emulator lost a breakpoint during the boot",
            _ => return Ok(run.finish()),
        };
        progress = run.progress;
        progress.say(&format!("{why}: trying again"));
    }
    Ok(run_once(plan, progress, listener)?.finish())
}

fn run_once(plan: &Plan<'_>, mut progress: Progress, listener: &mut impl Listener) -> Result<Run> {
    let log = plan.logs.join(format!("{}.log", plan.name));
    progress.say(&format!(
        "booting the {} kernel {}",
        plan.kernel.flavour.name(),
        plan.kernel.release
    ));
    let mut vm = qemu::start(plan.kernel, &plan.hardware, &plan.initramfs, &log)?;
    let events = listen(&mut vm, &log)?;
    let mut run = Run {
        outcome: Outcome {
            code: None,
            complaints: Vec::new(),
            reports: Vec::new(),
            leaks: Vec::new(),
            log,
        },
        scanner: Scanner::new(),
        progress,
        results: plan.results.clone(),
        reports: vm.reports.try_clone()?,
        ready: false,
        silent: false,
    };
    run.follow(&events, Instant::now() + plan.limit, plan.limit, listener);
    let _ = vm.process.kill();
    let _ = vm.process.wait();
    Ok(run)
}

/// Starts the threads that turn both wires into events.
fn listen(vm: &mut Vm, log: &Path) -> Result<Receiver<Event>> {
    let (sender, events) = mpsc::channel();
    let reports = vm.reports.try_clone()?;
    let report_sender = sender.clone();
    thread::spawn(move || read_messages(reports, &report_sender));
    if let Some(console) = vm.console.take() {
        let log = File::create(log)?;
        thread::spawn(move || read_console(console, log, &sender));
    }
    Ok(events)
}

fn read_messages(reports: UnixStream, events: &Sender<Event>) {
    let mut reports = BufReader::new(reports);
    loop {
        let event = match Message::read(&mut reports) {
            Ok(Some(message)) => Event::Message(message),
            Ok(None) => return,
            // QEMU that is killed resets the wire.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return,
            Err(error) => Event::Broken(format!("report port: {error}")),
        };
        let broken = matches!(event, Event::Broken(_));
        if events.send(event).is_err() || broken {
            return;
        }
    }
}

fn read_console(console: UnixStream, mut log: File, events: &Sender<Event>) {
    let mut console = BufReader::new(console);
    let mut line = Vec::new();
    while let Ok(1..) = console.read_until(b'\n', &mut line) {
        let _ = log.write_all(&line);
        let text = String::from_utf8_lossy(&line);
        let event = Event::Console(text.trim_end_matches(['\r', '\n']).to_owned());
        line.clear();
        if events.send(event).is_err() {
            return;
        }
    }
}

struct Run {
    outcome: Outcome,
    scanner: Scanner,
    progress: Progress,
    results: PathBuf,
    /// The wire that messages come from.
    reports: UnixStream,
    ready: bool,
    /// Whether the boot came to a halt without a word.
    silent: bool,
}

impl Run {
    /// Handles events until the VM is gone, the job is over or time is up.
    fn follow(
        &mut self,
        events: &Receiver<Event>,
        mut deadline: Instant,
        limit: Duration,
        listener: &mut impl Listener,
    ) {
        let mut heard = Instant::now();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match events.recv_timeout(left.min(Duration::from_secs(1))) {
                Ok(event) => {
                    heard = Instant::now();
                    let was_over = self.outcome.code.is_some();
                    self.event(event, listener);
                    if !was_over && self.outcome.code.is_some() {
                        deadline = Instant::now() + POWER_OFF;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {
                    if !self.ready && heard.elapsed() > SILENCE {
                        let seconds = SILENCE.as_secs();
                        let complaint = format!("the boot said nothing for {seconds} seconds");
                        self.outcome.complaints.push(complaint);
                        self.silent = true;
                        return;
                    }
                    if !self.ready {
                        self.progress.tick("booting");
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    if self.outcome.code.is_none() {
                        self.outcome.complaints.push(format!(
                            "the VM was stopped after {} seconds without an end",
                            limit.as_secs()
                        ));
                    }
                    return;
                }
            }
        }
    }

    fn event(&mut self, event: Event, listener: &mut impl Listener) {
        match event {
            Event::Console(line) => {
                self.scanner.line(&line);
                listener.console(&line);
            }
            Event::Broken(text) => self.outcome.complaints.push(text),
            Event::Message(message) => self.message(message, listener),
        }
    }

    fn message(&mut self, message: Message, listener: &mut impl Listener) {
        self.progress.clear();
        match message {
            Message::Ready => {
                self.ready = true;
                self.progress.say("the guest is up");
                listener.message(&Message::Ready);
            }
            Message::Output(bytes) => terminal::output(&bytes),
            Message::Complaint(text) => self.outcome.complaints.push(text),
            Message::Leak(text) => self.outcome.leaks.push(text),
            Message::End(code) => {
                self.outcome.code = Some(code);
                // The guest powers off when it has this receipt.
                let _ = self.reports.write_all(RECEIPT);
            }
            Message::File(name, bytes) => {
                if let Err(failure) = save(&self.results, &name, &bytes) {
                    self.outcome.complaints.push(failure.to_string());
                }
            }
            other => listener.message(&other),
        }
    }

    fn is_lost_breakpoint(&self) -> bool {
        let first = self.scanner.reports().first();
        first.is_some_and(|report| report.lines.iter().any(|line| line.contains("Oops: int3")))
    }

    fn finish(mut self) -> Outcome {
        self.progress.clear();
        self.outcome.reports = self.scanner.reports().to_vec();
        if self.outcome.code.is_none() && self.outcome.complaints.is_empty() {
            let why = if self.scanner.has_panicked() {
                "the kernel panicked"
            } else {
                "the VM ended before the job"
            };
            self.outcome.complaints.push(why.to_owned());
        }
        self.outcome
    }
}

/// Saves a file of the guest below a directory of ours, and nowhere else.
fn save(directory: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let name = Path::new(name);
    let inside = name
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !inside {
        return Err(Failure::new(format!(
            "the guest sent a file named {name:?}"
        )));
    }
    let path = directory.join(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(&path, bytes)?;
    Ok(())
}
