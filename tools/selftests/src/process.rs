// SPDX-License-Identifier: GPL-2.0

//! Processes: children with a time limit, pipes, signals.
//!
//! A test uses [`Child`] for a second process: a client of its own, a victim of `kill -9`. It leads
//! no group of its own, so that the runner's kill reaches it too.

use std::{
    fs::File,
    io::{
        Read,
        Write, //
    },
    os::fd::{
        AsRawFd,
        FromRawFd, //
    },
    panic,
};

use crate::clock;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It returned this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// Forks; the child runs `body` and ends with its code.
pub fn fork(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child uses nothing that another thread of the parent may hold: the runner has one
    // thread, and tests fork before they start threads.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        let code = body();
        // SAFETY: ends the process without the exit handlers it shares with the parent.
        unsafe { libc::_exit(code) }
    }
    child
}

/// Makes the calling process leader of a group that dies with its parent.
pub fn lead_group() {
    // SAFETY: plain calls of a process on itself.
    let result = unsafe { libc::setpgid(0, 0) };
    assert_eq!(result, 0, "setpgid failed");
    die_with_parent();
}

/// Asks for SIGKILL at the end of the parent.
fn die_with_parent() {
    // SAFETY: a plain call of a process on itself.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Kills a group of processes, and its leader also before it leads.
pub fn kill_group(leader: i32) {
    send(-leader, libc::SIGKILL);
    send(leader, libc::SIGKILL);
}

/// Sends a signal; nobody to receive it is no error.
fn send(process: i32, signal: i32) {
    // SAFETY: a plain call on a process that this one has started.
    unsafe { libc::kill(process, signal) };
}

/// How `child` ended, if it did.
pub fn reap(child: i32) -> Option<End> {
    let mut status = 0;
    // SAFETY: `status` is a local that the call fills.
    let result = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) };
    if result != child {
        return None;
    }
    Some(if libc::WIFSIGNALED(status) {
        End::Signal(libc::WTERMSIG(status))
    } else {
        End::Code(libc::WEXITSTATUS(status))
    })
}

/// A pipe: the reading end, which never blocks, and the writing end.
pub fn pipe() -> (File, File) {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    let result = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
    assert_eq!(result, 0, "pipe failed");
    // SAFETY: the descriptor is new and owned by nobody else.
    let reader = unsafe { File::from_raw_fd(ends[0]) };
    // SAFETY: the descriptor is new and owned by nobody else.
    let writer = unsafe { File::from_raw_fd(ends[1]) };
    // SAFETY: a live descriptor.
    unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    (reader, writer)
}

/// A second process of a test, killed at the end of the scope.
pub struct Child {
    process: i32,
    ended: Option<End>,
    reader: File,
    text: Vec<u8>,
}

impl Child {
    /// Starts `body` in a process of its own. What it writes can be read with [`Child::line`]; a
    /// panic ends it with code 1 and becomes part of [`Child::join`]'s message.
    pub fn start(body: impl FnOnce(&mut Says)) -> Self {
        let (reader, writer) = pipe();
        let process = fork(|| {
            die_with_parent();
            let mut says = Says(writer);
            let voice = says.0.try_clone().expect("a descriptor");
            panic::set_hook(Box::new(move |info| {
                let text = format!("panic: {info}").replace('\n', " ");
                // The parent may be gone, and then nobody listens.
                let _ = (&voice).write_all(format!("{text}\n").as_bytes());
            }));
            let run = panic::AssertUnwindSafe(|| body(&mut says));
            i32::from(panic::catch_unwind(run).is_err())
        });
        Self {
            process,
            ended: None,
            reader,
            text: Vec::new(),
        }
    }

