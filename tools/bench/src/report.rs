// SPDX-License-Identifier: GPL-2.0

//! The report: a line per row, a summary, and the same as JSON.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::{
    catalogue::Catalogue,
    evaluate::{
        GoalResult,
        Ratio,
        RowResult,
        Verdict, //
    },
    failure::{
        Failure,
        Result, //
    },
    measure::{
        median,
        Measured, //
    },
    mode::Mode, //
};

/// Prints what can be measured.
pub fn list(catalogue: &Catalogue) {
    for row in catalogue.rows() {
        println!("row {}: {}", row.name, row.what);
    }
    for operation in catalogue.operations() {
        println!("operation {}", operation.name);
    }
}

/// Results in the form in which they are shown.
pub struct Report<'a> {
    mode: Mode,
    measured: &'a Measured,
    results: &'a [RowResult],
}

impl<'a> Report<'a> {
    /// A report on rows and the operations they are made of.
    pub fn new(mode: Mode, measured: &'a Measured, results: &'a [RowResult]) -> Self {
        Self {
            mode,
            measured,
            results,
        }
    }

    /// Prints a line per row, and a summary.
    pub fn print(&self) {
        println!("costs in {}", self.mode.unit());
        println!(
            "row | vidmm | peer | floor | ratio to peer | ratio to floor | goal | range over rounds | verdict"
        );
        for result in self.results {
            println!("{}", self.line(result));
        }
        println!("{}", self.summary());
    }

    fn line(&self, result: &RowResult) -> String {
        let ratio = |ratio: Option<Ratio>| ratio.map_or("-".into(), |ratio| short(ratio.median));
        let mut verdict = word(result.verdict).to_owned();
        if !result.reasons.is_empty() {
            verdict += &format!(" ({})", result.reasons.join("; "));
        }
        [
            result.row.clone(),
            result.vidmm.map_or("-".into(), grouped),
            side(&result.peer_name, result.peer),
            side(&result.floor_name, result.floor),
            ratio(result.to_peer),
            ratio(result.to_floor),
            joined(&result.goals, goal),
            joined(&result.goals, |goal| self.range(goal)),
            verdict,
        ]
        .join(" | ")
    }

    fn range(&self, goal: &GoalResult) -> String {
        let Some(ratio) = goal.ratio else {
            return "-".into();
        };
        let range = format!("{}..{}", short(ratio.low), short(ratio.high));
        match self.mode {
            Mode::Instructions => range,
            Mode::Wall => format!("{range} minima {}", short(ratio.of_minima)),
        }
    }

    fn summary(&self) -> String {
        let count = |verdict| {
            let results = self.results.iter();
            results.filter(|result| result.verdict == verdict).count()
        };
        format!(
            "{} rows: {} pass, {} fail, {} noisy, {} not run, {} reported, {} broken",
            self.results.len(),
            count(Verdict::Pass),
            count(Verdict::Fail),
            count(Verdict::Noisy),
            count(Verdict::NotRun),
            count(Verdict::Reported),
            count(Verdict::Broken),
        )
    }

    /// Writes a line of JSON per row, and one with all operations.
    pub fn write(&self, file: &Path) -> Result<()> {
        let operations: serde_json::Map<_, _> = self
            .measured
            .iter()
            .filter_map(|(name, samples)| Some((name, samples.as_ref().ok()?)))
            .map(|(name, samples)| {
                let value = json!({
                    "median": median(&samples.medians),
                    "rounds": samples.medians,
                    "minima": samples.minima,
                });
                (name.clone(), value)
            })
            .collect();
        let mut lines = Vec::new();
        for result in self.results {
            let mut line = json!(result);
            line["mode"] = json!(self.mode.name());
            line["unit"] = json!(self.mode.unit());
            lines.push(line.to_string());
        }
        lines.push(json!({ "mode": self.mode.name(), "operations": operations }).to_string());
        lines.push(String::new());
        fs::write(file, lines.join("\n"))
            .map_err(|error| Failure::from(error).during(file.display()))
    }
}

fn joined(goals: &[GoalResult], text: impl Fn(&GoalResult) -> String) -> String {
    if goals.is_empty() {
        return "-".into();
    }
    goals.iter().map(text).collect::<Vec<_>>().join("; ")
}

/// Prints a goal and the ratio that was found.
fn goal(result: &GoalResult) -> String {
    let mark = match result.reached {
        Some(true) => "ok",
        Some(false) => "MISSED",
        None => "not run",
    };
    match result.ratio {
        Some(ratio) => format!("{}: {} {mark}", result.goal, short(ratio.median)),
        None => format!("{}: {mark}", result.goal),
    }
}

fn side(name: &Option<String>, cost: Option<f64>) -> String {
    match (name, cost) {
        (None, _) => "-".into(),
        (Some(name), None) => format!("{name} -"),
        (Some(name), Some(cost)) => format!("{name} {}", grouped(cost)),
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::NotRun => "not run",
        Verdict::Noisy => "noisy",
        Verdict::Reported => "reported",
        Verdict::Broken => "BROKEN",
    }
}

/// Prints a ratio with as many digits as say something.
fn short(ratio: f64) -> String {
    if ratio < 10.0 {
        format!("{ratio:.3}")
    } else {
        format!("{ratio:.1}")
    }
}

/// Prints a cost in groups of three digits.
fn grouped(cost: f64) -> String {
    let digits = format!("{cost:.0}");
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8_lossy(&groups.join(&b',')).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_grouped_by_thousands() {
        assert_eq!(grouped(7.4), "7");
        assert_eq!(grouped(655.0), "655");
        assert_eq!(grouped(10_270_000.0), "10,270,000");
    }

    #[test]
    fn ratio_has_digits_that_matter() {
        assert_eq!(short(0.4567), "0.457");
        assert_eq!(short(152.3), "152.3");
    }
}
