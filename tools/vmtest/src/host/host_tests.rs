// SPDX-License-Identifier: GPL-2.0
//! Tests that need no kernel: cargo runs them, their results become KTAP.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::verdict::Verdict;
use crate::failure::{Failure, Result};

/// Runs a test command of cargo as the suite `name`.
pub fn run(name: &str, command: &str, verdict: &mut Verdict) -> Result<()> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Failure::new(format!("cannot run '{command}': {error}")))?;
    let Some(output) = child.stdout.take() else {
        return Err(Failure::new("a child without an output"));
    };
    verdict.line(name, "KTAP version 1");
    let mut count = 0;
    for line in BufReader::new(output).lines() {
        let line = line?;
        match result(&line) {
            Some((test, word)) => {
                count += 1;
                verdict.line(name, &ktap(count, test, word));
            }
            // What a failing test printed helps to understand it.
            None if is_detail(&line) => verdict.line(name, &format!("# {line}")),
            None => {}
        }
    }
    verdict.line(name, &format!("1..{count}"));
    let code = child.wait()?.code().unwrap_or(1);
    verdict.end_suite(name, code);
    Ok(())
}

/// `test path::name ... ok`, as libtest prints it.
fn result(line: &str) -> Option<(&str, &str)> {
    let (test, word) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let test = test.strip_suffix(" - should panic").unwrap_or(test);
    Some((test, word))
}

fn ktap(number: usize, test: &str, word: &str) -> String {
    match word.split([',', ' ']).next() {
        Some("ok") => format!("ok {number} {test}"),
        Some("ignored") => format!("ok {number} {test} # SKIP {word}"),
        _ => format!("not ok {number} {test}"),
    }
}

fn is_detail(line: &str) -> bool {
    let noise = ["running ", "test result:", "failures:", "successes:"];
    !line.trim().is_empty() && !noise.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libtest_lines_become_ktap() {
        let (test, word) = result("test eviction::tests::lru ... ok").unwrap();
        assert_eq!(ktap(1, test, word), "ok 1 eviction::tests::lru");
        let (test, word) = result("test a ... FAILED").unwrap();
        assert_eq!(ktap(2, test, word), "not ok 2 a");
        assert_eq!(result("test result: ok. 3 passed"), None);
    }
}