    /// Waits for the next line that the child says.
    pub fn line(&mut self) -> String {
        let mut line = None;
        clock::wait_until("the other process says something", || {
            let end = self.ended.or_else(|| reap(self.process));
            self.drain();
            if let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let text: Vec<u8> = self.text.drain(..=end).collect();
                line = Some(String::from_utf8_lossy(&text).trim_end().to_owned());
            }
            if let Some(end) = end {
                (self.process, self.ended) = (0, Some(end));
                assert!(line.is_some(), "the other process has ended with {end:?}");
            }
            line.is_some()
        });
        let line = line.unwrap_or_default();
        assert!(!line.starts_with("panic: "), "in the other process: {line}");
        line
    }

    /// The whole lines that the child has said and nobody has taken.
    pub fn heard(&mut self) -> Vec<String> {
        self.drain();
        let end = self.text.iter().rposition(|byte| *byte == b'\n');
        let text: Vec<u8> = self.text.drain(..end.map_or(0, |end| end + 1)).collect();
        let text = String::from_utf8_lossy(&text);
        text.lines().map(str::to_owned).collect()
    }

    /// Asserts that it has not ended.
    pub fn assert_runs(&mut self) {
        self.ended = self.ended.or_else(|| reap(self.process));
        if let Some(end) = self.ended {
            self.process = 0;
            self.drain();
            let text = String::from_utf8_lossy(&self.text);
            panic!("the other process has ended with {end:?}: {text}");
        }
    }

    /// Its process id.
    pub fn number(&self) -> i32 {
        self.process
    }

    /// Reads its memory as a debugger does.
    pub fn read_memory(&self, address: u64, bytes: &mut [u8]) -> Result<usize, i32> {
        let local = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        let remote = libc::iovec {
            iov_base: address as *mut _,
            iov_len: bytes.len(),
        };
        // SAFETY: one entry each, which are locals; the first names a slice of the caller's.
        let result = unsafe { libc::process_vm_readv(self.process, &local, 1, &remote, 1, 0) };
        usize::try_from(result)
            .map_err(|_| std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }

    /// Kills the child and waits until it is gone.
    pub fn kill(mut self) {
        self.kill_and_reap();
    }

    /// Waits until the child has ended; returns how, and what it said.
    pub fn end(mut self) -> (End, String) {
        let mut end = self.ended;
        clock::wait_until("the other process ends", || {
            self.drain();
            end = end.or_else(|| reap(self.process));
            end.is_some()
        });
        self.process = 0;
        self.drain();
        let text = String::from_utf8_lossy(&self.text).trim_end().to_owned();
        (end.unwrap_or(End::Code(-1)), text)
    }

    /// Waits until the child has ended well.
    pub fn join(self) {
        let (end, text) = self.end();
        assert_eq!(end, End::Code(0), "the other process: {text}");
    }

    fn drain(&mut self) {
        let mut part = [0; 1024];
        while let Ok(length @ 1..) = self.reader.read(&mut part) {
            self.text.extend_from_slice(&part[..length]);
        }
    }

    fn kill_and_reap(&mut self) {
        if self.process == 0 {
            return;
        }
        send(self.process, libc::SIGKILL);
        let gone = clock::holds_within(clock::patience(), || reap(self.process).is_some());
        self.process = 0;
        assert!(
            gone || std::thread::panicking(),
            "the other process cannot be killed"
        );
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill_and_reap();
    }
}

/// The voice of a child.
pub struct Says(File);

impl Says {
    /// Says one line.
    pub fn line(&mut self, text: &str) {
        // The parent may be gone, and then nobody listens.
        let _ = self.0.write_all(format!("{text}\n").as_bytes());
    }
}

/// Sleeps until a signal kills the process.
pub fn wait_for_the_end() -> ! {
    loop {
        // SAFETY: takes no argument.
        unsafe { libc::pause() };
    }
}

/// Runs `call`, which waits, while signals arrive again and again, and returns its result.
///
/// The handler does not ask for restarts, so a wait that honours signals ends with `EINTR`.
pub fn interrupted<T>(call: impl FnOnce() -> T) -> T {
    extern "C" fn ignore(_: i32) {}
    let handler: extern "C" fn(i32) = ignore;
    // SAFETY: an all-zero action is valid: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    // SAFETY: the handler does nothing.
    unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) };
    // SAFETY: takes no argument.
    let target = unsafe { libc::pthread_self() };
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Acquire) {
                // SAFETY: the target thread lives until the scope ends.
                unsafe { libc::pthread_kill(target, libc::SIGUSR1) };
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let result = call();
        done.store(true, std::sync::atomic::Ordering::Release);
        result
    })
}

/// Number of the calling thread, as trace events name it.
pub fn thread_id() -> i32 {
    // SAFETY: takes no argument.
    unsafe { libc::gettid() }
}

/// Becomes an ordinary user, for the rest of the process.
pub fn drop_privileges() {
    // SAFETY: plain calls of a process on itself.
    let result = unsafe { libc::setresuid(65534, 65534, 65534) };
    assert_eq!(result, 0, "setresuid failed");
}

/// Ends this process with a core dump, however large, while `kept` is alive.
pub fn dump_core<T>(kept: &[T]) -> ! {
    let unlimited = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: a local structure.
    let result = unsafe { libc::setrlimit(libc::RLIMIT_CORE, &unlimited) };
    assert_eq!(result, 0, "setrlimit failed for {} mappings", kept.len());
    std::process::abort()
}
