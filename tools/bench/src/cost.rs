// SPDX-License-Identifier: GPL-2.0

//! Costs: sums of measured operations, by their names.

use std::fmt;
use std::ops::{
    Add,
    Mul, //
};

/// A sum of operations, each so many times.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq)]
struct Term {
    factor: f64,
    operation: String,
}

impl Cost {
    /// The cost of one operation.
    pub fn of(operation: impl Into<String>) -> Self {
        Self {
            terms: vec![Term {
                factor: 1.0,
                operation: operation.into(),
            }],
        }
    }

    /// Returns the operations that must be measured.
    pub fn operations(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|term| term.operation.as_str())
    }

    /// Adds up what `measured` says of each operation; the first one that it lacks is the error.
    pub fn sum<E>(&self, mut measured: impl FnMut(&str) -> Result<f64, E>) -> Result<f64, E> {
        self.terms.iter().try_fold(0.0, |sum, term| {
            Ok(sum + term.factor * measured(&term.operation)?)
        })
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self.terms.extend(other.terms);
        self
    }
}

impl Mul<Cost> for f64 {
    type Output = Cost;

    fn mul(self, mut cost: Cost) -> Cost {
        for term in &mut cost.terms {
            term.factor *= self;
        }
        cost
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                write!(f, " + ")?;
            }
            if term.factor == 1.0 {
                write!(f, "{}", term.operation)?;
            } else if term.factor < 1.0 {
                write!(f, "{} / {}", term.operation, term.factor.recip())?;
            } else {
                write!(f, "{} x {}", term.factor, term.operation)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_weighs_each_operation() {
        let cost = 2.0 * (Cost::of("a") + 3.0 * Cost::of("b"));

        let sum = cost.sum(|name| Ok::<_, ()>(if name == "a" { 10.0 } else { 1.0 }));

        assert_eq!(sum, Ok(26.0));
        assert_eq!(cost.to_string(), "2 x a + 6 x b");
        assert_eq!((0.25 * Cost::of("a")).to_string(), "a / 4");
    }

    #[test]
    fn missing_operation_is_named() {
        let cost = Cost::of("a") + Cost::of("b");

        let sum = cost.sum(|name| {
            if name == "a" {
                Ok(1.0)
            } else {
                Err(name.to_owned())
            }
        });

        assert_eq!(sum, Err("b".to_owned()));
    }
}
