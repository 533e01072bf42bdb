// SPDX-License-Identifier: GPL-2.0

//! Calls: how a request becomes an ioctl.
//!
//! [`Request`] says of each argument structure of the interface which call it belongs to, what it
//! points to and which of its fields name the part to blame. [`call`] carries a request out. Lists
//! are lent as slices; [`call`] alone writes their addresses, so that no address can dangle.
//!
//! [`raw`] issues any number with any bytes, for tests of hostile input.

use std::marker::PhantomData;
use std::mem::size_of;
use std::os::fd::{
    AsFd,
    BorrowedFd, //
};

use crate::{
    abi,
    error::{
        Blame,
        Errno,
        Error,
        Result, //
    },
};

pub mod raw;

mod private {
    /// Keeps the implementations of [`super::Request`] in this file: they promise that every address
    /// in the argument comes from the lists.
    pub trait Sealed {}
}

/// One call of the interface, implemented for its argument structure.
pub trait Request: private::Sealed + Copy {
    /// Name of the call, as the interface writes it.
    const NAME: &'static str;
    /// Command: direction, size, type and number.
    const COMMAND: u32;
    /// What the argument points to, lent for the time of the call.
    type Lists<'a>;

    /// Makes the argument point to `lists`, and to nothing else.
    fn point_to(&mut self, lists: &mut Self::Lists<'_>);

    /// Returns the part of a refused argument that is to blame.
    fn blame(&self) -> Blame;
}

/// Carries out a request, again and again while signals interrupt it.
///
/// Results are in `argument` afterwards; after an error those fields are valid that the interface
/// marks `out!`.
pub fn call<R: Request>(fd: impl AsFd, argument: &mut R, mut lists: R::Lists<'_>) -> Result<()> {
    argument.point_to(&mut lists);
    let outcome = loop {
        let pointer: *mut R = argument;
        // SAFETY: `pointer` is to the argument structure of the command. By the seal of `Request`
        // all addresses in it are those of `lists`, which are borrowed until after the call.
        let outcome = unsafe { issue(fd.as_fd(), R::COMMAND, pointer.cast()) };
        if outcome != Err(Errno::INTR) {
            break outcome;
        }
    };
    outcome.map(|_| ()).map_err(|errno| Error {
        request: R::NAME,
        errno,
        blame: argument.blame(),
    })
}

/// Issues one ioctl.
///
/// # Safety
///
/// `argument` is valid for the bytes that the size in `command` says, for reading and writing, and
/// so is everything its addresses name.
unsafe fn issue(
    fd: BorrowedFd<'_>,
    command: u32,
    argument: *mut core::ffi::c_void,
) -> std::result::Result<i32, Errno> {
    // SAFETY: `Issue` hands on `command` and `argument`, of which the caller's `# Safety` speaks.
    unsafe { rustix::ioctl::ioctl(fd, Issue { command, argument }) }
}

/// Issues one ioctl with room of our own, whatever it holds; addresses are a matter of [`raw`].
///
/// # Panics
///
/// The room is shorter than the size in `command`.
fn issue_room(
    fd: BorrowedFd<'_>,
    command: u32,
    room: &mut [u64],
) -> std::result::Result<i32, Errno> {
    assert!((command as usize >> 16) & 0x3fff <= size_of_val(room));
    // SAFETY: `room` is borrowed exclusively and as long as the command says.
    unsafe { issue(fd, command, room.as_mut_ptr().cast()) }
}

/// Issues the ioctl of `argument` with the addresses that it holds; these are a matter of [`raw`].
fn issue_as_is<R: Request>(
    fd: BorrowedFd<'_>,
    argument: &mut R,
) -> std::result::Result<i32, Errno> {
    let pointer: *mut R = argument;
    // SAFETY: `pointer` is to the argument structure of the command.
    unsafe { issue(fd, R::COMMAND, pointer.cast()) }
}

/// Issues one ioctl with an argument that is not there.
fn issue_at(
    fd: BorrowedFd<'_>,
    command: u32,
    address: raw::BadAddress,
) -> std::result::Result<i32, Errno> {
    // CAST: `usize` has 64 bits wherever the kernel takes such addresses.
    let pointer = std::ptr::without_provenance_mut(address.value() as usize);
    // SAFETY: a bad address is never valid memory, so nothing is read or written there.
    unsafe { issue(fd, command, pointer) }
}

/// An ioctl whose number and argument are known at run time only.
struct Issue {
    command: u32,
    argument: *mut core::ffi::c_void,
}

// SAFETY: the kernel writes at most what `argument` is valid for, by the `# Safety` of `issue`, which
// alone makes values of this type.
unsafe impl rustix::ioctl::Ioctl for Issue {
    type Output = i32;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> rustix::ioctl::Opcode {
        self.command
    }

