// SPDX-License-Identifier: GPL-2.0

//! The catalogue: which operations can be measured, and which rows are made of them.
//!
//! Rows share operations; each is measured once per round, in the order in which they were added.

use std::collections::{
    BTreeMap,
    BTreeSet, //
};

use crate::{
    cost::Cost,
    failure::{
        Failure,
        Result, //
    },
    mode::Mode, //
};

/// Runs one repetition of an operation, and returns its cost in nanoseconds per operation.
pub type Repetition = Box<dyn FnMut() -> Result<f64>>;

/// An operation that can be measured.
pub struct Operation {
    /// Its name, by which costs refer to it.
    pub name: String,
    /// Begins a turn: makes what the repetitions use, which goes when the turn is over. So a turn
    /// does not depend on those before it.
    pub begin: Box<dyn Fn() -> Result<Repetition>>,
}

/// Which side of a limit a ratio shall be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The cost of vidmm divided by the other one is at most this.
    AtMost,
    /// The bandwidth of vidmm divided by the other one, for the same bytes, is at least this.
    AtLeast,
}

/// What one ratio of a row shall be.
#[derive(Clone, Debug)]
pub struct Goal {
    /// The mode in which it holds.
    pub mode: Mode,
    /// Which side of the limit.
    pub bound: Bound,
    /// The limit.
    pub limit: f64,
    /// What vidmm is compared with.
    pub against: Cost,
}

impl Goal {
    /// Counting instructions, at most `limit` times the cost of `against`.
    pub fn instructions(limit: f64, against: impl Into<Cost>) -> Self {
        Self::new(Mode::Instructions, Bound::AtMost, limit, against)
    }

    /// In real time, at most `limit` times the cost of `against`.
    pub fn wall(limit: f64, against: impl Into<Cost>) -> Self {
        Self::new(Mode::Wall, Bound::AtMost, limit, against)
    }

    /// In real time, at least `limit` times the bandwidth of `against`.
    pub fn bandwidth(limit: f64, against: impl Into<Cost>) -> Self {
        Self::new(Mode::Wall, Bound::AtLeast, limit, against)
    }

    fn new(mode: Mode, bound: Bound, limit: f64, against: impl Into<Cost>) -> Self {
        Self {
            mode,
            bound,
            limit,
            against: against.into(),
        }
    }
}

impl From<&str> for Cost {
    fn from(operation: &str) -> Self {
        Cost::of(operation)
    }
}

impl From<String> for Cost {
    fn from(operation: String) -> Self {
        Cost::of(operation)
    }
}

/// A row of the results.
pub struct Row {
    /// Its name: that of the goal, and what tells it from others of the same goal.
    pub name: String,
    /// What vidmm does.
    pub what: String,
    /// The cost of that.
    pub vidmm: Cost,
    /// What a user would pick instead.
    pub peer: Option<Cost>,
    /// The least that the machine can do.
    pub floor: Option<Cost>,
    /// What the ratios shall be.
    pub goals: Vec<Goal>,
}

impl Row {
    /// Begins a row.
    pub fn new(name: impl Into<String>, what: impl Into<String>, vidmm: impl Into<Cost>) -> Self {
        Self {
            name: name.into(),
            what: what.into(),
            vidmm: vidmm.into(),
            peer: None,
            floor: None,
            goals: Vec::new(),
        }
    }

    /// Names the peer.
    pub fn peer(mut self, peer: impl Into<Cost>) -> Self {
        self.peer = Some(peer.into());
        self
    }

    /// Names the floor.
    pub fn floor(mut self, floor: impl Into<Cost>) -> Self {
        self.floor = Some(floor.into());
        self
    }

    /// Adds a goal.
    pub fn goal(mut self, goal: Goal) -> Self {
        self.goals.push(goal);
        self
    }

    /// Returns everything that must be measured for the row.
    fn costs(&self) -> impl Iterator<Item = &Cost> {
        let goals = self.goals.iter().map(|goal| &goal.against);
        [Some(&self.vidmm), self.peer.as_ref(), self.floor.as_ref()]
            .into_iter()
            .flatten()
            .chain(goals)
    }

