// SPDX-License-Identifier: GPL-2.0

//! Tasks that take the pages of a CPU window from each other.

use std::collections::BTreeMap;

use policy::policy::host_aperture::{
    Answer,
    Pages,
    Slot,
    Times,
    Touch,
    LEAST_PAGES, //
};
use proptest::prelude::*;

mod soak;

/// Pages of the segment.
const SEGMENT: u32 = 48;

const TIMES: Times = Times {
    lease: 40,
    turn: 400,
};

type Window = Pages<Vec<Slot<u64>>, Vec<u32>, u64>;

fn window(pages: u32) -> Window {
    let slots = vec![Slot::UNUSED; pages as usize];
    Window::new(slots, vec![0; SEGMENT as usize], TIMES).expect("a window")
}

/// A task that runs instructions, each of which needs several pages at once.
struct Task {
    number: u64,
    program: Vec<Vec<u32>>,
    /// Pages that it has translations of.
    translated: Vec<u32>,
    asleep_until: u64,
}

/// The machine: the window, and what each of its pages shows.
struct Machine {
    window: Window,
    shows: BTreeMap<u32, u32>,
    tasks: Vec<Task>,
    now: u64,
}

impl Machine {
    fn new(pages: u32, programs: Vec<Vec<Vec<u32>>>) -> Self {
        let tasks = programs.into_iter().zip(1..).map(|(program, number)| Task {
            number,
            program,
            translated: Vec::new(),
            asleep_until: 0,
        });
        Self {
            window: window(pages),
            shows: BTreeMap::new(),
            tasks: tasks.collect(),
            now: 0,
        }
    }

    fn is_done(&self) -> bool {
        self.tasks.iter().all(|task| task.program.is_empty())
    }

    /// Lets one task try to run its next instruction: it runs, or touches one page that is missing.
    fn step(&mut self, index: usize) {
        self.now += 1;
        let task = &self.tasks[index];
        if task.asleep_until > self.now {
            return;
        }
        let Some(instruction) = task.program.last() else {
            return;
        };
        let missing = instruction
            .iter()
            .find(|page| !task.translated.contains(page));
        let Some(&page) = missing else {
            self.tasks[index].program.pop();
            return;
        };
        let answer = self.window.touch(Touch {
            page,
            owner: u64::from(page),
            task: task.number,
            now: self.now,
        });
        match answer {
            Answer::Wait(until) => self.tasks[index].asleep_until = until,
            Answer::Shown(shown) => {
                assert_eq!(self.shows.get(&shown), Some(&page));
                self.tasks[index].translated.push(page);
            }
            Answer::Given(given, lost) => {
                let before = self.shows.insert(given, page);
                assert_eq!(before.map(u64::from), lost, "what page {given} showed");
                for task in &mut self.tasks {
                    task.translated.retain(|page| Some(*page) != before);
                }
                self.tasks[index].translated.push(page);
            }
        }
        assert_eq!(self.window.used() as usize, self.shows.len());
    }
}

/// Programs of instructions that need up to four pages.
fn programs() -> impl Strategy<Value = Vec<Vec<Vec<u32>>>> {
    let instruction = prop::collection::vec(0..SEGMENT, 1..=4);
    prop::collection::vec(prop::collection::vec(instruction, 1..12), 1..7)
}

fn steps_enough(machine: &Machine) -> u64 {
    let instructions: usize = machine.tasks.iter().map(|task| task.program.len()).sum();
    // Each instruction has a turn of its own at worst, and each turn waits for one of every task.
    (instructions as u64 + 1) * (machine.tasks.len() as u64 + 1) * 2 * TIMES.turn
}

#[test]
fn tasks_in_lockstep_come_to_an_end() {
    let space = (LEAST_PAGES..9, programs());
    soak::check(500, space, |(pages, programs)| {
        let mut machine = Machine::new(pages, programs);
        for step in 0..steps_enough(&machine) {
            machine.step(step as usize % machine.tasks.len());
        }
        prop_assert!(machine.is_done());
        Ok(())
    });
}

#[test]
fn tasks_in_any_order_come_to_an_end() {
    let space = (LEAST_PAGES..9, programs(), any::<u64>());
    soak::check(500, space, |(pages, programs, seed)| {
        let mut machine = Machine::new(pages, programs);
        let mut state = seed | 1;
        for _ in 0..steps_enough(&machine) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            machine.step((state >> 11) as usize % machine.tasks.len());
        }
        prop_assert!(machine.is_done());
        Ok(())
    });
}

#[test]
fn pages_that_are_given_back_are_free_again() {
    let touches = prop::collection::vec((0..SEGMENT, 0..4_u64, 0..6_u8), 0..200);
    soak::check(1000, (LEAST_PAGES..12, touches), |(pages, touches)| {
        let mut window = window(pages);
        let mut shows = BTreeMap::new();
        for (now, (page, task, what)) in touches.into_iter().enumerate() {
            if what == 0 {
                let mut taken = [0; 3];
                let owned = |owner: &u64| *owner % 2 == u64::from(page) % 2;
                let count = window.take_back(&mut taken, owned);
                for shown in &taken[..count] {
                    let page: Option<u32> = shows.remove(shown);
                    prop_assert!(page.is_some_and(|page| owned(&u64::from(page))));
                }
                continue;
            }
            let now = now as u64 * 17;
            let owner = u64::from(page);
            let answer = window.touch(Touch {
                page,
                owner,
                task,
                now,
            });
            match answer {
                Answer::Shown(shown) => prop_assert_eq!(shows.get(&shown), Some(&page)),
                Answer::Given(given, lost) => {
                    let before = shows.insert(given, page);
                    prop_assert_eq!(before.map(u64::from), lost);
                }
                Answer::Wait(until) => prop_assert!(until > now),
            }
            prop_assert_eq!(window.used() as usize, shows.len());
            prop_assert!(window.used() <= pages);
        }
        Ok(())
    });
}
