// SPDX-License-Identifier: GPL-2.0
//! What is told to the user when something cannot go on: one sentence.

use std::fmt;

/// A sentence that says what is wrong, with the remedy where there is one.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// Makes a failure from its sentence.
    pub fn new(sentence: impl Into<String>) -> Self {
        Failure(sentence.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure(error.to_string())
    }
}

impl From<rustix::io::Errno> for Failure {
    fn from(error: rustix::io::Errno) -> Self {
        Failure(error.to_string())
    }
}

/// The result of what may end in a sentence.
pub type Result<T> = std::result::Result<T, Failure>;
