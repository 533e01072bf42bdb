// SPDX-License-Identifier: GPL-2.0

//! KUnit tests of what needs neither a device node nor a program.

/// The facilities one by one.
#[kernel::macros::kunit_tests(vidmm_abstractions)]
mod suite {
    use crate::abstractions::{
        clock,
        memory::Window,
        pages::{
            Charge,
            ContiguousBlock,
            Frame,
            PageBlock, //
        },
        wait_queue::{
            new_wait_queue,
            Deadline,
            Sleep,
            WaitQueue,
            Woken, //
        },
        work::{
            OrderedQueue,
            UnboundQueue, //
        }, //
    };
    use kernel::{
        new_spinlock,
        new_work,
        prelude::*,
        sync::{
            Arc,
            SpinLock, //
        },
        workqueue::{
            impl_has_work,
            Work,
            WorkItem, //
        }, //
    };

    /// Bytes of one page.
    const PAGE: usize = 4096;

    /// Returns a block of four pages and its view.
    fn memory() -> Result<(PageBlock, Window)> {
        let block = PageBlock::new(2, Charge::Driver)?;
        let window = block.window();

        Ok((block, window))
    }

    /// Returns whether every byte of the window is the one that `expected` says.
    fn holds(window: &Window, expected: impl Fn(usize) -> u8) -> Result<bool> {
        let mut bytes = KVec::from_elem(0u8, window.len(), GFP_KERNEL)?;

        window.read_into(&mut bytes).ok_or(EINVAL)?;
        Ok(bytes
            .iter()
            .enumerate()
            .all(|(at, byte)| *byte == expected(at)))
    }

    #[test]
    fn new_block_is_zero() -> Result {
        let (block, window) = memory()?;

        assert_eq!(block.order(), 2);
        assert_eq!(block.bytes(), 4 * PAGE as u64);
        assert_eq!(block.frame().address() % block.bytes(), 0);
        assert!(holds(&window, |_| 0)?);
        Ok(())
    }

    #[test]
    fn blocks_of_every_charge_and_order_come_and_go() -> Result {
        for order in 0..=4 {
            for charge in [Charge::Client, Charge::Driver] {
                // A high order may fail, order zero may not.
                let block = PageBlock::new(order, charge);

                assert!(order > 0 || block.is_ok());
            }
        }
        assert!(PageBlock::new(PageBlock::MAX_ORDER + 1, Charge::Driver).is_err());
        Ok(())
    }

    #[test]
    fn contiguous_block_is_writable_to_its_end() -> Result {
        // A kernel without a contiguous area has nothing to test.
        let Ok(block) = ContiguousBlock::new(3) else {
            return Ok(());
        };
        let window = block.window();

        window.poison(0x5a);
        assert_eq!(window.len(), 3 * PAGE);
        assert_eq!(window.read32(3 * PAGE - 4), Some(0x5a5a_5a5a));
        assert!(ContiguousBlock::new(0).is_err());
        Ok(())
    }

    #[test]
    fn window_outside_of_memory_is_none() {
        assert!(Window::physical(u64::MAX - 4095, PAGE).is_none());
        assert!(Window::physical(1 << 50, PAGE).is_none());
        assert!(Window::physical(u64::MAX, 2).is_none());
        assert!(Window::physical(0x10_0000, 0).is_none());
    }

    #[test]
    fn physical_window_is_the_block() -> Result {
        let (block, window) = memory()?;
        let inside = Window::physical(block.frame().address() + 12, 20).ok_or(EINVAL)?;

        assert_eq!(inside.write32(0, 7), Some(()));
        assert_eq!(window.read32(12), Some(7));
        assert_eq!(inside.len(), 20);
        Ok(())
    }

    #[test]
    fn access_outside_or_unaligned_is_none() -> Result {
        let (_block, window) = memory()?;
        let end = window.len();

        assert_eq!(window.read32(end - 4), Some(0));
        assert_eq!(window.read32(end - 3), None);
        assert_eq!(window.read32(2), None);
        assert_eq!(window.read64(4), None);
        assert_eq!(window.write32(end, 0), None);
        assert_eq!(window.write64(usize::MAX, 0), None);
        assert_eq!(window.fetch_add64(end - 4, 1), None);
        assert!(window.sub(end, 1).is_none());
        assert!(window.sub(usize::MAX, 2).is_none());
        assert!(window.sub(0, end).is_some());
        Ok(())
    }

    #[test]
    fn words_read_back() -> Result {
        let (_block, window) = memory()?;

        assert_eq!(window.write64(8, 0x1122_3344_5566_7788), Some(()));
        assert_eq!(window.read64(8), Some(0x1122_3344_5566_7788));
        assert_eq!(window.fetch_add64(8, u64::MAX), Some(0x1122_3344_5566_7788));
        assert_eq!(window.acquire64(8), Some(0x1122_3344_5566_7787));
        assert_eq!(window.release64(8, 5), Some(()));
        assert_eq!(window.read32(8), Some(5));
        Ok(())
    }