    fn as_ptr(&mut self) -> *mut core::ffi::c_void {
        self.argument
    }

    unsafe fn output_from_ptr(
        output: rustix::ioctl::IoctlOutput,
        _: *mut core::ffi::c_void,
    ) -> rustix::io::Result<i32> {
        Ok(output)
    }
}

/// Memory that an argument points to: the address is taken here and nowhere else.
struct List<'a> {
    array: abi::Array,
    _lent: PhantomData<&'a ()>,
}

impl<'a> List<'a> {
    /// A list that the kernel reads.
    fn read<T: Element>(slice: &'a [T]) -> Self {
        Self::new(
            slice.as_ptr().expose_provenance(),
            slice.len(),
            size_of::<T>(),
        )
    }

    /// A list that the kernel reads and writes.
    fn write<T: Element>(slice: &'a mut [T]) -> Self {
        Self::new(
            slice.as_mut_ptr().expose_provenance(),
            slice.len(),
            size_of::<T>(),
        )
    }

    fn new(address: usize, length: usize, stride: usize) -> Self {
        Self {
            array: abi::Array {
                ptr: if length == 0 { 0 } else { address as u64 },
                // CAST: a list too long for the field is too long for every limit; the largest
                // count says so to the kernel.
                count: u32::try_from(length).unwrap_or(u32::MAX),
                // CAST: element structures have at most some hundred bytes.
                stride: stride as u32,
            },
            _lent: PhantomData,
        }
    }
}

/// An element of a list: plain bytes, for which every value is valid.
trait Element: Copy {}

impl Element for u8 {}
impl Element for u32 {}
impl Element for abi::AllocInfo {}
impl Element for abi::AllocState {}
impl Element for abi::Point {}
impl Element for abi::PriorityItem {}
impl Element for abi::ReclaimItem {}
impl Element for abi::SubmitAlloc {}
impl Element for abi::SubmitPatch {}
impl Element for abi::VaEntry {}

/// States calls of the interface: argument, command, name; the list that it points to, if any; the
/// field that names the element to blame, if any.
macro_rules! requests {
    ($(
        $argument:ident: $command:ident $name:literal
        $(, $access:ident [$element:ty] at $list:ident)?
        $(, blame $index:ident)?;
    )+) => {
        $(
            impl private::Sealed for abi::$argument {}

            impl Request for abi::$argument {
                const NAME: &'static str = $name;
                const COMMAND: u32 = abi::$command;
                type Lists<'a> = requests!(@type $($access 'a $element)?);

                fn point_to(&mut self, _lists: &mut Self::Lists<'_>) {
                    $(self.$list = List::$access(_lists).array;)?
                }

                fn blame(&self) -> Blame {
                    requests!(@blame self $($index)?)
                }
            }
        )+
    };
    (@type) => { () };
    (@type read $lifetime:lifetime $element:ty) => { &$lifetime [$element] };
    (@type write $lifetime:lifetime $element:ty) => { &$lifetime mut [$element] };
    (@blame $this:ident) => { Blame::Argument };
    (@blame $this:ident $index:ident) => { Blame::element($this.$index) };
}

