// SPDX-License-Identifier: GPL-2.0

//! LOCK and UNLOCK: ordering of the CPU with queued work.

use crate::{
    abi::{
        self,
        Lock,
        Unlock, //
    },
    client::{
        Allocation,
        Context, //
    },
    clock,
    commands::Commands,
    debugfs,
    fixture::{
        physical,
        plain,
        Fixture,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    suite::Suite,
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "lock",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" idle_allocation_locks_at_once,
        "" read_waits_for_gpu_writes,
        "" read_does_not_wait_for_gpu_reads,
        "" write_waits_for_gpu_reads,
        "" no_overwrite_waits_for_nothing,
        "" do_not_wait_on_a_busy_allocation_is_again,
        "" polling_a_busy_allocation_times_out,
        "" deadline_that_passes_times_out,
        "" lock_returns_when_the_work_has_run,
        "" flags_without_access_are_refused,
        "" discard_is_not_supported,
        "" do_not_wait_with_a_deadline_is_refused,
        "" negative_deadline_is_refused,
        "" range_outside_the_allocation_is_refused,
        "" allocation_without_cpu_access_is_not_supported,
        "" locks_nest,
        "" unlock_without_lock_is_refused,
        "" unlock_of_another_instance_is_refused,
        "" unlock_of_a_range_outside_is_refused,
        "" signal_interrupts_the_wait,
    },
};

/// A fixture whose physical node is paused.
fn paused() -> (Fixture, Context, Allocation) {
    let fixture = Fixture::new();
    let context = fixture.context();
    let allocation = fixture.create_resident(physical(4096, VISIBLE_SEGMENT));
    debugfs::inject("pause 2");
    (fixture, context, allocation)
}

/// Queues a packet that writes to the allocation.
fn queue_write(fixture: &Fixture, context: &Context, allocation: &Allocation) -> u64 {
    let mut commands = Commands::new();
    commands.store(allocation.at(0), 42);
    commands.submit(&fixture.client, context)
}

/// Queues a packet that reads from the allocation.
fn queue_read(fixture: &Fixture, context: &Context, allocation: &Allocation) -> u64 {
    let mut commands = Commands::new();
    commands.load_register(1, allocation.at(0));
    commands.submit(&fixture.client, context)
}

fn poll(allocation: &Allocation, flags: u32) -> Lock {
    Lock {
        alloc: allocation.handle,
        flags,
        ..Default::default()
    }
}

fn idle_allocation_locks_at_once() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4096, SYSTEM));
    for flags in [
        abi::LOCK_READ,
        abi::LOCK_WRITE,
        abi::LOCK_READ | abi::LOCK_WRITE,
    ] {
        let lock = fixture
            .client
            .try_lock(poll(&allocation, flags))
            .expect("LOCK");
        assert_eq!((lock.instance, lock.generation), (0, 0));
        assert_eq!(lock.result & abi::LOCK_RESULT_WAITED, 0);
        assert_eq!(lock.mmap_offset, allocation.mmap_offset);
        fixture.client.unlock(allocation.handle);
    }
}

fn read_waits_for_gpu_writes() {
    let (fixture, context, allocation) = paused();
    queue_write(&fixture, &context, &allocation);
    let lock = fixture.client.try_lock(poll(&allocation, abi::LOCK_READ));
    assert_eq!(lock.err(), Some(libc::ETIME));
    debugfs::inject("resume 2");
    fixture.client.lock(allocation.handle, abi::LOCK_READ);
    assert_eq!(fixture.client.map(&allocation).read64(0), 42);
}

fn read_does_not_wait_for_gpu_reads() {
    let (fixture, context, allocation) = paused();
    queue_read(&fixture, &context, &allocation);
    fixture
        .client
        .try_lock(poll(&allocation, abi::LOCK_READ))
        .expect("LOCK for reading");
    debugfs::inject("resume 2");
}

