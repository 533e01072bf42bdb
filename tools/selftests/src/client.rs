// SPDX-License-Identifier: GPL-2.0

//! A client: one open device file, and every call on it.
//!
//! Methods with `try_` return the errno; the others panic, with the name of the call. Handles are
//! plain numbers, since tests pass wrong ones too.

use std::{
    fs::{
        File,
        OpenOptions, //
    },
    io,
    os::fd::{
        AsFd,
        BorrowedFd, //
    },
};

use crate::{
    abi::{
        self,
        AllocCreate,
        AllocInfo,
        AllocQuery,
        AllocState,
        Close,
        ContextCreate,
        ContextSet,
        DeviceCreate,
        DeviceState,
        Evict,
        FenceCreate,
        FenceSignal,
        FenceWait,
        Lock,
        MakeResident,
        Offer,
        PagingQueueCreate,
        Point,
        PriorityItem,
        Query,
        Reclaim,
        ReclaimItem,
        SetName,
        SetPriority,
        SubmitQuery,
        Unlock, //
    },
    call::{
        address,
        array,
        issue,
        Errno,
        Plain, //
    },
    clock,
    memory::Mapping,
    module,
};

/// An allocation as its creation describes it.
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    /// Handle.
    pub handle: u32,
    /// Number on the adapter.
    pub object_id: u64,
    /// Rounded size.
    pub size: u64,
    /// Mapping offset.
    pub mmap_offset: u64,
}

/// A paging queue with its fence.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// Handle.
    pub handle: u32,
    /// Handle of the paging fence.
    pub fence: u32,
}

/// A context with its progress fence.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Handle.
    pub handle: u32,
    /// Handle of the progress fence.
    pub progress: u32,
}

/// What a call on a paging queue answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing was left to do.
    Ready,
    /// Wait for this value of the paging fence.
    Pending(u64),
}

/// An open device file.
pub struct Client(File);

impl Client {
    /// Opens the device file.
    pub fn open() -> Self {
        Self::try_open().unwrap_or_else(|errno| panic!("open {}: errno {errno}", module::NODE))
    }

    /// Opens the device file and returns the errno of a failure.
    pub fn try_open() -> Result<Self, Errno> {
        let file = OpenOptions::new().read(true).write(true).open(module::NODE);
        file.map(Self)
            .map_err(|error| error.raw_os_error().unwrap_or(0))
    }

    /// Takes a file that was opened in another way.
    pub fn from_file(file: File) -> Self {
        Self(file)
    }

    /// Another descriptor of the same open file.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// The descriptor.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Issues a command.
    pub fn call<T: Plain>(&self, command: u32, argument: &mut T) -> Result<(), Errno> {
        issue(self.file(), command, argument)
    }

    /// Reads a record of QUERY.
    pub fn try_query<T: Plain>(&self, query: u32, index: u32) -> Result<T, Errno> {
        let mut record = [T::default()];
        let mut argument = Query {
            query,
            index,
            data: address(&record),
            size: size_of::<T>() as u32,
            flags: 0,
        };
        // The kernel writes behind `data`.
        argument.data = record.as_mut_ptr() as u64;
        self.call(abi::IOCTL_QUERY, &mut argument)?;
        assert_eq!(
            argument.size as usize,
            size_of::<T>(),
            "size of record {query}"
        );
        Ok(record[0])
    }

    /// Reads a record of QUERY.
    pub fn query<T: Plain>(&self, query: u32, index: u32) -> T {
        self.try_query(query, index)
            .unwrap_or_else(|errno| panic!("QUERY {query} {index}: errno {errno}"))
    }

    /// Names an object.
    pub fn try_set_name(&self, object: u32, name: &[u8]) -> Result<(), Errno> {
        let ptr = if name.is_empty() { 0 } else { address(name) };
        self.call(
            abi::IOCTL_SET_NAME,
            &mut SetName {
                object,
                len: name.len() as u32,
                ptr,
            },
        )
    }

    /// Closes handles; an error carries `fail_index`.
    pub fn try_close(&self, handles: &[u32], flags: u32) -> Result<(), (Errno, u32)> {
        let mut argument = Close {
            handles: array(handles),
            flags,
            fail_index: 0,
        };
        self.call(abi::IOCTL_CLOSE, &mut argument)
            .map_err(|errno| (errno, argument.fail_index))
    }

    /// Closes handles.
    pub fn close(&self, handles: &[u32]) {
        self.try_close(handles, 0)
            .unwrap_or_else(|error| panic!("CLOSE: {error:?}"));
    }

