// SPDX-License-Identifier: GPL-2.0

//! Objects against a backend that records what it is told and completes on command.

mod eviction;
mod host_aperture;
mod offer;
mod paging_space;

use kernel::{
    macros::kunit_tests,
    prelude::*,
    sync::Arc, //
};

use crate::{
    abstractions::params::Parameters,
    backend::{
        operation::Name,
        recording::{
            Recorded,
            Recorder, //
        },
        Backend, //
    },
    object::{
        adapter::Attached,
        allocation::{
            self,
            Allocation,
            Description,
            Flag,
            Flags,
            Hold, //
        },
        client::Client,
        device::{
            Device,
            State, //
        },
        fence::{
            CpuSignal,
            Fence,
            OnReset,
            Purpose,
            Rewind, //
        },
        fence_wait::{
            self,
            Quorum, //
        },
        paging_queue::{
            PagingQueue,
            Priority, //
        },
        residency::{
            self,
            Answer,
            Leaving,
            Statement,
            Urgency, //
        },
        submission::Point,
    },
    units::NodeOrdinal,
};

const MIB: u64 = 1 << 20;
/// The paging node of profile DISC.
const PAGING: NodeOrdinal = NodeOrdinal(1);

/// A client with one device and one paging queue on an adapter of its own.
struct Fixture {
    queue: Arc<PagingQueue>,
    device: Arc<Device>,
    client: Arc<Client>,
    recorder: Arc<Recorder>,
    attached: Attached,
}

impl Fixture {
    fn new() -> Result<Self> {
        let recorder = Recorder::new(&Parameters::default())?;
        let backend: Arc<dyn Backend> = recorder.clone();
        let attached = Attached::new(7, backend)?;
        let client = Client::new(attached.adapter())?;
        let device = Device::new(&client)?;
        let queue = PagingQueue::new(&device, Priority::Normal)?;
        Ok(Self {
            queue,
            device,
            client,
            recorder,
            attached,
        })
    }

    fn allocate(&self, size: u64, segments: u32, flags: Flags) -> Result<Hold> {
        let description = Description {
            segments,
            ..description(size, flags)
        };
        allocation::create(&self.device, &description)
    }

    fn make_resident(&self, hold: &Hold) -> Result<Answer> {
        let mut list = KVVec::new();
        list.push(hold.clone(), GFP_KERNEL)?;
        residency::make_resident(&self.queue, list, Urgency::MayFail)
            .map_err(|refused| refused.error)
    }

    fn evict(&self, hold: &Hold, leaving: Leaving) -> Result {
        residency::evict(
            &self.device,
            core::slice::from_ref(hold),
            leaving,
            Statement::Nothing,
        )
        .map_err(|refused| refused.error)
    }

    /// Lets the worker look at everything.
    fn work(&self) {
        self.attached.adapter().worker().flush();
    }

    /// Lets the paging node and the worker come to rest.
    ///
    /// A pass of the worker may ask for another one, which a flush does not wait for, so rest is
    /// several rounds without anything to complete.
    fn settle(&self) {
        let mut idle = 0;
        while idle < 5 {
            self.work();
            if self.recorder.complete_all(PAGING) == 0 {
                idle += 1;
            } else {
                idle = 0;
            }
        }
    }

    /// Returns the operations built since the last call: name and bytes. Updates of page tables and
    /// flushes, which are about no content, are left out.
    fn operations(&self) -> Result<KVec<(Name, u64)>> {
        let mut operations = KVec::new();
        for recorded in self.recorder.take()? {
            if let Recorded::Built(operation) = recorded {
                let about_content =
                    !matches!(operation.name, Name::UpdatePageTable | Name::FlushTlb);
                if about_content {
                    operations.push((operation.name, operation.bytes), GFP_KERNEL)?;
                }
            }
        }
        Ok(operations)
    }

    /// Closes everything, as the door does.
    fn close(self) {
        self.queue.closed();
        self.device.closed();
        self.client.close();
        self.settle();
    }
}

/// Describes an allocation of segment 1.
fn description(size: u64, flags: Flags) -> Description {
    Description {
        size,
        align: 0,
        flags,
        segments: 0b10,
        preferred: 0,
        priority: 3,
        picture: None,
    }
}

fn forget(hold: Hold) {
    residency::forget(&hold);
    hold.closed();
}

fn resident(allocation: &Allocation) -> bool {
    allocation.residence().lock().is_resident()
}

#[kunit_tests(vidmm_object)]
mod suite {
    use super::*;

