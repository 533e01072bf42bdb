// SPDX-License-Identifier: GPL-2.0

//! The vocabulary in which calls are described as data: fields, elements of lists, types of objects.
//!
//! The description itself is in [`crate::calls`]. Tests of the rules that hold for every call walk
//! it, so that no call is forgotten, and the fuzzer changes valid arguments along it.

use crate::{
    argument::Argument,
    world::World, //
};

/// Types of objects that handles name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A device.
    Device,
    /// An allocation.
    Allocation,
    /// A context.
    Context,
    /// A paging queue.
    Queue,
    /// A fence.
    Fence,
    /// Any of them.
    Any,
}

/// All types of objects.
pub const TYPES: [Type; 5] = [
    Type::Device,
    Type::Allocation,
    Type::Context,
    Type::Queue,
    Type::Fence,
];

/// What a field is for.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A value that the call takes.
    In,
    /// Flag bits, of which the module knows these.
    Flags(u64),
    /// Must be zero: `EINVAL`.
    Zero,
    /// Written on success.
    Out,
    /// Written on failure too.
    OutAlways,
    /// Taken and written.
    InOut,
    /// A handle, which is not zero.
    Handle(Type),
    /// A handle, or zero.
    OptionalHandle(Type),
    /// The address of memory that the call reads or writes.
    Pointer,
    /// A list.
    List(&'static Element, Empty),
}

/// Whether a list may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// It may.
    Allowed,
    /// `EINVAL`.
    Refused,
}

/// A field of a structure.
#[derive(Clone, Copy)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Where it starts.
    pub offset: usize,
    /// Its bytes.
    pub size: usize,
    /// What it is for.
    pub kind: Kind,
}

/// An element of a list.
pub struct Element {
    /// Bytes.
    pub size: usize,
    /// Alignment that the stride must have.
    pub align: usize,
    /// Whether the call writes to elements.
    pub written: bool,
    /// Its fields.
    pub fields: &'static [Field],
}

/// A call.
pub struct Call {
    /// Name, as the interface writes it.
    pub name: &'static str,
    /// Number.
    pub number: u8,
    /// Bytes of its argument.
    pub size: usize,
    /// Fields of its argument.
    pub fields: &'static [Field],
    /// Makes an argument that the call accepts, and what it needs to be accepted.
    pub arrange: fn(&World) -> Argument,
}

impl Call {
    /// A field of the argument.
    pub fn field(&self, name: &str) -> &'static Field {
        let found = self.fields.iter().find(|field| field.name == name);
        found.unwrap_or_else(|| panic!("{} has no field {name}", self.name))
    }

    /// Lists of the argument: field, element, whether it may be empty.
    pub fn lists(&self) -> Vec<(&'static Field, &'static Element, Empty)> {
        let list = |field: &'static Field| match field.kind {
            Kind::List(element, empty) => Some((field, element, empty)),
            _ => None,
        };
        self.fields.iter().filter_map(list).collect()
    }
}

/// Size of the field to which a projection leads.
pub const fn size_of_field<S, T>(_: fn(&S) -> &T) -> usize {
    size_of::<T>()
}

/// Makes the list of a structure's fields out of names and kinds. A field that is a structure itself
/// is given field by field: `wait.fence`.
macro_rules! fields {
    ($structure:ident { $($name:ident $(.$inner:ident)?: $kind:expr,)* }) => {
        &[$($crate::schema::Field {
            name: concat!(stringify!($name) $(, ".", stringify!($inner))?),
            offset: core::mem::offset_of!($structure, $name $(.$inner)?),
            size: $crate::schema::size_of_field(|whole: &$structure| &whole.$name $(.$inner)?),
            kind: $kind,
        }),*]
    };
}
pub(crate) use fields;
