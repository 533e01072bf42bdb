// SPDX-License-Identifier: GPL-2.0

//! Measuring: rounds in which every operation has its turn, and repetitions within a turn.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{
    catalogue::{
        Catalogue,
        Operation, //
    },
    failure::{
        Failure,
        Result, //
    },
    mode::Mode, //
};

/// Fewest repetitions of an operation in a round.
const FEWEST: usize = 7;
/// Most repetitions of an operation in a round.
const MOST: usize = 51;

/// How long background work of a turn has to end before the next one begins.
const PAUSE: Duration = Duration::from_millis(10);

/// What one operation cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// The median of each round.
    pub medians: Vec<f64>,
    /// The least of each round.
    pub minima: Vec<f64>,
}

/// What all operations cost, by their names.
pub type Measured = BTreeMap<String, Result<Samples>>;

/// How many calls on lists of this length a repetition makes: short ones are too short to be timed
/// one by one.
pub fn calls(length: u32) -> u32 {
    match length {
        0..=16 => 16,
        17..=256 => 4,
        _ => 1,
    }
}

/// Measures all operations in turn, `rounds` times.
pub fn all(catalogue: &Catalogue, mode: Mode, rounds: u32) -> Measured {
    let mut measured = Measured::new();
    for round in 1..=rounds.max(1) {
        eprintln!("bench: round {round} of {rounds}");
        for operation in catalogue.operations() {
            let entry = measured
                .entry(operation.name.clone())
                .or_insert_with(|| Ok(Samples::default()));
            let Ok(samples) = entry else { continue };
            let turn = repeat(operation, mode);
            std::thread::sleep(PAUSE);
            match turn {
                Ok(turn) => {
                    samples.medians.push(turn.median);
                    samples.minima.push(turn.least);
                }
                Err(failure) => {
                    let failure = failure.during(&operation.name);
                    eprintln!("bench: {failure}");
                    *entry = Err(failure);
                }
            }
        }
    }
    measured
}

/// What one turn has found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// The median of the repetitions.
    pub median: f64,
    /// The least of them.
    pub least: f64,
    /// How many there were.
    pub repetitions: usize,
}

/// Repeats an operation for one turn.
fn repeat(operation: &Operation, mode: Mode) -> Result<Turn> {
    repeat_for(operation, mode.budget(), MOST)
}

/// Repeats an operation for two seconds.
pub fn for_long(operation: &Operation) -> Result<Turn> {
    repeat_for(operation, 2e9, usize::MAX)
}

/// Repeats for so many nanoseconds, if that is neither too few times nor too many.
fn repeat_for(operation: &Operation, nanoseconds: f64, most: usize) -> Result<Turn> {
    let mut repetition = (operation.begin)()?;
    // Caches are filled and pages are touched by the first one.
    let start = libvidmm::time::now();
    repetition()?;
    let taken = (libvidmm::time::now() - start).max(1) as f64;
    // CAST: a small positive number.
    let times = ((nanoseconds / taken) as usize).clamp(FEWEST, most);
    let mut costs = (0..times)
        .map(|_| repetition())
        .collect::<Result<Vec<_>>>()?;
    costs.sort_unstable_by(f64::total_cmp);
    match costs.first() {
        Some(&least) => Ok(Turn {
            median: median_of_sorted(&costs),
            least,
            repetitions: costs.len(),
        }),
        None => Err(Failure::new("no repetition")),
    }
}

/// Returns the median of values in any order; 0 if there are none.
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    median_of_sorted(&values)
}

fn median_of_sorted(values: &[f64]) -> f64 {
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        length if length % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn each_round_has_a_median_and_a_least() {
        let mut catalogue = Catalogue::new();
        catalogue.operation("a", || {
            let mut next = 0.0;
            Ok(move || {
                next += 1.0;
                Ok(next)
            })
        });

        let measured = all(&catalogue, Mode::Instructions, 2);

        let samples = measured["a"].as_ref().unwrap();
        assert_eq!(samples.minima, [2.0; 2]);
        assert!(samples.medians[0] >= 5.0);
    }

    #[test]
    fn failed_operation_is_not_tried_again() {
        let mut catalogue = Catalogue::new();
        catalogue.operation("a", || Ok(|| Err(Failure::new("broken"))));

        let measured = all(&catalogue, Mode::Instructions, 3);

        assert_eq!(measured["a"], Err(Failure::new("a: broken")));
    }
}
