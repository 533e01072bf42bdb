// SPDX-License-Identifier: GPL-2.0

//! Evaluation: ratios of costs, round by round, and whether they reach their goals.

use serde::Serialize;

use crate::{
    catalogue::{
        Bound,
        Catalogue,
        Goal,
        Row, //
    },
    cost::Cost,
    failure::Failure,
    measure::{
        median,
        Measured, //
    },
    mode::Mode, //
};

/// A ratio over all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The median of the rounds.
    pub median: f64,
    /// The least.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// The ratio of the least costs of all rounds.
    pub of_minima: f64,
}

/// What became of one goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GoalResult {
    /// The goal in words.
    pub goal: String,
    /// What the ratio is; nothing if it could not be had.
    pub ratio: Option<Ratio>,
    /// Whether the goal is reached; nothing as above.
    pub reached: Option<bool>,
    /// Why the ratio could not be had.
    pub reason: Option<String>,
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every ratio reaches its goal.
    Pass,
    /// A ratio does not.
    Fail,
    /// A ratio is missing because a peer is, and no other one fails.
    NotRun,
    /// The rounds differ too much to say anything: the machine is not idle.
    Noisy,
    /// No goal is for this mode.
    Reported,
    /// Something could not be measured, or had a wrong result.
    Broken,
}

/// A row of the results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowResult {
    /// Name of the row.
    pub row: String,
    /// What vidmm does.
    pub what: String,
    /// The cost of vidmm.
    pub vidmm: Option<f64>,
    /// What a user would pick instead.
    pub peer_name: Option<String>,
    /// The cost of that.
    pub peer: Option<f64>,
    /// The least that the machine can do.
    pub floor_name: Option<String>,
    /// The cost of that.
    pub floor: Option<f64>,
    /// Cost of vidmm divided by that of the peer.
    pub to_peer: Option<Ratio>,
    /// Cost of vidmm divided by that of the floor.
    pub to_floor: Option<Ratio>,
    /// The goals of this mode.
    pub goals: Vec<GoalResult>,
    /// Whether all of them are reached.
    pub verdict: Verdict,
    /// What went wrong, or is missing.
    pub reasons: Vec<String>,
}

/// Evaluates all rows.
pub fn all(catalogue: &Catalogue, measured: &Measured, mode: Mode) -> Vec<RowResult> {
    let evaluation = Evaluation {
        catalogue,
        measured,
    };
    let rows = catalogue.rows().iter();
    rows.map(|row| evaluation.row(row, mode)).collect()
}

/// Why a cost cannot be had.
#[derive(Clone, Debug)]
enum Lack {
    Absent(Failure),
    Broken(Failure),
}

/// The medians of a cost, round by round, and the sum of its least values.
struct Rounds {
    medians: Vec<f64>,
    minimum: f64,
}

struct Evaluation<'a> {
    catalogue: &'a Catalogue,
    measured: &'a Measured,
}