    /// Closes handles and waits until their storage is gone.
    pub fn close_and_wait(&self, handles: &[u32]) {
        self.try_close(handles, abi::CLOSE_SYNC)
            .unwrap_or_else(|error| panic!("CLOSE: {error:?}"));
    }

    /// Makes a device.
    pub fn create_device(&self) -> u32 {
        let mut argument = DeviceCreate::default();
        self.call(abi::IOCTL_DEVICE_CREATE, &mut argument)
            .unwrap_or_else(|errno| panic!("DEVICE_CREATE: errno {errno}"));
        argument.device
    }

    /// Reads the state of a device.
    pub fn device_state(&self, device: u32) -> DeviceState {
        let mut argument = DeviceState {
            device,
            ..Default::default()
        };
        self.call(abi::IOCTL_DEVICE_STATE, &mut argument)
            .unwrap_or_else(|errno| panic!("DEVICE_STATE: errno {errno}"));
        argument
    }

    /// Makes allocations; fills in the outputs. An error carries `fail_index`.
    pub fn try_create_all(&self, device: u32, infos: &mut [AllocInfo]) -> Result<(), (Errno, u32)> {
        let mut argument = AllocCreate {
            device,
            infos: array(infos),
            ..Default::default()
        };
        argument.infos.ptr = infos.as_mut_ptr() as u64;
        self.call(abi::IOCTL_ALLOC_CREATE, &mut argument)
            .map_err(|errno| (errno, argument.fail_index))
    }

    /// Makes one allocation.
    pub fn try_create(&self, device: u32, info: AllocInfo) -> Result<Allocation, Errno> {
        let mut infos = [info];
        self.try_create_all(device, &mut infos)
            .map_err(|(errno, _)| errno)?;
        let [info] = infos;
        let size = self.state_of(info.handle).size;
        Ok(Allocation {
            handle: info.handle,
            object_id: info.object_id,
            size,
            mmap_offset: info.mmap_offset,
        })
    }

    /// Makes one allocation.
    pub fn create(&self, device: u32, info: AllocInfo) -> Allocation {
        self.try_create(device, info)
            .unwrap_or_else(|errno| panic!("ALLOC_CREATE of {info:?}: errno {errno}"))
    }

    /// Reads the states of allocations; an error carries `fail_index`.
    pub fn try_states(&self, handles: &[u32]) -> Result<Vec<AllocState>, (Errno, u32)> {
        let fill = |handle: &u32| AllocState {
            handle: *handle,
            ..Default::default()
        };
        let mut states: Vec<AllocState> = handles.iter().map(fill).collect();
        let mut argument = AllocQuery {
            items: array(&states),
            ..Default::default()
        };
        argument.items.ptr = states.as_mut_ptr() as u64;
        self.call(abi::IOCTL_ALLOC_QUERY, &mut argument)
            .map_err(|errno| (errno, argument.fail_index))?;
        Ok(states)
    }

    /// Reads the state of an allocation.
    pub fn state_of(&self, handle: u32) -> AllocState {
        self.try_states(&[handle])
            .unwrap_or_else(|error| panic!("ALLOC_QUERY: {error:?}"))[0]
    }

    /// Changes the priorities of allocations; an error carries `fail_index`.
    pub fn try_set_priority(&self, items: &[PriorityItem]) -> Result<(), (Errno, u32)> {
        let mut argument = SetPriority {
            items: array(items),
            ..Default::default()
        };
        self.call(abi::IOCTL_SET_PRIORITY, &mut argument)
            .map_err(|errno| (errno, argument.fail_index))
    }

    /// Offers allocations; an error carries `fail_index`.
    pub fn try_offer(
        &self,
        device: u32,
        handles: &[u32],
        level: u32,
        flags: u32,
    ) -> Result<(), (Errno, u32)> {
        let mut argument = Offer {
            device,
            level,
            flags,
            handles: array(handles),
            ..Default::default()
        };
        self.call(abi::IOCTL_OFFER, &mut argument)
            .map_err(|errno| (errno, argument.fail_index))
    }

    /// Reclaims allocations; returns the result of each. An error carries `fail_index`.
    pub fn try_reclaim(
        &self,
        queue: u32,
        handles: &[u32],
    ) -> Result<(Vec<u32>, Answer), (Errno, u32)> {
        let item = |alloc: &u32| ReclaimItem {
            alloc: *alloc,
            result: u32::MAX,
        };
        let mut items: Vec<ReclaimItem> = handles.iter().map(item).collect();
        let mut argument = Reclaim {
            queue,
            items: array(&items),
            ..Default::default()
        };
        argument.items.ptr = items.as_mut_ptr() as u64;
        self.call(abi::IOCTL_RECLAIM, &mut argument)
            .map_err(|errno| (errno, argument.fail_index))?;
        let results = items.iter().map(|item| item.result).collect();
        Ok((results, answer(argument.status, argument.fence_value)))
    }