fn write_waits_for_gpu_reads() {
    let (fixture, context, allocation) = paused();
    queue_read(&fixture, &context, &allocation);
    let lock = fixture.client.try_lock(poll(&allocation, abi::LOCK_WRITE));
    assert_eq!(lock.err(), Some(libc::ETIME));
    debugfs::inject("resume 2");
    fixture.client.lock(allocation.handle, abi::LOCK_WRITE);
    // The fence of the work comes a moment later: the lock is about the memory.
    let state = fixture.client.state_of(allocation.handle);
    assert_eq!(state.flags & abi::ALLOC_STATE_BUSY, 0);
}

fn no_overwrite_waits_for_nothing() {
    let (fixture, context, allocation) = paused();
    queue_write(&fixture, &context, &allocation);
    fixture
        .client
        .try_lock(poll(&allocation, abi::LOCK_NO_OVERWRITE))
        .expect("NO_OVERWRITE");
    debugfs::inject("resume 2");
}

fn do_not_wait_on_a_busy_allocation_is_again() {
    let (fixture, context, allocation) = paused();
    queue_write(&fixture, &context, &allocation);
    for flags in [abi::LOCK_READ, abi::LOCK_WRITE] {
        let lock = fixture
            .client
            .try_lock(poll(&allocation, flags | abi::LOCK_DO_NOT_WAIT));
        assert_eq!(lock.err(), Some(libc::EAGAIN));
    }
    let state = fixture.client.state_of(allocation.handle);
    assert_ne!(state.flags & abi::ALLOC_STATE_BUSY, 0);
    assert_eq!(state.flags & abi::ALLOC_STATE_LOCKED, 0);
    debugfs::inject("resume 2");
}

fn polling_a_busy_allocation_times_out() {
    let (fixture, context, allocation) = paused();
    queue_write(&fixture, &context, &allocation);
    let lock = fixture.client.try_lock(poll(&allocation, abi::LOCK_WRITE));
    assert_eq!(lock.err(), Some(libc::ETIME));
    debugfs::inject("resume 2");
}

fn deadline_that_passes_times_out() {
    let (fixture, context, allocation) = paused();
    queue_write(&fixture, &context, &allocation);
    let deadline_ns = clock::deadline_in(20);
    let lock = Lock {
        deadline_ns,
        ..poll(&allocation, abi::LOCK_WRITE)
    };
    assert_eq!(fixture.client.try_lock(lock).err(), Some(libc::ETIME));
    assert!(clock::now_ns() >= deadline_ns);
    debugfs::inject("resume 2");
}

fn lock_returns_when_the_work_has_run() {
    let (fixture, context, allocation) = paused();
    queue_write(&fixture, &context, &allocation);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| fixture.client.lock(allocation.handle, abi::LOCK_READ));
        debugfs::inject("resume 2");
        waiter.join().expect("the waiter");
    });
    assert_eq!(fixture.client.map(&allocation).read64(0), 42);
}

/// Asserts that a lock is refused.
#[track_caller]
fn assert_refused(change: impl FnOnce(&mut Lock), errno: i32) {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(8192, SYSTEM));
    let mut lock = poll(&allocation, abi::LOCK_READ);
    change(&mut lock);
    assert_eq!(fixture.client.try_lock(lock).err(), Some(errno));
    let state = fixture.client.state_of(allocation.handle);
    assert_eq!(state.flags & abi::ALLOC_STATE_LOCKED, 0);
}

fn flags_without_access_are_refused() {
    assert_refused(|lock| lock.flags = 0, libc::EINVAL);
    assert_refused(|lock| lock.flags = abi::LOCK_DO_NOT_WAIT, libc::EINVAL);
}

fn discard_is_not_supported() {
    assert_refused(|lock| lock.flags = abi::LOCK_DISCARD, libc::EOPNOTSUPP);
    assert_refused(
        |lock| lock.flags = abi::LOCK_DISCARD | abi::LOCK_WRITE,
        libc::EOPNOTSUPP,
    );
}

fn do_not_wait_with_a_deadline_is_refused() {
    let flags = abi::LOCK_READ | abi::LOCK_DO_NOT_WAIT;
    for deadline in [1, abi::WAIT_FOREVER] {
        let change = |lock: &mut Lock| (lock.flags, lock.deadline_ns) = (flags, deadline);
        assert_refused(change, libc::EINVAL);
    }
}