impl Evaluation<'_> {
    fn row(&self, row: &Row, mode: Mode) -> RowResult {
        let vidmm = self.rounds(&row.vidmm);
        let peer = row.peer.as_ref().map(|cost| self.rounds(cost));
        let floor = row.floor.as_ref().map(|cost| self.rounds(cost));
        let goals = row.goals.iter().filter(|goal| goal.mode == mode);
        let goals: Vec<_> = goals.map(|goal| self.goal(&vidmm, goal)).collect();

        let lacks: Vec<&Lack> = [Some(&vidmm), peer.as_ref(), floor.as_ref()]
            .into_iter()
            .flatten()
            .filter_map(|rounds| rounds.as_ref().err())
            .collect();
        let is_broken = lacks.iter().any(|lack| matches!(lack, Lack::Broken(_)));
        let mut reasons: Vec<_> = lacks
            .iter()
            .map(|lack| lack.failure().to_string())
            .collect();
        reasons.extend(goals.iter().filter_map(|goal| goal.reason.clone()));
        reasons.sort();
        reasons.dedup();
        let ratio = |other: &Option<Result<Rounds, Lack>>| match (&vidmm, other) {
            (Ok(vidmm), Some(Ok(other))) => Some(divide(vidmm, other)),
            _ => None,
        };
        let typical = |rounds: &Result<Rounds, Lack>| {
            rounds.as_ref().ok().map(|rounds| median(&rounds.medians))
        };
        RowResult {
            row: row.name.clone(),
            what: row.what.clone(),
            to_peer: ratio(&peer),
            to_floor: ratio(&floor),
            vidmm: typical(&vidmm),
            peer_name: row.peer.as_ref().map(Cost::to_string),
            peer: peer.as_ref().and_then(typical),
            floor_name: row.floor.as_ref().map(Cost::to_string),
            floor: floor.as_ref().and_then(typical),
            verdict: verdict(&goals, is_broken, mode),
            goals,
            reasons,
        }
    }

    fn goal(&self, vidmm: &Result<Rounds, Lack>, goal: &Goal) -> GoalResult {
        let sign = match goal.bound {
            Bound::AtMost => "<=",
            Bound::AtLeast => ">=",
        };
        let against = self.rounds(&goal.against);
        let ratio = match (vidmm, &against, goal.bound) {
            (Ok(vidmm), Ok(against), Bound::AtMost) => Ok(divide(vidmm, against)),
            (Ok(vidmm), Ok(against), Bound::AtLeast) => Ok(divide(against, vidmm)),
            (Err(lack), ..) | (_, Err(lack), _) => Err(lack.failure().to_string()),
        };
        let reached = ratio.as_ref().ok().map(|ratio| match goal.bound {
            Bound::AtMost => ratio.median <= goal.limit,
            Bound::AtLeast => ratio.median >= goal.limit,
        });
        GoalResult {
            goal: format!("{sign} {:.2} x {}", goal.limit, goal.against),
            ratio: ratio.as_ref().ok().copied(),
            reached,
            reason: ratio.err(),
        }
    }

    fn rounds(&self, cost: &Cost) -> Result<Rounds, Lack> {
        let samples = |name: &str| match self.measured.get(name) {
            Some(Ok(samples)) => Ok(samples),
            Some(Err(failure)) => Err(Lack::Broken(failure.clone())),
            None => Err(Lack::Absent(match self.catalogue.absence(name) {
                Some(failure) => failure.clone().during(name),
                None => Failure::new(format!("{name}: not measured")),
            })),
        };
        let mut rounds = usize::MAX;
        for name in cost.operations() {
            rounds = rounds.min(samples(name)?.medians.len());
        }
        let medians = (0..rounds)
            .map(|round| cost.sum(|name| samples(name).map(|samples| samples.medians[round])))
            .collect::<Result<_, _>>()?;
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let minimum = cost.sum(|name| samples(name).map(|samples| least(&samples.minima)))?;
        Ok(Rounds { medians, minimum })
    }
}

impl Lack {
    fn failure(&self) -> &Failure {
        match self {
            Self::Absent(failure) | Self::Broken(failure) => failure,
        }
    }
}

fn divide(above: &Rounds, below: &Rounds) -> Ratio {
    let pairs = above.medians.iter().zip(&below.medians);
    let ratios: Vec<_> = pairs.map(|(above, below)| above / below).collect();
    Ratio {
        median: median(&ratios),
        low: ratios.iter().copied().fold(f64::INFINITY, f64::min),
        high: ratios.iter().copied().fold(0.0, f64::max),
        of_minima: above.minimum / below.minimum,
    }
}

