// SPDX-License-Identifier: GPL-2.0

//! Hostile scenarios of class E: mappings that race with everything that can happen to memory.

use std::{
    fs::{
        self,
        File, //
    },
    os::unix::fs::FileExt,
    sync::atomic::{
        AtomicBool,
        Ordering, //
    },
};

use crate::{
    abi,
    client::Allocation,
    commands::Commands,
    debugfs, descriptor,
    effort::Rounds,
    fixture::{
        pattern,
        physical,
        plain,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    memory::{
        touch,
        Mapping,
        PAGE, //
    },
    process::{
        self,
        Child,
        End, //
    },
    suite::{
        skip,
        Suite, //
    },
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "faults_mappings",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[E3]" mapping_does_not_grow_while_memory_moves,
        "[E6]" mappings_come_and_go_beside_eviction_and_touch,
        "[E7]" freed_memory_is_not_written_through_old_translations,
        "[E8]" first_touch_beside_close_finds_nothing_foreign,
        "[E9]" debugger_finds_the_content_or_an_error,
        "[E10]" core_dump_leaves_nothing,
        "[E11]" mmap_beside_close_gives_one_or_the_other,
        "[E12]" contiguous_memory_is_mapped_again_and_again,
        "[E13]" mapping_is_a_buffer_of_system_calls,
        "[E14]" touch_of_evicted_memory_needs_no_memory,
    },
};

/// Runs `attack` while an allocation is pushed out and brought in all the time.
fn while_moving(allocation: &Allocation, attack: impl FnOnce()) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let id = allocation.object_id;
            while !done.load(Ordering::Acquire) {
                for command in ["evict", "move"] {
                    let _ = debugfs::try_inject(&format!("{command} {id}"));
                }
            }
        });
        let attack = std::panic::AssertUnwindSafe(attack);
        let result = std::panic::catch_unwind(attack);
        done.store(true, Ordering::Release);
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

fn mapping_does_not_grow_while_memory_moves() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(12 * KIB, VISIBLE_SEGMENT));
    let mut mapping = fixture.client.map(&allocation);
    while_moving(&allocation, || {
        for round in Rounds::new(60) {
            for pages in [4, 64, 1 << 20] {
                let result = mapping.remap(pages * PAGE);
                let refused = matches!(result, Err(libc::EFAULT | libc::EINVAL));
                assert!(refused, "{pages} pages: {result:?}");
            }
            mapping.write32(3 * PAGE - 4, round as u32);
            assert_eq!(mapping.read32(3 * PAGE - 4), round as u32);
        }
    });
}

fn mappings_come_and_go_beside_eviction_and_touch() {
    let fixture = Fixture::new();
    let allocation = fixture.create_resident(plain(16 * KIB, VISIBLE_SEGMENT | SYSTEM));
    let lasting = fixture.client.map(&allocation);
    while_moving(&allocation, || {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (done, lasting) = (&done, &lasting);
            scope.spawn(move || {
                let mut count = 0_u32;
                while !done.load(Ordering::Acquire) {
                    count += 1;
                    lasting.write32(2 * PAGE, count);
                    assert_eq!(lasting.read32(2 * PAGE), count);
                }
            });
            for round in Rounds::new(200) {
                let passing = fixture.client.map(&allocation);
                passing.write32(PAGE, round as u32);
                assert_eq!(lasting.read32(PAGE), round as u32);
                passing.unmap_part(PAGE, PAGE);
            }
            done.store(true, Ordering::Release);
        });
    });
}

fn freed_memory_is_not_written_through_old_translations() {
    const LENGTH: u32 = 64 << 10;
    let fixture = Fixture::new();
    let context = fixture.context();
    // Room for one of two: each lies where the other one was.
    debugfs::inject(&format!(
        "reserve 1 {}",
        debugfs::segment(1).free - u64::from(LENGTH)
    ));
    let written = fixture.create(physical(u64::from(LENGTH), VISIBLE_SEGMENT));
    let poisoned = fixture.create(physical(u64::from(LENGTH), VISIBLE_SEGMENT));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let mapping = fixture.client.map(&written);
                for page in 0..(LENGTH as usize / PAGE) {
                    mapping.write32(page * PAGE + 64, 0x0bad_0bad);
                }
            }
        });
        for round in Rounds::new(60) {
            let poison = 0x1000 + round as u32;
            let mut commands = Commands::new();
            commands.store(written.at(0), round);
            fixture.run(&context, &commands);
            let mut commands = Commands::new();
            commands.fill_bytes(poisoned.at(0), LENGTH, poison);
            fixture.run(&context, &commands);
            let found = fixture.client.map(&poisoned).read(0, LENGTH as usize);
            let intact = found.chunks(4).all(|word| word == poison.to_le_bytes());
            if !intact {
                done.store(true, Ordering::Release);
            }
            assert!(intact, "round {round}");
        }
        done.store(true, Ordering::Release);
    });
    let mapping = fixture.client.map(&written);
    assert_eq!(mapping.read32(64), 0x0bad_0bad);
}

