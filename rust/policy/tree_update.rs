// SPDX-License-Identifier: GPL-2.0

//! How the tree of free runs follows a change of its bits.
//!
//! What a change can alter gets less on the way up. Near the leaves several nodes are above it, and
//! all of them are summed up. Then there is one node on each level; its new summary is joined with
//! that of its sibling. Soon the free runs at its two ends are out of reach of the change, and only
//! the longest run is left to follow. Where that stays the same the way ends.

use super::run_tree::{
    index,
    Summary,
    LEAF_PAGES, //
};

/// The tree while it is changed.
pub(super) struct Nodes<'a> {
    /// The bitmap.
    bits: &'a [u64],
    /// The inner nodes.
    nodes: &'a mut [u64],
}

impl<'a> Nodes<'a> {
    /// Takes the words of a tree: one per leaf, of which there is a power of two, and two per node.
    pub(super) fn new(bits: &'a [u64], nodes: &'a mut [u64]) -> Self {
        Self { bits, nodes }
    }

    /// Brings the nodes above the leaves `first` to `last` up to date.
    ///
    /// On each level those above more than one changed node are summed up, until there is only one.
    /// From there one node after the other is, with its sibling, until one has not changed.
    pub(super) fn sum_up(&mut self, first: u32, last: u32) {
        // A tree has at most 2^25 leaves.
        let leaves = u32::try_from(self.bits.len()).unwrap_or(0);
        let mut first = leaves.wrapping_add(first);
        let mut last = leaves.wrapping_add(last);
        let mut pages = LEAF_PAGES;
        while first != last {
            first /= 2;
            last /= 2;
            for node in first..=last {
                let child = node.wrapping_mul(2);
                let sum = self.sum(child, pages);
                let sum = sum.then(self.sum(child.wrapping_add(1), pages));
                self.store(node, sum);
            }
            pages = pages.wrapping_mul(2);
        }
        self.climb(first, pages);
    }

    /// Sums up the nodes above `node`, which has changed and has `pages` pages.
    fn climb(&mut self, node: u32, pages: u32) {
        let mut node = node;
        let mut sum = self.sum(node, pages);
        while node > 1 {
            let sibling = self.sum(node ^ 1, sum.pages);
            let new = if node & 1 == 0 {
                sum.then(sibling)
            } else {
                sibling.then(sum)
            };
            node /= 2;
            let old = self.store(node, new);
            if (old.leading, old.trailing) == (new.leading, new.trailing) {
                self.climb_inside(node, old.longest, new.longest);
                return;
            }
            sum = new;
        }
    }

    /// Sums up the nodes above `node`, whose longest run has changed from `old` to `new` pages, but
    /// not the runs at its ends. So it is with all nodes above.
    fn climb_inside(&mut self, node: u32, old: u32, new: u32) {
        let (mut node, mut old, mut new) = (node, old, new);
        while node > 1 && old != new {
            let parent = node / 2;
            let was = self.longest(parent);
            if new <= was {
                if old != was {
                    return;
                }
                new = new.max(self.longest_beside(node));
            }
            self.set_longest(parent, new);
            node = parent;
            old = was;
        }
    }

    /// Returns the summary of a node of `pages` pages.
    fn sum(&self, node: u32, pages: u32) -> Summary {
        let node = index(node);
        match node.checked_sub(self.bits.len()) {
            Some(leaf) => Summary::of_word(self.bits.get(leaf).copied().unwrap_or(0)),
            None => Summary::unpack([self.ends(node), self.inner(node)], pages),
        }
    }

    /// Writes the summary of an inner node; returns the old one.
    fn store(&mut self, node: u32, sum: Summary) -> Summary {
        let at = index(node).wrapping_mul(2);
        let Some([ends, inner]) = self.nodes.get_mut(at..at.wrapping_add(2)) else {
            return sum;
        };
        let old = Summary::unpack([*ends, *inner], sum.pages);
        [*ends, *inner] = sum.packed();
        old
    }

    /// Returns the word of an inner node that holds what is at its ends.
    fn ends(&self, node: usize) -> u64 {
        self.nodes.get(node.wrapping_mul(2)).copied().unwrap_or(0)
    }

    /// Returns the word of an inner node that holds the length of its longest run.
    fn inner(&self, node: usize) -> u64 {
        let at = node.wrapping_mul(2).wrapping_add(1);
        self.nodes.get(at).copied().unwrap_or(0)
    }

    /// Returns the length of the longest run of an inner node.
    fn longest(&self, node: u32) -> u32 {
        Summary::unpack([0, self.inner(index(node))], 0).longest
    }

    /// Returns the length of the longest run below the parent of an inner node that is not inside
    /// the node.
    fn longest_beside(&self, node: u32) -> u32 {
        let left = index(node & !1);
        let before = Summary::unpack([self.ends(left), 0], 0).trailing;
        let behind = Summary::unpack([self.ends(left | 1), 0], 0).leading;
        self.longest(node ^ 1).max(before.wrapping_add(behind))
    }

    /// Writes the length of the longest run of an inner node.
    fn set_longest(&mut self, node: u32, longest: u32) {
        let at = index(node).wrapping_mul(2).wrapping_add(1);
        if let Some(inner) = self.nodes.get_mut(at) {
            *inner = longest.into();
        }
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_tree_update))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    /// Leaves of the trees here.
    const LEAVES: usize = 8;

    /// Returns the tree above `bits`, all of it summed up.
    fn whole(bits: &[u64; LEAVES]) -> [u64; 2 * LEAVES] {
        let mut nodes = [0; 2 * LEAVES];
        Nodes::new(bits, &mut nodes).sum_up(0, 7);
        nodes
    }

    #[test]
    fn root_sums_up_the_leaves() {
        let bits = [!0 << 60, !0, 0b111, 0, 1, !0 << 1, !0, !0 >> 10];
        let mut nodes = whole(&bits);
        let sum = Nodes::new(&bits, &mut nodes).sum(1, 512);
        assert_eq!(sum.longest, 63 + 64 + 54);
        assert_eq!((sum.leading, sum.trailing), (0, 0));
    }

    #[test]
    fn free_tree_is_one_run() {
        let bits = [!0; LEAVES];
        let mut nodes = whole(&bits);
        let sum = Nodes::new(&bits, &mut nodes).sum(1, 512);
        assert_eq!((sum.leading, sum.trailing, sum.longest), (512, 512, 512));
    }

    #[test]
    fn changed_leaves_leave_the_tree_as_if_all_were_summed_up() {
        let mut bits = [!0; LEAVES];
        let mut nodes = whole(&bits);
        for step in 0..400_u32 {
            let first = step * 5 % 8;
            let last = (first + step % 3).min(7);
            for (word, leaf) in bits.iter_mut().zip(0..8_u32) {
                if (first..=last).contains(&leaf) {
                    *word = word.rotate_left(7) ^ !0 << (step * 11 % 64);
                }
            }
            Nodes::new(&bits, &mut nodes).sum_up(first, last);
            assert!(nodes == whole(&bits));
        }
    }
}
