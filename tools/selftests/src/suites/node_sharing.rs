// SPDX-License-Identifier: GPL-2.0

//! Who runs on a node when: order within a context, portions of one submission among the work of others.

use std::{
    sync::atomic::{
        AtomicBool,
        Ordering, //
    },
    thread, //
};

use crate::{
    client::{
        context_argument,
        Context, //
    },
    commands::Commands,
    debugfs,
    fixture::{
        physical,
        Fixture,
        KIB,
        PHYSICAL_NODE,
        VISIBLE_SEGMENT, //
    },
    portions::{
        edge,
        leave_free,
        portions_of,
        Piece,
        Portion, //
    },
    suite::Suite,
    trace::{
        Events,
        Recording, //
    }, //
};

/// The suite on a node that saves contexts.
pub const SUITE: Suite = Suite {
    name: "node_sharing",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[DMA-27]" work_of_others_runs_between_portions,
        "[DMA-30]" buffers_of_one_context_run_in_order,
        "[DMA-30]" clients_that_flood_share_the_node,
        "[DMA-30]" higher_priority_goes_first,
        "[DMA-30]" work_of_others_does_not_keep_a_cut_submission_waiting,
    },
};

/// The suite on a node that does not.
pub const BACK_TO_BACK_SUITE: Suite = Suite {
    name: "node_sharing_nsr",
    parameters: Some("profile=DISC-NSR"),
    cases: EXCLUSIVE,
};

/// The suite on an adapter without GPU MMU.
pub const PHYSICAL_SUITE: Suite = Suite {
    name: "node_sharing_phys",
    parameters: Some("profile=PHYS"),
    cases: EXCLUSIVE,
};

const EXCLUSIVE: &[crate::suite::Case] = crate::cases! {
    "[DMA-3] [DMA-4]" portions_run_back_to_back,
    "[DMA-30]" work_of_others_does_not_keep_a_cut_submission_waiting,
};

const SIZE: u64 = 256 * KIB;