    #[test]
    fn fill_writes_the_pattern_and_nothing_else() -> Result {
        let (_block, window) = memory()?;
        let pattern = 0x0403_0201u32;

        for (start, bytes) in [(0, 64), (4, 64), (4, 60), (8, 12), (3, 10), (16, 7), (0, 0)] {
            window.zero();
            window.sub(start, bytes).ok_or(EINVAL)?.fill32(pattern);

            let expected = |at: usize| match at.checked_sub(start) {
                Some(inside) if inside < bytes => (inside % 4 + 1) as u8,
                _ => 0,
            };

            assert!(holds(&window, expected)?);
        }

        window.fill32(0x7777_7777);
        assert!(holds(&window, |_| 0x77)?);
        Ok(())
    }

    #[test]
    fn overlapping_copy_reads_before_it_writes() -> Result {
        let (_block, window) = memory()?;

        for (from, to) in [(0, 8), (8, 0), (0, 4096), (4096, 100)] {
            for at in (0..window.len()).step_by(4) {
                window.write32(at, at as u32).ok_or(EINVAL)?;
            }

            let source = window.sub(from, 8192).ok_or(EINVAL)?;
            let target = window.sub(to, 8192).ok_or(EINVAL)?;

            assert_eq!(target.copy_from(&source), Some(()));
            for at in (0..8192).step_by(4) {
                assert_eq!(target.read32(at), Some((from + at) as u32));
            }
        }
        assert_eq!(window.copy_from(&window.sub(0, 8).ok_or(EINVAL)?), None);
        Ok(())
    }

    #[test]
    fn checksum_is_the_castagnoli_one() -> Result {
        let (_block, window) = memory()?;
        let digits = window.sub(1, 9).ok_or(EINVAL)?;

        assert_eq!(digits.write_from(b"123456789"), Some(()));
        // The check value that the catalogue of checksums gives.
        assert_eq!(!digits.crc32c(!0), 0xe306_9283);
        assert_eq!(digits.write_from(b"12345678"), None);
        Ok(())
    }

    #[test]
    fn frame_is_an_address_without_its_low_bits() {
        assert_eq!(Frame::containing(0x12_3456), Frame(0x123));
        assert_eq!(Frame(0x123).address(), 0x12_3000);
        assert_eq!(Frame(7).forward(2), Frame(9));
    }

    #[test]
    fn wait_for_what_holds_returns_at_once() -> Result {
        let queue = KBox::pin_init(new_wait_queue!("test"), GFP_KERNEL)?;

        for deadline in [Deadline::Never, Deadline::Poll, Deadline::At(0)] {
            assert_eq!(queue.wait(Sleep::Killable, deadline, || Some(3)), Ok(3));
        }
        Ok(())
    }

    #[test]
    fn wait_ends_at_its_deadline() -> Result {
        let queue = KBox::pin_init(new_wait_queue!("test"), GFP_KERNEL)?;
        let never = || None::<()>;
        let at = clock::now_ns() + 20 * clock::NANOSECONDS_PER_MILLISECOND;

        for passed in [Deadline::Poll, Deadline::At(0), Deadline::At(1)] {
            let answer = queue.wait(Sleep::Interruptible, passed, never);

            assert_eq!(answer, Err(Woken::Deadline));
        }

        let answer = queue.wait(Sleep::Uninterruptible, Deadline::At(at), never);

        assert_eq!(answer, Err(Woken::Deadline));
        assert!(clock::now_ns() >= at);
        Ok(())
    }

    /// Something to do for a queue: counts, wakes, and remembers in which order.
    #[pin_data]
    struct Task {
        number: u32,
        done: Arc<Done>,
        #[pin]
        work: Work<Task>,
    }

    impl_has_work! {
        impl HasWork<Self> for Task { self.work }
    }

    impl WorkItem for Task {
        type Pointer = Arc<Self>;

        fn run(this: Arc<Self>) {
            let _ = this.done.order.lock().push(this.number, GFP_ATOMIC);
            this.done.changed.notify_all();
        }
    }

    /// What tasks have done.
    #[pin_data]
    struct Done {
        #[pin]
        order: SpinLock<KVec<u32>>,
        #[pin]
        changed: WaitQueue,
    }

    /// Returns an empty record.
    fn done() -> Result<Arc<Done>> {
        Arc::pin_init(
            pin_init!(Done {
                order <- new_spinlock!(KVec::new(), "Done::order"),
                changed <- new_wait_queue!("Done::changed"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns a task.
    fn task(number: u32, done: &Arc<Done>) -> Result<Arc<Task>> {
        let done = done.clone();

        Arc::pin_init(
            pin_init!(Task {
                number,
                done,
                work <- new_work!("Task::work"),
            }),
            GFP_KERNEL,
        )
    }

    #[test]
    fn sleeper_is_woken_by_work() -> Result {
        let queue = UnboundQueue::new(c"vidmm_test")?;
        let done = done()?;

        assert!(queue.enqueue(task(1, &done)?).is_ok());

        let answer = done
            .changed
            .wait(Sleep::Uninterruptible, Deadline::Never, || {
                (!done.order.lock().is_empty()).then_some(())
            });

        assert_eq!(answer, Ok(()));
        Ok(())
    }

    #[test]
    fn ordered_queue_keeps_the_order_and_drains() -> Result {
        let queue = OrderedQueue::new(c"vidmm_test")?;
        let done = done()?;

        for number in 0..100 {
            assert!(queue.enqueue(task(number, &done)?).is_ok());
        }
        drop(queue);
        assert!(done.order.lock().iter().copied().eq(0..100));
        Ok(())
    }
}