    /// Says whether a mode has anything to say about the row: bulk work is not counted in
    /// instructions.
    fn is_for(&self, mode: Mode) -> bool {
        mode == Mode::Wall || self.goals.iter().any(|goal| goal.mode == mode)
    }
}

/// All operations and rows.
#[derive(Default)]
pub struct Catalogue {
    operations: Vec<Operation>,
    absent: BTreeMap<String, Failure>,
    rows: Vec<Row>,
}

impl Catalogue {
    /// An empty catalogue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an operation, unless there is one of that name. `begin` begins a turn.
    pub fn operation<R: FnMut() -> Result<f64> + 'static>(
        &mut self,
        name: impl Into<String>,
        begin: impl Fn() -> Result<R> + 'static,
    ) {
        let name = name.into();
        if self
            .operations
            .iter()
            .all(|operation| operation.name != name)
        {
            let begin = move || -> Result<Repetition> { Ok(Box::new(begin()?)) };
            let begin = Box::new(begin);
            self.operations.push(Operation { name, begin });
        }
    }

    /// Adds the operation that a peer offers, if it is there; otherwise says why it is not.
    pub fn operation_of<P: Clone + 'static, R: FnMut() -> Result<f64> + 'static>(
        &mut self,
        name: impl Into<String>,
        peer: &Result<P>,
        begin: impl Fn(P) -> Result<R> + 'static,
    ) {
        match peer.clone() {
            Ok(peer) => self.operation(name, move || begin(peer.clone())),
            Err(failure) => {
                self.absent.insert(name.into(), failure);
            }
        }
    }

    /// Adds a row.
    pub fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Returns the rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the operations.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Finds an operation by its name.
    pub fn find(&self, name: &str) -> Result<&Operation> {
        let found = self
            .operations
            .iter()
            .find(|operation| operation.name == name);
        found.ok_or_else(|| match self.absence(name) {
            Some(failure) => failure.clone().during(name),
            None => Failure::new(format!("{name}: no such operation, see --list")),
        })
    }

    /// Returns why an operation cannot be measured.
    pub fn absence(&self, operation: &str) -> Option<&Failure> {
        self.absent.get(operation)
    }

    /// Keeps the rows for a mode whose names begin with `prefix`, and the operations they need.
    pub fn select(&mut self, mode: Mode, prefix: Option<&str>) {
        self.rows.retain(|row| {
            row.is_for(mode) && prefix.is_none_or(|prefix| row.name.starts_with(prefix))
        });
        let needed: BTreeSet<_> = self
            .rows
            .iter()
            .flat_map(Row::costs)
            .flat_map(Cost::operations)
            .collect();
        self.operations
            .retain(|operation| needed.contains(operation.name.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        let mut catalogue = Catalogue::new();
        for name in ["a", "b", "c"] {
            catalogue.operation(name, || Ok(|| Ok(1.0)));
        }
        catalogue.row(Row::new("X1", "", "a").goal(Goal::instructions(1.0, "b")));
        catalogue.row(Row::new("Y1", "", "c").goal(Goal::wall(1.0, "b")));
        catalogue
    }

    fn names(catalogue: &Catalogue) -> Vec<&str> {
        let operations = catalogue.operations().iter();
        operations
            .map(|operation| operation.name.as_str())
            .collect()
    }

    #[test]
    fn bulk_rows_are_not_counted_in_instructions() {
        let mut catalogue = catalogue();

        catalogue.select(Mode::Instructions, None);

        assert_eq!(catalogue.rows().len(), 1);
        assert_eq!(names(&catalogue), ["a", "b"]);
    }

    #[test]
    fn selected_rows_bring_their_operations() {
        let mut catalogue = catalogue();

        catalogue.select(Mode::Wall, Some("Y"));

        assert_eq!(names(&catalogue), ["b", "c"]);
    }

    #[test]
    fn absent_peer_says_why() {
        let mut catalogue = Catalogue::new();
        let peer: Result<()> = Err(Failure::new("no module"));

        catalogue.operation_of("a", &peer, |()| Ok(|| Ok(1.0)));

        assert_eq!(catalogue.absence("a"), Some(&Failure::new("no module")));
    }
}
