// SPDX-License-Identifier: GPL-2.0

//! Placement against a map that names the owner of each page.

use std::ops::Range;

use policy::policy::placement::{
    Chain,
    End,
    Link,
    PagePool, //
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

mod soak;

/// A pool over memory of its own.
type Pool = PagePool<Vec<u64>, Vec<Link>>;

/// Makes a pool over memory of random content.
fn pool(pages: u32) -> Pool {
    let words = vec![0x1234_5678_9abc_def0; Pool::words(pages)];
    Pool::new(words, vec![Link::UNUSED; pages as usize], pages).unwrap()
}

/// Something to do with a pool; numbers are cut to what there is.
#[derive(Clone, Debug)]
enum Step {
    /// Take one run.
    Run {
        pages: u32,
        align: u32,
        within: Range<u32>,
        from: End,
    },
    /// Take loose pages.
    Loose {
        pages: u32,
        within: Range<u32>,
        prefer: Range<u32>,
        from: End,
    },
    /// Take exactly these.
    At(Range<u32>),
    /// Give one chain back.
    Give(usize),
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Low), Just(End::High)]
}

/// Any range, also empty or reversed, or one that covers everything.
fn range(pages: u32) -> impl Strategy<Value = Range<u32>> {
    prop_oneof![
        3 => Just(0..u32::MAX),
        1 => (0..=pages + 3, 0..=pages + 3).prop_map(|(start, end)| start..end),
    ]
}

/// Sizes, small ones more often.
fn size(pages: u32) -> impl Strategy<Value = u32> {
    prop_oneof![0..=4_u32, 0..=40_u32, 0..=pages + 1]
}

fn step(pages: u32) -> impl Strategy<Value = Step> {
    let run = (size(pages), 0..8_u32, range(pages), end());
    let loose = (size(pages), range(pages), range(pages), end());
    let at = (0..=pages, 0..20_u32);
    prop_oneof![
        3 => run.prop_map(|(pages, align, within, from)| {
            let align = if align < 4 { align } else { 1 << align };
            let align = if align == 3 { 1 } else { align };
            Step::Run { pages, align, within, from }
        }),
        3 => loose.prop_map(|(pages, within, prefer, from)| {
            Step::Loose { pages, within, prefer, from }
        }),
        1 => at.prop_map(|(start, pages)| Step::At(start..start + pages)),
        5 => any::<usize>().prop_map(Step::Give),
    ]
}

/// A size of pool and what to do with it.
fn story() -> impl Strategy<Value = (u32, Vec<Step>)> {
    let pages = prop_oneof![0..=70_u32, 0..=300_u32, 2000..=5000_u32];
    pages.prop_flat_map(|pages| (Just(pages), prop::collection::vec(step(pages), 0..60)))
}

/// The naive picture: who owns each page, and the pages of each chain in order.
struct Model {
    /// Whether each page is free.
    free: Vec<bool>,
    /// The chains that were handed out and the pages that they are.
    chains: Vec<(Chain, Vec<u32>)>,
}

impl Model {
    fn clip(&self, range: &Range<u32>) -> Range<u32> {
        let pages = self.free.len() as u32;
        range.start.min(pages)..range.end.min(pages)
    }

    fn all_free(&self, mut range: Range<u32>) -> bool {
        range.all(|page| self.free.get(page as usize) == Some(&true))
    }

    /// Free runs inside `within`.
    fn runs(&self, within: &Range<u32>) -> Vec<Range<u32>> {
        let mut runs: Vec<Range<u32>> = Vec::new();
        for page in self.clip(within) {
            if !self.free[page as usize] {
                continue;
            }
            match runs.last_mut() {
                Some(run) if run.end == page => run.end += 1,
                _ => runs.push(page..page + 1),
            }
        }
        runs
    }

    /// Where a run has to be.
    fn place(&self, pages: u32, align: u32, within: &Range<u32>, from: End) -> Option<u32> {
        let within = self.clip(within);
        if pages == 0 {
            return None;
        }
        let good = |start: &u32| {
            start % align.max(1) == 0
                && start + pages <= within.end
                && self.all_free(*start..start + pages)
        };
        match from {
            End::Low => within.clone().find(good),
            End::High => within.clone().rev().find(good),
        }
    }

    /// Notes that a chain was handed out; its pages must have been free.
    fn take(&mut self, pool: &Pool, chain: Chain) -> TestCaseResult {
        let pages: Vec<u32> = pool.runs(&chain).flatten().collect();
        prop_assert_eq!(pages.len(), chain.pages() as usize);
        prop_assert_eq!(pages.first().copied(), Some(chain.first()));
        for page in &pages {
            prop_assert!(self.free[*page as usize], "page {} given twice", page);
            self.free[*page as usize] = false;
        }
        self.chains.push((chain, pages));
        Ok(())
    }

    /// Compares everything that the pool says.
    fn compare(&self, pool: &Pool) -> TestCaseResult {
        let runs = self.runs(&(0..u32::MAX));
        let longest = runs.iter().map(|run| run.end - run.start).max();
        let free = self.free.iter().filter(|free| **free).count();
        prop_assert_eq!(pool.free_pages() as usize, free);
        prop_assert_eq!(pool.largest_run(), longest.unwrap_or(0));
        prop_assert_eq!(pool.free_runs().collect::<Vec<_>>(), runs);
        for (chain, pages) in &self.chains {
            let now: Vec<u32> = pool.runs(chain).flatten().collect();
            prop_assert_eq!(&now, pages, "a chain changed");
        }
        Ok(())
    }
}

