// SPDX-License-Identifier: GPL-2.0

//! Work that does not end: time limits, preemption, resets, and who is to blame.

use crate::{
    abi,
    client::{
        context_argument,
        point,
        Context, //
    },
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        Fixture,
        KIB,
        MIB,
        PAGING_NODE,
        PHYSICAL_NODE, //
    },
    portions::{
        leave_free,
        Piece, //
    },
    suite::Suite,
    trace::{
        Events,
        Recording, //
    }, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "recovery",
    parameters: Some("profile=DISC timeout_ms=400"),
    cases: crate::cases! {
        "[BCK-12]" lost_completion_is_recovered,
        "[BCK-12]" spinning_and_polling_for_ever_are_ended,
        "[BCK-12]" preempted_paging_buffers_come_again_in_order,
        "[BCK-12]" paging_that_does_not_give_way_is_reset_and_comes_again,
        "[BCK-12]" engine_that_cannot_be_reset_takes_the_adapter_along,
        "" limit_of_a_context_counts,
        "" limit_is_that_of_one_portion,
        "" context_without_limit_is_left_alone,
        "[BCK-12]" work_that_ends_at_its_limit_ends_once,
        "" portion_that_hangs_behind_a_cut_frees_the_way,
    },
};

/// A context with the time limit of its node, or another one.
fn limited(fixture: &Fixture, timeout_ms: u32) -> Context {
    let mut argument = context_argument(fixture.device, PHYSICAL_NODE, 0);
    argument.timeout_ms = timeout_ms;
    fixture
        .client
        .try_create_context(&mut argument)
        .expect("CONTEXT_CREATE")
}

/// The backend is called after the devices have been told.
fn wait_for_call(recording: &Recording, name: &str) {
    clock::wait_until("the backend is called", || {
        !calls(&recording.so_far(), name).is_empty()
    });
}

#[track_caller]
fn wait_for_state(fixture: &Fixture, state: u32) {
    clock::wait_until("the device is in error", || {
        fixture.client.device_state(fixture.device).state == state
    });
}

/// Places of the calls of the backend with these names.
fn calls(events: &Events, name: &str) -> Vec<usize> {
    let all = events.0.iter().enumerate();
    all.filter(|(_, event)| event.name == "backend_call" && event.word("name") == name)
        .map(|(at, _)| at)
        .collect()
}

/// A fixture with a resident piece whose content is known, and a check that it goes on as ever.
struct Bystander {
    fixture: Fixture,
    context: Context,
    piece: Piece,
}

impl Bystander {
    fn new() -> Self {
        let fixture = Fixture::new();
        let context = fixture.context();
        let piece = Piece::new(&fixture, 64 * KIB);
        let mut commands = Commands::new();
        commands.fill_bytes(piece.allocation.at(0), 64 << 10, 0x5a5a_5a5a);
        fixture.run(&context, &commands);
        Self {
            fixture,
            context,
            piece,
        }
    }

    #[track_caller]
    fn goes_on(&self) {
        let state = self.fixture.client.device_state(self.fixture.device);
        assert_eq!(state.state, abi::DEVICE_STATE_ACTIVE);
        let mut commands = Commands::new();
        commands.store(self.piece.allocation.at(0), 1);
        self.fixture.run(&self.context, &commands);
        assert_eq!(self.piece.mapping.read64(0), 1);
        assert!(self.piece.mapping.is_filled(8, 4096 - 8, 0x5a));
    }
}