fn first_touch_beside_close_finds_nothing_foreign() {
    for round in Rounds::new(30) {
        let (victim, other) = (Fixture::new(), Fixture::new());
        let mask = [VISIBLE_SEGMENT, SYSTEM, HIDDEN_SEGMENT][round as usize % 3];
        let allocation = victim.create_resident(plain(256 * KIB, mask));
        let mapping = victim.client.map(&allocation);
        let check = || {
            for page in 0..allocation.size as usize / PAGE {
                let found = mapping.read32(page * PAGE);
                assert_eq!(found, 0, "round {round}, page {page}");
            }
        };
        std::thread::scope(|scope| {
            let touching = scope.spawn(check);
            let _ = debugfs::try_inject(&format!("evict {}", allocation.object_id));
            victim.client.close(&[allocation.handle]);
            let foreign = other.create(physical(256 * KIB, mask));
            let mut commands = Commands::new();
            commands.fill_bytes(foreign.at(0), 256 << 10, 0xf0f0_f0f0);
            other.run(&other.context(), &commands);
            touching.join().expect("the touching thread");
        });
        check();
    }
}

fn debugger_finds_the_content_or_an_error() {
    let fixture = Fixture::new();
    for mask in [VISIBLE_SEGMENT, SYSTEM] {
        let allocation = fixture.create_resident(plain(12 * KIB, mask));
        let mapping = fixture.client.map(&allocation);
        let data = pattern(4, allocation.size);
        mapping.write(0, &data);
        let debugged = Child::start(|says| {
            says.line("mapped");
            process::wait_for_the_end();
        });
        let memory = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{}/mem", debugged.number()))
            .expect("/proc/PID/mem");
        let at = |offset: usize| mapping.address() + offset as u64;
        while_moving(&allocation, || {
            for _ in Rounds::new(20) {
                for (offset, length) in [(0, 64), (2 * PAGE - 8, 16), (3 * PAGE - 16, 64)] {
                    let mut bytes = vec![0x55; length];
                    let found = memory.read_at(&mut bytes, at(offset)).unwrap_or(0);
                    let inside = found.min(3 * PAGE - offset);
                    assert_eq!(bytes[..inside], data[offset..offset + inside]);
                    let found = debugged.read_memory(at(offset), &mut bytes).unwrap_or(0);
                    let inside = found.min(3 * PAGE - offset);
                    assert_eq!(bytes[..inside], data[offset..offset + inside]);
                }
                let _ = memory.write_at(&data[PAGE..PAGE + 64], at(PAGE));
            }
        });
        assert!(mapping.read(0, data.len()) == data, "the content");
        debugged.kill();
    }
}

fn core_dump_leaves_nothing() {
    let pattern_file = "/proc/sys/kernel/core_pattern";
    // The debug kernel is built without core dumps.
    let Ok(before) = fs::read_to_string(pattern_file) else {
        skip("needs-stock-kernel");
    };
    for handler in ["/tmp/vidmm-core", "|/bin/true %p"] {
        fs::write(pattern_file, handler).expect("core_pattern");
        let child = Child::start(|_| {
            let fixture = Fixture::new();
            let mappings: Vec<Mapping> = [VISIBLE_SEGMENT, HIDDEN_SEGMENT, SYSTEM]
                .into_iter()
                .flat_map(|mask| [mask; 2])
                .enumerate()
                .map(|(number, mask)| {
                    let allocation = fixture.create_resident(plain(64 * KIB, mask));
                    let mapping = fixture.client.map(&allocation);
                    mapping.write32(0, 1);
                    if number % 2 == 1 {
                        fixture.push_out(&allocation);
                    }
                    mapping
                })
                .collect();
            process::dump_core(&mappings);
        });
        let (end, text) = child.end();
        assert_eq!(end, End::Signal(libc::SIGABRT), "{text}");
    }
    fs::write(pattern_file, before.trim_end()).expect("core_pattern");
    let _ = fs::remove_file("/tmp/vidmm-core");
    crate::clock::wait_until("all memory is free", || debugfs::placements().is_empty());
}