    /// Maps an allocation for reading and writing.
    pub fn map(&self, allocation: &Allocation) -> Mapping {
        Mapping::new(
            self.file(),
            allocation.mmap_offset,
            allocation.size as usize,
        )
    }

    /// Makes a context.
    pub fn try_create_context(&self, argument: &mut ContextCreate) -> Result<Context, Errno> {
        self.call(abi::IOCTL_CONTEXT_CREATE, argument)?;
        Ok(Context {
            handle: argument.context,
            progress: argument.progress,
        })
    }

    /// Makes a context with lists that page.
    pub fn create_context(&self, device: u32, node: u32) -> Context {
        self.create_context_of_mode(device, node, abi::CONTEXT_MODE_PATCHED_LIST)
    }

    /// Makes a context.
    pub fn create_context_of_mode(&self, device: u32, node: u32, mode: u32) -> Context {
        let mut patient = context_argument(device, node, mode);
        // Machines that run tests may be slow; what a limit does is tested by itself.
        patient.flags = abi::CONTEXT_NO_TIMEOUT;
        if let Ok(context) = self.try_create_context(&mut patient) {
            return context;
        }
        self.try_create_context(&mut context_argument(device, node, mode))
            .unwrap_or_else(|errno| panic!("CONTEXT_CREATE on node {node}: errno {errno}"))
    }

    /// Changes a context.
    pub fn try_set_context(&self, mut argument: ContextSet) -> Result<(), Errno> {
        self.call(abi::IOCTL_CONTEXT_SET, &mut argument)
    }

    /// Reads what is known of a submission.
    pub fn try_submission(&self, context: u32, submission: u64) -> Result<SubmitQuery, Errno> {
        let mut argument = SubmitQuery {
            context,
            submission,
            ..Default::default()
        };
        self.call(abi::IOCTL_SUBMIT_QUERY, &mut argument)?;
        Ok(argument)
    }

    /// Makes a paging queue.
    pub fn create_queue(&self, device: u32) -> Queue {
        let mut argument = PagingQueueCreate {
            device,
            ..Default::default()
        };
        self.call(abi::IOCTL_PAGING_QUEUE_CREATE, &mut argument)
            .unwrap_or_else(|errno| panic!("PAGING_QUEUE_CREATE: errno {errno}"));
        Queue {
            handle: argument.queue,
            fence: argument.fence,
        }
    }

    /// Adds residency references; an error carries `fail_index`.
    pub fn try_make_resident(&self, queue: u32, handles: &[u32]) -> Result<Answer, (Errno, u32)> {
        let mut argument = MakeResident {
            queue,
            handles: array(handles),
            ..Default::default()
        };
        self.call(abi::IOCTL_MAKE_RESIDENT, &mut argument)
            .map_err(|errno| (errno, argument.fail_index))?;
        Ok(answer(argument.status, argument.fence_value))
    }

    /// Adds residency references.
    pub fn make_resident(&self, queue: &Queue, handles: &[u32]) -> Answer {
        self.try_make_resident(queue.handle, handles)
            .unwrap_or_else(|error| panic!("MAKE_RESIDENT: {error:?}"))
    }

    /// Adds residency references and waits until the memory is there.
    pub fn bring_in(&self, queue: &Queue, handles: &[u32]) {
        if let Answer::Pending(value) = self.make_resident(queue, handles) {
            self.wait(queue.fence, value);
        }
    }

    /// Drops residency references; an error carries `fail_index`.
    pub fn try_evict(&self, device: u32, handles: &[u32], flags: u32) -> Result<(), (Errno, u32)> {
        let mut argument = Evict {
            device,
            flags,
            handles: array(handles),
            ..Default::default()
        };
        self.call(abi::IOCTL_EVICT, &mut argument)
            .map_err(|errno| (errno, argument.fail_index))
    }

    /// Drops residency references.
    pub fn evict(&self, device: u32, handles: &[u32]) {
        self.try_evict(device, handles, 0)
            .unwrap_or_else(|error| panic!("EVICT: {error:?}"));
    }

    /// Drops the residency reference of each and waits until they have left.
    pub fn push_out(&self, device: u32, handles: &[u32]) {
        self.evict(device, handles);
        clock::wait_until("evicted allocations leave", || {
            let states = self.try_states(handles).unwrap_or_default();
            states
                .iter()
                .all(|state| state.residency == abi::ALLOC_RESIDENCY_NOT_RESIDENT)
        });
    }