/// A submission in many portions beside a context that floods the node with small buffers.
fn run_beside_a_flood(rounds: u32) -> (Events, Vec<Vec<Portion>>) {
    let other = Fixture::new();
    let small = other.create_resident(physical(4 * KIB, VISIBLE_SEGMENT));
    let other_context = other.context();
    let mut buffer = Commands::new();
    for value in 0..16 {
        buffer.store(small.at(8 * value), value);
    }
    let fixture = Fixture::new();
    let pieces: Vec<Piece> = (0..4).map(|_| Piece::new(&fixture, SIZE)).collect();
    let context = fixture.context();
    leave_free(SIZE);
    let stop = AtomicBool::new(false);
    let recording = Recording::start();
    thread::scope(|scope| {
        scope.spawn(|| flood(&other, &other_context, &buffer, &stop));
        for round in 0..rounds {
            let mut commands = Commands::new();
            for piece in &pieces {
                commands.store_in(0, &piece.allocation, 8 * u64::from(round), piece.object);
                commands.spin(200_000);
            }
            fixture.run(&context, &commands);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let events = recording.stop();
    debugfs::inject("reserve 1 0");
    for round in 0..rounds as usize {
        assert!(pieces
            .iter()
            .all(|piece| piece.mapping.read64(8 * round) == piece.object));
    }
    let mut numbers: Vec<u64> = Vec::new();
    for event in events
        .named("dma_portion")
        .filter(|event| event.number("start") > 0)
    {
        if numbers.last() != Some(&event.number("submit")) {
            numbers.push(event.number("submit"));
        }
    }
    let all = numbers
        .iter()
        .map(|number| portions_of(&events, *number))
        .collect();
    (events, all)
}

/// Keeps a few buffers queued until told to stop.
fn flood(fixture: &Fixture, context: &Context, buffer: &Commands, stop: &AtomicBool) {
    let mut last = 0;
    while !stop.load(Ordering::Relaxed) {
        last = buffer.submit(&fixture.client, context);
        if last > 8 {
            fixture.client.wait(context.progress, last - 8);
        }
    }
    fixture.client.wait(context.progress, last);
}

/// How many buffers of others begin between the first begin and the last end of a submission.
fn others_between(events: &Events, portions: &[Portion]) -> usize {
    let first = edge(events, "node_begin", &portions[0]);
    let last = edge(events, "node_end", portions.last().expect("portions"));
    let context = events.0[first].word("ctx");
    let node = events.0[first].word("node");
    let others = events.0[first..last].iter().filter(|event| {
        event.name == "node_begin"
            && event.word("kind") == "dma"
            && event.word("node") == node
            && event.word("ctx") != context
    });
    others.count()
}

fn portions_run_back_to_back() {
    let (events, submissions) = run_beside_a_flood(5);
    assert_eq!(submissions.len(), 5);
    for portions in &submissions {
        assert_eq!(portions.len(), 4);
        assert_eq!(others_between(&events, portions), 0);
        for pair in portions.windows(2) {
            let end = edge(&events, "node_end", &pair[0]);
            let begin = edge(&events, "node_begin", &pair[1]);
            let paging = events.0[end..begin]
                .iter()
                .filter(|event| event.name == "node_begin" && event.word("kind") == "paging");
            assert!(paging.count() > 0, "no paging between two portions");
        }
    }
    // The flood has run, before and behind.
    assert!(events.named("dma_portion").count() > 5 * 4 + 5);
}

fn work_of_others_runs_between_portions() {
    let (events, submissions) = run_beside_a_flood(5);
    assert_eq!(submissions.len(), 5);
    let others = submissions
        .iter()
        .map(|portions| others_between(&events, portions));
    assert!(others.sum::<usize>() > 0, "no interleaving");
}

fn buffers_of_one_context_run_in_order() {
    let fixture = Fixture::new();
    let piece = Piece::new(&fixture, 16 * KIB);
    let context = fixture.context();
    let mut last = 0;
    for number in 1..=1000_u64 {
        let mut commands = Commands::new();
        commands.copy_bytes(piece.allocation.at(8 * number), piece.allocation.at(0), 8);
        commands.store(piece.allocation.at(0), number);
        last = commands.submit(&fixture.client, &context);
    }
    fixture.client.wait(context.progress, last);
    for number in 1..=1000 {
        assert_eq!(piece.mapping.read64(8 * number as usize), number - 1);
    }
}

/// A client whose contexts flood the node with buffers that take so long each.
struct Crowd {
    fixture: Fixture,
    contexts: Vec<Context>,
    /// Buffers of each context.
    count: u64,
}

impl Crowd {
    /// Queues 60 milliseconds of work in each context; the node is paused.
    fn new(contexts: usize, nanoseconds: u64) -> Self {
        let fixture = Fixture::new();
        let contexts: Vec<Context> = (0..contexts).map(|_| fixture.context()).collect();
        let count = 60_000_000 / nanoseconds;
        let mut commands = Commands::new();
        commands.spin(nanoseconds);
        for context in &contexts {
            for _ in 0..count {
                commands.submit(&fixture.client, context);
            }
        }
        Self {
            fixture,
            contexts,
            count,
        }
    }

    /// Time on the node so far, and whether a context is through. How long a buffer really took counts, which is
    /// more than it asked for where timers are late.
    fn had(&self) -> (u64, bool) {
        let mut had = 0;
        let mut through = false;
        for context in &self.contexts {
            let report = |id| self.fixture.client.try_submission(context.handle, id);
            let reports = (1..=self.count).map(|id| report(id).expect("SUBMIT_QUERY"));
            let done: Vec<_> = reports.take_while(|report| report.end_ns > 0).collect();
            through |= done.len() as u64 == self.count;
            had += done
                .iter()
                .map(|report| report.end_ns - report.start_ns)
                .sum::<u64>();
        }
        (had, through)
    }
}

/// Lets two crowds run until the first context of one is through; returns the time each had.
fn shares(crowds: [(usize, u64); 2]) -> [u64; 2] {
    debugfs::inject("pause 2");
    let crowds = crowds.map(|(contexts, nanoseconds)| Crowd::new(contexts, nanoseconds));
    // Time for the worker to prepare what it can.
    thread::sleep(std::time::Duration::from_millis(100));
    debugfs::inject("resume 2");
    loop {
        let had = crowds.each_ref().map(Crowd::had);
        if had.iter().any(|(_, through)| *through) {
            return had.map(|(had, _)| had);
        }
        thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn clients_that_flood_share_the_node() {
    let alike = [(1, 1_000_000), (1, 1_000_000)];
    let long_and_short = [(1, 4_000_000), (1, 1_000_000)];
    let many_and_one = [(4, 1_000_000), (1, 1_000_000)];
    for crowds in [alike, long_and_short, many_and_one] {
        let shares = shares(crowds);
        let third = (shares[0] + shares[1]) / 3;
        assert!(
            shares.iter().all(|share| *share >= third),
            "{shares:?} of {crowds:?}"
        );
    }
}

fn higher_priority_goes_first() {
    let fixture = Fixture::new();
    let contexts = [-1, 1].map(|priority| {
        let mut argument = context_argument(fixture.device, PHYSICAL_NODE, 0);
        argument.priority = priority;
        fixture
            .client
            .try_create_context(&mut argument)
            .expect("CONTEXT_CREATE")
    });
    let numbers = contexts.each_ref().map(|context| {
        let records = debugfs::read("processes");
        let mine = records.iter().find(|record| {
            record.try_number("context").is_some()
                && record.try_number("handle") == Some(u64::from(context.handle))
                && record.word("kind") == Some("client")
        });
        mine.expect("the context").number("context")
    });
    let mut commands = Commands::new();
    commands.spin(100_000);
    debugfs::inject("pause 2");
    let recording = Recording::start();
    for context in &contexts {
        for _ in 0..12 {
            commands.submit(&fixture.client, context);
        }
    }
    // Time for the worker to prepare what it can.
    thread::sleep(std::time::Duration::from_millis(100));
    debugfs::inject("resume 2");
    for context in &contexts {
        fixture.client.wait(context.progress, 12);
    }
    let events = recording.stop();
    let begins = events
        .named("node_begin")
        .filter(|event| event.word("kind") == "dma");
    let order: Vec<u64> = begins.map(|event| event.number("ctx")).collect();
    assert_eq!(order.len(), 24);
    // What the node had before the others came it keeps; then all of the higher priority.
    let first = order
        .iter()
        .position(|context| *context == numbers[1])
        .expect("it ran");
    assert!(first <= 8, "{order:?}");
    assert!(
        order[first..first + 12]
            .iter()
            .all(|context| *context == numbers[1]),
        "{order:?}"
    );
}

fn work_of_others_does_not_keep_a_cut_submission_waiting() {
    // The flood pins memory all the time; every round ends all the same.
    let (_, submissions) = run_beside_a_flood(10);
    assert_eq!(submissions.len(), 10);
}