    #[test]
    fn locks_are_taken_in_the_order_of_the_table() -> Result {
        let fixture = Fixture::new()?;
        let hold = fixture.allocate(MIB, 0b10, Flags::default())?;
        let adapter = fixture.attached.adapter();
        adapter.worker().in_place(adapter, |_| {
            let residence = hold.residence().lock();
            for window in adapter.host_apertures() {
                window.with_lock(|| ());
            }
            drop(residence);
        });
        let demands = fixture.device.demands().lock();
        let residence = hold.residence().lock();
        drop((residence, demands));
        forget(hold);
        fixture.close();
        Ok(())
    }

    #[test]
    fn make_resident_is_pending_until_the_fill_is_complete() -> Result {
        let fixture = Fixture::new()?;
        let hold = fixture.allocate(MIB, 0b10, Flags::default())?;
        assert_eq!(fixture.make_resident(&hold)?, Answer::Pending(1));
        fixture.work();
        let operations = fixture.operations()?;
        assert_eq!(operations.as_slice(), &[(Name::FillVirtual, MIB)]);
        assert_eq!(fixture.queue.fence().value().0, 0);
        fixture.settle();
        assert_eq!(fixture.queue.fence().value().0, 1);
        assert_eq!(fixture.make_resident(&hold)?, Answer::Ready);
        forget(hold);
        fixture.close();
        Ok(())
    }

    #[test]
    fn least_recently_used_leaves_and_comes_back() -> Result {
        let fixture = Fixture::new()?;
        let old = fixture.allocate(9 * MIB, 0b10, Flags::default())?;
        let new = fixture.allocate(9 * MIB, 0b10, Flags::default())?;
        fixture.make_resident(&old)?;
        fixture.settle();
        fixture.evict(&old, Leaving::IfNeeded)?;
        fixture.settle();
        assert!(resident(&old));
        let _ = fixture.operations()?;
        fixture.make_resident(&new)?;
        fixture.settle();
        assert!(!resident(&old));
        let bytes: u64 = fixture
            .operations()?
            .iter()
            .filter(|(name, _)| *name == Name::Discard)
            .map(|(_, bytes)| bytes)
            .sum();
        assert_eq!(bytes, 9 * MIB);
        fixture.evict(&new, Leaving::IfNeeded)?;
        fixture.make_resident(&old)?;
        fixture.settle();
        assert!(resident(&old) && !resident(&new));
        forget(old);
        forget(new);
        fixture.close();
        Ok(())
    }

    #[test]
    fn more_than_a_segment_is_refused_and_changes_nothing() -> Result {
        let fixture = Fixture::new()?;
        let one = fixture.allocate(9 * MIB, 0b10, Flags::default())?;
        let two = fixture.allocate(9 * MIB, 0b10, Flags::default())?;
        fixture.make_resident(&one)?;
        fixture.settle();
        assert_eq!(fixture.make_resident(&two), Err(ENOSPC));
        assert_eq!(two.residence().lock().references(), 0);
        assert_eq!(fixture.evict(&two, Leaving::AtOnce), Err(EINVAL));
        forget(one);
        forget(two);
        fixture.close();
        Ok(())
    }

    #[test]
    fn physical_allocation_in_system_memory_has_a_range_while_resident() -> Result {
        let fixture = Fixture::new()?;
        let flags = Flags::from(Flag::AccessedPhysically);
        let hold = fixture.allocate(MIB, 0b1000, flags)?;
        fixture.make_resident(&hold)?;
        fixture.settle();
        assert_eq!(
            fixture.operations()?.as_slice(),
            &[(Name::MapAperture, MIB)]
        );
        fixture.evict(&hold, Leaving::AtOnce)?;
        fixture.settle();
        assert_eq!(
            fixture.operations()?.as_slice(),
            &[(Name::UnmapAperture, MIB)]
        );
        forget(hold);
        fixture.close();
        Ok(())
    }

    #[test]
    fn storage_goes_when_the_last_operation_is_complete() -> Result {
        let fixture = Fixture::new()?;
        let hold = fixture.allocate(MIB, 0b10, Flags::default())?;
        let object_id = hold.object_id();
        fixture.make_resident(&hold)?;
        fixture.work();
        forget(hold);
        fixture.work();
        let allocations = &fixture.attached.adapter().registries().allocations;
        assert!(allocations.contains(object_id));
        fixture.settle();
        assert!(!allocations.contains(object_id));
        fixture.close();
        Ok(())
    }