requests! {
    Close: IOCTL_CLOSE "CLOSE", read [u32] at handles, blame fail_index;
    DeviceCreate: IOCTL_DEVICE_CREATE "DEVICE_CREATE";
    DeviceState: IOCTL_DEVICE_STATE "DEVICE_STATE";
    AllocCreate: IOCTL_ALLOC_CREATE "ALLOC_CREATE", write [abi::AllocInfo] at infos, blame fail_index;
    AllocQuery: IOCTL_ALLOC_QUERY "ALLOC_QUERY", write [abi::AllocState] at items, blame fail_index;
    SetPriority: IOCTL_SET_PRIORITY "SET_PRIORITY", read [abi::PriorityItem] at items, blame fail_index;
    Lock: IOCTL_LOCK "LOCK";
    Unlock: IOCTL_UNLOCK "UNLOCK";
    ContextCreate: IOCTL_CONTEXT_CREATE "CONTEXT_CREATE";
    ContextSet: IOCTL_CONTEXT_SET "CONTEXT_SET";
    SubmitQuery: IOCTL_SUBMIT_QUERY "SUBMIT_QUERY";
    PagingQueueCreate: IOCTL_PAGING_QUEUE_CREATE "PAGING_QUEUE_CREATE";
    MakeResident: IOCTL_MAKE_RESIDENT "MAKE_RESIDENT", read [u32] at handles, blame fail_index;
    Evict: IOCTL_EVICT "EVICT", read [u32] at handles, blame fail_index;
    Offer: IOCTL_OFFER "OFFER", read [u32] at handles, blame fail_index;
    Reclaim: IOCTL_RECLAIM "RECLAIM", write [abi::ReclaimItem] at items, blame fail_index;
    Budget: IOCTL_BUDGET "BUDGET";
    ReserveBudget: IOCTL_RESERVE_BUDGET "RESERVE_BUDGET";
    Events: IOCTL_EVENTS "EVENTS";
    VaReserve: IOCTL_VA_RESERVE "VA_RESERVE";
    VaFree: IOCTL_VA_FREE "VA_FREE";
    VaMap: IOCTL_VA_MAP "VA_MAP";
    VaQuery: IOCTL_VA_QUERY "VA_QUERY", write [abi::VaEntry] at entries;
    FenceCreate: IOCTL_FENCE_CREATE "FENCE_CREATE";
    FenceSignal: IOCTL_FENCE_SIGNAL "FENCE_SIGNAL", read [abi::Point] at points, blame fail_index;
    FenceWait: IOCTL_FENCE_WAIT "FENCE_WAIT", read [abi::Point] at points, blame first;
    Scanout: IOCTL_SCANOUT "SCANOUT";
}

impl private::Sealed for abi::Query {}

/// The list is the room for the record.
impl Request for abi::Query {
    const NAME: &'static str = "QUERY";
    const COMMAND: u32 = abi::IOCTL_QUERY;
    type Lists<'a> = &'a mut [u8];

    fn point_to(&mut self, lists: &mut Self::Lists<'_>) {
        let array = List::write(lists).array;
        self.data = array.ptr;
        self.size = array.count;
    }

    fn blame(&self) -> Blame {
        Blame::Argument
    }
}

impl private::Sealed for abi::SetName {}

/// The list is the name.
impl Request for abi::SetName {
    const NAME: &'static str = "SET_NAME";
    const COMMAND: u32 = abi::IOCTL_SET_NAME;
    type Lists<'a> = &'a [u8];

    fn point_to(&mut self, lists: &mut Self::Lists<'_>) {
        let array = List::read(lists).array;
        self.ptr = array.ptr;
        self.len = array.count;
    }

    fn blame(&self) -> Blame {
        Blame::Argument
    }
}

