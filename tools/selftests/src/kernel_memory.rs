// SPDX-License-Identifier: GPL-2.0

//! Memory that the kernel allocates while a test runs, as its own trace events tell it.
//!
//! A [`Watch`] records in a buffer of its own, beside the events of the module. Work that the kernel
//! runs for the module has marks at its begin and end, so an allocation inside it is known by the
//! function that was at work.

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
}

impl Allocated {
    /// Whether it is an object of the kernel heap that the module asked for. What may be large, it
    /// asks for through a function of the kernel.
    pub fn is_ours(&self) -> bool {
        self.event != "mm_page_alloc"
            && (self.text.contains("5vidmm") || self.text.contains("kvrealloc_node_align"))
    }

    /// Whether the allocator took it for caches of its own while something was freed. It does without
    /// where there is nothing.
    pub fn is_by_freeing(&self) -> bool {
        self.text.contains("call_site=__pcs_")
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
        for event in EVENTS {
            write(&format!("events/{event}/enable"), "1");
        }
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
        for event in EVENTS {
            let _ = fs::write(format!("{INSTANCE}/events/{event}/enable"), "0");
        }
        let _ = fs::remove_dir(INSTANCE);
    }
}

fn write(file: &str, text: &str) {
    let path = format!("{INSTANCE}/{file}");
    fs::write(&path, text).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// Splits a line into the thread, the name of the event and its text.
fn split(line: &str) -> Option<(u32, &str, &str)> {
    let (head, rest) = line.split_once(" [")?;
    let (_, thread) = head.trim_end().rsplit_once('-')?;
    let (_, rest) = rest.split_once(": ")?;
    let (event, text) = rest.split_once(": ")?;
    Some((thread.parse().ok()?, event, text))
}

fn parse(text: &str) -> Recorded {
    let mut at_work: HashMap<u32, String> = HashMap::new();
    let mut recorded = Recorded {
        allocations: Vec::new(),
        runs: 0,
    };
    for (thread, event, text) in text.lines().filter_map(split) {
        match event {
            "workqueue_execute_start" if text.contains("[vidmm]") => {
                recorded.runs += 1;
                at_work.insert(thread, text.to_owned());
            }
            "workqueue_execute_start" => {}
            "workqueue_execute_end" => {
                at_work.remove(&thread);
            }
            _ => recorded.allocations.push(Allocated {
                event: event.to_owned(),
                text: text.to_owned(),
                work: at_work.get(&thread).cloned(),
            }),
        }
    }
    recorded
}