fn mmap_beside_close_gives_one_or_the_other() {
    let fixture = Fixture::new();
    for round in Rounds::new(150) {
        let allocation = fixture.create_resident(plain(8 * KIB, VISIBLE_SEGMENT));
        std::thread::scope(|scope| {
            let mapping = scope.spawn(|| {
                let (file, offset) = (fixture.client.file(), allocation.mmap_offset);
                Mapping::try_new(file, offset, 8192, libc::PROT_READ, libc::MAP_SHARED)
            });
            fixture.client.close(&[allocation.handle]);
            match mapping.join().expect("the mapping thread") {
                Ok(mapping) => assert_eq!(mapping.read32(4096), 0, "round {round}"),
                Err(errno) => assert_eq!(errno, libc::EACCES, "round {round}"),
            }
        });
    }
}

fn contiguous_memory_is_mapped_again_and_again() {
    let fixture = Fixture::new();
    let before = debugfs::segment(1);
    let allocation = fixture.create_resident(physical(MIB, VISIBLE_SEGMENT));
    let touch_all = |value: u32| {
        let mapping = fixture.client.map(&allocation);
        for page in 0..256 {
            mapping.write32(page * PAGE, value + page as u32);
        }
        for page in 0..256 {
            assert_eq!(mapping.read32(page * PAGE), value + page as u32);
        }
    };
    touch_all(1);
    touch_all(2);
    let children = [(); 2].map(|()| Child::start(|_| (0..4).for_each(|_| touch_all(7))));
    for child in children {
        child.join();
    }
    fixture.client.close_and_wait(&[allocation.handle]);
    assert_eq!(debugfs::segment(1), before);
}

fn mapping_is_a_buffer_of_system_calls() {
    let fixture = Fixture::new();
    for mask in [VISIBLE_SEGMENT, SYSTEM] {
        let allocation = fixture.create_resident(plain(8 * KIB, mask));
        let mapping = fixture.client.map(&allocation);
        let data = pattern(9, 8 * KIB);
        mapping.write(0, &data);
        for evicted in [false, true] {
            if evicted {
                debugfs::inject(&format!("evict {}", allocation.object_id));
            }
            let (mut reader, writer) = process::pipe();
            match descriptor::write_from(&writer, mapping.address(), 4096) {
                Ok(length) => {
                    let mut found = vec![0; length];
                    std::io::Read::read_exact(&mut reader, &mut found).expect("a pipe");
                    assert_eq!(found, data[..length]);
                }
                Err(errno) => assert_eq!(errno, libc::EFAULT),
            }
            let spliced = descriptor::splice_from(&writer, mapping.address() + 4096, 4096);
            assert!(matches!(spliced, Ok(_) | Err(libc::EFAULT)), "{spliced:?}");
            let zeros = File::open("/dev/zero").expect("/dev/zero");
            let read = descriptor::read_into(&zeros, mapping.address() + 64, 64);
            assert!(matches!(read, Ok(64) | Err(libc::EFAULT)), "{read:?}");
            assert!(read.is_err() || mapping.is_filled(64, 64, 0));
            mapping.write(0, &data);
            let woken = descriptor::wake_futex(mapping.address());
            assert!(matches!(woken, Ok(0) | Err(libc::EFAULT)), "{woken:?}");
            // What was spliced pins nothing here.
            debugfs::inject(&format!("evict {}", allocation.object_id));
            fixture.bring_in(&allocation);
        }
        assert!(mapping.read(0, data.len()) == data, "the content");
    }
}

fn touch_of_evicted_memory_needs_no_memory() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let evicted = fixture.create_resident(physical(64 * KIB, VISIBLE_SEGMENT));
    let hidden = fixture.create_resident(physical(64 * KIB, HIDDEN_SEGMENT));
    for allocation in [&evicted, &hidden] {
        let mut commands = Commands::new();
        commands.fill_bytes(allocation.at(0), 65536, 0x4242_4242);
        fixture.run(&context, &commands);
    }
    fixture.push_out(&evicted);
    let fresh = fixture.create(plain(64 * KIB, VISIBLE_SEGMENT));
    let [evicted, hidden, fresh] = [&evicted, &hidden, &fresh].map(|each| fixture.client.map(each));
    debugfs::inject("reserve 0 1");
    assert_eq!(touch(&evicted, 4096, false), Ok(0x4242_4242));
    assert_eq!(touch(&hidden, 4096, false), Ok(0x4242_4242));
    assert_eq!(touch(&fresh, 4096, false), Err(libc::SIGBUS));
    debugfs::inject("reserve 0 0");
    assert_eq!(touch(&fresh, 4096, false), Ok(0));
    let state = fixture.client.device_state(fixture.device);
    assert_eq!(state.state, abi::DEVICE_STATE_ACTIVE);
}
