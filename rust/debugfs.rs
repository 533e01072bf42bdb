// SPDX-License-Identifier: GPL-2.0

//! The windows: debug files that show what the objects are, and one that disturbs them on purpose.
//!
//! Under `/sys/kernel/debug/vidmm/N/` for adapter N. `stats` has one `name: value` per line, the
//! others have one object per line, as pairs `key=value` with a blank between two of them. Numbers
//! are decimal; offsets, addresses and bit masks are hexadecimal with `0x`. Lists are joined by
//! commas; what there is nothing to say about is a `-`. Objects are named by their numbers on the
//! adapter.
//!
//! | file | one line for each |
//! |---|---|
//! | `caps` | adapter, segment and node: what cannot change |
//! | `segments` | segment: how full it is |
//! | `allocations` | instance: where it is |
//! | `processes` | client, device, context, queue and fence, with its handle |
//! | `pagetables` | page table and its entries |
//! | `residency` | entry of the residency requirement list of a device |
//! | `queues` | paging queue and context: what is in them |
//! | `fences` | fence: its value |
//! | `sources` | display source: what it shows |
//! | `stats` | counter |
//! | `inject` | (written only) commands, see [`inject`] |
//!
//! A file is a walk over living objects, one after the other, and no snapshot. What enters here:
//! text. What does not: anything that programs other than tests and people rely on.

mod allocations;
mod caps;
mod fences;
mod inject;
mod pagetables;
mod processes;
mod queues;
mod residency;
mod segments;
mod sources;
mod stats;

use kernel::{
    debugfs::{
        Dir,
        Scope,
        Writer, //
    },
    fmt,
    prelude::*,
    str::CString,
    sync::Arc, //
};

use crate::object::{
    adapter::Adapter,
    name, //
};

use self::inject::Inject;

/// Writes the content of a file.
type Show = fn(&Adapter, &mut fmt::Formatter<'_>) -> fmt::Result;

/// A file that shows something.
struct Window {
    adapter: Arc<Adapter>,
    show: Show,
}

impl Writer for Window {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.show)(&self.adapter, f)
    }
}

/// The files of an adapter.
struct Files {
    windows: [(&'static CStr, Window); 10],
    inject: Inject,
}

impl Files {
    fn new(adapter: &Arc<Adapter>) -> Self {
        let window = |show| Window {
            adapter: adapter.clone(),
            show,
        };
        Self {
            windows: [
                (c"allocations", window(allocations::show as Show)),
                (c"caps", window(caps::show)),
                (c"fences", window(fences::show)),
                (c"pagetables", window(pagetables::show)),
                (c"processes", window(processes::show)),
                (c"queues", window(queues::show)),
                (c"residency", window(residency::show)),
                (c"segments", window(segments::show)),
                (c"sources", window(sources::show)),
                (c"stats", window(stats::show)),
            ],
            inject: Inject::new(adapter.clone()),
        }
    }
}

/// The files, for as long as this lives.
pub(crate) struct Windows {
    /// First, so that it goes before the directory it is in.
    _adapter: Pin<KBox<Scope<Files>>>,
    _directory: Dir,
}

impl Windows {
    /// Makes the files of an adapter appear.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(crate) fn new(adapter: &Arc<Adapter>) -> Result<Self> {
        let directory = Dir::new(c"vidmm");
        let number = CString::try_from_fmt(fmt!("{}", adapter.id()))?;
        let scope = directory.scope(
            Ok::<_, Error>(Files::new(adapter)),
            &number,
            |files: &Files, dir| {
                for (name, window) in &files.windows {
                    dir.read_only_file(name, window);
                }
                dir.write_only_file(c"inject", &files.inject);
            },
        );
        let files = KBox::pin_init(scope, GFP_KERNEL)?;
        Ok(Self {
            _adapter: files,
            _directory: directory,
        })
    }
}

/// Ends a line with the name of an object, if it has one.
fn end_with_name(f: &mut fmt::Formatter<'_>, name: &name::Slot) -> fmt::Result {
    match name.get() {
        Some(name) => writeln!(f, " name={}", name.as_str()),
        None => writeln!(f, " name=-"),
    }
}

/// Writes a number, or `-` if there is none.
fn write_or_dash(f: &mut fmt::Formatter<'_>, number: Option<u64>) -> fmt::Result {
    match number {
        Some(number) => write!(f, "{number}"),
        None => f.write_str("-"),
    }
}
