// SPDX-License-Identifier: GPL-2.0

//! Events: EVENTS, and the records that `read` on the device file returns.

// Event types. Values of `type` in `Event`. In `mask` of `Events` bit (type - 1) stands for a type.

/// The budget of group `object` has changed: `a` is the new one, `b` the usage.
pub const EVENT_BUDGET: u32 = 1;
/// The client shall give up `a` bytes of group `object`; `b` is the usage.
pub const EVENT_TRIM: u32 = 2;
/// Device `object` is in state `code`.
pub const EVENT_DEVICE_STATE: u32 = 3;
/// The adapter was removed.
pub const EVENT_ADAPTER_GONE: u32 = 4;
/// The machine has woken up.
pub const EVENT_RESUMED: u32 = 5;
/// `code` records are lost, because nobody read them in time. Comes whatever the mask says.
pub const EVENT_OVERFLOW: u32 = 6;
/// Source `object` has carried out the call of sequence `a`.
pub const EVENT_SCANOUT: u32 = 7;

// Event signalling. A special value of `eventfd` in `Events`.

/// No eventfd.
pub const EVENTS_NO_EVENTFD: i32 = -1;

/// Argument of EVENTS.
///
/// One subscription per client; a second call replaces it. Whatever `eventfd` says, `poll` on the
/// device file says readable when a record is queued, and error and hang-up when the adapter is
/// gone.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// in: event types wanted; 0 unsubscribes.
    pub mask: u64,
    /// in: an eventfd that is raised once per queued event, or `EVENTS_NO_EVENTFD`.
    pub eventfd: i32,
    /// in: must be zero.
    pub flags: u32,
}

layout!(Events, size 16, first 16, {
    mask: 0,
    eventfd: 8,
    flags: 12,
});

/// A record that `read` on the device file returns.
///
/// `read` returns whole records only: `EINVAL` for a buffer too small for the first, `EAGAIN` with
/// O_NONBLOCK and nothing queued. BUDGET and TRIM records of a group are merged, so that only the
/// newest is queued. When the queue is full an OVERFLOW record takes the last place.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// out: event type, `EVENT_BUDGET` and so on.
    pub r#type: u32,
    /// out: size of this record; skip what you do not know.
    pub length: u32,
    /// out: CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// out: handle, source or group that the event is about.
    pub object: u32,
    /// out: new state, or the number of lost records.
    pub code: u32,
    /// out: new budget, bytes to trim, or sequence.
    pub a: u64,
    /// out: usage at that moment.
    pub b: u64,
}

layout!(Event, size 40, {
    r#type: 0,
    length: 4,
    time_ns: 8,
    object: 16,
    code: 20,
    a: 24,
    b: 32,
});
