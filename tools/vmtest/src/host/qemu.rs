// SPDX-License-Identifier: GPL-2.0
//! The command line of QEMU.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{memfd_create, MemfdFlags};
use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};

use super::kernel::Kernel;
use crate::channel::PORT_NAME;
use crate::failure::{Failure, Result};

/// What the guest's clock counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Real time.
    Wall,
    /// Executed instructions, one nanosecond each; needs a single processor.
    Instructions,
}

/// Who talks on the serial console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Console {
    /// The output is read and checked by us.
    Captured,
    /// The user's terminal.
    Interactive,
}

/// The virtual hardware.
#[derive(Clone, Debug)]
pub struct Hardware {
    /// Memory size, as QEMU takes it.
    pub memory: String,
    /// Number of processors.
    pub processors: u32,
    /// What the clock counts.
    pub clock: Clock,
    /// Who talks on the console.
    pub console: Console,
    /// Appended to the kernel's command line.
    pub kernel_arguments: Vec<String>,
    /// Appended to QEMU's command line.
    pub extra: Vec<String>,
}

/// A started QEMU and our ends of its wires.
pub struct Vm {
    /// The process.
    pub process: Child,
    /// Frames from the guest.
    pub reports: UnixStream,
    /// The console, when it is captured.
    pub console: Option<UnixStream>,
}

/// Starts QEMU. It dies with this process, and leaves no file behind: the
/// initramfs is passed as an open memory file.
pub fn start(kernel: &Kernel, hardware: &Hardware, initramfs: &[u8], log: &Path) -> Result<Vm> {
    let initramfs = memory_file(initramfs)?;
    let (reports, guest_reports) = wire()?;
    // setpriv asks the kernel to end QEMU with its parent.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
    command.args(["-nodefaults", "-no-user-config", "-display", "none"]);
    command.args(["-no-reboot", "-machine", "q35"]);
    command.args(["-m", &hardware.memory]);
    accelerator(&mut command, hardware);
    command.arg("-kernel").arg(&kernel.image);
    command.args([
        "-initrd",
        &format!("/proc/self/fd/{}", initramfs.as_raw_fd()),
    ]);
    command.args(["-append", &kernel_command_line(hardware)]);
    command.args(["-device", "virtio-serial-pci"]);
    command.args([
        "-chardev",
        &format!("socket,id=reports,fd={}", guest_reports.as_raw_fd()),
        "-device",
        &format!("virtserialport,chardev=reports,name={PORT_NAME}"),
    ]);
    let (console, guest_console) = match hardware.console {
        Console::Captured => {
            let (ours, theirs) = wire()?;
            let device = format!("socket,id=console,fd={}", theirs.as_raw_fd());
            command.args(["-chardev", &device, "-serial", "chardev:console"]);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            (Some(UnixStream::from(ours)), Some(theirs))
        }
        Console::Interactive => {
            let device = format!(
                "stdio,id=console,mux=on,signal=off,logfile={}",
                log.display()
            );
            command.args(["-chardev", &device, "-serial", "chardev:console"]);
            command.args(["-mon", "chardev=console"]);
            (None, None)
        }
    };
    command.args(&hardware.extra);
    let process = command.spawn().map_err(|error| {
        Failure::new(format!(
            "cannot start QEMU ({error}): install qemu-system-x86 and util-linux"
        ))
    })?;
    // Our copies of the guest's ends must go, or their closing goes unnoticed.
    drop((guest_reports, guest_console, initramfs));
    Ok(Vm {
        process,
        reports: UnixStream::from(reports),
        console,
    })
}

fn accelerator(command: &mut Command, hardware: &Hardware) {
    match hardware.clock {
        Clock::Instructions => {
            command.args([
                "-accel",
                "tcg,thread=single",
                "-icount",
                "shift=0,sleep=off",
            ]);
            command.args(["-cpu", "max,-erms", "-smp", "1"]);
        }
        Clock::Wall => {
            let processors = hardware.processors.to_string();
            if can_virtualise() {
                command.args(["-accel", "kvm"]);
            }
            // QEMU takes the first accelerator that works.
            command.args(["-accel", "tcg,thread=multi"]);
            // Emulated, `rep stosb` clears a page one byte per step. With five levels of page tables, KASAN
            // takes good addresses for wild ones while the kernel identifies its first processor, if an
            // interrupt comes just then; and a report switches lockdep off.
            command.args(["-cpu", "max,-erms,-la57", "-smp", &processors]);
        }
    }
}

/// Whether this machine can run guests by itself: /dev/kvm alone says nothing.
fn can_virtualise() -> bool {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let capable = processors
        .lines()
        .filter(|line| line.starts_with("flags"))
        .any(|line| line.split(' ').any(|flag| flag == "vmx" || flag == "svm"));
    capable
        && File::options()
            .read(true)
            .write(true)
            .open("/dev/kvm")
            .is_ok()
}

fn kernel_command_line(hardware: &Hardware) -> String {
    let quiet = match hardware.console {
        Console::Captured => "loglevel=5",
        Console::Interactive => "quiet",
    };
    // The kernel's first process is us, with the part that it shall play.
    // On a busy host the emulated timer can miss the moment at which the kernel tests it.
    let mut words = vec![
        "console=ttyS0",
        quiet,
        "no_timer_check",
        "panic=-1",
        "rdinit=/init",
    ];
    words.extend(hardware.kernel_arguments.iter().map(String::as_str));
    words.join(" ")
}

/// A memory file that a child inherits.
fn memory_file(content: &[u8]) -> Result<OwnedFd> {
    let file = memfd_create("initramfs", MemfdFlags::empty())?;
    let mut file = File::from(file);
    file.write_all(content)?;
    Ok(OwnedFd::from(file))
}

/// A pair of connected sockets: ours stays here, the other is inherited.
fn wire() -> Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::empty(),
        None,
    )?;
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC)?;
    Ok((ours, theirs))
}
