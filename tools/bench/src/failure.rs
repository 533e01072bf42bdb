// SPDX-License-Identifier: GPL-2.0

//! Failures: a sentence that says what could not be measured and why.

use std::fmt;
use std::io;

use libvidmm::{
    Errno,
    Error, //
};

/// Why something could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

/// A result that fails with a sentence.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with a sentence of its own.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }

    /// Says in front what was being done.
    pub fn during(self, what: impl fmt::Display) -> Self {
        Self(format!("{what}: {}", self.0))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self(errno.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Fails unless what was timed has done its work.
pub fn check(holds: bool, sentence: impl FnOnce() -> String) -> Result<()> {
    if holds {
        Ok(())
    } else {
        Err(Failure(format!("wrong result: {}", sentence())))
    }
}