    /// Locks an allocation.
    pub fn try_lock(&self, mut argument: Lock) -> Result<Lock, Errno> {
        self.call(abi::IOCTL_LOCK, &mut argument)?;
        Ok(argument)
    }

    /// Locks an allocation as a whole and waits for the GPU as `flags` say.
    pub fn lock(&self, alloc: u32, flags: u32) -> Lock {
        let deadline_ns = clock::patient_deadline();
        self.try_lock(Lock {
            alloc,
            flags,
            deadline_ns,
            ..Default::default()
        })
        .unwrap_or_else(|errno| panic!("LOCK: errno {errno}"))
    }

    /// Undoes a lock.
    pub fn try_unlock(&self, mut argument: Unlock) -> Result<(), Errno> {
        self.call(abi::IOCTL_UNLOCK, &mut argument)
    }

    /// Undoes a lock.
    pub fn unlock(&self, alloc: u32) {
        self.try_unlock(Unlock {
            alloc,
            ..Default::default()
        })
        .unwrap_or_else(|errno| panic!("UNLOCK: errno {errno}"));
    }

    /// Makes a fence.
    pub fn try_create_fence(&self, argument: &mut FenceCreate) -> Result<u32, Errno> {
        self.call(abi::IOCTL_FENCE_CREATE, argument)?;
        Ok(argument.fence)
    }

    /// Makes a fence with a first value.
    pub fn create_fence(&self, device: u32, initial: u64) -> u32 {
        self.try_create_fence(&mut FenceCreate {
            device,
            initial,
            ..Default::default()
        })
        .unwrap_or_else(|errno| panic!("FENCE_CREATE: errno {errno}"))
    }

    /// Signals fences; an error carries `fail_index`.
    pub fn try_signal(&self, points: &[Point], flags: u32) -> Result<(), (Errno, u32)> {
        let mut argument = FenceSignal {
            points: array(points),
            flags,
            fail_index: 0,
        };
        self.call(abi::IOCTL_FENCE_SIGNAL, &mut argument)
            .map_err(|errno| (errno, argument.fail_index))
    }

    /// Signals a fence.
    pub fn signal(&self, fence: u32, value: u64) {
        self.try_signal(&[point(fence, value)], 0)
            .unwrap_or_else(|error| panic!("FENCE_SIGNAL {value}: {error:?}"));
    }

    /// Waits for fences; success carries `first`.
    pub fn try_wait(&self, points: &[Point], deadline_ns: i64, flags: u32) -> Result<u32, Errno> {
        let mut argument = FenceWait {
            points: array(points),
            deadline_ns,
            flags,
            first: 0,
        };
        loop {
            match self.call(abi::IOCTL_FENCE_WAIT, &mut argument) {
                Ok(()) => return Ok(argument.first),
                Err(libc::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Waits for a value of a fence.
    pub fn wait(&self, fence: u32, value: u64) {
        self.try_wait(&[point(fence, value)], clock::patient_deadline(), 0)
            .unwrap_or_else(|errno| panic!("FENCE_WAIT for {value}: errno {errno}"));
    }

    /// Whether a fence has reached a value.
    pub fn is_reached(&self, fence: u32, value: u64) -> bool {
        match self.try_wait(&[point(fence, value)], 0, 0) {
            Ok(_) => true,
            Err(libc::ETIME) => false,
            Err(errno) => panic!("FENCE_WAIT: errno {errno}"),
        }
    }

    /// The text of fdinfo.
    pub fn fdinfo(&self) -> io::Result<String> {
        use std::os::fd::AsRawFd;
        std::fs::read_to_string(format!("/proc/self/fdinfo/{}", self.0.as_raw_fd()))
    }
}

/// The argument that makes a context with default priority and time limit.
pub fn context_argument(device: u32, node: u32, mode: u32) -> ContextCreate {
    ContextCreate {
        device,
        node,
        mode,
        companion_node: abi::NODE_NONE,
        ..Default::default()
    }
}

/// A value of a fence.
pub fn point(fence: u32, value: u64) -> Point {
    Point {
        fence,
        flags: 0,
        value,
    }
}

/// What a call on a paging queue says.
pub fn answer(status: u32, fence_value: u64) -> Answer {
    match status {
        abi::STATUS_READY => {
            assert_eq!(fence_value, 0, "READY comes with a fence value");
            Answer::Ready
        }
        abi::STATUS_PENDING => Answer::Pending(fence_value),
        other => panic!("status {other}"),
    }
}
