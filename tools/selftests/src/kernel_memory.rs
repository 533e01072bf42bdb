// SPDX-License-Identifier: GPL-2.0

//! Memory that the kernel allocates while a test runs, as its own trace events tell it.
//!
//! A [`Watch`] records in a buffer of its own, beside the events of the module. Work that the kernel
//! runs for the module has marks at its begin and end, so an allocation inside it is known by the
//! function that was at work. What interrupts take meanwhile is told apart.

use std::{
    collections::HashMap,
    fs, //
};

const INSTANCE: &str = "/sys/kernel/tracing/instances/vidmm-memory";

/// Events that are recorded.
const EVENTS: [&str; 5] = [
    "kmem/kmalloc",
    "kmem/kmem_cache_alloc",
    "kmem/mm_page_alloc",
    "workqueue/workqueue_execute_start",
    "workqueue/workqueue_execute_end",
];

/// The event of whole pages.
const PAGES: &str = "mm_page_alloc";

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// What the calling thread does.
    ThisThread,
    /// What everybody does.
    Everybody,
}

/// A recording that runs; removed at the end of the scope.
pub struct Watch(());

/// One allocation.
#[derive(Clone, Debug)]
pub struct Allocated {
    /// Name of the event.
    pub event: String,
    /// Its text.
    pub text: String,
    /// The work function of the module inside which it happened, if it did.
    pub work: Option<String>,
    /// Who needed it.
    pub need: Need,
    thread: u32,
}

/// Who needed an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The code that ran.
    Caller,
    /// The allocator, for caches of its own while something was freed. It does without where there is
    /// nothing.
    Freeing,
}

impl Allocated {
    /// Whether it is an object of the kernel heap that the module asked for. What may be large, it
    /// asks for through a function of the kernel.
    pub fn is_ours(&self) -> bool {
        self.event != PAGES
            && (self.text.contains("5vidmm") || self.text.contains("kvrealloc_node_align"))
    }

    /// Whether it is charged to a control group.
    pub fn is_charged(&self) -> bool {
        self.text.contains("accounted=true") || self.text.contains("ACCOUNT")
    }
}

/// What was recorded.
pub struct Recorded {
    /// All allocations, in order.
    pub allocations: Vec<Allocated>,
    /// How often work of the module ran.
    pub runs: usize,
}

impl Watch {
    /// Begins to record.
    pub fn start(scope: Scope) -> Self {
        fs::create_dir_all(INSTANCE).expect("an instance of the tracer");
        write("tracing_on", "0");
        write("buffer_size_kb", "8192");
        write("trace_clock", "mono");
        let pid = match scope {
            Scope::ThisThread => crate::process::thread_id().to_string(),
            Scope::Everybody => String::new(),
        };
        write("set_event_pid", &pid);
        EVENTS.iter().for_each(|event| enable(event));
        write("trace", "");
        write("tracing_on", "1");
        Self(())
    }

    /// Ends the recording. The module is still loaded, so that its functions have names.
    pub fn stop(self) -> Recorded {
        write("tracing_on", "0");
        let text = fs::read_to_string(format!("{INSTANCE}/trace")).expect("a trace");
        assert!(!text.contains("LOST"), "trace events were lost");
        parse(&text)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = fs::write(format!("{INSTANCE}/tracing_on"), "0");
        // Nearly nothing: its memory is needed.
        let _ = fs::write(format!("{INSTANCE}/buffer_size_kb"), "4");
    }
}

/// Switches an event on, and leaves it on: switching patches code that runs all the time, which under
/// emulation is a risk. A machine that is made for tests has them on from the start.
fn enable(event: &str) {
    let file = format!("events/{event}/enable");
    let on = fs::read_to_string(format!("{INSTANCE}/{file}"));
    if on.map_or(true, |text| text.trim() != "1") {
        write(&file, "1");
    }
}

fn write(file: &str, text: &str) {
    let path = format!("{INSTANCE}/{file}");
    fs::write(&path, text).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// One line of the trace.
struct Line<'a> {
    thread: u32,
    /// Whether the thread itself was running, and not an interrupt on top of it.
    in_thread: bool,
    event: &'a str,
    text: &'a str,
}

impl<'a> Line<'a> {
    /// Takes apart `comm-123     [001] d.s2.    12.345678: name: text`; the third flag is a letter in an
    /// interrupt.
    fn parse(line: &'a str) -> Option<Self> {
        let (head, rest) = line.split_once(" [")?;
        let (_, thread) = head.trim_end().rsplit_once('-')?;
        let (state, rest) = rest.split_once(": ")?;
        let flags = state.split_whitespace().nth(1)?;
        let (event, text) = rest.split_once(": ")?;
        Some(Self {
            thread: thread.parse().ok()?,
            in_thread: flags.chars().nth(2)? == '.',
            event,
            text,
        })
    }
}

fn parse(text: &str) -> Recorded {
    let mut at_work: HashMap<u32, String> = HashMap::new();
    let mut recorded = Recorded {
        allocations: Vec::new(),
        runs: 0,
    };
    for line in text.lines().filter_map(Line::parse) {
        match line.event {
            "workqueue_execute_start" if line.text.contains("[vidmm]") => {
                recorded.runs += 1;
                at_work.insert(line.thread, line.text.to_owned());
            }
            "workqueue_execute_start" => {}
            "workqueue_execute_end" => {
                at_work.remove(&line.thread);
            }
            // What an interrupt takes is not taken by the work that it interrupts.
            _ => {
                let work = at_work.get(&line.thread).filter(|_| line.in_thread);
                let need = recorded.need_of(&line);
                recorded.allocations.push(Allocated {
                    event: line.event.to_owned(),
                    text: line.text.to_owned(),
                    work: work.cloned(),
                    need,
                    thread: line.thread,
                });
            }
        }
    }
    recorded
}

impl Recorded {
    /// Says who needs the allocation of `line`. If that is the allocator, so are the pages that the
    /// thread took just before: they are behind that object.
    fn need_of(&mut self, line: &Line<'_>) -> Need {
        if !line.text.contains("call_site=__pcs_") {
            return Need::Caller;
        }
        let mine = self.allocations.iter_mut().rev();
        mine.filter(|allocated| allocated.thread == line.thread)
            .take_while(|allocated| allocated.event == PAGES)
            .for_each(|pages| pages.need = Need::Freeing);
        Need::Freeing
    }
}