fn lost_completion_is_recovered() {
    let bystander = Bystander::new();
    let fixture = Fixture::new();
    let context = limited(&fixture, 0);
    let piece = Piece::new(&fixture, 4 * KIB);
    fixture.bring_in(&piece.allocation);
    let fence = fixture.client.create_fence(fixture.device, 0);
    let before = [debugfs::stat("preemptions"), debugfs::stat("engine_resets")];
    let recording = Recording::start();
    debugfs::inject("fail completion 1");
    let mut commands = Commands::new();
    commands.store(piece.allocation.at(0), 7);
    let lost = commands.submit(&fixture.client, &context);
    let mut behind = Commands::new();
    behind
        .store(piece.allocation.at(8), 8)
        .then_signal(fence, 1);
    behind.submit(&fixture.client, &context);
    // What was to be signalled is poisoned: nobody waits for ever.
    let waited = fixture.client.try_wait(&[point(fence, 1)], i64::MAX, 0);
    assert!(waited.is_err());
    wait_for_state(&fixture, abi::DEVICE_STATE_HUNG);
    let state = fixture.client.device_state(fixture.device);
    assert_eq!(
        (state.guilty, state.context, state.node),
        (1, context.handle, PHYSICAL_NODE)
    );
    assert_eq!((state.submission, state.reset_count), (lost, 0));
    let refusal = commands
        .try_submit(&fixture.client, context.handle)
        .expect_err("hung");
    assert_eq!(refusal.errno, libc::EIO);
    bystander.goes_on();
    wait_for_call(&recording, "reset_engine");
    let events = recording.stop();
    let asked = calls(&events, "preempt");
    let reset = calls(&events, "reset_engine");
    assert_eq!((asked.len(), reset.len()), (1, 1));
    assert!(asked[0] < reset[0]);
    assert_eq!(calls(&events, "reset_adapter").len(), 0);
    let after = [debugfs::stat("preemptions"), debugfs::stat("engine_resets")];
    assert_eq!([after[0] - before[0], after[1] - before[1]], [1, 1]);
    assert_eq!((piece.mapping.read64(0), piece.mapping.read64(8)), (7, 0));
}

fn spinning_and_polling_for_ever_are_ended() {
    let bystander = Bystander::new();
    for polls in [false, true] {
        let fixture = Fixture::new();
        let context = limited(&fixture, 0);
        let piece = Piece::new(&fixture, 4 * KIB);
        let mut commands = Commands::new();
        if polls {
            commands.poll(piece.allocation.at(0), u64::MAX, 1);
        } else {
            commands.spin(u64::MAX);
        }
        commands.submit(&fixture.client, &context);
        wait_for_state(&fixture, abi::DEVICE_STATE_HUNG);
        bystander.goes_on();
    }
}

/// Lets the completion of the first of three paging buffers be lost; returns what the trace says when all
/// three are complete.
fn lose_paging_completion() -> Events {
    let fixture = Fixture::new();
    let pieces = [0, 1, 2].map(|_| Piece::new(&fixture, 64 * KIB));
    for (value, piece) in (1..).zip(&pieces) {
        piece.mapping.write64(0, value);
    }
    debugfs::inject(&format!("pause {PAGING_NODE}"));
    let recording = Recording::start();
    for piece in &pieces {
        fixture
            .client
            .make_resident(&fixture.queue, &[piece.allocation.handle]);
    }
    clock::wait_until("three buffers are queued", || {
        recording.so_far().named("paging_submit").count() == 3
    });
    debugfs::inject("fail completion 1");
    debugfs::inject(&format!("resume {PAGING_NODE}"));
    for piece in &pieces {
        clock::wait_until("it is resident", || piece.place().0 == 1);
    }
    let handles = pieces.each_ref().map(|piece| piece.allocation.handle);
    fixture.client.bring_in(&fixture.queue, &handles);
    for (value, piece) in (1..).zip(&pieces) {
        assert_eq!(piece.mapping.read64(0), value);
    }
    recording.stop()
}

/// Completion values of paging buffers in the order in which they begin.
fn paging_begins(events: &Events) -> Vec<u64> {
    let begins = events
        .named("node_begin")
        .filter(|event| event.word("kind") == "paging");
    begins.map(|event| event.number("fence")).collect()
}

fn preempted_paging_buffers_come_again_in_order() {
    let events = lose_paging_completion();
    let fences: Vec<u64> = events
        .named("paging_submit")
        .map(|event| event.number("fence"))
        .collect();
    let begins = paging_begins(&events);
    assert_eq!(begins[..4], [fences[0], fences[0], fences[1], fences[2]]);
    assert_eq!(calls(&events, "preempt").len(), 1);
    assert_eq!(calls(&events, "reset_engine").len(), 0);
}

fn paging_that_does_not_give_way_is_reset_and_comes_again() {
    debugfs::inject("fail preempt 1");
    let events = lose_paging_completion();
    let fences: Vec<u64> = events
        .named("paging_submit")
        .map(|event| event.number("fence"))
        .collect();
    assert_eq!(
        paging_begins(&events)[..4],
        [fences[0], fences[0], fences[1], fences[2]]
    );
    assert_eq!(calls(&events, "reset_engine").len(), 1);
    assert_eq!(calls(&events, "reset_adapter").len(), 0);
}

