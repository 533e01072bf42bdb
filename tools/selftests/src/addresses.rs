// SPDX-License-Identifier: GPL-2.0

//! GPU virtual addresses: the calls about them, and a ground on which commands of virtual contexts run.

use crate::{
    abi::{
        self,
        AllocInfo,
        SubmitVirtual,
        VaEntry,
        VaFree,
        VaMap,
        VaQuery,
        VaReserve, //
    },
    call::{
        array,
        bytes_of,
        Errno, //
    },
    client::{
        answer,
        Allocation,
        Answer,
        Client,
        Context,
        Queue, //
    },
    clock,
    commands::{
        At,
        Commands,
        Refusal, //
    },
    fixture::{
        plain,
        Fixture,
        KIB, //
    },
    memory::Mapping, //
};

/// The first node of all profiles with a GPU MMU, which works with virtual addresses.
pub const VIRTUAL_NODE: u32 = 0;

/// A place that commands of virtual contexts name by its address.
pub fn address(va: u64) -> At {
    At {
        handle: 0,
        offset: va,
    }
}

impl Client {
    /// Reserves addresses; returns where.
    pub fn try_reserve_addresses(&self, mut argument: VaReserve) -> Result<(u64, Answer), Errno> {
        self.call(abi::IOCTL_VA_RESERVE, &mut argument)?;
        Ok((argument.va, answer(argument.status, argument.fence_value)))
    }

    /// Maps a part of an allocation; returns where.
    pub fn try_map_addresses(&self, mut argument: VaMap) -> Result<(u64, Answer), Errno> {
        self.call(abi::IOCTL_VA_MAP, &mut argument)?;
        Ok((argument.va, answer(argument.status, argument.fence_value)))
    }

    /// Gives addresses back.
    pub fn try_free_addresses(&self, va: u64, size: u64) -> Result<(), Errno> {
        let mut argument = VaFree {
            va,
            size,
            ..Default::default()
        };
        self.call(abi::IOCTL_VA_FREE, &mut argument)
    }

    /// Gives addresses back.
    pub fn free_addresses(&self, va: u64, size: u64) {
        self.try_free_addresses(va, size)
            .unwrap_or_else(|errno| panic!("VA_FREE of {size:#x} at {va:#x}: errno {errno}"));
    }

    /// Tells what lies in a window.
    pub fn query_addresses(&self, va: u64, size: u64) -> Vec<VaEntry> {
        let mut entries = vec![VaEntry::default(); 64];
        loop {
            let mut argument = VaQuery {
                va,
                size,
                entries: array(&entries),
                ..Default::default()
            };
            argument.entries.ptr = entries.as_mut_ptr() as u64;
            self.call(abi::IOCTL_VA_QUERY, &mut argument)
                .unwrap_or_else(|errno| panic!("VA_QUERY: errno {errno}"));
            let total = argument.total as usize;
            if total <= entries.len() {
                entries.truncate(total);
                return entries;
            }
            entries.resize(total, VaEntry::default());
        }
    }

    /// Waits for what a call on a paging queue answered.
    pub fn settle(&self, queue: &Queue, answer: Answer) {
        if let Answer::Pending(value) = answer {
            self.wait(queue.fence, value);
        }
    }

    /// Submits commands of a virtual context and returns the submission id.
    pub fn try_submit_virtual(&self, mut argument: SubmitVirtual) -> Result<u64, Refusal> {
        match self.call(abi::IOCTL_SUBMIT_VIRTUAL, &mut argument) {
            Ok(()) => Ok(argument.submission),
            Err(errno) => Err(Refusal {
                errno,
                kind: argument.error_kind,
                index: argument.error_index,
            }),
        }
    }
}

/// A client whose virtual context fetches commands from an allocation.
pub struct Ground {
    /// Client, device and queue.
    pub fixture: Fixture,
    /// The context.
    pub context: Context,
    /// Where the commands are.
    pub code: Allocation,
    /// The same, for the CPU.
    pub mapping: Mapping,
    /// The same, for the GPU.
    pub code_va: u64,
}

