// SPDX-License-Identifier: GPL-2.0

//! Sorting in place.
//!
//! The sort of `core` keeps dozens of elements on the stack and panics on an inconsistent order;
//! neither is wanted in a kernel. A heap sort takes n log n steps in every case and no memory.

/// Sorts `items` by `key`; equal ones may change places.
pub fn heap_sort<T: Copy, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    let count = items.len();
    for root in (0..count / 2).rev() {
        sift_down(items, root, &key);
    }
    for end in (1..count).rev() {
        let Some([largest, .., last]) = items.get_mut(..=end) else {
            return;
        };
        core::mem::swap(largest, last);
        if let Some(heap) = items.get_mut(..end) {
            sift_down(heap, 0, &key);
        }
    }
}

/// Moves the item at `root` down until none below it is larger.
fn sift_down<T: Copy, K: Ord>(heap: &mut [T], root: usize, key: &impl Fn(&T) -> K) {
    let Some(moving) = heap.get(root).copied() else {
        return;
    };
    let moving_key = key(&moving);
    let mut hole = root;
    while let Some((place, child)) = larger_child(heap, hole, key) {
        if key(&child) <= moving_key {
            break;
        }
        put(heap, hole, child);
        hole = place;
    }
    put(heap, hole, moving);
}

/// Returns the larger one of the children of `parent` and its place, if there are any.
fn larger_child<T: Copy, K: Ord>(
    heap: &[T],
    parent: usize,
    key: &impl Fn(&T) -> K,
) -> Option<(usize, T)> {
    let left = parent.saturating_mul(2).saturating_add(1);
    let right = left.saturating_add(1);
    let near = *heap.get(left)?;
    match heap.get(right) {
        Some(far) if key(far) > key(&near) => Some((right, *far)),
        _ => Some((left, near)),
    }
}

/// Writes `item` to `place`.
fn put<T>(heap: &mut [T], place: usize, item: T) {
    if let Some(old) = heap.get_mut(place) {
        *old = item;
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_heap_sort))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    /// Returns `count` numbers in no order, some of them equal.
    fn numbers(count: usize) -> impl Iterator<Item = u32> {
        (0..).map(|n: u32| n * 37 % 61).take(count)
    }

    #[test]
    fn every_length_is_sorted() {
        for count in 0..100 {
            let mut all = [0; 100];
            let items = &mut all[..count];
            for (item, number) in items.iter_mut().zip(numbers(count)) {
                *item = number;
            }
            heap_sort(items, |item| *item);
            assert!(items.is_sorted());
            assert_eq!(items.iter().sum::<u32>(), numbers(count).sum());
        }
    }

    #[test]
    fn key_decides() {
        let mut items = [3, 1, 2];
        heap_sort(&mut items, |item| core::cmp::Reverse(*item));
        assert_eq!(items, [3, 2, 1]);
    }
}
