// SPDX-License-Identifier: GPL-2.0

//! Budgets: how much of each segment group a client may keep, and what it does keep.
//!
//! There are two groups: *local*, the memory segments that the backend marks for budgets, and
//! *non-local*, system memory with or without a range of the aperture. The *usage* of a client in a
//! group is the size of its allocations that it keeps there: those that lie there and have not been
//! given up by EVICT, and those that hold residency references but lie nowhere at the moment, in
//! the group where they would go first. So usage follows MAKE_RESIDENT and EVICT in the call itself,
//! and the worker for what submissions bring in.
//!
//! A client is *active* in a group while it uses or has reserved something of it. Budgets are shared
//! out by [`crate::policy::budget`] anew when somebody becomes active or stops to be, reserves, grows beyond
//! its budget, shrinks while somebody is beyond its own, and when the group itself changes. Changes
//! of usage are counted in atomics; whoever makes one that matters leaves a note, and whoever has
//! ended a call or a pass of the worker and finds the note shares out.
//!
//! # Locking
//!
//! `Budgets::members` (rank 0, mutex, never together with the desk of the worker) protects who takes
//! part, and makes sharing out exclusive.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc,
        Mutex, //
    },
};

use crate::{
    abstractions::trace,
    backend::capabilities::{
        Capabilities,
        SegmentFlag, //
    },
    object::{
        adapter::{
            Adapter,
            SegmentKind, //
        },
        allocation::Allocation,
        client::Client,
        events::Event,
        placement::Residency,
        residence::{
            Location,
            Residence, //
        }, //
    },
    policy::{
        budget::{
            share_out,
            Share, //
        },
        eviction,
        placement,
        residency::Demand, //
    },
    units::SegmentId,
};

/// A segment group; the numbers are those of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Memory segments that are marked for budgets.
    Local,
    /// System memory, with or without a range of the aperture.
    NonLocal,
}

impl Group {
    /// Both of them.
    pub(crate) const ALL: [Self; 2] = [Self::Local, Self::NonLocal];

    /// Returns its number in the interface.
    pub(crate) fn number(self) -> u32 {
        // CAST: a fieldless enum.
        self as u32
    }
}

/// A value for each group.
pub(crate) struct PerGroup<T>([T; 2]);

impl<T> PerGroup<T> {
    /// Returns one value for each group.
    pub(crate) fn new(local: T, non_local: T) -> Self {
        Self([local, non_local])
    }

    /// Returns the value of a group.
    pub(crate) fn of(&self, group: Group) -> &T {
        let [local, non_local] = &self.0;
        match group {
            Group::Local => local,
            Group::NonLocal => non_local,
        }
    }
}

/// What is known of a client in one group.
struct Line {
    usage: Atomic<u64>,
    reservation: Atomic<u64>,
    budget: Atomic<u64>,
    standing: Atomic<u32>,
    /// The last number of bytes that it was asked to give up; 0 while it is within its budget.
    asked: Atomic<u64>,
}

/// How a client stood when budgets were shared out last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It has no budget yet.
    Unknown,
    /// It neither used nor had reserved anything.
    Idle,
    /// It was within its budget.
    Within,
    /// It was beyond its budget.
    Over,
}

impl Standing {
    const ALL: [Self; 4] = [Self::Unknown, Self::Idle, Self::Within, Self::Over];
}

impl Line {
    fn new() -> Self {
        Self {
            usage: Atomic::new(0),
            reservation: Atomic::new(0),
            budget: Atomic::new(0),
            // CAST: a fieldless enum.
            standing: Atomic::new(Standing::Unknown as u32),
            asked: Atomic::new(0),
        }
    }

    fn standing(&self) -> Standing {
        // CAST: `usize` has 64 bits wherever this driver runs.
        let number = self.standing.load(Acquire) as usize;
        *Standing::ALL.get(number).unwrap_or(&Standing::Unknown)
    }

    fn share(&self) -> Share {
        Share {
            usage: self.usage.load(Relaxed),
            reservation: self.reservation.load(Relaxed),
            budget: 0,
        }
    }
}

/// What a client may keep and keeps.
pub(crate) struct Account {
    lines: PerGroup<Line>,
    /// Goes up whenever one of its budgets changes.
    generation: Atomic<u64>,
}

/// What BUDGET says of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// Bytes that the client may keep.
    pub(crate) budget: u64,
    /// Bytes that it keeps.
    pub(crate) usage: u64,
    /// Bytes that it has reserved.
    pub(crate) reservation: u64,
    /// Bytes that it could reserve in addition.
    pub(crate) reservable: u64,
    /// Goes up whenever one of its budgets changes.
    pub(crate) generation: u64,
}