    #[test]
    fn evict_of_a_repeated_handle_keeps_the_sums() -> Result {
        let fixture = Fixture::new()?;
        let twice = fixture.allocate(9 * MIB, 0b10, Flags::default())?;
        let other = fixture.allocate(9 * MIB, 0b10, Flags::default())?;
        fixture.make_resident(&twice)?;
        fixture.make_resident(&twice)?;
        fixture.settle();
        let both = [twice.clone(), twice.clone()];
        let evicted = residency::evict(
            &fixture.device,
            &both,
            Leaving::IfNeeded,
            Statement::Nothing,
        );
        assert!(evicted.is_ok());
        fixture.make_resident(&twice)?;
        assert_eq!(fixture.make_resident(&other), Err(ENOSPC));
        drop(both);
        forget(twice);
        forget(other);
        fixture.close();
        Ok(())
    }

    #[test]
    fn list_that_stands_in_its_own_way_is_moved() -> Result {
        let fixture = Fixture::new()?;
        let flags = Flags::from(Flag::AccessedPhysically);
        // Three lie side by side; what is left when the middle one stays is not one run.
        let low = fixture.allocate(5 * MIB, 0b10, Flags::default())?;
        let middle = fixture.allocate(MIB, 0b10, Flags::default())?;
        let run = fixture.allocate(14 * MIB, 0b10, flags)?;
        fixture.make_resident(&low)?;
        fixture.make_resident(&middle)?;
        fixture.settle();
        fixture.evict(&low, Leaving::AtOnce)?;
        fixture.settle();
        let mut list = KVVec::new();
        for hold in [&middle, &run] {
            list.push(hold.clone(), GFP_KERNEL)?;
        }
        let answer = residency::make_resident(&fixture.queue, list, Urgency::MayFail);
        assert!(answer.is_ok());
        fixture.settle();
        assert!(resident(&middle) && resident(&run));
        assert_eq!(fixture.queue.fence().value().0, 3);
        for hold in [low, middle, run] {
            forget(hold);
        }
        fixture.close();
        Ok(())
    }

    #[test]
    fn list_without_a_place_fails_the_device_only_if_it_must_succeed() -> Result {
        let fixture = Fixture::new()?;
        let mut list = KVVec::new();
        for _ in 0..2 {
            let description = Description {
                size: 4096,
                align: 16 * MIB,
                flags: Flags::from(Flag::AccessedPhysically),
                segments: 0b10,
                preferred: 0,
                priority: 3,
                picture: None,
            };
            list.push(
                allocation::create(&fixture.device, &description)?,
                GFP_KERNEL,
            )?;
        }
        let request = |urgency| -> Result {
            let mut copy = KVVec::new();
            for hold in &list {
                copy.push(hold.clone(), GFP_KERNEL)?;
            }
            let answer = residency::make_resident(&fixture.queue, copy, urgency);
            assert!(answer.is_ok());
            fixture.settle();
            Ok(())
        };
        request(Urgency::LastAttempt)?;
        assert_eq!(fixture.device.state().state, State::Active);
        assert_eq!(fixture.queue.fence().value().0, 1);
        let marked = list
            .iter()
            .filter(|hold| hold.residence().lock().is_unplaced());
        assert_eq!(marked.count(), 1);
        request(Urgency::MustSucceed)?;
        assert_eq!(fixture.device.state().state, State::ErrorMemory);
        assert_eq!(fixture.queue.fence().value().0, 2);
        for hold in list {
            forget(hold);
        }
        fixture.close();
        Ok(())
    }

    #[test]
    fn fence_refuses_to_fall_unless_asked() -> Result {
        let fixture = Fixture::new()?;
        let purpose = Purpose::Client {
            cpu_signal: CpuSignal::Allowed,
            on_reset: OnReset::Saturate,
        };
        let fence = Fence::new(&fixture.client, purpose, 5)?;
        let points = [Point {
            fence: fence.clone(),
            value: 4,
        }];
        let refused = fence_wait::signal(&points, Rewind::Refused);
        assert_eq!(refused.map_err(|refused| refused.error), Err(EINVAL));
        assert!(fence_wait::signal(&points, Rewind::Allowed).is_ok());
        assert_eq!(fence.value().0, 4);
        let adapter = fixture.attached.adapter();
        let waited = fence_wait::wait(
            adapter,
            &points,
            Quorum::All,
            crate::abstractions::wait_queue::Deadline::Poll,
        );
        assert!(waited.is_ok());
        fence.unlist(&fixture.client);
        drop(points);
        drop(fence);
        fixture.close();
        Ok(())
    }
}
