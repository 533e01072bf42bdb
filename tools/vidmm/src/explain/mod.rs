// SPDX-License-Identifier: GPL-2.0

//! `vidmm explain`: why submissions were slow.
//!
//! Records the trace events of the module while a program runs, or for some seconds, and shows each
//! submission as a timeline: what was paged for each of its portions, how long that and the portion itself
//! took, and which slots kept what across each cut.

mod record;
mod story;

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use clap::Args;

use self::record::Recording;
use self::story::{
    tell,
    Story, //
};
use crate::failure::Failure;
use crate::quantity;
use crate::table::{
    Align,
    Table, //
};

/// Show submissions as timelines of portions, paging and slots.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Seconds to record; without a command.
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 1.0)]
    seconds: f64,

    /// How many submissions to show, the slowest first.
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    slowest: usize,

    /// Show only those that were cut.
    #[arg(long)]
    cut: bool,

    /// Print for programs.
    #[arg(long)]
    json: bool,

    /// The program to record, with its arguments.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Cells of a bar.
const WIDTH: u64 = 40;

pub(crate) fn run(_device: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let recording = Recording::start()?;
    match arguments.command.split_first() {
        Some((program, rest)) => {
            let status = Command::new(program).args(rest).status();
            status.map_err(|error| Failure(format!("{program}: {error}")))?;
        }
        None => thread::sleep(Duration::from_secs_f64(
            arguments.seconds.clamp(0.0, 3600.0),
        )),
    }
    let mut stories = tell(&recording.stop()?);
    stories.retain(|story| !arguments.cut || story.portions.len() > 1);
    stories.sort_by_key(|story| std::cmp::Reverse(story.took_ns()));
    stories.truncate(arguments.slowest);
    if arguments.json {
        let text = serde_json::to_string_pretty(&stories);
        println!("{}", text.map_err(|error| Failure(error.to_string()))?);
        return Ok(());
    }
    if stories.is_empty() {
        println!("No submission has run.");
    }
    for story in &stories {
        print!("{}", show(story));
    }
    Ok(())
}

/// Returns a story as text.
fn show(story: &Story) -> String {
    let portions = match story.portions.len() {
        1 => "whole".to_owned(),
        count => format!("in {count} portions"),
    };
    let mut text = format!(
        "Submission {} of context {} ran {portions} in {}: {} paged in, {} out\n\n",
        story.submission,
        story.context,
        milliseconds(story.took_ns()),
        quantity::bytes(story.portions.iter().map(|portion| portion.bytes_in).sum()),
        quantity::bytes(story.portions.iter().map(|portion| portion.bytes_out).sum()),
    );
    let mut table = Table::new([
        ("bytes", Align::Right),
        ("paged in", Align::Right),
        ("out", Align::Right),
        ("wait", Align::Right),
        ("run", Align::Right),
        ("cut by", Align::Left),
        ("kept", Align::Left),
        ("░ waits and pages, █ runs", Align::Left),
    ]);
    for portion in &story.portions {
        let kept: Vec<String> = portion
            .kept
            .iter()
            .map(|(slot, allocation)| format!("{slot}:{allocation}"))
            .collect();
        table.row([
            format!("{}–{}", portion.start, portion.end),
            quantity::bytes(portion.bytes_in),
            quantity::bytes(portion.bytes_out),
            milliseconds(portion.wait_ns()),
            milliseconds(portion.run_ns()),
            portion
                .cut_by
                .map_or(String::new(), |cut| format!("allocation {cut}")),
            kept.join(" "),
            bar(story, portion),
        ]);
    }
    text.push_str(&table.to_string());
    text.push('\n');
    text
}

/// Returns when a portion waited and ran, drawn over the time of its submission.
fn bar(story: &Story, portion: &story::Portion) -> String {
    let whole = story.took_ns().max(1);
    let cell = |time: u64| time.saturating_sub(story.first_ns()) * WIDTH / whole;
    let begins = cell(portion.ready_ns);
    let runs = cell(portion.begin_ns);
    let ends = cell(portion.end_ns).max(runs + 1);
    let draw = |count: u64, what: &str| what.repeat(usize::try_from(count).unwrap_or(0));
    let mut bar = draw(begins, " ");
    bar.push_str(&draw(runs.saturating_sub(begins), "░"));
    bar.push_str(&draw(ends - runs, "█"));
    bar
}

fn milliseconds(nanoseconds: u64) -> String {
    format!(
        "{}.{:03} ms",
        nanoseconds / 1_000_000,
        nanoseconds / 1000 % 1000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_submission_is_shown_with_a_bar_for_each_portion() {
        let stories = tell(story::tests::TEXT);
        let text = show(&stories[0]);
        assert!(text.starts_with("Submission 3 of context 70 ran in 2 portions in 4.000 ms"));
        assert!(
            text.contains("0–512") && text.contains("512–1024"),
            "{text}"
        );
        assert!(
            text.contains("allocation 12") && text.contains("7:13"),
            "{text}"
        );
        assert!(text.matches('█').count() > 2);
    }
}
