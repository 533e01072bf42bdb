// SPDX-License-Identifier: GPL-2.0
//! KTAP, the text format that kernel tests report in.
//!
//! A block is a plan (`1..N`) and N result lines. A block that is indented by
//! more than the line that follows it belongs to that line, which then speaks for
//! the block and is not a test of its own.

use std::fmt;

/// How one test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It was skipped, with the reason.
    Skipped(String),
}

/// One result line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    /// Name of the test, with the subtests it lies in: `suite.test`.
    pub name: String,
    /// How it ended.
    pub outcome: Outcome,
}

/// Why a report is not to be believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Defect {
    /// There was no plan and no result.
    Empty,
    /// The plan announced another number of tests than there were results.
    PlanMismatch {
        /// As announced.
        planned: usize,
        /// As seen.
        seen: usize,
    },
    /// A block has results but no plan.
    NoPlan,
    /// The program gave up.
    BailOut(String),
}

impl fmt::Display for Defect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Defect::Empty => write!(formatter, "no result at all"),
            Defect::PlanMismatch { planned, seen } => {
                write!(formatter, "{planned} tests announced, {seen} reported")
            }
            Defect::NoPlan => write!(formatter, "results without a plan"),
            Defect::BailOut(reason) => write!(formatter, "gave up: {reason}"),
        }
    }
}

/// A block that has not ended.
struct Block {
    indent: usize,
    planned: Option<usize>,
    seen: usize,
    /// Results of its tests, the nested ones included.
    results: Vec<TestResult>,
}

/// Reads KTAP line by line.
pub struct Parser {
    /// Open blocks, the outermost first.
    blocks: Vec<Block>,
    results: Vec<TestResult>,
    defects: Vec<Defect>,
}

impl Parser {
    /// A parser that has seen nothing.
    pub fn new() -> Self {
        Parser {
            blocks: Vec::new(),
            results: Vec::new(),
            defects: Vec::new(),
        }
    }

    /// Takes one line. Lines that are not KTAP are passed over.
    pub fn line(&mut self, line: &str) {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(planned) = plan(text) {
            self.block_at(indent).planned = Some(planned);
        } else if let Some((name, outcome)) = result(text) {
            self.result(indent, name, outcome);
        } else if let Some(reason) = text.strip_prefix("Bail out!") {
            self.defects.push(Defect::BailOut(reason.trim().to_owned()));
        } else if text.starts_with("KTAP version") || text.starts_with("TAP version") {
            self.begin_report(indent);
        }
    }

    /// Ends the report: all results and what is wrong with it.
    pub fn finish(mut self) -> (Vec<TestResult>, Vec<Defect>) {
        while let Some(block) = self.blocks.pop() {
            self.close(block, None);
        }
        if self.results.is_empty() && self.defects.is_empty() {
            self.defects.push(Defect::Empty);
        }
        (self.results, self.defects)
    }

    /// A new header at the outermost level starts another report of the stream.
    fn begin_report(&mut self, indent: usize) {
        let starts_again = self
            .blocks
            .first()
            .is_some_and(|first| first.indent == indent);
        if starts_again {
            while let Some(block) = self.blocks.pop() {
                self.close(block, None);
            }
        }
        self.block_at(indent);
    }

    /// The open block of this indentation, made if need be.
    fn block_at(&mut self, indent: usize) -> &mut Block {
        while self.blocks.last().is_some_and(|last| last.indent > indent) {
            if let Some(block) = self.blocks.pop() {
                self.close(block, None);
            }
        }
        let here = self.blocks.last().is_some_and(|last| last.indent == indent);
        if !here {
            self.blocks.push(Block {
                indent,
                planned: None,
                seen: 0,
                results: Vec::new(),
            });
        }
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }

    fn result(&mut self, indent: usize, name: String, outcome: Outcome) {
        let mut nested = Vec::new();
        while self.blocks.last().is_some_and(|last| last.indent > indent) {
            if let Some(block) = self.blocks.pop() {
                nested.extend(self.close(block, Some(&name)));
            }
        }
        let speaks_for_block = !nested.is_empty();
        let explained = nested.iter().any(|test| test.outcome == Outcome::Failed);
        let block = self.block_at(indent);
        block.seen += 1;
        block.results.extend(nested);
        if !speaks_for_block || (outcome == Outcome::Failed && !explained) {
            block.results.push(TestResult { name, outcome });
        }
    }