/// What the argument of SUBMIT_PATCHED points to.
#[derive(Debug, Default)]
pub struct PatchedLists<'a> {
    /// The command buffer.
    pub dwords: &'a [u32],
    /// The allocation list. The kernel writes the presumed places.
    pub allocations: &'a mut [abi::SubmitAlloc],
    /// The patch list.
    pub patches: &'a [abi::SubmitPatch],
    /// Points that are reached before the first byte runs.
    pub waits: &'a [abi::Point],
    /// Points that are signalled after the last byte.
    pub signals: &'a [abi::Point],
}

impl private::Sealed for abi::SubmitPatched {}

impl Request for abi::SubmitPatched {
    const NAME: &'static str = "SUBMIT_PATCHED";
    const COMMAND: u32 = abi::IOCTL_SUBMIT_PATCHED;
    type Lists<'a> = PatchedLists<'a>;

    fn point_to(&mut self, lists: &mut Self::Lists<'_>) {
        let commands = List::read(lists.dwords).array;
        self.cmd_ptr = commands.ptr;
        self.cmd_size = commands.count.saturating_mul(commands.stride);
        self.allocs = List::write(lists.allocations).array;
        self.patches = List::read(lists.patches).array;
        self.waits = List::read(lists.waits).array;
        self.signals = List::read(lists.signals).array;
    }

    fn blame(&self) -> Blame {
        Blame::submission(self.error_kind, self.error_index)
    }
}

/// What the argument of SUBMIT_VIRTUAL points to. The commands are in GPU virtual memory.
#[derive(Debug, Default)]
pub struct VirtualLists<'a> {
    /// Handles of primaries that are written.
    pub primaries: &'a [u32],
    /// Points that are reached before the first byte runs.
    pub waits: &'a [abi::Point],
    /// Points that are signalled after the last byte.
    pub signals: &'a [abi::Point],
}

impl private::Sealed for abi::SubmitVirtual {}

impl Request for abi::SubmitVirtual {
    const NAME: &'static str = "SUBMIT_VIRTUAL";
    const COMMAND: u32 = abi::IOCTL_SUBMIT_VIRTUAL;
    type Lists<'a> = VirtualLists<'a>;

    fn point_to(&mut self, lists: &mut Self::Lists<'_>) {
        self.primaries = List::read(lists.primaries).array;
        self.waits = List::read(lists.waits).array;
        self.signals = List::read(lists.signals).array;
    }

    fn blame(&self) -> Blame {
        Blame::submission(self.error_kind, self.error_index)
    }
}

/// A record of QUERY: plain bytes, for which every value is valid.
///
/// # Safety
///
/// The structure has no padding, and every combination of bytes is a value of it.
pub unsafe trait Record: Default + Copy {
    /// The value of `query` that reads it.
    const QUERY: u32;
}

macro_rules! records {
    ($($record:ident: $query:ident;)+) => {
        $(
            // SAFETY: integers only, without holes, as its layout assertion checks.
            unsafe impl Record for abi::$record {
                const QUERY: u32 = abi::$query;
            }
        )+
    };
}

records! {
    InfoAdapter: QUERY_ADAPTER;
    InfoSegment: QUERY_SEGMENT;
    InfoNode: QUERY_NODE;
    InfoIoctl: QUERY_IOCTL;
    InfoLimits: QUERY_LIMITS;
    InfoClock: QUERY_CLOCK;
    InfoSource: QUERY_SOURCE;
    InfoClient: QUERY_CLIENT;
}

/// Reads one record. What an older kernel does not know of it stays zero.
pub fn query<T: Record>(fd: impl AsFd, index: u32) -> Result<T> {
    let mut record = T::default();
    let pointer: *mut T = &mut record;
    // SAFETY: a `Record` is plain bytes, and `record` is borrowed by nothing else for as long.
    let bytes = unsafe { std::slice::from_raw_parts_mut(pointer.cast(), size_of::<T>()) };
    let mut argument = abi::Query {
        query: T::QUERY,
        index,
        ..Default::default()
    };
    call(fd, &mut argument, bytes)?;
    Ok(record)
}
