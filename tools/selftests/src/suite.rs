// SPDX-License-Identifier: GPL-2.0

//! Suites and their tests: the table that everything else works from.
//!
//! A suite is a list of tests that share one load of the module. A test is a function that panics
//! when something does not hold. Which requirements a test proves stands beside its name.

/// One test.
pub struct Case {
    /// Requirements it proves, as `[SEG-1] [SEG-2]`; empty where the interface alone asks for it.
    pub ids: &'static str,
    /// Name that states case and outcome.
    pub name: &'static str,
    /// The test. Panics on failure.
    pub run: fn(),
}

/// Tests that share one load of the module.
pub struct Suite {
    /// Name of the suite, first part of the names of its tests.
    pub name: &'static str,
    /// Parameters of the module, or none where each test loads it by itself.
    pub parameters: Option<&'static str>,
    /// The tests, in the order in which they run.
    pub cases: &'static [Case],
}

impl Suite {
    /// Full name of a test.
    pub fn title(&self, case: &Case) -> String {
        format!("{}.{}", self.name, case.name)
    }

    /// The tests whose full name contains `filter`, in their order.
    pub fn chosen<'a>(&'static self, filter: &'a str) -> impl Iterator<Item = &'static Case> + 'a {
        let cases = self.cases.iter();
        cases.filter(move |case| self.title(case).contains(filter))
    }
}

/// DISC with its page tables in system memory: all of the memory segments is for allocations, however
/// many clients have address spaces.
pub const TABLES_OUTSIDE: &str = "profile=DISC levels=4 client_tables=0 paging_tables=0";

/// Makes a table of tests out of lines of requirements and functions.
#[macro_export]
macro_rules! cases {
    ($($ids:literal $name:ident,)+) => {
        &[$($crate::suite::Case { ids: $ids, name: stringify!($name), run: $name }),+]
    };
}

/// Leaves the test that runs now, which cannot run on this kernel.
///
/// The only reasons are `needs-debug-kernel` and `needs-stock-kernel`.
pub fn skip(reason: &'static str) -> ! {
    std::panic::panic_any(Skip(reason))
}

/// Payload of the panic by which a test is skipped.
pub struct Skip(pub &'static str);
