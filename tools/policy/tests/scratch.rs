// SPDX-License-Identifier: GPL-2.0

//! The ring of scratch ranges against a list of what is in use.

use std::collections::VecDeque;

use policy::policy::scratch::{
    Part,
    Purpose,
    Ring,
    Taken, //
};
use proptest::prelude::*;

/// Pages of the area.
const PAGES: u32 = 64;
/// Records of the ring.
const RECORDS: usize = 12;

/// Something that is done with a ring.
#[derive(Clone, Debug)]
enum Step {
    /// Ranges of these lengths are taken.
    Take(Vec<u32>),
    /// What was taken ends with the next piece of work.
    Settle,
    /// The oldest pieces of work are complete, so many.
    Complete(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::collection::vec(1..24_u32, 1..4).prop_map(Step::Take),
        3 => Just(Step::Settle),
        2 => (0..3_u64).prop_map(Step::Complete),
    ]
}

proptest! {
    #[test]
    fn ranges_never_overlap_and_come_back_in_order(steps in prop::collection::vec(step(), 1..200)) {
        let mut ring = Ring::new(PAGES, [Taken::UNUSED; RECORDS]);
        let mut live: VecDeque<(std::ops::Range<u32>, Option<u64>)> = VecDeque::new();
        let (mut work, mut completed) = (0, 0);
        for step in steps {
            match step {
                Step::Take(lengths) => {
                    let parts: Vec<Part> = lengths
                        .iter()
                        .map(|pages| Part { pages: *pages, purpose: Purpose::Source })
                        .collect();
                    let total: u32 = lengths.iter().sum();
                    let Some(first) = ring.take(&parts) else {
                        let room = total <= PAGES && parts.len() <= RECORDS;
                        prop_assert!(!live.is_empty() || !room);
                        continue;
                    };
                    let mut start = first;
                    for pages in lengths {
                        let range = start..start + pages;
                        prop_assert!(range.end <= PAGES);
                        let apart = live.iter().all(|(other, _)| {
                            range.end <= other.start || other.end <= range.start
                        });
                        prop_assert!(apart);
                        start = range.end;
                        live.push_back((range, None));
                    }
                    prop_assert!(live.len() <= RECORDS);
                }
                Step::Settle => {
                    work += 1;
                    ring.settle(work);
                    for (_, end) in live.iter_mut().filter(|(_, end)| end.is_none()) {
                        *end = Some(work);
                    }
                }
                Step::Complete(more) => {
                    completed = work.min(completed + more);
                    while let Some(taken) = ring.release(completed) {
                        let (range, end) = live.pop_front().unwrap();
                        prop_assert_eq!(taken.first..taken.first + taken.part.pages, range);
                        prop_assert!(end.unwrap() <= completed);
                    }
                    let oldest = live.front().and_then(|(_, end)| *end);
                    prop_assert!(oldest.is_none_or(|end| end > completed));
                }
            }
        }
    }
}
