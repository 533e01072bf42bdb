// SPDX-License-Identifier: GPL-2.0

//! What a time is: the two ways in which the machine can be set up.

use clap::ValueEnum;

/// What the clock of the machine counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Executed instructions: one processor, repeatable.
    #[value(alias = "i")]
    Instructions,
    /// Real time.
    #[value(alias = "w")]
    Wall,
}

impl Mode {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Wall => "wall",
        }
    }

    /// What the numbers are.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Wall => "nanoseconds",
        }
    }

    /// How much the rounds may differ, as a part of their median.
    pub fn tolerance(self) -> f64 {
        match self {
            Self::Instructions => 0.03,
            Self::Wall => 0.15,
        }
    }

    /// How long the repetitions of one operation may take in a round, in nanoseconds of the
    /// machine's clock. Emulated, an instruction takes some ten nanoseconds of real time.
    pub fn budget(self) -> f64 {
        match self {
            Self::Instructions => 4e6,
            Self::Wall => 60e6,
        }
    }
}