fn negative_deadline_is_refused() {
    assert_refused(|lock| lock.deadline_ns = -1, libc::EINVAL);
    assert_refused(|lock| lock.deadline_ns = i64::MIN, libc::EINVAL);
}

fn range_outside_the_allocation_is_refused() {
    assert_refused(|lock| lock.offset = 8193, libc::EINVAL);
    assert_refused(|lock| lock.length = 8193, libc::EINVAL);
    assert_refused(|lock| (lock.offset, lock.length) = (8192, 1), libc::EINVAL);
    assert_refused(
        |lock| (lock.offset, lock.length) = (4096, 4097),
        libc::EINVAL,
    );
    assert_refused(
        |lock| (lock.offset, lock.length) = (8, u64::MAX),
        libc::EOVERFLOW,
    );
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(8192, SYSTEM));
    let mut lock = poll(&allocation, abi::LOCK_READ);
    (lock.offset, lock.length) = (4096, 4096);
    fixture.client.try_lock(lock).expect("the second page");
}

fn allocation_without_cpu_access_is_not_supported() {
    let fixture = Fixture::new();
    let mut info = plain(4096, SYSTEM);
    info.flags = 0;
    let allocation = fixture.create(info);
    let lock = fixture.client.try_lock(poll(&allocation, abi::LOCK_READ));
    assert_eq!(lock.err(), Some(libc::EOPNOTSUPP));
}

fn locks_nest() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4096, SYSTEM));
    for _ in 0..3 {
        fixture.client.lock(allocation.handle, abi::LOCK_WRITE);
    }
    for _ in 0..3 {
        fixture.client.unlock(allocation.handle);
    }
    let last = Unlock {
        alloc: allocation.handle,
        ..Default::default()
    };
    assert_eq!(fixture.client.try_unlock(last), Err(libc::EINVAL));
}

fn unlock_without_lock_is_refused() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4096, SYSTEM));
    let unlock = Unlock {
        alloc: allocation.handle,
        ..Default::default()
    };
    assert_eq!(fixture.client.try_unlock(unlock), Err(libc::EINVAL));
}

fn unlock_of_another_instance_is_refused() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4096, SYSTEM));
    fixture.client.lock(allocation.handle, abi::LOCK_WRITE);
    for instance in [1, u32::MAX] {
        let unlock = Unlock {
            alloc: allocation.handle,
            instance,
            ..Default::default()
        };
        assert_eq!(fixture.client.try_unlock(unlock), Err(libc::EINVAL));
    }
    fixture.client.unlock(allocation.handle);
}

fn unlock_of_a_range_outside_is_refused() {
    let fixture = Fixture::new();
    let allocation = fixture.create(plain(4096, SYSTEM));
    fixture.client.lock(allocation.handle, abi::LOCK_WRITE);
    let alloc = allocation.handle;
    let unlock = |offset, length| Unlock {
        alloc,
        offset,
        length,
        ..Default::default()
    };
    assert_eq!(
        fixture.client.try_unlock(unlock(1, 4096)),
        Err(libc::EINVAL)
    );
    assert_eq!(
        fixture.client.try_unlock(unlock(8, u64::MAX)),
        Err(libc::EOVERFLOW)
    );
    fixture
        .client
        .try_unlock(unlock(0, 4096))
        .expect("the whole allocation");
}

fn signal_interrupts_the_wait() {
    let (fixture, context, allocation) = paused();
    queue_write(&fixture, &context, &allocation);
    let lock = Lock {
        deadline_ns: abi::WAIT_FOREVER,
        ..poll(&allocation, abi::LOCK_WRITE)
    };
    let errno = crate::process::interrupted(|| fixture.client.try_lock(lock).err());
    assert_eq!(errno, Some(libc::EINTR));
    let state = fixture.client.state_of(allocation.handle);
    assert_eq!(state.flags & abi::ALLOC_STATE_LOCKED, 0);
    debugfs::inject("resume 2");
}
