// SPDX-License-Identifier: GPL-2.0

//! `queues`: paging queues and contexts, and how far they are.
//!
//! Of a paging queue `last` is the last fence value that was handed out and `reached` the one that
//! its fence has. Of a context `last` is the last submission that was accepted, `reached` the last
//! one that has finished; `waiting` submissions are in line, `running` ones are with the node.

use kernel::fmt;

use crate::object::{
    adapter::Adapter,
    context::{
        Context,
        Mode, //
    },
    paging_queue::{
        PagingQueue,
        Priority, //
    },
};

use super::end_with_name;

pub(super) fn show(adapter: &Adapter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let registries = adapter.registries();
    registries.queues.for_each(|queue| show_queue(queue, f))?;
    registries
        .contexts
        .for_each(|context| show_context(context, f))
}

fn show_queue(queue: &PagingQueue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let priority = match queue.priority() {
        Priority::Low => -1,
        Priority::Normal => 0,
        Priority::High => 1,
    };
    write!(
        f,
        "queue={} device={} priority={priority} fence={} last={} reached={}",
        queue.number(),
        queue.device().number(),
        queue.fence().number(),
        queue.last_value(),
        queue.fence().value().0,
    )?;
    end_with_name(f, queue.name())
}

fn show_context(context: &Context, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mode = match context.mode() {
        Mode::PatchedList => "patched_list",
        Mode::PatchedExplicit => "patched_explicit",
        Mode::Virtual => "virtual",
    };
    let tuning = context.tuning();
    let (waiting, running) = context.depth();
    write!(
        f,
        "context={} device={} node={} mode={mode} priority={} timeout_ms={} last={} reached={} \
         waiting={waiting} running={running}",
        context.number(),
        context.device().number(),
        context.node().0,
        tuning.priority,
        tuning.timeout_ms,
        context.last_id(),
        context.progress().value().0,
    )?;
    end_with_name(f, context.name())
}
