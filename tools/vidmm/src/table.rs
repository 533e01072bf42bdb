// SPDX-License-Identifier: GPL-2.0

//! Tables of text: columns as wide as their content, numbers to the right, a rule below the heading.

use std::fmt;

/// On which side of its column a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table with a heading.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

/// Blanks before a line and between two columns.
const INDENT: &str = "  ";

impl Table {
    /// Makes a table without rows.
    pub(crate) fn new<const COLUMNS: usize>(columns: [(&'static str, Align); COLUMNS]) -> Self {
        let columns = columns.map(|(heading, align)| (heading.to_owned(), align));
        Self::with(columns.to_vec())
    }

    /// Makes a table without rows, with headings that are made at run time.
    pub(crate) fn with(columns: Vec<(String, Align)>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// Makes a table of names and values, without heading.
    pub(crate) fn of_values() -> Self {
        Self::new([("", Align::Left), ("", Align::Left)])
    }

    /// Adds a row; cells that are missing are empty.
    pub(crate) fn row<const CELLS: usize>(&mut self, cells: [String; CELLS]) {
        self.row_of(cells.to_vec());
    }

    /// Adds a row of as many cells as there are.
    pub(crate) fn row_of(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Adds a row of a name and a value.
    pub(crate) fn value(&mut self, name: &str, value: impl Into<String>) {
        self.row([name.to_owned(), value.into()]);
    }

    /// Returns the width of each column in characters.
    fn widths(&self) -> Vec<usize> {
        let width_of = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max();
            let (heading, _) = &self.columns[column];
            widest.unwrap_or(0).max(heading.chars().count())
        };
        (0..self.columns.len()).map(width_of).collect()
    }

    /// Returns one line, without blanks at its end.
    fn line<'a>(&self, cells: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, width), (_, align)) in cells.zip(widths).zip(&self.columns) {
            line.push_str(INDENT);
            match align {
                Align::Left => line.push_str(&format!("{cell:<width$}")),
                Align::Right => line.push_str(&format!("{cell:>width$}")),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        if self.columns.iter().any(|(heading, _)| !heading.is_empty()) {
            let headings = self.columns.iter().map(|(heading, _)| heading.as_str());
            writeln!(f, "{}", self.line(headings, &widths))?;
            let rules: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
            writeln!(
                f,
                "{}",
                self.line(rules.iter().map(String::as_str), &widths)
            )?;
        }
        for row in &self.rows {
            writeln!(f, "{}", self.line(row.iter().map(String::as_str), &widths))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new([("kind", Align::Left), ("bytes", Align::Right)]);
        table.row(["Fill".to_owned(), "16 MiB".to_owned()]);
        table.row(["MapAperture".to_owned(), "0 B".to_owned()]);

        let expected = concat!(
            "  kind          bytes\n",
            "  ───────────  ──────\n",
            "  Fill         16 MiB\n",
            "  MapAperture     0 B\n",
        );
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn table_of_values_has_no_heading() {
        let mut table = Table::of_values();
        table.value("page", "4 KiB");
        table.value("segments", "3");

        assert_eq!(table.to_string(), "  page      4 KiB\n  segments  3\n");
    }

    #[test]
    fn lines_end_without_blanks() {
        let mut table = Table::new([("name", Align::Left), ("flags", Align::Left)]);
        table.row(["a".to_owned(), String::new()]);

        assert!(table.to_string().ends_with("\n  a\n"));
    }
}
