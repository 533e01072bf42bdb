// SPDX-License-Identifier: GPL-2.0

//! Patterns of use.

use super::Pattern;

/// Percent of all items that fit into memory.
pub const PERCENTS: [u64; 5] = [30, 50, 70, 85, 95];

/// Numbers that look random, the same each time.
pub struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// From 0 to 1.
    fn part(&mut self) -> f64 {
        self.next() as f64 / (1_u64 << 53) as f64
    }

    fn shuffle(&mut self, items: &mut [usize]) {
        for index in (1..items.len()).rev() {
            let other = self.below(index + 1);
            items.swap(index, other);
        }
    }

    /// 1 to 63 pages, small ones more often.
    fn pages(&mut self) -> u64 {
        let base = 1 << self.below(6);
        base + self.below(base as usize) as u64
    }
}

/// A kind of pattern.
pub struct Kind {
    /// What it is called.
    pub name: &'static str,
    /// Which part of the items is in use at one time, in percent: memory is that much smaller.
    active: u64,
    make: fn(&mut Random) -> Drawn,
}

/// The uses of a pattern, and who owns what.
struct Drawn {
    items: usize,
    clients: usize,
    /// Items of each client but the last.
    share: usize,
    uses: Vec<usize>,
}

impl Drawn {
    /// Of one client.
    fn single(items: usize, uses: Vec<usize>) -> Self {
        Self::shared(items, 1, items, uses)
    }

    fn shared(items: usize, clients: usize, share: usize, uses: Vec<usize>) -> Self {
        Self {
            items,
            clients,
            share,
            uses,
        }
    }
}

impl Kind {
    /// Makes one of its kind.
    pub fn make(&self, percent: u64, seed: u64) -> Pattern {
        let mut random = Random::new(seed);
        let drawn = (self.make)(&mut random);
        let pages: Vec<u64> = (0..drawn.items).map(|_| random.pages()).collect();
        let memory = pages.iter().sum::<u64>() * percent / 100 * self.active / 100;
        Pattern {
            memory: memory.max(64),
            client: (0..drawn.items)
                .map(|item| (item / drawn.share).min(drawn.clients - 1))
                .collect(),
            pages,
            uses: drawn.uses,
        }
    }
}

/// All kinds.
pub const KINDS: [Kind; 20] = [
    kind("sequential", 20, sequential),
    kind("loop", 100, looped),
    kind("loop with noise", 100, noisy_loop),
    kind("forth and back", 100, forth_and_back),
    kind("all, in any order", 100, shuffled),
    kind("uniform", 100, uniform),
    kind("zipf 0.7", 100, |random| zipf(random, 0.7)),
    kind("zipf 1.0", 100, |random| zipf(random, 1.0)),
    kind("zipf 1.3", 100, |random| zipf(random, 1.3)),
    kind("turns of 1 frame", 100, |_| turns(1)),
    kind("turns of 3 frames", 100, |_| turns(3)),
    kind("turns of 8 frames", 100, |_| turns(8)),
    kind("four take turns", 100, four_take_turns),
    kind("two loops at once", 100, two_loops),
    kind("hot and stream", 20, |random| hot_and_stream(random, 1)),
    kind("two: hot, stream", 20, |random| hot_and_stream(random, 2)),
    kind("camera", 50, camera),
    kind("phases", 30, phases),
    kind("bursts", 100, bursts),
    kind("frame and loop", 100, frame_and_loop),
];

const fn kind(name: &'static str, active: u64, make: fn(&mut Random) -> Drawn) -> Kind {
    Kind { name, active, make }
}

/// Items of most patterns.
const ITEMS: usize = 300;

/// Everything once.
fn sequential(_: &mut Random) -> Drawn {
    Drawn::single(2000, (0..2000).collect())
}

/// Everything in the same order, again and again.
fn looped(_: &mut Random) -> Drawn {
    Drawn::single(ITEMS, (0..ITEMS * 40).map(|time| time % ITEMS).collect())
}

/// A loop in which some are left out and some change places.
fn noisy_loop(random: &mut Random) -> Drawn {
    let mut uses = Vec::new();
    for _ in 0..40 {
        let mut round: Vec<usize> = (0..ITEMS).filter(|_| !random.one_in(20)).collect();
        for index in 1..round.len() {
            if random.one_in(4) {
                round.swap(index - 1, index);
            }
        }
        uses.extend(round);
    }
    Drawn::single(ITEMS, uses)
}

/// Everything, then everything in the opposite order: what was used last is used next.
fn forth_and_back(_: &mut Random) -> Drawn {
    let uses = (0..40).flat_map(|round| {
        (0..ITEMS).map(move |item| {
            if round % 2 == 0 {
                item
            } else {
                ITEMS - 1 - item
            }
        })
    });
    Drawn::single(ITEMS, uses.collect())
}