impl Statement {
    /// Returns how much is kept beyond the budget.
    pub(crate) fn excess(&self) -> u64 {
        self.usage.saturating_sub(self.budget)
    }
}

impl Account {
    /// Returns the account of a client that keeps nothing.
    pub(super) fn new() -> Self {
        Self {
            lines: PerGroup::new(Line::new(), Line::new()),
            generation: Atomic::new(0),
        }
    }

    fn line(&self, group: Group) -> &Line {
        self.lines.of(group)
    }

    /// Returns what is known without asking anybody else: all but what could be reserved.
    pub(crate) fn statement(&self, group: Group) -> Statement {
        let line = self.line(group);
        Statement {
            budget: line.budget.load(Relaxed),
            usage: line.usage.load(Relaxed),
            reservation: line.reservation.load(Relaxed),
            reservable: 0,
            generation: self.generation.load(Relaxed),
        }
    }

    /// Returns how much the client keeps beyond its budgets.
    pub(crate) fn excess(&self) -> u64 {
        let excesses = Group::ALL.map(|group| self.statement(group).excess());
        excesses
            .iter()
            .fold(0, |sum, excess| sum.saturating_add(*excess))
    }
}

/// The budgets of an adapter.
#[pin_data]
pub(crate) struct Budgets {
    /// Bytes of each group.
    totals: PerGroup<Atomic<u64>>,
    /// Bytes that are reserved, of each group.
    reserved: PerGroup<Atomic<u64>>,
    /// Whether somebody is beyond its budget, of each group.
    short: PerGroup<Atomic<bool>>,
    /// Whether budgets are to be shared out anew.
    stale: Atomic<bool>,
    #[pin]
    members: Mutex<Members>,
}

/// Who takes part.
struct Members {
    clients: KVVec<Arc<Client>>,
    /// Room for the share of each, and for one who might join.
    shares: KVVec<Share>,
}

impl Budgets {
    /// Returns the budgets of an adapter without clients whose groups have so many bytes.
    pub(super) fn new(totals: PerGroup<u64>) -> impl PinInit<Self> {
        let PerGroup([local, non_local]) = totals;
        let members = Members {
            clients: KVVec::new(),
            shares: KVVec::new(),
        };
        pin_init!(Self {
            totals: PerGroup::new(Atomic::new(local), Atomic::new(non_local)),
            reserved: PerGroup::new(Atomic::new(0), Atomic::new(0)),
            short: PerGroup::new(Atomic::new(false), Atomic::new(false)),
            stale: Atomic::new(false),
            members <- new_mutex!(members, "Budgets::members"),
        })
    }

    /// Enters a client.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`: no memory.
    pub(super) fn join(&self, client: &Arc<Client>) -> Result {
        let mut larger = Members {
            clients: KVVec::new(),
            shares: KVVec::new(),
        };
        loop {
            let mut members = self.members.lock();
            let count = members.clients.len();
            if count < members.clients.capacity() && count + 1 < members.shares.capacity() {
                let _ = members.clients.push_within_capacity(client.clone());
                return Ok(());
            }
            if larger.clients.capacity() > count && larger.shares.capacity() > count + 1 {
                larger.clients.clear();
                for client in &members.clients {
                    let _ = larger.clients.push_within_capacity(client.clone());
                }
                core::mem::swap(&mut *members, &mut larger);
                continue;
            }
            drop(members);
            larger
                .clients
                .reserve(count.saturating_mul(2) + 4, GFP_KERNEL)?;
            larger
                .shares
                .reserve(count.saturating_mul(2) + 5, GFP_KERNEL)?;
        }
    }

    /// Takes a client out that keeps nothing any more, with its reservations.
    pub(super) fn part(&self, client: &Client) {
        let mut members = self.members.lock();
        let position = members
            .clients
            .iter()
            .position(|member| core::ptr::eq(&**member, client));
        let parted = position.and_then(|position| members.clients.remove(position).ok());
        for group in Group::ALL {
            let old = client.account().line(group).reservation.xchg(0, Relaxed);
            self.reserved.of(group).fetch_sub(old, Relaxed);
        }
        self.share_out(&mut members);
        drop(members);
        drop(parted);
    }

    /// Changes the size of a group.
    pub(super) fn resize(&self, group: Group, bytes: u64) {
        self.totals.of(group).store(bytes, Relaxed);
        self.stale.store(true, Release);
        self.settle();
    }