fn engine_that_cannot_be_reset_takes_the_adapter_along() {
    let bystander = Fixture::new();
    let fixture = Fixture::new();
    let context = limited(&fixture, 0);
    let adapter: abi::InfoAdapter = fixture.client.query(abi::QUERY_ADAPTER, 0);
    let mut commands = Commands::new();
    commands.spin(u64::MAX);
    debugfs::inject("fail engine-reset 1");
    let recording = Recording::start();
    commands.submit(&fixture.client, &context);
    wait_for_state(&fixture, abi::DEVICE_STATE_RESET);
    wait_for_state(&bystander, abi::DEVICE_STATE_RESET);
    wait_for_call(&recording, "reset_adapter");
    let events = recording.stop();
    assert_eq!(calls(&events, "reset_adapter").len(), 1);
    let states = [&fixture, &bystander].map(|one| one.client.device_state(one.device));
    assert_eq!(states.map(|state| state.guilty), [1, 0]);
    assert_eq!(
        states.map(|state| state.reset_count),
        [adapter.reset_count + 1; 2]
    );
    let after: abi::InfoAdapter = fixture.client.query(abi::QUERY_ADAPTER, 0);
    assert_eq!(
        (after.reset_count, after.state),
        (adapter.reset_count + 1, abi::ADAPTER_STATE_RUNNING)
    );
    // New devices work.
    Bystander::new().goes_on();
}

fn limit_of_a_context_counts() {
    let fixture = Fixture::new();
    let context = limited(&fixture, 50);
    let mut commands = Commands::new();
    commands.spin(u64::MAX);
    let begin = clock::now_ns();
    commands.submit(&fixture.client, &context);
    wait_for_state(&fixture, abi::DEVICE_STATE_HUNG);
    assert!(clock::now_ns() - begin >= 50_000_000);
}

fn limit_is_that_of_one_portion() {
    let fixture = Fixture::new();
    let context = limited(&fixture, 300);
    let pieces: Vec<Piece> = (0..4).map(|_| Piece::new(&fixture, 256 * KIB)).collect();
    let mut commands = Commands::new();
    for piece in &pieces {
        commands.store_in(0, &piece.allocation, 0, 5);
        commands.spin(120_000_000);
    }
    leave_free(256 * KIB);
    fixture.run(&context, &commands);
    debugfs::inject("reserve 1 0");
    assert!(pieces.iter().all(|piece| piece.mapping.read64(0) == 5));
}

fn context_without_limit_is_left_alone() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let mut commands = Commands::new();
    commands.spin(900_000_000);
    fixture.run(&context, &commands);
    let state = fixture.client.device_state(fixture.device);
    assert_eq!(state.state, abi::DEVICE_STATE_ACTIVE);
}

fn work_that_ends_at_its_limit_ends_once() {
    let bystander = Bystander::new();
    let mut hung = 0;
    for round in 0..40_u64 {
        let fixture = Fixture::new();
        let context = limited(&fixture, 10);
        let mut commands = Commands::new();
        // The limit, the time until somebody looks, and the time to give way.
        commands.spin(20_000_000 + 800_000 * round);
        let id = commands.submit(&fixture.client, &context);
        // Some are closed while the watchdog makes up its mind.
        if round % 5 == 4 {
            fixture.client.close(&[context.handle]);
            continue;
        }
        clock::wait_until("it ends", || {
            let state = fixture.client.device_state(fixture.device).state;
            hung += u32::from(state == abi::DEVICE_STATE_HUNG);
            let report = fixture.client.try_submission(context.handle, id);
            report.map_or(true, |report| report.state == abi::SUBMIT_STATE_DONE)
        });
    }
    assert!(hung > 0, "nothing was beyond its limit");
    bystander.goes_on();
}

fn portion_that_hangs_behind_a_cut_frees_the_way() {
    let cut_and_hang = |hangs: bool| {
        let fixture = Fixture::new();
        let context = limited(&fixture, 0);
        let [one, two] = [0, 1].map(|_| Piece::new(&fixture, 10 * MIB));
        let mut commands = Commands::new();
        commands.store_in(0, &one.allocation, 0, 1);
        commands.store_in(0, &two.allocation, 0, 2);
        if hangs {
            commands.spin(u64::MAX);
            commands.submit(&fixture.client, &context);
            wait_for_state(&fixture, abi::DEVICE_STATE_HUNG);
        } else {
            fixture.run(&context, &commands);
        }
        assert_eq!((one.mapping.read64(0), two.mapping.read64(0)), (1, 2));
    };
    cut_and_hang(true);
    cut_and_hang(false);
}