fn verdict(goals: &[GoalResult], is_broken: bool, mode: Mode) -> Verdict {
    let is_noisy = |goal: &GoalResult| {
        let ratio = goal.ratio;
        ratio.is_some_and(|ratio| ratio.high - ratio.low > mode.tolerance() * ratio.median)
    };
    if is_broken {
        Verdict::Broken
    } else if goals.is_empty() {
        Verdict::Reported
    } else if mode == Mode::Wall && goals.iter().any(is_noisy) {
        Verdict::Noisy
    } else if goals.iter().any(|goal| goal.reached == Some(false)) {
        Verdict::Fail
    } else if goals.iter().any(|goal| goal.reached.is_none()) {
        Verdict::NotRun
    } else {
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Samples;

    fn measured(operations: &[(&str, [f64; 3])]) -> Measured {
        let samples = |rounds: &[f64; 3]| Samples {
            medians: rounds.to_vec(),
            minima: rounds.to_vec(),
        };
        operations
            .iter()
            .map(|(name, rounds)| ((*name).to_owned(), Ok(samples(rounds))))
            .collect()
    }

    fn evaluate(row: Row, measured: &Measured, mode: Mode) -> RowResult {
        let mut catalogue = Catalogue::new();
        catalogue.row(row);
        all(&catalogue, measured, mode).remove(0)
    }

    #[test]
    fn ratio_is_the_median_of_the_rounds() {
        let measured = measured(&[("ours", [10.0, 12.0, 30.0]), ("peer", [20.0, 20.0, 20.0])]);
        let row = Row::new("X", "", "ours").goal(Goal::instructions(0.6, "peer"));

        let result = evaluate(row, &measured, Mode::Instructions);

        let ratio = result.goals[0].ratio.unwrap();
        assert_eq!((ratio.median, ratio.low, ratio.high), (0.6, 0.5, 1.5));
        assert_eq!(result.verdict, Verdict::Pass);
    }

    #[test]
    fn bandwidth_is_the_inverse_of_cost() {
        let measured = measured(&[("ours", [10.0; 3]), ("copy", [9.0; 3])]);
        let row = Row::new("X", "", "ours").goal(Goal::bandwidth(0.95, "copy"));

        let result = evaluate(row, &measured, Mode::Wall);

        assert_eq!(result.goals[0].ratio.unwrap().median, 0.9);
        assert_eq!(result.verdict, Verdict::Fail);
    }

    #[test]
    fn goal_of_another_mode_is_reported_only() {
        let measured = measured(&[("ours", [10.0; 3]), ("peer", [1.0; 3])]);
        let row = Row::new("X", "", "ours").goal(Goal::instructions(0.5, "peer"));

        let result = evaluate(row, &measured, Mode::Wall);

        assert_eq!(result.verdict, Verdict::Reported);
    }

    #[test]
    fn rounds_that_differ_say_nothing_in_real_time() {
        let measured = measured(&[("ours", [10.0, 12.0, 30.0]), ("peer", [20.0; 3])]);
        let row = Row::new("X", "", "ours").goal(Goal::wall(0.9, "peer"));

        let result = evaluate(row, &measured, Mode::Wall);

        assert_eq!(result.verdict, Verdict::Noisy);
    }

    #[test]
    fn missing_peer_is_not_run() {
        let measured = measured(&[("ours", [10.0; 3])]);
        let row = Row::new("X", "", "ours").goal(Goal::instructions(0.5, "peer"));

        let result = evaluate(row, &measured, Mode::Instructions);

        assert_eq!(result.verdict, Verdict::NotRun);
        assert_eq!(result.reasons, ["peer: not measured"]);
    }

    #[test]
    fn broken_operation_breaks_the_row() {
        let mut measured = measured(&[("peer", [1.0; 3])]);
        measured.insert("ours".into(), Err(Failure::new("wrong result")));
        let row = Row::new("X", "", "ours").goal(Goal::instructions(0.5, "peer"));

        let result = evaluate(row, &measured, Mode::Instructions);

        assert_eq!(result.verdict, Verdict::Broken);
    }
}