    /// Counts bytes that a client keeps from now on.
    pub(super) fn keep(&self, client: &Client, group: Group, bytes: u64) {
        let line = client.account().line(group);
        let usage = line.usage.fetch_add(bytes, Relaxed).saturating_add(bytes);
        let matters = match line.standing() {
            Standing::Within => usage > line.budget.load(Relaxed),
            Standing::Unknown | Standing::Idle | Standing::Over => true,
        };
        self.note(client, matters);
    }

    /// Counts bytes that a client keeps no longer.
    pub(super) fn give_up(&self, client: &Client, group: Group, bytes: u64) {
        let line = client.account().line(group);
        let usage = line.usage.fetch_sub(bytes, Relaxed).saturating_sub(bytes);
        let matters = usage == 0 || self.short.of(group).load(Relaxed);
        self.note(client, matters);
    }

    fn note(&self, client: &Client, matters: bool) {
        if matters {
            self.stale.store(true, Release);
        }
        client.status().update(client);
    }

    /// Shares out if something has happened that matters.
    ///
    /// # Locking
    ///
    /// Takes `Budgets::members` (rank 0).
    pub(crate) fn settle(&self) {
        if self.stale.load(Acquire) {
            self.share_out(&mut self.members.lock());
        }
    }

    /// Returns what a client may keep and keeps.
    pub(crate) fn statement(&self, client: &Client, group: Group) -> Statement {
        let mut members = self.members.lock();
        let unknown = client.account().line(group).standing() == Standing::Unknown;
        if unknown || self.stale.load(Acquire) {
            self.share_out(&mut members);
        }
        Statement {
            reservable: self.reservable(group),
            ..client.account().statement(group)
        }
    }

    /// Returns the bytes that can be reserved in addition: together no more than half of a group,
    /// so that something is left for those who reserve nothing.
    fn reservable(&self, group: Group) -> u64 {
        let most = self.totals.of(group).load(Relaxed) / 2;
        most.saturating_sub(self.reserved.of(group).load(Relaxed))
    }

    /// Replaces the reservation of a client.
    ///
    /// # Errors
    ///
    /// - `ENOSPC`: it is more than what it has and what can be had in addition.
    ///
    /// Requirement: RES-19.
    pub(crate) fn reserve(&self, client: &Client, group: Group, bytes: u64) -> Result {
        let mut members = self.members.lock();
        let line = client.account().line(group);
        let old = line.reservation.load(Relaxed);
        if bytes > old.saturating_add(self.reservable(group)) {
            return Err(ENOSPC);
        }
        line.reservation.store(bytes, Relaxed);
        self.reserved.of(group).fetch_add(bytes, Relaxed);
        self.reserved.of(group).fetch_sub(old, Relaxed);
        self.share_out(&mut members);
        Ok(())
    }

    /// Returns the bytes of a group that others than `client` keep under their reservations.
    pub(super) fn promised_to_others(&self, client: &Client, group: Group) -> u64 {
        if self.reserved.of(group).load(Relaxed) == 0 {
            return 0;
        }
        let members = self.members.lock();
        let others = members
            .clients
            .iter()
            .filter(|member| !core::ptr::eq(&***member, client));
        others.fold(0, |sum, member| {
            let share = member.account().line(group).share();
            sum.saturating_add(share.usage.min(share.reservation))
        })
    }

    /// Shares both groups out, and tells everybody whose budget has changed.
    fn share_out(&self, members: &mut Members) {
        // What comes after this look is noted again.
        self.stale.xchg(false, Full);
        for group in Group::ALL {
            let total = self.totals.of(group).load(Relaxed);
            let Members { clients, shares } = &mut *members;
            shares.clear();
            for client in clients.iter() {
                let share = client.account().line(group).share();
                let _ = shares.push_within_capacity(share);
            }
            // What somebody would get who has nothing yet and wants everything.
            let _ = shares.push_within_capacity(Share {
                usage: total,
                ..Share::default()
            });
            share_out(total, shares);
            let newcomer = shares.pop().map_or(0, |share| share.budget);
            share_out(total, shares);
            let mut short = false;
            for (client, share) in clients.iter().zip(shares.iter()) {
                let (budget, standing) = match share.is_active() {
                    false => (newcomer, Standing::Idle),
                    true if share.usage > share.budget => (share.budget, Standing::Over),
                    true => (share.budget, Standing::Within),
                };
                short |= standing == Standing::Over;
                client.assign(group, budget, share.usage, standing);
            }
            self.short.of(group).store(short, Relaxed);
        }
    }
}

impl Adapter {
    /// Returns the group to whose budget a segment counts; system memory and the aperture are one.
    fn group_of(&self, id: SegmentId) -> Option<Group> {
        group_of(self.backend().capabilities(), id)
    }