impl Ground {
    /// Makes them; the commands lie in one of these segments.
    pub fn new(segments: u32) -> Self {
        Self::on(Fixture::new(), segments)
    }

    /// Makes them with what is there.
    pub fn on(fixture: Fixture, segments: u32) -> Self {
        let mode = abi::CONTEXT_MODE_VIRTUAL;
        let context = fixture
            .client
            .create_context_of_mode(fixture.device, VIRTUAL_NODE, mode);
        let code = fixture.create_resident(plain(64 * KIB, segments));
        let mapping = fixture.client.map(&code);
        let code_va = map(&fixture, &code, abi::VA_EXECUTE);
        Self {
            fixture,
            context,
            code,
            mapping,
            code_va,
        }
    }

    /// Makes an allocation, brings it in and maps it for reading and writing.
    pub fn create(&self, info: AllocInfo) -> (Allocation, u64) {
        let allocation = self.fixture.create_resident(info);
        let va = self.map(&allocation, abi::VA_WRITE);
        (allocation, va)
    }

    /// Maps all of an allocation and waits until the mapping is in force.
    pub fn map(&self, allocation: &Allocation, protection: u32) -> u64 {
        map(&self.fixture, allocation, protection)
    }

    /// Maps as described and waits until the mapping is in force.
    pub fn map_as(&self, argument: VaMap) -> Result<u64, Errno> {
        let (va, answer) = self.fixture.client.try_map_addresses(argument)?;
        self.fixture.client.settle(&self.fixture.queue, answer);
        Ok(va)
    }

    /// Puts commands `skip` bytes behind the start of the code, and returns the argument that runs them.
    pub fn prepare(&self, skip: u64, commands: &Commands) -> SubmitVirtual {
        let bytes = bytes_of(&commands.dwords);
        self.mapping.write(skip as usize, bytes);
        SubmitVirtual {
            context: self.context.handle,
            flags: commands.flags,
            cmd_va: match bytes.len() {
                0 => 0,
                _ => self.code_va + skip,
            },
            cmd_size: bytes.len() as u32,
            waits: array(&commands.waits),
            signals: array(&commands.signals),
            ..Default::default()
        }
    }

    /// Submits commands, which lie at the start of the code.
    pub fn submit(&self, commands: &Commands) -> u64 {
        let argument = self.prepare(0, commands);
        self.fixture
            .client
            .try_submit_virtual(argument)
            .unwrap_or_else(|refusal| panic!("SUBMIT_VIRTUAL: {refusal:?}"))
    }

    /// Submits commands and waits until they have run.
    pub fn run(&self, commands: &Commands) -> u64 {
        let id = self.submit(commands);
        self.fixture.client.wait(self.context.progress, id);
        id
    }

    /// Submits commands that are at fault, and waits until their device is in error.
    pub fn run_into_fault(&self, commands: &Commands) -> abi::DeviceState {
        self.submit(commands);
        self.wait_for_error()
    }

    /// Waits until the device is in error.
    pub fn wait_for_error(&self) -> abi::DeviceState {
        let mut state = abi::DeviceState::default();
        clock::wait_until("the device is in error", || {
            state = self.fixture.client.device_state(self.fixture.device);
            state.state != abi::DEVICE_STATE_ACTIVE
        });
        state
    }
}

/// Maps all of an allocation anywhere and waits until the mapping is in force.
fn map(fixture: &Fixture, allocation: &Allocation, protection: u32) -> u64 {
    let argument = VaMap {
        queue: fixture.queue.handle,
        alloc: allocation.handle,
        protection,
        size: allocation.size,
        ..Default::default()
    };
    let (va, answer) = fixture
        .client
        .try_map_addresses(argument)
        .unwrap_or_else(|errno| panic!("VA_MAP: errno {errno}"));
    fixture.client.settle(&fixture.queue, answer);
    va
}
