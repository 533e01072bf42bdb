// SPDX-License-Identifier: GPL-2.0

//! Memory of the host: who pays for it, and who takes none.

use crate::{
    abi,
    cgroup::Group,
    client::Client,
    clock,
    commands::Commands,
    fixture::{
        physical,
        Fixture,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    kernel_memory::{
        Allocated,
        Need,
        Scope,
        Watch, //
    },
    memory::touch,
    process::{
        Child,
        End, //
    },
    suite::Suite,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "host_memory",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[RES-2]" paging_takes_no_memory,
        "" everything_made_for_a_client_is_charged,
        "" backing_is_charged_to_who_created_the_allocation,
        "[RES-2]" hog_in_its_own_group_leaves_others_alone,
    },
};

/// The worker and the nodes run under pressure and move a lot; neither takes memory.
fn paging_takes_no_memory() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocations: Vec<_> = (0..8)
        .map(|index| {
            let segments = [VISIBLE_SEGMENT, VISIBLE_SEGMENT, VISIBLE_SEGMENT, SYSTEM][index % 4];
            fixture.create(physical(4 * MIB, segments))
        })
        .collect();
    let round = |value: u32| {
        for allocation in &allocations {
            let mut commands = Commands::new();
            commands.fill_bytes(allocation.at(0), 4 * MIB as u32, value);
            fixture.run(&context, &commands);
            fixture.bring_in(allocation);
            fixture.push_out(allocation);
        }
    };
    // Everything is taken before the first use of each.
    round(1);
    let watch = Watch::start(Scope::Everybody);
    let before = crate::debugfs::stat("paging_completed");
    (2..5).for_each(round);
    let moved = crate::debugfs::stat("paging_completed") - before;
    let recorded = watch.stop();
    assert!(moved >= 32, "{moved} paging buffers only");
    assert!(
        recorded.runs >= 32,
        "{} runs of the module only",
        recorded.runs
    );
    let taken: Vec<&Allocated> = recorded
        .allocations
        .iter()
        .filter(|allocated| allocated.work.is_some() && allocated.need == Need::Caller)
        .collect();
    assert!(taken.is_empty(), "{} allocations: {taken:#?}", taken.len());
}

/// Makes one of everything and uses it.
fn use_everything(client: &Client) {
    let device = client.create_device();
    let queue = client.create_queue(device);
    let context = client.create_context(device, crate::fixture::PHYSICAL_NODE);
    let fence = client.create_fence(device, 0);
    let allocation = client.create(device, physical(64 * KIB, VISIBLE_SEGMENT | SYSTEM));
    client
        .try_set_name(allocation.handle, b"named")
        .expect("a name");
    let mapping = client.map(&allocation);
    mapping.write32(0, 1);
    client.bring_in(&queue, &[allocation.handle]);
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 1);
    commands.wait_for(fence, 1);
    commands.then_signal(fence, 2);
    let id = commands.submit(client, &context);
    client.signal(fence, 1);
    client.wait(context.progress, id);
    client.lock(allocation.handle, abi::LOCK_READ);
    client.unlock(allocation.handle);
    client.evict(device, &[allocation.handle]);
}

fn everything_made_for_a_client_is_charged() {
    let client = Client::open();
    use_everything(&client);
    let watch = Watch::start(Scope::ThisThread);
    let another = Client::open();
    use_everything(&another);
    let recorded = watch.stop();
    let ours: Vec<&Allocated> = recorded
        .allocations
        .iter()
        .filter(|allocated| allocated.is_ours())
        .collect();
    assert!(ours.len() >= 30, "only {} objects", ours.len());
    let free: Vec<_> = ours.iter().filter(|object| !object.is_charged()).collect();
    assert!(free.is_empty(), "nobody pays for {free:#?}");
}

fn backing_is_charged_to_who_created_the_allocation() {
    let group = Group::new("vidmm-creator", 64 * MIB);
    let mut creator = Child::start(|says| {
        group.enter();
        let fixture = Fixture::new();
        let allocation = fixture.create(physical(16 * MIB, VISIBLE_SEGMENT));
        let mapping = fixture.client.map(&allocation);
        let before = group.used();
        // Another process, in the group of the test, touches it first.
        let toucher = Child::start(|_| {
            crate::cgroup::leave();
            mapping.write32(0, 1);
        });
        toucher.join();
        let taken = group.used() - before;
        // The group may have paid for some pages ahead: the kernel takes them in batches.
        assert!(taken >= 15 * MIB, "only {taken} bytes were charged");
        says.line("done");
    });
    assert_eq!(creator.line(), "done");
    creator.join();
}

/// Whoever asks for too much hits the limit of its own group; a neighbour does not notice.
fn hog_in_its_own_group_leaves_others_alone() {
    let group = Group::new("vidmm-hog", 24 * MIB);
    let neighbour = Fixture::new();
    let context = neighbour.context();
    let small = neighbour.create(physical(MIB, VISIBLE_SEGMENT));
    let mapping = neighbour.client.map(&small);
    let mut hog = Child::start(|says| {
        group.enter();
        let fixture = Fixture::new();
        let mut refusals = 0;
        let mut mine = Vec::new();
        says.line("begin");
        for round in 0..24 {
            let allocation = fixture.create(physical(4 * MIB, VISIBLE_SEGMENT));
            let answer = match round % 2 {
                0 => fixture
                    .client
                    .try_make_resident(fixture.queue.handle, &[allocation.handle])
                    .map_err(|(errno, _)| errno)
                    .err(),
                _ => touch(&fixture.client.map(&allocation), 0, true)
                    .err()
                    .map(|signal| signal + 1000),
            };
            match answer {
                None => mine.push(allocation),
                Some(errno) => {
                    assert!(
                        errno == libc::ENOMEM || errno == 1000 + libc::SIGBUS,
                        "answer {errno}"
                    );
                    refusals += 1;
                }
            }
        }
        assert!(mine.len() < 6 && refusals >= 18, "{refusals} refusals");
        says.line("done");
    });
    assert_eq!(hog.line(), "begin");
    for value in 0..50 {
        let mut commands = Commands::new();
        commands.store(small.at(0), value);
        let begin = clock::now_ns();
        neighbour.run(&context, &commands);
        let took = clock::now_ns() - begin;
        assert!(took < clock::patience().as_nanos() as i64, "{took} ns");
        assert_eq!(mapping.read64(0), value);
    }
    // A group may also answer with its own out-of-memory killer; that hits the hog alone.
    let (end, text) = hog.end();
    assert!(
        matches!(end, End::Code(0) | End::Signal(libc::SIGKILL)),
        "the hog: {end:?} {text}"
    );
}
