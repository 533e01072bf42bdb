// SPDX-License-Identifier: GPL-2.0

//! Arguments as bytes, with the lists they point to, to be changed field by field.

use crate::{
    abi::Array,
    call::{
        bytes_of,
        Plain, //
    },
    schema::Field, //
};

/// An argument as bytes, with the memory that it points to.
pub struct Argument {
    /// The bytes.
    pub bytes: Vec<u8>,
    memory: Vec<Vec<u64>>,
}

impl Argument {
    /// The bytes of a structure.
    pub fn of<T: Plain>(value: T) -> Self {
        Self {
            bytes: bytes_of(&[value]).to_vec(),
            memory: Vec::new(),
        }
    }

    /// Lets the address at `offset` point to `length` bytes of zeros.
    pub fn with_memory(mut self, offset: usize, length: usize) -> Self {
        let memory = vec![0; length.div_ceil(8).max(1)];
        self.bytes[offset..offset + 8].copy_from_slice(&(memory.as_ptr() as u64).to_le_bytes());
        self.memory.push(memory);
        self
    }

    /// Lets the list at `offset` have these elements.
    pub fn with_list<T: Plain>(self, offset: usize, elements: &[T]) -> Self {
        let bytes = bytes_of(elements);
        let mut with = self.with_memory(offset, bytes.len());
        let last = with.memory.len() - 1;
        with.list_bytes(last)[..bytes.len()].copy_from_slice(bytes);
        let array = with.array(offset);
        let count = elements.len() as u32;
        with.set_array(
            offset,
            Array {
                count,
                stride: size_of::<T>() as u32,
                ..array
            },
        );
        with
    }

    /// Replaces the memory of the list at `offset` by elements of another stride, zero behind the
    /// bytes that there were.
    pub fn restride(&mut self, offset: usize, stride: usize) {
        let array = self.array(offset);
        let old = array.stride as usize;
        let index = self.memory_of(offset);
        let bytes = self.list_bytes(index).to_vec();
        let mut memory = vec![0_u64; (array.count as usize * stride).div_ceil(8)];
        let target = crate::call::bytes_of_mut(&mut memory);
        for element in 0..array.count as usize {
            let length = old.min(stride);
            let from = &bytes[element * old..element * old + length];
            target[element * stride..element * stride + length].copy_from_slice(from);
        }
        let ptr = memory.as_ptr() as u64;
        self.memory[index] = memory;
        self.set_array(
            offset,
            Array {
                ptr,
                stride: stride as u32,
                ..array
            },
        );
    }

    /// Index of the memory to which the address at `offset` points.
    pub fn memory_of(&self, offset: usize) -> usize {
        self.find_memory(offset).expect("memory of the argument")
    }

    /// Whether the address at `offset` points to memory of the argument.
    pub fn owns(&self, offset: usize) -> bool {
        self.find_memory(offset).is_some()
    }

    fn find_memory(&self, offset: usize) -> Option<usize> {
        let address = self.get_at(offset, 8);
        self.memory
            .iter()
            .position(|memory| memory.as_ptr() as u64 == address)
    }

    /// Bytes of one piece of memory.
    pub fn list_bytes(&mut self, index: usize) -> &mut [u8] {
        crate::call::bytes_of_mut(&mut self.memory[index])
    }

    /// The value of a field.
    pub fn get(&self, field: &Field) -> u64 {
        self.get_at(field.offset, field.size)
    }

    fn get_at(&self, offset: usize, size: usize) -> u64 {
        let mut value = [0; 8];
        value[..size].copy_from_slice(&self.bytes[offset..offset + size]);
        u64::from_le_bytes(value)
    }

    /// Sets a field.
    pub fn set(&mut self, field: &Field, value: u64) {
        let bytes = value.to_le_bytes();
        self.bytes[field.offset..field.offset + field.size].copy_from_slice(&bytes[..field.size]);
    }

    /// Sets a field of an element of the list at `list`.
    pub fn set_element(&mut self, list: &Field, element: usize, field: &Field, value: u64) {
        let start = element * self.array(list.offset).stride as usize + field.offset;
        let index = self.memory_of(list.offset);
        let bytes = value.to_le_bytes();
        self.list_bytes(index)[start..start + field.size].copy_from_slice(&bytes[..field.size]);
    }

    /// The value of a field of an element of the list at `list`.
    pub fn get_element(&mut self, list: &Field, element: usize, field: &Field) -> u64 {
        let start = element * self.array(list.offset).stride as usize + field.offset;
        let index = self.memory_of(list.offset);
        let mut value = [0; 8];
        let bytes = &self.list_bytes(index)[start..start + field.size];
        value[..field.size].copy_from_slice(bytes);
        u64::from_le_bytes(value)
    }

    /// The list at `offset`.
    pub fn array(&self, offset: usize) -> Array {
        Array {
            ptr: self.get_at(offset, 8),
            count: self.get_at(offset + 8, 4) as u32,
            stride: self.get_at(offset + 12, 4) as u32,
        }
    }

    /// Replaces the list at `offset`.
    pub fn set_array(&mut self, offset: usize, array: Array) {
        self.bytes[offset..offset + 8].copy_from_slice(&array.ptr.to_le_bytes());
        self.bytes[offset + 8..offset + 12].copy_from_slice(&array.count.to_le_bytes());
        self.bytes[offset + 12..offset + 16].copy_from_slice(&array.stride.to_le_bytes());
    }
}