/// Takes loose pages and checks what came.
fn take_loose(
    pool: &mut Pool,
    model: &mut Model,
    pages: u32,
    within: &Range<u32>,
    prefer: &Range<u32>,
    from: End,
) -> TestCaseResult {
    let mut runs = model.runs(within);
    let free: u32 = runs.iter().map(|run| run.end - run.start).sum();
    prop_assert_eq!(pool.free_within(within.clone()), free);
    let chain = pool.take_loose(pages, within.clone(), prefer.clone(), from);
    prop_assert_eq!(chain.is_some(), pages != 0 && pages <= free);
    let Some(chain) = chain else {
        return Ok(());
    };
    prop_assert_eq!(chain.pages(), pages);
    let taken: Vec<Range<u32>> = pool.runs(&chain).collect();
    model.take(pool, chain)?;
    let inside =
        |run: &Range<u32>, area: &Range<u32>| run.start >= area.start && run.end <= area.end;
    prop_assert!(taken.iter().all(|run| inside(run, within)));
    let preferred = prefer.start.max(within.start)..prefer.end.min(within.end);
    if preferred.is_empty() || preferred == *within {
        runs.sort_by_key(|run| run.start.wrapping_sub(run.end));
        let mut sum = 0;
        let needed = runs.iter().take_while(|run| {
            let more = sum < pages;
            sum += run.end - run.start;
            more
        });
        prop_assert_eq!(taken.len(), needed.count(), "more runs than needed");
    } else if taken
        .iter()
        .flat_map(Clone::clone)
        .any(|page| !preferred.contains(&page))
    {
        prop_assert_eq!(model.runs(&preferred).len(), 0, "preferred pages are left");
    }
    Ok(())
}

/// Does one step on the pool and checks it against the model.
fn apply(pool: &mut Pool, model: &mut Model, step: Step) -> TestCaseResult {
    match step {
        Step::Run {
            pages,
            align,
            within,
            from,
        } => {
            let expected = model.place(pages, align, &within, from);
            let chain = pool.take_run(pages, align, within, from);
            prop_assert_eq!(chain.as_ref().map(Chain::first), expected);
            if let Some(chain) = chain {
                prop_assert_eq!(chain.pages(), pages);
                prop_assert_eq!(pool.runs(&chain).count(), 1);
                model.take(pool, chain)?;
            }
        }
        Step::Loose {
            pages,
            within,
            prefer,
            from,
        } => take_loose(pool, model, pages, &within, &prefer, from)?,
        Step::At(range) => {
            let possible = !range.is_empty() && model.all_free(range.clone());
            let chain = pool.take_at(range.clone());
            prop_assert_eq!(chain.is_ok(), possible);
            if let Ok(chain) = chain {
                prop_assert_eq!(pool.runs(&chain).collect::<Vec<_>>(), vec![range]);
                model.take(pool, chain)?;
            }
        }
        Step::Give(which) => {
            if !model.chains.is_empty() {
                let which = which % model.chains.len();
                let (chain, pages) = model.chains.swap_remove(which);
                pool.give(chain);
                for page in pages {
                    model.free[page as usize] = true;
                }
            }
        }
    }
    model.compare(pool)
}

#[test]
fn pool_agrees_with_a_page_map() {
    soak::check(200, story(), |(pages, steps)| {
        let mut pool = pool(pages);
        let mut model = Model {
            free: vec![true; pages as usize],
            chains: Vec::new(),
        };
        model.compare(&pool)?;
        for step in steps {
            apply(&mut pool, &mut model, step)?;
        }
        for (chain, _) in model.chains.drain(..) {
            pool.give(chain);
        }
        prop_assert_eq!(pool.largest_run(), pages);
        Ok(())
    });
}

#[test]
fn ranges_agree_with_a_page_map() {
    let story = story().prop_flat_map(|(pages, steps)| {
        let ranges = prop::collection::vec(range(pages), 1..20);
        (Just(pages), Just(steps), ranges)
    });
    soak::check(100, story, |(pages, steps, ranges)| {
        let mut pool = pool(pages);
        let mut model = Model {
            free: vec![true; pages as usize],
            chains: Vec::new(),
        };
        for step in steps {
            apply(&mut pool, &mut model, step)?;
        }
        for range in ranges {
            let runs = model.runs(&range);
            let lengths = || runs.iter().map(|run| run.end - run.start);
            prop_assert_eq!(pool.free_within(range.clone()), lengths().sum::<u32>());
            prop_assert_eq!(pool.largest_within(range), lengths().max().unwrap_or(0));
        }
        Ok(())
    });
}

#[test]
fn any_list_that_fits_fills_an_empty_pool() {
    let runs = prop::collection::vec((1..200_u32, end()), 0..60);
    soak::check(500, (runs, 0..100_u32), |(runs, spare)| {
        let sum: u32 = runs.iter().map(|(pages, _)| pages).sum();
        let mut pool = pool(sum + spare);
        for (pages, from) in runs {
            let chain = pool.take_run(pages, 1, 0..u32::MAX, from);
            prop_assert!(chain.is_some());
        }
        prop_assert_eq!(pool.free_pages(), spare);
        prop_assert_eq!(pool.largest_run(), spare);
        Ok(())
    });
}