/// Everything once per round, each time in another order.
fn shuffled(random: &mut Random) -> Drawn {
    let mut uses = Vec::new();
    for _ in 0..40 {
        let mut round: Vec<usize> = (0..ITEMS).collect();
        random.shuffle(&mut round);
        uses.extend(round);
    }
    Drawn::single(ITEMS, uses)
}

/// Anything at any time.
fn uniform(random: &mut Random) -> Drawn {
    Drawn::single(ITEMS, (0..24_000).map(|_| random.below(ITEMS)).collect())
}

/// Some much more often than others.
fn zipf(random: &mut Random, exponent: f64) -> Drawn {
    let mut items: Vec<usize> = (0..ITEMS).collect();
    random.shuffle(&mut items);
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=ITEMS)
        .map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        })
        .collect();
    let uses = (0..24_000).map(|_| {
        let at = random.part() * sum;
        items[sums.partition_point(|sum| *sum < at).min(ITEMS - 1)]
    });
    Drawn::single(ITEMS, uses.collect())
}

/// Two clients, one after the other, each for some frames; a frame uses all that the client has.
fn turns(frames: usize) -> Drawn {
    let half = ITEMS / 2;
    let uses = (0..96 / frames)
        .flat_map(|turn| (0..half * frames).map(move |time| turn % 2 * half + time % half));
    Drawn::shared(ITEMS, 2, half, uses.collect())
}

/// Four clients, five frames each, some items left out.
fn four_take_turns(random: &mut Random) -> Drawn {
    let quarter = ITEMS / 4;
    let mut uses = Vec::new();
    for turn in 0..60 {
        for time in 0..quarter * 5 {
            if !random.one_in(10) {
                uses.push(turn % 4 * quarter + time % quarter);
            }
        }
    }
    Drawn::shared(ITEMS, 4, quarter, uses)
}

/// Two clients side by side, each in a loop.
fn two_loops(_: &mut Random) -> Drawn {
    let half = ITEMS / 2;
    let uses = (0..half * 40).flat_map(|time| [time % half, half + time % half]);
    Drawn::shared(ITEMS, 2, half, uses.collect())
}

/// A few items used all the time, and many that pass by; of one client or of two.
fn hot_and_stream(random: &mut Random, clients: usize) -> Drawn {
    const HOT: usize = 60;
    let mut next = HOT;
    let mut uses = Vec::new();
    for _ in 0..8000 {
        uses.push(random.below(HOT));
        uses.push(next);
        next = if next == 1999 { HOT } else { next + 1 };
    }
    let share = if clients == 1 { 2000 } else { HOT };
    Drawn::shared(2000, clients, share, uses)
}

/// A camera that walks through a world and sees what is around it, every frame.
fn camera(random: &mut Random) -> Drawn {
    const SIDE: usize = 24;
    const STEPS: [(usize, usize); 4] = [(1, 0), (SIDE - 1, 0), (0, 1), (0, SIDE - 1)];
    let (mut x, mut y) = (SIDE / 2, SIDE / 2);
    let mut step = STEPS[0];
    let mut uses = Vec::new();
    for frame in 0..400 {
        if random.one_in(8) {
            step = STEPS[random.below(4)];
        }
        if frame % 2 == 0 {
            (x, y) = ((x + step.0) % SIDE, (y + step.1) % SIDE);
        }
        for down in 0..9 {
            uses.extend((0..9).map(|right| (y + down) % SIDE * SIDE + (x + right) % SIDE));
        }
    }
    Drawn::single(SIDE * SIDE, uses)
}

/// Loops through a part of the items that moves on from time to time.
fn phases(_: &mut Random) -> Drawn {
    let uses = (0..10).flat_map(|phase| (0..60 * 8).map(move |time| phase * 30 + time % 60));
    Drawn::single(330, uses.collect())
}

/// A loop in which each item is used three times in quick succession.
fn bursts(_: &mut Random) -> Drawn {
    let uses = (0..20).flat_map(|_| {
        (0..ITEMS / 10).flat_map(|group| (0..30).map(move |time| group * 10 + time % 10))
    });
    Drawn::single(ITEMS, uses.collect())
}

/// Some items in every frame, the others in a long loop.
fn frame_and_loop(_: &mut Random) -> Drawn {
    let uses = (0..400).flat_map(|frame| {
        let passing = (0..15).map(move |time| 40 + (frame * 15 + time) % (ITEMS - 40));
        (0..40).chain(passing)
    });
    Drawn::single(ITEMS, uses.collect())
}