    /// Checks a block that ends. Under a parent its results are handed back,
    /// otherwise they are final.
    fn close(&mut self, block: Block, parent: Option<&str>) -> Vec<TestResult> {
        match block.planned {
            Some(planned) if planned != block.seen => {
                self.defects.push(Defect::PlanMismatch {
                    planned,
                    seen: block.seen,
                });
            }
            None if block.seen > 0 => self.defects.push(Defect::NoPlan),
            _ => {}
        }
        if let Some(parent) = parent {
            let rename = |test: TestResult| TestResult {
                name: below(parent, &test.name),
                ..test
            };
            return block.results.into_iter().map(rename).collect();
        }
        match self.blocks.last_mut() {
            Some(outer) => outer.results.extend(block.results),
            None => self.results.extend(block.results),
        }
        Vec::new()
    }
}

/// The name of a test inside a suite, unless it tells the suite already.
pub fn below(suite: &str, test: &str) -> String {
    let rest = test.strip_prefix(suite);
    if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
        return test.to_owned();
    }
    format!("{suite}.{test}")
}

/// `1..N`, possibly with a skip reason behind it.
fn plan(text: &str) -> Option<usize> {
    let count = text.strip_prefix("1..")?;
    count.split_whitespace().next()?.parse().ok()
}

/// `ok 3 - name # SKIP reason` and its relatives.
fn result(text: &str) -> Option<(String, Outcome)> {
    let (passed, rest) = if let Some(rest) = text.strip_prefix("not ok ") {
        (false, rest)
    } else {
        (true, text.strip_prefix("ok ")?)
    };
    let (number, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    number.parse::<usize>().ok()?;
    let rest = rest.strip_prefix("- ").unwrap_or(rest);
    let (name, directive) = match rest.split_once('#') {
        Some((name, directive)) => (name.trim(), directive.trim()),
        None => (rest.trim(), ""),
    };
    let skip = directive
        .get(..4)
        .filter(|word| word.eq_ignore_ascii_case("skip"));
    let outcome = match (passed, skip) {
        (_, Some(word)) => Outcome::Skipped(directive[word.len()..].trim().to_owned()),
        (true, None) => Outcome::Passed,
        (false, None) => Outcome::Failed,
    };
    let name = if name.is_empty() { number } else { name };
    Some((name.to_owned(), outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Vec<TestResult>, Vec<Defect>) {
        let mut parser = Parser::new();
        text.lines().for_each(|line| parser.line(line));
        parser.finish()
    }

    fn count(results: &[TestResult], outcome: &Outcome) -> usize {
        results
            .iter()
            .filter(|test| test.outcome == *outcome)
            .count()
    }

    #[test]
    fn flat_report_counts_each_line() {
        let (results, defects) =
            parse("KTAP version 1\n1..3\nok 1 a\nnot ok 2 - b\nok 3 c # SKIP needs-debug-kernel\n");
        assert_eq!(defects, []);
        assert_eq!(results.len(), 3);
        assert_eq!(results[1].name, "b");
        assert_eq!(results[1].outcome, Outcome::Failed);
        assert_eq!(
            results[2].outcome,
            Outcome::Skipped("needs-debug-kernel".into())
        );
    }

    #[test]
    fn parent_line_is_not_a_test() {
        let (results, defects) = parse(
            "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: s\n    1..2\n    ok 1 a\n    ok 2 b\nok 1 s\n",
        );
        assert_eq!(defects, []);
        assert_eq!(count(&results, &Outcome::Passed), 2);
        assert_eq!(results[0].name, "s.a");
    }

    #[test]
    fn failing_parent_of_passing_tests_is_a_failure() {
        let (results, _) = parse("KTAP version 1\n1..1\n  1..1\n  ok 1 a\nnot ok 1 s\n");
        assert_eq!(count(&results, &Outcome::Failed), 1);
    }

    #[test]
    fn missing_results_are_a_defect() {
        let (results, defects) = parse("KTAP version 1\n1..3\nok 1 a\n");
        assert_eq!(results.len(), 1);
        assert_eq!(
            defects,
            [Defect::PlanMismatch {
                planned: 3,
                seen: 1
            }]
        );
    }

    #[test]
    fn silence_is_a_defect() {
        assert_eq!(parse("hello\n").1, [Defect::Empty]);
    }

    #[test]
    fn results_without_plan_are_a_defect() {
        assert_eq!(parse("KTAP version 1\nok 1 a\n").1, [Defect::NoPlan]);
    }

    #[test]
    fn plan_at_the_end_is_accepted() {
        assert_eq!(parse("KTAP version 1\nok 1 a\n1..1\n").1, []);
    }

    #[test]
    fn two_reports_in_one_stream_are_both_counted() {
        let (results, defects) =
            parse("KTAP version 1\n1..1\nok 1 a\nKTAP version 1\n1..1\nok 1 b\n");
        assert_eq!(defects, []);
        assert_eq!(results.len(), 2);
    }
}