    /// Looks anew how large the local group is: without what debug commands took out of use.
    pub(super) fn resize_local(&self) {
        let bytes = local_bytes(self.backend().capabilities(), &self.residency().lock());
        self.budgets().resize(Group::Local, bytes);
    }

    /// Returns what others than `client` may count on, as demands on the segments of their groups.
    pub(super) fn promised_to_others(&self, client: &Client) -> [Demand; 2] {
        Group::ALL.map(|group| {
            let segments = &self.backend().capabilities().segments;
            let ids = segments.iter().map(|segment| segment.id);
            Demand {
                bytes: self.budgets().promised_to_others(client, group),
                mask: ids
                    .filter(|id| self.group_of(*id) == Some(group))
                    .fold(0, |mask, id| mask | id.bit()),
                contiguous: false,
            }
        })
    }
}

fn group_of(capabilities: &Capabilities, id: SegmentId) -> Option<Group> {
    match capabilities.segment(id) {
        None => Some(Group::NonLocal),
        Some(segment) if segment.kind == SegmentKind::Aperture => Some(Group::NonLocal),
        Some(segment) if segment.flags.contains(SegmentFlag::Budgeted) => Some(Group::Local),
        Some(_) => None,
    }
}

/// Returns the bytes of the segments that count to the local group.
pub(super) fn local_bytes(capabilities: &Capabilities, residency: &Residency) -> u64 {
    let segments = residency.segments.iter();
    segments
        .filter(|segment| group_of(capabilities, segment.id) == Some(Group::Local))
        .map(|segment| {
            segment
                .capacity()
                .0
                .min(segment.bytes() - segment.bytes_unavailable())
        })
        .fold(0, u64::saturating_add)
}

impl Allocation {
    /// Returns the group where it would go first.
    fn home(&self) -> Option<Group> {
        let choice = placement::order(self.preferred(), self.segments()).next()?;
        self.adapter().group_of(choice.segment)
    }

    /// Returns the group in which its client keeps it.
    fn kept_in(&self, residence: &Residence) -> Option<Group> {
        let referenced = residence.references > 0;
        if residence.forgotten || (!referenced && residence.given_up) {
            return None;
        }
        match residence.location() {
            Location::Segment(id, _) => self.adapter().group_of(*id),
            Location::System | Location::Aperture(_) => Some(Group::NonLocal),
            Location::Nowhere if referenced => self.home(),
            Location::Nowhere => None,
        }
    }

    /// Counts it where its client keeps it now. Follows every change of place and of references.
    pub(super) fn account(&self, residence: &mut Residence) {
        self.count_fixed(residence);
        let group = self.kept_in(residence);
        let old = core::mem::replace(&mut residence.counted_in, group);
        if old == group {
            return;
        }
        let client = self.device().client();
        let budgets = self.adapter().budgets();
        if let Some(old) = old {
            budgets.give_up(client, old, self.size());
        }
        if let Some(group) = group {
            budgets.keep(client, group, self.size());
        }
    }

    /// Returns the bytes that its client would keep in addition if it had a reference to it.
    pub(super) fn addition(&self, group: Group) -> u64 {
        let residence = self.residence().lock();
        match residence.counted_in {
            None if self.home() == Some(group) => self.size(),
            _ => 0,
        }
    }
}

impl Client {
    /// Gives it a budget, and tells it what has changed.
    fn assign(&self, group: Group, budget: u64, usage: u64, standing: Standing) {
        let line = self.account().line(group);
        let before = line.standing();
        let known = before != Standing::Unknown;
        let changed = line.budget.xchg(budget, Relaxed) != budget;
        // CAST: a fieldless enum.
        line.standing.store(standing as u32, Release);
        let turned = (before == Standing::Over) != (standing == Standing::Over);
        if group == Group::Local && turned {
            let budget = match standing {
                Standing::Over => eviction::Budget::Over,
                _ => eviction::Budget::Within,
            };
            self.adapter().residency().lock().set_budget(self, budget);
        }
        if changed && known {
            self.account().generation.fetch_add(1, Relaxed);
            trace::budget(|| trace::Budget {
                process: self.id(),
                group: group.number(),
                budget,
                usage,
            });
            self.events().post(Event::Budget {
                group,
                budget,
                usage,
            });
        }
        let excess = usage.saturating_sub(budget);
        if line.asked.xchg(excess, Relaxed) != excess && excess > 0 {
            trace::trim(|| trace::Trim {
                process: self.id(),
                flags: trace::TRIM_TO_BUDGET,
                bytes: excess,
            });
            self.events().post(Event::Trim {
                group,
                bytes: excess,
                usage,
            });
        }
        self.status().update(self);
    }
}
