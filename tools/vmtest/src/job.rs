// SPDX-License-Identifier: GPL-2.0
//! What the guest has to do: a list of steps, handed over as a file.
//!
//! The host writes the list into the initramfs; the guest's first process reads
//! it. A step is a line of words; separators are control characters that no
//! command contains.

const STEP: char = '\x1e';
const WORD: char = '\x1f';

/// Where the guest finds the list.
pub const JOB_FILE: &str = "/job";

/// A line of the kernel log that says that the boot is over.
pub const JOB_BEGINS: &str = "vmtest: the job begins";

/// One step of a job. The first step that fails ends the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Load a module file with parameters.
    Load {
        /// Path in the guest.
        file: String,
        /// Parameters, as in `insmod`.
        parameters: String,
    },
    /// Run a shell command and send what it prints.
    Command(String),
    /// Run the suites of the test program, one process each.
    Suites {
        /// The only suite to run; all when empty.
        only: String,
        /// Time limit of one suite.
        seconds: u64,
    },
    /// Run a command whose output is KTAP, as a suite of the given name.
    KtapCommand {
        /// The name that results are reported under.
        name: String,
        /// A shell command.
        command: String,
        /// Time limit.
        seconds: u64,
    },
    /// Unload a module.
    Unload(String),
    /// Ask kmemleak for a report.
    Leaks,
    /// Start a shell on the console.
    Shell,
}

impl Step {
    fn words(&self) -> Vec<String> {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        match self {
            Step::Load { file, parameters } => owned(&["load", file, parameters]),
            Step::Command(command) => owned(&["command", command]),
            Step::Suites { only, seconds } => owned(&["suites", only, &seconds.to_string()]),
            Step::KtapCommand {
                name,
                command,
                seconds,
            } => owned(&["ktap", name, command, &seconds.to_string()]),
            Step::Unload(module) => owned(&["unload", module]),
            Step::Leaks => owned(&["leaks"]),
            Step::Shell => owned(&["shell"]),
        }
    }

    fn from_words(words: &[&str]) -> Option<Step> {
        Some(match words {
            ["load", file, parameters] => Step::Load {
                file: (*file).to_owned(),
                parameters: (*parameters).to_owned(),
            },
            ["command", command] => Step::Command((*command).to_owned()),
            ["suites", only, seconds] => Step::Suites {
                only: (*only).to_owned(),
                seconds: seconds.parse().ok()?,
            },
            ["ktap", name, command, seconds] => Step::KtapCommand {
                name: (*name).to_owned(),
                command: (*command).to_owned(),
                seconds: seconds.parse().ok()?,
            },
            ["unload", module] => Step::Unload((*module).to_owned()),
            ["leaks"] => Step::Leaks,
            ["shell"] => Step::Shell,
            _ => return None,
        })
    }
}

/// Writes a list of steps.
pub fn encode(steps: &[Step]) -> String {
    let lines: Vec<String> = steps
        .iter()
        .map(|step| step.words().join(&WORD.to_string()))
        .collect();
    lines.join(&STEP.to_string())
}

/// Reads a list of steps; `None` when it is not one of ours.
pub fn decode(text: &str) -> Option<Vec<Step>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(STEP)
        .map(|line| Step::from_words(&line.split(WORD).collect::<Vec<_>>()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_survive_encoding() {
        let steps = vec![
            Step::Load {
                file: "/vidmm.ko".into(),
                parameters: String::new(),
            },
            Step::Command("echo a;\n echo 'b c'".into()),
            Step::Suites {
                only: "residency".into(),
                seconds: 60,
            },
            Step::Leaks,
        ];
        assert_eq!(decode(&encode(&steps)), Some(steps));
    }

    #[test]
    fn unknown_step_is_refused() {
        assert_eq!(decode("dance"), None);
    }
}
