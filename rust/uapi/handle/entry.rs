// SPDX-License-Identifier: GPL-2.0

//! What handles name, and how a name appears and goes.

use core::mem;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    object::{
        allocation::Hold,
        client::Client,
        context::Context,
        device::Device,
        fence::Fence,
        name,
        paging_queue::PagingQueue,
        residency, //
    },
    uapi::dispatch::{
        Delivery,
        Effect, //
    },
};

use super::{
    Entry,
    Kind,
    Named,
    Reservation, //
};

/// What a handle names.
#[derive(Clone)]
pub(in crate::uapi) enum Object {
    /// A device.
    Device(Arc<Device>),
    /// An allocation. The handle claims it.
    Allocation(Hold),
    /// A context.
    Context(Arc<Context>),
    /// A paging queue, and the handle of its fence.
    PagingQueue(Arc<PagingQueue>, u32),
    /// A fence.
    Fence(Arc<Fence>),
    /// The fence of a paging queue, and the handle of the queue.
    PagingFence(Arc<Fence>, u32),
}

impl Object {
    /// Returns where the name is that people read.
    pub(in crate::uapi) fn name(&self) -> &name::Slot {
        match self {
            Self::Device(device) => device.name(),
            Self::Allocation(allocation) => allocation.name(),
            Self::Context(context) => context.name(),
            Self::PagingQueue(queue, _) => queue.name(),
            Self::Fence(fence) | Self::PagingFence(fence, _) => fence.name(),
        }
    }

    /// Ends the life of the name: what the object was to its client ends with it. What is still
    /// needed of it stays until it is not.
    pub(in crate::uapi) fn close(self, client: &Client) {
        self.name().set_handle(0);
        match self {
            Self::Device(device) => device.closed(),
            Self::Allocation(allocation) => {
                residency::forget(&allocation);
                allocation.closed();
            }
            Self::Context(context) => context.closed(),
            Self::PagingQueue(queue, _) => queue.closed(),
            Self::Fence(fence) | Self::PagingFence(fence, _) => fence.unlist(client),
        }
    }
}

impl Entry for Object {
    fn kind(&self) -> Kind {
        match self {
            Self::Device(_) => Kind::Device,
            Self::Allocation(_) => Kind::Allocation,
            Self::Context(_) => Kind::Context,
            Self::PagingQueue(..) => Kind::PagingQueue,
            Self::Fence(_) | Self::PagingFence(..) => Kind::Fence,
        }
    }

    fn leader(&self) -> Option<u32> {
        match self {
            Self::PagingFence(_, queue) => Some(*queue),
            _ => None,
        }
    }

    fn follower(&self) -> Option<u32> {
        match self {
            Self::PagingQueue(_, fence) => Some(*fence),
            _ => None,
        }
    }

    /// What is on screen has to be replaced before it can go (SCANOUT).
    fn is_busy(&self) -> bool {
        match self {
            Self::Device(device) => device.is_on_screen(),
            Self::Allocation(allocation) => allocation.is_on_screen(),
            _ => false,
        }
    }
}

impl Named<Object> for Arc<Device> {
    const KIND: Kind = Kind::Device;

    fn of(object: &Object) -> Option<Self> {
        match object {
            Object::Device(device) => Some(device.clone()),
            _ => None,
        }
    }
}

impl Named<Object> for Hold {
    const KIND: Kind = Kind::Allocation;

    fn of(object: &Object) -> Option<Self> {
        match object {
            Object::Allocation(allocation) => Some(allocation.clone()),
            _ => None,
        }
    }
}

impl Named<Object> for Arc<Context> {
    const KIND: Kind = Kind::Context;

    fn of(object: &Object) -> Option<Self> {
        match object {
            Object::Context(context) => Some(context.clone()),
            _ => None,
        }
    }
}

impl Named<Object> for Arc<PagingQueue> {
    const KIND: Kind = Kind::PagingQueue;

    fn of(object: &Object) -> Option<Self> {
        match object {
            Object::PagingQueue(queue, _) => Some(queue.clone()),
            _ => None,
        }
    }
}

impl Named<Object> for Arc<Fence> {
    const KIND: Kind = Kind::Fence;

    fn of(object: &Object) -> Option<Self> {
        match object {
            Object::Fence(fence) | Object::PagingFence(fence, _) => Some(fence.clone()),
            _ => None,
        }
    }
}

/// A new object on its way to its name. Dropping it closes the object as CLOSE would.
pub(in crate::uapi) struct Publication<'a> {
    client: &'a Client,
    object: Option<(Reservation<'a>, Object)>,
}

impl<'a> Publication<'a> {
    /// Binds an object to the place that was reserved for it.
    pub(in crate::uapi) fn new(
        client: &'a Client,
        reservation: Reservation<'a>,
        object: Object,
    ) -> Self {
        object.name().set_handle(reservation.handle(object.kind()));
        Self {
            client,
            object: Some((reservation, object)),
        }
    }
}

impl Effect for Publication<'_> {
    const DELIVERY: Delivery = Delivery::Last;

    fn commit(mut self) {
        if let Some((reservation, object)) = mem::take(&mut self.object) {
            // If its device was closed just now, the object goes the way of all others on it.
            if let Err(object) = reservation.publish(object) {
                object.close(self.client);
            }
        }
    }
}

impl Drop for Publication<'_> {
    fn drop(&mut self) {
        if let Some((reservation, object)) = mem::take(&mut self.object) {
            drop(reservation);
            object.close(self.client);
        }
    }
}

/// The objects of a list on their way to their names.
pub(in crate::uapi) enum Publications<'a> {
    /// Only one: needs no memory.
    One(Publication<'a>),
    /// Any number.
    Many(KVVec<Publication<'a>>),
}

impl Effect for Publications<'_> {
    const DELIVERY: Delivery = Delivery::Last;

    fn commit(self) {
        match self {
            Self::One(publication) => publication.commit(),
            Self::Many(publications) => {
                for publication in publications {
                    publication.commit();
                }
            }
        }
    }
}

impl<const N: usize> Effect for [Publication<'_>; N] {
    const DELIVERY: Delivery = Delivery::Last;

    fn commit(self) {
        for publication in self {
            publication.commit();
        }
    }
}
