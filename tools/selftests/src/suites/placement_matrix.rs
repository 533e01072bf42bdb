// SPDX-License-Identifier: GPL-2.0

//! What may lie where: a random walk, and the whole table of places checked after each step.
//!
//! Each step is complete before the next one: calls are waited for, so that the debug files show a
//! state at rest. A seed gives the same steps in the same order.

use crate::{
    abi,
    client::{
        Allocation,
        Answer,
        Context, //
    },
    clock,
    commands::Commands,
    debugfs::{
        self,
        Placement,
        Range, //
    },
    display::{
        physical_picture,
        picture, //
    },
    fixture::{
        physical,
        plain,
        Fixture,
        APERTURE,
        HIDDEN_SEGMENT,
        KIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    random::Random,
    suite::Suite,
};

/// The suite, on segments of DISC that are small enough to be full all the time.
pub const SUITE: Suite = Suite {
    name: "placement_matrix",
    parameters: Some(
        "profile=DISC levels=4 client_tables=0 paging_tables=0 \
         segments=memory:768K:visible:contiguous=768K:scanout,\
         memory:768K:page=64K:window=8:contiguous=768K,aperture:768K:scanout",
    ),
    cases: crate::cases! {
        "[SEG-26]" random_steps_keep_to_the_matrix,
    },
};

/// Allocations of each client. What the debug file says of all of them fits into one page, beyond
/// which it would have to be written twice.
const ALLOCATIONS: usize = 7;
/// The largest allocation; three of them find room in any segment, wherever two pictures are fixed.
const LARGEST: u64 = 128 * KIB;
/// Bytes of what is shown.
const PICTURE: u64 = 32 * KIB;

/// An allocation of the walk.
struct Held {
    allocation: Allocation,
    segments: u32,
    flags: u32,
    references: u32,
    on_screen: bool,
    /// Whether it was evicted on screen, and leaves when it is hidden.
    departing: bool,
    offered: bool,
}

impl Held {
    fn is_physical(&self) -> bool {
        self.flags & abi::ALLOC_ACCESSED_PHYSICALLY != 0
    }

    fn is_primary(&self) -> bool {
        self.flags & abi::ALLOC_PRIMARY != 0
    }

    /// Whether it is one run in memory.
    fn is_contiguous(&self) -> bool {
        self.is_physical() || self.is_primary()
    }

    /// Whether it has a range of the aperture in system memory.
    fn has_range(&self) -> bool {
        self.is_physical() || self.on_screen
    }
}

/// A client of the walk, with a display source for itself.
struct Walker {
    source: u32,
    fixture: Fixture,
    context: Context,
    held: Vec<Held>,
}

impl Walker {
    fn new(source: u32) -> Self {
        let fixture = Fixture::new();
        let context = fixture.context();
        Self {
            source,
            fixture,
            context,
            held: Vec::new(),
        }
    }

    /// Does one thing and waits until it is done; says what it was.
    fn step(&mut self, random: &mut Random) -> String {
        if self.held.len() < ALLOCATIONS {
            return self.create(random);
        }
        match random.below(28) {
            0 => self.close(random),
            1..=6 => self.make_resident(random),
            7..=9 => self.evict(random),
            10..=13 => self.inject(random),
            14..=16 => self.show(random),
            17 => self.blank(),
            18..=21 => self.offer_or_reclaim(random),
            _ => self.submit(random),
        }
    }

    fn create(&mut self, random: &mut Random) -> String {
        let size = 4 * KIB * (1 + random.below(LARGEST / (4 * KIB)));
        let masks = [
            VISIBLE_SEGMENT,
            HIDDEN_SEGMENT,
            SYSTEM,
            VISIBLE_SEGMENT | SYSTEM,
            VISIBLE_SEGMENT | HIDDEN_SEGMENT,
            VISIBLE_SEGMENT | HIDDEN_SEGMENT | SYSTEM,
        ];
        let segments = *random.pick(&masks);
        let scanned = *random.pick(&[VISIBLE_SEGMENT, SYSTEM, VISIBLE_SEGMENT | SYSTEM]);
        let (info, segments) = match random.below(6) {
            0 | 1 => (plain(size, segments), segments),
            2 | 3 => (physical(size, segments), segments),
            4 => (picture(PICTURE, scanned), scanned),
            _ => (physical_picture(PICTURE, scanned), scanned),
        };
        let allocation = self.fixture.create(info);
        self.held.push(Held {
            allocation,
            segments,
            flags: info.flags,
            references: 0,
            on_screen: false,
            departing: false,
            offered: false,
        });
        format!("create {allocation:?}")
    }

    fn close(&mut self, random: &mut Random) -> String {
        let index = random.index(self.held.len());
        if self.held[index].on_screen {
            self.blank();
        }
        let held = self.held.swap_remove(index);
        self.fixture
            .client
            .close_and_wait(&[held.allocation.handle]);
        format!("close {}", held.allocation.object_id)
    }

    fn make_resident(&mut self, random: &mut Random) -> String {
        let index = random.index(self.held.len());
        let held = &mut self.held[index];
        let Fixture { client, queue, .. } = &self.fixture;
        let result = client.try_make_resident(queue.handle, &[held.allocation.handle]);
        match result {
            Ok(answer) => {
                held.references += 1;
                held.departing = false;
                if let Answer::Pending(value) = answer {
                    client.wait(queue.fence, value);
                }
            }
            Err((errno, _)) if held.offered => assert_eq!(errno, libc::EBUSY),
            Err((errno, _)) => assert_eq!(errno, libc::ENOSPC),
        }
        assert!(result.is_err() || !held.offered, "an offered one comes");
        format!("make {} resident: {result:?}", held.allocation.object_id)
    }

    fn evict(&mut self, random: &mut Random) -> String {
        let index = random.index(self.held.len());
        let Some(held) = self.held[index..]
            .iter_mut()
            .find(|held| held.references > 0)
        else {
            return "nothing to evict".to_owned();
        };
        let Fixture { client, device, .. } = &self.fixture;
        held.references -= 1;
        let handles = [held.allocation.handle];
        if held.on_screen {
            // It stays until something else is shown.
            client.evict(*device, &handles);
            held.departing = held.references == 0;
        } else if held.references == 0 && random.once_in(2) {
            client
                .try_evict(*device, &handles, abi::EVICT_ONLY_IF_NEEDED)
                .expect("EVICT");
        } else if held.references == 0 {
            client.evict(*device, &handles);
            self.fixture.wait_until_nowhere(handles[0]);
        } else {
            client.evict(*device, &handles);
        }
        format!("evict {}", held.allocation.object_id)
    }

    fn inject(&self, random: &mut Random) -> String {
        let held = &self.held[random.index(self.held.len())];
        let id = held.allocation.object_id;
        let command = match random.below(5) {
            0 => format!("evict {id}"),
            1 => format!("move {id}"),
            2 => format!("move {id} 1 {:#x}", random.below(12) * 64 * KIB),
            _ => format!("move {id} {}", 1 + random.below(3)),
        };
        let result = debugfs::try_inject(&command);
        let expected = matches!(result, Ok(()) | Err(libc::EINVAL | libc::ENOSPC));
        let fixed = held.on_screen && result == Err(libc::EBUSY);
        assert!(expected || fixed, "{command}: {result:?}");
        format!("{command}: {result:?}")
    }

    fn show(&mut self, random: &mut Random) -> String {
        let start = random.index(self.held.len());
        let primaries = self.held[start..]
            .iter()
            .filter(|held| held.is_primary() && !held.offered);
        let Some(handle) = primaries.map(|held| held.allocation.handle).next() else {
            return "nothing to show".to_owned();
        };
        self.display(handle);
        format!("show handle {handle:#x}")
    }

    fn blank(&mut self) -> String {
        self.display(0);
        "blank".to_owned()
    }

    /// Shows something or nothing, and waits for what leaves then.
    fn display(&mut self, handle: u32) {
        self.fixture.show(self.source, handle);
        for held in &mut self.held {
            let shown = held.allocation.handle;
            held.on_screen = shown == handle;
            if held.departing && !held.on_screen {
                self.fixture.wait_until_nowhere(shown);
                held.departing = false;
            }
        }
    }

    /// Gives away the content of one, or takes it back.
    fn offer_or_reclaim(&mut self, random: &mut Random) -> String {
        let index = random.index(self.held.len());
        let held = &mut self.held[index];
        let handles = [held.allocation.handle];
        let Fixture {
            client,
            device,
            queue,
        } = &self.fixture;
        if held.offered {
            let (results, answer) = client.try_reclaim(queue.handle, &handles).expect("RECLAIM");
            if let Answer::Pending(value) = answer {
                client.wait(queue.fence, value);
            }
            held.offered = false;
            return format!("reclaim {}: {results:?}", held.allocation.object_id);
        }
        let level = 1 + random.below(4) as u32;
        let flags = *random.pick(&[0, abi::OFFER_NOW, abi::OFFER_ALLOW_DECOMMIT]);
        let result = client.try_offer(*device, &handles, level, flags);
        match held.on_screen {
            true => assert_eq!(result, Err((libc::EBUSY, 0))),
            false => assert_eq!(result, Ok(())),
        }
        held.offered = !held.on_screen;
        format!("offer {}: {result:?}", held.allocation.object_id)
    }

    /// Submits work on up to three allocations: accepted if all of them are flagged.
    fn submit(&self, random: &mut Random) -> String {
        let mut commands = Commands::new();
        let mut flagged = true;
        for _ in 0..1 + random.below(3) {
            let held = &self.held[random.index(self.held.len())];
            // Most of the time, something that may run.
            if held.offered || (!held.is_physical() && !random.once_in(4)) {
                continue;
            }
            flagged &= held.is_physical();
            commands.add(held.allocation.at(0), 1);
        }
        let result = commands.try_submit(&self.fixture.client, self.context.handle);
        match &result {
            Ok(id) => self.fixture.client.wait(self.context.progress, *id),
            Err(refusal) => assert_eq!(refusal.errno, libc::EACCES, "{refusal:?}"),
        }
        assert_eq!(result.is_ok(), flagged, "{result:?}");
        format!("submit: {result:?}")
    }
}

impl Fixture {
    /// Waits until an allocation is nowhere, with content or without.
    fn wait_until_nowhere(&self, handle: u32) {
        clock::wait_until("it leaves", || {
            self.client.state_of(handle).segment == abi::SEGMENT_ID_NONE
        });
    }
}

/// Asserts that ranges of one segment lie in it and apart.
fn assert_apart(mut ranges: Vec<Range>, size: u64) {
    ranges.sort_by_key(|range| range.start);
    for pair in ranges.windows(2) {
        assert!(pair[0].end() <= pair[1].start, "{pair:?} overlap");
    }
    let last = ranges.last().map_or(0, Range::end);
    assert!(last <= size, "{last:#x} lies behind the segment");
}

/// Asserts that an allocation is in the cell of the matrix where it belongs.
fn assert_in_its_cell(held: &Held, placement: &Placement) {
    let size = held.allocation.size;
    let whole = |ranges: &[Range]| ranges.iter().map(|range| range.length).sum::<u64>() == size;
    let text = &placement.record.text;
    match placement.segment {
        u64::MAX => {
            assert!(!held.on_screen, "{text}");
            assert!(
                placement.runs.is_empty() && placement.aperture.is_none(),
                "{text}"
            );
        }
        0 => {
            assert!(held.segments & SYSTEM != 0 && !held.has_range(), "{text}");
            assert!(placement.aperture.is_none(), "{text}");
            assert_eq!(placement.backing_pages() * 4096, size, "{text}");
        }
        3 => {
            assert!(held.segments & SYSTEM != 0 && held.has_range(), "{text}");
            assert!(placement.aperture.is_some_and(|range| range.length == size));
            assert_eq!(placement.backing_pages() * 4096, size, "{text}");
        }
        id => {
            assert!(held.segments & (1 << id) != 0, "{text}");
            assert!(
                whole(&placement.runs) && placement.aperture.is_none(),
                "{text}"
            );
            if held.is_contiguous() {
                assert_eq!(
                    (placement.runs.len(), placement.frames.len()),
                    (1, 1),
                    "{text}"
                );
            }
        }
    }
}

/// Reads both files and asserts that they agree with each other and with the matrix.
fn check(walkers: &[Walker]) {
    let placements = debugfs::placements();
    let held = walkers.iter().flat_map(|walker| &walker.held);
    assert_eq!(placements.len(), held.clone().count(), "allocations");
    for each in held {
        let id = each.allocation.object_id;
        let found = placements.iter().find(|place| place.allocation == id);
        assert_in_its_cell(each, found.expect("a line of its own"));
    }
    for segment in debugfs::segments() {
        let here = placements
            .iter()
            .filter(|place| place.segment == segment.id);
        let sizes = here.clone().map(|place| place.record.number("size"));
        assert_eq!(segment.mapped, sizes.sum::<u64>(), "{segment:?}");
        assert_eq!(segment.free, segment.total - segment.mapped, "{segment:?}");
        assert!(segment.largest <= segment.free, "{segment:?}");
        let ranges = match segment.id {
            id if id == u64::from(APERTURE) => here.filter_map(|place| place.aperture).collect(),
            _ => here.flat_map(|place| place.runs.clone()).collect(),
        };
        assert_apart(ranges, segment.total);
    }
    let system = placements
        .iter()
        .filter(|place| matches!(place.segment, 0 | 3));
    let pinned: u64 = system.map(|place| place.record.number("size")).sum();
    assert_eq!(debugfs::system_bytes(), pinned, "segment 0");
}

/// Random steps, the whole table checked after each.
pub fn random_steps_keep_to_the_matrix() {
    let mut random = Random::new(crate::effort::seed());
    let mut walkers = [0, 1].map(Walker::new);
    let mut last = String::new();
    // The debug kernel takes ten times as long for each.
    let steps = if clock::is_debug_kernel() {
        1_000
    } else {
        10_000
    };
    for step in crate::effort::Rounds::new(steps) {
        let index = random.index(walkers.len());
        let walk = std::panic::AssertUnwindSafe(|| {
            last = walkers[index].step(&mut random);
            check(&walkers);
        });
        if let Err(panic) = std::panic::catch_unwind(walk) {
            crate::ktap::comment(&format!("step {step} of client {index}: {last}"));
            std::panic::resume_unwind(panic);
        }
    }
}
